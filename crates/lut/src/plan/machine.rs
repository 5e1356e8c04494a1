//! What a machine takes to compute, protocol by protocol.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::side_by_side::{self, Parties};
use super::ties::{self, Place, Tie};
use super::{cache, calibrate};
use crate::{Demand, LutError, Protocol};

/// Timings of one protocol at one size, apart from making OTs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Sample {
    /// Which protocol, by name.
    pub(super) protocol: String,
    /// XOR-shared index and output, or additive ones.
    pub(super) xor: bool,
    pub(super) log_entries: u32,
    /// Bits of an entry.
    pub(super) bits: u32,
    /// Tables of such entries at one index.
    pub(super) tables: u32,
    pub(super) prep: Both,
    pub(super) online: Both,
}

/// What a phase takes a party by itself: once a batch, however small it is, and for each lookup, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(super) struct Own {
    pub fixed: f64,
    pub each: f64,
}

/// What making OTs takes a party, as multiples of what [`volvelle_ot::Figures`] say that one OT takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(super) struct Making {
    /// In a long run of them.
    pub each: f64,
    /// More for each of those that are made first in a phase: with cold caches, and waiting for the peer.
    pub first: f64,
}

/// What a phase takes the client and the server.
pub(super) type Both = [Own; 2];

impl Own {
    fn combine(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            fixed: f(self.fixed, other.fixed),
            each: f(self.each, other.each),
        }
    }
}

/// What a machine takes to compute: the result of a short self-timing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Machine {
    /// What was timed: program version, build, processor.
    pub(super) stamp: String,
    /// What making OTs takes the client and the server.
    pub(super) making: [Making; 2],
    /// What setting OTs up takes, as a multiple of what [`volvelle_ot::Figures`] say.
    #[serde(default)]
    pub(super) setup: f64,
    pub(super) samples: Vec<Sample>,
    /// Protocols timed side by side at sizes where they are nearly as fast as each other.
    #[serde(default)]
    pub(super) ties: Vec<Tie>,
}

impl Machine {
    /// The timings kept for this machine in the user's cache directory, or new ones (a few seconds), which are then
    /// kept. `VOLVELLE_CACHE` names another directory. A cache that cannot be read or written is done without.
    ///
    /// # Errors
    /// If the self-timing fails.
    pub fn this() -> Result<Self, LutError> {
        match Self::kept() {
            Some(machine) => Ok(machine),
            None => Self::calibrate_and_keep(),
        }
    }

    /// The timings kept for this machine, or else [`Self::reference`]: at once, nothing is timed.
    #[must_use]
    pub fn known() -> Self {
        Self::kept().unwrap_or_else(Self::reference)
    }

    /// Timings of this machine by this program that are complete.
    fn kept() -> Option<Self> {
        let stamp = cache::stamp();
        let kept = cache::load().filter(|machine| machine.stamp == stamp);
        kept.filter(|machine| machine.setup > 0.0 && machine.times_all_that(&Self::reference()))
    }

    /// Whether every protocol and kind of output that `other` has timings of has some here: a build between two
    /// versions may have known fewer.
    fn times_all_that(&self, other: &Self) -> bool {
        fn kinds(machine: &Machine) -> HashSet<(&str, bool)> {
            let samples = machine.samples.iter();
            samples
                .map(|sample| (sample.protocol.as_str(), sample.xor))
                .collect()
        }
        kinds(self).is_superset(&kinds(other))
    }

    /// Times this machine now and keeps the timings for [`Self::this`].
    ///
    /// # Errors
    /// If a protocol fails.
    pub fn calibrate_and_keep() -> Result<Self, LutError> {
        let machine = Self::calibrate()?;
        cache::keep(&machine);
        Ok(machine)
    }

    /// Times this machine now; keeps nothing.
    ///
    /// # Errors
    /// If a protocol fails.
    pub fn calibrate() -> Result<Self, LutError> {
        calibrate::machine()
    }

    /// Keeps these timings for [`Self::this`].
    pub fn keep(&self) {
        cache::keep(self);
    }

    /// The same with what has been found out about near ties in `other`, timings of the same machine at another time.
    #[must_use]
    pub fn with_ties_of(self, other: &Self) -> Self {
        Self {
            ties: other.ties.clone(),
            ..self
        }
    }

    /// The tie that a protocol is in for such a demand.
    pub(super) fn tie(&self, protocol: Protocol, demand: &Demand, place: &Place) -> Option<&Tie> {
        let about = ties::about(demand, place);
        let mut ties = self.ties.iter();
        ties.find(|tie| tie.is_about(&about) && tie.has(protocol))
    }

