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
//! Security (semi-honest): doubling's; the sign step as in [`crate::sign`], its two pads expanded by a
//! pseudorandom generator.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::fold::row_words;
use volvelle_prim::{Block, Prg, mask, pack, select};
use zeroize::Zeroizing;

use crate::doubling::{self, Doubling};
use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange, ranges};
use crate::onehot::OneHots;
use crate::shape::check_batch;
use crate::sign;
use crate::table::Offsets;
use crate::truth_tables::{self, KnownTables, TruthTables};
use crate::{Index, LutError, Sharing};

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

    /// Looks up: `index[i]` is this party's share of index `i`. Returns, for each table, this party's shares of
    /// the entries, of the kind prepared for.
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
    let mut doubling = Doubling::new(role, log_entries, known.index, batch, prg);
    for sender in [Role::Client, Role::Server] {
        doubling.draw(ch, ot, sender)?;
        if let Some(pads) = &mut pads {
            pads.draw(ch, ot, sender)?;
        }
    }
    let onehots = doubling.run(ch)?;
    truth.positions.copy_from_slice(onehots.positions());
    let mut party = Party {
        log_entries,
        role,
        sharing: known.sharing,
        offsets: Offsets::new(known.index, log_entries, known.tables),
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
    role: Role,
    sharing: Sharing,
    words: Vec<u32>,
    onehots: OneHots,
    offsets: Offsets,
    truth: TruthTables,
    /// Room for a table of entries.
    room: Zeroizing<Vec<u64>>,
}

impl Party {
    /// Looks up every offset of lookup `i`, and negates what comes of it where `negate` is all ones.
    fn select(&mut self, i: usize, negate: u64) {
        let mut scratch = Zeroizing::new(vec![0; row_words(self.log_entries)]);
        let Some(row) = self.onehots.rows(i..i + 1).next() else {
            return;
        };
        for (t, &bits) in self.words.iter().enumerate() {
            for (delta, entry) in self.room.iter_mut().enumerate() {
                let row = self.offsets.row(row, delta, &mut scratch);
                let table = self.offsets.entries(t, delta);
                let sum = match self.sharing {
                    Sharing::Additive => select::sum(row, table),
                    Sharing::Xor => select::xor(row, table),
                };
                *entry = (sum ^ negate).wrapping_sub(negate) & mask(bits);
            }
            self.truth.set(t, i, &self.room);
        }
    }
}

/// A party in the sign step.
struct Signed {
    party: Party,
    pads: Pads,
}

impl Signed {
    /// The pads of lookup `i` as generators: of `s_0`, of `s_1`, of the pad received.
    fn generators(&self, i: usize) -> [Prg; 3] {
        let [zero, one] = &self.pads.sent;
        [zero[i], one[i], self.pads.received[i]].map(Prg::from_seed)
    }

    /// Appends what multiplies the own entries with the peer's `β`.
    fn make_signs(&self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let n = 1 << self.party.log_entries;
        let mut messages = Zeroizing::new(vec![0; lookups.len() * n]);
        let mut pad = Zeroizing::new(vec![0; n]);
        let mut generators: Vec<[Prg; 3]> = lookups.clone().map(|i| self.generators(i)).collect();
        for (t, &bits) in self.party.words.iter().enumerate() {
            let each = lookups.clone().zip(&mut generators);
            for ((i, [zero, one, _]), message) in each.zip(messages.chunks_exact_mut(n)) {
                self.party.truth.get(t, i, message);
                zero.fill_u64(&mut pad);
                add(message, &pad);
                one.fill_u64(&mut pad);
                subtract(message, &pad);
            }
            if sign::message_bits(bits) > 0 {
                pack::pack_append(&messages, sign::message_bits(bits), frame);
            }
        }
    }

    /// Turns the own entries into the truth tables, given the peer's message.
    fn take_signs(&mut self, lookups: Range<usize>, mut frame: &[u8]) {
        let n = 1 << self.party.log_entries;
        let mut messages = Zeroizing::new(vec![0; lookups.len() * n]);
        let mut pad = Zeroizing::new(vec![0; n]);
        let mut generators: Vec<[Prg; 3]> = lookups.clone().map(|i| self.generators(i)).collect();
        for (t, &bits) in self.party.words.clone().iter().enumerate() {
            let message_bits = sign::message_bits(bits);
            if message_bits > 0 {
                let (message, rest) =
                    frame.split_at(pack::packed_len(messages.len(), message_bits));
                pack::unpack_into(message, message_bits, &mut messages);
                frame = rest;
            }
            let each = lookups.clone().zip(&mut generators);
            for ((i, [zero, _, received]), message) in each.zip(messages.chunks_exact_mut(n)) {
                // `s_0 − s_β − β·message`, of which twice is added.
                let beta = u64::from(self.pads.beta[i]).wrapping_neg();
                message
                    .iter_mut()
                    .for_each(|m| *m = (*m & beta).wrapping_neg());
                zero.fill_u64(&mut pad);
                add(message, &pad);
                received.fill_u64(&mut pad);
                subtract(message, &pad);
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
        let rows = self.party.onehots.rows(lookups.clone());
        let corrections: Vec<u64> = self.pads.beta[lookups]
            .iter_mut()
            .zip(rows)
            .map(|(choice, row)| {
                let beta = sign::share(self.party.role, row) as u8;
                u64::from(std::mem::replace(choice, beta) ^ beta)
            })
            .collect();
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
