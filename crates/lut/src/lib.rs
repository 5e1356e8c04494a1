//! Private table lookup.
//!
//! Two parties share an index and hold a public table; they come to share the entry, and neither
//! learns index or entry. A lookup consumes a *one-hot correlation*, prepared before the index is
//! known; how it was made ([`Generator`]) and how it is used are independent:
//!
//! | module | what it does | rounds | bits, both parties |
//! |---|---|---|---|
//! | `onehot` | the correlation itself, and the opening of offsets | | |
//! | `rotation` | makes it by a punctured PRF (ROTL) | 1 | `128·(k − 1) + n` |
//! | `doubling` | makes it by random OTs | `k − 1` | `2(n − k − 1) + k(k−1)/2` |
//! | `tree` | makes it by a distributed point function | `max(k − 8, 6) + 1` | `256(k − 7) + 252 + k(k−1)/2` |
//! | `arithmetic`, `sign` | additive shares of `l` bits | 2 | `2k + 2(l − 1)`, 2 before |
//! | `boolean`, `bits` | XOR-shared outputs, words or bits | 1 | `2k` |
//! | [`Store`] | keeps lookups on disk until they are used | 1 a connection | |
//! | [`OneRound`] | additive shares, by a tree with an arithmetic correction | 1 | `2k` |
//! | [`FlutePlus`] | XOR-shared outputs, by products of random bits | `k − 1`, 1 | `2(n − k − 1)`, `2k` |
//! | [`Permute`] | a secret permutation of a shared vector | 2, 1 | `128·n(k − 1) + n·k` or `S(l + 1)`, `n(l + k)` |
//! | [`Rotate`] | a secret rotation of a shared vector | 1, 1 | `128(k − 1)`, `n·l + k` |
//! | [`SpLut`] | a baseline: 1-of-n OT of the masked table | 2 | `k + n·l` |
//! | [`Flute`] | the boolean baseline, `l·n²` computing online | `⌈log k⌉`, 1 | `4(n − k − 1)`, `2k` |
//! | [`OpLut`], [`Ottt`] | baselines: shared tables, moved by a secret offset | 1 | `2k`; `n·l·k` and such before |
//! | [`GarbledLut`] | a baseline: the table as a garbled gate | 2 | `129k`; `n·l` and more before |
//! | [`Dealt`], [`dealer`] | a baseline that needs a trusted third party (Grotto) | 1 | `2k`; about `129k` to each party before |
//!
//! (`n = 2^k` entries; rounds are for a whole batch, bits for a lookup, OT generation excluded; where there
//! are two, in preprocessing and online.)
//!
//! ```
//! use volvelle_lut::{Generator, Index, Lookups, Output, Shape, Table};
//! # use volvelle_net::testing::run_pair;
//! # use volvelle_ot::testing::ideal_pair;
//! // Squares of 4-bit numbers, in shares modulo 2^8.
//! let table = Table::from_fn(4, 8, |x| x * x)?;
//! let shape = Shape { log_entries: 4, index: Index::Arithmetic, output: Output::word(8) };
//! # let (mut client_ot, mut server_ot) = ideal_pair(1);
//! # let (client, server) = run_pair(
//! #     |ch| -> Result<_, volvelle_lut::LutError> {
//! # let (ot, table) = (&mut client_ot, table.clone());
//! // The client's side; the server does the same with its share. 14 + 13 mod 16 is 11.
//! let prepared = Lookups::prepare(ch, ot, Generator::Doubling, &shape, 1)?;
//! let outputs = prepared.lookup(ch, &[14], &[table])?;
//! # Ok(outputs) },
//! #     |ch| -> Result<_, volvelle_lut::LutError> {
//! #         let prepared = Lookups::prepare(ch, &mut server_ot, Generator::Doubling, &shape, 1)?;
//! #         prepared.lookup(ch, &[13], &[table.clone()]) },
//! # );
//! # let (client, server) = (client?, server?);
//! // Opened, the two parties' shares are the entry.
//! assert_eq!((client[0][0] + server[0][0]) % 256, 121);
//! # Ok::<(), volvelle_lut::LutError>(())
//! ```

mod arithmetic;
mod bits;
mod boolean;
mod demand;
mod doubling;
mod error;
mod exchange;
mod flute;
mod flute_plus;
mod garbled;
mod grotto;
mod lookups;
mod oblivious;
mod one_of_n;
mod one_round;
mod onehot;
mod oplut;
mod ottt;
mod permute;
pub mod plan;
mod prepared;
mod protocol;
mod rotate;
mod rotation;
mod shape;
mod sign;
mod splut;
mod store;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod truth_tables;

pub use demand::Demand;
pub use error::LutError;
pub use flute::Flute;
pub use flute_plus::FlutePlus;
pub use garbled::{GarbledLut, Garbling};
pub use grotto::{Dealt, dealer};
pub use lookups::Lookups;
pub use one_round::OneRound;
pub use oplut::{OpLut, Setup};
pub use ottt::Ottt;
pub use permute::{Permute, PermuteMethod, PermuteShape};
pub use prepared::Prepared;
pub use protocol::Protocol;
pub use rotate::{MAX_LOG_ROTATED, Rotate, RotateShape, Shift};
pub use shape::{Generator, Index, MAX_LOG_ENTRIES, Output, Shape, Sharing};
pub use splut::SpLut;
pub use store::{Store, StoreError, StoreKey};
pub use table::{BitTable, StepTable, Table};
pub use truth_tables::KnownTables;
