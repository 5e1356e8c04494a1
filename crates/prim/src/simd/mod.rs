//! Run-time choice between the AES engines, and the trait that lets one kernel serve them all.
//!
//! A kernel is written once, generically, against [`Engine`] (registers of one, two or four blocks) and
//! handed to [`crate::aes::Aes128::dispatch`], which runs it inside a function compiled for the
//! instruction set at hand.

#[cfg(target_arch = "x86_64")]
pub(crate) mod aesni;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
pub(crate) mod clmul;
pub(crate) mod portable;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vaes;

use std::sync::OnceLock;

use crate::Block;

/// An instruction set for the kernels of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Backend {
    /// Portable Rust; AES by the `aes` crate.
    Portable,
    /// x86-64 AES-NI with SSE4.1: one block a register.
    AesNi,
    /// x86-64 AES-NI with AVX2 and BMI2: two blocks a register, AES a block at a time (Haswell to Comet Lake, Zen 1 and 2).
    Avx2,
    /// x86-64 VAES with AVX2 and BMI2: two blocks a register (Zen 3, Alder Lake and later without AVX-512).
    Vaes256,
    /// x86-64 VAES with AVX-512: four blocks a register.
    Vaes,
}

/// Every backend, slowest first, and its name in `VOLVELLE_SIMD`.
const NAMES: [(Backend, &str); 5] = [
    (Backend::Portable, "portable"),
    (Backend::AesNi, "aesni"),
    (Backend::Avx2, "avx2"),
    (Backend::Vaes256, "vaes256"),
    (Backend::Vaes, "vaes"),
];

impl Backend {
    /// All backends this machine can run, slowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let best = Self::best();
        let all = NAMES.into_iter().map(|(backend, _)| backend);
        all.filter(|&b| b <= best).collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn best() -> Self {
        let aesni = is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse4.1");
        let avx2 = aesni
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("popcnt");
        let vaes = avx2 && is_x86_feature_detected!("vaes");
        let avx512 = vaes
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        [
            (avx512, Self::Vaes),
            (vaes, Self::Vaes256),
            (avx2, Self::Avx2),
            (aesni, Self::AesNi),
        ]
        .into_iter()
        .find_map(|(has, backend)| has.then_some(backend))
        .unwrap_or(Self::Portable)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best() -> Self {
        Self::Portable
    }

    /// The backend in use: the best available one, or the one `VOLVELLE_SIMD` names if the machine
    /// has it. An unknown name is ignored.
    #[must_use]
    pub fn current() -> Self {
        static CURRENT: OnceLock<Backend> = OnceLock::new();
        *CURRENT.get_or_init(|| {
            let wanted = std::env::var("VOLVELLE_SIMD");
            let named = NAMES
                .into_iter()
                .find(|&(_, name)| wanted.as_deref() == Ok(name));
            named.map_or(Self::best(), |(backend, _)| backend.min(Self::best()))
        })
    }
}

/// Registers of `WIDTH` blocks and the operations kernels need on them.
///
/// # Safety
/// Implementors' methods may use instructions that only exist where the engine was constructed
/// after detecting them; engines are built by `Aes128::dispatch` alone.
pub(crate) trait Engine: Copy {
    /// A register.
    type Reg: Copy;
    /// Blocks in a register; divides 8.
    const WIDTH: usize;

    /// Reads `WIDTH` blocks from the start of `from` (which is at least that long).
    fn load(self, from: &[Block]) -> Self::Reg;
    /// Writes `WIDTH` blocks to the start of `to` (which is at least that long).
    fn store(self, to: &mut [Block], value: Self::Reg);
    /// Reads the first `WIDTH / 2` blocks of `from`; the other lanes are zero. One block, if `WIDTH` is 1.
    #[inline(always)]
    fn load_half(self, from: &[Block]) -> Self::Reg {
        self.load(from)
    }
    /// Writes the first `WIDTH / 2` blocks, or the only one.
    #[inline(always)]
    fn store_half(self, to: &mut [Block], value: Self::Reg) {
        self.store(to, value);
    }
    /// The same block in every lane.
    fn splat(self, block: Block) -> Self::Reg;
    /// Bitwise exclusive or.
    fn xor(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Bitwise and.
    fn and(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Adds 64-bit halves lane by lane.
    fn add64(self, a: Self::Reg, b: Self::Reg) -> Self::Reg;
    /// Shifts 64-bit halves left by less than 64.
    fn shl64(self, a: Self::Reg, bits: u32) -> Self::Reg;
    /// Shifts 64-bit halves right by less than 64.
    fn shr64(self, a: Self::Reg, bits: u32) -> Self::Reg;
    /// `value ⊕ (fix where the 64-bit halves of `at` and `target` are equal, else 0)`.
    fn xor_where_equal(
        self,
        value: Self::Reg,
        at: Self::Reg,
        target: Self::Reg,
        fix: Self::Reg,
    ) -> Self::Reg;
    /// `value ⊕ (fix where the lowest bit of a block of `control` is 1, else 0)`.
    fn xor_where_odd(self, value: Self::Reg, control: Self::Reg, fix: Self::Reg) -> Self::Reg;
    /// The linear orthomorphism σ(a‖b) = (a⊕b)‖a of Guo–Katz–Wang–Yu (IEEE S&P 2020, §7.3), `a` the
    /// high half.
    fn sigma(self, x: Self::Reg) -> Self::Reg;
    /// AES-128 under the engine's key, `N` registers side by side.
    fn encrypt<const N: usize>(self, x: [Self::Reg; N]) -> [Self::Reg; N];
}

/// A computation that runs on any [`Engine`].
pub(crate) trait Kernel {
    type Output;
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Asks for the cache line of a block, if there is one.
#[inline(always)]
pub(crate) fn prefetch(block: *const Block) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch has no effect but on caches, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(block.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = block;
}
