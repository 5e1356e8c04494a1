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
//! **Malicious security.** An iteration begins with the exchange and the check of all its trees
//! (`crate::trees::checked`, 128 COTs more); its outputs are then made on demand as above, from trees grown again.

mod params;

use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::ggm::{self, Leaf, TREES};
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::{Block, Lines, Prg};
use zeroize::{Zeroize, Zeroizing};

pub use params::Set;

use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};
use crate::trees::checked::{Planted, Punctured};
use crate::{OtError, Security, trees};

/// What the two parties do differently: leaves of the next trees, choices marked in bit 0.
pub(crate) trait Half: Send {
    /// All trees of an iteration, exchanged and checked.
    type Checked: Send;

    /// Exchanges and checks all trees of an iteration.
    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Self::Checked, OtError>;

    /// [`Self::leaves`] of a group of checked trees.
    fn grow(checked: &Self::Checked, group: usize, nodes: &mut [Block]);
    fn leaves(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        shape: (u32, usize),
        nodes: &mut [Block],
    ) -> Result<(), OtError>;
}

/// The sender's half, holding Δ.
pub(crate) struct SenderHalf(pub(crate) Zeroizing<Block>);

impl Half for SenderHalf {
    type Checked = Planted;

    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Planted, OtError> {
        Planted::send(ch, *self.0, cots, depth, prg)
    }

    fn grow(checked: &Planted, group: usize, nodes: &mut [Block]) {
        checked.grow(group, nodes);
        ggm::mark_choices(nodes, None);
    }
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
    type Checked = Punctured;

