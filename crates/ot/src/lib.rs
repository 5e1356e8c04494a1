//! Oblivious transfer: from 128 public-key OTs to as many random OTs as asked for.
//!
//! [`Ot`] is what upper layers use: one party's end of random OT in both directions, and of a
//! punctured PRF. Below it:
//!
//! | module | protocol |
//! |---|---|
//! | `base` | base OT on Ristretto (Chou–Orlandi) |
//! | [`softspoken`] | SoftSpoken extension: the first correlated OTs, or all where bandwidth is cheap |
//! | [`ferret`] | silent correlated OT from primal LPN, streamed tree by tree |
//! | `background` | OTs made ahead of demand, on threads and channels of their own |
//! | `trees` | the half-tree messages that Ferret and the punctured PRF share |
//! | [`convert`] | chosen OT, 1-of-n OT, additive correlations from random OT |
//!
//! **Correlated blocks stay here.** COTs (`q`, `q ⊕ Δ`) are a private type of this crate's engines;
//! what leaves is hashed, so that no upper layer can use a Δ-correlated block as a pad.
//!
//! Security: semi-honest, λ = 128; assumptions are listed in `docs/security.md`.

mod background;
mod base;
pub mod convert;
mod correlated;
mod cost;
mod engine;
mod error;
pub mod ferret;
mod session;
pub mod softspoken;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod trees;

pub use correlated::CorrelatedBatch;
pub use cost::{Cost, PhasedCost};
pub use error::OtError;
pub use session::{Engine, Ot, OtConfig, OtStats};
