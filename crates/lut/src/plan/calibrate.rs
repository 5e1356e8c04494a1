//! The self-timing: every protocol at a few sizes, both parties in this process, a few seconds in all.
//!
//! What counts is each party's wall time from a common start, waiting for the other included, as a lookup's caller sees it.
//! Machines have slow spells, of milliseconds to seconds; so all cases are timed in turn, and this again and again, and of each
//! case the **median** counts. What a lookup takes is from a batch large enough for memory to be touched as in larger ones; what a
//! batch costs however small it is, is from a small one.
//!
//! Making OTs is taken out, so that the figures hold for every engine, and timed by itself: in a long run, and how much more the
//! first ones of a phase take, on the average of all cases. Both parties run the same
//! steps; the client decides when a batch is large enough and tells the server.

use std::time::{Duration, Instant};

use volvelle_net::{Channel, Role, memory_pair};
use volvelle_ot::{CorrelatedBatch, Ot, OtConfig, OtError};
use volvelle_prim::{Block, Prg};

use super::batches::{LONG, demand, enough, grow};
use super::cache;
use super::machine::{Both, Machine, Making, Own, Sample};
use super::together::{both, making, meet, setup, step, tables};
use crate::{Demand, LutError, Prepared, Protocol, Table};

/// How often all cases are timed.
const PASSES: usize = 5;
/// And this long is too long for a larger table of the same protocol to be tried.
const PLENTY: Duration = Duration::from_millis(10);
/// Sizes tried, where a protocol takes them.
const LOG_ENTRIES: [u32; 6] = [2, 4, 6, 8, 12, 16];
/// Entries tried: one table of each width, and two at one index.
const WORDS: [&[u32]; 4] = [&[1], &[8], &[64], &[64, 64]];
/// Sizes at which two tables are tried.
const PAIRS: [u32; 2] = [4, 8];

/// OTs that a long run in a direction asks for at a time, and how often.
const LONG_RUN: (usize, usize) = (8192, 32);

/// A self-timing that can go on: timing again later tells what the machine is like then.
pub struct SelfTiming {
    stamp: String,
    client: Party,
    server: Party,
}

impl SelfTiming {
    /// Finds batches that take long enough, and times nothing yet. Earlier timings, if they are of this machine, save most of the
    /// search.
    ///
    /// # Errors
    /// If a protocol fails.
    pub fn begin(earlier: Option<&Machine>) -> Result<Self, LutError> {
        let stamp = cache::stamp();
        let earlier = earlier.filter(|machine| machine.stamp == stamp);
        let (client, server) = memory_pair();
        let (client, server) = both(
            || Party::begin(client, earlier),
            || Party::begin(server, earlier),
        )?;
        Ok(Self {
            stamp,
            client,
            server,
        })
    }

    /// Times once more every case that is wanted: of a protocol and the logarithm of its entries.
    ///
    /// # Errors
    /// If a protocol fails; the timing is then over.
    pub fn go_on(&mut self, wanted: impl Fn(Protocol, u32) -> bool + Sync) -> Result<(), LutError> {
        let Self { client, server, .. } = self;
        both(|| client.pass(&wanted), || server.pass(&wanted))?;
        Ok(())
    }

    /// The medians of the last so many timings.
    #[must_use]
    pub fn machine(&self, last: usize) -> Machine {
        let trials = self.client.trials.iter().zip(&self.server.trials);
        Machine {
            stamp: self.stamp.clone(),
            making: [self.client.making(last), self.server.making(last)],
            setup: self.client.setup.max(self.server.setup),
            samples: trials.map(|(a, b)| sample(a, b, last)).collect(),
            ties: Vec::new(),
        }
    }
}

/// Times all protocols.
pub(super) fn machine() -> Result<Machine, LutError> {
    let mut timing = SelfTiming::begin(None)?;
    for _ in 0..PASSES {
        timing.go_on(|_, _| true)?;
    }
    Ok(timing.machine(PASSES))
}

/// What both parties have found of one case.
fn sample(client: &Trial, server: &Trial, last: usize) -> Sample {
    let both = |phase: usize| -> Both { [client.own(phase, last), server.own(phase, last)] };
    Sample {
        protocol: client.protocol.name().to_owned(),
        xor: client.small.is_xor(),
        log_entries: client.small.log_entries(),
        bits: client.small.words()[0],
        tables: client.small.words().len() as u32,
        prep: both(0),
        online: both(1),
    }
}

/// Nanoseconds of both phases apart from making OTs.
type Times = [f64; 2];

fn sum(times: Times) -> Duration {
    Duration::from_nanos((times[0] + times[1]) as u64)
}

/// A case, and what one party has found.
struct Trial {
    protocol: Protocol,
    small: Demand,
    large: Demand,
    tables: Vec<Table>,
    times_small: Vec<Times>,
    times_large: Vec<Times>,
}

