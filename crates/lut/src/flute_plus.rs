//! FLUTE+: boolean lookup by the products of shared random bits (ROTL, PoPETs 2026, §6).
//!
//! XOR-shared random bits `α_0 … α_(k−1)`. Preprocessing makes shares of all `n = 2^k` products
//! `p_Q = ∧_{j∈Q} α_j`; the butterfly (Möbius) transform `e_v = ⊕_{Q ⊇ v} p_Q` turns them into the
//! selection vector over all masks, which is one-hot at `α`: that is [`crate::doubling`] with a boolean index. Online, `m = α ⊕ x` is
//! opened and the vector permuted by it selects: [`crate::boolean`].
//!
//! Preprocessing: `k − 1` rounds, `2(n − k − 1)` bits, `2(k − 1)` OTs. Online: 1 round, `2k` bits,
//! whatever the number and width of the tables. (As published, each of the `n − k − 1` products is
//! an AND of its own: 2 OTs and 4 bits.)
//!
//! Security (semi-honest): that of its two halves.

use std::ops::RangeInclusive;

use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::{BitVec, Prg};

use crate::doubling::position::Layout;
use crate::doubling::{self, Doubling};
use crate::onehot::OneHots;
use crate::shape::{check_batch, check_size};
use crate::table::check_sizes;
use crate::{BitTable, Index, LutError, Table, bits, boolean};

/// `log2` of the entries it takes.
pub(crate) const SIZES: RangeInclusive<u32> = 1..=12;

/// A batch of prepared FLUTE+ lookups, each used once.
pub struct FlutePlus {
    /// The selection vectors, one-hot at `α`.
    selections: OneHots,
}

impl FlutePlus {
    /// Prepares `batch` lookups in tables of `2^log_entries` entries. Both parties call this with
    /// the same arguments.
    ///
    /// # Errors
    /// If a parameter is out of range, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        log_entries: u32,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, log_entries, batch, &mut Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        log_entries: u32,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        check_size("flute+", SIZES, log_entries)?;
        check_batch(batch)?;
        ch.span("lut-prepare", |ch| {
            let layout = Layout::new(log_entries, Index::Boolean);
            let mut products = Doubling::new(ch.role(), log_entries, layout, batch, prg);
            for sender in [Role::Client, Role::Server] {
                products.draw(ch, ot, sender)?;
            }
            Ok(Self {
                selections: products.run(ch, Index::Boolean)?,
            })
        })
    }

    /// What preparing and looking up `batch` indices sends and consumes, exactly; the tables' number
    /// and widths do not matter.
    ///
    /// # Panics
    /// If the number of entries is not one that [`Self::prepare`] would take.
    #[must_use]
    pub fn cost(log_entries: u32, batch: usize) -> PhasedCost {
        assert!(
            check_size("flute+", SIZES, log_entries).is_ok(),
            "cost of lookups in tables of 2^{log_entries} entries"
        );
        PhasedCost {
            prep: doubling::cost(log_entries, Index::Boolean, batch),
            online: boolean::cost(log_entries, batch),
        }
    }

    /// Number of prepared lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.selections.len()
    }

    /// Looks up every index in every table: `index[i]` is this party's XOR share of index `i`
    /// (modulo the number of entries). Returns this party's XOR shares, table by table.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup_xor(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        check_tables(tables.len())?;
        self.check(index, tables.iter().map(Table::len))?;
        ch.span("lut-xor", |ch| {
            boolean::lookup(ch, self.selections, index, tables)
        })
    }

    /// [`Self::lookup_xor`] in tables of single bits.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup_bits(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[BitTable],
    ) -> Result<Vec<BitVec>, LutError> {
        check_tables(tables.len())?;
        self.check(index, tables.iter().map(BitTable::len))?;
        ch.span("lut-bits", |ch| {
            bits::lookup(ch, self.selections, index, tables)
        })
    }

    fn check(&self, index: &[u64], lens: impl Iterator<Item = usize>) -> Result<(), LutError> {
        check_indices(self.len(), index)?;
        check_sizes(self.selections.log_entries(), lens)
    }
}

/// Refuses a lookup in no tables.
pub(crate) fn check_tables(tables: usize) -> Result<(), LutError> {
    if tables == 0 {
        return Err(LutError::TableCount {
            expected: 1,
            got: 0,
        });
    }
    Ok(())
}

/// Checks that there is an index for every prepared lookup.
pub(crate) fn check_indices(expected: usize, index: &[u64]) -> Result<(), LutError> {
    if index.len() != expected {
        return Err(LutError::BatchLength {
            expected,
            got: index.len(),
        });
    }
    Ok(())
}
