//! Ferret: silent correlated OT from primal LPN.
//!
//! Source: Yang, Weng, Lan, Zhang, Wang, CCS 2020, Figures 5 and 7, with the half-tree
//! single-point COT of Guo et al., EUROCRYPT 2023. Parameters: [`Set`].
//!
//! An iteration consumes `k + t·d` COTs: `k` of them are the LPN secret, the others make `t` punctured
//! trees whose leaves are the regular noise (`crate::trees`). Leaf ⊕ (row of the public matrix times the
//! secret) is a fresh COT. The last `k + t·d` outputs seed the next iteration.
//!
//! **Streaming.** A row needs its tree and the secret, nothing else; so trees are expanded eight at a
//! time, on demand, and a request waits for its own trees only. Memory: secrets, seed and one group.
//!
//! **Instances.** The matrix is public, so instances under one Δ may share it, their secrets
//! interleaved: a gathered cache line then serves two outputs (the gather is what binds). Four trees of
//! each instance make a group of eight. `docs/security.md` says what sharing the matrix means.
//!
//! ```text
//! sender                                     receiver
//! 8 half-trees under Δ     ──c_2 … c_d──▶    8 punctured half-trees
//! q = leaf ⊕ A·secret                        q ⊕ x·Δ = leaf' ⊕ A·secret'
//! ```
//! Bits: `128·t·(d − 1)` an iteration and instance, sender to receiver; no other message.
//!
//! **Lanes.** `lanes`: several ends with a channel each share an iteration.
//!
//! **Malicious security.** An iteration begins with the exchange and the check of all its trees
//! (`crate::trees::checked`, 128 COTs more); its outputs are then made on demand as above, from trees grown again.

mod groups;
pub(crate) mod lanes;
mod params;

use std::mem::swap;
use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

pub(crate) use groups::{Checks, Half, ReceiverHalf, SenderHalf, security};
use groups::{Grower, Iteration};
pub use params::Set;

use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};
use crate::{OtError, Security};

/// One end with an iteration of its own, the same at the other end.
pub(crate) struct Ferret<H: Half> {
    grower: Grower<H>,
    iteration: Iteration,
    /// The next one, as far as made.
    next: Option<Iteration>,
    /// Groups made of this iteration.
    done: usize,
    /// Of the last group, `used..end` is not yet handed out.
    used: usize,
    end: usize,
    made: u64,
}

impl<H: Half> Ferret<H> {
    fn new(grower: Grower<H>, iteration: Iteration) -> Self {
        Self {
            grower,
            iteration,
            next: None,
            done: 0,
            used: 0,
            end: 0,
            made: 0,
        }
    }

    /// Expands the next group; towards the end of an iteration its outputs are the next seed and not handed out.
    fn next_group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (set, security) = (self.grower.set(), self.grower.security());
        if self.done == set.groups()
            && let Some(next) = &mut self.next
        {
            swap(&mut self.iteration, next);
            self.grower.begin();
            self.done = 0;
        }
        let kept = self.grower.grow(ch, &self.iteration, self.done)?;
        let made = set.group_outputs(self.done);
        if kept < made {
            let empty = || Iteration::empty(set, security);
            self.grower
                .seed(self.done, self.next.get_or_insert_with(empty));
        }
        self.made += made as u64;
        self.done += 1;
        (self.used, self.end) = (0, kept);
        Ok(())
    }
}

impl<H: Half> CotSource for Ferret<H> {
    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.end {
                ch.span("ot/extend", |ch| self.next_group(ch))?;
                continue;
            }
            out = hand_out(&self.grower.outputs()[..self.end], &mut self.used, out);
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let (set, security) = (self.grower.set(), self.grower.security());
        supply(set, security, self.made, set.bits_with(security))
    }
}

/// Of an end that has made so many, an iteration sending `bits`.
fn supply(set: Set, security: Security, made: u64, bits: u64) -> Supply {
    let handed_out = set.handed_out_with(security) as f64;
    Supply {
        made,
        overhead: set.made() as f64 / handed_out,
        bits_per_cot: bits as f64 / handed_out,
    }
}

impl CotSender for Ferret<SenderHalf> {
    fn delta(&self) -> Block {
        *self.grower.half.0
    }
}

impl CotReceiver for Ferret<ReceiverHalf> {}

/// The public matrix of a set; both directions of a session share one.
pub(crate) fn code(set: Set, matrix_seed: Block) -> Arc<LocalLinearCode> {
    Arc::new(LocalLinearCode::new(matrix_seed, set.log_secret()))
}

/// Sender's end, seeded by `source`; with `checks`, whose randomness that is, in malicious security.
pub(crate) fn sender(
    ch: &mut Channel,
    source: &mut dyn CotSender,
    (set, code): (Set, Arc<LocalLinearCode>),
    checks: Option<Prg>,
) -> Result<Ferret<SenderHalf>, OtError> {
    let half = SenderHalf(Zeroizing::new(source.delta()));
    let grower = Grower::new(half, (set, code), checks);
    let first = Iteration::from_source(ch, source, (set, grower.security()))?;
    Ok(Ferret::new(grower, first))
}

/// Receiver's end, likewise.
pub(crate) fn receiver(
    ch: &mut Channel,
    source: &mut dyn CotReceiver,
    (set, code): (Set, Arc<LocalLinearCode>),
    checks: Option<Prg>,
) -> Result<Ferret<ReceiverHalf>, OtError> {
    let grower = Grower::new(ReceiverHalf, (set, code), checks);
    let first = Iteration::from_source(ch, source, (set, grower.security()))?;
    Ok(Ferret::new(grower, first))
}
