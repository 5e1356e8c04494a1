//! The AES-NI engine: one block a register.

use std::arch::x86_64::*;

use super::{Engine, Kernel};
use crate::Block;

/// Eleven round keys.
pub(crate) type Schedule = [__m128i; 11];

/// AES-NI engine. Constructed in [`run`] only, after detection.
#[derive(Clone, Copy)]
pub(crate) struct AesNi<'a>(&'a Schedule);

/// Runs `kernel` compiled for AES-NI.
///
/// # Safety
/// The machine has AES-NI and SSE4.1.
#[target_feature(enable = "aes,sse2,ssse3,sse4.1")]
pub(crate) unsafe fn run<K: Kernel>(schedule: &Schedule, kernel: K) -> K::Output {
    kernel.run(AesNi(schedule))
}

/// Expands a key (FIPS-197, §5.2).
///
/// # Safety
/// The machine has AES-NI.
#[target_feature(enable = "aes,sse2")]
pub(crate) unsafe fn expand(key: Block) -> Schedule {
    #[target_feature(enable = "aes,sse2")]
    fn next<const RCON: i32>(key: __m128i) -> __m128i {
        let assist = _mm_shuffle_epi32(_mm_aeskeygenassist_si128(key, RCON), 0xff);
        let mut k = _mm_xor_si128(key, _mm_slli_si128(key, 4));
        k = _mm_xor_si128(k, _mm_slli_si128(k, 8));
        _mm_xor_si128(k, assist)
    }
    // SAFETY: a Block is 16 readable bytes.
    let k0 = unsafe { _mm_loadu_si128((&raw const key).cast()) };
    let k1 = next::<0x01>(k0);
    let k2 = next::<0x02>(k1);
    let k3 = next::<0x04>(k2);
    let k4 = next::<0x08>(k3);
    let k5 = next::<0x10>(k4);
    let k6 = next::<0x20>(k5);
    let k7 = next::<0x40>(k6);
    let k8 = next::<0x80>(k7);
    let k9 = next::<0x1b>(k8);
    [k0, k1, k2, k3, k4, k5, k6, k7, k8, k9, next::<0x36>(k9)]
}

// SAFETY of every block below: an AesNi exists only inside `run`, whose caller has checked that the
// machine has the instructions; `load` and `store` check the slice's length.
impl Engine for AesNi<'_> {
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
    fn and(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_and_si128(a, b) }
    }

    #[inline(always)]
    fn add64(self, a: __m128i, b: __m128i) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_add_epi64(a, b) }
    }

    #[inline(always)]
    fn shl64(self, a: __m128i, bits: u32) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_sll_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn shr64(self, a: __m128i, bits: u32) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_srl_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn xor_where_equal(
        self,
        value: __m128i,
        at: __m128i,
        target: __m128i,
        fix: __m128i,
    ) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_xor_si128(value, _mm_and_si128(fix, _mm_cmpeq_epi64(at, target))) }
    }

    #[inline(always)]
    fn xor_where_odd(self, value: __m128i, control: __m128i, fix: __m128i) -> __m128i {
        // SAFETY: see above.
        unsafe {
            // Bit 0 to the sign of all four 32-bit words, then over the whole word.
            let low = _mm_slli_epi32(_mm_shuffle_epi32(control, 0), 31);
            _mm_xor_si128(value, _mm_and_si128(fix, _mm_srai_epi32(low, 31)))
        }
    }

    #[inline(always)]
    fn sigma(self, x: __m128i) -> __m128i {
        // SAFETY: see above.
        unsafe {
            let high_only = _mm_set_epi64x(-1, 0);
            _mm_xor_si128(_mm_shuffle_epi32(x, 0x4e), _mm_and_si128(x, high_only))
        }
    }

    #[inline(always)]
    fn encrypt<const N: usize>(self, mut x: [__m128i; N]) -> [__m128i; N] {
        // SAFETY: see above.
        unsafe {
            for x in &mut x {
                *x = _mm_xor_si128(*x, self.0[0]);
            }
            for key in &self.0[1..10] {
                for x in &mut x {
                    *x = _mm_aesenc_si128(*x, *key);
                }
            }
            for x in &mut x {
                *x = _mm_aesenclast_si128(*x, self.0[10]);
            }
        }
        x
    }
}
