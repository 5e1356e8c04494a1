//! Everything that can end the program with a message.

use std::path::PathBuf;

use crate::digits::fixed::FixedError;
use crate::digits::images::ImagesError;
use crate::digits::weights::WeightsError;

/// One line each: what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The model file.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// The images file.
    #[error(transparent)]
    Images(#[from] ImagesError),
    /// The weights do not fit the ring.
    #[error(transparent)]
    Fixed(#[from] FixedError),
    /// The connection or the peer.
    #[error(transparent)]
    Net(#[from] volvelle_net::NetError),
    /// A protocol.
    #[error(transparent)]
    Ot(#[from] volvelle_ot::OtError),
    /// A protocol.
    #[error(transparent)]
    Lut(#[from] volvelle_lut::LutError),
    /// A protocol.
    #[error(transparent)]
    Arith(#[from] volvelle_arith::ArithError),
    /// A protocol.
    #[error(transparent)]
    Math(#[from] volvelle_math::MathError),
    /// No temporary folder.
    #[error("cannot write to the temporary folder: {0}; set TMPDIR to one with space")]
    Temporary(std::io::Error),
    /// A child process could not be started.
    #[error("cannot start the {name} process: {source}")]
    Start {
        /// Which.
        name: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A child process failed.
    #[error("the {name} process failed: {reason}")]
    Child {
        /// Which.
        name: &'static str,
        /// What it said.
        reason: String,
    },
    /// Another thread of this process has failed, and says why.
    #[error("another thread has failed")]
    OtherThread,
    /// A connection for a session that does not wait for one.
    #[error("a connection for no session that waits for one; refused")]
    Stray,
    /// More clients than wait here.
    #[error("too many clients are waiting; try again later")]
    Busy,
    /// Wrong results: a bug of ours.
    #[error(
        "{wrong} of {checked} results differ from the plaintext computation; please report this with the command line"
    )]
    Wrong {
        /// How many.
        wrong: u64,
        /// Of how many.
        checked: u64,
    },
    /// A name that is no file name.
    #[error("\"{0}\" is no name for a key; use letters, digits, '-', '_' and '.'")]
    Name(String),
    /// The folder for keys cannot be made.
    #[error("cannot make the folder {path}: {source}; give another --out")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// More images than a session takes, or none.
    #[error("{got} images in one session, expected 1 to {max}; split them")]
    TooMany {
        /// How many.
        got: u64,
        /// The most that is served.
        max: u64,
    },
    /// A bench with another machine, and nothing said about how to protect it.
    #[error("give --identity and --peer-cert (see volvelle keygen), or --plain-tcp")]
    NoIdentity,
    /// A file of numbers.
    #[error(transparent)]
    Numbers(#[from] crate::numbers::NumbersError),
    /// The file that a store's key is in.
    #[error("key file {path}: {reason}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing to open a store with, and nobody to ask.
    #[error("no key for the store; give --key-file, or the passphrase in VOLVELLE_PASSPHRASE")]
    NoKey,
    /// A new passphrase was not repeated.
    #[error("the two passphrases differ; nothing was made")]
    Mistyped,
    /// A table with more entries than the store is for.
    #[error("the table has {got} entries, the store is for {expected}")]
    TableLength {
        /// In the file.
        got: usize,
        /// In the store.
        expected: usize,
    },
    /// A store that another program made.
    #[error("the store is for {0} tables at one index; this command looks up in one")]
    Tables(usize),
    /// Shares that a protocol has not.
    #[error("{source}; give {give}")]
    Shares {
        /// What it refuses.
        source: volvelle_lut::LutError,
        /// What it does not.
        give: &'static str,
    },
    /// A dealer where there is none, or none where there must be.
    #[error("{0}")]
    Dealer(&'static str),
    /// A protocol that makes nothing to keep.
    #[error("{0} makes nothing that a store keeps; give doubling, rotation or tree")]
    Stored(&'static str),
    /// A peer that has chosen what this version does not have.
    #[error("the client has chosen `{got}`, which is not known here; use the same version")]
    Choice {
        /// What it named.
        got: String,
    },
    /// A report cannot be written.
    #[error("cannot write {path}: {source}; give another --out")]
    Report {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A plot cannot be drawn: a bug of ours.
    #[error("cannot draw a plot: {0}")]
    Plot(String),
    /// Vectors that cannot be moved, or too many.
    #[error("{0}")]
    Vectors(String),
    /// More threads than work.
    #[error("{lanes} threads for {items} items; use --threads {items} or fewer")]
    Lanes {
        /// Threads a party.
        lanes: usize,
        /// Items.
        items: usize,
    },
    /// Standard output is closed.
    #[error("cannot write to standard output: {0}")]
    Output(std::io::Error),
    /// A report cannot be written as JSON.
    #[error("cannot write the report: {0}")]
    Json(#[from] serde_json::Error),
}

/// The message without line breaks, which those of libraries may have: scripts read one line.
pub fn one_line(error: &CliError) -> String {
    error.to_string().replace(['\n', '\r'], " ")
}

/// Whether it is only that nobody reads on (`| head`), of which there is nothing to say.
pub fn is_closed_output(error: &CliError) -> bool {
    matches!(error, CliError::Output(source) if source.kind() == std::io::ErrorKind::BrokenPipe)
}
