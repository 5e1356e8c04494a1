//! What a case is, and how much is measured.

use std::time::Duration;

use serde::Serialize;
use volvelle_lut::plan::Prediction;
use volvelle_lut::{Demand, Index, Protocol};
use volvelle_net::Link;
use volvelle_ot::Engine;

use crate::error::CliError;
use crate::report::PerItem;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Lookups at once.
    pub batch: usize,
    /// A case takes fewer lookups if these would take longer than so many seconds.
    pub seconds: f64,
    /// Runs of a case, of which the median counts: the most of them, and for how many seconds.
    pub runs: usize,
    pub running: f64,
    /// How many times as many where protocols are nearly as fast as each other, if they are short: for twice as long at most.
    pub near: usize,
    /// The same for sessions of a single case.
    pub sessions: usize,
    /// Of how many timings of the machine the medians count, the last made before each turn; 0: it is not timed anew.
    pub timings: usize,
    /// Every n-th of the paper's widths and sizes.
    pub every: usize,
    /// Places in [`LINKS`] of the links in use, in the order of measuring.
    pub links: &'static [usize],
    /// Protocols predicted to take more than so many times the best one's time are not run to check the planner's choice.
    pub rivals: f64,
}

impl Effort {
    /// As the paper.
    pub const FULL: Self = Self {
        batch: 100_000,
        seconds: 20.0,
        runs: 9,
        running: 0.5,
        near: 2,
        sessions: 1,
        timings: 3,
        every: 1,
        links: &[2, 0, 1],
        rivals: 4.0,
    };
    /// Less than two minutes (`docs/protocols/planner.md`).
    pub const QUICK: Self = Self {
        batch: 20_000,
        seconds: 0.25,
        runs: 5,
        running: 0.15,
        near: 4,
        sessions: 1,
        timings: 3,
        every: 3,
        links: &[2, 0, 1],
        rivals: 1.4,
    };
    /// Enough to see that it works.
    pub const SMOKE: Self = Self {
        batch: 200,
        seconds: 0.02,
        runs: 1,
        running: 0.0,
        near: 1,
        sessions: 1,
        timings: 0,
        every: 3,
        links: &[2, 0],
        rivals: 0.0,
    };

    /// Every n-th of these, the last among them.
    pub fn some<T: Copy>(&self, all: &[T]) -> Vec<T> {
        let last = all.len().saturating_sub(1);
        let kept = all.iter().enumerate();
        kept.filter(|(i, _)| (last - i).is_multiple_of(self.every))
            .map(|(_, value)| *value)
            .collect()
    }

    /// Whether a case is run once more after so many runs in so long.
    pub fn goes_on(&self, key: &Key, runs: usize, took: Duration, near: bool) -> bool {
        if key.once.is_some() {
            return runs < self.sessions;
        }
        if is_far(key.link) {
            return runs < (self.runs / if near { 2 } else { 4 }).max(1);
        }
        self.is_worth_it(runs, took, if near { self.near } else { 1 })
    }

    /// Whether a case of a session is run once more after so many runs in so long, `times` as often as others.
    fn is_worth_it(&self, runs: usize, took: Duration, times: usize) -> bool {
        let (took, few) = (took.as_secs_f64(), self.runs.min(3));
        runs == 0
            || runs < self.runs * times && took < self.running * times.min(2) as f64
            // Long cases three times unless they are very long.
            || runs < few && took < self.running * runs as f64
    }
}

/// The links, in the order of the tables.
pub const LINKS: [(&str, Link); 3] = [
    ("LAN", Link::LAN),
    ("WAN", Link::WAN),
    ("loopback", Link::LOOPBACK),
];

/// Whether most of the time that a protocol takes on this link is waiting and sending, which strays little: not worth timing the machine
/// anew between turns, nor many runs.
pub fn is_far(link: usize) -> bool {
    LINKS[link].1.rtt() >= Duration::from_millis(10)
}

/// What is looked up: entries, bits of a word (128: two tables of 64 at one index), and how it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    pub entries: u32,
    pub word: u32,
    /// XOR-shared index and output, else additive.
    pub xor: bool,
}

