//! Many short vectors side by side in 64-bit words: one step of doubling vectors of products, what it
//! takes out of the pads of random OTs, and its messages.
//!
//! A batch of vectors of `w` bits (`w` a power of two) is one contiguous bit string: for `w < 64` a
//! word holds `64/w` *lanes*, for `w ≥ 64` a vector takes whole words. A step of doubling is then a
//! few operations a word, for all its lanes at once, and a message is the string itself.
//!
//! Floors, at 64 bytes a cycle from the second-level cache: [`append_products`] reads three words and writes two for
//! each word of `v`, and reaches 0.6 of that; [`xor_pads`] reads a whole pad for each vector, and reaches 0.5.

use crate::Backend;

/// Words that hold `count` vectors of `width` bits.
#[must_use]
pub const fn words(count: usize, width: usize) -> usize {
    (count * width).div_ceil(64)
}

/// Calls `$body` with the lane width as a constant.
macro_rules! with_lane_width {
    ($width:expr, [$($w:literal)*], $W:ident => $body:expr, $other:pat => $rest:expr) => {
        match $width {
            $($w => {
                const $W: usize = $w;
                $body
            })*
            $other => $rest,
        }
    };
}

/// Calls the twin for a backend that the machine has, if there is one, and gives what it returns.
macro_rules! twin {
    ($backend:expr, $name:ident($($arg:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        let done = match $backend {
            // SAFETY: the machine has this backend, and so AVX-512 and POPCNT.
            Backend::Vaes => Some(unsafe { crate::lanes::avx512::$name($($arg),*) }),
            // SAFETY: the machine has one of these, and so AVX2, BMI1, BMI2 and POPCNT.
            Backend::Avx2 | Backend::Vaes256 => Some(unsafe { crate::lanes::avx2::$name($($arg),*) }),
            _ => None,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let done = {
            let _ = $backend;
            None
        };
        done
    }};
}

// After the macros that they use.
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod pads;
mod tails;
#[cfg(test)]
mod tests;

pub use pads::{lowest_bits, xor_both_pads, xor_pads};
pub use tails::{append_tails, one_hots, read_tails, tail_bytes};

fn bad_width(width: usize) -> ! {
    panic!("lanes have 2, 4, … 32 bits, not {width}")
}

/// Gathers bits given as bytes 0 or 1, 64 a word.
pub fn pack_bits(bits: &[u8], out: &mut [u64]) {
    if twin!(Backend::current(), pack_bits(bits, out)) != Some(()) {
        pack_bits_portable(bits, out);
    }
}

fn pack_bits_portable(bits: &[u8], out: &mut [u64]) {
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

/// Inverse of [`pack_bits`].
pub fn unpack_bits(bits: &[u64], out: &mut [u8]) {
    if twin!(Backend::current(), unpack_bits(bits, out)) != Some(()) {
        unpack_bits_portable(bits, out);
    }
}

fn unpack_bits_portable(bits: &[u64], out: &mut [u8]) {
    for (out, &word) in out.chunks_mut(64).zip(bits) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = (word >> i & 1) as u8;
        }
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

/// The first bits of vectors of `width` bits, in so many words.
#[cfg(target_arch = "x86_64")]
const fn first_bits<const WORDS: usize>(width: usize) -> [u64; WORDS] {
    let mut bits = [0; WORDS];
    let mut word = 0;
    while word < WORDS {
        if width < 64 {
            bits[word] = runs(1, width);
        } else if word.is_multiple_of(width / 64) {
            bits[word] = 1;
        }
        word += 1;
    }
    bits
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

/// Vectors of two bits `(one, b)`, one for each of `count` bits `b`: the products of a bit, of which the first is a share of 1.
pub fn start(bits: &[u64], one: bool, out: &mut [u64], count: usize) {
    let one = if one { runs(1, 2) } else { 0 };
    for (i, out) in out.iter_mut().enumerate() {
        *out = one | lane_bits::<2>(bits, i) << 1;
    }
    if !count.is_multiple_of(32)
        && let Some(last) = out.last_mut()
    {
        *last &= u64::MAX >> (64 - 2 * (count % 32));
    }
}

/// One step of doubling for a batch of vectors `v` of `width` bits, whose first is a share of 1: `v' = v ‖ p` with the share
/// `p = b·(v ⊕ received) ⊕ fold` of the product with a bit, but for the first bit of `p`, which is `b`.
///
/// `fold` is the second half of `data`, which is as long as `v` twice; `v'` takes all its place. Of narrow vectors
/// the last word need not be full; from 64 bits on vectors are whole words.
///
/// # Panics
/// If the lengths do not fit.
pub fn append_products(width: usize, v: &[u64], bits: &[u64], received: &[u64], data: &mut [u64]) {
    assert_eq!(data.len(), 2 * v.len(), "room for the longer vectors");
    assert_eq!(received.len(), v.len(), "one message a vector");
    if width >= 64 {
        assert_eq!(v.len() % (width / 64), 0, "whole vectors");
    }
    let done = twin!(
        Backend::current(),
        append_products(width, v, bits, received, data)
    );
    append_products_portable(width, done.unwrap_or(0), v, bits, received, data);
}

/// [`append_products`] from word `first` of `v` on, where a vector begins. What is written for a word never reaches a fold still to be
/// read: words `2i` and `2i + 1` are at most fold `i`'s, `len + i`.
fn append_products_portable(
    width: usize,
    first: usize,
    v: &[u64],
    bits: &[u64],
    received: &[u64],
    data: &mut [u64],
) {
    fn narrow<const W: usize>(
        first: usize,
        v: &[u64],
        bits: &[u64],
        received: &[u64],
        data: &mut [u64],
    ) {
        let firsts = const { runs(1, W) };
        for i in first..v.len() {
            let b = lane_bits::<W>(bits, i);
            let product = (v[i] ^ received[i]) & b.wrapping_mul(u64::MAX >> (64 - W));
            let high = (product ^ data[v.len() + i]) & !firsts | b;
            data[2 * i] = spread_lanes::<W>(v[i]) | spread_lanes::<W>(high) << W;
            data[2 * i + 1] = spread_lanes::<W>(v[i] >> 32) | spread_lanes::<W>(high >> 32) << W;
        }
    }
    if width >= 64 {
        let words = width / 64;
        for i in first..v.len() {
            let (row, j) = (i / words, i % words);
            let b = bits[row / 64] >> (row % 64) & 1;
            let high = (v[i] ^ received[i]) & b.wrapping_neg() ^ data[v.len() + i];
            data[2 * row * words + j] = v[i];
            data[(2 * row + 1) * words + j] = if j == 0 { high & !1 | b } else { high };
        }
        return;
    }
    with_lane_width!(
        width, [2 4 8 16 32],
        W => narrow::<W>(first, v, bits, received, data),
        width => bad_width(width)
    );
}

/// The number of ones of each row of `words` words, modulo 4.
///
/// # Panics
/// If there are fewer rows than numbers.
pub fn weights(words: usize, rows: &[u64], out: &mut [u8]) {
    assert!(rows.len() >= words * out.len(), "a row for each");
    if twin!(Backend::current(), weights(words, rows, out)) != Some(()) {
        weights_portable(words, rows, out);
    }
}

#[inline(always)]
fn weights_portable(words: usize, rows: &[u64], out: &mut [u8]) {
    // The compiler is to know the commonest lengths of rows.
    match words {
        1 => count_ones(1, rows, out),
        4 => count_ones(4, rows, out),
        _ => count_ones(words, rows, out),
    }
}

#[inline(always)]
fn count_ones(words: usize, rows: &[u64], out: &mut [u8]) {
    for (out, row) in out.iter_mut().zip(rows.chunks_exact(words)) {
        let mut ones = 0;
        for word in row {
            ones += word.count_ones();
        }
        *out = (ones & 3) as u8;
    }
}

/// Writes `a ⊕ b` as bytes.
///
/// # Panics
/// If `out` is longer than `a` or `b`.
pub fn xor_to_bytes(a: &[u64], b: &[u64], out: &mut [u8]) {
    if twin!(Backend::current(), xor_to_bytes(a, b, out)) != Some(()) {
        xor_to_bytes_portable(a, b, out);
    }
}

#[inline(always)]
fn xor_to_bytes_portable(a: &[u64], b: &[u64], out: &mut [u8]) {
    let (words, rest) = out.as_chunks_mut::<8>();
    let whole = words.len();
    for ((out, a), b) in words.iter_mut().zip(&a[..whole]).zip(&b[..whole]) {
        *out = (a ^ b).to_le_bytes();
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&(a[whole] ^ b[whole]).to_le_bytes()[..rest.len()]);
    }
}

/// A batch of vectors of `width < 64` bits, one a word.
pub fn unpack(width: usize, packed: &[u64], out: &mut [u64]) {
    fn narrow<const W: usize>(packed: &[u64], out: &mut [u64]) {
        for (&word, out) in packed.iter().zip(out.chunks_mut(64 / W)) {
            for (lane, out) in out.iter_mut().enumerate() {
                *out = word >> (lane * W) & u64::MAX >> (64 - W);
            }
        }
    }
    with_lane_width!(width, [2 4 8 16 32], W => narrow::<W>(packed, out), w => bad_width(w));
}
