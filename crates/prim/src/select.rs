//! Sums of the table entries that a secret bit vector selects: the inner loop of every lookup.
//!
//! Every entry is read and masked, so neither time nor addresses depend on the bits. A table is kept in the narrowest
//! words that hold its entries ([`Entries`]): what is read sets the pace.

use crate::{Backend, Block, Lines};

/// A table's entries, in words of 8, 16, 32 or 64 bits, the first at the start of a cache line.
pub struct Entries {
    lines: Lines,
    len: usize,
    width: Width,
}

#[derive(Clone, Copy)]
enum Width {
    W8,
    W16,
    W32,
    W64,
}

/// Calls `$body` with the words, whatever their width.
macro_rules! with_words {
    ($entries:expr, $words:ident => $body:expr) => {
        match $entries.width {
            Width::W8 => with_words!($entries, u8, $words, $body),
            Width::W16 => with_words!($entries, u16, $words, $body),
            Width::W32 => with_words!($entries, u32, $words, $body),
            Width::W64 => with_words!($entries, u64, $words, $body),
        }
    };
    ($entries:expr, $word:ident, $words:ident, $body:expr) => {{
        let $words = $entries.words::<$word>();
        $body
    }};
}

impl Entries {
    /// Entries below `2^bits`.
    #[must_use]
    pub fn new(bits: u32, entries: &[u64]) -> Self {
        let (width, bytes) = match bits {
            0..=8 => (Width::W8, 1),
            9..=16 => (Width::W16, 2),
            17..=32 => (Width::W32, 4),
            _ => (Width::W64, 8),
        };
        let mut lines = Lines::zeros((entries.len() * bytes).div_ceil(size_of::<Block>()));
        let words = Block::as_bytes_mut(&mut lines).chunks_exact_mut(bytes);
        for (word, entry) in words.zip(entries) {
            word.copy_from_slice(&entry.to_le_bytes()[..bytes]);
        }
        Self {
            lines,
            len: entries.len(),
            width,
        }
    }

    /// The entries, of whose width `W` is.
    fn words<W: Word>(&self) -> &[W] {
        let bytes = &Block::as_bytes(&self.lines)[..self.len * size_of::<W>()];
        // SAFETY: a W is an unsigned integer, so every bit pattern is one; so many are in these bytes, which start at a
        // cache line.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.len) }
    }

    /// [`sum`] of the entries, modulo at least `2^bits`.
    ///
    /// # Panics
    /// If `row` has fewer bits than there are entries.
    #[must_use]
    #[inline]
    pub fn sum(&self, row: &[u64]) -> u64 {
        with_words!(self, words => Word::sum(row, words))
    }

    /// [`xor`] of the entries.
    ///
    /// # Panics
    /// As [`Self::sum`].
    #[must_use]
    #[inline]
    pub fn xor(&self, row: &[u64]) -> u64 {
        with_words!(self, words => Word::xor(row, words))
    }
}

/// `Σ table[j]` (mod 2^64) over the `j` whose bit in `bits` is set; bit `j` is bit `j % 64` of word
/// `j / 64`.
///
/// # Panics
/// If `bits` has fewer bits than `table` entries.
#[must_use]
#[inline]
pub fn sum(bits: &[u64], table: &[u64]) -> u64 {
    Word::sum(bits, table)
}

/// `⊕ table[j]` over the `j` whose bit in `bits` is set.
///
/// # Panics
/// If `bits` has fewer bits than `table` entries.
#[must_use]
#[inline]
pub fn xor(bits: &[u64], table: &[u64]) -> u64 {
    Word::xor(bits, table)
}

fn check(bits: usize, entries: usize) {
    assert!(
        bits * 64 >= entries,
        "{bits} selection words for {entries} entries"
    );
}

/// A word of a table.
trait Word: Copy + Into<u64> {
    /// See [`sum`]; modulo 2 to the width of a word.
    fn sum(bits: &[u64], table: &[Self]) -> u64;
    /// See [`xor`].
    fn xor(bits: &[u64], table: &[Self]) -> u64;
}

