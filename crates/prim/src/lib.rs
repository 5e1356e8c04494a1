//! Symmetric primitives of two-party computation.
//!
//! Everything here is local computing on one party's data: no networks, no parties.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Block`] | the 128-bit word of all protocols |
//! | [`aes`] | AES-128 (VAES-512, VAES-256, AES-NI, portable; chosen at run time, see [`Backend`]) |
//! | [`hash`] | fixed-key correlation-robust hashes, plain and tweakable |
//! | [`prg`] | AES-CTR pseudorandom generator, OS entropy |
//! | [`bits`], [`pack`] | packed bit vectors; `l`-bit words as a contiguous bit stream |
//! | [`streams`] | counter-mode streams of trees' leaves, summed by the bits of the leaves' numbers |
//! | [`transpose`] | 128-row bit transpose |
//! | [`gf128`] | GF(2^128): products and linear hashes of consistency checks |
//! | [`ggm`] | half-tree correlated GGM trees, full and punctured, many at once |
//! | [`dpf`] | half-tree distributed point functions, one party's side |
//! | [`pprf`] | punctured PRF from plain GGM trees |
//! | [`lpn`] | the local-linear code of primal LPN |
//! | [`convolute`] | an expand-convolute code, one map of dual LPN |
//! | [`quasicyclic`] | a quasi-cyclic code, the other map of dual LPN |
//! | [`select`] | sums of the table entries that a bit vector selects |
//! | [`moved`] | the same of bytes at public offsets, a batch a call |
//! | [`lanes`] | batches of short bit vectors, and the steps that double one-hot vectors |
//! | [`fields`] | bits and bit fields of a batch of words, a column at a time |
//! | [`dot`] | products of words with table entries, summed |
//! | [`fold`] | sums of rotated (or XOR-permuted) rows, for secret-shared rotation |
//! | [`sums`] | sums of matrices of ring elements with moved rows, for rotating and permuting vectors |
//!
//! SIMD and `unsafe` are confined to this crate, each behind a safe function that has a portable
//! twin and a test that the two agree. The environment variable `VOLVELLE_SIMD` (`vaes`, `vaes256`, `avx2`, `aesni`,
//! `portable`) forces a slower path than the machine offers.

mod additive;
pub mod aes;
pub mod bits;
mod block;
pub mod convolute;
pub mod dot;
pub mod dpf;
pub mod fields;
pub mod fold;
pub mod gf128;
pub mod ggm;
pub mod hash;
pub mod lanes;
mod lines;
pub mod lpn;
pub mod moved;
pub mod pack;
pub mod pprf;
pub mod prg;
pub mod quasicyclic;
pub mod select;
mod simd;
pub mod streams;
pub mod sums;
pub mod transpose;

pub use bits::BitVec;
pub use block::Block;
pub use lines::Lines;
pub use prg::Prg;
pub use simd::Backend;

/// `2^bits − 1` for `bits` in `0..=64`: the mask of a `bits`-bit word.
#[inline]
#[must_use]
pub const fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// Element `t`: the bits of a word whose number has bit `t` zero, that is the low halves of pairs of groups of `2^t` bits.
pub const LOW_HALVES: [u64; 6] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];
