//! Garbled lookup, a baseline: a garbled table, made beforehand and evaluated online.
//!
//! The client garbles, the server evaluates. A wire's labels are `W` and `W ⊕ Δ` with one secret Δ a batch and
//! `lsb(Δ) = 1` (free XOR; Kolesnikov, Schneider, ICALP 2008); the lowest bit of a label is its *colour*, which for the garbler
//! is the value masked by the random `lsb(W)`. So the evaluator, holding the labels of the index `i`, sees
//! `y = i ⊕ α`, and the table is garbled in the order of colours.
//!
//! ```text
//!     C (garbler)                                             S (evaluator)
//!     preprocessing: k random OTs with C as sender, pads p_(t,0), p_(t,1), S's choice c ∈ {0,1}^k
//!     p_(t,0) ⊕ p_(t,1) ⊕ Δ         (k·128 bits)  ────────▶   labels of c, of which p_(t,0) are those of 0
//!     the adder, for an arithmetic index           ────────▶
//!                             ((k − 1)·256 bits)
//!     the garbled table      ([`Garbling::Rows`])  ────────▶
//!                              or ([`Garbling::LogRow`])
//!     online:
//!                                                  ◀────────  d = i_S − c                      (k bits)
//!     labels of a = i_C + d         (k·128 bits)   ────────▶  labels of i = a + c, and the output
//! ```
//!
//! With a boolean index `+` and `−` are XOR, of labels too, and there is no adder; else it is a ripple-carry adder of half gates
//! ([`gates`]). What the table gives is the entry minus a share `ρ` that the garbler keeps.
//!
//! Rounds: preprocessing 1, online 2. Bits online: `k + 128·k`. Bits before: `128·k`, `256·(k − 1)` for an arithmetic index,
//! and `(n − 1)·Σl` ([`rows`]) or `128·(k − 1) + 128·k·Σl + n·Σl` ([`logrow`]). `k` OTs a lookup.
//!
//! Which to compare with: where the outputs are to be shares, as here, the rows are enough, and garbling sends no ciphertext at all for
//! the table. What the logarithmic number of ciphertexts buys are *labels* of the outputs, for a garbled circuit to go on with.
//!
//! Security (semi-honest): as of garbled circuits with free XOR and a tweakable circular correlation-robust hash
//! (random-permutation model). The garbler sees `d`, masked by `c`; the evaluator one label a wire, and entries masked by ρ.

mod gates;
mod logrow;
mod prepare;
mod rows;

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{Block, Prg, pack};
use zeroize::Zeroizing;

use crate::exchange::{ONLINE_CHUNK, ranges};
use crate::shape::check_batch;
use crate::splut::receive_corrections;
use crate::{Index, KnownTables, LutError, Sharing};

const OPEN_CHOICES: Label = Label::new("lut/garbled-choices");
const LABELS: Label = Label::new("lut/garbled-labels");

/// Lookups garbled side by side, and of a frame; a multiple of 8. An agreement parameter.
const CHUNK: usize = 256;

/// Bytes of garbled tables that a batch may take at the evaluator.
const MEMORY: u64 = 1 << 31;

/// How the table is garbled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Garbling {
    /// Row by row, an entry each: all it takes where outputs are shares.
    Rows,
    /// With a logarithmic number of ciphertexts, output labels and all (Heath, Kolesnikov, Ng, EUROCRYPT
    /// 2024); the XOR shares are the labels' colours.
    LogRow,
}

/// Everything both parties agree on.
#[derive(Clone)]
struct Shape {
    garbling: Garbling,
    log_entries: u32,
    index: Index,
    words: Vec<u32>,
}

impl Shape {
    fn k(&self) -> usize {
        self.log_entries as usize
    }

    /// Bits of the outputs of a lookup.
    fn output_bits(&self) -> usize {
        self.words.iter().map(|&bits| bits as usize).sum()
    }

    fn adder_blocks(&self) -> usize {
        match self.index {
            Index::Arithmetic => 2 * (self.k() - 1),
            Index::Boolean => 0,
        }
    }

    /// Blocks of ciphertexts a lookup, but for the inputs'.
    fn gate_blocks(&self) -> usize {
        let table = match self.garbling {
            Garbling::Rows => 0,
            Garbling::LogRow => logrow::tree_blocks(self.k()) + self.k() * self.output_bits(),
        };
        self.adder_blocks() + table
    }

    /// Entries sent of each table for a lookup.
    fn rows(&self) -> usize {
        match self.garbling {
            Garbling::Rows => (1 << self.log_entries) - 1,
            Garbling::LogRow => 1 << self.log_entries,
        }
    }

