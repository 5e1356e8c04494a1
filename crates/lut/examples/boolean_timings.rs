//! Nanoseconds a lookup of FLUTE and FLUTE+, and an element of a permuted or rotated vector, with ideal
//! OTs: what this crate's own computing takes.
//!
//! `cargo run --release -p volvelle-lut --example boolean_timings [l [batch]]`; medians of five runs of
//! the slower party, both on a thread of their own: wall time, and processor time, which other work
//! on the machine hardly touches. Every result is checked.

use std::time::{Duration, Instant};

use volvelle_lut::{
    Flute, FlutePlus, LutError, Permute, PermuteMethod, PermuteShape, Rotate, RotateShape, Shift,
    Table,
};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::testing::ideal_pair;
use volvelle_ot::{Ot, PhasedCost};

/// Wall and processor time.
type Times = [Duration; 2];

/// One party's shares, and its times of preprocessing and online.
type Party = Result<(Vec<u64>, [Times; 2]), LutError>;

const RUNS: u64 = 5;

/// Runs both parties on the given inputs, checks the joined outputs, prints the median times. Returns those
/// of the online phase.
fn measure<I: Sync>(
    what: &str,
    (count, cost): (usize, PhasedCost),
    inputs: [&I; 2],
    party: impl Fn(&mut Channel, &mut Ot, &I) -> Party + Sync,
    check: impl Fn(&[u64], &[u64]) -> bool,
) -> Result<[f64; 2], LutError> {
    let mut all = [const { Vec::new() }; 4];
    for run in 0..RUNS {
        let (mut a, mut b) = ideal_pair(run);
        let (a, b) = run_pair(
            |ch| party(ch, &mut a, inputs[0]),
            |ch| party(ch, &mut b, inputs[1]),
        );
        let (a, b) = (a?, b?);
        assert!(check(&a.0, &b.0), "{what}: outputs are wrong");
        let slower = a.1.as_flattened().iter().zip(b.1.as_flattened());
        for (all, (&a, &b)) in all.iter_mut().zip(slower) {
            all.push(a.max(b));
        }
    }
    let [prep, prep_cpu, online, online_cpu] = all.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2].as_nanos() as f64 / count as f64
    });
    let bits = [cost.prep, cost.online].map(|c| c.bits() as f64 / count as f64);
    println!(
        "{what:30} {prep:11.1} {online:9.1} ns {prep_cpu:11.1} {online_cpu:9.1} ns {:9.1} {:8.1} bits",
        bits[0], bits[1]
    );
    Ok([online, online_cpu])
}

/// Times of `f`, and its result.
fn time<T>(f: impl FnOnce() -> Result<T, LutError>) -> Result<(T, Times), LutError> {
    let (start, cpu) = (Instant::now(), processor_time());
    let value = f()?;
    Ok((value, [start.elapsed(), processor_time() - cpu]))
}

/// What this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The one table's outputs.
fn only(outputs: Vec<Vec<u64>>) -> Vec<u64> {
    outputs.into_iter().flatten().collect()
}

fn lookups(log_entries: u32, bits: u32, batch: usize) -> Result<(), LutError> {
    let tables = [Table::from_fn(log_entries, bits, |i| {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    })?];
    let index = |step: u64| -> Vec<u64> {
        let index = (0..batch as u64).map(|i| i.wrapping_mul(step) >> 40);
        index.collect()
    };
    let (x, y) = (index(0x9e37_79b9_7f4a_7c15), index(0xbf58_476d_1ce4_e5b9));
    let check = |a: &[u64], b: &[u64]| {
        let entry = |i: usize| tables[0].entries()[(x[i] ^ y[i]) as usize % tables[0].len()];
        (0..batch).all(|i| a[i] ^ b[i] == entry(i))
    };
    let n = tables[0].len();
    let flute = measure(
        &format!("FLUTE, n = {n}, l = {bits}"),
        (batch, Flute::cost(log_entries, batch)),
        [&x, &y],
        |ch, ot, index| {
            let (p, prep) = time(|| Flute::prepare(ch, ot, log_entries, batch))?;
            let (out, online) = time(|| p.lookup_xor(ch, index, &tables))?;
            Ok((only(out), [prep, online]))
        },
        check,
    )?;
    let plus = measure(
        &format!("FLUTE+, n = {n}, l = {bits}"),
        (batch, FlutePlus::cost(log_entries, batch)),
        [&x, &y],
        |ch, ot, index| {
            let (p, prep) = time(|| FlutePlus::prepare(ch, ot, log_entries, batch))?;
            let (out, online) = time(|| p.lookup_xor(ch, index, &tables))?;
            Ok((only(out), [prep, online]))
        },
        check,
    )?;
    println!(
        "    FLUTE+ online: {:.0} times as fast, {:.0} by processor time",
        flute[0] / plus[0],
        flute[1] / plus[1]
    );
    Ok(())
}

