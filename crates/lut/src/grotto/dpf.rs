//! Distributed point functions (Boyle, Gilboa, Ishai, CCS 2016, figure 1), many at once.
//!
//! Two GGM trees from different roots. A node is a seed and a control bit, kept in the seed's lowest bit; where the trees' control
//! bits differ, at the nodes on the path to `r` and nowhere else, one party adds the level's correction word, which makes equal what
//! leaves the path. So nodes off the path are equal in both trees, and the *control bits of any node are XOR shares of whether
//! `r` is below it*: that is what Grotto's parities are read off.
//!
//! A leaf is one block that holds several outputs: bits, or words of `l` bits shared additively (early termination).

use volvelle_prim::hash::ccr;
use volvelle_prim::{Block, mask};
use zeroize::Zeroizing;

/// What comes of a tree at each of the `2^k` points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// Bits, shared by XOR: 1 at `r`.
    Bits,
    /// Words, shared additively: 1 at `r`.
    Words(u32),
}

/// The form of all trees of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub log_entries: u32,
    pub outputs: Outputs,
}

impl Form {
    /// Bits of an output.
    pub const fn output_bits(self) -> u32 {
        match self.outputs {
            Outputs::Bits => 1,
            Outputs::Words(bits) => bits,
        }
    }

    /// Bits from one output of a leaf to the next: the power of two that holds one.
    const fn stride(self) -> u32 {
        self.output_bits().next_power_of_two()
    }

    /// `log2` of the outputs of a leaf.
    pub fn log_lanes(self) -> u32 {
        (128 / self.stride()).ilog2().min(self.log_entries)
    }

    /// Levels below the root.
    pub fn depth(self) -> usize {
        (self.log_entries - self.log_lanes()) as usize
    }

    /// Trees a frame, and expanded side by side: no more than 2^21 leaves, 32 MiB; a multiple of 8. An agreement parameter.
    pub fn chunk(self) -> usize {
        (1 << 21 >> self.depth()).clamp(8, 1024)
    }

    /// The outputs in a leaf.
    fn lanes(self, leaf: Block) -> impl Iterator<Item = u64> {
        let stride = self.stride();
        (0..1u32 << self.log_lanes())
            .map(move |lane| (leaf.0 >> (lane * stride)) as u64 & mask(self.output_bits()))
    }

    fn leaf(self, lanes: impl Iterator<Item = u64>) -> Block {
        let stride = self.stride() as usize;
        Block(lanes.enumerate().fold(0, |leaf, (lane, word)| {
            leaf | u128::from(word & mask(self.output_bits())) << (lane * stride)
        }))
    }

    /// The lanes of a last correction, for the wire.
    pub fn last_lanes(self, last: &[Block]) -> Vec<u64> {
        last.iter().flat_map(|&leaf| self.lanes(leaf)).collect()
    }

    /// Last corrections from their lanes.
    pub fn last_from_lanes(self, lanes: &[u64]) -> Vec<Block> {
        lanes
            .chunks_exact(1 << self.log_lanes())
            .map(|lanes| self.leaf(lanes.iter().copied()))
            .collect()
    }
}

/// Which of the two trees: control bit at the root, and sign of additive outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    First,
    Second,
}

impl Tree {
    /// The root with its control bit.
    fn root(self, seed: Block) -> Block {
        Block(seed.0 & !1 | u128::from(self == Self::Second))
    }
}

/// Corrections of some trees: public to both parties, and pseudorandom to each.
#[derive(Clone, Debug, Default)]
pub(super) struct Corrections {
    /// For each level, for each tree, what is added to a left child: a seed, and in the lowest bit a control bit.
    pub left: Vec<Block>,
    /// The lowest bit for a right child; the seed is the left one's.
    pub right_bits: Vec<u64>,
    /// For each tree, what is added to a leaf.
    pub last: Vec<Block>,
}

impl Corrections {
    fn of(&self, at: usize) -> [Block; 2] {
        let left = self.left[at];
        [left, Block(left.0 & !1 | u128::from(self.right_bits[at]))]
    }
}

/// All ones for a node with control bit 1.
fn control(node: Block) -> u8 {
    node.lsb().into()
}

/// Children of all nodes, uncorrected: `H(s)` and `H(s ⊕ 1)` of the seed `s`.
fn children(nodes: &[Block]) -> Zeroizing<Vec<Block>> {
    let pairs = nodes.iter().flat_map(|node| {
        let seed = node.0 & !1;
        [Block(seed), Block(seed | 1)]
    });
    let mut children = Zeroizing::new(pairs.collect::<Vec<_>>());
    ccr(&mut children);
    children
}

