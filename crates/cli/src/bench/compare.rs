//! `volvelle bench compare`: is the client's number less than the server's, the answer XOR-shared.

use volvelle_arith::{Compare, Variant};
use volvelle_net::Phase;
use volvelle_prim::Prg;

use super::Case;
use super::lanes::{Lanes, Pairs, split};
use crate::args::{BenchCompareArgs, CompareVariant};
use crate::error::CliError;

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchCompareArgs) -> Result<(), CliError> {
    let variant = match args.variant {
        CompareVariant::Onehot => Variant::OneHot,
        CompareVariant::Cheetah => Variant::Cheetah,
    };
    let batch = args.batch as usize;
    let sizes = split(batch, &args.bench)?;
    let mut lanes = Lanes::new(&args.bench)?;
    let mut prg = Prg::from_os();
    let numbers: Pairs<Vec<u64>> = sizes
        .iter()
        .map(|size| random_numbers(&mut prg, args.bits, *size))
        .collect();

    let batches = sizes.iter().map(|size| (*size, *size)).collect();
    let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, |end, batch| {
        Ok(Compare::prepare(
            &mut end.channel,
            &mut end.ot,
            variant,
            args.bits,
            batch,
        )?)
    })?;
    let inputs = prepared
        .into_iter()
        .zip(&numbers)
        .map(|((client, server), (own, other))| ((client, own), (server, other)))
        .collect();
    let (outputs, online) = lanes.phase(Phase::Online, inputs, |end, (prepared, own)| {
        Ok(prepared.run(&mut end.channel, own)?)
    })?;

    let parameters = vec![
        ("bench", "compare".into()),
        ("variant", args.variant.name().into()),
        ("bits", args.bits.into()),
        ("batch", batch.into()),
    ];
    let (prep, online) = (lanes.per_item(&prep, batch), lanes.per_item(&online, batch));
    let mut case = Case::new(parameters, &args.bench, prep, online, lanes.setup);
    for ((client, server), (a, b)) in numbers.iter().zip(&outputs) {
        let right = (0..client.len())
            .filter(|&i| (a.get(i) ^ b.get(i)) == (client[i] < server[i]))
            .count();
        case.check(client.len(), client.len() - right);
    }
    case.finish(args.bench.json)
}

/// Random numbers of both parties; every fourth pair is equal but for its lowest bits, or altogether.
fn random_numbers(prg: &mut Prg, bits: u32, size: usize) -> (Vec<u64>, Vec<u64>) {
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