/// Pseudorandom words, the same for both parties.
fn words(count: usize, step: u64) -> Vec<u64> {
    let words = (1..=count as u64).map(|i| {
        let x = i.wrapping_mul(step);
        (x ^ x >> 29).wrapping_mul(step)
    });
    words.collect()
}

/// Vectors of 64-bit elements moved; figures are a vector.
fn vectors(log_len: u32, batch: usize) -> Result<(), LutError> {
    let n = 1usize << log_len;
    let (x, y) = (words(batch * n, 0x9e37_79b9_7f4a_7c15), vec![0; batch * n]);
    let shifts = words(batch, 0xbf58_476d_1ce4_e5b9);
    let none = vec![];
    for shift in [Shift::Held(Role::Server), Shift::Shared] {
        let shape = RotateShape {
            log_len,
            bits: 64,
            shift,
        };
        let (own, times) = match shift {
            Shift::Shared => (&shifts, 2),
            Shift::Held(_) => (&none, 1),
        };
        measure(
            &format!("rotation {shift:?}, n = {n}"),
            (batch, Rotate::cost(shape, batch)),
            [&(own, &x), &(&shifts, &y)],
            |ch, ot, &(shifts, shares)| {
                let (p, prep) = time(|| Rotate::prepare(ch, ot, shape, batch))?;
                let (out, online) = time(|| p.rotate(ch, shifts, shares))?;
                Ok((out, [prep, online]))
            },
            |a, b| {
                (0..batch * n).all(|at| {
                    let from = (at as u64).wrapping_sub(times * shifts[at / n]) as usize % n;
                    a[at].wrapping_add(b[at]) == x[at / n * n + from]
                })
            },
        )?;
    }
    // i ↦ a·i + b is a permutation for odd a.
    let places = shifts.iter().flat_map(|&s| {
        let (a, b) = (s as usize | 1, (s >> 32) as usize);
        (0..n).map(move |i| (a.wrapping_mul(i).wrapping_add(b) % n) as u32)
    });
    let (places, none): (Vec<u32>, Vec<u32>) = (places.collect(), vec![]);
    for method in [PermuteMethod::Trees, PermuteMethod::Switches] {
        let shape = PermuteShape {
            len: n,
            bits: 64,
            holder: Role::Server,
            method,
        };
        measure(
            &format!("permutation {method:?}, n = {n}"),
            (batch, Permute::cost(shape, batch)),
            [&(&none, &x), &(&places, &y)],
            |ch, ot, &(places, shares)| {
                let (p, prep) = time(|| Permute::prepare(ch, ot, shape, batch))?;
                let (out, online) = time(|| p.permute(ch, places, shares))?;
                Ok((out, [prep, online]))
            },
            |a, b| {
                (0..batch * n).all(|i| a[i].wrapping_add(b[i]) == x[i / n * n + places[i] as usize])
            },
        )?;
    }
    Ok(())
}

fn main() -> Result<(), LutError> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut arg = |default| args.next().and_then(Result::ok).unwrap_or(default);
    let (bits, batch) = (arg(8) as u32, arg(100_000));
    println!("batch {batch}; a lookup: preprocessing, online; the same, processor time; bits");
    for log_entries in [2, 4, 6, 8] {
        lookups(log_entries, bits, batch)?;
    }
    println!("a vector:");
    for log_len in [4, 6, 8] {
        vectors(log_len, batch >> log_len)?;
    }
    Ok(())
}
