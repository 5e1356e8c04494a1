//! The 128-bit block.

use std::fmt;
use std::ops::{BitAnd, BitXor, BitXorAssign};

use zeroize::Zeroize;

#[cfg(target_arch = "x86_64")]
use crate::Backend;

/// 128 bits, the unit of keys, seeds, pads and correlations. Little-endian in memory and on the
/// wire. `Debug` does not show the value: most blocks are secret.
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Zeroize)]
pub struct Block(pub u128);

impl Block {
    /// All bits zero.
    pub const ZERO: Self = Self(0);

    /// The 16 bytes, little-endian.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// From 16 little-endian bytes.
    #[inline]
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The least significant bit.
    #[inline]
    #[must_use]
    pub const fn lsb(self) -> bool {
        self.0 & 1 == 1
    }

    /// This block if `choice` is 1, zero if it is 0, without a branch.
    #[inline]
    #[must_use]
    pub const fn keep_if(self, choice: u8) -> Self {
        Self(self.0 & (choice as u128 & 1).wrapping_neg())
    }

    /// `to[i] ⊕= from[i]`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn xor_into(to: &mut [Self], from: &[Self]) {
        assert_eq!(to.len(), from.len(), "blocks to add");
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these backends are current only where AVX-512F, or AVX2, was detected.
        unsafe {
            if Backend::current() == Backend::Vaes {
                return xor_avx512(to, from);
            }
            if Backend::current() >= Backend::Avx2 {
                return xor_avx2(to, from);
            }
        }
        xor_portable(to, from);
    }

    /// `to[i] ⊕= from[i]` if `choice` is 1, nothing if it is 0, in time and addresses independent of `choice`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn xor_into_if(to: &mut [Self], from: &[Self], choice: u8) {
        assert_eq!(to.len(), from.len(), "blocks to add");
        let mask = Self(u128::MAX).keep_if(choice);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these backends are current only where AVX-512F, or AVX2, was detected.
        unsafe {
            if Backend::current() == Backend::Vaes {
                return xor_masked_avx512(to, from, mask);
            }
            if Backend::current() >= Backend::Avx2 {
                return xor_masked_avx2(to, from, mask);
            }
        }
        xor_masked_portable(to, from, mask);
    }

    /// The memory of `blocks` as bytes (no copy).
    #[inline]
    #[must_use]
    pub fn as_bytes(blocks: &[Self]) -> &[u8] {
        // SAFETY: Block is a transparent u128: no padding, and u8 has alignment 1.
        unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
    }

    /// The memory of `blocks` as bytes to write into (no copy).
    #[inline]
    #[must_use]
    pub fn as_bytes_mut(blocks: &mut [Self]) -> &mut [u8] {
        // SAFETY: as `as_bytes`; every bit pattern is a valid Block.
        unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), size_of_val(blocks)) }
    }

    /// The memory of `blocks` as 64-bit words, low half first (no copy).
    #[inline]
    #[must_use]
    pub fn as_words(blocks: &[Self]) -> &[u64] {
        // SAFETY: Block is a transparent u128, two words without padding and with at least their alignment.
        unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), 2 * blocks.len()) }
    }

    /// The memory of `blocks` as 64-bit words to write into, low half first (no copy).
    #[inline]
    #[must_use]
    pub fn as_words_mut(blocks: &mut [Self]) -> &mut [u64] {
        // SAFETY: Block is a transparent u128, two words without padding and with at least their
        // alignment; every bit pattern is valid for both.
        unsafe { std::slice::from_raw_parts_mut(blocks.as_mut_ptr().cast(), 2 * blocks.len()) }
    }
}

#[inline(always)]
fn xor_portable(to: &mut [Block], from: &[Block]) {
    // In words: the compiler does not join halves of blocks to registers.
    for (to, from) in Block::as_words_mut(to)
        .iter_mut()
        .zip(Block::as_words(from))
    {
        *to ^= *from;
    }
}

/// [`xor_portable`] compiled for AVX2.
///
/// # Safety
/// The machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn xor_avx2(to: &mut [Block], from: &[Block]) {
    xor_portable(to, from);
}

