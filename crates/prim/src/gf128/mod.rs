//! GF(2^128) = GF(2)\[x\] / (x^128 + x^7 + x^2 + x + 1): products, and the linear hashes of consistency checks.
//!
//! Bit `i` of a block is the coefficient of `x^i`: the field of GCM (NIST SP 800-38D) with its bits in
//! natural order. A product is carry-less, 128 by 128 to 256 bits, then reduced; sums of products are reduced
//! once. Everything is constant time.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::ggm::{PerTree, TREES};
use crate::{Backend, Block};

/// A product not yet reduced: `low + mid·x^64 + high·x^128`, sums of such included.
#[derive(Clone, Copy, Default)]
struct Wide {
    low: u128,
    mid: u128,
    high: u128,
}

impl Wide {
    fn reduce(self) -> Block {
        let low = self.low ^ self.mid << 64;
        let high = self.high ^ self.mid >> 64;
        // x^128 = x^7 + x^2 + x + 1; the bits that this shifts out at the top come in below once more.
        let spill = high >> 127 ^ high >> 126 ^ high >> 121;
        let fold = |v: u128| v ^ v << 1 ^ v << 2 ^ v << 7;
        Block(low ^ fold(high) ^ fold(spill))
    }
}

/// Instructions that multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Clmul,
    #[cfg(target_arch = "x86_64")]
    Double,
    #[cfg(target_arch = "x86_64")]
    Wide,
}

impl Path {
    #[cfg(target_arch = "x86_64")]
    fn for_backend(backend: Backend) -> Self {
        let vectors = is_x86_feature_detected!("vpclmulqdq");
        let wide = backend == Backend::Vaes && vectors;
        let double = backend >= Backend::Vaes256 && vectors;
        let clmul = backend >= Backend::AesNi && is_x86_feature_detected!("pclmulqdq");
        match (wide, double, clmul) {
            (true, _, _) => Self::Wide,
            (_, true, _) => Self::Double,
            (_, _, true) => Self::Clmul,
            _ => Self::Portable,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn for_backend(_: Backend) -> Self {
        Self::Portable
    }

    fn current() -> Self {
        Self::for_backend(Backend::current())
    }

    fn dot(self, a: &[Block], b: &[Block]) -> Wide {
        match self {
            Self::Portable => portable::dot(a, b),
            // SAFETY: this path is taken only where PCLMULQDQ was detected.
            #[cfg(target_arch = "x86_64")]
            Self::Clmul => unsafe { x86::dot(a, b) },
            // SAFETY: this path is taken only where VPCLMULQDQ and AVX2 were detected.
            #[cfg(target_arch = "x86_64")]
            Self::Double => unsafe { x86::dot_double(a, b) },
            // SAFETY: this path is taken only where VPCLMULQDQ and AVX-512F were detected.
            #[cfg(target_arch = "x86_64")]
            Self::Wide => unsafe { x86::dot_wide(a, b) },
        }
    }

    fn dot_lanes(self, weights: &[Block], lanes: &[PerTree<Block>]) -> PerTree<Wide> {
        match self {
            Self::Portable => portable::dot_lanes(weights, lanes),
            // SAFETY: as in `dot`.
            #[cfg(target_arch = "x86_64")]
            Self::Clmul => unsafe { x86::dot_lanes(weights, lanes) },
            // SAFETY: as in `dot`.
            #[cfg(target_arch = "x86_64")]
            Self::Double => unsafe { x86::dot_lanes_double(weights, lanes) },
            // SAFETY: as in `dot`.
            #[cfg(target_arch = "x86_64")]
            Self::Wide => unsafe { x86::dot_lanes_wide(weights, lanes) },
        }
    }
}

/// `a·b`.
#[must_use]
pub fn mul(a: Block, b: Block) -> Block {
    dot(&[a], &[b])
}

/// `Σ_i a_i·b_i`.
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn dot(a: &[Block], b: &[Block]) -> Block {
    assert_eq!(a.len(), b.len(), "factors of a sum of products");
    Path::current().dot(a, b).reduce()
}

/// `Σ_j weights[j]·nodes[8·j + t]` for each of the eight trees `t` of the layout of [`crate::ggm`].
///
/// # Panics
/// If there are not eight nodes a weight.
#[must_use]
pub fn dot_lanes(weights: &[Block], nodes: &[Block]) -> PerTree<Block> {
    assert_eq!(TREES * weights.len(), nodes.len(), "eight nodes a weight");
    let sums = Path::current().dot_lanes(weights, nodes.as_chunks().0);
    sums.map(Wide::reduce)
}

/// `1, base, base², …`, `count` of them.
#[must_use]
pub fn powers(base: Block, count: usize) -> Vec<Block> {
    std::iter::successors(Some(Block(1)), |&last| Some(mul(last, base)))
        .take(count)
        .collect()
}

/// `base^exponent` for a secret exponent of `bits` bits: time and addresses do not depend on it.
#[must_use]
pub fn power(base: Block, exponent: u64, bits: u32) -> Block {
    let (mut square, mut out) = (base, Block(1));
    for bit in 0..bits {
        let take = (exponent >> bit & 1) as u8;
        out = mul(out, square.keep_if(take) ^ Block(1).keep_if(1 ^ take));
        square = mul(square, square);
    }
    out
}

/// `Σ_i blocks[i]·x^i`: where `blocks[i]` is `b_i·Δ`, that is the element with bits `b_i` times Δ.
///
/// # Panics
/// If there are more than 128 blocks.
#[must_use]
pub fn pack(blocks: &[Block]) -> Block {
    assert!(blocks.len() <= 128, "bits of an element");
    let units: Vec<Block> = (0..blocks.len()).map(|i| Block(1 << i)).collect();
    dot(blocks, &units)
}

#[cfg(test)]
mod tests;
