//! Near ties, settled by timing the protocols side by side.
//!
//! Sizes that the self-timing tries are few, and one timing of a protocol strays by more than two protocols that are nearly as
//! fast differ by. Where predictions are near each other, the protocols therefore run at the very sizes asked for, in turns: a slow
//! spell of the machine then meets all of them, and of each the **median share of a turn** counts, until it is known well enough who is
//! first. What comes of it is kept, so that a choice once made stays.
//!
//! A tie says how its members compare; how fast the machine is just now, the self-timing says.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use volvelle_net::{Channel, memory_pair};
use volvelle_ot::{Ot, OtConfig, PhasedCost};

use super::calibrate::{both, making, meet, step, tables};
use crate::{Demand, LutError, Prepared, Protocol, Table};

/// Ties that are kept, the latest.
pub(super) const KEPT: usize = 256;
/// Most protocols timed side by side, the fastest.
pub(super) const MOST: usize = 5;
/// Turns at least and at most, and how long they may take in all.
const TURNS: (usize, usize) = (15, 61);
const TIME: Duration = Duration::from_millis(500);
/// A protocol's turn takes about so long, if the batch is large enough.
const TURN_NS: f64 = 5e6;
/// How sure it is who is first: by so many standard errors, or within such an error of the ratio.
const SURE: (f64, f64) = (4.0, 0.015);

/// Nanoseconds a lookup: preprocessing and online, of client and server.
type Each = [[f64; 2]; 2];

/// A protocol of a tie.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Timed {
    protocol: String,
    /// Apart from making OTs.
    own: Each,
    /// Nanoseconds to make an OT of the default engine.
    ot: f64,
}

/// Protocols timed side by side.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Tie {
    /// Shares, table and batch, in words.
    about: String,
    pub(super) ways: Vec<Timed>,
}

impl Timed {
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.protocol.parse().ok()
    }

    /// Nanoseconds a lookup of both phases, an OT taking `ratio` times what the default engine's takes.
    pub(super) fn computing(&self, cost: &PhasedCost, batch: usize, ratio: f64) -> [f64; 2] {
        let cots = [cost.prep.cots(), cost.online.cots()];
        [0, 1].map(|phase| {
            let own = self.own[phase][0].max(self.own[phase][1]);
            own + ratio * self.ot * cots[phase] as f64 / batch as f64
        })
    }
}

impl Tie {
    pub(super) fn is_about(&self, about: &str) -> bool {
        self.about == about
    }

    pub(super) fn has(&self, protocol: Protocol) -> bool {
        self.ways.iter().any(|way| way.protocol == protocol.name())
    }
}

/// What a tie holds for: batches within a factor of √2 are as one.
pub(super) fn about(demand: &Demand) -> String {
    let batch = 2.0 * (demand.batch() as f64).log2();
    let shape = demand.shape();
    format!(
        "2^{} of {:?} bits, {} index, {}, 2^{} lookups",
        demand.log_entries(),
        demand.words(),
        shape.index,
        if demand.is_xor() { "xor" } else { "additive" },
        batch.round() / 2.0
    )
}

/// Times these protocols side by side; each with the nanoseconds that a lookup is expected to take.
pub(super) fn time(ways: &[(Protocol, f64)], demand: &Demand) -> Result<Tie, LutError> {
    let about = about(demand);
    let slowest = ways.iter().map(|way| way.1).fold(1.0, f64::max);
    let batch = (TURN_NS / slowest) as usize;
    let demand = demand.with_batch(demand.batch().min(batch.max(16)))?;
    let protocols: Vec<Protocol> = ways.iter().map(|way| way.0).collect();
    let (client, server) = memory_pair();
    let run = |ch| Party::begin(ch, &protocols, &demand)?.run();
    let (client, server) = both(|| run(client), || run(server))?;
    let cost = |protocol: Protocol| protocol.cost(&demand).unwrap_or_default();
    let costs: Vec<PhasedCost> = protocols.iter().map(|&p| cost(p)).collect();
    let runs = protocols.iter().zip(client.iter().zip(&server));
    let runs: Vec<Vec<Timed>> = runs
        .map(|(&protocol, (a, b))| {
            let runs = a.iter().zip(b);
            let one = |(a, b)| Run::timed(protocol, a, b, demand.batch());
            runs.map(one).collect()
        })
        .collect();
    let total = |way: usize, run: &Timed| {
        let phases = run.computing(&costs[way], demand.batch(), 1.0);
        phases[0] + phases[1]
    };
    Ok(Tie {
        about,
        ways: settle(&runs, total),
    })
}

