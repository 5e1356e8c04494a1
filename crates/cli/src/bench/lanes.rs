//! Both parties of a bench in one process: lanes of one client and one server thread, each lane with its own
//! channel and its own oblivious transfers.
//!
//! A phase runs on all threads at once and ends when the last of them has. Its time is that of the slower party.
//!
//! **OT extension** makes OTs by the ten thousand, so a short phase may make far more than it uses, or none and use
//! those left over. What is charged to a phase is therefore what it does apart from that, plus, for each OT it uses,
//! the average cost of making one (those included that an extension spends on the next).

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use volvelle_net::{Channel, Phase, Traffic};
use volvelle_ot::Ot;

use crate::args::BenchArgs;
use crate::error::CliError;
use crate::report::{PerItem, Setup, micros};

/// Name of the spans in which OTs are made. Those within the set-up have longer names.
const EXTEND: &str = "ot/extend";
/// Name of the span that is counted as set-up, whatever it extends.
const SETUP: &str = "ot/setup";

/// One party's end of one lane.
pub struct End {
    /// To the other end.
    pub channel: Channel,
    /// Its oblivious transfers.
    pub ot: Ot,
}

/// Something each party of each lane has: client's, server's.
pub type Pairs<T> = Vec<(T, T)>;

/// All lanes.
pub struct Lanes {
    ends: Pairs<End>,
    /// What connecting and base OTs cost.
    pub setup: Setup,
}

/// What one phase, or several stretches of it, has cost all lanes together.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Bits apart from making OTs.
    bits: u64,
    /// OTs used, both directions, all lanes.
    used: u64,
    /// Each end's time apart from making OTs, and the OTs it has used.
    ends: Vec<(Duration, u64)>,
    /// Rounds of a lane, the most.
    rounds: u64,
}

impl Lanes {
    /// Connects the lanes and runs the base OTs.
    pub fn new(bench: &BenchArgs) -> Result<Self, CliError> {
        let start = Instant::now();
        let channels = crate::session::local_pairs(bench)?;
        let config = bench.engine.config();
        let ends = run_all(channels, |mut channel| {
            let ot = Ot::setup(&mut channel, config)?;
            Ok(End { channel, ot })
        })?;
        let bits = ends
            .iter()
            .map(|(client, _)| client.channel.meter().total().bits() as f64)
            .sum();
        Ok(Self {
            ends,
            setup: Setup {
                bits,
                ms: start.elapsed().as_secs_f64() * 1e3,
            },
        })
    }

    /// Runs a phase: `step` on every end, with that end's input.
    pub fn phase<I: Send, O: Send>(
        &mut self,
        phase: Phase,
        inputs: Pairs<I>,
        step: impl Fn(&mut End, I) -> Result<O, CliError> + Sync,
    ) -> Result<(Pairs<O>, Measured), CliError> {
        let before = self.read();
        let jobs = self
            .ends
            .iter_mut()
            .zip(inputs)
            .map(|((c, s), (i, j))| ((c, i), (s, j)))
            .collect();
        let start = Instant::now();
        let done: Pairs<(O, Duration)> = run_all(jobs, |(end, input): (&mut End, I)| {
            end.channel.set_phase(phase);
            let output = step(end, input)?;
            end.channel.flush()?;
            Ok((output, start.elapsed()))
        })?;
        let mut measured = Measured::default();
        let mut outputs = Vec::with_capacity(done.len());
        for (((client, server), before), after) in done.into_iter().zip(before).zip(self.read()) {
            for (before, after, wall) in
                [(before.0, after.0, client.1), (before.1, after.1, server.1)]
            {
                let making = after.extend - before.extend;
                measured
                    .ends
                    .push((wall.saturating_sub(making.wall), after.used - before.used));
            }
            // Both ends see all of a lane's bits and OTs; the client's view is taken.
            let all = after.0.total - before.0.total;
            measured.bits += all.bits() - (after.0.extend - before.0.extend).bits();
            measured.used += after.0.used - before.0.used;
            measured.rounds = measured.rounds.max(all.rounds);
            outputs.push((client.0, server.0));
        }
        Ok((outputs, measured))
    }

