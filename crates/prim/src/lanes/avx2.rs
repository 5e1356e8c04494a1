//! The kernels of the lanes with four words a register.

use std::arch::x86_64::*;

use super::{
    first_bits, lane_mask, pack_bits_portable, pads, tails, unpack_bits_portable, weights_portable,
    xor_to_bytes_portable,
};
use crate::Block;

/// Words of a register.
const WORDS: usize = 4;

#[inline]
#[target_feature(enable = "avx2")]
fn load<T>(from: &[T]) -> __m256i {
    assert!(size_of_val(from) >= 32);
    // SAFETY: 32 bytes are readable, as just checked.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(to: &mut [u64], value: __m256i) {
    let to = &mut to[..WORDS];
    // SAFETY: four words are 32 writable bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx2")]
pub(super) fn pack_bits(bits: &[u8], out: &mut [u64]) {
    let (whole, rest) = bits.as_chunks::<64>();
    for (word, bits) in out.iter_mut().zip(whole) {
        *word = 0;
        for (i, half) in bits.as_chunks::<32>().0.iter().enumerate() {
            let lowest = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(load(half)));
            *word |= u64::from(lowest as u32) << (32 * i);
        }
    }
    if !rest.is_empty() {
        pack_bits_portable(rest, &mut out[whole.len()..]);
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn unpack_bits(bits: &[u64], out: &mut [u8]) {
    let (whole, rest) = out.as_chunks_mut::<64>();
    for (out, &word) in whole.iter_mut().zip(bits) {
        for (i, half) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
            let ones = _mm256_and_si256(byte_masks((word >> (32 * i)) as u32), _mm256_set1_epi8(1));
            // SAFETY: 32 bytes are writable.
            unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), ones) };
        }
    }
    if !rest.is_empty() {
        unpack_bits_portable(&bits[whole.len()..], rest);
    }
}

/// The portable twin compiled with the instruction that counts.
#[target_feature(enable = "avx2,popcnt")]
pub(super) fn weights(words: usize, rows: &[u64], out: &mut [u8]) {
    weights_portable(words, rows, out);
}

/// The portable twin compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn xor_to_bytes(a: &[u64], b: &[u64], out: &mut [u8]) {
    xor_to_bytes_portable(a, b, out);
}

/// The portable twin compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn fill_firsts(width: usize, from: &[u64], masks: &[u64], to: &mut [[u8; 8]]) {
    tails::fill_firsts_portable(width, from, masks, to);
}

/// The portable twin compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn read_firsts(width: usize, message: &[[u8; 8]], out: &mut [u64]) {
    tails::read_firsts_portable(width, message, out);
}

/// The portable twin compiled for AVX2.
#[target_feature(enable = "avx2")]
pub(super) fn one_hots(log_width: u32, vectors: &mut [u64]) {
    tails::one_hots_portable(log_width, vectors);
}

/// The lowest bits of blocks, for as many as fill words; returns how many words.
#[target_feature(enable = "avx2")]
pub(super) fn lowest_bits(blocks: &[Block], out: &mut [u64]) -> usize {
    let (whole, _) = blocks.as_chunks::<64>();
    for (word, blocks) in out.iter_mut().zip(whole) {
        *word = 0;
        for (i, pads) in blocks.as_chunks::<PADS>().0.iter().enumerate() {
            let bytes = _mm256_slli_epi16::<7>(low_bytes(pads, 1));
            *word |= u64::from(_mm256_movemask_epi8(bytes) as u32) << (PADS * i);
        }
    }
    whole.len().min(out.len())
}

/// Pads taken at a time, where less than a word is taken of each.
const PADS: usize = 32;

