//! The AVX2 twin: registers of 32 bytes of table, under masks made of a broadcast word of bits.

use std::arch::x86_64::*;

use super::fold_word;

/// Sums that do not wait for each other.
const SUMS: usize = 4;

/// See [`super::sum`]; modulo 2 to the width of a word.
///
/// # Safety
/// The machine has AVX2, and `bits` covers `table`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn sum<W: Masked>(bits: &[u64], table: &[W]) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { W::total(joined::<W, false>(bits, table)) }
}

/// See [`super::xor`].
///
/// # Safety
/// As for [`sum`].
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) unsafe fn xor<W: Masked>(bits: &[u64], table: &[W]) -> u64 {
    // SAFETY: the caller's promise.
    let x = unsafe { joined::<W, true>(bits, table) };
    let x = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
    let word = _mm_cvtsi128_si64(x) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(x, x));
    fold_word(word as u64, W::BITS)
}

/// The selected entries added or, if `XOR`, XORed lane by lane.
///
/// # Safety
/// As for [`sum`].
#[inline(always)]
unsafe fn joined<W: Masked, const XOR: bool>(bits: &[u64], table: &[W]) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [_mm256_setzero_si256(); SUMS];
        let (whole, rest) = table.as_chunks::<64>();
        for (&word, entries) in bits.iter().zip(whole) {
            // A constant number of steps, so that the sums stay in registers.
            for j in 0..2 * size_of::<W>() {
                let entries = _mm256_loadu_si256(entries.as_ptr().cast::<__m256i>().add(j));
                let selected = _mm256_and_si256(W::mask(word, j), entries);
                sums[j % SUMS] = join::<W, XOR>(sums[j % SUMS], selected);
            }
        }
        if let Some(&word) = bits.get(whole.len()) {
            let lanes = 32 / size_of::<W>();
            for (j, entries) in rest.chunks(lanes).enumerate() {
                let mask = W::mask(word >> (lanes * j), 0);
                let selected = _mm256_and_si256(mask, load_part(entries));
                sums[0] = join::<W, XOR>(sums[0], selected);
            }
        }
        let [a, b, c, d] = sums;
        join::<W, XOR>(join::<W, XOR>(a, b), join::<W, XOR>(c, d))
    }
}

/// The entries of a register, or fewer and then zeros.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn load_part<W: Masked>(entries: &[W]) -> __m256i {
    let bytes = size_of_val(entries);
    // SAFETY: the caller's promise; `bytes` are readable, and 32 where all are read.
    unsafe {
        if bytes >= 32 {
            return _mm256_loadu_si256(entries.as_ptr().cast());
        }
        let mut part = [0u8; 32];
        part.as_mut_ptr()
            .copy_from_nonoverlapping(entries.as_ptr().cast(), bytes);
        _mm256_loadu_si256(part.as_ptr().cast())
    }
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn join<W: Masked, const XOR: bool>(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        if XOR {
            _mm256_xor_si256(a, b)
        } else {
            W::add(a, b)
        }
    }
}

/// All ones in the bytes whose bit is set: byte `8g + i` stands for bit `i` of the word's byte `bytes[g]`.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(crate) unsafe fn byte_masks(word: u64, bytes: [i64; 4]) -> __m256i {
    const REPEATED: i64 = 0x0101_0101_0101_0101;
    let [a, b, c, d] = bytes;
    // SAFETY: the caller's promise.
    unsafe {
        let word = _mm256_set1_epi64x(word as i64);
        let (a, b, c, d) = (REPEATED * a, REPEATED * b, REPEATED * c, REPEATED * d);
        let spread = _mm256_shuffle_epi8(word, _mm256_setr_epi64x(a, b, c, d));
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit)
    }
}

/// A word of a table in the lanes of a register. The methods want a machine with AVX2.
pub(super) trait Masked: Copy {
    const BITS: u32 = 8 * size_of::<Self>() as u32;

    /// All ones in the lanes, of the `j`th 32 bytes of 64 entries, whose bits are set.
    unsafe fn mask(word: u64, j: usize) -> __m256i;
    /// Adds lane by lane.
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i;
    /// The sum of all lanes.
    unsafe fn total(x: __m256i) -> u64;
}

// SAFETY of every block below: the caller has checked for AVX2.

impl Masked for u8 {
    #[inline(always)]
    unsafe fn mask(word: u64, j: usize) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let first = 4 * j as i64;
            byte_masks(word, [first, first + 1, first + 2, first + 3])
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi8(a, b) }
    }

    #[inline(always)]
    unsafe fn total(x: __m256i) -> u64 {
        // SAFETY: see above.
        unsafe { u64::total(_mm256_sad_epu8(x, _mm256_setzero_si256())) & 0xff }
    }
}

impl Masked for u16 {
    #[inline(always)]
    unsafe fn mask(word: u64, j: usize) -> __m256i {
        // SAFETY: see above.
        unsafe {
            // Masks of two registers, in such an order that unpacking each half of them leaves the entries in theirs.
            let first = (j / 2 * 4) as i64;
            let masks = byte_masks(word, [first, first + 2, first + 1, first + 3]);
            match j % 2 {
                0 => _mm256_unpacklo_epi8(masks, masks),
                _ => _mm256_unpackhi_epi8(masks, masks),
            }
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn total(x: __m256i) -> u64 {
        // SAFETY: see above.
        unsafe { u32::total(_mm256_madd_epi16(x, _mm256_set1_epi16(1))) & 0xffff }
    }
}

impl Masked for u32 {
    #[inline(always)]
    unsafe fn mask(word: u64, j: usize) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let half = _mm256_set1_epi32((word >> (j / 4 * 32)) as i32);
            let lanes = _mm256_srlv_epi32(half, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let signs = _mm256_sll_epi32(lanes, _mm_cvtsi32_si128(31 - 8 * (j % 4) as i32));
            _mm256_srai_epi32::<31>(signs)
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn total(x: __m256i) -> u64 {
        // SAFETY: see above.
        unsafe { u64::total(_mm256_add_epi64(x, _mm256_srli_epi64::<32>(x))) & 0xffff_ffff }
    }
}

impl Masked for u64 {
    #[inline(always)]
    unsafe fn mask(word: u64, j: usize) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let lanes = _mm256_set1_epi64x(word as i64);
            let lanes = _mm256_srlv_epi64(lanes, _mm256_setr_epi64x(0, 1, 2, 3));
            let signs = _mm256_sll_epi64(lanes, _mm_cvtsi32_si128(63 - 4 * j as i32));
            _mm256_cmpgt_epi64(_mm256_setzero_si256(), signs)
        }
    }

    #[inline(always)]
    unsafe fn add(a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    unsafe fn total(x: __m256i) -> u64 {
        // SAFETY: see above.
        unsafe {
            let x = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            _mm_cvtsi128_si64(_mm_add_epi64(x, _mm_unpackhi_epi64(x, x))) as u64
        }
    }
}
