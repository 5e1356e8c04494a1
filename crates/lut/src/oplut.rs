//! OP-LUT, a baseline: one-time truth tables by oblivious transfer (Dessouky et al., NDSS 2017).
//!
//! `S` draws its share `r_S` of the offset and moves the table by it, in secret; the other share `r_C = c` is what `C`'s
//! random OTs choose. What is missing is to move the table by `c` as well, which only `C` knows, and to share it. Two ways:
//!
//! [`Setup::OneOfN`], as published: 1-of-n OT of the masked table under each of the `n` moves.
//!
//! ```text
//!     C                                           S
//!     k random OTs with S as sender, C's choice c, keys as in `one_of_n`; pad_v = H(key_v)
//!                                 ◀────────       M_S = V − pad_0, where V = T moved by r_S;
//!                                                   for all v ≠ 0:           ((n − 1)·n·l bits)
//!                                                   (V moved by v) − M_S, ⊕ pad_v
//!     M_C = row c, unmasked
//! ```
//!
//! The row of 0 would be `V − M_S`; as `M_S` is free to choose, it is chosen so that this row is its pad and need not be
//! sent (as in garbled-row reduction), one row in `n` less than published.
//!
//! [`Setup::Shifter`], the same correlation for `k/(n − 1)` of the bits: a barrel shifter. Moving by `c` is moving by
//! `2^t` if `c_t` is 1, for each `t`: a choice between two shared tables that the random OT number `t` makes, with
//! pads as long as the table. `S` knows its shares of all stages without hearing of `C`, so there is one round.
//!
//! ```text
//!     C, x = 0                                    S, s = V
//!     for t = 0 … k − 1:                            Δ = (s moved by 2^t) − s
//!                                 ◀────────       d = Δ + p_0 − p_1              (n·l bits)
//!     x = (x moved by c_t·2^t) + p_(c_t) + c_t·d    s = s − p_0
//! ```
//!
//! Rounds: 1 in preprocessing, 1 online. Bits: `(n − 1)·n·Σl` or `k·n·Σl`, and online `2k` ([`crate::truth_tables`]). For each
//! table a row is a whole number of bytes. `k` OTs a lookup. Computing: the first way `n` keys and `n²·l/128` hashes
//! for `S`; the second some `k·n·l/64`.
//!
//! Security (semi-honest): `S` sees nothing. `C` has one key, so the rows under the other pads are uniform to it, and
//! `M_S` is masked by `pad_0`, or if `C` has that one, `M_C` is that pad and says nothing. In the shifter each message
//! is masked by the pad that `C` does not have, once.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, Prg, mask, pack};
use zeroize::Zeroizing;

use crate::LutError;
use crate::exchange::ranges;
use crate::one_of_n::{self, tweak};
use crate::shape::check_batch;
use crate::splut::move_entries;
use crate::truth_tables::{self, KnownTables, TruthTables, move_by_public, row_bytes};

const ROWS: Label = Label::new("lut/oplut-rows");
const STAGES: Label = Label::new("lut/oplut-stages");

/// How the truth tables of [`OpLut`] are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setup {
    /// As published, by 1-of-n OT of all moved tables: `(n − 1)·n·l` bits; up to 256 entries.
    OneOfN,
    /// By a barrel shifter of `k` OTs: `k·n·l` bits.
    Shifter,
}

impl Setup {
    /// The largest `k` of a table of `2^k` entries.
    #[must_use]
    pub const fn max_log_entries(self) -> u32 {
        match self {
            Self::OneOfN => 8,
            Self::Shifter => 12,
        }
    }

    /// Rows of `n` entries sent for a lookup.
    const fn rows(self, log_entries: u32) -> usize {
        match self {
            Self::OneOfN => (1 << log_entries) - 1,
            Self::Shifter => log_entries as usize,
        }
    }

    /// Lookups a frame, of some 2^16 entries of each table. An agreement parameter.
    fn chunk(self, log_entries: u32) -> usize {
        (1 << 16 >> log_entries >> self.rows(log_entries).ilog2()).max(1)
    }
}

/// A batch of prepared OP-LUT lookups.
pub struct OpLut(TruthTables);

