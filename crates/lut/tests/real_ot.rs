//! Lookups over the OTs that the program uses, from base OT up: everything fits together.

use volvelle_lut::{
    BitTable, Generator, Index, Lookups, LutError, OneRound, Output, Shape, SpLut, Table,
};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase};
use volvelle_ot::{Ot, OtConfig};

const BATCH: usize = 3000;

fn index(seed: u64) -> Vec<u64> {
    (0..BATCH as u64)
        .map(|i| (i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56)
        .collect()
}

/// Every protocol once, on one set of OTs; the outputs, and the rounds of each preprocessing.
fn party(ch: &mut Channel, index: &[u64]) -> Result<(Vec<Vec<u64>>, Vec<u64>), LutError> {
    ch.set_phase(Phase::Setup);
    let mut ot = Ot::setup(ch, OtConfig::default())?;
    let tables = [
        Table::from_fn(8, 64, |i| i * i)?,
        Table::from_fn(8, 9, |i| i)?,
    ];
    let bits = [BitTable::from_fn(8, |i| i % 3 == 0)?];
    let (mut outputs, mut rounds) = (Vec::new(), Vec::new());
    for generator in [Generator::Doubling, Generator::Rotation, Generator::Tree] {
        for output in [Output::Arithmetic { words: vec![64, 9] }, Output::Xor] {
            ch.set_phase(Phase::Preprocessing);
            let before = ch.meter().phase(Phase::Preprocessing).rounds;
            let shape = Shape {
                log_entries: 8,
                index: Index::Arithmetic,
                output,
            };
            let prepared = Lookups::prepare(ch, &mut ot, generator, &shape, BATCH)?;
            rounds.push(ch.meter().phase(Phase::Preprocessing).rounds - before);
            ch.set_phase(Phase::Online);
            if shape.output == Output::Xor {
                let found = prepared.lookup_bits(ch, index, &bits)?;
                outputs.extend(found.iter().map(|b| b.iter().map(u64::from).collect()));
            } else {
                outputs.extend(prepared.lookup(ch, index, &tables)?);
            }
        }
    }
    let shape = Shape {
        log_entries: 8,
        index: Index::Arithmetic,
        output: Output::Arithmetic { words: vec![64, 9] },
    };
    let prepared = OneRound::prepare(ch, &mut ot, &shape, BATCH)?;
    outputs.extend(prepared.lookup(ch, index, &tables)?);
    let prepared = SpLut::prepare(ch, &mut ot, 8, BATCH)?;
    outputs.extend(prepared.lookup(ch, Index::Arithmetic, index, &tables)?);
    Ok((outputs, rounds))
}

#[test]
fn over_real_ots() {
    let (client, server) = (index(1), index(500));
    let (a, b) = run_pair(|ch| party(ch, &client), |ch| party(ch, &server));
    let ((a, rounds), (b, _)) = (a.unwrap(), b.unwrap());
    for (i, (x, y)) in client.iter().zip(&server).enumerate() {
        let at = (x + y) % 256;
        let words = |t: usize| a[t][i].wrapping_add(b[t][i]);
        for t in [0, 3, 6, 9, 11] {
            assert_eq!((words(t), words(t + 1) % 512), (at * at, at), "table {t}");
        }
        for t in [2, 5, 8] {
            assert_eq!(a[t][i] ^ b[t][i], u64::from(at % 3 == 0), "table {t}");
        }
    }
    // Making the OTs costs a round or two in each direction, however many are needed.
    assert!(
        rounds[0] <= 8 + 4 && rounds[2] <= 2 + 4,
        "rounds {rounds:?}"
    );
}
