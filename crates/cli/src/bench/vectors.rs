//! `volvelle bench vectors`: vectors of ring elements permuted or rotated by what one party or nobody knows.

use volvelle_lut::{
    LutError, MAX_LOG_ROTATED, Permute, PermuteMethod, PermuteShape, Rotate, RotateShape, Shift,
};
use volvelle_net::{Phase, Role};
use volvelle_ot::PhasedCost;
use volvelle_prim::{Block, Prg, mask};

use super::Case;
use super::choice::{self, Choice};
use super::lanes::{End, Wires, split};
use crate::args::BenchArgs;
use crate::args::vectors::{BenchVectorsArgs, Move};
use crate::error::CliError;

/// Elements at once; each takes some words at both parties.
const MAX_ELEMENTS: u64 = 1 << 26;

/// What is done to vectors, and by whom.
#[derive(Clone, Copy)]
enum Job {
    Permute(PermuteShape),
    Rotate(RotateShape),
}

/// A batch prepared.
enum Prepared {
    Permute(Permute),
    Rotate(Rotate),
}

/// What goes into a lane's batch at both parties, drawn alike wherever they are, so that results can be checked.
struct Inputs {
    /// The client's shares of the vectors, then the server's.
    shares: [Vec<u64>; 2],
    /// Of each vector, where place `i` gets its element from.
    sources: Vec<u32>,
    /// The shifts, or the parties' shares of them.
    shifts: [Vec<u64>; 2],
}

impl Job {
    fn new(args: &BenchVectorsArgs) -> Result<Self, CliError> {
        let (len, bits, holder) = (args.len as usize, args.bits, Role::Server);
        let permute = |method| {
            Self::Permute(PermuteShape {
                len,
                bits,
                holder,
                method,
            })
        };
        let rotate = |shift| {
            Self::Rotate(RotateShape {
                log_len: args.len.ilog2(),
                bits,
                shift,
            })
        };
        let job = match args.kind {
            Move::Permute => permute(PermuteMethod::cheapest(len, bits, holder)),
            Move::PermuteTrees => permute(PermuteMethod::Trees),
            Move::PermuteSwitches => permute(PermuteMethod::Switches),
            Move::Rotate => rotate(Shift::Held(holder)),
            Move::RotateShared => rotate(Shift::Shared),
        };
        let max = match job {
            Self::Permute(shape) => shape.method.max_len(),
            Self::Rotate(_) => 1 << MAX_LOG_ROTATED,
        };
        if len > max {
            return Err(LutError::VectorSize { max, got: len }.into());
        }
        if matches!(job, Self::Rotate(_)) && !len.is_power_of_two() {
            return Err(CliError::Vectors(format!(
                "a vector to rotate must have 2^k elements, got {len}"
            )));
        }
        let elements = len as u64 * u64::from(args.batch);
        if elements > MAX_ELEMENTS {
            let most = MAX_ELEMENTS / len as u64;
            return Err(CliError::Vectors(format!(
                "{elements} elements take too much memory; give --batch {most} or fewer"
            )));
        }
        Ok(job)
    }

    fn cost(self, batch: usize) -> PhasedCost {
        match self {
            Self::Permute(shape) => Permute::cost(shape, batch),
            Self::Rotate(shape) => Rotate::cost(shape, batch),
        }
    }

    fn prepare(self, end: &mut End, batch: usize) -> Result<Prepared, CliError> {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        Ok(match self {
            Self::Permute(shape) => Prepared::Permute(Permute::prepare(ch, ot, shape, batch)?),
            Self::Rotate(shape) => Prepared::Rotate(Rotate::prepare(ch, ot, shape, batch)?),
        })
    }

    /// Random vectors, and random places or shifts for them.
    fn inputs(self, lane: usize, len: usize, bits: u32, batch: usize) -> Inputs {
        let mut prg = Prg::from_seed(Block(lane as u128));
        let mut words = |count: usize, bits: u32| {
            let mut words = vec![0; count];
            prg.fill_masked(&mut words, bits);
            words
        };
        let shares = [(); 2].map(|()| words(batch * len, bits));
        let log = len.ilog2();
        let (sources, shifts) = match self {
            Self::Permute(_) => {
                let random = words(batch * len, 64);
                (
                    random.chunks(len).flat_map(shuffled).collect(),
                    [vec![], vec![]],
                )
            }
            Self::Rotate(shape) => {
                let shared = shape.shift == Shift::Shared;
                let client = words(if shared { batch } else { 0 }, log);
                let server = words(batch, log);
                let place = |vector: usize, i: usize| {
                    let shift = server[vector] + client.get(vector).unwrap_or(&0);
                    ((i as u64).wrapping_sub(shift) & mask(log)) as u32
                };
                let sources = (0..batch * len).map(|i| place(i / len, i % len));
                (sources.collect(), [client, server])
            }
        };
        Inputs {
            shares,
            sources,
            shifts,
        }
    }
}

