//! Measuring cases, each once however many tables show it.
//!
//! The cases of a link are run in turn, short ones again and again; those that differ in the protocol alone one after the other, and
//! several times a turn where they are nearly as fast. Before each turn the machine is timed anew, by runs that
//! are none of the cases'; with that the protocols are chosen and every run predicted. Of each case the median
//! run counts, against what was predicted for that run: slow spells of the machine, of milliseconds to minutes, then meet some runs
//! of many cases and not all runs of one, nor one protocol and not its rivals, and the planner knows what any user of it knows who has
//! timed the machine lately.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use volvelle_lut::plan::{Machine, Objective, Planner, Prediction, SelfTiming};
use volvelle_lut::{Demand, LutError, Protocol};
use volvelle_net::Link;
use volvelle_ot::{Engine, Horizon, OtConfig, OtDemand, Security};

use super::case::{Case, Effort, Key, Kind, LINKS};
use super::runs::{ChoiceMade, Made, groups, median, shuffle};
use crate::args::{BenchArgs, OtBase, OtEngine, OtSecurity, Transport};
use crate::bench::lanes::Lanes;
use crate::bench::lut::{Job, Run};
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::PerItem;

/// Protocols predicted within this of the fastest of their kind are run more often, so that it is known which is.
const NEAR: f64 = 1.3;

/// What is planned: a link's place, a kind, what is minimised, and lookups if they are all.
type Question = (usize, Kind, Objective, Option<u32>);

/// All that has been measured.
pub struct Measurements {
    timing: Option<SelfTiming>,
    machine: Machine,
    effort: Effort,
    /// One session a link, with the engine that suits a long one.
    sessions: Vec<Option<Lanes>>,
    /// What the planner said before anything was measured.
    chosen: HashMap<Question, Protocol>,
    cases: BTreeMap<Key, Case>,
    choices: Vec<ChoiceMade>,
}

/// A case on its way.
pub struct Trial {
    key: Key,
    demand: Demand,
    /// In a session, what its runs have measured, and what was predicted for each.
    runs: Vec<(Prediction, Run)>,
    /// Turns in which it was run.
    turns: usize,
    /// Sessions of their own.
    sessions: Vec<Case>,
    took: Duration,
}

