//! Many short vectors side by side in 64-bit words.
//!
//! A batch of vectors of `w` bits (`w` a power of two) is one contiguous bit string: for `w < 64` a
//! word holds `64/w` *lanes*, for `w ≥ 64` a vector takes whole words. A step of doubling is then a
//! few operations a word, for all its lanes at once, and a message is the string itself.

use volvelle_prim::Block;

/// Words that hold `count` vectors of `width` bits.
pub(crate) const fn words(count: usize, width: usize) -> usize {
    (count * width).div_ceil(64)
}

/// Calls `$body` with the lane width as a constant.
macro_rules! with_lane_width {
    ($width:expr, $W:ident => $body:expr) => {
        match $width {
            2 => {
                const $W: usize = 2;
                $body
            }
            4 => {
                const $W: usize = 4;
                $body
            }
            8 => {
                const $W: usize = 8;
                $body
            }
            16 => {
                const $W: usize = 16;
                $body
            }
            32 => {
                const $W: usize = 32;
                $body
            }
            width => unreachable!("lanes have 2, 4, … 32 bits, not {width}"),
        }
    };
}

/// Gathers bits given as bytes 0 or 1, 64 a word.
pub(crate) fn pack_bits(bits: &[u8], out: &mut [u64]) {
    /// Moves bit 0 of byte `i` to bit `56 + i`; the partial products meet nowhere.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    for (word, bits) in out.iter_mut().zip(bits.chunks(64)) {
        let mut bytes = [0; 64];
        bytes[..bits.len()].copy_from_slice(bits);
        let (octets, _) = bytes.as_chunks::<8>();
        *word = octets.iter().rev().fold(0, |word, &octet| {
            let ones = u64::from_le_bytes(octet) & 0x0101_0101_0101_0101;
            word << 8 | ones.wrapping_mul(GATHER) >> 56
        });
    }
}

/// Runs of `run` ones, one every `stride` bits.
const fn runs(run: usize, stride: usize) -> u64 {
    let mut mask = 0;
    let mut start = 0;
    while start < 64 {
        mask |= (u64::MAX >> (64 - run)) << start;
        start += stride;
    }
    mask
}

/// The masks of [`spread_bits`], for groups of 32, 16, … 1 bits.
const fn spread_masks(width: usize) -> [u64; 6] {
    let mut masks = [0; 6];
    let mut i = 0;
    while i < 6 {
        let group = 32 >> i;
        if group * width <= 64 {
            masks[i] = runs(group, group * width);
        }
        i += 1;
    }
    masks
}

/// Moves bit `i` of the low `64/W` bits to bit `i·W`.
#[inline(always)]
fn spread_bits<const W: usize>(bits: u64) -> u64 {
    let masks = const { spread_masks(W) };
    let mut x = bits & (u64::MAX >> (64 - 64 / W));
    for (i, mask) in masks.into_iter().enumerate() {
        let group = 32 >> i;
        if group * W < 64 {
            x = (x | x << (group * (W - 1))) & mask;
        }
    }
    x
}

/// The choice bits of the lanes of word `word`, each at its lane's lowest bit.
#[inline(always)]
fn lane_bits<const W: usize>(bits: &[u64], word: usize) -> u64 {
    let first = word * (64 / W);
    spread_bits::<W>(bits[first / 64] >> (first % 64))
}

/// All ones in the lanes of word `word` whose bit is set.
#[inline(always)]
fn lane_mask<const W: usize>(bits: &[u64], word: usize) -> u64 {
    lane_bits::<W>(bits, word).wrapping_mul(u64::MAX >> (64 - W))
}

/// Moves lane `i` (of `W` bits) of the low half to bit `2·W·i`.
#[inline(always)]
fn spread_lanes<const W: usize>(half: u64) -> u64 {
    let mut x = half & 0xffff_ffff;
    for step in [16, 8, 4, 2, 1] {
        if step >= W {
            x = (x | x << step) & runs(step, 2 * step);
        }
    }
    x
}

/// Vectors of two bits `(b ⊕ flip, b)`, one for each of `count` bits `b`.
pub(crate) fn start(bits: &[u64], flip: bool, out: &mut [u64], count: usize) {
    let flip = if flip { runs(1, 2) } else { 0 };
    for (i, out) in out.iter_mut().enumerate() {
        let b = lane_bits::<2>(bits, i);
        *out = b ^ flip | b << 1;
    }
    if !count.is_multiple_of(32)
        && let Some(last) = out.last_mut()
    {
        *last &= u64::MAX >> (64 - 2 * (count % 32));
    }
}

/// XORs the low `width` bits of every pad, as a batch of vectors, to `out`. A pad is `blocks`
/// blocks, one if `width < 64`.
pub(crate) fn xor_pads(pads: &[Block], blocks: usize, width: usize, out: &mut [u64]) {
    fn narrow<const W: usize>(pads: &[Block], out: &mut [u64]) {
        for (word, pads) in out.iter_mut().zip(pads.chunks(64 / W)) {
            *word ^= pads.iter().enumerate().fold(0, |word, (lane, pad)| {
                word | (pad.0 as u64 & u64::MAX >> (64 - W)) << (lane * W)
            });
        }
    }
    match width {
        64 => out
            .iter_mut()
            .zip(pads.chunks_exact(blocks))
            .for_each(|(w, p)| *w ^= p[0].0 as u64),
        128.. => {
            let vectors = out
                .chunks_exact_mut(width / 64)
                .zip(pads.chunks_exact(blocks));
            for (vector, pad) in vectors {
                for (words, block) in vector.chunks_exact_mut(2).zip(pad) {
                    words[0] ^= block.0 as u64;
                    words[1] ^= (block.0 >> 64) as u64;
                }
            }
        }
        _ => with_lane_width!(width, W => narrow::<W>(pads, out)),
    }
}

