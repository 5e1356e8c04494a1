//! Messages of batches of vectors of which the first bits are not sent.
//!
//! Vectors of `2^i` bits lie side by side as [`lanes`](volvelle_prim::lanes) has them; a message holds
//! `2^i − 1` bits of each.

use volvelle_prim::{LOW_HALVES, pack};
use zeroize::Zeroizing;

/// Bytes of a step's message: vectors of `2^i` bits without their first.
pub(super) fn message_bytes(i: u32, count: usize) -> usize {
    (count * ((1 << i) - 1)).div_ceil(8)
}

/// Bits of a word that are not the first of a vector of `2^i` bits, `i ≤ 6`.
const fn tail_bits(i: u32) -> u32 {
    64 - (64 >> i)
}

/// Appends vectors of `2^i` bits, each without its first bit. Uses `vectors` as scratch.
pub(super) fn append_tails(i: u32, vectors: &mut [u64], frame: &mut Vec<u8>) {
    if i <= 6 {
        vectors.iter_mut().for_each(|w| *w = drop_firsts(i, *w));
        pack::pack_append(vectors, tail_bits(i), frame);
        return;
    }
    let words = 1 << (i - 6);
    let mut firsts = Zeroizing::new(vec![0; vectors.len() / words]);
    for (first, vector) in firsts.iter_mut().zip(vectors.chunks_exact(words)) {
        *first = vector[0] >> 1;
        let rest = vector[1..].iter();
        rest.for_each(|w| frame.extend_from_slice(&w.to_le_bytes()));
    }
    pack::pack_append(&firsts, 63, frame);
}

/// Inverse of [`append_tails`] for vectors of `len` words in all; first bits are zero.
pub(super) fn read_tails(i: u32, frame: &[u8], len: usize, vectors: &mut Vec<u64>) {
    vectors.clear();
    vectors.resize(len, 0);
    if i <= 6 {
        // The last word's vectors may not all be there.
        let mut whole = frame.to_vec();
        whole.resize(pack::packed_len(len, tail_bits(i)), 0);
        pack::unpack_into(&whole, tail_bits(i), vectors);
        vectors.iter_mut().for_each(|w| *w = insert_firsts(i, *w));
        return;
    }
    let words = 1 << (i - 6);
    let count = len / words;
    let (rest, packed) = frame.split_at(8 * (len - count));
    let mut firsts = vec![0; count];
    pack::unpack_into(packed, 63, &mut firsts);
    let rests = rest.as_chunks::<8>().0.chunks_exact(words - 1);
    for ((vector, first), rest) in vectors.chunks_exact_mut(words).zip(firsts).zip(rests) {
        vector[0] = first << 1;
        for (word, bytes) in vector[1..].iter_mut().zip(rest) {
            *word = u64::from_le_bytes(*bytes);
        }
    }
}

/// Drops the first bit of every lane of `2^i` bits and closes the gaps, pairs of lanes first.
fn drop_firsts(i: u32, word: u64) -> u64 {
    let mut x = (word & !firsts(i)) >> 1;
    for t in i..6 {
        x = x & LOW_HALVES[t as usize] | (x & !LOW_HALVES[t as usize]) >> (1 << (t - i));
    }
    x
}

/// Inverse of [`drop_firsts`], with zeros for first bits.
fn insert_firsts(i: u32, word: u64) -> u64 {
    let mut x = word;
    for t in (i..6).rev() {
        // What fills a half: lanes of 2^i − 1 bits, 2^(t−i) of them.
        let filled = (1u32 << t) - (1 << (t - i));
        let half = (1u64 << filled) - 1;
        let halves = half * (u64::MAX / low_run(t + 1));
        x = x & halves | (x & !halves) << (1 << (t - i));
    }
    x << 1
}

/// `2^t` ones.
const fn low_run(t: u32) -> u64 {
    u64::MAX >> (64 - (1 << t))
}

/// The first bits of lanes of `2^i` bits.
const fn firsts(i: u32) -> u64 {
    u64::MAX / low_run(i)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use volvelle_prim::{Block, Prg, lanes};

    proptest! {
        #[test]
        fn messages_hold_all_but_first_bits(seed: u64, i in 1u32..9, count in 1usize..200) {
            let len = lanes::words(count, 1 << i);
            let mut vectors = vec![0; len];
            Prg::from_seed(Block(seed.into())).fill_u64(&mut vectors);
            let mut frame = Vec::new();
            append_tails(i, &mut vectors.clone(), &mut frame);
            frame.truncate(message_bytes(i, count));
            let mut back = Vec::new();
            read_tails(i, &frame, len, &mut back);
            let bit = |words: &[u64], j: usize| words[j / 64] >> (j % 64) & 1 == 1;
            for j in 0..count << i {
                prop_assert_eq!(bit(&back, j), j % (1 << i) != 0 && bit(&vectors, j));
            }
        }
    }
}
