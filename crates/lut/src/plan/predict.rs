//! Predicting what a protocol costs: exact bits and rounds, and time from a model.
//!
//! A phase computes (this machine's figures for the protocol, and for each OT what making one costs), sends in both
//! directions at once, and waits. Protocols stream their batch chunk by chunk, so computing and sending overlap, though not
//! altogether: a chunk leaves when it is computed.
//!
//! ```text
//! sending = max(bits of client, bits of server) / rate
//! time    = longer + shorter²/(2·longer) + rounds · (RTT/2 + what waking up takes)
//! ```
//!
//! A round in this project is one message that had to wait for another, so it costs half a round trip. OTs in a direction
//! count for one round more, as their maker talks too, unless that party alone makes OTs and goes on talking. Where a protocol
//! asks for OTs between its messages, and the engine's OT receiver talks, every group of OTs but the first costs a round trip.

use volvelle_net::Link;
use volvelle_ot::{Cost, Figures, PhasedCost};

use super::Planner;
use super::machine::{Both, Making};
use super::ties::{Tie, Timed};
use crate::{Demand, Protocol};

/// What a phase is expected to cost a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Predicted {
    /// Bits both parties send, with those of making the OTs, in the long run.
    pub bits: f64,
    /// Microseconds.
    pub us: f64,
    /// Rounds, for the whole batch, apart from making OTs.
    pub rounds: u64,
    /// Rounds that making OTs is taken to add.
    pub ot_rounds: u64,
}

impl Predicted {
    fn then(self, next: Self) -> Self {
        Self {
            bits: self.bits + next.bits,
            us: self.us + next.us,
            rounds: self.rounds + next.rounds,
            ot_rounds: self.ot_rounds + next.ot_rounds,
        }
    }
}

/// What a protocol is expected to cost for a demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The protocol.
    pub protocol: Protocol,
    /// Exact, for the whole batch; OTs counted, not their bits.
    pub cost: PhasedCost,
    /// Before inputs are known.
    pub prep: Predicted,
    /// After.
    pub online: Predicted,
    /// Both.
    pub total: Predicted,
}

/// What a phase's time is made of, in nanoseconds for the whole batch.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    computing: f64,
    sending: f64,
    waiting: f64,
}

/// From a message's arrival on a link to its reader at work, in nanoseconds: timers and two threads.
const WAKING_NS: f64 = 1e5;

impl Parts {
    /// Computing and sending overlap: the shorter of them hides behind the longer one, the better the shorter it is.
    fn ns(self) -> f64 {
        let longer = self.computing.max(self.sending).max(1e-9);
        let shorter = self.computing.min(self.sending);
        longer + shorter * (shorter / longer) / 2.0 + self.waiting
    }
}

impl Planner {
    /// What a protocol is expected to cost, `None` if it does not take the demand.
    #[must_use]
    pub fn predict(&self, protocol: Protocol, demand: &Demand) -> Option<Prediction> {
        let cost = protocol.cost(demand)?;
        let [prep, online] = self.phases_ns(protocol, &cost, demand);
        let prep = self.phase(protocol, &cost.prep, prep, demand);
        let online = self.phase(protocol, &cost.online, online, demand);
        Some(Prediction {
            protocol,
            cost,
            prep,
            online,
            total: prep.then(online),
        })
    }

    /// Microseconds a lookup of both phases if computing took so many times as long.
    pub(super) fn with_computing(
        &self,
        way: &Prediction,
        demand: &Demand,
        times: f64,
    ) -> (f64, f64) {
        let computing = self.computing(way.protocol, &way.cost, demand);
        let us = |cost: &Cost, ns: f64| {
            self.parts(way.protocol, cost, times * ns).ns() / demand.batch() as f64 / 1e3
        };
        (
            us(&way.cost.prep, computing[0]),
            us(&way.cost.online, computing[1]),
        )
    }

    fn phase(&self, way: Protocol, cost: &Cost, ns: f64, demand: &Demand) -> Predicted {
        let ot = self.engine.figures();
        let batch = demand.batch() as f64;
        let ot_bits = (ot.sender_bits + ot.receiver_bits) * cost.cots() as f64;
        Predicted {
            bits: (cost.bits() as f64 + ot_bits) / batch,
            us: ns / batch / 1e3,
            rounds: cost.rounds,
            ot_rounds: ot_rounds(way, cost, &ot),
        }
    }