/// What leaves are worth before their correction.
fn values(nodes: &[Block]) -> Zeroizing<Vec<Block>> {
    let seeds = nodes.iter().map(|node| Block(node.0 & !1));
    let mut values = Zeroizing::new(seeds.collect::<Vec<_>>());
    ccr(&mut values);
    values
}

/// Dealer: the corrections of trees from these roots, one at `points[i]`.
pub(super) fn generate(form: Form, roots: [&[Block]; 2], points: &[u64]) -> Corrections {
    let node = |tree: Tree, seeds: &[Block]| {
        Zeroizing::new(
            seeds
                .iter()
                .map(|&seed| tree.root(seed))
                .collect::<Vec<_>>(),
        )
    };
    let mut a = node(Tree::First, roots[0]);
    let mut b = node(Tree::Second, roots[1]);
    let mut corrections = Corrections::default();
    for level in 0..form.depth() {
        let shift = form.log_entries as usize - 1 - level;
        let (below_a, below_b) = (children(&a), children(&b));
        for (i, &point) in points.iter().enumerate() {
            let right = (point >> shift) as u8 & 1;
            let (of_a, of_b) = (&below_a[2 * i..2 * i + 2], &below_b[2 * i..2 * i + 2]);
            let differences = [of_a[0] ^ of_b[0], of_a[1] ^ of_b[1]];
            let pick = |pair: [Block; 2], right: u8| pair[0] ^ (pair[0] ^ pair[1]).keep_if(right);
            let lost = pick(differences, 1 ^ right).0 & !1;
            let bits = [
                u8::from(differences[0].lsb()) ^ right ^ 1,
                u8::from(differences[1].lsb()) ^ right,
            ];
            let correction = bits.map(|bit| Block(lost | u128::from(bit)));
            let on_path = pick(correction, right);
            a[i] = pick([of_a[0], of_a[1]], right) ^ on_path.keep_if(control(a[i]));
            b[i] = pick([of_b[0], of_b[1]], right) ^ on_path.keep_if(control(b[i]));
            corrections.left.push(correction[0]);
            corrections.right_bits.push(bits[1].into());
        }
    }
    let (of_a, of_b) = (values(&a), values(&b));
    let lanes = mask(form.log_lanes());
    for (i, &point) in points.iter().enumerate() {
        let one = |lane: u64| u64::from(lane == point & lanes);
        let pairs = (0..).zip(form.lanes(of_a[i]).zip(form.lanes(of_b[i])));
        let negate = u64::from(control(b[i])).wrapping_neg();
        let last = pairs.map(|(lane, (a, b))| match form.outputs {
            Outputs::Bits => a ^ b ^ one(lane),
            Outputs::Words(_) => {
                let missing = one(lane).wrapping_sub(a).wrapping_add(b);
                (missing ^ negate).wrapping_sub(negate)
            }
        });
        corrections.last.push(form.leaf(last));
    }
    corrections
}

/// Evaluates every point of the trees in `trees` of a batch. Returns their leaves, `2^depth` a tree: shares of
/// the outputs.
pub(super) fn expand(
    form: Form,
    tree: Tree,
    seeds: &[Block],
    corrections: &Corrections,
) -> Zeroizing<Vec<Block>> {
    let count = seeds.len();
    let mut nodes = Zeroizing::new(seeds.iter().map(|&s| tree.root(s)).collect::<Vec<_>>());
    for level in 0..form.depth() {
        let mut below = children(&nodes);
        let each = nodes
            .chunks_exact(1 << level)
            .zip(below.chunks_exact_mut(2 << level));
        for (i, (nodes, below)) in each.enumerate() {
            let [left, right] = corrections.of(level * count + i);
            for (&node, pair) in nodes.iter().zip(below.chunks_exact_mut(2)) {
                pair[0] ^= left.keep_if(control(node));
                pair[1] ^= right.keep_if(control(node));
            }
        }
        nodes = below;
    }
    let mut leaves = values(&nodes);
    let each = leaves
        .chunks_exact_mut(1 << form.depth())
        .zip(&corrections.last);
    for ((leaves, &last), nodes) in each.zip(nodes.chunks_exact(1 << form.depth())) {
        for (leaf, &node) in leaves.iter_mut().zip(nodes) {
            *leaf = finish(form, tree, *leaf, last.keep_if(control(node)));
        }
    }
    leaves
}

