//! One-time truth tables: the correlation that [`crate::OpLut`] and [`crate::Ottt`] have in common, and its use (Ishai et
//! al., TCC 2013; Dessouky et al., NDSS 2017).
//!
//! For each lookup the parties share the whole table, moved by a random offset `r` that is shared too and that
//! neither knows: `M_C[j] + M_S[j] = T[j + r]` for all `j` (or `⊕` in the place of either `+`). Then looking up
//! is opening an offset and reading one's own share there:
//!
//! ```text
//!     C                                                S
//!     share of i − r            (k bits)  ────────▶
//!                                         ◀────────  share of i − r            (k bits)
//!     both know δ = i − r; the outputs are M_C[δ] and M_S[δ]
//! ```
//!
//! Rounds: 1. Bits: `2k`, both parties, whatever the tables and the sharing of the output; nothing is computed. The price
//! is paid before: `n·l` bits of memory a lookup for each party, where a one-hot correlation takes `n`, and tables that
//! must be known in preprocessing.
//!
//! Security (semi-honest): `δ` is uniform and independent of `i`, and `M_C[δ]` is a share as uniform as the
//! truth table's. A second use would reveal the difference of two indices, so using it takes it by value.

use std::ops::Range;

use volvelle_net::{Channel, Label};
use volvelle_ot::Cost;
use volvelle_prim::pack;
use zeroize::Zeroizing;

use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange};
use crate::onehot::Opening;
use crate::shape::check_log_entries;
use crate::table::check_sizes;
use crate::{Index, LutError, Sharing, Table};

/// Bytes of truth tables that a batch may take at each party.
const MEMORY: u64 = 1 << 31;

/// What lookups are prepared for where that depends on the tables: all of it, public, and the same at both parties.
#[derive(Clone, Copy, Debug)]
pub struct KnownTables<'a> {
    /// How the index is shared.
    pub index: Index,
    /// How the outputs are shared.
    pub sharing: Sharing,
    /// The tables, all read at one index.
    pub tables: &'a [Table],
}

impl KnownTables<'_> {
    /// `k` of the tables' `2^k` entries; at most `max`, for the sake of `protocol`.
    pub(crate) fn check(&self, protocol: &'static str, max: u32) -> Result<u32, LutError> {
        let Some(first) = self.tables.first() else {
            return Err(LutError::TableCount {
                expected: 1,
                got: 0,
            });
        };
        let got = first.len().ilog2();
        check_log_entries(got)?;
        check_sizes(got, self.tables.iter().map(Table::len))?;
        if got > max {
            return Err(LutError::TableTooLarge { protocol, max, got });
        }
        Ok(got)
    }

    /// Bits of each table's words.
    pub(crate) fn words(&self) -> Vec<u32> {
        self.tables.iter().map(Table::bits).collect()
    }
}

/// One party's shares of a batch of moved truth tables.
pub(crate) struct TruthTables {
    log_entries: u32,
    index: Index,
    /// This party's shares of the offsets `r`.
    pub positions: Zeroizing<Vec<u32>>,
    /// For each table, its shares lookup by lookup, an entry in 1, 2, 4 or 8 bytes.
    shares: Vec<Shares>,
}

struct Shares {
    entry_bytes: usize,
    bytes: Zeroizing<Vec<u8>>,
}

