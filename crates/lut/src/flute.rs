//! FLUTE, the boolean baseline (Brüggemann et al., IEEE S&P 2023; as ROTL, PoPETs 2026, §6 counts it).
//!
//! XOR-shared random bits `α_0 … α_(k−1)` and shares of all products `p_Q = ∧_{j∈Q} α_j`, each an AND
//! of two smaller ones with a multiplication triple of its own. Online, `m = x ⊕ α` is opened. Every
//! bit of the output is an inner product of the table's column with the `n = 2^k` minterms of `x`,
//! and every minterm a multi-fan-in AND that is expanded over all `n` products:
//!
//! ```text
//!     y_b = ⊕_v T_v,b · ∧_j (x_j ⊕ ¬v_j) = ⊕_v T_v,b · ⊕_Q (∧_{j∉Q} m_j ⊕ ¬v_j) · p_Q
//!
//!     C                                                     S
//!     2(n − k − 1) random OTs, half of them each way: triples a·b = c
//!     step t = 1 … ⌈log k⌉, for each Q of 2^(t−1) + 1 … 2^t elements, halves A and B:
//!     p_A ⊕ a, p_B ⊕ b    (2 bits)   ────────▶
//!                                    ◀────────  p_A ⊕ a, p_B ⊕ b    (2 bits)
//!     online:
//!     share of x ⊕ α      (k bits)   ────────▶
//!                                    ◀────────  share of x ⊕ α      (k bits)
//! ```
//!
//! Preprocessing: `⌈log k⌉` rounds, `4(n − k − 1)` bits, `2(n − k − 1)` OTs. Online: 1 round, `2k`
//! bits, and `O(l·n²)` computing: for every output bit and every entry the `n` monomials of `m` and
//! their inner product with the `p_Q`, two ANDs and an XOR a product. It is bit-sliced: a word holds
//! one bit of 64 lookups. Nothing is kept from one output bit to the next, and entries whose bit is
//! zero are not left out: that would be a step towards [`FlutePlus`](crate::FlutePlus).
//!
//! Security (semi-honest): triples hide what is opened in preprocessing, `α` hides `x`.

use std::ops::{Range, RangeInclusive};

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::lanes::pack_bits;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::exchange::{Plan, Steps, exchange, ranges, read_words};
use crate::flute_plus::{check_indices, check_tables};
use crate::onehot::Opening;
use crate::shape::{check_batch, check_size};
use crate::table::check_sizes;
use crate::{Index, LutError, Table, boolean};

/// `log2` of the entries it takes.
pub(crate) const SIZES: RangeInclusive<u32> = 1..=12;

const LABEL: Label = Label::new("lut/flute-and");

/// Words of a plane.
const WORDS: usize = 8;

/// Lookups a frame in preprocessing: one plane. An agreement parameter.
const CHUNK: usize = 64 * WORDS;

/// One bit of each of the lookups of a chunk.
type Plane = [u64; WORDS];

/// A batch of prepared FLUTE lookups, each used once.
pub struct Flute {
    log_entries: u32,
    /// Own shares of `α`.
    alphas: Zeroizing<Vec<u64>>,
    /// Own shares of the products: `n` planes a chunk, `p_Q` at number `Q`.
    products: Zeroizing<Vec<Plane>>,
}

impl Flute {
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
        check_size("flute", SIZES, log_entries)?;
        check_batch(batch)?;
        ch.span("lut-prepare", |ch| {
            let mut ands = Ands::new(ch.role(), log_entries, batch, prg);
            for sender in [Role::Client, Role::Server] {
                ands.draw(ch, ot, sender)?;
            }
            exchange(ch, &plan(log_entries, batch), &mut ands)?;
            Ok(ands.prepared)
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
            check_size("flute", SIZES, log_entries).is_ok(),
            "cost of lookups in tables of 2^{log_entries} entries"
        );
        let ands = (1u64 << log_entries) - u64::from(log_entries) - 1;
        let plane_bits: u64 = ranges(batch, CHUNK)
            .map(|lookups| 8 * lookups.len().div_ceil(8) as u64)
            .sum();
        PhasedCost {
            prep: Cost {
                client_bits: 2 * ands * plane_bits,
                server_bits: 2 * ands * plane_bits,
                rounds: plan(log_entries, batch).rounds(),
                cots_client: ands * batch as u64,
                cots_server: ands * batch as u64,
            },
            online: boolean::cost(log_entries, batch),
        }
    }

