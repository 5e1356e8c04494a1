//! What can go wrong in this crate.

use volvelle_lut::LutError;
use volvelle_net::NetError;
use volvelle_ot::OtError;

/// An error of the arithmetic layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArithError {
    /// The connection failed, or the peer is out of step.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The oblivious transfers failed.
    #[error(transparent)]
    Ot(#[from] OtError),
    /// A table lookup failed.
    #[error(transparent)]
    Lut(#[from] LutError),
    /// A parameter outside what the protocol supports.
    #[error("{what}: expected {expected}, got {got}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        got: i64,
    },
    /// An input of another length than was prepared for.
    #[error("{what}: prepared for {expected} values, got {got}")]
    Length {
        /// The input.
        what: &'static str,
        /// The number of values prepared for.
        expected: usize,
        /// The number of values given.
        got: usize,
    },
    /// The peer's bit vector does not end in zeros after its last bit.
    #[error("message `{label}`: expected zero bits after the first {bits}, got others")]
    Padding {
        /// The message.
        label: &'static str,
        /// The number of bits it carries.
        bits: usize,
    },
    /// A matrix was given by the client, or none by the server.
    #[error("the server gives the matrix and the client none: expected {expected}, got {got}")]
    Owner {
        /// What this party should have given.
        expected: &'static str,
        /// What it gave.
        got: &'static str,
    },
}

/// Checks an input's length against the prepared one.
pub(crate) fn check_len(what: &'static str, expected: usize, got: usize) -> Result<(), ArithError> {
    if expected == got {
        Ok(())
    } else {
        Err(ArithError::Length {
            what,
            expected,
            got,
        })
    }
}

/// Checks a parameter against its inclusive range.
pub(crate) fn check_range(
    what: &'static str,
    low: u32,
    high: u32,
    got: u32,
) -> Result<(), ArithError> {
    if (low..=high).contains(&got) {
        Ok(())
    } else {
        Err(ArithError::Parameter {
            what,
            expected: format!("{low} to {high}"),
            got: i64::from(got),
        })
    }
}