    /// A phase's cost spread over `items`, with its share of making OTs.
    pub fn per_item(&self, measured: &Measured, items: usize) -> PerItem {
        let n = items.max(1) as f64;
        let readings = self.read();
        let bits_per_ot = average(
            readings
                .iter()
                .map(|(c, _)| (c.extend.bits() as f64, c.made_net())),
        );
        let ends = readings
            .iter()
            .flat_map(|(client, server)| [client, server]);
        let us = ends
            .zip(&measured.ends)
            .map(|(end, (own, used))| {
                let us_per_ot = average([(micros(end.extend.wall), end.made_net())].into_iter());
                micros(*own) + us_per_ot * *used as f64
            })
            .fold(0.0, f64::max);
        PerItem {
            bits: (measured.bits as f64 + bits_per_ot * measured.used as f64) / n,
            us: us / n,
            rounds: measured.rounds,
        }
    }

    fn read(&self) -> Pairs<Reading> {
        self.ends
            .iter()
            .map(|(client, server)| (Reading::of(client), Reading::of(server)))
            .collect()
    }
}

/// Σ cost / Σ number; 0 if there is none.
fn average(items: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (cost, number) = items.fold((0.0, 0.0), |sum, item| (sum.0 + item.0, sum.1 + item.1));
    if number > 0.0 { cost / number } else { 0.0 }
}

impl Measured {
    /// Another stretch of the same phase, after this one.
    pub fn add(&mut self, next: &Measured) {
        self.bits += next.bits;
        self.used += next.used;
        self.rounds += next.rounds;
        self.ends.resize(next.ends.len(), (Duration::ZERO, 0));
        for ((wall, used), (next_wall, next_used)) in self.ends.iter_mut().zip(&next.ends) {
            *wall += *next_wall;
            *used += *next_used;
        }
    }
}

/// The counters of an end at some moment.
#[derive(Clone, Copy)]
struct Reading {
    total: Traffic,
    /// Of all spans in which OTs were made since the set-up.
    extend: Traffic,
    /// OTs made since the set-up.
    made: u64,
    /// OTs made for each one that can be used.
    overhead: f64,
    /// OTs used.
    used: u64,
}

impl Reading {
    fn of(end: &End) -> Self {
        let meter = end.channel.meter();
        let extend = meter
            .spans()
            .filter(|(name, _)| makes_ots(name))
            .fold(Traffic::default(), |sum, (_, traffic)| sum + traffic);
        let stats = end.ot.stats();
        Self {
            total: meter.total(),
            extend,
            made: stats.made_send + stats.made_recv,
            overhead: stats.overhead,
            used: stats.consumed_send + stats.consumed_recv,
        }
    }

    /// OTs made that could be used.
    fn made_net(&self) -> f64 {
        self.made as f64 / self.overhead.max(1.0)
    }
}

fn makes_ots(span: &str) -> bool {
    let outer = span.strip_suffix(EXTEND);
    outer.is_some_and(|outer| {
        outer.is_empty() || (outer.ends_with('/') && !outer.starts_with(SETUP))
    })
}

/// Runs `work` on every element of every pair, one thread each.
fn run_all<I: Send, O: Send>(
    inputs: Pairs<I>,
    work: impl Fn(I) -> Result<O, CliError> + Sync,
) -> Result<Pairs<O>, CliError> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = inputs
            .into_iter()
            .map(|(client, server)| {
                (
                    scope.spawn(move || work(client)),
                    scope.spawn(move || work(server)),
                )
            })
            .collect();
        let results: Vec<_> = threads
            .into_iter()
            .map(|(client, server)| {
                let both = (client.join(), server.join());
                (
                    both.0.unwrap_or_else(|e| resume_unwind(e)),
                    both.1.unwrap_or_else(|e| resume_unwind(e)),
                )
            })
            .collect();
        results
            .into_iter()
            .map(|(client, server)| Ok((client?, server?)))
            .collect()
    })
}

/// Cuts `items` into one piece a lane, as equal as can be.
pub fn split(items: usize, bench: &BenchArgs) -> Result<Vec<usize>, CliError> {
    let lanes = bench.threads as usize;
    if items < lanes {
        return Err(CliError::Lanes { lanes, items });
    }
    Ok((0..lanes)
        .map(|lane| items * (lane + 1) / lanes - items * lane / lanes)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_spans_that_make_ots() {
        assert!(makes_ots("ot/extend") && makes_ots("lut/prepare/ot/extend"));
        assert!(
            !makes_ots("ot/extended")
                && !makes_ots("robot/extend")
                && !makes_ots("ot/setup/ot/extend")
        );
    }
}