impl TruthTables {
    /// Room for a batch, all zero.
    pub fn new(log_entries: u32, known: &KnownTables<'_>, batch: usize) -> Result<Self, LutError> {
        let entry_bytes = |table: &Table| table.bits().div_ceil(8).next_power_of_two() as usize;
        let each: usize = known.tables.iter().map(entry_bytes).sum();
        let got = (each as u64).saturating_mul((batch as u64).saturating_mul(1 << log_entries));
        if got > MEMORY {
            return Err(LutError::TooMuchMemory {
                what: "truth tables",
                limit: MEMORY,
                got,
            });
        }
        let shares = known.tables.iter().map(|table| Shares {
            entry_bytes: entry_bytes(table),
            bytes: Zeroizing::new(vec![0; (batch << log_entries) * entry_bytes(table)]),
        });
        Ok(Self {
            log_entries,
            index: known.index,
            positions: Zeroizing::new(vec![0; batch]),
            shares: shares.collect(),
        })
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Sets this party's share of table `t` of lookup `i`; bits above a word's must be zero.
    pub fn set(&mut self, t: usize, i: usize, entries: &[u64]) {
        let Shares { entry_bytes, bytes } = &mut self.shares[t];
        let table = *entry_bytes << self.log_entries;
        let out = &mut bytes[i * table..][..table];
        match entry_bytes {
            1 => write::<1>(entries, out),
            2 => write::<2>(entries, out),
            4 => write::<4>(entries, out),
            _ => write::<8>(entries, out),
        }
    }

    /// This party's share of table `t` of lookup `i`.
    pub fn get(&self, t: usize, i: usize, entries: &mut [u64]) {
        let Shares { entry_bytes, bytes } = &self.shares[t];
        let table = entry_bytes << self.log_entries;
        let from = &bytes[i * table..][..table];
        match entry_bytes {
            1 => read::<1>(from, entries),
            2 => read::<2>(from, entries),
            4 => read::<4>(from, entries),
            _ => read::<8>(from, entries),
        }
    }

    fn entry(&self, t: usize, i: usize, j: usize) -> u64 {
        let Shares { entry_bytes, bytes } = &self.shares[t];
        let mut word = [0; 8];
        word[..*entry_bytes]
            .copy_from_slice(&bytes[((i << self.log_entries) + j) * entry_bytes..][..*entry_bytes]);
        u64::from_le_bytes(word)
    }

    /// Looks up: `index[i]` is this party's share of index `i`.
    pub fn lookup(self, ch: &mut Channel, index: &[u64]) -> Result<Vec<Vec<u64>>, LutError> {
        let batch = self.len();
        if index.len() != batch {
            return Err(LutError::BatchLength {
                expected: batch,
                got: index.len(),
            });
        }
        let shares = index.iter().zip(self.positions.iter());
        let shares = shares
            .map(|(&i, &r)| self.index.split(i, u64::from(r), self.log_entries) as u32)
            .collect();
        let mut party = Party {
            opening: Opening::from_shares(shares, self.log_entries, self.index),
            outputs: vec![vec![0; batch]; self.shares.len()],
            truth: self,
        };
        let plan = plan(party.truth.log_entries, batch);
        ch.span("lut-truth-tables", |ch| exchange(ch, &plan, &mut party))?;
        Ok(party.outputs)
    }
}

/// Entries as `BYTES` bytes each.
fn write<const BYTES: usize>(entries: &[u64], out: &mut [u8]) {
    let out = out.as_chunks_mut::<BYTES>().0;
    for (out, entry) in out.iter_mut().zip(entries) {
        out.copy_from_slice(&entry.to_le_bytes()[..BYTES]);
    }
}

/// The inverse of [`write`].
fn read<const BYTES: usize>(from: &[u8], entries: &mut [u64]) {
    let from = from.as_chunks::<BYTES>().0;
    for (entry, from) in entries.iter_mut().zip(from) {
        let mut word = [0; 8];
        word[..BYTES].copy_from_slice(from);
        *entry = u64::from_le_bytes(word);
    }
}

/// What the online phase sends for a batch.
pub(crate) fn cost(log_entries: u32, batch: usize) -> Cost {
    let bits = 8 * Opening::bytes(log_entries, batch) as u64;
    Cost {
        client_bits: bits,
        server_bits: bits,
        rounds: plan(log_entries, batch).rounds(),
        ..Cost::default()
    }
}

fn plan(log_entries: u32, batch: usize) -> Plan {
    Plan {
        batch,
        chunk: ONLINE_CHUNK,
        steps: 1,
        largest_frame: Opening::bytes(log_entries, ONLINE_CHUNK),
    }
}

struct Party {
    truth: TruthTables,
    opening: Opening,
    outputs: Vec<Vec<u64>>,
}

impl Steps for Party {
    fn label(&self, _: usize) -> Label {
        Opening::LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        Opening::bytes(self.truth.log_entries, count)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.opening.make(lookups, frame);
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let deltas = self.opening.open_offsets(lookups.clone(), frame);
        for (i, &delta) in lookups.zip(deltas) {
            for (t, outputs) in self.outputs.iter_mut().enumerate() {
                outputs[i] = self.truth.entry(t, i, delta as usize);
            }
        }
    }
}

/// Payload bytes of a row, a whole table's entries for every table: whole bytes a table.
pub(crate) fn row_bytes(log_entries: u32, words: &[u32]) -> usize {
    words
        .iter()
        .map(|&bits| pack::packed_len(1 << log_entries, bits))
        .sum()
}

/// `out_j = table_(j + offset)` (or `j ⊕ offset`), the offset being public and below the length.
pub(crate) fn move_by_public(index: Index, table: &[u64], offset: usize, out: &mut [u64]) {
    match index {
        Index::Arithmetic => {
            let (tail, head) = out.split_at_mut(table.len() - offset);
            tail.copy_from_slice(&table[offset..]);
            head.copy_from_slice(&table[..offset]);
        }
        Index::Boolean => {
            for (j, out) in out.iter_mut().enumerate() {
                *out = table[j ^ offset];
            }
        }
    }
}
