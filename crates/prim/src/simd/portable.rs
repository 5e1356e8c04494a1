//! The portable engine: one block a register, AES by the `aes` crate.

use ::aes::cipher::{Array, BlockCipherEncrypt};

use super::Engine;
use crate::Block;

/// A key schedule of the `aes` crate, borrowed.
#[derive(Clone, Copy)]
pub(crate) struct Portable<'a>(pub(crate) &'a ::aes::Aes128);

fn halves(x: Block) -> (u64, u64) {
    (x.0 as u64, (x.0 >> 64) as u64)
}

fn join(low: u64, high: u64) -> Block {
    Block(u128::from(low) | u128::from(high) << 64)
}

/// All ones if `a == b`, else zero, without a branch.
fn equal_mask(a: u64, b: u64) -> u64 {
    let d = a ^ b;
    ((d | d.wrapping_neg()) >> 63).wrapping_sub(1)
}

impl Engine for Portable<'_> {
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
    fn and(self, a: Block, b: Block) -> Block {
        a & b
    }

    #[inline(always)]
    fn add64(self, a: Block, b: Block) -> Block {
        let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
        join(a0.wrapping_add(b0), a1.wrapping_add(b1))
    }

    #[inline(always)]
    fn shl64(self, a: Block, bits: u32) -> Block {
        let (low, high) = halves(a);
        join(low << bits, high << bits)
    }

    #[inline(always)]
    fn shr64(self, a: Block, bits: u32) -> Block {
        let (low, high) = halves(a);
        join(low >> bits, high >> bits)
    }

    #[inline(always)]
    fn xor_where_equal(self, value: Block, at: Block, target: Block, fix: Block) -> Block {
        let ((a0, a1), (t0, t1)) = (halves(at), halves(target));
        value ^ (fix & join(equal_mask(a0, t0), equal_mask(a1, t1)))
    }

    #[inline(always)]
    fn xor_where_odd(self, value: Block, control: Block, fix: Block) -> Block {
        value ^ fix.keep_if(u8::from(control.lsb()))
    }

    #[inline(always)]
    fn sigma(self, x: Block) -> Block {
        let (low, high) = halves(x);
        join(high, low ^ high)
    }

    #[inline(always)]
    fn encrypt<const N: usize>(self, x: [Block; N]) -> [Block; N] {
        let mut blocks = x.map(|b| Array::from(b.to_bytes()));
        self.0.encrypt_blocks(&mut blocks);
        blocks.map(|b| Block::from_bytes(b.into()))
    }
}
