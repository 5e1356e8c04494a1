//! Bit-sliced batches: words that hold the same bit of 64 items, so that one instruction serves 64 items.

use volvelle_prim::{LOW_HALVES, pack};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// `columns` bits for each of `batch` items. Word `g·columns + c` holds bit c of items 64g … 64g+63, item 64g
/// lowest.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sliced {
    columns: usize,
    batch: usize,
    words: Vec<u64>,
}

impl Sliced {
    pub fn zeros(columns: usize, batch: usize) -> Sliced {
        Sliced {
            columns,
            batch,
            words: vec![0; columns * batch.div_ceil(64)],
        }
    }

    /// The low `columns` bits of each value.
    pub fn from_values(values: &[u64], columns: usize) -> Sliced {
        let mut sliced = Sliced::zeros(columns, values.len());
        let mut square = [0; 64];
        for (group, values) in sliced
            .words
            .chunks_mut(columns.max(1))
            .zip(values.chunks(64))
        {
            square[..values.len()].copy_from_slice(values);
            square[values.len()..].fill(0);
            transpose64(&mut square);
            group.copy_from_slice(&square[..columns]);
        }
        sliced
    }

    pub fn group(&self, g: usize) -> &[u64] {
        &self.words[g * self.columns..][..self.columns]
    }

    pub fn group_mut(&mut self, g: usize) -> &mut [u64] {
        &mut self.words[g * self.columns..][..self.columns]
    }

    /// Bytes of the packed form.
    pub fn packed_len(columns: usize, batch: usize) -> usize {
        (columns * batch).div_ceil(8)
    }

    /// Appends the packed form: whole groups as they are, the last one cut to its items.
    pub fn pack_append(&self, out: &mut Vec<u8>) {
        let full = self.batch / 64 * self.columns;
        out.reserve(Self::packed_len(self.columns, self.batch));
        for word in &self.words[..full] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let rest = (self.batch % 64) as u32;
        if rest > 0 {
            pack::pack_append(&self.words[full..], rest, out);
        }
    }

    /// The inverse of [`Self::pack_append`]; `bytes` has exactly [`Self::packed_len`] bytes.
    pub fn unpack(columns: usize, batch: usize, bytes: &[u8]) -> Sliced {
        let mut sliced = Sliced::zeros(columns, batch);
        let full = batch / 64 * columns;
        let (whole, tail) = bytes.split_at(full * 8);
        for (word, bytes) in sliced.words.iter_mut().zip(whole.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let rest = (batch % 64) as u32;
        if rest > 0 {
            pack::unpack_into(tail, rest, &mut sliced.words[full..]);
        }
        sliced
    }
}

/// Transposes a 64×64 bit matrix: bit j of row i becomes bit i of row j.
pub(crate) fn transpose64(rows: &mut [u64; 64]) {
    for (level, mask) in LOW_HALVES.into_iter().enumerate() {
        swap_quarters(rows, 1 << level, mask);
    }
}

/// Transposes two 32×32 bit matrices, in the low and in the high halves of the rows.
pub(crate) fn transpose32_twice(rows: &mut [u64; 32]) {
    const MASKS: [u64; 5] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
    ];
    for (level, mask) in MASKS.into_iter().enumerate() {
        swap_quarters(rows, 1 << level, mask);
    }
}

/// One level of a transposition: swaps the off-diagonal quarters of every square of side 2·`step`.
#[inline(always)]
fn swap_quarters(rows: &mut [u64], step: usize, mask: u64) {
    for pair in rows.chunks_exact_mut(2 * step) {
        let (low, high) = pair.split_at_mut(step);
        for (a, b) in low.iter_mut().zip(high) {
            let t = ((*a >> step) ^ *b) & mask;
            *a ^= t << step;
            *b ^= t;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BATCHES, prg};

    #[test]
    fn transposes() {
        let mut prg = prg(3);
        let mut rows = [0; 64];
        prg.fill_u64(&mut rows);
        let before = rows;
        transpose64(&mut rows);
        let transposed = |out: &[u64], first: usize| {
            let bit = |row: u64, at: usize| row >> (first + at) & 1;
            out.iter().enumerate().all(|(j, row)| {
                before[..out.len()]
                    .iter()
                    .enumerate()
                    .all(|(i, from)| bit(*row, i) == bit(*from, j))
            })
        };
        assert!(transposed(&rows, 0));
        let mut half: [u64; 32] = std::array::from_fn(|i| before[i]);
        transpose32_twice(&mut half);
        assert!(transposed(&half, 0) && transposed(&half, 32));
    }

    #[test]
    fn packs() {
        for batch in BATCHES {
            for columns in [1, 3, 8, 32] {
                let mut prg = prg(batch);
                let mut values = vec![0; batch];
                prg.fill_masked(&mut values, columns as u32);
                let sliced = Sliced::from_values(&values, columns);
                let mut bytes = Vec::new();
                sliced.pack_append(&mut bytes);
                assert_eq!(bytes.len(), Sliced::packed_len(columns, batch));
                let back = Sliced::unpack(columns, batch, &bytes);
                for (i, v) in values.iter().enumerate() {
                    for c in 0..columns {
                        assert_eq!(back.group(i / 64)[c] >> (i % 64) & 1, v >> c & 1);
                    }
                }
            }
        }
    }
}
