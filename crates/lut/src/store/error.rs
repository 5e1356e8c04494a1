//! What can go wrong with a store.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Error of a correlation store. Whatever it is, no correlation has been handed out that this file could hand out again;
/// an older copy of the file could (see `docs/protocols/store.md`).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is a file already.
    #[error("{path}: there is such a file already; open it, or remove it first")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{path}: cannot {doing}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// No space left.
    #[error("{path}: no space left; what was stored before is intact, free some space and go on")]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// Another process, or another `Store` of this one, has it open.
    #[error(
        "{path}: another process has this store open; two would use the same correlations twice"
    )]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A file of some other kind.
    #[error("{path}: not a correlation store of Volvelle")]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// A store of another version.
    #[error(
        "{path}: a store of version {got}, this program reads version {expected}; make a new one"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that this program reads.
        expected: u16,
        /// The file's.
        got: u16,
    },
    /// Bytes changed or missing.
    #[error("{path}: damaged ({what}); make a new store at both parties")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, and how it shows.
        what: &'static str,
    },
    /// The key is not the store's.
    #[error("{path}: this is not the key that the store was made with")]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// A key file where a passphrase is needed, or the reverse.
    #[error("{path}: the store was made with a {expected}, not with a {got}")]
    KeyKind {
        /// The file.
        path: PathBuf,
        /// How it was made.
        expected: &'static str,
        /// How it was to be opened.
        got: &'static str,
    },
    /// A passphrase of no characters, or one that the key derivation refuses.
    #[error("the passphrase cannot be used: {reason}")]
    Passphrase {
        /// Why.
        reason: &'static str,
    },
    /// A store that was made by the other role.
    #[error("{path}: the store was made as {expected}, this party is the {got}")]
    Role {
        /// The file.
        path: PathBuf,
        /// As which it was made.
        expected: volvelle_net::Role,
        /// As which it was to be used.
        got: volvelle_net::Role,
    },
    /// A file of correlations of another shape than asked for.
    #[error(
        "{path}: the store is for {holds}, asked for were {asked}; ask for the store's, give another file, \
         or remove this one at both parties"
    )]
    FileShape {
        /// The file.
        path: PathBuf,
        /// Asked for.
        asked: String,
        /// The file's.
        holds: String,
    },
    /// Correlations of another shape than the store's, or than the peer's.
    #[error("expected correlations for {ours}, but {whose} for {theirs}")]
    OtherShape {
        /// This party's.
        ours: String,
        /// Whose the other is: "the peer's store is", "the lookups are".
        whose: &'static str,
        /// The other.
        theirs: String,
    },
    /// More tables at an index than a store takes.
    #[error("a store takes correlations for at most {max} tables at one index, got {got}")]
    TooManyTables {
        /// The most.
        max: usize,
        /// Asked for.
        got: usize,
    },
    /// The peer's program has another store format.
    #[error(
        "the peer's stores are of version {got}, this program's of version {expected}; install the same version"
    )]
    PeerVersion {
        /// Here.
        expected: u16,
        /// There.
        got: u16,
    },
    /// A message about stores that makes no sense.
    #[error("malformed message about the peer's store: {what}")]
    Peer {
        /// What was wrong.
        what: &'static str,
    },
    /// Two stores that were not made with each other.
    #[error(
        "{path}: this store and the peer's were not made together; give the one made with this peer"
    )]
    OtherPeer {
        /// The file.
        path: PathBuf,
    },
    /// Only this party has a store.
    #[error(
        "{path}: the peer has no store that goes with this one; make a new one at both parties"
    )]
    PeerHasNone {
        /// The file.
        path: PathBuf,
    },
    /// Only the peer has a store.
    #[error(
        "{path}: the peer has a store already, this party none; give its file, or remove the peer's"
    )]
    PeerHasOne {
        /// Where this party's would be.
        path: PathBuf,
    },
    /// The peer's store ends in the middle of what this party stored at once.
    #[error(
        "{path}: the peer holds correlations up to number {peers}, which is no end of a batch here; \
         make a new store at both parties"
    )]
    Misaligned {
        /// The file.
        path: PathBuf,
        /// Where the peer's end.
        peers: u64,
    },
    /// More asked for than is left. The cursor has not moved.
    #[error("{asked} correlations asked for, the store has {left} left")]
    Exhausted {
        /// Asked for.
        asked: u64,
        /// Left.
        left: u64,
    },
    /// Taken from or added to before the parties compared their stores.
    #[error("the store has not been reconciled with the peer's on this connection")]
    NotReconciled,
    /// More than is ever encrypted at once.
    #[error("too long to be encrypted in one piece")]
    TooLong,
    /// A write failed earlier, so that what the file says is not known.
    #[error("{path}: the store failed earlier; open it again")]
    Broken {
        /// The file.
        path: PathBuf,
    },
}
