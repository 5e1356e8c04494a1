//! The sign of an additive lookup, and its product with the selected entries.
//!
//! Summing table entries under `e_C` with plus and under `e_S` with minus gives `±T_i`: plus if the
//! one that `e_C ⊕ e_S` has at the looked-up place is in `e_C`. As `|e_C| − |e_S|` is that sign,
//! ±1, and odd, its bit 1 is `β = β_C ⊕ β_S` with `β_C` bit 1 of `|e_C|` and `β_S` bit 1 of
//! `−|e_S|`, no carry between them: known in preprocessing, without talking (ROTL, PoPETs 2026,
//! §5.2).
//!
//! The output is `z·(1 − 2β) = u + v − 2·β_S·u − 2·β_C·v`, where `z = z_C + z_S`, `u = z_C(1 −
//! 2β_C)`, `v = z_S(1 − 2β_S)`. Each product takes one OT whose choice is fixed to `β` in
//! preprocessing. Both are doubled, so they are needed modulo `2^(l−1)` only:
//!
//! ```text
//!     C                                                    S
//!     preprocessing: a random OT each way, choices c_S, c_C; then
//!     c_C ⊕ β_C         (1 bit)       ────────▶
//!                                     ◀────────            c_S ⊕ β_S            (1 bit)
//!     online, modulo 2^(l−1):
//!     s_0 − s_1 + u     (l − 1 bits)  ────────▶
//!                                     ◀────────            s'_0 − s'_1 + v      (l − 1 bits)
//! ```
//!
//! A sender's share of a product is `−s_0`, the receiver's `s_β + β·message`. The OT pads are
//! widened to one 64-bit word a table, so that several tables at one index share the two OTs.
//!
//! Preprocessing: 1 round, 2 bits, 2 OTs. Online: 1 round, `2(l − 1)` bits a table.
//!
//! Security (semi-honest): `c ⊕ β` hides `β` behind the random choice `c`; the online messages are
//! masked by `s_0 − s_1`, of which the receiver knows one half.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::fields::{self, Field, InPads};
use volvelle_prim::{Block, Lines, lanes, mask, pack};
use zeroize::Zeroizing;

use crate::LutError;
use crate::doubling::within;
use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange, ranges, read_words};

const LABEL: Label = Label::new("lut/sign-choice");

/// Bits of an online message for a table of `bits`-bit words.
pub(crate) const fn message_bits(bits: u32) -> u32 {
    bits - 1
}

/// Whether tables of these widths need the sign at all: modulo 2, minus is plus.
pub(crate) fn needed(words: &[u32]) -> bool {
    words.iter().any(|&bits| message_bits(bits) > 0)
}

/// Payload bytes of an online frame.
pub(crate) fn message_bytes(words: &[u32], count: usize) -> usize {
    words
        .iter()
        .map(|&bits| pack::packed_len(count, message_bits(bits)))
        .sum()
}

/// What preparing the signs of a batch sends and consumes.
pub(crate) fn prep_cost(words: &[u32], batch: usize) -> Cost {
    if !needed(words) {
        return Cost::default();
    }
    let bits = 8 * batch.div_ceil(8) as u64;
    Cost {
        client_bits: bits,
        server_bits: bits,
        rounds: plan(batch).rounds(),
        cots_client: batch as u64,
        cots_server: batch as u64,
    }
}

fn plan(batch: usize) -> Plan {
    Plan {
        batch,
        chunk: ONLINE_CHUNK,
        steps: 1,
        largest_frame: ONLINE_CHUNK / 8,
    }
}

/// One party's prepared signs of a batch, for tables of given word widths.
pub(crate) struct Signs {
    words: Vec<u32>,
    role: Role,
    batch: usize,
    /// A lookup's random choice `c`, then its `β`.
    beta: Zeroizing<Vec<u8>>,
    /// For each table, `s_0 − s_1` of the OTs sent (its masks), then `2(s_0 − s_β)` of the OTs sent and of those
    /// received (its folds).
    pads: Lines<u64>,
}

/// All of a word.
const WHOLE: Field = Field { start: 0, bits: 64 };

/// The word of a table in pads.
fn pad_word(blocks: usize, table: usize) -> InPads {
    InPads {
        blocks,
        start: 64 * table,
    }
}

impl Signs {
    pub fn new(role: Role, words: &[u32], batch: usize) -> Self {
        Self {
            words: words.to_vec(),
            role,
            batch,
            beta: Zeroizing::new(vec![0; batch]),
            pads: Lines::zeros(2 * words.len() * batch),
        }
    }

    /// Masks and folds of a table for some lookups.
    fn pads(&self, table: usize, lookups: &Range<usize>) -> (&[u64], &[u64]) {
        let pads = &self.pads[2 * table * self.batch..][..2 * self.batch];
        let (masks, folds) = pads.split_at(self.batch);
        (&masks[lookups.clone()], &folds[lookups.clone()])
    }

