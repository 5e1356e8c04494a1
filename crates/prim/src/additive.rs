//! The additive Fourier transform: evaluation of polynomials over GF(2^128) on linear subspaces, for products of long
//! polynomials over GF(2).
//!
//! Source: Lin, Chung, Han, "Novel polynomial basis and its application to Reed–Solomon erasure codes", FOCS 2014, over Cantor's
//! basis (`v_0 = 1`, `v_i² + v_i = v_{i−1}`), for which a butterfly's factor depends on its block's number only; the change of
//! basis as by Gao and Mateer (IEEE Trans. Inf. Theory 2010), additions only. Exact: no rounding anywhere. The field is that of
//! [`crate::gf128`].
//!
//! `2^m` points take `m·2^(m−1)` butterflies, each a product by a public constant (five carry-less instructions), and
//! about as many additions again for the basis. All points of a few columns side by side, [`Lanes::WIDTH`] of them; what fits
//! [`CHUNK`] points is done a chunk at a time, to stay in the second-level cache.

use crate::Block;
use crate::simd::clmul::Lanes;

/// Cantor's basis of the subspace.
const BASIS: [u128; 18] = [
    0x0000_0000_0000_0000_0000_0000_0000_0001,
    0x295a_c0b1_f473_1af9_676a_ac9f_a4b2_0b08,
    0xa213_4422_cd40_54c9_ff10_99c3_1bbe_8f22,
    0x7959_d70c_e1ee_6942_53b8_5b64_02b1_e848,
    0x08f6_b313_e935_b8e2_cabc_d8e4_694e_5644,
    0x49c9_3216_3528_2198_4d48_b166_61e8_60ec,
    0x053d_8555_a997_9a1c_a13f_e8ac_5560_ce0c,
    0x4d52_354a_3a3d_8c86_5cb1_0fba_bcf0_0118,
    0x2cca_e6ed_8d6b_4cd0_e18c_55b8_e07d_3612,
    0x210d_8fbe_7267_2c66_588b_6244_c5d7_4470,
    0xc211_182c_85e1_48b3_d047_dada_8465_4da4,
    0x104d_101e_47f1_f112_fed3_b473_eeb3_9df8,
    0xce95_5ea0_da2a_682b_bf19_9eb4_f675_f2ac,
    0xdbac_fb2a_c336_178f_19c5_5b8d_6bef_4c98,
    0x5877_0bc4_e101_ab94_f553_1b28_8581_56d0,
    0x497f_8adb_47e0_ae82_8b97_b65b_221c_c4e4,
    0x05aa_755d_f14f_64da_a10c_fc6a_1654_c578,
    0x82db_3545_23f4_0c7b_bae9_9a4e_3fbe_0c54,
];

/// Largest supported `log2` of the number of points.
pub(crate) const MAX_LOG_POINTS: u32 = BASIS.len() as u32;

/// Points worked on together: 256 KiB for four columns. A local tuning knob.
const CHUNK: usize = 1 << 12;

/// A step of the change of basis, in every `2·half` coefficients.
#[derive(Clone, Copy)]
struct Pass {
    half: usize,
    shift: usize,
}

/// A transform of `2^log_points` points.
pub(crate) struct Transform {
    /// Factor of block `k` of a layer: `Σ k_j v_{j+1}`.
    factors: Vec<Block>,
    passes: Vec<Pass>,
    log_points: u32,
}

impl Transform {
    /// # Panics
    /// If `log_points` is outside `1..=MAX_LOG_POINTS`.
    pub(crate) fn new(log_points: u32) -> Self {
        assert!(
            (1..=MAX_LOG_POINTS).contains(&log_points),
            "2^{log_points} points"
        );
        let mut factors = vec![Block::ZERO];
        for v in &BASIS[1..log_points as usize] {
            let upper: Vec<Block> = factors.iter().map(|&f| f ^ Block(*v)).collect();
            factors.extend(upper);
        }
        let mut passes = Vec::new();
        change_of_basis(log_points, 0, &mut passes);
        Self {
            factors,
            passes,
            log_points,
        }
    }

