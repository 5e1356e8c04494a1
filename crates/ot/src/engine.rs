//! The seam between sources of correlated OT and what is made of them.

use volvelle_net::Channel;
use volvelle_prim::Block;

use crate::OtError;

/// The sender's end of a source of random correlated OTs under one Δ.
///
/// Every source keeps the same convention: bit 0 of Δ is 1, bit 0 of the sender's blocks is 0, so bit 0
/// of the receiver's block is its choice bit.
pub(crate) trait CotSender: Send {
    /// The correlation.
    fn delta(&self) -> Block;
    /// The next `out.len()` blocks `q`.
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError>;
    /// What this source has made and what it costs.
    fn supply(&self) -> Supply;
}

/// The receiver's end.
pub(crate) trait CotReceiver: Send {
    /// The next `out.len()` blocks `q ⊕ x·Δ`, the random choice `x` in bit 0.
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError>;
    /// What this source has made and what it costs.
    fn supply(&self) -> Supply;
}

/// Accounting of a source, for amortised figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supply {
    /// COTs made, those included that the source spends on its own next batch.
    pub made: u64,
    /// Long-run ratio of COTs made to COTs handed out, at least 1.
    pub overhead: f64,
    /// Long-run bits sent (both parties) per COT handed out.
    pub bits_per_cot: f64,
}