    fn pads_mut(&mut self, table: usize, lookups: &Range<usize>) -> (&mut [u64], &mut [u64]) {
        let pads = &mut self.pads[2 * table * self.batch..][..2 * self.batch];
        let (masks, folds) = pads.split_at_mut(self.batch);
        (&mut masks[lookups.clone()], &mut folds[lookups.clone()])
    }

    /// Draws the random OTs of one direction.
    pub fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        let width = self.words.len().div_ceil(2);
        for chunk in ranges(self.batch, ONLINE_CHUNK) {
            if self.role == sender {
                ot.send_random_pieces(ch, width, chunk.len(), |piece, zeros, ones| {
                    self.keep_sent(within(&chunk, &piece), zeros, ones, width);
                })?;
            } else {
                ot.recv_random_pieces(ch, width, chunk.len(), |piece, choices, pads| {
                    let lookups = within(&chunk, &piece);
                    lanes::unpack_bits(choices, &mut self.beta[lookups.clone()]);
                    self.keep_received(lookups, pads, width);
                })?;
            }
        }
        Ok(())
    }

    fn keep_sent(&mut self, lookups: Range<usize>, zeros: &[Block], ones: &[Block], width: usize) {
        for t in 0..self.words.len() {
            let (masks, folds) = self.pads_mut(t, &lookups);
            fields::add_differences(zeros, ones, pad_word(width, t), WHOLE, masks);
            fields::add_long_pads(zeros, pad_word(width, t), 1, folds);
        }
    }

    fn keep_received(&mut self, lookups: Range<usize>, pads: &[Block], width: usize) {
        for t in 0..self.words.len() {
            let (_, folds) = self.pads_mut(t, &lookups);
            fields::sub_long_pads(pads, pad_word(width, t), 1, folds);
        }
    }

    /// Fixes the OTs' choices to the signs of one-hot vectors with so many ones (modulo 4).
    pub fn fix(self, ch: &mut Channel, ones: &[u8]) -> Result<Self, LutError> {
        let plan = plan(self.batch);
        let mut fixing = Fixing {
            signs: self,
            ones,
            bits: Zeroizing::default(),
            betas: Zeroizing::default(),
        };
        exchange(ch, &plan, &mut fixing)?;
        Ok(fixing.signs)
    }

    /// All ones where the sum of some lookups' selected entries is to be negated to give `u` (or
    /// `v`); the server's sum counts negatively.
    fn negations(&self, lookups: Range<usize>) -> impl Iterator<Item = u64> {
        let server = u64::from(self.role == Role::Server);
        self.beta[lookups]
            .iter()
            .map(move |&b| (u64::from(b) ^ server).wrapping_neg())
    }

    /// Turns the sums of the entries of table `t` that a party's rows select into its `u` (or `v`).
    pub fn apply(&self, t: usize, lookups: Range<usize>, sums: &mut [u64]) {
        let ring = mask(self.words[t]);
        for (sum, negate) in sums.iter_mut().zip(self.negations(lookups)) {
            *sum = (*sum ^ negate).wrapping_sub(negate) & ring;
        }
    }

    /// Appends the message that multiplies `own` (the party's `u` or `v`) with the peer's `β`.
    pub fn make(&self, t: usize, lookups: Range<usize>, own: &[u64], frame: &mut Vec<u8>) {
        let bits = message_bits(self.words[t]);
        if bits > 0 {
            let (masks, _) = self.pads(t, &lookups);
            let masked: Vec<u64> = own
                .iter()
                .zip(masks)
                .map(|(&own, &mask)| own.wrapping_add(mask))
                .collect();
            pack::pack_append(&masked, bits, frame);
        }
    }

    /// Turns `own` into the output, given the peer's message; returns the rest of the frame.
    pub fn take<'a>(
        &self,
        t: usize,
        lookups: Range<usize>,
        frame: &'a [u8],
        own: &mut [u64],
        scratch: &mut Vec<u64>,
    ) -> &'a [u8] {
        let bits = message_bits(self.words[t]);
        if bits == 0 {
            return frame;
        }
        let (message, rest) = frame.split_at(pack::packed_len(lookups.len(), bits));
        scratch.resize(lookups.len(), 0);
        pack::unpack_into(message, bits, scratch);
        let ring = mask(self.words[t]);
        let folds = self.pads(t, &lookups).1.iter().zip(&self.beta[lookups]);
        for ((own, &message), (&fold, &beta)) in own.iter_mut().zip(scratch.iter()).zip(folds) {
            let chosen = (message << 1) & u64::from(beta).wrapping_neg();
            *own = own.wrapping_add(fold).wrapping_sub(chosen) & ring;
        }
        rest
    }
}

