//! Lookup with a dealer, a baseline **in a weaker model** (Storrier et al.: "Grotto: Screaming fast (2+1)-PC for Z_(2^n) via
//! (2, 2)-DPFs", CCS 2023).
//!
//! A third party, the dealer, hands out what two parties would otherwise have to make together: for each lookup shares of a random
//! `r`, and keys of a distributed point function that is 1 at `r` ([`dpf`]). It takes no part online and sees no
//! input, but it knows every `r`: it must be trusted not to collude with either party. Everything else in this crate needs
//! no such party.
//!
//! ```text
//!     D (dealer)                                C and S each
//!     correction words of the trees  ────────▶   trees expanded: shares v of the vector that is 1 at r
//!     (roots, shares of r: from one seed)
//!     online:  C                                                S
//!              share of i − r            (k bits)  ────────▶
//!                                                  ◀────────  share of i − r            (k bits)
//!              both know δ = i − r; Σ v_j·T_(j+δ), or ⊕ v_j·T_(j+δ)
//! ```
//!
//! Rounds: 1 online. Bits online: `2k`, additive outputs too: the point function's outputs are words of `l` bits then. Bits from
//! the dealer, to each party: `129·(k − log w) + w·l`, where `w` outputs of `l` bits (bits: `l = 1`) fit a leaf of 128, and a seed.
//!
//! *Tables of few steps* ([`Dealt::lookup_steps`]): the control bits of a node are XOR shares of whether `r` is below it, so a share
//! of `[r < x]` is the parity of the control bits left of the path to `x`, `2·depth` hashes. A table constant on `m` intervals thus takes
//! `m` paths, whatever `n` is: this is Grotto's own idea, where a comparison by other means takes a key of its own for each
//! interval.
//!
//! Security (semi-honest, dealer honest and alone): a party's corrections are pseudorandom to it given its own root, by the
//! security of the point function; `δ` is uniform.

pub mod dealer;
mod dpf;

use std::ops::Range;

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, PhasedCost};
use volvelle_prim::fold::row_words;
use volvelle_prim::{Block, mask};
use zeroize::Zeroizing;

use self::dealer::Keys;
use self::dpf::{Form, Outputs};
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::onehot::Opening;
use crate::shape::check_batch;
use crate::table::{Selector, check_sizes};
use crate::{Index, LutError, Output, Shape, StepTable, Table};

/// The trees of a shape: words as wide as the widest table's.
fn form(shape: &Shape) -> Form {
    let outputs = match &shape.output {
        Output::Xor => Outputs::Bits,
        Output::Arithmetic { words } => Outputs::Words(words.iter().copied().max().unwrap_or(1)),
    };
    Form {
        log_entries: shape.log_entries,
        outputs,
    }
}

/// One party's share of a batch of lookups that a dealer has prepared: compact keys, `O(128·k)` bits each.
pub struct Dealt {
    shape: Shape,
    keys: Keys,
    /// If they have been evaluated: every tree's leaves.
    expanded: Option<Vec<Zeroizing<Vec<Block>>>>,
}

impl Dealt {
    /// Receives a batch from the dealer, who calls [`dealer::deal`] with the same shape and batch; `ch` connects
    /// this party, whose role it has, with the dealer.
    ///
    /// # Errors
    /// If the shape is out of range, the batch empty, or the dealer is gone or sends something else.
    pub fn receive(ch: &mut Channel, shape: &Shape, batch: usize) -> Result<Self, LutError> {
        shape.check()?;
        check_batch(batch)?;
        let keys = ch.span("dealt", |ch| Keys::receive(ch, form(shape), batch))?;
        Ok(Self {
            shape: shape.clone(),
            keys,
            expanded: None,
        })
    }

    /// Evaluates every key at every point now rather than when looking up, which then takes less time; what is kept
    /// grows from `O(128·k)` to `n·l` bits a lookup. Does not talk.
    pub fn expand(&mut self) {
        let chunks = ranges(self.len(), self.keys.form.chunk()).enumerate();
        let leaves = chunks.map(|(chunk, lookups)| self.keys.expand(chunk, lookups));
        self.expanded = Some(leaves.collect());
    }

    /// What a batch costs. Online is what the parties send each other. For preprocessing, `client_bits` and
    /// `server_bits` are what the dealer sends *to* the client and to the server; they send nothing.
    ///
    /// # Panics
    /// If the shape is not one that can be dealt.
    #[must_use]
    pub fn cost(shape: &Shape, batch: usize) -> PhasedCost {
        assert!(
            shape.check().is_ok(),
            "cost of a shape that cannot be dealt: {shape:?}"
        );
        let dealt = dealer::bits(form(shape), batch);
        let opened = 8 * Opening::bytes(shape.log_entries, batch) as u64;
        PhasedCost {
            prep: Cost {
                client_bits: dealt,
                server_bits: dealt,
                rounds: 1,
                ..Cost::default()
            },
            online: Cost {
                client_bits: opened,
                server_bits: opened,
                rounds: plan(form(shape), batch).rounds(),
                ..Cost::default()
            },
        }
    }

