//! The portable path: carry-less products from integer products of numbers with holes.

use super::Wide;
use crate::Block;
use crate::ggm::{PerTree, TREES};

/// Low 64 bits of the carry-less product. Every fourth bit of each factor at a time: sums of up to 16 bits, of
/// which only the topmost can carry, out of the word (as in BearSSL's `ghash_ctmul64`).
fn low(a: u64, b: u64) -> u64 {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    let part = |v: u64, i: u32| v & EVERY_FOURTH << i;
    let mut product = 0;
    for i in 0..4 {
        let mut sum = 0;
        for j in 0..4 {
            sum ^= part(a, j).wrapping_mul(part(b, (4 + i - j) % 4));
        }
        product |= part(sum, i);
    }
    product
}

fn clmul(a: u64, b: u64) -> u128 {
    let high = low(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    u128::from(low(a, b)) | u128::from(high) << 64
}

fn add_product(sum: &mut Wide, a: Block, b: Block) {
    let (a0, a1) = (a.0 as u64, (a.0 >> 64) as u64);
    let (b0, b1) = (b.0 as u64, (b.0 >> 64) as u64);
    sum.low ^= clmul(a0, b0);
    sum.mid ^= clmul(a0, b1) ^ clmul(a1, b0);
    sum.high ^= clmul(a1, b1);
}

pub(super) fn dot(a: &[Block], b: &[Block]) -> Wide {
    let mut sum = Wide::default();
    for (&a, &b) in a.iter().zip(b) {
        add_product(&mut sum, a, b);
    }
    sum
}

pub(super) fn dot_lanes(weights: &[Block], lanes: &[PerTree<Block>]) -> PerTree<Wide> {
    let mut sums = [Wide::default(); TREES];
    for (&weight, group) in weights.iter().zip(lanes) {
        for (sum, &node) in sums.iter_mut().zip(group) {
            add_product(sum, weight, node);
        }
    }
    sums
}
