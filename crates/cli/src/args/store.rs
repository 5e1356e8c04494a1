//! `volvelle preprocess` and `volvelle lookup`: lookups made ahead, and used.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use volvelle_lut::{Generator, Lookups, Shape};
use volvelle_ot::OtConfig;

use super::{Ahead, Entries, IndexKind, PeerArgs};

/// `volvelle preprocess`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples; both parties run it, one listening and one connecting, and each gets a file:
  volvelle preprocess --store s.store --key-file s.key --listen 0.0.0.0:7000 --plain-tcp \\
      --entries 256 --bits 64 --count 1000000
  volvelle preprocess --store c.store --key-file c.key --connect server.example:7000 --plain-tcp \\
      --entries 256 --bits 64 --count 1000000
Interrupted (Ctrl-C, a lost connection, a lost machine), the same commands go on from what is stored. Run again
later, they fill the stores up to --count. `volvelle lookup` uses them; the table is not needed before.

The key file is made if neither it nor the store is there. It opens this party's store; the peer has its own.")]
pub struct PreprocessArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Entries of the tables that will be looked up in, 2..1048576, padded to a power of two; rows take an eighth of them in
    /// bytes on disk
    #[arg(long, value_name = "N", default_value = "256")]
    pub entries: Entries,
    /// Bits of an entry, 1..64; with 1, and with a boolean index, the output is XOR-shared
    #[arg(long, value_name = "L", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// How the index is shared: additive modulo N, or XOR
    #[arg(long, value_enum, default_value_t = IndexKind::Arithmetic)]
    pub index: IndexKind,
    /// Unused lookups that the stores hold when this ends
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub count: u64,
    /// How they are made; makes no difference later
    #[arg(long, value_enum, default_value_t = Maker::Auto)]
    pub protocol: Maker,
    /// Make oblivious transfers ahead in the background, on two more threads and connections; the other party must say the
    /// same. Off unless asked for: batches are large, and what waits here is the processor or the link
    #[arg(long, value_enum, default_value_t = Ahead::Off)]
    pub ahead: Ahead,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// End with one line of JSON instead of a sentence
    #[arg(long)]
    pub json: bool,
}

/// `volvelle lookup`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples; both parties run it with the stores that `volvelle preprocess` has made, the same table and each its own shares:
  volvelle lookup --store s.store --key-file s.key --table squares.txt --index s.txt \\
      --listen 0.0.0.0:7000 --plain-tcp
  volvelle lookup --store c.store --key-file c.key --table squares.txt --index c.txt \\
      --connect server.example:7000 --plain-tcp
A table and an index file have a number a line, decimal or 0x…; lines that begin with # are skipped. A table of fewer
entries than the store's is filled up with zeros. Index i is the sum of both parties' numbers in line i modulo the
entries (their XOR, if the stores were made with --index boolean).

Each party prints its shares of the outputs, one a line, modulo 2^bits (or for XOR). With --open, at both
parties, they are put together and both print the entries.

Every lookup uses up one of the store; what is used is marked so before it is used, and is lost if the
connection is.")]
pub struct LookupArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The public table: a number a line, the same at both parties
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// This party's shares of the indices: a number a line; - is standard input
    #[arg(long, value_name = "FILE")]
    pub index: PathBuf,
    /// Show both parties the entries found
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub peer: PeerArgs,
    /// Print one line of JSON with the outputs and the cost
    #[arg(long)]
    pub json: bool,
}

/// A store and what opens it.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// This party's store
    #[arg(long, value_name = "FILE")]
    pub store: PathBuf,
    /// The key that the store is encrypted with: 64 hexadecimal digits. Without it a passphrase is taken from the
    /// environment (VOLVELLE_PASSPHRASE) or asked for
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
}

/// Which end of the connection this is.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
pub struct EndpointArgs {
    /// Be the server: wait here for the client; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Option<String>,
    /// Be the client: connect to the server
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: Option<String>,
}

/// Makers of one-hot correlations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Maker {
    /// By what sends the fewest bits for such tables
    Auto,
    /// By doubling: few bits, more rounds
    Doubling,
    /// By secret-shared rotation (ROTL): one round, more bits and computing
    Rotation,
    /// By trees, for 256 entries and more
    Tree,
}

impl Maker {
    /// What makes correlations of a shape. Both parties come to the same: bits are a matter of formulas.
    pub fn generator(self, shape: &Shape) -> Generator {
        /// Lookups over which the bits are compared.
        const BATCH: usize = 1000;
        let bits = |generator: &Generator| {
            let cost = Lookups::cost(*generator, shape, BATCH).prep;
            let ots = cost.cots() as f64 * OtConfig::default().engine.figures().sender_bits;
            cost.bits() as f64 + ots
        };
        match self {
            Self::Doubling => Generator::Doubling,
            Self::Rotation => Generator::Rotation,
            Self::Tree => Generator::Tree,
            Self::Auto => [Generator::Doubling, Generator::Rotation, Generator::Tree]
                .into_iter()
                .filter(|generator| generator.log_entries().contains(&shape.log_entries))
                .min_by(|a, b| bits(a).total_cmp(&bits(b)))
                .unwrap_or(Generator::Doubling),
        }
    }
}
