//! What can go wrong in a lookup.

use thiserror::Error;
use volvelle_net::NetError;
use volvelle_ot::OtError;

use crate::StoreError;

/// Error of a table lookup or of its preprocessing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LutError {
    /// The peer, or the link to it, failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Oblivious transfer failed.
    #[error(transparent)]
    Ot(#[from] OtError),
    /// A store of correlations failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A batch of no lookups.
    #[error("a batch must hold at least one lookup")]
    EmptyBatch,
    /// A table size out of range.
    #[error("a table must have 2^k entries with k in 1..={max}, got k = {got}", max = crate::MAX_LOG_ENTRIES)]
    LogEntries {
        /// The `k` that was asked for.
        got: u32,
    },
    /// A table size that a protocol does not take.
    #[error("protocol {protocol} takes tables of 2^{min} to 2^{max} entries, got 2^{got}")]
    Size {
        /// The protocol, or what makes its correlations.
        protocol: &'static str,
        /// `log2` of the fewest entries.
        min: u32,
        /// `log2` of the most.
        max: u32,
        /// `log2` of what was asked for.
        got: u32,
    },
    /// A number of entries that is not a power of two in range.
    #[error("a table must have 2, 4, … 2^{max} entries, got {got}", max = crate::MAX_LOG_ENTRIES)]
    Entries {
        /// The number of entries given.
        got: usize,
    },
    /// A word width out of range.
    #[error("table entries must have 1..=64 bits, got {got}")]
    Bits {
        /// The width that was asked for.
        got: u32,
    },
    /// An entry that does not fit its table's width.
    #[error("table entry {position} does not fit {bits} bits")]
    EntryTooWide {
        /// Where it stands.
        position: usize,
        /// The table's width.
        bits: u32,
    },
    /// Another number of tables than the lookups were prepared for.
    #[error("the lookups were prepared for {expected} tables, got {got}")]
    TableCount {
        /// Prepared for.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// A table of another size than the lookups were prepared for.
    #[error("the lookups were prepared for tables of {expected} entries, table {table} has {got}")]
    TableEntries {
        /// Which table.
        table: usize,
        /// Prepared for.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// A table of another width than the lookups were prepared for.
    #[error(
        "the lookups were prepared for {expected}-bit entries in table {table}, got {got}-bit ones"
    )]
    TableBits {
        /// Which table.
        table: usize,
        /// Prepared for.
        expected: u32,
        /// Given.
        got: u32,
    },
    /// Another number of indices than lookups prepared.
    #[error("{expected} lookups were prepared, got {got} indices")]
    BatchLength {
        /// Prepared.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// A lookup of another kind than prepared.
    #[error("the lookups were prepared for {expected} outputs, asked for {got} ones")]
    OutputKind {
        /// Prepared for.
        expected: &'static str,
        /// Asked for.
        got: &'static str,
    },
    /// A vector of a size that cannot be permuted or rotated.
    #[error("a vector must have 2..={max} elements, got {got}")]
    VectorSize {
        /// The largest.
        max: usize,
        /// The size that was asked for.
        got: usize,
    },
    /// Another number of elements than were prepared for.
    #[error("vectors of {expected} elements in all were prepared for, got {got}")]
    VectorLength {
        /// Prepared for.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// Another number of secret shifts, or of places of secret permutations, than this party is to give.
    #[error("this party is to give {expected} {what}, got {got}")]
    SecretCount {
        /// What is counted.
        what: &'static str,
        /// To be given.
        expected: usize,
        /// Given.
        got: usize,
    },
    /// What was given as a permutation is none.
    #[error("permutation {which} of the batch does not hold each place once")]
    NotAPermutation {
        /// Its number.
        which: usize,
    },
    /// A place from the peer that is not in the vector.
    #[error("the peer named place {got} of vectors of {len} elements")]
    PeerPlace {
        /// Elements of a vector.
        len: usize,
        /// The place.
        got: u64,
    },
    /// An index shared in another way than a protocol takes.
    #[error("the index must be {expected}, got an {got} one")]
    IndexKind {
        /// What it takes.
        expected: crate::Index,
        /// Given.
        got: crate::Index,
    },
    /// Steps of a table that do not begin at 0 and rise within it.
    #[error(
        "steps must start at 0 and rise below the number of entries; step {position} starts at {got}"
    )]
    Step {
        /// Which step.
        position: usize,
        /// Where it starts.
        got: u64,
    },
    /// A table too large for a protocol.
    #[error("{protocol} takes tables of 2^k entries with k in 1..={max}, got k = {got}")]
    TableTooLarge {
        /// The protocol.
        protocol: &'static str,
        /// The largest `k` that it takes.
        max: u32,
        /// The `k` that was asked for.
        got: u32,
    },
    /// A batch that needs more memory than a protocol is given.
    #[error(
        "the batch needs {got} bytes of {what}, at most {limit} are allowed: prepare it in parts"
    )]
    TooMuchMemory {
        /// What is to be kept.
        what: &'static str,
        /// Bytes allowed.
        limit: u64,
        /// Bytes that the batch would take.
        got: u64,
    },
    /// An unknown protocol name.
    #[error("unknown lookup protocol `{got}`, expected one of {names}", names = crate::protocol::names())]
    UnknownProtocol {
        /// The name given.
        got: String,
    },
    /// An unknown objective of planning.
    #[error("unknown objective `{got}`, expected one of balanced, total, online, bits")]
    UnknownObjective {
        /// The name given.
        got: String,
    },
    /// No protocol takes a demand.
    #[error("no lookup protocol takes such tables")]
    NoProtocol,
    /// A demand that the protocol cannot meet.
    #[error("the protocol {protocol} does not take {what}")]
    Unsuited {
        /// The protocol asked for.
        protocol: crate::Protocol,
        /// What it does not take.
        what: &'static str,
    },
    /// A batch of which a protocol would keep more than it is given.
    #[error(
        "{protocol} would keep {mib} MiB for {batch} lookups, more than {limit_mib}: prepare {most} at once at most"
    )]
    Memory {
        /// The protocol asked for.
        protocol: crate::Protocol,
        /// Lookups asked for.
        batch: u64,
        /// MiB that they would take at a party between the phases.
        mib: u64,
        /// MiB allowed.
        limit_mib: u64,
        /// The most lookups that they allow.
        most: u64,
    },
}