    /// Nanoseconds of both phases: by computing, sending and waiting, or as it was over the link where it has been timed there.
    fn phases_ns(&self, protocol: Protocol, cost: &PhasedCost, demand: &Demand) -> [f64; 2] {
        let place = self.place();
        let tie = self.machine.tie(protocol, demand, &place);
        if let Some(tie) = tie.filter(|_| !place.is_memory()) {
            let by_sizes = |of: Protocol, cost: &PhasedCost| {
                self.modelled(of, cost, self.computing_by_sizes(of, cost, demand))
            };
            let then = |timed: &Timed, of: Protocol, cost: &PhasedCost| {
                self.over_the_link(tie, timed, of, cost, demand)
            };
            return level(tie, protocol, demand, then, by_sizes);
        }
        self.modelled(protocol, cost, self.computing(protocol, cost, demand))
    }

    fn modelled(&self, of: Protocol, cost: &PhasedCost, computing: [f64; 2]) -> [f64; 2] {
        let of_phase = |cost: &Cost, ns: f64| self.parts(of, cost, ns).ns();
        [
            of_phase(&cost.prep, computing[0]),
            of_phase(&cost.online, computing[1]),
        ]
    }

    /// What was timed over the link: of a larger batch, all but the waiting in proportion.
    fn over_the_link(
        &self,
        tie: &Tie,
        timed: &Timed,
        of: Protocol,
        cost: &PhasedCost,
        demand: &Demand,
    ) -> [f64; 2] {
        let (batch, then) = (demand.batch() as f64, tie.batch() as f64);
        let each = timed.computing(cost, demand.batch(), 1.0);
        let phase = |cost: &Cost, each: f64| {
            let waiting = self.parts(of, cost, 0.0).waiting.min(each * then / 2.0);
            waiting + (each * then - waiting) * batch / then
        };
        [phase(&cost.prep, each[0]), phase(&cost.online, each[1])]
    }

    /// Nanoseconds of computing in both phases, as in memory where protocols have been timed side by side there.
    pub(super) fn computing(
        &self,
        protocol: Protocol,
        cost: &PhasedCost,
        demand: &Demand,
    ) -> [f64; 2] {
        let by_sizes = |of: Protocol, cost: &PhasedCost| self.computing_by_sizes(of, cost, demand);
        let place = self.place();
        let tie = self.machine.tie(protocol, demand, &place);
        let Some(tie) = tie.filter(|_| place.is_memory()) else {
            return by_sizes(protocol, cost);
        };
        let ratio = self.engine.figures().ns / place.engine.figures().ns;
        let batch = demand.batch();
        let then = |timed: &Timed, _, cost: &PhasedCost| {
            let each = timed.computing(cost, batch, ratio);
            each.map(|ns| ns * batch as f64)
        };
        level(tie, protocol, demand, then, by_sizes)
    }

    /// By the timings of sizes around it.
    fn computing_by_sizes(
        &self,
        protocol: Protocol,
        cost: &PhasedCost,
        demand: &Demand,
    ) -> [f64; 2] {
        let [prep, online] = self.machine.own(protocol, demand);
        [
            self.slower_party(&cost.prep, prep, demand),
            self.slower_party(&cost.online, online, demand),
        ]
    }

    fn slower_party(&self, cost: &Cost, own: Both, demand: &Demand) -> f64 {
        let ot = self.engine.figures();
        let making = |m: &Making| {
            let ots = [cost.cots_client, cost.cots_server].map(|ots| ots as f64);
            let first = ots.map(|ots| ots.min(ot.group));
            ot.ns * (m.each * (ots[0] + ots[1]) + m.first * (first[0] + first[1]))
        };
        let batch = demand.batch() as f64;
        let parties = own.iter().zip(&self.machine.making);
        let parties = parties.map(|(own, m)| own.fixed + own.each * batch + making(m));
        parties.fold(0.0, f64::max)
    }