    /// Number of lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.keys.positions.len()
    }

    /// Looks up with additively shared outputs; see [`Lookups::lookup`](crate::Lookups::lookup). `ch` connects
    /// the parties. Shares of indices are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was dealt, or the peer fails.
    pub fn lookup(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let Output::Arithmetic { words } = &self.shape.output else {
            return Err(self.wrong_output("additively shared"));
        };
        if tables.len() != words.len() {
            return Err(LutError::TableCount {
                expected: words.len(),
                got: tables.len(),
            });
        }
        for (table, (&expected, got)) in
            words.iter().zip(tables.iter().map(Table::bits)).enumerate()
        {
            if got != expected {
                return Err(LutError::TableBits {
                    table,
                    expected,
                    got,
                });
            }
        }
        check_sizes(self.shape.log_entries, tables.iter().map(Table::len))?;
        let reader = Sums {
            tables: tables.iter().map(|t| t.entries().repeat(2)).collect(),
            words: words.clone(),
            room: Zeroizing::new(vec![0; 1 << self.shape.log_entries]),
        };
        self.run(ch, index, tables.len(), reader)
    }

    /// Looks up with XOR-shared outputs; see [`Lookups::lookup_xor`](crate::Lookups::lookup_xor). `ch` connects
    /// the parties. Shares of indices are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was dealt, or the peer fails.
    pub fn lookup_xor(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.check_xor(tables.len())?;
        check_sizes(self.shape.log_entries, tables.iter().map(Table::len))?;
        let reader = Words {
            selector: Selector::new(self.shape.index, self.shape.log_entries, tables),
            row: Zeroizing::new(vec![0; row_words(self.shape.log_entries)]),
        };
        self.run(ch, index, tables.len(), reader)
    }

    /// Looks up in tables that are constant on intervals, with XOR-shared outputs, without evaluating the keys at every
    /// point: `2·depth` hashes an interval. `ch` connects the parties. Shares of indices are taken modulo the number of entries.
    ///
    /// # Errors
    /// If the index is not shared additively, the arguments do not fit what was dealt, or the peer fails.
    pub fn lookup_steps(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[StepTable],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.check_xor(tables.len())?;
        if self.shape.index != Index::Arithmetic {
            return Err(LutError::IndexKind {
                expected: Index::Arithmetic,
                got: self.shape.index,
            });
        }
        check_sizes(self.shape.log_entries, tables.iter().map(StepTable::len))?;
        self.run(ch, index, tables.len(), Intervals { tables })
    }

    fn check_xor(&self, tables: usize) -> Result<(), LutError> {
        if self.shape.output != Output::Xor {
            return Err(self.wrong_output("XOR-shared"));
        }
        if tables == 0 {
            return Err(LutError::TableCount {
                expected: 1,
                got: 0,
            });
        }
        Ok(())
    }

    fn wrong_output(&self, got: &'static str) -> LutError {
        LutError::OutputKind {
            expected: self.shape.output.kind(),
            got,
        }
    }

    /// Opens all offsets and reads at them.
    fn run(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: usize,
        reader: impl Read,
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let batch = self.len();
        if index.len() != batch {
            return Err(LutError::BatchLength {
                expected: batch,
                got: index.len(),
            });
        }
        let Shape {
            index: kind,
            log_entries,
            ..
        } = self.shape;
        let shares = index.iter().zip(self.keys.positions.iter());
        let shares = shares.map(|(&i, &r)| kind.split(i, r, log_entries) as u32);
        let form = self.keys.form;
        let mut party = Party {
            opening: Opening::from_shares(shares.collect(), log_entries, kind),
            outputs: vec![vec![0; batch]; tables],
            dealt: self,
            reader,
        };
        let plan = plan(form, batch);
        ch.span("lut-dealt", |ch| exchange(ch, &plan, &mut party))?;
        Ok(party.outputs)
    }
}

fn plan(form: Form, batch: usize) -> Plan {
    let chunk = form.chunk();
    Plan {
        batch,
        chunk,
        steps: 1,
        largest_frame: Opening::bytes(form.log_entries, chunk),
    }
}

/// What differs between the kinds of lookup.
trait Read {
    /// Whether it reads the leaves of every key.
    const LEAVES: bool = true;
    /// Reads lookup `i`, at offset `delta`. `leaves` are those of its key.
    fn read(
        &mut self,
        dealt: &Dealt,
        i: usize,
        leaves: &[Block],
        delta: u64,
        outputs: &mut [Vec<u64>],
    );
}

