//! Lookup with additively shared outputs in one round, by an arithmetic distributed point function.
//!
//! Tree keys to full depth `k` ([`crate::tree::trees`]), no one-hot bits: leaf `j` of party `P`, with control bit `t_P,j` (bit 0), gives
//! pseudorandom words `g_P,j`, one a table. Where the parties' trees are equal, at all leaves but `r`, so are their words. The last
//! correction is arithmetic, mod `2^l` (Boyle, Gilboa, Ishai, CCS 2016): `c = (1 − 2β)(1 − A_C + A_S)` with `A_P = Σ g_P,j`; then
//! `(g_C,j + t_C,j·c) − (g_S,j + t_S,j·c)` is 1 at `j = r` and 0 elsewhere. `β` is 0 if it is the client's control bit that is set at `r`; as with
//! [`crate::sign`], `1 − 2β = Σ t_C,j − Σ t_S,j`, and the product is made like a sign's.
//!
//! ```text
//!     C                                                         S
//!     preprocessing: k random OTs each way, and one each way for the product
//!     k − 1 steps: a correction each              (128 bits)  ◀───────▶
//!     with the first, for an additively shared index: products of bits  (k(k−1)/2 bits)  ────────▶
//!     choices of the product's OTs                (1 bit)     ◀───────▶
//!     for each table, product: mod 2^(l−1)        (l − 1 bits)  ◀───────▶
//!     for each table, opening: share of c         (l bits)    ◀───────▶
//!     online
//!     share of i − r                              (k bits)    ◀───────▶
//!     both know δ = i − r; output ±(Σ g_P,j·T_(j+δ) + c·Σ t_P,j·T_(j+δ)), + for C
//! ```
//!
//! Rounds: 1 online, `k + 2` in preprocessing. Bits: `2k` online; `256·(k − 1) + k(k−1)/2 + 2 + Σ (4l − 2)` in preprocessing.
//! Computing, for up to two tables: `4·2^k` AES in preprocessing, `2·2^k` online, and there a multiplication an entry.
//!
//! Security (semi-honest): tree corrections as in [`crate::tree::trees`]; `c` is masked by the words of the peer's leaf at `r`,
//! hashes under Δ like the corrections; the product as in [`crate::sign`]; `δ` is uniform.

use std::ops::{Range, RangeInclusive};

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::dot::{GROUP, dot};
use volvelle_prim::dpf::hash_nodes;
use volvelle_prim::{Block, Lines, mask, pack};
use zeroize::Zeroizing;

use crate::doubling::position::{Layout, Position};
use crate::doubling::zeros;
use crate::exchange::{ONLINE_CHUNK, Plan, Steps, exchange};
use crate::onehot::Opening;
use crate::shape::check_batch;
use crate::sign::{self, Signs};
use crate::table::{check_sizes, check_widths};
use crate::tree::trees::{CORRECTION, Trees};
use crate::{Index, LutError, Output, Protocol, Shape, Table};

const GROW: Label = Label::new("lut/one-round");
const CORRECT: Label = Label::new("lut/one-round-correction");

/// Sizes that it is for: the work is a multiplication and some AES an entry.
pub(crate) const LOG_ENTRIES: RangeInclusive<u32> = 1..=16;

/// Lookups a frame while trees are made; a multiple of 16. An agreement parameter.
const CHUNK: usize = 1024;

/// A batch of lookups that take one round, prepared before their inputs are known. Each is used once: using it takes the batch
/// by value.
pub struct OneRound {
    role: Role,
    log_entries: u32,
    index: Index,
    words: Vec<u32>,
    trees: Trees,
    positions: Lines<u32>,
    /// For each table, the corrections of its words, which both parties know.
    corrections: Vec<Zeroizing<Vec<u64>>>,
}

