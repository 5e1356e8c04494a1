//! Half-tree correlated GGM trees (Guo, Yang, Wang, Zhang, Xie, Liu, Zhao: "Half-Tree", EUROCRYPT
//! 2023, §4), eight trees at a time.
//!
//! The left child of a node `p` is `H(p)`, the right one `H(p) ⊕ p`, `H` = [`crate::hash::ccr`]. The
//! two nodes of level 1 differ by Δ, hence every level XORs to Δ. With the punctured point's path bits
//! `a_1 … a_d`, whoever knows, for every level, the sum of the nodes on the side `1 ⊕ a_i` can rebuild
//! all leaves but one.
//!
//! **Layout.** Node `j` of tree `t` at some level is block `8·j + t`. The children of `j` at a level of
//! `m` nodes are `j` and `j + m`: a point's first path bit is its lowest bit. So eight trees are one
//! tree of eight roots, children need no interleaving, and the level sums of the trees stay in
//! registers, a lane a tree.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;
use crate::aes::LANES;
use crate::hash::{PERMUTATION, ccr_regs};
use crate::simd::{Engine, Kernel};

/// Trees worked on side by side.
pub const TREES: usize = 8;

/// One value for each of the eight trees.
pub type PerTree<T> = [T; TREES];

/// Expands eight trees of `depth` levels from their left level-1 nodes.
///
/// Fills `nodes` (`8·2^depth` blocks) with the leaves and `left_sums[i]` with the XOR of the left
/// nodes of level `i + 2`, for levels `2 ..= depth`. (Level 1 needs no sum: its left node is `first`.)
///
/// # Panics
/// If `nodes` or `left_sums` has another length, or `depth` is 0.
pub fn expand(
    first: &PerTree<Block>,
    delta: Block,
    depth: u32,
    nodes: &mut [Block],
    left_sums: &mut [PerTree<Block>],
) {
    check(depth, nodes.len(), left_sums.len());
    for t in 0..TREES {
        nodes[t] = first[t];
        nodes[TREES + t] = first[t] ^ delta;
    }
    for (level, sum) in (1..depth).zip(left_sums) {
        let kernel = Level {
            nodes,
            parents: TREES << level,
            fixes: None,
        };
        *sum = PERMUTATION.dispatch(kernel);
    }
}

/// What becomes of the leaf at the punctured point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaf {
    /// It is set to zero.
    Zero,
    /// It is set to the XOR of all other leaves, which is the sender's leaf ⊕ Δ.
    Correlated,
}

/// Rebuilds eight trees punctured at points that the receiver's choices imply.
///
/// `known[i][t]` is, for level `i + 1`, the sum of the nodes on side `sides[i][t]` (0 or 1) of tree `t`;
/// for level 1 that is the node itself. Fills `nodes` with the leaves; returns the punctured points,
/// `Σ_i (1 ⊕ sides[i]) 2^i`. Time and addresses do not depend on the sides.
///
/// # Panics
/// If the lengths do not fit `depth`, or `depth` is 0.
pub fn reconstruct(
    known: &[PerTree<Block>],
    sides: &[PerTree<u8>],
    depth: u32,
    leaf: Leaf,
    nodes: &mut [Block],
) -> PerTree<u64> {
    let fixes = rebuild(known, sides, depth, leaf, nodes);
    PERMUTATION.dispatch(ApplyFixes {
        nodes,
        fixes: &fixes,
    });
    fixes.at_point
}

/// [`reconstruct`] for correlated OTs ([`Leaf::Correlated`]): what is still to be done to the leaves is returned, so that whoever
/// reads them next can do it on the way.
///
/// # Panics
/// As [`reconstruct`].
pub fn reconstruct_cots(
    known: &[PerTree<Block>],
    sides: &[PerTree<u8>],
    depth: u32,
    nodes: &mut [Block],
) -> Finish {
    Finish::receiver(rebuild(known, sides, depth, Leaf::Correlated, nodes))
}

