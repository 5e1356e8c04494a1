//! AES-128 (FIPS-197), encryption only, many blocks at a time.

use crate::simd::{Engine, Kernel, portable::Portable};
#[cfg(target_arch = "x86_64")]
use crate::simd::{aesni, avx2, vaes};
use crate::{Backend, Block};

use ::aes::cipher::KeyInit;

/// AES-128 with an expanded key. The key is taken as public or as a seed whose owner zeroises it:
/// the schedule is overwritten when dropped.
pub struct Aes128 {
    schedule: Schedule,
}

enum Schedule {
    Portable(Box<::aes::Aes128>),
    #[cfg(target_arch = "x86_64")]
    AesNi(aesni::Schedule, Backend),
}

impl Drop for Aes128 {
    fn drop(&mut self) {
        match &mut self.schedule {
            // The `aes` crate wipes its own schedule.
            Schedule::Portable(_) => {}
            #[cfg(target_arch = "x86_64")]
            Schedule::AesNi(keys, _) => zeroize::Zeroize::zeroize(keys),
        }
    }
}

impl Aes128 {
    /// Expands `key` for the current backend.
    #[must_use]
    pub fn new(key: Block) -> Self {
        Self::with_backend(key, Backend::current())
    }

    /// Expands `key` for `backend`, or for the best the machine has if that is less.
    #[must_use]
    pub fn with_backend(key: Block, backend: Backend) -> Self {
        let usable = Backend::available();
        let backend = usable
            .into_iter()
            .rfind(|&b| b <= backend)
            .unwrap_or(Backend::Portable);
        let schedule = match backend {
            #[cfg(target_arch = "x86_64")]
            Backend::AesNi | Backend::Avx2 | Backend::Vaes256 | Backend::Vaes => {
                // SAFETY: `available` lists these only where AES-NI was detected.
                Schedule::AesNi(unsafe { aesni::expand(key) }, backend)
            }
            _ => Schedule::Portable(Box::new(::aes::Aes128::new(&key.to_bytes().into()))),
        };
        Self { schedule }
    }

    /// Runs a kernel on this key's engine.
    #[inline]
    pub(crate) fn dispatch<K: Kernel>(&self, kernel: K) -> K::Output {
        match &self.schedule {
            Schedule::Portable(cipher) => kernel.run(Portable(cipher)),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this variant is built only of backends whose instructions were detected, and all have AES-NI.
            Schedule::AesNi(keys, backend) => unsafe {
                match backend {
                    Backend::Vaes => vaes::run(keys, kernel),
                    Backend::Vaes256 => avx2::run_vaes(keys, kernel),
                    Backend::Avx2 => avx2::run(keys, kernel),
                    Backend::Portable | Backend::AesNi => aesni::run(keys, kernel),
                }
            },
        }
    }

    /// Encrypts one block.
    #[must_use]
    pub fn encrypt(&self, block: Block) -> Block {
        let mut one = [block];
        self.encrypt_blocks(&mut one);
        one[0]
    }

    /// Encrypts every block in place (ECB).
    pub fn encrypt_blocks(&self, blocks: &mut [Block]) {
        struct Ecb<'a>(&'a mut [Block]);
        impl Kernel for Ecb<'_> {
            type Output = ();
            #[inline(always)]
            fn run<E: Engine>(self, e: E) {
                map_groups(e, self.0, &Encrypt);
            }
        }
        struct Encrypt;
        impl Step for Encrypt {
            #[inline(always)]
            fn step<E: Engine>(&self, e: E, _: usize, x: Regs<E>) -> Regs<E> {
                e.encrypt(x)
            }
        }
        self.dispatch(Ecb(blocks));
    }
}

/// Registers side by side: enough to hide the latency of an AES round.
pub(crate) const LANES: usize = 8;

/// [`LANES`] registers of an engine.
pub(crate) type Regs<E> = [<E as Engine>::Reg; LANES];

