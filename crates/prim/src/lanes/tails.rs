//! Messages of vectors without their first bits, and the one-hot vectors of products.
//!
//! A step of doubling sends `w − 1` bits of each vector. Of 64 vectors, in `w` words (or 64 first words, from 64 bits on), all first words
//! but the last go as they are, and in the places of their vectors' first bits, as many as there are, goes the last one's tail: bit `m + 1`
//! of its lanes in word `m`. So nothing is shifted past a word. What is left of a batch after whole groups of 64 is packed.

use zeroize::Zeroize;

use super::{runs, words};
use crate::{Backend, LOW_HALVES, pack};

/// Vectors of a group: as many as fill whole words at every width.
const GROUP: usize = 64;

/// Bytes of a message of `count` vectors of `width` bits: all but their first bits.
#[must_use]
pub const fn tail_bytes(count: usize, width: usize) -> usize {
    (count * (width - 1)).div_ceil(8)
}

/// Appends `vectors ⊕ masks` of `count` vectors of `width` bits but for their first bits, [`tail_bytes`] in all.
///
/// # Panics
/// If `vectors` or `masks` are not as many words as that takes.
pub fn append_tails(
    (count, width): (usize, usize),
    vectors: &[u64],
    masks: &[u64],
    frame: &mut Vec<u8>,
) {
    let len = words(count, width);
    assert_eq!([vectors.len(), masks.len()], [len; 2], "vectors and masks");
    let (whole, start) = (words(count / GROUP * GROUP, width), frame.len());
    frame.resize(start + tail_bytes(count / GROUP * GROUP, width), 0);
    let (to, from) = (frame[start..].as_chunks_mut().0, &vectors[..whole]);
    if twin!(Backend::current(), fill_firsts(width, from, masks, to)) != Some(()) {
        fill_firsts_portable(width, from, masks, to);
    }
    if count % GROUP > 0 {
        let pairs = vectors[whole..].iter().zip(&masks[whole..]);
        let mut rest: Vec<u64> = pairs.map(|(v, mask)| v ^ mask).collect();
        pack_tails(width, &mut rest, frame);
        frame.truncate(start + tail_bytes(count, width));
        rest.zeroize();
    }
}

/// The vectors of such a message. What their first bits come to has no meaning.
///
/// # Panics
/// If the message or `out` is not as long as it must be.
pub fn read_tails((count, width): (usize, usize), message: &[u8], out: &mut [u64]) {
    assert_eq!(message.len(), tail_bytes(count, width), "tails");
    assert_eq!(out.len(), words(count, width), "vectors");
    let (whole, rest) = message.split_at(tail_bytes(count / GROUP * GROUP, width));
    let (out, last) = out.split_at_mut(words(count / GROUP * GROUP, width));
    let whole = whole.as_chunks().0;
    if twin!(Backend::current(), read_firsts(width, whole, out)) != Some(()) {
        read_firsts_portable(width, whole, out);
    }
    if !rest.is_empty() {
        unpack_tails(width, rest, last);
    }
}

/// Turns a batch of vectors of all products of `log_width` bits (product `Q` at place `Q`) into vectors that are one-hot where the bits
/// point, by the butterfly (Möbius) transform: `e_v = ⊕_{Q ⊇ v} p_Q`, `log_width` times what has a bit onto what lacks it.
///
/// # Panics
/// If vectors of more than 64 bits are not whole.
pub fn one_hots(log_width: u32, vectors: &mut [u64]) {
    assert!(
        log_width <= 6 || vectors.len().is_multiple_of(1 << (log_width - 6)),
        "whole vectors"
    );
    if twin!(Backend::current(), one_hots(log_width, vectors)) != Some(()) {
        one_hots_portable(log_width, vectors);
    }
}

/// The first bits of vectors of `width` bits in a word of them, or in a first word.
const fn firsts_of(width: usize) -> u64 {
    if width < 64 { runs(1, width) } else { 1 }
}

#[inline(always)]
pub(super) fn fill_firsts_portable(width: usize, from: &[u64], masks: &[u64], to: &mut [[u8; 8]]) {
    with_lane_width!(
        width, [2 4 8 16 32 64],
        W => fill_words::<W>(from, masks, to),
        width => fill_rows(width / 64, from, masks, to)
    )
}

/// Of vectors of up to a word.
#[inline(always)]
fn fill_words<const W: usize>(from: &[u64], masks: &[u64], to: &mut [[u8; 8]]) {
    let firsts = const { firsts_of(W) };
    let (from, masks) = (from.as_chunks::<W>().0, masks.as_chunks::<W>().0);
    for ((from, masks), to) in from.iter().zip(masks).zip(to.chunks_exact_mut(W - 1)) {
        let last = from[W - 1] ^ masks[W - 1];
        for i in 0..W - 1 {
            let filled = (from[i] ^ masks[i]) & !firsts | last >> (i + 1) & firsts;
            to[i] = filled.to_le_bytes();
        }
    }
}

