//! What is done beforehand: one party garbles and sends, the other takes it in. Both chunk by chunk.

use std::ops::Range;

use volvelle_net::{Channel, Label};
use volvelle_ot::Ot;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use super::{CHUNK, Evaluator, Garbler, Garbling, Shape, Wires, by_wire, colours};
use super::{gates, logrow, rows};
use crate::exchange::ranges;
use crate::splut::move_entries;
use crate::{Index, KnownTables, LutError, Sharing};

const INPUTS: Label = Label::new("lut/garbled-inputs");
const GATES: Label = Label::new("lut/garbled-gates");
const TABLE: Label = Label::new("lut/garbled-table");

/// Garbler: garbles and sends chunk by chunk.
pub(super) fn garble(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: &Shape,
    known: &KnownTables<'_>,
    batch: usize,
    prg: &mut Prg,
) -> Result<Garbler, LutError> {
    let k = shape.k();
    let delta = Zeroizing::new(Block(prg.next_block().0 | 1));
    let mut labels = Zeroizing::new(vec![Block::ZERO; batch * k]);
    prg.fill_blocks(&mut labels);
    let room = || Zeroizing::new(vec![0; batch]);
    let mut shares: Vec<_> = shape.words.iter().map(|_| room()).collect();
    let mut zero = Zeroizing::new(vec![Block::ZERO; CHUNK.min(batch) * k]);
    let mut one = zero.clone();
    let (mut gates, mut table) = (Vec::new(), Vec::new());
    for lookups in ranges(batch, CHUNK) {
        let (zero, one) = (
            &mut zero[..lookups.len() * k],
            &mut one[..lookups.len() * k],
        );
        ot.send_random(ch, 1, zero, one)?;
        let pairs = one.iter_mut().zip(zero.iter());
        pairs.for_each(|(one, &zero)| *one = *one ^ zero ^ *delta);
        ch.send(INPUTS, Block::as_bytes(one))?;

        gates.clear();
        table.clear();
        let a = by_wire(&labels[lookups.start * k..lookups.end * k], k);
        let inputs = [a, by_wire(zero, k)];
        let job = Job::new(shape, known, *delta, &inputs, lookups, &mut gates);
        match shape.garbling {
            Garbling::Rows => rows::garble(&job, &mut shares, &mut table),
            Garbling::LogRow => logrow::garble(&job, prg, &mut shares, &mut gates, &mut table),
        }
        if shape.gate_blocks() > 0 {
            ch.send(GATES, Block::as_bytes(&gates))?;
        }
        ch.send(TABLE, &table)?;
    }
    Ok(Garbler {
        delta,
        labels,
        shares,
    })
}

/// What a chunk of tables is garbled from.
pub(super) struct Job<'a> {
    pub(super) shape: &'a Shape,
    pub(super) sharing: Sharing,
    /// The index's labels of colour 0.
    pub(super) wires: Wires,
    pub(super) delta: Block,
    /// Each table for lookup after lookup, in the order of colours.
    pub(super) moved: Vec<Zeroizing<Vec<u64>>>,
    pub(super) lookups: Range<usize>,
}

impl<'a> Job<'a> {
    /// Joins the labels of 0 of both parties' inputs, garbling the adder if there is one.
    fn new(
        shape: &'a Shape,
        known: &KnownTables<'_>,
        delta: Block,
        [a, c]: &[Wires; 2],
        lookups: Range<usize>,
        gates: &mut Vec<Block>,
    ) -> Self {
        let mut wires = match shape.index {
            Index::Boolean => gates::xor(a, c),
            Index::Arithmetic => gates::garble_adder(a, c, delta, &lookups, gates),
        };
        let alphas: Vec<u64> = (0..lookups.len()).map(|i| colours(&wires, i)).collect();
        for wire in &mut wires {
            let labels = wire.iter_mut();
            labels.for_each(|label| *label ^= delta.keep_if(u8::from(label.lsb())));
        }
        let tables = known.tables.iter();
        Self {
            shape,
            sharing: known.sharing,
            wires,
            delta,
            moved: tables
                .map(|table| move_by_each(table.entries(), &alphas))
                .collect(),
            lookups,
        }
    }
}

/// The table for one lookup after the other, `T_(y ⊕ α)` at `y`.
pub(super) fn move_by_each(table: &[u64], alphas: &[u64]) -> Zeroizing<Vec<u64>> {
    let n = table.len();
    let mut moved = Zeroizing::new(vec![0; alphas.len() * n]);
    let mut scratch = Zeroizing::new(vec![0; n]);
    for (out, &alpha) in moved.chunks_exact_mut(n).zip(alphas) {
        move_entries(Index::Boolean, table, alpha, out, &mut scratch);
    }
    moved
}

/// Evaluator: takes in what the garbler sends.
pub(super) fn receive(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: &Shape,
    batch: usize,
) -> Result<Evaluator, LutError> {
    let (k, blocks) = (shape.k(), shape.gate_blocks());
    let mut labels = Zeroizing::new(vec![Block::ZERO; batch * k]);
    let mut choices = Zeroizing::new(vec![0; batch]);
    let mut gates = vec![Block::ZERO; batch * blocks];
    let mut table = vec![0; shape.table_bytes(batch)];
    let mut bits = Zeroizing::new(vec![0; CHUNK.min(batch) * k]);
    let mut inputs = vec![Block::ZERO; CHUNK.min(batch) * k];
    for lookups in ranges(batch, CHUNK) {
        let labels = &mut labels[lookups.start * k..lookups.end * k];
        let (bits, inputs) = (&mut bits[..labels.len()], &mut inputs[..labels.len()]);
        ot.recv_random(ch, 1, bits, labels)?;
        ch.recv(INPUTS, Block::as_bytes_mut(inputs))?;
        let corrected = labels.iter_mut().zip(inputs).zip(bits.iter());
        corrected.for_each(|((label, input), &bit)| *label ^= input.keep_if(bit));
        let drawn = choices[lookups.clone()]
            .iter_mut()
            .zip(bits.chunks_exact(k));
        for (choice, bits) in drawn {
            let bits = bits.iter().rev();
            *choice = bits.fold(0, |c, &bit| c << 1 | u32::from(bit));
        }
        if blocks > 0 {
            let gates = &mut gates[lookups.start * blocks..lookups.end * blocks];
            ch.recv(GATES, Block::as_bytes_mut(gates))?;
        }
        let start = shape.table_start(&lookups);
        ch.recv(
            TABLE,
            &mut table[start..][..shape.table_bytes(lookups.len())],
        )?;
    }
    Ok(Evaluator {
        choices,
        labels,
        gates,
        table,
    })
}
