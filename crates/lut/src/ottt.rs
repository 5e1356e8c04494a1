//! OTTT, a baseline: one-time truth tables (Ishai et al., TCC 2013), made by evaluating the table as a circuit.
//!
//! A dealer hands out the original's truth tables. Between two parties they are made by evaluating a circuit of the
//! table, at `r` shifted by every `j` there is, on shares of a random `r` (Dessouky et al., NDSS 2017, who count `(k − 1)·l`
//! AND gates for each of the `n` evaluations). But a public table's output is linear in the `n` products of the bits of
//! `r` that say `r = v`, and so are all its shifts in the same products: one evaluation's AND gates serve all `n`, and of
//! any table. Those products are a one-hot correlation, and [`crate::doubling`] is the least communication they
//! are known to take. So here a truth table is a one-hot correlation whose every offset is looked up beforehand:
//!
//! ```text
//!     C                                                S
//!     one-hot shares of r, by doubling; z_C,j = Σ_v e_C,v·T_(v+j), z_S,j = −Σ_v e_S,v·T_(v+j), for all j
//!     for additive outputs, the sign, which is the same for all j (`sign`):
//!     c_C ⊕ β_C              (1 bit)      ────────▶
//!                                         ◀────────  c_S ⊕ β_S              (1 bit)
//!     s_0,j − s_1,j + u_j  (n·(l − 1) bits) ────────▶
//!                                         ◀────────  s'_0,j − s'_1,j + v_j  (n·(l − 1) bits)
//! ```
//!
//! What is kept, and looking up, is as for OP-LUT: see [`crate::truth_tables`].
//!
//! Rounds: `k − 1`, and 2 for additive outputs; online 1. Bits: doubling's, and `2 + 2n·Σ(l − 1)` for additive outputs; online
//! `2k`. OTs: doubling's, and 2 for additive outputs. Computing: `n²` masked additions a table, where a lookup straight from
//! the one-hot shares takes `n`: that one is never worse, which is why this is a baseline.
//!
//! Security (semi-honest): doubling's; the sign step as in [`crate::sign`], its two pads widened by the tweakable hash.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, Prg, mask, pack};
use zeroize::Zeroizing;

use crate::doubling::position::Layout;
use crate::doubling::{self, Doubling};
use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange, ranges};
use crate::onehot::OneHots;
use crate::shape::check_batch;
use crate::sign;
use crate::table::Selector;
use crate::truth_tables::{self, KnownTables, TruthTables};
use crate::{Index, LutError, Sharing, Table};

const CHOICE: Label = Label::new("lut/ottt-choice");
const SIGN: Label = Label::new("lut/ottt-sign");

/// A batch of prepared OTTT lookups.
pub struct Ottt(TruthTables);

impl Ottt {
    /// The largest `k` of a table of `2^k` entries: computing grows with `4^k`.
    pub const MAX_LOG_ENTRIES: u32 = 10;

