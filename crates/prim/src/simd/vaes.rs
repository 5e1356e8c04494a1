//! The VAES engine: four blocks a 512-bit register.

use std::arch::x86_64::*;

use super::{Engine, Kernel, aesni};
use crate::Block;

/// Eleven round keys, each four times.
#[repr(align(64))]
struct Wide([__m512i; 11]);

/// VAES engine. Constructed in [`run`] only, after detection.
#[derive(Clone, Copy)]
pub(crate) struct Vaes<'a>(&'a Wide);

/// Runs `kernel` compiled for VAES and AVX-512.
///
/// # Safety
/// The machine has VAES, AES-NI and AVX-512 F, BW, DQ, VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vaes,aes")]
pub(crate) unsafe fn run<K: Kernel>(schedule: &aesni::Schedule, kernel: K) -> K::Output {
    let mut wide = Wide([_mm512_setzero_si512(); 11]);
    for (wide, &key) in wide.0.iter_mut().zip(schedule) {
        *wide = _mm512_broadcast_i32x4(key);
    }
    kernel.run(Vaes(&wide))
}

// SAFETY of every block below: a Vaes exists only inside `run`, whose caller has checked that the
// machine has the instructions; `load` and `store` check the slice's length.
impl Engine for Vaes<'_> {
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
    fn load_half(self, from: &[Block]) -> __m512i {
        let from = &from[..2];
        // SAFETY: two blocks are 32 readable bytes.
        unsafe { _mm512_zextsi256_si512(_mm256_loadu_si256(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn store_half(self, to: &mut [Block], value: __m512i) {
        let to = &mut to[..2];
        // SAFETY: two blocks are 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_castsi512_si256(value)) }
    }

    #[inline(always)]
    fn splat(self, block: Block) -> __m512i {
        self.load(&[block; 4])
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn add64(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_add_epi64(a, b) }
    }

    #[inline(always)]
    fn shl64(self, a: __m512i, bits: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sll_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn shr64(self, a: __m512i, bits: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_srl_epi64(a, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn xor_where_equal(
        self,
        value: __m512i,
        at: __m512i,
        target: __m512i,
        fix: __m512i,
    ) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_mask_xor_epi64(value, _mm512_cmpeq_epi64_mask(at, target), value, fix) }
    }

    #[inline(always)]
    fn xor_where_odd(self, value: __m512i, control: __m512i, fix: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let low = _mm512_shuffle_epi32(control, 0x44);
            let odd = _mm512_test_epi64_mask(low, _mm512_set1_epi64(1));
            _mm512_mask_xor_epi64(value, odd, value, fix)
        }
    }

    #[inline(always)]
    fn sigma(self, x: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let swapped = _mm512_shuffle_epi32(x, 0x4e);
            _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, x)
        }
    }

    #[inline(always)]
    fn encrypt<const N: usize>(self, mut x: [__m512i; N]) -> [__m512i; N] {
        let keys = &self.0.0;
        // SAFETY: see above.
        unsafe {
            for x in &mut x {
                *x = _mm512_xor_si512(*x, keys[0]);
            }
            for key in &keys[1..10] {
                for x in &mut x {
                    *x = _mm512_aesenc_epi128(*x, *key);
                }
            }
            for x in &mut x {
                *x = _mm512_aesenclast_epi128(*x, keys[10]);
            }
        }
        x
    }
}
