//! One-hot correlations by doubling.
//!
//! Of shared random bits `b_0 … b_(k−1)` shares of all products `p_Q = ∧_{j∈Q} b_j` are made, and of these, by the butterfly (Möbius)
//! transform `e_v = ⊕_{Q ⊇ v} p_Q`, the vector that is one-hot at `r = Σ 2^i b_i`. The products of the bits below `i` are a vector `p` of
//! `w = 2^i` bits, and those of the bits up to `i` are `p ‖ b_i·p`. The product's cross terms cost one random OT each *whose choice bit is
//! the random bit itself*: the sender, with pads `r_0, r_1` and share `p_A`, sends `r_0 ⊕ r_1 ⊕ p_A` and takes `r_0`; the receiver with
//! choice `b_B` takes `r_{b_B} ⊕ b_B·message`, and the two add up to `b_B·p_A`. The first product is 1, and `b_i·1` needs no message: so `w − 1`
//! bits are sent. For an additively shared index, further bits of the same pads of the OTs
//! with `C` as sender give additive shares of `r` ([`position`]).
//!
//! ```text
//!     C                                                        S
//!     random OTs: k with C as sender (k − 1 if the index is boolean), k − 1 with S as sender
//!     step i = 1 … k − 1:
//!       r_0 ⊕ r_1 ⊕ p_C   (2^i − 1 bits)  ────────▶
//!                                         ◀────────  r_0 ⊕ r_1 ⊕ p_S   (2^i − 1 bits)
//!     with step 1, for an additively shared index:
//!       p_0 − p_1 + b_C,i  (k−1−i bits, i = 0 … k−2)  ────────▶
//!     both: the butterfly
//! ```
//!
//! Rounds: `k − 1`. Bits, both parties: `2(n − k − 1)`, and `k(k−1)/2` more for an additively shared
//! index. Where `k = 1` nothing is sent and no OT is used.
//!
//! Security (semi-honest): every message is the sender's secret masked by `r_0 ⊕ r_1` (or `p_0 −
//! p_1`), of which the receiver knows one half and the other is a fresh random-OT pad: uniform bits
//! simulate it. The bits `b` themselves are never sent.
//!
//! OTs are drawn chunk by chunk, all of one direction and then all of the other, and only what is
//! needed of the pads is kept: the masking difference, and one fold of both directions' shares.

pub(crate) mod levels;
pub(crate) mod position;

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::fold::row_words;
use volvelle_prim::{Block, Lines, Prg, lanes};
use zeroize::{Zeroize, Zeroizing};

use self::levels::Levels;
use self::position::{Layout, Position};
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::onehot::OneHots;
use crate::{Index, LutError};

const LABEL: Label = Label::new("lut/doubling");

/// What doubling sends and consumes for a batch.
pub(crate) fn cost(log_entries: u32, index: Index, batch: usize) -> Cost {
    let layout = Layout::new(log_entries, index);
    let vectors = vectors_cost(log_entries, batch);
    let ots = u64::from(log_entries - 1) * batch as u64;
    Cost {
        client_bits: vectors + 8 * layout.bytes(batch) as u64,
        server_bits: vectors,
        rounds: plan(log_entries, index, batch).rounds(),
        cots_client: ots + if layout.any() { batch as u64 } else { 0 },
        cots_server: ots,
    }
}

/// Bits that a party sends for the vectors.
pub(crate) fn vectors_cost(log_entries: u32, batch: usize) -> u64 {
    (1..log_entries)
        .map(|i| 8 * lanes::tail_bytes(batch, 1 << i) as u64)
        .sum()
}

/// Lookups a frame: as many as keep a step's working set in the second-level cache; a multiple of
/// 64, so that chunks start at whole words. An agreement parameter.
pub(crate) const fn chunk(log_entries: u32) -> usize {
    if log_entries <= 7 {
        8192
    } else {
        1 << (20 - log_entries)
    }
}

fn plan(log_entries: u32, index: Index, batch: usize) -> Plan {
    let chunk = chunk(log_entries);
    let widest = lanes::tail_bytes(chunk, 1 << (log_entries - 1));
    let products = Layout::new(log_entries, index).bytes(chunk);
    let steps = log_entries as usize - 1;
    Plan {
        batch,
        chunk,
        steps,
        largest_frame: widest + products,
    }
}

/// One party in the middle of making a batch.
pub(crate) struct Doubling {
    role: Role,
    log_entries: u32,
    batch: usize,
    layout: Layout,
    pub position: Position,
    levels: Levels,
    /// Of a message that has come.
    received: Zeroizing<Vec<u64>>,
}

pub(crate) fn zeros<T: Clone + Default + Zeroize>(len: usize) -> Zeroizing<Vec<T>> {
    Zeroizing::new(vec![T::default(); len])
}

/// Random bits, 64 a word.
pub(crate) fn random_bits(count: usize, prg: &mut Prg) -> Zeroizing<Vec<u64>> {
    let mut bytes = zeros(count);
    prg.fill_bytes(&mut bytes);
    bytes.iter_mut().for_each(|b| *b &= 1);
    let mut bits = zeros(lanes::words(count, 1));
    lanes::pack_bits(&bytes, &mut bits);
    bits
}

/// The lookups of a piece of a chunk.
pub(crate) fn within(chunk: &Range<usize>, piece: &Range<usize>) -> Range<usize> {
    chunk.start + piece.start..chunk.start + piece.end
}

