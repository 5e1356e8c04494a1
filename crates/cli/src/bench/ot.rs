//! `volvelle bench ot`: oblivious transfers, as they are made (correlated) or hashed (random); the client sends.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

use volvelle_net::{Phase, Role};
use volvelle_ot::{CorrelatedBatch, Cost};
use volvelle_prim::Block;

use super::gate::Gate;
use super::lanes::{End, Lanes, Measured, split};
use super::{Case, choice};
use crate::args::{BenchOtArgs, OtKind};
use crate::error::CliError;
use crate::report::PerItem;

/// OTs of a lane between two checks: as few as stay in the second-level cache, as where they are used up at once. Several
/// lanes wait for each other less often: where they are more than the processors, each change of lanes fills the cache anew.
const fn stretch_len(lanes: usize) -> usize {
    if lanes == 1 { 1 << 14 } else { 1 << 20 }
}

/// OTs a lane before time is taken; they are checked, but not among those counted.
const WARM: usize = 1 << 20;

/// OTs a lane whose arrival from a cold start is timed; they are checked, but not among those counted.
const COLD: usize = 10_000;

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

    /// How many OTs of client and server do not belong together.
    fn wrong(client: &Self, server: &Self, count: usize) -> usize {
        match (client, server) {
            (Self::Correlated(client), Self::Correlated(server)) => client.mismatches(server),
            (Self::Sender { zeros, ones }, Self::Receiver { choices, pads }) => {
                let chosen = |i: &usize| [zeros[*i], ones[*i]][usize::from(choices[*i] & 1)];
                (0..count)
                    .filter(|i| chosen(i) != pads[*i] || zeros[*i] == ones[*i])
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
    let cold = halves(args.kind, &lanes, COLD);
    let start = Instant::now();
    let (mut wrong, _) = fill_and_check(&mut lanes, Phase::Setup, &cold, 1, |_, _| COLD)?;
    let cold_ms = lanes.setup.ms + start.elapsed().as_secs_f64() * 1e3;
    let most = stretch_len(sizes.len());
    let room = halves(args.kind, &lanes, most);
    wrong += fill_and_check(&mut lanes, Phase::Setup, &room, WARM / most, |_, _| most)?.0;
    lanes.warmed_up();
    let stretches = sizes.iter().max().map_or(0, |size| size.div_ceil(most));
    let (more, measured) = fill_and_check(
        &mut lanes,
        Phase::Preprocessing,
        &room,
        stretches,
        |lane, stretch| most.min(sizes[lane].saturating_sub(stretch * most)),
    )?;
    wrong += more;

    let prep = lanes.per_item(&measured, count)?;
    let mut case = Case::new(parameters, &lanes, &args.bench, prep, PerItem::default());
    case.cold_ms = Some(cold_ms);
    case.connected(&args.bench, None);
    case.check(count, wrong);
    case.finish(args.bench.json)
}

/// Room for `count` OTs at each end.
fn halves(kind: OtKind, lanes: &Lanes, count: usize) -> Vec<RwLock<Half>> {
    lanes.map(|end| RwLock::new(Half::new(kind, end.ot.role(), count)))
}

/// Makes OTs in `stretches`, the same room again and again; each lane's `count(lane, stretch)`. Between stretches, not timed,
/// the client's thread compares what both ends have got. Returns how many are wrong.
fn fill_and_check(
    lanes: &mut Lanes,
    phase: Phase,
    halves: &[RwLock<Half>],
    stretches: usize,
    count: impl Fn(usize, usize) -> usize + Sync,
) -> Result<(usize, Measured), CliError> {
    let gate = Gate::new(halves.len());
    let places = (0..halves.len()).collect();
    let (wrong, measured) = lanes.timed_phase(phase, places, |end, place: usize| {
        let member = gate.join();
        let mut wrong = 0;
        for stretch in 0..stretches {
            let count = count(end.lane, stretch);
            write(&halves[place]).fit(count);
            member.stretch(|| write(&halves[place]).fill(end))?;
            if end.ot.role() == Role::Client {
                wrong += Half::wrong(&read(&halves[place]), &read(&halves[place + 1]), count);
            }
            member.meet()?;
        }
        Ok((wrong, gate.total()))
    })?;
    Ok((wrong.iter().sum(), measured))
}

fn write(half: &RwLock<Half>) -> RwLockWriteGuard<'_, Half> {
    half.write().unwrap_or_else(PoisonError::into_inner)
}

fn read(half: &RwLock<Half>) -> RwLockReadGuard<'_, Half> {
    half.read().unwrap_or_else(PoisonError::into_inner)
}