/// Of vectors of so many words.
#[inline(always)]
fn fill_rows(words: usize, from: &[u64], masks: &[u64], to: &mut [[u8; 8]]) {
    let (group, omitted) = (GROUP * words, (GROUP - 1) * words);
    let (from, masks) = (from.chunks_exact(group), masks.chunks_exact(group));
    for ((from, masks), to) in from.zip(masks).zip(to.chunks_exact_mut(group - 1)) {
        let (before, after) = to.split_at_mut(omitted);
        xor_words(&from[..omitted], &masks[..omitted], before);
        xor_words(&from[omitted + 1..], &masks[omitted + 1..], after);
        let last = from[omitted] ^ masks[omitted];
        for (i, row) in before.chunks_exact_mut(words).enumerate() {
            row[0][0] = row[0][0] & !1 | (last >> (i + 1)) as u8 & 1;
        }
    }
}

#[inline(always)]
fn xor_words(a: &[u64], b: &[u64], out: &mut [[u8; 8]]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = (a ^ b).to_le_bytes();
    }
}

#[inline(always)]
pub(super) fn read_firsts_portable(width: usize, message: &[[u8; 8]], out: &mut [u64]) {
    with_lane_width!(
        width, [2 4 8 16 32 64],
        W => read_words::<W>(message, out),
        width => read_rows(width / 64, message, out)
    )
}

#[inline(always)]
fn read_words<const W: usize>(message: &[[u8; 8]], out: &mut [u64]) {
    let firsts = const { firsts_of(W) };
    let out = out.as_chunks_mut::<W>().0;
    for (message, out) in message.chunks_exact(W - 1).zip(out) {
        let mut last = 0;
        for i in 0..W - 1 {
            let word = u64::from_le_bytes(message[i]);
            out[i] = word;
            last |= (word & firsts) << (i + 1);
        }
        out[W - 1] = last;
    }
}

#[inline(always)]
fn read_rows(words: usize, message: &[[u8; 8]], out: &mut [u64]) {
    let (group, omitted) = (GROUP * words, (GROUP - 1) * words);
    let out = out.chunks_exact_mut(group);
    for (message, out) in message.chunks_exact(group - 1).zip(out) {
        let (before, after) = message.split_at(omitted);
        let mut last = 0;
        for (i, row) in before.chunks_exact(words).enumerate() {
            last |= (u64::from(row[0][0]) & 1) << (i + 1);
        }
        copy_words(before, &mut out[..omitted]);
        out[omitted] = last;
        copy_words(after, &mut out[omitted + 1..]);
    }
}

#[inline(always)]
fn copy_words(from: &[[u8; 8]], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = u64::from_le_bytes(*from);
    }
}

#[inline(always)]
pub(super) fn one_hots_portable(log_width: u32, vectors: &mut [u64]) {
    /// Words that are transformed one after the other: whole vectors, in the first-level cache.
    const NEAR: usize = 1 << 10;
    let vector = 1 << log_width.saturating_sub(6);
    for near in vectors.chunks_mut(vector.max(NEAR)) {
        match log_width {
            1 => by_eights::<1>(near),
            2 => by_eights::<2>(near),
            3 => by_eights::<3>(near),
            4 => by_eights::<4>(near),
            5 => by_eights::<5>(near),
            6 => by_eights::<6>(near),
            7 => by_eights::<7>(near),
            8 => by_eights::<8>(near),
            _ => by_eights::<9>(near),
        }
        for t in 9..log_width {
            let half = 1 << (t - 6);
            for pair in near.chunks_exact_mut(2 * half) {
                let (low, high) = pair.split_at_mut(half);
                for (low, high) in low.iter_mut().zip(high) {
                    *low ^= *high;
                }
            }
        }
    }
}

/// The transform for the bits `0 … K − 1`, which point within eight words.
#[inline(always)]
fn by_eights<const K: usize>(vectors: &mut [u64]) {
    let (eights, rest) = vectors.as_chunks_mut();
    for words in eights {
        within_eight::<K>(words);
    }
    if !rest.is_empty() {
        let mut words = [0; 8];
        words[..rest.len()].copy_from_slice(rest);
        within_eight::<K>(&mut words);
        rest.copy_from_slice(&words[..rest.len()]);
        words.zeroize();
    }
}

#[inline(always)]
#[expect(clippy::needless_range_loop, reason = "unrolled, as `K` is known")]
fn within_eight<const K: usize>(words: &mut [u64; 8]) {
    for t in 0..K {
        if t < 6 {
            for word in words.iter_mut() {
                *word ^= *word >> (1 << t) & LOW_HALVES[t];
            }
        } else {
            let half = 1 << (t - 6);
            for i in 0..8 {
                if i & half == 0 {
                    words[i] ^= words[i | half];
                }
            }
        }
    }
}

/// Bits of a word that are not the first of a vector of `width` bits.
const fn tail_bits(width: usize) -> u32 {
    if width >= 64 {
        63
    } else {
        64 - 64 / width as u32
    }
}