impl OneRound {
    /// Prepares `batch` lookups of a shape with additively shared outputs. Both parties call this with the same arguments.
    ///
    /// # Errors
    /// If the shape is out of range or asks for other outputs, the batch is empty, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: &Shape,
        batch: usize,
    ) -> Result<Self, LutError> {
        let words = check(shape)?;
        check_batch(batch)?;
        ch.span("lut-prepare", |ch| {
            Preparing::new(ch.role(), ot, shape, words, batch)?.run(ch, ot)
        })
    }

    /// Exactly what [`Self::prepare`] and one lookup of the whole batch send and consume.
    ///
    /// # Panics
    /// If the shape is not one that [`Self::prepare`] would take.
    #[must_use]
    pub fn cost(shape: &Shape, batch: usize) -> PhasedCost {
        let words = check(shape).unwrap_or_else(|error| panic!("cost of {shape:?}: {error}"));
        let (k, count) = (shape.log_entries, batch as u64);
        let layout = Layout::new(k, shape.index);
        let corrections = 8 * CORRECTION as u64 * count * u64::from(k - 1);
        let grow = Cost {
            client_bits: corrections + 8 * layout.bytes(batch) as u64,
            server_bits: corrections,
            rounds: grow_plan(k, layout, batch).rounds(),
            cots_client: count * u64::from(k),
            cots_server: count * u64::from(k),
        };
        let correct = correct_bits(words, batch);
        let correct = Cost {
            client_bits: correct,
            server_bits: correct,
            rounds: correct_plan(words, batch).rounds(),
            ..Cost::default()
        };
        let opening = 8 * Opening::bytes(k, batch) as u64;
        PhasedCost {
            prep: grow.then(sign::prep_cost(words, batch)).then(correct),
            online: Cost {
                client_bits: opening,
                server_bits: opening,
                rounds: open_plan(k, batch).rounds(),
                ..Cost::default()
            },
        }
    }

    /// Number of lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Looks up with additively shared outputs; see [`Lookups::lookup`](crate::Lookups::lookup). Shares of indices
    /// are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        if index.len() != self.len() {
            return Err(LutError::BatchLength {
                expected: self.len(),
                got: index.len(),
            });
        }
        check_widths(&self.words, tables)?;
        check_sizes(self.log_entries, tables.iter().map(Table::len))?;
        let plan = open_plan(self.log_entries, self.len());
        let n = 1 << self.log_entries;
        let mut online = Online {
            opening: Opening::new(self.index, self.log_entries, &self.positions, index),
            pairs: tables
                .chunks(2)
                .map(|pair| Pair::new(self.index, pair))
                .collect(),
            hashed: zeros(n),
            outputs: vec![vec![0; self.len()]; tables.len()],
            prepared: self,
        };
        ch.span("lut", |ch| exchange(ch, &plan, &mut online))?;
        Ok(online.outputs)
    }
}

/// The widths of the tables of a shape that can be prepared.
fn check(shape: &Shape) -> Result<&[u32], LutError> {
    shape.check()?;
    Protocol::OneRound.check(shape.log_entries)?;
    match &shape.output {
        Output::Arithmetic { words } => Ok(words),
        Output::Xor => Err(LutError::OutputKind {
            expected: Output::word(1).kind(),
            got: shape.output.kind(),
        }),
    }
}

fn grow_plan(log_entries: u32, layout: Layout, batch: usize) -> Plan {
    Plan {
        batch,
        chunk: CHUNK,
        steps: log_entries as usize - 1,
        largest_frame: CHUNK * CORRECTION + layout.bytes(CHUNK),
    }
}

/// Payload bytes of shares of corrections.
fn share_bytes(words: &[u32], count: usize) -> usize {
    words.iter().map(|&l| pack::packed_len(count, l)).sum()
}

fn correct_bits(words: &[u32], batch: usize) -> u64 {
    8 * (sign::message_bytes(words, batch) + share_bytes(words, batch)) as u64
}

/// The product, if there is a sign to multiply with, then the opening.
fn correct_plan(words: &[u32], batch: usize) -> Plan {
    let chunk = Plan::online_chunk(|lookups| share_bytes(words, lookups));
    Plan {
        batch,
        chunk,
        steps: if sign::needed(words) { 2 } else { 1 },
        largest_frame: share_bytes(words, chunk),
    }
}

fn open_plan(log_entries: u32, batch: usize) -> Plan {
    Plan {
        batch,
        chunk: ONLINE_CHUNK,
        steps: 1,
        largest_frame: Opening::bytes(log_entries, ONLINE_CHUNK),
    }
}

/// One party in the middle of preparing a batch: growing trees.
struct Preparing {
    role: Role,
    log_entries: u32,
    index: Index,
    words: Vec<u32>,
    batch: usize,
    layout: Layout,
    position: Position,
    trees: Trees,
}

