//! The ends of a bench's channels: lanes of one client and one server thread, each lane with its own channel and
//! its own end of the oblivious transfers. Both ends of every lane in this process, or one with the other on another machine.
//!
//! A phase runs on all threads at once and ends when the last of them has. Its time is that of the slower party. Where both
//! parties are here, each keeps to its half of the processors ([`volvelle_net::halves`]).
//!
//! **OT extension** makes OTs by the ten thousand, so a short phase may make far more than it uses, or none and use
//! those left over. What is charged to a phase is therefore what it does apart from that, plus, for each OT it uses,
//! the average cost of making one (those included that an extension spends on the next).

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use volvelle_net::{Channel, Label, Phase, Role, Traffic, halves};
use volvelle_ot::{Ot, OtConfig};
use volvelle_prim::pack;

use super::Parameters;
use super::choice::Choice;
use super::making::{Making, average};
use crate::args::{BenchArgs, RemoteArgs};
use crate::error::CliError;
use crate::report::{PerItem, Setup, micros};
use crate::session;

const REVEAL: Label = Label::new("bench/reveal");
const SLOWER: Label = Label::new("bench/slower");

/// Name of the spans in which OTs are made. Those within the set-up have longer names.
const EXTEND: &str = "ot/extend";
/// Name of the span that is counted as set-up, whatever it extends.
const SETUP: &str = "ot/setup";

/// What threads sleep before a phase, untimed. New threads may share a processor for ten milliseconds while another idles,
/// as those that look for each other's messages seem too busy to be moved; a sleeper wakes on an idle one.
const SPREAD: Duration = Duration::from_millis(1);

/// One party's end of one lane.
pub struct End {
    /// Which lane, from 0.
    pub lane: usize,
    /// To the other end.
    pub channel: Channel,
    /// Its oblivious transfers.
    pub ot: Ot,
}

/// All lanes' ends. Lists with something for each end go client, server, client, server … where both are here.
pub struct Lanes {
    ends: Vec<End>,
    /// How many ends of a lane are here: 2, or 1 if the peer is elsewhere.
    views: usize,
    /// What connecting and base OTs cost.
    pub setup: Setup,
    /// The counters when the machine was warm.
    warm: Vec<Reading>,
}

/// What one phase has cost all lanes together.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Bits apart from making OTs.
    bits: f64,
    /// OTs used, both directions, all lanes.
    used: f64,
    /// Each end's time apart from making OTs, and the OTs it has used.
    ends: Vec<(Duration, u64)>,
    /// What making OTs has taken each end meanwhile.
    making: Making,
    /// Rounds of a lane, the most.
    rounds: u64,
}

impl Measured {
    /// OTs used, both directions, all lanes.
    pub fn used(&self) -> f64 {
        self.used
    }

    /// What making OTs has taken each end meanwhile.
    pub fn making(&self) -> &Making {
        &self.making
    }
}

/// Connected lanes, before their oblivious transfers are set up.
pub struct Wires {
    channels: Vec<Channel>,
    views: usize,
    /// Channels of a lane's end.
    connections: usize,
    /// What connecting took.
    took: Duration,
}

impl Wires {
    /// Connects the lanes and compares parameters if the peer is elsewhere.
    pub fn connect(
        bench: &BenchArgs,
        remote: Option<&RemoteArgs>,
        parameters: &Parameters,
    ) -> Result<Self, CliError> {
        let start = Instant::now();
        let (channels, views) = match remote.filter(|remote| remote.is_given()) {
            Some(remote) => (session::remote_channels(bench, remote, parameters)?, 1),
            None => (session::local_channels(bench)?, 2),
        };
        Ok(Self {
            channels,
            views,
            connections: bench.connections(),
            took: start.elapsed(),
        })
    }

    /// Makes a choice that both parties must make alike: the client's, told to the server if that is elsewhere.
    pub fn settle(
        &mut self,
        choose: impl FnOnce() -> Result<Choice, CliError>,
    ) -> Result<Choice, CliError> {
        let (Some(channel), 1) = (self.channels.first_mut(), self.views) else {
            return choose();
        };
        match channel.role() {
            Role::Client => {
                let choice = choose()?;
                choice.send(channel)?;
                Ok(choice)
            }
            Role::Server => Choice::receive(channel),
        }
    }

