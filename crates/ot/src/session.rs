//! One party's end of oblivious transfer: what upper layers hold.

use std::fmt;
use std::sync::Arc;

use volvelle_net::{Channel, Role, Traffic};
use volvelle_prim::hash::Tccr;
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::OtError;
use crate::agreement::{Security, agree};
use crate::background::{AheadReceiver, AheadSender};
use crate::base::{self, BaseOt};
use crate::dual;
use crate::engine::{CotReceiver, CotSender, CotSource, Supply};
use crate::ferret::{self, Set};
use crate::plan::OtDemand;
use crate::softspoken::{self, Piece, SoftSpokenReceiver, SoftSpokenSender};

/// The extension that seeds silent OT: 15 bits a COT, and there are few.
const BOOTSTRAP: Piece = Piece::Eight;

/// OTs hashed at once: their blocks stay in the first-level cache.
pub(crate) const CHUNK: usize = 1024;

/// OTs that one call makes at most.
pub(crate) const MAX_COUNT: u64 = 1 << 32;

/// Bits of an OT's number; above them a tweak has the lane.
const NUMBER_BITS: u32 = 55;

/// How correlated OTs are made once a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Silent OT from primal LPN: a fraction of a bit an OT ([`crate::ferret`]).
    Ferret(Set),
    /// Silent OT from dual LPN: a tenth of a bit an OT and more memory ([`crate::dual`]).
    Dual(dual::Set),
    /// OT extension: no LPN and less computing, tens of bits an OT ([`crate::softspoken`]).
    SoftSpoken(Piece),
}

impl Engine {
    /// A number for the wire: agreement constant.
    const fn code(self) -> u8 {
        match self {
            Self::Ferret(set) => set.log_secret() as u8,
            Self::Dual(set) => set.wire(),
            Self::SoftSpoken(piece) => 0x80 | piece.bits() as u8,
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ferret(set) => write!(f, "ferret-{}", set.name()),
            Self::Dual(set) => write!(f, "dual-{}", set.name()),
            Self::SoftSpoken(piece) => write!(f, "softspoken-{}", piece.bits()),
        }
    }
}

/// What both parties must agree on before [`Ot::setup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtConfig {
    /// The source of correlated OTs in both directions.
    pub engine: Engine,
    /// The public-key cryptography that it starts from.
    pub base: BaseOt,
    /// What the peer may do.
    pub security: Security,
}

impl Default for OtConfig {
    fn default() -> Self {
        Self::ferret(Set::K17)
    }
}

impl OtConfig {
    /// An engine with the default base OT, semi-honest.
    #[must_use]
    pub const fn new(engine: Engine) -> Self {
        Self {
            engine,
            base: BaseOt::Ristretto,
            security: Security::SemiHonest,
        }
    }

    /// The same with another base OT.
    #[must_use]
    pub const fn with_base(self, base: BaseOt) -> Self {
        Self { base, ..self }
    }

    /// The same with other security.
    #[must_use]
    pub const fn with_security(self, security: Security) -> Self {
        Self { security, ..self }
    }

