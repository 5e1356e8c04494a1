//! The planner: which protocol suits a demand, a link and a machine, and why.
//!
//! Bits and rounds come from the protocols' own cost functions and are exact. Times are predicted: computing from a short
//! self-timing of this machine ([`Machine`]), overlapped with sending in the busier direction, and half a round trip of
//! waiting for every round ([`Planner::predict`]). Where predictions are too near each other to tell which protocol is first, these are
//! timed side by side ([`Planner::settle`]). `docs/protocols/planner.md` says how good the predictions are.
//!
//! Two machines may predict differently, and two parties must use one protocol. So **one party plans**, the client by
//! convention, and tells the other, which checks that it knows the protocol and that the protocol takes the demand.

mod batches;
mod cache;
mod calibrate;
mod machine;
mod predict;
mod side_by_side;
mod ties;
mod together;

use std::fmt;
use std::str::FromStr;

use volvelle_net::Link;
use volvelle_ot::{Engine, Horizon, OtConfig, OtDemand, Security};

pub use calibrate::SelfTiming;
pub use machine::{Machine, Sample};
pub use predict::{Predicted, Prediction};

use self::ties::Place;
use crate::{Demand, LutError, Protocol};

/// What a plan minimises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Objective {
    /// Bits, among the protocols that are about as fast as the fastest: within twice its total time, or within a quarter of a
    /// microsecond a lookup.
    #[default]
    Balanced,
    /// Preprocessing and online time together.
    Total,
    /// Online time; where that is a tie, total time.
    Online,
    /// Bits of both phases.
    Bits,
}

/// How much slower than the fastest [`Objective::Balanced`] allows: by this factor, or this many nanoseconds a lookup. The factor
/// is such that a batch of 100 000 is looked up with the fewest bits at every size of the ROTL paper, on its links too.
const AS_FAST: (f64, f64) = (2.0, 250.0);
/// Times within this of the best are as good as it.
const TIE: f64 = 1.03;
/// Predictions within this of the best, or within so many nanoseconds a lookup, are too near to tell which is: [`Planner::settle`].
const NEAR: (f64, f64) = (1.4, 20.0);

impl Objective {
    /// All, the default first.
    pub const ALL: [Self; 4] = [Self::Balanced, Self::Total, Self::Online, Self::Bits];

    /// The name used on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Total => "total",
            Self::Online => "online",
            Self::Bits => "bits",
        }
    }

    /// Sorts, the best first.
    fn rank(self, ways: &mut [Prediction]) {
        let fastest = ways.iter().map(|w| w.total.us).fold(f64::MAX, f64::min);
        let (factor, ns) = AS_FAST;
        let limit = (factor * fastest).max(fastest + ns / 1e3);
        let soonest = ways.iter().map(|w| w.online.us).fold(f64::MAX, f64::min);
        let key = |way: &Prediction| {
            let (total, online) = (way.total, way.online);
            // What is as good as the best is judged by the rest, so that a tie falls alike each time.
            let rounds = total.rounds as f64;
            match self {
                Self::Balanced if total.us <= limit => [0.0, total.bits, rounds, total.us],
                Self::Balanced => [1.0, total.us, total.bits, rounds],
                Self::Total if total.us <= TIE * fastest => [0.0, total.bits, rounds, 0.0],
                Self::Total => [1.0, total.us, total.bits, rounds],
                Self::Online if online.us <= TIE * soonest => [0.0, total.us, total.bits, rounds],
                Self::Online => [1.0, online.us, total.us, total.bits],
                Self::Bits => [total.bits, rounds, total.us, 0.0],
            }
        };
        ways.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            let unequal = a.iter().zip(&b).map(|(a, b)| a.total_cmp(b));
            unequal
                .reduce(std::cmp::Ordering::then)
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Objective {
    type Err = LutError;

    fn from_str(name: &str) -> Result<Self, LutError> {
        Self::ALL
            .into_iter()
            .find(|objective| objective.name() == name)
            .ok_or_else(|| LutError::UnknownObjective {
                got: name.to_owned(),
            })
    }
}

/// What is known when protocols are chosen.
#[derive(Clone, Debug)]
pub struct Planner {
    machine: Machine,
    link: Link,
    objective: Objective,
    engine: Engine,
    security: Security,
}

/// Protocols for one demand, the best first.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What was asked for.
    pub demand: Demand,
    /// Every protocol that takes the demand, the chosen one first.
    pub ways: Vec<Prediction>,
    /// Why the first is first, in words.
    pub reason: String,
}

