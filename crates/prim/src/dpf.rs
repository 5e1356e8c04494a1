//! Half-tree distributed point functions (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao: "Half-Tree", EUROCRYPT 2023, §5),
//! one party's side, sixteen trees at a time.
//!
//! A node `s` has a left child `H(s) ⊕ t·c` and a right child `H(s) ⊕ s ⊕ t·c`, where `H` = [`crate::hash::ccr`], `t` is
//! bit 0 of `s` and `c` the correction of the children's level. The two parties hold the same tree but for a path, on
//! which their nodes differ by Δ (bit 0 of Δ is 1): off the path everything cancels. Corrections are made of the
//! level sums `⊕ H(s)`, see the protocols that use this.
//!
//! **Keys.** `keys[0]` is the right node of level 1, whose left node is that ⊕ the party's share of Δ; `keys[i]` is the
//! correction of level `i + 1`. So `keys.len()` is the depth.
//!
//! **Layout.** A node's children are `j` and `j + m` in a level of `m` nodes: the first bit of a path is its lowest. The
//! first [`TOP`] levels are interleaved, node `j` of tree `t` at block `16·j + t`; below, a tree is contiguous and stays
//! in the first-level cache. Nothing depends on secrets but the values.

use zeroize::{Zeroize, Zeroizing};

use crate::Block;
use crate::aes::{LANES, Regs, load_regs, store_regs};
use crate::hash::{PERMUTATION, ccr, ccr_regs};
use crate::simd::{Engine, Kernel};

/// Trees worked on side by side.
pub const TREES: usize = 16;

/// One value for each of the sixteen trees.
pub type PerTree<T> = [T; TREES];

/// Levels that are interleaved. A local tuning knob.
const TOP: usize = 5;

/// Blocks that every kernel takes at once: a group of registers, and twice the trees.
const STRIDE: usize = 2 * TREES;

/// One party's keys of sixteen trees.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// See the module's head; at least one.
    pub keys: &'a [PerTree<Block>],
    /// The party's share of Δ.
    pub delta: Block,
}

/// Room for the nodes of sixteen trees.
pub struct Scratch {
    top: Zeroizing<Vec<Block>>,
    tree: Zeroizing<Vec<Block>>,
}

impl Scratch {
    /// For trees of at most `depth` levels.
    #[must_use]
    pub fn new(depth: usize) -> Self {
        let blocks = |len| Zeroizing::new(vec![Block::ZERO; len]);
        Self {
            top: blocks(TREES << depth.min(TOP)),
            tree: blocks(1 << depth),
        }
    }
}

/// Sums over the leaves `s` of a tree from which its last correction is made, and which say how many ones the corrected leaves
/// `H(s) ⊕ t·c` will have, before `c` is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Zeroize)]
pub struct LeafSums {
    /// `⊕ H(s)`.
    pub sum: Block,
    /// `⊕ t·H(s)`.
    odd_sum: Block,
    /// `Σ |H(s)|` modulo 4.
    weight: u32,
    /// `Σ t` modulo 4.
    odd: u32,
}

impl LeafSums {
    /// The number of ones of all leaves once corrected by `c`, modulo 4: `|h ⊕ c| = |h| + |c| − 2·|h ∧ c|`.
    #[must_use]
    pub fn weight(&self, c: Block) -> u32 {
        let both = (self.odd_sum & c).0.count_ones();
        let added = self.odd * c.0.count_ones();
        (self.weight + added).wrapping_sub(2 * both) & 3
    }

    /// The number of leaves with bit 0 set, modulo 4.
    #[must_use]
    pub fn odd(&self) -> u32 {
        self.odd
    }

    fn join(&mut self, other: &Self) {
        self.sum ^= other.sum;
        self.odd_sum ^= other.odd_sum;
        self.weight = (self.weight + other.weight) & 3;
        self.odd = (self.odd + other.odd) & 3;
    }
}

/// `⊕ H(s)` over the nodes of the last level, of each tree.
#[must_use]
pub fn level_sums(keys: Keys<'_>, scratch: &mut Scratch) -> PerTree<Block> {
    let mut out = [Block::ZERO; TREES];
    keys.last_level(scratch, |t, nodes| {
        let lanes = PERMUTATION.dispatch(Sum(nodes));
        match t {
            None => out = lanes,
            Some(t) => out[t] = lanes.iter().fold(Block::ZERO, |sum, &lane| sum ^ lane),
        }
    });
    out
}

