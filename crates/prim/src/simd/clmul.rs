//! Carry-less multiplication: one, two or four 128-bit lanes a register.
//!
//! A computation is written once against [`Lanes`] and runs compiled for the instruction set at hand, like the
//! kernels of [`super::Engine`].

use crate::{Backend, Block};

/// Registers of `WIDTH` blocks, every block two words of 64 bits. A word is a polynomial in `w` over GF(2), or an element of
/// GF(2^64) = GF(2)\[w\] / (w^64 + w^63 + w^61 + w^60 + 1).
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
    /// Product of the low words: two words.
    fn low(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Product of the high words.
    fn high(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Two products, or sums of products, each times `w^−64` in the field: that of `low` as the low word, that of `high` as the
    /// high one.
    ///
    /// Montgomery reduction. For the low word `v` of a product, `w^−64 = 1 + w^−1 + w^−3 + w^−4 = (1 + w^−1)(1 + w^−3)`; the
    /// last four bits of `v` pass under `w^0` and come in again at the top, as [`UNDER`] has them.
    fn reduce(self, low: Self::Reg, high: Self::Reg) -> Self::Reg;
    /// The low 32 bits of every word.
    fn even(self, a: Self::Reg) -> Self::Reg;
    /// The high 32 bits of every word, as low ones.
    fn odd(self, a: Self::Reg) -> Self::Reg;
    /// `even + 2^32·odd` in every word, neither of more than 32 bits.
    fn pair(self, even: Self::Reg, odd: Self::Reg) -> Self::Reg;
    /// The element `a + b·x` of [`crate::additive`] times `x^32`, `a` and `b` of 32 bits at most: `x^32` is `x` and the powers 1, 2,
    /// 4, 8, 16 of `w`, and `x·(a + b·x)` is `w·b + (a + b)·x`.
    fn times_x32(self, a: Self::Reg) -> Self::Reg;
}

/// What a low word's last four bits add to the highest byte in [`Lanes::reduce`].
const UNDER: [u8; 16] = [
    0x00, 0xf5, 0x5a, 0xaf, 0xb4, 0x41, 0xee, 0x1b, 0xd8, 0x2d, 0x82, 0x77, 0x6c, 0x99, 0x36, 0xc3,
];

/// The same word twice.
const fn twice(word: u64) -> Block {
    Block((word as u128) << 64 | word as u128)
}

/// The words' low halves.
const EVEN: Block = twice(0xffff_ffff);

/// A computation that runs on any [`Lanes`].
pub(crate) trait Clmul {
    fn run<L: Lanes>(self, lanes: L);
}

/// Runs `kernel` on the best engine the machine has that is no better than `backend`.
pub(crate) fn dispatch<K: Clmul>(backend: Backend, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    {
        let narrow = is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1");
        let double =
            narrow && is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx2");
        let wide =
            double && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        if wide && backend >= Backend::Vaes {
            // SAFETY: the instructions were just detected.
            return unsafe { x86::run_wide(kernel) };
        }
        if double && backend >= Backend::Vaes256 {
            // SAFETY: the instructions were just detected.
            return unsafe { x86::run_double(kernel) };
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
pub(crate) struct Portable;

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

/// [`Lanes::reduce`] of one word.
fn reduced(product: u128) -> u128 {
    let word = |v: u128| v & u128::from(u64::MAX);
    let twice = |v: u128, by: u32| v ^ v >> by;
    let v = word(product);
    // The last bits over one another, in the place at the top where they come in.
    let under = word(v << 63 ^ v << 61 ^ v << 60);
    product >> 64 ^ twice(twice(v, 1), 3) ^ twice(twice(under, 1), 3)
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
    fn reduce(self, low: Block, high: Block) -> Block {
        Block(reduced(low.0) | reduced(high.0) << 64)
    }

    #[inline(always)]
    fn even(self, a: Block) -> Block {
        a & EVEN
    }

    #[inline(always)]
    fn odd(self, a: Block) -> Block {
        Block(a.0 >> 32) & EVEN
    }

    #[inline(always)]
    fn pair(self, even: Block, odd: Block) -> Block {
        Block(even.0 | odd.0 << 32)
    }

    #[inline(always)]
    fn times_x32(self, a: Block) -> Block {
        let sum = a ^ Block(a.0 << 8);
        let sum = a ^ Block(sum.0 << 4);
        let sum = a ^ Block(sum.0 << 2);
        let sum = a ^ Block(sum.0 << 1);
        let high = a.0 >> 64 << 64;
        Block((sum.0 << 1) ^ (a.0 + high).rotate_left(64) ^ high)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Clmul, EVEN, Lanes, UNDER, twice};
    use crate::Block;

    /// PCLMULQDQ: one block a register. Constructed in [`run_narrow`] only.
    #[derive(Clone, Copy)]
    pub(super) struct Narrow(());

    /// VPCLMULQDQ with AVX2: two blocks a register. Constructed in [`run_double`] only.
    #[derive(Clone, Copy)]
    pub(super) struct Double(());

    /// VPCLMULQDQ with AVX-512: four blocks a register. Constructed in [`run_wide`] only.
    #[derive(Clone, Copy)]
    pub(super) struct Wide(());

    /// # Safety
    /// The machine has PCLMULQDQ and SSE4.1.
    #[target_feature(enable = "pclmulqdq,sse2,ssse3,sse4.1")]
    pub(super) unsafe fn run_narrow<K: Clmul>(kernel: K) {
        kernel.run(Narrow(()));
    }

    /// # Safety
    /// The machine has VPCLMULQDQ, PCLMULQDQ and AVX2.
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq")]
    pub(super) unsafe fn run_double<K: Clmul>(kernel: K) {
        kernel.run(Double(()));
    }

    /// # Safety
    /// The machine has VPCLMULQDQ, PCLMULQDQ and AVX-512 F and BW.
    #[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq")]
    pub(super) unsafe fn run_wide<K: Clmul>(kernel: K) {
        kernel.run(Wide(()));
    }

    /// [`Lanes`] of registers of a width: the instructions differ in name only.
    macro_rules! lanes {
        ($engine:ty, $reg:ty, $width:literal, $load:ident, $store:ident, $broadcast:ident, $xor:ident, $and:ident, $or:ident,
         $clmul:ident, $unpack_low:ident, $unpack_high:ident, $shuffle:ident, $right:ident, $left:ident, $swap:ident, $add:ident) => {
            // SAFETY of every block below: an engine exists only inside its `run_…`, whose caller has checked that the
            // machine has the instructions; `load` and `store` check the slice's length.
            impl Lanes for $engine {
                type Reg = $reg;
                const WIDTH: usize = $width;

                #[inline(always)]
                fn load(self, from: &[Block]) -> $reg {
                    let from = &from[..$width];
                    // SAFETY: `WIDTH` blocks are readable bytes, as many as a register has.
                    unsafe { $load(from.as_ptr().cast()) }
                }

                #[inline(always)]
                fn store(self, to: &mut [Block], value: $reg) {
                    let to = &mut to[..$width];
                    // SAFETY: `WIDTH` blocks are writable bytes, as many as a register has.
                    unsafe { $store(to.as_mut_ptr().cast(), value) }
                }

                #[inline(always)]
                fn splat(self, block: Block) -> $reg {
                    // SAFETY: a block is 16 readable bytes; for the instructions see above.
                    unsafe { $broadcast(_mm_loadu_si128((&raw const block).cast())) }
                }

                #[inline(always)]
                fn xor(self, a: $reg, b: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $xor(a, b) }
                }

                #[inline(always)]
                fn low(self, a: $reg, b: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $clmul::<0x00>(a, b) }
                }

                #[inline(always)]
                fn high(self, a: $reg, b: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $clmul::<0x11>(a, b) }
                }

                #[inline(always)]
                fn reduce(self, low: $reg, high: $reg) -> $reg {
                    let under = self.splat(Block(u128::from_le_bytes(UNDER)));
                    let last = self.splat(twice(0x0f << 56));
                    // SAFETY: see above.
                    unsafe {
                        let (v, rest) = ($unpack_low(low, high), $unpack_high(low, high));
                        let under = $shuffle(under, $and($left::<56>(v), last));
                        let v = $xor(v, $right::<1>(v));
                        let v = $xor(v, $right::<3>(v));
                        $xor(v, $xor(rest, under))
                    }
                }

                #[inline(always)]
                fn even(self, a: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $and(a, self.splat(EVEN)) }
                }

                #[inline(always)]
                fn odd(self, a: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $right::<32>(a) }
                }

                #[inline(always)]
                fn pair(self, even: $reg, odd: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe { $or(even, $left::<32>(odd)) }
                }

                #[inline(always)]
                fn times_x32(self, a: $reg) -> $reg {
                    // SAFETY: see above.
                    unsafe {
                        let sum = $xor(a, $left::<8>(a));
                        let sum = $xor(a, $left::<4>(sum));
                        let sum = $xor(a, $left::<2>(sum));
                        let sum = $xor(a, $left::<1>(sum));
                        let high = $and(a, self.splat(Block(u128::MAX << 64)));
                        let crossed = $swap::<0x4e>($add(a, high));
                        $xor($left::<1>(sum), $xor(crossed, high))
                    }
                }
            }
        };
    }

    #[inline(always)]
    fn same(block: __m128i) -> __m128i {
        block
    }

    lanes!(
        Narrow,
        __m128i,
        1,
        _mm_loadu_si128,
        _mm_storeu_si128,
        same,
        _mm_xor_si128,
        _mm_and_si128,
        _mm_or_si128,
        _mm_clmulepi64_si128,
        _mm_unpacklo_epi64,
        _mm_unpackhi_epi64,
        _mm_shuffle_epi8,
        _mm_srli_epi64,
        _mm_slli_epi64,
        _mm_shuffle_epi32,
        _mm_add_epi64
    );
    lanes!(
        Double,
        __m256i,
        2,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_broadcastsi128_si256,
        _mm256_xor_si256,
        _mm256_and_si256,
        _mm256_or_si256,
        _mm256_clmulepi64_epi128,
        _mm256_unpacklo_epi64,
        _mm256_unpackhi_epi64,
        _mm256_shuffle_epi8,
        _mm256_srli_epi64,
        _mm256_slli_epi64,
        _mm256_shuffle_epi32,
        _mm256_add_epi64
    );
    lanes!(
        Wide,
        __m512i,
        4,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        _mm512_broadcast_i32x4,
        _mm512_xor_si512,
        _mm512_and_si512,
        _mm512_or_si512,
        _mm512_clmulepi64_epi128,
        _mm512_unpacklo_epi64,
        _mm512_unpackhi_epi64,
        _mm512_shuffle_epi8,
        _mm512_srli_epi64,
        _mm512_slli_epi64,
        _mm512_shuffle_epi32,
        _mm512_add_epi64
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

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

    #[test]
    fn a_reduced_product_times_w_to_the_64_is_the_product() {
        // Modulo the field's polynomial, bit by bit from the top.
        let modulo = |mut v: u128| {
            for i in (64..128).rev() {
                if v >> i & 1 == 1 {
                    v ^= (1 << 64 | 0b1011 << 60 | 1) << (i - 64);
                }
            }
            v
        };
        let mut prg = Prg::from_seed(Block(7));
        let corners = [0, 1, 8, 15, 1 << 63, 1 << 64, u128::MAX].map(Block);
        for v in corners
            .into_iter()
            .chain((0..100).map(|_| prg.next_block()))
        {
            assert_eq!(modulo(reduced(v.0) << 64), modulo(v.0));
        }
    }

    /// Every operation on the same registers, one after the other.
    struct Every<'a>(&'a [Block], &'a mut [Block]);

    const OPERATIONS: usize = 8;

    impl Clmul for Every<'_> {
        fn run<L: Lanes>(self, l: L) {
            let Self(input, output) = self;
            let (pairs, rooms) = (input.chunks(8), output.chunks_mut(4 * OPERATIONS));
            for (pair, room) in pairs.zip(rooms) {
                for first in (0..4).step_by(L::WIDTH) {
                    let (a, b) = (l.load(&pair[first..]), l.load(&pair[4 + first..]));
                    let results = [
                        l.xor(a, l.splat(Block(0x1234 << 70 | 5))),
                        l.low(a, b),
                        l.high(a, b),
                        l.reduce(a, b),
                        l.even(a),
                        l.odd(a),
                        l.pair(l.even(a), l.even(b)),
                        l.times_x32(l.even(a)),
                    ];
                    for (r, &result) in results.iter().enumerate() {
                        l.store(&mut room[4 * r + first..], result);
                    }
                }
            }
        }
    }

    #[test]
    fn engines_agree_on_every_operation() {
        let mut input = vec![Block::ZERO; 8 * 100];
        Prg::from_seed(Block(8)).fill_blocks(&mut input);
        let results = |backend| {
            let mut output = vec![Block::ZERO; 100 * 4 * OPERATIONS];
            dispatch(backend, Every(&input, &mut output));
            output
        };
        let expected = results(Backend::Portable);
        for backend in Backend::available() {
            assert!(results(backend) == expected, "{backend:?}");
        }
    }
}
