//! One party's end of oblivious transfer: what upper layers hold.

use std::fmt;

use volvelle_net::{Channel, Label, Role};
use volvelle_prim::ggm::{Leaf, TREES};
use volvelle_prim::hash::{Tccr, ccr};
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::background::{AheadReceiver, AheadSender};
use crate::engine::{CotReceiver, CotSender, Supply};
use crate::ferret::{self, Set};
use crate::softspoken::{self, Piece, SoftSpokenReceiver, SoftSpokenSender};
use crate::{OtError, base, trees};

const SETUP: Label = Label::new("ot/setup");

/// The extension that seeds silent OT: 15 bits a COT, and there are few.
const BOOTSTRAP: Piece = Piece::Eight;

/// OTs hashed at once: their blocks stay in the first-level cache.
const CHUNK: usize = 1024;

/// How correlated OTs are made once a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Silent OT from primal LPN: a fraction of a bit an OT ([`crate::ferret`]).
    Ferret(Set),
    /// OT extension: no LPN and less computing, tens of bits an OT ([`crate::softspoken`]).
    SoftSpoken(Piece),
}

impl Engine {
    /// A number for the wire: agreement constant.
    const fn code(self) -> u8 {
        match self {
            Self::Ferret(set) => set.log_secret() as u8,
            Self::SoftSpoken(piece) => 0x80 | piece.bits() as u8,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ferret(set) => write!(f, "ferret-{}", set.name()),
            Self::SoftSpoken(piece) => write!(f, "softspoken-{}", piece.bits()),
        }
    }
}

/// What both parties must agree on before [`Ot::setup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtConfig {
    /// The source of correlated OTs in both directions.
    pub engine: Engine,
}

impl Default for OtConfig {
    fn default() -> Self {
        Self::ferret(Set::K17)
    }
}

impl OtConfig {
    /// Silent OT with a parameter set.
    #[must_use]
    pub const fn ferret(set: Set) -> Self {
        Self {
            engine: Engine::Ferret(set),
        }
    }

    /// Silent OT with the parameter set that suits a demand of `cots` OTs a direction.
    #[must_use]
    pub const fn for_demand(cots: u64) -> Self {
        Self::ferret(Set::for_demand(cots))
    }
}

/// What an [`Ot`] has made and handed out, for amortised figures. "send" is this party as OT sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct OtStats {
    /// OTs handed out as sender.
    pub consumed_send: u64,
    /// OTs handed out as receiver.
    pub consumed_recv: u64,
    /// Correlated OTs made as sender, those included that seed the engine's next iterations.
    pub made_send: u64,
    /// Correlated OTs made as receiver.
    pub made_recv: u64,
    /// Long-run ratio of OTs made to OTs handed out.
    pub overhead: f64,
    /// Long-run bits sent by both parties per OT handed out.
    pub bits_per_ot: f64,
}

/// One party's end: random OTs in both directions and a punctured PRF.
///
/// The parties make mirrored calls in the same order: where one sends, the other receives with the same
/// counts. By convention the client sends first. An error leaves the two ends out of step: drop both.
pub struct Ot {
    role: Role,
    pub(crate) sender: Box<dyn CotSender>,
    pub(crate) receiver: Box<dyn CotReceiver>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Every PPRF tree, both directions together.
    scratch: Zeroizing<Vec<Block>>,
}

impl Ot {
    /// Base OTs, bootstrapping extension and, for sets over the smallest, a first silent iteration, in
    /// both directions at once.
    ///
    /// Bits and time are one-time cost; callers meter them under `Phase::Setup`.
    ///
    /// # Errors
    /// [`OtError::Net`] for connection trouble or a peer out of step, [`OtError::Config`] if the peer
    /// asks for another engine, [`OtError::InvalidPoint`] for a malformed base-OT message.
    pub fn setup(ch: &mut Channel, config: OtConfig) -> Result<Self, OtError> {
        Self::setup_from(ch, config, Prg::from_os())
    }

    /// [`Self::setup`] with this party's randomness given, for tests of the wire format.
    pub(crate) fn setup_from(
        ch: &mut Channel,
        config: OtConfig,
        prg: Prg,
    ) -> Result<Self, OtError> {
        ch.span("ot/setup", |ch| Self::setup_in_span(ch, config, prg))
    }

