//! Half gates, and the adder of an arithmetic index (Zahur, Rosulek, Evans, EUROCRYPT 2015, figure 2).
//!
//! The sum of `k`-bit numbers takes `k − 1` AND gates, `c_(t+1) = c_t ⊕ (a_t ⊕ c_t)(b_t ⊕ c_t)`, of two ciphertexts each; the
//! carry out of the top bit is not needed.

use std::ops::Range;

use volvelle_prim::Block;
use volvelle_prim::hash::Tccr;
use zeroize::Zeroizing;

use super::{Purpose, Wires};

/// Labels of one wire, lookup by lookup.
type Wire = Zeroizing<Vec<Block>>;

/// Wire by wire, `a ⊕ b`.
pub(super) fn xor(a: &Wires, b: &Wires) -> Wires {
    a.iter().zip(b).map(|(a, b)| added(a, b)).collect()
}

fn added(a: &[Block], b: &[Block]) -> Wire {
    let mut sum = Zeroizing::new(a.to_vec());
    Block::xor_into(&mut sum, b);
    sum
}

/// Garbler: the labels of 0 of `a + b`, given those of `a` and `b`. Appends the ciphertexts, gate by gate.
pub(super) fn garble_adder(
    a: &Wires,
    b: &Wires,
    delta: Block,
    lookups: &Range<usize>,
    gates: &mut Vec<Block>,
) -> Wires {
    add(a, b, |bit, a, b| {
        garble_and(bit, a, b, delta, lookups, gates)
    })
}

/// Evaluator: the labels of `a + b`, given those of `a` and `b`.
pub(super) fn evaluate_adder(
    a: &Wires,
    b: &Wires,
    gates: &[Block],
    lookups: &Range<usize>,
) -> Wires {
    let each = 2 * lookups.len();
    add(a, b, |bit, a, b| {
        evaluate_and(bit, a, b, &gates[bit * each..][..each], lookups)
    })
}

/// The ripple-carry adder, whatever its labels; 0 is carried in, with labels of zero.
fn add(a: &Wires, b: &Wires, mut and: impl FnMut(usize, &[Block], &[Block]) -> Wire) -> Wires {
    let mut carry = Zeroizing::new(vec![Block::ZERO; a[0].len()]);
    let (mut sum, last) = (Wires::with_capacity(a.len()), a.len() - 1);
    for (bit, (a, b)) in a.iter().zip(b).enumerate() {
        sum.push(added(&added(a, b), &carry));
        if bit < last {
            let product = and(bit, &added(a, &carry), &added(b, &carry));
            Block::xor_into(&mut carry, &product);
        }
    }
    sum
}

fn hash(bit: usize, half: usize, labels: &[Block], offset: Block, lookups: &Range<usize>) -> Wire {
    let mut hashes = Zeroizing::new(vec![Block::ZERO; labels.len()]);
    let first = Purpose::Gate { bit, half }.tweak(lookups);
    Tccr { first, width: 1 }.hash(labels, offset, &mut hashes);
    hashes
}

/// Garbler's half gates of one bit of all lookups: appends `T_G` of all, then `T_E`; returns the labels of 0.
fn garble_and(
    bit: usize,
    a: &[Block],
    b: &[Block],
    delta: Block,
    lookups: &Range<usize>,
    gates: &mut Vec<Block>,
) -> Wire {
    let hash = |half, labels, offset| hash(bit, half, labels, offset, lookups);
    let [mut out, a_1] = [Block::ZERO, delta].map(|offset| hash(0, a, offset));
    let [b_0, b_1] = [Block::ZERO, delta].map(|offset| hash(1, b, offset));
    for i in 0..a.len() {
        let garblers = out[i] ^ a_1[i] ^ delta.keep_if(u8::from(b[i].lsb()));
        gates.push(garblers);
        out[i] ^= garblers.keep_if(u8::from(a[i].lsb()));
    }
    for i in 0..a.len() {
        let evaluators = b_0[i] ^ b_1[i] ^ a[i];
        gates.push(evaluators);
        out[i] ^= b_0[i] ^ (evaluators ^ a[i]).keep_if(u8::from(b[i].lsb()));
    }
    out
}

/// Evaluator's half gates of one bit of all lookups.
fn evaluate_and(
    bit: usize,
    a: &[Block],
    b: &[Block],
    gates: &[Block],
    lookups: &Range<usize>,
) -> Wire {
    let (garblers, evaluators) = gates.split_at(a.len());
    let mut out = hash(bit, 0, a, Block::ZERO, lookups);
    Block::xor_into(&mut out, &hash(bit, 1, b, Block::ZERO, lookups));
    for i in 0..a.len() {
        out[i] ^= garblers[i].keep_if(u8::from(a[i].lsb()));
        out[i] ^= (evaluators[i] ^ a[i]).keep_if(u8::from(b[i].lsb()));
    }
    out
}