/// Plans for several demands at once, and the source of OTs for all of them.
#[derive(Clone, Debug)]
pub struct Plans {
    /// One for each demand.
    pub plans: Vec<Plan>,
    /// On the default base OT.
    pub engine: Engine,
    /// OTs of all chosen protocols together.
    pub ots: OtDemand,
}

impl Plan {
    /// The chosen protocol and what it is expected to cost.
    #[must_use]
    pub fn chosen(&self) -> &Prediction {
        &self.ways[0]
    }
}

impl Planner {
    /// A planner that minimises [`Objective::Balanced`], for OTs of the default engine.
    #[must_use]
    pub fn new(machine: Machine, link: Link) -> Self {
        Self {
            machine,
            link,
            objective: Objective::default(),
            engine: OtConfig::default().engine,
            security: Security::SemiHonest,
        }
    }

    /// The same with another objective.
    #[must_use]
    pub fn objective(self, objective: Objective) -> Self {
        Self { objective, ..self }
    }

    /// The same with another source of OTs.
    #[must_use]
    pub fn engine(self, engine: Engine) -> Self {
        Self { engine, ..self }
    }

    /// The same for OTs of this security: what may not be used with them is left out.
    #[must_use]
    pub fn security(self, security: Security) -> Self {
        Self { security, ..self }
    }

    /// Times protocols side by side at the sizes of these demands, where the objective is time and predictions are too near each
    /// other to tell which protocol is first; tens of milliseconds to a second each, with both parties in this process, over the
    /// link, emulated, if its round trip is short. What has been found out before is not timed again. Returns the machine's timings, with what has been found out, if anything has.
    ///
    /// # Errors
    /// If a protocol fails, or none takes a demand.
    pub fn settle(&mut self, demands: &[Demand]) -> Result<Option<&Machine>, LutError> {
        let (mut timed, mut parties, place) = (false, None, self.place());
        for demand in demands {
            // What is found out may bring another protocol near.
            for _ in 0..2 {
                let near = self.near(&self.plan(demand)?);
                if near.len() < 2 || !self.machine.settle(&mut parties, place, near, demand)? {
                    break;
                }
                timed = true;
            }
        }
        Ok(timed.then_some(&self.machine))
    }

    /// Where near ties are timed.
    fn place(&self) -> Place {
        Place::of(self.link, self.engine)
    }

    /// The protocols among which predictions cannot tell the first, and what each is expected to take where they are timed,
    /// nanoseconds a lookup.
    fn near(&self, plan: &Plan) -> Vec<(Protocol, f64)> {
        let us: fn(&Prediction) -> f64 = match self.objective {
            Objective::Total => |way| way.total.us,
            Objective::Online => |way| way.online.us,
            Objective::Balanced | Objective::Bits => return Vec::new(),
        };
        let (ways, demand, place) = (&plan.ways, &plan.demand, self.place());
        let computing = |way: &Prediction| self.computing(way.protocol, &way.cost, demand);
        // What is sure to be spent waiting and sending is not what they differ by unforeseen.
        let off = |way: &Prediction, times: f64| match self.objective {
            _ if !place.is_memory() => us(way) * times,
            Objective::Online => self.with_computing(way, demand, times).1,
            _ => {
                let (prep, online) = self.with_computing(way, demand, times);
                prep + online
            }
        };
        let half = NEAR.0.sqrt();
        let best = ways.iter().map(|way| off(way, half));
        let limit = best.fold(f64::MAX, f64::min);
        let soonest = ways.iter().map(us).fold(f64::MAX, f64::min);
        let is_near =
            |way: &&Prediction| off(way, 1.0 / half) <= limit || us(way) <= soonest + NEAR.1 / 1e3;
        let mut near: Vec<_> = ways.iter().filter(is_near).collect();
        near.sort_by(|a, b| us(a).total_cmp(&us(b)));
        near.truncate(ties::MOST);
        let each = near.iter().map(|way| {
            let ns = if place.is_memory() {
                computing(way).iter().sum::<f64>() / demand.batch() as f64
            } else {
                way.total.us * 1e3
            };
            (way.protocol, ns)
        });
        each.collect()
    }

