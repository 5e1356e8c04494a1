//! `volvelle bench ot`: oblivious transfers, as they are made (correlated) or hashed (random); the client sends.

use std::time::Instant;

use volvelle_net::{Phase, Role};
use volvelle_ot::CorrelatedBatch;
use volvelle_prim::Block;

use super::Case;
use super::lanes::{End, Lanes, Measured, split};
use crate::args::{BenchOtArgs, OtKind};
use crate::error::CliError;
use crate::report::PerItem;

/// OTs of a lane between two checks; bounds memory.
const STRETCH: usize = 1 << 20;

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

    fn fill(mut self, end: &mut End) -> Result<Self, CliError> {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        match &mut self {
            Self::Correlated(batch) if ot.role() == Role::Client => batch.send(ch, ot)?,
            Self::Correlated(batch) => batch.receive(ch, ot)?,
            Self::Sender { zeros, ones } => ot.send_random(ch, 1, zeros, ones)?,
            Self::Receiver { choices, pads } => ot.recv_random(ch, 1, choices, pads)?,
        }
        Ok(self)
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
    let parameters = vec![
        ("bench", "ot".into()),
        ("kind", kind.into()),
        ("count", count.into()),
        ("engine", args.bench.ot_name().into()),
    ];
    let sizes = split(count, &args.bench)?;
    let mut lanes = Lanes::new(&args.bench, None, &parameters)?;
    let mut checks = Vec::new();
    let cold = lanes.map(|end| Half::new(args.kind, end.ot.role(), COLD));
    let start = Instant::now();
    let (cold, _) = lanes.phase(Phase::Setup, cold, |end, half| half.fill(end))?;
    let cold_ms = lanes.setup.ms + start.elapsed().as_secs_f64() * 1e3;
    for halves in cold.chunks_exact(2) {
        checks.push((0, Half::wrong(&halves[0], &halves[1], COLD)));
    }
    let mut measured = Measured::default();
    let mut kept = Vec::new();
    let mut kept_sizes = Vec::new();
    for done in (0..sizes.iter().copied().max().unwrap_or(0)).step_by(STRETCH) {
        let stretch: Vec<usize> = sizes
            .iter()
            .map(|size| STRETCH.min(size.saturating_sub(done)))
            .collect();
        if stretch != kept_sizes {
            kept = lanes.map(|end| Half::new(args.kind, end.ot.role(), stretch[end.lane]));
        }
        let (halves, cost) = lanes.phase(Phase::Preprocessing, kept, |end, half| half.fill(end))?;
        measured.add(&cost);
        for (halves, size) in halves.chunks_exact(2).zip(&stretch) {
            checks.push((*size, Half::wrong(&halves[0], &halves[1], *size)));
        }
        (kept, kept_sizes) = (halves, stretch);
    }

    let prep = lanes.per_item(&measured, count)?;
    let mut case = Case::new(parameters, &lanes, &args.bench, prep, PerItem::default());
    case.cold_ms = Some(cold_ms);
    case.connected(&args.bench, None);
    checks
        .into_iter()
        .for_each(|(checked, wrong)| case.check(checked, wrong));
    case.finish(args.bench.json)
}
