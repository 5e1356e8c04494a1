//! Consistency checks of SoftSpoken against a receiver that cheats.
//!
//! Source: Roy, "SoftSpokenOT", CRYPTO 2022: §5 (trees), §4.1 and Figure 8 (rows).
//!
//! **Trees.** Every leaf is hashed to a seed and 256 bits `t_y`. The party that made the trees sends
//! `⊕_y t_y` a tree and a digest of all `t_y`; the other fills in its missing `t` and compares. Leaves
//! that depend on Δ would give another digest, but where a guess of bits of Δ was right.
//!
//! **Rows.** A linear universal hash of every plane, `h(p) = Σ_j χ^{63−j}·p_j` over GF(2^128) on the plane's 64
//! blocks. The receiver sends `h` of its choices and of its planes; the sender compares with `h` of its own:
//!
//! ```text
//! receiver (t_j = q_j ⊕ Δ_j·x)                    sender (q_j, Δ)
//! χ = SHA-256(trees, chunk, corrections)          χ likewise
//! h(x), h(t_1), …, h(t_127)   ──▶                 h(q_j) = h(t_j) ⊕ Δ_j·h(x)  for all j, or stop
//! ```
//! The last block of a plane has the weight 1: its 128 COTs mask `h` and are not handed out. Two different
//! planes collide with probability 63/2^128 a challenge. Whoever corrects two pieces to different choices has to guess all bits of
//! Δ of one of them.
//!
//! Bits: `256·128/k + 256` at set-up; 16 384 a chunk. No round: the challenge is the random oracle's.

use sha2::{Digest, Sha256};
use volvelle_net::{Channel, Label};
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, gf128};
use zeroize::Zeroizing;

use super::{PLANE, Piece};
use crate::OtError;
use crate::base::COUNT;

/// COTs of a chunk that mask its check.
pub(super) const SACRIFICED: usize = 128;
const DIGEST: usize = 32;
const TREES: Label = Label::new("ot/softspoken/trees");
const ROWS: Label = Label::new("ot/softspoken/rows");

/// Bits of the trees' check.
pub(super) const fn tree_bits(piece: Piece) -> u64 {
    8 * (32 * piece.pieces() + DIGEST) as u64
}

/// Bits of the check of a chunk.
pub(super) const CHUNK_BITS: u64 = 128 * COUNT as u64;

/// Drops the rows of the planes' last block, which mask the check, from a chunk's.
pub(super) fn drop_masks(rows: &mut Vec<Block>) {
    // The transpose interleaves four blocks: of the last 512 rows every fourth is of the last block.
    let start = rows.len() - 4 * SACRIFICED;
    let tail = &mut rows[start..];
    for b in 0..SACRIFICED {
        tail.copy_within(4 * b..4 * b + 3, 3 * b);
    }
    rows.truncate(start + 3 * SACRIFICED);
}

/// What a leaf becomes: its seed and `t_y`.
type Leaf = [Block; 3];

fn split_leaves(leaves: &[Block]) -> Zeroizing<Vec<Leaf>> {
    let mut out = Zeroizing::new(vec![[Block::ZERO; 3]; leaves.len()]);
    Tccr { first: 0, width: 3 }.hash(leaves, Block::ZERO, out.as_flattened_mut());
    out
}

fn digest(leaves: &[Leaf]) -> [u8; DIGEST] {
    let mut hash = Sha256::new_with_prefix(b"volvelle SoftSpoken trees v1");
    for leaf in leaves {
        hash.update(Block::as_bytes(&leaf[1..]));
    }
    hash.finalize().into()
}

fn sum(tree: &[Leaf]) -> [Block; 2] {
    tree.iter()
        .fold([Block::ZERO; 2], |[a, b], leaf| [a ^ leaf[1], b ^ leaf[2]])
}

/// What stays of a session's set-up: the challenges of all chunks depend on it.
pub(super) struct Rows {
    transcript: [u8; DIGEST],
    chunk: u64,
}

