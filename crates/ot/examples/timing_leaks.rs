//! Whether the time of kernels that work on secrets tells something of them.
//!
//! Source: Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?", DATE 2017: a kernel runs many times on a
//! fixed secret and on random ones, mixed at random; Welch's t compares the two sets of times. |t| above 5 with
//! 100 000 samples and growing with more is a leak. `control_leaks` is one on purpose: its |t| must be large, else the
//! machine is too busy to see anything.
//!
//! ```text
//! cargo run --release -p volvelle-ot --example timing_leaks
//! cargo run --release -p volvelle-ot --example timing_leaks -- --filter permuted --continuous permuted
//! ```

use std::cell::RefCell;
use std::hint::black_box;

use dudect_bencher::{BenchRng, Class, CtRunner, ctbench_main};
use volvelle_ot::testing::kernels;
use volvelle_prim::ggm::{self, Leaf, PerTree, TREES};
use volvelle_prim::{Block, Prg, gf128, pprf};

const SAMPLES: usize = 200_000;

/// Times `kernel` on secrets: all zero on the left, random on the right.
fn compare(runner: &mut CtRunner, kernel: impl FnMut(u64)) {
    let kernel = RefCell::new(kernel);
    let mut prg = Prg::from_os();
    // Inputs are drawn before anything is timed, and in the same way for both classes.
    let inputs: Vec<(bool, u64)> = (0..SAMPLES)
        .map(|_| {
            let (right, secret) = (prg.next_u64() & 1 == 1, prg.next_u64());
            (right, secret & 0u64.wrapping_sub(u64::from(right)))
        })
        .collect();
    for (right, secret) in inputs {
        let class = if right { Class::Right } else { Class::Left };
        runner.run_one(class, || kernel.borrow_mut()(black_box(secret)));
    }
}

fn blocks(count: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; count];
    Prg::from_os().fill_blocks(&mut out);
    out
}

const DEPTH: u32 = 6;

/// Which sides of half-trees a receiver is told the sums of.
fn sides(secret: u64) -> [PerTree<u8>; DEPTH as usize] {
    let mut sides = [[0; TREES]; DEPTH as usize];
    for (i, side) in sides.as_flattened_mut().iter_mut().enumerate() {
        *side = (secret >> i & 1) as u8;
    }
    sides
}

/// Half-trees punctured at secret points.
fn half_tree_reconstruct(runner: &mut CtRunner, _: &mut BenchRng) {
    let known: Vec<PerTree<Block>> = blocks(TREES * DEPTH as usize).as_chunks().0.to_vec();
    let mut nodes = vec![Block::ZERO; TREES << DEPTH];
    compare(runner, |secret| {
        let leaf = Leaf::Correlated;
        black_box(ggm::reconstruct(
            &known,
            &sides(secret),
            DEPTH,
            leaf,
            &mut nodes,
        ));
    });
}

/// The same, and choices marked at the points.
fn half_tree_choices(runner: &mut CtRunner, _: &mut BenchRng) {
    let known: Vec<PerTree<Block>> = blocks(TREES * DEPTH as usize).as_chunks().0.to_vec();
    let mut nodes = vec![Block::ZERO; TREES << DEPTH];
    compare(runner, |secret| {
        ggm::reconstruct_cots(&known, &sides(secret), DEPTH, &mut nodes).apply(&mut nodes);
        black_box(&mut nodes);
    });
}

/// Plain trees punctured at a secret point.
fn plain_tree_reconstruct(runner: &mut CtRunner, _: &mut BenchRng) {
    let known = blocks(8);
    compare(runner, |secret| {
        black_box(pprf::reconstruct(&[secret as u32 & 0xff], &known, 8));
    });
}

/// A punctured tree moved by its secret point.
fn permuted(runner: &mut CtRunner, _: &mut BenchRng) {
    let tree = blocks(256);
    compare(runner, |secret| {
        black_box(kernels::permuted(&tree, secret as u32 & 0xff));
    });
}

/// Corrections under secret bits of Δ.
fn correction(runner: &mut CtRunner, _: &mut BenchRng) {
    let (mut plane, correction) = (blocks(64), blocks(64));
    compare(runner, |secret| {
        for i in 0..16 {
            kernels::correct(black_box(&mut plane), &correction, (secret >> i & 1) as u8);
        }
    });
}

/// Chosen OT's messages at secret choices.
fn choice(runner: &mut CtRunner, _: &mut BenchRng) {
    let masked: Vec<[Block; 2]> = blocks(128).as_chunks().0.to_vec();
    compare(runner, |secret| {
        for (i, &masked) in masked.iter().enumerate() {
            black_box(kernels::open_chosen(
                masked,
                (secret >> i & 1) as u8,
                Block(7),
            ));
        }
    });
}

/// The weight of a secret point in the trees' check.
fn secret_power(runner: &mut CtRunner, _: &mut BenchRng) {
    let base = blocks(1)[0];
    compare(runner, |secret| {
        black_box(gf128::power(base, secret & 0x7ff, 11));
    });
}

/// A loop as long as its secret, to show that the method sees one.
fn control_leaks(runner: &mut CtRunner, _: &mut BenchRng) {
    let data = blocks(256);
    compare(runner, |secret| {
        black_box(
            data[..secret as usize & 0xff]
                .iter()
                .fold(Block::ZERO, |a, &b| a ^ b),
        );
    });
}

ctbench_main!(
    half_tree_reconstruct,
    half_tree_choices,
    plain_tree_reconstruct,
    permuted,
    correction,
    choice,
    secret_power,
    control_leaks
);
