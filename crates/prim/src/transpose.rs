//! Bit transpose of 128 rows, what turns an OT extension's columns into its rows.
//!
//! Four 128 × 128 tiles side by side: a row of the four is one cache line. Portably by seven rounds of swapping
//! off-diagonal quadrants (Eklundh, 1972) on 64-bit lanes, with AVX-512 bytes first and then bits. No data-dependent
//! step.

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
    if Backend::current() == Backend::Vaes {
        // SAFETY: the Vaes backend is current only where AVX-512 and GFNI were detected.
        unsafe { avx512::transpose(columns, length, out) };
        return;
    }
    portable(columns, length, out);
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{ROWS, TILES};
    use crate::Block;

    /// Rows that become a byte; also bytes of half a block.
    const EIGHT: usize = 8;
    /// Bytes of a block.
    const BYTES: usize = 16;

    /// Bytes change places by interleaving registers, the bits of eight bytes by one GFNI instruction: seven
    /// rounds of one operation a register, and that one.
    ///
    /// # Safety
    /// The machine has AVX-512 F and BW and GFNI; lengths as checked by `transpose_columns`.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) unsafe fn transpose(columns: &[Block], length: usize, out: &mut [Block]) {
        // Of eight columns and sixteen entries: each quarter has two words, the entries' eights, of a byte an entry.
        let mut bytes = [[_mm512_setzero_si512(); BYTES]; EIGHT];
        for (q, out) in out.chunks_exact_mut(ROWS * TILES).enumerate() {
            for (c, columns) in columns.chunks_exact(EIGHT * length).enumerate() {
                let mut x = [_mm512_setzero_si512(); EIGHT];
                // Last column first: `transpose_bits` counts them from the other end.
                for (x, column) in x.iter_mut().rev().zip(columns.chunks_exact(length)) {
                    let blocks = &column[q * TILES..][..TILES];
                    // SAFETY: four blocks are 64 readable bytes.
                    *x = unsafe { _mm512_loadu_si512(blocks.as_ptr().cast()) };
                }
                interleave_eight(&mut x);
                for (bytes, x) in bytes.iter_mut().zip(x) {
                    bytes[c] = transpose_bits(x);
                }
            }
            for (bytes, out) in bytes.iter().zip(out.chunks_exact_mut(BYTES * TILES)) {
                let mut x = *bytes;
                interleave_sixteen(&mut x);
                for (x, out) in x.into_iter().zip(out.chunks_exact_mut(TILES)) {
                    // SAFETY: four blocks are 64 writable bytes.
                    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), x) };
                }
            }
        }
    }

    /// Bit `b` of byte `7 − i` of every word becomes bit `i` of byte `b`.
    #[target_feature(enable = "avx512f,gfni")]
    #[inline]
    fn transpose_bits(x: __m512i) -> __m512i {
        // The instruction multiplies the bytes of its first argument by the matrices of its second.
        let units = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
        _mm512_gf2p8affine_epi64_epi8::<0>(units, x)
    }

    /// Within every block: byte `p` of register `r` becomes byte `8·(p mod 2) + r` of register `p / 2`.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn interleave_eight(x: &mut [__m512i; 8]) {
        let mut y = *x;
        for i in 0..4 {
            y[i] = _mm512_unpacklo_epi8(x[2 * i], x[2 * i + 1]);
            y[i + 4] = _mm512_unpackhi_epi8(x[2 * i], x[2 * i + 1]);
        }
        // Two columns a pair of bytes; the registers from 4 on have the bytes from 8 on.
        for half in [0, 4] {
            for i in 0..2 {
                let (a, b) = (y[half + 2 * i], y[half + 2 * i + 1]);
                x[half + i] = _mm512_unpacklo_epi16(a, b);
                x[half + i + 2] = _mm512_unpackhi_epi16(a, b);
            }
        }
        for i in 0..4 {
            let (a, b) = (x[2 * i], x[2 * i + 1]);
            y[2 * i] = _mm512_unpacklo_epi32(a, b);
            y[2 * i + 1] = _mm512_unpackhi_epi32(a, b);
        }
        *x = y;
    }

    /// Within every block: byte `p` of register `r` becomes byte `r` of register `p`.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn interleave_sixteen(x: &mut [__m512i; 16]) {
        let mut y = *x;
        for i in 0..8 {
            let (a, b) = (x[2 * i], x[2 * i + 1]);
            y[i] = _mm512_unpacklo_epi8(a, b);
            y[i + 8] = _mm512_unpackhi_epi8(a, b);
        }
        for half in [0, 8] {
            for i in 0..4 {
                let (a, b) = (y[half + 2 * i], y[half + 2 * i + 1]);
                x[half + i] = _mm512_unpacklo_epi16(a, b);
                x[half + i + 4] = _mm512_unpackhi_epi16(a, b);
            }
        }
        for quarter in [0, 4, 8, 12] {
            for i in 0..2 {
                let (a, b) = (x[quarter + 2 * i], x[quarter + 2 * i + 1]);
                y[quarter + i] = _mm512_unpacklo_epi32(a, b);
                y[quarter + i + 2] = _mm512_unpackhi_epi32(a, b);
            }
        }
        for i in 0..8 {
            let (a, b) = (y[2 * i], y[2 * i + 1]);
            x[2 * i] = _mm512_unpacklo_epi64(a, b);
            x[2 * i + 1] = _mm512_unpackhi_epi64(a, b);
        }
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
