//! Nanoseconds a lookup and phase, with ideal OTs: what this crate's own computing takes.
//!
//! `cargo run --release -p volvelle-lut --example phases [k [l [batch]]]`; best of five runs, wall
//! time of both parties on two threads. "OTs" is the time of drawing as many ideal OTs, which the
//! preprocessing figures include.

use std::time::{Duration, Instant};

use volvelle_lut::{
    BitTable, Generator, Index, Lookups, LutError, Output, Protocol, Shape, SpLut, Table,
};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_ot::testing::ideal_pair;
use volvelle_prim::Block;

/// The slower party's time of each of `N` phases, best of five runs.
fn measure<const N: usize>(
    party: impl Fn(&mut Channel, &mut Ot) -> Result<[Duration; N], LutError> + Sync,
) -> Result<[Duration; N], LutError> {
    let mut best = [Duration::MAX; N];
    for run in 0..5 {
        let (mut a, mut b) = ideal_pair(run);
        let (a, b) = run_pair(|ch| party(ch, &mut a), |ch| party(ch, &mut b));
        let (a, b) = (a?, b?);
        for i in 0..N {
            best[i] = best[i].min(a[i].max(b[i]));
        }
    }
    Ok(best)
}

/// Time of `f`, and its result.
fn time<T>(f: impl FnOnce() -> Result<T, LutError>) -> Result<(T, Duration), LutError> {
    let start = Instant::now();
    let value = f()?;
    Ok((value, start.elapsed()))
}

/// Draws as many OTs, in both directions, in pieces that stay in the cache.
fn draw(ch: &mut Channel, ot: &mut Ot, client: u64, server: u64) -> Result<(), LutError> {
    let (mut zero, mut one) = (vec![Block::ZERO; 4096], vec![Block::ZERO; 4096]);
    let mut choices = vec![0; 4096];
    for (sender, count) in [(Role::Client, client), (Role::Server, server)] {
        for _ in 0..count.div_ceil(4096) {
            if ch.role() == sender {
                ot.send_random(ch, 1, &mut zero, &mut one)?;
            } else {
                ot.recv_random(ch, 1, &mut choices, &mut zero)?;
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), LutError> {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut arg = |default| args.next().and_then(Result::ok).unwrap_or(default);
    let (log_entries, bits, batch) = (arg(8) as u32, arg(64) as u32, arg(100_000));
    let tables = [Table::from_fn(log_entries, bits, |i| {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })?];
    let bit_tables = [BitTable::from_fn(log_entries, |i| i.count_ones() % 2 == 0)?];
    let index: Vec<u64> = (0..batch as u64).collect();
    let report = |what: &str, times: &[Duration]| {
        let each: Vec<String> = times
            .iter()
            .map(|t| format!("{:8.1}", t.as_nanos() as f64 / batch as f64))
            .collect();
        println!("{what:42} {}", each.join(" "));
    };
    println!("n = 2^{log_entries}, l = {bits}, batch {batch}; ns a lookup: preprocessing, online");
    for kind in [Index::Arithmetic, Index::Boolean] {
        for generator in [Generator::Doubling, Generator::Rotation, Generator::Tree] {
            if !generator.log_entries().contains(&log_entries) {
                continue;
            }
            let shape = |output| Shape {
                log_entries,
                index: kind,
                output,
            };
            let words = shape(Output::word(bits));
            let times = measure(|ch, ot| {
                let (p, prep) = time(|| Lookups::prepare(ch, ot, generator, &words, batch))?;
                let (_, online) = time(|| p.lookup(ch, &index, &tables))?;
                Ok([prep, online])
            })?;
            report(&format!("{generator:?}, {kind} index, words"), &times);
            let xor = shape(Output::Xor);
            let times = measure(|ch, ot| {
                let (p, prep) = time(|| Lookups::prepare(ch, ot, generator, &xor, batch))?;
                let (_, online) = time(|| p.lookup_bits(ch, &index, &bit_tables))?;
                Ok([prep, online])
            })?;
            report(&format!("{generator:?}, {kind} index, bits"), &times);
            if generator != Generator::Rotation {
                let cost = Lookups::cost(generator, &words, batch).prep;
                let times = measure(|ch, ot| {
                    let (_, ots) = time(|| draw(ch, ot, cost.cots_client, cost.cots_server))?;
                    Ok([ots])
                })?;
                report("    of which OTs (words)", &times);
            }
        }
        if !Protocol::SpLut.log_entries().contains(&log_entries) {
            continue;
        }
        let times = measure(|ch, ot| {
            let (p, prep) = time(|| SpLut::prepare(ch, ot, log_entries, batch))?;
            let (_, online) = time(|| p.lookup(ch, kind, &index, &tables))?;
            Ok([prep, online])
        })?;
        report(&format!("SP-LUT, {kind} index, words"), &times);
    }
    Ok(())
}
