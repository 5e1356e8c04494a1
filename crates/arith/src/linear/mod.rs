//! A matrix known to the server times vectors.
//!
//! - [`MatVecClear`]: the client knows the vectors in the clear.
//! - [`MatVecShared`]: the vectors are shared.
//!
//! Vectors lie one after the other: element j of vector v at `v·cols + j`, results likewise.

mod clear;
mod shared;

pub use clear::MatVecClear;
pub use shared::MatVecShared;

use volvelle_net::Role;

use crate::error::{ArithError, check_len, check_range};
use crate::ring::Ring;

/// Rows and columns of a matrix at most.
const MAX_SIDE: u32 = 1 << 20;

/// A matrix of integers, row by row.
#[derive(Clone, PartialEq, Eq)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    entries: Vec<i64>,
}

impl Matrix {
    /// A matrix with entry (r, j) at `r·cols + j`.
    pub fn new(rows: usize, cols: usize, entries: Vec<i64>) -> Result<Matrix, ArithError> {
        check_len(
            "entries of a matrix",
            rows.saturating_mul(cols),
            entries.len(),
        )?;
        Ok(Matrix {
            rows,
            cols,
            entries,
        })
    }

    /// The entries, row by row.
    pub fn entries(&self) -> &[i64] {
        &self.entries
    }

    /// Adds M·x to `out` for each vector, in the ring.
    fn multiply_add(&self, ring: Ring, vectors: &[u64], out: &mut [u64]) {
        for (x, y) in vectors
            .chunks_exact(self.cols)
            .zip(out.chunks_exact_mut(self.rows))
        {
            for (row, y) in self.entries.chunks_exact(self.cols).zip(y) {
                let dot = row.iter().zip(x).fold(0u64, |sum, (&w, &x)| {
                    sum.wrapping_add((w as u64).wrapping_mul(x))
                });
                *y = ring.add(*y, dot);
            }
        }
    }
}

impl std::fmt::Debug for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} x {}, secret)", self.rows, self.cols)
    }
}

/// The public shape of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixShape {
    /// m, the length of the results.
    pub rows: usize,
    /// n, the length of the vectors.
    pub cols: usize,
    /// Bits of the matrix's entries, as two's complement numbers.
    pub weight_bits: u32,
    /// The ring of the results.
    pub ring: Ring,
}

impl MatrixShape {
    fn check(&self) -> Result<(), ArithError> {
        let side = |n: usize| n.try_into().unwrap_or(u32::MAX);
        check_range("rows of a matrix", 1, MAX_SIDE, side(self.rows))?;
        check_range("columns of a matrix", 1, MAX_SIDE, side(self.cols))?;
        check_range("bits of a weight", 1, self.ring.bits(), self.weight_bits)
    }

    /// The server's matrix, checked; none at the client.
    fn own_matrix(
        &self,
        role: Role,
        matrix: Option<&Matrix>,
    ) -> Result<Option<Matrix>, ArithError> {
        self.check()?;
        match (role, matrix) {
            (Role::Client, None) => Ok(None),
            (Role::Client, Some(_)) => Err(ArithError::Owner {
                expected: "no matrix",
                got: "a matrix",
            }),
            (Role::Server, None) => Err(ArithError::Owner {
                expected: "a matrix",
                got: "none",
            }),
            (Role::Server, Some(matrix)) => {
                check_len("rows of the matrix", self.rows, matrix.rows)?;
                check_len("columns of the matrix", self.cols, matrix.cols)?;
                let (low, high) = (
                    -1i128 << (self.weight_bits - 1),
                    (1i128 << (self.weight_bits - 1)) - 1,
                );
                match matrix
                    .entries
                    .iter()
                    .find(|&&w| !(low..=high).contains(&i128::from(w)))
                {
                    Some(&got) => Err(ArithError::Parameter {
                        what: "weight",
                        expected: format!("{low} to {high}"),
                        got,
                    }),
                    None => Ok(Some(matrix.clone())),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
