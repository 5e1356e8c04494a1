//! Streams of the leaves of many trees, summed by the bits of the leaves' numbers: the computing of SoftSpoken.
//!
//! With `G(s)` the counter-mode stream of a leaf `s` ([`Prg`]), a tree of `2^k` leaves gives `k + 1` sums,
//!
//! ```text
//! sum = ⊕_y G(s_y)      plane b = ⊕_{y: y_b = 1} G(s_y),  b < k
//! ```
//! With AES instructions no stream is ever in memory: four leaves at a time, the sums of the lowest four bits stay in
//! registers (with AVX-512; in the first-level cache with half of them, half as wide) for four registers of blocks, and the
//! additions hide behind the AES rounds.

#[cfg(target_arch = "x86_64")]
mod wide;

use crate::{Backend, Block, Prg};

/// The streams of all leaves of some trees, or of all but leaf 0.
pub struct LeafStreams {
    /// Bits of a leaf's number.
    bits: u32,
    /// Number of the first leaf that there is.
    first: usize,
    streams: Streams,
}

enum Streams {
    Portable(Vec<Prg>),
    #[cfg(target_arch = "x86_64")]
    Wide(wide::Ciphers),
}

impl LeafStreams {
    /// Trees of `2^bits` leaves, one after another.
    ///
    /// # Panics
    /// If `bits` is 0 or over 8, or `seeds` is not of whole trees.
    #[must_use]
    pub fn whole(bits: u32, seeds: &[Block]) -> Self {
        Self::new(bits, 0, seeds)
    }

    /// Trees of `2^bits − 1` leaves, leaf 0 missing in each.
    ///
    /// # Panics
    /// As [`Self::whole`].
    #[must_use]
    pub fn punctured(bits: u32, seeds: &[Block]) -> Self {
        Self::new(bits, 1, seeds)
    }

    fn new(bits: u32, first: usize, seeds: &[Block]) -> Self {
        assert!((1..=8).contains(&bits), "trees of 2 to 256 leaves");
        assert!(
            seeds.len().is_multiple_of((1 << bits) - first),
            "leaves of whole trees"
        );
        let backend = Backend::current();
        Self {
            bits,
            first,
            streams: Streams::new(backend, bits, seeds),
        }
    }

    /// Number of trees.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.streams.len() / self.leaves()
    }

    /// Leaves of a tree that there are.
    fn leaves(&self) -> usize {
        (1 << self.bits) - self.first
    }

    /// The next blocks of all streams, summed: overwrites plane `b` of tree `g` at
    /// `planes[(g·k + b)·length ..][.. length]` and the sum of all its leaves at `sums[g·length ..][.. length]`.
    ///
    /// # Panics
    /// If `sums` is not as long as there are trees times `length`, a multiple of 16, or `planes` not `k` times as
    /// long.
    pub fn next(&mut self, length: usize, planes: &mut [Block], sums: &mut [Block]) {
        assert!(length.is_multiple_of(16), "sixteen blocks at a time");
        assert_eq!(sums.len(), self.trees() * length, "a sum a tree");
        assert_eq!(
            planes.len(),
            sums.len() * self.bits as usize,
            "k planes a tree"
        );
        if length == 0 {
            return;
        }
        let (leaves, first) = (self.leaves(), self.first);
        let places = planes
            .chunks_exact_mut(length * self.bits as usize)
            .zip(sums.chunks_exact_mut(length));
        match &mut self.streams {
            Streams::Portable(streams) => {
                let mut stretch = zeroize::Zeroizing::new(vec![Block::ZERO; length]);
                for (tree, (planes, sum)) in streams.chunks_exact_mut(leaves).zip(places) {
                    add_streams(tree, first, &mut stretch, planes, sum);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Streams::Wide(ciphers) => {
                let at = ciphers.advance(length);
                for (tree, (planes, sum)) in ciphers.keys().chunks_exact(leaves).zip(places) {
                    ciphers.add_streams(tree, first, at, planes, sum);
                }
            }
        }
    }
}

impl Streams {
    /// The streams for a backend that the machine has.
    fn new(backend: Backend, bits: u32, seeds: &[Block]) -> Self {
        // The wide kernels take four leaves at a time.
        #[cfg(target_arch = "x86_64")]
        if backend >= Backend::AesNi && bits >= 2 {
            // SAFETY: the caller has the backend from its detection.
            return Self::Wide(unsafe { wide::Ciphers::new(backend, seeds) });
        }
        let _ = (backend, bits);
        Self::Portable(seeds.iter().map(|&seed| Prg::from_seed(seed)).collect())
    }

    fn len(&self) -> usize {
        match self {
            Self::Portable(streams) => streams.len(),
            #[cfg(target_arch = "x86_64")]
            Self::Wide(ciphers) => ciphers.keys().len(),
        }
    }
}

/// Any backend's way: each leaf's stream in memory, added to the planes of the set bits of its number.
fn add_streams(
    tree: &mut [Prg],
    first: usize,
    stretch: &mut [Block],
    planes: &mut [Block],
    sum: &mut [Block],
) {
    sum.fill(Block::ZERO);
    planes.fill(Block::ZERO);
    for (y, leaf) in (first..).zip(tree) {
        leaf.fill_blocks(stretch);
        Block::xor_into(sum, stretch);
        for (b, plane) in planes.chunks_exact_mut(stretch.len()).enumerate() {
            if y >> b & 1 == 1 {
                Block::xor_into(plane, stretch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, on a generator a leaf.
    fn expected(
        bits: u32,
        first: usize,
        seeds: &[Block],
        lengths: &[usize],
    ) -> Vec<[Vec<Block>; 2]> {
        let leaves = (1 << bits) - first;
        let mut streams: Vec<Prg> = seeds.iter().map(|&seed| Prg::from_seed(seed)).collect();
        let mut call = |&length: &usize| {
            let trees = seeds.len() / leaves;
            let mut sums = vec![Block::ZERO; trees * length];
            let mut planes = vec![Block::ZERO; trees * length * bits as usize];
            for (j, stream) in streams.iter_mut().enumerate() {
                let (g, y) = (j / leaves, j % leaves + first);
                for i in 0..length {
                    let block = stream.next_block();
                    sums[g * length + i] ^= block;
                    for b in (0..bits as usize).filter(|b| y >> b & 1 == 1) {
                        planes[(g * bits as usize + b) * length + i] ^= block;
                    }
                }
            }
            [planes, sums]
        };
        lengths.iter().map(&mut call).collect()
    }

    #[test]
    fn every_backend_gives_the_sums_of_the_streams() {
        for (bits, first) in (1..=8).flat_map(|bits| [(bits, 0), (bits, 1)]) {
            let mut seeds = vec![Block::ZERO; 3 * ((1 << bits) - first)];
            Prg::from_seed(Block(11)).fill_blocks(&mut seeds);
            let lengths = [16, 48, 0, 32];
            let expected = expected(bits, first, &seeds, &lengths);
            for backend in Backend::available() {
                let mut streams = LeafStreams {
                    bits,
                    first,
                    streams: Streams::new(backend, bits, &seeds),
                };
                for (&length, [planes, sums]) in lengths.iter().zip(&expected) {
                    // What was there before must not count.
                    let mut got = [planes.clone(), sums.clone()];
                    let [got_planes, got_sums] = &mut got;
                    streams.next(length, got_planes, got_sums);
                    assert!(got[0] == *planes, "{backend:?}, k = {bits}, {first}");
                    assert!(got[1] == *sums, "{backend:?}, k = {bits}, {first}");
                }
            }
        }
    }
}
