//! Correlation-robust hashes from AES under a fixed public key π.
//!
//! * [`ccr`]: `H(x) = π(σ(x)) ⊕ σ(x)`, circular correlation robust in the random-permutation model
//!   (Guo, Katz, Wang, Yu, IEEE S&P 2020, §7.3). Inputs must not repeat.
//! * [`Tccr`]: `H(x, t) = π(π(x) ⊕ t) ⊕ π(x)`, tweakable circular correlation robust (same paper,
//!   §7.4); tweaks separate uses.
//!
//! Both are what turns Δ-correlated blocks into pads.

use std::sync::LazyLock;

use crate::Block;
use crate::aes::{Aes128, LANES, Regs, Step, counters, load_regs, map_groups, store_regs};
use crate::simd::{Engine, Kernel};

/// The public permutation: AES-128 under the first 128 bits of the fractional part of π. Nothing up
/// the sleeve; any fixed key serves.
pub(crate) static PERMUTATION: LazyLock<Aes128> =
    LazyLock::new(|| Aes128::new(Block(0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344)));

/// `H(x) = π(σ(x)) ⊕ σ(x)` of every block, in place.
pub fn ccr(blocks: &mut [Block]) {
    struct Ccr<'a>(&'a mut [Block]);
    impl Kernel for Ccr<'_> {
        type Output = ();
        #[inline(always)]
        fn run<E: Engine>(self, e: E) {
            map_groups(e, self.0, &CcrStep);
        }
    }
    struct CcrStep;
    impl Step for CcrStep {
        #[inline(always)]
        fn step<E: Engine>(&self, e: E, _: usize, x: Regs<E>) -> Regs<E> {
            ccr_regs(e, x)
        }
    }
    PERMUTATION.dispatch(Ccr(blocks));
}

/// [`ccr`] of registers.
#[inline(always)]
pub(crate) fn ccr_regs<E: Engine>(e: E, mut x: Regs<E>) -> Regs<E> {
    for x in &mut x {
        *x = e.sigma(*x);
    }
    let mut h = e.encrypt(x);
    for (h, x) in h.iter_mut().zip(x) {
        *h = e.xor(*h, x);
    }
    h
}

/// Tweakable hash of consecutive blocks, each to `width` output blocks.
///
/// Output `j < width` of block `i` has the tweak `(first + i) + 2^64·(j + 1)`.
pub struct Tccr {
    /// Tweak of the first block.
    pub first: u64,
    /// Output blocks an input block, at least 1.
    pub width: usize,
}

impl Tccr {
    /// Hashes `blocks[i] ⊕ offset` into `out[i·width ..][.. width]`.
    ///
    /// # Panics
    /// If `out.len() != blocks.len() * width`.
    pub fn hash(&self, blocks: &[Block], offset: Block, out: &mut [Block]) {
        assert_eq!(out.len(), blocks.len() * self.width, "hash outputs");
        PERMUTATION.dispatch(TccrKernel {
            spec: self,
            blocks,
            offset,
            out,
        });
    }

    /// Both pads of random OTs in one pass: [`Self::hash`] of `blocks` into `zeros` and of `blocks ⊕ offset` into `ones`.
    ///
    /// # Panics
    /// If `zeros` or `ones` is not `blocks.len() * width` long.
    pub fn hash_both(
        &self,
        blocks: &[Block],
        offset: Block,
        zeros: &mut [Block],
        ones: &mut [Block],
    ) {
        let whole = if self.width == 1 {
            blocks.len() / (LANES * 4) * (LANES * 4)
        } else {
            0
        };
        assert_eq!(zeros.len(), blocks.len() * self.width, "hash outputs");
        assert_eq!(ones.len(), zeros.len(), "hash outputs");
        PERMUTATION.dispatch(BothKernel {
            first: self.first,
            blocks: &blocks[..whole],
            offset,
            zeros: &mut zeros[..whole],
            ones: &mut ones[..whole],
        });
        let rest = Self {
            first: self.first.wrapping_add(whole as u64),
            ..*self
        };
        rest.hash(&blocks[whole..], Block::ZERO, &mut zeros[whole..]);
        rest.hash(&blocks[whole..], offset, &mut ones[whole..]);
    }
}

struct BothKernel<'a> {
    first: u64,
    blocks: &'a [Block],
    offset: Block,
    zeros: &'a mut [Block],
    ones: &'a mut [Block],
}

