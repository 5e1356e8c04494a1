//! Public tables.

use volvelle_prim::{BitVec, mask};

use crate::shape::{check_bits, check_log_entries};
use crate::{Index, LutError};

/// A public table of `2^k` words of `bits` bits. Both parties hold the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    bits: u32,
    entries: Vec<u64>,
}

impl Table {
    /// From its entries.
    ///
    /// # Errors
    /// If there are not `2^k` entries with `k` in range, `bits` is not in `1..=64`, or an entry
    /// does not fit.
    pub fn new(bits: u32, entries: Vec<u64>) -> Result<Self, LutError> {
        check_bits(bits)?;
        check_entries(entries.len())?;
        match entries.iter().position(|&e| e & !mask(bits) != 0) {
            Some(position) => Err(LutError::EntryTooWide { position, bits }),
            None => Ok(Self { bits, entries }),
        }
    }

    /// Entry `i` is `f(i)` modulo `2^bits`, for `i < 2^log_entries`.
    ///
    /// # Errors
    /// If `log_entries` or `bits` is out of range.
    pub fn from_fn(log_entries: u32, bits: u32, f: impl Fn(u64) -> u64) -> Result<Self, LutError> {
        check_bits(bits)?;
        check_log_entries(log_entries)?;
        Ok(Self {
            bits,
            entries: (0..1 << log_entries).map(|i| f(i) & mask(bits)).collect(),
        })
    }

    /// Number of entries.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a table always has entries")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bits of an entry.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &[u64] {
        &self.entries
    }
}

/// A public table of `2^k` single bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitTable {
    entries: BitVec,
}

impl BitTable {
    /// From its entries.
    ///
    /// # Errors
    /// If there are not `2^k` entries with `k` in range.
    pub fn new(entries: BitVec) -> Result<Self, LutError> {
        check_entries(entries.len())?;
        Ok(Self { entries })
    }

    /// Entry `i` is `f(i)`, for `i < 2^log_entries`.
    ///
    /// # Errors
    /// If `log_entries` is out of range.
    pub fn from_fn(log_entries: u32, f: impl Fn(u64) -> bool) -> Result<Self, LutError> {
        check_log_entries(log_entries)?;
        Ok(Self {
            entries: BitVec::from_fn(1 << log_entries, |i| f(i as u64)),
        })
    }

    /// Number of entries.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a table always has entries")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entries.
    #[must_use]
    pub fn entries(&self) -> &BitVec {
        &self.entries
    }
}

/// A public table of `2^k` words that is constant on intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTable {
    log_entries: u32,
    starts: Vec<u64>,
    values: Vec<u64>,
}

impl StepTable {
    /// From its steps, each where it starts and its word of `bits` bits; the first starts at 0.
    ///
    /// # Errors
    /// If `log_entries` or `bits` is out of range, the steps do not rise from 0 below `2^log_entries`, or a word does not
    /// fit.
    pub fn new(log_entries: u32, bits: u32, steps: &[(u64, u64)]) -> Result<Self, LutError> {
        check_log_entries(log_entries)?;
        check_bits(bits)?;
        let mut least = 0;
        for (position, &(got, value)) in steps.iter().enumerate() {
            let at_start = position == 0 && got == 0;
            if !at_start && (got < least || position == 0 || got > mask(log_entries)) {
                return Err(LutError::Step { position, got });
            }
            if value & !mask(bits) != 0 {
                return Err(LutError::EntryTooWide { position, bits });
            }
            least = got + 1;
        }
        if steps.is_empty() {
            return Err(LutError::Entries { got: 0 });
        }
        let (starts, values) = steps.iter().copied().unzip();
        Ok(Self {
            log_entries,
            starts,
            values,
        })
    }

    /// Number of entries.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a table always has entries")]
    pub fn len(&self) -> usize {
        1 << self.log_entries
    }

    /// Where the steps start.
    #[must_use]
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The steps' words.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// The word at an index below the number of entries.
    #[must_use]
    pub fn entry(&self, index: u64) -> u64 {
        let step = self.starts.partition_point(|&start| start <= index);
        self.values[step.saturating_sub(1)]
    }
}

