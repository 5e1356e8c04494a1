//! Times every kernel of the crate alone, on one core: nanoseconds a block, leaf, row or lookup.
//!
//! ```text
//! cargo run --release -p volvelle-prim --example kernels
//! ```
//! `VOLVELLE_SIMD=portable|aesni|avx2|vaes256` shows what the narrower paths cost.

use std::hint::black_box;
use std::time::Instant;

use volvelle_prim::convolute::ExpandConvolute;
use volvelle_prim::ggm::{self, Leaf, TREES};
use volvelle_prim::hash::{Tccr, ccr};
use volvelle_prim::lpn::LocalLinearCode;
use volvelle_prim::moved::MovedBytes;
use volvelle_prim::quasicyclic::QuasiCyclic;
use volvelle_prim::streams::LeafStreams;
use volvelle_prim::{Backend, Block, Lines, Prg, dpf, fold, lanes, mask, select, transpose};

/// Median of nine timings of `work`, which handles `items`.
fn time(name: &str, items: usize, mut work: impl FnMut()) {
    work();
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e9 / items as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{name:<46}{:>10.3}", runs[runs.len() / 2]);
}

fn main() {
    println!("backend {:?}; ns an item, median of 9", Backend::current());
    aes();
    trees();
    lpn();
    dual();
    bits();
    doubling();
}

fn aes() {
    let mut prg = Prg::from_seed(Block(1));
    let mut blocks = vec![Block::ZERO; 1 << 12];
    let mut out = blocks.clone();
    time("PRG, a block (1 AES)", 100 << 12, || {
        (0..100).for_each(|_| prg.fill_blocks(&mut blocks))
    });
    time("ccr hash, a block (1 AES)", 100 << 12, || {
        (0..100).for_each(|_| ccr(&mut blocks))
    });
    let hash = Tccr { first: 0, width: 1 };
    time("tccr hash, a block (2 AES)", 100 << 12, || {
        (0..100).for_each(|_| hash.hash(&blocks, Block(3), &mut out));
    });
    let mut ones = out.clone();
    time("both pads of an OT (4 AES)", 100 << 12, || {
        (0..100).for_each(|_| hash.hash_both(&blocks, Block(3), &mut out, &mut ones));
    });
}

fn trees() {
    for depth in [8u32, 11] {
        let leaves = TREES << depth;
        let repeat = (1 << 20) / leaves;
        let mut nodes = vec![Block::ZERO; leaves];
        let mut sums = vec![[Block::ZERO; TREES]; depth as usize - 1];
        time(
            &format!("cGGM expand, depth {depth}, a leaf (1 AES)"),
            repeat * leaves,
            || {
                for _ in 0..repeat {
                    ggm::expand(&[Block(5); TREES], Block(7), depth, &mut nodes, &mut sums);
                }
            },
        );
        let known = vec![[Block(3); TREES]; depth as usize];
        let sides = vec![[1; TREES]; depth as usize];
        time(
            &format!("cGGM reconstruct, depth {depth}, a leaf (1 AES)"),
            repeat * leaves,
            || {
                for _ in 0..repeat {
                    black_box(ggm::reconstruct(
                        &known,
                        &sides,
                        depth,
                        Leaf::Correlated,
                        &mut nodes,
                    ));
                }
            },
        );
        let finish = ggm::reconstruct_cots(&known, &sides, depth, &mut nodes);
        time(
            &format!("leaves finished, depth {depth}, a leaf"),
            repeat * leaves,
            || {
                (0..repeat).for_each(|_| finish.apply(&mut nodes));
            },
        );
    }
}

fn lpn() {
    let mut out = Lines::zeros(1 << 16);
    for log in [16, 17, 18, 19] {
        let code = LocalLinearCode::new(Block(1), log);
        let mut secret = Lines::zeros(1 << log);
        // Written once, so that its pages are its own and not the zero page.
        Prg::from_seed(Block(2)).fill_blocks(&mut secret);
        time(
            &format!("LPN, one secret of 2^{log}, an output"),
            4 << 16,
            || {
                (0..4).for_each(|i| code.encode(i << 16, &secret, None, &mut out));
            },
        );
    }
    for log in [16, 17, 18] {
        let code = LocalLinearCode::new(Block(1), log);
        let mut secrets = Lines::zeros(2 << log);
        Prg::from_seed(Block(2)).fill_blocks(&mut secrets);
        time(
            &format!("LPN, two secrets of 2^{log}, an output"),
            4 << 16,
            || {
                (0..4).for_each(|i| code.encode_two(i << 15, &secrets, None, &mut out));
            },
        );
    }
}

/// The maps of dual LPN; an output of expand-convolute costs both convolution passes and the gathers.
fn dual() {
    let mut out = Lines::zeros(1 << 18);
    for log in [18, 20, 22] {
        let rows = 1 << log;
        let code = ExpandConvolute::<4>::new(Block(1), log);
        let mut table = Lines::zeros(4 * rows);
        Prg::from_seed(Block(2)).fill_blocks(&mut table);
        time(
            &format!("convolution of four times 2^{log}, a pass"),
            4 * rows,
            || {
                code.absorb(&mut table, 0);
            },
        );
        time(
            &format!("expansion of four times 2^{log}, an output"),
            4 << 18,
            || {
                (0..4).for_each(|i| code.expand(i << 16, &table, &mut out));
            },
        );
    }
    for log in [18, 20, 22] {
        let code = QuasiCyclic::new(Block(1), log);
        let mut entries = Lines::zeros(1 << log);
        Prg::from_seed(Block(2)).fill_blocks(&mut entries);
        time(
            &format!("quasi-cyclic product of 2^{log}, an output"),
            1 << log,
            || {
                code.multiply(&mut entries);
            },
        );
    }
}