    fn parts(&self, way: Protocol, cost: &Cost, computing: f64) -> Parts {
        let ot = self.engine.figures();
        // In memory, threads that wake each other are in a batch's fixed time.
        let latency = if self.link.is_loopback() {
            0.0
        } else {
            self.link.rtt().as_nanos() as f64 / 2.0 + WAKING_NS
        };
        Parts {
            computing,
            sending: sending(&self.link, cost, &ot),
            waiting: (cost.rounds + ot_rounds(way, cost, &ot)) as f64 * latency,
        }
    }

    /// Where most of a protocol's time goes, in words.
    pub(super) fn bottleneck(&self, way: &Prediction, demand: &Demand) -> &'static str {
        let [prep, online] = self.computing(way.protocol, &way.cost, demand);
        let parts = [(way.cost.prep, prep), (way.cost.online, online)]
            .map(|(cost, computing)| self.parts(way.protocol, &cost, computing));
        let sum = |of: fn(&Parts) -> f64| parts.iter().map(of).sum::<f64>();
        let waiting = sum(|p| p.waiting);
        let computing = sum(|p| {
            if p.computing >= p.sending {
                p.ns() - p.waiting
            } else {
                0.0
            }
        });
        let sending = sum(|p| {
            if p.computing < p.sending {
                p.ns() - p.waiting
            } else {
                0.0
            }
        });
        if waiting >= computing.max(sending) {
            "waiting for messages"
        } else if sending >= computing {
            "sending"
        } else {
            "computing"
        }
    }
}

/// Nanoseconds of both phases of a protocol that has been timed side by side with others: as they compared then, all of them together
/// as long as the timings of other sizes say, for those tell how fast the machine is now.
fn level(
    tie: &Tie,
    protocol: Protocol,
    demand: &Demand,
    then: impl Fn(&Timed, Protocol, &PhasedCost) -> [f64; 2],
    now: impl Fn(Protocol, &PhasedCost) -> [f64; 2],
) -> [f64; 2] {
    let mut level = 0.0;
    let mut own = [0.0; 2];
    for timed in &tie.ways {
        let of = timed.protocol().and_then(|of| Some((of, of.cost(demand)?)));
        let Some((of, cost)) = of else { continue };
        let (then, now) = (then(timed, of, &cost), now(of, &cost));
        level += ((now[0] + now[1]) / (then[0] + then[1]).max(1.0))
            .max(1e-3)
            .ln();
        if of == protocol {
            own = then;
        }
    }
    let level = (level / tie.ways.len() as f64).exp();
    own.map(|ns| ns * level)
}

/// Rounds that making OTs adds to a phase.
fn ot_rounds(way: Protocol, cost: &Cost, ot: &Figures) -> u64 {
    let directions = u64::from(cost.cots_client > 0) + u64::from(cost.cots_server > 0);
    // One party alone makes OTs and goes on: its messages leave together.
    let first = if directions == 1 && cost.rounds > 0 {
        0
    } else {
        directions
    };
    if !(way.draws_between_messages() && ot.receiver_bits > 0.0) {
        return first;
    }
    let groups = cost
        .cots_client
        .max(cost.cots_server)
        .div_ceil(ot.group as u64);
    first + 2 * groups.saturating_sub(1)
}

/// How long the busier direction of a link is occupied, in nanoseconds.
fn sending(link: &Link, cost: &Cost, ot: &Figures) -> f64 {
    if link.is_loopback() {
        return 0.0;
    }
    let (client, server) = (cost.cots_client as f64, cost.cots_server as f64);
    let from_client = cost.client_bits as f64 + ot.sender_bits * client + ot.receiver_bits * server;
    let from_server = cost.server_bits as f64 + ot.sender_bits * server + ot.receiver_bits * client;
    from_client.max(from_server) * 1e9 / link.rate_bits_per_s() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_computing_and_sending_counts_and_less_and_less_of_the_shorter() {
        let ns = |computing, sending, waiting| {
            Parts {
                computing,
                sending,
                waiting,
            }
            .ns()
        };
        assert_eq!(ns(100.0, 100.0, 0.0), 150.0);
        assert_eq!(ns(100.0, 50.0, 7.0), ns(50.0, 100.0, 7.0));
        assert_eq!([ns(100.0, 50.0, 7.0), ns(100.0, 10.0, 0.0)], [119.5, 100.5]);
        assert_eq!(
            [ns(100.0, 0.0, 0.0), ns(0.0, 0.0, 7.0).round()],
            [100.0, 7.0]
        );
    }
}