    /// Runs the base OTs.
    pub fn set_up(self, config: OtConfig) -> Result<Lanes, CliError> {
        let Self {
            channels,
            views,
            connections,
            took,
        } = self;
        let start = Instant::now();
        let lanes = by_lane(channels, views, connections);
        let mut parties: Vec<Vec<_>> = (0..views).map(|_| vec![]).collect();
        for (place, lane) in lanes.into_iter().enumerate() {
            parties[place % views].push(lane);
        }
        let parties = run_all(parties, |lanes| set_up_party(lanes, config))?;
        let ends = in_turns(parties);
        let bits: u64 = ends
            .iter()
            .map(|end| end.channel.meter().total().bits())
            .sum();
        let setup = Setup {
            bits: bits as f64 / views as f64,
            ms: (took + start.elapsed()).as_secs_f64() * 1e3,
        };
        let warm = ends.iter().map(Reading::of).collect();
        Ok(Lanes {
            ends,
            views,
            setup,
            warm,
        })
    }
}

impl Lanes {
    /// Connects the lanes, compares parameters if the peer is elsewhere, and runs the base OTs.
    pub fn new(
        bench: &BenchArgs,
        remote: Option<&RemoteArgs>,
        parameters: &Parameters,
    ) -> Result<Self, CliError> {
        Wires::connect(bench, remote, parameters)?.set_up(bench.ot_config())
    }

    /// What was made until now does not count for the average cost of making OTs.
    pub fn warmed_up(&mut self) {
        self.warm = self.read();
    }

    /// Whether both ends of every lane are in this process.
    pub fn both_here(&self) -> bool {
        self.views == 2
    }

