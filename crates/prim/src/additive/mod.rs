//! The additive Fourier transform: evaluation of polynomials over GF(2^128) on linear subspaces, for products of long
//! polynomials over GF(2).
//!
//! Source: Lin, Chung, Han, "Novel polynomial basis and its application to Reed–Solomon erasure codes", FOCS 2014, over Cantor's
//! basis (`v_0 = 1`, `v_i² + v_i = v_{i−1}`), for which a butterfly's factor depends on its block's number only; the change of
//! basis as by Gao and Mateer (IEEE Trans. Inf. Theory 2010), additions only. Exact: no rounding anywhere.
//!
//! **The field** is `K[x] / (x² + x + w)` over `K = GF(2^64)` as in [`Lanes`]; an element `a + b·x` is a block, `a` its low word.
//! All factors lie in `K` (the basis spans subfields), so a butterfly's product is two carry-less instructions and a reduction
//! that needs none. As `w = x² + x`, a polynomial over GF(2) in `x` is an element once written in powers of `x² + x`: of degree
//! below 128, one to one ([`element`]). Constants are stored times `w^64`,
//! which [`Lanes::reduce`] takes away.
//!
//! `2^m` points take `m·2^(m−1)` butterflies and about as many additions again for the basis. All points of a few columns side by
//! side, [`Lanes::WIDTH`] of them; blocks are done depth first, to stay in the caches.

mod basis;

use crate::Block;
use crate::simd::clmul::{Lanes, Portable};
use basis::ChangeOfBasis;

/// Cantor's basis of the subspace, times `w^64`.
const BASIS: [u64; 18] = [
    0xb000_0000_0000_0001,
    0x3076_a3c9_f2d9_2731,
    0x63a9_5625_2516_243b,
    0xf2dd_6ac2_f092_1f4e,
    0xd4bc_ee55_ce1c_a544,
    0xc2a3_aa3a_3bf5_16db,
    0xb76b_1262_e686_731f,
    0x52b2_fb10_1972_ae75,
    0xe89e_cbef_48eb_e791,
    0x574d_6ba5_5d04_152a,
    0x0a63_bfa7_75fc_963f,
    0xed32_cb08_3f14_560e,
    0x48c5_9ac5_13e7_6cae,
    0x5ee6_c87d_33d7_0f24,
    0x9abf_5642_f9b5_b291,
    0x9a8d_bca5_0d52_ec5b,
    0xf9cd_4632_c15d_849f,
    0x68e7_a520_f53c_f0f5,
];

/// `w^128` and `w^129`, twice.
const SQUARE: Block = Block(0x371c_71c7_1c71_c71d_371c_71c7_1c71_c71d);
const SQUARE_W: Block = Block(0x6e38_e38e_38e3_8e3a_6e38_e38e_38e3_8e3a);

/// Largest supported `log2` of the number of points.
pub(crate) const MAX_LOG_POINTS: u32 = BASIS.len() as u32;

/// Blocks whose layers are done together, 16 KiB in the first-level cache. A local tuning knob.
const LOG_INNER: u32 = 10;

/// The element that a polynomial in `x` over GF(2) of degree below 128 is.
pub(crate) fn element(polynomial: u128) -> Block {
    let mut v = polynomial;
    // Of every four groups of `h` bits, the third takes the fourth (`x^(2h) = (x² + x)^h + x^h`), then the second the third.
    for (log, fourth, third) in [
        (5, 0xffff_ffff << 96, 0xffff_ffff << 64),
        (4, spread(0xffff << 48, 64), spread(0xffff << 32, 64)),
        (3, spread(0xff << 24, 32), spread(0xff << 16, 32)),
        (2, spread(0xf << 12, 16), spread(0xf << 8, 16)),
        (1, spread(3 << 6, 8), spread(3 << 4, 8)),
        (0, spread(1 << 3, 4), spread(1 << 2, 4)),
    ] {
        v ^= (v & fourth) >> (1 << log);
        v ^= (v & third) >> (1 << log);
    }
    let mut out = 0;
    for j in 0..64 {
        out |= (v >> (2 * j) & 1) << j | (v >> (2 * j + 1) & 1) << (64 + j);
    }
    Block(out)
}

