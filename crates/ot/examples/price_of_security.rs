//! What malicious security costs: million OTs a second and bits an OT of every engine, one direction, both parties in this
//! process on a thread each.
//!
//! ```text
//! cargo run --release -p volvelle-ot --example price_of_security [log2 of the OTs, 22]
//! ```

use std::time::Instant;

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{BaseOt, CorrelatedBatch, Engine, Ot, OtConfig, OtError, Security};
use volvelle_prim::Block;

const RUNS: usize = 5;
/// OTs a call.
const BATCH: usize = 1 << 16;

struct Run {
    setup_ms: f64,
    cot: f64,
    rot: f64,
    bits: f64,
}

fn party(ch: &mut Channel, config: OtConfig, count: usize) -> Result<Run, OtError> {
    let start = Instant::now();
    let mut ot = Ot::setup(ch, config)?;
    let sends = ch.role() == Role::Client;
    let mut one = [Block::ZERO];
    if sends {
        ot.send_random(ch, 1, &mut one, &mut [Block::ZERO])?;
        ch.flush()?;
    } else {
        ot.recv_random(ch, 1, &mut [0], &mut one)?;
    }
    let setup_ms = 1e3 * start.elapsed().as_secs_f64();

    let mut batch = CorrelatedBatch::new(BATCH);
    let start = Instant::now();
    for _ in 0..count / BATCH {
        if sends {
            batch.send(ch, &mut ot)?
        } else {
            batch.receive(ch, &mut ot)?
        }
    }
    ch.flush()?;
    let cot = start.elapsed();

    let (mut zeros, mut ones) = (vec![Block::ZERO; BATCH], vec![Block::ZERO; BATCH]);
    let mut choices = vec![0; BATCH];
    let start = Instant::now();
    for _ in 0..count / BATCH {
        if sends {
            ot.send_random(ch, 1, &mut zeros, &mut ones)?;
        } else {
            ot.recv_random(ch, 1, &mut choices, &mut zeros)?;
        }
    }
    ch.flush()?;
    let rate = |time: std::time::Duration| count as f64 / 1e6 / time.as_secs_f64();
    Ok(Run {
        setup_ms,
        cot: rate(cot),
        rot: rate(start.elapsed()),
        bits: ot.stats().bits_per_ot,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log_count: u32 = std::env::args().nth(1).map_or(Ok(22), |arg| arg.parse())?;
    let ferret = [Set::K16, Set::K17, Set::K18].map(Engine::Ferret);
    let softspoken = Piece::ALL.map(Engine::SoftSpoken);
    let dual = [Size::N18, Size::N20].map(|size| Engine::Dual(dual::Set::expand_convolute(size)));
    println!("engine        security    to first OT ms  M COT/s  M ROT/s  bits/OT");
    for engine in ferret.into_iter().chain(softspoken).chain(dual) {
        for (name, security) in [
            ("semi-honest", Security::SemiHonest),
            ("malicious", Security::Malicious),
        ] {
            let config = OtConfig::new(engine).with_security(security);
            let count = 1 << log_count;
            let mut runs = Vec::new();
            for _ in 0..RUNS {
                let (client, server) =
                    run_pair(|ch| party(ch, config, count), |ch| party(ch, config, count));
                client?;
                // The receiver ends last.
                runs.push(server?);
            }
            let of = |field: fn(&Run) -> f64| median(runs.iter().map(field).collect());
            let name_of_engine = engine.to_string();
            println!(
                "{name_of_engine:13} {name:12} {:13.1} {:8.1} {:8.1} {:8.3}",
                of(|r| r.setup_ms),
                of(|r| r.cot),
                of(|r| r.rot),
                of(|r| r.bits),
            );
        }
    }
    println!("base OT       security    set-up ms (with SoftSpoken, pieces of 4)  kbit");
    for base in BaseOt::ALL {
        for security in [Security::SemiHonest, Security::Malicious] {
            let engine = Engine::SoftSpoken(Piece::Four);
            let config = OtConfig::new(engine)
                .with_base(base)
                .with_security(security);
            let party = |ch: &mut Channel| {
                let start = Instant::now();
                Ot::setup(ch, config).map(|_| 1e3 * start.elapsed().as_secs_f64())
            };
            let times = (0..RUNS).map(|_| run_pair(party, party).1);
            let time = median(times.collect::<Result<_, _>>()?);
            let kbit = base.bits(security) as f64 / 1e3;
            let (base, security) = (format!("{base:?}"), format!("{security:?}"));
            println!("{base:<13} {security:<12} {time:8.1} {kbit:8.1}");
        }
    }
    Ok(())
}