    fn setup_in_span(ch: &mut Channel, config: OtConfig, mut prg: Prg) -> Result<Self, OtError> {
        let matrix_seed = agree(ch, &mut prg, config)?;
        let piece = match config.engine {
            Engine::SoftSpoken(piece) => piece,
            Engine::Ferret(_) => BOOTSTRAP,
        };
        let (mut sender, mut receiver) = extension(ch, &mut prg, piece)?;
        // The larger sets take their seed from an iteration of the smallest.
        let stages = match config.engine {
            Engine::SoftSpoken(_) => vec![],
            Engine::Ferret(Set::K16) => vec![Set::K16],
            Engine::Ferret(set) => vec![Set::K16, set],
        };
        for set in stages {
            let code = ferret::code(set, matrix_seed);
            for ot_sender in [Role::Client, Role::Server] {
                if ch.role() == ot_sender {
                    sender = Box::new(ferret::sender(ch, &mut *sender, set, code.clone())?);
                } else {
                    receiver = Box::new(ferret::receiver(ch, &mut *receiver, set, code.clone())?);
                }
            }
        }
        ch.flush()?;
        Ok(Self::from_sources(ch.role(), sender, receiver))
    }

    pub(crate) fn from_sources(
        role: Role,
        sender: Box<dyn CotSender>,
        receiver: Box<dyn CotReceiver>,
    ) -> Self {
        Self {
            role,
            sender,
            receiver,
            sent: 0,
            received: 0,
            scratch: Zeroizing::default(),
        }
    }

    /// Moves the making of OTs to the background: a thread a direction works ahead, each on a channel of its
    /// own, while this party computes or waits for its peer. Both parties do this at the same point of
    /// their sessions, `client_sends` connecting the ends where the client is OT sender.
    ///
    /// What the threads send is metered on their channels and not on this party's main one.
    #[must_use]
    pub fn make_ahead(mut self, client_sends: Channel, server_sends: Channel) -> Self {
        let (send, receive) = match self.role {
            Role::Client => (client_sends, server_sends),
            Role::Server => (server_sends, client_sends),
        };
        self.sender = Box::new(AheadSender::new(self.sender, send));
        self.receiver = Box::new(AheadReceiver::new(self.receiver, receive));
        self
    }

    /// Which party this end belongs to.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What has been made and handed out.
    #[must_use]
    pub fn stats(&self) -> OtStats {
        let (send, recv): (Supply, Supply) = (self.sender.supply(), self.receiver.supply());
        OtStats {
            consumed_send: self.sent,
            consumed_recv: self.received,
            made_send: send.made,
            made_recv: recv.made,
            overhead: send.overhead,
            bits_per_ot: send.bits_per_cot,
        }
    }

    /// Random OTs as sender: OT `i` has the pads `zeros[i·width ..][.. width]` and `ones[…]`, uniform and
    /// independent blocks; the receiver gets one of the two.
    ///
    /// Pads are `H(i, q_i)` and `H(i, q_i ⊕ Δ)` under a tweakable correlation-robust hash.
    ///
    /// # Errors
    /// [`OtError::Shape`] unless both slices have the same length, a multiple of `width > 0`;
    /// [`OtError::Net`].
    pub fn send_random(
        &mut self,
        ch: &mut Channel,
        width: usize,
        zeros: &mut [Block],
        ones: &mut [Block],
    ) -> Result<(), OtError> {
        OtError::check("one-pads of random OTs", zeros.len(), ones.len())?;
        check_width(zeros.len(), width)?;
        let delta = self.sender.delta();
        let mut q = Zeroizing::new([Block::ZERO; CHUNK]);
        for (zeros, ones) in zeros
            .chunks_mut(CHUNK * width)
            .zip(ones.chunks_mut(CHUNK * width))
        {
            let q = &mut q[..zeros.len() / width];
            self.sender.extend(ch, q)?;
            let hash = Tccr {
                first: tweak(self.role, self.sent),
                width,
            };
            hash.hash(q, Block::ZERO, zeros);
            hash.hash(q, delta, ones);
            self.sent += q.len() as u64;
        }
        Ok(())
    }

