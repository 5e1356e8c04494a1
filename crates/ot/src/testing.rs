//! An ideal source of correlated OTs, for fast and isolated tests of upper layers.
//!
//! Both ends derive their blocks from one seed, as a dealer would hand them out; no bits are sent. Not
//! reachable from the program: only tests enable the `testing` feature.

use volvelle_net::{Channel, Role};
use volvelle_prim::{Block, Prg};

use crate::engine::{CotReceiver, CotSender, CotSource, Supply};
use crate::{Ot, OtConfig, OtError, convert, softspoken};

struct IdealSender {
    delta: Block,
    blocks: Prg,
}

struct IdealReceiver {
    delta: Block,
    blocks: Prg,
    choices: Prg,
}

const SUPPLY: Supply = Supply {
    made: 0,
    overhead: 1.0,
    bits_per_cot: 0.0,
};

impl CotSender for IdealSender {
    fn delta(&self) -> Block {
        self.delta
    }
}

impl CotSource for IdealSender {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        self.blocks.fill_blocks(out);
        out.iter_mut().for_each(|q| q.0 &= !1);
        Ok(())
    }

    fn supply(&self) -> Supply {
        SUPPLY
    }
}

impl CotReceiver for IdealReceiver {}

impl CotSource for IdealReceiver {
    fn extend(&mut self, _: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        self.blocks.fill_blocks(out);
        let mut choices = vec![Block::ZERO; out.len()];
        self.choices.fill_blocks(&mut choices);
        for (r, x) in out.iter_mut().zip(choices) {
            r.0 &= !1;
            *r ^= self.delta.keep_if(x.0 as u8 & 1);
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        SUPPLY
    }
}

fn direction(seed: u64, name: u64) -> (IdealSender, IdealReceiver) {
    let mut prg = Prg::from_seed(Block(u128::from(seed) << 64 | u128::from(name)));
    let delta = Block(prg.next_block().0 | 1);
    let (blocks, choices) = (prg.next_block(), prg.next_block());
    (
        IdealSender {
            delta,
            blocks: Prg::from_seed(blocks),
        },
        IdealReceiver {
            delta,
            blocks: Prg::from_seed(blocks),
            choices: Prg::from_seed(choices),
        },
    )
}

/// Both ends of a direction, for engines.
#[cfg(test)]
pub(crate) fn ideal_ends(seed: u64) -> (impl CotSender, impl CotReceiver) {
    direction(seed, 1)
}

/// Both ends (client, server) of ideal OTs, determined by `seed`.
#[must_use]
pub fn ideal_pair(seed: u64) -> (Ot, Ot) {
    let (client_sends, server_receives) = direction(seed, 1);
    let (server_sends, client_receives) = direction(seed, 2);
    (
        Ot::from_sources(
            Role::Client,
            Box::new(client_sends),
            Box::new(client_receives),
        ),
        Ot::from_sources(
            Role::Server,
            Box::new(server_sends),
            Box::new(server_receives),
        ),
    )
}

/// [`Ot::setup`] with this party's randomness derived from `seed`, so that its messages can be compared
/// with a digest.
///
/// # Errors
/// As [`Ot::setup`].
pub fn setup_seeded(ch: &mut Channel, config: OtConfig, seed: u64) -> Result<Ot, OtError> {
    Ot::setup_from(ch, config, Prg::from_seed(Block(seed.into())))
}

/// Kernels that work on secrets, for measuring whether their time tells.
pub mod kernels {
    use super::{Block, convert, softspoken};

    /// SoftSpoken: a punctured tree moved by its secret point.
    #[must_use]
    pub fn permuted(tree: &[Block], point: u32) -> Vec<Block> {
        softspoken::permuted(tree, point).to_vec()
    }

    /// SoftSpoken: a correction added where a bit of Δ is 1.
    pub fn correct(plane: &mut [Block], correction: &[Block], bit: u8) {
        softspoken::correct(plane, correction, bit);
    }

    /// Chosen OT: the message of a choice.
    #[must_use]
    pub fn open_chosen(masked: [Block; 2], choice: u8, pad: Block) -> Block {
        convert::open_chosen(masked, choice, pad)
    }
}