/// [`xor_portable`] with AVX-512.
///
/// # Safety
/// The machine has AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn xor_avx512(to: &mut [Block], from: &[Block]) {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_storeu_si512, _mm512_xor_si512};
    let (to_lines, to_rest) = to.as_chunks_mut::<4>();
    let (from_lines, from_rest) = from.as_chunks::<4>();
    for (to, from) in to_lines.iter_mut().zip(from_lines) {
        let to = to.as_mut_ptr().cast();
        // SAFETY: both are four blocks, 64 bytes.
        unsafe {
            let sum = _mm512_xor_si512(
                _mm512_loadu_si512(to),
                _mm512_loadu_si512(from.as_ptr().cast()),
            );
            _mm512_storeu_si512(to, sum);
        }
    }
    xor_portable(to_rest, from_rest);
}

#[inline(always)]
fn xor_masked_portable(to: &mut [Block], from: &[Block], mask: Block) {
    // All of the mask's bits are the same.
    let mask = mask.0 as u64;
    for (to, from) in Block::as_words_mut(to)
        .iter_mut()
        .zip(Block::as_words(from))
    {
        *to ^= *from & mask;
    }
}

/// [`xor_masked_portable`] compiled for AVX2.
///
/// # Safety
/// The machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn xor_masked_avx2(to: &mut [Block], from: &[Block], mask: Block) {
    xor_masked_portable(to, from, mask);
}

/// [`xor_masked_portable`] with AVX-512.
///
/// # Safety
/// The machine has AVX-512F.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn xor_masked_avx512(to: &mut [Block], from: &[Block], mask: Block) {
    use std::arch::x86_64::*;
    /// `x ⊕ (y ∧ z)`.
    const XOR_AND: i32 = 0x78;
    let (to_lines, to_rest) = to.as_chunks_mut::<4>();
    let (from_lines, from_rest) = from.as_chunks::<4>();
    // SAFETY: a block is 16 bytes.
    let wide = unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128((&raw const mask).cast())) };
    for (to, from) in to_lines.iter_mut().zip(from_lines) {
        let to = to.as_mut_ptr().cast();
        // SAFETY: both are four blocks, 64 bytes.
        unsafe {
            let (old, from) = (
                _mm512_loadu_si512(to),
                _mm512_loadu_si512(from.as_ptr().cast()),
            );
            let sum = _mm512_ternarylogic_epi64::<XOR_AND>(old, from, wide);
            _mm512_storeu_si512(to, sum);
        }
    }
    xor_masked_portable(to_rest, from_rest, mask);
}

#[cfg(target_endian = "big")]
compile_error!("the wire format is the memory layout of little-endian machines");

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Block(..)")
    }
}

impl BitXor for Block {
    type Output = Self;
    #[inline]
    fn bitxor(self, rhs: Self) -> Self {
        Self(self.0 ^ rhs.0)
    }
}

impl BitXorAssign for Block {
    #[inline]
    fn bitxor_assign(&mut self, rhs: Self) {
        self.0 ^= rhs.0;
    }
}

impl BitAnd for Block {
    type Output = Self;
    #[inline]
    fn bitand(self, rhs: Self) -> Self {
        Self(self.0 & rhs.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn blocks_are_added_where_the_choice_is_one() {
        for len in [0, 1, 4, 7, 64] {
            let (mut to, mut from) = (vec![Block::ZERO; len], vec![Block::ZERO; len]);
            let mut prg = Prg::from_seed(Block(3));
            prg.fill_blocks(&mut to);
            prg.fill_blocks(&mut from);
            for choice in [0, 1] {
                let expected: Vec<Block> = to
                    .iter()
                    .zip(&from)
                    .map(|(&a, &b)| if choice == 1 { a ^ b } else { a })
                    .collect();
                let (mut got, mut twin) = (to.clone(), to.clone());
                Block::xor_into_if(&mut got, &from, choice);
                xor_masked_portable(&mut twin, &from, Block(u128::MAX).keep_if(choice));
                assert!(
                    got == expected && twin == expected,
                    "{len} blocks, choice {choice}"
                );
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    let (mut twin, mut sum) = (to.clone(), to.clone());
                    // SAFETY: AVX2 was just detected.
                    unsafe {
                        xor_masked_avx2(&mut twin, &from, Block(u128::MAX).keep_if(choice));
                        xor_avx2(&mut sum, &from);
                    }
                    assert!(twin == expected);
                    assert!(choice == 0 || sum == expected);
                }
            }
        }
    }
}