    fn exchange(
        &self,
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Punctured, OtError> {
        Punctured::receive(ch, cots, depth, prg)
    }

    fn grow(checked: &Punctured, group: usize, nodes: &mut [Block]) {
        let points = checked.grow(group, Leaf::Correlated, nodes);
        ggm::mark_choices(nodes, Some(&points));
    }
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

/// What malicious security needs.
pub(crate) struct Checks<T> {
    prg: Prg,
    /// The trees of this iteration, once they are checked.
    trees: Option<T>,
}

impl<T> Checks<T> {
    pub(crate) const fn new(prg: Prg) -> Self {
        Self { prg, trees: None }
    }

    /// The next trees are another iteration's.
    pub(crate) fn begin(&mut self) {
        self.trees = None;
    }

    /// [`Half::leaves`] of a group of the iteration's trees, whose COTs are all of `cots`. The first call exchanges them.
    pub(crate) fn leaves<H: Half<Checked = T>>(
        &mut self,
        half: &H,
        ch: &mut Channel,
        cots: &[Block],
        (depth, group): (u32, usize),
        nodes: &mut [Block],
    ) -> Result<(), OtError> {
        let trees = match self.trees.take() {
            Some(trees) => trees,
            None => half.exchange(ch, cots, depth, &mut self.prg)?,
        };
        H::grow(&trees, group, nodes);
        self.trees = Some(trees);
        Ok(())
    }
}

/// The security that a source with or without checks has.
pub(crate) const fn security<T>(checks: &Option<T>) -> Security {
    if checks.is_some() {
        Security::Malicious
    } else {
        Security::SemiHonest
    }
}

/// The state of an iteration, the same at both ends.
pub(crate) struct Ferret<H: Half> {
    half: H,
    /// In malicious security.
    checks: Option<Checks<H::Checked>>,
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
    fn new(
        half: H,
        (set, code): (Set, Arc<LocalLinearCode>),
        seed: Zeroizing<Vec<Block>>,
        checks: Option<Prg>,
    ) -> Self {
        let mut ferret = Self {
            half,
            checks: checks.map(Checks::new),
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

    const fn security(&self) -> Security {
        security(&self.checks)
    }

    /// Starts an iteration from the seed made by the last.
    fn begin(&mut self) {
        debug_assert_eq!(self.next_seed.len(), self.set.seed_with(self.security()));
        let (secrets, tree_cots) = self.next_seed.split_at(self.secrets.len());
        self.secrets.copy_from_slice(secrets);
        self.tree_cots.zeroize();
        self.tree_cots.extend_from_slice(tree_cots);
        self.next_seed.zeroize();
        self.trees_done = 0;
        if let Some(checks) = &mut self.checks {
            checks.begin();
        }
    }

    /// Leaves of the next `lanes` trees, into the group.
    fn next_leaves(&mut self, ch: &mut Channel, lanes: usize) -> Result<(), OtError> {
        let (depth, done) = (self.set.depth(), self.trees_done * self.set.instances());
        let Some(checks) = &mut self.checks else {
            let cots = &self.tree_cots[done * depth as usize..][..lanes * depth as usize];
            return self.half.leaves(ch, cots, (depth, lanes), &mut self.group);
        };
        checks.leaves(
            &self.half,
            ch,
            &self.tree_cots,
            (depth, done / TREES),
            &mut self.group,
        )
    }

    /// Expands the next group of eight trees; towards the end of an iteration its outputs are the next
    /// seed and not handed out.
    fn next_group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (set, depth, instances) = (self.set, self.set.depth(), self.set.instances());
        let handed_out = set.handed_out_with(self.security());
        if self.trees_done == set.trees() {
            self.begin();
        }
        let trees = (TREES / instances).min(set.trees() - self.trees_done);
        let lanes = trees * instances;
        self.next_leaves(ch, lanes)?;
        if lanes < TREES {
            drop_absent_lanes(&mut self.group, lanes);
        }
        let outputs = &mut self.group[..lanes << depth];
        let first_row = (self.trees_done << depth) as u64;
        if instances == 2 {
            self.code.encode_two(first_row, &self.secrets, outputs);
        } else {
            self.code.encode(first_row, &self.secrets, outputs);
        }
        self.trees_done += trees;
        self.made += outputs.len() as u64;
        let past = ((self.trees_done * instances) << depth).saturating_sub(handed_out);
        let keep = outputs.len() - past.min(outputs.len());
        self.next_seed.extend_from_slice(&outputs[keep..]);
        (self.used, self.end) = (0, keep);
        Ok(())
    }
}

/// Keeps the blocks of the first `lanes` of every eight, at the start.
fn drop_absent_lanes(nodes: &mut [Block], lanes: usize) {
    for j in 0..nodes.len() / TREES {
        nodes.copy_within(j * TREES..j * TREES + lanes, j * lanes);
    }
}

impl<H: Half> CotSource for Ferret<H> {
    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.end {
                ch.span("ot/extend", |ch| self.next_group(ch))?;
                continue;
            }
            out = hand_out(&self.group[..self.end], &mut self.used, out);
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let security = self.security();
        let handed_out = self.set.handed_out_with(security) as f64;
        Supply {
            made: self.made,
            overhead: self.set.made() as f64 / handed_out,
            bits_per_cot: self.set.bits_with(security) as f64 / handed_out,
        }
    }
}

impl CotSender for Ferret<SenderHalf> {
    fn delta(&self) -> Block {
        *self.half.0
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
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed_with(security(&checks))]);
    source.extend(ch, &mut seed)?;
    let half = SenderHalf(Zeroizing::new(source.delta()));
    Ok(Ferret::new(half, (set, code), seed, checks))
}

/// Receiver's end, likewise.
pub(crate) fn receiver(
    ch: &mut Channel,
    source: &mut dyn CotReceiver,
    (set, code): (Set, Arc<LocalLinearCode>),
    checks: Option<Prg>,
) -> Result<Ferret<ReceiverHalf>, OtError> {
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed_with(security(&checks))]);
    source.extend(ch, &mut seed)?;
    Ok(Ferret::new(ReceiverHalf, (set, code), seed, checks))
}