    /// Times these protocols side by side, each with the nanoseconds that a lookup is expected to take there, if that has not been
    /// done; those that have been in a tie before with them. Returns whether it has timed.
    pub(super) fn settle(
        &mut self,
        parties: &mut Option<Parties>,
        place: Place,
        mut ways: Vec<(Protocol, f64)>,
        demand: &Demand,
    ) -> Result<bool, LutError> {
        let about = ties::about(demand, &place);
        let known = self.ties.iter().position(|tie| tie.is_about(&about));
        if let Some(place) = known {
            if ways.iter().all(|way| self.ties[place].has(way.0)) {
                return Ok(false);
            }
            let before = self.ties.remove(place);
            let slowest = ways.iter().map(|way| way.1).fold(0.0, f64::max);
            let before = before.ways.iter().filter_map(ties::Timed::protocol);
            for protocol in before {
                if ways.len() < ties::MOST && ways.iter().all(|way| way.0 != protocol) {
                    ways.push((protocol, slowest));
                }
            }
        }
        let tie = side_by_side::time(parties, place, &ways, demand)?;
        self.ties.push(tie);
        let old = self.ties.len().saturating_sub(ties::KEPT);
        self.ties.drain(..old);
        Ok(true)
    }

    /// A fixed machine, 2 cores of an AMD Zen 5: predictions that are the same everywhere.
    ///
    /// # Panics
    /// Never: the figures are part of the program.
    #[must_use]
    pub fn reference() -> Self {
        #[expect(clippy::expect_used, reason = "compiled in, and read by a test")]
        serde_json::from_str(include_str!("reference.json")).expect("the figures compiled in")
    }

    /// What was timed: program version, build, processor.
    #[must_use]
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// How many times as long as [`volvelle_ot::Figures`] say it takes to set OTs up, which is public-key work for the most part.
    #[must_use]
    pub fn setup_speed(&self) -> f64 {
        self.setup
    }

    /// What the two phases take either party, apart from making OTs.
    pub(super) fn own(&self, protocol: Protocol, demand: &Demand) -> [Both; 2] {
        let of = |xor: bool| {
            let samples = self.samples.iter();
            let samples = samples.filter(|s| s.protocol == protocol.name() && s.xor == xor);
            samples.collect::<Vec<_>>()
        };
        let mut samples = of(demand.is_xor());
        if samples.is_empty() {
            samples = of(!demand.is_xor());
        }
        let (pairs, singles): (Vec<_>, Vec<_>) = samples.into_iter().partition(|s| s.tables > 1);
        [(|s: &Sample| s.prep) as fn(&Sample) -> Both, |s| s.online]
            .map(|phase| [0, 1].map(|party| tables(&singles, &pairs, demand, |s| phase(s)[party])))
    }
}

/// Several tables at one index: the widest entries' timing, and for each further table what it adds.
fn tables(
    singles: &[&Sample],
    pairs: &[&Sample],
    demand: &Demand,
    phase: impl Fn(&Sample) -> Own + Copy,
) -> Own {
    let (k, words) = (demand.log_entries(), demand.words());
    let widest = words.iter().copied().max().unwrap_or(1);
    let first = size(singles, k, widest, phase);
    let more = words.len() - 1;
    if more == 0 {
        return first;
    }
    let each = match pairs.first() {
        Some(pair) => {
            let (two, one) = (
                size(pairs, k, pair.bits, phase),
                size(singles, k, pair.bits, phase),
            );
            // In proportion, should the two have been timed at different sizes.
            let share = (two.each / one.each.max(1e-3) - 1.0).clamp(0.0, 1.0);
            first.each * (1.0 + share * more as f64)
        }
        // As one table of wider entries.
        None => {
            let all = words.iter().sum();
            let rest = first.each * (words.len() as f64);
            size(singles, k, all, phase).each.clamp(first.each, rest)
        }
    };
    Own { each, ..first }
}

/// Between sizes: straight in the width of entries; between tables of `2^a` and `2^b` entries, and beyond, along a
/// power of the number of entries.
fn size(samples: &[&Sample], k: u32, bits: u32, phase: impl Fn(&Sample) -> Own + Copy) -> Own {
    let mut sizes: Vec<u32> = samples.iter().map(|s| s.log_entries).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let at = |k: u32| width(samples, k, bits, phase);
    match sizes.as_slice() {
        [] => Own::default(),
        [only] => at(*only),
        [first, .., last] => {
            let upper = sizes.iter().copied().find(|&s| s >= k).unwrap_or(*last);
            let upper = upper.max(sizes[1]);
            let lower = sizes.iter().copied().rev().find(|&s| s < upper);
            let (a, b) = (lower.unwrap_or(*first), upper);
            let t = (f64::from(k) - f64::from(a)) / f64::from(b - a);
            at(a).combine(at(b), |a, b| between(a.max(1.0), b.max(1.0), t))
        }
    }
}

