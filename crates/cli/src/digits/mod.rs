//! Handwritten digits, classified by a 64–64–10 network with GELU.
//!
//! The same model three times, each checked against the one before: [`float::FloatModel`] in `f64`,
//! [`fixed::FixedModel`] in the ring's integers, and [`private`], which computes what the fixed-point
//! model computes, bit for bit, between a server that has the weights and a client that has the images.

pub mod fixed;
pub mod float;
pub mod images;
pub mod private;
pub mod weights;

/// Pixels of an image (8 × 8).
pub const PIXELS: usize = 64;
/// Width of the hidden layer.
pub const HIDDEN: usize = 64;
/// Digits told apart.
pub const CLASSES: usize = 10;
/// Largest value of a pixel.
pub const PIXEL_MAX: u8 = 16;
