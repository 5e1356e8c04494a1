use super::*;
use crate::ggm::{PerTree, reconstruct_cots};
use crate::{Backend, Prg};

#[test]
fn rows_follow_their_definition_on_every_backend() {
    let (seed, log) = (Block(77), 9);
    let mut secret = vec![Block::ZERO; 1 << log];
    let mut start = vec![Block::ZERO; 300];
    Prg::from_seed(Block(1)).fill_blocks(&mut secret);
    Prg::from_seed(Block(2)).fill_blocks(&mut start);
    let aes = Aes128::new(seed);
    let expected: Vec<Block> = (0..300u128)
        .map(|i| {
            let row = i + 1000;
            let words = [
                aes.encrypt(Block(2 * row)).0,
                aes.encrypt(Block(2 * row + 1)).0,
            ];
            (0..WEIGHT).fold(start[i as usize], |acc, j| {
                let word = (words[j / 6] >> (64 * (j / 3 % 2))) as u64;
                acc ^ secret[(word >> (21 * (j % 3))) as usize & 511]
            })
        })
        .collect();
    for way in ways() {
        let code = code(seed, log, way);
        for first in [0, 1, 7, 15, 16, 17, 100, 299] {
            let mut out = start.clone();
            let (before, after) = out.split_at_mut(first);
            code.encode(1000, &secret, None, before);
            code.encode(1000 + first as u64, &secret, None, after);
            assert!(out == expected, "{way:?} {first}");
        }

        let two: Vec<Block> = secret.iter().flat_map(|&b| [b, Block(!b.0)]).collect();
        let mut wide = vec![Block::ZERO; 2 * 300];
        let (before, after) = wide.split_at_mut(2 * 37);
        code.encode_two(1000, &two, None, before);
        code.encode_two(1037, &two, None, after);
        for (i, row) in wide.chunks(2).enumerate() {
            let plain = expected[i] ^ start[i];
            // Ten ones a row: complements cancel.
            assert!(*row == [plain, plain], "{way:?} row {i}");
        }
    }
}

/// Every backend that the machine has, entries asked for ahead and not.
fn ways() -> impl Iterator<Item = (Backend, bool)> {
    let backends = Backend::available().into_iter();
    backends.flat_map(|backend| [(backend, false), (backend, true)])
}

fn code(seed: Block, log_secret: u32, (backend, ahead): (Backend, bool)) -> LocalLinearCode {
    LocalLinearCode {
        indices: Aes128::with_backend(seed, backend),
        log_secret,
        pace: Pace::Always(ahead),
    }
}

/// Offsets made in registers, beside those of one row after another.
struct Offsets<'a>(&'a LocalLinearCode);

impl Offsets<'_> {
    fn agree<E: Engine, R: Row>(&self, e: E) -> bool {
        let mut rows = [RowOffsets::NONE; 3 * AHEAD_ROWS];
        let mut maker = Maker::new::<_, R>(e, self.0, 50);
        maker.make(e, &mut rows[..AHEAD_ROWS]);
        maker.make(e, &mut rows[AHEAD_ROWS..]);
        let mask = (1 << self.0.log_secret) - 1;
        (100..).step_by(2).zip(&rows).all(|(at, row)| {
            let pair = [at, at + 1].map(|i| self.0.indices.encrypt(Block(i)));
            row.all() == offsets::<R>(&pair, mask)
        })
    }
}

impl Kernel for Offsets<'_> {
    type Output = bool;
    fn run<E: Engine>(self, e: E) -> bool {
        E::WIDTH > 2 || self.agree::<_, One<'_>>(e) && self.agree::<_, Two<'_>>(e)
    }
}

#[test]
fn offsets_are_the_same_at_every_length_of_secret() {
    for backend in Backend::available() {
        for log_secret in 0..=MAX_LOG_SECRET {
            let code = code(Block(9), log_secret, (backend, true));
            let agree = code.indices.dispatch(Offsets(&code));
            assert!(agree, "{backend:?} 2^{log_secret}");
        }
    }
}

#[test]
fn leaves_are_finished_on_the_way() {
    let (log, depth) = (9, 5);
    let mut prg = Prg::from_seed(Block(5));
    let mut secrets = vec![Block::ZERO; 2 << log];
    prg.fill_blocks(&mut secrets);
    let known: Vec<PerTree<Block>> = (0..depth)
        .map(|_| std::array::from_fn(|_| prg.next_block()))
        .collect();
    let sides: Vec<PerTree<u8>> = (0..depth)
        .map(|_| std::array::from_fn(|_| prg.next_u64() as u8 & 1))
        .collect();
    let mut leaves = vec![Block::ZERO; TREES << depth];
    let receiver = reconstruct_cots(&known, &sides, depth, &mut leaves);
    let sender = Finish::sender();
    for (way, finish) in ways().flat_map(|way| [(way, &receiver), (way, &sender)]) {
        let code = code(Block(7), log, way);
        let mut finished = leaves.clone();
        finish.apply(&mut finished);
        let (mut one, mut two) = (leaves.clone(), leaves.clone());
        let (mut one_apart, mut two_apart) = (finished.clone(), finished);
        code.encode(3, &secrets[..1 << log], Some(finish), &mut one);
        code.encode(3, &secrets[..1 << log], None, &mut one_apart);
        code.encode_two(3, &secrets, Some(finish), &mut two);
        code.encode_two(3, &secrets, None, &mut two_apart);
        assert!(one == one_apart && two == two_apart, "{way:?}");
    }
}