impl Measurements {
    /// None yet.
    pub fn new(machine: Machine, effort: Effort) -> Self {
        Self {
            timing: None,
            choices: Vec::new(),
            machine,
            effort,
            sessions: LINKS.iter().map(|_| None).collect(),
            chosen: HashMap::new(),
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
            (checked + case.checked as u64, wrong + case.wrong as u64)
        })
    }

    /// The planner's choices by total time.
    pub fn choices(&self) -> &[ChoiceMade] {
        &self.choices
    }

    /// Times the machine anew, once or as often as counts, for what is predicted from now on.
    pub fn time_machine(&mut self, again: bool) -> Result<(), CliError> {
        let last = self.effort.timings;
        if last == 0 {
            return Ok(());
        }
        let timing = match &mut self.timing {
            Some(timing) => timing,
            None => self.timing.insert(SelfTiming::begin()?),
        };
        for _ in 0..if again { 1 } else { last } {
            timing.go_on()?;
        }
        self.machine = timing.machine(last).with_ties_of(&self.machine);
        Ok(())
    }

    /// A planner for a link.
    pub fn planner(&self, link: usize) -> Planner {
        let link = LINKS[link].1;
        Planner::new(self.machine.clone(), link).engine(session_engine(link))
    }

    /// Chooses a protocol, in a session or for so many lookups; once for each question.
    pub fn choose(
        &mut self,
        link: usize,
        kind: Kind,
        objective: Objective,
        once: Option<u32>,
    ) -> Result<Protocol, CliError> {
        if let Some(chosen) = self.auto(link, kind, objective, once) {
            return Ok(chosen);
        }
        let batch = once.map_or(self.effort.batch, |batch| batch as usize);
        let planner = self.planner(link).objective(objective);
        let chosen = planner.plan(&kind.demand(batch)?)?.chosen().protocol;
        self.chosen.insert((link, kind, objective, once), chosen);
        Ok(chosen)
    }

    /// What was chosen.
    pub fn auto(
        &self,
        link: usize,
        kind: Kind,
        objective: Objective,
        once: Option<u32>,
    ) -> Option<Protocol> {
        self.chosen.get(&(link, kind, objective, once)).copied()
    }

    /// Predicts and measures cases, those left out that have been measured or whose protocol does not take them; and in
    /// each kind what the planner chooses before each turn.
    pub fn measure(&mut self, keys: Vec<Key>, what: &str) -> Result<(), CliError> {
        let mut trials: BTreeMap<Key, Trial> = BTreeMap::new();
        let mut choices: BTreeMap<(usize, Kind), Vec<Protocol>> = BTreeMap::new();
        for key in keys {
            self.add(key, &mut trials)?;
            if key.once.is_none() {
                choices.insert((key.link, key.kind), Vec::new());
            }
        }
        let progress = Progress::new(0, false);
        for turn in 0..self.effort.runs {
            if turn > 0 {
                self.time_machine(true)?;
            }
            for (&(link, kind), chosen) in &mut choices {
                let key = Key {
                    link,
                    kind,
                    protocol: self.best(link, kind)?,
                    once: None,
                };
                self.add(key, &mut trials)?;
                chosen.push(key.protocol);
            }
            let mut groups = groups(&trials);
            progress.set_length(groups.len() as u64);
            let mut none_left = true;
            // What ran before a case leaves its mark on the caches, each time something else.
            shuffle(&mut groups, turn);
            for (place, mut keys) in groups.into_iter().enumerate() {
                progress.set(place as u64, &format!("{what}, turn {}", turn + 1));
                shuffle(&mut keys, turn);
                none_left &= !self.turn(&keys, &mut trials)?;
            }
            if none_left {
                break;
            }
        }
        let mut turns = BTreeMap::new();
        for (key, trial) in trials {
            let most: &mut usize = turns.entry((key.link, key.kind)).or_default();
            *most = trial.turns.max(*most);
            let runs = self.runs(trial)?;
            self.cases.insert(key, median(runs));
        }
        for (at, mut chosen) in choices {
            // Later turns had nothing left to choose for.
            chosen.truncate(turns.get(&at).copied().unwrap_or(0));
            let choice = ChoiceMade::of(at, chosen, |key| Some(self.get(key)?.total().us));
            self.choices.extend(choice);
        }
        Ok(())
    }

    /// Runs the protocols of one kind in turn, those that are nearly as fast as the fastest several times, and returns whether any has
    /// run. One after the other, so that slow spells meet all that are compared.
    fn turn(&mut self, keys: &[Key], trials: &mut BTreeMap<Key, Trial>) -> Result<bool, CliError> {
        let predicted = keys.iter().map(|key| match trials.get(key) {
            Some(trial) => Ok(self.predict(trial)?.total.us),
            None => Ok(f64::MAX),
        });
        let predicted: Vec<f64> = predicted.collect::<Result<_, CliError>>()?;
        let best = predicted.iter().copied().fold(f64::MAX, f64::min);
        let mut any = false;
        for round in 0..self.effort.near {
            for place in 0..keys.len() {
                let place = (place + round) % keys.len();
                let near = predicted[place] <= NEAR * best;
                let Some(trial) = trials.get_mut(&keys[place]) else {
                    continue;
                };
                let (runs, took) = (trial.runs.len() + trial.sessions.len(), trial.took);
                if (near || round == 0) && self.effort.goes_on(&trial.key, runs, took, near) {
                    self.run(trial)?;
                    trial.turns += usize::from(round == 0);
                    any = true;
                }
            }
        }
        Ok(any)
    }

    /// Adds a case that is to be run.
    fn add(&self, key: Key, trials: &mut BTreeMap<Key, Trial>) -> Result<(), CliError> {
        let full = key.kind.demand(self.effort.batch)?;
        if self.cases.contains_key(&key)
            || trials.contains_key(&key)
            || key.protocol.takes(&full).is_err()
        {
            return Ok(());
        }
        let demand = match key.once {
            Some(batch) => full.with_batch(batch as usize)?,
            None => self.full_or_less(&key, &full)?,
        };
        let trial = Trial {
            key,
            demand,
            runs: Vec::new(),
            turns: 0,
            sessions: Vec::new(),
            took: Duration::ZERO,
        };
        trials.insert(key, trial);
        Ok(())
    }

    /// What the planner would now choose by total time.
    fn best(&mut self, link: usize, kind: Kind) -> Result<Protocol, CliError> {
        let mut planner = self.planner(link).objective(Objective::Total);
        let demand = kind.demand(self.effort.batch)?;
        if self.effort.timings > 0
            && let Some(machine) = planner.settle(std::slice::from_ref(&demand))?
        {
            self.machine = machine.clone();
        }
        Ok(planner.plan(&demand)?.chosen().protocol)
    }

    fn predict(&self, trial: &Trial) -> Result<Prediction, CliError> {
        let (key, demand) = (&trial.key, &trial.demand);
        let planner = self.planner(key.link);
        let planner = match key.once {
            Some(_) => planner.engine(engine_once(key, demand)),
            None => planner,
        };
        let predicted = planner.predict(key.protocol, demand);
        Ok(predicted.ok_or(LutError::NoProtocol)?)
    }

    /// A full batch, or as much of it as takes [`Effort::seconds`].
    fn full_or_less(&self, key: &Key, full: &Demand) -> Result<Demand, CliError> {
        let us = self.planner(key.link).predict(key.protocol, full);
        let us = us.map_or(0.0, |way| way.total.us);
        let most = self.effort.seconds * 1e6 / us.max(1e-3);
        Ok(full.with_batch((most as usize).clamp(16, self.effort.batch))?)
    }

    /// Predicts a run of a case and runs it.
    fn run(&mut self, trial: &mut Trial) -> Result<(), CliError> {
        let predicted = self.predict(trial)?;
        let start = Instant::now();
        if trial.key.once.is_some() {
            let session = self.session_of_its_own(trial, predicted)?;
            trial.sessions.push(session);
        } else {
            let lanes = self.session(trial.key.link)?;
            let job = Job::new(trial.key.protocol, trial.demand.clone())?;
            let run = job.measure(lanes, &[trial.demand.batch()])?;
            trial.runs.push((predicted, run));
        }
        trial.took += start.elapsed();
        Ok(())
    }

    /// A link's session.
    fn session(&mut self, link: usize) -> Result<&mut Lanes, CliError> {
        let session = &mut self.sessions[link];
        Ok(match session {
            Some(lanes) => lanes,
            None => {
                let link = LINKS[link].1;
                session.insert(connect(link, session_engine(link))?)
            }
        })
    }

    /// All runs, in the order of their turns.
    fn runs(&mut self, trial: Trial) -> Result<Vec<Case>, CliError> {
        if trial.key.once.is_some() {
            return Ok(trial.sessions);
        }
        let (key, batch) = (trial.key, trial.demand.batch());
        let lanes = self.session(key.link)?;
        let of_all = Made::typical(trial.runs.iter().map(|(_, run)| run));
        let emulated = !LINKS[key.link].1.is_loopback();
        let of_all = match of_all.is_enough() {
            // On a link, waiting for the first of them is most of it, however many are made.
            true if emulated => of_all.making.spread_over(of_all.used),
            true => of_all.making,
            false => lanes.making(),
        };
        let case = |(predicted, run): (Prediction, Run)| {
            let of_run = Made::of([&run]);
            let making = if emulated || !of_run.is_enough() {
                &of_all
            } else {
                &of_run.making
            };
            Ok(Case {
                key,
                batch,
                prep: lanes.per_item_at(&run.prep, batch, making)?,
                online: lanes.per_item_at(&run.online, batch, making)?,
                setup: PerItem::default(),
                engine: session_engine(LINKS[key.link].1),
                ot_ns: making.ns(),
                predicted,
                predicted_setup_us: 0.0,
                checked: batch,
                wrong: wrong(&run.wrong, batch),
            })
        };
        trial.runs.into_iter().map(case).collect()
    }

    fn session_of_its_own(&self, trial: &Trial, predicted: Prediction) -> Result<Case, CliError> {
        let Trial { key, demand, .. } = trial;
        let (link, batch) = (LINKS[key.link].1, demand.batch());
        let engine = engine_once(key, demand);
        let mut lanes = connect(link, engine)?;
        let done = Job::new(key.protocol, demand.clone())?.run(&mut lanes, &[batch])?;
        let each = 1.0 / batch as f64;
        let speed = self.machine.ot_speed();
        let time = |horizon| {
            engine
                .figures()
                .time_ns(&link, &ots(key, demand), horizon, speed)
        };
        Ok(Case {
            key: *key,
            batch,
            prep: done.prep,
            online: done.online,
            setup: PerItem {
                bits: lanes.setup.bits * each,
                us: lanes.setup.ms * 1e3 * each,
                rounds: 0,
            },
            engine,
            ot_ns: lanes.making().ns(),
            predicted,
            predicted_setup_us: (time(Horizon::Once) - time(Horizon::Session)) / 1e3 * each,
            checked: batch,
            wrong: wrong(&done.wrong, batch),
        })
    }
}

/// How many lookups of a lane were wrong.
fn wrong(ends: &[(usize, usize)], batch: usize) -> usize {
    let most = ends.iter().map(|(_, wrong)| *wrong).max();
    most.unwrap_or(batch)
}

fn ots(key: &Key, demand: &Demand) -> OtDemand {
    let cost = key.protocol.cost(demand).unwrap_or_default().total();
    OtDemand {
        client_sends: cost.cots_client,
        server_sends: cost.cots_server,
    }
}

/// The engine of a session that ends with this demand.
fn engine_once(key: &Key, demand: &Demand) -> Engine {
    let link = LINKS[key.link].1;
    let (ots, security) = (ots(key, demand), Security::SemiHonest);
    OtConfig::plan(&link, &ots, Horizon::Once, security).engine
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
