//! Punctured half-trees in malicious security: all trees of a batch are exchanged and checked, then grown again
//! as often as needed.
//!
//! Source: the message is that of Guo et al., "Half-Tree", EUROCRYPT 2023, Figure 6, level 1 included; the check that of
//! Yang et al., "Ferret", CCS 2020, Figure 7, one for the whole batch. With leaves `v` (sender) and
//! `w = v ⊕ (Δ at α)` (receiver) of trees `t`, weights `β^{t+1}·γ^j` for leaf `j` of tree `t`, and 128 more COTs
//! `r* = q* ⊕ x*·Δ` packed into elements of GF(2^128), `Z = Y ⊕ x*·Δ`:
//!
//! ```text
//! sender                                                        receiver
//! k ← random;  c_1 = k ⊕ q_1, c_2 … c_d of every tree   ──▶
//!                                ◀── γ, β, x' = φ ⊕ x* ──       φ = Σ_t β^{t+1} γ^{α_t}
//! H(Σ weights·v ⊕ Y ⊕ x'·Δ)      ──▶                            = H(Σ weights·w ⊕ Z), or stop
//! ```
//! A sender whose sums are wrong passes only for those points at which they do no harm, so it may guess something about the
//! points and is caught if wrong: one bit on average over a session, in the LPN assumption (`docs/security.md`). Two different
//! vectors of leaves pass alike with probability at most `(2^d + t)/2^128` over γ and β.
//!
//! **Level 1.** In `super` its left node is `q_1` itself. A receiver that cheats may have had a say in `q_1 ⊕ b_1·Δ` and, by
//! making two trees begin alike, learn both sums of a level and with them Δ; a fresh `k` a tree leaves it none.
//!
//! **Why not group by group.** A check costs a round trip and 128 COTs; with one an iteration that is 0.02 ‰ of the 2^17 set, a
//! group of eight trees would wait for the network each time. Growing the trees again (one AES a leaf and pass: three passes at
//! the sender, two at the receiver) is cheaper than keeping the leaves, 150 MB in the 2^17 set; kept are the roots, or
//! `d` blocks a tree.
//!
//! Bits: 128·d a tree, 640 a check. Two rounds more.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use volvelle_net::{Channel, Label};
use volvelle_prim::ggm::{self, Finish, Leaf, PerTree, TREES};
use volvelle_prim::{Block, Prg, gf128};
use zeroize::Zeroizing;

use super::{SUMS, lanes};
use crate::OtError;

/// COTs that a check consumes.
pub(crate) const CHECK_COTS: usize = 128;
/// Bits that a check sends, the trees' level-1 message excluded.
pub(crate) const CHECK_BITS: u64 = 3 * 128 + 256;

const CHALLENGE: Label = Label::new("ot/trees/challenge");
const ANSWER: Label = Label::new("ot/trees/answer");

/// COTs of every group of up to eight trees of a batch.
fn groups(cots: &[Block], depth: u32) -> impl Iterator<Item = &[Block]> {
    cots.chunks(TREES * depth as usize)
}

/// Both sides' running sums of the check.
struct Tally {
    gamma: Block,
    beta: Block,
    /// `γ^j`.
    weights: Vec<Block>,
    /// `β^{t+1}` of the last tree added.
    tree_weight: Block,
    sum: Block,
    /// The receiver's `φ`.
    points: Block,
}

impl Tally {
    fn new([gamma, beta]: [Block; 2], depth: u32) -> Self {
        let weights = gf128::powers(gamma, 1 << depth);
        let (sum, points) = (Block::ZERO, Block::ZERO);
        Self {
            gamma,
            beta,
            weights,
            tree_weight: Block(1),
            sum,
            points,
        }
    }

    /// The first `used` trees of a group, and at the receiver their points.
    fn add(&mut self, nodes: &[Block], used: usize, points: Option<&PerTree<u64>>) {
        let depth = self.weights.len().trailing_zeros();
        let sums = gf128::dot_lanes(&self.weights, nodes);
        for (t, &sum) in sums[..used].iter().enumerate() {
            self.tree_weight = gf128::mul(self.tree_weight, self.beta);
            self.sum ^= gf128::mul(self.tree_weight, sum);
            if let Some(points) = points {
                let at = gf128::power(self.gamma, points[t], depth);
                self.points ^= gf128::mul(self.tree_weight, at);
            }
        }
    }
}