struct Party<R> {
    dealt: Dealt,
    opening: Opening,
    outputs: Vec<Vec<u64>>,
    reader: R,
}

impl<R: Read> Steps for Party<R> {
    fn label(&self, _: usize) -> Label {
        Opening::LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        Opening::bytes(self.dealt.shape.log_entries, count)
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.opening.make(lookups, frame);
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let deltas = self.opening.open_offsets(lookups.clone(), frame);
        let each = 1 << self.dealt.keys.form.depth();
        let chunk = lookups.start / self.dealt.keys.form.chunk();
        let now;
        let leaves = match &self.dealt.expanded {
            Some(expanded) => &expanded[chunk],
            None if R::LEAVES => {
                now = self.dealt.keys.expand(chunk, lookups.clone());
                &now
            }
            None => {
                now = Zeroizing::default();
                &now
            }
        };
        for (at, (i, &delta)) in lookups.zip(deltas).enumerate() {
            let leaves = leaves.get(at * each..(at + 1) * each).unwrap_or_default();
            self.reader
                .read(&self.dealt, i, leaves, delta, &mut self.outputs);
        }
    }
}

/// Additive: sums of entries times shares.
struct Sums {
    /// Twice in a row, so that moving a table is starting elsewhere.
    tables: Vec<Vec<u64>>,
    words: Vec<u32>,
    room: Zeroizing<Vec<u64>>,
}

impl Read for Sums {
    fn read(
        &mut self,
        dealt: &Dealt,
        i: usize,
        leaves: &[Block],
        delta: u64,
        outputs: &mut [Vec<u64>],
    ) {
        dpf::words(dealt.keys.form, leaves, &mut self.room);
        let (n, delta) = (self.room.len(), delta as usize);
        for ((table, outputs), &bits) in self.tables.iter().zip(outputs).zip(&self.words) {
            let shares = self.room.iter();
            let products = |sum: u64, (&share, &entry): (&u64, &u64)| {
                sum.wrapping_add(share.wrapping_mul(entry))
            };
            let sum = match dealt.shape.index {
                Index::Arithmetic => shares.zip(&table[delta..delta + n]).fold(0, products),
                Index::Boolean => {
                    let entries = (0..n).map(|j| &table[j ^ delta]);
                    shares.zip(entries).fold(0, products)
                }
            };
            outputs[i] = sum & mask(bits);
        }
    }
}

/// XOR-shared words.
struct Words {
    selector: Selector,
    row: Zeroizing<Vec<u64>>,
}

impl Read for Words {
    fn read(
        &mut self,
        dealt: &Dealt,
        i: usize,
        leaves: &[Block],
        delta: u64,
        outputs: &mut [Vec<u64>],
    ) {
        dpf::row(dealt.keys.form, leaves, &mut self.row);
        self.selector.set_row(&self.row, delta as usize);
        for (outputs, word) in outputs.iter_mut().zip(self.selector.xors()) {
            outputs[i] = word;
        }
    }
}

/// Tables of steps.
struct Intervals<'a> {
    tables: &'a [StepTable],
}

impl Read for Intervals<'_> {
    const LEAVES: bool = false;

    /// `i` is in `[a, b)` where `r` is in `[a − δ, b − δ)`, round the end of the table perhaps: a share of that is the sum
    /// of those of `r < b − δ` and `r < a − δ`, and of the constant 1 if it goes round the end.
    fn read(&mut self, dealt: &Dealt, i: usize, _: &[Block], delta: u64, outputs: &mut [Vec<u64>]) {
        let keys = &dealt.keys;
        let (size, batch) = (keys.form.chunk(), keys.positions.len());
        let (chunk, in_chunk) = (i / size, i % size);
        let count = size.min(batch - chunk * size);
        let corrections = &keys.corrections[chunk];
        let constant = u64::from(keys.tree == dpf::Tree::First);
        for (table, outputs) in self.tables.iter().zip(outputs) {
            let moved = |start: u64| start.wrapping_sub(delta) & mask(dealt.shape.log_entries);
            let below = |start: u64| {
                let key = (corrections, in_chunk, count);
                u64::from(dpf::below(
                    keys.form,
                    keys.tree,
                    keys.roots[i],
                    key,
                    moved(start),
                ))
            };
            let parities: Vec<u64> = table.starts().iter().map(|&start| below(start)).collect();
            let steps = table.starts().len();
            let mut output = 0;
            for (s, &value) in table.values().iter().enumerate() {
                let next = (s + 1) % steps;
                let round = moved(table.starts()[next]) <= moved(table.starts()[s]);
                let inside = parities[s] ^ parities[next] ^ (u64::from(round) & constant);
                output ^= value & inside.wrapping_neg();
            }
            outputs[i] = output;
        }
    }
}
