//! Time of GELU by phase on silent OTs over memory, one thread a party, against its plain twin.
//!
//! `cargo run --release -p volvelle-math --example gelu_timings [batch]`

use std::time::Instant;

use volvelle_arith::open_arith;
use volvelle_math::{Fixed, Gelu, GeluPlan, MathError, gelu_plain_fixed};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase, Role};
use volvelle_ot::{Ot, OtConfig};

fn party(ch: &mut Channel, plan: &GeluPlan, batch: usize) -> Result<(), MathError> {
    let ring = plan.fixed().ring();
    ch.set_phase(Phase::Setup);
    let mut ot = Ot::setup(ch, OtConfig::default()).map_err(volvelle_arith::ArithError::from)?;
    let values: Vec<u64> = (0..batch as i64)
        .map(|i| ring.from_signed(i * 7919 % 65_536 - 32_768))
        .collect();
    let mine = if ch.role() == Role::Client {
        values.clone()
    } else {
        vec![0; batch]
    };

    ch.set_phase(Phase::Preprocessing);
    let start = Instant::now();
    let prepared = Gelu::prepare(ch, &mut ot, plan, batch)?;
    let prep = start.elapsed();
    ch.set_phase(Phase::Online);
    let start = Instant::now();
    let shares = prepared.run(ch, &mine)?;
    let online = start.elapsed();
    let opened = open_arith(ch, ring, &shares)?;
    let wrong = values
        .iter()
        .zip(&opened)
        .filter(|(x, y)| ring.from_signed(gelu_plain_fixed(plan, ring.to_signed(**x))) != **y)
        .count();
    if ch.role() == Role::Client {
        let each = |t: std::time::Duration| t.as_secs_f64() * 1e6 / batch as f64;
        println!(
            "GELU, {batch} numbers: {:.2} + {:.2} µs, wrong: {wrong}",
            each(prep),
            each(online)
        );
    }
    Ok(())
}

fn main() -> Result<(), MathError> {
    let batch = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let plan = GeluPlan::new(Fixed::new(37, 12)?)?;
    let (client, server) = run_pair(|ch| party(ch, &plan, batch), |ch| party(ch, &plan, batch));
    client.and(server)
}
