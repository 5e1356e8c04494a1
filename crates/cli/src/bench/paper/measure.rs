//! Measuring cases, each once however many tables show it.

use std::collections::BTreeMap;

use serde::Serialize;
use volvelle_lut::plan::{Machine, Objective, Planner, Prediction};
use volvelle_lut::{Demand, Index, Protocol};
use volvelle_net::Link;
use volvelle_ot::{Engine, Horizon, OtConfig, OtDemand, Security};

use crate::args::{BenchArgs, OtBase, OtEngine, OtSecurity, Transport};
use crate::bench::lanes::Lanes;
use crate::bench::lut::Job;
use crate::error::CliError;
use crate::report::PerItem;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Lookups at once.
    pub batch: usize,
    /// A case takes fewer lookups if these would take longer than so many seconds.
    pub seconds: f64,
    /// Runs of a case, of which the median counts; long cases are run once.
    pub runs: usize,
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
        runs: 3,
        every: 1,
        links: &[2, 0, 1],
        rivals: 4.0,
    };
    /// Under two minutes.
    pub const QUICK: Self = Self {
        batch: 20_000,
        seconds: 0.35,
        runs: 3,
        every: 3,
        links: &[2, 0, 1],
        rivals: 1.4,
    };
    /// Enough to see that it works.
    pub const SMOKE: Self = Self {
        batch: 200,
        seconds: 0.02,
        runs: 1,
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
}

/// The links, in the order of the tables.
pub const LINKS: [(&str, Link); 3] = [
    ("LAN", Link::LAN),
    ("WAN", Link::WAN),
    ("loopback", Link::LOOPBACK),
];

/// What is looked up: entries, bits of a word (128: two tables of 64 at one index), and how it is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    pub predicted: Prediction,
    /// Predicted µs of the set-up a lookup.
    pub predicted_setup_us: f64,
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
            setup: key.once.map(|_| self.setup),
            prep: self.prep,
            online: self.online,
            total,
            predicted_bits: self.predicted.total.bits,
            predicted_us: self.predicted_us(),
            checked: self.batch,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    setup: Option<PerItem>,
    prep: PerItem,
    online: PerItem,
    total: PerItem,
    predicted_bits: f64,
    predicted_us: f64,
    checked: usize,
    wrong: usize,
}

/// All that has been measured.
pub struct Measurements {
    machine: Machine,
    effort: Effort,
    /// One session a link, with the engine that suits a long one.
    sessions: Vec<Option<(Engine, Lanes)>>,
    cases: BTreeMap<Key, Case>,
}

impl Measurements {
    /// None yet.
    pub fn new(machine: Machine, effort: Effort) -> Self {
        Self {
            machine,
            effort,
            sessions: LINKS.iter().map(|_| None).collect(),
            cases: BTreeMap::new(),
        }
    }

    /// The timings that predictions are from.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How much is measured.
    pub fn effort(&self) -> &Effort {
        &self.effort
    }