impl Kernel for BothKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let half = LANES / 2 * E::WIDTH;
        let offset = e.splat(self.offset);
        let outs = self
            .zeros
            .chunks_exact_mut(half)
            .zip(self.ones.chunks_exact_mut(half));
        let mut first = self.first;
        for (chunk, (zeros, ones)) in self.blocks.chunks_exact(half).zip(outs) {
            let mut x = [offset; LANES];
            for i in 0..LANES / 2 {
                x[i] = e.load(&chunk[i * E::WIDTH..]);
                x[LANES / 2 + i] = e.xor(x[i], offset);
            }
            let p = e.encrypt(x);
            let tweaks = counters(e, Block(u128::from(first) | 1 << 64));
            let mut tweaked = p;
            for i in 0..LANES {
                tweaked[i] = e.xor(p[i], tweaks[i % (LANES / 2)]);
            }
            let y = e.encrypt(tweaked);
            for i in 0..LANES / 2 {
                e.store(&mut zeros[i * E::WIDTH..], e.xor(y[i], p[i]));
                let at = LANES / 2 + i;
                e.store(&mut ones[i * E::WIDTH..], e.xor(y[at], p[at]));
            }
            first = first.wrapping_add(half as u64);
        }
    }
}

struct TccrKernel<'a> {
    spec: &'a Tccr,
    blocks: &'a [Block],
    offset: Block,
    out: &'a mut [Block],
}

impl Kernel for TccrKernel<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let Self {
            spec,
            blocks,
            offset,
            out,
        } = self;
        let group = LANES * E::WIDTH;
        let mut input = [Block::ZERO; LANES * 4];
        let mut output = [Block::ZERO; LANES * 4];
        for (c, chunk) in blocks.chunks(group).enumerate() {
            let first = spec.first.wrapping_add((c * group) as u64);
            let out = &mut out[c * group * spec.width..][..chunk.len() * spec.width];
            if chunk.len() == group && spec.width == 1 {
                hash_group(e, chunk, offset, (first, 1), out);
                continue;
            }
            input[..chunk.len()].copy_from_slice(chunk);
            for j in 0..spec.width {
                hash_group(e, &input, offset, (first, 1 + j as u64), &mut output);
                for (i, &block) in output[..chunk.len()].iter().enumerate() {
                    out[i * spec.width + j] = block;
                }
            }
        }
    }
}

/// Hashes one full group of `LANES` registers; tweak of block `i` is `(first + i, branch)`.
#[inline(always)]
fn hash_group<E: Engine>(
    e: E,
    blocks: &[Block],
    offset: Block,
    (first, branch): (u64, u64),
    out: &mut [Block],
) {
    let offset = e.splat(offset);
    let mut x = load_regs(e, blocks);
    for x in &mut x {
        *x = e.xor(*x, offset);
    }
    let p = e.encrypt(x);
    let mut tweaked = counters(e, Block(u128::from(first) | u128::from(branch) << 64));
    for (t, p) in tweaked.iter_mut().zip(p) {
        *t = e.xor(*t, p);
    }
    let mut y = e.encrypt(tweaked);
    for (y, p) in y.iter_mut().zip(p) {
        *y = e.xor(*y, p);
    }
    store_regs(e, out, y);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(len: usize) -> Vec<Block> {
        (0..len as u128)
            .map(|i| Block(i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
            .collect()
    }

    fn pi(x: u128) -> u128 {
        PERMUTATION.encrypt(Block(x)).0
    }

    #[test]
    fn ccr_is_its_formula() {
        let x = inputs(45);
        let mut h = x.clone();
        ccr(&mut h);
        for (x, h) in x.iter().zip(&h) {
            let (low, high) = (x.0 as u64, (x.0 >> 64) as u64);
            let sigma = u128::from(high) | u128::from(low ^ high) << 64;
            assert!(h.0 == pi(sigma) ^ sigma);
        }
    }

    #[test]
    fn tccr_is_its_formula() {
        let offset = Block(0xabc_def0_1234);
        for (len, width) in [(1, 1), (31, 1), (32, 1), (100, 1), (5, 3), (40, 2)] {
            let x = inputs(len);
            let mut h = vec![Block::ZERO; len * width];
            Tccr {
                first: u64::MAX - 3,
                width,
            }
            .hash(&x, offset, &mut h);
            for i in 0..len {
                for j in 0..width {
                    let p = pi((x[i] ^ offset).0);
                    let index = (u64::MAX - 3).wrapping_add(i as u64);
                    let tweak = u128::from(index) | (j as u128 + 1) << 64;
                    assert!(
                        h[i * width + j].0 == pi(p ^ tweak) ^ p,
                        "{len} {width} {i} {j}"
                    );
                }
            }
        }
    }

    #[test]
    fn both_pads_are_those_of_two_calls() {
        let offset = Block(0xabc_def0_1234);
        for (len, width) in [(1, 1), (31, 1), (32, 1), (100, 1), (5, 3), (64, 2)] {
            let x = inputs(len);
            let hash = Tccr {
                first: u64::MAX - 40,
                width,
            };
            let room = || vec![Block::ZERO; len * width];
            let (mut zeros, mut ones, mut first, mut second) = (room(), room(), room(), room());
            hash.hash_both(&x, offset, &mut zeros, &mut ones);
            hash.hash(&x, Block::ZERO, &mut first);
            hash.hash(&x, offset, &mut second);
            assert!(zeros == first && ones == second, "{len} {width}");
        }
    }
}