impl Kind {
    /// A batch of it.
    pub fn demand(&self, batch: usize) -> Result<Demand, CliError> {
        let words = vec![self.word.min(64); self.word.div_ceil(64) as usize];
        let k = self.entries.ilog2();
        Ok(if self.xor {
            Demand::xor(k, Index::Boolean, &words, batch)?
        } else {
            Demand::additive(k, Index::Arithmetic, &words, batch)?
        })
    }
}

/// What is measured once; the link is a place in [`LINKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub link: usize,
    pub kind: Kind,
    pub protocol: Protocol,
    /// A session of this many lookups and no more, its set-up counted.
    pub once: Option<u32>,
}

/// A measured case.
#[derive(Clone, Debug)]
pub struct Case {
    pub key: Key,
    pub batch: usize,
    pub prep: PerItem,
    pub online: PerItem,
    /// Set-up a lookup, where it is counted.
    pub setup: PerItem,
    /// Where OTs are from, and nanoseconds to make one.
    pub engine: Engine,
    pub ot_ns: f64,
    pub predicted: Prediction,
    /// Predicted µs of the set-up a lookup.
    pub predicted_setup_us: f64,
    /// Lookups checked in all runs, and how many of them were wrong.
    pub checked: usize,
    pub wrong: usize,
}

impl Case {
    /// All that is counted.
    pub fn total(&self) -> PerItem {
        self.setup.then(&self.prep.then(&self.online))
    }

    /// Predicted µs of all that is counted, a lookup.
    pub fn predicted_us(&self) -> f64 {
        self.predicted.total.us + self.predicted_setup_us
    }

    /// Its line of JSON.
    pub fn report(&self) -> CaseReport {
        let (key, total) = (&self.key, self.total());
        CaseReport {
            link: LINKS[key.link].0,
            protocol: key.protocol.name(),
            entries: key.kind.entries,
            bits: key.kind.word,
            index: if key.kind.xor {
                "boolean"
            } else {
                "arithmetic"
            },
            batch: self.batch,
            engine: self.engine.to_string(),
            ot_ns: self.ot_ns,
            setup: key.once.map(|_| self.setup),
            prep: self.prep,
            online: self.online,
            total,
            predicted_bits: self.predicted.total.bits,
            predicted_us: self.predicted_us(),
            predicted_phases_us: [self.predicted.prep.us, self.predicted.online.us],
            predicted_setup_us: self.predicted_setup_us,
            checked: self.checked,
            wrong: self.wrong,
        }
    }
}

/// A case as JSON.
#[derive(Debug, Serialize)]
pub struct CaseReport {
    link: &'static str,
    protocol: &'static str,
    entries: u32,
    bits: u32,
    index: &'static str,
    batch: usize,
    engine: String,
    ot_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<PerItem>,
    prep: PerItem,
    online: PerItem,
    total: PerItem,
    predicted_bits: f64,
    predicted_us: f64,
    predicted_phases_us: [f64; 2],
    predicted_setup_us: f64,
    checked: usize,
    wrong: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_cases_are_run_often_and_long_ones_once() {
        let ms = Duration::from_millis;
        let runs = |each: Duration, times: usize| {
            let mut runs = 0;
            while Effort::QUICK.is_worth_it(runs, each * runs as u32, times) {
                runs += 1;
            }
            runs
        };
        assert_eq!(
            [5, 40, 140, 160].map(|each| runs(ms(each), 1)),
            [5, 4, 3, 1]
        );
        assert_eq!(
            [5, 40, 160, 900].map(|each| runs(ms(each), 4)),
            [20, 8, 2, 1]
        );
        assert!(!Effort::SMOKE.is_worth_it(1, Duration::ZERO, 1));
    }

    #[test]
    fn on_a_far_link_a_rival_is_run_twice_and_others_once() {
        let key = Key {
            link: 1,
            kind: Kind {
                entries: 4,
                word: 8,
                xor: false,
            },
            protocol: Protocol::Doubling,
            once: None,
        };
        let goes_on = |runs, near| Effort::QUICK.goes_on(&key, runs, Duration::ZERO, near);
        assert_eq!([0, 1].map(|runs| goes_on(runs, false)), [true, false]);
        assert_eq!([1, 2].map(|runs| goes_on(runs, true)), [true, false]);
    }
}
