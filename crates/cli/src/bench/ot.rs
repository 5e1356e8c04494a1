//! `volvelle bench ot`: oblivious transfers, as they are made (correlated) or hashed (random); the client sends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use volvelle_net::{Phase, Role};
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{CorrelatedBatch, CorrelatedTags, Cost, Engine, OtConfig};
use volvelle_prim::Block;

use super::lanes::{End, Lanes, Measured, split};
use super::notes::Notes;
use super::{Case, choice};
use crate::args::{BenchOtArgs, OtKind};
use crate::error::CliError;
use crate::report::PerItem;

/// OTs of a lane between two checks: as few as stay in the second-level cache, as where they are used up at once.
const STRETCH: usize = 1 << 12;

/// OTs a lane before time is taken; they are checked, but not among those counted.
const WARM: usize = 1 << 20;

/// OTs a lane whose arrival from a cold start is timed; they are checked, but not among those counted.
const COLD: usize = 10_000;

/// What an end has noted of a stretch, to check the other end's by. A wrong OT passes with probability 2^-31.
enum Tags {
    Correlated(CorrelatedTags),
    /// Of both pads of an OT.
    Sender(Vec<[u32; 2]>),
    /// Of the pad of the choice, which is bit 0.
    Receiver(Vec<u32>),
}

/// 31 bits of a pad, and bit 0 as given.
fn tag(pad: Block, bit: u8) -> u32 {
    let half = pad.0 as u64 ^ (pad.0 >> 64) as u64;
    (half as u32 ^ (half >> 32) as u32) & !1 | u32::from(bit & 1)
}

impl Tags {
    /// How many of `count` OTs do not belong together.
    fn wrong(&self, other: &Self, count: usize) -> usize {
        match (self, other) {
            (Self::Correlated(a), Self::Correlated(b)) => a.mismatches(b),
            (Self::Sender(pairs), Self::Receiver(chosen))
            | (Self::Receiver(chosen), Self::Sender(pairs))
                if pairs.len() == chosen.len() =>
            {
                let both = pairs.iter().zip(chosen);
                both.map(|(pair, &chosen)| usize::from(pair[chosen as usize & 1] != chosen))
                    .sum()
            }
            _ => count,
        }
    }
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

    fn tags(&self) -> Tags {
        match self {
            Self::Correlated(batch) => Tags::Correlated(batch.tags()),
            Self::Sender { zeros, ones } => {
                let pairs = zeros.iter().zip(ones);
                // Pads that are the same are wrong: then bit 0 fits no choice.
                let pair = |(&zero, &one)| {
                    let same = u8::from(zero == one);
                    [tag(zero, same), tag(one, 1 ^ same)]
                };
                Tags::Sender(pairs.map(pair).collect())
            }
            Self::Receiver { choices, pads } => {
                let own = pads.iter().zip(choices);
                Tags::Receiver(own.map(|(&pad, &choice)| tag(pad, choice)).collect())
            }
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
    let least = least_made(bench.ot_config());
    if sizes.iter().any(|&size| size < least) {
        eprintln!(
            "note: OTs of {} are made {least} at a time; fewer may have been made before the clock started",
            bench.ot_name()
        );
    }
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

/// OTs that an engine makes at once at least: what is timed should be some of these.
fn least_made(config: OtConfig) -> usize {
    let (security, malicious) = (config.security, config.security.is_malicious());
    match config.engine {
        Engine::Ferret(set) if malicious => set.handed_out_with(security),
        Engine::Ferret(set) => 8 << set.depth(),
        Engine::Dual(set) => set.handed_out_with(security),
        Engine::SoftSpoken(_) => Piece::chunk_cots(security),
    }
}

/// Makes each lane's `count(lane)` OTs in stretches, in the same room again and again. After a stretch an end notes what it has
/// got, and whoever comes second compares both notes. An end's time is all but that of noting and comparing, its own and that of lanes
/// with which it shares a processor. Returns how many OTs are wrong.
fn fill_and_check(
    lanes: &mut Lanes,
    phase: Phase,
    kind: OtKind,
    count: impl Fn(usize) -> usize + Sync,
) -> Result<(usize, Measured), CliError> {
    let mut notes = Arc::new(Notes::new());
    // A lane's client comes just before its server.
    let notes = lanes.map(|end| {
        if end.ot.role() == Role::Client {
            notes = Arc::new(Notes::new());
        }
        Arc::clone(&notes)
    });
    let (found, mut measured) = lanes.timed_phase(phase, notes, |end, notes| {
        let start = Instant::now();
        let found = run_end(end, kind, count(end.lane), &notes)?;
        Ok((found, start.elapsed()))
    })?;
    let (wrong, checking): (Vec<usize>, Vec<Duration>) = found.into_iter().unzip();
    lanes.leave_out(&mut measured, &checking);
    Ok((wrong.iter().sum(), measured))
}

/// One end's part: wrong OTs found, time of checking.
fn run_end(
    end: &mut End,
    kind: OtKind,
    count: usize,
    notes: &Notes<Tags>,
) -> Result<(usize, Duration), CliError> {
    let role = end.ot.role();
    let notes = notes.join(usize::from(role == Role::Server));
    let mut half = Half::new(kind, role, STRETCH.min(count));
    let (mut wrong, mut checking) = (0, Vec::with_capacity(count / STRETCH + 1));
    for done in (0..count).step_by(STRETCH) {
        let count = STRETCH.min(count - done);
        half.fit(count);
        half.fill(end)?;
        let start = Instant::now();
        let tags = half.tags();
        let mut took = start.elapsed();
        if let Some([own, theirs]) = notes.give(tags)? {
            let start = Instant::now();
            wrong += own.wrong(&theirs, count);
            took += start.elapsed();
        }
        checking.push(took);
    }
    Ok((wrong, undisturbed(checking)))
}

/// The sum of like pieces of work, those that were interrupted by another thread counted as four usual ones at most.
fn undisturbed(mut pieces: Vec<Duration>) -> Duration {
    pieces.sort_unstable();
    let usual = pieces.get(pieces.len() / 2).copied().unwrap_or_default();
    pieces.iter().map(|&piece| piece.min(4 * usual)).sum()
}
