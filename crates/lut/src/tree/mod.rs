//! One-hot correlations by a tree, for large tables.
//!
//! A distributed point function whose keys the two parties make together ([`trees`]), on the upper `d = k − 7` bits of the position:
//! `2^d` leaves of 128 bits. The lower seven bits are a one-hot vector of 128 bits by [`crate::doubling`], which the last
//! correction plants in the one leaf where the parties' trees differ:
//!
//! ```text
//!     C                                                                 S
//!     random OTs: d + 7 with C as sender (d + 6 if the index is boolean), d + 6 with S as sender
//!     steps 1 … d − 1: a correction each         (128 bits)  ◀───────▶
//!     steps 1 … 6, alongside: doubling           (2^i bits)  ◀───────▶
//!     with step 1, for an additively shared index: products of bits  (k(k−1)/2 bits)  ────────▶
//!     ⊕ H(s) over the leaves ⊕ share of the one-hot  (128 bits)  ────────▶
//!                                                        ◀────────  ⊕ H(s) ⊕ share of the one-hot  (128 bits)
//!     both know c, the sum of both; row: H(s) ⊕ (bit 0 of s)·c, leaf by leaf
//! ```
//!
//! Rounds: `max(k − 8, 6) + 1`. Bits, both parties: `256·(k − 7) + 252`, and `k(k−1)/2` more for an additively shared index.
//!
//! **Kept between the phases** is the compact form: `16·(k − 6)` bytes and the position. Rows are grown when they are used, `2^(k−6)`
//! AES each, one after the other. Their number of ones modulo 4, for the sign of additive outputs, is known without growing
//! them ([`LeafSums`]).
//!
//! Security (semi-honest): see [`trees`]; the leaves are hashed once, so the last correction is masked like the others. The bits
//! of the position are the choices of OTs, and never sent.

pub(crate) mod trees;

use std::ops::{Range, RangeInclusive};

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::dpf::{LeafSums, PerTree, TREES};
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use self::trees::{CORRECTION, Trees, append_shares, open_corrections, per_lookup};
use crate::doubling::position::Layout;
use crate::doubling::{self, Doubling, zeros};
use crate::exchange::{Plan, Steps, exchange};
use crate::onehot::OneHots;
use crate::{Index, LutError};

const LABEL: Label = Label::new("lut/tree");

/// `log2` of a leaf's bits.
const LEAF: u32 = 7;

/// Sizes that there is a tree for.
pub(crate) const LOG_ENTRIES: RangeInclusive<u32> = LEAF + 1..=20;

/// Steps of doubling.
const DOUBLINGS: usize = LEAF as usize - 1;

fn depth(log_entries: u32) -> usize {
    (log_entries - LEAF) as usize
}

/// The step that opens the leaves' correction, the last.
fn leaf_step(log_entries: u32) -> usize {
    DOUBLINGS.max(depth(log_entries) - 1)
}

fn plan(log_entries: u32, layout: Layout, batch: usize) -> Plan {
    let chunk = doubling::chunk(LEAF);
    let doubled = (chunk << (LEAF - 1)) / 8;
    Plan {
        batch,
        chunk,
        steps: leaf_step(log_entries) + 1,
        largest_frame: chunk * CORRECTION + doubled + layout.bytes(chunk),
    }
}

/// What the tree sends and consumes for a batch.
pub(crate) fn cost(log_entries: u32, index: Index, batch: usize) -> Cost {
    let layout = Layout::new(log_entries, index);
    let corrections = (8 * CORRECTION * batch * depth(log_entries)) as u64;
    let both = corrections + doubling::vectors_cost(LEAF, batch);
    let ots = ((depth(log_entries) + DOUBLINGS) * batch) as u64;
    Cost {
        client_bits: both + 8 * layout.bytes(batch) as u64,
        server_bits: both,
        rounds: plan(log_entries, layout, batch).rounds(),
        cots_client: ots + if layout.any() { batch as u64 } else { 0 },
        cots_server: ots,
    }
}

/// One party's rows of a batch, compact.
pub(crate) struct TreeRows {
    trees: Trees,
    corrections: Zeroizing<Vec<PerTree<Block>>>,
    /// The number of ones of each row, modulo 4.
    weights: Zeroizing<Vec<u8>>,
}

impl TreeRows {
    /// The number of ones of each row, modulo 4.
    pub fn weights(&self) -> &Zeroizing<Vec<u8>> {
        &self.weights
    }

