//! Time of comparisons by phase, on ideal OTs: this crate's own work and the cost of handing OTs out.
//!
//! `cargo run --release -p volvelle-arith --example compare_time [batch]`

use std::time::Instant;

use volvelle_arith::{GreaterEqual, Ring, Variant};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase};
use volvelle_ot::Ot;
use volvelle_prim::{Block, Prg};

fn party(ch: &mut Channel, ot: &mut Ot, variant: Variant, x: &[u64], y: &[u64]) -> [f64; 2] {
    let ring = Ring::new(32).expect("a ring");
    ch.set_phase(Phase::Preprocessing);
    let start = Instant::now();
    let prepared = GreaterEqual::prepare(ch, ot, variant, ring, x.len()).expect("preprocessing");
    let prep = start.elapsed();
    ch.set_phase(Phase::Online);
    let start = Instant::now();
    prepared.run(ch, x, y).expect("online");
    [prep, start.elapsed()].map(|t| t.as_secs_f64() * 1e9 / x.len() as f64)
}

fn main() {
    let batch = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1 << 20);
    let mut values = vec![0; 4 * batch];
    Prg::from_seed(Block(1)).fill_masked(&mut values, 32);
    for variant in [Variant::Cheetah, Variant::OneHot] {
        let (mut client, mut server) = volvelle_ot::testing::ideal_pair(1);
        let part = |k: usize| &values[k * batch..][..batch];
        let (c, s) = run_pair(
            |ch| party(ch, &mut client, variant, part(0), part(1)),
            |ch| party(ch, &mut server, variant, part(2), part(3)),
        );
        println!("{variant:?}: client {:.0} + {:.0} ns, server {:.0} + {:.0} ns a comparison", c[0], c[1], s[0], s[1]);
    }
}