    /// Random OTs as receiver: `choices[i]` ∈ {0, 1} is uniform (made here, not chosen) and
    /// `pads[i·width ..][.. width]` is the sender's pad of that choice.
    ///
    /// # Errors
    /// [`OtError::Shape`] unless `pads.len() == choices.len() * width`; [`OtError::Net`].
    pub fn recv_random(
        &mut self,
        ch: &mut Channel,
        width: usize,
        choices: &mut [u8],
        pads: &mut [Block],
    ) -> Result<(), OtError> {
        check_width(pads.len(), width)?;
        OtError::check("pads of random OTs", choices.len() * width, pads.len())?;
        let mut r = Zeroizing::new([Block::ZERO; CHUNK]);
        for (choices, pads) in choices
            .chunks_mut(CHUNK)
            .zip(pads.chunks_mut(CHUNK * width))
        {
            let r = &mut r[..choices.len()];
            self.receiver.extend(ch, r)?;
            let hash = Tccr {
                first: tweak(self.role.other(), self.received),
                width,
            };
            hash.hash(r, Block::ZERO, pads);
            for (choice, r) in choices.iter_mut().zip(r.iter()) {
                *choice = u8::from(r.lsb());
            }
            self.received += r.len() as u64;
        }
        Ok(())
    }

    /// Punctured PRF as sender: `count` trees of `2^depth` leaves, each hashed to `width` blocks.
    ///
    /// `visit(i, rows)` sees the `2^depth · width` blocks of tree `i`, in order; they may be overwritten.
    /// Sends `128·(depth − 1)` bits a tree in one round (see `crate::trees`), consumes `depth` OTs a tree.
    /// Rows are `H(leaf ⊕ j)`, `j < width`, with the correlation-robust hash of the trees.
    ///
    /// # Errors
    /// [`OtError::Shape`] for a depth outside `1..=24` or a zero width; [`OtError::Net`].
    pub fn send_pprf(
        &mut self,
        ch: &mut Channel,
        depth: u32,
        width: usize,
        count: usize,
        visit: &mut dyn FnMut(usize, &mut [Block]),
    ) -> Result<(), OtError> {
        check_tree(depth, width)?;
        let delta = self.sender.delta();
        self.for_groups(
            (depth, width),
            count,
            |ot, used, cots, nodes| {
                ot.sender.extend(ch, cots)?;
                ot.sent += cots.len() as u64;
                trees::send(ch, delta, cots, (depth, used), nodes)?;
                Ok([0; TREES])
            },
            &mut |i, _, rows| visit(i, rows),
        )
    }

    /// Punctured PRF as receiver, at uniform points made here: `visit(i, point, rows)` sees the sender's
    /// rows of tree `i` but for row `point`, which holds a public constant.
    ///
    /// # Errors
    /// As [`Self::send_pprf`].
    pub fn recv_pprf(
        &mut self,
        ch: &mut Channel,
        depth: u32,
        width: usize,
        count: usize,
        visit: &mut dyn FnMut(usize, usize, &mut [Block]),
    ) -> Result<(), OtError> {
        check_tree(depth, width)?;
        self.for_groups(
            (depth, width),
            count,
            |ot, used, cots, nodes| {
                ot.receiver.extend(ch, cots)?;
                ot.received += cots.len() as u64;
                trees::receive(ch, cots, (depth, used), Leaf::Zero, nodes)
            },
            &mut |i, point, rows| visit(i, point as usize, rows),
        )
    }

