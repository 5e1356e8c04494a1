//! Protocols on shares: opening, AND, multiplexer, bit conversion, comparison, truncation, extension,
//! multiplication, and matrices known to the server.
//!
//! Shares over Z_{2^l} are slices of `u64`, reduced mod 2^l, with the [`Ring`] named by the operation;
//! XOR-shared bits are [`BitVec`](volvelle_prim::BitVec)s. Every operation is batched and has three parts:
//! `prepare` (preprocessing: talks to the peer and consumes random OTs), `run` (online: takes the prepared
//! material by value, so that no mask is used twice) and `cost` (what both of these send, to the bit).
//! Security is semi-honest throughout.
//!
//! | operation | online bits, both parties | rounds |
//! |---|---|---|
//! | [`And`], [`AndShared`] | 4; 2 + 2m for m right operands | 1 |
//! | [`Mux`] | 2 + 2l | 1 |
//! | [`BitToArith`] | l | 1 |
//! | [`Compare`] (millionaires) | 284 for 31 bits ([`Variant::Cheetah`]), 204 ([`Variant::Compact`]) | 2 + log₂(blocks) |
//! | [`Multiply`], [`MultiplyLow`] | 4l, 4l + 2 | 1 |
//! | [`MatVecClear`], [`MatVecShared`] | n·x_bits, n·l a vector | 1 |

#![forbid(unsafe_code)]

mod and;
mod b2a;
mod bit_product;
mod compare;
mod error;
mod extend;
mod flow;
mod linear;
mod millionaire;
mod multiply;
mod multiply_low;
mod mux;
mod pads;
mod rescale;
mod ring;
mod share;
mod sliced;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod truncate;
mod wire;
mod words;

pub use and::{And, AndShared};
pub use b2a::BitToArith;
pub use bit_product::BitProduct;
pub use compare::{GreaterEqual, Msb, carry_input};
pub use error::ArithError;
pub use extend::Extend;
pub use flow::Flow;
pub use linear::{MatVecClear, MatVecShared, Matrix, MatrixShape};
pub use millionaire::{Compare, PrefixCompare, Variant};
pub use multiply::Multiply;
pub use multiply_low::MultiplyLow;
pub use mux::Mux;
pub use rescale::{Range, Rescale, Sign};
pub use ring::Ring;
pub use share::{open_arith, open_bits, share, share_bits};
pub use truncate::{Truncate, Truncation};
