//! Bits and bit fields of a batch of words, a column at a time: what the additive shares of one-hot positions are made of.
//!
//! A field is some bits of a 64-bit word, an integer of its own modulo the power of two that it holds. All loops are plain
//! ones over columns; their twins are the same compiled for AVX-512 and AVX2.

use crate::{Backend, Block, mask};

/// Bits `start ..` of a word, `bits` of them.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The lowest bit.
    pub start: u32,
    /// How many.
    pub bits: u32,
}

impl Field {
    const fn mask(self) -> u64 {
        mask(self.bits) << self.start
    }

    /// Adds to the field, and to nothing above it.
    #[inline(always)]
    const fn add(self, word: u64, value: u64) -> u64 {
        word ^ ((word ^ word.wrapping_add(value << self.start)) & self.mask())
    }
}

/// Where a word is taken from every pad of `blocks` blocks: its bits from bit `start` of the pad on, to the end of the
/// 64-bit word that they are in.
#[derive(Clone, Copy, Debug)]
pub struct InPads {
    /// Blocks of a pad.
    pub blocks: usize,
    /// The first bit.
    pub start: usize,
}

/// Defines functions that dispatch to a loop, or to the same compiled for AVX-512 or AVX2.
macro_rules! twins {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) = $portable:ident;)*) => {
        $($(#[$doc])*
        pub fn $name($($arg: $type),*) {
            on::$name(Backend::current(), $($arg),*);
        })*

        /// The same on a backend that the machine has.
        mod on {
            use super::*;

            $(
            pub(super) fn $name(backend: Backend, $($arg: $type),*) {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the machine has the backend, and so AVX-512, or AVX2 and BMI1 and 2.
                unsafe {
                    if backend == Backend::Vaes {
                        return avx512::$name($($arg),*);
                    }
                    if backend >= Backend::Avx2 {
                        return avx2::$name($($arg),*);
                    }
                }
                let _ = backend;
                $portable($($arg),*);
            })*
        }

        #[cfg(target_arch = "x86_64")]
        mod avx512 {
            use super::{Block, Field, InPads};

            $(
            /// # Safety
            /// The machine has AVX-512 F, BW, DQ, VL.
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            pub(super) unsafe fn $name($($arg: $type),*) {
                super::$portable($($arg),*);
            })*
        }

        #[cfg(target_arch = "x86_64")]
        mod avx2 {
            use super::{Block, Field, InPads};

            $(
            /// # Safety
            /// The machine has AVX2, BMI1 and BMI2.
            #[target_feature(enable = "avx2,bmi1,bmi2")]
            pub(super) unsafe fn $name($($arg: $type),*) {
                super::$portable($($arg),*);
            })*
        }
    };
}

twins! {
    /// Adds bit `i` times `2^at` to `out[i]`, the bits 64 a word.
    ///
    /// # Panics
    /// If there are not as many bits.
    add_powers(bits: &[u64], at: u32, out: &mut [u32]) = add_powers_portable;

    /// Adds bit `i` to the field of `out[i]`.
    ///
    /// # Panics
    /// If there are not as many bits.
    add_bits(bits: &[u64], field: Field, out: &mut [u64]) = add_bits_portable;

    /// Adds the differences of two columns of pads, first less second, to the field of `out`.
    ///
    /// # Panics
    /// If there are not as many pads.
    add_differences(
        zeros: &[Block], ones: &[Block], place: InPads, field: Field, out: &mut [u64]
    ) = add_differences_portable;

    /// Adds the column of pads, times `2^shift`, to `out`.
    ///
    /// # Panics
    /// If there are not as many pads.
    add_pads(pads: &[Block], place: InPads, shift: u32, out: &mut [u32]) = add_pads_portable;

    /// Subtracts the same.
    ///
    /// # Panics
    /// If there are not as many pads.
    sub_pads(pads: &[Block], place: InPads, shift: u32, out: &mut [u32]) = sub_pads_portable;

    /// Adds the column of pads, times `2^shift`, to `out`.
    ///
    /// # Panics
    /// If there are not as many pads.
    add_long_pads(pads: &[Block], place: InPads, shift: u32, out: &mut [u64]) = add_long_pads_portable;

    /// Subtracts the same.
    ///
    /// # Panics
    /// If there are not as many pads.
    sub_long_pads(pads: &[Block], place: InPads, shift: u32, out: &mut [u64]) = sub_long_pads_portable;

    /// Where bit `i` is set, the two pads of an OT change places: of what is kept of them, the difference `d` changes its sign and
    /// from the sum `2d` is subtracted.
    ///
    /// # Panics
    /// If the lengths differ, or there are not as many bits.
    swap_pads(bits: &[u64], differences: &mut [u64], sums: &mut [u64]) = swap_pads_portable;

    /// Subtracts bit `i` times the field of `words[i]` times `2^shift` from `out[i]`.
    ///
    /// # Panics
    /// If the lengths differ, or there are not as many bits.
    sub_products(bits: &[u64], words: &[u64], field: Field, shift: u32, out: &mut [u32]) = sub_products_portable;
}

