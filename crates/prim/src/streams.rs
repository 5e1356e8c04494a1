//! Streams of the leaves of many trees, summed by the bits of the leaves' numbers: the computing of SoftSpoken.
//!
//! With `G(s)` the counter-mode stream of a leaf `s` ([`Prg`]), a tree of `2^k` leaves gives `k + 1` sums,
//!
//! ```text
//! sum = ⊕_y G(s_y)      plane b = ⊕_{y: y_b = 1} G(s_y),  b < k
//! ```
//! With AVX-512 no stream is ever in memory: four leaves at a time, the sums of the lowest four bits stay in
//! registers for 16 blocks, and the additions hide behind the AES rounds.

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
    Wide(avx512::Ciphers),
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
        Self {
            bits,
            first,
            streams: Streams::new(bits, seeds),
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
                    // SAFETY: these ciphers exist only where the Vaes backend was detected.
                    unsafe { avx512::add_streams(tree, first, at, planes, sum) };
                }
            }
        }
    }
}

impl Streams {
    fn new(bits: u32, seeds: &[Block]) -> Self {
        // The wide kernel takes four leaves at a time.
        #[cfg(target_arch = "x86_64")]
        if Backend::current() == Backend::Vaes && bits >= 2 {
            // SAFETY: the Vaes backend is current only where AES-NI was detected.
            return Self::Wide(unsafe { avx512::Ciphers::new(seeds) });
        }
        let _ = bits;
        Self::portable(seeds)
    }

    fn portable(seeds: &[Block]) -> Self {
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

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use zeroize::Zeroizing;

    use crate::Block;
    use crate::simd::aesni::{self, Schedule};

    /// Registers side by side, and the blocks in them.
    const REGS: usize = 4;
    const STEP: usize = 4 * REGS;
    type Regs = [__m512i; REGS];

    /// Bits of a leaf's number whose sums stay in registers.
    const LOW: usize = 4;

    /// The leaves' keys and the counter that all are at.
    pub(super) struct Ciphers {
        keys: Zeroizing<Vec<Schedule>>,
        at: u64,
    }

    impl Ciphers {
        /// # Safety
        /// The machine has AES-NI, and what `add_streams` asks for.
        pub(super) unsafe fn new(seeds: &[Block]) -> Self {
            let mut keys = Zeroizing::new(Vec::with_capacity(seeds.len()));
            for &seed in seeds {
                // SAFETY: the caller's promise.
                keys.push(unsafe { aesni::expand(seed) });
            }
            Self { keys, at: 0 }
        }

        pub(super) fn keys(&self) -> &[Schedule] {
            &self.keys
        }

        /// Where the next `length` blocks start.
        pub(super) fn advance(&mut self, length: usize) -> u64 {
            let at = self.at;
            self.at += length as u64;
            at
        }
    }

    /// The sums of one tree, from the streams' block `at` on.
    ///
    /// # Safety
    /// The machine has VAES and AVX-512F.
    #[target_feature(enable = "avx512f,vaes,aes")]
    pub(super) unsafe fn add_streams(
        tree: &[Schedule],
        first: usize,
        at: u64,
        planes: &mut [Block],
        sum: &mut [Block],
    ) {
        let length = sum.len();
        let bits = planes.len() / length;
        for start in (0..length).step_by(STEP) {
            let counters = counters(at + start as u64);
            let mut low = [zero(); LOW];
            // Sixteen leaves, or as many as there are; the higher bits of their numbers are `high`.
            for (high, leaves) in sixteens(tree, first).enumerate() {
                let missing = if high == 0 { first } else { 0 };
                let all = add_sixteen(leaves, missing, &counters, &mut low);
                add_to(&mut sum[start..][..STEP], &all, high == 0);
                for (b, plane) in planes.chunks_exact_mut(length).enumerate().skip(LOW) {
                    if high >> (b - LOW) & 1 == 1 {
                        add_to(&mut plane[start..][..STEP], &all, high == 1 << (b - LOW));
                    }
                }
            }
            for (plane, low) in planes.chunks_exact_mut(length).zip(&low).take(bits) {
                add_to(&mut plane[start..][..STEP], low, true);
            }
        }
    }

    /// The leaves whose numbers differ in the lowest four bits only.
    fn sixteens(tree: &[Schedule], first: usize) -> impl Iterator<Item = &[Schedule]> {
        let (head, rest) = tree.split_at(tree.len().min(16 - first));
        std::iter::once(head).chain(rest.chunks_exact(16))
    }

    /// The sum of at most sixteen streams; adds those of the set bits of their numbers to `low`. `missing` is 1
    /// if the first of them is not there.
    #[target_feature(enable = "avx512f,vaes,aes")]
    #[inline]
    fn add_sixteen(
        leaves: &[Schedule],
        missing: usize,
        counters: &Regs,
        low: &mut [Regs; LOW],
    ) -> Regs {
        let mut all = zero();
        for four in 0..(leaves.len() + missing) / 4 {
            let at = 4 * four - missing * usize::from(four > 0);
            let mut sum = zero();
            let mut rest = &leaves[at..];
            if four > 0 || missing == 0 {
                xor(&mut sum, &stream(&rest[0], counters));
                rest = &rest[1..];
            }
            let next = stream(&rest[0], counters);
            xor(&mut sum, &next);
            xor(&mut low[0], &next);
            let next = stream(&rest[1], counters);
            xor(&mut sum, &next);
            xor(&mut low[1], &next);
            let next = stream(&rest[2], counters);
            xor(&mut sum, &next);
            xor(&mut low[0], &next);
            xor(&mut low[1], &next);
            if four & 1 == 1 {
                xor(&mut low[2], &sum);
            }
            if four & 2 == 2 {
                xor(&mut low[3], &sum);
            }
            xor(&mut all, &sum);
        }
        all
    }

    /// AES in counter mode.
    #[target_feature(enable = "avx512f,vaes,aes")]
    #[inline]
    fn stream(keys: &Schedule, counters: &Regs) -> Regs {
        let mut x = *counters;
        let key = _mm512_broadcast_i32x4(keys[0]);
        for x in &mut x {
            *x = _mm512_xor_si512(*x, key);
        }
        for key in &keys[1..10] {
            let key = _mm512_broadcast_i32x4(*key);
            for x in &mut x {
                *x = _mm512_aesenc_epi128(*x, key);
            }
        }
        let key = _mm512_broadcast_i32x4(keys[10]);
        for x in &mut x {
            *x = _mm512_aesenclast_epi128(*x, key);
        }
        x
    }

    /// Sixteen consecutive 128-bit values (below 2^64) from `base` on.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn counters(base: u64) -> Regs {
        let mut x = zero();
        for (i, x) in x.iter_mut().enumerate() {
            let base = (base + 4 * i as u64) as i64;
            *x = _mm512_set_epi64(0, base + 3, 0, base + 2, 0, base + 1, 0, base);
        }
        x
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn zero() -> Regs {
        [_mm512_setzero_si512(); REGS]
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn xor(to: &mut Regs, from: &Regs) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = _mm512_xor_si512(*to, *from);
        }
    }

