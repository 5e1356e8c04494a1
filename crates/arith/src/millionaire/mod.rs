//! The millionaires' problem: XOR shares of 1{c < d} for c known to the client, d to the server.
//!
//! The numbers are cut in blocks of 4 (or 2) bits. A *leaf* protocol gives for each block shares of lt =
//! 1{c_i < d_i} and eq = 1{c_i = d_i}; a tree of ANDs ([`tree`]) joins neighbours: lt = lt_hi ⊕ eq_hi·lt_lo,
//! eq = eq_hi·eq_lo. The lowest block needs no eq. (Garay et al., PKC'07; CrypTFlow2, Rathee et al., CCS'20.)
//! Leaves:
//!
//! - [`Variant::Cheetah`]: a 1-of-16 OT a block ([`cheetah`]).
//! - [`Variant::Compact`]: the same with blocks of 2 bits. A leaf costs less a bit the smaller its block, and
//!   the tree's ANDs cost nothing in preprocessing but OTs.
//! - [`Variant::OneHot`]: a table lookup a block ([`onehot`]); less online, more preprocessing.
//!
//! Comparing the low p bits of the same numbers, for several *cuts* p, takes one set of leaves:
//! [`PrefixCompare`].
//!
//! Rounds online: leaves (2, OneHot 1) + ⌈log₂(blocks of the largest segment)⌉ + cuts − 1.

mod cheetah;
mod onehot;
mod tree;

use volvelle_net::Channel;
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::error::{ArithError, check_len, check_range};
use crate::flow::Flow;
use crate::sliced::Sliced;
use cheetah::CheetahLeaves;
use onehot::OneHotLeaves;
use tree::Tree;

/// How the blocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// Blocks of 4 bits by lookup in a table of 32 entries: the least online.
    OneHot,
    /// Blocks of 4 bits by 1-of-16 OT: the fewest OTs.
    Cheetah,
    /// Blocks of 2 bits by 1-of-4 OT: the least communication, for a third more OTs and one more round.
    Compact,
}

impl Variant {
    /// All variants.
    pub const ALL: [Variant; 3] = [Variant::OneHot, Variant::Cheetah, Variant::Compact];

    /// Bits of a block; the lowest one of a segment may have fewer.
    fn block_bits(self) -> u32 {
        match self {
            Variant::OneHot | Variant::Cheetah => 4,
            Variant::Compact => 2,
        }
    }
}

/// One block of the numbers.
#[derive(Clone, Copy)]
struct Block {
    /// Lowest bit.
    from: usize,
    /// Number of bits, 1 to 4.
    width: usize,
    /// Whether the tree needs eq.
    needs_eq: bool,
}

/// Blocks from the low to the high end, and how many of them lie between two cuts.
struct Layout {
    blocks: Vec<Block>,
    segments: Vec<usize>,
}

impl Layout {
    /// Blocks between the cuts; what is left over makes the lowest block of a segment narrow.
    fn new(variant: Variant, cuts: &[u32]) -> Result<Layout, ArithError> {
        let full = variant.block_bits();
        let mut layout = Layout {
            blocks: Vec::new(),
            segments: Vec::new(),
        };
        check_range(
            "cuts of a comparison",
            1,
            64,
            cuts.len().try_into().unwrap_or(u32::MAX),
        )?;
        let mut low = 0;
        for &cut in cuts {
            check_range("bits of a comparison", low + 1, 64, cut)?;
            let mut from = low;
            let narrow = (cut - low) % full;
            let mut width = if narrow == 0 { full } else { narrow };
            layout.segments.push((cut - low).div_ceil(full) as usize);
            while from < cut {
                layout.blocks.push(Block {
                    from: from as usize,
                    width: width as usize,
                    needs_eq: from > 0,
                });
                from += width;
                width = full;
            }
            low = cut;
        }
        Ok(layout)
    }

    fn bits(&self) -> usize {
        self.blocks.iter().map(|b| b.width).sum()
    }
}

