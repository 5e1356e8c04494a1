//! Carry-less multiplication: one or four 128-bit lanes a register.
//!
//! A computation is written once against [`Lanes`] and runs compiled for the instruction set at hand, like the
//! kernels of [`super::Engine`].

use crate::{Backend, Block};

/// Registers of `WIDTH` blocks, every block a polynomial over GF(2) of degree below 128.
pub(crate) trait Lanes: Copy {
    /// A register.
    type Reg: Copy;
    /// Blocks in a register.
    const WIDTH: usize;

    /// Reads `WIDTH` blocks from the start of `from` (which is at least that long).
    fn load(self, from: &[Block]) -> Self::Reg;
    /// Writes `WIDTH` blocks to the start of `to` (which is at least that long).
    fn store(self, to: &mut [Block], value: Self::Reg);
    /// The same block in every lane.
    fn splat(self, block: Block) -> Self::Reg;
    /// Sum.
    fn xor(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Product of the low halves.
    fn low(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Product of the high halves.
    fn high(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Sum of both halves, in the low half (and anything in the high one).
    fn fold(self, a: Self::Reg) -> Self::Reg;
    /// The words of `low + x^64·(middle + low + high) + x^128·high`.
    fn join(self, low: Self::Reg, middle: Self::Reg, high: Self::Reg) -> (Self::Reg, Self::Reg);
    /// `a·x^64`.
    fn up(self, a: Self::Reg) -> Self::Reg;
    /// The high half, as the low one.
    fn down(self, a: Self::Reg) -> Self::Reg;
}

/// A computation that runs on any [`Lanes`].
pub(crate) trait Clmul {
    fn run<L: Lanes>(self, lanes: L);
}

/// Runs `kernel` on the best engine the machine has that is no better than `backend`.
pub(crate) fn dispatch<K: Clmul>(backend: Backend, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        let narrow = is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1");
        let wide = narrow
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw");
        if wide && backend >= Backend::Vaes {
            // SAFETY: the instructions were just detected.
            return unsafe { x86::run_wide(kernel) };
        }
        if narrow && backend >= Backend::AesNi {
            // SAFETY: the instructions were just detected.
            return unsafe { x86::run_narrow(kernel) };
        }
    }
    let _ = backend;
    kernel.run(Portable);
}

/// Portable engine: integer products of numbers with holes, in constant time.
#[derive(Clone, Copy)]
struct Portable;

/// The carry-less product. Every fourth bit of one factor, at most eight of them, times every fourth of the
/// other: no sum reaches 16, so no carry reaches the next bit that counts (Pornin, BearSSL).
fn product(x: u64, y: u64) -> u128 {
    const HOLES: u64 = 0x1111_1111_1111_1111;
    const WIDE: u128 = HOLES as u128 | (HOLES as u128) << 64;
    let mut result = 0;
    for half in 0..2 {
        let y = y >> (32 * half) & 0xffff_ffff;
        for s in 0..4 {
            let mut sum = 0;
            for i in 0..4 {
                let j = (4 + s - i) % 4;
                sum ^= u128::from(x & HOLES << i) * u128::from(y & HOLES << j);
            }
            result ^= (sum & WIDE << s) << (32 * half);
        }
    }
    result
}

impl Lanes for Portable {
    type Reg = Block;
    const WIDTH: usize = 1;

    #[inline(always)]
    fn load(self, from: &[Block]) -> Block {
        from[0]
    }

    #[inline(always)]
    fn store(self, to: &mut [Block], value: Block) {
        to[0] = value;
    }

    #[inline(always)]
    fn splat(self, block: Block) -> Block {
        block
    }

    #[inline(always)]
    fn xor(self, a: Block, b: Block) -> Block {
        a ^ b
    }

    #[inline(always)]
    fn low(self, a: Block, b: Block) -> Block {
        Block(product(a.0 as u64, b.0 as u64))
    }

    #[inline(always)]
    fn high(self, a: Block, b: Block) -> Block {
        Block(product((a.0 >> 64) as u64, (b.0 >> 64) as u64))
    }

    #[inline(always)]
    fn fold(self, a: Block) -> Block {
        Block(a.0 ^ a.0 >> 64)
    }

    #[inline(always)]
    fn join(self, low: Block, middle: Block, high: Block) -> (Block, Block) {
        let middle = middle ^ low ^ high;
        (
            Block(low.0 ^ middle.0 << 64),
            Block(high.0 ^ middle.0 >> 64),
        )
    }

    #[inline(always)]
    fn up(self, a: Block) -> Block {
        Block(a.0 << 64)
    }

    #[inline(always)]
    fn down(self, a: Block) -> Block {
        Block(a.0 >> 64)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Clmul, Lanes};
    use crate::Block;

    /// PCLMULQDQ: one block a register. Constructed in [`run_narrow`] only.
    #[derive(Clone, Copy)]
    pub(super) struct Narrow(());

    /// VPCLMULQDQ: four blocks a register. Constructed in [`run_wide`] only.
    #[derive(Clone, Copy)]
    pub(super) struct Wide(());

    /// # Safety
    /// The machine has PCLMULQDQ and SSE4.1.
    #[target_feature(enable = "pclmulqdq,sse2,ssse3,sse4.1")]
    pub(super) unsafe fn run_narrow<K: Clmul>(kernel: K) {
        kernel.run(Narrow(()));
    }

    /// # Safety
    /// The machine has VPCLMULQDQ, PCLMULQDQ and AVX-512 F and BW.
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq")]
    pub(super) unsafe fn run_wide<K: Clmul>(kernel: K) {
        kernel.run(Wide(()));
    }

    // SAFETY of every block below: a Narrow exists only inside `run_narrow`, whose caller has checked that the
    // machine has the instructions; `load` and `store` check the slice's length.
    impl Lanes for Narrow {
        type Reg = __m128i;
        const WIDTH: usize = 1;

        #[inline(always)]
        fn load(self, from: &[Block]) -> __m128i {
            let from: &Block = &from[0];
            // SAFETY: one block is 16 readable bytes.
            unsafe { _mm_loadu_si128((from as *const Block).cast()) }
        }

        #[inline(always)]
        fn store(self, to: &mut [Block], value: __m128i) {
            let to: &mut Block = &mut to[0];
            // SAFETY: one block is 16 writable bytes.
            unsafe { _mm_storeu_si128((to as *mut Block).cast(), value) }
        }

        #[inline(always)]
        fn splat(self, block: Block) -> __m128i {
            self.load(&[block])
        }

        #[inline(always)]
        fn xor(self, a: __m128i, b: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_xor_si128(a, b) }
        }

        #[inline(always)]
        fn low(self, a: __m128i, b: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_clmulepi64_si128::<0x00>(a, b) }
        }

        #[inline(always)]
        fn high(self, a: __m128i, b: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_clmulepi64_si128::<0x11>(a, b) }
        }