/// All of [`reconstruct`] but for the corrections to the leaves.
fn rebuild(
    known: &[PerTree<Block>],
    sides: &[PerTree<u8>],
    depth: u32,
    leaf: Leaf,
    nodes: &mut [Block],
) -> Fixes {
    check(depth, nodes.len(), known.len().wrapping_sub(1));
    assert_eq!(sides.len(), known.len(), "a side a level");
    let garbage = PERMUTATION.encrypt(Block::ZERO);
    let mut points: PerTree<u64> = std::array::from_fn(|t| u64::from(1 ^ sides[0][t]));
    for t in 0..TREES {
        nodes[t] = known[0][t].keep_if(1 ^ sides[0][t]);
        nodes[TREES + t] = known[0][t].keep_if(sides[0][t]);
    }
    let mut fixes = Fixes::none(&points);
    // Of a level's nodes, the punctured one zero.
    let mut all = known[0];
    for level in 1..depth {
        let parents = TREES << level;
        let left = PERMUTATION.dispatch(Level {
            nodes,
            parents,
            fixes: Some(&fixes),
        });
        let i = level as usize;
        for t in 0..TREES {
            let side = sides[i][t];
            // A right node is its left sibling ⊕ their parent. Both children of the zeroed punctured node came out as `garbage`.
            let seen = left[t] ^ all[t].keep_if(side);
            fixes.sibling[t] = known[i][t] ^ seen;
            fixes.at_sibling[t] = points[t] | u64::from(side) << level;
            points[t] |= u64::from(1 ^ side) << level;
            fixes.at_point[t] = points[t];
            fixes.point[t] = garbage;
            let others = all[t] ^ fixes.sibling[t];
            if level + 1 == depth && leaf == Leaf::Correlated {
                fixes.point[t] = others;
            }
            all[t] = others ^ garbage;
        }
    }
    if depth == 1 && leaf == Leaf::Correlated {
        fixes.point = known[0];
    }
    fixes
}

/// What turns leaves into correlated OTs: the receiver's corrections at the punctured points and their siblings, and choices in
/// bit 0, which is cleared in every leaf and, at the receiver, set at the punctured points.
pub struct Finish {
    fixes: Option<Fixes>,
}

impl Finish {
    /// Of leaves that [`expand`] made.
    #[must_use]
    pub const fn sender() -> Self {
        Self { fixes: None }
    }

    fn receiver(mut fixes: Fixes) -> Self {
        for t in 0..TREES {
            fixes.point[t] = Block(fixes.point[t].0 | 1);
            fixes.sibling[t] = Block(fixes.sibling[t].0 & !1);
        }
        Self { fixes: Some(fixes) }
    }

    /// Does it. Time and addresses do not depend on the points.
    ///
    /// # Panics
    /// If `nodes` is not whole groups of eight.
    pub fn apply(&self, nodes: &mut [Block]) {
        struct Apply<'a>(&'a Finish, &'a mut [Block]);
        impl Kernel for Apply<'_> {
            type Output = ();
            #[inline(always)]
            fn run<E: Engine>(self, e: E) {
                FinishRegs::load(e, self.0).apply(e, self.1, 0);
            }
        }
        assert!(nodes.len().is_multiple_of(TREES), "leaves of eight trees");
        PERMUTATION.dispatch(Apply(self, nodes));
    }
}

/// A [`Finish`] in registers.
pub(crate) struct FinishRegs<R> {
    clear: R,
    fixes: Option<FixRegs<R>>,
}

impl<R: Copy> FinishRegs<R> {
    #[inline(always)]
    pub(crate) fn load<E: Engine<Reg = R>>(e: E, finish: &Finish) -> Self {
        Self {
            clear: e.splat(Block(!1)),
            fixes: load_fixes(e, finish.fixes.as_ref()),
        }
    }

    /// Finishes the leaves from number `first` of each tree on.
    #[inline(always)]
    pub(crate) fn apply<E: Engine<Reg = R>>(&self, e: E, leaves: &mut [Block], first: usize) {
        for (i, group) in leaves.chunks_exact_mut(TREES).enumerate() {
            let at = splat_position(e, (first + i) as u64);
            for r in 0..TREES / E::WIDTH {
                let slot = &mut group[r * E::WIDTH..];
                let mut value = e.and(e.load(slot), self.clear);
                if let Some(fixes) = &self.fixes {
                    value = fixes.apply(e, value, at, r);
                }
                e.store(slot, value);
            }
        }
    }
}

fn check(depth: u32, nodes: usize, inner_levels: usize) {
    assert!(depth >= 1, "a tree has at least one level");
    assert_eq!(
        nodes,
        TREES << depth,
        "nodes of eight trees of depth {depth}"
    );
    assert_eq!(
        inner_levels,
        depth as usize - 1,
        "level sums at depth {depth}"
    );
}

/// Corrections XORed into nodes as they are read: at most two nodes a tree.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Fixes {
    at_point: PerTree<u64>,
    point: PerTree<Block>,
    at_sibling: PerTree<u64>,
    sibling: PerTree<Block>,
}

impl Fixes {
    fn none(points: &PerTree<u64>) -> Self {
        Self {
            at_point: *points,
            point: [Block::ZERO; TREES],
            at_sibling: *points,
            sibling: [Block::ZERO; TREES],
        }
    }
}