    /// Number of prepared lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.alphas.len()
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
        check_indices(self.len(), index)?;
        check_sizes(self.log_entries, tables.iter().map(Table::len))?;
        let own = self.alphas.iter().zip(index);
        let own = own.map(|(&a, &i)| Index::Boolean.split(i, a, self.log_entries) as u32);
        let plan = boolean::plan(self.log_entries, index.len());
        let mut evaluation = Evaluation {
            opening: Opening::from_shares(own.collect(), self.log_entries, Index::Boolean),
            monomials: vec![[0; WORDS]; 1 << self.log_entries],
            outputs: vec![vec![0; index.len()]; tables.len()],
            flute: self,
            tables,
        };
        ch.span("lut-xor", |ch| exchange(ch, &plan, &mut evaluation))?;
        Ok(evaluation.outputs)
    }

    /// The products of a chunk.
    fn planes(&self, chunk: usize) -> Range<usize> {
        chunk << self.log_entries..(chunk + 1) << self.log_entries
    }
}

/// The products made in a step, as subsets of `0..k`.
fn products_of(log_entries: u32, step: usize) -> impl Iterator<Item = usize> {
    (0..1usize << log_entries).filter(move |q| {
        let size = q.count_ones() as usize;
        (1 << step) < size && size <= 2 << step
    })
}

/// A subset in two halves, the first not smaller.
fn halves(q: usize) -> [usize; 2] {
    let mut high = q;
    for _ in 0..q.count_ones().div_ceil(2) {
        high &= high - 1;
    }
    [q ^ high, high]
}

fn plan(log_entries: u32, batch: usize) -> Plan {
    let steps = log_entries.next_power_of_two().ilog2() as usize;
    let most = (0..steps)
        .map(|s| products_of(log_entries, s).count())
        .max();
    Plan {
        batch,
        chunk: CHUNK,
        steps,
        largest_frame: 2 * most.unwrap_or(0) * CHUNK / 8,
    }
}

/// A multiplication triple `a·b = c` for each lookup of a chunk, in XOR shares.
#[derive(Clone, Copy, Default, zeroize::Zeroize)]
struct Triple {
    a: Plane,
    b: Plane,
    c: Plane,
}

/// One party in the middle of making the products of a batch.
struct Ands {
    role: Role,
    prepared: Flute,
    /// `n − k − 1` a chunk, in the order in which they are used.
    triples: Zeroizing<Vec<Triple>>,
    received: Vec<u64>,
}

impl Ands {
    fn new(role: Role, log_entries: u32, batch: usize, prg: &mut Prg) -> Self {
        let (n, chunks) = (1usize << log_entries, batch.div_ceil(CHUNK));
        let mut alphas = Zeroizing::new(vec![0; batch]);
        prg.fill_masked(&mut alphas, log_entries);
        let mut products = Zeroizing::new(vec![[0; WORDS]; chunks * n]);
        for (alphas, products) in alphas.chunks(CHUNK).zip(products.chunks_exact_mut(n)) {
            // The empty product is the client's.
            products[0] = [u64::from(role == Role::Client).wrapping_neg(); WORDS];
            for j in 0..log_entries {
                products[1 << j] = slice_bit(alphas, j);
            }
        }
        Self {
            role,
            prepared: Flute {
                log_entries,
                alphas,
                products,
            },
            triples: Zeroizing::new(vec![
                Triple::default();
                chunks * (n - log_entries as usize - 1)
            ]),
            received: Vec::new(),
        }
    }