impl OpLut {
    /// Prepares `batch` lookups in tables that are known already.
    ///
    /// # Errors
    /// If a parameter is out of range, the tables too large for the set-up, the batch too large for the memory, or
    /// the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        setup: Setup,
        known: &KnownTables<'_>,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, setup, known, batch, &mut Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        setup: Setup,
        known: &KnownTables<'_>,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        let log_entries = known.check("OP-LUT", setup.max_log_entries())?;
        check_batch(batch)?;
        let mut maker = Maker::new(log_entries, known, batch)?;
        ch.span("oplut-prepare", |ch| match (setup, ch.role()) {
            (Setup::OneOfN, Role::Client) => maker.receive_rows(ch, ot),
            (Setup::OneOfN, Role::Server) => maker.send_rows(ch, ot, prg),
            (Setup::Shifter, Role::Client) => maker.receive_stages(ch, ot),
            (Setup::Shifter, Role::Server) => maker.send_stages(ch, ot, prg),
        })?;
        Ok(Self(maker.truth))
    }

    /// What preparing and looking up `batch` indices in tables of these word widths sends and consumes.
    #[must_use]
    pub fn cost(setup: Setup, log_entries: u32, words: &[u32], batch: usize) -> PhasedCost {
        let rows = batch * setup.rows(log_entries);
        PhasedCost {
            prep: Cost {
                server_bits: 8 * (rows * row_bytes(log_entries, words)) as u64,
                rounds: 1,
                cots_server: batch as u64 * u64::from(log_entries),
                ..Cost::default()
            },
            online: truth_tables::cost(log_entries, batch),
        }
    }

    /// Number of prepared lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Looks up: `index[i]` is this party's share of index `i` (taken modulo the number of entries). Returns, for each
    /// table, this party's shares of the entries, of the kind prepared for.
    ///
    /// # Errors
    /// If there are not as many indices as were prepared for, or the peer fails.
    pub fn lookup(self, ch: &mut Channel, index: &[u64]) -> Result<Vec<Vec<u64>>, LutError> {
        self.0.lookup(ch, index)
    }
}

/// One party in the middle of making a batch.
struct Maker<'a> {
    log_entries: u32,
    known: &'a KnownTables<'a>,
    words: Vec<u32>,
    row_bytes: usize,
    truth: TruthTables,
    /// Room for a table of entries, twice.
    scratch: [Zeroizing<Vec<u64>>; 2],
}

impl<'a> Maker<'a> {
    fn new(log_entries: u32, known: &'a KnownTables<'a>, batch: usize) -> Result<Self, LutError> {
        let words = known.words();
        let room = || Zeroizing::new(vec![0; 1 << log_entries]);
        Ok(Self {
            log_entries,
            row_bytes: row_bytes(log_entries, &words),
            words,
            truth: TruthTables::new(log_entries, known, batch)?,
            known,
            scratch: [room(), room()],
        })
    }

    fn entries(&self) -> usize {
        1 << self.log_entries
    }

    /// Blocks of a row's pad.
    fn width(&self) -> usize {
        self.row_bytes.div_ceil(16)
    }

    /// Where table `t` is in a row.
    fn section(&self, t: usize) -> Range<usize> {
        let start = row_bytes(self.log_entries, &self.words[..t]);
        start..row_bytes(self.log_entries, &self.words[..=t])
    }

    /// Server: draws `r_S` of some lookups.
    fn draw_positions(&mut self, lookups: Range<usize>, prg: &mut Prg) {
        let mut drawn = Zeroizing::new(vec![0; lookups.len()]);
        prg.fill_masked(&mut drawn, self.log_entries);
        let positions = self.truth.positions[lookups].iter_mut();
        positions
            .zip(drawn.iter())
            .for_each(|(p, &r)| *p = r as u32);
    }

    /// Server: table `t` moved by its own share of lookup `i`'s offset.
    fn move_by_own(&mut self, t: usize, i: usize, out: &mut [u64]) {
        let own = u64::from(self.truth.positions[i]);
        let table = self.known.tables[t].entries();
        move_entries(self.known.index, table, own, out, &mut self.scratch[0]);
    }
}

