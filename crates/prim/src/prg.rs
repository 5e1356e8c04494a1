//! Pseudorandom generator: AES-128 in counter mode under a secret seed.

use zeroize::Zeroize;

use crate::aes::{Aes128, Regs, Step, counters, map_groups};
use crate::simd::{Engine, Kernel};
use crate::{Block, mask};

/// A stream of pseudorandom blocks `AES_seed(0), AES_seed(1), …` (NIST SP 800-38A counter mode).
/// Secure as a PRG for far fewer than 2^64 blocks. Every call starts at a fresh block.
pub struct Prg {
    cipher: Aes128,
    counter: u64,
}

impl Prg {
    /// From a seed that must be secret and used for nothing else.
    #[must_use]
    pub fn from_seed(seed: Block) -> Self {
        Self {
            cipher: Aes128::new(seed),
            counter: 0,
        }
    }

    /// From the operating system's entropy.
    ///
    /// # Panics
    /// If the operating system has none to give, which leaves no safe way on.
    #[must_use]
    pub fn from_os() -> Self {
        let mut seed = [0; 16];
        #[expect(clippy::expect_used, reason = "without entropy nothing may go on")]
        getrandom::fill(&mut seed).expect("the operating system gives entropy");
        let prg = Self::from_seed(Block::from_bytes(seed));
        seed.zeroize();
        prg
    }

    /// A generator of its own, seeded from this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::from_seed(self.next_block())
    }

    /// Overwrites `out` with the next blocks.
    pub fn fill_blocks(&mut self, out: &mut [Block]) {
        struct Ctr<'a>(&'a mut [Block], u64);
        impl Kernel for Ctr<'_> {
            type Output = ();
            #[inline(always)]
            fn run<E: Engine>(self, e: E) {
                map_groups(e, self.0, &CtrStep(self.1));
            }
        }
        struct CtrStep(u64);
        impl Step for CtrStep {
            #[inline(always)]
            fn step<E: Engine>(&self, e: E, first: usize, _: Regs<E>) -> Regs<E> {
                let base = self.0.wrapping_add(first as u64);
                e.encrypt(counters(e, Block(u128::from(base))))
            }
        }
        let start = self.counter;
        self.counter += out.len() as u64;
        self.cipher.dispatch(Ctr(out, start));
    }

    /// The next block.
    #[must_use]
    pub fn next_block(&mut self) -> Block {
        let mut one = [Block::ZERO];
        self.fill_blocks(&mut one);
        one[0]
    }

    /// Overwrites `out` with pseudorandom bytes.
    pub fn fill_bytes(&mut self, out: &mut [u8]) {
        let mut buffer = [Block::ZERO; 64];
        for chunk in out.chunks_mut(size_of_val(&buffer)) {
            let blocks = chunk.len().div_ceil(16);
            self.fill_blocks(&mut buffer[..blocks]);
            chunk.copy_from_slice(&Block::as_bytes(&buffer)[..chunk.len()]);
        }
        buffer.zeroize();
    }

    /// A pseudorandom 64-bit word.
    #[must_use]
    pub fn next_u64(&mut self) -> u64 {
        self.next_block().0 as u64
    }

    /// Overwrites `out` with pseudorandom words.
    pub fn fill_u64(&mut self, out: &mut [u64]) {
        let mut buffer = [Block::ZERO; 64];
        for chunk in out.chunks_mut(128) {
            let blocks = chunk.len().div_ceil(2);
            self.fill_blocks(&mut buffer[..blocks]);
            for (word, pair) in chunk.chunks_mut(2).zip(&buffer) {
                word[0] = pair.0 as u64;
                if let Some(second) = word.get_mut(1) {
                    *second = (pair.0 >> 64) as u64;
                }
            }
        }
        buffer.zeroize();
    }

    /// Overwrites `out` with pseudorandom words of `bits` bits.
    pub fn fill_masked(&mut self, out: &mut [u64], bits: u32) {
        self.fill_u64(out);
        out.iter_mut().for_each(|w| *w &= mask(bits));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_counter_mode() {
        let seed = Block(42);
        let mut out = [Block::ZERO; 77];
        let mut prg = Prg::from_seed(seed);
        prg.fill_blocks(&mut out[..50]);
        prg.fill_blocks(&mut out[50..]);
        let aes = Aes128::new(seed);
        assert!(
            out.iter()
                .enumerate()
                .all(|(i, &b)| b == aes.encrypt(Block(i as u128)))
        );
    }

    #[test]
    fn fills_agree_and_os_seeds_differ() {
        let mut words = [0; 33];
        Prg::from_seed(Block(7)).fill_u64(&mut words);
        let mut bytes = [0; 33 * 8];
        Prg::from_seed(Block(7)).fill_bytes(&mut bytes);
        let from_bytes: Vec<u64> = bytes
            .chunks(8)
            .map(|c| u64::from_le_bytes(c.try_into().unwrap()))
            .collect();
        assert_eq!(words.as_slice(), from_bytes);
        assert!(Prg::from_os().next_block() != Prg::from_os().next_block());
    }
}
