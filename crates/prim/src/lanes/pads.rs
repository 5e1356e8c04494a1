//! What doubling takes out of the pads of random OTs: some low bits of each.

use super::bad_width;
use crate::{Backend, Block};

/// XORs the low `width` bits of every pad, as a batch of vectors, to `out`. A pad is `blocks`
/// blocks, one if `width < 64`.
pub fn xor_pads(pads: &[Block], blocks: usize, width: usize, out: &mut [u64]) {
    xor_pads_on(Backend::current(), pads, blocks, width, out);
}

/// [`xor_pads`] on a backend that the machine has.
fn xor_pads_on(backend: Backend, pads: &[Block], blocks: usize, width: usize, out: &mut [u64]) {
    let mut done = (0, 0);
    if blocks == width.div_ceil(128) {
        done = twin!(backend, xor_pads(pads, width, out)).unwrap_or(done);
    }
    xor_pads_portable(&pads[done.0..], blocks, width, &mut out[done.1..]);
}

/// What a sender keeps of both pads of its OTs, read once: [`xor_pads`] of the first to `folds`, and of both to `masks`.
pub fn xor_both_pads(
    zeros: &[Block],
    ones: &[Block],
    (blocks, width): (usize, usize),
    masks: &mut [u64],
    folds: &mut [u64],
) {
    xor_both_on(
        Backend::current(),
        (zeros, ones),
        (blocks, width),
        masks,
        folds,
    );
}

/// [`xor_both_pads`] on a backend that the machine has.
fn xor_both_on(
    backend: Backend,
    (zeros, ones): (&[Block], &[Block]),
    (blocks, width): (usize, usize),
    masks: &mut [u64],
    folds: &mut [u64],
) {
    let mut done = (0, 0);
    if blocks == width.div_ceil(128) {
        done = twin!(backend, xor_both_pads((zeros, ones), width, masks, folds)).unwrap_or(done);
    }
    let (masks, folds) = (&mut masks[done.1..], &mut folds[done.1..]);
    let pads = (&zeros[done.0..], &ones[done.0..]);
    xor_both_portable(pads, (blocks, width), masks, folds);
}

fn xor_both_portable(
    (zeros, ones): (&[Block], &[Block]),
    (blocks, width): (usize, usize),
    masks: &mut [u64],
    folds: &mut [u64],
) {
    xor_pads_portable(zeros, blocks, width, folds);
    xor_pads_portable(zeros, blocks, width, masks);
    xor_pads_portable(ones, blocks, width, masks);
}

fn xor_pads_portable(pads: &[Block], blocks: usize, width: usize, out: &mut [u64]) {
    fn narrow<const W: usize>(pads: &[Block], out: &mut [u64]) {
        for (word, pads) in out.iter_mut().zip(pads.chunks(64 / W)) {
            *word ^= pads.iter().enumerate().fold(0, |word, (lane, pad)| {
                word | (pad.0 as u64 & u64::MAX >> (64 - W)) << (lane * W)
            });
        }
    }
    with_lane_width!(
        width, [2 4 8 16 32],
        W => narrow::<W>(pads, out),
        width => xor_whole_words(pads, blocks, width, out)
    );
}

/// [`xor_pads`] of whole words.
#[inline(always)]
pub(super) fn xor_whole_words(pads: &[Block], blocks: usize, width: usize, out: &mut [u64]) {
    match width {
        64 => {
            for (word, pad) in out.iter_mut().zip(pads.chunks_exact(blocks)) {
                *word ^= pad[0].0 as u64;
            }
        }
        // The compiler is to know that there are no gaps.
        128.. if blocks == width.div_ceil(128) => {
            for (word, pad) in out.iter_mut().zip(Block::as_words(pads)) {
                *word ^= pad;
            }
        }
        128.. => {
            let words = width / 64;
            let vectors = out.chunks_exact_mut(words);
            for (vector, pad) in vectors.zip(pads.chunks_exact(blocks)) {
                for (word, pad) in vector.iter_mut().zip(&Block::as_words(pad)[..words]) {
                    *word ^= pad;
                }
            }
        }
        _ => bad_width(width),
    }
}

/// Gathers the lowest bits of blocks, 64 a word: the choices of correlated OTs.
pub fn lowest_bits(blocks: &[Block], out: &mut [u64]) {
    lowest_bits_on(Backend::current(), blocks, out);
}

/// [`lowest_bits`] on a backend that the machine has.
fn lowest_bits_on(backend: Backend, blocks: &[Block], out: &mut [u64]) {
    let words = twin!(backend, lowest_bits(blocks, out)).unwrap_or(0);
    lowest_bits_portable(&blocks[64 * words..], &mut out[words..]);
}

fn lowest_bits_portable(blocks: &[Block], out: &mut [u64]) {
    for (word, blocks) in out.iter_mut().zip(blocks.chunks(64)) {
        let lowest = blocks.iter().enumerate();
        *word = lowest.fold(0, |word, (i, block)| word | u64::from(block.lsb()) << i);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{bit, random};
    use super::super::words;
    use super::*;

    fn blocks_of(words: &[u64]) -> Vec<Block> {
        let pairs = words.chunks(2);
        pairs
            .map(|p| Block(u128::from(p[0]) | u128::from(p[1]) << 64))
            .collect()
    }

    proptest! {
        #[test]
        fn pads(seed: u64, log in 1u32..10, count in 1usize..300, spare in 0usize..2) {
            let w = 1usize << log;
            let blocks = w.div_ceil(128) + if w < 64 { 0 } else { spare };
            let source = random(seed, 2 * blocks * count);
            let pads = blocks_of(&source);
            let before = random(seed ^ 1, words(count, w));
            for backend in Backend::available() {
                let mut out = before.clone();
                xor_pads_on(backend, &pads, blocks, w, &mut out);
                for i in 0..count * w {
                    let pad = bit(&source, (i / w) * blocks * 128 + i % w);
                    prop_assert_eq!(bit(&out, i) ^ bit(&before, i), pad);
                }
            }
        }

        #[test]
        fn both_pads(seed: u64, log in 1u32..10, count in 1usize..300, spare in 0usize..2) {
            let w = 1usize << log;
            let blocks = w.div_ceil(128) + if w < 64 { 0 } else { spare };
            let zeros = blocks_of(&random(seed, 2 * blocks * count));
            let ones = blocks_of(&random(seed ^ 1, 2 * blocks * count));
            let len = words(count, w);
            let before = random(seed ^ 2, 2 * len);
            let mut portable = before.clone();
            let (masks, folds) = portable.split_at_mut(len);
            xor_both_portable((&zeros, &ones), (blocks, w), masks, folds);
            for backend in Backend::available() {
                let mut out = before.clone();
                let (masks, folds) = out.split_at_mut(len);
                xor_both_on(backend, (&zeros, &ones), (blocks, w), masks, folds);
                prop_assert_eq!(&out, &portable);
            }
        }

        #[test]
        fn lowest(seed: u64, count in 1usize..300) {
            let source = random(seed, 2 * count);
            for backend in Backend::available() {
                let mut out = vec![0; words(count, 1)];
                lowest_bits_on(backend, &blocks_of(&source), &mut out);
                prop_assert!((0..count).all(|i| bit(&out, i) == bit(&source, 128 * i)));
                prop_assert!((count..64 * out.len()).all(|i| !bit(&out, i)));
            }
        }
    }
}