/// 1-of-n OT.
impl Maker<'_> {
    fn send_rows(&mut self, ch: &mut Channel, ot: &mut Ot, prg: &mut Prg) -> Result<(), LutError> {
        let (k, n, width) = (self.log_entries, self.entries(), self.width());
        let chunk = Setup::OneOfN.chunk(k);
        let per_lookup = k as usize + 1;
        let mut seeds = Zeroizing::new(vec![Block::ZERO; chunk * per_lookup]);
        let mut keys = Zeroizing::new(vec![Block::ZERO; n]);
        let mut pads = Zeroizing::new(vec![Block::ZERO; n * width]);
        let mut frame = Vec::new();
        for lookups in ranges(self.truth.len(), chunk) {
            let seeds = &mut seeds[..lookups.len() * per_lookup];
            one_of_n::draw_sender(ch, ot, k, seeds)?;
            self.draw_positions(lookups.clone(), prg);
            frame.clear();
            for (i, seeds) in lookups.zip(seeds.chunks_exact(per_lookup)) {
                one_of_n::expand(seeds, 0, &mut keys);
                let first = tweak(i, 0, k);
                Tccr { first, width }.hash(&keys, Block::ZERO, &mut pads);
                self.make_rows(i, Block::as_bytes(&pads), &mut frame);
            }
            ch.send(ROWS, &frame)?;
        }
        Ok(())
    }

    /// Server: the rows of lookup `i`, but for the first, which makes its own share.
    fn make_rows(&mut self, i: usize, pads: &[u8], frame: &mut Vec<u8>) {
        let (n, pad_bytes) = (self.entries(), 16 * self.width());
        let KnownTables { index, sharing, .. } = *self.known;
        let start = frame.len();
        frame.resize(start + (n - 1) * self.row_bytes, 0);
        let mut table = Zeroizing::new(vec![0; n]);
        let mut own = Zeroizing::new(vec![0; n]);
        let mut packed = Zeroizing::new(Vec::with_capacity(self.row_bytes));
        for (t, &bits) in self.words.clone().iter().enumerate() {
            let section = self.section(t);
            self.move_by_own(t, i, &mut table);
            pack::unpack_into(&pads[section.clone()], bits, &mut own);
            for (own, &entry) in own.iter_mut().zip(table.iter()) {
                *own = sharing.sub(entry, *own) & mask(bits);
            }
            let row = &mut self.scratch[1];
            for v in 1..n {
                move_by_public(index, &table, v, row);
                for (row, &own) in row.iter_mut().zip(own.iter()) {
                    *row = sharing.sub(*row, own);
                }
                packed.clear();
                pack::pack_append(row, bits, &mut packed);
                let pad = &pads[v * pad_bytes..][section.clone()];
                let at = start + (v - 1) * self.row_bytes + section.start;
                let out = frame[at..][..packed.len()].iter_mut();
                out.zip(packed.iter().zip(pad))
                    .for_each(|(out, (&row, &pad))| *out = row ^ pad);
            }
            self.truth.set(t, i, &own);
        }
    }

    fn receive_rows(&mut self, ch: &mut Channel, ot: &mut Ot) -> Result<(), LutError> {
        let (k, n, width) = (self.log_entries, self.entries(), self.width());
        let chunk = Setup::OneOfN.chunk(k);
        let mut keys = Zeroizing::new(vec![Block::ZERO; chunk]);
        let mut row = Zeroizing::new(vec![Block::ZERO; width]);
        let mut frame = Vec::new();
        for lookups in ranges(self.truth.len(), chunk) {
            let keys = &mut keys[..lookups.len()];
            let choices = &mut self.truth.positions[lookups.clone()];
            one_of_n::draw_receiver(ch, ot, k, choices, keys)?;
            frame.resize(lookups.len() * (n - 1) * self.row_bytes, 0);
            ch.recv(ROWS, &mut frame)?;
            let rows = frame.chunks_exact((n - 1) * self.row_bytes);
            for ((i, key), rows) in lookups.zip(keys.iter()).zip(rows) {
                let choice = u64::from(self.truth.positions[i]);
                let first = tweak(i, choice, k);
                Tccr { first, width }.hash(std::slice::from_ref(key), Block::ZERO, &mut row);
                let row = &mut Block::as_bytes_mut(&mut row)[..self.row_bytes];
                // All rows are read, and one of them kept; row 0 is its pad.
                for (v, masked) in (1..).zip(rows.chunks_exact(self.row_bytes)) {
                    let keep = 0u8.wrapping_sub(u8::from(v == choice));
                    row.iter_mut()
                        .zip(masked)
                        .for_each(|(row, &masked)| *row ^= masked & keep);
                }
                self.unpack_row(i, row);
            }
        }
        Ok(())
    }

    /// Client: its share of lookup `i`.
    fn unpack_row(&mut self, i: usize, row: &[u8]) {
        for (t, &bits) in self.words.iter().enumerate() {
            let section = self.section(t);
            pack::unpack_into(&row[section], bits, &mut self.scratch[0]);
            self.truth.set(t, i, &self.scratch[0]);
        }
    }
}

