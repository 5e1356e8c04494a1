//! A garbled table with a logarithmic number of ciphertexts (Heath, Kolesnikov, Ng: "Garbled Circuit Lookup Tables with
//! Logarithmic Number of Ciphertexts", EUROCRYPT 2024), made of one-hot garbling (Heath, Kolesnikov, CCS 2021).
//!
//! The evaluator knows `y = i ⊕ α` by its colours, and wants labels `Z_b ⊕ F_b(y)·Δ` of the bits of `F(y) = T_(y ⊕ α) − ρ`.
//!
//! 1. *One-hot labels.* The garbler expands a half-tree GGM tree from the labels of bit 0; a ciphertext a further bit gives the
//!    evaluator the sum of the level's nodes off its path, and so all leaves `K_j` but one, in whose place it has `K_y ⊕ Δ`. Hence
//!    any linear map that both know of the one-hot vector of `y` is free.
//! 2. *A mask.* For each bit `t` a label's expansion gives `2^t` words for either colour: `R(j) = ⊕_t u_(t, j_t)[j mod 2^t]`. Of these the evaluator
//!    knows those with the colours of `y`; the `n − 1` words of the others make `R(j)`, `j ≠ y`, uniform and independent to it. It gets
//!    `G(j) = F(j) ⊕ R(j)` for all `j`, and with it labels of `G(y)`.
//! 3. *The mask's labels.* `u_(t, y_t)` is known to the evaluator, and the one-hot labels of `y mod 2^(t+1)` are sums of leaves, so it has labels of
//!    `u_(t, y_t)[y mod 2^t]` whose label of 0 depends on `y_t`; a half gate, one ciphertext, makes it one. These add up to labels of
//!    `R(y)`, and with those of `G(y)` to labels of `F(y)`.
//!
//! `R(y)` the evaluator knows, and so `F(y)`: this is why ρ is taken off, and why, if shares were all that is wanted, 1 and 3 could go and
//! the rows would be enough ([`super::rows`]).
//!
//! Bits: `128·(k − 1) + 128·k·Σl + n·Σl`. Computing, in hashes of a block: `2n` and `n·(tables)` for the garbler, and some
//! `4·n·Σl` masked block additions.

use std::ops::Range;

use volvelle_prim::ggm::{self, Leaf, PerTree, TREES};
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, Prg, mask, pack};
use zeroize::Zeroizing;

use super::prepare::Job;
use super::{Purpose, Shape, Wires, colours, pad_word};

/// Ciphertexts of the one-hot labels.
pub(super) const fn tree_blocks(k: usize) -> usize {
    k - 1
}

/// Of a level of the mask: where the words are in a label's expansion, and the half gates' hashes.
struct Level {
    /// `2^t`.
    half: usize,
    /// Blocks of words.
    words: usize,
    /// Blocks in all: words, then a hash for each output bit.
    width: usize,
}

impl Level {
    fn new(shape: &Shape, t: usize) -> Self {
        let words = (shape.words.len() << t).div_ceil(2);
        Self {
            half: 1 << t,
            words,
            width: words + shape.output_bits(),
        }
    }

    /// The expansions of a bit's labels, each ⊕ `offset`.
    fn expand(
        &self,
        t: usize,
        labels: &[Block],
        offset: Block,
        lookups: &Range<usize>,
    ) -> Zeroizing<Vec<Block>> {
        let mut out = Zeroizing::new(vec![Block::ZERO; labels.len() * self.width]);
        Tccr {
            first: Purpose::Level { bit: t }.tweak(lookups),
            width: self.width,
        }
        .hash(labels, offset, &mut out);
        out
    }
}

/// One lookup's one-hot labels, of which the high bits are forgotten one by one.
struct OneHot(Zeroizing<Vec<Block>>);

impl OneHot {
    /// Forgets the top bit.
    fn fold(&mut self) {
        let half = self.0.len() / 2;
        let (low, high) = self.0.split_at_mut(half);
        Block::xor_into(low, high);
        self.0.truncate(half);
    }
}

/// For each output bit, adds the labels that bit of the words selects. Word `j` of table `t` is number `j·tables + t`.
fn select(shape: &Shape, word: impl Fn(usize) -> u64, labels: &[Block], sums: &mut [Block]) {
    let tables = shape.words.len();
    for (j, &label) in labels.iter().enumerate() {
        let mut sums = sums.iter_mut();
        for (t, &bits) in shape.words.iter().enumerate() {
            let word = word(j * tables + t);
            for (b, sum) in sums.by_ref().take(bits as usize).enumerate() {
                *sum ^= label.keep_if((word >> b) as u8 & 1);
            }
        }
    }
}

