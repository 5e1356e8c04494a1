//! The kernels of the lanes with eight words a register.

use std::arch::x86_64::*;

use super::{
    bad_width, first_bits, lane_mask, pack_bits_portable, runs, spread_bits, tails,
    unpack_bits_portable, weights_portable, xor_to_bytes_portable,
};
use crate::Block;

/// Words of a register.
const WORDS: usize = 8;

#[inline]
#[target_feature(enable = "avx512f")]
fn load<T>(from: &[T]) -> __m512i {
    assert!(size_of_val(from) >= 64);
    // SAFETY: 64 bytes are readable, as just checked.
    unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(to: &mut [u64], value: __m512i) {
    let to = &mut to[..WORDS];
    // SAFETY: eight words are 64 writable bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn pack_bits(bits: &[u8], out: &mut [u64]) {
    let (whole, rest) = bits.as_chunks::<64>();
    for (word, bits) in out.iter_mut().zip(whole) {
        *word = _mm512_test_epi8_mask(load(bits), _mm512_set1_epi8(1));
    }
    if !rest.is_empty() {
        pack_bits_portable(rest, &mut out[whole.len()..]);
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn unpack_bits(bits: &[u64], out: &mut [u8]) {
    let (whole, rest) = out.as_chunks_mut::<64>();
    for (out, &word) in whole.iter_mut().zip(bits) {
        let bytes = _mm512_maskz_set1_epi8(word, 1);
        // SAFETY: 64 bytes are writable.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), bytes) };
    }
    if !rest.is_empty() {
        unpack_bits_portable(&bits[whole.len()..], rest);
    }
}

/// The portable twin compiled with the instruction that counts.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(super) fn weights(words: usize, rows: &[u64], out: &mut [u8]) {
    weights_portable(words, rows, out);
}

/// The portable twin compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn xor_to_bytes(a: &[u64], b: &[u64], out: &mut [u8]) {
    xor_to_bytes_portable(a, b, out);
}

/// The portable twin compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn fill_firsts(width: usize, from: &[u64], masks: &[u64], to: &mut [[u8; 8]]) {
    tails::fill_firsts_portable(width, from, masks, to);
}

/// The portable twin compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn read_firsts(width: usize, message: &[[u8; 8]], out: &mut [u64]) {
    tails::read_firsts_portable(width, message, out);
}

/// The portable twin compiled for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn one_hots(log_width: u32, vectors: &mut [u64]) {
    tails::one_hots_portable(log_width, vectors);
}

/// The low words of eight pads of a block.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_words(pads: &[Block]) -> __m512i {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    _mm512_permutex2var_epi64(load(&pads[..4]), even, load(&pads[4..8]))
}

/// The low `W ≤ 8` bits of each byte, side by side.
#[inline]
fn squeeze<const W: usize>(bytes: u64) -> u64 {
    let mut x = bytes & const { runs(W, 8) };
    if W < 8 {
        x = (x | x >> (8 - W)) & const { runs(2 * W, 16) };
        x = (x | x >> (16 - 2 * W)) & const { runs(4 * W, 32) };
        x = (x | x >> (32 - 4 * W)) & const { runs(8 * W, 64) };
    }
    x
}

/// The lowest bits of blocks, for as many as fill words; returns how many words.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn lowest_bits(blocks: &[Block], out: &mut [u64]) -> usize {
    let (whole, _) = blocks.as_chunks::<64>();
    for (word, blocks) in out.iter_mut().zip(whole) {
        *word = 0;
        for (i, eight) in blocks.as_chunks::<WORDS>().0.iter().enumerate() {
            let lowest = _mm512_test_epi64_mask(low_words(eight), _mm512_set1_epi64(1));
            *word |= u64::from(lowest) << (WORDS * i);
        }
    }
    whole.len().min(out.len())
}

/// XORs the pads' low bits to `out`, for as many pads as fill registers and words; returns how many
/// blocks and words are done.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn xor_pads(pads: &[Block], width: usize, out: &mut [u64]) -> (usize, usize) {
    match width {
        2 => xor_bytes::<2>(pads, out),
        4 => xor_bytes::<4>(pads, out),
        8 => xor_bytes::<8>(pads, out),
        16 | 32 | 64 => xor_words(pads, width, out),
        128.. => {
            let (lines, _) = pads.as_chunks::<4>();
            let (words, _) = out.as_chunks_mut::<WORDS>();
            for (words, line) in words.iter_mut().zip(lines) {
                let sum = _mm512_xor_si512(load(words), load(line));
                store(words, sum);
            }
            let done = lines.len().min(words.len());
            (4 * done, WORDS * done)
        }
        _ => bad_width(width),
    }
}