        #[inline(always)]
        fn fold(self, a: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_xor_si128(a, _mm_shuffle_epi32::<0x4e>(a)) }
        }

        #[inline(always)]
        fn join(self, low: __m128i, middle: __m128i, high: __m128i) -> (__m128i, __m128i) {
            // SAFETY: see above.
            unsafe {
                let middle = _mm_xor_si128(middle, _mm_xor_si128(low, high));
                (
                    _mm_xor_si128(low, _mm_slli_si128::<8>(middle)),
                    _mm_xor_si128(high, _mm_srli_si128::<8>(middle)),
                )
            }
        }

        #[inline(always)]
        fn up(self, a: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_slli_si128::<8>(a) }
        }

        #[inline(always)]
        fn down(self, a: __m128i) -> __m128i {
            // SAFETY: see above.
            unsafe { _mm_srli_si128::<8>(a) }
        }
    }

    // SAFETY of every block below: a Wide exists only inside `run_wide`, whose caller has checked that the
    // machine has the instructions; `load` and `store` check the slice's length.
    impl Lanes for Wide {
        type Reg = __m512i;
        const WIDTH: usize = 4;

        #[inline(always)]
        fn load(self, from: &[Block]) -> __m512i {
            let from = &from[..4];
            // SAFETY: four blocks are 64 readable bytes.
            unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
        }

        #[inline(always)]
        fn store(self, to: &mut [Block], value: __m512i) {
            let to = &mut to[..4];
            // SAFETY: four blocks are 64 writable bytes.
            unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) }
        }

        #[inline(always)]
        fn splat(self, block: Block) -> __m512i {
            // SAFETY: one block is 16 readable bytes; for the instructions see above.
            unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128((&raw const block).cast())) }
        }

        #[inline(always)]
        fn xor(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_xor_si512(a, b) }
        }

        #[inline(always)]
        fn low(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_clmulepi64_epi128::<0x00>(a, b) }
        }

        #[inline(always)]
        fn high(self, a: __m512i, b: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_clmulepi64_epi128::<0x11>(a, b) }
        }

        #[inline(always)]
        fn fold(self, a: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_xor_si512(a, _mm512_shuffle_epi32::<0x4e>(a)) }
        }

        #[inline(always)]
        fn join(self, low: __m512i, middle: __m512i, high: __m512i) -> (__m512i, __m512i) {
            // SAFETY: see above.
            unsafe {
                let middle = _mm512_xor_si512(middle, _mm512_xor_si512(low, high));
                (
                    _mm512_xor_si512(low, _mm512_bslli_epi128::<8>(middle)),
                    _mm512_xor_si512(high, _mm512_bsrli_epi128::<8>(middle)),
                )
            }
        }

        #[inline(always)]
        fn up(self, a: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_bslli_epi128::<8>(a) }
        }

        #[inline(always)]
        fn down(self, a: __m512i) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_bsrli_epi128::<8>(a) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::product;

    #[test]
    fn the_portable_product_is_its_definition() {
        for (x, y) in [
            (u64::MAX, u64::MAX),
            (1 << 63, 1 << 63),
            (0x1234_5678_9abc_def1, 0xfedc_ba98_7654_3211),
        ] {
            let expected = (0..64)
                .filter(|i| y >> i & 1 == 1)
                .fold(0, |sum, i| sum ^ u128::from(x) << i);
            assert_eq!(product(x, y), expected);
        }
    }
}
