//! The self-timing: every protocol at a few sizes, both parties in this process, about a second in all.
//!
//! What a lookup computes is each party's **processor time**, which other programs and waiting for the peer do not stretch;
//! the busier party's counts, as the two work side by side. A batch is run again, larger each time, until it has taken long
//! enough. What a batch costs however small it is, its messages and threads waking each other, is wall time of a small one.
//!
//! Making OTs is timed by itself and taken out, so that the figures hold for every engine. Both parties run the same steps;
//! the client decides when a batch is large enough and tells the server.

use std::time::{Duration, Instant};

use volvelle_net::{Channel, Label, Role, memory_pair};
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{CorrelatedBatch, Engine, Ot, OtConfig};

use super::machine::{Machine, Own, Sample};
use super::processor_time;
use crate::{Demand, Index, LutError, Prepared, Protocol, Table};

const STEP: Label = Label::new("plan/step");
const DONE: Label = Label::new("plan/done");

/// A batch that took this long is long enough: memory is touched and messages are cut in chunks as in large batches. Less is
/// enough for protocols that others leave far behind.
const ENOUGH: Duration = Duration::from_micros(1500);
const ENOUGH_BASELINE: Duration = Duration::from_micros(200);
/// Runs of a small batch, and of a large one, of which the best counts.
const RUNS: (usize, usize) = (3, 2);
/// And this long is too long for a larger table of the same protocol to be tried.
const PLENTY: Duration = Duration::from_millis(10);
/// A first batch that took this long is not run again.
const LONG: Duration = Duration::from_millis(2);
/// The first batch, and the largest.
const BATCHES: (usize, usize) = (64, 1 << 15);
/// Bits that a first batch may send.
const FIRST_BITS: u64 = 1 << 23;
/// Sizes tried, where a protocol takes them.
const LOG_ENTRIES: [u32; 6] = [2, 4, 6, 8, 12, 16];
/// Widths tried.
const BITS: [u32; 2] = [8, 64];
/// OTs a direction that are made to time them, and how often.
const OTS: usize = 1 << 16;
const OT_RUNS: usize = 4;
/// The engine that starts soonest, and whose OTs all cost the same.
const ENGINE: Engine = Engine::SoftSpoken(Piece::Two);
/// Nanoseconds of processor time that one of its OTs takes, nothing else going on, on the machine that
/// [`volvelle_ot::Figures`] are from.
const ENGINE_NS: f64 = 2.9;

/// Name of the spans in which OTs are made.
const EXTEND: &str = "ot/extend";

/// Times all protocols.
pub(super) fn machine(stamp: String) -> Result<Machine, LutError> {
    let (mut client, mut server) = memory_pair();
    let (ours, theirs) = std::thread::scope(|scope| {
        let theirs = scope.spawn(move || Party::new(&mut server)?.run(&mut server));
        let ours = Party::new(&mut client).and_then(|party| party.run(&mut client));
        // Hanging up ends the other party, should this one have failed.
        drop(client);
        let theirs = theirs
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ours, theirs)
    });
    let (ours, theirs) = (ours?, theirs?);
    let samples = ours.samples.into_iter().zip(theirs.samples);
    Ok(Machine {
        stamp,
        ot_speed: (100.0 * ours.ot_ns.max(theirs.ot_ns) / ENGINE_NS).round() / 100.0,
        samples: samples.map(|(a, b)| slower(a, b)).collect(),
    })
}

/// Both parties' timings of one case: the slower one's count.
fn slower(a: Sample, b: Sample) -> Sample {
    let max = |a: Own, b: Own| Own {
        fixed: a.fixed.max(b.fixed),
        each: a.each.max(b.each),
    };
    Sample {
        prep: max(a.prep, b.prep),
        online: max(a.online, b.online),
        ..a
    }
}

/// What one party has timed.
struct Timed {
    samples: Vec<Sample>,
    /// Nanoseconds to make an OT.
    ot_ns: f64,
}

struct Party {
    ot: Ot,
    samples: Vec<Sample>,
    /// Nanoseconds of processor time to make an OT.
    ot_ns: f64,
}

/// What a phase of one batch took, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Spent {
    /// Wall time but for making OTs.
    wall: f64,
    /// Processor time of this party but for making OTs.
    computing: f64,
}