    /// Silent OT with a parameter set.
    #[must_use]
    pub const fn ferret(set: Set) -> Self {
        Self::new(Engine::Ferret(set))
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
/// counts. By convention the client sends first. A call for no OTs does nothing and sends nothing; one for more
/// than 2^32 is refused.
///
/// An error in the middle of a call leaves the two ends out of step, and what an end has used up is unknown; so every later
/// call gives [`OtError::Broken`]. A call refused for its arguments changes nothing.
pub struct Ot {
    pub(crate) role: Role,
    pub(crate) sender: Box<dyn CotSender>,
    pub(crate) receiver: Box<dyn CotReceiver>,
    /// Among those under the same Δ.
    pub(crate) lane: u8,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// In malicious security: randomness of punctured PRFs and of their checks.
    pub(crate) checks: Option<Prg>,
    /// Room for punctured PRFs and for pieces of random OTs.
    pub(crate) scratch: Zeroizing<Vec<Block>>,
    /// A call is under way, or one has failed.
    broken: bool,
}

impl Ot {
    /// Base OTs, bootstrapping extension and, for sets over the smallest, a first silent iteration, in
    /// both directions at once.
    ///
    /// Bits and time are one-time cost; callers meter them under `Phase::Setup`.
    ///
    /// # Errors
    /// [`OtError::Net`] for connection trouble or a peer out of step, [`OtError::Config`] if the peer
    /// asks for another engine, base OT or security, [`OtError::InvalidPoint`] or [`OtError::InvalidKey`] for a
    /// malformed base-OT message, [`OtError::Cheating`] for a failed check.
    pub fn setup(ch: &mut Channel, config: OtConfig) -> Result<Self, OtError> {
        Self::setup_from(ch, config, Prg::from_os())
    }

    /// [`Self::setup`] with this party's randomness given, for tests of the wire format.
    pub(crate) fn setup_from(
        ch: &mut Channel,
        config: OtConfig,
        prg: Prg,
    ) -> Result<Self, OtError> {
        let lanes = Self::set_up(ch, config, prg, 1)?;
        lanes.into_iter().next().ok_or(OtError::Broken)
    }

    /// Sets up so many lanes under one Δ, over one channel.
    pub(crate) fn set_up(
        ch: &mut Channel,
        config: OtConfig,
        prg: Prg,
        lanes: usize,
    ) -> Result<Vec<Self>, OtError> {
        ch.span("ot/setup", |ch| {
            Self::set_up_in_span(ch, config, prg, lanes)
        })
    }

    fn set_up_in_span(
        ch: &mut Channel,
        config: OtConfig,
        mut prg: Prg,
        lanes: usize,
    ) -> Result<Vec<Self>, OtError> {
        let settings = [
            ("engine", config.engine.code()),
            ("base OT", config.base.code()),
            ("security", config.security.code()),
        ];
        let matrix_seed = agree(ch, &mut prg, config.security, &settings)?;
        let piece = match config.engine {
            Engine::SoftSpoken(piece) => piece,
            Engine::Ferret(_) | Engine::Dual(_) => BOOTSTRAP,
        };
        let mut sources = extension(ch, &mut prg, piece, config)?;
        if let Engine::Ferret(set) = config.engine {
            // The larger sets take their seed from an iteration of the smallest.
            if set != Set::K16 {
                let code = ferret::code(Set::K16, matrix_seed);
                ferret_ends(ch, &mut prg, (Set::K16, code), config, &mut sources)?;
            }
            let code = ferret::code(set, matrix_seed);
            if lanes > 1 {
                return Self::ferret_lanes(ch, (set, code), lanes, sources);
            }
            ferret_ends(ch, &mut prg, (set, code), config, &mut sources)?;
        }
        let (mut sender, mut receiver) = sources;
        if let Engine::Dual(set) = config.engine {
            let map = dual::Map::new(set, matrix_seed);
            for ot_sender in [Role::Client, Role::Server] {
                let checks = config.security.is_malicious().then(|| prg.fork());
                let map = (set, map.clone());
                if ch.role() == ot_sender {
                    sender = Box::new(dual::sender(ch, &mut *sender, map, checks)?);
                } else {
                    receiver = Box::new(dual::receiver(ch, &mut *receiver, map, checks)?);
                }
            }
        }
        ch.flush()?;
        let mut ot = Self::from_sources(ch.role(), sender, receiver);
        ot.checks = config.security.is_malicious().then(|| prg.fork());
        Ok(vec![ot])
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
            lane: 0,
            sent: 0,
            received: 0,
            checks: None,
            scratch: Zeroizing::default(),
            broken: false,
        }
    }

    /// Moves the making of OTs to the background: a thread a direction works ahead, each on a channel of its
    /// own, while this party computes or waits for its peer. Both parties do this at the same point of
    /// their sessions, `client_sends` connecting the ends where the client is OT sender.
    ///
    /// What the threads send is metered on their channels and not on this party's main one: [`Self::background`].
    ///
    /// The threads work on until this is dropped. Where it is known what will be asked for,
    /// [`Self::make_ahead_for`] makes no more than that.
    #[must_use]
    pub fn make_ahead(self, client_sends: Channel, server_sends: Channel) -> Self {
        let endless = OtDemand {
            client_sends: u64::MAX,
            server_sends: u64::MAX,
        };
        self.make_ahead_for(client_sends, server_sends, endless)
    }

    /// The same for a demand that is known: so many OTs are made ahead (2 MiB a direction at a time), and
    /// those asked for beyond it when they are asked for. Both parties state the same demand. What is sent for a demand is
    /// then the same as without a background.
    #[must_use]
    pub fn make_ahead_for(
        mut self,
        client_sends: Channel,
        server_sends: Channel,
        demand: OtDemand,
    ) -> Self {
        let (client, server) = (
            (client_sends, demand.client_sends),
            (server_sends, demand.server_sends),
        );
        let (send, receive) = match self.role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        self.sender = Box::new(AheadSender::new(self.sender, send.0, send.1));
        self.receiver = Box::new(AheadReceiver::new(self.receiver, receive.0, receive.1));
        self
    }

    /// What the background's two channels have carried, counted up to the OTs ready here; nothing without a background.
    #[must_use]
    pub fn background(&self) -> Traffic {
        let traffic = [self.sender.background(), self.receiver.background()];
        let carried = traffic.into_iter().flatten();
        carried.fold(Traffic::default(), Traffic::alongside)
    }

    /// Runs a call that talks to the peer. It marks this end broken first, so that an error, or a panic in a
    /// caller's closure, leaves it so.
    pub(crate) fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, OtError>,
    ) -> Result<T, OtError> {
        if self.broken {
            return Err(OtError::Broken);
        }
        let limit = 1 << NUMBER_BITS;
        if self.sent.max(self.received) > limit - 2 * MAX_COUNT {
            return Err(OtError::UsedUp { limit });
        }
        self.broken = true;
        let done = call(self);
        match done {
            Ok(_) => self.broken = false,
            Err(_) => self.abandon(),
        }
        done
    }

