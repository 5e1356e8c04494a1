//! PCLMULQDQ, one product at a time, and VPCLMULQDQ, two or four. Floor: four carry-less multiplications a product,
//! one vector of them a cycle (two cycles on Zen 3).

use std::arch::x86_64::*;

use super::Wide;
use crate::Block;
use crate::ggm::{PerTree, TREES};

#[target_feature(enable = "sse2")]
fn load(from: &Block) -> __m128i {
    // SAFETY: a block is 16 readable bytes.
    unsafe { _mm_loadu_si128((from as *const Block).cast()) }
}

#[target_feature(enable = "sse2")]
fn value(x: __m128i) -> u128 {
    let mut out = Block::ZERO;
    // SAFETY: a block is 16 writable bytes.
    unsafe { _mm_storeu_si128((&raw mut out).cast(), x) };
    out.0
}

/// `low`, `mid` and `high` of a [`Wide`].
type Parts = [__m128i; 3];

#[target_feature(enable = "sse2,pclmulqdq")]
fn add_product(sum: &mut Parts, a: __m128i, b: __m128i) {
    let mid = _mm_xor_si128(
        _mm_clmulepi64_si128(a, b, 0x10),
        _mm_clmulepi64_si128(a, b, 0x01),
    );
    sum[0] = _mm_xor_si128(sum[0], _mm_clmulepi64_si128(a, b, 0x00));
    sum[1] = _mm_xor_si128(sum[1], mid);
    sum[2] = _mm_xor_si128(sum[2], _mm_clmulepi64_si128(a, b, 0x11));
}

#[target_feature(enable = "sse2")]
fn wide(sum: Parts) -> Wide {
    Wide {
        low: value(sum[0]),
        mid: value(sum[1]),
        high: value(sum[2]),
    }
}

/// [`super::dot`] before reduction.
///
/// # Safety
/// The machine has PCLMULQDQ.
#[target_feature(enable = "sse2,pclmulqdq")]
pub(super) unsafe fn dot(a: &[Block], b: &[Block]) -> Wide {
    let mut sum = [_mm_setzero_si128(); 3];
    for (a, b) in a.iter().zip(b) {
        add_product(&mut sum, load(a), load(b));
    }
    wide(sum)
}

