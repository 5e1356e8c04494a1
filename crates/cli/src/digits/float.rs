//! The model in `f64`: what the network would answer without any rounding. The yardstick for accuracy.

use super::weights::Weights;
use super::{CLASSES, HIDDEN, PIXEL_MAX, PIXELS};

/// The network with its weights as they were trained.
#[derive(Clone, Debug)]
pub struct FloatModel {
    weights: Weights,
}

impl FloatModel {
    /// A model with these weights.
    pub fn new(weights: Weights) -> Self {
        Self { weights }
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

    /// The ten scores (logits).
    pub fn scores(&self, pixels: &[u8; PIXELS]) -> [f64; CLASSES] {
        let input: Vec<f64> = pixels
            .iter()
            .map(|p| f64::from(*p) / f64::from(PIXEL_MAX))
            .collect();
        let mut hidden = [0.0; HIDDEN];
        affine(&self.weights.w1, &self.weights.b1, &input, &mut hidden);
        for value in &mut hidden {
            *value = volvelle_math::gelu(*value);
        }
        let mut scores = [0.0; CLASSES];
        affine(&self.weights.w2, &self.weights.b2, &hidden, &mut scores);
        scores
    }
}

fn affine(matrix: &[f32], bias: &[f32], input: &[f64], out: &mut [f64]) {
    for ((out, row), bias) in out
        .iter_mut()
        .zip(matrix.chunks_exact(input.len()))
        .zip(bias)
    {
        *out = f64::from(*bias)
            + row
                .iter()
                .zip(input)
                .map(|(w, x)| f64::from(*w) * x)
                .sum::<f64>();
    }
}