    /// ANDs a chunk.
    fn ands(&self) -> usize {
        (1 << self.prepared.log_entries) - self.prepared.log_entries as usize - 1
    }

    /// The triples of a step of a chunk.
    fn triples_at(&self, step: usize, lookups: &Range<usize>) -> Range<usize> {
        let count = |s| products_of(self.prepared.log_entries, s).count();
        let start = lookups.start / CHUNK * self.ands() + (0..step).map(count).sum::<usize>();
        start..start + count(step)
    }

    /// Draws the random OTs of one direction: the sender's `a` is the difference of its two pads, the
    /// receiver's `b` its choice, and the pads are shares of their product.
    fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        let (role, ands) = (self.role, self.ands());
        let mut zero = Zeroizing::new(vec![Block::ZERO; CHUNK]);
        let mut one = zero.clone();
        let mut choices = Zeroizing::new(vec![0; CHUNK]);
        for lookups in ranges(self.prepared.len(), CHUNK) {
            let chunk = lookups.start / CHUNK;
            let (zero, one) = (&mut zero[..lookups.len()], &mut one[..lookups.len()]);
            let choices = &mut choices[..lookups.len()];
            for triple in &mut self.triples[chunk * ands..][..ands] {
                if role == sender {
                    ot.send_random(ch, 1, zero, one)?;
                    triple.a = xor(lowest(zero), lowest(one));
                } else {
                    ot.recv_random(ch, 1, choices, zero)?;
                    pack_bits(choices, &mut triple.b);
                }
                triple.c = xor(triple.c, lowest(zero));
                if sender == Role::Server {
                    triple.c = xor(triple.c, and(triple.a, triple.b));
                }
            }
        }
        Ok(())
    }
}

impl Steps for Ands {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        2 * products_of(self.prepared.log_entries, step).count() * count.div_ceil(8)
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let products = &self.prepared.products[self.prepared.planes(lookups.start / CHUNK)];
        let triples = &self.triples[self.triples_at(step, &lookups)];
        for (q, triple) in products_of(self.prepared.log_entries, step).zip(triples) {
            let [left, right] = halves(q);
            for plane in [
                xor(products[left], triple.a),
                xor(products[right], triple.b),
            ] {
                let bytes = plane.iter().flat_map(|w| w.to_le_bytes());
                frame.extend(bytes.take(lookups.len().div_ceil(8)));
            }
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]) {
        let triples = &self.triples[self.triples_at(step, &lookups)];
        let planes = self.prepared.planes(lookups.start / CHUNK);
        let products = &mut self.prepared.products[planes];
        let client = [u64::from(self.role == Role::Client).wrapping_neg(); WORDS];
        let mut planes = frame.chunks_exact(lookups.len().div_ceil(8));
        let mut open_plane = |own: Plane| {
            read_words(planes.next().unwrap_or(&[]), &mut self.received);
            let mut opened = own;
            opened
                .iter_mut()
                .zip(&self.received)
                .for_each(|(o, &r)| *o ^= r);
            opened
        };
        for (q, triple) in products_of(self.prepared.log_entries, step).zip(triples) {
            let [left, right] = halves(q).map(|half| products[half]);
            let d = open_plane(xor(left, triple.a));
            let e = open_plane(xor(right, triple.b));
            let cross = xor(and(d, right), and(e, left));
            let both = and(and(d, e), client);
            products[q] = xor(xor(triple.c, cross), both);
        }
    }
}

/// The online phase of one party.
struct Evaluation<'a> {
    flute: Flute,
    opening: Opening,
    tables: &'a [Table],
    monomials: Vec<Plane>,
    outputs: Vec<Vec<u64>>,
}

