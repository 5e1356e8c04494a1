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
//! time, on demand, and a request waits for its own trees only. Memory: secrets, seed and one group.
//!
//! **Instances.** The matrix is public, so four instances under one Δ may share it, their secrets
//! interleaved: a gathered cache line then serves four outputs (the gather is what binds). Two trees of
//! each instance make a group of eight. `docs/security.md` says what sharing the matrix means.
//!
//! ```text
//! sender                                     receiver
//! 8 half-trees under Δ     ──c_2 … c_d──▶    8 punctured half-trees
//! q = leaf ⊕ A·secret                        q ⊕ x·Δ = leaf' ⊕ A·secret'
//! ```
//! Bits: `128·t·(d − 1)` an iteration and instance, sender to receiver; no other message.

mod params;

use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::ggm::{self, Leaf, TREES};
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::{Block, Lines};
use zeroize::{Zeroize, Zeroizing};

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
    /// The LPN secrets, entry `j` of instance `s` at `instances·j + s`.
    secrets: Lines,
    /// COTs of the trees, in the order of use.
    tree_cots: Zeroizing<Vec<Block>>,
    /// Seed of the next iteration, as far as made.
    next_seed: Zeroizing<Vec<Block>>,
    /// Trees expanded in this iteration, of each instance.
    trees_done: usize,
    /// The last group; `group[used..end]` is not yet handed out.
    group: Lines,
    used: usize,
    end: usize,
    made: u64,
}

impl<H: Half> Ferret<H> {
    fn new(half: H, set: Set, code: Arc<LocalLinearCode>, seed: Zeroizing<Vec<Block>>) -> Self {
        let mut ferret = Self {
            half,
            set,
            code,
            secrets: Lines::zeros(set.instances() << set.log_secret()),
            tree_cots: Zeroizing::default(),
            next_seed: seed,
            trees_done: 0,
            group: Lines::zeros(TREES << set.depth()),
            used: 0,
            end: 0,
            made: 0,
        };
        ferret.begin();
        ferret
    }

    /// Starts an iteration from the seed made by the last.
    fn begin(&mut self) {
        debug_assert_eq!(self.next_seed.len(), self.set.seed());
        let (secrets, tree_cots) = self.next_seed.split_at(self.secrets.len());
        self.secrets.copy_from_slice(secrets);
        self.tree_cots.zeroize();
        self.tree_cots.extend_from_slice(tree_cots);
        self.next_seed.zeroize();
        self.trees_done = 0;
    }

    /// Expands the next group of eight trees; towards the end of an iteration its outputs are the next
    /// seed and not handed out.
    fn next_group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (set, depth, instances) = (self.set, self.set.depth(), self.set.instances());
        if self.trees_done == set.trees() {
            self.begin();
        }
        let trees = (TREES / instances).min(set.trees() - self.trees_done);
        let lanes = trees * instances;
        let cots = &self.tree_cots[self.trees_done * instances * depth as usize..]
            [..lanes * depth as usize];
        self.half
            .leaves(ch, cots, (depth, lanes), &mut self.group)?;
        if lanes < TREES {
            drop_absent_lanes(&mut self.group, lanes);
        }
        let outputs = &mut self.group[..lanes << depth];
        let first_row = (self.trees_done << depth) as u64;
        if instances == 4 {
            self.code.encode_four(first_row, &self.secrets, outputs);
        } else {
            self.code.encode(first_row, &self.secrets, outputs);
        }
        self.trees_done += trees;
        self.made += outputs.len() as u64;
        let past = ((self.trees_done * instances) << depth).saturating_sub(set.handed_out());
        let keep = outputs.len() - past.min(outputs.len());
        self.next_seed.extend_from_slice(&outputs[keep..]);
        (self.used, self.end) = (0, keep);
        Ok(())
    }

    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.end {
                ch.span("ot/extend", |ch| self.next_group(ch))?;
                continue;
            }
            let take = out.len().min(self.end - self.used);
            let (now, later) = out.split_at_mut(take);
            now.copy_from_slice(&self.group[self.used..self.used + take]);
            self.used += take;
            out = later;
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let handed_out = self.set.handed_out() as f64;
        Supply {
            made: self.made,
            overhead: self.set.made() as f64 / handed_out,
            bits_per_cot: self.set.bits() as f64 / handed_out,
        }
    }
}

/// Keeps the blocks of the first `lanes` of every eight, at the start.
fn drop_absent_lanes(nodes: &mut [Block], lanes: usize) {
    for j in 0..nodes.len() / TREES {
        nodes.copy_within(j * TREES..j * TREES + lanes, j * lanes);
    }
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
    Ok(Ferret::new(
        SenderHalf(Zeroizing::new(source.delta())),
        set,
        code,
        seed,
    ))
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