    /// Hands on what came of talking to the peer about OTs that are used up; after an error this end is broken.
    pub(crate) fn or_broken<T, E: Into<OtError>>(
        &mut self,
        done: Result<T, E>,
    ) -> Result<T, OtError> {
        if done.is_err() {
            self.abandon();
        }
        done.map_err(Into::into)
    }

    /// Marks this end unusable, as an error in the middle of a call does, so that no other lane waits for it: for a thread that gives up
    /// over something else.
    pub fn abandon(&mut self) {
        self.broken = true;
        self.sender.leave();
        self.receiver.leave();
    }

    /// Which party this end belongs to.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The tweak of an OT: its number, the lane, and the top bit set where the server is the OT sender. Lanes under one Δ
    /// have none in common.
    pub(crate) fn tweak(&self, ot_sender: Role, number: u64) -> u64 {
        let server = u64::from(ot_sender == Role::Server);
        server << 63 | u64::from(self.lane) << NUMBER_BITS | number
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
    /// [`OtError::TooMany`]; [`OtError::Net`]; in malicious security [`OtError::Cheating`]; after an error
    /// [`OtError::Broken`].
    pub fn send_random(
        &mut self,
        ch: &mut Channel,
        width: usize,
        zeros: &mut [Block],
        ones: &mut [Block],
    ) -> Result<(), OtError> {
        OtError::check("one-pads of random OTs", zeros.len(), ones.len())?;
        check_width(zeros.len(), width)?;
        check_count("random OTs", (zeros.len() / width) as u64)?;
        self.guarded(|ot| ot.send_chunks(ch, width, zeros, ones))
    }

    fn send_chunks(
        &mut self,
        ch: &mut Channel,
        width: usize,
        zeros: &mut [Block],
        ones: &mut [Block],
    ) -> Result<(), OtError> {
        let delta = self.sender.delta();
        let mut q = Zeroizing::new([Block::ZERO; CHUNK]);
        for (zeros, ones) in zeros
            .chunks_mut(CHUNK * width)
            .zip(ones.chunks_mut(CHUNK * width))
        {
            let q = &mut q[..zeros.len() / width];
            self.sender.extend(ch, q)?;
            let hash = Tccr {
                first: self.tweak(self.role, self.sent),
                width,
            };
            hash.hash_both(q, delta, zeros, ones);
            self.sent += q.len() as u64;
        }
        Ok(())
    }

    /// Random OTs as receiver: `choices[i]` ∈ {0, 1} is uniform (made here, not chosen) and
    /// `pads[i·width ..][.. width]` is the sender's pad of that choice.
    ///
    /// # Errors
    /// [`OtError::Shape`] unless `pads.len() == choices.len() * width`; the others as [`Self::send_random`].
    pub fn recv_random(
        &mut self,
        ch: &mut Channel,
        width: usize,
        choices: &mut [u8],
        pads: &mut [Block],
    ) -> Result<(), OtError> {
        check_width(pads.len(), width)?;
        OtError::check(
            "pads of random OTs",
            choices.len().saturating_mul(width),
            pads.len(),
        )?;
        check_count("random OTs", choices.len() as u64)?;
        self.guarded(|ot| ot.recv_chunks(ch, width, choices, pads))
    }

    fn recv_chunks(
        &mut self,
        ch: &mut Channel,
        width: usize,
        choices: &mut [u8],
        pads: &mut [Block],
    ) -> Result<(), OtError> {
        let mut r = Zeroizing::new([Block::ZERO; CHUNK]);
        for (choices, pads) in choices
            .chunks_mut(CHUNK)
            .zip(pads.chunks_mut(CHUNK * width))
        {
            let r = &mut r[..choices.len()];
            self.receiver.extend(ch, r)?;
            let hash = Tccr {
                first: self.tweak(self.role.other(), self.received),
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
}

pub(crate) type Sources = (Box<dyn CotSender>, Box<dyn CotReceiver>);

/// Puts an end of Ferret a direction on the sources, the client's as sender first.
fn ferret_ends(
    ch: &mut Channel,
    prg: &mut Prg,
    (set, code): (Set, Arc<LocalLinearCode>),
    config: OtConfig,
    (sender, receiver): &mut Sources,
) -> Result<(), OtError> {
    for ot_sender in [Role::Client, Role::Server] {
        let checks = config.security.is_malicious().then(|| prg.fork());
        let code = (set, Arc::clone(&code));
        if ch.role() == ot_sender {
            *sender = Box::new(ferret::sender(ch, &mut **sender, code, checks)?);
        } else {
            *receiver = Box::new(ferret::receiver(ch, &mut **receiver, code, checks)?);
        }
    }
    Ok(())
}

/// Base OTs and an OT extension on them, both ways at once.
fn extension(
    ch: &mut Channel,
    prg: &mut Prg,
    piece: Piece,
    OtConfig { base, security, .. }: OtConfig,
) -> Result<Sources, OtError> {
    let delta = Zeroizing::new(Block(prg.next_block().0 | 1));
    let choices = Zeroizing::new(softspoken::base_choices(piece, *delta));
    let keys = base::both_ways(ch, prg, (base, security), *choices)?;
    let receiver = SoftSpokenReceiver::new(ch, (piece, security), &keys.pairs, prg)?;
    let sender = SoftSpokenSender::new(ch, (piece, security), *delta, &keys.chosen)?;
    Ok((Box::new(sender), Box::new(receiver)))
}

pub(crate) fn check_width(blocks: usize, width: usize) -> Result<(), OtError> {
    if width == 0 || !blocks.is_multiple_of(width) {
        return Err(OtError::Shape {
            what: "pad blocks (a multiple of the width, which is over 0)",
            expected: blocks.next_multiple_of(width.max(1)),
            got: blocks,
        });
    }
    Ok(())
}

/// Refuses more than [`MAX_COUNT`] OTs a call.
pub(crate) fn check_count(what: &'static str, got: u64) -> Result<(), OtError> {
    if got > MAX_COUNT {
        return Err(OtError::TooMany {
            what,
            limit: MAX_COUNT,
            got,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lanes_have_a_tweak_in_common() {
        let (mut ot, _) = crate::testing::ideal_pair(1);
        let mut seen = std::collections::HashSet::new();
        for lane in 0..=u8::MAX {
            ot.lane = lane;
            for sender in [Role::Client, Role::Server] {
                for number in [0, 1, (1 << NUMBER_BITS) - 1] {
                    assert!(seen.insert(ot.tweak(sender, number)));
                }
            }
        }
        ot.lane = 0;
        assert_eq!(ot.tweak(Role::Client, 77), 77);
    }

    #[test]
    fn a_lane_stops_before_its_numbers_run_over() {
        let (mut ot, _) = crate::testing::ideal_pair(1);
        let mut ch = volvelle_net::testing::scripted(Role::Client, vec![]);
        ot.sent = (1 << NUMBER_BITS) - 2 * MAX_COUNT;
        let mut pads = [[Block::ZERO; 1]; 2];
        let [zeros, ones] = &mut pads;
        ot.send_random(&mut ch, 1, zeros, ones).unwrap();
        let refused = ot.send_random(&mut ch, 1, zeros, ones);
        assert!(matches!(refused, Err(OtError::UsedUp { .. })));
    }

    #[test]
    fn a_call_makes_two_to_the_32_ots_at_most() {
        assert!(check_count("random OTs", 1 << 32).is_ok());
        let refused = check_count("random OTs", (1 << 32) + 1);
        assert!(matches!(
            refused,
            Err(OtError::TooMany {
                got: 0x1_0000_0001,
                ..
            })
        ));
    }
}
