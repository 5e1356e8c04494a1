//! SP-LUT, the baseline: 1-of-n OT of the masked table (Dessouky et al., NDSS 2017).
//!
//! `S` draws its output share `ρ` and offers, for each of the `n` values `v` that `C`'s share of
//! the index may have, the entry that belongs to it, minus `ρ`. `C` takes the one that is right by
//! 1-of-n OT, and that is its share.
//!
//! ```text
//!     C                                           S
//!     preprocessing: k random OTs with S as sender, pads p_(t,0), p_(t,1), C's choice c ∈ {0,1}^k
//!     d = i_C ⊕ c     (k bits)    ────────▶
//!                                 ◀────────       for all v:                (n·l bits)
//!                                                   (T_(v + i_S) − ρ) ⊕ H(key_(v ⊕ d), v)
//!     key_x = ⊕_t p_(t, x_t), of which C knows only key_c, that of v = i_C
//! ```
//!
//! Rounds: 2 online, 0 in preprocessing. Bits: `k + n·Σl` online. Computing: `n` hashes for `S`,
//! one for `C`.
//!
//! Security (semi-honest): `c` hides `i_C`; for the keys see [`crate::one_of_n`].
//!
//! What is kept between the phases is `k + 1` blocks a lookup for `S` (the key of 0 and the `Δ_t`)
//! and one for `C`. The `n` pads are hashed online, frame by frame: kept, they would be as large as
//! the messages, 200 MB for 100 000 lookups of 64 bits in 256 entries.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::fold::row_words;
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, Prg, mask, pack, select};
use zeroize::Zeroizing;

use crate::exchange::{ONLINE_CHUNK, ranges};
use crate::one_of_n::{self, tweak};
use crate::shape::check_batch;
use crate::table::check_sizes;
use crate::{Index, LutError, Protocol, Sharing, Table};

const CORRECTION: Label = Label::new("lut/splut-correction");
const MASKED: Label = Label::new("lut/splut-tables");

/// Lookups a frame of masked tables: 2^13 entries of each table. An agreement parameter; a frame is
/// a whole number of bytes unless it is the last.
const fn chunk(log_entries: u32) -> usize {
    1 << (13 - log_entries)
}

/// A batch of prepared SP-LUT lookups.
pub struct SpLut {
    log_entries: u32,
    /// What it takes to make any tables' lookups: for the server `key_0, Δ_0, …, Δ_(k−1)` a lookup,
    /// for the client `key_c`.
    keys: Zeroizing<Vec<Block>>,
    /// The client's random choices `c`.
    choices: Zeroizing<Vec<u32>>,
    batch: usize,
    prg: Prg,
}

