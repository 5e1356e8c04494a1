use super::*;
use crate::simd::clmul::{Clmul, dispatch};
use crate::{Backend, Prg};

fn mul(a: Block, b: Block) -> Block {
    multiply(Portable, a, factor(Portable, b))
}

/// The basis as elements.
fn basis(i: usize) -> Block {
    Block(times(Portable, Block(1), Block(BASIS[i].into())).0)
}

#[test]
fn the_basis_is_cantors() {
    assert!(basis(0) == Block(1));
    for i in 1..BASIS.len() {
        let v = basis(i);
        assert!(mul(v, v) ^ v == basis(i - 1));
    }
}

#[test]
fn elements_multiply_as_polynomials() {
    let mut prg = Prg::from_seed(Block(9));
    assert!(element(1) == Block(1) && element(2) == Block(1 << 64));
    assert!(mul(element(2), element(2)) == element(4));
    for _ in 0..100 {
        let (a, b) = (prg.next_block().0 as u64, prg.next_block().0 as u64 >> 1);
        let product = (0..64)
            .filter(|i| b >> i & 1 == 1)
            .fold(0, |sum, i| sum ^ u128::from(a) << i);
        assert!(mul(element(a.into()), element(b.into())) == element(product));
        let (a, b) = (prg.next_block(), prg.next_block());
        assert!(mul(a, b) == mul(b, a));
    }
}

struct There<'a>(&'a Transform, &'a [Block], &'a mut Vec<Block>, bool);

impl Clmul for There<'_> {
    fn run<L: Lanes>(self, l: L) {
        let Self(transform, input, output, back) = self;
        let mut points: Vec<Block> = input.iter().flat_map(|&b| vec![b; L::WIDTH]).collect();
        transform.forward(l, &mut points);
        if back {
            transform.inverse(l, &mut points);
        }
        *output = points
            .chunks(L::WIDTH)
            .map(|lanes| lanes[L::WIDTH - 1])
            .collect();
    }
}

#[test]
fn values_are_those_of_the_polynomial_on_every_backend() {
    for log in [1, 2, 3, 5, 9, 10, 11, 13, 14] {
        let transform = Transform::new(log);
        let mut coefficients = vec![Block::ZERO; 1 << log];
        Prg::from_seed(Block(6)).fill_blocks(&mut coefficients[..1 << (log - 1)]);
        for backend in Backend::available() {
            let mut values = Vec::new();
            dispatch(
                backend,
                There(&transform, &coefficients, &mut values, false),
            );
            for i in (0..1usize << log).step_by(1 + (1 << log) / 37) {
                let x = (0..log as usize)
                    .filter(|j| i >> j & 1 == 1)
                    .fold(Block::ZERO, |x, j| x ^ basis(j));
                let horner = |sum, &c| mul(sum, x) ^ c;
                let expected = coefficients.iter().rev().fold(Block::ZERO, horner);
                assert!(values[i] == expected, "{backend:?} 2^{log} point {i}");
            }
            dispatch(backend, There(&transform, &coefficients, &mut values, true));
            assert!(values == coefficients, "{backend:?} 2^{log} and back");
        }
    }
}