    /// Adds to sixteen blocks, or overwrites them.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn add_to(to: &mut [Block], from: &Regs, overwrite: bool) {
        for (to, from) in to.as_chunks_mut::<4>().0.iter_mut().zip(from) {
            let to = to.as_mut_ptr().cast();
            // SAFETY: four blocks are 64 bytes to read and write.
            unsafe {
                let old = if overwrite {
                    _mm512_setzero_si512()
                } else {
                    _mm512_loadu_si512(to)
                };
                _mm512_storeu_si512(to, _mm512_xor_si512(old, *from));
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
    fn both_ways_give_the_sums_of_the_streams() {
        for (bits, first) in (1..=8).flat_map(|bits| [(bits, 0), (bits, 1)]) {
            let mut seeds = vec![Block::ZERO; 3 * ((1 << bits) - first)];
            Prg::from_seed(Block(11)).fill_blocks(&mut seeds);
            let lengths = [16, 48, 0, 32];
            let expected = expected(bits, first, &seeds, &lengths);
            let here = LeafStreams::new(bits, first, &seeds);
            let portable = LeafStreams {
                streams: Streams::portable(&seeds),
                ..LeafStreams::new(bits, first, &seeds)
            };
            for mut streams in [here, portable] {
                for (&length, [planes, sums]) in lengths.iter().zip(&expected) {
                    // What was there before must not count.
                    let mut got = [planes.clone(), sums.clone()];
                    let [got_planes, got_sums] = &mut got;
                    streams.next(length, got_planes, got_sums);
                    assert!(got[0] == *planes, "planes, k = {bits}, first {first}");
                    assert!(got[1] == *sums, "sums, k = {bits}, first {first}");
                }
            }
        }
    }
}
