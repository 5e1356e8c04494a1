//! Ferret: silent correlated OT from primal LPN.
//!
//! Source: Yang, Weng, Lan, Zhang, Wang, CCS 2020, Figures 5 and 7 (semi-honest), with the half-tree
//! single-point COT of Guo et al., EUROCRYPT 2023. Parameters: [`Set`].
//!
//! An iteration consumes `k + t·d` COTs: `k` of them are the LPN secret, the others make `t` punctured
//! trees whose leaves are the regular noise (`crate::trees`). Leaf ⊕ (row of the public matrix times the
//! secret) is a fresh COT. The last `k + t·d` outputs seed the next iteration.
//!
//! **Streaming.** A row needs its tree and the secret, nothing else; so trees are expanded eight at a
//! time, on demand, and a request waits for its own trees only. Memory: two secrets and one group.
//!
//! ```text
//! sender                                     receiver
//! 8 half-trees under Δ     ──c_2 … c_d──▶    8 punctured half-trees
//! q = leaf ⊕ A·secret                        q ⊕ x·Δ = leaf' ⊕ A·secret'
//! ```
//! Bits: `128·t·(d − 1)` an iteration, sender to receiver; no other message.

mod params;

use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::Block;
use volvelle_prim::ggm::{self, Leaf, TREES};
use volvelle_prim::lpn::LocalLinearCode;
use zeroize::Zeroizing;

pub use params::Set;

use crate::engine::{CotReceiver, CotSender, Supply};
use crate::{OtError, trees};

/// What the two parties do differently: leaves of the next trees, choices marked in bit 0.
pub(crate) trait Half: Send {
    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<(), OtError>;
}

/// The sender's half, holding Δ.
pub(crate) struct SenderHalf(Zeroizing<Block>);

impl Half for SenderHalf {
    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<(), OtError> {
        trees::send(ch, *self.0, cots, shape, nodes)?;
        ch.flush()?;
        ggm::mark_choices(nodes, None);
        Ok(())
    }
}

/// The receiver's half.
pub(crate) struct ReceiverHalf;

impl Half for ReceiverHalf {
    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<(), OtError> {
        let points = trees::receive(ch, cots, shape, Leaf::Correlated, nodes)?;
        ggm::mark_choices(nodes, Some(&points));
        Ok(())
    }
}

/// The state of an iteration, the same at both ends.
pub(crate) struct Ferret<H> {
    half: H,
    set: Set,
    code: Arc<LocalLinearCode>,
    /// `k` COTs of the LPN secret, then `t·d` for the trees.
    seed: Zeroizing<Vec<Block>>,
    /// The next iteration's seed, as far as made.
    next_seed: Zeroizing<Vec<Block>>,
    trees_done: usize,
    /// Outputs of the last group not yet handed out: `ready[used..]`.
    ready: Zeroizing<Vec<Block>>,
    used: usize,
    made: u64,
}

impl<H: Half> Ferret<H> {
    fn new(half: H, set: Set, code: Arc<LocalLinearCode>, seed: Zeroizing<Vec<Block>>) -> Self {
        debug_assert_eq!(seed.len(), set.seed());
        Self {
            half,
            set,
            code,
            seed,
            next_seed: Zeroizing::default(),
            trees_done: 0,
            ready: Zeroizing::default(),
            used: 0,
            made: 0,
        }
    }

    /// Expands the next group of trees into `self.ready`, or, towards the end of an iteration, into the
    /// next seed.
    fn group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (set, depth) = (self.set, self.set.depth());
        if self.trees_done == set.trees() {
            std::mem::swap(&mut self.seed, &mut self.next_seed);
            self.next_seed.clear();
            self.trees_done = 0;
        }
        let used = TREES.min(set.trees() - self.trees_done);
        let (secret, tree_cots) = self.seed.split_at(1 << set.log_secret());
        let cots = &tree_cots[self.trees_done * depth as usize..][..used * depth as usize];
        self.ready.resize(TREES << depth, Block::ZERO);
        self.half.leaves(ch, cots, (depth, used), &mut self.ready)?;
        if used < TREES {
            drop_absent_trees(&mut self.ready, used);
        }
        let first_row = (self.trees_done << depth) as u64;
        self.code.encode(first_row, secret, &mut self.ready);
        self.trees_done += used;
        self.made += self.ready.len() as u64;
        self.used = 0;
        let handed_out = set.made() - set.seed();
        let end = self.trees_done << depth;
        if end > handed_out {
            let keep = self.ready.len() - (end - handed_out).min(self.ready.len());
            self.next_seed.extend_from_slice(&self.ready[keep..]);
            self.ready.truncate(keep);
        }
        Ok(())
    }

    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.ready.len() {
                ch.span("ot/extend", |ch| self.group(ch))?;
                continue;
            }
            let take = out.len().min(self.ready.len() - self.used);
            let (now, later) = out.split_at_mut(take);
            now.copy_from_slice(&self.ready[self.used..self.used + take]);
            self.used += take;
            out = later;
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let handed_out = (self.set.made() - self.set.seed()) as f64;
        Supply {
            made: self.made,
            overhead: self.set.made() as f64 / handed_out,
            bits_per_cot: self.set.bits() as f64 / handed_out,
        }
    }
}

/// Keeps the blocks of the first `used` of every eight.
fn drop_absent_trees(nodes: &mut Vec<Block>, used: usize) {
    let groups = nodes.len() / TREES;
    for j in 0..groups {
        nodes.copy_within(j * TREES..j * TREES + used, j * used);
    }
    nodes.truncate(groups * used);
}

impl CotSender for Ferret<SenderHalf> {
    fn delta(&self) -> Block {
        *self.half.0
    }

    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        Ferret::extend(self, ch, out)
    }

    fn supply(&self) -> Supply {
        Ferret::supply(self)
    }
}

impl CotReceiver for Ferret<ReceiverHalf> {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        Ferret::extend(self, ch, out)
    }

    fn supply(&self) -> Supply {
        Ferret::supply(self)
    }
}

/// The public matrix of a set; both directions of a session share one.
pub(crate) fn code(set: Set, matrix_seed: Block) -> Arc<LocalLinearCode> {
    Arc::new(LocalLinearCode::new(matrix_seed, set.log_secret()))
}

/// Sender's end, seeded by `source`.
pub(crate) fn sender(
    ch: &mut Channel,
    source: &mut dyn CotSender,
    set: Set,
    code: Arc<LocalLinearCode>,
) -> Result<Ferret<SenderHalf>, OtError> {
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed()]);
    source.extend(ch, &mut seed)?;
    Ok(Ferret::new(SenderHalf(Zeroizing::new(source.delta())), set, code, seed))
}

/// Receiver's end, seeded by `source`.
pub(crate) fn receiver(
    ch: &mut Channel,
    source: &mut dyn CotReceiver,
    set: Set,
    code: Arc<LocalLinearCode>,
) -> Result<Ferret<ReceiverHalf>, OtError> {
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed()]);
    source.extend(ch, &mut seed)?;
    Ok(Ferret::new(ReceiverHalf, set, code, seed))
}