impl Trial {
    /// The medians of a phase, of the last so many passes.
    fn own(&self, phase: usize, last: usize) -> Own {
        let of = |times: &[Times]| median(times.iter().map(|times| times[phase]), last);
        let each = of(&self.times_large) / self.large.batch() as f64;
        let fixed = match self.times_small.as_slice() {
            [] => 0.0,
            times => of(times) - each * self.small.batch() as f64,
        };
        // Tenths of a nanosecond: more is noise.
        let round = |ns: f64| (ns * 10.0).round() / 10.0;
        Own {
            fixed: round(fixed.max(0.0)),
            each: round(each),
        }
    }

    /// Small and large batches are the same.
    fn is_long(&self) -> bool {
        self.small.batch() == self.large.batch()
    }
}

/// Of the last so many.
fn median(values: impl DoubleEndedIterator<Item = f64>, last: usize) -> f64 {
    let mut values: Vec<f64> = values.rev().take(last).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

struct Party {
    /// To the other party, while neither has failed.
    channel: Option<Channel>,
    ot: Ot,
    config: OtConfig,
    trials: Vec<Trial>,
    /// What setting OTs up has taken, as a multiple of the figures.
    setup: f64,
    /// Nanoseconds to make an OT in a long run, for each pass.
    long_runs: Vec<f64>,
    /// And for each OT of the first group that a phase makes in a direction, on the average of a pass.
    first: Vec<f64>,
    /// Groups made first in a phase, in this pass.
    firsts: usize,
}

impl Party {
    fn begin(mut ch: Channel, earlier: Option<&Machine>) -> Result<Self, LutError> {
        let config = OtConfig::default();
        let mut party = Self {
            channel: None,
            setup: setup(&mut ch)?,
            ot: Ot::setup(&mut ch, config)?,
            config,
            trials: Vec::new(),
            long_runs: Vec::new(),
            first: Vec::new(),
            firsts: 0,
        };
        for protocol in Protocol::ALL {
            for xor in [false, true] {
                party.find_batches(&mut ch, protocol, xor, earlier)?;
            }
        }
        party.channel = Some(ch);
        Ok(party)
    }

    /// Times every case that is wanted once. After a failure the channel is gone, and with it the peer's.
    fn pass(&mut self, wanted: impl Fn(Protocol, u32) -> bool) -> Result<(), LutError> {
        let mut channel = self.channel.take().ok_or(OtError::Broken)?;
        let ch = &mut channel;
        let each = self.long_run(ch)?;
        let before = self.making_until_now(ch);
        self.firsts = 0;
        let mut trials = std::mem::take(&mut self.trials);
        // What ran before a case leaves its mark on the caches, each time something else.
        let mut order: Vec<usize> = (0..trials.len()).collect();
        shuffle(&mut order, self.long_runs.len() as u64);
        order.retain(|&place| wanted(trials[place].protocol, trials[place].small.log_entries()));
        for place in order {
            self.time(ch, &mut trials[place])?;
        }
        self.trials = trials;
        let after = self.making_until_now(ch);
        let more = after.0 - before.0 - each * (after.1 - before.1);
        let group = self.config.engine.figures().group;
        let first = more / (group * self.firsts.max(1) as f64);
        self.long_runs.push(each);
        self.first.push(first.max(0.0));
        self.channel = Some(channel);
        Ok(())
    }

    /// Nanoseconds to make one of many OTs, as many in one direction as in the other.
    fn long_run(&mut self, ch: &mut Channel) -> Result<f64, LutError> {
        let mut batch = CorrelatedBatch::new(LONG_RUN.0);
        let mut times = (0.0, 0.0);
        // The first run fills the caches.
        for _ in 0..2 {
            meet(ch)?;
            let before = self.making_until_now(ch);
            for sender in [Role::Client, Role::Server] {
                for _ in 0..LONG_RUN.1 {
                    if ch.role() == sender {
                        batch.send(ch, &mut self.ot)?;
                    } else {
                        batch.receive(ch, &mut self.ot)?;
                    }
                }
            }
            ch.flush()?;
            let after = self.making_until_now(ch);
            times = (after.0 - before.0, after.1 - before.1);
        }
        Ok(times.0 / times.1.max(1.0))
    }

    /// The medians.
    fn making(&self, last: usize) -> Making {
        let ns = self.config.engine.figures().ns;
        let of = |values: &[f64]| median(values.iter().copied(), last);
        let round = |value: f64| (100.0 * value / ns).round() / 100.0;
        Making {
            each: round(of(&self.long_runs)),
            first: round(of(&self.first)),
        }
    }

    /// Nanoseconds in which OTs were made, and how many came of it.
    fn making_until_now(&self, ch: &Channel) -> (f64, f64) {
        (making(ch).as_nanos() as f64, self.made())
    }

    /// OTs made that can be used.
    fn made(&self) -> f64 {
        let stats = self.ot.stats();
        (stats.made_send + stats.made_recv) as f64 / stats.overhead.max(1.0)
    }

    /// Adds a protocol's cases, with batches that take long enough.
    fn find_batches(
        &mut self,
        ch: &mut Channel,
        protocol: Protocol,
        xor: bool,
        earlier: Option<&Machine>,
    ) -> Result<(), LutError> {
        for log_entries in LOG_ENTRIES {
            for words in WORDS {
                // Single bits are for boolean lookups.
                if words == [1] && !xor || words.len() > 1 && !PAIRS.contains(&log_entries) {
                    continue;
                }
                let Some(demand) = demand(protocol, xor, log_entries, words) else {
                    continue;
                };
                let guess = earlier.map(|machine| enough(machine, protocol, &demand));
                let (trial, took) = self.find_batch(ch, protocol, demand, guess)?;
                let more = !(trial.is_long() && took > PLENTY);
                self.trials.push(trial);
                if step(ch, usize::from(more))? == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A case with a large enough batch, if need be tried out, and how long that took.
    fn find_batch(
        &mut self,
        ch: &mut Channel,
        protocol: Protocol,
        small: Demand,
        guess: Option<usize>,
    ) -> Result<(Trial, Duration), LutError> {
        let tables = tables(&small)?;
        let mut large = small.with_batch(guess.unwrap_or(small.batch()))?;
        // The first run also reads in code and memory; it counts only where it takes so long that this does not matter.
        let mut took = sum(self.once(ch, protocol, &large, &tables)?);
        if guess.is_none() && step(ch, usize::from(took > LONG))? == 0 {
            took = sum(self.once(ch, protocol, &large, &tables)?);
            loop {
                let batch = step(ch, grow(large.batch(), took, protocol))?;
                if batch == large.batch() {
                    break;
                }
                large = small.with_batch(batch)?;
                took = sum(self.once(ch, protocol, &large, &tables)?);
            }
        }
        let trial = Trial {
            protocol,
            small,
            large,
            tables,
            times_small: Vec::with_capacity(PASSES),
            times_large: Vec::with_capacity(PASSES),
        };
        Ok((trial, took))
    }

    /// Times a case once more.
    fn time(&mut self, ch: &mut Channel, trial: &mut Trial) -> Result<(), LutError> {
        let (protocol, tables) = (trial.protocol, &trial.tables);
        if !trial.is_long() {
            // The first of two reads in the code.
            self.once(ch, protocol, &trial.small, tables)?;
            let times = self.once(ch, protocol, &trial.small, tables)?;
            trial.times_small.push(times);
        }
        let times = self.once(ch, protocol, &trial.large, tables)?;
        trial.times_large.push(times);
        Ok(())
    }

    fn once(
        &mut self,
        ch: &mut Channel,
        protocol: Protocol,
        demand: &Demand,
        tables: &[Table],
    ) -> Result<Times, LutError> {
        let index = vec![1; demand.batch()];
        meet(ch)?;
        let (prepared, prep) = self.timed(ch, |ch, ot| {
            Prepared::prepare(ch, ot, protocol, demand, tables)
        })?;
        meet(ch)?;
        let (_, online) = self.timed(ch, |ch, _| prepared.lookup(ch, &index, tables))?;
        Ok([prep, online])
    }

    /// Nanoseconds that `f` takes but for making OTs, and its result.
    fn timed<T>(
        &mut self,
        ch: &mut Channel,
        f: impl FnOnce(&mut Channel, &mut Ot) -> Result<T, LutError>,
    ) -> Result<(T, f64), LutError> {
        let stats = self.ot.stats();
        let (made, start) = (making(ch), Instant::now());
        let value = f(ch, &mut self.ot)?;
        ch.flush()?;
        let wall = start.elapsed();
        let now = self.ot.stats();
        self.firsts += usize::from(now.made_send > stats.made_send);
        self.firsts += usize::from(now.made_recv > stats.made_recv);
        let own = wall.saturating_sub(making(ch).saturating_sub(made));
        Ok((value, own.as_nanos() as f64))
    }
}

/// The same order for the same seed, at both parties.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut prg = Prg::from_seed(Block(u128::from(seed)));
    for left in (2..=order.len()).rev() {
        let place = prg.next_block().0 % left as u128;
        order.swap(left - 1, place as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Index;

    /// A slow spell in a minority of the passes changes nothing.
    #[test]
    fn the_median_pass_counts() {
        let small = Demand::xor(4, Index::Boolean, &[8], 64).unwrap();
        let mut trial = Trial {
            protocol: Protocol::Doubling,
            large: small.with_batch(1000).unwrap(),
            small,
            tables: Vec::new(),
            times_small: vec![[740.0, 64.0], [1840.0, 164.0], [740.0, 64.0]],
            times_large: vec![[10_000.0, 1000.0], [10_000.0, 1000.0], [26_000.0, 2000.0]],
        };
        assert_eq!(
            trial.own(0, 3),
            Own {
                fixed: 100.0,
                each: 10.0
            }
        );
        assert_eq!(
            trial.own(1, 3),
            Own {
                fixed: 0.0,
                each: 1.0
            }
        );
        // One run stands for both where it is long.
        trial.large = trial.small.clone();
        trial.times_small.clear();
        trial.times_large = vec![[64_000.0, 128.0]];
        assert_eq!(
            trial.own(0, 3),
            Own {
                fixed: 0.0,
                each: 1000.0
            }
        );
    }
}
