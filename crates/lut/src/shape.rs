//! What is looked up: sizes and kinds of shares.

use std::fmt;
use std::ops::RangeInclusive;

use crate::{LutError, tree};

/// Largest `k` of a table with `2^k` entries. Not every protocol goes that far: [`Protocol::log_entries`](crate::Protocol::log_entries).
pub const MAX_LOG_ENTRIES: u32 = 20;

/// Sizes for which the work or the bits of what grows with `n` (or `n²`) are within reason.
pub(crate) const SMALL: RangeInclusive<u32> = 1..=12;

/// How the index is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Index {
    /// Additively, modulo the number of entries.
    Arithmetic,
    /// Bit by bit, by XOR.
    Boolean,
}

impl Index {
    /// The index that two shares stand for, in a table of `2^log_entries` entries.
    #[inline]
    #[must_use]
    pub fn join(self, a: u64, b: u64, log_entries: u32) -> u64 {
        let joined = match self {
            Self::Arithmetic => a.wrapping_add(b),
            Self::Boolean => a ^ b,
        };
        joined & volvelle_prim::mask(log_entries)
    }

    /// The share that joins with `b` to `a`: `a − b`, or `a ⊕ b`.
    #[inline]
    #[must_use]
    pub fn split(self, a: u64, b: u64, log_entries: u32) -> u64 {
        let share = match self {
            Self::Arithmetic => a.wrapping_sub(b),
            Self::Boolean => a ^ b,
        };
        share & volvelle_prim::mask(log_entries)
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arithmetic => "arithmetic",
            Self::Boolean => "boolean",
        })
    }
}

/// How one-hot correlations are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generator {
    /// Secret-shared rotation by a punctured PRF: one round, `128·(k − 1) + n` bits, `n²/128` AES.
    Rotation,
    /// Doubling a one-hot vector by random OTs: `k − 1` rounds, about `2n` bits, next to no
    /// computing.
    Doubling,
    /// A tree grown together: `max(k − 8, 6) + 1` rounds, `256·(k − 7) + 252` bits; from 2^8 entries on.
    Tree,
}

impl Generator {
    /// The name of the protocol that uses it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rotation => "rotation",
            Self::Doubling => "doubling",
            Self::Tree => "tree",
        }
    }

    /// The `k` of the tables, of `2^k` entries, that it is for.
    #[must_use]
    pub const fn log_entries(self) -> RangeInclusive<u32> {
        match self {
            Self::Rotation | Self::Doubling => SMALL,
            Self::Tree => tree::LOG_ENTRIES,
        }
    }

    /// Whether it makes correlations for tables of `2^log_entries` entries.
    ///
    /// # Errors
    /// [`LutError::Size`] if it does not.
    pub fn check(self, log_entries: u32) -> Result<(), LutError> {
        check_size(self.name(), self.log_entries(), log_entries)
    }
}

/// How the shares of an output join, for the protocols where that is all there is to say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Additively, modulo `2^l` for entries of `l` bits.
    Additive,
    /// By XOR.
    Xor,
}

impl Sharing {
    /// What two shares stand for; bits above a word's are garbage.
    #[inline]
    #[must_use]
    pub const fn add(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Additive => a.wrapping_add(b),
            Self::Xor => a ^ b,
        }
    }

    /// The share that joins with `b` to `a`; bits above a word's are garbage.
    #[inline]
    #[must_use]
    pub const fn sub(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Additive => a.wrapping_sub(b),
            Self::Xor => a ^ b,
        }
    }
}

/// How the outputs are shared, which decides what must be prepared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Additive shares. One entry for each table read at an index: the bits `l` of its words and of
    /// the ring `Z_{2^l}` that its outputs are shared in.
    Arithmetic {
        /// Bits of each table's words, `1..=64`.
        words: Vec<u32>,
    },
    /// XOR shares, of words or single bits, from any number of tables.
    Xor,
}

impl Output {
    /// Additive shares of words of one table.
    #[must_use]
    pub fn word(bits: u32) -> Self {
        Self::Arithmetic { words: vec![bits] }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Arithmetic { .. } => "additively shared",
            Self::Xor => "XOR-shared",
        }
    }
}

/// The shape of a lookup.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// `k`, where tables have `n = 2^k` entries; `1..=`[`MAX_LOG_ENTRIES`], and in the range of the protocol.
    pub log_entries: u32,
    /// How the index is shared.
    pub index: Index,
    /// How the output is shared.
    pub output: Output,
}

impl Shape {
    /// Checks that sizes are in range.
    pub(crate) fn check(&self) -> Result<(), LutError> {
        check_log_entries(self.log_entries)?;
        if let Output::Arithmetic { words } = &self.output {
            if words.is_empty() {
                return Err(LutError::TableCount {
                    expected: 1,
                    got: 0,
                });
            }
            words.iter().try_for_each(|&bits| check_bits(bits))?;
        }
        Ok(())
    }
}

pub(crate) fn check_log_entries(log_entries: u32) -> Result<(), LutError> {
    if (1..=MAX_LOG_ENTRIES).contains(&log_entries) {
        Ok(())
    } else {
        Err(LutError::LogEntries { got: log_entries })
    }
}

/// Checks a table's size against what a protocol takes.
pub(crate) fn check_size(
    protocol: &'static str,
    sizes: RangeInclusive<u32>,
    got: u32,
) -> Result<(), LutError> {
    if sizes.contains(&got) {
        return Ok(());
    }
    Err(LutError::Size {
        protocol,
        min: *sizes.start(),
        max: *sizes.end(),
        got,
    })
}

pub(crate) fn check_bits(bits: u32) -> Result<(), LutError> {
    if (1..=64).contains(&bits) {
        Ok(())
    } else {
        Err(LutError::Bits { got: bits })
    }
}

pub(crate) fn check_batch(batch: usize) -> Result<(), LutError> {
    if batch == 0 {
        Err(LutError::EmptyBatch)
    } else {
        Ok(())
    }
}