fn answer(value: Block) -> [u8; 32] {
    Sha256::new_with_prefix(b"volvelle trees v1")
        .chain_update(value.to_bytes())
        .finalize()
        .into()
}

/// The sender's trees of a batch that the receiver has in hand.
pub(crate) struct Planted {
    delta: Zeroizing<Block>,
    depth: u32,
    /// Left level-1 nodes, eight a group.
    roots: Zeroizing<Vec<PerTree<Block>>>,
}

impl Planted {
    /// Sends the trees of a batch and answers the receiver's check. `cots`: `depth` a tree, group by group and level
    /// by level, then [`CHECK_COTS`].
    pub(crate) fn send(
        ch: &mut Channel,
        delta: Block,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Self, OtError> {
        let (cots, masks) = cots.split_at(cots.len() - CHECK_COTS);
        let mut roots = vec![[Block::ZERO; TREES]; groups(cots, depth).count()];
        prg.fill_blocks(roots.as_flattened_mut());
        let planted = Self {
            delta: Zeroizing::new(delta),
            depth,
            roots: Zeroizing::new(roots),
        };
        let mut nodes = Zeroizing::new(vec![Block::ZERO; TREES << depth]);
        for (group, cots) in groups(cots, depth).enumerate() {
            let used = cots.len() / depth as usize;
            let sums = planted.expand(group, &mut nodes);
            let left = std::iter::once(&planted.roots[group]).chain(sums.iter());
            let message: Vec<Block> = left
                .zip(cots.chunks_exact(used))
                .flat_map(|(sum, q)| sum.iter().zip(q).map(|(&sum, &q)| sum ^ q))
                .collect();
            ch.send(SUMS, Block::as_bytes(&message))?;
        }
        let mut challenge = [Block::ZERO; 3];
        ch.recv(CHALLENGE, Block::as_bytes_mut(&mut challenge))?;
        let [gamma, beta, opened] = challenge;
        let mut tally = Tally::new([gamma, beta], depth);
        for (group, cots) in groups(cots, depth).enumerate() {
            planted.grow(group, &mut nodes);
            tally.add(&nodes, cots.len() / depth as usize, None);
        }
        let value = tally.sum ^ gf128::pack(masks) ^ gf128::mul(opened, delta);
        ch.send(ANSWER, &answer(value))?;
        ch.flush()?;
        Ok(planted)
    }

    fn expand(&self, group: usize, nodes: &mut [Block]) -> Zeroizing<Vec<PerTree<Block>>> {
        let mut sums = Zeroizing::new(vec![[Block::ZERO; TREES]; self.depth as usize - 1]);
        ggm::expand(
            &self.roots[group],
            *self.delta,
            self.depth,
            nodes,
            &mut sums,
        );
        sums
    }

    /// Leaves of a group of eight; of the batch's last group, those of absent trees are arbitrary.
    pub(crate) fn grow(&self, group: usize, nodes: &mut [Block]) {
        self.expand(group, nodes);
    }
}

/// The receiver's trees of a batch, checked.
pub(crate) struct Punctured {
    depth: u32,
    /// What [`ggm::reconstruct`] wants of every group, `depth` levels each.
    known: Zeroizing<Vec<PerTree<Block>>>,
    sides: Zeroizing<Vec<PerTree<u8>>>,
}

impl Punctured {
    /// Receives the trees of a batch and checks them; `cots` as at the sender.
    pub(crate) fn receive(
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        prg: &mut Prg,
    ) -> Result<Self, OtError> {
        let (cots, masks) = cots.split_at(cots.len() - CHECK_COTS);
        let levels = groups(cots, depth).count() * depth as usize;
        let mut punctured = Self {
            depth,
            known: Zeroizing::new(Vec::with_capacity(levels)),
            sides: Zeroizing::new(Vec::with_capacity(levels)),
        };
        for cots in groups(cots, depth) {
            punctured.receive_group(ch, cots)?;
        }
        let challenge = [prg.next_block(), prg.next_block()];
        let mut tally = Tally::new(challenge, depth);
        let mut nodes = Zeroizing::new(vec![Block::ZERO; TREES << depth]);
        for (group, cots) in groups(cots, depth).enumerate() {
            let points = punctured.grow(group, Leaf::Correlated, &mut nodes);
            tally.add(&nodes, cots.len() / depth as usize, Some(&points));
        }
        let mask = masks
            .iter()
            .enumerate()
            .fold(0, |x, (i, r)| x | u128::from(r.lsb()) << i);
        let opened = tally.points ^ Block(mask);
        ch.send(
            CHALLENGE,
            Block::as_bytes(&[challenge[0], challenge[1], opened]),
        )?;
        let mut told = [0; 32];
        ch.recv(ANSWER, &mut told)?;
        let expected = answer(tally.sum ^ gf128::pack(masks));
        if !bool::from(told.ct_eq(&expected)) {
            return Err(OtError::Cheating {
                what: "a punctured tree",
            });
        }
        Ok(punctured)
    }

