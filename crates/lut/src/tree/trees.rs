//! One party's keys of a batch of distributed point functions, and how two parties make them together: Half-Tree (Guo et
//! al., EUROCRYPT 2023, §5) in place of the usual trees of Doerner and Shelat (CCS 2017).
//!
//! Both parties' trees differ at one node of every level, by Δ = Δ_C ⊕ Δ_S, where the path of shared random bits `b_1 … b_d` leads. With
//! the shares of `b·Δ` that COTs are without a message ([`Ot::send_products`]):
//!
//! ```text
//!     C                                                    S
//!     level 1: right node, the share of b_1·Δ; left node, that ⊕ the share of Δ
//!     level i = 2 … d, s over the nodes of level i − 1:
//!     ⊕ H(s) ⊕ share of (1 ⊕ b_i)·Δ  (128 bits)  ────────▶
//!                                                ◀────────  ⊕ H(s) ⊕ share of (1 ⊕ b_i)·Δ  (128 bits)
//!     both know the correction c_i, the sum of both
//! ```
//!
//! Off the path both hash the same. On it, `H(s_C) ⊕ H(s_S) ⊕ (1 ⊕ b_i)·Δ = c_i` is what makes the children on side `b_i` differ by Δ and
//! those on the other side be equal: `H(s) ⊕ side·s ⊕ (bit 0 of s)·c_i`.
//!
//! Rounds: `d − 1`. Bits: `256·(d − 1)`. OTs: `d` each way. Computing: each level anew from the first, `2^(d+1)` AES in all, so that
//! nothing but keys is kept.
//!
//! Security (semi-honest): a party with the node `s` on the path sees `H(s ⊕ Δ) ⊕ b·Δ` under a Δ of which it lacks 127
//! bits, and what it can compute: pseudorandom by circular correlation robustness of `H`, as in Half-Tree's Theorem 3. Nodes, hence
//! queries, do not repeat.

use std::ops::Range;

use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_prim::dpf::{self, Keys, LeafSums, PerTree, Scratch, TREES};
use volvelle_prim::{Block, lanes};
use zeroize::Zeroizing;

use crate::LutError;
use crate::doubling::position::{Layout, Position};
use crate::doubling::zeros;
use crate::exchange::ranges;

/// Lookups whose OTs are drawn at once; a multiple of [`TREES`].
const DRAWN: usize = 1024;

/// Bytes of a correction.
pub(crate) const CORRECTION: usize = size_of::<Block>();

/// One party's keys of a batch of trees.
pub(crate) struct Trees {
    role: Role,
    depth: usize,
    batch: usize,
    delta: Zeroizing<Block>,
    /// For each sixteen lookups, the keys as [`dpf`] has them. A correction still to be opened is the own share of it, or of what it
    /// depends on Δ by.
    keys: Zeroizing<Vec<PerTree<Block>>>,
}

/// Room for some lookups' OTs of one level.
struct Room {
    products: Zeroizing<Vec<Block>>,
    zero: Zeroizing<Vec<Block>>,
    one: Zeroizing<Vec<Block>>,
    bits: Zeroizing<Vec<u8>>,
    /// The same, 64 a word.
    words: Zeroizing<Vec<u64>>,
}

impl Room {
    fn new(count: usize) -> Self {
        Self {
            products: zeros(count),
            zero: zeros(count),
            one: zeros(count),
            bits: zeros(count),
            words: zeros(lanes::words(count, 1)),
        }
    }

    /// As sender: products with the peer's bits, and pads for bit `i` of the position if `wanted`.
    fn send(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        lookups: &Range<usize>,
        (i, wanted, position): (u32, bool, &mut Position),
    ) -> Result<(), LutError> {
        let pads = if wanted { lookups.len() } else { 0 };
        let products = &mut self.products[..lookups.len()];
        let (zero, one) = (&mut self.zero[..pads], &mut self.one[..pads]);
        products.fill(Block::ZERO);
        ot.send_products(ch, products, (zero, one))?;
        if wanted {
            position.keep_sent(i, lookups.clone(), 0, (zero, one), 1);
        }
        Ok(())
    }

    /// As receiver: products with own bits, which are bit `i` of the position, and their pads if `wanted`.
    fn receive(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        lookups: &Range<usize>,
        (i, wanted, position): (u32, bool, &mut Position),
    ) -> Result<(), LutError> {
        let pads = if wanted { lookups.len() } else { 0 };
        let products = &mut self.products[..lookups.len()];
        let (bits, pads) = (&mut self.bits[..lookups.len()], &mut self.zero[..pads]);
        products.fill(Block::ZERO);
        ot.recv_products(ch, bits, products, pads)?;
        let words = &mut self.words[..lanes::words(bits.len(), 1)];
        lanes::pack_bits(bits, words);
        position.set_bits(i, lookups.clone(), words);
        if wanted {
            position.keep_received(i, lookups.clone(), 0, pads, 1);
        }
        Ok(())
    }
}

/// The groups of sixteen that hold some lookups, and how many of them each has; the first starts a group.
fn groups(lookups: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = lookups.end;
    assert!(
        lookups.start.is_multiple_of(TREES),
        "lookups {lookups:?} do not start a group of trees"
    );
    lookups
        .clone()
        .step_by(TREES)
        .map(move |start| (start / TREES, start..end.min(start + TREES)))
}