/// What the leaves give for a block: shares of lt, and of eq if needed.
struct Leaf {
    lt: BitVec,
    eq: Option<BitVec>,
}

enum Leaves {
    OneHot(OneHotLeaves),
    Cheetah(CheetahLeaves),
}

/// Prepared comparisons of the low bits of two known numbers, at several cuts.
pub struct PrefixCompare {
    layout: Layout,
    batch: usize,
    leaves: Leaves,
    tree: Tree,
}

impl PrefixCompare {
    /// Prepares `batch` comparisons; `cuts` are the numbers of low bits compared, ascending, 1 to 64.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        cuts: &[u32],
        batch: usize,
    ) -> Result<PrefixCompare, ArithError> {
        let layout = Layout::new(variant, cuts)?;
        let leaves = match variant {
            Variant::OneHot => {
                Leaves::OneHot(OneHotLeaves::prepare(ch, ot, &layout.blocks, batch)?)
            }
            Variant::Cheetah | Variant::Compact => {
                Leaves::Cheetah(CheetahLeaves::prepare(ch, ot, &layout.blocks, batch)?)
            }
        };
        let tree = Tree::prepare(ch, ot, &layout.segments, batch)?;
        Ok(PrefixCompare {
            layout,
            batch,
            leaves,
            tree,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(variant: Variant, cuts: &[u32], batch: usize) -> Result<PhasedCost, ArithError> {
        let layout = Layout::new(variant, cuts)?;
        let leaves = match variant {
            Variant::OneHot => OneHotLeaves::cost(&layout.blocks, batch),
            Variant::Cheetah | Variant::Compact => CheetahLeaves::cost(&layout.blocks, batch),
        };
        let tree = Tree::cost(&layout.segments, batch);
        let mut cost = leaves.then(tree);
        let mut flow = Flow::default();
        PrefixCompare::flow(variant, cuts, &mut flow)?;
        cost.online.rounds = flow.rounds();
        Ok(cost)
    }

    /// Who speaks when in `run`.
    pub fn flow(variant: Variant, cuts: &[u32], flow: &mut Flow) -> Result<(), ArithError> {
        match variant {
            Variant::OneHot => flow.exchange(1),
            Variant::Cheetah | Variant::Compact => {
                flow.client_sends();
                flow.server_sends();
            }
        }
        flow.exchange(Tree::rounds(&Layout::new(variant, cuts)?.segments));
        Ok(())
    }

    /// Shares of 1{c < d} on the low `cuts[k]` bits, for each k.
    pub fn run(self, ch: &mut Channel, own: &[u64]) -> Result<Vec<BitVec>, ArithError> {
        check_len("numbers to compare", self.batch, own.len())?;
        let leaves = match self.leaves {
            Leaves::OneHot(leaves) => leaves.run(ch, &self.layout.blocks, own)?,
            Leaves::Cheetah(leaves) => leaves.run(
                ch,
                &self.layout.blocks,
                &Sliced::from_values(own, self.layout.bits()),
            )?,
        };
        self.tree.run(ch, &self.layout.segments, leaves)
    }
}

/// Prepared comparisons of a number known to the client with one known to the server.
pub struct Compare(PrefixCompare);

impl Compare {
    /// Prepares `batch` comparisons of unsigned numbers of `bits` (1 to 64) bits.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        bits: u32,
        batch: usize,
    ) -> Result<Compare, ArithError> {
        PrefixCompare::prepare(ch, ot, variant, &[bits], batch).map(Compare)
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(variant: Variant, bits: u32, batch: usize) -> Result<PhasedCost, ArithError> {
        PrefixCompare::cost(variant, &[bits], batch)
    }

    /// Shares of 1{c < d}; `own` is c at the client, d at the server, reduced mod 2^bits.
    pub fn run(self, ch: &mut Channel, own: &[u64]) -> Result<BitVec, ArithError> {
        Ok(self.0.run(ch, own)?.swap_remove(0))
    }
}

#[cfg(test)]
mod tests;
