//! Fixed point, and functions on shared fixed-point numbers.
//!
//! Every function states its domain, is defined by a plaintext twin that it equals bit for bit, and has its
//! error against f64 measured by a test.

#![forbid(unsafe_code)]

mod argmax;
mod erf;
mod error;
mod fixed;
mod gelu;

pub use argmax::{Argmax, ArgmaxShape};
pub use erf::gelu;
pub use error::MathError;
pub use fixed::Fixed;
pub use gelu::{Gelu, GeluPlan, gelu_plain_fixed};