/// [`LeafSums`] of each tree, its leaves the nodes of the last level.
#[must_use]
pub fn leaf_sums(keys: Keys<'_>, scratch: &mut Scratch) -> PerTree<LeafSums> {
    let mut out = [LeafSums::default(); TREES];
    keys.last_level(scratch, |t, nodes| match t {
        None => out = PERMUTATION.dispatch(SumLeaves::<false>(nodes)),
        Some(t) => {
            let lanes = PERMUTATION.dispatch(SumLeaves::<true>(nodes));
            lanes.iter().for_each(|lane| out[t].join(lane));
        }
    });
    out
}

/// The corrected leaves `H(s) ⊕ t·c`: `visit(t, leaves)` for each of the first `count` trees.
pub fn leaves(
    keys: Keys<'_>,
    corrections: &PerTree<Block>,
    count: usize,
    scratch: &mut Scratch,
    mut visit: impl FnMut(usize, &mut [Block]),
) {
    keys.trees(
        scratch,
        count,
        |t, nodes| {
            let corrections = match t {
                None => *corrections,
                Some(t) => [corrections[t]; TREES],
            };
            PERMUTATION.dispatch(Leaves {
                nodes,
                corrections: &corrections,
            });
        },
        &mut visit,
    );
}

/// The nodes of the last level as they are: `visit(t, nodes)` for each of the first `count` trees.
pub fn nodes(
    keys: Keys<'_>,
    count: usize,
    scratch: &mut Scratch,
    mut visit: impl FnMut(usize, &mut [Block]),
) {
    keys.trees(scratch, count, |_, _| {}, &mut visit);
}

/// `H(s ⊕ j)` of every node: a block of words a node and number `j`.
pub fn hash_nodes(nodes: &[Block], j: u64, out: &mut [Block]) {
    for (out, &node) in out.iter_mut().zip(nodes) {
        *out = node ^ Block(j.into());
    }
    ccr(out);
}

impl Keys<'_> {
    fn depth(&self) -> usize {
        self.keys.len()
    }

    /// Grows the interleaved levels; returns their last.
    fn grow_top<'s>(&self, top: &'s mut [Block]) -> &'s mut [Block] {
        let nodes = &mut top[..TREES << self.depth().min(TOP)];
        let (left, right) = nodes.split_at_mut(TREES);
        for ((left, right), &key) in left.iter_mut().zip(right).zip(&self.keys[0]) {
            (*left, *right) = (key ^ self.delta, key);
        }
        PERMUTATION.dispatch(Grow {
            nodes,
            parents: STRIDE,
            corrections: &self.keys[1..self.depth().min(TOP)],
            tree: None,
        });
        nodes
    }

    /// Grows tree `t` below the interleaved levels.
    fn grow_tree(&self, t: usize, top: &[Block], tree: &mut [Block]) {
        let (first, _) = tree.split_at_mut(1 << TOP);
        for (node, lanes) in first.iter_mut().zip(top.as_chunks::<TREES>().0) {
            *node = lanes[t];
        }
        PERMUTATION.dispatch(Grow {
            nodes: tree,
            parents: 1 << TOP,
            corrections: &self.keys[TOP..],
            tree: Some(t),
        });
    }

    /// Sees the last level: all trees interleaved (`None`), or one tree after the other.
    fn last_level(&self, scratch: &mut Scratch, mut see: impl FnMut(Option<usize>, &mut [Block])) {
        let top = self.grow_top(&mut scratch.top);
        if self.depth() <= TOP {
            return see(None, top);
        }
        let tree = &mut scratch.tree[..1 << self.depth()];
        for t in 0..TREES {
            self.grow_tree(t, top, tree);
            see(Some(t), tree);
        }
    }

    /// Changes the last level by `finish` (as [`Self::last_level`] shows it), and shows it tree by tree.
    fn trees(
        &self,
        scratch: &mut Scratch,
        count: usize,
        mut finish: impl FnMut(Option<usize>, &mut [Block]),
        visit: &mut impl FnMut(usize, &mut [Block]),
    ) {
        let top = self.grow_top(&mut scratch.top);
        let tree = &mut scratch.tree[..1 << self.depth()];
        if self.depth() <= TOP {
            finish(None, top);
        }
        for t in 0..count.min(TREES) {
            if self.depth() <= TOP {
                for (node, lanes) in tree.iter_mut().zip(top.as_chunks::<TREES>().0) {
                    *node = lanes[t];
                }
            } else {
                self.grow_tree(t, top, tree);
                finish(Some(t), tree);
            }
            visit(t, tree);
        }
    }
}

/// Grows levels in place, one for each tree's correction; block `b` of a level is of tree `b mod 16`, or all are of one tree.
struct Grow<'a> {
    nodes: &'a mut [Block],
    /// Blocks of the first level.
    parents: usize,
    corrections: &'a [PerTree<Block>],
    tree: Option<usize>,
}