    /// All cases, in the order of links and sizes.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.cases.values()
    }

    /// A case, if it was measured.
    pub fn get(&self, key: &Key) -> Option<&Case> {
        self.cases.get(key)
    }

    /// The engines in use.
    pub fn engine_names(&self) -> String {
        let mut names: Vec<String> = LINKS
            .iter()
            .map(|(_, link)| session_engine(*link).to_string())
            .collect();
        names.dedup();
        names.join(", ")
    }

    /// Lookups checked, and how many of them were wrong.
    pub fn checked(&self) -> (u64, u64) {
        self.cases().fold((0, 0), |(checked, wrong), case| {
            (checked + case.batch as u64, wrong + case.wrong as u64)
        })
    }

    /// A planner for a link.
    pub fn planner(&self, link: usize) -> Planner {
        let link = LINKS[link].1;
        Planner::new(self.machine.clone(), link).engine(session_engine(link))
    }

    /// What `auto` stands for, in a session or for so many lookups.
    pub fn auto(
        &self,
        link: usize,
        kind: Kind,
        objective: Objective,
        once: Option<u32>,
    ) -> Result<Protocol, CliError> {
        let batch = once.map_or(self.effort.batch, |batch| batch as usize);
        let plan = self
            .planner(link)
            .objective(objective)
            .plan(&kind.demand(batch)?)?;
        Ok(plan.chosen().protocol)
    }

    /// Measures a case, unless it has been or the protocol does not take it.
    pub fn measure(&mut self, key: Key) -> Result<(), CliError> {
        if self.cases.contains_key(&key) {
            return Ok(());
        }
        let full = key.kind.demand(self.effort.batch)?;
        if key.protocol.takes(&full).is_err() {
            return Ok(());
        }
        let case = match key.once {
            Some(batch) => self.measure_once(key, batch as usize)?,
            None => self.measure_in_session(key, &full)?,
        };
        self.cases.insert(key, case);
        Ok(())
    }

    fn measure_in_session(&mut self, key: Key, full: &Demand) -> Result<Case, CliError> {
        let planner = self.planner(key.link);
        let us = |demand: &Demand| {
            let way = planner.predict(key.protocol, demand);
            way.map_or(0.0, |way| way.total.us)
        };
        let most = self.effort.seconds * 1e6 / us(full).max(1e-3);
        let batch = (most as usize).clamp(16, self.effort.batch);
        let demand = full.with_batch(batch)?;
        let seconds = us(&demand) * batch as f64 / 1e6;
        let runs = if seconds > 0.5 { 1 } else { self.effort.runs };

        let session = &mut self.sessions[key.link];
        let (engine, lanes) = match session {
            Some(session) => session,
            None => {
                let link = LINKS[key.link].1;
                let engine = session_engine(link);
                session.insert((engine, connect(link, engine)?))
            }
        };
        let mut cases = Vec::with_capacity(runs);
        for _ in 0..runs {
            let predicted = planner
                .clone()
                .engine(*engine)
                .predict(key.protocol, &demand);
            cases.push(run(key, &demand, lanes, predicted)?);
        }
        let wrong = cases.iter().map(|case| case.wrong).sum();
        cases.sort_by(|a, b| a.total().us.total_cmp(&b.total().us));
        let median = cases.swap_remove(cases.len() / 2);
        Ok(Case { wrong, ..median })
    }

    fn measure_once(&mut self, key: Key, batch: usize) -> Result<Case, CliError> {
        let link = LINKS[key.link].1;
        let demand = key.kind.demand(batch)?;
        let ots = key.protocol.cost(&demand).unwrap_or_default().total();
        let ots = OtDemand {
            client_sends: ots.cots_client,
            server_sends: ots.cots_server,
        };
        let engine = OtConfig::plan(&link, &ots, Horizon::Once, Security::SemiHonest).engine;
        let predicted = self
            .planner(key.link)
            .engine(engine)
            .predict(key.protocol, &demand);
        let mut lanes = connect(link, engine)?;
        let mut case = run(key, &demand, &mut lanes, predicted)?;
        let each = 1.0 / batch as f64;
        case.setup = PerItem {
            bits: lanes.setup.bits * each,
            us: lanes.setup.ms * 1e3 * each,
            rounds: 0,
        };
        let speed = self.machine.ot_speed();
        let with = engine.figures().time_ns(&link, &ots, Horizon::Once, speed);
        let without = engine
            .figures()
            .time_ns(&link, &ots, Horizon::Session, speed);
        case.predicted_setup_us = (with - without) / 1e3 * each;
        Ok(case)
    }
}

fn session_engine(link: Link) -> Engine {
    let many = OtDemand {
        client_sends: 1 << 20,
        server_sends: 1 << 20,
    };
    OtConfig::plan(&link, &many, Horizon::Session, Security::SemiHonest).engine
}

fn connect(link: Link, engine: Engine) -> Result<Lanes, CliError> {
    let bench = BenchArgs {
        threads: 1,
        link,
        transport: Transport::Memory,
        engine: OtEngine::Auto,
        planned: Some(engine),
        base: OtBase::Ristretto,
        security: OtSecurity::SemiHonest,
        ahead: false,
        json: false,
    };
    Lanes::new(&bench, None, &Vec::new())
}

fn run(
    key: Key,
    demand: &Demand,
    lanes: &mut Lanes,
    predicted: Option<Prediction>,
) -> Result<Case, CliError> {
    let predicted = predicted.ok_or(volvelle_lut::LutError::NoProtocol)?;
    let batch = demand.batch();
    let done = Job::new(key.protocol, demand.clone())?.run(lanes, &[batch])?;
    Ok(Case {
        key,
        batch,
        prep: done.prep,
        online: done.online,
        setup: PerItem::default(),
        predicted,
        predicted_setup_us: 0.0,
        wrong: done
            .wrong
            .iter()
            .map(|(_, wrong)| *wrong)
            .max()
            .unwrap_or(batch),
    })
}