    /// What each end gets if each lane gets `items[lane]`.
    pub fn each<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.ends
            .iter()
            .map(|end| items[end.lane].clone())
            .collect()
    }

    /// What each end makes, on this thread.
    pub fn map<T>(&self, make: impl FnMut(&End) -> T) -> Vec<T> {
        self.ends.iter().map(make).collect()
    }

    /// Runs a phase: `step` on every end, with that end's input.
    pub fn phase<I: Send, O: Send>(
        &mut self,
        phase: Phase,
        inputs: Vec<I>,
        step: impl Fn(&mut End, I) -> Result<O, CliError> + Sync,
    ) -> Result<(Vec<O>, Measured), CliError> {
        // All begin together, on threads that are awake.
        let (all, awake) = (self.ends.len(), AtomicUsize::new(0));
        self.timed_phase(phase, inputs, |end, input| {
            awake.fetch_add(1, Ordering::AcqRel);
            while awake.load(Ordering::Acquire) < all {
                thread::yield_now();
            }
            let start = Instant::now();
            let output = step(end, input)?;
            end.channel.flush()?;
            Ok((output, start.elapsed()))
        })
    }

    /// The same where `step` itself says how long it took.
    pub fn timed_phase<I: Send, O: Send>(
        &mut self,
        phase: Phase,
        inputs: Vec<I>,
        step: impl Fn(&mut End, I) -> Result<(O, Duration), CliError> + Sync,
    ) -> Result<(Vec<O>, Measured), CliError> {
        let before = self.read();
        let both_here = self.both_here();
        let jobs = self.ends.iter_mut().zip(inputs).collect();
        let done = run_all(jobs, |(end, input): (&mut End, I)| {
            if both_here {
                halves::keep_to_own(end.channel.role());
            }
            end.channel.set_phase(phase);
            thread::sleep(SPREAD);
            // Lanes that share something must not wait for one that has failed.
            step(end, input).inspect_err(|_| end.ot.abandon())
        })?;
        let mut measured = Measured::default();
        let mut outputs = Vec::with_capacity(done.len());
        // Both ends of a lane see all of its bits and OTs.
        let share = 1.0 / self.views as f64;
        for (((output, wall), before), after) in done.into_iter().zip(before).zip(self.read()) {
            let (all, making) = (after.total - before.total, after.extend - before.extend);
            let used = after.used - before.used;
            let made = after.made_net() - before.made_net();
            measured.making.0.push((micros(making.wall), made));
            measured.bits += share * (all.bits() - making.bits()) as f64;
            measured.used += share * used as f64;
            measured.rounds = measured.rounds.max(all.rounds);
            measured.ends.push((wall.saturating_sub(making.wall), used));
            outputs.push(output);
        }
        Ok((outputs, measured))
    }

    /// Takes from each end's time of a phase what work beside it took: its own, and where a party has fewer processors than lanes, the
    /// others' too, which it has waited for.
    pub fn leave_out(&self, measured: &mut Measured, beside: &[Duration]) {
        let processors = thread::available_parallelism().map_or(1, NonZero::get) / self.views;
        let lanes = (self.ends.len() / self.views).max(1);
        let at_once = lanes.min(processors.max(1)) as u32;
        for (end, (time, _)) in self.ends.iter().zip(&mut measured.ends) {
            let party = self.ends.iter().zip(beside);
            let party = party.filter(|(other, _)| other.ot.role() == end.ot.role());
            let all: Duration = party.map(|(_, took)| *took).sum();
            *time = time.saturating_sub(all / at_once);
        }
    }

    /// A phase's cost spread over `items`, with its share of making OTs; the slower party's time.
    pub fn per_item(&mut self, measured: &Measured, items: usize) -> Result<PerItem, CliError> {
        self.per_item_at(measured, items, &self.making())
    }

    /// The same where making an OT takes what it took in `making`.
    pub fn per_item_at(
        &mut self,
        measured: &Measured,
        items: usize,
        making: &Making,
    ) -> Result<PerItem, CliError> {
        let n = items.max(1) as f64;
        // The long-run cost, which tests hold to the meter: a short run may end within an iteration.
        let bits_per_ot = average(
            self.ends
                .iter()
                .map(|end| (end.ot.stats().bits_per_ot, 1.0)),
        );
        let ends = making.0.iter().zip(&measured.ends);
        let us = ends
            .map(|(making, (own, used))| {
                micros(*own) + average([*making].into_iter()) * *used as f64
            })
            .fold(0.0, f64::max);
        Ok(PerItem {
            bits: (measured.bits + bits_per_ot * measured.used) / n,
            us: self.slower(us)? / n,
            rounds: measured.rounds,
        })
    }

    /// What making OTs has taken since the machine was warm.
    pub fn making(&self) -> Making {
        let readings = self.read().into_iter().zip(&self.warm);
        let since = readings.map(|(end, warm)| {
            let wall = (end.extend - warm.extend).wall;
            (micros(wall), end.made_net() - warm.made_net())
        });
        Making(since.collect())
    }

    /// The larger of both parties' figures, where the peer's is not known here.
    fn slower(&mut self, own: f64) -> Result<f64, CliError> {
        match (self.views, self.ends.first_mut()) {
            (1, Some(end)) => {
                let mut theirs = [0; 8];
                end.channel.send(SLOWER, &own.to_le_bytes())?;
                end.channel.recv(SLOWER, &mut theirs)?;
                Ok(own.max(f64::from_le_bytes(theirs)))
            }
            _ => Ok(own),
        }
    }

    fn read(&self) -> Vec<Reading> {
        self.ends.iter().map(Reading::of).collect()
    }
}

impl End {
    /// Tells the peer values that were secret and gets its, to check results when all is done.
    pub fn open_to_check(&mut self, values: &[u64], bits: u32) -> Result<Vec<u64>, CliError> {
        let mut theirs = self.open_all_to_check(&[(values, bits)])?;
        Ok(theirs.pop().unwrap_or_default())
    }

    /// The same for lists of values of so many bits each.
    pub fn open_all_to_check(
        &mut self,
        lists: &[(&[u64], u32)],
    ) -> Result<Vec<Vec<u64>>, CliError> {
        // One after the other: both at once would fill the queues of a large batch.
        let mut theirs = Vec::new();
        if self.channel.role() == Role::Client {
            self.reveal(lists)?;
            self.revealed(lists, &mut theirs)?;
        } else {
            self.revealed(lists, &mut theirs)?;
            self.reveal(lists)?;
            self.channel.flush()?;
        }
        Ok(theirs)
    }