/// The barrel shifter.
impl Maker<'_> {
    fn send_stages(
        &mut self,
        ch: &mut Channel,
        ot: &mut Ot,
        prg: &mut Prg,
    ) -> Result<(), LutError> {
        let (k, width) = (self.log_entries as usize, self.width());
        let chunk = Setup::Shifter.chunk(self.log_entries);
        let mut zero = Zeroizing::new(vec![Block::ZERO; chunk * k * width]);
        let mut one = zero.clone();
        let mut frame = Vec::new();
        for lookups in ranges(self.truth.len(), chunk) {
            let used = lookups.len() * k * width;
            ot.send_random(ch, width, &mut zero[..used], &mut one[..used])?;
            self.draw_positions(lookups.clone(), prg);
            frame.clear();
            let pads = zero
                .chunks_exact(k * width)
                .zip(one.chunks_exact(k * width));
            for (i, (zero, one)) in lookups.zip(pads) {
                self.make_stages(i, Block::as_bytes(zero), Block::as_bytes(one), &mut frame);
            }
            ch.send(STAGES, &frame)?;
        }
        Ok(())
    }

    /// Server: the messages of lookup `i`, a row a stage, and its own share.
    fn make_stages(&mut self, i: usize, zero: &[u8], one: &[u8], frame: &mut Vec<u8>) {
        let (n, pad_bytes) = (self.entries(), 16 * self.width());
        let KnownTables { index, sharing, .. } = *self.known;
        let start = frame.len();
        frame.resize(start + self.log_entries as usize * self.row_bytes, 0);
        let mut share = Zeroizing::new(vec![0; n]);
        let (mut kept, mut message) = (share.clone(), share.clone());
        let mut packed = Vec::new();
        for (t, &bits) in self.words.clone().iter().enumerate() {
            let section = self.section(t);
            self.move_by_own(t, i, &mut share);
            for stage in 0..self.log_entries as usize {
                let pad = stage * pad_bytes + section.start..stage * pad_bytes + section.end;
                pack::unpack_into(&zero[pad.clone()], bits, &mut kept);
                pack::unpack_into(&one[pad], bits, &mut message);
                let moved = &mut self.scratch[1];
                move_by_public(index, &share, 1 << stage, moved);
                let shares = moved.iter().zip(share.iter());
                let each = message.iter_mut().zip(kept.iter()).zip(shares);
                for ((message, &kept), (&moved, &share)) in each {
                    let change = sharing.sub(moved, share);
                    *message = sharing.add(change, sharing.sub(kept, *message));
                }
                packed.clear();
                pack::pack_append(&message, bits, &mut packed);
                let at = start + stage * self.row_bytes + section.start;
                frame[at..][..packed.len()].copy_from_slice(&packed);
                for (share, &kept) in share.iter_mut().zip(kept.iter()) {
                    *share = sharing.sub(*share, kept) & mask(bits);
                }
            }
            self.truth.set(t, i, &share);
        }
    }

    fn receive_stages(&mut self, ch: &mut Channel, ot: &mut Ot) -> Result<(), LutError> {
        let (k, width) = (self.log_entries as usize, self.width());
        let chunk = Setup::Shifter.chunk(self.log_entries);
        let mut pads = Zeroizing::new(vec![Block::ZERO; chunk * k * width]);
        let mut choices = Zeroizing::new(vec![0; chunk * k]);
        let mut frame = Vec::new();
        for lookups in ranges(self.truth.len(), chunk) {
            let used = lookups.len() * k;
            ot.recv_random(ch, width, &mut choices[..used], &mut pads[..used * width])?;
            frame.resize(used * self.row_bytes, 0);
            ch.recv(STAGES, &mut frame)?;
            let drawn = choices.chunks_exact(k).zip(pads.chunks_exact(k * width));
            let stages = frame.chunks_exact(k * self.row_bytes);
            for ((i, (choices, pads)), stages) in lookups.zip(drawn).zip(stages) {
                let bits = choices.iter().rev();
                self.truth.positions[i] = bits.fold(0, |c, &bit| c << 1 | u32::from(bit));
                self.take_stages(i, choices, Block::as_bytes(pads), stages);
            }
        }
        Ok(())
    }

    /// Client: its share of lookup `i`.
    fn take_stages(&mut self, i: usize, choices: &[u8], pads: &[u8], stages: &[u8]) {
        let (n, pad_bytes) = (self.entries(), 16 * self.width());
        let KnownTables { index, sharing, .. } = *self.known;
        let mut share = Zeroizing::new(vec![0; n]);
        let mut next = share.clone();
        for (t, &bits) in self.words.iter().enumerate() {
            let section = self.section(t);
            let [pad, message] = &mut self.scratch;
            share.fill(0);
            for (stage, &choice) in choices.iter().enumerate() {
                let chosen = u64::from(choice).wrapping_neg();
                pack::unpack_into(&pads[stage * pad_bytes..][section.clone()], bits, pad);
                let row = &stages[stage * self.row_bytes..][section.clone()];
                pack::unpack_into(row, bits, message);
                move_by_public(index, &share, 1 << stage, &mut next);
                let received = pad.iter().zip(message.iter());
                let each = next.iter_mut().zip(share.iter()).zip(received);
                for ((next, &share), (&pad, &message)) in each {
                    let picked = share ^ ((share ^ *next) & chosen);
                    let product = sharing.add(pad, message & chosen);
                    *next = sharing.add(picked, product) & mask(bits);
                }
                std::mem::swap(&mut share, &mut next);
            }
            self.truth.set(t, i, &share);
        }
    }
}