    /// Prepares `batch` lookups in tables that are known already.
    ///
    /// # Errors
    /// If a parameter is out of range, the batch too large for the memory, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        known: &KnownTables<'_>,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, known, batch, &mut Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        known: &KnownTables<'_>,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        let log_entries = known.check("OTTT", Self::MAX_LOG_ENTRIES)?;
        check_batch(batch)?;
        let truth = TruthTables::new(log_entries, known, batch)?;
        ch.span("ottt-prepare", |ch| make(ch, ot, known, truth, prg))
            .map(Self)
    }

    /// What preparing and looking up `batch` indices in tables of these word widths sends and consumes.
    #[must_use]
    pub fn cost(
        log_entries: u32,
        index: Index,
        sharing: Sharing,
        words: &[u32],
        batch: usize,
    ) -> PhasedCost {
        let doubling = doubling::cost(log_entries, index, batch);
        let mut signs = Cost::default();
        if sign_needed(sharing, words) {
            let bits = 8 * (batch.div_ceil(8) + sign_bytes(log_entries, words, batch)) as u64;
            signs = Cost {
                client_bits: bits,
                server_bits: bits,
                rounds: plan(log_entries, words, batch).rounds(),
                cots_client: batch as u64,
                cots_server: batch as u64,
            };
        }
        PhasedCost {
            prep: doubling.then(signs),
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

fn sign_needed(sharing: Sharing, words: &[u32]) -> bool {
    sharing == Sharing::Additive && sign::needed(words)
}

/// Payload bytes of the sign step of some lookups.
fn sign_bytes(log_entries: u32, words: &[u32], count: usize) -> usize {
    sign::message_bytes(words, count << log_entries)
}

fn plan(log_entries: u32, words: &[u32], batch: usize) -> Plan {
    // Some 2^14 entries of each table, and a multiple of 8 lookups, so that only the last frame pads its bits.
    let chunk = (1 << 14 >> log_entries).max(8);
    Plan {
        batch,
        chunk,
        steps: 2,
        largest_frame: sign_bytes(log_entries, words, chunk),
    }
}

/// All OTs of one direction come before those of the other, and all OTs before what is made of them.
fn make(
    ch: &mut Channel,
    ot: &mut Ot,
    known: &KnownTables<'_>,
    mut truth: TruthTables,
    prg: &mut Prg,
) -> Result<TruthTables, LutError> {
    let (role, words, batch) = (ch.role(), known.words(), truth.len());
    let log_entries = known.tables[0].len().ilog2();
    let mut pads = sign_needed(known.sharing, &words).then(|| Pads::new(batch));
    let mut doubling = Doubling::new(
        role,
        log_entries,
        Layout::new(log_entries, known.index),
        batch,
        prg,
    );
    for sender in [Role::Client, Role::Server] {
        doubling.draw(ch, ot, sender)?;
        if let Some(pads) = &mut pads {
            pads.draw(ch, ot, sender)?;
        }
    }
    let onehots = doubling.run(ch, known.index)?;
    truth.positions.copy_from_slice(onehots.positions());
    let mut party = Party {
        log_entries,
        role,
        sharing: known.sharing,
        narrow: known
            .tables
            .iter()
            .map(|table| Narrow::new(known.index, table))
            .collect(),
        selectors: known
            .tables
            .iter()
            .map(|table| Selector::new(known.index, log_entries, std::slice::from_ref(table)))
            .collect(),
        onehots,
        words,
        truth,
        room: Zeroizing::new(vec![0; 1 << log_entries]),
    };
    match pads {
        None => (0..batch).for_each(|i| party.select(i, 0)),
        Some(pads) => {
            let plan = plan(log_entries, &party.words, batch);
            let mut signed = Signed { party, pads };
            exchange(ch, &plan, &mut signed)?;
            party = signed.party;
        }
    }
    Ok(party.truth)
}

/// The random OTs of the sign, one each way a lookup.
struct Pads {
    /// `s_0` and `s_1` of the OT sent; exchanged where the peer's choice is to be.
    sent: [Zeroizing<Vec<Block>>; 2],
    received: Zeroizing<Vec<Block>>,
    /// The random choice `c`, then `β`.
    beta: Zeroizing<Vec<u8>>,
}

impl Pads {
    fn new(batch: usize) -> Self {
        let room = || Zeroizing::new(vec![Block::ZERO; batch]);
        Self {
            sent: [room(), room()],
            received: room(),
            beta: Zeroizing::new(vec![0; batch]),
        }
    }

    fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        for lookups in ranges(self.beta.len(), ONLINE_CHUNK) {
            if ch.role() == sender {
                let [zero, one] = &mut self.sent;
                ot.send_random(ch, 1, &mut zero[lookups.clone()], &mut one[lookups])?;
            } else {
                let choices = &mut self.beta[lookups.clone()];
                ot.recv_random(ch, 1, choices, &mut self.received[lookups])?;
            }
        }
        Ok(())
    }
}

/// A party that turns one-hot vectors into truth tables.
struct Party {
    log_entries: u32,
    /// For each table of narrow entries, its moves.
    narrow: Vec<Option<Narrow>>,
    role: Role,
    sharing: Sharing,
    words: Vec<u32>,
    onehots: OneHots,
    /// For each table.
    selectors: Vec<Selector>,
    truth: TruthTables,
    /// Room for a table of entries.
    room: Zeroizing<Vec<u64>>,
}

impl Party {
    /// Looks up every offset of lookup `i`, and negates what comes of it where `negate` is all ones.
    fn select(&mut self, i: usize, negate: u64) {
        self.onehots.for_rows(i..i + 1, |_, row| {
            for (t, &bits) in self.words.iter().enumerate() {
                if let Some(narrow) = &self.narrow[t] {
                    narrow.select(self.sharing, row, &mut self.room);
                } else {
                    let selector = &mut self.selectors[t];
                    for (delta, entry) in self.room.iter_mut().enumerate() {
                        selector.set_row(row, delta);
                        *entry = match self.sharing {
                            Sharing::Additive => selector.sums().sum(),
                            Sharing::Xor => selector.xors().sum(),
                        };
                    }
                }
                for entry in self.room.iter_mut() {
                    *entry = (*entry ^ negate).wrapping_sub(negate) & mask(bits);
                }
                self.truth.set(t, i, &self.room);
            }
        });
    }
}

/// Entries added at once.
const LANES: usize = 16;

/// A table of entries of up to 16 bits, laid out so that all offsets are looked up together: each `v` adds the whole table
/// moved by `v`, or nothing.
struct Narrow {
    index: Index,
    entries: usize,
    /// Arithmetic: the table twice. Boolean: for each low part of an offset, the table moved by that.
    table: Vec<u16>,
}

impl Narrow {
    /// If entries are narrow and there are enough.
    fn new(index: Index, table: &Table) -> Option<Self> {
        let entries = table.len();
        if table.bits() > 16 || entries < LANES {
            return None;
        }
        let narrow: Vec<u16> = table.entries().iter().map(|&entry| entry as u16).collect();
        let table = match index {
            Index::Arithmetic => narrow.repeat(2),
            Index::Boolean => (0..LANES)
                .flat_map(|low| (0..entries).map(move |j| j ^ low))
                .map(|at| narrow[at])
                .collect(),
        };
        Some(Self {
            index,
            entries,
            table,
        })
    }

    /// The table moved by `v`, `LANES` entries after the other.
    #[inline]
    fn moved(&self, v: usize) -> impl Iterator<Item = &[u16; LANES]> {
        let (start, swap) = match self.index {
            Index::Arithmetic => (v, 0),
            Index::Boolean => (v % LANES * self.entries, v / LANES),
        };
        let (blocks, _) = self.table[start..start + self.entries].as_chunks();
        (0..blocks.len()).map(move |block| &blocks[block ^ swap])
    }

    /// `Σ_v row_v·T_(v + j)` for all `j`, modulo 2^16.
    fn select(&self, sharing: Sharing, row: &[u64], out: &mut [u64]) {
        let mut sums = Zeroizing::new(vec![[0u16; LANES]; self.entries / LANES]);
        for v in 0..self.entries {
            let keep = ((row[v / 64] >> (v % 64)) as u16 & 1).wrapping_neg();
            let each = sums.iter_mut().zip(self.moved(v));
            match sharing {
                Sharing::Additive => each.for_each(|(sums, entries)| {
                    for lane in 0..LANES {
                        sums[lane] = sums[lane].wrapping_add(entries[lane] & keep);
                    }
                }),
                Sharing::Xor => each.for_each(|(sums, entries)| {
                    for lane in 0..LANES {
                        sums[lane] ^= entries[lane] & keep;
                    }
                }),
            }
        }
        for (out, &sum) in out.iter_mut().zip(sums.as_flattened()) {
            *out = sum.into();
        }
    }
}

/// A party in the sign step.
struct Signed {
    party: Party,
    pads: Pads,
}

impl Signed {
    /// The pads of some lookups, each a word for every entry of every table.
    fn expand(&self, keys: &[Block], lookups: &Range<usize>) -> Zeroizing<Vec<Block>> {
        let width = self.pad_words() / 2;
        let mut pads = Zeroizing::new(vec![Block::ZERO; lookups.len() * width]);
        let first = lookups.start as u64;
        Tccr { first, width }.hash(&keys[lookups.clone()], Block::ZERO, &mut pads);
        pads
    }

    /// Words of a pad.
    fn pad_words(&self) -> usize {
        self.party.words.len() << self.party.log_entries
    }

    /// Appends what multiplies the own entries with the peer's `β`.
    fn make_signs(&self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let n = 1 << self.party.log_entries;
        let [zero, one] = &self.pads.sent;
        let mut zero = self.expand(zero, &lookups);
        let mut one = self.expand(one, &lookups);
        let [zero, one] = [&mut zero, &mut one].map(|pads| Block::as_words_mut(pads));
        let mut messages = Zeroizing::new(vec![0; lookups.len() * n]);
        for (t, &bits) in self.party.words.iter().enumerate() {
            for (slot, message) in messages.chunks_exact_mut(n).enumerate() {
                let pad = slot * self.pad_words() + t * n;
                self.party.truth.get(t, lookups.start + slot, message);
                add(message, &zero[pad..pad + n]);
                subtract(message, &one[pad..pad + n]);
            }
            if sign::message_bits(bits) > 0 {
                pack::pack_append(&messages, sign::message_bits(bits), frame);
            }
        }
    }

    /// Turns the own entries into the truth tables, given the peer's message.
    fn take_signs(&mut self, lookups: Range<usize>, mut frame: &[u8]) {
        let n = 1 << self.party.log_entries;
        let mut zero = self.expand(&self.pads.sent[0], &lookups);
        let mut received = self.expand(&self.pads.received, &lookups);
        let [zero, received] = [&mut zero, &mut received].map(|pads| Block::as_words_mut(pads));
        let mut messages = Zeroizing::new(vec![0; lookups.len() * n]);
        for (t, &bits) in self.party.words.clone().iter().enumerate() {
            let message_bits = sign::message_bits(bits);
            if message_bits > 0 {
                let (message, rest) =
                    frame.split_at(pack::packed_len(messages.len(), message_bits));
                pack::unpack_into(message, message_bits, &mut messages);
                frame = rest;
            }
            for (slot, message) in messages.chunks_exact_mut(n).enumerate() {
                let (i, pad) = (lookups.start + slot, slot * self.pad_words() + t * n);
                // `s_0 − s_β − β·message`, of which twice is added.
                let beta = u64::from(self.pads.beta[i]).wrapping_neg();
                message
                    .iter_mut()
                    .for_each(|m| *m = (*m & beta).wrapping_neg());
                add(message, &zero[pad..pad + n]);
                subtract(message, &received[pad..pad + n]);
                let own = &mut self.party.room;
                self.party.truth.get(t, i, own);
                for (own, &product) in own.iter_mut().zip(message.iter()) {
                    *own = own.wrapping_add(product << 1) & mask(bits);
                }
                self.party.truth.set(t, i, own);
            }
        }
    }

    /// Appends the choices' corrections, `c ⊕ β`.
    fn make_choices(&mut self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let mut corrections = Vec::with_capacity(lookups.len());
        let (role, choices) = (self.party.role, &mut self.pads.beta);
        self.party.onehots.for_rows(lookups, |i, row| {
            let ones: u32 = row.iter().map(|w| w.count_ones()).sum();
            let beta = sign::share(role, (ones & 3) as u8);
            corrections.push(u64::from(std::mem::replace(&mut choices[i], beta) ^ beta));
        });
        pack::pack_append(&corrections, 1, frame);
    }

    /// Fixes the OTs to the peer's choices, and looks up every offset.
    fn take_choices(&mut self, lookups: Range<usize>, frame: &[u8]) {
        let mut corrections = vec![0; lookups.len()];
        pack::unpack_into(frame, 1, &mut corrections);
        let server = u64::from(self.party.role == Role::Server);
        for (i, correction) in lookups.zip(corrections) {
            let [zero, one] = &mut self.pads.sent;
            let swap = (zero[i] ^ one[i]).keep_if(correction as u8);
            zero[i] ^= swap;
            one[i] ^= swap;
            let negate = u64::from(self.pads.beta[i]) ^ server;
            self.party.select(i, negate.wrapping_neg());
        }
    }
}

fn add(to: &mut [u64], from: &[u64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, &from)| *to = to.wrapping_add(from));
}

fn subtract(to: &mut [u64], from: &[u64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, &from)| *to = to.wrapping_sub(from));
}

impl Steps for Signed {
    fn label(&self, step: usize) -> Label {
        if step == 0 { CHOICE } else { SIGN }
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        match step {
            0 => count.div_ceil(8),
            _ => sign_bytes(self.party.log_entries, &self.party.words, count),
        }
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        match step {
            0 => self.make_choices(lookups, frame),
            _ => self.make_signs(lookups, frame),
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]) {
        match step {
            0 => self.take_choices(lookups, frame),
            _ => self.take_signs(lookups, frame),
        }
    }
}