/// Bits `32·i ..`, as many as half a word holds.
#[inline(always)]
fn half_word(bits: &[u64], i: usize) -> u32 {
    (bits[i / 2] >> (32 * (i % 2))) as u32
}

#[inline(always)]
fn add_powers_portable(bits: &[u64], at: u32, out: &mut [u32]) {
    let (whole, rest) = out.as_chunks_mut::<32>();
    for (c, out) in whole.iter_mut().enumerate() {
        let half = half_word(bits, c);
        for (i, out) in out.iter_mut().enumerate() {
            *out = out.wrapping_add((half >> i & 1) << at);
        }
    }
    if !rest.is_empty() {
        let half = half_word(bits, whole.len());
        for (i, out) in rest.iter_mut().enumerate() {
            *out = out.wrapping_add((half >> i & 1) << at);
        }
    }
}

#[inline(always)]
fn add_bits_portable(bits: &[u64], field: Field, out: &mut [u64]) {
    let (whole, rest) = out.as_chunks_mut::<64>();
    let (of_whole, of_rest) = bits.split_at(whole.len());
    for (out, &bits) in whole.iter_mut().zip(of_whole) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = field.add(*out, bits >> i & 1);
        }
    }
    if !rest.is_empty() {
        let bits = of_rest[0];
        for (i, out) in rest.iter_mut().enumerate() {
            *out = field.add(*out, bits >> i & 1);
        }
    }
}

/// Pads handled at a time.
const GROUP: usize = 64;

/// The words at a place of up to [`GROUP`] pads.
#[inline(always)]
fn column(pads: &[Block], place: InPads, out: &mut [u64; GROUP]) {
    let (words, at, shift) = (Block::as_words(pads), place.start / 64, place.start % 64);
    match (place.blocks, at) {
        (1, 0) => {
            for (out, pad) in out.iter_mut().zip(words.as_chunks::<2>().0) {
                *out = pad[0] >> shift;
            }
        }
        (1, 1) => {
            for (out, pad) in out.iter_mut().zip(words.as_chunks::<2>().0) {
                *out = pad[1] >> shift;
            }
        }
        (blocks, at) => {
            for (out, pad) in out.iter_mut().zip(words.chunks_exact(2 * blocks)) {
                *out = pad[at] >> shift;
            }
        }
    }
}

#[inline(always)]
fn add_differences_portable(
    zeros: &[Block],
    ones: &[Block],
    place: InPads,
    field: Field,
    out: &mut [u64],
) {
    assert_eq!(zeros.len(), place.blocks * out.len(), "a pad for each");
    assert_eq!(ones.len(), zeros.len(), "two pads for each");
    let (mut zero, mut one) = ([0; GROUP], [0; GROUP]);
    let group = place.blocks * GROUP;
    let pads = zeros.chunks(group).zip(ones.chunks(group));
    for (out, (zeros, ones)) in out.chunks_mut(GROUP).zip(pads) {
        column(zeros, place, &mut zero);
        column(ones, place, &mut one);
        for (out, (&zero, &one)) in out.iter_mut().zip(zero.iter().zip(&one)) {
            *out = field.add(*out, zero.wrapping_sub(one));
        }
    }
}

