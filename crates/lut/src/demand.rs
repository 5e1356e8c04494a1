//! What is asked for: a batch of lookups of one shape, with the widths of all tables.

use std::fmt;

use crate::shape::{check_batch, check_bits};
use crate::{Index, LutError, Output, Shape, Sharing, Table};

/// A batch of lookups that a protocol is to be chosen, prepared or paid for.
///
/// It says more than its [`Shape`]: also how many bits XOR-shared words have, which one-hot lookups need not
/// know but others do, and how many lookups are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    shape: Shape,
    words: Vec<u32>,
    batch: usize,
}

impl Demand {
    /// Additively shared outputs: at each of `batch` indices an entry of every table, tables of
    /// `2^log_entries` words of `words[t]` bits.
    ///
    /// # Errors
    /// If a size is out of range, there is no table, or the batch is empty.
    pub fn additive(
        log_entries: u32,
        index: Index,
        words: &[u32],
        batch: usize,
    ) -> Result<Self, LutError> {
        let output = Output::Arithmetic {
            words: words.to_vec(),
        };
        Self::new((log_entries, index, output), words, batch)
    }

    /// XOR-shared outputs, the rest as for [`Self::additive`].
    ///
    /// # Errors
    /// As [`Self::additive`].
    pub fn xor(
        log_entries: u32,
        index: Index,
        words: &[u32],
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::new((log_entries, index, Output::Xor), words, batch)
    }

    fn new(
        (log_entries, index, output): (u32, Index, Output),
        words: &[u32],
        batch: usize,
    ) -> Result<Self, LutError> {
        let shape = Shape {
            log_entries,
            index,
            output,
        };
        shape.check()?;
        check_batch(batch)?;
        if words.is_empty() {
            return Err(LutError::TableCount {
                expected: 1,
                got: 0,
            });
        }
        words.iter().try_for_each(|&bits| check_bits(bits))?;
        Ok(Self {
            shape,
            words: words.to_vec(),
            batch,
        })
    }

    /// Size, index and output.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// `k`, where tables have `n = 2^k` entries.
    #[must_use]
    pub fn log_entries(&self) -> u32 {
        self.shape.log_entries
    }

    /// Bits of each table's words.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Number of lookups.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The same for another number of lookups.
    ///
    /// # Errors
    /// If the batch is empty.
    pub fn with_batch(&self, batch: usize) -> Result<Self, LutError> {
        check_batch(batch)?;
        Ok(Self {
            batch,
            ..self.clone()
        })
    }

    /// Whether outputs are XOR shares.
    #[must_use]
    pub fn is_xor(&self) -> bool {
        self.shape.output == Output::Xor
    }

    /// How the outputs' shares join.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        if self.is_xor() {
            Sharing::Xor
        } else {
            Sharing::Additive
        }
    }

    /// Whether all there is to look up is XOR-shared single bits, which one-hot lookups do faster.
    pub(crate) fn is_bits(&self) -> bool {
        self.is_xor() && self.words.iter().all(|&bits| bits == 1)
    }

    /// Checks that these are tables of the widths asked for; their sizes are for the protocol to check.
    pub(crate) fn check_tables(&self, tables: &[Table]) -> Result<(), LutError> {
        if tables.len() != self.words.len() {
            return Err(LutError::TableCount {
                expected: self.words.len(),
                got: tables.len(),
            });
        }
        for (table, (&expected, got)) in self
            .words
            .iter()
            .zip(tables.iter().map(Table::bits))
            .enumerate()
        {
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
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.words.iter().map(u32::to_string).collect();
        write!(
            f,
            "{} lookup{}, {} entries of {} bit{}, {} index, {} output",
            self.batch,
            plural(self.batch == 1),
            1u64 << self.log_entries(),
            words.join(" and "),
            plural(self.words == [1]),
            self.shape.index,
            self.shape.output.kind()
        )
    }
}

const fn plural(one: bool) -> &'static str {
    if one { "" } else { "s" }
}