/// Of each protocol the medians of its runs, in the proportion of the median shares of a turn.
fn settle(runs: &[Vec<Timed>], total: impl Fn(usize, &Timed) -> f64) -> Vec<Timed> {
    let totals: Vec<Vec<f64>> = runs
        .iter()
        .enumerate()
        .map(|(way, runs)| runs.iter().map(|run| total(way, run)).collect())
        .collect();
    let level = median(turn_means(&totals));
    let shares = shares(&totals);
    let ways = runs.iter().zip(shares).enumerate();
    ways.filter_map(|(way, (runs, share))| {
        let of = |f: &dyn Fn(&Timed) -> f64| median(runs.iter().map(f).collect());
        let each = |phase: usize, party: usize| of(&|run| run.own[phase][party]);
        let mut timed = Timed {
            protocol: runs.first()?.protocol.clone(),
            own: [0, 1].map(|phase| [0, 1].map(|party| each(phase, party))),
            ot: of(&|run| run.ot),
        };
        let scale = level * share / total(way, &timed).max(1e-3);
        // Hundredths of a nanosecond: more is noise.
        let round = |ns: f64| (100.0 * scale * ns).round() / 100.0;
        timed.own = timed.own.map(|own| own.map(round));
        timed.ot = round(timed.ot);
        Some(timed)
    })
    .collect()
}

/// The geometric mean of each turn.
fn turn_means(totals: &[Vec<f64>]) -> Vec<f64> {
    let turns = totals.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |turn: usize| {
        let logs = totals.iter().map(|way| way[turn].max(1e-3).ln());
        (logs.sum::<f64>() / totals.len() as f64).exp()
    };
    (0..turns).map(mean).collect()
}

/// Each way's median ratio to the mean of its turn.
fn shares(totals: &[Vec<f64>]) -> Vec<f64> {
    let means = turn_means(totals);
    let of = |way: &Vec<f64>| {
        let ratios = way.iter().zip(&means).map(|(ns, mean)| ns / mean);
        median(ratios.collect())
    };
    totals.iter().map(of).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Whether it is known who is first, or that it makes no difference.
fn is_sure(totals: &[Vec<f64>]) -> bool {
    let shares = shares(totals);
    let first = (0..shares.len()).min_by(|&a, &b| shares[a].total_cmp(&shares[b]));
    let Some(first) = first else {
        return true;
    };
    (0..totals.len()).filter(|&way| way != first).all(|way| {
        let turns = totals[way].iter().zip(&totals[first]);
        let ratios: Vec<f64> = turns.map(|(a, b)| (a / b.max(1e-3)).ln()).collect();
        let turns = ratios.len() as f64;
        let middle = median(ratios.clone());
        let off = median(ratios.iter().map(|ratio| (ratio - middle).abs()).collect());
        // Of a median of normal values, whose standard deviation is 1.48 times the median deviation.
        let error = 1.25 * 1.48 * off / turns.sqrt();
        middle.abs() > SURE.0 * error || error < SURE.1
    })
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
        let ot = |run: &Self| run.making / run.made.max(1.0);
        Timed {
            protocol: protocol.name().to_owned(),
            own: [each(0), each(1)],
            ot: ot(client).max(ot(server)),
        }
    }

    fn total(&self) -> f64 {
        self.own[0] + self.own[1] + self.used * self.making / self.made.max(1.0)
    }
}

struct Party<'a> {
    channel: Channel,
    ot: Ot,
    protocols: &'a [Protocol],
    demand: &'a Demand,
    tables: Vec<Table>,
}

impl<'a> Party<'a> {
    fn begin(
        mut channel: Channel,
        protocols: &'a [Protocol],
        demand: &'a Demand,
    ) -> Result<Self, LutError> {
        Ok(Self {
            ot: Ot::setup(&mut channel, OtConfig::default())?,
            channel,
            protocols,
            demand,
            tables: tables(demand)?,
        })
    }

    /// Turns until it is clear who is first. The client says when.
    fn run(mut self) -> Result<Vec<Vec<Run>>, LutError> {
        let mut runs = vec![Vec::new(); self.protocols.len()];
        let start = Instant::now();
        for turn in 0..=TURNS.1 {
            for place in 0..self.protocols.len() {
                let way = (place + turn) % self.protocols.len();
                let run = self.once(self.protocols[way])?;
                // The first turn reads in code and memory.
                if turn > 0 {
                    runs[way].push(run);
                }
            }
            let over = start.elapsed() > TIME && turn >= 3;
            let done = turn >= TURNS.0 && is_sure(&totals(&priced(&runs)));
            if step(&mut self.channel, usize::from(over || done))? > 0 {
                break;
            }
        }
        Ok(priced(&runs))
    }

