//! What can go wrong in this crate.

use volvelle_arith::ArithError;
use volvelle_lut::LutError;

/// An error of the functions on fixed-point numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MathError {
    /// A protocol on shares failed.
    #[error(transparent)]
    Arith(#[from] ArithError),
    /// A table lookup failed.
    #[error(transparent)]
    Lut(#[from] LutError),
    /// A format outside what is supported.
    #[error("{what}: expected {expected}, got {got}")]
    Format {
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        got: u32,
    },
    /// A number that the format cannot hold.
    #[error(
        "{value} does not fit a fixed-point number of {bits} bits, {frac} of them fraction: expected {low} to {high}"
    )]
    OutOfRange {
        /// The number.
        value: f64,
        /// Bits of the format.
        bits: u32,
        /// Fraction bits of the format.
        frac: u32,
        /// The least number it holds.
        low: f64,
        /// The largest number it holds.
        high: f64,
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
}

pub(crate) fn check_range(
    what: &'static str,
    low: u32,
    high: u32,
    got: u32,
) -> Result<(), MathError> {
    if (low..=high).contains(&got) {
        Ok(())
    } else {
        Err(MathError::Format {
            what,
            expected: format!("{low} to {high}"),
            got,
        })
    }
}

pub(crate) fn check_len(what: &'static str, expected: usize, got: usize) -> Result<(), MathError> {
    if expected == got {
        Ok(())
    } else {
        Err(MathError::Length {
            what,
            expected,
            got,
        })
    }
}