macro_rules! word {
    ($word:ident) => {
        impl Word for $word {
            #[inline]
            fn sum(bits: &[u64], table: &[Self]) -> u64 {
                check(bits.len(), table.len());
                #[cfg(target_arch = "x86_64")]
                {
                    let backend = Backend::current();
                    if backend == Backend::Vaes {
                        // SAFETY: the Vaes backend is current only where AVX-512F and BW were detected; length checked above.
                        return unsafe { avx512::$word::sum(bits, table) };
                    }
                    if backend >= Backend::Avx2 {
                        // SAFETY: these backends are current only where AVX2 was detected; length checked above.
                        return unsafe { avx2::sum(bits, table) };
                    }
                }
                portable(bits, table, u64::wrapping_add) & u64::from($word::MAX)
            }

            #[inline]
            fn xor(bits: &[u64], table: &[Self]) -> u64 {
                check(bits.len(), table.len());
                #[cfg(target_arch = "x86_64")]
                {
                    let backend = Backend::current();
                    if backend == Backend::Vaes {
                        // SAFETY: the Vaes backend is current only where AVX-512F and BW were detected; length checked above.
                        return unsafe { avx512::$word::xor(bits, table) };
                    }
                    if backend >= Backend::Avx2 {
                        // SAFETY: these backends are current only where AVX2 was detected; length checked above.
                        return unsafe { avx2::xor(bits, table) };
                    }
                }
                portable(bits, table, |a, b| a ^ b)
            }
        }
    };
}

word!(u8);
word!(u16);
word!(u32);
word!(u64);

#[inline(always)]
fn portable<W: Copy + Into<u64>>(bits: &[u64], table: &[W], add: impl Fn(u64, u64) -> u64) -> u64 {
    let mut total = 0;
    for (word, entries) in bits.iter().zip(table.chunks(64)) {
        for (j, &entry) in entries.iter().enumerate() {
            total = add(total, entry.into() & (word >> j & 1).wrapping_neg());
        }
    }
    total
}

