//! A quasi-cyclic code: the public linear map of dual LPN that polynomial multiplication computes.
//!
//! Source: Boyle, Couteau, Gilboa, Ishai, Kohl, Rindal, Scholl, CCS 2019 (compression factor 2). With `u`, `v` the
//! halves of the input as polynomials and `a` uniform of degree below `p`,
//!
//! ```text
//! output = u + a·v  mod x^p − 1,   the first n coefficients
//! ```
//! separately in each of the 128 bit columns. `p` is the least prime over `n` of which 2 is a primitive root, so that
//! `x^p − 1` has no factor of low degree but `x − 1`.
//!
//! **Exact arithmetic.** Halves of 128-bit words are coefficients of powers of `x^64`; products of those have degree
//! below 127, so they are exact in GF(2^128), and the additive Fourier transform multiplies such polynomials there. The
//! lanes of a 512-bit register hold four columns, so nothing is ever shuffled; the transform of `a` is made once.
//!
//! **Order of coefficients.** Entry `512q + 4r + t` is coefficient `512q + 128t + r`: that is how the bit transpose
//! leaves four blocks. A fixed permutation of the noise's positions.
//!
//! Floor: `n = 2^k` takes `2m·2^(m−1) + 2^m` products by constants for every four columns, `m = k − 5`, of five carry-less
//! instructions each: 80 an output at `k = 20`, at one every other cycle some 34 ns on the machine of
//! `docs/performance.md`.

use crate::additive::{Transform, times};
use crate::simd::clmul::{self, Clmul, Lanes};
use crate::transpose::transpose_columns;
use crate::{Backend, Block, Lines, Prg};

/// Points of the transform a word of a column: two halves, and the product is twice as long.
const POINTS_A_WORD: usize = 4;

/// Bit columns of a block.
const COLUMNS: usize = 128;

/// Entries that are transposed together.
const TILE: usize = 512;

/// A public map from `2n` to `n` blocks, `n = 2^log_rows`.
pub struct QuasiCyclic {
    transform: Transform,
    /// The lowest `n` coefficients of `a`, transformed.
    values: Vec<Block>,
    /// The others.
    high: Block,
    /// How many: `p − n`.
    excess: u32,
    backend: Backend,
}

/// `p − 2^k` for the least prime `p` over `2^k` of which 2 is a primitive root.
const fn excess(log_rows: u32) -> Option<u32> {
    Some(match log_rows {
        10 => 37,
        12 => 3,
        18 => 3,
        20 => 13,
        22 => 67,
        23 => 11,
        _ => return None,
    })
}

impl QuasiCyclic {
    /// The map of a seed, for `log_rows` 10, 12, 18, 20, 22 or 23.
    ///
    /// # Panics
    /// For another `log_rows`.
    #[must_use]
    pub fn new(seed: Block, log_rows: u32) -> Self {
        Self::with_backend(seed, log_rows, Backend::current())
    }

    fn with_backend(seed: Block, log_rows: u32, backend: Backend) -> Self {
        let Some(excess) = excess(log_rows) else {
            panic!("no modulus for 2^{log_rows} rows")
        };
        let (low, high) = polynomial(seed, log_rows, excess);
        let points = POINTS_A_WORD * low.len();
        let transform = Transform::new(points.trailing_zeros());
        let mut values = vec![Block::ZERO; points];
        let kernel = Spectrum {
            transform: &transform,
            low: &low,
            values: &mut values,
        };
        clmul::dispatch(backend, kernel);
        Self {
            transform,
            values,
            high,
            excess,
            backend,
        }
    }

    /// Turns the second half of the input, in place, into what is to be added to the first half.
    ///
    /// # Panics
    /// If `entries` is not `n` blocks.
    pub fn multiply(&self, entries: &mut [Block]) {
        let expected = self.values.len() / POINTS_A_WORD * COLUMNS;
        assert_eq!(entries.len(), expected, "entries of the code");
        transpose(entries);
        clmul::dispatch(
            self.backend,
            Multiply {
                code: self,
                entries,
            },
        );
        transpose(entries);
    }
}

