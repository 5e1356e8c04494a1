//! Silent correlated OT from dual LPN ("SOT").
//!
//! Source: Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl, CCS 2019 (the protocol, and quasi-cyclic codes);
//! Raghuraman, Rindal, Tanguy, CRYPTO 2023 (expand-convolute codes); half-trees and bootstrapping as in
//! [`crate::ferret`]. Parameters: [`Set`].
//!
//! An iteration consumes `t·d` COTs. They make `t` punctured trees whose leaves are shares of a regular noise vector of
//! `2n` entries; a public linear map compresses it to `n` fresh COTs, the last of which seed the next iteration.
//! Every map has the form `(first half) ⊕ M·(second half)`:
//!
//! ```text
//! sender                                     receiver
//! t/2 half-trees under Δ   ──c_2 … c_d──▶    t/2 punctured half-trees          second half of the noise: e
//! table = the map's share of M·e             table' likewise                   local
//! t/2 half-trees under Δ   ──c_2 … c_d──▶    t/2 punctured half-trees          first half, eight trees at a time
//! q = leaf ⊕ (M·e)_i                         q ⊕ x·Δ = leaf' ⊕ (M·e)'_i
//! ```
//! Bits: `128·t·(d − 1)` an iteration and instance, sender to receiver; no other message. The map is linear over GF(2),
//! so bit 0 stays the choice: it is 0 in every leaf of the sender's and the noise in the receiver's.
//!
//! **Malicious security.** Before the first output all trees of an iteration, of both halves, are exchanged and checked in
//! one go, as in Ferret ([`crate::trees::checked`]); then they are grown from what is kept of them, `d` blocks a tree.
//! `128·t·d` bits an instance, 640 bits and 128 COTs an iteration.
//!
//! **Streaming.** An iteration begins with the second half as a whole; then trees of the first half are expanded eight at a
//! time, on demand. Memory: the table, [`Set::memory`], and one group of trees.
//!
//! **Instances.** Four instances of the expand-convolute code, or two of the largest, share the public map, as in Ferret.

mod params;

use std::sync::Arc;

use volvelle_net::Channel;
use volvelle_prim::convolute::ExpandConvolute;
use volvelle_prim::ggm::TREES;
use volvelle_prim::quasicyclic::QuasiCyclic;
use volvelle_prim::{Block, Lines, Prg};
use zeroize::{Zeroize, Zeroizing};

pub use params::{Code, Set, Size};

use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};
use crate::ferret::{Checks, Half, ReceiverHalf, SenderHalf, security};
use crate::{OtError, Security};

/// The public map of a set; both directions of a session share one.
pub(crate) enum Map {
    ExpandConvolute(ExpandConvolute<4>),
    ExpandConvoluteTwo(ExpandConvolute<2>),
    QuasiCyclic(QuasiCyclic),
}

impl Map {
    /// The map of a seed.
    pub(crate) fn new(set: Set, seed: Block) -> Arc<Self> {
        let log_rows = set.size.log_rows();
        Arc::new(match (set.code, set.instances()) {
            (Code::ExpandConvolute, 2) => {
                Self::ExpandConvoluteTwo(ExpandConvolute::new(seed, log_rows))
            }
            (Code::ExpandConvolute, _) => {
                Self::ExpandConvolute(ExpandConvolute::new(seed, log_rows))
            }
            (Code::QuasiCyclic, _) => Self::QuasiCyclic(QuasiCyclic::new(seed, log_rows)),
        })
    }

    /// Rows `from ..` of the second half have arrived; `table` ends after them.
    fn absorb(&self, table: &mut [Block], from: usize) {
        match self {
            Self::ExpandConvolute(code) => code.absorb(table, from),
            Self::ExpandConvoluteTwo(code) => code.absorb(table, from),
            // Needs them all.
            Self::QuasiCyclic(_) => {}
        }
    }

    /// All rows have.
    fn finish(&self, table: &mut [Block]) {
        match self {
            Self::ExpandConvolute(code) => code.finish(table),
            Self::ExpandConvoluteTwo(code) => code.finish(table),
            Self::QuasiCyclic(code) => code.multiply(table),
        }
    }

    /// Adds rows `first_row ..` of `M·e` to the first half's.
    fn add_rows(&self, first_row: usize, table: &[Block], out: &mut [Block]) {
        match self {
            Self::ExpandConvolute(code) => code.expand(first_row as u64, table, out),
            Self::ExpandConvoluteTwo(code) => code.expand(first_row as u64, table, out),
            Self::QuasiCyclic(_) => Block::xor_into(out, &table[first_row..][..out.len()]),
        }
    }
}

/// Leaves of the next eight trees of an iteration, `trees_done` before them, whose COTs are all of `cots`.
fn next_leaves<H: Half>(
    (half, checks): (&H, &mut Option<Checks<H::Checked>>),
    ch: &mut Channel,
    cots: &[Block],
    (depth, trees_done): (u32, usize),
    nodes: &mut [Block],
) -> Result<(), OtError> {
    let finish = if let Some(checks) = checks {
        checks.leaves(half, ch, cots, (depth, trees_done / TREES), nodes)?
    } else {
        let cots = &cots[trees_done * depth as usize..][..TREES * depth as usize];
        half.leaves(ch, cots, (depth, TREES), nodes)?
    };
    finish.apply(nodes);
    Ok(())
}

