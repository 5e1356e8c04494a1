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

use super::case::{Case, Effort, Key, Kind, LINKS, is_far};
use super::runs::{ChoiceMade, Made, groups, median, shuffle};
use super::sessions::{self, connect, engine_once, session_engine, wrong};
use crate::bench::lanes::Lanes;
use crate::bench::lut::{Job, Run};
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::PerItem;

/// Protocols predicted within this of the fastest of their kind are run more often, so that it is known which is; and on a far link.
const NEAR: (f64, f64) = (1.3, 1.1);

/// What may take longer than a batch of the fastest protocol should, without being cut.
const RIVAL: f64 = 1.5;
/// Numbers of OTs that differ by less than so many times are about the same.
const ALIKE: f64 = 1.25;

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
    /// Lookups at once in a session, for each link and kind.
    batches: HashMap<(usize, Kind), usize>,
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

impl Trial {
    fn ran(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|(_, run)| run)
    }
}

impl Measurements {
    /// None yet.
    pub fn new(machine: Machine, effort: Effort) -> Self {
        Self {
            timing: None,
            choices: Vec::new(),
            batches: HashMap::new(),
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

    /// Times the machine anew for what is predicted from now on: once, or the first time as often as counts.
    pub fn time_machine(
        &mut self,
        wanted: impl Fn(Protocol, u32) -> bool + Sync,
    ) -> Result<(), CliError> {
        let last = self.effort.timings;
        if last == 0 {
            return Ok(());
        }
        let (timing, times) = match &mut self.timing {
            Some(timing) => (timing, 1),
            None => {
                let timing = SelfTiming::begin(Some(&self.machine))?;
                (self.timing.insert(timing), last)
            }
        };
        for _ in 0..times {
            timing.go_on(&wanted)?;
        }
        let machine = timing.machine(last);
        if machine.stamp() != self.machine.stamp() {
            // None were kept.
            machine.keep();
        }
        self.machine = machine.with_ties_of(&self.machine);
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
        self.settle(choices.keys())?;
        let progress = Progress::new(0, false);
        for turn in 0..self.effort.runs {
            if turn > 0 && !trials.keys().all(|key| is_far(key.link)) {
                // Of larger tables and other protocols what was timed at first will do.
                let largest = trials.keys().map(|key| key.kind.entries).max().unwrap_or(0);
                self.time_machine(|protocol, log_entries| {
                    1 << log_entries <= largest && trials.keys().any(|key| key.protocol == protocol)
                })?;
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
        let made: Vec<Made> = trials.values().map(|trial| made(trial, &trials)).collect();
        for ((key, trial), made) in trials.into_iter().zip(made) {
            let most: &mut usize = turns.entry((key.link, key.kind)).or_default();
            *most = trial.turns.max(*most);
            let runs = self.runs(trial, made)?;
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
        let far = keys.iter().all(|key| is_far(key.link));
        let limit = best * if far { NEAR.1 } else { NEAR.0 };
        let mut any = false;
        for round in 0..self.effort.near {
            for place in 0..keys.len() {
                let place = (place + round) % keys.len();
                let near = predicted[place] <= limit;
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
    fn add(&mut self, key: Key, trials: &mut BTreeMap<Key, Trial>) -> Result<(), CliError> {
        let full = key.kind.demand(self.effort.batch)?;
        if self.cases.contains_key(&key)
            || trials.contains_key(&key)
            || key.protocol.takes(&full).is_err()
        {
            return Ok(());
        }
        let demand = match key.once {
            Some(batch) => full.with_batch(batch as usize)?,
            None => {
                let batch = self.batch(key.link, key.kind)?;
                self.full_or_less(&key, &full.with_batch(batch)?)?
            }
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

    /// Settles near ties by total time, in runs that count for nothing else.
    fn settle<'a>(&mut self, of: impl Iterator<Item = &'a (usize, Kind)>) -> Result<(), CliError> {
        let mut demands: BTreeMap<usize, Vec<Demand>> = BTreeMap::new();
        for &(link, kind) in of {
            let demand = kind.demand(self.batch(link, kind)?)?;
            demands.entry(link).or_default().push(demand);
        }
        if self.effort.timings == 0 {
            return Ok(());
        }
        for (link, demands) in demands {
            let mut planner = self.planner(link).objective(Objective::Total);
            if let Some(machine) = planner.settle(&demands)? {
                self.machine = machine.clone();
            }
        }
        Ok(())
    }

    /// What the planner would now choose by total time.
    fn best(&mut self, link: usize, kind: Kind) -> Result<Protocol, CliError> {
        let demand = kind.demand(self.batch(link, kind)?)?;
        let planner = self.planner(link).objective(Objective::Total);
        let plan = planner.plan(&demand)?;
        Ok(plan.chosen().protocol)
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

    /// Lookups at once of all protocols of a kind that might be chosen: a full batch, or as much of it as takes the fastest
    /// [`Effort::seconds`].
    fn batch(&mut self, link: usize, kind: Kind) -> Result<usize, CliError> {
        if let Some(batch) = self.batches.get(&(link, kind)) {
            return Ok(*batch);
        }
        let plan = self.planner(link).plan(&kind.demand(self.effort.batch)?)?;
        let us = plan.ways.iter().map(|way| way.total.us);
        let batch = self.in_time(us.fold(f64::MAX, f64::min));
        self.batches.insert((link, kind), batch);
        Ok(batch)
    }

    /// A batch, or as much of it as takes [`Effort::seconds`] where the protocol is too slow to be chosen.
    fn full_or_less(&self, key: &Key, full: &Demand) -> Result<Demand, CliError> {
        let us = self.planner(key.link).predict(key.protocol, full);
        let us = us.map_or(0.0, |way| way.total.us);
        let batch = full.batch() as f64 * us;
        if batch <= RIVAL * self.effort.seconds * 1e6 {
            return Ok(full.clone());
        }
        Ok(full.with_batch(self.in_time(us).min(full.batch()))?)
    }

    /// How many lookups of so many microseconds take [`Effort::seconds`].
    fn in_time(&self, us: f64) -> usize {
        let most = self.effort.seconds * 1e6 / us.max(1e-3);
        (most as usize).clamp(16, self.effort.batch)
    }

    /// Predicts a run of a case and runs it.
    fn run(&mut self, trial: &mut Trial) -> Result<(), CliError> {
        let predicted = self.predict(trial)?;
        let start = Instant::now();
        if trial.key.once.is_some() {
            let session = sessions::alone(&trial.key, &trial.demand, predicted, &self.machine)?;
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

    /// All runs, in the order of their turns, their OTs at what making these took.
    fn runs(&mut self, trial: Trial, made: Made) -> Result<Vec<Case>, CliError> {
        if trial.key.once.is_some() {
            return Ok(trial.sessions);
        }
        let (key, batch) = (trial.key, trial.demand.batch());
        let lanes = self.session(key.link)?;
        let emulated = !LINKS[key.link].1.is_loopback();
        let making = match made.is_enough() {
            // On a link, waiting for the first of them is most of it, however many are made.
            true if emulated => made.making.spread_over(made.used),
            true => made.making,
            false => lanes.making(),
        };
        let case = |(predicted, run): (Prediction, Run)| {
            Ok(Case {
                key,
                batch,
                prep: lanes.per_item_at(&run.prep, batch, &making)?,
                online: lanes.per_item_at(&run.online, batch, &making)?,
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
}

/// The making of OTs in the runs of a case and of others that make about as many in the same way: it is the same work whatever protocol
/// asks for it, and strays by more than protocols that are nearly as fast differ by.
fn made(of: &Trial, trials: &BTreeMap<Key, Trial>) -> Made {
    let used = |trial: &Trial| Made::of(trial.ran()).used / trial.runs.len().max(1) as f64;
    let own = used(of);
    let alike = trials.values().filter(|trial| {
        let used = used(trial);
        makes_alike(&trial.key, &of.key) && used <= ALIKE * own && own <= ALIKE * used
    });
    Made::typical(alike.flat_map(Trial::ran))
}

/// Cases of a kind; over a link if they wait alike for what is made, and over a far one, where there are few runs, of any kind.
fn makes_alike(a: &Key, b: &Key) -> bool {
    let [first, second] = [a, b].map(|key| key.protocol);
    let waits_alike = first == second
        || LINKS[a.link].1.is_loopback()
        || !first.draws_between_messages() && !second.draws_between_messages();
    a.link == b.link && a.once == b.once && waits_alike && (a.kind == b.kind || is_far(a.link))
}