impl SpLut {
    /// Prepares `batch` lookups in tables of `2^log_entries` entries: `k` random OTs each, nothing
    /// sent.
    ///
    /// # Errors
    /// If a parameter is out of range, or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        log_entries: u32,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, log_entries, batch, Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        log_entries: u32,
        batch: usize,
        prg: Prg,
    ) -> Result<Self, LutError> {
        Protocol::SpLut.check(log_entries)?;
        check_batch(batch)?;
        let (blocks, choices) = match ch.role() {
            Role::Client => (1, batch),
            Role::Server => (log_entries as usize + 1, 0),
        };
        let mut prepared = Self {
            log_entries,
            keys: Zeroizing::new(vec![Block::ZERO; batch * blocks]),
            choices: Zeroizing::new(vec![0; choices]),
            batch,
            prg,
        };
        for lookups in ranges(batch, ONLINE_CHUNK) {
            let keys = &mut prepared.keys[lookups.start * blocks..lookups.end * blocks];
            match ch.role() {
                Role::Client => {
                    let choices = &mut prepared.choices[lookups];
                    one_of_n::draw_receiver(ch, ot, log_entries, choices, keys)?;
                }
                Role::Server => one_of_n::draw_sender(ch, ot, log_entries, keys)?,
            }
        }
        Ok(prepared)
    }

    /// What looking up `batch` indices in tables of these word widths sends and consumes.
    #[must_use]
    pub fn cost(log_entries: u32, words: &[u32], batch: usize) -> PhasedCost {
        let correction = 8 * pack::packed_len(batch, log_entries) as u64;
        let tables: usize = words
            .iter()
            .map(|&l| pack::packed_len(batch << log_entries, l))
            .sum();
        PhasedCost {
            prep: Cost {
                cots_server: batch as u64 * u64::from(log_entries),
                ..Cost::default()
            },
            online: Cost {
                client_bits: correction,
                server_bits: 8 * tables as u64,
                rounds: 2,
                ..Cost::default()
            },
        }
    }

    /// Number of prepared lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.batch
    }

    /// Looks up with additively shared outputs; see [`Lookups::lookup`](crate::Lookups::lookup). Shares of indices
    /// are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup(
        self,
        ch: &mut Channel,
        kind: Index,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.run(ch, kind, index, tables, Sharing::Additive)
    }

    /// Looks up with XOR-shared outputs; see [`Lookups::lookup_xor`](crate::Lookups::lookup_xor). Shares of indices
    /// are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup_xor(
        self,
        ch: &mut Channel,
        kind: Index,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.run(ch, kind, index, tables, Sharing::Xor)
    }

    fn run(
        self,
        ch: &mut Channel,
        kind: Index,
        index: &[u64],
        tables: &[Table],
        sharing: Sharing,
    ) -> Result<Vec<Vec<u64>>, LutError> {
        if index.len() != self.batch {
            return Err(LutError::BatchLength {
                expected: self.batch,
                got: index.len(),
            });
        }
        if tables.is_empty() {
            return Err(LutError::TableCount {
                expected: 1,
                got: 0,
            });
        }
        check_sizes(self.log_entries, tables.iter().map(Table::len))?;
        match ch.role() {
            Role::Client => self.receive(ch, index, tables),
            Role::Server => self.offer(ch, kind, index, tables, sharing),
        }
    }

    /// Client: one entry of every table.
    fn receive(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let (k, n) = (self.log_entries, 1usize << self.log_entries);
        let mut frame = Vec::new();
        for lookups in ranges(self.batch, ONLINE_CHUNK) {
            let choices = index[lookups.clone()].iter().zip(&self.choices[lookups]);
            let open_choices: Vec<u64> = choices.map(|(&i, &c)| i ^ u64::from(c)).collect();
            frame.clear();
            pack::pack_append(&open_choices, k, &mut frame);
            ch.send(CORRECTION, &frame)?;
        }
        let width = tables.len().div_ceil(2);
        let mut pad = vec![Block::ZERO; width];
        let mut outputs = vec![vec![0; self.batch]; tables.len()];
        let mut entries = Zeroizing::new(Vec::new());
        let mut one_hot = Zeroizing::new(vec![0; row_words(k)]);
        for lookups in ranges(self.batch, chunk(k)) {
            entries.resize(lookups.len() * n, 0);
            frame.resize(masked_bytes(tables, entries.len()), 0);
            ch.recv(MASKED, &mut frame)?;
            let mut rest = frame.as_slice();
            for (t, table) in tables.iter().enumerate() {
                let section = pack::packed_len(entries.len(), table.bits());
                pack::unpack_into(&rest[..section], table.bits(), &mut entries);
                rest = &rest[section..];
                for (entries, i) in entries.chunks_exact(n).zip(lookups.clone()) {
                    set_one_hot(&mut one_hot, index[i] & mask(k));
                    outputs[t][i] = select::xor(&one_hot, entries);
                }
            }
            for i in lookups {
                let tweak = tweak(i, index[i] & mask(k), k);
                Tccr {
                    first: tweak,
                    width,
                }
                .hash(&self.keys[i..=i], Block::ZERO, &mut pad);
                for (t, (outputs, table)) in outputs.iter_mut().zip(tables).enumerate() {
                    outputs[i] ^= pad_word(&pad, t) & mask(table.bits());
                }
            }
        }
        Ok(outputs)
    }

    /// Server: the masked tables.
    fn offer(
        mut self,
        ch: &mut Channel,
        kind: Index,
        index: &[u64],
        tables: &[Table],
        sharing: Sharing,
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let (k, n) = (self.log_entries, 1usize << self.log_entries);
        let corrections = receive_corrections(ch, CORRECTION, k, self.batch)?;
        let outputs: Vec<Vec<u64>> = tables
            .iter()
            .map(|table| {
                let mut shares = vec![0; self.batch];
                self.prg.fill_masked(&mut shares, table.bits());
                shares
            })
            .collect();
        let width = tables.len().div_ceil(2);
        let mut keys = Zeroizing::new(vec![Block::ZERO; n * chunk(k)]);
        let mut pads = Zeroizing::new(vec![Block::ZERO; n * chunk(k) * width]);
        let mut masked = Zeroizing::new(vec![0; n * chunk(k)]);
        let mut scratch = Zeroizing::new(vec![0; n]);
        let mut frame = Vec::new();
        for lookups in ranges(self.batch, chunk(k)) {
            self.hash_keys(lookups.clone(), &corrections, width, &mut keys, &mut pads);
            frame.clear();
            for (t, table) in tables.iter().enumerate() {
                for (slot, i) in lookups.clone().enumerate() {
                    let masked = &mut masked[slot * n..][..n];
                    move_entries(kind, table.entries(), index[i], masked, &mut scratch);
                    let share = outputs[t][i];
                    masked.iter_mut().for_each(|e| *e = sharing.sub(*e, share));
                    let pads = pads[slot * n * width..].chunks_exact(width);
                    masked
                        .iter_mut()
                        .zip(pads)
                        .for_each(|(entry, pad)| *entry ^= pad_word(pad, t));
                }
                pack::pack_append(&masked[..n * lookups.len()], table.bits(), &mut frame);
            }
            ch.send(MASKED, &frame)?;
        }
        Ok(outputs)
    }

    /// Server: the pads of some lookups, `H(key_(v ⊕ d), v)` for all `v`.
    fn hash_keys(
        &self,
        lookups: Range<usize>,
        corrections: &[u64],
        width: usize,
        keys: &mut [Block],
        pads: &mut [Block],
    ) {
        let (k, n) = (self.log_entries, 1usize << self.log_entries);
        let keys = &mut keys[..lookups.len() * n];
        let seeds = self.keys[lookups.start * (k as usize + 1)..].chunks_exact(k as usize + 1);
        let lookup_keys = keys.chunks_exact_mut(n).zip(&corrections[lookups.clone()]);
        for ((keys, &d), seeds) in lookup_keys.zip(seeds) {
            one_of_n::expand(seeds, d, keys);
        }
        let first = tweak(lookups.start, 0, k);
        Tccr { first, width }.hash(keys, Block::ZERO, &mut pads[..keys.len() * width]);
    }
}

