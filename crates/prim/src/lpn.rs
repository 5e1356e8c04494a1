//! The code of primal LPN: a public random matrix with ten ones a row (a local linear code), as in
//! Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020, §5; d = 10).

use crate::Block;
use crate::aes::{Aes128, LANES, counters, store_regs};
use crate::ggm::{Finish, FinishRegs, TREES};
use crate::simd::{Engine, Kernel};

/// Ones in a row of the matrix. A security parameter: the LPN parameters are chosen for it.
pub const WEIGHT: usize = 10;

/// Largest supported `log2` of the secret's length: three indices are cut from a 64-bit word.
pub const MAX_LOG_SECRET: u32 = 21;

/// Rows whose indices are made at once: the index blocks stay in the first-level cache.
const ROWS: usize = 64;

/// A public matrix with `2^log_secret` columns, rows made on demand from a public seed.
///
/// Row `i` takes its ten column indices from `AES_seed(2i)` and `AES_seed(2i+1)`, three of
/// [`MAX_LOG_SECRET`] bits at most to a 64-bit word (of the twelve the last two are not used).
pub struct LocalLinearCode {
    indices: Aes128,
    log_secret: u32,
}

impl LocalLinearCode {
    /// The matrix of a seed.
    ///
    /// # Panics
    /// If `log_secret` is over [`MAX_LOG_SECRET`].
    #[must_use]
    pub fn new(seed: Block, log_secret: u32) -> Self {
        assert!(log_secret <= MAX_LOG_SECRET, "2^{log_secret} columns");
        Self {
            indices: Aes128::new(seed),
            log_secret,
        }
    }

    /// `out[i] ⊕= ⊕` of the ten entries of `secret` that row `first_row + i` names; with `finish`, `out` is the leaves of
    /// eight trees, which are finished on the way.
    ///
    /// # Panics
    /// If `secret` is not `2^log_secret` blocks, or `out` with `finish` not whole groups of eight.
    pub fn encode(
        &self,
        first_row: u64,
        secret: &[Block],
        finish: Option<&Finish>,
        out: &mut [Block],
    ) {
        assert_eq!(secret.len(), 1 << self.log_secret, "LPN secret");
        self.run(first_row, One { secret }, finish, out);
    }

    /// [`Self::encode`] for two secrets at once: entry `j` of secret `s` is block `2·j + s` of `secrets`,
    /// and block `2·i + s` of `out` is its output `i`. One gathered cache line serves two outputs.
    ///
    /// # Panics
    /// If `secrets` is not `2·2^log_secret` blocks or `out` not whole pairs, with `finish` groups of eight.
    pub fn encode_two(
        &self,
        first_row: u64,
        secrets: &[Block],
        finish: Option<&Finish>,
        out: &mut [Block],
    ) {
        assert_eq!(secrets.len(), 2 << self.log_secret, "two LPN secrets");
        assert!(
            out.len().is_multiple_of(2),
            "{} outputs of two secrets",
            out.len()
        );
        self.run(first_row, Two { secrets }, finish, out);
    }

    fn run<R: Row>(&self, first_row: u64, row: R, finish: Option<&Finish>, out: &mut [Block]) {
        assert!(
            finish.is_none() || out.len().is_multiple_of(TREES),
            "leaves of eight trees"
        );
        self.indices.dispatch(Encode {
            code: self,
            first_row,
            finish,
            out,
            row,
        });
    }
}

/// What to do with the ten indices of a row. Indices are below `2^log_secret`.
trait Row {
    /// Outputs a row.
    const BLOCKS: usize;
    fn xor<E: Engine>(&self, e: E, indices: &[usize; WEIGHT], row: &mut [Block]);
}

struct One<'a> {
    secret: &'a [Block],
}

struct Two<'a> {
    secrets: &'a [Block],
}

impl Row for One<'_> {
    const BLOCKS: usize = 1;

    #[inline(always)]
    fn xor<E: Engine>(&self, _: E, indices: &[usize; WEIGHT], row: &mut [Block]) {
        row[0] ^= gather(self.secret, indices);
    }
}

impl Row for Two<'_> {
    const BLOCKS: usize = 2;

    #[inline(always)]
    fn xor<E: Engine>(&self, e: E, indices: &[usize; WEIGHT], row: &mut [Block]) {
        let mut acc = load_pair(e, row);
        for &index in indices {
            // SAFETY: index < 2^log_secret and there are 2·2^log_secret blocks.
            let entry = load_pair(e, unsafe {
                self.secrets.get_unchecked(2 * index..2 * index + 2)
            });
            for r in 0..registers::<E>() {
                acc[r] = e.xor(acc[r], entry[r]);
            }
        }
        if E::WIDTH > 2 {
            return e.store_half(row, acc[0]);
        }
        for r in 0..registers::<E>() {
            e.store(&mut row[r * E::WIDTH..], acc[r]);
        }
    }
}

/// How many registers two blocks take: half a one, one or two.
const fn registers<E: Engine>() -> usize {
    2usize.div_ceil(E::WIDTH)
}