/// [`xor_pads`] of the first pads to `folds`, and of both to `masks`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn xor_both_pads(
    (zeros, ones): (&[Block], &[Block]),
    width: usize,
    masks: &mut [u64],
    folds: &mut [u64],
) -> (usize, usize) {
    match width {
        2 => xor_both_bytes::<2>(zeros, ones, masks, folds),
        4 => xor_both_bytes::<4>(zeros, ones, masks, folds),
        8 => xor_both_bytes::<8>(zeros, ones, masks, folds),
        16 | 32 | 64 => {
            let words = width / 8;
            let pads = zeros.chunks_exact(WORDS).zip(ones.chunks_exact(WORDS));
            let out = masks
                .chunks_exact_mut(words)
                .zip(folds.chunks_exact_mut(words));
            let mut done = 0;
            for ((mask, fold), (zeros, ones)) in out.zip(pads) {
                let (zeros, ones) = (low_words(zeros), low_words(ones));
                xor_to(fold, low_bits(zeros, width));
                xor_to(mask, low_bits(_mm512_xor_si512(zeros, ones), width));
                done += 1;
            }
            (done * WORDS, done * words)
        }
        128.. => {
            let (zeros, ones) = (zeros.as_chunks::<4>().0, ones.as_chunks::<4>().0);
            let (masks, folds) = (masks.as_chunks_mut().0, folds.as_chunks_mut().0);
            let done = zeros.len().min(masks.len());
            let pads = zeros.iter().zip(ones);
            for ((mask, fold), (zeros, ones)) in masks.iter_mut().zip(folds).zip(pads) {
                let (mask, fold): (&mut [u64; WORDS], &mut [u64; WORDS]) = (mask, fold);
                let (zeros, ones) = (load(zeros), load(ones));
                let sum = _mm512_xor_si512(load(fold), zeros);
                store(fold, sum);
                // 0x96 is the XOR of three.
                let sum = _mm512_ternarylogic_epi64::<0x96>(load(mask), zeros, ones);
                store(mask, sum);
            }
            (4 * done, WORDS * done)
        }
        _ => bad_width(width),
    }
}

/// The low `W` bits of eight words, side by side.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn low_bytes<const W: usize>(words: __m512i) -> u64 {
    squeeze::<W>(_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(words)) as u64)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor_bytes<const W: usize>(pads: &[Block], out: &mut [u64]) -> (usize, usize) {
    let words = pads.len() / (64 / W);
    for (word, pads) in out.iter_mut().zip(pads.chunks_exact(64 / W)) {
        for (i, eight) in pads.chunks_exact(WORDS).enumerate() {
            *word ^= low_bytes::<W>(low_words(eight)) << (i * 8 * W);
        }
    }
    (words * (64 / W), words)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor_both_bytes<const W: usize>(
    zeros: &[Block],
    ones: &[Block],
    masks: &mut [u64],
    folds: &mut [u64],
) -> (usize, usize) {
    let words = zeros.len() / (64 / W);
    let pads = zeros.chunks_exact(64 / W).zip(ones.chunks_exact(64 / W));
    for ((mask, fold), (zeros, ones)) in masks.iter_mut().zip(folds).zip(pads) {
        let eights = zeros.chunks_exact(WORDS).zip(ones.chunks_exact(WORDS));
        let (mut both, mut first) = (0, 0);
        for (i, (zeros, ones)) in eights.enumerate() {
            let (zeros, ones) = (low_words(zeros), low_words(ones));
            first |= low_bytes::<W>(zeros) << (i * 8 * W);
            both |= low_bytes::<W>(_mm512_xor_si512(zeros, ones)) << (i * 8 * W);
        }
        *mask ^= both;
        *fold ^= first;
    }
    (words * (64 / W), words)
}

/// The low 16, 32 or 64 bits of eight words, side by side.
#[inline]
#[target_feature(enable = "avx512f")]
fn low_bits(words: __m512i, width: usize) -> __m512i {
    match width {
        16 => _mm512_zextsi128_si512(_mm512_cvtepi64_epi16(words)),
        32 => _mm512_zextsi256_si512(_mm512_cvtepi64_epi32(words)),
        _ => words,
    }
}

/// XORs the first words of a register to up to eight.
#[inline]
#[target_feature(enable = "avx512f")]
fn xor_to(out: &mut [u64], words: __m512i) {
    let mask = u8::MAX >> (WORDS - out.len());
    let at = out.as_mut_ptr().cast();
    // SAFETY: `out` has at most eight words, and the mask as many bits.
    unsafe {
        let sum = _mm512_xor_si512(_mm512_maskz_loadu_epi64(mask, at), words);
        _mm512_mask_storeu_epi64(at, mask, sum);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor_words(pads: &[Block], width: usize, out: &mut [u64]) -> (usize, usize) {
    let words = width / 8;
    let mut done = 0;
    for (out, eight) in out.chunks_exact_mut(words).zip(pads.chunks_exact(WORDS)) {
        xor_to(out, low_bits(low_words(eight), width));
        done += 1;
    }
    (done * WORDS, done * words)
}

/// Doubles the first vectors of `v`, eight words at a time; returns how many words.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn append_products(
    width: usize,
    v: &[u64],
    bits: &[u64],
    received: &[u64],
    data: &mut [u64],
) -> usize {
    with_lane_width!(
        width, [2 4 8 16 32 64 128 256],
        W => double_lanes::<W>(v, bits, received, data),
        width => double_rows(width / 64, v, bits, received, data)
    )
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
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
        let product = _mm512_and_si512(_mm512_xor_si512(own, theirs), chosen);
        let high = _mm512_xor_si512(product, load(&data[v.len() + at..]));
        // The first bit of a product is the bit itself.
        let high = _mm512_or_si512(
            _mm512_andnot_si512(firsts, high),
            _mm512_and_si512(firsts, chosen),
        );
        let (first, second) = interleave::<W>(own, high);
        store(&mut data[2 * at..], first);
        store(&mut data[2 * at + WORDS..], second);
    }
    registers * WORDS
}

/// A vector of eight words and more.
#[inline]
#[target_feature(enable = "avx512f")]
fn double_rows(words: usize, v: &[u64], bits: &[u64], received: &[u64], data: &mut [u64]) -> usize {
    for row in 0..v.len() / words {
        let b = bits[row / 64] >> (row % 64) & 1;
        let chosen = _mm512_set1_epi64(b.wrapping_neg() as i64);
        for at in (row * words..(row + 1) * words).step_by(WORDS) {
            let (own, theirs) = (load(&v[at..]), load(&received[at..]));
            let product = _mm512_and_si512(_mm512_xor_si512(own, theirs), chosen);
            let high = _mm512_xor_si512(product, load(&data[v.len() + at..]));
            store(&mut data[row * words + at..], own);
            store(&mut data[(row + 1) * words + at..], high);
        }
        let first = &mut data[(2 * row + 1) * words];
        *first = *first & !1 | b;
    }
    v.len()
}

/// All ones in the lanes, of the eight words from word `at` on, whose bit is set.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn mask<const W: usize>(bits: &[u64], at: usize) -> __m512i {
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
        8 => _mm512_movm_epi8(bits),
        16 => _mm512_movm_epi16(bits as u32),
        32 => _mm512_movm_epi32(bits as u16),
        64 => _mm512_movm_epi64(bits as u8),
        128 => _mm512_movm_epi64(spread_bits::<2>(bits & 15) as u8 * 3),
        _ => _mm512_movm_epi64(spread_bits::<4>(bits & 3) as u8 * 15),
    }
}

