//! Microseconds a lookup of the baselines, with ideal OTs: what this crate's own computing takes, in preprocessing and online,
//! and the bits that both parties send.
//!
//! `cargo run --release -p volvelle-lut --example baseline_timings [batch [k …]]`; median of five runs, wall time of both
//! parties on two threads, arithmetic index and additive outputs where there are such. Every result is checked.

use std::time::{Duration, Instant};

use volvelle_lut::{
    Dealt, GarbledLut, Garbling, Generator, Index, KnownTables, Lookups, LutError, OpLut, Ottt,
    Output, Setup, Shape, Sharing, SpLut, Table, dealer,
};
use volvelle_net::testing::{run_ends, run_pair};
use volvelle_net::{Channel, Label, memory_pair};
use volvelle_ot::testing::ideal_pair;
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::{Block, Prg, mask};

const READY: Label = Label::new("example/ready");

/// Times of the two phases, and the outputs.
type Measured = Result<([Duration; 2], Vec<u64>), LutError>;

/// A table and indices to look up in it.
struct Case {
    log_entries: u32,
    bits: u32,
    batch: usize,
    tables: Vec<Table>,
    indices: [Vec<u64>; 2],
}

impl Case {
    fn new(log_entries: u32, bits: u32, batch: usize) -> Result<Self, LutError> {
        let mut prg = Prg::from_os();
        let mut entries = vec![0; 1 << log_entries];
        prg.fill_masked(&mut entries, bits);
        let indices = [(); 2].map(|()| {
            let mut index = vec![0; batch];
            prg.fill_masked(&mut index, log_entries);
            index
        });
        Ok(Self {
            log_entries,
            bits,
            batch,
            tables: vec![Table::new(bits, entries)?],
            indices,
        })
    }

    fn known(&self, sharing: Sharing) -> KnownTables<'_> {
        KnownTables {
            index: Index::Arithmetic,
            sharing,
            tables: &self.tables,
        }
    }

    fn shape(&self, sharing: Sharing) -> Shape {
        Shape {
            log_entries: self.log_entries,
            index: Index::Arithmetic,
            output: match sharing {
                Sharing::Additive => Output::word(self.bits),
                Sharing::Xor => Output::Xor,
            },
        }
    }

    /// How many outputs differ from the table.
    fn wrong(&self, sharing: Sharing, a: &[u64], b: &[u64]) -> usize {
        let entries = self.tables[0].entries();
        let right = |&i: &usize| {
            let [x, y] = self.indices.each_ref().map(|index| index[i]);
            let at = Index::Arithmetic.join(x, y, self.log_entries);
            sharing.add(a[i], b[i]) & mask(self.bits) == entries[at as usize]
        };
        self.batch - (0..self.batch).filter(right).count()
    }

    /// Five runs of a protocol, and a line of their medians.
    fn report(
        &self,
        name: &str,
        sharing: Sharing,
        cost: &PhasedCost,
        party: impl Fn(&mut Channel, &mut Ot, &[u64]) -> Measured + Sync,
    ) -> Result<(), LutError> {
        let mut runs = [Vec::new(), Vec::new()];
        let mut wrong = 0;
        for seed in 0..5 {
            let (mut a, mut b) = ideal_pair(seed);
            let [x, y] = &self.indices;
            let (a, b) = run_pair(|ch| party(ch, &mut a, x), |ch| party(ch, &mut b, y));
            let (a, b) = (a?, b?);
            wrong += self.wrong(sharing, &a.1, &b.1);
            for (phase, runs) in runs.iter_mut().enumerate() {
                runs.push(a.0[phase].max(b.0[phase]));
            }
        }
        self.line(name, cost, runs, wrong);
        Ok(())
    }

    fn line(&self, name: &str, cost: &PhasedCost, runs: [Vec<Duration>; 2], wrong: usize) {
        let [prep, online] = runs.map(|mut runs| {
            runs.sort();
            runs[runs.len() / 2].as_secs_f64() * 1e6 / self.batch as f64
        });
        let [prep_bits, online_bits] =
            [cost.prep.bits(), cost.online.bits()].map(|bits| bits as f64 / self.batch as f64);
        let (n, l) = (1 << self.log_entries, self.bits);
        println!(
            "{n:5} {l:3}  {name:22} {prep_bits:10.1} {online_bits:9.1} {prep:10.3} {online:9.3}  {wrong} wrong"
        );
    }
}

/// Times `prepare`, then `look_up`; what comes of the first table.
fn measure<P>(
    ch: &mut Channel,
    prepare: impl FnOnce(&mut Channel) -> Result<P, LutError>,
    look_up: impl FnOnce(&mut Channel, P) -> Result<Vec<Vec<u64>>, LutError>,
) -> Measured {
    let start = Instant::now();
    let prepared = prepare(ch)?;
    ch.flush()?;
    let prep = start.elapsed();
    // Neither starts the next phase before the other.
    ch.send(READY, &[])?;
    ch.recv(READY, &mut [])?;
    let start = Instant::now();
    let outputs = look_up(ch, prepared)?;
    let times = [prep, start.elapsed()];
    Ok((times, outputs.into_iter().next().unwrap_or_default()))
}