impl Preparing {
    fn new(
        role: Role,
        ot: &Ot,
        shape: &Shape,
        words: &[u32],
        batch: usize,
    ) -> Result<Self, LutError> {
        let layout = Layout::new(shape.log_entries, shape.index);
        Ok(Self {
            role,
            log_entries: shape.log_entries,
            index: shape.index,
            words: words.to_vec(),
            batch,
            layout,
            position: Position::new(role, layout, batch),
            trees: Trees::new(role, ot, shape.log_entries as usize, batch)?,
        })
    }

    fn run(mut self, ch: &mut Channel, ot: &mut Ot) -> Result<OneRound, LutError> {
        let mut signs =
            sign::needed(&self.words).then(|| Signs::new(self.role, &self.words, self.batch));
        for sender in [Role::Client, Role::Server] {
            let position = (self.layout, &mut self.position);
            self.trees.draw(ch, ot, sender, 0, position)?;
            if let Some(signs) = &mut signs {
                signs.draw(ch, ot, sender)?;
            }
        }
        let plan = grow_plan(self.log_entries, self.layout, self.batch);
        exchange(ch, &plan, &mut self)?;
        let (shares, odd) = self.sum_leaves();
        let signs = signs.map(|signs| signs.fix(ch, &odd)).transpose()?;
        let mut correcting = Correcting {
            words: &self.words,
            signs,
            shares,
        };
        correcting.start(self.batch);
        exchange(ch, &correct_plan(&self.words, self.batch), &mut correcting)?;
        let corrections = correcting.shares;
        let mut positions = self.position.finish();
        let reduce = mask(self.log_entries) as u32;
        positions.iter_mut().for_each(|p| *p &= reduce);
        Ok(OneRound {
            role: self.role,
            log_entries: self.log_entries,
            index: self.index,
            words: self.words,
            trees: self.trees,
            positions,
            corrections,
        })
    }

    /// For each table, `1 − A_C` or `−A_S`: the server's sums count negatively. And the numbers of control bits, modulo 4.
    fn sum_leaves(&self) -> (Vec<Zeroizing<Vec<u64>>>, Zeroizing<Vec<u8>>) {
        let start = u64::from(self.role == Role::Client);
        let mut shares = vec![Zeroizing::new(vec![start; self.batch]); self.words.len()];
        let mut odd = zeros(self.batch);
        let mut hashed = zeros(1 << self.log_entries);
        self.trees.nodes(0..self.batch, |i, nodes| {
            let set: usize = nodes.iter().map(|s| usize::from(s.lsb())).sum();
            odd[i] = (set & 3) as u8;
            for (j, pair) in shares.chunks_mut(2).enumerate() {
                hash_nodes(nodes, j as u64, &mut hashed);
                let (low, high) = hashed.iter().fold((0u64, 0u64), |(low, high), h| {
                    (
                        low.wrapping_add(h.0 as u64),
                        high.wrapping_add((h.0 >> 64) as u64),
                    )
                });
                for (shares, sum) in pair.iter_mut().zip([low, high]) {
                    shares[i] = shares[i].wrapping_sub(sum);
                }
            }
        });
        (shares, odd)
    }
}

impl Steps for Preparing {
    fn label(&self, _: usize) -> Label {
        GROW
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        let products = step == 0 && self.role == Role::Server;
        let products = if products {
            self.layout.bytes(count)
        } else {
            0
        };
        count * CORRECTION + products
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.trees.make(step + 1, lookups.clone(), frame);
        if step == 0 && self.role == Role::Client {
            self.position.make(lookups, frame);
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]) {
        let (corrections, products) = frame.split_at(lookups.len() * CORRECTION);
        self.trees
            .open_shares(step + 1, lookups.clone(), corrections);
        if !products.is_empty() {
            self.position.take(lookups, products);
        }
    }
}

/// Multiplying the last correction by the sign, and opening it.
struct Correcting<'a> {
    words: &'a [u32],
    signs: Option<Signs>,
    /// For each table: the party's sum; its `u` or `v`; its share of the correction; the correction.
    shares: Vec<Zeroizing<Vec<u64>>>,
}

impl Correcting<'_> {
    fn start(&mut self, batch: usize) {
        for (t, (shares, &bits)) in self.shares.iter_mut().zip(self.words).enumerate() {
            match &self.signs {
                Some(signs) => signs.apply(t, 0..batch, shares),
                None => shares.iter_mut().for_each(|share| *share &= mask(bits)),
            }
        }
    }

    /// The signs, in the step that needs them.
    fn product(&self, step: usize) -> Option<&Signs> {
        self.signs.as_ref().filter(|_| step == 0)
    }
}