/// `mask` in every `bits` bits.
const fn spread(mask: u128, bits: u32) -> u128 {
    let (mut mask, mut bits) = (mask, bits);
    while bits < 128 {
        mask |= mask << bits;
        bits *= 2;
    }
    mask
}

/// A transform of `2^log_points` points.
pub(crate) struct Transform {
    /// Factor of block `k` of a layer: `Σ k_j v_{j+1}`, in both words.
    factors: Vec<Block>,
    basis: ChangeOfBasis,
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
        for &v in &BASIS[1..log_points as usize] {
            let v = Block(u128::from(v) << 64 | u128::from(v));
            let upper: Vec<Block> = factors.iter().map(|&f| f ^ v).collect();
            factors.extend(upper);
        }
        Self {
            factors,
            basis: ChangeOfBasis::new(log_points),
            log_points,
        }
    }

    /// From coefficients of `1, x, x², …` to values, of a polynomial whose upper half of coefficients is zero. That half of
    /// `points` need not be written.
    #[inline(always)]
    pub(crate) fn forward<L: Lanes>(&self, l: L, points: &mut [Block]) {
        debug_assert_eq!(points.len(), L::WIDTH << self.log_points);
        let (used, copy) = points.split_at_mut(points.len() / 2);
        self.basis.expand_half(l, used);
        // The layer of all points: its factor is zero, and so is what it would multiply.
        copy.copy_from_slice(used);
        let layers = self.log_points - 1;
        let inner = layers.min(LOG_INNER - L::WIDTH.ilog2()) & !1;
        for (c, at) in (0..points.len()).step_by(L::WIDTH << inner).enumerate() {
            let rest = &mut points[at..];
            let mut layer = layers;
            // Blocks that begin here, the largest first.
            while layer > inner {
                // Two layers at once, but for the first of an odd number.
                let two = (layer - inner).is_multiple_of(2);
                layer -= 1 + u32::from(two);
                let log = layer + 1 + u32::from(two);
                if c.trailing_zeros() + inner >= log {
                    let block = &mut rest[..L::WIDTH << log];
                    let number = c >> (log - inner);
                    match two {
                        true => two_layers::<L, false>(l, block, layer, number, &self.factors),
                        false => one_layer::<L, false>(l, block, layer, number, &self.factors),
                    }
                }
            }
            while layer > 0 {
                layer -= 2;
                let block = &mut rest[..L::WIDTH << inner];
                two_layers::<L, false>(l, block, layer, c << (inner - layer - 2), &self.factors);
            }
        }
    }

    /// From values to coefficients.
    #[inline(always)]
    pub(crate) fn inverse<L: Lanes>(&self, l: L, points: &mut [Block]) {
        debug_assert_eq!(points.len(), L::WIDTH << self.log_points);
        let layers = self.log_points - 1;
        let inner = layers.min(LOG_INNER - L::WIDTH.ilog2()) & !1;
        for (c, end) in (0..=points.len())
            .step_by(L::WIDTH << inner)
            .skip(1)
            .enumerate()
        {
            let done = &mut points[..end];
            let mut layer = 0;
            while layer < inner {
                let block = &mut done[end - (L::WIDTH << inner)..];
                two_layers::<L, true>(l, block, layer, c << (inner - layer - 2), &self.factors);
                layer += 2;
            }
            // Blocks that end here, the smallest first.
            while layer < layers {
                let two = layer + 1 < layers;
                let log = layer + 1 + u32::from(two);
                if (c + 1).trailing_zeros() + inner >= log {
                    let block = &mut done[end - (L::WIDTH << log)..];
                    let number = c >> (log - inner);
                    match two {
                        true => two_layers::<L, true>(l, block, layer, number, &self.factors),
                        false => one_layer::<L, true>(l, block, layer, number, &self.factors),
                    }
                }
                layer = log;
            }
        }
        // The layer of all points, its factor being zero.
        let (first, second) = points.split_at_mut(points.len() / 2);
        add(l, second, first);
        self.basis.collapse(l, points);
    }
}

