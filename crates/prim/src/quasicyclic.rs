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
//! **Exact arithmetic.** 64 coefficients of a column are one of a power of `x^64`, a *limb*; products of two have degree below
//! 127, so they are exact in GF(2^128), and the additive Fourier transform multiplies such polynomials there. The lanes of a
//! register hold several columns, so nothing is ever shuffled; the transform of `a` is made once.
//!
//! **Limbs as elements.** The field has limbs in powers of `x² + x` ([`crate::additive`]). Entries are brought to that form and
//! back where they are still rows of 128 columns: there a step is an addition of rows. Shifts are products by powers of `x`.
//!
//! **Order of coefficients.** Entry `512q + 4r + t` is coefficient `512q + 128t + r`: that is how the bit transpose
//! leaves four blocks. A fixed permutation of the noise's positions.
//!
//! Floor: `n = 2^k` takes some `(2m − 3)·2^(m−1)` butterflies a register of columns, `m = k − 5`, of two carry-less instructions and
//! thirteen others each: 54 of one column an output at `k = 20`. With two columns a register on Zen 3 (a carry-less
//! instruction is four operations there, and four start a cycle) 140 cycles an output.

use crate::additive::{Factor, Transform, add, element, factor, multiply, polynomial_factor};
use crate::simd::clmul::{self, Clmul, Lanes};
use crate::transpose::transpose_columns;
use crate::{Backend, Block, Lines, Prg};

/// Points of the transform a word of a column: two limbs, and the product is twice as long.
const POINTS_A_WORD: usize = 4;

/// Bits of a limb.
const LIMB: u32 = 64;

/// Bit columns of a block.
const COLUMNS: usize = 128;

/// Entries that are transposed together.
const TILE: usize = 512;

/// Blocks of a tile's row.
const ROW: usize = TILE / COLUMNS;

/// A public map from `2n` to `n` blocks, `n = 2^log_rows`.
pub struct QuasiCyclic {
    transform: Transform,
    /// The lowest `n` coefficients of `a`, transformed.
    values: Vec<Factor>,
    /// The others, `p − n`: a limb or two.
    high: Vec<Factor>,
    /// What shifts by whole limbs less `p − n`.
    shift: Factor,
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
        let mut values = vec![Factor::default(); points];
        let kernel = Spectrum {
            transform: &transform,
            low: &low,
            values: &mut values,
        };
        clmul::dispatch(backend, kernel);
        let limbs = excess.div_ceil(LIMB);
        let limb = |i| high.0 >> (LIMB * i) & u128::from(u64::MAX);
        Self {
            transform,
            values,
            high: (0..limbs).map(|i| polynomial_factor(limb(i))).collect(),
            shift: polynomial_factor(1 << (LIMB * limbs - excess)),
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
        clmul::dispatch(
            self.backend,
            Multiply {
                code: self,
                entries,
            },
        );
    }
}

/// The polynomial `a` of a seed: its lowest `2^log_rows` coefficients, and the others.
fn polynomial(seed: Block, log_rows: u32, excess: u32) -> (Vec<Block>, Block) {
    let mut prg = Prg::from_seed(seed);
    let mut low = vec![Block::ZERO; (1 << log_rows) / COLUMNS];
    prg.fill_blocks(&mut low);
    (low, Block(prg.next_block().0 & ((1 << excess) - 1)))
}

/// Where the transpose puts row `r` of a tile, its limbs being in powers of `x² + x`: a word's halves have what belongs to an
/// element's words, both halves limb after limb.
const fn place(r: usize) -> usize {
    r % 2 * 64 + r / 64 * 32 + r % 64 / 2
}

/// From entries to limbs as elements: bit `r` of block `4b + t` of a tile is bit `b` of entry `4r + t`, rows as [`place`] says.
#[inline(always)]
fn to_columns<L: Lanes>(l: L, entries: &mut [Block]) {
    let mut tile = Lines::zeros(TILE);
    for entries in entries.chunks_exact_mut(TILE) {
        let mut h = 16 * ROW;
        while h >= ROW {
            // `x^(2h) = (x² + x)^h + x^h`.
            for groups in entries.chunks_exact_mut(4 * h) {
                let (first, fourth) = groups.split_at_mut(3 * h);
                let (second, third) = first[h..].split_at_mut(h);
                add(l, third, fourth);
                add(l, second, third);
            }
            h /= 2;
        }
        for (r, row) in entries.chunks_exact(ROW).enumerate() {
            tile[ROW * place(r)..][..ROW].copy_from_slice(row);
        }
        transpose_columns(&tile, entries);
    }
}

