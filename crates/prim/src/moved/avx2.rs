//! The AVX2 twin: a line is two registers, under masks of bytes.

use std::arch::x86_64::*;

use super::{Line, MovedBytes, fold_bytes};
use crate::select::avx2::byte_masks;

/// Lookups that are folded together.
const LANES: usize = 4;

/// # Safety
/// The machine has AVX2, BMI1, BMI2 and POPCNT; lengths as checked by `xor_selected`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn run(
    table: &MovedBytes,
    rows: &[u64],
    offsets: &[u64],
    shift: u32,
    out: &mut [u64],
) {
    // SAFETY: the caller's promise. A known number of words lets the compiler unroll the sums.
    unsafe {
        match table.words {
            1 => run_words(table, 1, rows, offsets, shift, out),
            2 => run_words(table, 2, rows, offsets, shift, out),
            4 => run_words(table, 4, rows, offsets, shift, out),
            words => run_words(table, words, rows, offsets, shift, out),
        }
    }
}

/// # Safety
/// As for [`run`]; `words == table.words`.
#[inline(always)]
unsafe fn run_words(
    table: &MovedBytes,
    words: usize,
    rows: &[u64],
    offsets: &[u64],
    shift: u32,
    out: &mut [u64],
) {
    let (fours, rest) = out.as_chunks_mut::<LANES>();
    let whole = fours.len() * LANES;
    let (rows, last_rows) = rows.split_at(whole * words);
    let lookups = rows.chunks_exact(LANES * words);
    // SAFETY: the caller's promise.
    unsafe {
        let count = _mm_cvtsi32_si128(shift as i32);
        for ((rows, offsets), out) in lookups.zip(offsets.as_chunks::<LANES>().0).zip(fours) {
            let mut sums = [_mm256_setzero_si256(); LANES];
            for i in 0..LANES {
                sums[i] = selected(table, words, &rows[i * words..][..words], offsets[i]);
            }
            let bytes = _mm256_sll_epi64(fold_four(sums), count);
            // Four words are 32 readable and writable bytes.
            let at = out.as_mut_ptr().cast();
            _mm256_storeu_si256(at, _mm256_xor_si256(_mm256_loadu_si256(at), bytes));
        }
        let last = last_rows.chunks_exact(words).zip(&offsets[whole..]);
        for ((row, &offset), out) in last.zip(rest) {
            *out ^= fold(selected(table, words, row, offset)) << shift;
        }
    }
}

/// The selected entries of a lookup, XORed down to a register.
///
/// # Safety
/// As for [`run_words`].
#[inline(always)]
unsafe fn selected(table: &MovedBytes, words: usize, row: &[u64], offset: u64) -> __m256i {
    let (copy, flip) = table.copy(offset);
    let copy = &copy[..words];
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [_mm256_setzero_si256(); 2];
        for w in 0..words {
            let Line(line) = &copy[(w ^ flip) & (words - 1)];
            for (half, sum) in sums.iter_mut().enumerate() {
                let first = 4 * half as i64;
                let mask = byte_masks(row[w], [first, first + 1, first + 2, first + 3]);
                // Half a line is 32 readable bytes at a multiple of 32.
                let entries = _mm256_load_si256(line.as_ptr().cast::<__m256i>().add(half));
                *sum = _mm256_xor_si256(*sum, _mm256_and_si256(mask, entries));
            }
        }
        _mm256_xor_si256(sums[0], sums[1])
    }
}

/// The XOR of all bytes of each register, as a word each.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn fold_four(x: [__m256i; LANES]) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let (p, q) = (fold_words(x[0], x[1]), fold_words(x[2], x[3]));
        let low = _mm256_permute2x128_si256::<0x20>(p, q);
        let x = _mm256_xor_si256(low, _mm256_permute2x128_si256::<0x31>(p, q));
        let x = _mm256_xor_si256(x, _mm256_srli_epi64::<32>(x));
        let x = _mm256_xor_si256(x, _mm256_srli_epi64::<16>(x));
        let x = _mm256_xor_si256(x, _mm256_srli_epi64::<8>(x));
        _mm256_and_si256(x, _mm256_set1_epi64x(0xff))
    }
}

/// In each half the XOR of the two words of `a`, then that of `b`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn fold_words(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_xor_si256(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)) }
}

/// The XOR of all bytes.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn fold(x: __m256i) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        let x = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        fold_bytes((_mm_cvtsi128_si64(x) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x))) as u64)
    }
}