impl Doubling {
    /// Starts a batch: draws what is not drawn by OTs. The position of `layout` may have more bits than the vectors; whoever
    /// gave it adds them to [`Self::position`].
    pub fn new(role: Role, log_entries: u32, layout: Layout, batch: usize, prg: &mut Prg) -> Self {
        let mut party = Self {
            role,
            log_entries,
            batch,
            layout,
            position: Position::new(role, layout, batch),
            levels: Levels::new(log_entries, batch),
            received: zeros(0),
        };
        // The server's b_0 is the choice of an OT where there is one for it.
        if role == Role::Client || !party.layout.any() {
            party.set_bits(0, 0..batch, &random_bits(batch, prg));
        }
        party
    }

    /// Draws the random OTs of one direction, and keeps what is needed of them.
    pub fn draw(&mut self, ch: &mut Channel, ot: &mut Ot, sender: Role) -> Result<(), LutError> {
        let products = sender == Role::Client && self.layout.any();
        for chunk in ranges(self.batch, chunk(self.log_entries)) {
            for i in u32::from(!products)..self.log_entries {
                let (width, count) = (self.width(i, products), chunk.len());
                if self.role == sender {
                    ot.send_random_pieces(ch, width, count, |piece, zeros, ones| {
                        self.keep_sent(i, (&chunk, piece), width, (zeros, ones));
                    })?;
                } else {
                    ot.recv_random_pieces(ch, width, count, |piece, choices, pads| {
                        let products = products && self.layout.bits(i) > 0;
                        self.keep_received(i, (&chunk, piece), width, (choices, pads), products);
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Blocks of a pad of level `i`: for the vector, then for the product.
    fn width(&self, i: u32, products: bool) -> usize {
        let product = if products {
            self.layout.bits(i) as usize
        } else {
            0
        };
        (vector_bits(i) + product).div_ceil(128)
    }

    /// Sets the own bits `b_i` of some lookups, 64 a word.
    fn set_bits(&mut self, i: u32, lookups: Range<usize>, bits: &[u64]) {
        self.levels.bits_mut(i, &lookups).copy_from_slice(bits);
        self.position.set_bits(i, lookups, bits);
    }

    fn keep_sent(
        &mut self,
        i: u32,
        (chunk, piece): (&Range<usize>, Range<usize>),
        width: usize,
        (zeros, ones): (&[Block], &[Block]),
    ) {
        if self.role == Role::Client && self.layout.bits(i) > 0 {
            let lookups = within(chunk, &piece);
            self.position
                .keep_sent(i, lookups, vector_bits(i), (zeros, ones), width);
        }
        if i > 0 {
            let (masks, folds) = self.levels.pads_mut(i, chunk, &piece);
            lanes::xor_both_pads(zeros, ones, (width, 1 << i), masks, folds);
        }
    }

    fn keep_received(
        &mut self,
        i: u32,
        (chunk, piece): (&Range<usize>, Range<usize>),
        width: usize,
        (choices, pads): (&[u64], &[Block]),
        product: bool,
    ) {
        let lookups = within(chunk, &piece);
        self.set_bits(i, lookups.clone(), choices);
        if product {
            self.position
                .keep_received(i, lookups, vector_bits(i), pads, width);
        }
        if i > 0 {
            let (_, folds) = self.levels.pads_mut(i, chunk, &piece);
            lanes::xor_pads(pads, width, 1 << i, folds);
        }
    }

    /// Runs the steps: all talking but the OTs.
    pub fn run(mut self, ch: &mut Channel, index: Index) -> Result<OneHots, LutError> {
        self.start();
        let plan = plan(self.log_entries, index, self.batch);
        exchange(ch, &plan, &mut self)?;
        let log_entries = self.log_entries;
        let (rows, positions) = self.finish();
        Ok(OneHots::new(log_entries, index, rows, positions))
    }

    /// The vectors of two bits; all OTs have been drawn.
    pub fn start(&mut self) {
        self.levels.start(self.role == Role::Client);
    }

    /// The vectors of some lookups, after the last step.
    pub fn vectors(&self, lookups: &Range<usize>) -> &[u64] {
        self.levels.vectors(self.log_entries - 1, lookups)
    }

    /// The rows, and the shares of the positions.
    pub fn finish(self) -> (Lines<u64>, Lines<u32>) {
        let packed = self.levels.into_last();
        let rows = if self.log_entries < 6 {
            let mut rows = Lines::zeros(self.batch * row_words(self.log_entries));
            for lookups in ranges(self.batch, chunk(self.log_entries)) {
                let packed = &packed[levels::vectors_at(self.log_entries - 1, &lookups)];
                lanes::unpack(1 << self.log_entries, packed, &mut rows[lookups]);
            }
            rows
        } else {
            packed
        };
        (rows, self.position.finish())
    }
}

/// Bits of the vectors at level `i`; level 0 has none.
const fn vector_bits(i: u32) -> usize {
    if i == 0 { 0 } else { 1 << i }
}

impl Steps for Doubling {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        let products = step == 0 && self.role == Role::Server;
        let products = if products {
            self.layout.bytes(count)
        } else {
            0
        };
        lanes::tail_bytes(count, 2 << step) + products
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        let i = step as u32 + 1;
        let vectors = self.levels.vectors(i - 1, &lookups);
        let masks = self.levels.masks(i, &lookups);
        lanes::append_tails((lookups.len(), 1 << i), vectors, masks, frame);
        if step == 0 && self.role == Role::Client && self.layout.any() {
            self.position.make(lookups, frame);
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]) {
        let (i, width) = (step as u32 + 1, 2 << step);
        let (vectors, products) = frame.split_at(lanes::tail_bytes(lookups.len(), width));
        if !products.is_empty() {
            self.position.take(lookups.clone(), products);
        }
        self.received.resize(lanes::words(lookups.len(), width), 0);
        lanes::read_tails((lookups.len(), width), vectors, &mut self.received);
        self.levels.double(i, &lookups, &self.received);
    }
}
