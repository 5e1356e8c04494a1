//! Bit transpose of 128 rows, what turns an OT extension's columns into its rows.
//!
//! Seven rounds of swapping off-diagonal quadrants (Eklundh, 1972), on four 128 × 128 tiles side by side:
//! a row of the four is one cache line, and every step is one on 64-bit lanes. No data-dependent step.

use crate::{Backend, Block};

/// Blocks of a row of four tiles.
const TILES: usize = 4;
/// Rows, and bits of a block.
const ROWS: usize = 128;

/// Four tiles: a row is four blocks, each as low and high word.
type Rows = [[u64; 2 * TILES]; ROWS];

/// Transposes 128 columns to rows.
///
/// Column `j` is `columns[j·length ..][.. length]` with `length = columns.len() / 128` blocks, bit `i` of a
/// column its entry `i`. Entry `i` of all columns becomes one block of `out`, bit `j` from column `j`. Entries
/// keep their order within a block of a column but four blocks interleave: the entry of bit `b` in block
/// `4q + t` of the columns is `out[512·q + 4·b + t]`.
///
/// # Panics
/// If `out` and `columns` differ in length, or `length` is no multiple of 4.
pub fn transpose_columns(columns: &[Block], out: &mut [Block]) {
    let length = columns.len() / ROWS;
    assert_eq!(out.len(), columns.len(), "as many blocks out as in");
    assert!(
        columns.len().is_multiple_of(ROWS * TILES),
        "columns of whole fours of blocks"
    );
    #[cfg(target_arch = "x86_64")]
    // SAFETY: these backends are current only where AVX-512, or AVX2, was detected.
    unsafe {
        if Backend::current() == Backend::Vaes {
            return avx512::transpose(columns, length, out);
        }
        if Backend::current() >= Backend::Avx2 {
            return avx2::transpose(columns, length, out);
        }
    }
    portable(columns, length, out);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{ROWS, TILES};
    use crate::Block;

    /// The portable transpose with a row a register, three rounds a pass over memory.
    ///
    /// # Safety
    /// The machine has AVX-512F; lengths as checked by `transpose_columns`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn transpose(columns: &[Block], length: usize, out: &mut [Block]) {
        let mut rows = [_mm512_setzero_si512(); ROWS];
        for (q, out) in out.chunks_exact_mut(ROWS * TILES).enumerate() {
            for (row, column) in rows.iter_mut().zip(columns.chunks_exact(length)) {
                let blocks = &column[q * TILES..][..TILES];
                // SAFETY: four blocks are 64 readable bytes.
                *row = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
            }
            for first in 0..16 {
                pass::<16>(&mut rows, first, |a, b, round| match round {
                    0 => (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)),
                    1 => swap::<32>(a, b, 0x0000_0000_ffff_ffff),
                    _ => swap::<16>(a, b, 0x0000_ffff_0000_ffff),
                });
            }
            for first in 0..16 {
                pass::<2>(
                    &mut rows,
                    first / 2 * 16 + first % 2,
                    |a, b, round| match round {
                        0 => swap::<8>(a, b, 0x00ff_00ff_00ff_00ff),
                        1 => swap::<4>(a, b, 0x0f0f_0f0f_0f0f_0f0f),
                        _ => swap::<2>(a, b, 0x3333_3333_3333_3333),
                    },
                );
            }
            for (pair, out) in rows.chunks_exact(2).zip(out.chunks_exact_mut(2 * TILES)) {
                let (a, b) = swap::<1>(pair[0], pair[1], 0x5555_5555_5555_5555);
                let (low, high) = out.split_at_mut(TILES);
                // SAFETY: each half is four blocks, 64 writable bytes.
                unsafe {
                    _mm512_storeu_si512(low.as_mut_ptr().cast(), a);
                    _mm512_storeu_si512(high.as_mut_ptr().cast(), b);
                }
            }
        }
    }

    /// Three rounds on the eight rows `first + i·STRIDE`, quadrants of `4·STRIDE`, `2·STRIDE`, `STRIDE` rows.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn pass<const STRIDE: usize>(
        rows: &mut [__m512i; ROWS],
        first: usize,
        swap: impl Fn(__m512i, __m512i, u32) -> (__m512i, __m512i),
    ) {
        let mut x = [_mm512_setzero_si512(); 8];
        for (i, x) in x.iter_mut().enumerate() {
            *x = rows[first + i * STRIDE];
        }
        for i in 0..4 {
            (x[i], x[i + 4]) = swap(x[i], x[i + 4], 0);
        }
        for i in [0, 1, 4, 5] {
            (x[i], x[i + 2]) = swap(x[i], x[i + 2], 1);
        }
        for i in [0, 2, 4, 6] {
            (x[i], x[i + 1]) = swap(x[i], x[i + 1], 2);
        }
        for (i, x) in x.into_iter().enumerate() {
            rows[first + i * STRIDE] = x;
        }
    }

    /// Swaps the bits of `a` above `HALF` with those of `b` below, in every `2·HALF`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn swap<const HALF: u32>(a: __m512i, b: __m512i, low: u64) -> (__m512i, __m512i) {
        /// `(x ⊕ y) ∧ z`.
        const XOR_AND: i32 = 0x28;
        let low = _mm512_set1_epi64(low as i64);
        let moved = _mm512_ternarylogic_epi64::<XOR_AND>(_mm512_srli_epi64::<HALF>(a), b, low);
        let a = _mm512_xor_si512(a, _mm512_slli_epi64::<HALF>(moved));
        (a, _mm512_xor_si512(b, moved))
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{ROWS, TILES};
    use crate::Block;

    /// Two registers a row, and two passes over memory: bits within bytes by swaps, then bytes by unpacking.
    ///
    /// # Safety
    /// The machine has AVX2; lengths as checked by `transpose_columns`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn transpose(columns: &[Block], length: usize, out: &mut [Block]) {
        let mut rows = [[_mm256_setzero_si256(); 2]; ROWS];
        for (q, out) in out.chunks_exact_mut(ROWS * TILES).enumerate() {
            let eights = rows.as_chunks_mut::<8>().0.iter_mut();
            for (rows, columns) in eights.zip(columns.chunks_exact(8 * length)) {
                for half in 0..2 {
                    transpose_bits(rows, half, &columns[q * TILES + 2 * half..], length);
                }
            }
            for first in 0..8 {
                for half in 0..2 {
                    transpose_bytes(&rows, first, half, out);
                }
            }
        }
    }

    /// Reads the first two blocks of eight columns, and transposes the 8 × 8 bits of every byte of them.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn transpose_bits(rows: &mut [[__m256i; 2]; 8], half: usize, columns: &[Block], length: usize) {
        let mut x = [_mm256_setzero_si256(); 8];
        for (i, x) in x.iter_mut().enumerate() {
            let blocks = &columns[i * length..][..2];
            // SAFETY: two blocks are 32 readable bytes.
            *x = unsafe { _mm256_loadu_si256(blocks.as_ptr().cast()) };
        }
        for i in 0..4 {
            (x[i], x[i + 4]) = swap::<4>(x[i], x[i + 4], 0x0f);
        }
        for i in [0, 1, 4, 5] {
            (x[i], x[i + 2]) = swap::<2>(x[i], x[i + 2], 0x33);
        }
        for i in [0, 2, 4, 6] {
            (x[i], x[i + 1]) = swap::<1>(x[i], x[i + 1], 0x55);
        }
        for (row, x) in rows.iter_mut().zip(x) {
            row[half] = x;
        }
    }

    /// Transposes the 16 × 16 bytes of each block of every eighth row, and writes those rows.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn transpose_bytes(rows: &[[__m256i; 2]; ROWS], first: usize, half: usize, out: &mut [Block]) {
        let mut x = [_mm256_setzero_si256(); 16];
        for (i, x) in x.iter_mut().enumerate() {
            *x = rows[first + 8 * i][half];
        }
        // Each round moves the highest bit of a byte's row number to the end of its column number, and the other way.
        for _ in 0..4 {
            let before = x;
            for i in 0..8 {
                x[2 * i] = _mm256_unpacklo_epi8(before[i], before[i + 8]);
                x[2 * i + 1] = _mm256_unpackhi_epi8(before[i], before[i + 8]);
            }
        }
        for (i, x) in x.into_iter().enumerate() {
            let blocks = &mut out[(first + 8 * i) * TILES + 2 * half..][..2];
            // SAFETY: two blocks are 32 writable bytes.
            unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().cast(), x) };
        }
    }

    /// Swaps the bits of `a` above `HALF` with those of `b` below, in every `2·HALF` of a byte.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn swap<const HALF: i32>(a: __m256i, b: __m256i, low: i8) -> (__m256i, __m256i) {
        let differ = _mm256_xor_si256(_mm256_srli_epi64::<HALF>(a), b);
        let moved = _mm256_and_si256(differ, _mm256_set1_epi8(low));
        let a = _mm256_xor_si256(a, _mm256_slli_epi64::<HALF>(moved));
        (a, _mm256_xor_si256(b, moved))
    }
}

