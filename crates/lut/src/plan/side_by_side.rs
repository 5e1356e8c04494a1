//! Running protocols side by side, in turns, both parties in this process: what ties ([`super::ties`]) are settled by.

use std::time::{Duration, Instant};

use volvelle_net::{Channel, Config, memory_pair_with};
use volvelle_ot::{Ot, OtConfig};

use super::ties::{Place, Tie, Timed, is_sure};
use super::together::{both, making, meet, step, tables};
use crate::{Demand, LutError, Prepared, Protocol, Table};

/// Turns at least and at most, and how long they may take in all once there have been a few.
const TURNS: (usize, usize) = (15, 61);
const FEW: usize = 3;
const TIME: Duration = Duration::from_millis(500);
/// A run takes about so long in memory and over a link, if the batch is large enough.
const RUN_NS: [f64; 2] = [12e6, 20e6];
/// Numbers of OTs that differ by less than so many times are about the same.
const ALIKE: f64 = 1.25;
/// A peer in the same process cannot be cut off, only busy.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Two parties ready to run protocols, for one tie after the other.
pub(super) struct Parties {
    place: Place,
    client: Seat,
    server: Seat,
}

/// A party's end.
struct Seat {
    channel: Channel,
    ot: Ot,
}

impl Parties {
    fn begin(place: Place) -> Result<Self, LutError> {
        let config = Config::new().timeout(TIMEOUT).link(place.link);
        let (client, server) = memory_pair_with(&config);
        let seat = |mut channel| {
            let ot = Ot::setup(&mut channel, OtConfig::new(place.engine))?;
            Ok(Seat { channel, ot })
        };
        let (client, server) = both(|| seat(client), || seat(server))?;
        Ok(Self {
            place,
            client,
            server,
        })
    }
}

/// Times these protocols side by side; each with the nanoseconds that a lookup is expected to take there. `parties` are left for the
/// next tie at the same place, unless a protocol fails.
pub(super) fn time(
    parties: &mut Option<Parties>,
    place: Place,
    ways: &[(Protocol, f64)],
    demand: &Demand,
) -> Result<Tie, LutError> {
    let slowest = ways.iter().map(|way| way.1).fold(1.0, f64::max);
    let most = (RUN_NS[usize::from(!place.is_memory())] / slowest) as usize;
    let batch = demand.batch().min(most.max(16));
    let fewer = demand.with_batch(batch)?;
    let protocols: Vec<Protocol> = ways.iter().map(|way| way.0).collect();
    let here = match parties.take().filter(|parties| parties.place == place) {
        Some(here) => here,
        None => Parties::begin(place)?,
    };
    let turns = Turns {
        place,
        protocols: &protocols,
        tables: tables(&fewer)?,
        index: vec![1; batch],
        demand: fewer,
    };
    let (client, server) = both(|| turns.run(here.client), || turns.run(here.server))?;
    *parties = Some(Parties {
        place,
        client: client.0,
        server: server.0,
    });
    let runs = protocols.iter().zip(client.1.iter().zip(&server.1));
    let runs: Vec<Vec<Timed>> = runs
        .map(|(&protocol, (a, b))| {
            let runs = a.iter().zip(b);
            runs.map(|(a, b)| Run::timed(protocol, a, b, batch))
                .collect()
        })
        .collect();
    let costs = protocols.iter().map(|p| p.cost(&turns.demand));
    let costs: Vec<_> = costs.map(Option::unwrap_or_default).collect();
    let total = |way: usize, run: &Timed| {
        let phases = run.computing(&costs[way], batch, 1.0);
        phases[0] + phases[1]
    };
    Ok(Tie::of(demand, &place, batch, &runs, total))
}

/// What a party has measured of a run, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    own: [f64; 2],
    /// In which OTs were made, how many came of it, and how many were used.
    making: f64,
    made: f64,
    used: f64,
}

impl Run {
    fn timed(protocol: Protocol, client: &Self, server: &Self, batch: usize) -> Timed {
        let each = |phase: usize| [client, server].map(|run| run.own[phase] / batch as f64);
        Timed::new(protocol, [each(0), each(1)], client.ot().max(server.ot()))
    }

