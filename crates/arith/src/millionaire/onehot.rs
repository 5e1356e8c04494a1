//! Leaves of the comparison by lookup in one-hot correlations.
//!
//! Source: ROTL (PoPETs 2026), comparison. For a block with values c at the client and d at the server, both
//! below 2^4, e = c − d mod 2^5 is an index that the two already share. One lookup gives both bits: lt at e ≥
//! 2^4, eq at e = 0.
//!
//! Preprocessing: a one-hot correlation of 32 entries a block ([`Generator::Doubling`]). Online: 10 bits a
//! block, 1 round. Narrower lowest blocks use the same tables, so that all blocks make one batch.
//!
//! Security: that of the lookup.

use volvelle_lut::{BitTable, Generator, Index, Lookups, Output, Shape};
use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};

use super::{Block, Leaf};
use crate::error::ArithError;

/// log₂ of the table's entries: a block's bits and a sign.
const LOG_ENTRIES: u32 = 5;

pub(super) struct OneHotLeaves {
    batch: usize,
    lookups: Lookups,
}

fn shape() -> Shape {
    Shape {
        log_entries: LOG_ENTRIES,
        index: Index::Arithmetic,
        output: Output::Xor,
    }
}

impl OneHotLeaves {
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        blocks: &[Block],
        batch: usize,
    ) -> Result<Self, ArithError> {
        let lookups =
            Lookups::prepare(ch, ot, Generator::Doubling, &shape(), blocks.len() * batch)?;
        Ok(OneHotLeaves { batch, lookups })
    }

    pub fn cost(blocks: &[Block], batch: usize) -> PhasedCost {
        Lookups::cost(Generator::Doubling, &shape(), blocks.len() * batch)
    }

    pub fn run(
        self,
        ch: &mut Channel,
        blocks: &[Block],
        own: &[u64],
    ) -> Result<Vec<Leaf>, ArithError> {
        let lt = BitTable::from_fn(LOG_ENTRIES, |e| e >> (LOG_ENTRIES - 1) == 1)?;
        let eq = BitTable::from_fn(LOG_ENTRIES, |e| e == 0)?;
        let index = indices(ch.role(), blocks, own);
        let bits = self.lookups.lookup_bits(ch, &index, &[lt, eq])?;
        let leaves = blocks.iter().enumerate().map(|(b, block)| {
            let part = |table: usize| bits[table].slice(b * self.batch, self.batch);
            Leaf {
                lt: part(0),
                eq: block.needs_eq.then(|| part(1)),
            }
        });
        Ok(leaves.collect())
    }
}

/// This party's shares of c − d mod 2^5, block by block.
fn indices(role: Role, blocks: &[Block], own: &[u64]) -> Vec<u64> {
    let mut index = Vec::with_capacity(blocks.len() * own.len());
    for block in blocks {
        let value = |x: &u64| (x >> block.from) & volvelle_prim::mask(block.width as u32);
        match role {
            Role::Client => index.extend(own.iter().map(value)),
            Role::Server => {
                index.extend(
                    own.iter()
                        .map(|x| value(x).wrapping_neg() & volvelle_prim::mask(LOG_ENTRIES)),
                );
            }
        }
    }
    index
}