/// The state of an iteration, the same at both ends.
pub(crate) struct Dual<H: Half> {
    half: H,
    /// In malicious security.
    checks: Option<Checks<H::Checked>>,
    set: Set,
    map: Arc<Map>,
    /// What the second half of the noise has become; empty before the first use.
    table: Lines,
    /// COTs of the trees, in the order of use.
    tree_cots: Zeroizing<Vec<Block>>,
    /// Seed of the next iteration, as far as made.
    next_seed: Zeroizing<Vec<Block>>,
    /// Trees expanded in this iteration, all instances and both halves together.
    trees_done: usize,
    /// The last group; `group[used..end]` is not yet handed out.
    group: Lines,
    used: usize,
    end: usize,
    /// Leaves of trees so far. An output takes two, one of them at the start of its iteration.
    leaves: u64,
}

impl<H: Half> Dual<H> {
    fn new(
        half: H,
        (set, map): (Set, Arc<Map>),
        seed: Zeroizing<Vec<Block>>,
        checks: Option<Prg>,
    ) -> Self {
        Self {
            half,
            checks: checks.map(Checks::new),
            set,
            map,
            table: Lines::zeros(0),
            tree_cots: Zeroizing::default(),
            next_seed: seed,
            trees_done: set.trees() * set.instances(),
            group: Lines::zeros(0),
            used: 0,
            end: 0,
            leaves: 0,
        }
    }

    const fn security(&self) -> Security {
        security(&self.checks)
    }

    /// Blocks of eight trees.
    const fn group_len(&self) -> usize {
        TREES << self.set.depth()
    }

    /// Starts an iteration from the seed made by the last: the second half of the noise, compressed.
    fn begin(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (depth, group) = (self.set.depth(), self.group_len());
        debug_assert_eq!(self.next_seed.len(), self.set.seed_with(self.security()));
        if let Some(checks) = &mut self.checks {
            checks.begin();
        }
        std::mem::swap(&mut self.tree_cots, &mut self.next_seed);
        self.next_seed.zeroize();
        self.trees_done = 0;
        if self.table.is_empty() {
            self.table = Lines::zeros(self.set.made());
            self.group = Lines::zeros(group);
        }
        for from in (0..self.table.len()).step_by(group) {
            let leaves = &mut self.table[from..from + group];
            next_leaves(
                (&self.half, &mut self.checks),
                ch,
                &self.tree_cots,
                (depth, self.trees_done),
                leaves,
            )?;
            let arrived = &mut self.table[..from + group];
            self.map.absorb(arrived, from / self.set.instances());
            self.trees_done += TREES;
        }
        self.map.finish(&mut self.table);
        self.leaves += self.table.len() as u64;
        Ok(())
    }

    /// Expands the next eight trees; at the end of an iteration their last outputs are the next seed and not
    /// handed out.
    fn next_group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let (depth, trees) = (self.set.depth(), self.set.trees() * self.set.instances());
        let handed_out = self.set.handed_out_with(self.security());
        if self.trees_done == trees {
            self.begin(ch)?;
        }
        next_leaves(
            (&self.half, &mut self.checks),
            ch,
            &self.tree_cots,
            (depth, self.trees_done),
            &mut self.group,
        )?;
        let first = (self.trees_done - trees / 2) << depth;
        self.map
            .add_rows(first / self.set.instances(), &self.table, &mut self.group);
        self.trees_done += TREES;
        self.leaves += self.group.len() as u64;
        let keep = self.group.len().min(handed_out - first);
        self.next_seed.extend_from_slice(&self.group[keep..]);
        (self.used, self.end) = (0, keep);
        Ok(())
    }
}

impl<H: Half> CotSource for Dual<H> {
    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.end {
                ch.span("ot/extend", |ch| self.next_group(ch))?;
            }
            out = hand_out(&self.group[..self.end], &mut self.used, out);
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let security = self.security();
        let handed_out = self.set.handed_out_with(security) as f64;
        Supply {
            made: self.leaves / 2,
            overhead: self.set.made() as f64 / handed_out,
            bits_per_cot: self.set.bits_with(security) as f64 / handed_out,
        }
    }
}

impl CotSender for Dual<SenderHalf> {
    fn delta(&self) -> Block {
        *self.half.0
    }
}

impl CotReceiver for Dual<ReceiverHalf> {}

/// Sender's end, seeded by `source`; with `checks`, whose randomness that is, in malicious security.
pub(crate) fn sender(
    ch: &mut Channel,
    source: &mut dyn CotSender,
    (set, map): (Set, Arc<Map>),
    checks: Option<Prg>,
) -> Result<Dual<SenderHalf>, OtError> {
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed_with(security(&checks))]);
    source.extend(ch, &mut seed)?;
    let half = SenderHalf(Zeroizing::new(source.delta()));
    Ok(Dual::new(half, (set, map), seed, checks))
}

/// Receiver's end, likewise.
pub(crate) fn receiver(
    ch: &mut Channel,
    source: &mut dyn CotReceiver,
    (set, map): (Set, Arc<Map>),
    checks: Option<Prg>,
) -> Result<Dual<ReceiverHalf>, OtError> {
    let mut seed = Zeroizing::new(vec![Block::ZERO; set.seed_with(security(&checks))]);
    source.extend(ch, &mut seed)?;
    Ok(Dual::new(ReceiverHalf, (set, map), seed, checks))
}