/// [`Fixes`] in registers; a group of eight nodes is `8 / WIDTH` of them (the array's rest unused).
#[derive(Clone, Copy)]
struct FixRegs<R> {
    at_point: [R; TREES],
    point: [R; TREES],
    at_sibling: [R; TREES],
    sibling: [R; TREES],
}

fn positions(values: &PerTree<u64>) -> PerTree<Block> {
    values.map(|v| Block(u128::from(v) | u128::from(v) << 64))
}

#[inline(always)]
fn load_group<E: Engine>(e: E, blocks: &PerTree<Block>) -> [E::Reg; TREES] {
    let mut regs = [e.splat(Block::ZERO); TREES];
    for r in 0..TREES / E::WIDTH {
        regs[r] = e.load(&blocks[r * E::WIDTH..]);
    }
    regs
}

/// [`FixRegs::load`] of what there may be.
#[inline(always)]
#[expect(
    clippy::manual_map,
    reason = "a closure would not be inlined with the engine's instructions"
)]
fn load_fixes<E: Engine>(e: E, fixes: Option<&Fixes>) -> Option<FixRegs<E::Reg>> {
    match fixes {
        Some(fixes) => Some(FixRegs::load(e, fixes)),
        None => None,
    }
}

impl<R: Copy> FixRegs<R> {
    #[inline(always)]
    fn load<E: Engine<Reg = R>>(e: E, fixes: &Fixes) -> Self {
        Self {
            at_point: load_group(e, &positions(&fixes.at_point)),
            point: load_group(e, &fixes.point),
            at_sibling: load_group(e, &positions(&fixes.at_sibling)),
            sibling: load_group(e, &fixes.sibling),
        }
    }

    /// Corrects register `r` of the group of node `at` (the node's index in every half).
    #[inline(always)]
    fn apply<E: Engine<Reg = R>>(&self, e: E, value: R, at: R, r: usize) -> R {
        let value = e.xor_where_equal(value, at, self.at_point[r], self.point[r]);
        e.xor_where_equal(value, at, self.at_sibling[r], self.sibling[r])
    }
}

/// One level: `parents` blocks become twice as many, in place. Gives the sums of the left nodes.
struct Level<'a> {
    nodes: &'a mut [Block],
    parents: usize,
    fixes: Option<&'a Fixes>,
}

impl Kernel for Level<'_> {
    type Output = PerTree<Block>;

    #[inline(always)]
    fn run<E: Engine>(self, e: E) -> PerTree<Block> {
        let (left, right) = self.nodes[..2 * self.parents].split_at_mut(self.parents);
        let fixes = load_fixes(e, self.fixes);
        let zero = e.splat(Block::ZERO);
        let mut state = LevelState {
            left,
            right,
            fixes,
            at: 0,
            node: zero,
            left_sum: [zero; TREES],
        };
        // Parents are a multiple of 16 blocks: two groups of eight registers of one block, or half a group
        // of registers of four.
        while state.at + LANES * E::WIDTH <= self.parents {
            state.step::<E, LANES>(e);
        }
        if state.at < self.parents {
            state.step::<E, { LANES / 2 }>(e);
        }
        store_group(e, &state.left_sum)
    }
}

/// A level in progress.
struct LevelState<'a, R> {
    left: &'a mut [Block],
    right: &'a mut [Block],
    fixes: Option<FixRegs<R>>,
    /// Parents done.
    at: usize,
    /// Index of the next node, in every half.
    node: R,
    left_sum: [R; TREES],
}

impl<R: Copy> LevelState<'_, R> {
    /// Expands the next `LIVE` registers of parents.
    #[inline(always)]
    fn step<E: Engine<Reg = R>, const LIVE: usize>(&mut self, e: E) {
        let groups = TREES / E::WIDTH;
        let one = splat_position(e, 1);
        let left = &mut self.left[self.at..self.at + LIVE * E::WIDTH];
        let right = &mut self.right[self.at..self.at + LIVE * E::WIDTH];
        let mut p = [e.splat(Block::ZERO); LANES];
        for i in 0..LIVE {
            p[i] = e.load(&left[i * E::WIDTH..]);
            if let Some(fixes) = &self.fixes {
                p[i] = fixes.apply(e, p[i], self.node, i % groups);
                if i % groups == groups - 1 {
                    self.node = e.add64(self.node, one);
                }
            }
        }
        let h = ccr_regs(e, p);
        for i in 0..LIVE {
            let other = e.xor(h[i], p[i]);
            e.store(&mut left[i * E::WIDTH..], h[i]);
            e.store(&mut right[i * E::WIDTH..], other);
            self.left_sum[i % groups] = e.xor(self.left_sum[i % groups], h[i]);
        }
        self.at += LIVE * E::WIDTH;
    }
}