    /// Nanoseconds an OT.
    fn ot(&self) -> f64 {
        self.making / self.made.max(1.0)
    }

    fn total(&self) -> f64 {
        self.own[0] + self.own[1] + self.used * self.ot()
    }
}

/// What both parties do.
struct Turns<'a> {
    place: Place,
    protocols: &'a [Protocol],
    demand: Demand,
    tables: Vec<Table>,
    index: Vec<u64>,
}

impl Turns<'_> {
    /// Turns until it is clear who is first. The client says when.
    fn run(&self, mut seat: Seat) -> Result<(Seat, Vec<Vec<Run>>), LutError> {
        let mut runs = vec![Vec::new(); self.protocols.len()];
        let start = Instant::now();
        for turn in 0..=TURNS.1 {
            for place in 0..self.protocols.len() {
                let way = (place + turn) % self.protocols.len();
                let run = self.once(&mut seat, self.protocols[way])?;
                // The first turn reads in code and memory.
                if turn > 0 {
                    runs[way].push(run);
                }
            }
            let over = start.elapsed() > TIME && turn >= FEW;
            let done = turn >= TURNS.0 && is_sure(&totals(&self.priced(&runs)));
            if step(&mut seat.channel, usize::from(over || done))? > 0 {
                break;
            }
        }
        Ok((seat, self.priced(&runs)))
    }

    fn once(&self, seat: &mut Seat, protocol: Protocol) -> Result<Run, LutError> {
        let Seat { channel, ot } = seat;
        let mut run = Run::default();
        let (stats, before) = (ot.stats(), making(channel));
        meet(channel)?;
        let (prepared, prep) = own(channel, |ch| {
            Prepared::prepare(ch, ot, protocol, &self.demand, &self.tables)
        })?;
        meet(channel)?;
        let (_, online) = own(channel, |ch| prepared.lookup(ch, &self.index, &self.tables))?;
        run.own = [prep, online];
        let now = ot.stats();
        let made = now.made_send + now.made_recv - stats.made_send - stats.made_recv;
        let used = now.consumed_send + now.consumed_recv;
        run.used = (used - stats.consumed_send - stats.consumed_recv) as f64;
        run.made = made as f64 / now.overhead.max(1.0);
        run.making = (making(channel) - before).as_nanos() as f64;
        Ok(run)
    }

    /// The same, every run's OTs at what made the median one, of all runs in which about as many were used: making OTs is the same work
    /// whatever protocol asks for it, strays by more than protocols that are nearly as fast differ by, and is done in groups, for which
    /// whoever happens to need the first of a group would pay.
    fn priced(&self, runs: &[Vec<Run>]) -> Vec<Vec<Run>> {
        let used: Vec<f64> = runs.iter().map(|runs| sum(runs, |run| run.used)).collect();
        let common = typical(runs.iter().flatten());
        let common = common.unwrap_or(self.place.engine.figures().ns);
        let of = |(way, runs_of): (usize, &Vec<Run>)| -> Vec<Run> {
            let alike = (0..runs.len()).filter(|&other| {
                let (a, b) = (used[way], used[other]);
                a <= ALIKE * b && b <= ALIKE * a && self.wait_alike(way, other)
            });
            let alike: Vec<&Vec<Run>> = alike.map(|other| &runs[other]).collect();
            let made: f64 = alike.iter().map(|runs| sum(runs, |run| run.made)).sum();
            let enough = made >= alike.len() as f64 * used[way] / 2.0;
            let price = typical(alike.into_iter().flatten()).filter(|_| enough);
            let at_price = |run: &Run| Run {
                making: price.unwrap_or(common),
                made: 1.0,
                ..*run
            };
            runs_of.iter().map(at_price).collect()
        };
        runs.iter().enumerate().map(of).collect()
    }

    /// Whether two protocols wait alike for OTs that are made over a link.
    fn wait_alike(&self, a: usize, b: usize) -> bool {
        let [first, second] = [a, b].map(|way| self.protocols[way]);
        self.place.is_memory()
            || first == second
            || !first.draws_between_messages() && !second.draws_between_messages()
    }
}