/// The low 32 bits of eight pads: in the low half of the register those of even number, in the high half those of odd.
#[inline]
#[target_feature(enable = "avx2")]
fn parted_dwords(pads: &[Block]) -> __m256i {
    let first = _mm256_unpacklo_epi32(load(&pads[..2]), load(&pads[2..4]));
    let second = _mm256_unpacklo_epi32(load(&pads[4..6]), load(&pads[6..8]));
    _mm256_unpacklo_epi64(first, second)
}

/// Of sixteen pads the bits of `mask`, at most 16, parted in the same way.
#[inline]
#[target_feature(enable = "avx2")]
fn parted_shorts(pads: &[Block], mask: i32) -> __m256i {
    let mask = _mm256_set1_epi32(mask);
    _mm256_packus_epi32(
        _mm256_and_si256(parted_dwords(&pads[..8]), mask),
        _mm256_and_si256(parted_dwords(&pads[8..16]), mask),
    )
}

/// Of all pads the bits of `mask`, at most 8, parted in the same way.
#[inline]
#[target_feature(enable = "avx2")]
fn parted_bytes(pads: &[Block; PADS], mask: i32) -> __m256i {
    _mm256_packus_epi16(
        parted_shorts(&pads[..16], mask),
        parted_shorts(&pads[16..], mask),
    )
}

/// Of all pads the bits of `mask`, at most 8, in their order.
#[inline]
#[target_feature(enable = "avx2")]
fn low_bytes(pads: &[Block; PADS], mask: i32) -> __m256i {
    let bytes = parted_bytes(pads, mask);
    let (even, odd) = halves(bytes);
    _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd))
}

#[inline]
#[target_feature(enable = "avx2")]
fn halves(x: __m256i) -> (__m128i, __m128i) {
    (_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x))
}