/// The colours of some labels, as words of each table.
fn colour_words(shape: &Shape, labels: &[Block]) -> Vec<u64> {
    let mut rest = labels;
    let mut word = |&bits: &u32| {
        let (own, others) = rest.split_at(bits as usize);
        rest = others;
        let colours = own.iter().enumerate();
        colours.fold(0, |word, (b, label)| word | u64::from(label.lsb()) << b)
    };
    shape.words.iter().map(&mut word).collect()
}

/// Garbler: draws the shares, and appends the ciphertexts and the masked tables. The shares are those that go with the
/// colours of the evaluator's labels.
pub(super) fn garble(
    job: &Job<'_>,
    prg: &mut Prg,
    shares: &mut [Zeroizing<Vec<u64>>],
    gates: &mut Vec<Block>,
    table: &mut Vec<u8>,
) {
    for (share, &bits) in shares.iter_mut().zip(&job.shape.words) {
        prg.fill_masked(&mut share[job.lookups.clone()], bits);
    }
    let zeros = garble_labels(job, shares, gates, table);
    for (i, zeros) in job.lookups.clone().zip(&zeros) {
        let colours = colour_words(job.shape, zeros);
        let each = shares.iter_mut().zip(colours);
        each.for_each(|(share, colours)| share[i] ^= colours);
    }
}

/// Garbler: for each lookup the labels of 0 of `F`'s bits, given the shares ρ.
fn garble_labels(
    job: &Job<'_>,
    shares: &[Zeroizing<Vec<u64>>],
    gates: &mut Vec<Block>,
    table: &mut Vec<u8>,
) -> Vec<Zeroizing<Vec<Block>>> {
    let (shape, k, count) = (job.shape, job.shape.k(), job.lookups.len());
    let (tables, n) = (shape.words.len(), 1 << k);
    let mut hot = garble_trees(job, gates);
    // F, then F ⊕ R, of lookup after lookup; word `j` of table `t` is number `j·tables + t`.
    let mut masked = Zeroizing::new(vec![0; count * n * tables]);
    for (t, shares) in shares.iter().enumerate() {
        for (i, &share) in shares[job.lookups.clone()].iter().enumerate() {
            for (j, &entry) in job.moved[t][i * n..][..n].iter().enumerate() {
                masked[(i * n + j) * tables + t] = entry ^ share;
            }
        }
    }
    add_masks(job, &mut masked);
    let mut zeros = vec![Zeroizing::new(vec![Block::ZERO; shape.output_bits()]); count];
    for (i, (hot, zeros)) in hot.iter().zip(&mut zeros).enumerate() {
        let masked = &masked[i * n * tables..][..n * tables];
        select(shape, |at| masked[at], &hot.0, zeros);
    }
    for t in (0..k).rev() {
        garble_level(job, t, &hot, &mut zeros, gates);
        hot.iter_mut().for_each(OneHot::fold);
    }
    for (t, &bits) in shape.words.iter().enumerate() {
        let words: Vec<u64> = masked.iter().skip(t).step_by(tables).copied().collect();
        pack::pack_append(&words, bits, table);
    }
    zeros
}

/// Garbler: expands the trees of all lookups and appends their ciphertexts, level by level.
fn garble_trees(job: &Job<'_>, gates: &mut Vec<Block>) -> Vec<OneHot> {
    let (k, count) = (job.shape.k(), job.lookups.len());
    let start = gates.len();
    gates.resize(start + tree_blocks(k) * count, Block::ZERO);
    let mut nodes = Zeroizing::new(vec![Block::ZERO; TREES << k]);
    let mut sums = vec![PerTree::default(); k - 1];
    let mut hot = Vec::with_capacity(count);
    for group in (0..count).step_by(TREES) {
        let size = TREES.min(count - group);
        let mut first = PerTree::default();
        let labels = job.wires[0][group..].iter();
        // The left node is the label that an evaluator on the right has.
        let each = first.iter_mut().zip(labels);
        each.for_each(|(first, &label)| *first = label ^ job.delta);
        ggm::expand(&first, job.delta, k as u32, &mut nodes, &mut sums);
        for (level, sums) in sums.iter().enumerate() {
            let labels = &job.wires[level + 1][group..];
            for (i, (&sum, &label)) in sums.iter().zip(labels).enumerate() {
                gates[start + level * count + group + i] = sum ^ job.delta ^ label;
            }
        }
        hot.extend((0..size).map(|tree| one_hot(&nodes, tree)));
    }
    hot
}