    fn receive_group(&mut self, ch: &mut Channel, cots: &[Block]) -> Result<(), OtError> {
        let used = cots.len() / self.depth as usize;
        let mut message = vec![Block::ZERO; cots.len()];
        ch.recv(SUMS, Block::as_bytes_mut(&mut message))?;
        let mut known = lanes(cots, self.depth, used);
        self.sides
            .extend(known.iter().map(|r| r.map(|b| u8::from(b.lsb()))));
        for (level, sums) in known.iter_mut().zip(message.chunks_exact(used)) {
            for (r, &c) in level.iter_mut().zip(sums) {
                *r ^= c;
            }
        }
        self.known.append(&mut known);
        Ok(())
    }

    /// Leaves of a group of eight; returns the points. Those of absent trees are arbitrary.
    pub(crate) fn grow(&self, group: usize, leaf: Leaf, nodes: &mut [Block]) -> PerTree<u64> {
        let (known, sides) = self.group(group);
        ggm::reconstruct(known, sides, self.depth, leaf, nodes)
    }

    /// [`Self::grow`] for correlated OTs; returns what is still to be done to the leaves.
    pub(crate) fn grow_cots(&self, group: usize, nodes: &mut [Block]) -> Finish {
        let (known, sides) = self.group(group);
        ggm::reconstruct_cots(known, sides, self.depth, nodes)
    }

    fn group(&self, group: usize) -> (&[PerTree<Block>], &[PerTree<u8>]) {
        let levels = group * self.depth as usize..(group + 1) * self.depth as usize;
        (&self.known[levels.clone()], &self.sides[levels])
    }
}

#[cfg(test)]
mod tests {
    use volvelle_net::testing::run_pair;

    use super::*;

    const DELTA: Block = Block(0x6a09_e667_f3bc_c908_b2fb_1366_ea95_7d3f);

    /// Both ends of the correlated OTs of so many trees and of their check.
    fn ideal_cots(trees: usize, depth: u32) -> [Vec<Block>; 2] {
        let mut prg = Prg::from_seed(Block(u128::from(depth)));
        let mut random = || {
            let mut out = vec![Block::ZERO; trees * depth as usize + CHECK_COTS];
            prg.fill_blocks(&mut out);
            out
        };
        let (mut sender, choices) = (random(), random());
        sender.iter_mut().for_each(|q| q.0 &= !1);
        let receive = |(&q, x): (&Block, &Block)| q ^ DELTA.keep_if(x.lsb().into());
        let receiver = sender.iter().zip(&choices).map(receive).collect();
        [sender, receiver]
    }

    /// A sender that wants to know the path of a tree's point but for its last step.
    #[derive(Clone, Copy)]
    struct Cheat {
        tree: usize,
        /// Added to the sum of the last level.
        error: Block,
        /// The path, first step lowest.
        guess: usize,
    }

