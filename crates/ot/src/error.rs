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
