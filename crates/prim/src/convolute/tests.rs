use super::*;
use crate::{Backend, Prg};

/// One pass by the definition; returns the rows past the end.
fn pass(aes: &Aes128, p: u128, rows: &mut Vec<Block>, past: usize) -> Vec<Block> {
    let n = rows.len();
    rows.resize(n + past, Block::ZERO);
    for i in 0..n + past {
        let bits = (aes.encrypt(Block((p + 1) << 64 | (i / 4) as u128)).0 >> (32 * (i % 4))) as u32;
        let mut sum = rows[i];
        for (j, row) in rows[..i].iter().enumerate().skip(i.saturating_sub(27)) {
            let (step, lane) = (j / 4, j % 4);
            let bit = if step == i / 4 {
                bits >> (24 + lane)
            } else if i / 4 - step <= 6 {
                bits >> (4 * (step % 6) + lane)
            } else {
                0
            };
            sum ^= row.keep_if(bit as u8 & 1);
        }
        if i >= 28 {
            sum ^= rows[i - 28];
        }
        rows[i] = sum;
    }
    rows.split_off(n)
}

fn reference(seed: Block, log: u32, first: &[Block], second: &[Block]) -> Vec<Block> {
    let aes = Aes128::with_backend(seed, Backend::Portable);
    let mut y = second.to_vec();
    for (i, v) in pass(&aes, 0, &mut y, 28).into_iter().enumerate() {
        y[i] ^= v;
    }
    pass(&aes, 1, &mut y, 0);
    let mask = (1u128 << log) - 1;
    (0..1usize << log)
        .map(|i| {
            let words = [
                aes.encrypt(Block(2 * i as u128)).0,
                aes.encrypt(Block(2 * i as u128 + 1)).0,
            ];
            (0..7).fold(first[i], |sum, j| {
                let word = words[j / 4] >> (32 * (j % 4)) & 0xffff_ffff;
                let quarter = 1usize << (log - 2);
                let index = match j {
                    0..4 => j * quarter + word as usize % quarter,
                    _ => (word & mask) as usize,
                };
                sum ^ y[index]
            })
        })
        .collect()
}

#[test]
fn it_is_its_definition_on_every_backend() {
    follows_its_definition::<2>();
    follows_its_definition::<4>();
}

fn follows_its_definition<const N: usize>() {
    for log in [6, 9] {
        let n = 1usize << log;
        let mut first = vec![Block::ZERO; N * n];
        let mut second = vec![Block::ZERO; N * n];
        Prg::from_seed(Block(1)).fill_blocks(&mut first);
        Prg::from_seed(Block(2)).fill_blocks(&mut second);
        let seed = Block(55);
        let instance = |v: &[Block], s: usize| v.chunks(N).map(|row| row[s]).collect::<Vec<_>>();
        let expected: Vec<Vec<Block>> = (0..N)
            .map(|s| reference(seed, log, &instance(&first, s), &instance(&second, s)))
            .collect();
        for backend in Backend::available() {
            let code = ExpandConvolute::<N> {
                randomness: Aes128::with_backend(seed, backend),
                log_rows: log,
            };
            let mut table = second.clone();
            // As the rows arrive: in pieces, one of them a single step.
            code.absorb(&mut table[..N * 12], 0);
            code.absorb(&mut table[..N * 16], 12);
            code.absorb(&mut table[..N * 52], 16);
            code.absorb(&mut table, 52);
            code.finish(&mut table);
            let mut out = first.clone();
            code.expand(0, &table, &mut out[..N * 20]);
            code.expand(20, &table, &mut out[N * 20..]);
            for (s, expected) in expected.iter().enumerate() {
                assert!(
                    instance(&out, s) == *expected,
                    "{backend:?} 2^{log} instance {s}"
                );
            }
        }
    }
}

#[test]
fn every_entry_reaches_about_half_of_the_convoluted_rows() {
    // A map that forgot the end or the start of its input would have outputs of few noise positions.
    let log = 9;
    let code = ExpandConvolute::<4>::new(Block(3), log);
    for at in [0, 1, 255, 484, 510, 511] {
        let mut table = vec![Block::ZERO; 4 << log];
        table[4 * at] = Block(1);
        code.absorb(&mut table, 0);
        code.finish(&mut table);
        let reached = table.chunks(4).filter(|row| row[0] == Block(1)).count();
        assert!(
            (180..332).contains(&reached),
            "entry {at}: {reached} of 512"
        );
    }
}