fn sum(runs: &[Run], of: fn(&Run) -> f64) -> f64 {
    runs.iter().map(of).sum()
}

/// What made the median one.
fn typical<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<f64> {
    let mut runs: Vec<&Run> = runs.filter(|run| run.made > 0.0).collect();
    runs.sort_by(|a, b| a.ot().total_cmp(&b.ot()));
    let mut left = runs.iter().map(|run| run.made).sum::<f64>() / 2.0;
    let median = runs.into_iter().find(|run| {
        left -= run.made;
        left <= 0.0
    });
    median.map(Run::ot)
}

fn totals(runs: &[Vec<Run>]) -> Vec<Vec<f64>> {
    let of = |runs: &Vec<Run>| runs.iter().map(Run::total).collect();
    runs.iter().map(of).collect()
}

/// What `f` returns, and the nanoseconds that it takes but for making OTs.
fn own<T>(
    ch: &mut Channel,
    f: impl FnOnce(&mut Channel) -> Result<T, LutError>,
) -> Result<(T, f64), LutError> {
    let (made, start) = (making(ch), Instant::now());
    let value = f(ch)?;
    ch.flush()?;
    let own = start.elapsed().saturating_sub(making(ch) - made);
    Ok((value, own.as_nanos() as f64))
}

#[cfg(test)]
mod tests {
    use volvelle_net::Link;

    use super::*;
    use crate::Index;

    fn place(link: Link) -> Place {
        Place::of(link, OtConfig::default().engine)
    }

    #[test]
    fn ots_cost_the_same_whoever_makes_them() {
        let run = |made: f64, ns: f64, used: f64| Run {
            making: ns * made,
            made,
            used,
            ..Run::default()
        };
        let turns = Turns {
            place: place(Link::LAN),
            protocols: &[
                Protocol::Doubling,
                Protocol::Flute,
                Protocol::SpLut,
                Protocol::Tree,
            ],
            demand: Demand::xor(2, Index::Boolean, &[8], 1).unwrap(),
            tables: Vec::new(),
            index: Vec::new(),
        };
        // A slow spell does not count, nor who happened to make a group.
        let own = vec![run(100.0, 30.0, 100.0), run(200.0, 20.0, 110.0)];
        let lucky = vec![run(0.0, 0.0, 100.0), run(40.0, 90.0, 100.0)];
        // Many at once may be cheaper.
        let many = vec![run(900.0, 7.0, 1000.0), run(1000.0, 8.0, 1000.0)];
        // In between messages they are waited for in another way.
        let between = vec![run(100.0, 50.0, 100.0); 2];
        let totals = totals(&turns.priced(&[own, lucky, many, between]));
        let expected = [[2000.0, 2200.0], [2000.0; 2], [8000.0; 2], [5000.0; 2]];
        assert_eq!(totals, expected.map(Vec::from));
    }

    #[test]
    fn protocols_run_side_by_side() {
        let demand = Demand::xor(2, Index::Boolean, &[8], 500).unwrap();
        let ways = [Protocol::Doubling, Protocol::FlutePlus, Protocol::Flute];
        for link in [Link::LOOPBACK, Link::LAN] {
            let (place, mut parties) = (place(link), None);
            for _ in 0..2 {
                let tie = time(&mut parties, place, &ways.map(|way| (way, 400.0)), &demand);
                let tie = tie.unwrap();
                assert!(parties.is_some() && ways.iter().all(|&way| tie.has(way)));
                assert!(tie.is_about(&super::super::ties::about(&demand, &place)));
                for way in &tie.ways {
                    let cost = way.protocol().unwrap().cost(&demand).unwrap();
                    let phases = way.computing(&cost, 500, 1.0);
                    assert!(
                        phases.iter().all(|ns| ns.is_finite() && *ns > 0.0),
                        "{way:?}"
                    );
                }
            }
        }
    }
}