impl Steps for Evaluation<'_> {
    fn label(&self, _: usize) -> Label {
        Opening::LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        Opening::bytes(self.flute.log_entries, count)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.opening.make(lookups, frame);
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let masked = self.opening.open_offsets(lookups.clone(), frame);
        let k = self.flute.log_entries;
        // Chunks of the online phase are whole planes.
        for (c, masked) in masked.chunks(CHUNK).enumerate() {
            let first = lookups.start + c * CHUNK;
            let products = &self.flute.products[self.flute.planes(first / CHUNK)];
            let m: Vec<Plane> = (0..k).map(|j| slice_bit(masked, j)).collect();
            for (table, outputs) in self.tables.iter().zip(&mut self.outputs) {
                let outputs = &mut outputs[first..][..masked.len()];
                for b in 0..table.bits() {
                    let y = output_bit(table, b, &m, products, &mut self.monomials);
                    for (i, output) in outputs.iter_mut().enumerate() {
                        *output |= (y[i / 64] >> (i % 64) & 1) << b;
                    }
                }
            }
        }
    }
}

/// Bit `b` of the outputs: the inner product of the table's column with all minterms.
fn output_bit(
    table: &Table,
    b: u32,
    m: &[Plane],
    products: &[Plane],
    monomials: &mut [Plane],
) -> Plane {
    let mut y = [0; WORDS];
    for (v, &entry) in table.entries().iter().enumerate() {
        let column = [(entry >> b & 1).wrapping_neg(); WORDS];
        expand(v, m, monomials);
        y = xor(y, and(minterm(monomials, products), column));
    }
    y
}

/// For all `Q` the monomial `∧_{j∉Q} m_j ⊕ ¬v_j`.
fn expand(v: usize, m: &[Plane], monomials: &mut [Plane]) {
    monomials[0] = [u64::MAX; WORDS];
    for (j, &m) in m.iter().enumerate() {
        let flip = (v as u64 >> j & 1).wrapping_sub(1);
        let factor = xor(m, [flip; WORDS]);
        let (without, with) = monomials[..2 << j].split_at_mut(1 << j);
        for (without, with) in without.iter_mut().zip(with) {
            *with = *without;
            *without = and(*without, factor);
        }
    }
}

/// A share of a minterm: monomials times products.
fn minterm(monomials: &[Plane], products: &[Plane]) -> Plane {
    let terms = monomials.iter().zip(products);
    terms.fold([0; WORDS], |sum, (&m, &p)| xor(sum, and(m, p)))
}

fn xor(mut x: Plane, y: Plane) -> Plane {
    x.iter_mut().zip(y).for_each(|(x, y)| *x ^= y);
    x
}

fn and(mut x: Plane, y: Plane) -> Plane {
    x.iter_mut().zip(y).for_each(|(x, y)| *x &= y);
    x
}

/// Bit `j` of every word.
fn slice_bit(words: &[u64], j: u32) -> Plane {
    let mut plane = [0; WORDS];
    for (plane, words) in plane.iter_mut().zip(words.chunks(64)) {
        let bits = words.iter().rev();
        *plane = bits.fold(0, |plane, &word| plane << 1 | word >> j & 1);
    }
    plane
}

/// The lowest bit of every pad.
fn lowest(pads: &[Block]) -> Plane {
    let mut plane = [0; WORDS];
    for (plane, pads) in plane.iter_mut().zip(pads.chunks(64)) {
        let pads = pads.iter().rev();
        *plane = pads.fold(0, |plane, pad| plane << 1 | pad.0 as u64 & 1);
    }
    plane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_product_comes_once_and_after_its_halves() {
        for k in 1..=12u32 {
            let mut made: Vec<usize> = (0..k).map(|j| 1 << j).collect();
            for step in 0..k.next_power_of_two().ilog2() as usize {
                let before = made.clone();
                for q in products_of(k, step) {
                    let [left, right] = halves(q);
                    assert_eq!((left | right, left & right), (q, 0));
                    assert!(k > 8 || [left, right].iter().all(|half| before.contains(half)));
                    made.push(q);
                }
            }
            made.sort_unstable();
            assert_eq!(made, (1..1 << k).collect::<Vec<_>>());
        }
    }
}