/// `to += from`, the shorter of both.
#[inline(always)]
pub(crate) fn add<L: Lanes>(l: L, to: &mut [Block], from: &[Block]) {
    for (to, from) in to
        .chunks_exact_mut(L::WIDTH)
        .zip(from.chunks_exact(L::WIDTH))
    {
        l.store(to, l.xor(l.load(to), l.load(from)));
    }
}

/// `a·c / w^64`, `c` of `K` and in both words.
#[inline(always)]
fn times<L: Lanes>(l: L, a: L::Reg, c: L::Reg) -> L::Reg {
    l.reduce(l.low(a, c), l.high(a, c))
}

/// What multiplies by an element `b_0 + b_1·x`: the words `b_0`, `w·b_1` and `b_1`, `b_0 + b_1`, times `w^64`.
pub(crate) type Factor = [Block; 2];

/// The [`Factor`]s of elements.
#[inline(always)]
pub(crate) fn factor<L: Lanes>(l: L, b: L::Reg) -> Factor {
    let mut rooms = [[Block::ZERO; 4]; 2];
    l.store(&mut rooms[0], times(l, b, l.splat(SQUARE)));
    l.store(&mut rooms[1], times(l, b, l.splat(SQUARE_W)));
    let (b, b_w) = (rooms[0][0].0, rooms[1][0].0);
    let (low, high) = (b & u128::from(u64::MAX), b >> 64);
    [
        Block(low | b_w >> 64 << 64),
        Block(high | (low ^ high) << 64),
    ]
}

/// The [`Factor`] of a polynomial in `x` over GF(2) of degree below 128.
pub(crate) fn polynomial_factor(polynomial: u128) -> Factor {
    factor(Portable, element(polynomial))
}

/// `a·b`.
#[inline(always)]
pub(crate) fn multiply<L: Lanes>(l: L, a: L::Reg, b: Factor) -> L::Reg {
    let (first, second) = (l.splat(b[0]), l.splat(b[1]));
    l.reduce(
        l.xor(l.low(a, first), l.high(a, first)),
        l.xor(l.low(a, second), l.high(a, second)),
    )
}

/// `f_0, f_1` to `f_0 + c·f_1`, `f_0 + (c + 1)·f_1`; `f_0 + f_1·0` and `+ 1` where `zero`.
#[inline(always)]
fn butterfly<L: Lanes>(l: L, f: [L::Reg; 2], c: L::Reg, zero: bool) -> [L::Reg; 2] {
    let u = if zero {
        f[0]
    } else {
        l.xor(f[0], times(l, f[1], c))
    };
    [u, l.xor(u, f[1])]
}

/// The inverse of [`butterfly`].
#[inline(always)]
fn unbutterfly<L: Lanes>(l: L, v: [L::Reg; 2], c: L::Reg, zero: bool) -> [L::Reg; 2] {
    let f1 = l.xor(v[0], v[1]);
    let f0 = if zero {
        v[0]
    } else {
        l.xor(v[0], times(l, f1, c))
    };
    [f0, f1]
}

