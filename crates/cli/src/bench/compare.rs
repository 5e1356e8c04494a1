//! `volvelle bench compare`: is the client's number less than the server's, the answer XOR-shared.

use volvelle_arith::{Compare, Variant};
use volvelle_net::{Phase, Role};
use volvelle_prim::{BitVec, Block, Prg};

use super::Case;
use super::choice::{self, Choice};
use super::lanes::{End, Wires, split};
use crate::args::{BenchArgs, BenchCompareArgs, CompareVariant};
use crate::error::CliError;

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchCompareArgs) -> Result<(), CliError> {
    super::each_engine(&args.bench, |bench| {
        run_one(&BenchCompareArgs {
            bench,
            ..args.clone()
        })
    })
}

fn run_one(args: &BenchCompareArgs) -> Result<(), CliError> {
    let variant = match args.variant {
        CompareVariant::Onehot => Variant::OneHot,
        CompareVariant::Cheetah => Variant::Cheetah,
        CompareVariant::Compact => Variant::Compact,
    };
    let batch = args.batch as usize;
    let parameters = |bench: &BenchArgs| {
        vec![
            ("bench", "compare".into()),
            ("variant", args.variant.name().into()),
            ("bits", args.bits.into()),
            ("batch", batch.into()),
            ("engine", bench.ot_name().into()),
        ]
    };
    let sizes = split(batch, &args.bench)?;
    let mut wires = Wires::connect(&args.bench, Some(&args.remote), &parameters(&args.bench))?;
    let chosen = match args.bench.engine() {
        Some(engine) => Choice::of_engine(engine),
        None => wires.settle(|| {
            let cost = Compare::cost(variant, args.bits, batch)?.total();
            Ok(Choice::of_engine(choice::engine(&args.bench, &cost)))
        })?,
    };
    let bench = args.bench.with_engine(chosen.engine);
    let parameters = parameters(&bench);
    let mut lanes = wires.set_up(bench.ot_config())?;
    let numbers = lanes.map(|end| random_numbers(end.lane, args.bits, sizes[end.lane]));

    let batches = lanes.each(&sizes);
    let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, |end, batch| {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        Ok(Compare::prepare(ch, ot, variant, args.bits, batch)?)
    })?;
    let inputs = prepared.into_iter().zip(&numbers).collect();
    let (outputs, online) = lanes.phase(
        Phase::Online,
        inputs,
        |end, (prepared, (client, server))| {
            let own = match end.channel.role() {
                Role::Client => client,
                Role::Server => server,
            };
            Ok(prepared.run(&mut end.channel, own)?)
        },
    )?;

    let (prep, online) = (
        lanes.per_item(&prep, batch)?,
        lanes.per_item(&online, batch)?,
    );
    let mut case = Case::new(parameters, &lanes, &args.bench, prep, online);
    case.connected(&args.bench, Some(&args.remote));
    let results = numbers.iter().zip(&outputs).collect();
    let (wrong, _) = lanes.phase(Phase::Online, results, |end, (numbers, outputs)| {
        Ok((end.lane, wrong(end, numbers, outputs)?))
    })?;
    case.check_lanes(&sizes, &wrong);
    case.finish(args.bench.json)
}

/// How many of a lane's outputs differ from the comparison in the clear.
fn wrong(
    end: &mut End,
    numbers: &(Vec<u64>, Vec<u64>),
    outputs: &BitVec,
) -> Result<usize, CliError> {
    let own: Vec<u64> = outputs.iter().map(u64::from).collect();
    let theirs = end.open_to_check(&own, 1)?;
    let pairs = numbers.0.iter().zip(&numbers.1);
    let wrong =
        |((client, server), found): &((&u64, &u64), u64)| (client < server) != (*found == 1);
    Ok(pairs
        .zip(own.iter().zip(&theirs).map(|(a, b)| a ^ b))
        .filter(wrong)
        .count())
}

/// Both parties' numbers of a lane, the same wherever they are drawn, so that results can be checked; every fourth
/// pair is equal but for its lowest bits, or altogether.
fn random_numbers(lane: usize, bits: u32, size: usize) -> (Vec<u64>, Vec<u64>) {
    let mut prg = Prg::from_seed(Block(lane as u128));
    let (mut client, mut server) = (vec![0; size], vec![0; size]);
    prg.fill_masked(&mut client, bits);
    prg.fill_masked(&mut server, bits);
    for (i, (own, other)) in client.iter().zip(&mut server).enumerate() {
        if i % 4 == 0 {
            *other = own ^ (*other & 1);
        }
    }
    (client, server)
}
