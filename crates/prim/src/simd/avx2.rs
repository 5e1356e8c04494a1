//! The AVX2 engines: two blocks a 256-bit register, AES by VAES where the machine has it and by AES-NI, half a
//! register at a time, where not.

use std::arch::x86_64::*;

use super::{Engine, Kernel, aesni};
use crate::Block;

/// Eleven round keys, each twice.
#[repr(align(32))]
struct Wide([__m256i; 11]);

/// AVX2 engine, its AES by VAES if `VAES`. Constructed in [`run`] and [`run_vaes`] only, after detection.
#[derive(Clone, Copy)]
pub(crate) struct Avx2<'a, const VAES: bool>(&'a Wide);

/// Runs `kernel` compiled for AES-NI and AVX2.
///
/// # Safety
/// The machine has AES-NI and AVX2.
#[target_feature(enable = "avx2,aes")]
pub(crate) unsafe fn run<K: Kernel>(schedule: &aesni::Schedule, kernel: K) -> K::Output {
    kernel.run(Avx2::<false>(&widen(schedule)))
}

/// Runs `kernel` compiled for VAES and AVX2.
///
/// # Safety
/// The machine has VAES, AES-NI and AVX2.
#[target_feature(enable = "avx2,vaes,aes")]
pub(crate) unsafe fn run_vaes<K: Kernel>(schedule: &aesni::Schedule, kernel: K) -> K::Output {
    kernel.run(Avx2::<true>(&widen(schedule)))
}

#[target_feature(enable = "avx2")]
fn widen(schedule: &aesni::Schedule) -> Wide {
    let mut wide = Wide([_mm256_setzero_si256(); 11]);
    for (wide, &key) in wide.0.iter_mut().zip(schedule) {
        *wide = _mm256_broadcastsi128_si256(key);
    }
    wide
}

// SAFETY of every block below: an Avx2 exists only inside `run` and `run_vaes`, whose callers have checked that the
// machine has the instructions; `load` and `store` check the slice's length.
impl<const VAES: bool> Engine for Avx2<'_, VAES> {
    type Reg = __m256i;
    const WIDTH: usize = 2;

    #[inline(always)]
    fn load(self, from: &[Block]) -> __m256i {
        let from = &from[..2];
        // SAFETY: two blocks are 32 readable bytes.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [Block], value: __m256i) {
        let to = &mut to[..2];
        // SAFETY: two blocks are 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) }
    }

    #[inline(always)]
    fn load_half(self, from: &[Block]) -> __m256i {
        let from: &Block = &from[0];
        // SAFETY: one block is 16 readable bytes.
        unsafe { _mm256_zextsi128_si256(_mm_loadu_si128((from as *const Block).cast())) }
    }

    #[inline(always)]
    fn store_half(self, to: &mut [Block], value: __m256i) {
        let to: &mut Block = &mut to[0];
        // SAFETY: one block is 16 writable bytes.
        unsafe { _mm_storeu_si128((to as *mut Block).cast(), _mm256_castsi256_si128(value)) }
    }

    #[inline(always)]
    fn splat(self, block: Block) -> __m256i {
        // SAFETY: a block is 16 readable bytes; for the instructions see above.
        unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128((&raw const block).cast())) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn add64(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi64(a, b) }
    }

    #[inline(always)]
    fn shl64(self, a: __m256i, bits: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sll_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn shr64(self, a: __m256i, bits: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_srl_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn xor_where_equal(
        self,
        value: __m256i,
        at: __m256i,
        target: __m256i,
        fix: __m256i,
    ) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_xor_si256(value, _mm256_and_si256(fix, _mm256_cmpeq_epi64(at, target))) }
    }

    #[inline(always)]
    fn xor_where_odd(self, value: __m256i, control: __m256i, fix: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe {
            // Bit 0 to the sign of all four 32-bit words, then over the whole word.
            let low = _mm256_slli_epi32(_mm256_shuffle_epi32(control, 0), 31);
            _mm256_xor_si256(value, _mm256_and_si256(fix, _mm256_srai_epi32(low, 31)))
        }
    }

    #[inline(always)]
    fn sigma(self, x: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let high_only = _mm256_set_epi64x(-1, 0, -1, 0);
            _mm256_xor_si256(
                _mm256_shuffle_epi32(x, 0x4e),
                _mm256_and_si256(x, high_only),
            )
        }
    }

    #[inline(always)]
    fn encrypt<const N: usize>(self, x: [__m256i; N]) -> [__m256i; N] {
        if VAES {
            // SAFETY: see above; with `VAES`, so has `run_vaes`'s caller.
            unsafe { encrypt_whole(&self.0.0, x) }
        } else {
            // SAFETY: see above.
            unsafe { encrypt_halves(&self.0.0, x) }
        }
    }
}

/// # Safety
/// The machine has VAES and AVX2.
#[inline(always)]
unsafe fn encrypt_whole<const N: usize>(keys: &[__m256i; 11], mut x: [__m256i; N]) -> [__m256i; N] {
    // SAFETY: the caller's promise.
    unsafe {
        for x in &mut x {
            *x = _mm256_xor_si256(*x, keys[0]);
        }
        for key in &keys[1..10] {
            for x in &mut x {
                *x = _mm256_aesenc_epi128(*x, *key);
            }
        }
        for x in &mut x {
            *x = _mm256_aesenclast_epi128(*x, keys[10]);
        }
    }
    x
}

/// Four registers at a time: eight halves hide the latency of a round, and there are sixteen registers.
///
/// # Safety
/// The machine has AES-NI and AVX2.
#[inline(always)]
unsafe fn encrypt_halves<const N: usize>(
    keys: &[__m256i; 11],
    mut x: [__m256i; N],
) -> [__m256i; N] {
    const { assert!(N.is_multiple_of(4)) };
    let mut at = 0;
    while at < N {
        let four = [x[at], x[at + 1], x[at + 2], x[at + 3]];
        // SAFETY: the caller's promise.
        let four = unsafe { encrypt_four(keys, four) };
        (x[at], x[at + 1]) = (four[0], four[1]);
        (x[at + 2], x[at + 3]) = (four[2], four[3]);
        at += 4;
    }
    x
}

/// # Safety
/// As [`encrypt_halves`].
#[inline(always)]
unsafe fn encrypt_four(keys: &[__m256i; 11], mut x: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut low = [_mm_setzero_si128(); 4];
        let mut high = low;
        for i in 0..4 {
            let x = _mm256_xor_si256(x[i], keys[0]);
            (low[i], high[i]) = (_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        }
        for key in &keys[1..10] {
            let key = _mm256_castsi256_si128(*key);
            for i in 0..4 {
                low[i] = _mm_aesenc_si128(low[i], key);
                high[i] = _mm_aesenc_si128(high[i], key);
            }
        }
        let key = _mm256_castsi256_si128(keys[10]);
        for i in 0..4 {
            low[i] = _mm_aesenclast_si128(low[i], key);
            high[i] = _mm_aesenclast_si128(high[i], key);
            x[i] = _mm256_set_m128i(high[i], low[i]);
        }
    }
    x
}
