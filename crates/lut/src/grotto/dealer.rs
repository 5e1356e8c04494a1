//! The dealer's part, and what a party keeps of it.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_prim::{Block, Prg, pack};
use zeroize::Zeroizing;

use super::dpf::{self, Corrections, Form, Tree};
use super::form;
use crate::exchange::ranges;
use crate::shape::check_batch;
use crate::{LutError, Shape};

const SEED: Label = Label::new("lut/dealer-seed");
const SEEDS: Label = Label::new("lut/dealer-seeds");
const BITS: Label = Label::new("lut/dealer-bits");
const LEAVES: Label = Label::new("lut/dealer-leaves");

/// Deals a batch to both parties, which call [`super::Dealt::receive`] with the same shape and batch: `client` and
/// `server` connect the dealer with them. The dealer learns nothing, but it could: it knows the offset of every lookup, and
/// together with either party it would learn the index.
///
/// # Errors
/// If the shape is out of range, the batch empty, or a party is gone.
pub fn deal(
    client: &mut Channel,
    server: &mut Channel,
    shape: &Shape,
    batch: usize,
) -> Result<(), LutError> {
    deal_with(client, server, shape, batch, &mut Prg::from_os())
}

pub(crate) fn deal_with(
    client: &mut Channel,
    server: &mut Channel,
    shape: &Shape,
    batch: usize,
    prg: &mut Prg,
) -> Result<(), LutError> {
    shape.check()?;
    check_batch(batch)?;
    let form = form(shape);
    let mut parties = [client, server];
    let mut secrets = Vec::with_capacity(2);
    for party in &mut parties {
        let seed = Zeroizing::new(prg.next_block());
        party.send(SEED, &seed.to_bytes())?;
        secrets.push(Secrets::new(*seed));
    }
    for lookups in ranges(batch, form.chunk()) {
        let own = secrets
            .iter_mut()
            .map(|secrets| secrets.next(form, lookups.len()));
        let mut own = own.collect::<Vec<_>>().into_iter();
        let (Some(a), Some(b)) = (own.next(), own.next()) else {
            return Ok(());
        };
        let pairs = a.positions.iter().zip(b.positions.iter());
        let points = pairs.map(|(&a, &b)| shape.index.join(a, b, shape.log_entries));
        let points = Zeroizing::new(points.collect::<Vec<_>>());
        let corrections = dpf::generate(form, [&a.roots, &b.roots], &points);
        for party in &mut parties {
            send(party, form, &corrections)?;
        }
    }
    for party in parties {
        party.flush()?;
    }
    Ok(())
}

/// Bits that the dealer sends to each of the parties.
pub(super) fn bits(form: Form, batch: usize) -> u64 {
    let nodes = form.depth() * batch;
    let leaves = pack::packed_len(batch << form.log_lanes(), form.output_bits());
    128 + 128 * nodes as u64 + 8 * (nodes.div_ceil(8) + leaves) as u64
}

/// What a party and the dealer both draw from a seed.
struct Secrets(Prg);

/// Of some lookups.
struct Drawn {
    roots: Zeroizing<Vec<Block>>,
    positions: Zeroizing<Vec<u64>>,
}

impl Secrets {
    fn new(seed: Block) -> Self {
        Self(Prg::from_seed(seed))
    }

    fn next(&mut self, form: Form, count: usize) -> Drawn {
        let mut roots = Zeroizing::new(vec![Block::ZERO; count]);
        let mut positions = Zeroizing::new(vec![0; count]);
        self.0.fill_blocks(&mut roots);
        self.0.fill_masked(&mut positions, form.log_entries);
        Drawn { roots, positions }
    }
}

fn send(party: &mut Channel, form: Form, corrections: &Corrections) -> Result<(), LutError> {
    if form.depth() > 0 {
        party.send(SEEDS, Block::as_bytes(&corrections.left))?;
        party.send(BITS, &pack::pack(&corrections.right_bits, 1))?;
    }
    let lanes = form.last_lanes(&corrections.last);
    party.send(LEAVES, &pack::pack(&lanes, form.output_bits()))?;
    Ok(())
}

/// One party's keys of a batch.
pub(super) struct Keys {
    pub form: Form,
    pub tree: Tree,
    pub roots: Zeroizing<Vec<Block>>,
    /// Shares of the points.
    pub positions: Zeroizing<Vec<u64>>,
    /// Of each chunk.
    pub corrections: Vec<Corrections>,
}

impl Keys {
    pub fn receive(ch: &mut Channel, form: Form, batch: usize) -> Result<Self, LutError> {
        let mut seed = Zeroizing::new([Block::ZERO]);
        ch.recv(SEED, Block::as_bytes_mut(&mut *seed))?;
        let mut secrets = Secrets::new(seed[0]);
        let mut keys = Self {
            form,
            tree: match ch.role() {
                Role::Client => Tree::First,
                Role::Server => Tree::Second,
            },
            roots: Zeroizing::new(Vec::with_capacity(batch)),
            positions: Zeroizing::new(Vec::with_capacity(batch)),
            corrections: Vec::with_capacity(batch.div_ceil(form.chunk())),
        };
        for lookups in ranges(batch, form.chunk()) {
            let drawn = secrets.next(form, lookups.len());
            keys.roots.extend_from_slice(&drawn.roots);
            keys.positions.extend_from_slice(&drawn.positions);
            keys.corrections.push(receive(ch, form, lookups.len())?);
        }
        Ok(keys)
    }

    /// Evaluates every point of some lookups, those of a chunk.
    pub fn expand(&self, chunk: usize, lookups: Range<usize>) -> Zeroizing<Vec<Block>> {
        let corrections = &self.corrections[chunk];
        dpf::expand(self.form, self.tree, &self.roots[lookups], corrections)
    }
}

fn receive(ch: &mut Channel, form: Form, count: usize) -> Result<Corrections, LutError> {
    let nodes = form.depth() * count;
    let mut corrections = Corrections {
        left: vec![Block::ZERO; nodes],
        right_bits: vec![0; nodes],
        last: Vec::new(),
    };
    let mut frame = Vec::new();
    if nodes > 0 {
        ch.recv(SEEDS, Block::as_bytes_mut(&mut corrections.left))?;
        frame.resize(nodes.div_ceil(8), 0);
        ch.recv(BITS, &mut frame)?;
        pack::unpack_into(&frame, 1, &mut corrections.right_bits);
    }
    let mut lanes = vec![0; count << form.log_lanes()];
    frame.resize(pack::packed_len(lanes.len(), form.output_bits()), 0);
    ch.recv(LEAVES, &mut frame)?;
    pack::unpack_into(&frame, form.output_bits(), &mut lanes);
    corrections.last = form.last_from_lanes(&lanes);
    Ok(corrections)
}
