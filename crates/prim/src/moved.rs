//! Tables of bytes, read at public offsets by secret bit vectors, many lookups a call.
//!
//! The entry under bit `j` of a row at offset `m` is `T[j ⊕ m]`. The table stands in memory moved by every
//! offset within 64 entries, each copy at cache lines, and moving by whole 64 is taking lines in another
//! order. So a lookup is a masked load and an XOR for every 64 entries, and a fold. Every entry is read and
//! masked: neither time nor addresses depend on the rows' bits.

use crate::Backend;
use crate::fold::row_words;

/// 64 entries.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// A public table of `2^k` bytes, moved by every offset within a line.
pub struct MovedBytes {
    /// Lines of a copy, and words of a row.
    words: usize,
    /// The low bits of an offset: which copy to read.
    within: u64,
    lines: Vec<Line>,
}

impl MovedBytes {
    /// Of `2^k` entries.
    ///
    /// # Panics
    /// If their number is not a power of two, or 1.
    #[must_use]
    pub fn new(entries: &[u8]) -> Self {
        let n = entries.len();
        assert!(n.is_power_of_two() && n > 1, "2^k entries, got {n}");
        let words = row_words(n.ilog2());
        let copies = n.min(64);
        let mut lines = vec![Line([0; 64]); copies * words];
        for (offset, copy) in lines.chunks_exact_mut(words).enumerate().take(8) {
            for j in 0..n {
                copy[j / 64].0[j % 64] = entries[j ^ offset];
            }
        }
        // The others are the first eight with whole eights of entries moved.
        for offset in 8..copies {
            let (near, copy) = lines.split_at_mut(offset * words);
            let near = &near[offset % 8 * words..][..words];
            for (from, to) in near.iter().zip(copy) {
                let from = from.0.as_chunks::<8>().0;
                for (g, to) in to.0.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                    *to = from[g ^ (offset / 8)];
                }
            }
        }
        Self {
            words,
            within: copies as u64 - 1,
            lines,
        }
    }

    /// Bytes that such a table takes.
    #[must_use]
    pub const fn bytes(entries: usize) -> usize {
        let copies = if entries < 64 { entries } else { 64 };
        copies * entries.next_multiple_of(64)
    }

    /// `out[i] ⊕= (⊕ T[j ⊕ offsets[i]]) << shift` over the `j` whose bit is set in row `i`; offsets count
    /// modulo the number of entries.
    ///
    /// # Panics
    /// If there are not as many rows and offsets as outputs, or `shift > 56`.
    pub fn xor_selected(&self, rows: &[u64], offsets: &[u64], shift: u32, out: &mut [u64]) {
        assert_eq!(offsets.len(), out.len(), "offsets");
        assert_eq!(rows.len(), out.len() * self.words, "words of rows");
        assert!(shift <= 56, "a byte at bit {shift}");
        #[cfg(target_arch = "x86_64")]
        let backend = Backend::current();
        #[cfg(target_arch = "x86_64")]
        if backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512 F and BW were detected.
            unsafe {
                match self.words {
                    1 => avx512::run::<1>(self, rows, offsets, shift, out),
                    2 => avx512::run::<2>(self, rows, offsets, shift, out),
                    4 => avx512::run::<4>(self, rows, offsets, shift, out),
                    _ => avx512::run_any(self, rows, offsets, shift, out),
                }
            }
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2, BMI1, BMI2 and POPCNT were detected.
            unsafe { avx2::run(self, rows, offsets, shift, out) };
            return;
        }
        self.portable(rows, offsets, shift, out);
    }

    /// The copy to read at an offset, and what its lines' numbers are XORed with.
    #[inline(always)]
    fn copy(&self, offset: u64) -> (&[Line], usize) {
        let copy = (offset & self.within) as usize * self.words;
        let flip = (offset >> 6) as usize & (self.words - 1);
        (&self.lines[copy..][..self.words], flip)
    }

    fn portable(&self, rows: &[u64], offsets: &[u64], shift: u32, out: &mut [u64]) {
        for ((row, &offset), out) in rows.chunks_exact(self.words).zip(offsets).zip(out) {
            let (copy, flip) = self.copy(offset);
            let mut sum = 0;
            for (w, &bits) in row.iter().enumerate() {
                for (g, eight) in copy[w ^ flip].0.as_chunks::<8>().0.iter().enumerate() {
                    sum ^= u64::from_le_bytes(*eight) & byte_mask((bits >> (8 * g)) as u8);
                }
            }
            *out ^= fold_bytes(sum) << shift;
        }
    }
}

/// All ones in the bytes whose bit is set.
#[inline(always)]
fn byte_mask(bits: u8) -> u64 {
    let x = u64::from(bits);
    let x = (x | x << 28) & 0x0000_000f_0000_000f;
    let x = (x | x << 14) & 0x0003_0003_0003_0003;
    let x = (x | x << 7) & 0x0101_0101_0101_0101;
    x * 0xff
}

