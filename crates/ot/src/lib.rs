//! Oblivious transfer: from 128 public-key OTs to as many random OTs as asked for.
//!
//! [`Ot`] is what upper layers use: one party's end of random OT in both directions, and of a
//! punctured PRF. Below it:
//!
//! | module | protocol |
//! |---|---|
//! | `agreement` | settings that must be the same, and a common seed |
//! | `base` | base OT on Ristretto or from ML-KEM |
//! | [`softspoken`] | SoftSpoken extension: the first correlated OTs, or all where bandwidth is cheap |
//! | [`ferret`] | silent correlated OT from primal LPN, streamed tree by tree |
//! | `background` | OTs made ahead of demand, on threads and channels of their own |
//! | [`dual`] | silent correlated OT from dual LPN: less communication still, more memory |
//! | `pieces` | random OTs a few at a time, while they are in the cache |
//! | `punctured` | the punctured PRF of [`Ot`] |
//! | `products` | shared random bits times a shared Δ, for distributed point functions |
//! | `trees` | the half-tree messages that Ferret and the punctured PRF share, and their check |
//! | [`convert`] | chosen OT, 1-of-n OT, additive correlations from random OT |
//!
//! **Correlated blocks stay here.** COTs (`q`, `q ⊕ Δ`) are a private type of this crate's engines;
//! what leaves is hashed, so that no upper layer can use a Δ-correlated block as a pad, or is a share of a
//! product with a Δ that neither party has ([`Ot::send_products`]).
//!
//! Security: λ = 128, semi-honest or, by [`Security`], malicious with abort; assumptions are listed in
//! `docs/security.md`.

mod agreement;
mod background;
mod base;
pub mod convert;
mod correlated;
mod cost;
pub mod dual;
mod engine;
mod error;
pub mod ferret;
mod lanes;
mod pieces;
mod plan;
mod products;
mod punctured;
mod session;
pub mod softspoken;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod trees;

pub use agreement::Security;
pub use base::BaseOt;
pub use correlated::{CorrelatedBatch, CorrelatedTags};
pub use cost::{Cost, PhasedCost};
pub use error::OtError;
pub use plan::{Figures, Horizon, OtDemand};
pub use session::{Engine, Ot, OtConfig, OtStats};