    fn once(&mut self, protocol: Protocol) -> Result<Run, LutError> {
        let (demand, index) = (self.demand, vec![1; self.demand.batch()]);
        let Self {
            channel,
            ot,
            tables,
            ..
        } = self;
        let mut run = Run::default();
        let (stats, before) = (ot.stats(), making(channel));
        meet(channel)?;
        let (prepared, prep) = own(channel, |ch| {
            Prepared::prepare(ch, ot, protocol, demand, tables)
        })?;
        meet(channel)?;
        let (_, online) = own(channel, |ch| prepared.lookup(ch, &index, tables))?;
        run.own = [prep, online];
        let now = ot.stats();
        let made = now.made_send + now.made_recv - stats.made_send - stats.made_recv;
        let used = now.consumed_send + now.consumed_recv;
        run.used = (used - stats.consumed_send - stats.consumed_recv) as f64;
        run.made = made as f64 / now.overhead.max(1.0);
        run.making = (making(channel) - before).as_nanos() as f64;
        Ok(run)
    }
}

/// The same, runs that use less than a group of OTs, or have lived on what was left over, at what an OT took in all runs together:
/// else who happens to make the group pays for all.
fn priced(runs: &[Vec<Run>]) -> Vec<Vec<Run>> {
    let figures = OtConfig::default().engine.figures();
    let all = runs.iter().flatten();
    let (making, made) = all.fold((0.0, 0.0), |sum, run| {
        (sum.0 + run.making, sum.1 + run.made)
    });
    let common = if made > 0.0 {
        making / made
    } else {
        figures.ns
    };
    let price = |run: &Run| {
        if run.used >= figures.group && run.made >= run.used / 2.0 {
            return *run;
        }
        Run {
            making: common,
            made: 1.0,
            ..*run
        }
    };
    let of = |runs: &Vec<Run>| runs.iter().map(price).collect();
    runs.iter().map(of).collect()
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
    use super::*;
    use crate::Index;

    /// A machine that slows down by half for some turns, and stumbles now and then.
    fn spells(ns: f64, stumbles: usize) -> Vec<f64> {
        let turn = |turn: usize| {
            let slow = if turn % 13 > 5 { 1.5 } else { 1.0 };
            let wobble = 1.0 + 0.02 * ((turn * stumbles % 7) as f64 / 7.0);
            let stumble = if turn.is_multiple_of(stumbles) {
                3.0
            } else {
                1.0
            };
            ns * slow * wobble * stumble
        };
        (1..=20).map(turn).collect()
    }

    #[test]
    fn slow_spells_and_stumbles_do_not_change_who_is_first() {
        let totals = [spells(100.0, 5), spells(105.0, 6), spells(140.0, 7)];
        let shares = shares(&totals);
        assert!(shares[0] < shares[1] && shares[1] < shares[2], "{shares:?}");
        assert!((shares[1] / shares[0] - 1.05).abs() < 0.03, "{shares:?}");
        assert!(is_sure(&totals));
        // Nothing but noise in it.
        let noise: Vec<f64> = (0..9)
            .map(|i| 60.0 + 80.0 * f64::from(i * 5 % 9) / 9.0)
            .collect();
        assert!(!is_sure(&[vec![100.0; 9], noise]));
    }

    #[test]
    fn few_ots_cost_all_alike() {
        let run = |made: f64| Run {
            making: 10.0 * made,
            made,
            used: 100.0,
            ..Run::default()
        };
        let runs = priced(&[vec![run(16_384.0), run(0.0)], vec![run(0.0); 2]]);
        assert_eq!(totals(&runs), vec![vec![1000.0; 2]; 2]);
    }

    #[test]
    fn medians_are_scaled_to_the_shares() {
        let timed = |ns: f64| Timed {
            protocol: Protocol::Tree.name().to_owned(),
            own: [[ns, 0.0], [0.0, ns]],
            ot: 0.0,
        };
        let runs = [
            vec![timed(10.0), timed(20.0), timed(40.0)],
            vec![timed(11.0), timed(22.0), timed(44.0)],
        ];
        let ways = settle(&runs, |_, run| run.own[0][0] + run.own[1][1]);
        let ratio = ways[1].own[0][0] / ways[0].own[0][0];
        assert!((ratio - 1.1).abs() < 1e-3, "{ways:?}");
    }

    #[test]
    fn a_tie_is_about_a_table_and_about_so_many_lookups() {
        let of = |bits, batch| Demand::xor(4, Index::Boolean, &[bits], batch).unwrap();
        let one = of(8, 20_000);
        let tie = Tie {
            about: about(&one),
            ways: Vec::new(),
        };
        assert!(tie.is_about(&about(&of(8, 19_957))));
        assert!(!tie.is_about(&about(&of(8, 100_000))) && !tie.is_about(&about(&of(1, 20_000))));
    }

    #[test]
    fn protocols_run_side_by_side() {
        let demand = Demand::xor(2, Index::Boolean, &[8], 500).unwrap();
        let ways = [Protocol::Doubling, Protocol::FlutePlus, Protocol::Flute];
        let tie = time(&ways.map(|way| (way, 400.0)), &demand).unwrap();
        assert!(tie.is_about(&about(&demand)) && ways.iter().all(|&way| tie.has(way)));
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