/// [`super::dot_lanes`] before reduction.
///
/// # Safety
/// The machine has PCLMULQDQ.
#[target_feature(enable = "sse2,pclmulqdq")]
pub(super) unsafe fn dot_lanes(weights: &[Block], lanes: &[PerTree<Block>]) -> PerTree<Wide> {
    let mut out = [Wide::default(); TREES];
    // Four trees at a time: their sums fill the sixteen registers almost.
    for (half, out) in out.chunks_exact_mut(4).enumerate() {
        let mut sums = [[_mm_setzero_si128(); 3]; 4];
        for (weight, group) in weights.iter().zip(lanes) {
            let weight = load(weight);
            for (sum, node) in sums.iter_mut().zip(&group[4 * half..]) {
                add_product(sum, weight, load(node));
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = wide(sum);
        }
    }
    out
}

type DoubleParts = [__m256i; 3];

#[target_feature(enable = "avx2,vpclmulqdq")]
fn add_two(sum: &mut DoubleParts, a: __m256i, b: __m256i) {
    let mid = _mm256_xor_si256(
        _mm256_clmulepi64_epi128(a, b, 0x10),
        _mm256_clmulepi64_epi128(a, b, 0x01),
    );
    sum[0] = _mm256_xor_si256(sum[0], _mm256_clmulepi64_epi128(a, b, 0x00));
    sum[1] = _mm256_xor_si256(sum[1], mid);
    sum[2] = _mm256_xor_si256(sum[2], _mm256_clmulepi64_epi128(a, b, 0x11));
}

#[target_feature(enable = "avx2")]
fn load_two(from: &[Block; 2]) -> __m256i {
    // SAFETY: two blocks are 32 readable bytes.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// The two sums in the lanes.
#[target_feature(enable = "avx2")]
fn double_lanes(sum: DoubleParts) -> [Wide; 2] {
    let mut halves = [[_mm_setzero_si128(); 3]; 2];
    for (i, sum) in sum.into_iter().enumerate() {
        halves[0][i] = _mm256_castsi256_si128(sum);
        halves[1][i] = _mm256_extracti128_si256(sum, 1);
    }
    [wide(halves[0]), wide(halves[1])]
}

/// [`super::dot`] before reduction.
///
/// # Safety
/// The machine has VPCLMULQDQ and AVX2.
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
pub(super) unsafe fn dot_double(a: &[Block], b: &[Block]) -> Wide {
    let (a_two, a_rest) = a.as_chunks();
    let (b_two, b_rest) = b.as_chunks();
    let mut sum = [_mm256_setzero_si256(); 3];
    for (a, b) in a_two.iter().zip(b_two) {
        add_two(&mut sum, load_two(a), load_two(b));
    }
    // SAFETY: PCLMULQDQ comes with VPCLMULQDQ.
    let mut out = unsafe { dot(a_rest, b_rest) };
    for lane in double_lanes(sum) {
        out.low ^= lane.low;
        out.mid ^= lane.mid;
        out.high ^= lane.high;
    }
    out
}

/// [`super::dot_lanes`] before reduction.
///
/// # Safety
/// The machine has VPCLMULQDQ and AVX2.
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) unsafe fn dot_lanes_double(
    weights: &[Block],
    lanes: &[PerTree<Block>],
) -> PerTree<Wide> {
    let zero = [_mm256_setzero_si256(); 3];
    let (mut first, mut second, mut third, mut fourth) = (zero, zero, zero, zero);
    for (weight, group) in weights.iter().zip(lanes) {
        let weight = _mm256_broadcastsi128_si256(load(weight));
        let (pairs, _) = group.as_chunks();
        add_two(&mut first, weight, load_two(&pairs[0]));
        add_two(&mut second, weight, load_two(&pairs[1]));
        add_two(&mut third, weight, load_two(&pairs[2]));
        add_two(&mut fourth, weight, load_two(&pairs[3]));
    }
    let mut out = [Wide::default(); TREES];
    for (out, sum) in out.chunks_exact_mut(2).zip([first, second, third, fourth]) {
        out.copy_from_slice(&double_lanes(sum));
    }
    out
}

type WideParts = [__m512i; 3];

#[target_feature(enable = "avx512f,vpclmulqdq")]
fn add_products(sum: &mut WideParts, a: __m512i, b: __m512i) {
    // 0x96 is the exclusive or of three.
    let (m1, m2) = (
        _mm512_clmulepi64_epi128(a, b, 0x10),
        _mm512_clmulepi64_epi128(a, b, 0x01),
    );
    sum[0] = _mm512_xor_si512(sum[0], _mm512_clmulepi64_epi128(a, b, 0x00));
    sum[1] = _mm512_ternarylogic_epi64(sum[1], m1, m2, 0x96);
    sum[2] = _mm512_xor_si512(sum[2], _mm512_clmulepi64_epi128(a, b, 0x11));
}

#[target_feature(enable = "avx512f")]
fn load_four(from: &[Block; 4]) -> __m512i {
    // SAFETY: four blocks are 64 readable bytes.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

/// The four sums in the lanes.
#[target_feature(enable = "avx512f")]
fn wide_lanes(sum: WideParts) -> [Wide; 4] {
    let mut parts = [[Block::ZERO; 4]; 3];
    for (part, sum) in parts.iter_mut().zip(sum) {
        // SAFETY: four blocks are 64 writable bytes.
        unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), sum) };
    }
    let mut out = [Wide::default(); 4];
    for (i, out) in out.iter_mut().enumerate() {
        *out = Wide {
            low: parts[0][i].0,
            mid: parts[1][i].0,
            high: parts[2][i].0,
        };
    }
    out
}

/// [`super::dot`] before reduction.
///
/// # Safety
/// The machine has VPCLMULQDQ and AVX-512F.
#[target_feature(enable = "avx512f,vpclmulqdq,sse2,pclmulqdq")]
pub(super) unsafe fn dot_wide(a: &[Block], b: &[Block]) -> Wide {
    let (a_four, a_rest) = a.as_chunks();
    let (b_four, b_rest) = b.as_chunks();
    let mut sum = [_mm512_setzero_si512(); 3];
    for (a, b) in a_four.iter().zip(b_four) {
        add_products(&mut sum, load_four(a), load_four(b));
    }
    // SAFETY: PCLMULQDQ comes with VPCLMULQDQ.
    let mut out = unsafe { dot(a_rest, b_rest) };
    for lane in wide_lanes(sum) {
        out.low ^= lane.low;
        out.mid ^= lane.mid;
        out.high ^= lane.high;
    }
    out
}

/// [`super::dot_lanes`] before reduction.
///
/// # Safety
/// The machine has VPCLMULQDQ and AVX-512F.
#[target_feature(enable = "avx512f,vpclmulqdq,sse2")]
pub(super) unsafe fn dot_lanes_wide(weights: &[Block], lanes: &[PerTree<Block>]) -> PerTree<Wide> {
    let mut low = [_mm512_setzero_si512(); 3];
    let mut high = low;
    for (weight, group) in weights.iter().zip(lanes) {
        let weight = _mm512_broadcast_i32x4(load(weight));
        let (halves, _) = group.as_chunks();
        add_products(&mut low, weight, load_four(&halves[0]));
        add_products(&mut high, weight, load_four(&halves[1]));
    }
    let mut out = [Wide::default(); TREES];
    out[..4].copy_from_slice(&wide_lanes(low));
    out[4..].copy_from_slice(&wide_lanes(high));
    out
}
