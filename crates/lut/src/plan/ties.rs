//! Near ties, settled by timing the protocols side by side.
//!
//! Sizes that the self-timing tries are few, and one timing of a protocol strays by more than two protocols that are nearly as
//! fast differ by. Where predictions are near each other, the protocols therefore run at the very sizes asked for, in turns
//! ([`super::side_by_side`]): a slow spell of the machine then meets all of them, and of each the **median share of a turn** counts, until
//! it is known well enough who is first. What comes of it is kept, so that a choice once made stays.
//!
//! A tie says how its members compare; how fast the machine is just now, the self-timing says.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use volvelle_net::Link;
use volvelle_ot::{Engine, OtConfig, PhasedCost};

use crate::{Demand, Protocol};

/// Ties that are kept, the latest.
pub(super) const KEPT: usize = 256;
/// Most protocols timed side by side, the fastest.
pub(super) const MOST: usize = 5;
/// The longest round trip of a link that protocols are timed over: at more, waiting is most of it, which needs no timing.
const NEAR_BY: Duration = Duration::from_millis(5);
/// How sure it is who is first: by so many standard errors, or within such an error of the ratio.
const SURE: (f64, f64) = (4.0, 0.015);

/// Where protocols are timed side by side: over the link itself, emulated, if its round trips are short enough for that; or else in
/// memory, what a link adds being reckoned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub link: Link,
    pub engine: Engine,
}

impl Place {
    pub(super) fn of(link: Link, engine: Engine) -> Self {
        if !link.is_loopback() && link.rtt() <= NEAR_BY {
            return Self { link, engine };
        }
        Self {
            link: Link::LOOPBACK,
            engine: OtConfig::default().engine,
        }
    }

    pub(super) fn is_memory(&self) -> bool {
        self.link.is_loopback()
    }
}

/// Nanoseconds a lookup: preprocessing and online, of client and server.
type Each = [[f64; 2]; 2];

/// A protocol of a tie.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Timed {
    protocol: String,
    /// Apart from making OTs.
    own: Each,
    /// Nanoseconds to make an OT, there and by that engine.
    ot: f64,
}

/// Protocols timed side by side.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Tie {
    /// Shares, table and batch, in words, and the link if it was timed over one.
    about: String,
    /// Lookups at once.
    batch: usize,
    pub(super) ways: Vec<Timed>,
}

impl Timed {
    pub(super) fn protocol(&self) -> Option<Protocol> {
        self.protocol.parse().ok()
    }

    pub(super) fn new(protocol: Protocol, own: Each, ot: f64) -> Self {
        Self {
            protocol: protocol.name().to_owned(),
            own,
            ot,
        }
    }

    /// Nanoseconds a lookup of both phases, an OT taking `ratio` times what it took.
    pub(super) fn computing(&self, cost: &PhasedCost, batch: usize, ratio: f64) -> [f64; 2] {
        let cots = [cost.prep.cots(), cost.online.cots()];
        [0, 1].map(|phase| {
            let own = self.own[phase][0].max(self.own[phase][1]);
            own + ratio * self.ot * cots[phase] as f64 / batch as f64
        })
    }
}

impl Tie {
    /// Of runs of each protocol, turn by turn.
    pub(super) fn of(
        demand: &Demand,
        place: &Place,
        batch: usize,
        runs: &[Vec<Timed>],
        total: impl Fn(usize, &Timed) -> f64,
    ) -> Self {
        Self {
            about: about(demand, place),
            batch,
            ways: settle(runs, total),
        }
    }

    /// Lookups at once when it was timed.
    pub(super) fn batch(&self) -> usize {
        self.batch
    }

    pub(super) fn is_about(&self, about: &str) -> bool {
        self.about == about
    }

    pub(super) fn has(&self, protocol: Protocol) -> bool {
        self.ways.iter().any(|way| way.protocol == protocol.name())
    }
}

/// What a tie holds for: batches within a factor of √2 are as one.
pub(super) fn about(demand: &Demand, place: &Place) -> String {
    let batch = 2.0 * (demand.batch() as f64).log2();
    let shape = demand.shape();
    let over = if place.is_memory() {
        String::new()
    } else {
        format!(", {}, {}", place.link, place.engine)
    };
    format!(
        "2^{} of {:?} bits, {} index, {}, 2^{} lookups{over}",
        demand.log_entries(),
        demand.words(),
        shape.index,
        if demand.is_xor() { "xor" } else { "additive" },
        batch.round() / 2.0
    )
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

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Whether it is known who is first, or that it makes no difference.
pub(super) fn is_sure(totals: &[Vec<f64>]) -> bool {
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
    fn medians_are_scaled_to_the_shares() {
        let timed = |ns: f64| Timed::new(Protocol::Tree, [[ns, 0.0], [0.0, ns]], 0.0);
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
        let engine = OtConfig::default().engine;
        let place = |link| Place::of(link, engine);
        let [memory, lan] = [Link::LOOPBACK, Link::LAN].map(place);
        let one = of(8, 20_000);
        let tie = Tie::of(&one, &memory, 20_000, &[], |_, _| 0.0);
        assert!(tie.is_about(&about(&of(8, 19_957), &memory)));
        assert!(!tie.is_about(&about(&of(8, 100_000), &memory)));
        assert!(!tie.is_about(&about(&of(1, 20_000), &memory)));
        // Over a link it is another one, unless that link is so long that none is timed over it.
        assert!(!tie.is_about(&about(&one, &lan)));
        assert!(tie.is_about(&about(&one, &place(Link::WAN))));
    }
}