    /// Eight trees at a time: `grow` fills the leaves, `visit` sees the hashed rows of each tree.
    fn for_groups(
        &mut self,
        (depth, width): (u32, usize),
        count: usize,
        mut grow: impl FnMut(
            &mut Self,
            usize,
            &mut [Block],
            &mut [Block],
        ) -> Result<[u64; TREES], OtError>,
        visit: &mut dyn FnMut(usize, u64, &mut [Block]),
    ) -> Result<(), OtError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.resize((TREES + width) << depth, Block::ZERO);
        let (nodes, rows) = scratch.split_at_mut(TREES << depth);
        let mut cots = Zeroizing::new(vec![Block::ZERO; TREES * depth as usize]);
        for first in (0..count).step_by(TREES) {
            let used = TREES.min(count - first);
            let points = grow(self, used, &mut cots[..used * depth as usize], nodes)?;
            for (t, &point) in points[..used].iter().enumerate() {
                match width {
                    1 => spread::<1>(nodes, t, rows),
                    2 => spread::<2>(nodes, t, rows),
                    4 => spread::<4>(nodes, t, rows),
                    _ => spread_any(nodes, t, rows, width),
                }
                ccr(rows);
                visit(first + t, point, rows);
            }
        }
        self.scratch = scratch;
        Ok(())
    }
}

/// `rows[j·W + b] = (leaf j of tree t) ⊕ b`: distinct hash inputs for every block of a row.
fn spread<const W: usize>(nodes: &[Block], t: usize, rows: &mut [Block]) {
    for (leaves, row) in nodes
        .as_chunks::<TREES>()
        .0
        .iter()
        .zip(rows.as_chunks_mut::<W>().0)
    {
        let leaf = leaves[t % TREES];
        for (b, block) in row.iter_mut().enumerate() {
            *block = leaf ^ Block(b as u128);
        }
    }
}

/// [`spread`] for any width.
fn spread_any(nodes: &[Block], t: usize, rows: &mut [Block], width: usize) {
    for (leaves, row) in nodes.chunks_exact(TREES).zip(rows.chunks_exact_mut(width)) {
        for (b, block) in row.iter_mut().enumerate() {
            *block = leaves[t] ^ Block(b as u128);
        }
    }
}

/// The tweak of an OT: its number, and the top bit set where the server is the OT sender.
fn tweak(ot_sender: Role, number: u64) -> u64 {
    number | u64::from(ot_sender == Role::Server) << 63
}

type Sources = (Box<dyn CotSender>, Box<dyn CotReceiver>);

/// Base OTs and an OT extension on them, both ways at once.
fn extension(ch: &mut Channel, prg: &mut Prg, piece: Piece) -> Result<Sources, OtError> {
    let delta = Zeroizing::new(Block(prg.next_block().0 | 1));
    let first = base::send_first(ch, prg)?;
    let chosen = base::receive(ch, prg, softspoken::base_choices(piece, *delta))?;
    let pairs = base::send_finish(ch, &first)?;
    let receiver = SoftSpokenReceiver::new(ch, piece, &pairs, prg)?;
    let sender = SoftSpokenSender::new(ch, piece, *delta, &chosen)?;
    Ok((Box::new(sender), Box::new(receiver)))
}

/// Exchanges the engine and a share each of the matrix seed; returns the seed.
fn agree(ch: &mut Channel, prg: &mut Prg, config: OtConfig) -> Result<Block, OtError> {
    let share = prg.next_block();
    let mut message = [0; 17];
    message[..16].copy_from_slice(&share.to_bytes());
    message[16] = config.engine.code();
    ch.send(SETUP, &message)?;
    let mut theirs = [0; 17];
    ch.recv(SETUP, &mut theirs)?;
    if theirs[16] != message[16] {
        return Err(OtError::Config {
            ours: message[16],
            theirs: theirs[16],
        });
    }
    let mut their_share = [0; 16];
    their_share.copy_from_slice(&theirs[..16]);
    Ok(share ^ Block::from_bytes(their_share))
}

fn check_width(blocks: usize, width: usize) -> Result<(), OtError> {
    if width == 0 || !blocks.is_multiple_of(width) {
        return Err(OtError::Shape {
            what: "pad blocks (a multiple of the width, which is over 0)",
            expected: blocks.next_multiple_of(width.max(1)),
            got: blocks,
        });
    }
    Ok(())
}

fn check_tree(depth: u32, width: usize) -> Result<(), OtError> {
    if !(1..=24).contains(&depth) {
        return Err(OtError::Shape {
            what: "tree depth (1 to 24)",
            expected: 24,
            got: depth as usize,
        });
    }
    check_width(width, width)
}