/// A sum with the words of a column as `$short`.
macro_rules! with_column {
    ($name:ident, $short:ty, $join:ident) => {
        #[inline(always)]
        fn $name(pads: &[Block], place: InPads, shift: u32, out: &mut [$short]) {
            assert_eq!(pads.len(), place.blocks * out.len(), "a pad for each");
            let (mut words, group) = ([0; GROUP], place.blocks * GROUP);
            for (out, pads) in out.chunks_mut(GROUP).zip(pads.chunks(group)) {
                column(pads, place, &mut words);
                for (out, &word) in out.iter_mut().zip(&words) {
                    *out = out.$join((word as $short) << shift);
                }
            }
        }
    };
}

with_column!(add_pads_portable, u32, wrapping_add);
with_column!(sub_pads_portable, u32, wrapping_sub);
with_column!(add_long_pads_portable, u64, wrapping_add);
with_column!(sub_long_pads_portable, u64, wrapping_sub);

#[inline(always)]
fn swap_pads_portable(bits: &[u64], differences: &mut [u64], sums: &mut [u64]) {
    assert_eq!(differences.len(), sums.len(), "two for each");
    assert_eq!(bits.len(), sums.len().div_ceil(GROUP), "a bit for each");
    let pads = differences.chunks_mut(GROUP).zip(sums.chunks_mut(GROUP));
    for ((differences, sums), &bits) in pads.zip(bits) {
        for (i, (d, sum)) in differences.iter_mut().zip(sums).enumerate() {
            let swap = (bits >> i & 1).wrapping_neg();
            *sum = sum.wrapping_sub((*d << 1) & swap);
            *d = (*d ^ swap).wrapping_sub(swap);
        }
    }
}