/// Receiver: sends what shows that its trees are trees; replaces the leaves by their seeds.
pub(super) fn prove_trees(
    ch: &mut Channel,
    piece: Piece,
    leaves: &mut [Block],
) -> Result<Rows, OtError> {
    let split = split_leaves(leaves);
    let transcript = digest(&split);
    for tree in split.chunks_exact(piece.leaves()) {
        ch.send(TREES, Block::as_bytes(&sum(tree)))?;
    }
    ch.send(TREES, &transcript)?;
    for (leaf, split) in leaves.iter_mut().zip(split.iter()) {
        *leaf = split[0];
    }
    Ok(Rows {
        transcript,
        chunk: 0,
    })
}

/// Sender: checks trees punctured at `points`, whose leaf there is arbitrary; replaces the leaves by their seeds.
pub(super) fn check_trees(
    ch: &mut Channel,
    piece: Piece,
    points: &[u32],
    leaves: &mut [Block],
) -> Result<Rows, OtError> {
    let mut split = split_leaves(leaves);
    for (tree, &point) in split.chunks_exact_mut(piece.leaves()).zip(points) {
        let mut missing = [Block::ZERO; 2];
        ch.recv(TREES, Block::as_bytes_mut(&mut missing))?;
        let seen = sum(tree);
        for (y, leaf) in tree.iter_mut().enumerate() {
            let there = equal(y as u32, point);
            // The sum holds the arbitrary leaf once; adding that leaf to itself takes it out.
            let whole = [missing[0] ^ seen[0], missing[1] ^ seen[1]];
            leaf[1] ^= whole[0].keep_if(there);
            leaf[2] ^= whole[1].keep_if(there);
        }
    }
    let mut told = [0; DIGEST];
    ch.recv(TREES, &mut told)?;
    let transcript = digest(&split);
    if transcript != told {
        return Err(OtError::Cheating {
            what: "the trees of the OT extension",
        });
    }
    for (leaf, split) in leaves.iter_mut().zip(split.iter()) {
        *leaf = split[0];
    }
    Ok(Rows {
        transcript,
        chunk: 0,
    })
}

/// 1 if `a == b`, else 0, without a branch.
fn equal(a: u32, b: u32) -> u8 {
    (u64::from(a ^ b).wrapping_sub(1) >> 63) as u8
}

impl Rows {
    /// The weights of a plane's blocks.
    fn weights(&mut self, corrections: &[Block]) -> Vec<Block> {
        let digest = Sha256::new_with_prefix(b"volvelle SoftSpoken rows v1")
            .chain_update(self.transcript)
            .chain_update(self.chunk.to_le_bytes())
            .chain_update(Block::as_bytes(corrections))
            .finalize();
        self.chunk += 1;
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        let mut weights = gf128::powers(Block::from_bytes(half), PLANE);
        weights.reverse();
        weights
    }

    fn hash(&mut self, corrections: &[Block], planes: &[Block]) -> Zeroizing<Vec<Block>> {
        let weights = self.weights(corrections);
        Zeroizing::new(
            planes
                .chunks_exact(PLANE)
                .map(|p| gf128::dot(&weights, p))
                .collect(),
        )
    }

    /// Receiver: sends the hashes of a chunk's planes, plane 0 being the choices.
    pub(super) fn prove(
        &mut self,
        ch: &mut Channel,
        corrections: &[Block],
        planes: &[Block],
    ) -> Result<(), OtError> {
        Ok(ch.send(ROWS, Block::as_bytes(&self.hash(corrections, planes)))?)
    }

