//! The AVX2 twins.

use std::arch::x86_64::*;

use super::Move;
use crate::LOW_HALVES;

/// [`super::move_open_sized`]: rotates up, or permutes.
///
/// # Safety
/// The machine has AVX2, BMI1, BMI2 and POPCNT; `v` and `out` are one row of `2^k` bits each, and `s < 2^k`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn move_open(v: &[u64], k: u32, kind: Move, s: usize, out: &mut [u64]) {
    match (kind, v) {
        (Move::RotateDown, &[a, b, c, d]) => out.copy_from_slice(&rotate_four([a, b, c, d], s)),
        (Move::RotateDown, _) => super::move_open_sized(v, k, kind, s, out),
        (Move::Xor, &[a]) => out[0] = permute_four([a, 0, 0, 0], s)[0],
        (Move::Xor, &[a, b]) => out.copy_from_slice(&permute_four([a, b, 0, 0], s)[..2]),
        (Move::Xor, _) => {
            let (v, fours) = (v.as_chunks().0, s / 256);
            for (i, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
                *out = permute_four(v[i ^ fours], s);
            }
        }
    }
}

/// `v` rotated down by `s` below 256, or permuted by it, in time and addresses independent of `s`.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn move_four(v: [u64; 4], kind: Move, s: usize) -> [u64; 4] {
    match kind {
        Move::RotateDown => rotate_four(v, 256 - s),
        Move::Xor => permute_four(v, s),
    }
}

/// [`super::fold_sized`] for rows of 256 bits or more.
///
/// # Safety
/// The machine has AVX2, BMI1, BMI2 and POPCNT; `rows` are `2^k` rows of `2^k` bits, `k` 8 or more.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn fold(rows: &mut [u64], k: u32, kind: Move) {
    let (rows, _) = rows.as_chunks_mut();
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            Move::RotateDown => fold_sized::<false>(rows, k),
            Move::Xor => fold_sized::<true>(rows, k),
        }
    }
}

/// Short rows with their register count known to the compiler.
///
/// # Safety
/// As for [`fold`].
#[inline(always)]
unsafe fn fold_sized<const XOR: bool>(rows: &mut [[u64; 4]], k: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        match k {
            8 => fold_registers::<XOR, 1>(rows, 1),
            9 => fold_registers::<XOR, 2>(rows, 2),
            _ => fold_registers::<XOR, 0>(rows, 1 << (k - 8)),
        }
    }
}

/// Folds rows of `regs` registers, `REGS` unless that is 0: onto the first 256 the others, which move by whole registers,
/// then those in halves.
///
/// # Safety
/// The machine has AVX2.
#[target_feature(enable = "avx2")]
#[inline(never)] // or the sizes are merged into one that knows none of them
unsafe fn fold_registers<const XOR: bool, const REGS: usize>(rows: &mut [[u64; 4]], regs: usize) {
    let regs = if REGS == 0 { regs } else { REGS };
    let (rows, others) = rows.split_at_mut(256 * regs);
    // A few rows at a time: they stay near.
    let few = 16 * regs;
    for (i, to) in rows.chunks_exact_mut(few).enumerate() {
        for (step, others) in (1..).zip(others.chunks_exact(256 * regs)) {
            let from = others[i * few..][..few].chunks_exact(regs);
            for (to, from) in to.chunks_exact_mut(regs).zip(from) {
                // SAFETY: the caller's promise.
                unsafe { xor_moved::<XOR>(to, from, step) };
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        fold_half::<XOR, 7>(rows, regs);
        fold_half::<XOR, 6>(rows, regs);
        fold_half::<XOR, 5>(rows, regs);
        fold_half::<XOR, 4>(rows, regs);
        fold_half::<XOR, 3>(rows, regs);
        fold_half::<XOR, 2>(rows, regs);
        fold_half::<XOR, 1>(rows, regs);
        fold_half::<XOR, 0>(rows, regs);
    }
}

/// `to ⊕= from` moved by `step` registers, fewer than a row has.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn xor_moved<const XOR: bool>(to: &mut [[u64; 4]], from: &[[u64; 4]], step: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if XOR {
            for (r, to) in to.iter_mut().enumerate() {
                xor_to(to, load(&from[r ^ step]));
            }
        } else {
            let (kept, wrapped) = to.split_at_mut(from.len() - step);
            for (to, from) in kept.iter_mut().zip(&from[step..]) {
                xor_to(to, load(from));
            }
            for (to, from) in wrapped.iter_mut().zip(from) {
                xor_to(to, load(from));
            }
        }
    }
}

