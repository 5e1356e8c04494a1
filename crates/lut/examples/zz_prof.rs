//! temp
use volvelle_lut::*;
use volvelle_net::testing::run_pair;
use volvelle_ot::testing::ideal_pair;
fn cpu() -> u64 {
    let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse().unwrap()
}
fn main() {
    let arg = |i: usize, d: u32| {
        std::env::args()
            .nth(i)
            .map(|s| s.parse().unwrap())
            .unwrap_or(d)
    };
    let k: u32 = arg(1, 8);
    let index = if arg(2, 0) == 1 {
        Index::Boolean
    } else {
        Index::Arithmetic
    };
    let g = if arg(3, 0) == 1 {
        Generator::Rotation
    } else {
        Generator::Doubling
    };
    let output = if arg(4, 0) == 0 {
        Output::Xor
    } else {
        Output::word(arg(4, 0))
    };
    let tables = [Table::from_fn(k, arg(4, 0).max(1), |i| {
        i.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
    .unwrap()];
    let bt = [BitTable::from_fn(k, |i| i.count_ones() % 2 == 0).unwrap()];
    let batch = 100_000usize;
    let idx: Vec<u64> = (0..batch as u64).collect();
    let mut best = [u64::MAX; 4];
    for run in 0..10 {
        let (mut a, mut b) = ideal_pair(run);
        let shape = Shape {
            log_entries: k,
            index,
            output: output.clone(),
        };
        let f = |ch: &mut volvelle_net::Channel, ot: &mut volvelle_ot::Ot| {
            let t = cpu();
            let p = if arg(3, 0) == 2 {
                let p = SpLut::prepare(ch, ot, k, batch).unwrap();
                let t1 = cpu();
                p.lookup(ch, index, &idx, &tables).unwrap();
                return [t1 - t, cpu() - t1];
            } else {
                Lookups::prepare(ch, ot, g, &shape, batch).unwrap()
            };
            let t1 = cpu();
            if shape.output == Output::Xor {
                p.lookup_bits(ch, &idx, &bt).unwrap();
            } else {
                p.lookup(ch, &idx, &tables).unwrap();
            }
            [t1 - t, cpu() - t1]
        };
        let (x, y) = run_pair(|ch| f(ch, &mut a), |ch| f(ch, &mut b));
        for (i, v) in x.into_iter().chain(y).enumerate() {
            best[i] = best[i].min(v);
        }
    }
    println!(
        "cpu ns: client {:.1} {:.1} server {:.1} {:.1}",
        best[0] as f64 / 1e5,
        best[1] as f64 / 1e5,
        best[2] as f64 / 1e5,
        best[3] as f64 / 1e5
    );
}