/// One step of doubling for a batch of vectors of `width` bits: `e' = (e ⊕ p) ‖ p`, with the share
/// `p = b·(e ⊕ received) ⊕ fold` of the product.
pub(crate) fn double(
    width: usize,
    e: &[u64],
    bits: &[u64],
    fold: &[u64],
    received: &[u64],
    out: &mut [u64],
) {
    if width >= 64 {
        return double_wide(width / 64, e, bits, fold, received, out);
    }
    fn narrow<const W: usize>(
        e: &[u64],
        bits: &[u64],
        fold: &[u64],
        received: &[u64],
        out: &mut [u64],
    ) {
        let words = e.iter().zip(fold).zip(received);
        for (i, (((&e, &fold), &received), out)) in words.zip(out.chunks_mut(2)).enumerate() {
            let high = (e ^ received) & lane_mask::<W>(bits, i) ^ fold;
            let low = e ^ high;
            out[0] = spread_lanes::<W>(low) | spread_lanes::<W>(high) << W;
            // A batch that ends in the low half of its last word has no further word.
            if let Some(out) = out.get_mut(1) {
                *out = spread_lanes::<W>(low >> 32) | spread_lanes::<W>(high >> 32) << W;
            }
        }
    }
    with_lane_width!(width, W => narrow::<W>(e, bits, fold, received, out));
}

fn double_wide(
    words: usize,
    e: &[u64],
    bits: &[u64],
    fold: &[u64],
    received: &[u64],
    out: &mut [u64],
) {
    let rows = e.chunks_exact(words).zip(fold.chunks_exact(words));
    let rows = rows
        .zip(received.chunks_exact(words))
        .zip(out.chunks_exact_mut(2 * words));
    for (i, (((e, fold), received), out)) in rows.enumerate() {
        let chosen = (bits[i / 64] >> (i % 64) & 1).wrapping_neg();
        let (low, high) = out.split_at_mut(words);
        for j in 0..words {
            high[j] = (e[j] ^ received[j]) & chosen ^ fold[j];
            low[j] = e[j] ^ high[j];
        }
    }
}

/// A batch of vectors of `width < 64` bits, one a word.
pub(crate) fn unpack(width: usize, packed: &[u64], out: &mut [u64]) {
    fn narrow<const W: usize>(packed: &[u64], out: &mut [u64]) {
        for (&word, out) in packed.iter().zip(out.chunks_mut(64 / W)) {
            for (lane, out) in out.iter_mut().enumerate() {
                *out = word >> (lane * W) & u64::MAX >> (64 - W);
            }
        }
    }
    with_lane_width!(width, W => narrow::<W>(packed, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit `i` of the string.
    fn bit(words: &[u64], i: usize) -> bool {
        words[i / 64] >> (i % 64) & 1 == 1
    }

    fn random(seed: u64, len: usize) -> Vec<u64> {
        let mut out = vec![0; len];
        volvelle_prim::Prg::from_seed(Block(seed.into())).fill_u64(&mut out);
        out
    }

    proptest! {
        #[test]
        fn doubling_is_its_formula(seed: u64, log in 1u32..9, count in 1usize..150) {
            let w = 1 << log;
            let len = words(count, w);
            let inputs = random(seed, 3 * len);
            let (e, fold, received) = (&inputs[..len], &inputs[len..2 * len], &inputs[2 * len..]);
            let bits = random(seed ^ 1, words(count, 1));
            let mut out = vec![0; words(count, 2 * w)];
            double(w, e, &bits, fold, received, &mut out);
            for i in 0..count {
                for j in 0..w {
                    let at = i * w + j;
                    let high = (bit(e, at) ^ bit(received, at)) & bit(&bits, i) ^ bit(fold, at);
                    prop_assert_eq!(bit(&out, 2 * i * w + j), bit(e, at) ^ high);
                    prop_assert_eq!(bit(&out, (2 * i + 1) * w + j), high);
                }
            }
        }

        #[test]
        fn starting_and_unpacking(seed: u64, count in 1usize..150, flip: bool) {
            let bits = random(seed, words(count, 1));
            let mut packed = vec![0; words(count, 2)];
            start(&bits, flip, &mut packed, count);
            let mut rows = vec![0; count];
            unpack(2, &packed, &mut rows);
            for (i, row) in rows.into_iter().enumerate() {
                let b = u64::from(bit(&bits, i));
                prop_assert_eq!(row, b ^ u64::from(flip) | b << 1);
            }
            prop_assert!((2 * count..64 * packed.len()).all(|i| !bit(&packed, i)));
        }

        #[test]
        fn pads(seed: u64, log in 1u32..10, count in 1usize..150, spare in 0usize..2) {
            let w = 1usize << log;
            let blocks = w.div_ceil(128) + if w < 64 { 0 } else { spare };
            let source = random(seed, 2 * blocks * count);
            let pads: Vec<Block> = source
                .chunks(2)
                .map(|p| Block(u128::from(p[0]) | u128::from(p[1]) << 64))
                .collect();
            let before = random(seed ^ 1, words(count, w));
            let mut out = before.clone();
            xor_pads(&pads, blocks, w, &mut out);
            for i in 0..count * w {
                let pad = bit(&source, (i / w) * blocks * 128 + i % w);
                prop_assert_eq!(bit(&out, i) ^ bit(&before, i), pad);
            }
        }

        #[test]
        fn packing_bits(bits in prop::collection::vec(0u8..2, 1..200)) {
            let mut out = vec![0; words(bits.len(), 1)];
            pack_bits(&bits, &mut out);
            prop_assert!(bits.iter().enumerate().all(|(i, &b)| bit(&out, i) == (b == 1)));
        }
    }
}