/// A map over blocks, [`LANES`] registers at a time.
///
/// Kernels use such traits with `#[inline(always)]` methods, and loops instead of `array::from_fn` or
/// `map`: a closure is compiled without the engine's instructions and then not inlined.
pub(crate) trait Step {
    /// New values of the registers `x`, the first of which starts at block `first`.
    fn step<E: Engine>(&self, e: E, first: usize, x: Regs<E>) -> Regs<E>;
}

/// Loads [`LANES`] registers.
#[inline(always)]
pub(crate) fn load_regs<E: Engine>(e: E, from: &[Block]) -> Regs<E> {
    let mut x = [e.splat(Block::ZERO); LANES];
    for (i, x) in x.iter_mut().enumerate() {
        *x = e.load(&from[i * E::WIDTH..]);
    }
    x
}

/// Stores [`LANES`] registers.
#[inline(always)]
pub(crate) fn store_regs<E: Engine>(e: E, to: &mut [Block], x: Regs<E>) {
    for (i, x) in x.into_iter().enumerate() {
        e.store(&mut to[i * E::WIDTH..], x);
    }
}

/// Registers of consecutive 128-bit values from `base` on (the low half counts, wrapping).
#[inline(always)]
pub(crate) fn counters<E: Engine>(e: E, base: Block) -> Regs<E> {
    let lane = e.load(&[Block(0), Block(1), Block(2), Block(3)]);
    let step = e.splat(Block(E::WIDTH as u128));
    let mut x = [e.add64(e.splat(base), lane); LANES];
    for i in 1..LANES {
        x[i] = e.add64(x[i - 1], step);
    }
    x
}

/// Applies `step` to all of `blocks` in place; the tail is padded with zero blocks.
#[inline(always)]
pub(crate) fn map_groups<E: Engine, S: Step>(e: E, blocks: &mut [Block], step: &S) {
    let group = LANES * E::WIDTH;
    let mut chunks = blocks.chunks_exact_mut(group);
    let mut first = 0;
    for chunk in &mut chunks {
        let y = step.step(e, first, load_regs(e, chunk));
        store_regs(e, chunk, y);
        first += group;
    }
    let tail = chunks.into_remainder();
    if !tail.is_empty() {
        let mut padded = [Block::ZERO; LANES * 4];
        padded[..tail.len()].copy_from_slice(tail);
        let y = step.step(e, first, load_regs(e, &padded));
        store_regs(e, &mut padded, y);
        tail.copy_from_slice(&padded[..tail.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(hex: u128) -> Block {
        Block::from_bytes(hex.to_be_bytes())
    }

    #[test]
    fn fips_197_vectors_on_every_backend() {
        // FIPS-197, appendix B and appendix C.1.
        let vectors = [
            (
                0x2b7e151628aed2a6abf7158809cf4f3c,
                0x3243f6a8885a308d313198a2e0370734,
                0x3925841d02dc09fbdc118597196a0b32,
            ),
            (
                0x000102030405060708090a0b0c0d0e0f,
                0x00112233445566778899aabbccddeeff,
                0x69c4e0d86a7b0430d8cdb78070b4c55a,
            ),
        ];
        for backend in Backend::available() {
            for (key, plain, cipher) in vectors {
                let aes = Aes128::with_backend(block(key), backend);
                assert!(aes.encrypt(block(plain)) == block(cipher), "{backend:?}");
            }
        }
    }

    #[test]
    fn backends_agree_on_every_length() {
        let key = Block(0x1234_5678_9abc_def0_0fed_cba9_8765_4321);
        for len in 0..80u128 {
            let plain: Vec<Block> = (0..len).map(|i| Block(i * 0x9e37_79b9_7f4a_7c15)).collect();
            let runs: Vec<Vec<Block>> = Backend::available()
                .into_iter()
                .map(|backend| {
                    let mut blocks = plain.clone();
                    Aes128::with_backend(key, backend).encrypt_blocks(&mut blocks);
                    blocks
                })
                .collect();
            assert!(runs.windows(2).all(|w| w[0] == w[1]), "length {len}");
        }
    }
}
