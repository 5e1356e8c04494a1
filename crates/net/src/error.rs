//! The one error type of this crate.

use std::time::Duration;

use crate::frame::MAX_FRAME;

/// What can go wrong between two parties. Each message is one line that says what was wrong and, where the
/// reader can do something about it, what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The peer closed the connection (or died) while something was still to come or to go.
    #[error("the peer hung up while `{awaited}` was awaited; its own output says why")]
    Disconnected {
        /// The label, or the step of connecting, that was under way.
        awaited: &'static str,
    },
    /// Nothing at all came, or nothing could be sent, for the time limit.
    #[error(
        "no sign of life from the peer for {} s while `{awaited}` was awaited; \
         check that it still runs and that both parties run the same command",
        seconds(.after)
    )]
    Timeout {
        /// The label, or the step of connecting, that was under way.
        awaited: &'static str,
        /// The limit that ran out.
        after: Duration,
    },
    /// Both parties are alive and both wait for a message.
    #[error(
        "both parties wait for each other (here for `{awaited}`); they do not run the same protocol or parameters"
    )]
    Stalemate {
        /// The label this party waits for.
        awaited: &'static str,
    },
    /// The peer gave up and said why.
    #[error("the peer gave up: {reason}")]
    PeerAborted {
        /// Machine-readable reason; 1 is the only one in use.
        code: u16,
        /// The peer's words, bounded and freed of control characters.
        reason: String,
    },
    /// The peer sent another message than the protocol asks for at this point.
    #[error("expected the message `{expected}`, got {}; both parties must run the same version and parameters", label(*.got, .got_name))]
    WrongLabel {
        /// The label awaited.
        expected: &'static str,
        /// Hash of the label that came.
        got: u32,
        /// Its name, if this program has met it on this channel.
        got_name: Option<&'static str>,
    },
    /// A message has another length than the protocol asks for.
    #[error(
        "message `{label}` should be {expected} bytes, got {got}; both parties must run the same parameters"
    )]
    WrongLength {
        /// The message's label.
        label: &'static str,
        /// Length the protocol asks for.
        expected: usize,
        /// Length the peer announced.
        got: usize,
    },
    /// A message of variable length is longer than its bound.
    #[error("message `{label}` may be {max} bytes at most, got {got}")]
    TooLong {
        /// The message's label.
        label: &'static str,
        /// The bound.
        max: usize,
        /// Length the peer announced, or this party wanted to send.
        got: usize,
    },
    /// A message names a round that cannot have been reached.
    #[error(
        "message `{label}` claims round {got}, but {max} is the latest possible; the peer does not follow the protocol"
    )]
    WrongClock {
        /// The message's label.
        label: &'static str,
        /// The latest clock an honest peer could have sent.
        max: u32,
        /// The clock that came.
        got: u32,
    },
    /// The peer's first bytes are not those of this program.
    #[error("the peer does not speak Volvelle's protocol ({detail}); check the address and port")]
    NotVolvelle {
        /// What was seen instead.
        detail: String,
    },
    /// The peer is another version of this program.
    #[error(
        "peer speaks protocol version {got}, this program {expected}; install the same version on both sides"
    )]
    Version {
        /// The version spoken here.
        expected: u32,
        /// The peer's.
        got: u32,
    },
    /// Both parties took the same role.
    #[error("both parties are {role}s; start one as client and one as server")]
    SameRole {
        /// The role both have.
        role: crate::Role,
    },
    /// The two parties were started with different parameters.
    #[error(
        "parameter `{name}`: ours {ours}, peer's {peers}; start both parties with the same value"
    )]
    Parameter {
        /// The parameter's name.
        name: String,
        /// This party's value, or `none`.
        ours: String,
        /// The peer's value, or `none`.
        peers: String,
    },
    /// The peer's handshake message is malformed.
    #[error("malformed handshake: {detail}")]
    Handshake {
        /// What was wrong.
        detail: String,
    },
    /// An address could not be used.
    #[error("cannot {action} {address}: {detail}")]
    Address {
        /// "listen on" or "connect to".
        action: &'static str,
        /// The address as given.
        address: String,
        /// Why, and what to do.
        detail: String,
    },
    /// TLS refused the peer, or the peer refused us.
    #[error("TLS: {detail}")]
    Tls {
        /// Why, and what to do.
        detail: String,
    },
    /// A certificate or key could not be read, made, or used.
    #[error("{path}: {detail}")]
    Identity {
        /// The file concerned.
        path: String,
        /// Why, and what to do.
        detail: String,
    },
    /// A link description could not be understood.
    #[error("link `{given}`: {detail}")]
    Link {
        /// The text given.
        given: String,
        /// Why, and what would be right.
        detail: String,
    },
    /// The operating system reported something else.
    #[error("{doing}: {detail}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The system's message.
        detail: String,
    },
}

impl NetError {
    /// For a payload longer than any frame may be.
    pub(crate) fn over_frame(label: &'static str, got: usize) -> NetError {
        NetError::TooLong {
            label,
            max: MAX_FRAME,
            got,
        }
    }
}

fn seconds(duration: &Duration) -> f64 {
    duration.as_secs_f64()
}

fn label(hash: u32, name: &Option<&'static str>) -> String {
    match name {
        Some(name) => format!("`{name}`"),
        None => format!("an unknown one ({hash:08x})"),
    }
}