#[inline(always)]
fn sub_products_portable(bits: &[u64], words: &[u64], field: Field, shift: u32, out: &mut [u32]) {
    assert_eq!(words.len(), out.len(), "a word for each");
    assert_eq!(bits.len(), out.len().div_ceil(GROUP), "a bit for each");
    let factors = bits.iter().zip(words.chunks(GROUP));
    for (out, (&bits, words)) in out.chunks_mut(GROUP).zip(factors) {
        for (i, (out, &word)) in out.iter_mut().zip(words).enumerate() {
            let chosen = word >> field.start & mask(field.bits) & (bits >> i & 1).wrapping_neg();
            *out = out.wrapping_sub((chosen as u32) << shift);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_backend() -> impl Strategy<Value = Backend> {
        prop::sample::select(Backend::available())
    }

    fn random(seed: u64, len: usize) -> Vec<u64> {
        let mut out = vec![0; len];
        crate::Prg::from_seed(Block(seed.into())).fill_u64(&mut out);
        out
    }

    fn blocks(seed: u64, len: usize) -> Vec<Block> {
        let mut out = vec![Block::ZERO; len];
        crate::Prg::from_seed(Block(seed.into())).fill_blocks(&mut out);
        out
    }

    fn shorts(seed: u64, len: usize) -> Vec<u32> {
        random(seed, len).into_iter().map(|w| w as u32).collect()
    }

    /// Bits `start ..` of pad `i`, at least as many as its 64-bit word has.
    fn in_pad(pads: &[Block], place: InPads, i: usize) -> u64 {
        let block = pads[i * place.blocks + place.start / 128];
        (block.0 >> (place.start % 128)) as u64 & mask(64 - place.start as u32 % 64)
    }

    fn field_of(word: u64, field: Field) -> u64 {
        word >> field.start & mask(field.bits)
    }

    proptest! {
        #[test]
        fn bits_of_columns(
            backend in any_backend(), seed: u64, count in 1usize..200, at in 0u32..32, start in 0u32..60, bits in 1u32..5
        ) {
            let field = Field { start, bits };
            let column = random(seed, count.div_ceil(64));
            let bit = |i: usize| column[i / 64] >> (i % 64) & 1;
            let (shorts, longs) = (shorts(seed ^ 1, count), random(seed ^ 2, count));
            let (mut set, mut set_portable) = (shorts.clone(), shorts.clone());
            on::add_powers(backend, &column, at, &mut set);
            add_powers_portable(&column, at, &mut set_portable);
            let (mut added, mut added_portable) = (longs.clone(), longs.clone());
            on::add_bits(backend, &column, field, &mut added);
            add_bits_portable(&column, field, &mut added_portable);
            for i in 0..count {
                let expected = shorts[i].wrapping_add((bit(i) as u32) << at);
                prop_assert_eq!([set[i], set_portable[i]], [expected; 2]);
                let sum = (field_of(longs[i], field) + bit(i)) & mask(bits);
                let expected = longs[i] & !field.mask() | sum << start;
                prop_assert_eq!([added[i], added_portable[i]], [expected; 2]);
            }
        }

        #[test]
        fn words_of_pads(
            backend in any_backend(), seed: u64, count in 1usize..100,
            pad in 1usize..4, at in 0usize..384, start in 0u32..40, shift in 0u32..32
        ) {
            let place = InPads { blocks: pad, start: at % (128 * pad) };
            let field = Field { start, bits: (64 - place.start as u32 % 64).min(20) };
            let (zeros, ones) = (blocks(seed, pad * count), blocks(seed ^ 1, pad * count));
            let (shorts, longs) = (shorts(seed ^ 2, count), random(seed ^ 3, count));
            let (mut sums, mut differences, mut fields) = (shorts.clone(), shorts.clone(), longs.clone());
            let mut portable = longs.clone();
            on::add_pads(backend, &zeros, place, shift, &mut sums);
            on::sub_pads(backend, &zeros, place, shift, &mut differences);
            on::add_differences(backend, &zeros, &ones, place, field, &mut fields);
            add_differences_portable(&zeros, &ones, place, field, &mut portable);
            prop_assert_eq!(&fields, &portable);
            for i in 0..count {
                let (zero, one) = (in_pad(&zeros, place, i), in_pad(&ones, place, i));
                let times = (zero as u32) << shift;
                prop_assert_eq!(sums[i], shorts[i].wrapping_add(times));
                prop_assert_eq!(differences[i], shorts[i].wrapping_sub(times));
                let sum = field_of(longs[i], field).wrapping_add(zero).wrapping_sub(one) & mask(field.bits);
                prop_assert_eq!(fields[i], longs[i] & !field.mask() | sum << start);
            }
        }

        #[test]
        fn long_words_of_pads(
            backend in any_backend(), seed: u64, count in 1usize..100, pad in 1usize..4, at in 0usize..6, shift in 0u32..3
        ) {
            let place = InPads { blocks: pad, start: 64 * (at % (2 * pad)) };
            let (pads, before) = (blocks(seed, pad * count), random(seed ^ 1, count));
            let (mut sums, mut differences) = (before.clone(), before.clone());
            on::add_long_pads(backend, &pads, place, shift, &mut sums);
            on::sub_long_pads(backend, &pads, place, shift, &mut differences);
            for i in 0..count {
                let times = in_pad(&pads, place, i) << shift;
                prop_assert_eq!(sums[i], before[i].wrapping_add(times));
                prop_assert_eq!(differences[i], before[i].wrapping_sub(times));
            }
        }

        #[test]
        fn swapping(backend in any_backend(), seed: u64, count in 1usize..200) {
            let bits = random(seed, count.div_ceil(64));
            let before = [random(seed ^ 1, count), random(seed ^ 2, count)];
            let [mut differences, mut sums] = before.clone();
            on::swap_pads(backend, &bits, &mut differences, &mut sums);
            for i in 0..count {
                let (d, sum) = (before[0][i], before[1][i]);
                let swapped = (d.wrapping_neg(), sum.wrapping_sub(d << 1));
                let expected = if bits[i / 64] >> (i % 64) & 1 == 1 { swapped } else { (d, sum) };
                prop_assert_eq!((differences[i], sums[i]), expected);
            }
        }

        #[test]
        fn products_of_bits(
            backend in any_backend(), seed: u64, count in 1usize..200,
            shift in 0u32..32, start in 0u32..40, bits in 1u32..20
        ) {
            let field = Field { start, bits };
            let (factors, words) = (random(seed, count.div_ceil(64)), random(seed ^ 1, count));
            let before = shorts(seed ^ 2, count);
            let (mut out, mut portable) = (before.clone(), before.clone());
            on::sub_products(backend, &factors, &words, field, shift, &mut out);
            sub_products_portable(&factors, &words, field, shift, &mut portable);
            for j in 0..count {
                let set = factors[j / 64] >> (j % 64) & 1 == 1;
                let product = if set { field_of(words[j], field) as u32 } else { 0 };
                let expected = before[j].wrapping_sub(product << shift);
                prop_assert_eq!([out[j], portable[j]], [expected; 2]);
            }
        }
    }
}
