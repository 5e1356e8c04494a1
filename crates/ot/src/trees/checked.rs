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
use volvelle_prim::ggm::{self, Leaf, PerTree, TREES};
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
        let levels = group * self.depth as usize..(group + 1) * self.depth as usize;
        let (known, sides) = (&self.known[levels.clone()], &self.sides[levels]);
        ggm::reconstruct(known, sides, self.depth, leaf, nodes)
    }
}