/// A leaf's outputs from its value and, where its control bit is 1, the last correction.
fn finish(form: Form, tree: Tree, value: Block, last: Block) -> Block {
    match form.outputs {
        Outputs::Bits => value ^ last,
        Outputs::Words(_) => {
            let negate = u64::from(tree == Tree::Second).wrapping_neg();
            let lanes = form.lanes(value).zip(form.lanes(last));
            let sums = lanes.map(|(a, b)| a.wrapping_add(b));
            form.leaf(sums.map(|sum| (sum ^ negate).wrapping_sub(negate)))
        }
    }
}

/// The outputs of one tree's leaves as words.
pub(super) fn words(form: Form, leaves: &[Block], out: &mut [u64]) {
    let lanes = 1 << form.log_lanes();
    for (leaf, out) in leaves.iter().zip(out.chunks_exact_mut(lanes)) {
        out.iter_mut()
            .zip(form.lanes(*leaf))
            .for_each(|(out, word)| *out = word);
    }
}

/// The outputs of one tree's leaves as a row of bits.
pub(super) fn row(form: Form, leaves: &[Block], out: &mut [u64]) {
    let bits = mask(1 << form.log_entries.min(6));
    for (j, word) in out.iter_mut().enumerate() {
        *word = (leaves[j / 2].0 >> (64 * (j % 2))) as u64 & bits;
    }
}

/// Walks one tree to a public point `x`: a share of whether `r < x`, for `x < 2^k`, in `2·depth + 1` hashes.
pub(super) fn below(
    form: Form,
    tree: Tree,
    seed: Block,
    (corrections, i, count): (&Corrections, usize, usize),
    x: u64,
) -> bool {
    debug_assert_eq!(form.outputs, Outputs::Bits);
    let mut node = tree.root(seed);
    let mut parity = false;
    for level in 0..form.depth() {
        let right = x >> (form.log_entries as usize - 1 - level) & 1 == 1;
        let below = children(&[node]);
        let pair = corrections.of(level * count + i);
        let corrected = |side: usize| below[side] ^ pair[side].keep_if(control(node));
        let (left_child, right_child) = (corrected(0), corrected(1));
        // All of the left subtree is below x.
        parity ^= right && left_child.lsb();
        node = if right { right_child } else { left_child };
    }
    let leaf = finish(
        form,
        tree,
        values(&[node])[0],
        corrections.last[i].keep_if(control(node)),
    );
    let lower = (1u128 << (x & mask(form.log_lanes()))) - 1;
    parity ^ ((leaf.0 & lower).count_ones() % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_prim::Prg;

    /// Every point of every size: outputs are one there and zero elsewhere, and prefixes are what they say.
    #[test]
    fn outputs_are_one_at_the_point() {
        let mut prg = Prg::from_seed(Block(1));
        let outputs = [1, 7, 8, 37, 64].map(Outputs::Words);
        for outputs in outputs.into_iter().chain([Outputs::Bits]) {
            for log_entries in 1..=9 {
                let form = Form {
                    log_entries,
                    outputs,
                };
                let n = 1usize << log_entries;
                let points: Vec<u64> = (0..n as u64).collect();
                let mut roots = [vec![Block::ZERO; n], vec![Block::ZERO; n]];
                roots.iter_mut().for_each(|roots| prg.fill_blocks(roots));
                let corrections = generate(form, [&roots[0], &roots[1]], &points);
                let a = expand(form, Tree::First, &roots[0], &corrections);
                let b = expand(form, Tree::Second, &roots[1], &corrections);
                let (mut x, mut y) = (vec![0; n], vec![0; n]);
                let leaves = 1 << form.depth();
                for i in 0..n {
                    words(form, &a[i * leaves..][..leaves], &mut x);
                    words(form, &b[i * leaves..][..leaves], &mut y);
                    for j in 0..n {
                        let sum = match outputs {
                            Outputs::Bits => x[j] ^ y[j],
                            Outputs::Words(bits) => x[j].wrapping_add(y[j]) & mask(bits),
                        };
                        assert_eq!(sum, u64::from(i == j), "{form:?} {i} {j}");
                        if outputs == Outputs::Bits && i % 13 == 0 {
                            let less = |tree, roots: &[Block]| {
                                below(form, tree, roots[i], (&corrections, i, n), j as u64)
                            };
                            let shared =
                                less(Tree::First, &roots[0]) ^ less(Tree::Second, &roots[1]);
                            assert_eq!(shared, i < j, "{form:?} {i} < {j}");
                        }
                    }
                }
            }
        }
    }
}
