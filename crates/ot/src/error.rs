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
    /// The peer was set up for another engine or LPN parameter set.
    #[error(
        "OT set-up: this party uses engine code {ours:#04x}, the peer {theirs:#04x}; start both with the same engine and parameter set"
    )]
    Config {
        /// Code of the engine here.
        ours: u8,
        /// Code of the engine there.
        theirs: u8,
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
