//! The model in the ring's integers: exactly what the private protocol computes, computed in the clear.
//!
//! Numbers are in Z_{2^37}, read as signed, with 12 fractional bits (the papers' setting). Pixels are the
//! integers 0..16 and the first matrix is divided by 16 when it is rounded, so `W1·x` has 12 fractional
//! bits without a truncation. The second layer multiplies 12 by 12 fractional bits and its scores stay at 24:
//! only their order matters.
//!
//! [`FixedModel::new`] refuses weights with which any sum could leave the ring, for any image.

use volvelle_math::{Fixed, GeluPlan, MathError, gelu_plain_fixed};

use super::weights::Weights;
use super::{CLASSES, HIDDEN, PIXEL_MAX, PIXELS};

/// Bits of the ring.
pub const RING_BITS: u32 = 37;
/// Fractional bits of the hidden layer and of the rounded weights.
pub const FRAC: u32 = 12;
/// Width of the first matrix' entries, two's complement: |W1| < 8 is |W1/16| < 1/2.
pub const W1_BITS: u32 = FRAC;
/// Width of the second matrix' entries, two's complement: |W2| < 8.
pub const W2_BITS: u32 = FRAC + 4;

/// Why weights cannot be computed with in the ring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixedError {
    /// A rounded weight is wider than the protocol's multiplication.
    #[error(
        "a weight of layer {layer} becomes {got}, expected {expected} bits, two's complement; rescale the model"
    )]
    Weight {
        /// 1 or 2.
        layer: u8,
        /// Width of the layer's entries.
        expected: u32,
        /// The rounded weight.
        got: i64,
    },
    /// Some image could make a sum leave the ring.
    #[error(
        "row {row} of layer {layer} can reach {got:.1}, expected at most {expected:.1} (ring of {RING_BITS} bits); rescale the model"
    )]
    Range {
        /// 1 or 2.
        layer: u8,
        /// The row.
        row: usize,
        /// Largest magnitude that stays in range.
        expected: f64,
        /// Bound on the row's magnitude.
        got: f64,
    },
    /// The functions cannot be computed in this format.
    #[error(transparent)]
    Format(#[from] MathError),
}

/// The network, rounded.
#[derive(Clone)]
pub struct FixedModel {
    /// `HIDDEN × PIXELS`, 12 fractional bits, already divided by the pixels' range.
    pub w1: Vec<i64>,
    /// 12 fractional bits.
    pub b1: Vec<i64>,
    /// `CLASSES × HIDDEN`, 12 fractional bits.
    pub w2: Vec<i64>,
    /// 24 fractional bits.
    pub b2: Vec<i64>,
    /// The tables of the activation.
    pub gelu: GeluPlan,
}

/// The tables of GELU, which are public.
///
/// # Errors
/// None for the format used here.
pub fn gelu_plan() -> Result<GeluPlan, MathError> {
    GeluPlan::new(Fixed::new(RING_BITS, FRAC)?)
}

/// The weights are the server's secret: not shown.
impl std::fmt::Debug for FixedModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FixedModel").finish_non_exhaustive()
    }
}

impl FixedModel {
    /// Rounds the weights.
    ///
    /// # Errors
    /// If a weight or a sum would not fit.
    pub fn new(weights: &Weights) -> Result<Self, FixedError> {
        let model = Self {
            w1: round(&weights.w1, FRAC, f64::from(PIXEL_MAX)),
            b1: round(&weights.b1, FRAC, 1.0),
            w2: round(&weights.w2, FRAC, 1.0),
            b2: round(&weights.b2, 2 * FRAC, 1.0),
            gelu: gelu_plan()?,
        };
        fits(&model.w1, 1, W1_BITS)?;
        fits(&model.w2, 2, W2_BITS)?;
        let mut hidden = [0; HIDDEN];
        for (row, bound) in hidden.iter_mut().enumerate() {
            let reach = reach(&model.w1, &model.b1, row, &[i64::from(PIXEL_MAX); PIXELS]);
            in_range(1, row, reach, FRAC)?;
            // |GELU(x)| ≤ |x|; one more for its rounding and its approximation.
            *bound = reach + (1 << FRAC);
        }
        for row in 0..CLASSES {
            in_range(2, row, reach(&model.w2, &model.b2, row, &hidden), 2 * FRAC)?;
        }
        Ok(model)
    }

    /// The class with the largest score; the first of them if several are equal.
    pub fn classify(&self, pixels: &[u8; PIXELS]) -> u8 {
        let scores = self.scores(pixels);
        (1..CLASSES).fold(0, |best, class| {
            if scores[class] > scores[best] {
                class
            } else {
                best
            }
        }) as u8
    }

    /// The ten scores, with 24 fractional bits.
    pub fn scores(&self, pixels: &[u8; PIXELS]) -> [i64; CLASSES] {
        let input = pixels.map(i64::from);
        let mut hidden = [0; HIDDEN];
        affine(&self.w1, &self.b1, &input, &mut hidden);
        for value in &mut hidden {
            *value = gelu_plain_fixed(&self.gelu, *value);
        }
        let mut scores = [0; CLASSES];
        affine(&self.w2, &self.b2, &hidden, &mut scores);
        scores
    }
}

fn round(values: &[f32], frac: u32, divisor: f64) -> Vec<i64> {
    let scale = f64::from(frac).exp2() / divisor;
    values
        .iter()
        .map(|v| (f64::from(*v) * scale).round() as i64)
        .collect()
}

fn fits(matrix: &[i64], layer: u8, bits: u32) -> Result<(), FixedError> {
    let limit = 1i64 << (bits - 1);
    match matrix.iter().find(|w| !(-limit..limit).contains(*w)) {
        Some(got) => Err(FixedError::Weight {
            layer,
            expected: bits,
            got: *got,
        }),
        None => Ok(()),
    }
}

/// The largest magnitude of a row's sum when the inputs' magnitudes are at most `bounds`.
fn reach(matrix: &[i64], bias: &[i64], row: usize, bounds: &[i64]) -> i64 {
    let weights = &matrix[row * bounds.len()..][..bounds.len()];
    bias[row].abs()
        + weights
            .iter()
            .zip(bounds)
            .map(|(w, b)| w.abs() * b)
            .sum::<i64>()
}

/// Differences of two sums are compared, so each may use half of the signed range.
fn in_range(layer: u8, row: usize, reach: i64, frac: u32) -> Result<(), FixedError> {
    let limit = 1i64 << (RING_BITS - 2);
    if reach < limit {
        return Ok(());
    }
    let real = |v: i64| v as f64 / f64::from(frac).exp2();
    Err(FixedError::Range {
        layer,
        row,
        expected: real(limit),
        got: real(reach),
    })
}

fn affine(matrix: &[i64], bias: &[i64], input: &[i64], out: &mut [i64]) {
    for ((out, row), bias) in out
        .iter_mut()
        .zip(matrix.chunks_exact(input.len()))
        .zip(bias)
    {
        *out = bias + row.iter().zip(input).map(|(w, x)| w * x).sum::<i64>();
    }
}