/// Two blocks in [`registers`].
#[inline(always)]
fn load_pair<E: Engine>(e: E, from: &[Block]) -> [E::Reg; 2] {
    if E::WIDTH > 2 {
        return [e.load_half(from); 2];
    }
    let mut pair = [e.load(from); 2];
    if E::WIDTH == 1 {
        pair[1] = e.load(&from[1..]);
    }
    pair
}

struct Encode<'a, R> {
    code: &'a LocalLinearCode,
    first_row: u64,
    finish: Option<&'a Finish>,
    out: &'a mut [Block],
    row: R,
}

impl<R: Row> Kernel for Encode<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let mask = (1u64 << self.code.log_secret) - 1;
        let mut counter = 2 * self.first_row;
        let mut blocks = [Block::ZERO; 2 * ROWS];
        let finish = load_finish(e, self.finish);
        let chunk = ROWS * R::BLOCKS;
        for (c, rows) in self.out.chunks_mut(chunk).enumerate() {
            if let Some(finish) = &finish {
                finish.apply(e, rows, c * chunk / TREES);
            }
            for group in blocks.chunks_exact_mut(LANES * E::WIDTH) {
                let y = e.encrypt(counters(e, Block(u128::from(counter))));
                store_regs(e, group, y);
                counter += (LANES * E::WIDTH) as u64;
            }
            for (row, pair) in rows.chunks_exact_mut(R::BLOCKS).zip(blocks.chunks_exact(2)) {
                self.row.xor(e, &indices(pair, mask), row);
            }
        }
    }
}

/// In registers.
#[inline(always)]
#[expect(
    clippy::manual_map,
    reason = "a closure would not be inlined with the engine's instructions"
)]
fn load_finish<E: Engine>(e: E, finish: Option<&Finish>) -> Option<FinishRegs<E::Reg>> {
    match finish {
        Some(finish) => Some(FinishRegs::load(e, finish)),
        None => None,
    }
}

/// The ten indices that two blocks of randomness name.
#[inline(always)]
fn indices(pair: &[Block], mask: u64) -> [usize; WEIGHT] {
    let (a, b) = (pair[0].0, pair[1].0);
    let words = [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64];
    let mut index = [0; WEIGHT];
    for (i, index) in index.iter_mut().enumerate() {
        *index = (words[i / 3] >> (MAX_LOG_SECRET * (i as u32 % 3)) & mask) as usize;
    }
    index
}

/// XOR of ten entries.
#[inline(always)]
fn gather(secret: &[Block], index: &[usize; WEIGHT]) -> Block {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_xor_si128};
        let base: *const __m128i = secret.as_ptr().cast();
        let mut out = Block::ZERO;
        // SAFETY: SSE2 is part of x86-64; every index is below 2^log_secret = secret.len().
        unsafe {
            let mut acc = _mm_loadu_si128(base.add(index[0]));
            for &i in &index[1..] {
                acc = _mm_xor_si128(acc, _mm_loadu_si128(base.add(i)));
            }
            _mm_storeu_si128((&raw mut out).cast(), acc);
        }
        out
    }
    #[cfg(not(target_arch = "x86_64"))]
    index.iter().fold(Block::ZERO, |acc, &i| acc ^ secret[i])
}

#[cfg(test)]
mod tests {
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
        for backend in Backend::available() {
            let code = LocalLinearCode {
                indices: Aes128::with_backend(seed, backend),
                log_secret: log,
            };
            let mut out = start.clone();
            code.encode(1000, &secret, None, &mut out[..100]);
            code.encode(1100, &secret, None, &mut out[100..]);
            assert!(out == expected, "{backend:?}");

            let two: Vec<Block> = secret.iter().flat_map(|&b| [b, Block(!b.0)]).collect();
            let mut wide = vec![Block::ZERO; 2 * 300];
            code.encode_two(1000, &two, None, &mut wide);
            for (i, row) in wide.chunks(2).enumerate() {
                let plain = expected[i] ^ start[i];
                // Ten ones a row: complements cancel.
                assert!(*row == [plain, plain], "{backend:?} row {i}");
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
        let backends = Backend::available().into_iter();
        for (backend, finish) in backends.flat_map(|b| [(b, &receiver), (b, &sender)]) {
            let code = LocalLinearCode {
                indices: Aes128::with_backend(Block(7), backend),
                log_secret: log,
            };
            let mut finished = leaves.clone();
            finish.apply(&mut finished);
            let (mut one, mut two) = (leaves.clone(), leaves.clone());
            let (mut one_apart, mut two_apart) = (finished.clone(), finished);
            code.encode(3, &secrets[..1 << log], Some(finish), &mut one);
            code.encode(3, &secrets[..1 << log], None, &mut one_apart);
            code.encode_two(3, &secrets, Some(finish), &mut two);
            code.encode_two(3, &secrets, None, &mut two_apart);
            assert!(one == one_apart && two == two_apart, "{backend:?}");
        }
    }
}
