//! The streams with AES in registers of one, two or four blocks.

use std::arch::x86_64::*;

use zeroize::Zeroizing;

use crate::simd::aesni::{self, Schedule};
use crate::{Backend, Block};

/// Registers side by side: what hides the latency of a round, with those of the next leaf.
const REGS: usize = 4;
type Regs<R> = [R; REGS];

/// Bits of a leaf's number whose sums stay in registers, as far as there are so many.
const LOW: usize = 4;

/// The leaves' keys and the counter that all are at.
pub(super) struct Ciphers {
    keys: Zeroizing<Vec<Schedule>>,
    at: u64,
    backend: Backend,
}

impl Ciphers {
    /// # Safety
    /// The machine has `backend`, which is not the portable one.
    pub(super) unsafe fn new(backend: Backend, seeds: &[Block]) -> Self {
        let mut keys = Zeroizing::new(Vec::with_capacity(seeds.len()));
        for &seed in seeds {
            // SAFETY: every backend but the portable one has AES-NI.
            keys.push(unsafe { aesni::expand(seed) });
        }
        Self {
            keys,
            at: 0,
            backend,
        }
    }

    pub(super) fn keys(&self) -> &[Schedule] {
        &self.keys
    }

    /// Where the next `length` blocks start.
    pub(super) fn advance(&mut self, length: usize) -> u64 {
        let at = self.at;
        self.at += length as u64;
        at
    }

    /// The sums of one tree, a part of the keys, from the streams' block `at` on.
    pub(super) fn add_streams(
        &self,
        tree: &[Schedule],
        first: usize,
        at: u64,
        planes: &mut [Block],
        sum: &mut [Block],
    ) {
        // SAFETY: the machine has the backend, as promised to `new`.
        unsafe {
            match self.backend {
                Backend::Vaes => four_blocks(tree, first, at, planes, sum),
                Backend::Vaes256 => two_blocks(tree, first, at, planes, sum),
                _ => one_block(tree, first, at, planes, sum),
            }
        }
    }
}

/// A register of blocks.
///
/// # Safety
/// All methods ask for a machine that has the register's instructions; those with pointers, for `BLOCKS` blocks there.
trait Register: Copy {
    const BLOCKS: usize;
    unsafe fn load(from: *const Block) -> Self;
    unsafe fn store(self, to: *mut Block);
    unsafe fn xor(self, other: Self) -> Self;
    /// The same in every block.
    unsafe fn splat(block: __m128i) -> Self;
    /// A round of AES.
    unsafe fn round(self, key: Self) -> Self;
    unsafe fn last_round(self, key: Self) -> Self;
}

/// Defines a register by its intrinsics, and the function for machines with the features.
macro_rules! register {
    (
        $name:ident, $features:literal, $reg:ty, $blocks:literal,
        $load:ident, $store:ident, $xor:ident, $splat:expr, $round:ident, $last:ident
    ) => {
        impl Register for $reg {
            const BLOCKS: usize = $blocks;
            #[inline(always)]
            unsafe fn load(from: *const Block) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $load(from.cast()) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut Block) {
                // SAFETY: the caller's promise.
                unsafe { $store(to.cast(), self) }
            }
            #[inline(always)]
            unsafe fn xor(self, other: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $xor(self, other) }
            }
            #[inline(always)]
            unsafe fn splat(block: __m128i) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $splat(block) }
            }
            #[inline(always)]
            unsafe fn round(self, key: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $round(self, key) }
            }
            #[inline(always)]
            unsafe fn last_round(self, key: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { $last(self, key) }
            }
        }

        /// [`add_streams`] in registers of so many blocks.
        ///
        /// # Safety
        /// The machine has the features.
        #[target_feature(enable = $features)]
        unsafe fn $name(
            tree: &[Schedule],
            first: usize,
            at: u64,
            planes: &mut [Block],
            sum: &mut [Block],
        ) {
            // SAFETY: the caller's promise.
            unsafe { add_streams::<$reg>(tree, first, at, planes, sum) }
        }
    };
}

#[rustfmt::skip]
register!(
    four_blocks, "avx512f,vaes,aes", __m512i, 4, _mm512_loadu_si512, _mm512_storeu_si512,
    _mm512_xor_si512, _mm512_broadcast_i32x4, _mm512_aesenc_epi128, _mm512_aesenclast_epi128
);
#[rustfmt::skip]
register!(
    two_blocks, "avx2,vaes,aes", __m256i, 2, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm256_xor_si256, _mm256_broadcastsi128_si256, _mm256_aesenc_epi128, _mm256_aesenclast_epi128
);
#[rustfmt::skip]
register!(
    one_block, "aes,sse4.1", __m128i, 1, _mm_loadu_si128, _mm_storeu_si128,
    _mm_xor_si128, same, _mm_aesenc_si128, _mm_aesenclast_si128
);

/// # Safety
/// None is asked for; the others have to.
#[inline(always)]
unsafe fn same(block: __m128i) -> __m128i {
    block
}