impl Spent {
    fn least(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            computing: self.computing.min(other.computing),
        }
    }
}

/// Both phases.
type Times = [Spent; 2];

fn least(a: Times, b: Times) -> Times {
    [a[0].least(b[0]), a[1].least(b[1])]
}

/// What a protocol is run on.
struct Run<'a> {
    protocol: Protocol,
    tables: &'a [Table],
}

impl Party {
    fn new(ch: &mut Channel) -> Result<Self, LutError> {
        let mut party = Self {
            ot: Ot::setup(ch, OtConfig::new(ENGINE))?,
            samples: Vec::new(),
            ot_ns: 0.0,
        };
        party.ot_ns = party.time_ots(ch)?;
        Ok(party)
    }

    fn run(mut self, ch: &mut Channel) -> Result<Timed, LutError> {
        for protocol in Protocol::ALL {
            for xor in [false, true] {
                'sizes: for log_entries in LOG_ENTRIES {
                    for bits in BITS {
                        let Some(demand) = demand(protocol, xor, log_entries, bits) else {
                            continue;
                        };
                        if !self.sample(ch, protocol, &demand)? {
                            break 'sizes;
                        }
                    }
                }
            }
        }
        Ok(Timed {
            samples: self.samples,
            ot_ns: self.ot_ns,
        })
    }

    /// Nanoseconds of processor time to make an OT, at best.
    fn time_ots(&mut self, ch: &mut Channel) -> Result<f64, LutError> {
        let mut batch = CorrelatedBatch::new(OTS);
        let mut best = Duration::MAX;
        for _ in 0..OT_RUNS {
            meet(ch)?;
            let start = processor_time();
            for sender in [Role::Client, Role::Server] {
                if ch.role() == sender {
                    batch.send(ch, &mut self.ot)?;
                } else {
                    batch.receive(ch, &mut self.ot)?;
                }
            }
            ch.flush()?;
            best = best.min(processor_time().saturating_sub(start));
        }
        Ok(best.as_nanos() as f64 / (2 * OTS) as f64)
    }

    /// Times one case; says whether a larger table may be tried.
    fn sample(
        &mut self,
        ch: &mut Channel,
        protocol: Protocol,
        demand: &Demand,
    ) -> Result<bool, LutError> {
        let tables = [table(demand)?];
        let run = Run {
            protocol,
            tables: &tables,
        };
        // The first run also reads in code and memory; it counts only where it takes so long that this does not matter.
        let mut small = self.once(ch, &run, demand)?;
        let long = small[0].wall + small[1].wall > LONG.as_nanos() as f64;
        let runs = step(ch, if long { 0 } else { RUNS.0 })?;
        for again in 0..runs {
            let times = self.once(ch, &run, demand)?;
            small = if again == 0 {
                times
            } else {
                least(small, times)
            };
        }
        let (mut batch, mut large) = (demand.batch(), small);
        loop {
            let grown = step(ch, grow(batch, large, enough(protocol)))?;
            if grown == batch {
                break;
            }
            batch = grown;
            large = self.once(ch, &run, &demand.with_batch(batch)?)?;
        }
        if batch > demand.batch() {
            for _ in 1..RUNS.1 {
                large = least(large, self.once(ch, &run, &demand.with_batch(batch)?)?);
            }
        }
        let own = |phase: usize| {
            // Tenths of a nanosecond: more is noise.
            let round = |ns: f64| (ns * 10.0).round() / 10.0;
            let each = large[phase].computing / batch as f64;
            let fixed = small[phase].wall - each * demand.batch() as f64;
            Own {
                fixed: round(fixed.max(0.0)),
                each: round(each),
            }
        };
        self.samples.push(Sample {
            protocol: protocol.name().to_owned(),
            xor: demand.is_xor(),
            log_entries: demand.log_entries(),
            bits: demand.words()[0],
            prep: own(0),
            online: own(1),
        });
        let plenty = large[0].wall + large[1].wall > PLENTY.as_nanos() as f64;
        let more = !(plenty && batch == demand.batch());
        Ok(step(ch, usize::from(more))? == 1)
    }

    fn once(
        &mut self,
        ch: &mut Channel,
        run: &Run<'_>,
        demand: &Demand,
    ) -> Result<Times, LutError> {
        let Run { protocol, tables } = *run;
        let index = vec![1; demand.batch()];
        let ots = protocol.cost(demand).unwrap_or_default();
        meet(ch)?;
        let (prepared, prep) = self.time(ch, ots.prep.cots(), |ch, ot| {
            Prepared::prepare(ch, ot, protocol, demand, tables)
        })?;
        meet(ch)?;
        let (_, online) = self.time(ch, ots.online.cots(), |ch, _| {
            prepared.lookup(ch, &index, tables)
        })?;
        Ok([prep, online])
    }

    /// What `f` takes but for making so many OTs, and its result.
    fn time<T>(
        &mut self,
        ch: &mut Channel,
        ots: u64,
        f: impl FnOnce(&mut Channel, &mut Ot) -> Result<T, LutError>,
    ) -> Result<(T, Spent), LutError> {
        let (made, at, start) = (making(ch), processor_time(), Instant::now());
        let value = f(ch, &mut self.ot)?;
        ch.flush()?;
        let wall = start.elapsed();
        let computing = processor_time().saturating_sub(at).as_nanos() as f64;
        let making = making(ch).saturating_sub(made);
        let spent = Spent {
            wall: wall.saturating_sub(making).as_nanos() as f64,
            computing: (computing - self.ot_ns * ots as f64).max(0.1 * computing),
        };
        Ok((value, spent))
    }
}

