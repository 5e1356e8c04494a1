//! Which source of OTs suits a link and a demand.
//!
//! Every engine has three prices: what starting it takes, what an OT takes to compute, and what an OT sends. Extension
//! (SoftSpoken) starts soonest and sends most; Ferret computes least, its largest set sends least. The choice is the
//! engine that is done first; of those within a tenth of it, the one that sends least. Dual LPN is never chosen, only
//! named: its security rests on estimates of distances (`docs/security.md`).
//!
//! The bits and rounds are exact ([`Figures`], held to the meter by tests). The times are those of one machine
//! (2 cores of an AMD Zen 5, one thread a party) and stand in a fixed proportion only: both parties must come to the same
//! choice, so it depends on nothing that they have not agreed on, the speed of either machine included. Without AVX-512
//! everything takes two to eight times as long (2 cores of a Zen 3: Ferret k17 25 ns, SoftSpoken k = 2 and 4 15 and 24, k = 8 190), which
//! changes no choice of a session: there what is sent decides. A caller that has timed its own machine multiplies.

use std::ops::Add;

use volvelle_net::Link;
use volvelle_prim::ggm::TREES;

use crate::dual;
use crate::ferret::Set;
use crate::softspoken::{self, Piece};
use crate::{Cost, Engine, OtConfig, Security};

/// OTs wanted, by the party that is OT sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtDemand {
    /// OTs with the client as sender.
    pub client_sends: u64,
    /// OTs with the server as sender.
    pub server_sends: u64,
}

impl OtDemand {
    /// The OTs of a cost.
    #[must_use]
    pub const fn of(cost: &Cost) -> Self {
        Self {
            client_sends: cost.cots_client,
            server_sends: cost.cots_server,
        }
    }

    /// The same so many times.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self {
            client_sends: self.client_sends.saturating_mul(times),
            server_sends: self.server_sends.saturating_mul(times),
        }
    }
}

impl Add for OtDemand {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            client_sends: self.client_sends.saturating_add(other.client_sends),
            server_sends: self.server_sends.saturating_add(other.server_sends),
        }
    }
}

/// How long OTs are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Horizon {
    /// This demand and no other: set-up and a first iteration count.
    Once,
    /// Many such demands in one session: only what an OT costs in the long run counts.
    Session,
}

/// What an engine costs, semi-honest.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Bits sent per OT by the OT sender, in the long run.
    pub sender_bits: f64,
    /// Bits sent per OT by the OT receiver.
    pub receiver_bits: f64,
    /// Nanoseconds to make an OT, both parties at work, in the midst of other work, on the machine described above; hashing it is the
    /// caller's.
    pub ns: f64,
    /// OTs made at a time, those left over kept for later.
    pub group: f64,
    /// Bits that each party sends to set up, with base OTs on Ristretto.
    pub setup_bits: u64,
    /// Rounds of the set-up.
    pub setup_rounds: u64,
    /// Computing of the set-up, nanoseconds.
    pub setup_ns: f64,
    /// Computing before the first OTs after that, nanoseconds a direction.
    pub lump_ns: f64,
}

impl Engine {
    /// Engines that a plan chooses from.
    pub const PLANNED: [Self; 5] = [
        Self::Ferret(Set::K16),
        Self::Ferret(Set::K17),
        Self::Ferret(Set::K19),
        Self::SoftSpoken(Piece::Two),
        Self::SoftSpoken(Piece::Four),
    ];

    /// The engine of this name, as displayed.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let dual = [dual::Code::ExpandConvolute, dual::Code::QuasiCyclic]
            .into_iter()
            .flat_map(|code| dual::Size::ALL.map(|size| Self::Dual(dual::Set { code, size })));
        Set::ALL
            .into_iter()
            .map(Self::Ferret)
            .chain(Piece::ALL.into_iter().map(Self::SoftSpoken))
            .chain(dual)
            .find(|engine| engine.to_string() == name)
    }

    /// What it costs.
    #[must_use]
    pub fn figures(self) -> Figures {
        let (ns, setup_ms, lump_ms) = self.times();
        let (sender_bits, receiver_bits) = match self {
            Self::Ferret(set) => (set.bits() as f64 / set.handed_out() as f64, 0.0),
            Self::Dual(set) => (set.bits() as f64 / set.handed_out() as f64, 0.0),
            Self::SoftSpoken(piece) => (0.0, piece.bits_per_cot() as f64),
        };
        let (setup_bits, setup_rounds) = self.setup();
        Figures {
            sender_bits,
            receiver_bits,
            ns,
            group: self.group() as f64,
            setup_bits,
            setup_rounds,
            setup_ns: setup_ms * 1e6,
            lump_ns: lump_ms * 1e6,
        }
    }

    /// OTs of a group of trees, or of a chunk of the extension.
    const fn group(self) -> usize {
        match self {
            Self::Ferret(set) => TREES << set.depth(),
            Self::Dual(set) => set.made(),
            Self::SoftSpoken(_) => softspoken::CHUNK,
        }
    }

    /// Nanoseconds an OT handed out, milliseconds of set-up, milliseconds until a direction's first OTs.
    const fn times(self) -> (f64, f64, f64) {
        match self {
            Self::Ferret(Set::K16) => (9.0, 28.0, 0.5),
            Self::Ferret(Set::K17) => (7.5, 45.0, 0.2),
            Self::Ferret(Set::K18) => (10.0, 40.0, 2.0),
            Self::Ferret(Set::K19) => (14.0, 45.0, 2.0),
            Self::SoftSpoken(Piece::One) => (5.0, 17.0, 0.2),
            Self::SoftSpoken(Piece::Two) => (4.0, 17.0, 0.2),
            Self::SoftSpoken(Piece::Four) => (5.0, 14.0, 0.2),
            Self::SoftSpoken(Piece::Eight) => (24.0, 22.0, 1.0),
            Self::Dual(set) => {
                let (ns, lump_per_million) = match set.code {
                    dual::Code::ExpandConvolute => (25.0, 16.0),
                    dual::Code::QuasiCyclic => (120.0, 100.0),
                };
                let ns = if set.size.log_rows() > 20 {
                    1.6 * ns
                } else {
                    ns
                };
                (ns, 24.0, lump_per_million * set.made() as f64 / 1e6)
            }
        }
    }

    /// Bits that each party sends to set up (to a tenth), and rounds of it.
    const fn setup(self) -> (u64, u64) {
        match self {
            Self::Ferret(Set::K16) => (1_295_000, 6),
            Self::Ferret(Set::K17) => (1_625_000, 7),
            Self::Ferret(Set::K18) => (1_615_000, 7),
            Self::Ferret(Set::K19) => (1_920_000, 7),
            Self::SoftSpoken(_) => (66_000, 4),
            Self::Dual(set) => {
                // Seeds come in chunks of the extension.
                let chunks = set.seed().div_ceil(8192) as u64;
                (66_000 + 8192 * 15 * chunks, 6)
            }
        }
    }
}