/// The polynomial `a` of a seed: its lowest `2^log_rows` coefficients, and the others.
fn polynomial(seed: Block, log_rows: u32, excess: u32) -> (Vec<Block>, Block) {
    let mut prg = Prg::from_seed(seed);
    let mut low = vec![Block::ZERO; (1 << log_rows) / COLUMNS];
    prg.fill_blocks(&mut low);
    (low, Block(prg.next_block().0 & ((1 << excess) - 1)))
}

/// Between entries and coefficients, both ways: bit `r` of block `4b + t` of a tile is bit `b` of entry `4r + t`.
fn transpose(entries: &mut [Block]) {
    let mut tile = Lines::zeros(TILE);
    for entries in entries.chunks_exact_mut(TILE) {
        tile.copy_from_slice(entries);
        transpose_columns(&tile, entries);
    }
}

/// Values of the lowest coefficients of `a`.
struct Spectrum<'a> {
    transform: &'a Transform,
    low: &'a [Block],
    values: &'a mut [Block],
}

impl Clmul for Spectrum<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let mut words = vec![Block::ZERO; self.low.len() * L::WIDTH];
        for (word, &low) in words.chunks_exact_mut(L::WIDTH).zip(self.low) {
            l.store(word, l.splat(low));
        }
        let mut points = vec![Block::ZERO; self.values.len() * L::WIDTH];
        cut(l, &words, &mut points);
        self.transform.forward(l, &mut points);
        for (value, lanes) in self.values.iter_mut().zip(points.chunks_exact(L::WIDTH)) {
            *value = lanes[0];
        }
    }
}

/// All columns times `a`, as many at once as a register has lanes.
struct Multiply<'a> {
    code: &'a QuasiCyclic,
    entries: &'a mut [Block],
}

impl Clmul for Multiply<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let Self { code, entries } = self;
        let words = entries.len() / COLUMNS;
        let mut column = Lines::zeros(words * L::WIDTH);
        let mut points = Lines::zeros(POINTS_A_WORD * words * L::WIDTH);
        // One word more for what the highest coefficients of `a` add.
        let mut product = Lines::zeros((2 * words + 1) * L::WIDTH);
        for first in (0..COLUMNS).step_by(L::WIDTH) {
            move_columns(entries, first, L::WIDTH, &mut column, Direction::Out);
            cut(l, &column, &mut points);
            code.transform.forward(l, &mut points);
            for (point, &value) in points.chunks_exact_mut(L::WIDTH).zip(&code.values) {
                let value = l.splat(value);
                let scaled = times(l, l.load(point), value, l.fold(value));
                l.store(point, scaled);
            }
            code.transform.inverse(l, &mut points);
            join(l, &points, &mut product);
            add_high(l, code.high, &column, &mut product[words * L::WIDTH..]);
            fold(&mut product, code.excess, L::WIDTH, &mut column);
            move_columns(entries, first, L::WIDTH, &mut column, Direction::In);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Out,
    In,
}

/// Copies `width` columns from or to their places in the tiles; word `k` of column `first + i` is block
/// `k·width + i` of `columns`.
#[inline(always)]
fn move_columns(
    entries: &mut [Block],
    first: usize,
    width: usize,
    columns: &mut [Block],
    direction: Direction,
) {
    for (tile, words) in entries
        .chunks_exact_mut(TILE)
        .zip(columns.chunks_exact_mut(4 * width))
    {
        for i in 0..width {
            for t in 0..4 {
                let (there, here) = (&mut tile[4 * (first + i) + t], &mut words[t * width + i]);
                match direction {
                    Direction::Out => *here = *there,
                    Direction::In => *there = *here,
                }
            }
        }
    }
}

/// Adds `column · high` to the words of the product from `x^n` on, of which the last is overwritten.
#[inline(always)]
fn add_high<L: Lanes>(l: L, high: Block, column: &[Block], product: &mut [Block]) {
    let high = l.splat(high);
    let mut carry = l.splat(Block::ZERO);
    let columns = column.chunks_exact(L::WIDTH);
    for (word, to) in columns.zip(product.chunks_exact_mut(L::WIDTH)) {
        let word = l.load(word);
        let (low, next) = l.join(
            l.low(word, high),
            l.low(l.fold(word), l.fold(high)),
            l.high(word, high),
        );
        let sum = l.xor(l.load(to), l.xor(low, carry));
        l.store(to, sum);
        carry = next;
    }
    l.store(&mut product[column.len()..], carry);
}