#[inline(always)]
fn splat_position<E: Engine>(e: E, node: u64) -> E::Reg {
    e.splat(Block(u128::from(node) | u128::from(node) << 64))
}

#[inline(always)]
fn store_group<E: Engine>(e: E, regs: &[E::Reg; TREES]) -> PerTree<Block> {
    let mut out = [Block::ZERO; TREES];
    for r in 0..TREES / E::WIDTH {
        e.store(&mut out[r * E::WIDTH..], regs[r]);
    }
    out
}

struct ApplyFixes<'a> {
    nodes: &'a mut [Block],
    fixes: &'a Fixes,
}

impl Kernel for ApplyFixes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let fixes = FixRegs::load(e, self.fixes);
        for (node, group) in self.nodes.chunks_exact_mut(TREES).enumerate() {
            let at = splat_position(e, node as u64);
            for r in 0..TREES / E::WIDTH {
                let slot = &mut group[r * E::WIDTH..];
                let value = fixes.apply(e, e.load(slot), at, r);
                e.store(slot, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;
    use crate::hash::ccr;

    /// Eight trees by the definition, one node at a time.
    fn reference(first: &PerTree<Block>, delta: Block, depth: u32) -> Vec<Vec<Block>> {
        (0..TREES)
            .map(|t| {
                let mut level = vec![first[t], first[t] ^ delta];
                for _ in 1..depth {
                    let mut left = level.clone();
                    ccr(&mut left);
                    let right: Vec<Block> = left.iter().zip(&level).map(|(&h, &p)| h ^ p).collect();
                    level = [left, right].concat();
                }
                level
            })
            .collect()
    }

    #[test]
    fn full_and_punctured_trees_agree() {
        let mut prg = Prg::from_seed(Block(11));
        for depth in 1..=9u32 {
            let first: PerTree<Block> = std::array::from_fn(|_| prg.next_block());
            let delta = Block(prg.next_block().0 | 1);
            let mut nodes = vec![Block::ZERO; TREES << depth];
            let mut sums = vec![[Block::ZERO; TREES]; depth as usize - 1];
            expand(&first, delta, depth, &mut nodes, &mut sums);
            let trees = reference(&first, delta, depth);
            for (i, &node) in nodes.iter().enumerate() {
                assert!(
                    node == trees[i % TREES][i / TREES],
                    "depth {depth} block {i}"
                );
            }

            let sides: Vec<PerTree<u8>> = (0..depth)
                .map(|_| std::array::from_fn(|_| prg.next_u64() as u8 & 1))
                .collect();
            let known: Vec<PerTree<Block>> = (0..depth as usize)
                .map(|i| {
                    std::array::from_fn(|t| {
                        let left = if i == 0 { first[t] } else { sums[i - 1][t] };
                        left ^ delta.keep_if(sides[i][t])
                    })
                })
                .collect();
            for leaf in [Leaf::Zero, Leaf::Correlated] {
                let mut rebuilt = vec![Block(99); TREES << depth];
                let points = reconstruct(&known, &sides, depth, leaf, &mut rebuilt);
                for (i, &node) in rebuilt.iter().enumerate() {
                    let (t, j) = (i % TREES, (i / TREES) as u64);
                    let expected = match (j == points[t], leaf) {
                        (false, _) => nodes[i],
                        (true, Leaf::Zero) => Block::ZERO,
                        (true, Leaf::Correlated) => nodes[i] ^ delta,
                    };
                    assert!(node == expected, "depth {depth} tree {t} node {j} {leaf:?}");
                }
            }

            let mut rebuilt = vec![Block(99); TREES << depth];
            let points = reconstruct(&known, &sides, depth, Leaf::Correlated, &mut nodes.clone());
            reconstruct_cots(&known, &sides, depth, &mut rebuilt).apply(&mut rebuilt);
            Finish::sender().apply(&mut nodes);
            for (i, (&own, &other)) in rebuilt.iter().zip(&nodes).enumerate() {
                let chosen = (i / TREES) as u64 == points[i % TREES];
                assert!(!other.lsb() && own.lsb() == chosen);
                let offset = Block(delta.0 | 1).keep_if(u8::from(chosen));
                assert!(own == other ^ offset, "depth {depth} block {i}");
            }
        }
    }
}
