//! One-hot correlations by secret-shared rotation (ROTL, PoPETs 2026, §4.2 and Fig. 9, 10).
//!
//! `C` has the root of a punctured PRF with `n` leaves, `S` all leaves but one, at a random point
//! `s`. Leaf `i` gives a row `d_i ∈ {0,1}^n`; `R_t` rotates a row up by `t`. `C` computes the sums
//! `r = ⊕ d_i` and `a = ⊕ R_{−i}(d_i)`, `S` the same sums `r*`, `a*` with any constant in the place
//! of `d_s`. `C` sends a one-hot vector under the mask `a`; for `S`, `R_s(message ⊕ a*) ⊕ r*` is
//! the one-hot at `s_C + s`, masked by the missing row twice, hence not at all, and by `r`, which
//! is `C`'s share.
//!
//! ```text
//!     C                                              S
//!     punctured PRF, C knows all leaves   ◀──▶   point s, all leaves but s
//!     s_C ∈ Z_n random
//!     m = onehot(s_C) ⊕ a           (n bits)  ────────▶
//!     e_C = r,  share s_C                            e_S = R_s(m ⊕ a*) ⊕ r*,  share s
//! ```
//!
//! For a boolean index the permutations `j ↦ j ⊕ i` take the rotations' place, and `r = s_C ⊕ s`.
//!
//! Rounds: 1. Bits: `128·(k − 1)` of the punctured PRF and `n`, all from `C`. Local computing: `n +
//! n²/128` AES and the folding of an `n × n` bit matrix, `n²/64` word operations, never stored for
//! more than one lookup.
//!
//! Security (semi-honest): `S` sees `m`, which `d_s`, pseudorandom to it, masks; `C` sees nothing,
//! and does not know the punctured point.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::fold::{self, row_words};
use volvelle_prim::{Block, Lines, Prg, mask};
use zeroize::Zeroizing;

use crate::exchange::{append_words, ranges, read_words};
use crate::onehot::OneHots;
use crate::{Index, LutError};

const LABEL: Label = Label::new("lut/rotation");

/// Lookups a frame; a multiple of 8. An agreement parameter.
const CHUNK: usize = 512;

/// What rotation sends and consumes for a batch.
pub(crate) fn cost(log_entries: u32, batch: usize) -> Cost {
    let trees = batch as u64 * u64::from(log_entries);
    let messages = 8 * (batch << log_entries).div_ceil(8) as u64;
    Cost {
        client_bits: 128 * (trees - batch as u64) + messages,
        rounds: 1,
        cots_client: trees,
        ..Cost::default()
    }
}

/// Makes a batch.
pub(crate) fn prepare(
    ch: &mut Channel,
    ot: &mut Ot,
    log_entries: u32,
    index: Index,
    batch: usize,
    prg: &mut Prg,
) -> Result<OneHots, LutError> {
    let words = row_words(log_entries);
    let mut party = Rotation {
        log_entries,
        index,
        rows: Lines::zeros(batch * words),
        positions: Lines::zeros(batch),
        diagonals: Zeroizing::new(vec![0; CHUNK.min(batch) * words]),
    };
    for lookups in ranges(batch, CHUNK) {
        match ch.role() {
            Role::Client => party.client(ch, ot, lookups, prg)?,
            Role::Server => party.server(ch, ot, lookups)?,
        }
    }
    Ok(OneHots::new(
        log_entries,
        index,
        party.rows,
        party.positions,
    ))
}

struct Rotation {
    log_entries: u32,
    index: Index,
    rows: Lines<u64>,
    positions: Lines<u32>,
    /// The sums `a` of the lookups of a chunk.
    diagonals: Zeroizing<Vec<u64>>,
}

impl Rotation {
    fn client(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        lookups: Range<usize>,
        prg: &mut Prg,
    ) -> Result<(), LutError> {
        let (k, words) = (self.log_entries, row_words(self.log_entries));
        let mut points = Zeroizing::new(vec![0; lookups.len()]);
        prg.fill_masked(&mut points, k);
        let rows = &mut self.rows[lookups.start * words..];
        let diagonals = &mut self.diagonals[..lookups.len() * words];
        ot.send_pprf(ch, k, leaf_blocks(k), lookups.len(), &mut |i, leaves| {
            let at = i * words..(i + 1) * words;
            sums(
                leaves,
                k,
                self.index,
                &mut rows[at.clone()],
                &mut diagonals[at],
            );
        })?;
        for (diagonal, &point) in diagonals.chunks_exact_mut(words).zip(points.iter()) {
            xor_one_hot(diagonal, point);
        }
        let mut frame = Vec::new();
        append_rows(diagonals, k, lookups.len(), &mut frame);
        ch.send(LABEL, &frame)?;
        let positions = &mut self.positions[lookups];
        positions
            .iter_mut()
            .zip(points.iter())
            .for_each(|(p, &point)| *p = point as u32);
        Ok(())
    }