#[inline(always)]
fn portable(columns: &[Block], length: usize, out: &mut [Block]) {
    let mut rows: Rows = [[0; 2 * TILES]; ROWS];
    for (q, out) in out.chunks_exact_mut(ROWS * TILES).enumerate() {
        for (row, column) in rows.iter_mut().zip(columns.chunks_exact(length)) {
            let blocks = &column[q * TILES..][..TILES];
            for (t, block) in blocks.iter().enumerate() {
                row[2 * t] = block.0 as u64;
                row[2 * t + 1] = (block.0 >> 64) as u64;
            }
        }
        swap_high_low(&mut rows);
        swap_bits::<32>(&mut rows, 0x0000_0000_ffff_ffff);
        swap_bits::<16>(&mut rows, 0x0000_ffff_0000_ffff);
        swap_bits::<8>(&mut rows, 0x00ff_00ff_00ff_00ff);
        swap_bits::<4>(&mut rows, 0x0f0f_0f0f_0f0f_0f0f);
        swap_bits::<2>(&mut rows, 0x3333_3333_3333_3333);
        swap_bits::<1>(&mut rows, 0x5555_5555_5555_5555);
        for (row, out) in rows.iter().zip(out.chunks_exact_mut(TILES)) {
            for (t, block) in out.iter_mut().enumerate() {
                *block = Block(u128::from(row[2 * t]) | u128::from(row[2 * t + 1]) << 64);
            }
        }
    }
}

