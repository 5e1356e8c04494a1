//! FLUTE+: boolean lookup by the products of shared random bits (ROTL, PoPETs 2026, §6).
//!
//! XOR-shared random bits `α_0 … α_(k−1)`. Preprocessing makes shares of all `n = 2^k` products
//! `p_Q = ∧_{j∈Q} α_j`; the butterfly (Möbius) transform `e_v = ⊕_{Q ⊇ v} p_Q` turns them into the
//! selection vector over all masks, which is one-hot at `α`. Online, `m = α ⊕ x` is opened and the
//! vector permuted by it selects: [`crate::boolean`].
//!
//! The products over the bits below `i` make a vector `p` of `2^i` bits, and those over the bits up
//! to `i` are `p ‖ α_i·p`. A bit times a vector is a random OT each way *whose choice bit is the
//! random bit itself*: the sender, with pads `r_0, r_1`, sends `r_0 ⊕ r_1 ⊕ p` and takes `r_0`, the
//! receiver takes `r_α ⊕ α·message`. Its first product, `α_i·1`, needs no message.
//!
//! ```text
//!     C                                                        S
//!     random OTs: k − 1 with C as sender, k − 1 with S as sender
//!     step i = 1 … k − 1:
//!       r_0 ⊕ r_1 ⊕ p_C   (2^i − 1 bits)  ────────▶
//!                                         ◀────────  r_0 ⊕ r_1 ⊕ p_S   (2^i − 1 bits)
//!     both: the butterfly
//!     online:
//!     share of x ⊕ α      (k bits)        ────────▶
//!                                         ◀────────  share of x ⊕ α     (k bits)
//!     both know m = x ⊕ α; the output is ⊕ e_v·T_(v⊕m)
//! ```
//!
//! Preprocessing: `k − 1` rounds, `2(n − k − 1)` bits, `2(k − 1)` OTs. Online: 1 round, `2k` bits,
//! whatever the number and width of the tables. (As published, each of the `n − k − 1` products is
//! an AND of its own: 2 OTs and 4 bits.)
//!
//! Security (semi-honest): every message is a secret masked by `r_0 ⊕ r_1`, of which the receiver
//! knows one half and the other is a fresh pad; `m` is hidden by `α`, which is never sent.

mod tails;

use std::ops::{Range, RangeInclusive};

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::fold::row_words;
use volvelle_prim::{BitVec, LOW_HALVES, Lines, Prg, fields, lanes};
use zeroize::{Zeroize, Zeroizing};

use self::tails::{append_tails, message_bytes, read_tails};
use crate::doubling::levels::Levels;
use crate::doubling::{chunk, random_bits, within};
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::onehot::OneHots;
use crate::shape::{check_batch, check_size};
use crate::table::check_sizes;
use crate::{BitTable, Index, LutError, Table, bits, boolean};

/// `log2` of the entries it takes.
pub(crate) const SIZES: RangeInclusive<u32> = 1..=12;