impl Kernel for Grow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let group = LANES * E::WIDTH;
        let mut parents = self.parents;
        for &corrections in self.corrections {
            let corrections = match self.tree {
                Some(t) => [corrections[t]; TREES],
                None => corrections,
            };
            let (left, right) = self.nodes[..2 * parents].split_at_mut(parents);
            let pairs = left
                .chunks_exact_mut(group)
                .zip(right.chunks_exact_mut(group));
            for (g, (left, right)) in pairs.enumerate() {
                let s = load_regs(e, left);
                let h = corrected(e, s, g * group, &corrections);
                store_regs(e, left, h);
                for i in 0..LANES {
                    e.store(&mut right[i * E::WIDTH..], e.xor(h[i], s[i]));
                }
            }
            parents *= 2;
        }
    }
}

/// `H(s) ⊕ t·c` of registers, the first of which starts at block `first`.
#[inline(always)]
fn corrected<E: Engine>(e: E, s: Regs<E>, first: usize, corrections: &PerTree<Block>) -> Regs<E> {
    let mut h = ccr_regs(e, s);
    for i in 0..LANES {
        let correction = e.load(&corrections[(first + i * E::WIDTH) % TREES..]);
        h[i] = e.xor_where_odd(h[i], s[i], correction);
    }
    h
}

/// Corrects leaves in place.
struct Leaves<'a> {
    nodes: &'a mut [Block],
    corrections: &'a PerTree<Block>,
}

impl Kernel for Leaves<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let group = LANES * E::WIDTH;
        for (g, chunk) in self.nodes.chunks_exact_mut(group).enumerate() {
            let h = corrected(e, load_regs(e, chunk), g * group, self.corrections);
            store_regs(e, chunk, h);
        }
    }
}

/// `⊕ H(s)`, lane by lane: over the blocks `b` with the same `b mod 16`.
struct Sum<'a>(&'a [Block]);

impl Kernel for Sum<'_> {
    type Output = PerTree<Block>;

    #[inline(always)]
    fn run<E: Engine>(self, e: E) -> PerTree<Block> {
        let mut sums = [e.splat(Block::ZERO); TREES];
        for blocks in self.0.as_chunks::<STRIDE>().0 {
            for (g, chunk) in blocks.chunks_exact(LANES * E::WIDTH).enumerate() {
                let h = ccr_regs(e, load_regs(e, chunk));
                for (i, h) in h.into_iter().enumerate() {
                    let lane = (g * LANES + i) % (TREES / E::WIDTH);
                    sums[lane] = e.xor(sums[lane], h);
                }
            }
        }
        store_lanes(e, &sums)
    }
}

#[inline(always)]
fn store_lanes<E: Engine>(e: E, regs: &[E::Reg; TREES]) -> PerTree<Block> {
    let mut out = [Block::ZERO; TREES];
    for r in 0..TREES / E::WIDTH {
        e.store(&mut out[r * E::WIDTH..], regs[r]);
    }
    out
}

/// [`LeafSums`], lane by lane, or of all lanes together (`ONE`: nodes of one tree), in some of the lanes. Ones are counted modulo 4
/// in every bit position by itself: two words of bits, low and high.
struct SumLeaves<'a, const ONE: bool>(&'a [Block]);