/// The sums of one tree, from the streams' block `at` on.
///
/// # Safety
/// As of [`Register`], of all functions from here on.
#[inline(always)]
unsafe fn add_streams<R: Register>(
    tree: &[Schedule],
    first: usize,
    at: u64,
    planes: &mut [Block],
    sum: &mut [Block],
) {
    let length = sum.len();
    let bits = planes.len() / length;
    let step = REGS * R::BLOCKS;
    // SAFETY: the caller's promise.
    unsafe {
        for start in (0..length).step_by(step) {
            let counters = counters(at + start as u64);
            let mut low = [zero::<R>(); LOW];
            // Sixteen leaves, or as many as there are; the higher bits of their numbers are `high`.
            for (high, leaves) in sixteens(tree, first).enumerate() {
                let missing = if high == 0 { first } else { 0 };
                let all = add_sixteen(leaves, missing, &counters, &mut low);
                add_to(&mut sum[start..][..step], &all, high == 0);
                for (b, plane) in planes.chunks_exact_mut(length).enumerate().skip(LOW) {
                    if high >> (b - LOW) & 1 == 1 {
                        add_to(&mut plane[start..][..step], &all, high == 1 << (b - LOW));
                    }
                }
            }
            for (plane, low) in planes.chunks_exact_mut(length).zip(&low).take(bits) {
                add_to(&mut plane[start..][..step], low, true);
            }
        }
    }
}

/// The leaves whose numbers differ in the lowest four bits only.
fn sixteens(tree: &[Schedule], first: usize) -> impl Iterator<Item = &[Schedule]> {
    let (head, rest) = tree.split_at(tree.len().min(16 - first));
    std::iter::once(head).chain(rest.chunks_exact(16))
}

/// The sum of at most sixteen streams; adds those of the set bits of their numbers to `low`. `missing` is 1
/// if the first of them is not there.
#[inline(always)]
unsafe fn add_sixteen<R: Register>(
    leaves: &[Schedule],
    missing: usize,
    counters: &Regs<R>,
    low: &mut [Regs<R>; LOW],
) -> Regs<R> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut all = zero();
        for four in 0..(leaves.len() + missing) / 4 {
            let at = 4 * four - missing * usize::from(four > 0);
            let (mut sum, mut rest) = (zero(), &leaves[at..]);
            if four > 0 || missing == 0 {
                sum = stream(&rest[0], counters);
                rest = &rest[1..];
            }
            let second = stream(&rest[0], counters);
            xor(&mut low[0], &second);
            xor(&mut sum, &second);
            let mut third = stream(&rest[1], counters);
            let fourth = stream(&rest[2], counters);
            xor(&mut low[0], &fourth);
            xor(&mut third, &fourth);
            xor(&mut low[1], &third);
            xor(&mut sum, &third);
            if four & 1 == 1 {
                xor(&mut low[2], &sum);
            }
            if four & 2 == 2 {
                xor(&mut low[3], &sum);
            }
            xor(&mut all, &sum);
        }
        all
    }
}

/// AES in counter mode.
#[inline(always)]
unsafe fn stream<R: Register>(keys: &Schedule, counters: &Regs<R>) -> Regs<R> {
    let mut x = *counters;
    // SAFETY: the caller's promise.
    unsafe {
        let key = R::splat(keys[0]);
        for x in &mut x {
            *x = x.xor(key);
        }
        for &key in &keys[1..10] {
            let key = R::splat(key);
            for x in &mut x {
                *x = x.round(key);
            }
        }
        let key = R::splat(keys[10]);
        for x in &mut x {
            *x = x.last_round(key);
        }
    }
    x
}

/// Consecutive 128-bit values (below 2^64) from `base` on.
#[inline(always)]
unsafe fn counters<R: Register>(base: u64) -> Regs<R> {
    let mut blocks = [Block::ZERO; 4 * REGS];
    for (i, block) in blocks.iter_mut().enumerate() {
        *block = Block(u128::from(base + i as u64));
    }
    // SAFETY: the caller's promise; a register has at most four blocks.
    unsafe {
        let mut x = zero::<R>();
        for (x, blocks) in x.iter_mut().zip(blocks.chunks_exact(R::BLOCKS)) {
            *x = R::load(blocks.as_ptr());
        }
        x
    }
}

#[inline(always)]
unsafe fn zero<R: Register>() -> Regs<R> {
    // SAFETY: the caller's promise.
    unsafe { [R::splat(_mm_setzero_si128()); REGS] }
}

#[inline(always)]
unsafe fn xor<R: Register>(to: &mut Regs<R>, from: &Regs<R>) {
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: the caller's promise.
        *to = unsafe { to.xor(*from) };
    }
}

/// Adds to as many blocks as the registers have, or overwrites them.
#[inline(always)]
unsafe fn add_to<R: Register>(to: &mut [Block], from: &Regs<R>, overwrite: bool) {
    for (to, from) in to.chunks_exact_mut(R::BLOCKS).zip(from) {
        // SAFETY: the caller's promise; the chunk has as many blocks as a register.
        unsafe {
            let sum = if overwrite {
                *from
            } else {
                from.xor(R::load(to.as_ptr()))
            };
            sum.store(to.as_mut_ptr());
        }
    }
}