    /// Bytes of the entries sent for some lookups.
    fn table_bytes(&self, count: usize) -> usize {
        let each = |&bits| pack::packed_len(count * self.rows(), bits);
        self.words.iter().map(each).sum()
    }

    /// Where the entries of a chunk start at the evaluator.
    fn table_start(&self, lookups: &Range<usize>) -> usize {
        self.table_bytes(lookups.start)
    }
}

/// A batch of prepared garbled lookups.
pub struct GarbledLut {
    shape: Shape,
    batch: usize,
    side: Side,
}

enum Side {
    Garbler(Garbler),
    Evaluator(Evaluator),
}

/// What the garbler keeps.
struct Garbler {
    delta: Zeroizing<Block>,
    /// Labels of 0 of its own inputs, `k` a lookup.
    labels: Zeroizing<Vec<Block>>,
    /// For each table, the shares `ρ`.
    shares: Vec<Zeroizing<Vec<u64>>>,
}

/// What the evaluator keeps.
struct Evaluator {
    choices: Zeroizing<Vec<u32>>,
    /// Labels of the choices, `k` a lookup.
    labels: Zeroizing<Vec<Block>>,
    /// Chunk by chunk.
    gates: Vec<Block>,
    table: Vec<u8>,
}

/// Labels of one lookup after the other for each wire: `labels[t][i]`.
type Wires = Vec<Zeroizing<Vec<Block>>>;

/// What hashes are for, in the tweaks' high bits; lookups are numbered in the low ones.
enum Purpose {
    Row,
    Gate { bit: usize, half: usize },
    Level { bit: usize },
}

impl Purpose {
    fn tweak(&self, lookups: &Range<usize>) -> u64 {
        let purpose = match *self {
            Self::Row => 1,
            Self::Gate { bit, half } => 0x100 + 2 * bit + half,
            Self::Level { bit } => 0x200 + bit,
        };
        (purpose as u64) << 48 | lookups.start as u64
    }
}

impl GarbledLut {
    /// The largest `k` of a table of `2^k` entries.
    pub const MAX_LOG_ENTRIES: u32 = 12;