/// The low `W ≤ 32` bits of all pads, side by side: the first `W / 2` words.
#[inline]
#[target_feature(enable = "avx2")]
fn low_bits<const W: usize>(pads: &[Block; PADS]) -> [u64; PADS / 2] {
    let mut out = [0; PADS / 2];
    match W {
        2 | 4 => {
            let (even, odd) = halves(parted_bytes(pads, (1 << W) - 1));
            if W == 4 {
                [out[0], out[1]] = words(_mm_or_si128(even, _mm_slli_epi16::<4>(odd)));
            } else {
                let nibbles = _mm_or_si128(even, _mm_slli_epi16::<2>(odd));
                // Of each two, the first times 1 and the second times 16.
                let bytes = _mm_maddubs_epi16(nibbles, _mm_set1_epi16(0x1001));
                [out[0], _] = words(_mm_packus_epi16(bytes, bytes));
            }
        }
        8 => store(&mut out, low_bytes(pads, 0xff)),
        16 => {
            let out = out.as_chunks_mut::<WORDS>().0;
            for (pads, out) in pads.as_chunks::<16>().0.iter().zip(out) {
                let (even, odd) = halves(parted_shorts(pads, 0xffff));
                let (low, high) = (_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd));
                store(out, _mm256_set_m128i(high, low));
            }
        }
        _ => {
            let out = out.as_chunks_mut::<WORDS>().0;
            for (pads, out) in pads.as_chunks::<8>().0.iter().zip(out) {
                let (even, odd) = halves(parted_dwords(pads));
                let (low, high) = (_mm_unpacklo_epi32(even, odd), _mm_unpackhi_epi32(even, odd));
                store(out, _mm256_set_m128i(high, low));
            }
        }
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(x: __m128i) -> [u64; 2] {
    [
        _mm_cvtsi128_si64(x) as u64,
        _mm_extract_epi64::<1>(x) as u64,
    ]
}

/// XORs the pads' low bits to `out`, for as many pads as are taken at a time; returns how many blocks and words are done.
#[target_feature(enable = "avx2")]
pub(super) fn xor_pads(pads: &[Block], width: usize, out: &mut [u64]) -> (usize, usize) {
    with_lane_width!(
        width, [2 4 8 16 32],
        W => {
            let mut done = 0;
            for (out, pads) in out.chunks_exact_mut(W / 2).zip(pads.as_chunks().0) {
                let bits = low_bits::<W>(pads);
                for (out, bits) in out.iter_mut().zip(bits) {
                    *out ^= bits;
                }
                done += 1;
            }
            (PADS * done, W / 2 * done)
        },
        // The portable twin compiled for AVX2.
        width => {
            pads::xor_whole_words(pads, width.div_ceil(128), width, out);
            (pads.len(), out.len())
        }
    )
}

/// [`xor_pads`] of the first pads to `folds`, and of both to `masks`.
#[target_feature(enable = "avx2")]
pub(super) fn xor_both_pads(
    (zeros, ones): (&[Block], &[Block]),
    width: usize,
    masks: &mut [u64],
    folds: &mut [u64],
) -> (usize, usize) {
    with_lane_width!(
        width, [2 4 8 16 32],
        W => {
            let mut done = 0;
            let out = masks.chunks_exact_mut(W / 2).zip(folds.chunks_exact_mut(W / 2));
            let pads = zeros.as_chunks().0.iter().zip(ones.as_chunks().0);
            for ((masks, folds), (zeros, ones)) in out.zip(pads) {
                let bits = low_bits::<W>(zeros).into_iter().zip(low_bits::<W>(ones));
                for ((mask, fold), (zero, one)) in masks.iter_mut().zip(folds).zip(bits) {
                    *fold ^= zero;
                    *mask ^= zero ^ one;
                }
                done += 1;
            }
            (PADS * done, W / 2 * done)
        },
        width => {
            let blocks = width.div_ceil(128);
            pads::xor_whole_words(zeros, blocks, width, folds);
            pads::xor_whole_words(zeros, blocks, width, masks);
            pads::xor_whole_words(ones, blocks, width, masks);
            (zeros.len(), masks.len())
        }
    )
}

/// Doubles the first vectors of `v`, four words at a time; returns how many words.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn append_products(
    width: usize,
    v: &[u64],
    bits: &[u64],
    received: &[u64],
    data: &mut [u64],
) -> usize {
    with_lane_width!(
        width, [2 4 8 16 32 64 128],
        W => double_lanes::<W>(v, bits, received, data),
        width => double_rows(width / 64, v, bits, received, data)
    )
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn double_lanes<const W: usize>(
    v: &[u64],
    bits: &[u64],
    received: &[u64],
    data: &mut [u64],
) -> usize {
    let registers = v.len() / WORDS;
    let firsts = load(const { &first_bits::<WORDS>(W) });
    for i in 0..registers {
        let at = i * WORDS;
        let (own, theirs) = (load(&v[at..]), load(&received[at..]));
        let chosen = mask::<W>(bits, at);
        let product = _mm256_and_si256(_mm256_xor_si256(own, theirs), chosen);
        let high = _mm256_xor_si256(product, load(&data[v.len() + at..]));
        // The first bit of a product is the bit itself.
        let high = _mm256_or_si256(
            _mm256_andnot_si256(firsts, high),
            _mm256_and_si256(firsts, chosen),
        );
        let (first, second) = interleave::<W>(own, high);
        store(&mut data[2 * at..], first);
        store(&mut data[2 * at + WORDS..], second);
    }
    registers * WORDS
}

/// A vector of four words and more.
#[inline]
#[target_feature(enable = "avx2")]
fn double_rows(words: usize, v: &[u64], bits: &[u64], received: &[u64], data: &mut [u64]) -> usize {
    for row in 0..v.len() / words {
        let b = bits[row / 64] >> (row % 64) & 1;
        let chosen = _mm256_set1_epi64x(b.wrapping_neg() as i64);
        for at in (row * words..(row + 1) * words).step_by(WORDS) {
            let (own, theirs) = (load(&v[at..]), load(&received[at..]));
            let product = _mm256_and_si256(_mm256_xor_si256(own, theirs), chosen);
            let high = _mm256_xor_si256(product, load(&data[v.len() + at..]));
            store(&mut data[row * words + at..], own);
            store(&mut data[(row + 1) * words + at..], high);
        }
        let first = &mut data[(2 * row + 1) * words];
        *first = *first & !1 | b;
    }
    v.len()
}

/// All ones in the bytes whose bit is set.
#[inline]
#[target_feature(enable = "avx2")]
fn byte_masks(bits: u32) -> __m256i {
    let source = _mm256_setr_epi64x(
        0,
        0x0101_0101_0101_0101,
        0x0202_0202_0202_0202,
        0x0303_0303_0303_0303,
    );
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(bits as i32), source);
    _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit)
}

