//! Every protocol of the crate as a function of a party's inputs, for tests that go over all of them.

use volvelle_arith::*;
use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_prim::BitVec;

/// A party's inputs: shares, or what it knows.
pub struct Inputs {
    pub x: Vec<u64>,
    pub y: Vec<u64>,
}

/// What a protocol gives a party; bits are numbers too.
pub type Outcome = Result<Vec<u64>, ArithError>;

/// A protocol with its parameters.
pub type Protocol = fn(&mut Channel, &mut Ot, &Inputs) -> Outcome;

pub fn ring() -> Ring {
    Ring::new(32).unwrap()
}

pub fn shape() -> MatrixShape {
    MatrixShape {
        rows: 3,
        cols: 4,
        weight_bits: 8,
        ring: ring(),
    }
}

pub fn matrix() -> Matrix {
    Matrix::new(3, 4, vec![1, -2, 3, -4, 5, -6, 7, -8, 100, -100, 127, -128]).unwrap()
}

fn low_bits(values: &[u64]) -> BitVec {
    BitVec::from_fn(values.len(), |i| values[i] & 1 == 1)
}

fn numbers(bits: &BitVec) -> Vec<u64> {
    bits.iter().map(u64::from).collect()
}

fn and(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let prepared = And::prepare(ch, ot, i.x.len())?;
    Ok(numbers(&prepared.run(
        ch,
        &low_bits(&i.x),
        &low_bits(&i.y),
    )?))
}

fn mux(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let prepared = Mux::prepare(ch, ot, ring(), i.x.len())?;
    prepared.run(ch, &low_bits(&i.x), &i.y)
}

fn b2a(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let prepared = BitToArith::prepare(ch, ot, ring(), i.x.len())?;
    prepared.run(ch, &low_bits(&i.x))
}

fn compare(ch: &mut Channel, ot: &mut Ot, i: &Inputs, variant: Variant) -> Outcome {
    let prepared = GreaterEqual::prepare(ch, ot, variant, ring(), i.x.len())?;
    Ok(numbers(&prepared.run(ch, &i.x, &i.y)?))
}

fn cheetah(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    compare(ch, ot, i, Variant::Cheetah)
}

fn compact(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    compare(ch, ot, i, Variant::Compact)
}

fn one_hot(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    compare(ch, ot, i, Variant::OneHot)
}

fn truncate(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let prepared = Truncate::prepare(
        ch,
        ot,
        Variant::Cheetah,
        Truncation::Exact,
        ring(),
        7,
        i.x.len(),
    )?;
    prepared.run(ch, &i.x)
}

fn multiply(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    Multiply::prepare(ch, ot, ring(), i.x.len())?.run(ch, &i.x, &i.y)
}

fn multiply_low(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let prepared = MultiplyLow::prepare(ch, ot, ring(), 7, i.x.len())?;
    prepared.run(ch, &i.x, &i.y, &low_bits(&i.x))
}

fn matrix_clear(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let batch = i.x.len() / shape().cols;
    let (own, vectors) = match ch.role() {
        Role::Client => (None, i.x.as_slice()),
        Role::Server => (Some(matrix()), &[][..]),
    };
    MatVecClear::prepare(ch, ot, &shape(), 32, own.as_ref(), batch)?.run(ch, vectors)
}

fn matrix_shared(ch: &mut Channel, ot: &mut Ot, i: &Inputs) -> Outcome {
    let own = (ch.role() == Role::Server).then(matrix);
    MatVecShared::prepare(ch, ot, &shape(), own.as_ref(), i.x.len() / shape().cols)?.run(ch, &i.x)
}

fn open(ch: &mut Channel, _: &mut Ot, i: &Inputs) -> Outcome {
    open_arith(ch, ring(), &i.x)
}

pub const PROTOCOLS: [(&str, Protocol); 12] = [
    ("and", and),
    ("mux", mux),
    ("b2a", b2a),
    ("cheetah", cheetah),
    ("compact", compact),
    ("one-hot", one_hot),
    ("truncate", truncate),
    ("multiply", multiply),
    ("multiply-low", multiply_low),
    ("matrix-clear", matrix_clear),
    ("matrix-shared", matrix_shared),
    ("open", open),
];
