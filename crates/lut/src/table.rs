//! Public tables.

use volvelle_prim::fold::{self, row_words};
use volvelle_prim::select::Entries;
use volvelle_prim::{BitVec, mask};
use zeroize::Zeroizing;

use crate::shape::{check_bits, check_log_entries};
use crate::{Index, LutError, MAX_LOG_ENTRIES};

/// A public table of `2^k` words of `bits` bits. Both parties hold the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    bits: u32,
    entries: Vec<u64>,
}

impl Table {
    /// From its entries; [`Self::padded`] takes any number of them.
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

    /// From two or more entries, any number of them: padded with zeros to the next power of two, which is what indices
    /// are shared modulo from then on. An index at or beyond the entries given is not refused, since nobody sees
    /// it: it finds 0.
    ///
    /// # Errors
    /// As [`Self::new`] for the padded table; if there are fewer than two entries.
    pub fn padded(bits: u32, mut entries: Vec<u64>) -> Result<Self, LutError> {
        let got = entries.len();
        if !(2..=1 << MAX_LOG_ENTRIES).contains(&got) {
            return Err(LutError::Entries { got });
        }
        entries.resize(got.next_power_of_two(), 0);
        Self::new(bits, entries)
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

/// Checks that tables are as many and as wide as prepared.
pub(crate) fn check_widths(words: &[u32], tables: &[Table]) -> Result<(), LutError> {
    if tables.len() != words.len() {
        return Err(LutError::TableCount {
            expected: words.len(),
            got: tables.len(),
        });
    }
    let widths = words.iter().zip(tables.iter().map(Table::bits));
    for (table, (&expected, got)) in widths.enumerate() {
        if got != expected {
            return Err(LutError::TableBits {
                table,
                expected,
                got,
            });
        }
    }
    Ok(())
}

/// Tables to select from, and the one-hot rows moved to where they select.
///
/// At offset δ, bit `j` of a row selects the entry `T[j + δ mod n]`, or `T[j ⊕ δ]` with a boolean index. Moving the row, once for all
/// tables, costs less than reading the table from an odd address.
pub(crate) struct Selector {
    index: Index,
    log_entries: u32,
    tables: Vec<Entries>,
    moved: Zeroizing<Vec<u64>>,
}

impl Selector {
    pub fn new(index: Index, log_entries: u32, tables: &[Table]) -> Self {
        let lay_out = |table: &Table| Entries::new(table.bits(), table.entries());
        Self {
            index,
            log_entries,
            tables: tables.iter().map(lay_out).collect(),
            moved: Zeroizing::new(vec![0; row_words(log_entries)]),
        }
    }

    /// Takes in a row, to select with it at offset `delta`, which is public.
    #[inline]
    pub fn set_row(&mut self, row: &[u64], delta: usize) {
        match self.index {
            Index::Arithmetic => fold::rotate_open(row, self.log_entries, delta, &mut self.moved),
            Index::Boolean => fold::xor_permute_open(row, self.log_entries, delta, &mut self.moved),
        }
    }

    /// The sums of the selected entries, table by table, with garbage above a table's bits.
    #[inline]
    pub fn sums(&self) -> impl Iterator<Item = u64> {
        self.tables.iter().map(|table| table.sum(&self.moved))
    }

    /// The XORs of the selected entries, table by table.
    #[inline]
    pub fn xors(&self) -> impl Iterator<Item = u64> {
        self.tables.iter().map(|table| table.xor(&self.moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_with_zeros() {
        for (given, padded) in [(2, 2), (3, 4), (4, 4), (5, 8), (100, 128)] {
            let table = Table::padded(8, vec![7; given]).unwrap();
            assert_eq!((table.len(), table.bits()), (padded, 8));
            let expected = (0..padded).map(|i| if i < given { 7 } else { 0 });
            assert!(table.entries().iter().copied().eq(expected), "{given}");
        }
        for wrong in [0, 1, (1 << MAX_LOG_ENTRIES) + 1] {
            let refused = Table::padded(8, vec![0; wrong]);
            assert!(matches!(refused, Err(LutError::Entries { got }) if got == wrong));
        }
        assert!(Table::padded(2, vec![1, 2, 4]).is_err());
        assert!(Table::padded(0, vec![0; 3]).is_err());
    }

    #[test]
    fn a_single_selected_entry_is_that_of_the_offset() {
        for log_entries in [1, 2, 3, 5, 6, 8] {
            let n = 1usize << log_entries;
            let table = Table::from_fn(log_entries, 16, |i| i * i + 1).unwrap();
            for index in [Index::Arithmetic, Index::Boolean] {
                let tables = std::slice::from_ref(&table);
                let mut selector = Selector::new(index, log_entries, tables);
                for delta in 0..n {
                    for j in 0..n {
                        let mut row = vec![0; row_words(log_entries)];
                        row[j / 64] = 1 << (j % 64);
                        selector.set_row(&row, delta);
                        let at = index.join(j as u64, delta as u64, log_entries);
                        let expected = table.entries()[at as usize];
                        assert!(selector.sums().all(|sum| sum & mask(16) == expected));
                        assert!(selector.xors().all(|sum| sum == expected), "{index} {n}");
                    }
                }
            }
        }
    }
}