impl<const ONE: bool> Kernel for SumLeaves<'_, ONE> {
    type Output = PerTree<LeafSums>;

    #[inline(always)]
    fn run<E: Engine>(self, e: E) -> PerTree<LeafSums> {
        let zero = [e.splat(Block::ZERO); TREES];
        let (mut low, mut high) = (zero, zero);
        let (mut odd_low, mut odd_high) = (zero, zero);
        let mut odd_sum = zero;
        for blocks in self.0.as_chunks::<STRIDE>().0 {
            for (g, chunk) in blocks.chunks_exact(LANES * E::WIDTH).enumerate() {
                let s = load_regs(e, chunk);
                let h = ccr_regs(e, s);
                for i in 0..LANES {
                    // All lanes' sums need half of the registers, where these are wide and many.
                    let l = if ONE && E::WIDTH < 4 {
                        0
                    } else {
                        (g * LANES + i) % (TREES / E::WIDTH)
                    };
                    high[l] = e.xor(high[l], e.and(low[l], h[i]));
                    low[l] = e.xor(low[l], h[i]);
                    odd_high[l] = e.xor(odd_high[l], e.and(odd_low[l], s[i]));
                    odd_low[l] = e.xor(odd_low[l], s[i]);
                    odd_sum[l] = e.xor_where_odd(odd_sum[l], s[i], h[i]);
                }
            }
        }
        let (low, high) = (store_lanes(e, &low), store_lanes(e, &high));
        let (odd_low, odd_high) = (store_lanes(e, &odd_low), store_lanes(e, &odd_high));
        let odd_sum = store_lanes(e, &odd_sum);
        let mut out = [LeafSums::default(); TREES];
        for (t, out) in out.iter_mut().enumerate() {
            *out = LeafSums {
                sum: low[t],
                odd_sum: odd_sum[t],
                weight: (low[t].0.count_ones() + 2 * high[t].0.count_ones()) & 3,
                odd: u32::from(odd_low[t].lsb()) + 2 * u32::from(odd_high[t].lsb()),
            };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    fn hash(s: Block) -> Block {
        let mut one = [s];
        ccr(&mut one);
        one[0]
    }

    /// All levels of tree `t` by the definition.
    fn reference(keys: Keys<'_>, t: usize) -> Vec<Block> {
        let mut level = vec![keys.keys[0][t] ^ keys.delta, keys.keys[0][t]];
        for correction in &keys.keys[1..] {
            let fixed = |s: Block| hash(s) ^ correction[t].keep_if(u8::from(s.lsb()));
            let left: Vec<Block> = level.iter().map(|&s| fixed(s)).collect();
            let right: Vec<Block> = level.iter().map(|&s| fixed(s) ^ s).collect();
            level = [left, right].concat();
        }
        level
    }

    fn random_keys(depth: usize, prg: &mut Prg) -> Vec<PerTree<Block>> {
        (0..depth)
            .map(|_| std::array::from_fn(|_| prg.next_block()))
            .collect()
    }

    #[test]
    fn trees_are_their_definition() {
        let mut prg = Prg::from_seed(Block(5));
        for depth in 1..=9 {
            let drawn = random_keys(depth, &mut prg);
            let keys = Keys {
                keys: &drawn,
                delta: prg.next_block(),
            };
            let correction: PerTree<Block> = std::array::from_fn(|_| prg.next_block());
            let mut scratch = Scratch::new(depth + depth % 2);
            let sums = level_sums(keys, &mut scratch);
            let leaf = leaf_sums(keys, &mut scratch);
            let mut seen = 0;
            leaves(keys, &correction, 13, &mut scratch, |t, leaves| {
                let nodes = reference(keys, t);
                let fixed = |s: &Block| hash(*s) ^ correction[t].keep_if(u8::from(s.lsb()));
                let expected: Vec<Block> = nodes.iter().map(fixed).collect();
                assert!(leaves == expected, "depth {depth}, tree {t}");
                let sum = nodes.iter().fold(Block::ZERO, |sum, &s| sum ^ hash(s));
                assert!(sums[t] == sum && leaf[t].sum == sum);
                let ones: u32 = leaves.iter().map(|leaf| leaf.0.count_ones()).sum();
                assert_eq!(leaf[t].weight(correction[t]), ones % 4);
                let odd = nodes.iter().filter(|s| s.lsb()).count();
                assert_eq!(leaf[t].odd() as usize, odd % 4);
                seen += 1;
            });
            assert_eq!(seen, 13);
            nodes(keys, 2, &mut scratch, |t, nodes| {
                assert!(nodes == reference(keys, t));
            });
        }
    }

    /// Both parties' trees with corrections made as protocols make them: equal but at a leaf.
    #[test]
    fn trees_differ_on_a_path() {
        let mut prg = Prg::from_seed(Block(6));
        let delta = [prg.next_block().0 | 1, prg.next_block().0 & !1].map(Block);
        let (depth, path) = (7, 0b101_1001);
        let both = delta[0] ^ delta[1];
        let first: PerTree<Block> = std::array::from_fn(|_| prg.next_block());
        let mut keys = [vec![first], vec![first.map(|s| s ^ both.keep_if(path & 1))]];
        let mut scratch = Scratch::new(depth);
        for i in 1..depth {
            let sums: [_; 2] = std::array::from_fn(|p| {
                let own = Keys {
                    keys: &keys[p],
                    delta: delta[p],
                };
                level_sums(own, &mut scratch)
            });
            let off = both.keep_if(1 ^ path >> i & 1);
            let correction = std::array::from_fn(|t| sums[0][t] ^ sums[1][t] ^ off);
            keys.iter_mut().for_each(|keys| keys.push(correction));
        }
        let trees = [0, 1].map(|p| {
            reference(
                Keys {
                    keys: &keys[p],
                    delta: delta[p],
                },
                3,
            )
        });
        for (j, (&a, &b)) in trees[0].iter().zip(&trees[1]).enumerate() {
            let apart = if j == usize::from(path) {
                both
            } else {
                Block::ZERO
            };
            assert!(a ^ b == apart, "node {j}");
        }
    }
}