/// The inverse of [`to_columns`].
#[inline(always)]
fn to_entries<L: Lanes>(l: L, entries: &mut [Block]) {
    let mut tile = Lines::zeros(TILE);
    for entries in entries.chunks_exact_mut(TILE) {
        transpose_columns(entries, &mut tile);
        for (r, row) in entries.chunks_exact_mut(ROW).enumerate() {
            row.copy_from_slice(&tile[ROW * place(r)..][..ROW]);
        }
        let mut h = ROW;
        while h <= 16 * ROW {
            for groups in entries.chunks_exact_mut(4 * h) {
                let (first, fourth) = groups.split_at_mut(3 * h);
                let (second, third) = first[h..].split_at_mut(h);
                add(l, second, third);
                add(l, third, fourth);
            }
            h *= 2;
        }
    }
}

/// Values of the lowest coefficients of `a`.
struct Spectrum<'a> {
    transform: &'a Transform,
    low: &'a [Block],
    values: &'a mut [Factor],
}

impl Clmul for Spectrum<'_> {
    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let mut points = vec![Block::ZERO; self.values.len() * L::WIDTH];
        for (limbs, &low) in points.chunks_exact_mut(2 * L::WIDTH).zip(self.low) {
            let (first, second) = limbs.split_at_mut(L::WIDTH);
            l.store(first, l.splat(element(low.0 & u128::from(u64::MAX))));
            l.store(second, l.splat(element(low.0 >> LIMB)));
        }
        self.transform.forward(l, &mut points);
        for (value, lanes) in self.values.iter_mut().zip(points.chunks_exact(L::WIDTH)) {
            *value = factor(l, l.load(lanes));
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
        to_columns(l, entries);
        let words = entries.len() / COLUMNS;
        let mut column = Lines::zeros(words * L::WIDTH);
        // Two more for what the highest coefficients of `a` add.
        let mut points = Lines::zeros((POINTS_A_WORD * words + 2) * L::WIDTH);
        for first in (0..COLUMNS).step_by(L::WIDTH) {
            move_columns(entries, first, L::WIDTH, &mut column, Direction::Out);
            cut(l, &column, &mut points);
            let (transformed, above) = points.split_at_mut(POINTS_A_WORD * words * L::WIDTH);
            above.fill(Block::ZERO);
            code.transform.forward(l, transformed);
            for (point, &value) in transformed.chunks_exact_mut(L::WIDTH).zip(&code.values) {
                let scaled = multiply(l, l.load(point), value);
                l.store(point, scaled);
            }
            code.transform.inverse(l, transformed);
            for (i, &high) in code.high.iter().enumerate() {
                let from = (2 * words + i) * L::WIDTH;
                add_high(l, high, &column, &mut points[from..]);
            }
            fold(l, code, &points, &mut column);
            move_columns(entries, first, L::WIDTH, &mut column, Direction::In);
        }
        to_entries(l, entries);
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

/// Adds `column · high`, `high` being a limb.
#[inline(always)]
fn add_high<L: Lanes>(l: L, high: Factor, column: &[Block], points: &mut [Block]) {
    let words = column.chunks_exact(L::WIDTH);
    for (word, limbs) in words.zip(points.chunks_exact_mut(2 * L::WIDTH)) {
        let word = l.load(word);
        let (first, second) = limbs.split_at_mut(L::WIDTH);
        let sum = l.xor(l.load(first), multiply(l, l.even(word), high));
        l.store(first, sum);
        let sum = l.xor(l.load(second), multiply(l, l.odd(word), high));
        l.store(second, sum);
    }
}

/// Limbs of words, as elements.
#[inline(always)]
fn cut<L: Lanes>(l: L, words: &[Block], points: &mut [Block]) {
    let words = words.chunks_exact(L::WIDTH);
    for (word, limbs) in words.zip(points.chunks_exact_mut(2 * L::WIDTH)) {
        let (first, second) = limbs.split_at_mut(L::WIDTH);
        let word = l.load(word);
        l.store(first, l.even(word));
        l.store(second, l.odd(word));
    }
}

/// The next limb of a polynomial of which `point` is the next coefficient, as long as two limbs.
///
/// That is `l + w^32·h`, and `w^32 = x^64 + x^32`. The limb to carry is `h` and what of `x^32·h` reaches `w^32`, `q`; what is
/// left below is `l`, the rest of `x^32·h`, and `x^32·q`.
#[inline(always)]
fn limb<L: Lanes>(l: L, point: L::Reg, carry: &mut L::Reg) -> L::Reg {
    let h = l.odd(point);
    let across = l.times_x32(h);
    let q = l.odd(across);
    let left = l.xor(l.even(l.xor(point, across)), l.times_x32(q));
    let sum = l.xor(left, *carry);
    *carry = l.xor(h, q);
    sum
}

/// The opposite of [`cut`], modulo `x^p − 1`: coefficient `p + i` is added to coefficient `i`, for those below `n`.
#[inline(always)]
fn fold<L: Lanes>(l: L, code: &QuasiCyclic, points: &[Block], words: &mut [Block]) {
    let zero = l.splat(Block::ZERO);
    // Of the product's lower limbs, of its upper ones, and of these shifted to end at a limb's end.
    let (mut low_carry, mut high_carry, mut carry) = (zero, zero, zero);
    let (low, high) = points.split_at(2 * words.len());
    limb(l, l.load(&low[low.len() - L::WIDTH..]), &mut high_carry);
    let (left_out, high) = high.split_at(code.high.len() * L::WIDTH);
    for point in left_out.chunks_exact(L::WIDTH) {
        let upper = limb(l, l.load(point), &mut high_carry);
        limb(l, multiply(l, upper, code.shift), &mut carry);
    }
    let pairs = low
        .chunks_exact(2 * L::WIDTH)
        .zip(high.chunks_exact(2 * L::WIDTH));
    for (word, (low, high)) in words.chunks_exact_mut(L::WIDTH).zip(pairs) {
        let mut limbs = [zero; 2];
        for i in 0..2 {
            let upper = limb(l, l.load(&high[i * L::WIDTH..]), &mut high_carry);
            let upper = limb(l, multiply(l, upper, code.shift), &mut carry);
            let lower = limb(l, l.load(&low[i * L::WIDTH..]), &mut low_carry);
            limbs[i] = l.xor(lower, upper);
        }
        l.store(word, l.pair(limbs[0], limbs[1]));
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
            let extra = excess(log).expect("a size with a modulus");
            let p = n + extra as usize;
            let (low, high) = polynomial(Block(5), log, extra);
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

    /// At sizes beyond the definition's reach, among them one with more than a limb above `x^n`.
    #[test]
    fn single_entries_give_rotations() {
        // Portable code would take a minute for the larger.
        let sizes = match Backend::current() {
            Backend::Portable => &[18][..],
            _ => &[18, 22],
        };
        for &log in sizes {
            let (n, extra) = (1usize << log, excess(log).expect("a size with a modulus"));
            let p = n + extra as usize;
            let (low, high) = polynomial(Block(5), log, extra);
            let a = |i: usize| match i < n {
                true => low[i / 128].0 >> (i % 128) & 1,
                false => high.0 >> (i - n) & 1,
            };
            let ones = [(3, n - 1), (64, n / 2 + 4), (127, 0)];
            let mut v = vec![Block::ZERO; n];
            for (column, entry) in ones {
                v[entry] ^= Block(1 << column);
            }
            QuasiCyclic::new(Block(5), log).multiply(&mut v);
            for (i, &out) in v.iter().enumerate() {
                let sum = ones.iter().fold(0, |sum, &(column, entry)| {
                    sum | a((p + coefficient(i) - coefficient(entry)) % p) << column
                });
                assert!(out == Block(sum), "2^{log} entry {i}");
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