/// The word of a table in a pad.
fn pad_word(pad: &[Block], table: usize) -> u64 {
    (pad[table / 2].0 >> (64 * (table % 2))) as u64
}

/// Payload bytes of a frame of `entries` entries of every table.
fn masked_bytes(tables: &[Table], entries: usize) -> usize {
    tables
        .iter()
        .map(|t| pack::packed_len(entries, t.bits()))
        .sum()
}

/// Server: all corrections, before anything is sent, so that neither party waits for the other to
/// read.
pub(crate) fn receive_corrections(
    ch: &mut Channel,
    label: Label,
    log_entries: u32,
    batch: usize,
) -> Result<Vec<u64>, LutError> {
    let mut corrections = vec![0; batch];
    let mut frame = Vec::new();
    for lookups in ranges(batch, ONLINE_CHUNK) {
        frame.resize(pack::packed_len(lookups.len(), log_entries), 0);
        ch.recv(label, &mut frame)?;
        pack::unpack_into(&frame, log_entries, &mut corrections[lookups]);
    }
    Ok(corrections)
}

/// The one-hot vector of `point`, touching every word alike.
fn set_one_hot(row: &mut [u64], point: u64) {
    for (j, word) in row.iter_mut().enumerate() {
        let here = u64::from((point >> 6) ^ j as u64 == 0);
        *word = here << (point & 63);
    }
}

/// `out_v = T_(v + i)` (or `T_(v ⊕ i)`), in time and addresses independent of the secret `i`: one
/// masked step a bit of it. `scratch` is as long as the table.
pub(crate) fn move_entries(
    kind: Index,
    table: &[u64],
    i: u64,
    out: &mut [u64],
    scratch: &mut [u64],
) {
    out.copy_from_slice(table);
    for t in 0..table.len().ilog2() {
        let step = 1 << t;
        let chosen = (i >> t & 1).wrapping_neg();
        match (kind, step) {
            (Index::Arithmetic, _) => {
                let (head, tail) = out.split_at(step);
                scratch[..tail.len()].copy_from_slice(tail);
                scratch[tail.len()..].copy_from_slice(head);
                for (out, &moved) in out.iter_mut().zip(scratch.iter()) {
                    *out ^= (*out ^ moved) & chosen;
                }
            }
            (Index::Boolean, 1) => swap_near::<1>(out, chosen),
            (Index::Boolean, 2) => swap_near::<2>(out, chosen),
            (Index::Boolean, 4) => swap_near::<4>(out, chosen),
            (Index::Boolean, _) => {
                for pair in out.chunks_exact_mut(2 * step) {
                    let (low, high) = pair.split_at_mut(step);
                    for (low, high) in low.iter_mut().zip(high) {
                        let swap = (*low ^ *high) & chosen;
                        *low ^= swap;
                        *high ^= swap;
                    }
                }
            }
        }
    }
}

/// Exchanges entries `j` and `j ⊕ STEP` where `chosen` is all ones; `STEP` is 1, 2 or 4.
fn swap_near<const STEP: usize>(entries: &mut [u64], chosen: u64) {
    let (eights, rest) = entries.as_chunks_mut::<8>();
    for eight in eights {
        let from = *eight;
        for j in 0..8 {
            eight[j] ^= (from[j] ^ from[j ^ STEP]) & chosen;
        }
    }
    // Tables of 2 or 4 entries.
    for pair in rest.chunks_exact_mut(2 * STEP) {
        for j in 0..STEP {
            let swap = (pair[j] ^ pair[j + STEP]) & chosen;
            pair[j] ^= swap;
            pair[j + STEP] ^= swap;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_move_by_the_share() {
        for log_entries in [1, 2, 3, 6] {
            let n = 1u64 << log_entries;
            let table: Vec<u64> = (0..n).map(|i| i * 3 + 1).collect();
            let (mut out, mut scratch) = (table.clone(), table.clone());
            for kind in [Index::Arithmetic, Index::Boolean] {
                for share in 0..n {
                    move_entries(kind, &table, share, &mut out, &mut scratch);
                    for v in 0..n {
                        let at = kind.join(v, share, log_entries) as usize;
                        assert_eq!(out[v as usize], table[at], "{kind} {n} {share} {v}");
                    }
                }
            }
        }
    }
}