/// Reduces modulo `x^p − 1`: coefficient `p + i` to coefficient `i`, for those below `n`.
#[inline(always)]
fn fold(product: &mut [Block], excess: u32, width: usize, out: &mut [Block]) {
    let (low, high) = product.split_at(out.len());
    let words = low.iter().zip(high).zip(&high[width..]);
    for (out, ((low, high), above)) in out.iter_mut().zip(words) {
        *out = Block(low.0 ^ (high.0 >> excess | above.0 << (128 - excess)));
    }
}

/// Cuts words in halves, for [`Transform`]: coefficients of powers of `x^64`.
#[inline(always)]
fn cut<L: Lanes>(l: L, words: &[Block], points: &mut [Block]) {
    let (used, zero) = points.split_at_mut(2 * words.len());
    zero.fill(Block::ZERO);
    let words = words.chunks_exact(L::WIDTH);
    for (word, halves) in words.zip(used.chunks_exact_mut(2 * L::WIDTH)) {
        let (first, second) = halves.split_at_mut(L::WIDTH);
        let word = l.load(word);
        l.store(first, l.down(l.up(word)));
        l.store(second, l.down(word));
    }
}

/// The opposite of [`cut`], coefficients being as long as a word.
#[inline(always)]
fn join<L: Lanes>(l: L, points: &[Block], words: &mut [Block]) {
    let mut carry = l.splat(Block::ZERO);
    let halves = points.chunks_exact(2 * L::WIDTH);
    for (halves, word) in halves.zip(words.chunks_exact_mut(L::WIDTH)) {
        let second = l.load(&halves[L::WIDTH..]);
        let sum = l.xor(l.load(halves), l.up(second));
        l.store(word, l.xor(sum, carry));
        carry = l.down(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coefficient(entry: usize) -> usize {
        let (q, r, t) = (entry / 512, entry % 512 / 4, entry % 4);
        512 * q + 128 * t + r
    }

    #[test]
    fn it_is_its_definition_on_every_backend() {
        for log in [10, 12] {
            let n = 1usize << log;
            let mut v = vec![Block::ZERO; n];
            Prg::from_seed(Block(4)).fill_blocks(&mut v);
            let map = QuasiCyclic::new(Block(5), log);
            let p = n + map.excess as usize;
            let (low, high) = polynomial(Block(5), log, map.excess);
            let a = |i: usize| match i < n {
                true => low[i / 128].0 >> (i % 128) & 1,
                false => high.0 >> (i - n) & 1,
            };
            let mut expected = vec![Block::ZERO; n];
            for (i, expected) in expected.iter_mut().enumerate() {
                for (j, v) in v.iter().enumerate() {
                    let at = (p + coefficient(i) - coefficient(j)) % p;
                    *expected ^= v.keep_if(a(at) as u8);
                }
            }
            for backend in Backend::available() {
                let mut out = v.clone();
                QuasiCyclic::with_backend(Block(5), log, backend).multiply(&mut out);
                assert!(out == expected, "{backend:?} 2^{log}");
            }
        }
    }

    #[test]
    fn moduli_are_prime_with_primitive_root_two() {
        for log in 0..=23 {
            let Some(excess) = excess(log) else { continue };
            let p = (1u64 << log) + u64::from(excess);
            let power = |mut e: u64| {
                let (mut base, mut result) = (2, 1);
                while e > 0 {
                    result = if e & 1 == 1 {
                        result * base % p
                    } else {
                        result
                    };
                    base = base * base % p;
                    e >>= 1;
                }
                result
            };
            assert!(
                (2..)
                    .take_while(|d| d * d <= p)
                    .all(|d| !p.is_multiple_of(d)),
                "{p} is prime"
            );
            let divides = |d: &u64| (p - 1).is_multiple_of(*d);
            assert!(
                (1..p - 1).filter(divides).all(|d| power(d) != 1),
                "order of 2 modulo {p}"
            );
        }
    }
}
