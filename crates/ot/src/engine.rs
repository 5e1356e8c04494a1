//! The seam between sources of correlated OT and what is made of them.

use volvelle_net::{Channel, Traffic};
use volvelle_prim::Block;

use crate::OtError;

/// One end of a source of random correlated OTs under one Δ.
///
/// Every source keeps the same convention: bit 0 of Δ is 1, bit 0 of the sender's blocks is 0, so bit 0
/// of the receiver's block is its choice bit.
pub(crate) trait CotSource: Send {
    /// The next `out.len()` blocks: `q` at the sender, `q ⊕ x·Δ` at the receiver.
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError>;
    /// What this source has made and what it costs.
    fn supply(&self) -> Supply;
    /// It will not be asked again: lanes that share something with it must not wait for it.
    fn leave(&mut self) {}
    /// What it has carried on a channel of its own, if it has one.
    fn background(&self) -> Option<Traffic> {
        None
    }
}

/// The sender's end.
pub(crate) trait CotSender: CotSource {
    /// The correlation.
    fn delta(&self) -> Block;
}

/// The receiver's end.
pub(crate) trait CotReceiver: CotSource {}

impl<S: CotSource + ?Sized> CotSource for Box<S> {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        (**self).extend(ch, out)
    }

    fn supply(&self) -> Supply {
        (**self).supply()
    }

    fn leave(&mut self) {
        (**self).leave();
    }

    fn background(&self) -> Option<Traffic> {
        (**self).background()
    }
}

/// Hands out what is ready of `ready[*used..]`; returns what of `out` is still to be filled.
pub(crate) fn hand_out<'a>(
    ready: &[Block],
    used: &mut usize,
    out: &'a mut [Block],
) -> &'a mut [Block] {
    let take = out.len().min(ready.len() - *used);
    let (now, later) = out.split_at_mut(take);
    now.copy_from_slice(&ready[*used..*used + take]);
    *used += take;
    later
}

/// Accounting of a source, for amortised figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Supply {
    /// COTs made, those included that the source spends on its own next batch; what is half made counts half.
    pub made: u64,
    /// Long-run ratio of COTs made to COTs handed out, at least 1.
    pub overhead: f64,
    /// Long-run bits sent (both parties) per COT handed out.
    pub bits_per_cot: f64,
}
