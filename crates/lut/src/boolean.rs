//! Lookup with XOR-shared outputs; see `docs/protocols/lookup.md`.
//!
//! One-hot shares `e_C ⊕ e_S` at `r`, index `i` shared by XOR or mod `n`. Where outputs are
//! XOR-shared there is no sign to mend: each party XORs the entries that its own rows select.
//!
//! ```text
//!     C                                                S
//!     share of i ⊕ r            (k bits)  ────────▶
//!                                         ◀────────  share of i ⊕ r            (k bits)
//!     both know m = i ⊕ r; the output is ⊕ e_j·T_(j⊕m)
//! ```
//!
//! Rounds: 1. Bits: `2k`, both parties, whatever the number and width of the tables.
//!
//! Security (semi-honest): `m` is uniform and independent of `i`.

use std::ops::Range;

use volvelle_net::{Channel, Label};
use volvelle_ot::Cost;
use volvelle_prim::fold::row_words;
use volvelle_prim::moved::MovedBytes;

use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange};
use crate::onehot::{OneHots, Opening};
use crate::table::Selector;
use crate::{Index, LutError, Table};

/// How the opening of a batch's offsets is cut.
pub(crate) fn plan(log_entries: u32, batch: usize) -> Plan {
    let largest_frame = Opening::bytes(log_entries, ONLINE_CHUNK);
    Plan {
        batch,
        chunk: ONLINE_CHUNK,
        steps: 1,
        largest_frame,
    }
}

/// What the online phase sends for a batch.
pub(crate) fn cost(log_entries: u32, batch: usize) -> Cost {
    let bits = 8 * Opening::bytes(log_entries, batch) as u64;
    let rounds = plan(log_entries, batch).rounds();
    Cost {
        client_bits: bits,
        server_bits: bits,
        rounds,
        ..Cost::default()
    }
}

/// Something read where the opened offsets point: what differs between tables of words and of bits.
pub(crate) trait Select {
    /// Takes in some lookups' rows and offsets.
    fn select(&mut self, onehots: &OneHots, lookups: Range<usize>, deltas: &[u64]);
}

/// Opens the offsets of the whole batch and selects.
pub(crate) fn open_and_select(
    ch: &mut Channel,
    onehots: OneHots,
    index: &[u64],
    reader: &mut impl Select,
) -> Result<(), LutError> {
    let plan = plan(onehots.log_entries(), onehots.len());
    let opening = onehots.opening(index);
    exchange(
        ch,
        &plan,
        &mut Party {
            onehots,
            opening,
            reader,
        },
    )
}

/// Looks up every index in every table.
pub(crate) fn lookup(
    ch: &mut Channel,
    onehots: OneHots,
    index: &[u64],
    tables: &[Table],
) -> Result<Vec<Vec<u64>>, LutError> {
    let outputs = vec![vec![0; onehots.len()]; tables.len()];
    if onehots.words().is_some()
        && onehots.index() == Index::Boolean
        && Bytes::suits(tables, onehots.len())
    {
        let mut bytes = Bytes {
            tables: tables.iter().map(Bytes::cut).collect(),
            outputs,
        };
        open_and_select(ch, onehots, index, &mut bytes)?;
        return Ok(bytes.outputs);
    }
    let mut words = Words {
        selector: Selector::new(onehots.index(), onehots.log_entries(), tables),
        outputs,
    };
    open_and_select(ch, onehots, index, &mut words)?;
    Ok(words.outputs)
}

/// Tables of narrow words at an XOR-shared index: byte by byte, and a whole chunk a call.
struct Bytes {
    /// Each table's bytes, lowest first.
    tables: Vec<Vec<MovedBytes>>,
    outputs: Vec<Vec<u64>>,
}

impl Bytes {
    /// Whether this is faster: entries of few bytes, copies that fit the second-level cache, and lookups
    /// enough to make up for the copying.
    fn suits(tables: &[Table], batch: usize) -> bool {
        const CACHE: usize = 256 << 10;
        const BATCH: usize = 512;
        let bytes = |t: &Table| t.bits().div_ceil(8) as usize * MovedBytes::bytes(t.len());
        batch >= BATCH
            && tables.iter().all(|t| t.bits() <= 32)
            && tables.iter().map(bytes).sum::<usize>() <= CACHE
    }

    fn cut(table: &Table) -> Vec<MovedBytes> {
        let byte = |shift: u32| -> Vec<u8> {
            let entries = table.entries().iter();
            entries.map(|&e| (e >> shift) as u8).collect()
        };
        let shifts = (0..table.bits()).step_by(8);
        shifts.map(|shift| MovedBytes::new(&byte(shift))).collect()
    }
}

impl Select for Bytes {
    fn select(&mut self, onehots: &OneHots, lookups: Range<usize>, deltas: &[u64]) {
        // Rows of trees are not read this way.
        let Some(rows) = onehots.words() else { return };
        let words = row_words(onehots.log_entries());
        let rows = &rows[lookups.start * words..lookups.end * words];
        for (bytes, outputs) in self.tables.iter().zip(&mut self.outputs) {
            for (table, shift) in bytes.iter().zip((0..).step_by(8)) {
                table.xor_selected(rows, deltas, shift, &mut outputs[lookups.clone()]);
            }
        }
    }
}

struct Words {
    selector: Selector,
    outputs: Vec<Vec<u64>>,
}

impl Select for Words {
    fn select(&mut self, onehots: &OneHots, lookups: Range<usize>, deltas: &[u64]) {
        let start = lookups.start;
        onehots.for_rows(lookups, |i, row| {
            let delta = deltas[i - start] as usize;
            self.selector.set_row(row, delta);
            let sums = self.outputs.iter_mut().zip(self.selector.xors());
            sums.for_each(|(outputs, sum)| outputs[i] = sum);
        });
    }
}

struct Party<'a, S> {
    onehots: OneHots,
    opening: Opening,
    reader: &'a mut S,
}

impl<S: Select> Steps for Party<'_, S> {
    fn label(&self, _: usize) -> Label {
        Opening::LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        Opening::bytes(self.onehots.log_entries(), count)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.opening.make(lookups, frame);
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let deltas = self.opening.open_offsets(lookups.clone(), frame);
        self.reader.select(&self.onehots, lookups, deltas);
    }
}