    /// Sender: compares with the hashes of its own planes.
    pub(super) fn check(
        &mut self,
        ch: &mut Channel,
        delta: Block,
        corrections: &[Block],
        planes: &[Block],
    ) -> Result<(), OtError> {
        let mut told = [Block::ZERO; COUNT];
        ch.recv(ROWS, Block::as_bytes_mut(&mut told))?;
        let own = self.hash(corrections, planes);
        let choices = told[0];
        let mut apart = 0;
        for (j, (own, told)) in own.iter().zip(told).enumerate() {
            apart |= (*own ^ told ^ choices.keep_if((delta.0 >> j & 1) as u8)).0;
        }
        if apart != 0 {
            return Err(OtError::Cheating {
                what: "the rows of the OT extension",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_net::testing::run_pair;
    use volvelle_prim::Prg;

    /// A chunk as both sides have it, the receiver with choice vector `1` for the planes `cheated` and `0` for the others.
    struct Chunk {
        choices: [Vec<Block>; 2],
        receiver: Vec<Block>,
        sender: Vec<Block>,
    }

    fn chunk(delta: Block, cheated: std::ops::Range<usize>) -> Chunk {
        let mut prg = Prg::from_seed(Block(9));
        let mut random = |len| {
            let mut out = vec![Block::ZERO; len];
            prg.fill_blocks(&mut out);
            out
        };
        let choices = [random(PLANE), random(PLANE)];
        let mut receiver = random(COUNT * PLANE);
        receiver[..PLANE].copy_from_slice(&choices[0]);
        let mut sender = receiver.clone();
        for (j, plane) in sender.chunks_exact_mut(PLANE).enumerate() {
            let x = &choices[usize::from(cheated.contains(&j))];
            super::super::correct(plane, x, (delta.0 >> j & 1) as u8);
        }
        Chunk {
            choices,
            receiver,
            sender,
        }
    }

    fn passes(delta: Block, chunk: &Chunk) -> bool {
        let corrections = vec![Block(5); 3 * PLANE];
        let rows = || Rows {
            transcript: [7; DIGEST],
            chunk: 3,
        };
        let ((), checked) = run_pair(
            |ch| {
                rows().prove(ch, &corrections, &chunk.receiver).unwrap();
                ch.flush().unwrap();
            },
            |ch| rows().check(ch, delta, &corrections, &chunk.sender),
        );
        assert!(matches!(checked, Ok(()) | Err(OtError::Cheating { .. })));
        checked.is_ok()
    }

    /// Every challenge is computed as it should be; only the choices differ from piece to piece.
    #[test]
    fn a_receiver_with_other_choices_in_a_piece_passes_only_with_a_right_guess_of_its_bits_of_delta()
     {
        let delta = Block(Prg::from_os().next_block().0 | 1 | 1 << 40);
        assert!(passes(delta, &chunk(delta, 0..0)));
        let mut cheat = chunk(delta, 40..44);
        assert!(!passes(delta, &cheat));
        // It guesses bits 40 to 43 of Δ and changes what it says of those planes to suit.
        for guess in 0..16u128 {
            let honest = cheat.receiver.clone();
            for j in 40..44 {
                let plane = &mut cheat.receiver[j * PLANE..][..PLANE];
                let bit = (guess >> (j - 40) & 1) as u8;
                super::super::correct(plane, &cheat.choices[0], bit);
                super::super::correct(plane, &cheat.choices[1], bit);
            }
            assert_eq!(
                passes(delta, &cheat),
                guess == delta.0 >> 40 & 15,
                "guess {guess}"
            );
            cheat.receiver = honest;
        }
    }

    #[test]
    fn rows_of_the_block_that_masks_the_check_are_dropped_and_no_others() {
        let mut planes = vec![Block::ZERO; COUNT * PLANE];
        planes
            .iter_mut()
            .skip(PLANE - 1)
            .step_by(PLANE)
            .for_each(|mask| *mask = Block(u128::MAX));
        for (inside, expected) in [(0, Block::ZERO), (u128::MAX, Block(u128::MAX))] {
            // Once the masks are ones among zeros, once zeros among ones.
            let planes: Vec<Block> = planes.iter().map(|b| Block(b.0 ^ inside)).collect();
            let mut rows = vec![Block::ZERO; planes.len()];
            volvelle_prim::transpose::transpose_columns(&planes, &mut rows);
            drop_masks(&mut rows);
            assert_eq!(rows.len(), Piece::chunk_cots(crate::Security::Malicious));
            assert!(rows.iter().all(|&row| row == expected));
        }
    }

    #[test]
    fn a_single_bit_in_a_plane_is_noticed() {
        let delta = Block(1);
        let mut cheat = chunk(delta, 0..0);
        cheat.sender[77 * PLANE + 63].0 ^= 1 << 100;
        assert!(!passes(delta, &cheat));
    }
}
