//! `volvelle bench ot`: oblivious transfers, as they are made (correlated) or hashed (random); the client sends.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use volvelle_net::{Phase, Role};
use volvelle_ot::{CorrelatedBatch, CorrelatedTags, Cost};
use volvelle_prim::Block;

use super::lanes::{End, Lanes, Measured, split};
use super::{Case, choice};
use crate::args::{BenchOtArgs, OtKind};
use crate::error::CliError;
use crate::report::PerItem;

/// OTs of a lane between two checks: as few as stay in the second-level cache, as where they are used up at once.
const STRETCH: usize = 1 << 14;

/// Stretches that a lane's client may be ahead of its server.
const AHEAD: usize = 16;

/// OTs a lane before time is taken; they are checked, but not among those counted.
const WARM: usize = 1 << 20;

/// OTs a lane whose arrival from a cold start is timed; they are checked, but not among those counted.
const COLD: usize = 10_000;

/// What the client has noted of a stretch, for the server to check its own by. A wrong OT passes with probability 2^-32.
enum Tags {
    Correlated(CorrelatedTags),
    /// Of both pads of an OT.
    Random(Vec<[u32; 2]>),
}

fn tag(block: Block) -> u32 {
    let half = block.0 as u64 ^ (block.0 >> 64) as u64;
    half as u32 ^ (half >> 32) as u32
}

/// One party's OTs of a stretch; the next stretch overwrites them.
enum Half {
    Correlated(CorrelatedBatch),
    Sender { zeros: Vec<Block>, ones: Vec<Block> },
    Receiver { choices: Vec<u8>, pads: Vec<Block> },
}

impl Half {
    fn new(kind: OtKind, role: Role, count: usize) -> Self {
        let blocks = || vec![Block::ZERO; count];
        match (kind, role) {
            (OtKind::Cot, _) => Self::Correlated(CorrelatedBatch::new(count)),
            (OtKind::Rot, Role::Client) => Self::Sender {
                zeros: blocks(),
                ones: blocks(),
            },
            (OtKind::Rot, Role::Server) => Self::Receiver {
                choices: vec![0; count],
                pads: blocks(),
            },
        }
    }

    fn fill(&mut self, end: &mut End) -> Result<(), CliError> {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        match self {
            Self::Correlated(batch) if ot.role() == Role::Client => batch.send(ch, ot)?,
            Self::Correlated(batch) => batch.receive(ch, ot)?,
            Self::Sender { zeros, ones } => ot.send_random(ch, 1, zeros, ones)?,
            Self::Receiver { choices, pads } => ot.recv_random(ch, 1, choices, pads)?,
        }
        ch.flush()?;
        Ok(())
    }

    /// Makes room for exactly so many, which may be fewer than before and never more.
    fn fit(&mut self, count: usize) {
        match self {
            Self::Correlated(batch) => batch.truncate(count),
            Self::Sender { zeros, ones } => {
                zeros.truncate(count);
                ones.truncate(count);
            }
            Self::Receiver { choices, pads } => {
                choices.truncate(count);
                pads.truncate(count);
            }
        }
    }

    /// The client's note.
    fn tags(&self) -> Tags {
        match self {
            Self::Correlated(batch) => Tags::Correlated(batch.tags()),
            Self::Sender { zeros, ones } => {
                let pairs = zeros.iter().zip(ones);
                // Pads that are the same fit no pad: the server finds both wrong.
                let pair = |(&zero, &one)| match (tag(zero), tag(one)) {
                    (a, b) if zero == one => [!a, !b],
                    (a, b) => [a, b],
                };
                Tags::Random(pairs.map(pair).collect())
            }
            Self::Receiver { .. } => Tags::Random(vec![]),
        }
    }