/// The lanes of two registers in turn, as two registers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn interleave<const W: usize>(low: __m512i, high: __m512i) -> (__m512i, __m512i) {
    let both = |first, second| {
        (
            _mm512_permutex2var_epi64(low, first, high),
            _mm512_permutex2var_epi64(low, second, high),
        )
    };
    match W {
        64 => {
            return both(
                _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15),
            );
        }
        128 => {
            return both(
                _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15),
            );
        }
        256 => {
            return both(
                _mm512_setr_epi64(0, 1, 2, 3, 8, 9, 10, 11),
                _mm512_setr_epi64(4, 5, 6, 7, 12, 13, 14, 15),
            );
        }
        _ => {}
    }
    // Words 0, 4, 1, 5, …: unpacking then gives the words in their order.
    let order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    let (low, high) = (
        _mm512_permutexvar_epi64(order, low),
        _mm512_permutexvar_epi64(order, high),
    );
    match W {
        32 => (
            _mm512_unpacklo_epi32(low, high),
            _mm512_unpackhi_epi32(low, high),
        ),
        16 => (
            _mm512_unpacklo_epi16(low, high),
            _mm512_unpackhi_epi16(low, high),
        ),
        _ => (
            refine::<W>(_mm512_unpacklo_epi8(low, high)),
            refine::<W>(_mm512_unpackhi_epi8(low, high)),
        ),
    }
}

/// From bytes in turn to lanes of 4 or 2 bits in turn.
#[inline]
#[target_feature(enable = "avx512f")]
fn refine<const W: usize>(mut x: __m512i) -> __m512i {
    if W <= 4 {
        x = swap_middle::<4>(x, 0x0f00_0f00_0f00_0f00);
    }
    if W <= 2 {
        x = swap_middle::<2>(x, 0x3030_3030_3030_3030);
    }
    x
}

/// Swaps the second and the third of every four lanes; `third` are the bits of the latter.
#[inline]
#[target_feature(enable = "avx512f")]
fn swap_middle<const LANE: u32>(x: __m512i, third: u64) -> __m512i {
    let third = _mm512_set1_epi64(third as i64);
    let differ = _mm512_and_si512(_mm512_xor_si512(x, _mm512_slli_epi64::<LANE>(x)), third);
    _mm512_xor_si512(
        x,
        _mm512_xor_si512(differ, _mm512_srli_epi64::<LANE>(differ)),
    )
}
