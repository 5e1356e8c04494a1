//! Lookup in tables of single bits: [`crate::boolean`] with outputs packed, and much faster.
//!
//! The XOR of the selected bits is the parity of the one-hot row ∧ the table moved by the offset.
//! Tables are kept moved by all 64 offsets within a word (or by all `n`, if `n < 64`), `2n` words
//! at most; moving by whole words is indexing. So a lookup in a table is `n/64` ANDs and one
//! parity.
//!
//! Rounds: 1. Bits: `2k`, both parties, whatever the number of tables. Message flow and security:
//! as there.

use std::ops::Range;

use volvelle_net::Channel;
use volvelle_prim::fold::row_words;
use volvelle_prim::{BitVec, LOW_HALVES, mask};

use crate::boolean::{Select, open_and_select};
use crate::onehot::OneHots;
use crate::{BitTable, Index, LutError};

/// Looks up every index in every table.
pub(crate) fn lookup(
    ch: &mut Channel,
    onehots: OneHots,
    index: &[u64],
    tables: &[BitTable],
) -> Result<Vec<BitVec>, LutError> {
    let (kind, log_entries) = (onehots.index(), onehots.log_entries());
    let mut bits = Bits {
        tables: tables
            .iter()
            .map(|t| Moved::new(kind, log_entries, t))
            .collect(),
        outputs: vec![BitVec::zeros(onehots.len()); tables.len()],
    };
    open_and_select(ch, onehots, index, &mut bits)?;
    Ok(bits.outputs)
}

/// A table moved by every offset.
struct Moved {
    index: Index,
    /// Low bits of an offset that are moves within a word.
    within: u64,
    /// Words of one copy.
    stride: usize,
    copies: Vec<u64>,
}

impl Moved {
    fn new(index: Index, log_entries: u32, table: &BitTable) -> Self {
        let entries = table.entries().words();
        let n = table.len();
        let words = row_words(log_entries);
        // A rotated slice may start at any word and runs over the end: the table stands there twice.
        let stride = match index {
            Index::Arithmetic if n > 64 => 2 * words,
            _ => words,
        };
        let offsets = n.min(64);
        let mut copies = Vec::with_capacity(offsets * stride);
        for offset in 0..offsets {
            for j in 0..stride {
                let (word, next) = (entries[j % words], entries[(j + 1) % words]);
                copies.push(match index {
                    Index::Arithmetic => rotated(word, next, offset, n),
                    Index::Boolean => permuted(word, offset),
                });
            }
        }
        Self {
            index,
            within: offsets as u64 - 1,
            stride,
            copies,
        }
    }

    /// The parity of the entries that `row` selects at offset `delta`.
    #[inline]
    fn parity(&self, row: &[u64], delta: u64) -> u64 {
        let copy = &self.copies[(delta & self.within) as usize * self.stride..][..self.stride];
        let word = (delta >> 6) as usize;
        let selected = match self.index {
            Index::Arithmetic => row
                .iter()
                .zip(&copy[word..])
                .fold(0, |sum, (&row, &entries)| sum ^ row & entries),
            Index::Boolean => row
                .iter()
                .enumerate()
                .fold(0, |sum, (j, &row)| sum ^ row & copy[j ^ word]),
        };
        u64::from(selected.count_ones() & 1)
    }
}

/// `n` bits from bit `offset` of `word` on, which go on in `next`; at most a word.
fn rotated(word: u64, next: u64, offset: usize, n: usize) -> u64 {
    match n {
        _ if offset == 0 => word,
        64.. => word >> offset | next << (64 - offset),
        _ => (word >> offset | word << (n - offset)) & mask(n as u32),
    }
}

/// Moves bit `j` to bit `j ⊕ offset`, `offset` below 64. Both are public.
fn permuted(word: u64, offset: usize) -> u64 {
    let swaps = LOW_HALVES.into_iter().enumerate();
    let chosen = swaps.filter(|(bit, _)| offset >> bit & 1 == 1);
    chosen.fold(word, |x, (bit, low)| {
        (x >> (1 << bit) & low) | (x & low) << (1 << bit)
    })
}

struct Bits {
    tables: Vec<Moved>,
    outputs: Vec<BitVec>,
}

impl Select for Bits {
    fn select(&mut self, onehots: &OneHots, lookups: Range<usize>, deltas: &[u64]) {
        let start = lookups.start;
        onehots.for_rows(lookups, |i, row| {
            for (table, outputs) in self.tables.iter().zip(&mut self.outputs) {
                let parity = table.parity(row, deltas[i - start]);
                outputs.words_mut()[i / 64] |= parity << (i % 64);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_selected_entry_is_its_own_parity() {
        for log_entries in 1..=9 {
            let n = 1u64 << log_entries;
            let table = BitTable::from_fn(log_entries, |i| i * i % 7 < 3).unwrap();
            for index in [Index::Arithmetic, Index::Boolean] {
                let moved = Moved::new(index, log_entries, &table);
                for delta in 0..n {
                    for j in 0..n {
                        let mut row = vec![0; row_words(log_entries)];
                        row[j as usize / 64] = 1 << (j % 64);
                        let at = index.join(j, delta, log_entries) as usize;
                        let parity = moved.parity(&row, delta);
                        assert_eq!(parity == 1, table.entries().get(at), "{n} {delta} {j}");
                    }
                }
            }
        }
    }
}