const LABEL: Label = Label::new("lut/fluteplus-product");

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
            let mut products = Products::new(ch.role(), log_entries, batch, prg);
            for sender in [Role::Client, Role::Server] {
                products.draw(ch, ot, sender)?;
            }
            exchange(ch, &plan(log_entries, batch), &mut products)?;
            Ok(Self {
                selections: products.finish(),
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
        let messages: u64 = (1..log_entries)
            .map(|i| 8 * message_bytes(i, batch) as u64)
            .sum();
        let ots = u64::from(log_entries - 1) * batch as u64;
        PhasedCost {
            prep: Cost {
                client_bits: messages,
                server_bits: messages,
                rounds: plan(log_entries, batch).rounds(),
                cots_client: ots,
                cots_server: ots,
            },
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

fn plan(log_entries: u32, batch: usize) -> Plan {
    let chunk = chunk(log_entries);
    Plan {
        batch,
        chunk,
        steps: log_entries as usize - 1,
        largest_frame: message_bytes(log_entries - 1, chunk),
    }
}

fn zeros<T: Clone + Default + Zeroize>(len: usize) -> Zeroizing<Vec<T>> {
    Zeroizing::new(vec![T::default(); len])
}

/// One party in the middle of making the products of a batch.
struct Products {
    role: Role,
    log_entries: u32,
    batch: usize,
    /// Own share of `α`, bit `i` being `α_i`.
    alphas: Lines<u32>,
    /// What came of level `i` are the products of the bits up to `i`.
    levels: Levels,
    scratch: Zeroizing<Vec<u64>>,
}

impl Products {
    fn new(role: Role, log_entries: u32, batch: usize, prg: &mut Prg) -> Self {
        let mut party = Self {
            role,
            log_entries,
            batch,
            alphas: Lines::zeros(batch),
            levels: Levels::new(log_entries, batch),
            scratch: zeros(0),
        };
        party.set_bits(0, 0..batch, &random_bits(batch, prg));
        // One-hot (1 ⊕ α_0, α_0) to products (1, α_0).
        party.levels.start(role == Role::Client);
        let start = party.levels.vectors_mut(0, &(0..batch));
        start.iter_mut().for_each(|w| *w ^= *w >> 1 & LOW_HALVES[0]);
        party
    }

    /// Sets the own share of `α_i` of some lookups, 64 a word.
    fn set_bits(&mut self, i: u32, lookups: Range<usize>, bits: &[u64]) {
        self.levels.bits_mut(i, &lookups).copy_from_slice(bits);
        fields::add_powers(bits, i, &mut self.alphas[lookups]);
    }

    /// Draws the random OTs of one direction, and keeps what is needed of them.
    fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        for chunk in ranges(self.batch, chunk(self.log_entries)) {
            for i in 1..self.log_entries {
                let (bits, count) = (1usize << i, chunk.len());
                let width = bits.div_ceil(128);
                if self.role == sender {
                    ot.send_random_pieces(ch, width, count, |piece, zeros, ones| {
                        let (masks, folds) = self.levels.pads_mut(i, &chunk, &piece);
                        lanes::xor_both_pads(zeros, ones, (width, bits), masks, folds);
                    })?;
                } else {
                    ot.recv_random_pieces(ch, width, count, |piece, choices, pads| {
                        self.set_bits(i, within(&chunk, &piece), choices);
                        let (_, folds) = self.levels.pads_mut(i, &chunk, &piece);
                        lanes::xor_pads(pads, width, bits, folds);
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The butterfly, and the vectors as rows.
    fn finish(self) -> OneHots {
        let k = self.log_entries;
        let mut vectors = self.levels.into_last();
        butterfly(&mut vectors, k);
        let rows = if k < 6 {
            let mut rows = Lines::zeros(self.batch * row_words(k));
            lanes::unpack(1 << k, &vectors, &mut rows);
            rows
        } else {
            vectors
        };
        OneHots::new(k, Index::Boolean, rows, self.alphas)
    }
}

/// `e_v = ⊕_{Q ⊇ v} p_Q` of every vector of `2^k` bits: `k` times, what has bit `t` onto what lacks
/// it.
fn butterfly(vectors: &mut [u64], k: u32) {
    for word in vectors.iter_mut() {
        for t in 0..k.min(6) {
            *word ^= *word >> (1 << t) & LOW_HALVES[t as usize];
        }
    }
    for t in 6..k {
        let half = 1 << (t - 6);
        for pair in vectors.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            low.iter_mut()
                .zip(high)
                .for_each(|(low, &mut high)| *low ^= high);
        }
    }
}

impl Steps for Products {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        message_bytes(step as u32 + 1, count)
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let i = step as u32 + 1;
        let products = self.levels.vectors(i - 1, &lookups).iter();
        let masks = self.levels.masks(i, &lookups);
        self.scratch.clear();
        self.scratch
            .extend(products.zip(masks).map(|(&p, &mask)| p ^ mask));
        append_tails(i, &mut self.scratch, frame);
        frame.truncate(message_bytes(i, lookups.len()));
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]) {
        let i = step as u32 + 1;
        let len = lanes::words(lookups.len(), 1 << i);
        read_tails(i, frame, len, &mut self.scratch);
        self.levels.append_products(i, &lookups, &self.scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_butterfly_turns_products_into_a_one_hot_vector() {
        for k in 1..=8 {
            for alpha in 0..1usize << k {
                let mut vector = vec![0u64; row_words(k)];
                for q in (0..1 << k).filter(|q| q & alpha == *q) {
                    vector[q / 64] |= 1 << (q % 64);
                }
                butterfly(&mut vector, k);
                let mut expected = vec![0u64; row_words(k)];
                expected[alpha / 64] = 1 << (alpha % 64);
                assert_eq!(vector, expected, "k = {k}, α = {alpha}");
            }
        }
    }
}