    /// Prepares `batch` lookups in tables that are known already: garbles and sends them.
    ///
    /// # Errors
    /// If a parameter is out of range, additive outputs are asked of [`Garbling::LogRow`], the batch is too large for the memory,
    /// or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        garbling: Garbling,
        known: &KnownTables<'_>,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, garbling, known, batch, &mut Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        garbling: Garbling,
        known: &KnownTables<'_>,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        let log_entries = known.check("a garbled lookup", Self::MAX_LOG_ENTRIES)?;
        check_batch(batch)?;
        if garbling == Garbling::LogRow && known.sharing != Sharing::Xor {
            return Err(LutError::OutputKind {
                expected: "XOR-shared",
                got: "additively shared",
            });
        }
        let shape = Shape {
            garbling,
            log_entries,
            index: known.index,
            words: known.words(),
        };
        let got = (batch as u64)
            .saturating_mul((16 * shape.gate_blocks() + shape.table_bytes(8) / 8) as u64);
        if got > MEMORY {
            return Err(LutError::TooMuchMemory {
                what: "garbled tables",
                limit: MEMORY,
                got,
            });
        }
        let side = ch.span("garbled-prepare", |ch| match ch.role() {
            Role::Client => prepare::garble(ch, ot, &shape, known, batch, prg).map(Side::Garbler),
            Role::Server => prepare::receive(ch, ot, &shape, batch).map(Side::Evaluator),
        })?;
        Ok(Self { shape, batch, side })
    }

    /// What preparing and looking up `batch` indices in tables of these word widths sends and consumes.
    #[must_use]
    pub fn cost(
        garbling: Garbling,
        log_entries: u32,
        index: Index,
        words: &[u32],
        batch: usize,
    ) -> PhasedCost {
        let shape = Shape {
            garbling,
            log_entries,
            index,
            words: words.to_vec(),
        };
        let k = shape.k();
        let blocks = batch * (k + shape.gate_blocks());
        PhasedCost {
            prep: Cost {
                client_bits: (128 * blocks + 8 * shape.table_bytes(batch)) as u64,
                rounds: 1,
                cots_client: (batch * k) as u64,
                ..Cost::default()
            },
            online: Cost {
                client_bits: (128 * batch * k) as u64,
                server_bits: 8 * pack::packed_len(batch, log_entries) as u64,
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

    /// Looks up: `index[i]` is this party's share of index `i` (taken modulo the number of entries). Returns, for each
    /// table, this party's shares of the entries, of the kind prepared for.
    ///
    /// # Errors
    /// If there are not as many indices as were prepared for, or the peer fails.
    pub fn lookup(self, ch: &mut Channel, index: &[u64]) -> Result<Vec<Vec<u64>>, LutError> {
        if index.len() != self.batch {
            return Err(LutError::BatchLength {
                expected: self.batch,
                got: index.len(),
            });
        }
        ch.span("garbled", |ch| match self.side {
            Side::Garbler(garbler) => garbler.lookup(ch, &self.shape, index),
            Side::Evaluator(evaluator) => evaluator.lookup(ch, &self.shape, index),
        })
    }
}

impl Garbler {
    /// Sends the labels of `i_C + d`.
    fn lookup(
        self,
        ch: &mut Channel,
        shape: &Shape,
        index: &[u64],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let (k, batch) = (shape.k(), index.len());
        let opened = receive_corrections(ch, OPEN_CHOICES, shape.log_entries, batch)?;
        let mut active = Vec::new();
        for lookups in ranges(batch, ONLINE_CHUNK) {
            active.clear();
            let zeros = self.labels[lookups.start * k..lookups.end * k].chunks_exact(k);
            for (i, zeros) in lookups.zip(zeros) {
                let a = shape.index.join(index[i], opened[i], shape.log_entries);
                let labels = zeros.iter().enumerate();
                active.extend(labels.map(|(t, &zero)| zero ^ self.delta.keep_if((a >> t) as u8)));
            }
            ch.send(LABELS, Block::as_bytes(&active))?;
        }
        Ok(self.shares.iter().map(|shares| shares.to_vec()).collect())
    }
}

impl Evaluator {
    /// Opens the choices, and evaluates what comes back.
    fn lookup(
        self,
        ch: &mut Channel,
        shape: &Shape,
        index: &[u64],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let (k, batch) = (shape.k(), index.len());
        let mut frame = Vec::new();
        for lookups in ranges(batch, ONLINE_CHUNK) {
            let own = index[lookups.clone()].iter().zip(&self.choices[lookups]);
            let open_choices: Vec<u64> = own
                .map(|(&i, &c)| shape.index.split(i, c.into(), shape.log_entries))
                .collect();
            frame.clear();
            pack::pack_append(&open_choices, shape.log_entries, &mut frame);
            ch.send(OPEN_CHOICES, &frame)?;
        }
        let mut outputs = vec![vec![0; batch]; shape.words.len()];
        let mut received = Zeroizing::new(Vec::new());
        for frame in ranges(batch, ONLINE_CHUNK) {
            received.resize(frame.len() * k, Block::ZERO);
            ch.recv(LABELS, Block::as_bytes_mut(&mut received))?;
            for part in ranges(frame.len(), CHUNK) {
                let lookups = frame.start + part.start..frame.start + part.end;
                let a = by_wire(&received[part.start * k..part.end * k], k);
                self.evaluate(shape, &a, lookups, &mut outputs);
            }
        }
        Ok(outputs)
    }

    /// Evaluates a chunk, given the labels of `a`.
    fn evaluate(&self, shape: &Shape, a: &Wires, lookups: Range<usize>, outputs: &mut [Vec<u64>]) {
        let (k, blocks) = (shape.k(), shape.gate_blocks());
        let c = by_wire(&self.labels[lookups.start * k..lookups.end * k], k);
        let gates = &self.gates[lookups.start * blocks..lookups.end * blocks];
        let (adder, gates) = gates.split_at(shape.adder_blocks() * lookups.len());
        let wires = match shape.index {
            Index::Boolean => gates::xor(a, &c),
            Index::Arithmetic => gates::evaluate_adder(a, &c, adder, &lookups),
        };
        let table = &self.table[shape.table_start(&lookups)..];
        let table = &table[..shape.table_bytes(lookups.len())];
        match shape.garbling {
            Garbling::Rows => rows::evaluate(shape, &wires, table, lookups, outputs),
            Garbling::LogRow => logrow::evaluate(shape, &wires, gates, table, lookups, outputs),
        }
    }
}

/// Lookup after lookup of `k` labels, as wires.
fn by_wire(labels: &[Block], k: usize) -> Wires {
    (0..k)
        .map(|t| Zeroizing::new(labels.iter().skip(t).step_by(k).copied().collect()))
        .collect()
}

/// The colours of a lookup's labels, as a number.
fn colours(wires: &Wires, i: usize) -> u64 {
    let bits = wires.iter().enumerate();
    bits.fold(0, |sum, (t, labels)| sum | u64::from(labels[i].lsb()) << t)
}

/// Word `at` of a pad of 64-bit words.
fn pad_word(pad: &[Block], at: usize) -> u64 {
    (pad[at / 2].0 >> (64 * (at % 2))) as u64
}