/// XORs onto the first `2^BIT` rows as many others, moved by `2^BIT`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn fold_half<const XOR: bool, const BIT: u32>(rows: &mut [[u64; 4]], regs: usize) {
    let (low, high) = rows.split_at_mut(regs << BIT);
    for (to, from) in low.chunks_exact_mut(regs).zip(high.chunks_exact(regs)) {
        let Some((last, to)) = to.split_last_mut() else {
            return;
        };
        // SAFETY: the caller's promise.
        unsafe {
            let first = load(&from[0]);
            let mut x = first;
            for (to, next) in to.iter_mut().zip(&from[1..]) {
                let next = load(next);
                xor_to(to, moved::<XOR, BIT>(x, next));
                x = next;
            }
            xor_to(last, moved::<XOR, BIT>(x, first));
        }
    }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn load(from: &[u64; 4]) -> __m256i {
    // SAFETY: four words are 32 readable bytes.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn xor_to(to: &mut [u64; 4], value: __m256i) {
    // SAFETY: the caller's promise; four words are 32 writable bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_xor_si256(load(to), value)) }
}

/// A register of a row moved by `2^BIT`, below 256; `next` is the row's next one.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn moved<const XOR: bool, const BIT: u32>(x: __m256i, next: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        match (XOR, BIT) {
            (true, 7) => _mm256_permute4x64_epi64::<0b01_00_11_10>(x),
            (true, 6) => _mm256_permute4x64_epi64::<0b10_11_00_01>(x),
            (true, _) => {
                let low = _mm256_set1_epi64x(LOW_HALVES[BIT as usize] as i64);
                let d = _mm_cvtsi32_si128(1 << BIT);
                let down = _mm256_and_si256(_mm256_srl_epi64(x, d), low);
                _mm256_or_si256(down, _mm256_sll_epi64(_mm256_and_si256(x, low), d))
            }
            (false, 7) => {
                let words = _mm256_blend_epi32::<0b0000_1111>(x, next);
                _mm256_permute4x64_epi64::<0b01_00_11_10>(words)
            }
            (false, 6) => word_after(x, next),
            (false, _) => {
                let (d, rest) = (
                    _mm_cvtsi32_si128(1 << BIT),
                    _mm_cvtsi32_si128(64 - (1 << BIT)),
                );
                let above = _mm256_sll_epi64(word_after(x, next), rest);
                _mm256_or_si256(_mm256_srl_epi64(x, d), above)
            }
        }
    }
}

/// The four words after the first of `x`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn word_after(x: __m256i, next: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let words = _mm256_blend_epi32::<0b0000_0011>(x, next);
        _mm256_permute4x64_epi64::<0b00_11_10_01>(words)
    }
}

/// Rotates four words up by `s` modulo 256.
#[inline]
#[target_feature(enable = "avx2")]
fn rotate_four(v: [u64; 4], s: usize) -> [u64; 4] {
    let words = _mm256_set1_epi32((s / 64 * 2) as i32);
    let from = _mm256_sub_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), words);
    // The permutation counts modulo eight.
    let v = _mm256_permutevar8x32_epi32(register(v), from);
    let below = _mm256_permute4x64_epi64::<0b10_01_00_11>(v);
    let bits = (s % 64) as i32;
    let high = _mm256_sll_epi64(v, _mm_cvtsi32_si128(bits));
    let low = _mm256_srl_epi64(below, _mm_cvtsi32_si128(64 - bits));
    words_of(_mm256_or_si256(high, low))
}

/// `out[j ⊕ s] = v[j]` for `s` modulo 256: words and bytes by shuffles, the bits of bytes by masked exchanges.
#[inline]
#[target_feature(enable = "avx2")]
fn permute_four(v: [u64; 4], s: usize) -> [u64; 4] {
    const BYTES: [i64; 2] = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
    let flips = _mm256_set1_epi32((s / 64 * 2) as i32);
    let words = _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), flips);
    let bytes = _mm256_setr_epi64x(BYTES[0], BYTES[1], BYTES[0], BYTES[1]);
    let bytes = _mm256_xor_si256(bytes, _mm256_set1_epi8((s / 8 % 8) as i8));
    // The permutation counts modulo eight.
    let v = _mm256_permutevar8x32_epi32(register(v), words);
    let v = exchange::<4>(_mm256_shuffle_epi8(v, bytes), s);
    words_of(exchange::<1>(exchange::<2>(v, s), s))
}

/// Bits `j` and `j ⊕ D` exchanged if `s` has bit `D`.
#[inline]
#[target_feature(enable = "avx2")]
fn exchange<const D: i32>(x: __m256i, s: usize) -> __m256i {
    let bit = D.ilog2();
    let take = ((s >> bit & 1) as u64).wrapping_neg();
    let low = LOW_HALVES[bit as usize] & take;
    let differ = _mm256_xor_si256(x, _mm256_srli_epi64::<D>(x));
    let differ = _mm256_and_si256(differ, _mm256_set1_epi64x(low as i64));
    let both = _mm256_or_si256(differ, _mm256_slli_epi64::<D>(differ));
    _mm256_xor_si256(x, both)
}

#[inline]
#[target_feature(enable = "avx2")]
fn register([a, b, c, d]: [u64; 4]) -> __m256i {
    _mm256_setr_epi64x(a as i64, b as i64, c as i64, d as i64)
}

#[inline]
#[target_feature(enable = "avx2")]
fn words_of(x: __m256i) -> [u64; 4] {
    let mut words = [0; 4];
    // SAFETY: four words are 32 writable bytes.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), x) };
    words
}