/// All ones in the lanes, of the four words from word `at` on, whose bit is set.
#[inline]
#[target_feature(enable = "avx2")]
fn mask<const W: usize>(bits: &[u64], at: usize) -> __m256i {
    let first = at * 64 / W;
    if W < 8 {
        let mut masks = [0; WORDS];
        for (i, mask) in masks.iter_mut().enumerate() {
            *mask = lane_mask::<W>(bits, at + i);
        }
        return load(&masks);
    }
    let bits = bits[first / 64] >> (first % 64);
    match W {
        8 => byte_masks(bits as u32),
        16 => {
            let bit = _mm256_setr_epi16(
                1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768,
            );
            _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(bits as i16), bit), bit)
        }
        32 => {
            let bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), bit), bit)
        }
        _ => {
            let bit = if W == 64 {
                _mm256_setr_epi64x(1, 2, 4, 8)
            } else {
                _mm256_setr_epi64x(1, 1, 2, 2)
            };
            _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits as i64), bit), bit)
        }
    }
}

/// The lanes of two registers in turn, as two registers.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave<const W: usize>(low: __m256i, high: __m256i) -> (__m256i, __m256i) {
    if W == 128 {
        return (
            _mm256_permute2x128_si256::<0x20>(low, high),
            _mm256_permute2x128_si256::<0x31>(low, high),
        );
    }
    // Words 0, 2, 1, 3: unpacking then gives the words in their order.
    let (low, high) = (
        _mm256_permute4x64_epi64::<0b11_01_10_00>(low),
        _mm256_permute4x64_epi64::<0b11_01_10_00>(high),
    );
    match W {
        64 => (
            _mm256_unpacklo_epi64(low, high),
            _mm256_unpackhi_epi64(low, high),
        ),
        32 => (
            _mm256_unpacklo_epi32(low, high),
            _mm256_unpackhi_epi32(low, high),
        ),
        16 => (
            _mm256_unpacklo_epi16(low, high),
            _mm256_unpackhi_epi16(low, high),
        ),
        _ => (
            refine::<W>(_mm256_unpacklo_epi8(low, high)),
            refine::<W>(_mm256_unpackhi_epi8(low, high)),
        ),
    }
}

/// From bytes in turn to lanes of 4 or 2 bits in turn.
#[inline]
#[target_feature(enable = "avx2")]
fn refine<const W: usize>(mut x: __m256i) -> __m256i {
    if W <= 4 {
        x = swap_middle::<4>(x, 0x0f00);
    }
    if W <= 2 {
        x = swap_middle::<2>(x, 0x3030);
    }
    x
}

/// Swaps the second and the third of every four lanes; `third` are the bits of the latter in 16.
#[inline]
#[target_feature(enable = "avx2")]
fn swap_middle<const LANE: i32>(x: __m256i, third: i16) -> __m256i {
    let third = _mm256_set1_epi16(third);
    let differ = _mm256_and_si256(_mm256_xor_si256(x, _mm256_slli_epi64::<LANE>(x)), third);
    _mm256_xor_si256(
        x,
        _mm256_xor_si256(differ, _mm256_srli_epi64::<LANE>(differ)),
    )
}
