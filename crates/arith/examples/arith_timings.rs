//! Time of each protocol by phase on ideal OTs: this crate's own work and that of handing OTs out, one thread
//! a party.
//!
//! `cargo run --release -p volvelle-arith --example arith_timings [batch]`

use std::time::Instant;

use volvelle_arith::{
    ArithError, GreaterEqual, MatVecClear, MatVecShared, Matrix, MatrixShape, Multiply, Mux, Ring,
    Truncate, Truncation, Variant,
};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase, Role};
use volvelle_ot::Ot;
use volvelle_prim::{Block, Prg};

/// Runs both phases at both parties and prints nanoseconds an item, of the slower party.
fn time<P, T: Send>(
    name: &str,
    items: usize,
    prepare: impl Fn(&mut Channel, &mut Ot) -> Result<P, ArithError> + Sync,
    run: impl Fn(&mut Channel, P) -> Result<T, ArithError> + Sync,
) {
    let (mut client, mut server) = volvelle_ot::testing::ideal_pair(1);
    let party = |ch: &mut Channel, ot: &mut Ot| {
        ch.set_phase(Phase::Preprocessing);
        let start = Instant::now();
        let prepared = prepare(ch, ot).expect("preprocessing");
        let prep = start.elapsed();
        ch.set_phase(Phase::Online);
        let start = Instant::now();
        run(ch, prepared).expect("online");
        [prep, start.elapsed()].map(|t| t.as_secs_f64() * 1e9 / items as f64)
    };
    let (c, s) = run_pair(|ch| party(ch, &mut client), |ch| party(ch, &mut server));
    println!("{name}: {:.0} + {:.0} ns", c[0].max(s[0]), c[1].max(s[1]));
}

fn main() -> Result<(), ArithError> {
    let batch = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1 << 20);
    let ring = Ring::new(32)?;
    let mut values = vec![0; 2 * batch];
    Prg::from_seed(Block(1)).fill_masked(&mut values, 32);
    let (x, y) = values.split_at(batch);
    for variant in Variant::ALL {
        time(
            &format!("comparison of 32 bits, {variant:?}"),
            batch,
            |ch, ot| GreaterEqual::prepare(ch, ot, variant, ring, batch),
            |ch, p| p.run(ch, x, y),
        );
    }
    let few = batch.min(100_000);
    time(
        "product of 32 bits",
        few,
        |ch, ot| Multiply::prepare(ch, ot, ring, few),
        |ch, p| p.run(ch, &x[..few], &y[..few]),
    );
    time(
        "exact truncation of 32 bits by 12",
        few,
        |ch, ot| Truncate::prepare(ch, ot, Variant::Cheetah, Truncation::Exact, ring, 12, few),
        |ch, p| p.run(ch, &x[..few]),
    );
    let bits = volvelle_prim::BitVec::zeros(batch);
    time(
        "multiplexer of 32 bits",
        batch,
        |ch, ot| Mux::prepare(ch, ot, ring, batch),
        |ch, p| p.run(ch, &bits, x),
    );
    for (side, vectors) in [(64, 360), (1024, 2)] {
        let ring = Ring::new(37)?;
        matrices(
            MatrixShape {
                rows: side,
                cols: side,
                weight_bits: 14,
                ring,
            },
            vectors,
            &values,
        )?;
    }
    Ok(())
}

/// Both kinds of product, a vector being an item.
fn matrices(shape: MatrixShape, batch: usize, values: &[u64]) -> Result<(), ArithError> {
    let weights = (0..shape.rows * shape.cols)
        .map(|i| i as i64 % 8191 - 4095)
        .collect();
    let matrix = Matrix::new(shape.rows, shape.cols, weights)?;
    let x: Vec<u64> = values
        .iter()
        .cycle()
        .take(shape.cols * batch)
        .map(|v| v % 32)
        .collect();
    let own = |role| (role == Role::Server).then_some(&matrix);
    let name = format!("{0} x {0} matrix, {batch} vectors", shape.rows);
    time(
        &format!("{name} of 5 bits in the clear, a vector"),
        batch,
        |ch, ot| MatVecClear::prepare(ch, ot, &shape, 5, own(ot.role()), batch),
        |ch, p| {
            let mine = if ch.role() == Role::Client {
                x.as_slice()
            } else {
                &[]
            };
            p.run(ch, mine)
        },
    );
    time(
        &format!("{name}, shared, a vector"),
        batch,
        |ch, ot| MatVecShared::prepare(ch, ot, &shape, own(ot.role()), batch),
        |ch, p| p.run(ch, &x),
    );
    Ok(())
}