    /// How many of the server's `count` OTs do not belong to the client's.
    fn wrong(&self, client: &Tags, count: usize) -> usize {
        match (self, client) {
            (Self::Correlated(batch), Tags::Correlated(tags)) => batch.mismatches_with(tags),
            (Self::Receiver { choices, pads }, Tags::Random(tags)) if tags.len() == count => {
                let own = choices.iter().zip(pads).zip(tags);
                own.filter(|((choice, pad), tags)| tags[usize::from(**choice & 1)] != tag(**pad))
                    .count()
            }
            _ => count,
        }
    }
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or an OT is wrong.
pub fn run(args: &BenchOtArgs) -> Result<(), CliError> {
    super::each_engine(&args.bench, |bench| {
        run_one(&BenchOtArgs {
            bench,
            ..args.clone()
        })
    })
}

fn run_one(args: &BenchOtArgs) -> Result<(), CliError> {
    let count = args.count as usize;
    let kind = match args.kind {
        OtKind::Cot => "cot",
        OtKind::Rot => "rot",
    };
    let demand = Cost {
        cots_client: args.count,
        ..Cost::default()
    };
    let bench = args.bench.with_engine(choice::engine(&args.bench, &demand));
    let parameters = vec![
        ("bench", "ot".into()),
        ("kind", kind.into()),
        ("count", count.into()),
        ("engine", bench.ot_name().into()),
    ];
    let sizes = split(count, &bench)?;
    let mut lanes = Lanes::new(&bench, None, &parameters)?;
    let start = Instant::now();
    let (mut wrong, _) = fill_and_check(&mut lanes, Phase::Setup, args.kind, |_| COLD)?;
    let cold_ms = lanes.setup.ms + start.elapsed().as_secs_f64() * 1e3;
    wrong += fill_and_check(&mut lanes, Phase::Setup, args.kind, |_| WARM)?.0;
    lanes.warmed_up();
    let (more, measured) = fill_and_check(&mut lanes, Phase::Preprocessing, args.kind, |lane| {
        sizes[lane]
    })?;
    wrong += more;

    let prep = lanes.per_item(&measured, count)?;
    let mut case = Case::new(parameters, &lanes, &args.bench, prep, PerItem::default());
    case.cold_ms = Some(cold_ms);
    case.connected(&args.bench, None);
    case.check(count, wrong);
    case.finish(args.bench.json)
}

/// What an end knows of the other.
enum Notes {
    Give(SyncSender<Tags>),
    Take(Receiver<Tags>),
}

/// Makes each lane's `count(lane)` OTs in stretches, in the same room again and again. After a stretch the client notes what it
/// has got and the server compares, and neither waits for other lanes. An end's time is all but that of noting and comparing, which
/// both ends share about evenly. Returns how many OTs are wrong.
fn fill_and_check(
    lanes: &mut Lanes,
    phase: Phase,
    kind: OtKind,
    count: impl Fn(usize) -> usize + Sync,
) -> Result<(usize, Measured), CliError> {
    let mut take = None;
    // A lane's client comes just before its server.
    let notes = lanes.map(|end| match end.ot.role() {
        Role::Client => {
            let (give, other) = sync_channel(AHEAD);
            take = Some(other);
            Some(Notes::Give(give))
        }
        Role::Server => take.take().map(Notes::Take),
    });
    let (wrong, measured) = lanes.timed_phase(phase, notes, |end, notes| {
        run_end(end, kind, count(end.lane), notes.as_ref())
    })?;
    Ok((wrong.iter().sum(), measured))
}

/// One end's part: wrong OTs found, time.
fn run_end(
    end: &mut End,
    kind: OtKind,
    count: usize,
    notes: Option<&Notes>,
) -> Result<(usize, Duration), CliError> {
    let mut half = Half::new(kind, end.ot.role(), STRETCH.min(count));
    let (mut wrong, mut checking, start) = (0, Duration::ZERO, Instant::now());
    for done in (0..count).step_by(STRETCH) {
        let count = STRETCH.min(count - done);
        half.fit(count);
        half.fill(end)?;
        match notes {
            Some(Notes::Give(give)) => {
                let tags = timed(&mut checking, || half.tags());
                give.send(tags).map_err(|_| CliError::OtherThread)?;
            }
            Some(Notes::Take(take)) => {
                let tags = take.recv().map_err(|_| CliError::OtherThread)?;
                wrong += timed(&mut checking, || half.wrong(&tags, count));
            }
            None => return Err(CliError::OtherThread),
        }
    }
    Ok((wrong, start.elapsed().saturating_sub(checking)))
}

/// Adds the time that `work` takes.
fn timed<T>(time: &mut Duration, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = work();
    *time += start.elapsed();
    done
}