    /// [`Planted::send`] but for the cheat: the last level's sum of its tree is wrong, so that the receiver's leaves are wrong at
    /// its point and at the leaf beside it; the answer is what is right if these are where the sender guesses. Returns its leaves,
    /// with the same error.
    fn send_with(
        ch: &mut Channel,
        cots: &[Block],
        depth: u32,
        cheat: Cheat,
    ) -> Result<Vec<Vec<Block>>, OtError> {
        let (cots, masks) = cots.split_at(cots.len() - CHECK_COTS);
        let mut roots = vec![[Block::ZERO; TREES]; groups(cots, depth).count()];
        Prg::from_seed(Block(3)).fill_blocks(roots.as_flattened_mut());
        let planted = Planted {
            delta: Zeroizing::new(DELTA),
            depth,
            roots: Zeroizing::new(roots),
        };
        let mut leaves = Vec::new();
        for (group, cots) in groups(cots, depth).enumerate() {
            let used = cots.len() / depth as usize;
            let mut nodes = vec![Block::ZERO; TREES << depth];
            let sums = planted.expand(group, &mut nodes);
            let left = std::iter::once(&planted.roots[group]).chain(sums.iter());
            let mut message: Vec<Block> = left
                .zip(cots.chunks_exact(used))
                .flat_map(|(sum, q)| sum.iter().zip(q).map(|(&sum, &q)| sum ^ q))
                .collect();
            if group == cheat.tree / TREES {
                let lane = cheat.tree % TREES;
                message[(depth as usize - 1) * used + lane] ^= cheat.error;
                for side in 0..2 {
                    let leaf = cheat.guess | side << (depth - 1);
                    nodes[leaf * TREES + lane] ^= cheat.error;
                }
            }
            ch.send(SUMS, Block::as_bytes(&message))?;
            leaves.push(nodes);
        }
        let mut challenge = [Block::ZERO; 3];
        ch.recv(CHALLENGE, Block::as_bytes_mut(&mut challenge))?;
        let mut tally = Tally::new([challenge[0], challenge[1]], depth);
        for (nodes, cots) in leaves.iter().zip(groups(cots, depth)) {
            tally.add(nodes, cots.len() / depth as usize, None);
        }
        let value = tally.sum ^ gf128::pack(masks) ^ gf128::mul(challenge[2], DELTA);
        ch.send(ANSWER, &answer(value))?;
        ch.flush()?;
        Ok(leaves)
    }

    /// Whether the receiver believes it; leaves of believed trees are correlated.
    fn passes(trees: usize, depth: u32, cheat: Cheat) -> bool {
        let [sender, receiver] = ideal_cots(trees, depth);
        let (planted, checked) = run_pair(
            |ch| send_with(ch, &sender, depth, cheat).unwrap(),
            |ch| Punctured::receive(ch, &receiver, depth, &mut Prg::from_os()),
        );
        let punctured = match checked {
            Ok(punctured) => punctured,
            Err(OtError::Cheating { .. }) => return false,
            Err(other) => panic!("{other}"),
        };
        for (group, mut leaves) in planted.into_iter().enumerate() {
            let mut nodes = vec![Block::ZERO; leaves.len()];
            let points = punctured.grow(group, Leaf::Correlated, &mut nodes);
            let used = TREES.min(trees - group * TREES);
            for (t, &point) in points[..used].iter().enumerate() {
                leaves[point as usize * TREES + t] ^= DELTA;
                let of = |nodes: &[Block]| {
                    let tree = nodes[t..].iter().step_by(TREES);
                    tree.copied().collect::<Vec<_>>()
                };
                assert!(of(&leaves) == of(&nodes), "tree {t} of group {group}");
            }
        }
        true
    }

    /// What the receiver's choices in the OTs of a tree make of its point.
    fn point_of(receiver: &[Block], depth: u32, trees: usize, tree: usize) -> usize {
        let group = tree / TREES;
        let used = TREES.min(trees - group * TREES);
        let cots = &receiver[group * TREES * depth as usize..];
        (0..depth as usize).fold(0, |point, level| {
            let choice = cots[level * used + tree % TREES].lsb();
            point | usize::from(!choice) << level
        })
    }

    #[test]
    fn a_sender_whose_sums_are_right_for_some_points_passes_only_if_it_has_guessed_them() {
        const COUNT: usize = 11;
        let error = Block(1 << 90 | 2);
        for depth in [2, 4] {
            let receiver = &ideal_cots(COUNT, depth)[1];
            // In depth 2 a message is right for half of the points. The first group, and the last, which is not full.
            for tree in [0, 5, 8, 10] {
                let paths = 1 << (depth - 1);
                let point = point_of(receiver, depth, COUNT, tree);
                for guess in 0..paths {
                    let cheat = Cheat { tree, error, guess };
                    assert_eq!(
                        passes(COUNT, depth, cheat),
                        guess == point % paths,
                        "depth {depth} tree {tree} guess {guess}"
                    );
                }
                let (error, guess) = (Block::ZERO, 0);
                assert!(passes(COUNT, depth, Cheat { tree, error, guess }));
            }
        }
    }
}