impl Steps for Correcting<'_> {
    fn label(&self, _: usize) -> Label {
        CORRECT
    }

    fn incoming(&self, step: usize, count: usize) -> usize {
        match self.product(step) {
            Some(_) => sign::message_bytes(self.words, count),
            None => share_bytes(self.words, count),
        }
    }

    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        for (t, (shares, &bits)) in self.shares.iter().zip(self.words).enumerate() {
            let own = &shares[lookups.clone()];
            match self.product(step) {
                Some(signs) => signs.make(t, lookups.clone(), own, frame),
                None => pack::pack_append(own, bits, frame),
            }
        }
    }

    fn take(&mut self, step: usize, lookups: Range<usize>, mut frame: &[u8]) {
        let mut theirs = vec![0; lookups.len()];
        let signs = self.signs.as_ref().filter(|_| step == 0);
        for (t, (shares, &bits)) in self.shares.iter_mut().zip(self.words).enumerate() {
            let own = &mut shares[lookups.clone()];
            if let Some(signs) = signs {
                frame = signs.take(t, lookups.clone(), frame, own, &mut theirs);
                continue;
            }
            let (message, rest) = frame.split_at(pack::packed_len(lookups.len(), bits));
            frame = rest;
            pack::unpack_into(message, bits, &mut theirs);
            for (own, &theirs) in own.iter_mut().zip(&theirs) {
                *own = own.wrapping_add(theirs) & mask(bits);
            }
        }
    }
}

/// Two tables side by side, laid out so that a public offset costs nothing to apply.
///
/// With an additively shared index they stand twice in a row; with a boolean one there is a copy for each of the low two bits of the offset, and
/// groups of four entries are taken in another order.
struct Pair {
    index: Index,
    n: usize,
    entries: Vec<[u64; 2]>,
}

impl Pair {
    fn new(index: Index, tables: &[Table]) -> Self {
        let n = tables[0].len();
        let entry = |j: usize| [0, 1].map(|t| tables.get(t).map_or(0, |table| table.entries()[j]));
        let entries = match index {
            Index::Arithmetic => (0..2 * n).map(|j| entry(j % n)).collect(),
            Index::Boolean => (0..n.min(GROUP))
                .flat_map(|low| (0..n).map(move |j| j ^ low))
                .map(entry)
                .collect(),
        };
        Self { index, n, entries }
    }

    /// The entries at an offset, and by how many groups they are moved.
    fn at(&self, delta: usize) -> (&[[u64; 2]], usize) {
        let (start, moved) = match self.index {
            Index::Arithmetic => (delta, 0),
            Index::Boolean => ((delta & (self.n.min(GROUP) - 1)) * self.n, delta / GROUP),
        };
        (&self.entries[start..start + self.n], moved)
    }
}

/// The online phase.
struct Online {
    prepared: OneRound,
    opening: Opening,
    pairs: Vec<Pair>,
    hashed: Zeroizing<Vec<Block>>,
    outputs: Vec<Vec<u64>>,
}

impl Steps for Online {
    fn label(&self, _: usize) -> Label {
        Opening::LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        Opening::bytes(self.prepared.log_entries, count)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.opening.make(lookups, frame);
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let deltas = self.opening.open_offsets(lookups.clone(), frame);
        let OneRound {
            role,
            words,
            trees,
            corrections,
            ..
        } = &self.prepared;
        let (start, negate) = (
            lookups.start,
            u64::from(*role == Role::Server).wrapping_neg(),
        );
        trees.nodes(lookups, |i, nodes| {
            for (j, pair) in self.pairs.iter().enumerate() {
                hash_nodes(nodes, j as u64, &mut self.hashed);
                let (entries, moved) = pair.at(deltas[i - start] as usize);
                let sums = dot(nodes, &self.hashed, entries, moved);
                for (half, t) in (2 * j..words.len().min(2 * j + 2)).enumerate() {
                    let corrected = corrections[t][i].wrapping_mul(sums.odd[half]);
                    let sum = sums.products[half].wrapping_add(corrected);
                    let share = (sum ^ negate).wrapping_sub(negate);
                    self.outputs[t][i] = share & mask(words[t]);
                }
            }
        });
    }
}