fn bits() {
    let mut columns = Lines::zeros(1 << 13);
    let mut out = Lines::zeros(1 << 13);
    Prg::from_seed(Block(4)).fill_blocks(&mut columns);
    time("transpose, a block", 20 << 13, || {
        (0..20).for_each(|_| transpose::transpose_columns(&columns, &mut out));
    });
    time("xor of planes, a block", 100 << 13, || {
        (0..100).for_each(|_| Block::xor_into(&mut out, &columns));
    });
    for k in [2, 4, 8] {
        let seeds = vec![Block(7); (128 / k) << k];
        let mut streams = LeafStreams::whole(k as u32, &seeds);
        let mut sums = Lines::zeros(64 * 128 / k);
        let name = format!(
            "leaves' streams summed, k = {k}, a COT ({} AES)",
            (1 << k) / k
        );
        time(&name, 20 << 13, || {
            (0..20).for_each(|_| streams.next(64, &mut columns, &mut sums));
        });
    }
    for k in [8, 12] {
        let words = fold::row_words(k);
        let mut rows = vec![0x1234_5678_9abc_def1; words << k];
        let mut sum = vec![0; words];
        let repeat = if k == 8 { 1000 } else { 4 };
        time(&format!("rotated sum, n = 2^{k}, a lookup"), repeat, || {
            (0..repeat).for_each(|_| fold::rotated_sum(&mut rows, k, &mut sum));
        });
    }
    for (k, l) in [(8, 64), (8, 8), (12, 16), (16, 16), (20, 16)] {
        let table: Vec<u64> = (0..1 << k).map(|i: u64| i & mask(l)).collect();
        let entries = select::Entries::new(l, &table);
        let row = vec![0x5555_1234_6666_abcd; fold::row_words(k)];
        let mut moved = row.clone();
        let repeat = (10_000 << 8 >> k).max(4);
        let name = |what| format!("{what}, n = 2^{k}, l = {l}, a lookup");
        time(&name("selection sum"), repeat, || {
            (0..repeat).for_each(|_| _ = black_box(entries.sum(black_box(&row))));
        });
        time(&name("row moved"), repeat, || {
            (0..repeat).for_each(|i| fold::rotate_open(black_box(&row), k, i * 67, &mut moved));
        });
    }
    for depth in [1, 5, 9, 13] {
        let keys = vec![[Block(7); dpf::TREES]; depth];
        let keys = dpf::Keys {
            keys: &keys,
            delta: Block(5),
        };
        let mut scratch = dpf::Scratch::new(depth);
        let repeat = (1 << 16) >> depth;
        let leaves = (repeat * dpf::TREES) << depth;
        time(
            &format!("DPF leaves, depth {depth}, a leaf (2 AES)"),
            leaves,
            || {
                for _ in 0..repeat {
                    dpf::leaves(
                        keys,
                        &[Block(1); dpf::TREES],
                        dpf::TREES,
                        &mut scratch,
                        |_, l| {
                            black_box(l);
                        },
                    );
                }
            },
        );
        time(
            &format!("DPF leaf sums, depth {depth}, a leaf (2 AES)"),
            leaves,
            || {
                (0..repeat).for_each(|_| _ = black_box(dpf::leaf_sums(keys, &mut scratch)));
            },
        );
    }
    let table = MovedBytes::new(&(0..=255).collect::<Vec<u8>>());
    let (rows, mut out) = (vec![0x5555; 4 * 8192], vec![0; 8192]);
    let offsets: Vec<u64> = (0..8192).map(|i| i * 37 % 256).collect();
    time("XOR selection, n = 256, l = 8, a lookup", 8192, || {
        table.xor_selected(black_box(&rows), &offsets, 0, &mut out);
    });
}

/// All steps from 2 to 2^8 bits of a frame's vectors, and what they take out of pads.
fn doubling() {
    const COUNT: usize = 4096;
    let mut prg = Prg::from_seed(Block(2));
    let mut pads = vec![Block::ZERO; COUNT];
    prg.fill_blocks(&mut pads);
    let level = |i: u32| vec![0; 2 * lanes::words(COUNT, 1 << i)];
    let mut levels: Vec<Vec<u64>> = (0..8).map(level).collect();
    levels.iter_mut().for_each(|level| prg.fill_u64(level));
    let mut bits = vec![0; COUNT / 64];
    prg.fill_u64(&mut bits);
    let mut received = vec![0; COUNT * 2];
    let mut frame = Vec::new();
    time(
        "pads of 2, 4, … 128 bits taken, a lookup",
        100 * COUNT,
        || {
            for _ in 0..100 {
                for i in 1..8 {
                    lanes::xor_pads(&pads, 1, 1 << i, &mut levels[i][..(COUNT << i) / 64]);
                }
            }
        },
    );
    time("doubling from 2 to 256 bits, a lookup", 100 * COUNT, || {
        for _ in 0..100 {
            for i in 1..8 {
                let (before, level) = levels.split_at_mut(i);
                let received = &received[..(COUNT << i) / 64];
                lanes::append_products(1 << i, &before[i - 1], &bits, received, &mut level[0]);
            }
        }
    });
    time("messages of doubling, a lookup", 100 * COUNT, || {
        for _ in 0..100 {
            for i in 1..8 {
                let (shape, len) = ((COUNT, 1 << i), (COUNT << i) / 64);
                frame.clear();
                lanes::append_tails(shape, &levels[i - 1][..len], &levels[i][..len], &mut frame);
                lanes::read_tails(shape, &frame, &mut received[..len]);
            }
        }
    });
    time(
        "one-hot vectors of 256 products, a lookup",
        100 * COUNT,
        || {
            for _ in 0..100 {
                lanes::one_hots(8, &mut levels[7]);
            }
        },
    );
    black_box(levels);
}