fn between(a: f64, b: f64, t: f64) -> f64 {
    (a.ln() + t * (b.ln() - a.ln())).exp()
}

/// Of samples of one size.
fn width(samples: &[&Sample], k: u32, bits: u32, phase: impl Fn(&Sample) -> Own) -> Own {
    let mut widths: Vec<_> = samples.iter().filter(|s| s.log_entries == k).collect();
    widths.sort_by_key(|sample| sample.bits);
    widths.dedup_by_key(|sample| sample.bits);
    match widths.as_slice() {
        [] => Own::default(),
        [only] => phase(only),
        [.., last] => {
            let upper = widths.iter().position(|s| s.bits >= bits);
            let upper = upper.unwrap_or(widths.len() - 1).max(1);
            let (a, b) = (widths[upper - 1], widths.get(upper).unwrap_or(last));
            let t = (f64::from(bits) - f64::from(a.bits)) / (f64::from(b.bits) - f64::from(a.bits));
            phase(a).combine(phase(b), |a, b| (a + t * (b - a)).max(a.min(b) / 2.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_that_lack_a_protocol_are_made_again() {
        let reference = Machine::reference();
        assert!(reference.times_all_that(&reference));
        let mut older = reference.clone();
        older
            .samples
            .retain(|sample| sample.protocol != Protocol::Garbled.name());
        assert!(!older.times_all_that(&reference));
        assert!(reference.times_all_that(&older));
    }

    fn sample(log_entries: u32, bits: u32, tables: u32, each: f64) -> Sample {
        let own = Own { fixed: 50.0, each };
        Sample {
            protocol: Protocol::Doubling.name().to_owned(),
            xor: true,
            log_entries,
            bits,
            tables,
            prep: [own, Own { fixed: 70.0, ..own }],
            online: [Own {
                fixed: 0.0,
                each: 1.0,
            }; 2],
        }
    }

    fn machine(samples: Vec<Sample>) -> Machine {
        Machine {
            stamp: "made up".to_owned(),
            making: [Making {
                each: 1.0,
                first: 0.0,
            }; 2],
            setup: 1.0,
            samples,
            ties: Vec::new(),
        }
    }

    #[test]
    fn between_sizes_and_widths() {
        let made_up = machine(vec![
            sample(4, 1, 1, 90.0),
            sample(4, 8, 1, 20.0),
            sample(4, 64, 1, 132.0),
            sample(6, 8, 1, 80.0),
            sample(6, 64, 1, 528.0),
        ]);
        let each = |k: u32, words: &[u32]| {
            let demand = Demand::xor(k, crate::Index::Boolean, words, 1).unwrap();
            let [[client, server], online] = made_up.own(Protocol::Doubling, &demand);
            assert_eq!(client.each, server.each);
            assert!((server.fixed - 70.0).abs() < 1e-6);
            assert_eq!(online[0].each, 1.0);
            client.each
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} {b}");
        near(each(4, &[1]), 90.0);
        near(each(4, &[4]), 60.0);
        near(each(4, &[36]), 76.0);
        // A power of the number of entries, within and beyond.
        near(each(5, &[8]), 40.0);
        near(each(8, &[8]), 320.0);
        near(each(6, &[36]), 304.0);
        // Two tables, where none were timed: at most twice one, here as one of 72 bits.
        near(each(4, &[36, 36]), 148.0);
        near(each(4, &[64, 64]), 260.0);
    }

    #[test]
    fn further_tables_add_what_a_second_one_did() {
        let made_up = machine(vec![
            sample(4, 8, 1, 80.0),
            sample(4, 64, 1, 100.0),
            sample(4, 64, 2, 125.0),
        ]);
        let each = |words: &[u32]| {
            let demand = Demand::xor(4, crate::Index::Boolean, words, 1).unwrap();
            made_up.own(Protocol::Doubling, &demand)[0][0].each
        };
        assert_eq!(
            [each(&[8]), each(&[8, 8]), each(&[64; 3])],
            [80.0, 100.0, 150.0]
        );
    }
}