/// The leaves of one of eight trees.
fn one_hot(nodes: &[Block], tree: usize) -> OneHot {
    let leaves = nodes.iter().skip(tree).step_by(TREES);
    OneHot(Zeroizing::new(leaves.copied().collect()))
}

/// Garbler: `F ⊕ R`.
fn add_masks(job: &Job<'_>, masked: &mut [u64]) {
    let (shape, k) = (job.shape, job.shape.k());
    let (tables, n) = (shape.words.len(), 1usize << k);
    for t in 0..k {
        let level = Level::new(shape, t);
        for (colour, offset) in [(0, Block::ZERO), (1, job.delta)] {
            let pads = level.expand(t, &job.wires[t], offset, &job.lookups);
            let each = masked.chunks_exact_mut(n * tables);
            for (masked, pad) in each.zip(pads.chunks_exact(level.width)) {
                for j in (0..n).filter(|j| j >> t & 1 == colour) {
                    for table in 0..tables {
                        let word = pad_word(pad, (j & (level.half - 1)) * tables + table);
                        masked[j * tables + table] ^= word & mask(shape.words[table]);
                    }
                }
            }
        }
    }
}

/// Garbler: the half gates of a level; adds their labels of 0.
fn garble_level(
    job: &Job<'_>,
    t: usize,
    hot: &[OneHot],
    zeros: &mut [Zeroizing<Vec<Block>>],
    gates: &mut Vec<Block>,
) {
    let level = Level::new(job.shape, t);
    let pads =
        [Block::ZERO, job.delta].map(|offset| level.expand(t, &job.wires[t], offset, &job.lookups));
    for (i, (hot, zeros)) in hot.iter().zip(zeros).enumerate() {
        let (left, right) = hot.0.split_at(level.half);
        let mut sides = [left, right].into_iter().zip(&pads).map(|(labels, pads)| {
            let (words, hashes) = pads[i * level.width..][..level.width].split_at(level.words);
            let mut sums = Zeroizing::new(hashes.to_vec());
            select(job.shape, |at| pad_word(words, at), labels, &mut sums);
            sums
        });
        let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
            return;
        };
        Block::xor_into(zeros, &left);
        gates.extend(
            left.iter()
                .zip(right.iter())
                .map(|(&left, &right)| left ^ right),
        );
    }
}

/// Evaluator: the colours of the outputs' labels.
pub(super) fn evaluate(
    shape: &Shape,
    wires: &Wires,
    gates: &[Block],
    table: &[u8],
    lookups: Range<usize>,
    outputs: &mut [Vec<u64>],
) {
    let labels = evaluate_labels(shape, wires, gates, table, &lookups);
    for (i, labels) in lookups.zip(&labels) {
        let colours = colour_words(shape, labels);
        let each = outputs.iter_mut().zip(colours);
        each.for_each(|(outputs, colours)| outputs[i] = colours);
    }
}

/// Evaluator: for each lookup the labels of `F(y)`'s bits.
fn evaluate_labels(
    shape: &Shape,
    wires: &Wires,
    mut gates: &[Block],
    mut table: &[u8],
    lookups: &Range<usize>,
) -> Vec<Zeroizing<Vec<Block>>> {
    let (k, count, tables) = (shape.k(), lookups.len(), shape.words.len());
    let (tree, rest) = gates.split_at(tree_blocks(k) * count);
    gates = rest;
    let mut hot = evaluate_trees(shape, wires, tree);
    let mut masked = vec![0; count << k];
    let mut words = vec![0; masked.len() * tables];
    for (t, &bits) in shape.words.iter().enumerate() {
        let (section, rest) = table.split_at(pack::packed_len(masked.len(), bits));
        table = rest;
        pack::unpack_into(section, bits, &mut masked);
        let out = words.iter_mut().skip(t).step_by(tables);
        out.zip(&masked).for_each(|(out, &word)| *out = word);
    }
    let mut labels = vec![Zeroizing::new(vec![Block::ZERO; shape.output_bits()]); count];
    for (i, (hot, labels)) in hot.iter().zip(&mut labels).enumerate() {
        let words = &words[(i << k) * tables..];
        select(shape, |at| words[at], &hot.0, labels);
    }
    for t in (0..k).rev() {
        let (own, rest) = gates.split_at(count * shape.output_bits());
        gates = rest;
        evaluate_level(shape, t, (wires, &hot), lookups, own, &mut labels);
        hot.iter_mut().for_each(OneHot::fold);
    }
    labels
}