    fn reveal(&mut self, lists: &[(&[u64], u32)]) -> Result<(), CliError> {
        let mut message = Vec::new();
        for (values, bits) in lists {
            message.clear();
            pack::pack_append(values, *bits, &mut message);
            self.channel.send(REVEAL, &message)?;
        }
        Ok(())
    }

    fn revealed(
        &mut self,
        lists: &[(&[u64], u32)],
        theirs: &mut Vec<Vec<u64>>,
    ) -> Result<(), CliError> {
        for (values, bits) in lists {
            let mut received = vec![0; (values.len() * *bits as usize).div_ceil(8)];
            self.channel.recv(REVEAL, &mut received)?;
            let mut list = vec![0; values.len()];
            pack::unpack_into(&received, *bits, &mut list);
            theirs.push(list);
        }
        Ok(())
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

/// An end's lane, its channel, and the two for what is made ahead.
type Wire = (usize, Channel, Option<[Channel; 2]>);

/// Each end's. A lane has `connections` neighbours among the
/// connections, and of each of them `views` ends are here.
fn by_lane(channels: Vec<Channel>, views: usize, connections: usize) -> Vec<Wire> {
    let mut channels = channels.into_iter();
    let mut ends = Vec::new();
    for lane in 0.. {
        let main: Vec<Channel> = channels.by_ref().take(views).collect();
        if main.is_empty() {
            break;
        }
        let more: Vec<Channel> = channels.by_ref().take(views * (connections - 1)).collect();
        let (mut first, mut second): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
        for (i, channel) in more.into_iter().enumerate() {
            if i < views { &mut first } else { &mut second }.push(channel);
        }
        let mut ahead = first.into_iter().zip(second).map(|(a, b)| [a, b]);
        ends.extend(
            main.into_iter()
                .map(|channel| (lane, channel, ahead.next())),
        );
    }
    ends
}

/// Sets up one party's lanes.
fn set_up_party(lanes: Vec<Wire>, config: OtConfig) -> Result<Vec<End>, CliError> {
    let (mut channels, mut rest) = (vec![], vec![]);
    for (lane, channel, ahead) in lanes {
        channels.push(channel);
        rest.push((lane, ahead));
    }
    let ots = Ot::setup_lanes(&mut channels, config)?;
    let ends = channels.into_iter().zip(ots).zip(rest);
    Ok(ends
        .map(|((channel, mut ot), (lane, ahead))| {
            if let Some([client_sends, server_sends]) = ahead {
                ot = ot.make_ahead(client_sends, server_sends);
            }
            End { lane, channel, ot }
        })
        .collect())
}

/// The first of every list, then the second of every list …
fn in_turns<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(lists.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

fn makes_ots(span: &str) -> bool {
    span.strip_suffix(EXTEND).is_some_and(|outer| {
        outer.is_empty() || (outer.ends_with('/') && !outer.starts_with(SETUP))
    })
}

/// Runs `work` on every input, one thread each.
pub fn run_all<I: Send, O: Send>(
    inputs: Vec<I>,
    work: impl Fn(I) -> Result<O, CliError> + Sync,
) -> Result<Vec<O>, CliError> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = inputs
            .into_iter()
            .map(|input| scope.spawn(move || work(input)))
            .collect();
        let results: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect();
        // The thread that failed first knows why.
        let (done, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let cause = |error: &CliError| !matches!(error, CliError::OtherThread);
        let mut errors: Vec<CliError> = failed.into_iter().filter_map(Result::err).collect();
        match errors.iter().position(cause) {
            Some(first) => Err(errors.swap_remove(first)),
            None if !errors.is_empty() => Err(errors.swap_remove(0)),
            None => done.into_iter().collect(),
        }
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
        assert!(!makes_ots("ot/extended") && !makes_ots("robot/extend"));
        assert!(!makes_ots("ot/setup/ot/extend"));
    }
}