    /// From coefficients of `1, x, x², …` to values.
    #[inline(always)]
    pub(crate) fn forward<L: Lanes>(&self, l: L, points: &mut [Block]) {
        debug_assert_eq!(points.len(), L::WIDTH << self.log_points);
        let mut passes = &self.passes[..];
        while let [first, rest @ ..] = passes {
            if 2 * first.half > CHUNK {
                expand::<L>(l, points, *first);
                passes = rest;
                continue;
            }
            let (run, rest) = passes.split_at(small(passes.iter()));
            for chunk in points.chunks_mut(CHUNK * L::WIDTH) {
                for &pass in run {
                    expand::<L>(l, chunk, pass);
                }
            }
            passes = rest;
        }
        let inner = self.log_points.min(CHUNK.trailing_zeros());
        for layer in (inner..self.log_points).rev() {
            evaluate(l, points, layer, &self.factors);
        }
        for (c, chunk) in points.chunks_mut(L::WIDTH << inner).enumerate() {
            for layer in (0..inner).rev() {
                evaluate(l, chunk, layer, &self.factors[c << (inner - layer - 1)..]);
            }
        }
    }

    /// From values to coefficients.
    #[inline(always)]
    pub(crate) fn inverse<L: Lanes>(&self, l: L, points: &mut [Block]) {
        debug_assert_eq!(points.len(), L::WIDTH << self.log_points);
        let inner = self.log_points.min(CHUNK.trailing_zeros());
        for (c, chunk) in points.chunks_mut(L::WIDTH << inner).enumerate() {
            for layer in 0..inner {
                interpolate(l, chunk, layer, &self.factors[c << (inner - layer - 1)..]);
            }
        }
        for layer in inner..self.log_points {
            interpolate(l, points, layer, &self.factors);
        }
        let mut passes = &self.passes[..];
        while let [rest @ .., last] = passes {
            if 2 * last.half > CHUNK {
                collapse::<L>(l, points, *last);
                passes = rest;
                continue;
            }
            let (rest, run) = passes.split_at(passes.len() - small(passes.iter().rev()));
            for chunk in points.chunks_mut(CHUNK * L::WIDTH) {
                for &pass in run.iter().rev() {
                    collapse::<L>(l, chunk, pass);
                }
            }
            passes = rest;
        }
    }
}

/// How many passes from the start on fit a chunk.
fn small<'a>(passes: impl Iterator<Item = &'a Pass>) -> usize {
    passes.take_while(|pass| 2 * pass.half <= CHUNK).count()
}

/// The passes for polynomials of `2^m` coefficients, each `2^stride` field elements.
///
/// With `τ = 2^i` the largest power of two below `m` that is one too, write the polynomial in powers of `x^(2^τ) + x`, which is
/// the basis polynomial of index `2^τ`; then treat the digits, and the polynomial of which they are the coefficients, likewise.
fn change_of_basis(m: u32, stride: u32, passes: &mut Vec<Pass>) {
    if m <= 1 {
        return;
    }
    let tau = m.next_power_of_two() / 2;
    for k in (0..m - tau).rev() {
        passes.push(Pass {
            half: 1 << (tau + k + stride),
            shift: 1 << (k + stride),
        });
    }
    change_of_basis(m - tau, stride + tau, passes);
    change_of_basis(tau, stride, passes);
}

/// `to += from`.
#[inline(always)]
fn add<L: Lanes>(l: L, to: &mut [Block], from: &[Block]) {
    for (to, from) in to
        .chunks_exact_mut(L::WIDTH)
        .zip(from.chunks_exact(L::WIDTH))
    {
        l.store(to, l.xor(l.load(to), l.load(from)));
    }
}

/// Divides every `2·half` coefficients by `x^half + x^shift`: remainder low, quotient high.
#[inline(always)]
fn expand<L: Lanes>(l: L, points: &mut [Block], Pass { half, shift }: Pass) {
    let (half, shift) = (half * L::WIDTH, shift * L::WIDTH);
    for block in points.chunks_exact_mut(2 * half) {
        let (low, high) = block.split_at_mut(half);
        let (start, end) = high.split_at_mut(half - shift);
        add(l, &mut start[..shift], end);
        add(l, &mut low[shift..], start);
    }
}

