//! One party's end of oblivious transfer: what upper layers hold.

use std::fmt;

use volvelle_net::{Channel, Role};
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::OtError;
use crate::agreement::{Security, agree};
use crate::background::{AheadReceiver, AheadSender};
use crate::base::{self, BaseOt};
use crate::dual;
use crate::engine::{CotReceiver, CotSender, CotSource, Supply};
use crate::ferret::{self, Set};
use crate::softspoken::{self, Piece, SoftSpokenReceiver, SoftSpokenSender};

/// The extension that seeds silent OT: 15 bits a COT, and there are few.
const BOOTSTRAP: Piece = Piece::Eight;

/// OTs hashed at once: their blocks stay in the first-level cache.
pub(crate) const CHUNK: usize = 1024;

/// OTs that one call makes at most: tweaks and counters have room for 2^31 such calls.
pub(crate) const MAX_COUNT: u64 = 1 << 32;

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
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// In malicious security: randomness of punctured PRFs and of their checks.
    pub(crate) checks: Option<Prg>,
    /// Room for punctured PRFs.
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
    /// malformed base-OT message, [`OtError::Cheating`] for a failed check, [`OtError::Unsupported`].
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
        if matches!(config.engine, Engine::Dual(_)) && config.security.is_malicious() {
            return Err(OtError::Unsupported {
                what: "dual LPN has no malicious-secure option; use ferret",
            });
        }
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
        let (mut sender, mut receiver) = extension(ch, &mut prg, piece, config)?;
        // The larger sets take their seed from an iteration of the smallest.
        let stages = match config.engine {
            Engine::SoftSpoken(_) | Engine::Dual(_) => vec![],
            Engine::Ferret(Set::K16) => vec![Set::K16],
            Engine::Ferret(set) => vec![Set::K16, set],
        };
        for set in stages {
            let code = ferret::code(set, matrix_seed);
            for ot_sender in [Role::Client, Role::Server] {
                if ch.role() == ot_sender {
                    let checks = config.security.is_malicious().then(|| prg.fork());
                    sender = Box::new(ferret::sender(
                        ch,
                        &mut *sender,
                        (set, code.clone()),
                        checks,
                    )?);
                } else {
                    let checks = config.security.is_malicious().then(|| prg.fork());
                    receiver = Box::new(ferret::receiver(
                        ch,
                        &mut *receiver,
                        (set, code.clone()),
                        checks,
                    )?);
                }
            }
        }
        if let Engine::Dual(set) = config.engine {
            let map = dual::Map::new(set, matrix_seed);
            for ot_sender in [Role::Client, Role::Server] {
                if ch.role() == ot_sender {
                    sender = Box::new(dual::sender(ch, &mut *sender, set, map.clone())?);
                } else {
                    receiver = Box::new(dual::receiver(ch, &mut *receiver, set, map.clone())?);
                }
            }
        }
        ch.flush()?;
        let mut ot = Self::from_sources(ch.role(), sender, receiver);
        ot.checks = config.security.is_malicious().then(|| prg.fork());
        Ok(ot)
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
            checks: None,
            scratch: Zeroizing::default(),
            broken: false,
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

    /// Runs a call that talks to the peer. It marks this end broken first, so that an error, or a panic in a
    /// caller's closure, leaves it so.
    pub(crate) fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut Self) -> Result<T, OtError>,
    ) -> Result<T, OtError> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(OtError::Broken);
        }
        let done = call(self)?;
        self.broken = false;
        Ok(done)
    }

    /// Hands on what came of talking to the peer about OTs that are used up; after an error this end is broken.
    pub(crate) fn or_broken<T, E: Into<OtError>>(
        &mut self,
        done: Result<T, E>,
    ) -> Result<T, OtError> {
        self.broken |= done.is_err();
        done.map_err(Into::into)
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
                first: tweak(self.role, self.sent),
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
}

/// The tweak of an OT: its number, and the top bit set where the server is the OT sender.
pub(crate) fn tweak(ot_sender: Role, number: u64) -> u64 {
    number | u64::from(ot_sender == Role::Server) << 63
}

type Sources = (Box<dyn CotSender>, Box<dyn CotReceiver>);

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