/// One layer, of blocks number `first` and up: the values of `f_0 + s·f_1` on a subspace (`s` constant) and on its coset (`s + 1`),
/// or the inverse.
#[inline(always)]
fn one_layer<L: Lanes, const INVERSE: bool>(
    l: L,
    points: &mut [Block],
    layer: u32,
    first: usize,
    factors: &[Block],
) {
    let half = L::WIDTH << layer;
    for (k, block) in points.chunks_exact_mut(2 * half).enumerate() {
        let c = l.splat(factors[first + k]);
        let (low, high) = block.split_at_mut(half);
        let highs = high.chunks_exact_mut(L::WIDTH);
        for (a, b) in low.chunks_exact_mut(L::WIDTH).zip(highs) {
            let pair = [l.load(a), l.load(b)];
            let [u, v] = if INVERSE {
                unbutterfly(l, pair, c, false)
            } else {
                butterfly(l, pair, c, false)
            };
            l.store(a, u);
            l.store(b, v);
        }
    }
}

/// [`one_layer`] of layer `layer + 1`, then `layer`; the inverse in the other order. `first` is a number of blocks of the former.
#[inline(always)]
fn two_layers<L: Lanes, const INVERSE: bool>(
    l: L,
    points: &mut [Block],
    layer: u32,
    first: usize,
    factors: &[Block],
) {
    let quarter = L::WIDTH << layer;
    let mut points = points;
    let mut k = first;
    while points.len() >= 4 * quarter {
        let (block, rest) = points.split_at_mut(4 * quarter);
        let pair = &factors[2 * k..2 * k + 2];
        let c = [l.splat(factors[k]), l.splat(pair[0]), l.splat(pair[1])];
        if k == 0 {
            quarters::<L, INVERSE, true>(l, block, c);
        } else if layer == 0 {
            let block = &mut block[..4 * L::WIDTH];
            let (low, high) = block.split_at_mut(2 * L::WIDTH);
            let (a, b) = low.split_at_mut(L::WIDTH);
            let (d, e) = high.split_at_mut(L::WIDTH);
            four::<L, INVERSE, false>(l, [a, b, d, e], c);
        } else {
            quarters::<L, INVERSE, false>(l, block, c);
        }
        points = rest;
        k += 1;
    }
}

/// Two layers of a block; where `ZERO`, all factors but the last are zero.
#[inline(always)]
fn quarters<L: Lanes, const INVERSE: bool, const ZERO: bool>(
    l: L,
    block: &mut [Block],
    factors: [L::Reg; 3],
) {
    let quarter = block.len() / 4;
    let (low, high) = block.split_at_mut(2 * quarter);
    let (a, b) = low.split_at_mut(quarter);
    let (c, d) = high.split_at_mut(quarter);
    let lows = a
        .chunks_exact_mut(L::WIDTH)
        .zip(b.chunks_exact_mut(L::WIDTH));
    let highs = c
        .chunks_exact_mut(L::WIDTH)
        .zip(d.chunks_exact_mut(L::WIDTH));
    for ((a, b), (c, d)) in lows.zip(highs) {
        four::<L, INVERSE, ZERO>(l, [a, b, c, d], factors);
    }
}

/// Two layers of four points.
#[inline(always)]
fn four<L: Lanes, const INVERSE: bool, const ZERO: bool>(
    l: L,
    [a, b, c, d]: [&mut [Block]; 4],
    [outer, first, second]: [L::Reg; 3],
) {
    let (mut p, mut q) = ([l.load(a), l.load(b)], [l.load(c), l.load(d)]);
    if INVERSE {
        p = unbutterfly(l, p, first, ZERO);
        q = unbutterfly(l, q, second, false);
    }
    for i in 0..2 {
        [p[i], q[i]] = if INVERSE {
            unbutterfly(l, [p[i], q[i]], outer, ZERO)
        } else {
            butterfly(l, [p[i], q[i]], outer, ZERO)
        };
    }
    if !INVERSE {
        p = butterfly(l, p, first, ZERO);
        q = butterfly(l, q, second, false);
    }
    l.store(a, p[0]);
    l.store(b, p[1]);
    l.store(c, q[0]);
    l.store(d, q[1]);
}

#[cfg(test)]
mod tests;