fn check_entries(entries: usize) -> Result<(), LutError> {
    let in_range = entries.is_power_of_two() && check_log_entries(entries.ilog2()).is_ok();
    if in_range {
        Ok(())
    } else {
        Err(LutError::Entries { got: entries })
    }
}

/// Checks that each of `lens` is the prepared number of entries.
pub(crate) fn check_sizes(
    log_entries: u32,
    lens: impl Iterator<Item = usize>,
) -> Result<(), LutError> {
    let expected = 1 << log_entries;
    for (table, got) in lens.enumerate() {
        if got != expected {
            return Err(LutError::TableEntries {
                table,
                expected,
                got,
            });
        }
    }
    Ok(())
}

/// Tables laid out so that a public offset costs nothing to apply to them, or little to apply to
/// the one-hot row.
///
/// With an additively shared index the entry under bit `j` of the row is `T[(j + δ) mod n]`: the
/// table stands twice in a row, and δ is where a slice starts. With a boolean index it is `T[j ⊕
/// δ]`: there is a copy of the table for each of the low three bits of δ, and for the others the
/// bytes of the row are permuted, once for all tables.
pub(crate) struct Offsets {
    index: Index,
    entries: usize,
    tables: Vec<Vec<u64>>,
}

impl Offsets {
    pub fn new(index: Index, log_entries: u32, tables: &[Table]) -> Self {
        let entries = 1 << log_entries;
        let lay_out = |table: &Table| match index {
            Index::Arithmetic => table.entries().repeat(2),
            Index::Boolean => (0..entries.min(8))
                .flat_map(|low| (0..entries).map(move |j| table.entries()[j ^ low]))
                .collect(),
        };
        Self {
            index,
            entries,
            tables: tables.iter().map(lay_out).collect(),
        }
    }

    /// The row to select with at offset `delta`; `scratch` holds one row.
    #[inline]
    pub fn row<'a>(&self, row: &'a [u64], delta: usize, scratch: &'a mut [u64]) -> &'a [u64] {
        match self.index {
            Index::Arithmetic => row,
            Index::Boolean => {
                for (j, word) in scratch.iter_mut().enumerate() {
                    *word = permute_bytes(row[j ^ delta >> 6], delta >> 3);
                }
                scratch
            }
        }
    }

    /// The entries of table `t` to select from at offset `delta`.
    #[inline]
    pub fn entries(&self, t: usize, delta: usize) -> &[u64] {
        let start = match self.index {
            Index::Arithmetic => delta,
            Index::Boolean => (delta & 7 & (self.entries - 1)) * self.entries,
        };
        &self.tables[t][start..start + self.entries]
    }
}

/// Moves byte `j` to byte `j ⊕ offset` (its low three bits).
#[inline]
fn permute_bytes(word: u64, offset: usize) -> u64 {
    let swap = |x: u64, low: u64, bit: usize| {
        let moved = (x >> (8 << bit) & low) | (x & low) << (8 << bit);
        let chosen = (offset >> bit & 1) as u64;
        x ^ (x ^ moved) & chosen.wrapping_neg()
    };
    let x = swap(word, 0x00ff_00ff_00ff_00ff, 0);
    let x = swap(x, 0x0000_ffff_0000_ffff, 1);
    swap(x, 0x0000_0000_ffff_ffff, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_selected_entry_is_that_of_the_offset() {
        for log_entries in [1, 2, 3, 5, 6, 8] {
            let n = 1usize << log_entries;
            let words = volvelle_prim::fold::row_words(log_entries);
            let table = Table::from_fn(log_entries, 16, |i| i * i + 1).unwrap();
            for index in [Index::Arithmetic, Index::Boolean] {
                let offsets = Offsets::new(index, log_entries, std::slice::from_ref(&table));
                for delta in 0..n {
                    for j in 0..n {
                        let mut row = vec![0; words];
                        row[j / 64] = 1 << (j % 64);
                        let mut scratch = vec![0; words];
                        let row = offsets.row(&row, delta, &mut scratch);
                        let got = volvelle_prim::select::sum(row, offsets.entries(0, delta));
                        let at = index.join(j as u64, delta as u64, log_entries);
                        assert_eq!(got, table.entries()[at as usize], "{index} {n} {delta} {j}");
                    }
                }
            }
        }
    }
}
