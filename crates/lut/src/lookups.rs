//! Prepared lookups: one-hot correlations, and what an additive output needs besides.

use std::ops::Range;

use volvelle_net::{Channel, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, Prg};

use crate::doubling::Doubling;
use crate::doubling::position::Layout;
use crate::onehot::OneHots;
use crate::shape::check_batch;
use crate::sign::Signs;
use crate::table::{check_sizes, check_widths};
use crate::tree::Tree;
use crate::{
    BitTable, Generator, LutError, Output, Shape, Table, arithmetic, bits, boolean, doubling,
    rotation, sign, tree,
};

/// A batch of lookups, prepared before their inputs are known. Each is used once: using it takes
/// the batch by value.
pub struct Lookups {
    onehots: OneHots,
    output: Output,
    signs: Option<Signs>,
}

impl Lookups {
    /// Prepares `batch` lookups of a shape. Both parties call this with the same arguments.
    ///
    /// # Errors
    /// If the shape is out of range, the batch empty, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        generator: Generator,
        shape: &Shape,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, generator, shape, batch, &mut Prg::from_os())
    }

    /// [`Self::prepare`], with this party's randomness given.
    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        generator: Generator,
        shape: &Shape,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        shape.check()?;
        generator.check(shape.log_entries)?;
        check_batch(batch)?;
        ch.span("lut-prepare", |ch| {
            make(ch, ot, generator, shape, batch, prg)
        })
    }

    /// Exactly what [`Self::prepare`] and one lookup of the whole batch send and consume. For an
    /// XOR-shared output that is the same for words and bits and any number of tables.
    ///
    /// # Panics
    /// If the shape is not one that [`Self::prepare`] would take.
    #[must_use]
    pub fn cost(generator: Generator, shape: &Shape, batch: usize) -> PhasedCost {
        assert!(
            shape.check().is_ok() && generator.check(shape.log_entries).is_ok(),
            "cost of a shape that cannot be prepared: {shape:?}"
        );
        let k = shape.log_entries;
        let onehots = match generator {
            Generator::Rotation => rotation::cost(k, batch),
            Generator::Doubling => doubling::cost(k, shape.index, batch),
            Generator::Tree => tree::cost(k, shape.index, batch),
        };
        let (signs, online) = match &shape.output {
            Output::Arithmetic { words } => (
                sign::prep_cost(words, batch),
                arithmetic::cost(k, words, batch),
            ),
            Output::Xor => (Cost::default(), boolean::cost(k, batch)),
        };
        PhasedCost {
            prep: onehots.then(signs),
            online,
        }
    }

    /// Number of lookups.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.onehots.len()
    }

    /// Looks up with additively shared outputs: `index[i]` is this party's share of index `i`
    /// (taken modulo the number of entries). Returns, for each table, this party's shares modulo
    /// `2^l` of that table.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let Output::Arithmetic { words } = &self.output else {
            return Err(self.wrong_output("additively shared"));
        };
        check_widths(words, tables)?;
        self.check(index, tables.iter().map(Table::len))?;
        let Self { onehots, signs, .. } = self;
        ch.span("lut", |ch| {
            arithmetic::lookup(ch, onehots, signs, index, tables)
        })
    }

    /// Looks up with XOR-shared outputs, words of each table's bits. Shares of indices are taken modulo the number of
    /// entries, as by [`Self::lookup`].
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup_xor(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.check_xor(tables.len())?;
        self.check(index, tables.iter().map(Table::len))?;
        let onehots = self.onehots;
        ch.span("lut-xor", |ch| boolean::lookup(ch, onehots, index, tables))
    }

    /// Looks up in tables of single bits, with XOR-shared outputs. Shares of indices are taken modulo the number of
    /// entries, as by [`Self::lookup`].
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup_bits(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[BitTable],
    ) -> Result<Vec<BitVec>, LutError> {
        self.check_xor(tables.len())?;
        self.check(index, tables.iter().map(BitTable::len))?;
        let onehots = self.onehots;
        ch.span("lut-bits", |ch| bits::lookup(ch, onehots, index, tables))
    }

    /// What they were prepared for.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            log_entries: self.onehots.log_entries(),
            index: self.onehots.index(),
            output: self.output.clone(),
        }
    }

    /// Room for `count` of them.
    pub(crate) fn zeros(role: Role, shape: &Shape, count: usize) -> Self {
        Self {
            onehots: OneHots::zeros(shape.log_entries, shape.index, count),
            output: shape.output.clone(),
            signs: signed(shape).map(|words| Signs::new(role, words, count)),
        }
    }

    /// Copies some of others, of the same shape, to the places from `at` on.
    pub(crate) fn copy(&mut self, at: usize, others: &Self, lookups: Range<usize>) {
        self.onehots.copy(at, &others.onehots, lookups.clone());
        if let (Some(own), Some(others)) = (&mut self.signs, &others.signs) {
            own.copy(at, others, lookups);
        }
    }

    /// Bytes that [`Self::save`] makes of `count` lookups.
    pub(crate) fn saved_len(shape: &Shape, count: usize) -> usize {
        let signs = signed(shape).map_or(0, |words| Signs::saved_len(words, count));
        OneHots::saved_len(shape.log_entries, count) + signs
    }

    /// Appends some as bytes, for a [`Store`](crate::Store).
    pub(crate) fn save(&self, lookups: Range<usize>, out: &mut Vec<u8>) {
        self.onehots.save(lookups.clone(), out);
        if let Some(signs) = &self.signs {
            signs.save(lookups, out);
        }
    }

    /// Reads `count` of them from [`Self::saved_len`] bytes.
    pub(crate) fn load(role: Role, shape: &Shape, count: usize, bytes: &[u8]) -> Self {
        let (k, index) = (shape.log_entries, shape.index);
        let (onehots, signs) = bytes.split_at(OneHots::saved_len(k, count));
        Self {
            onehots: OneHots::load(k, index, count, onehots),
            output: shape.output.clone(),
            signs: signed(shape).map(|words| Signs::load(role, words, count, signs)),
        }
    }

    fn check_xor(&self, tables: usize) -> Result<(), LutError> {
        if self.output != Output::Xor {
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

    fn check(&self, index: &[u64], lens: impl Iterator<Item = usize>) -> Result<(), LutError> {
        if index.len() != self.len() {
            return Err(LutError::BatchLength {
                expected: self.len(),
                got: index.len(),
            });
        }
        check_sizes(self.onehots.log_entries(), lens)
    }

    fn wrong_output(&self, got: &'static str) -> LutError {
        LutError::OutputKind {
            expected: self.output.kind(),
            got,
        }
    }
}

/// The widths of the tables, if the outputs need signs.
fn signed(shape: &Shape) -> Option<&[u32]> {
    match &shape.output {
        Output::Arithmetic { words } if sign::needed(words) => Some(words),
        _ => None,
    }
}

/// A generator at work, from its first OT on; rotation draws its own.
enum Making {
    Rotation,
    Doubling(Doubling),
    Tree(Tree),
}

/// All OTs of one direction come before those of the other, and all OTs before what is made of
/// them: each change of direction could cost a round.
fn make(
    ch: &mut Channel,
    ot: &mut Ot,
    generator: Generator,
    shape: &Shape,
    batch: usize,
    prg: &mut Prg,
) -> Result<Lookups, LutError> {
    let (role, k, index) = (ch.role(), shape.log_entries, shape.index);
    let mut signs = signed(shape).map(|words| Signs::new(role, words, batch));
    let mut making = match generator {
        Generator::Rotation => Making::Rotation,
        Generator::Doubling => {
            let layout = Layout::new(k, index);
            Making::Doubling(Doubling::new(role, k, layout, batch, prg))
        }
        Generator::Tree => Making::Tree(Tree::new(role, ot, (k, index), batch, prg)?),
    };
    for sender in [Role::Client, Role::Server] {
        match &mut making {
            Making::Rotation => {}
            Making::Doubling(doubling) => doubling.draw(ch, ot, sender)?,
            Making::Tree(tree) => tree.draw(ch, ot, sender)?,
        }
        if let Some(signs) = &mut signs {
            signs.draw(ch, ot, sender)?;
        }
    }
    let onehots = match making {
        Making::Rotation => rotation::prepare(ch, ot, k, index, batch, prg)?,
        Making::Doubling(doubling) => doubling.run(ch, index)?,
        Making::Tree(tree) => tree.run(ch)?,
    };
    let signs = signs
        .map(|signs| signs.fix(ch, &onehots.weights()))
        .transpose()?;
    Ok(Lookups {
        onehots,
        output: shape.output.clone(),
        signs,
    })
}