/// Wall time in which OTs were made, those of the set-up aside.
fn making(ch: &Channel) -> Duration {
    let spans = ch.meter().spans();
    spans
        .filter(|(name, _)| name.ends_with(EXTEND) && !name.starts_with("ot/setup"))
        .map(|(_, traffic)| traffic.wall)
        .sum()
}

/// Tables of entries that cost as any others do.
fn table(demand: &Demand) -> Result<Table, LutError> {
    Table::from_fn(demand.log_entries(), demand.words()[0], |i| {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// A first batch of a case, if the protocol takes it and can run one in good time.
fn demand(protocol: Protocol, xor: bool, log_entries: u32, bits: u32) -> Option<Demand> {
    let of = |batch| {
        if xor {
            Demand::xor(log_entries, Index::Boolean, &[bits], batch).ok()
        } else {
            Demand::additive(log_entries, Index::Arithmetic, &[bits], batch).ok()
        }
    };
    let bits_each = protocol.cost(&of(BATCHES.0)?)?.total().bits() / BATCHES.0 as u64;
    if bits_each > FIRST_BITS {
        return None;
    }
    // FLUTE works on planes of 512 lookups, however few there are.
    let first = if protocol == Protocol::Flute {
        512
    } else {
        BATCHES.0 as u64
    };
    of((FIRST_BITS / bits_each.max(1)).clamp(1, first) as usize)
}

/// How long a batch of a protocol is to take.
fn enough(protocol: Protocol) -> Duration {
    if protocol.is_baseline() {
        ENOUGH_BASELINE
    } else {
        ENOUGH
    }
}

/// The next batch after one that took so long, the same if it was long enough.
fn grow(batch: usize, times: Times, enough: Duration) -> usize {
    let (computing, wall) = times.iter().fold((0.0, 0.0), |(computing, wall), phase| {
        (computing + phase.computing, wall + phase.wall)
    });
    // A party that computes little may have a peer that computes much.
    let done = f64::max(computing, wall / 4.0) / enough.as_nanos() as f64;
    if done >= 1.0 || batch >= BATCHES.1 {
        return batch;
    }
    let factor = (1.2 / done.max(1e-6)).clamp(2.0, 32.0);
    ((batch as f64 * factor) as usize).min(BATCHES.1)
}

/// The client's decision, at both parties.
fn step(ch: &mut Channel, ours: usize) -> Result<usize, LutError> {
    let mut decided = (ours as u64).to_le_bytes();
    match ch.role() {
        Role::Client => ch.send(STEP, &decided)?,
        Role::Server => ch.recv(STEP, &mut decided)?,
    }
    ch.flush()?;
    Ok((u64::from_le_bytes(decided) as usize).min(BATCHES.1))
}

/// Waits for the other party, so that both begin together.
fn meet(ch: &mut Channel) -> Result<(), LutError> {
    ch.send(DONE, &[])?;
    ch.recv(DONE, &mut [])?;
    Ok(())
}