/// The XOR of a word's parts of `bits` bits each.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fold_word(mut word: u64, bits: u32) -> u64 {
    let mut half = 32;
    while half >= bits {
        word ^= word >> half;
        half /= 2;
    }
    word & (u64::MAX >> (64 - bits))
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::fold_word;

    /// Sums that do not wait for each other.
    const SUMS: usize = 4;

    /// `$name` in the module of `$word`s: 64 entries a word of bits are `64 / LANES` registers, each under its mask.
    macro_rules! masked {
        ($name:ident, $word:ident, $mask:ident, $add:expr, $load:ident, $join:expr, $reduce:expr) => {
            /// # Safety
            /// The machine has AVX-512F and BW, and `bits` covers `table`.
            #[target_feature(enable = "avx512f,avx512bw")]
            pub(in super::super) unsafe fn $name(bits: &[u64], table: &[$word]) -> u64 {
                const LANES: usize = 64 / size_of::<$word>();
                let mut acc = [_mm512_setzero_si512(); SUMS];
                let (whole, rest) = table.as_chunks::<64>();
                for (&word, entries) in bits.iter().zip(whole) {
                    // A constant number of steps, so that the sums stay in registers.
                    for (j, lanes) in entries.as_chunks::<LANES>().0.iter().enumerate() {
                        let mask = (word >> (LANES * j)) as $mask;
                        // SAFETY: the lanes are 64 readable bytes.
                        acc[j % SUMS] = unsafe { $add(acc[j % SUMS], mask, lanes.as_ptr().cast()) };
                    }
                }
                if let Some(&word) = bits.get(whole.len()) {
                    for (j, lanes) in rest.chunks(LANES).enumerate() {
                        let there = (u64::MAX >> (64 - lanes.len())) as $mask;
                        let mask = (word >> (LANES * j)) as $mask & there;
                        // SAFETY: what the mask lets through is within the lanes; nothing else is read.
                        let value = unsafe { $load(mask, lanes.as_ptr().cast()) };
                        acc[0] = $join(acc[0], value);
                    }
                }
                let joined = $join($join(acc[0], acc[1]), $join(acc[2], acc[3]));
                $reduce(joined)
            }
        };
    }

    /// Adds to a sum what is at `$at` under a mask.
    macro_rules! add {
        ($add:ident) => {
            |sum, mask, at| $add(sum, mask, sum, _mm512_loadu_si512(at))
        };
    }

    /// The XOR of all words of `BITS` bits.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn fold_xor<const BITS: u32>(x: __m512i) -> u64 {
        let y = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
        let z = _mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256::<1>(y));
        let word = (_mm_cvtsi128_si64(z) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(z, z))) as u64;
        fold_word(word, BITS)
    }

    pub(super) mod u8 {
        use super::*;
        masked!(
            sum,
            u8,
            __mmask64,
            add!(_mm512_mask_add_epi8),
            _mm512_maskz_loadu_epi8,
            _mm512_add_epi8,
            |x| _mm512_reduce_add_epi64(_mm512_sad_epu8(x, _mm512_setzero_si512())) as u64 & 0xff
        );
        masked!(
            xor,
            u8,
            __mmask64,
            |sum, mask, at| _mm512_xor_si512(sum, _mm512_maskz_loadu_epi8(mask, at)),
            _mm512_maskz_loadu_epi8,
            _mm512_xor_si512,
            fold_xor::<8>
        );
    }

    pub(super) mod u16 {
        use super::*;
        masked!(
            sum,
            u16,
            __mmask32,
            add!(_mm512_mask_add_epi16),
            _mm512_maskz_loadu_epi16,
            _mm512_add_epi16,
            |x| _mm512_reduce_add_epi32(_mm512_madd_epi16(x, _mm512_set1_epi16(1))) as u64 & 0xffff
        );
        masked!(
            xor,
            u16,
            __mmask32,
            |sum, mask, at| _mm512_xor_si512(sum, _mm512_maskz_loadu_epi16(mask, at)),
            _mm512_maskz_loadu_epi16,
            _mm512_xor_si512,
            fold_xor::<16>
        );
    }

    pub(super) mod u32 {
        use super::*;
        masked!(
            sum,
            u32,
            __mmask16,
            add!(_mm512_mask_add_epi32),
            _mm512_maskz_loadu_epi32,
            _mm512_add_epi32,
            |x| _mm512_reduce_add_epi32(x) as u32 as u64
        );
        masked!(
            xor,
            u32,
            __mmask16,
            add!(_mm512_mask_xor_epi32),
            _mm512_maskz_loadu_epi32,
            _mm512_xor_si512,
            fold_xor::<32>
        );
    }

    pub(super) mod u64 {
        use super::*;
        masked!(
            sum,
            u64,
            __mmask8,
            add!(_mm512_mask_add_epi64),
            _mm512_maskz_loadu_epi64,
            _mm512_add_epi64,
            |x| _mm512_reduce_add_epi64(x) as u64
        );
        masked!(
            xor,
            u64,
            __mmask8,
            add!(_mm512_mask_xor_epi64),
            _mm512_maskz_loadu_epi64,
            _mm512_xor_si512,
            fold_xor::<64>
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Prg, mask};

    #[test]
    fn every_length_and_width_agrees_with_the_portable_twin() {
        let mut prg = Prg::from_seed(Block(3));
        for len in (1..70).chain([128, 200, 256, 1000, 4096]) {
            for width in [1, 8, 9, 16, 17, 32, 33, 64] {
                let mut bits = vec![0; usize::div_ceil(len, 64)];
                let mut table = vec![0; len];
                prg.fill_u64(&mut bits);
                prg.fill_masked(&mut table, width);
                let entries = Entries::new(width, &table);
                let total = portable(&bits, &table, u64::wrapping_add) & mask(width);
                assert_eq!(
                    entries.sum(&bits) & mask(width),
                    total,
                    "{len}, {width} bits"
                );
                assert_eq!(sum(&bits, &table) & mask(width), total);
                let xored = portable(&bits, &table, |a, b| a ^ b);
                assert_eq!(entries.xor(&bits), xored, "{len}, {width} bits");
                assert_eq!(xor(&bits, &table), xored);
                #[cfg(target_arch = "x86_64")]
                if Backend::available().contains(&Backend::Avx2) {
                    // SAFETY: AVX2 was detected, and there are as many bits as entries.
                    let twin = unsafe {
                        with_words!(entries, words => (avx2::sum(&bits, words), avx2::xor(&bits, words)))
                    };
                    assert_eq!(
                        (twin.0 & mask(width), twin.1),
                        (total, xored),
                        "{len}, {width} bits"
                    );
                }
            }
        }
    }
}