impl Figures {
    /// Nanoseconds until a demand is met over a link. A link that is not known (`loopback`: none is emulated) counts as an
    /// ordinary local network of 1 Gbit/s: bits are never free.
    ///
    /// `speed` multiplies all times: 1 for the machine the figures are from, 2 for one half as fast.
    #[must_use]
    pub fn time_ns(&self, link: &Link, demand: &OtDemand, horizon: Horizon, speed: f64) -> f64 {
        let (client, server) = (demand.client_sends as f64, demand.server_sends as f64);
        let (mut from_client, mut from_server) = (
            self.sender_bits * client + self.receiver_bits * server,
            self.sender_bits * server + self.receiver_bits * client,
        );
        let directions = f64::from(u8::from(client > 0.0) + u8::from(server > 0.0));
        let mut computing = self.ns * (client + server);
        let mut rounds = 0.0;
        if horizon == Horizon::Once {
            from_client += self.setup_bits as f64;
            from_server += self.setup_bits as f64;
            computing += self.setup_ns + directions * self.lump_ns;
            rounds += self.setup_rounds as f64 + directions;
        }
        let sending = wire_ns(link, from_client).max(wire_ns(link, from_server));
        let waiting = rounds * link.rtt().as_secs_f64() * 1e9 / 2.0;
        // Set-up computes and sends in turns; after that the two overlap.
        sending.max(speed * computing) + waiting
    }

    /// Nanoseconds that setting up takes over a link: computing and sending in turns. `speed` as in [`Self::time_ns`], of public-key work.
    #[must_use]
    pub fn setup_time_ns(&self, link: &Link, speed: f64) -> f64 {
        let waiting = self.setup_rounds as f64 * link.rtt().as_secs_f64() * 1e9 / 2.0;
        speed * self.setup_ns + wire_ns(link, self.setup_bits as f64) + waiting
    }

    /// Bits that both parties send for a demand.
    #[must_use]
    pub fn bits(&self, demand: &OtDemand, horizon: Horizon) -> f64 {
        let ots = (demand.client_sends + demand.server_sends) as f64;
        let setup = match horizon {
            Horizon::Once => 2.0 * self.setup_bits as f64,
            Horizon::Session => 0.0,
        };
        setup + ots * (self.sender_bits + self.receiver_bits)
    }
}

/// How long these bits occupy one direction of a link, in nanoseconds.
fn wire_ns(link: &Link, bits: f64) -> f64 {
    bits * 1e9 / link.rate_bits_per_s().min(UNKNOWN_RATE) as f64
}

/// What an unknown link is taken to carry, bits per second each way.
const UNKNOWN_RATE: u64 = 1_000_000_000;

/// An engine within so much of the fastest is fast enough to be chosen for sending less.
const CLOSE: f64 = 1.1;

impl OtConfig {
    /// The engine for a link, a demand, and what the peer may do; on Ristretto.
    ///
    /// A function of its arguments alone, so that two parties who agree on them agree on the engine.
    #[must_use]
    pub fn plan(link: &Link, demand: &OtDemand, horizon: Horizon, security: Security) -> Self {
        let offers: Vec<(Engine, f64, f64)> = Engine::PLANNED
            .into_iter()
            .map(|engine| {
                let figures = engine.figures();
                let ns = figures.time_ns(link, demand, horizon, 1.0);
                (engine, ns, figures.bits(demand, horizon))
            })
            .collect();
        let fastest = offers.iter().map(|offer| offer.1).fold(f64::MAX, f64::min);
        let chosen = offers
            .into_iter()
            .filter(|offer| offer.1 <= CLOSE * fastest)
            .min_by(|a, b| a.2.total_cmp(&b.2));
        match chosen {
            Some((engine, ..)) => Self::new(engine).with_security(security),
            None => Self::default().with_security(security),
        }
    }
}