/// Packs fewer than a group of vectors. Uses `vectors` as scratch.
fn pack_tails(width: usize, vectors: &mut [u64], frame: &mut Vec<u8>) {
    let words = (width / 64).max(1);
    for vector in vectors.chunks_exact_mut(words) {
        vector[0] = drop_firsts(width, vector[0]);
        for word in &vector[1..] {
            frame.extend_from_slice(&word.to_le_bytes());
        }
    }
    for i in 0..vectors.len() / words {
        vectors[i] = vectors[i * words];
    }
    pack::pack_append(&vectors[..vectors.len() / words], tail_bits(width), frame);
}

/// Inverse of [`pack_tails`], with zeros for first bits.
fn unpack_tails(width: usize, message: &[u8], vectors: &mut [u64]) {
    let words = (width / 64).max(1);
    let count = vectors.len() / words;
    let (rest, packed) = message.split_at(8 * (vectors.len() - count));
    // The last word's vectors may not all be there.
    let mut packed = packed.to_vec();
    packed.resize(pack::packed_len(count, tail_bits(width)), 0);
    let mut firsts = vec![0; count];
    pack::unpack_into(&packed, tail_bits(width), &mut firsts);
    let mut rest = rest.as_chunks().0.iter();
    for (vector, first) in vectors.chunks_exact_mut(words).zip(firsts) {
        vector[0] = insert_firsts(width, first);
        for (word, bytes) in vector[1..].iter_mut().zip(&mut rest) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
}

/// Drops the first bit of every lane of `width` bits and closes the gaps, pairs of lanes first.
fn drop_firsts(width: usize, word: u64) -> u64 {
    let i = width.ilog2().min(6);
    let mut x = (word & !firsts_of(width)) >> 1;
    for t in i..6 {
        x = x & LOW_HALVES[t as usize] | (x & !LOW_HALVES[t as usize]) >> (1 << (t - i));
    }
    x
}

/// Inverse of [`drop_firsts`], with zeros for first bits.
fn insert_firsts(width: usize, word: u64) -> u64 {
    let i = width.ilog2().min(6);
    let mut x = word;
    for t in (i..6).rev() {
        // What fills a half: lanes of 2^i − 1 bits, 2^(t−i) of them.
        let filled = (1usize << t) - (1 << (t - i));
        let halves = runs(filled, 2 << t);
        x = x & halves | (x & !halves) << (1 << (t - i));
    }
    x << 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{bit, random};
    use super::*;

    proptest! {
        #[test]
        fn messages_hold_all_but_first_bits(seed: u64, log in 1u32..11, count in 1usize..300) {
            let shape = (count, 1 << log);
            let len = words(count, 1 << log);
            let (vectors, masks) = (random(seed, len), random(seed ^ 1, len));
            let mut frame = vec![7];
            append_tails(shape, &vectors, &masks, &mut frame);
            prop_assert_eq!(frame.len(), 1 + (count * ((1 << log) - 1)).div_ceil(8));
            let mut back = vec![0; len];
            read_tails(shape, &frame[1..], &mut back);
            for j in (0..count << log).filter(|j| j % (1 << log) != 0) {
                prop_assert_eq!(bit(&back, j), bit(&vectors, j) ^ bit(&masks, j), "{}", j);
            }
        }

        #[test]
        fn every_backend_fills_and_reads_alike(seed: u64, log in 1u32..11, groups in 0usize..5) {
            let width = 1 << log;
            let len = words(64 * groups, width);
            let (vectors, masks) = (random(seed, len), random(seed ^ 1, len));
            let room = vec![[0; 8]; tail_bytes(64 * groups, width) / 8];
            let (mut portable, mut read) = (room.clone(), vec![0; len]);
            fill_firsts_portable(width, &vectors, &masks, &mut portable);
            read_firsts_portable(width, &portable, &mut read);
            let mut products = vectors.clone();
            one_hots_portable(log, &mut products);
            for backend in Backend::available() {
                let (mut frame, mut back) = (room.clone(), vec![0; len]);
                let mut twin = vectors.clone();
                if twin!(backend, fill_firsts(width, &vectors, &masks, &mut frame)).is_some() {
                    prop_assert_eq!(&frame, &portable);
                    twin!(backend, read_firsts(width, &portable, &mut back));
                    prop_assert_eq!(&back, &read);
                    twin!(backend, one_hots(log, &mut twin));
                    prop_assert_eq!(&twin, &products);
                }
            }
        }
    }

    #[test]
    fn the_butterfly_turns_products_into_a_one_hot_vector() {
        for k in 1..=8 {
            for alpha in 0..1usize << k {
                let mut vector = vec![0u64; words(1, 1 << k)];
                for q in (0..1 << k).filter(|q| q & alpha == *q) {
                    vector[q / 64] |= 1 << (q % 64);
                }
                one_hots(k, &mut vector);
                let mut expected = vec![0u64; vector.len()];
                expected[alpha / 64] = 1 << (alpha % 64);
                assert_eq!(vector, expected, "k = {k}, α = {alpha}");
            }
        }
    }
}