/// The places in the order of their random numbers.
fn shuffled(random: &[u64]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..random.len() as u32).collect();
    places.sort_unstable_by_key(|&place| (random[place as usize], place));
    places
}

impl Inputs {
    fn run(&self, end: &mut End, prepared: Prepared) -> Result<Vec<u64>, CliError> {
        let ch = &mut end.channel;
        let own = usize::from(ch.role() == Role::Server);
        let shares = &self.shares[own];
        Ok(match prepared {
            Prepared::Permute(prepared) => {
                let holds = ch.role() == Role::Server;
                let sources: &[u32] = if holds { &self.sources } else { &[] };
                prepared.permute(ch, sources, shares)?
            }
            Prepared::Rotate(prepared) => prepared.rotate(ch, &self.shifts[own], shares)?,
        })
    }

    /// How many vectors have come out otherwise than in the clear.
    fn wrong(&self, end: &mut End, len: usize, bits: u32, own: &[u64]) -> Result<usize, CliError> {
        let theirs = end.open_to_check(own, bits)?;
        let opened: Vec<u64> = own
            .iter()
            .zip(&theirs)
            .map(|(a, b)| a.wrapping_add(*b) & mask(bits))
            .collect();
        let right = |vector: usize| {
            let at = vector * len;
            (at..at + len).all(|i| {
                let from = at + self.sources[i] as usize;
                let [a, b] = [&self.shares[0], &self.shares[1]].map(|shares| shares[from]);
                opened[i] == a.wrapping_add(b) & mask(bits)
            })
        };
        let vectors = 0..own.len() / len;
        Ok(vectors.filter(|&vector| !right(vector)).count())
    }
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchVectorsArgs) -> Result<(), CliError> {
    super::each_engine(&args.bench, |bench| {
        run_one(&BenchVectorsArgs {
            bench,
            ..args.clone()
        })
    })
}

fn run_one(args: &BenchVectorsArgs) -> Result<(), CliError> {
    let (len, bits, batch) = (args.len as usize, args.bits, args.batch as usize);
    let job = Job::new(args)?;
    let parameters = |bench: &BenchArgs| {
        vec![
            ("bench", "vectors".into()),
            ("kind", args.kind.name().into()),
            ("len", len.into()),
            ("bits", bits.into()),
            ("batch", batch.into()),
            ("engine", bench.ot_name().into()),
        ]
    };
    let sizes = split(batch, &args.bench)?;
    let mut wires = Wires::connect(&args.bench, Some(&args.remote), &parameters(&args.bench))?;
    let chosen = match args.bench.engine() {
        Some(engine) => Choice::of_engine(engine),
        None => wires.settle(|| {
            let cost = job.cost(batch).total();
            Ok(Choice::of_engine(choice::engine(&args.bench, &cost)))
        })?,
    };
    let bench = args.bench.with_engine(chosen.engine);
    let mut lanes = wires.set_up(bench.ot_config())?;
    let inputs = lanes.map(|end| job.inputs(end.lane, len, bits, sizes[end.lane]));

    let batches = lanes.each(&sizes);
    let prepare = |end: &mut End, batch| job.prepare(end, batch);
    let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, prepare)?;
    let jobs = prepared.into_iter().zip(&inputs).collect();
    let (outputs, online) = lanes.phase(Phase::Online, jobs, |end, (prepared, inputs)| {
        inputs.run(end, prepared)
    })?;

    let (prep, online) = (
        lanes.per_item(&prep, batch)?,
        lanes.per_item(&online, batch)?,
    );
    let mut case = Case::new(parameters(&bench), &lanes, &bench, prep, online);
    case.connected(&bench, Some(&args.remote));
    let results = inputs.iter().zip(&outputs).collect();
    let (wrong, _) = lanes.phase(
        Phase::Online,
        results,
        |end, (inputs, outputs): (&Inputs, &Vec<u64>)| {
            Ok((end.lane, inputs.wrong(end, len, bits, outputs)?))
        },
    )?;
    case.check_lanes(&sizes, &wrong);
    case.finish(bench.json)
}
