//! Sums of the table entries that a secret bit vector selects: the inner loop of every lookup.
//!
//! Every entry is read and masked, so neither time nor addresses depend on the bits.

use crate::Backend;

/// `Σ table[j]` (mod 2^64) over the `j` whose bit in `bits` is set; bit `j` is bit `j % 64` of word
/// `j / 64`.
///
/// # Panics
/// If `bits` has fewer bits than `table` entries.
#[must_use]
#[inline]
pub fn sum(bits: &[u64], table: &[u64]) -> u64 {
    assert!(
        bits.len() * 64 >= table.len(),
        "{} selection words for {} entries",
        bits.len(),
        table.len()
    );
    #[cfg(target_arch = "x86_64")]
    if Backend::current() == Backend::Vaes {
        // SAFETY: the Vaes backend is current only where AVX-512F was detected; length checked above.
        return unsafe { avx512::sum(bits, table) };
    }
    portable(bits, table, u64::wrapping_add)
}

/// `⊕ table[j]` over the `j` whose bit in `bits` is set.
///
/// # Panics
/// If `bits` has fewer bits than `table` entries.
#[must_use]
#[inline]
pub fn xor(bits: &[u64], table: &[u64]) -> u64 {
    assert!(
        bits.len() * 64 >= table.len(),
        "{} selection words for {} entries",
        bits.len(),
        table.len()
    );
    #[cfg(target_arch = "x86_64")]
    if Backend::current() == Backend::Vaes {
        // SAFETY: as in `sum`.
        return unsafe { avx512::xor(bits, table) };
    }
    portable(bits, table, |a, b| a ^ b)
}

#[inline(always)]
fn portable(bits: &[u64], table: &[u64], add: impl Fn(u64, u64) -> u64) -> u64 {
    let mut total = 0;
    for (word, entries) in bits.iter().zip(table.chunks(64)) {
        for (j, &entry) in entries.iter().enumerate() {
            total = add(total, entry & (word >> j & 1).wrapping_neg());
        }
    }
    total
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    macro_rules! masked {
        ($name:ident, $op:ident, $reduce:expr, $scalar:expr) => {
            /// # Safety
            /// The machine has AVX-512F and `bits` covers `table`.
            #[target_feature(enable = "avx512f")]
            pub(super) unsafe fn $name(bits: &[u64], table: &[u64]) -> u64 {
                let mut acc = [_mm512_setzero_si512(); 4];
                let mut tail = 0u64;
                let (whole, rest) = table.as_chunks::<64>();
                for (&word, entries) in bits.iter().zip(whole) {
                    // A constant number of steps, so that the sums stay in registers.
                    for (j, eight) in entries.as_chunks::<8>().0.iter().enumerate() {
                        // SAFETY: eight words are 64 readable bytes.
                        let value = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
                        acc[j % 4] = $op(acc[j % 4], (word >> (8 * j)) as u8, acc[j % 4], value);
                    }
                }
                if let Some(&word) = bits.get(whole.len()) {
                    let entries = rest;
                    let eights = entries.chunks_exact(8);
                    for (j, &entry) in eights.remainder().iter().enumerate() {
                        let bit = word >> (entries.len() / 8 * 8 + j) & 1;
                        tail = $scalar(tail, entry & bit.wrapping_neg());
                    }
                    for (j, eight) in eights.enumerate() {
                        // SAFETY: eight words are 64 readable bytes.
                        let value = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
                        let a = &mut acc[j % 4];
                        *a = $op(*a, (word >> (8 * j)) as u8, *a, value);
                    }
                }
                let joined = $reduce(acc);
                $scalar(tail, joined)
            }
        };
    }

    masked!(
        sum,
        _mm512_mask_add_epi64,
        |a: [__m512i; 4]| _mm512_reduce_add_epi64(_mm512_add_epi64(
            _mm512_add_epi64(a[0], a[1]),
            _mm512_add_epi64(a[2], a[3])
        )) as u64,
        u64::wrapping_add
    );
    masked!(
        xor,
        _mm512_mask_xor_epi64,
        |a: [__m512i; 4]| {
            let x = _mm512_xor_si512(_mm512_xor_si512(a[0], a[1]), _mm512_xor_si512(a[2], a[3]));
            let y = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
            let z = _mm_xor_si128(_mm256_castsi256_si128(y), _mm256_extracti128_si256::<1>(y));
            (_mm_cvtsi128_si64(z) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(z, z))) as u64
        },
        |a: u64, b: u64| a ^ b
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Prg};

    #[test]
    fn every_length_agrees_with_the_portable_twin() {
        let mut prg = Prg::from_seed(Block(3));
        for len in (1..70).chain([128, 200, 256, 1000, 4096]) {
            let mut bits = vec![0; usize::div_ceil(len, 64)];
            let mut table = vec![0; len];
            prg.fill_u64(&mut bits);
            prg.fill_u64(&mut table);
            assert_eq!(
                sum(&bits, &table),
                portable(&bits, &table, u64::wrapping_add),
                "{len}"
            );
            assert_eq!(
                xor(&bits, &table),
                portable(&bits, &table, |a, b| a ^ b),
                "{len}"
            );
        }
    }
}
