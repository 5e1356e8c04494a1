//! Correlated OTs as they are made, for measuring how fast that is.
//!
//! A Δ-correlated block must not serve as a pad, so none leaves these types: all that can be done with a batch is to make it,
//! overwrite it, and, where both ends are in one process, compare it with the other or with what that has noted of its own.

use volvelle_net::Channel;
use volvelle_prim::{Block, Lines};
use zeroize::Zeroizing;

use crate::session::check_count;
use crate::{Ot, OtError};

/// One party's end of a batch of correlated OTs: `q`, or `q ⊕ x·Δ` with `x` in bit 0.
pub struct CorrelatedBatch {
    /// None until the first OTs come.
    blocks: Lines,
    /// How many of the blocks count.
    count: usize,
    /// At the sender.
    delta: Option<Zeroizing<Block>>,
}

/// What one end of a batch has noted of each OT: 31 bits, linear in the block, and at the receiver the choice.
pub struct CorrelatedTags {
    tags: Zeroizing<Vec<u32>>,
    /// At the sender.
    delta: Option<Zeroizing<u32>>,
}

/// A wrong block has the tag of the right one with probability 2^-31. Bit 0 is the block's.
const fn tag(block: Block) -> u32 {
    let half = block.0 as u64 ^ (block.0 >> 64) as u64;
    (half as u32 ^ (half >> 32) as u32) & !1 | block.0 as u32 & 1
}

impl CorrelatedTags {
    /// [`CorrelatedBatch::mismatches`] of the batches noted; a wrong OT is missed with probability 2^-31.
    #[must_use]
    pub fn mismatches(&self, other: &Self) -> usize {
        let (sender, receiver, delta) = match (&self.delta, &other.delta) {
            (Some(delta), None) => (&self.tags, &other.tags, **delta),
            (None, Some(delta)) => (&other.tags, &self.tags, **delta),
            _ => return self.tags.len(),
        };
        if sender.len() != receiver.len() {
            return self.tags.len();
        }
        let pairs = sender.iter().zip(receiver.iter());
        // Bits 0 of `q` and Δ are 0 and 1.
        pairs
            .map(|(q, r)| usize::from(q ^ r != (r & 1).wrapping_neg() & delta))
            .sum()
    }
}

impl CorrelatedBatch {
    /// A batch of `count` OTs, still to be made.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            blocks: Lines::zeros(0),
            count,
            delta: None,
        }
    }

    /// Leaves room for `count` OTs, if that is fewer.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// Room for the OTs, unless they are too many.
    fn make_room(&mut self) -> Result<(), OtError> {
        check_count("correlated OTs", self.count as u64)?;
        if self.blocks.len() < self.count {
            self.blocks = Lines::zeros(self.count);
        }
        Ok(())
    }

    /// Fills the batch as OT sender.
    ///
    /// # Errors
    /// As [`Ot::send_random`].
    pub fn send(&mut self, ch: &mut Channel, ot: &mut Ot) -> Result<(), OtError> {
        self.make_room()?;
        self.delta = Some(Zeroizing::new(ot.sender.delta()));
        ot.guarded(|ot| ot.sender.extend(ch, &mut self.blocks[..self.count]))?;
        ot.sent += self.count as u64;
        Ok(())
    }

    /// Fills the batch as OT receiver.
    ///
    /// # Errors
    /// As [`Ot::send_random`].
    pub fn receive(&mut self, ch: &mut Channel, ot: &mut Ot) -> Result<(), OtError> {
        self.make_room()?;
        self.delta = None;
        ot.guarded(|ot| ot.receiver.extend(ch, &mut self.blocks[..self.count]))?;
        ot.received += self.count as u64;
        Ok(())
    }

    /// How many OTs of the two ends do not belong together: all, unless one end has sent and the other received.
    #[must_use]
    pub fn mismatches(&self, other: &Self) -> usize {
        let (sender, receiver) = if self.delta.is_some() {
            (self, other)
        } else {
            (other, self)
        };
        let Some(delta) = &sender.delta else {
            return self.count;
        };
        let made = sender.count == receiver.count && receiver.blocks.len() >= receiver.count;
        if receiver.delta.is_some() || !made {
            return self.count;
        }
        let apart = |(q, r): &(&Block, &Block)| {
            let choice = Block(u128::from(r.lsb()).wrapping_neg());
            (**q ^ **r) != (choice & **delta)
        };
        sender.blocks[..sender.count]
            .iter()
            .zip(&receiver.blocks[..receiver.count])
            .filter(apart)
            .count()
    }

    /// Notes what tells a wrong OT, so that the room may be overwritten before the other end is there.
    #[must_use]
    pub fn tags(&self) -> CorrelatedTags {
        let blocks = self.blocks.iter().take(self.count);
        CorrelatedTags {
            tags: Zeroizing::new(blocks.map(|&block| tag(block)).collect()),
            delta: self
                .delta
                .as_ref()
                .map(|delta| Zeroizing::new(tag(**delta))),
        }
    }
}