    /// Ranks all protocols for a demand. Where FLUTE+ takes it, doubling is the same protocol and not ranked as well.
    ///
    /// # Errors
    /// [`LutError::NoProtocol`] if none takes it.
    pub fn plan(&self, demand: &Demand) -> Result<Plan, LutError> {
        let mut ways: Vec<Prediction> = Protocol::ALL
            .into_iter()
            .filter(|protocol| !(self.security.is_malicious() && protocol.reveals_delta()))
            .filter(|&protocol| {
                protocol != Protocol::Doubling || Protocol::FlutePlus.takes(demand).is_err()
            })
            .filter_map(|protocol| self.predict(protocol, demand))
            .collect();
        if ways.is_empty() {
            return Err(LutError::NoProtocol);
        }
        self.objective.rank(&mut ways);
        let reason = self.reason(demand, &ways);
        Ok(Plan {
            demand: demand.clone(),
            ways,
            reason,
        })
    }

    /// Plans several demands of one session, and the engine that suits all of their OTs together.
    ///
    /// # Errors
    /// [`LutError::NoProtocol`] if none takes one of them.
    pub fn plan_all(&self, demands: &[Demand], horizon: Horizon) -> Result<Plans, LutError> {
        // What protocols ask for decides the engine, and what the engine asks decides the protocols: one turn is enough,
        // OTs being a small part of either.
        let first = self.plan_each(demands)?;
        let engine = OtConfig::plan(&self.link, &first.ots, horizon, self.security).engine;
        self.clone().engine(engine).plan_each(demands)
    }

    /// Plans several demands for this planner's engine.
    ///
    /// # Errors
    /// [`LutError::NoProtocol`] if none takes one of them.
    pub fn plan_each(&self, demands: &[Demand]) -> Result<Plans, LutError> {
        let plans = demands
            .iter()
            .map(|demand| self.plan(demand))
            .collect::<Result<Vec<_>, _>>()?;
        let costs = plans.iter().map(|plan| plan.chosen().cost.total());
        let ots = costs.fold(OtDemand::default(), |sum, cost| OtDemand {
            client_sends: sum.client_sends + cost.cots_client,
            server_sends: sum.server_sends + cost.cots_server,
        });
        Ok(Plans {
            plans,
            engine: self.engine,
            ots,
        })
    }

    /// Why the first of these ways is first.
    fn reason(&self, demand: &Demand, ways: &[Prediction]) -> String {
        let best = &ways[0];
        let Some(rival) = self.rival(ways) else {
            return format!("{} is the only protocol that takes this", best.protocol);
        };
        let times = |more: f64, less: f64| {
            if less > 0.0 && more / less >= 1.05 {
                format!("{:.1} times", more / less)
            } else {
                "about as many times".to_owned()
            }
        };
        let what = match self.objective {
            Objective::Balanced => "sends the fewest bits of those about as fast as the fastest",
            Objective::Total => "is done first, preprocessing included",
            Objective::Online => "answers first once inputs are known",
            Objective::Bits => "sends the fewest bits",
        };
        let comparison = match self.objective {
            Objective::Bits | Objective::Balanced => format!(
                "{} sends {} the bits and takes {:.2} µs against {:.2} µs",
                rival.protocol,
                times(rival.total.bits, best.total.bits),
                rival.total.us,
                best.total.us
            ),
            Objective::Total => format!(
                "{} takes {:.2} µs against {:.2} µs a lookup",
                rival.protocol, rival.total.us, best.total.us
            ),
            Objective::Online => format!(
                "{} takes {:.2} µs against {:.2} µs a lookup online",
                rival.protocol, rival.online.us, best.online.us
            ),
        };
        format!(
            "{} {what}; {comparison}. Its time goes into {}.",
            best.protocol,
            self.bottleneck(best, demand)
        )
    }

    /// The way to compare the chosen one with: the next, or for balanced plans the fastest other.
    fn rival<'a>(&self, ways: &'a [Prediction]) -> Option<&'a Prediction> {
        let others = ways.get(1..)?;
        match self.objective {
            Objective::Balanced => others
                .iter()
                .min_by(|a, b| a.total.us.total_cmp(&b.total.us)),
            _ => others.first(),
        }
    }
}