    /// Grows some rows, one after the other.
    pub fn for_rows(&self, lookups: Range<usize>, mut see: impl FnMut(usize, &[u64])) {
        // Trees grow in whole groups.
        let first = lookups.start / TREES * TREES;
        self.trees
            .leaves(&self.corrections, first..lookups.end, |i, leaves| {
                if i >= lookups.start {
                    see(i, Block::as_words_mut(leaves));
                }
            });
    }
}

/// One party in the middle of making a batch.
pub(crate) struct Tree {
    log_entries: u32,
    index: Index,
    batch: usize,
    layout: Layout,
    /// The lower bits, and the position.
    doubling: Doubling,
    trees: Trees,
    /// Of the leaves.
    corrections: Zeroizing<Vec<PerTree<Block>>>,
    sums: Zeroizing<Vec<LeafSums>>,
    weights: Zeroizing<Vec<u8>>,
}

impl Tree {
    /// Starts a batch; an error in malicious security.
    pub fn new(
        role: Role,
        ot: &Ot,
        (log_entries, index): (u32, Index),
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        let layout = Layout::new(log_entries, index);
        Ok(Self {
            log_entries,
            index,
            batch,
            layout,
            doubling: Doubling::new(role, LEAF, layout, batch, prg),
            trees: Trees::new(role, ot, depth(log_entries), batch)?,
            corrections: per_lookup(batch),
            sums: zeros(batch),
            weights: zeros(batch),
        })
    }

    /// Draws the random OTs of one direction.
    pub fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        self.doubling.draw(ch, ot, sender)?;
        let position = &mut self.doubling.position;
        self.trees
            .draw(ch, ot, sender, LEAF, (self.layout, position))
    }

    /// Runs the steps: all talking but the OTs.
    pub fn run(mut self, ch: &mut Channel) -> Result<OneHots, LutError> {
        self.doubling.start();
        let plan = plan(self.log_entries, self.layout, self.batch);
        exchange(ch, &plan, &mut self)?;
        let rows = TreeRows {
            trees: self.trees,
            corrections: self.corrections,
            weights: self.weights,
        };
        let (_, positions) = self.doubling.finish();
        Ok(OneHots::compact(
            self.log_entries,
            self.index,
            rows,
            positions,
        ))
    }

    /// The level whose corrections are opened in a step, if any.
    fn level(&self, step: usize) -> Option<usize> {
        (step + 1 < depth(self.log_entries)).then_some(step + 1)
    }

    fn make_leaves(&mut self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let corrections = self.corrections.as_flattened_mut();
        let one_hot = self.doubling.vectors(&lookups).as_chunks::<2>().0;
        let start = lookups.start;
        let sums = &mut self.sums;
        self.trees.leaf_sums(lookups.clone(), |i, leaf| {
            let [low, high] = one_hot[i - start];
            corrections[i] = Block(u128::from(low) | u128::from(high) << 64) ^ leaf.sum;
            sums[i] = leaf;
        });
        append_shares(&self.corrections, &lookups, frame);
    }

    fn take_leaves(&mut self, lookups: Range<usize>, frame: &[u8]) {
        open_corrections(&mut self.corrections, &lookups, frame);
        let corrections = &self.corrections.as_flattened()[lookups.clone()];
        let sums = self.sums[lookups.clone()].iter().zip(corrections);
        for (weight, (sums, &correction)) in self.weights[lookups].iter_mut().zip(sums) {
            *weight = sums.weight(correction) as u8;
        }
    }
}

impl Steps for Tree {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        if step == leaf_step(self.log_entries) {
            return count * CORRECTION;
        }
        let correction = self.level(step).map_or(0, |_| count * CORRECTION);
        let doubled = if step < DOUBLINGS {
            self.doubling.incoming(step, count)
        } else {
            0
        };
        correction + doubled
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        if step == leaf_step(self.log_entries) {
            return self.make_leaves(lookups, frame);
        }
        if let Some(level) = self.level(step) {
            self.trees.make(level, lookups.clone(), frame);
        }
        if step < DOUBLINGS {
            self.doubling.make(step, lookups, frame);
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, mut frame: &[u8]) {
        if step == leaf_step(self.log_entries) {
            return self.take_leaves(lookups, frame);
        }
        if let Some(level) = self.level(step) {
            let (corrections, rest) = frame.split_at(lookups.len() * CORRECTION);
            self.trees.open_shares(level, lookups.clone(), corrections);
            frame = rest;
        }
        if step < DOUBLINGS {
            self.doubling.take(step, lookups, frame);
        }
    }
}
