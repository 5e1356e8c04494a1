use volvelle_net::NetError;

/// What can go wrong while making OTs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtError {
    /// The connection failed or the peer sent another message than the protocol's next.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The peer sent bytes that are no point of the group, or the neutral one.
    #[error(
        "base OT: the peer's point {index} is not a valid group element; is it running the same program?"
    )]
    InvalidPoint {
        /// Which of the points, from 0.
        index: usize,
    },
    /// The peer sent bytes that are no ML-KEM encapsulation key.
    #[error(
        "base OT: the peer's ML-KEM key {index} has a coefficient out of range; is it running the same program?"
    )]
    InvalidKey {
        /// Which of the keys, from 0.
        index: usize,
    },
    /// The peer was set up otherwise.
    #[error(
        "OT set-up: this party uses {what} code {ours:#04x}, the peer {theirs:#04x}; start both with the same engine and parameter set, base OT and security"
    )]
    Config {
        /// Which setting.
        what: &'static str,
        /// Its code here.
        ours: u8,
        /// Its code there.
        theirs: u8,
    },
    /// There is no such combination of settings.
    #[error("OT set-up: {what}")]
    Unsupported {
        /// What is not to be had.
        what: &'static str,
    },
    /// A consistency check failed: the peer did not follow the protocol, or the connection altered bytes.
    #[error(
        "the peer cheated, or bytes were altered on the way: {what} did not pass the check; nothing made since the last check may be used"
    )]
    Cheating {
        /// What was checked.
        what: &'static str,
    },
    /// An earlier call failed half-way, so the two ends are out of step and what is left of the state may have been used.
    #[error("these OTs are unusable since an earlier call failed; connect and set up again")]
    Broken,
    /// A peer's lane named a task of Ferret that does not exist or is not its own.
    #[error(
        "the peer's lane named task {task} of iteration {iteration}, which is over or was named before; is it running the same program?"
    )]
    LaneTask {
        /// Which iteration.
        iteration: u64,
        /// Which of its tasks.
        task: u64,
    },
    /// Another lane of this session failed, or left, with something to make that this one needs.
    #[error(
        "another lane has failed, or all others have ended, with OTs still to make that this lane needs; connect and set up again"
    )]
    OtherLane,
    /// So many OTs were made that numbers would repeat.
    #[error(
        "this session has made {limit} OTs in a direction, as many as it has numbers for; connect and set up again"
    )]
    UsedUp {
        /// How many.
        limit: u64,
    },
    /// More than a call can make.
    #[error("{what}: at most {limit} a call, asked for {got}")]
    TooMany {
        /// What was counted.
        what: &'static str,
        /// The most a call makes.
        limit: u64,
        /// How many were asked for.
        got: u64,
    },
    /// The thread that makes OTs ahead has ended; it said why to an earlier caller.
    #[error("OTs made ahead: the background has ended after an earlier error; connect again")]
    BackgroundEnded,
    /// A caller's buffers do not fit together.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// What was measured.
        what: &'static str,
        /// What it has to be.
        expected: usize,
        /// What it was.
        got: usize,
    },
}

impl OtError {
    /// `Ok` if `got == expected`.
    pub(crate) fn check(what: &'static str, expected: usize, got: usize) -> Result<(), Self> {
        if expected == got {
            Ok(())
        } else {
            Err(Self::Shape {
                what,
                expected,
                got,
            })
        }
    }
}