/// The round of the 64 × 64 quadrants: the high words of row `i < 64` change places with the low ones of
/// row `i + 64`.
#[inline(always)]
fn swap_high_low(rows: &mut Rows) {
    let (top, bottom) = rows.split_at_mut(ROWS / 2);
    for (a, b) in top.iter_mut().zip(bottom) {
        let (mut x, mut y) = (*a, *b);
        for t in 0..TILES {
            std::mem::swap(&mut x[2 * t + 1], &mut y[2 * t]);
        }
        (*a, *b) = (x, y);
    }
}

/// The round of quadrants of `HALF` bits, within words; `low` has the lower half of every `2·HALF` bits.
#[inline(always)]
fn swap_bits<const HALF: usize>(rows: &mut Rows, low: u64) {
    for pair in rows.chunks_exact_mut(2 * HALF) {
        let (top, bottom) = pair.split_at_mut(HALF);
        for (a, b) in top.iter_mut().zip(bottom) {
            // Through copies: the compiler cannot know that `a` and `b` are apart.
            let (mut x, mut y) = (*a, *b);
            for w in 0..2 * TILES {
                let swap = (x[w] >> HALF ^ y[w]) & low;
                x[w] ^= swap << HALF;
                y[w] ^= swap;
            }
            (*a, *b) = (x, y);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn entries_become_blocks() {
        for length in [4, 8, 64] {
            let mut columns = vec![Block::ZERO; ROWS * length];
            Prg::from_seed(Block(9)).fill_blocks(&mut columns);
            let mut out = vec![Block::ZERO; columns.len()];
            transpose_columns(&columns, &mut out);
            let mut twin = vec![Block::ZERO; columns.len()];
            portable(&columns, length, &mut twin);
            assert!(out == twin);
            #[cfg(target_arch = "x86_64")]
            if Backend::available().contains(&Backend::Avx2) {
                twin.fill(Block::ZERO);
                // SAFETY: AVX2 was detected.
                unsafe { avx2::transpose(&columns, length, &mut twin) };
                assert!(out == twin);
            }
            for block in 0..length {
                for bit in 0..128 {
                    let entry = out[512 * (block / 4) + 4 * bit + block % 4];
                    for j in 0..ROWS {
                        assert_eq!(entry.0 >> j & 1, columns[j * length + block].0 >> bit & 1);
                    }
                }
            }
        }
    }
}