/// The XOR of a word's bytes.
#[inline(always)]
fn fold_bytes(x: u64) -> u64 {
    let x = x ^ x >> 32;
    let x = x ^ x >> 16;
    (x ^ x >> 8) & 0xff
}

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::{Line, MovedBytes, fold_bytes};

    /// Lookups that are folded together.
    const LANES: usize = 8;

    /// # Safety
    /// The machine has AVX-512 F and BW; lengths as checked by `xor_selected`, `table.words == W`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn run<const W: usize>(
        table: &MovedBytes,
        rows: &[u64],
        offsets: &[u64],
        shift: u32,
        out: &mut [u64],
    ) {
        let rows = rows.as_chunks::<W>().0;
        let copies = table.lines.as_chunks::<W>().0;
        let (lanes, rest) = out.as_chunks_mut::<LANES>();
        let whole = lanes.len() * LANES;
        let count = _mm_cvtsi32_si128(shift as i32);
        let eights = rows.as_chunks::<LANES>().0.iter();
        for ((rows, offsets), out) in eights.zip(offsets.as_chunks::<LANES>().0).zip(lanes) {
            let mut sums = [_mm512_setzero_si512(); LANES];
            for i in 0..LANES {
                let copy = &copies[(offsets[i] & table.within) as usize];
                let flip = (offsets[i] >> 6) as usize;
                for w in 0..W {
                    // W is a power of two: no bounds to check.
                    let line = &copy[(w ^ flip) & (W - 1)];
                    sums[i] = _mm512_xor_si512(sums[i], selected(line, rows[i][w]));
                }
            }
            let bytes = _mm512_sll_epi64(fold_eight(sums), count);
            // SAFETY: eight words are 64 readable and writable bytes.
            unsafe {
                let before = _mm512_loadu_si512(out.as_ptr().cast());
                _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_xor_si512(before, bytes));
            }
        }
        for ((row, &offset), out) in rows[whole..].iter().zip(&offsets[whole..]).zip(rest) {
            let (copy, flip) = table.copy(offset);
            let mut sum = _mm512_setzero_si512();
            for w in 0..W {
                sum = _mm512_xor_si512(sum, selected(&copy[w ^ flip], row[w]));
            }
            *out ^= fold(sum) << shift;
        }
    }

    /// [`run`] for rows of any number of words.
    ///
    /// # Safety
    /// As there.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn run_any(
        table: &MovedBytes,
        rows: &[u64],
        offsets: &[u64],
        shift: u32,
        out: &mut [u64],
    ) {
        for ((row, &offset), out) in rows.chunks_exact(table.words).zip(offsets).zip(out) {
            let (copy, flip) = table.copy(offset);
            let mut sum = _mm512_setzero_si512();
            for (w, &bits) in row.iter().enumerate() {
                sum = _mm512_xor_si512(sum, selected(&copy[w ^ flip], bits));
            }
            *out ^= fold(sum) << shift;
        }
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn selected(line: &Line, bits: u64) -> __m512i {
        // SAFETY: a line is 64 readable bytes at a multiple of 64.
        let line = unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
        _mm512_maskz_mov_epi8(bits, line)
    }

    /// The XOR of all bytes of each register, as a word each.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fold_eight(x: [__m512i; LANES]) -> __m512i {
        // Words of two, then quarters of four and of eight.
        let p = fold_words(x[0], x[1]);
        let q = fold_words(x[2], x[3]);
        let r = fold_words(x[4], x[5]);
        let s = fold_words(x[6], x[7]);
        let x = fold_quarters(fold_quarters(p, q), fold_quarters(r, s));
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<32>(x));
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<16>(x));
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<8>(x));
        _mm512_and_si512(x, _mm512_set1_epi64(0xff))
    }

    /// In every quarter the XOR of the two words of `a`, then that of `b`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fold_words(a: __m512i, b: __m512i) -> __m512i {
        _mm512_xor_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    }

    /// The XORs of neighbouring quarters of `a`, then those of `b`.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn fold_quarters(a: __m512i, b: __m512i) -> __m512i {
        let even = _mm512_shuffle_i64x2::<0b10_00_10_00>(a, b);
        let odd = _mm512_shuffle_i64x2::<0b11_01_11_01>(a, b);
        _mm512_xor_si512(even, odd)
    }

    /// The XOR of all bytes.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn fold(x: __m512i) -> u64 {
        let x = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
        let x = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        fold_bytes((_mm_cvtsi128_si64(x) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x))) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Prg};

    fn random(prg: &mut Prg, len: usize) -> Vec<u64> {
        let mut words = vec![0; len];
        prg.fill_u64(&mut words);
        words
    }

    #[test]
    fn it_is_its_formula_and_the_portable_twin_agrees() {
        let mut prg = Prg::from_seed(Block(4));
        for k in 1..=11 {
            let (n, count) = (1usize << k, 43);
            let mut entries = vec![0; n];
            prg.fill_bytes(&mut entries);
            let table = MovedBytes::new(&entries);
            assert_eq!(table.lines.len() * 64, MovedBytes::bytes(n));
            let rows = random(&mut prg, count * row_words(k));
            let offsets: Vec<u64> = random(&mut prg, count)
                .iter()
                .map(|o| o % (4 * n as u64))
                .collect();
            let before = random(&mut prg, count);
            for shift in [0, 8, 56] {
                let mut out = before.clone();
                table.xor_selected(&rows, &offsets, shift, &mut out);
                let mut twin = before.clone();
                table.portable(&rows, &offsets, shift, &mut twin);
                assert_eq!(out, twin);
                #[cfg(target_arch = "x86_64")]
                if Backend::available().contains(&Backend::Avx2) {
                    let mut twin = before.clone();
                    // SAFETY: AVX2, BMI1, BMI2 and POPCNT were detected; the lengths are those of the call above.
                    unsafe { avx2::run(&table, &rows, &offsets, shift, &mut twin) };
                    assert_eq!(out, twin);
                }
                for i in 0..count {
                    let row = &rows[i * row_words(k)..][..row_words(k)];
                    let chosen = (0..n).filter(|j| row[j / 64] >> (j % 64) & 1 == 1);
                    let sum = chosen.fold(0, |sum, j| sum ^ entries[(j ^ offsets[i] as usize) % n]);
                    assert_eq!(out[i], before[i] ^ u64::from(sum) << shift, "k = {k}");
                }
            }
        }
    }
}