/// The inverse of [`expand`].
#[inline(always)]
fn collapse<L: Lanes>(l: L, points: &mut [Block], Pass { half, shift }: Pass) {
    let (half, shift) = (half * L::WIDTH, shift * L::WIDTH);
    for block in points.chunks_exact_mut(2 * half) {
        let (low, high) = block.split_at_mut(half);
        let (start, end) = high.split_at_mut(half - shift);
        add(l, &mut low[shift..], start);
        add(l, &mut start[..shift], end);
    }
}

/// `a·c` in the field, `c` in all lanes and `c_folded` the sum of its halves.
#[inline(always)]
pub(crate) fn times<L: Lanes>(l: L, a: L::Reg, c: L::Reg, c_folded: L::Reg) -> L::Reg {
    let middle = l.low(l.fold(a), c_folded);
    let (low, high) = l.join(l.low(a, c), middle, l.high(a, c));
    // x^128 = x^7 + x^2 + x + 1; first for the high half, which reaches into the low one.
    let tail = l.splat(Block(0x87 << 64 | 0x87));
    let top = l.high(high, tail);
    let rest = l.low(l.xor(high, l.down(top)), tail);
    l.xor(low, l.xor(l.up(top), rest))
}

/// One layer, from its factors: the values of `f_0 + s·f_1` on a subspace (`s` constant) and on its coset (`s + 1`).
#[inline(always)]
fn evaluate<L: Lanes>(l: L, points: &mut [Block], layer: u32, factors: &[Block]) {
    for (block, &factor) in points
        .chunks_exact_mut((2 * L::WIDTH) << layer)
        .zip(factors)
    {
        let c = l.splat(factor);
        let c_folded = l.fold(c);
        let (first, second) = block.split_at_mut(L::WIDTH << layer);
        for (a, b) in first
            .chunks_exact_mut(L::WIDTH)
            .zip(second.chunks_exact_mut(L::WIDTH))
        {
            let f1 = l.load(b);
            let u = l.xor(l.load(a), times(l, f1, c, c_folded));
            l.store(a, u);
            l.store(b, l.xor(u, f1));
        }
    }
}

/// The inverse of [`evaluate`].
#[inline(always)]
fn interpolate<L: Lanes>(l: L, points: &mut [Block], layer: u32, factors: &[Block]) {
    for (block, &factor) in points
        .chunks_exact_mut((2 * L::WIDTH) << layer)
        .zip(factors)
    {
        let c = l.splat(factor);
        let c_folded = l.fold(c);
        let (first, second) = block.split_at_mut(L::WIDTH << layer);
        for (a, b) in first
            .chunks_exact_mut(L::WIDTH)
            .zip(second.chunks_exact_mut(L::WIDTH))
        {
            let u = l.load(a);
            let f1 = l.xor(u, l.load(b));
            l.store(a, l.xor(u, times(l, f1, c, c_folded)));
            l.store(b, f1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::clmul::{Clmul, dispatch};
    use crate::{Backend, Prg, gf128};

    #[test]
    fn the_basis_is_cantors() {
        assert_eq!(BASIS[0], 1);
        for pair in BASIS.windows(2) {
            let v = Block(pair[1]);
            assert!(gf128::mul(v, v) ^ v == Block(pair[0]));
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
        for log in [1, 2, 3, 5, 9, 13] {
            let transform = Transform::new(log);
            let mut coefficients = vec![Block::ZERO; 1 << log];
            Prg::from_seed(Block(6)).fill_blocks(&mut coefficients);
            for backend in Backend::available() {
                let mut values = Vec::new();
                dispatch(
                    backend,
                    There(&transform, &coefficients, &mut values, false),
                );
                for i in (0..1usize << log).step_by(1 + (1 << log) / 37) {
                    let x = (0..log as usize)
                        .filter(|j| i >> j & 1 == 1)
                        .fold(Block::ZERO, |x, j| x ^ Block(BASIS[j]));
                    let horner = |sum, &c| gf128::mul(sum, x) ^ c;
                    let expected = coefficients.iter().rev().fold(Block::ZERO, horner);
                    assert!(values[i] == expected, "{backend:?} 2^{log} point {i}");
                }
                dispatch(backend, There(&transform, &coefficients, &mut values, true));
                assert!(values == coefficients, "{backend:?} 2^{log} and back");
            }
        }
    }
}