/// How they are kept: `β` in bits, then for each table the masks modulo `2^(l−1)` and the folds modulo `2^l`.
impl Signs {
    /// Copies some of others to the places from `at` on.
    pub fn copy(&mut self, at: usize, others: &Self, lookups: Range<usize>) {
        let places = at..at + lookups.len();
        for t in 0..self.words.len() {
            let (masks, folds) = self.pads_mut(t, &places);
            let (other_masks, other_folds) = others.pads(t, &lookups);
            masks.copy_from_slice(other_masks);
            folds.copy_from_slice(other_folds);
        }
        self.beta[places].copy_from_slice(&others.beta[lookups]);
    }

    /// Bytes of `count` of them.
    pub fn saved_len(words: &[u32], count: usize) -> usize {
        let columns = saved_columns(words).map(|bits| pack::packed_len(count, bits));
        columns.sum::<usize>() + pack::packed_len(count, 1)
    }

    /// Appends some as bytes.
    pub fn save(&self, lookups: Range<usize>, out: &mut Vec<u8>) {
        let beta = self.beta[lookups.clone()].iter().map(|&b| u64::from(b));
        let beta: Zeroizing<Vec<u64>> = Zeroizing::new(beta.collect());
        pack::pack_append(&beta, 1, out);
        for (t, &bits) in self.words.iter().enumerate() {
            let (masks, folds) = self.pads(t, &lookups);
            if message_bits(bits) > 0 {
                pack::pack_append(masks, message_bits(bits), out);
                pack::pack_append(folds, bits, out);
            }
        }
    }

    /// Reads `count` of them from [`Self::saved_len`] bytes.
    pub fn load(role: Role, words: &[u32], count: usize, bytes: &[u8]) -> Self {
        let mut signs = Self::new(role, words, count);
        let (bits, mut rest) = bytes.split_at(pack::packed_len(count, 1));
        let mut column = Zeroizing::new(vec![0; count]);
        pack::unpack_into(bits, 1, &mut column);
        let beta = signs.beta.iter_mut().zip(column.iter());
        beta.for_each(|(beta, &bit)| *beta = bit as u8);
        for (t, &bits) in words.iter().enumerate() {
            if message_bits(bits) > 0 {
                let (masks, folds) = signs.pads_mut(t, &(0..count));
                for (column, bits) in [(masks, message_bits(bits)), (folds, bits)] {
                    let (packed, after) = rest.split_at(pack::packed_len(count, bits));
                    pack::unpack_into(packed, bits, column);
                    rest = after;
                }
            }
        }
        signs
    }
}

/// The widths of what is kept for each table; for one of single bits, nothing.
fn saved_columns(words: &[u32]) -> impl Iterator<Item = u32> {
    words
        .iter()
        .filter(|&&bits| message_bits(bits) > 0)
        .flat_map(|&bits| [message_bits(bits), bits])
}

/// Fixing the choices.
struct Fixing<'a> {
    signs: Signs,
    ones: &'a [u8],
    /// Of a frame's lookups, 64 a word: first choices or what the peer sent, and `β`.
    bits: Zeroizing<Vec<u64>>,
    betas: Zeroizing<Vec<u64>>,
}

/// A party's share of `β`: bit 1 of `|e_C|`, bit 1 of `−|e_S|`.
pub(crate) fn share(role: Role, ones: u8) -> u8 {
    let ones = match role {
        Role::Client => ones,
        Role::Server => ones.wrapping_neg(),
    };
    ones >> 1 & 1
}

impl Steps for Fixing<'_> {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        count.div_ceil(8)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let role = self.signs.role;
        let choices = &mut self.signs.beta[lookups.clone()];
        self.bits.resize(lanes::words(choices.len(), 1), 0);
        lanes::pack_bits(choices, &mut self.bits);
        for (choice, &ones) in choices.iter_mut().zip(&self.ones[lookups.clone()]) {
            *choice = share(role, ones);
        }
        self.betas.resize(self.bits.len(), 0);
        lanes::pack_bits(choices, &mut self.betas);
        let start = frame.len();
        frame.resize(start + lookups.len().div_ceil(8), 0);
        lanes::xor_to_bytes(&self.bits, &self.betas, &mut frame[start..]);
    }

    /// The pads change places where the peer's choice was the other one: `s_0` becomes `s_1`, that
    /// is `s_0 − (s_0 − s_1)`.
    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        read_words(frame, &mut self.bits);
        for t in 0..self.signs.words.len() {
            let (masks, folds) = self.signs.pads_mut(t, &lookups);
            fields::swap_pads(&self.bits, masks, folds);
        }
    }
}