/// A value for every lookup, in groups of sixteen.
pub(crate) fn per_lookup(batch: usize) -> Zeroizing<Vec<PerTree<Block>>> {
    zeros(batch.div_ceil(TREES))
}

/// Appends the own shares of some lookups' corrections.
pub(crate) fn append_shares(
    shares: &[PerTree<Block>],
    lookups: &Range<usize>,
    frame: &mut Vec<u8>,
) {
    frame.extend_from_slice(Block::as_bytes(
        &shares.as_flattened()[lookups.start..lookups.end],
    ));
}

/// Adds the peer's shares of some lookups' corrections: these are public between the parties from here on.
pub(crate) fn open_corrections(
    shares: &mut [PerTree<Block>],
    lookups: &Range<usize>,
    frame: &[u8],
) {
    let own = &mut shares.as_flattened_mut()[lookups.start..lookups.end];
    for (own, bytes) in own.iter_mut().zip(frame.as_chunks::<CORRECTION>().0) {
        *own ^= Block::from_bytes(*bytes);
    }
}

impl Trees {
    /// For trees of `depth` levels; an error in malicious security.
    pub fn new(role: Role, ot: &Ot, depth: usize, batch: usize) -> Result<Self, LutError> {
        let delta = ot.delta_share()?;
        let mut keys = zeros(batch.div_ceil(TREES) * depth);
        for (i, key) in keys.iter_mut().enumerate() {
            // (1 ⊕ b_i)·Δ is Δ ⊕ b_i·Δ; level 1 starts from b_1·Δ.
            *key = [delta.keep_if(u8::from(i % depth > 0)); TREES];
        }
        Ok(Self {
            role,
            depth,
            batch,
            delta,
            keys,
        })
    }

    /// Draws the OTs of one direction. Bit `i` of a path is bit `first + i` of a position.
    pub fn draw(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        sender: Role,
        first: u32,
        (layout, position): (Layout, &mut Position),
    ) -> Result<(), LutError> {
        let mut room = Room::new(DRAWN.min(self.batch));
        for lookups in ranges(self.batch, DRAWN) {
            for level in 0..self.depth {
                let i = first + level as u32;
                let wanted = sender == Role::Client && layout.bits(i) > 0;
                let position = (i, wanted, &mut *position);
                if self.role == sender {
                    room.send(ch, ot, &lookups, position)?;
                } else {
                    room.receive(ch, ot, &lookups, position)?;
                }
                for (group, lookups) in groups(&lookups) {
                    let key = &mut self.keys[group * self.depth + level];
                    let products = &room.products[lookups.start % DRAWN..];
                    for (key, &product) in key.iter_mut().zip(products).take(lookups.len()) {
                        *key ^= product;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes and appends the shares of some lookups' corrections of level `level + 1`.
    pub fn make(&mut self, level: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let mut scratch = Scratch::new(level);
        for (group, lookups) in groups(&lookups) {
            let keys = &mut self.keys[group * self.depth..][..=level];
            let (above, own) = keys.split_at_mut(level);
            let above = Keys {
                keys: above,
                delta: *self.delta,
            };
            let own = &mut own[0];
            let sums = dpf::level_sums(above, &mut scratch);
            Block::xor_into(own, &sums);
            frame.extend_from_slice(Block::as_bytes(&own[..lookups.len()]));
        }
    }

    /// Opens some lookups' corrections of level `level + 1` from the peer's shares.
    pub fn open_shares(&mut self, level: usize, lookups: Range<usize>, frame: &[u8]) {
        let mut shares = frame.as_chunks::<CORRECTION>().0.iter();
        for (group, lookups) in groups(&lookups) {
            let own = &mut self.keys[group * self.depth + level];
            for (own, share) in own.iter_mut().zip(shares.by_ref().take(lookups.len())) {
                *own ^= Block::from_bytes(*share);
            }
        }
    }

    fn group(&self, group: usize) -> Keys<'_> {
        Keys {
            keys: &self.keys[group * self.depth..][..self.depth],
            delta: *self.delta,
        }
    }

    /// The sums over some lookups' leaves.
    pub fn leaf_sums(&self, lookups: Range<usize>, mut see: impl FnMut(usize, LeafSums)) {
        let mut scratch = Scratch::new(self.depth);
        for (group, lookups) in groups(&lookups) {
            let sums = dpf::leaf_sums(self.group(group), &mut scratch);
            lookups.zip(sums).for_each(|(i, sums)| see(i, sums));
        }
    }

    /// Some lookups' leaves, corrected.
    pub fn leaves(
        &self,
        corrections: &[PerTree<Block>],
        lookups: Range<usize>,
        mut see: impl FnMut(usize, &mut [Block]),
    ) {
        let mut scratch = Scratch::new(self.depth);
        for (group, lookups) in groups(&lookups) {
            let keys = self.group(group);
            dpf::leaves(
                keys,
                &corrections[group],
                lookups.len(),
                &mut scratch,
                |t, leaves| see(lookups.start + t, leaves),
            );
        }
    }

    /// Some lookups' nodes of the last level.
    pub fn nodes(&self, lookups: Range<usize>, mut see: impl FnMut(usize, &mut [Block])) {
        let mut scratch = Scratch::new(self.depth);
        for (group, lookups) in groups(&lookups) {
            let first = lookups.start;
            dpf::nodes(
                self.group(group),
                lookups.len(),
                &mut scratch,
                |t, nodes| see(first + t, nodes),
            );
        }
    }
}
