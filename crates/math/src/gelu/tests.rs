use super::*;
use volvelle_arith::share;
use volvelle_arith::testing::{add, both, prg};

fn plan(bits: u32, frac: u32) -> GeluPlan {
    GeluPlan::new(Fixed::new(bits, frac).unwrap()).unwrap()
}

fn check(plan: &GeluPlan, x: &[i64], seed: usize) {
    let ring = plan.fixed().ring();
    let values: Vec<u64> = x.iter().map(|&x| ring.from_signed(x)).collect();
    let shares = share(&mut prg(seed), ring, &values);
    let (c, s) = both(
        Gelu::cost(plan, x.len()).unwrap(),
        |ch, ot| Gelu::prepare(ch, ot, plan, x.len()),
        |ch, p, side| p.run(ch, side.words(&shares)),
    );
    let got: Vec<i64> = add(ring, &c, &s)
        .into_iter()
        .map(|y| ring.to_signed(y))
        .collect();
    let expected: Vec<i64> = x.iter().map(|&x| gelu_plain_fixed(plan, x)).collect();
    assert_eq!(got, expected);
}

/// Largest and mean error in ulps over low … high.
fn errors(plan: &GeluPlan, low: f64, high: f64) -> (f64, f64) {
    let one = f64::from(plan.fixed().frac()).exp2();
    let (from, to) = ((low * one) as i64, (high * one) as i64);
    let step = ((to - from) / 200_000).max(1) as usize;
    let (mut worst, mut sum, mut count) = (0f64, 0.0, 0.0);
    for x in (from..to).step_by(step) {
        let error = (gelu_plain_fixed(plan, x) as f64 - gelu(x as f64 / one) * one).abs();
        worst = worst.max(error);
        sum += error;
        count += 1.0;
    }
    (worst, sum / count)
}

#[test]
fn error_against_f64() {
    // (f, largest, mean) in ulps over −6 … 6.
    for (frac, largest, mean) in [
        (6, 0.68, 0.16),
        (8, 0.61, 0.17),
        (10, 0.63, 0.18),
        (12, 0.74, 0.20),
        (16, 8.4, 0.73),
        (18, 33.3, 2.6),
    ] {
        let (worst, average) = errors(&plan(frac + 20, frac), -6.0, 6.0);
        assert!(
            worst <= largest && average <= mean,
            "f = {frac}: {worst} {average}"
        );
    }
}

#[test]
fn every_number_of_a_small_format() {
    let plan = plan(13, 6);
    let domain: Vec<i64> = (-4096 + 512..4096 - 256).collect();
    check(&plan, &domain, 1);
    check(&plan, &domain, 2);
}

#[test]
fn everything_near_the_interval() {
    let plan = plan(37, 12);
    let x: Vec<i64> = (-20_000..20_000).step_by(3).collect();
    check(&plan, &x, 3);
}

#[test]
fn formats_batches_and_ends() {
    for (bits, frac) in [(17, 12), (32, 8), (37, 12), (64, 18), (64, 31)] {
        let plan = plan(bits, frac);
        let alpha = plan.alpha() as i64;
        let (low, high) = (
            -(1 << (bits - 2)) * 2 + 2 * alpha,
            ((1 << (bits - 2)) - 1) * 2 + 1 - alpha,
        );
        let edges = [
            0,
            1,
            -1,
            alpha,
            alpha - 1,
            -alpha,
            -alpha - 1,
            low,
            high,
            alpha / 3,
            -alpha / 3,
        ];
        for batch in [1, 7, 64, 1000] {
            let plan = plan.clone().with_variant(Variant::ALL[batch % 3]);
            let x: Vec<i64> = edges.into_iter().cycle().take(batch).collect();
            check(&plan, &x, batch);
        }
    }
}

#[test]
fn every_protocol_that_takes_the_lookups() {
    let plan = plan(37, 12);
    let x: Vec<i64> = (-20_000..20_000).step_by(1000).collect();
    let demand = plan.lookups(x.len()).unwrap();
    for (seed, protocol) in Protocol::ALL.into_iter().enumerate() {
        let with = plan.clone().with_protocol(protocol);
        assert_eq!(with.is_ok(), protocol.takes(&demand).is_ok(), "{protocol}");
        if let Ok(plan) = with {
            check(&plan, &x, seed);
        }
    }
}

#[test]
fn cost_for_37_bits() {
    let cost = Gelu::cost(&plan(37, 12), 80_000).unwrap();
    let compact = Gelu::cost(&plan(37, 12).with_variant(Variant::Compact), 80_000).unwrap();
    assert!(compact.total().bits() / 80_000 < 1740);
    assert!(cost.total().bits() / 80_000 < 1940);
}

#[test]
fn bad_formats_are_errors() {
    for (bits, frac) in [(37, 5), (16, 12), (64, 32)] {
        assert!(
            GeluPlan::new(Fixed::new(bits, frac).unwrap()).is_err(),
            "{bits} {frac}"
        );
    }
}