/// Evaluator: the leaves of all lookups' trees, with `K_y ⊕ Δ` at `y`.
fn evaluate_trees(shape: &Shape, wires: &Wires, gates: &[Block]) -> Vec<OneHot> {
    let (k, count) = (shape.k(), wires[0].len());
    let mut nodes = Zeroizing::new(vec![Block::ZERO; TREES << k]);
    let mut known = vec![PerTree::default(); k];
    let mut sides = vec![PerTree::default(); k];
    let mut hot = Vec::with_capacity(count);
    for group in (0..count).step_by(TREES) {
        let size = TREES.min(count - group);
        for level in 0..k {
            for i in 0..size {
                let label = wires[level][group + i];
                known[level][i] = match level {
                    0 => label,
                    _ => label ^ gates[(level - 1) * count + group + i],
                };
                sides[level][i] = u8::from(!label.lsb());
            }
        }
        ggm::reconstruct(&known, &sides, k as u32, Leaf::Correlated, &mut nodes);
        hot.extend((0..size).map(|tree| one_hot(&nodes, tree)));
    }
    hot
}

/// Evaluator: the half gates of a level; adds their labels.
fn evaluate_level(
    shape: &Shape,
    t: usize,
    (wires, hot): (&Wires, &[OneHot]),
    lookups: &Range<usize>,
    gates: &[Block],
    labels: &mut [Zeroizing<Vec<Block>>],
) {
    let level = Level::new(shape, t);
    let pads = level.expand(t, &wires[t], Block::ZERO, lookups);
    let each = labels
        .iter_mut()
        .zip(gates.chunks_exact(shape.output_bits()));
    for (i, ((labels, gates), pads)) in each.zip(pads.chunks_exact(level.width)).enumerate() {
        // The colours are this party's to know, and uniform.
        let colour = colours(wires, i) as usize >> t & 1;
        let (words, hashes) = pads.split_at(level.words);
        let side = &hot[i].0[colour * level.half..][..level.half];
        select(shape, |at| pad_word(words, at), side, labels);
        Block::xor_into(labels, hashes);
        if colour == 1 {
            Block::xor_into(labels, gates);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::garbled::Garbling;
    use crate::garbled::prepare::move_by_each;
    use crate::{Index, Sharing};

    /// What makes it garbling: all 128 bits are those of a label, not the colour alone.
    #[test]
    fn outputs_are_labels_under_the_same_delta() {
        let mut prg = Prg::from_seed(Block(5));
        let delta = Block(prg.next_block().0 | 1);
        for k in 1..=5 {
            let (n, count) = (1usize << k, 19);
            let shape = Shape {
                garbling: Garbling::LogRow,
                log_entries: k as u32,
                index: Index::Boolean,
                words: vec![5, 2],
            };
            let tables: Vec<Vec<u64>> = vec![
                (0..n as u64).map(|i| i * 7 % 32).collect(),
                (0..n as u64).map(|i| i % 3).collect(),
            ];
            let mut wire = || {
                let mut labels = Zeroizing::new(vec![Block::ZERO; count]);
                prg.fill_blocks(&mut labels);
                labels.iter_mut().for_each(|label| label.0 &= !1);
                labels
            };
            let wires: Wires = (0..k).map(|_| wire()).collect();
            let job = Job {
                shape: &shape,
                sharing: Sharing::Xor,
                wires: wires.clone(),
                delta,
                moved: tables
                    .iter()
                    .map(|t| move_by_each(t, &vec![0; count]))
                    .collect(),
                lookups: 0..count,
            };
            let shares = vec![Zeroizing::new(vec![0; count]); 2];
            let (mut gates, mut table) = (Vec::new(), Vec::new());
            let zeros = garble_labels(&job, &shares, &mut gates, &mut table);
            // Lookup `i` is of entry `i`.
            let mut active = wires.clone();
            for (t, wire) in active.iter_mut().enumerate() {
                let each = wire.iter_mut().enumerate();
                each.for_each(|(i, label)| *label ^= delta.keep_if((i >> t) as u8));
            }
            let labels = evaluate_labels(&shape, &active, &gates, &table, &(0..count));
            for i in 0..count {
                let entry = tables[0][i % n] | tables[1][i % n] << 5;
                for b in 0..7 {
                    let expected = zeros[i][b] ^ delta.keep_if((entry >> b) as u8);
                    assert!(labels[i][b] == expected, "k = {k}, lookup {i}, bit {b}");
                }
            }
        }
    }
}
