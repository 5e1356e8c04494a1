//! A garbled table, row by row: the garbled gate of many inputs (Fairplay, USENIX Security 2004; TASTY, CCS 2010) whose
//! outputs are shares.
//!
//! Row `y` of a lookup has the key `⊕_t 2^t·W_t^(y_t)`, products in GF(2^128), of the labels with the colours of `y`: with the labels of colour 0
//! giving `K`, that is `K ⊕ y·Δ`. The evaluator has the key of one row, and other keys differ from it by other multiples of Δ, so their
//! hashes are pads. Row `y` holds `T_(y ⊕ α) − ρ`, masked; `ρ` is chosen so that row 0 is its pad and need not be sent.
//!
//! Bits: `(n − 1)·Σl`. Computing: `n` hashes for the garbler, one for the evaluator.

use std::ops::Range;

use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, mask, pack};
use zeroize::Zeroizing;

use super::prepare::Job;
use super::{Purpose, Shape, Wires, colours, pad_word};

/// Twice a block, in GF(2^128) modulo `x^128 + x^7 + x^2 + x + 1`.
fn double(block: Block) -> Block {
    let carry = (block.0 >> 127).wrapping_neg() & 0x87;
    Block(block.0 << 1 ^ carry)
}

/// Each lookup's `⊕_t 2^t·label_t`.
fn keys(wires: &Wires) -> Zeroizing<Vec<Block>> {
    let mut keys = Zeroizing::new(vec![Block::ZERO; wires[0].len()]);
    for wire in wires.iter().rev() {
        let each = keys.iter_mut().zip(wire.iter());
        each.for_each(|(key, &label)| *key = double(*key) ^ label);
    }
    keys
}

/// Garbler: makes the shares `ρ` and appends the rows.
pub(super) fn garble(job: &Job<'_>, shares: &mut [Zeroizing<Vec<u64>>], table: &mut Vec<u8>) {
    let (n, count) = (1 << job.shape.log_entries, job.lookups.len());
    let width = job.shape.words.len().div_ceil(2);
    let keys = keys(&job.wires);
    let hash = Tccr {
        first: Purpose::Row.tweak(&job.lookups),
        width,
    };
    // Pads of row after row, each for all lookups.
    let mut pads = Zeroizing::new(vec![Block::ZERO; n * count * width]);
    let multiples = multiples(job.delta, job.shape.log_entries);
    for (pads, &multiple) in pads.chunks_exact_mut(count * width).zip(multiples.iter()) {
        hash.hash(&keys, multiple, pads);
    }
    let mut rows = Zeroizing::new(vec![0; (n - 1) * count]);
    for (t, &bits) in job.shape.words.iter().enumerate() {
        let pad = |row: usize, i: usize| pad_word(&pads[(row * count + i) * width..][..width], t);
        let shares = &mut shares[t][job.lookups.clone()];
        let moved = job.moved[t].chunks_exact(n);
        for (i, (share, entries)) in shares.iter_mut().zip(moved).enumerate() {
            *share = job.sharing.sub(entries[0], pad(0, i)) & mask(bits);
            for (row, &entry) in entries.iter().enumerate().skip(1) {
                let masked = job.sharing.sub(entry, *share) ^ pad(row, i);
                rows[i * (n - 1) + row - 1] = masked;
            }
        }
        pack::pack_append(&rows, bits, table);
    }
}

/// `y·Δ` for all `y` below `2^k`.
fn multiples(delta: Block, k: u32) -> Zeroizing<Vec<Block>> {
    let mut multiples = Zeroizing::new(vec![Block::ZERO]);
    let mut power = delta;
    for _ in 0..k {
        let higher: Vec<Block> = multiples.iter().map(|&low| low ^ power).collect();
        multiples.extend(higher);
        power = double(power);
    }
    multiples
}

/// Evaluator: the one row of each lookup that it has the key of.
pub(super) fn evaluate(
    shape: &Shape,
    wires: &Wires,
    mut table: &[u8],
    lookups: Range<usize>,
    outputs: &mut [Vec<u64>],
) {
    let (rows, width) = (shape.rows(), shape.words.len().div_ceil(2));
    let keys = keys(wires);
    let mut pads = Zeroizing::new(vec![Block::ZERO; lookups.len() * width]);
    let first = Purpose::Row.tweak(&lookups);
    Tccr { first, width }.hash(&keys, Block::ZERO, &mut pads);
    let mut masked = vec![0; rows * lookups.len()];
    for (t, &bits) in shape.words.iter().enumerate() {
        let (section, rest) = table.split_at(pack::packed_len(masked.len(), bits));
        table = rest;
        pack::unpack_into(section, bits, &mut masked);
        let entries = masked.chunks_exact(rows).zip(pads.chunks_exact(width));
        for (i, (entries, pad)) in entries.enumerate() {
            // The colours are this party's to know, and uniform.
            let entry = match colours(wires, i) as usize {
                0 => 0,
                row => entries[row - 1],
            };
            outputs[t][lookups.start + i] = (entry ^ pad_word(pad, t)) & mask(bits);
        }
    }
}