fn two_party(case: &Case) -> Result<(), LutError> {
    let (k, l, batch) = (case.log_entries, case.bits, case.batch);
    let kind = Index::Arithmetic;
    let additive = Sharing::Additive;
    let shape = case.shape(additive);
    let cost = Lookups::cost(Generator::Doubling, &shape, batch);
    case.report("one-hot by doubling", additive, &cost, |ch, ot, index| {
        measure(
            ch,
            |ch| Lookups::prepare(ch, ot, Generator::Doubling, &shape, batch),
            |ch, p| p.lookup(ch, index, &case.tables),
        )
    })?;
    let cost = SpLut::cost(k, &[l], batch);
    case.report("SP-LUT", additive, &cost, |ch, ot, index| {
        measure(
            ch,
            |ch| SpLut::prepare(ch, ot, k, batch),
            |ch, p| p.lookup(ch, kind, index, &case.tables),
        )
    })?;
    let known = case.known(additive);
    for (name, setup) in [
        ("OP-LUT, 1-of-n OT", Setup::OneOfN),
        ("OP-LUT, shifter", Setup::Shifter),
    ] {
        let cost = OpLut::cost(setup, k, &[l], batch);
        case.report(name, additive, &cost, |ch, ot, index| {
            measure(
                ch,
                |ch| OpLut::prepare(ch, ot, setup, &known, batch),
                |ch, p| p.lookup(ch, index),
            )
        })?;
    }
    let xor = case.known(Sharing::Xor);
    for (name, known) in [("OTTT", &known), ("OTTT, XOR outputs", &xor)] {
        let cost = Ottt::cost(k, kind, known.sharing, &[l], batch);
        case.report(name, known.sharing, &cost, |ch, ot, index| {
            measure(
                ch,
                |ch| Ottt::prepare(ch, ot, known, batch),
                |ch, p| p.lookup(ch, index),
            )
        })?;
    }
    for (name, garbling, known) in [
        ("garbled rows", Garbling::Rows, &known),
        ("garbled, log rows, XOR", Garbling::LogRow, &xor),
    ] {
        let cost = GarbledLut::cost(garbling, k, kind, &[l], batch);
        case.report(name, known.sharing, &cost, |ch, ot, index| {
            measure(
                ch,
                |ch| GarbledLut::prepare(ch, ot, garbling, known, batch),
                |ch, p| p.lookup(ch, index),
            )
        })?;
    }
    Ok(())
}

/// With a dealer, whose own time is that of preprocessing; keys are evaluated then too.
fn with_dealer(case: &Case, sharing: Sharing, name: &str) -> Result<(), LutError> {
    let shape = case.shape(sharing);
    let cost = Dealt::cost(&shape, case.batch);
    let mut runs = [Vec::new(), Vec::new()];
    let mut wrong = 0;
    for _ in 0..5 {
        let start = Instant::now();
        let (mut a, to_a) = memory_pair();
        let (to_b, mut b) = memory_pair();
        let prepared = std::thread::scope(|scope| {
            let (shape, batch) = (&shape, case.batch);
            let receive = move |ch: &mut Channel| {
                let mut dealt = Dealt::receive(ch, shape, batch)?;
                dealt.expand();
                Ok::<_, LutError>(dealt)
            };
            let (mut to_a, mut to_b) = (to_a, to_b);
            let parties = [
                scope.spawn(move || receive(&mut a)),
                scope.spawn(move || receive(&mut b)),
            ];
            let dealt = dealer::deal(&mut to_a, &mut to_b, shape, batch);
            let parties = parties.map(|party| party.join());
            dealt.map(|()| parties)
        })?;
        runs[0].push(start.elapsed());
        let mut prepared = prepared.into_iter();
        let (Some(Ok(a)), Some(Ok(b))) = (prepared.next(), prepared.next()) else {
            continue;
        };
        let party = |ch: &mut Channel, dealt: Dealt, index: &[u64]| match sharing {
            Sharing::Additive => dealt.lookup(ch, index, &case.tables),
            Sharing::Xor => dealt.lookup_xor(ch, index, &case.tables),
        };
        let start = Instant::now();
        let [x, y] = &case.indices;
        let (a, b) = (a?, b?);
        let ends = memory_pair();
        let (a, b) = run_ends(ends, |ch| party(ch, a, x), |ch| party(ch, b, y));
        runs[1].push(start.elapsed());
        wrong += case.wrong(sharing, &a?[0], &b?[0]);
    }
    case.line(name, &cost, runs, wrong);
    Ok(())
}

fn main() -> Result<(), LutError> {
    let mut args = std::env::args().skip(1).map_while(|arg| arg.parse().ok());
    let batch = args.next().unwrap_or(2000);
    let mut sizes: Vec<u32> = args.map(|k| k as u32).collect();
    if sizes.is_empty() {
        sizes = vec![2, 4, 6, 8];
    }
    println!("batch {batch}; bits and µs a lookup; with a dealer, bits are those that it sends");
    println!("    n   l  protocol                prep bits    online    prep µs    online");
    // One key's use of a block, so that the first figures do not pay for what is set up once.
    let _ = Prg::from_seed(Block::ZERO).next_block();
    for log_entries in sizes {
        for bits in [8, 64] {
            let case = Case::new(log_entries, bits, batch)?;
            two_party(&case)?;
            with_dealer(&case, Sharing::Additive, "dealer, additive")?;
            with_dealer(&case, Sharing::Xor, "dealer, XOR outputs")?;
        }
    }
    Ok(())
}