    fn server(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        lookups: Range<usize>,
    ) -> Result<(), LutError> {
        let (k, words) = (self.log_entries, row_words(self.log_entries));
        let rows = &mut self.rows[lookups.start * words..];
        let diagonals = &mut self.diagonals[..lookups.len() * words];
        let positions = &mut self.positions[lookups.clone()];
        ot.recv_pprf(
            ch,
            k,
            leaf_blocks(k),
            lookups.len(),
            &mut |i, point, leaves| {
                let at = i * words..(i + 1) * words;
                sums(
                    leaves,
                    k,
                    self.index,
                    &mut rows[at.clone()],
                    &mut diagonals[at],
                );
                positions[i] = point as u32;
            },
        )?;
        let mut frame = vec![0; (lookups.len() << k).div_ceil(8)];
        ch.recv(LABEL, &mut frame)?;
        xor_rows(&frame, k, diagonals);
        let mut moved = Zeroizing::new(vec![0; words]);
        let shares = rows
            .chunks_exact_mut(words)
            .zip(diagonals.chunks_exact(words));
        for ((row, diagonal), &point) in shares.zip(positions.iter()) {
            match self.index {
                Index::Arithmetic => fold::rotate(diagonal, k, point as usize, &mut moved),
                Index::Boolean => fold::xor_permute(diagonal, k, point as usize, &mut moved),
            }
            row.iter_mut()
                .zip(moved.iter())
                .for_each(|(row, &moved)| *row ^= moved);
        }
        Ok(())
    }
}

/// Blocks that a leaf is expanded to.
const fn leaf_blocks(log_entries: u32) -> usize {
    (1usize << log_entries).div_ceil(128)
}

/// The row sum `⊕ d_i` and the sum `⊕ R_{−i}(d_i)` of one lookup. Uses `leaves` as scratch.
fn sums(
    leaves: &mut [Block],
    log_entries: u32,
    index: Index,
    row: &mut [u64],
    diagonal: &mut [u64],
) {
    let words = Block::as_words_mut(leaves);
    let matrix = match log_entries {
        7.. => words,
        // A leaf is one block, of which the row is the low bits.
        _ => {
            let n = 1 << log_entries;
            for i in 0..n {
                words[i] = words[2 * i] & mask(1 << log_entries);
            }
            &mut words[..n]
        }
    };
    row_sum(matrix, row);
    match index {
        Index::Arithmetic => fold::rotated_sum(matrix, log_entries, diagonal),
        Index::Boolean => fold::xored_sum(matrix, log_entries, diagonal),
    }
}

/// The sum of all rows of a matrix.
fn row_sum(matrix: &[u64], row: &mut [u64]) {
    /// With the row in registers.
    fn sized<const W: usize>(matrix: &[u64], row: &mut [u64]) {
        let mut sum = [0; W];
        for d in matrix.as_chunks::<W>().0 {
            sum.iter_mut().zip(d).for_each(|(sum, &d)| *sum ^= d);
        }
        row.copy_from_slice(&sum);
    }
    match row.len() {
        1 => sized::<1>(matrix, row),
        2 => sized::<2>(matrix, row),
        4 => sized::<4>(matrix, row),
        8 => sized::<8>(matrix, row),
        words => {
            row.fill(0);
            for d in matrix.chunks_exact(words) {
                row.iter_mut().zip(d).for_each(|(row, &d)| *row ^= d);
            }
        }
    }
}

/// `row ⊕= onehot(point)`, touching every word alike.
fn xor_one_hot(row: &mut [u64], point: u64) {
    for (j, word) in row.iter_mut().enumerate() {
        let difference = (point >> 6) ^ j as u64;
        let here = u64::from(difference == 0);
        *word ^= here << (point & 63);
    }
}

/// Appends rows of `2^log_entries` bits, packed.
fn append_rows(rows: &[u64], log_entries: u32, count: usize, frame: &mut Vec<u8>) {
    if log_entries < 6 {
        volvelle_prim::pack::pack_append(rows, 1 << log_entries, frame);
    } else {
        append_words(rows.iter().copied(), count << log_entries >> 3, frame);
    }
}

/// `rows ⊕= ` the packed rows of `frame`.
fn xor_rows(frame: &[u8], log_entries: u32, rows: &mut [u64]) {
    let mut received = Vec::new();
    if log_entries < 6 {
        received.resize(rows.len(), 0);
        volvelle_prim::pack::unpack_into(frame, 1 << log_entries, &mut received);
    } else {
        read_words(frame, &mut received);
    }
    rows.iter_mut()
        .zip(&received)
        .for_each(|(row, &r)| *row ^= r);
}
