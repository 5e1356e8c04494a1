//! The code of primal LPN: a public random matrix with ten ones a row (a local linear code), as in
//! Ferret (Yang, Weng, Lan, Zhang, Wang, CCS 2020, §5; d = 10).

mod pace;
#[cfg(test)]
mod tests;

use std::slice::from_raw_parts;

use self::pace::Pace;
use crate::aes::{Aes128, LANES, counters, store_regs};
use crate::ggm::{Finish, FinishRegs, TREES};
use crate::simd::{Engine, Kernel, prefetch};
use crate::{Backend, Block};

/// Ones in a row of the matrix. A security parameter: the LPN parameters are chosen for it.
pub const WEIGHT: usize = 10;

/// Largest supported `log2` of the secret's length: three indices are cut from a 64-bit word.
pub const MAX_LOG_SECRET: u32 = 21;

/// Rows whose indices are made at once: the index blocks stay in the first-level cache.
const ROWS: usize = 64;

/// The same where entries are asked for ahead of use.
const AHEAD_ROWS: usize = 16;
/// By how many rows they are.
const AHEAD: usize = 8;

/// Bits of an index in its word.
const FIELD: u32 = MAX_LOG_SECRET;

/// A public matrix with `2^log_secret` columns, rows made on demand from a public seed.
///
/// Row `i` takes its ten column indices from `AES_seed(2i)` and `AES_seed(2i+1)`, three of
/// [`MAX_LOG_SECRET`] bits at most to a 64-bit word (of the twelve the last two are not used).
pub struct LocalLinearCode {
    indices: Aes128,
    log_secret: u32,
    pace: Pace,
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
            pace: match Backend::current() {
                // Found to be at the bandwidth of the third-level cache, where asking ahead gains nothing.
                Backend::Vaes => Pace::Always(false),
                _ => Pace::timed(),
            },
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
        self.pace.run(out.len() / R::BLOCKS, |ahead| {
            self.indices.dispatch(Encode {
                code: self,
                first_row,
                finish,
                out,
                row,
                ahead,
            });
        });
    }
}

/// What to do with the ten entries that a row names.
trait Row {
    /// Blocks an entry, and outputs a row.
    const BLOCKS: usize;
    /// All entries.
    fn entries(&self) -> &[Block];
    /// Adds the entries at these offsets, in bytes, each the start of an entry.
    fn xor<E: Engine>(&self, e: E, offsets: &[usize; WEIGHT], row: &mut [Block]);
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
    fn entries(&self) -> &[Block] {
        self.secret
    }

    #[inline(always)]
    fn xor<E: Engine>(&self, _: E, offsets: &[usize; WEIGHT], row: &mut [Block]) {
        row[0] ^= gather(self.secret, offsets);
    }
}

impl Row for Two<'_> {
    const BLOCKS: usize = 2;

    #[inline(always)]
    fn entries(&self) -> &[Block] {
        self.secrets
    }

    #[inline(always)]
    fn xor<E: Engine>(&self, e: E, offsets: &[usize; WEIGHT], row: &mut [Block]) {
        let mut acc = load_pair(e, row);
        for &offset in offsets {
            // SAFETY: the offset is of one of the 2^log_secret pairs of blocks.
            let entry = unsafe { from_raw_parts(self.secrets.as_ptr().byte_add(offset), 2) };
            let entry = load_pair(e, entry);
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

/// `log2` of the bytes of an entry.
const fn log_bytes<R: Row>() -> u32 {
    (R::BLOCKS * size_of::<Block>()).ilog2()
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
    ahead: bool,
}

impl<R: Row> Kernel for Encode<'_, R> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        if self.ahead {
            self.ahead(e);
        } else {
            self.in_turn(e);
        }
    }
}

impl<R: Row> Encode<'_, R> {
    /// Row after row.
    #[inline(always)]
    fn in_turn<E: Engine>(self, e: E) {
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
                self.row.xor(e, &offsets::<R>(pair, mask), row);
            }
        }
    }

    /// Asks for the entries of later rows before it reads this one's: loads alone keep too few of them under way. Pays where the
    /// third-level cache is busy.
    #[inline(always)]
    fn ahead<E: Engine>(self, e: E) {
        const RING: usize = 2 * AHEAD_ROWS;
        let mut ring = [RowOffsets::NONE; RING];
        let finish = load_finish(e, self.finish);
        let mut maker = Maker::new::<_, R>(e, self.code, self.first_row);
        maker.make(e, &mut ring[..AHEAD_ROWS]);
        let entries = self.row.entries();
        let chunk = AHEAD_ROWS * R::BLOCKS;
        for (c, rows) in self.out.chunks_mut(chunk).enumerate() {
            if let Some(finish) = &finish {
                finish.apply(e, rows, c * chunk / TREES);
            }
            let later = (c + 1) % 2 * AHEAD_ROWS;
            maker.make(e, &mut ring[later..later + AHEAD_ROWS]);
            for (r, row) in rows.chunks_exact_mut(R::BLOCKS).enumerate() {
                let at = c % 2 * AHEAD_ROWS + r;
                for offset in ring[(at + AHEAD) % RING].all() {
                    prefetch(entries.as_ptr().wrapping_byte_add(offset));
                }
                self.row.xor(e, &ring[at % RING].all(), row);
            }
        }
    }
}

/// A row's ten offsets, in a cache line: of each word of randomness the first and the second in halves of a word of
/// the first two blocks, the third in a word of the others.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct RowOffsets([Block; 4]);

impl RowOffsets {
    const NONE: Self = Self([Block::ZERO; 4]);

    #[inline(always)]
    fn all(&self) -> [usize; WEIGHT] {
        let mut offsets = [0; WEIGHT];
        for (i, offset) in offsets.iter_mut().enumerate() {
            let (word, field) = (i / 3, i % 3);
            let block = self.0[word / 2 + field / 2 * 2];
            let word = (block.0 >> (64 * (word % 2))) as u64;
            *offset = match field {
                0 => word & 0xffff_ffff,
                1 => word >> 32,
                _ => word,
            } as usize;
        }
        offsets
    }
}

/// Makes [`RowOffsets`] in registers of one block or two.
struct Maker<R> {
    counter: u64,
    /// Of a low half and of a high half.
    masks: [R; 2],
    log_bytes: u32,
}

impl<G: Copy> Maker<G> {
    #[inline(always)]
    fn new<E: Engine<Reg = G>, R: Row>(e: E, code: &LocalLinearCode, first_row: u64) -> Self {
        let log_bytes = log_bytes::<R>();
        let mask = ((1u128 << code.log_secret) - 1) << log_bytes;
        let low = mask | mask << 64;
        Self {
            counter: 2 * first_row,
            masks: [e.splat(Block(low)), e.splat(Block(low << 32))],
            log_bytes,
        }
    }

    /// The next rows'.
    #[inline(always)]
    fn make<E: Engine<Reg = G>>(&mut self, e: E, rows: &mut [RowOffsets]) {
        let ([low, high], log_bytes) = (self.masks, self.log_bytes);
        for rows in rows.chunks_exact_mut(LANES * E::WIDTH / 2) {
            let y = e.encrypt(counters(e, Block(u128::from(self.counter))));
            self.counter += (LANES * E::WIDTH) as u64;
            for (i, y) in y.into_iter().enumerate() {
                let (row, at) = (i * E::WIDTH / 2, i * E::WIDTH % 2);
                let row = &mut rows[row].0;
                let first = e.and(low, e.shl64(y, log_bytes));
                let second = e.and(high, e.shl64(y, 32 + log_bytes - FIELD));
                let third = e.and(low, e.shr64(y, 2 * FIELD - log_bytes));
                e.store(&mut row[at..], e.xor(first, second));
                e.store(&mut row[2 + at..], third);
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

/// The offsets, in bytes, of the ten entries that two blocks of randomness name.
#[inline(always)]
fn offsets<R: Row>(pair: &[Block], mask: u64) -> [usize; WEIGHT] {
    let (a, b) = (pair[0].0, pair[1].0);
    let words = [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64];
    let mut offsets = [0; WEIGHT];
    for (i, offset) in offsets.iter_mut().enumerate() {
        let index = words[i / 3] >> (FIELD * (i as u32 % 3)) & mask;
        *offset = (index << log_bytes::<R>()) as usize;
    }
    offsets
}

/// XOR of ten entries.
#[inline(always)]
fn gather(secret: &[Block], offsets: &[usize; WEIGHT]) -> Block {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128, _mm_xor_si128};
        let base: *const __m128i = secret.as_ptr().cast();
        let mut out = Block::ZERO;
        // SAFETY: SSE2 is part of x86-64; every offset is of one of the 2^log_secret = secret.len() blocks.
        unsafe {
            let mut acc = _mm_loadu_si128(base.byte_add(offsets[0]));
            for &offset in &offsets[1..] {
                acc = _mm_xor_si128(acc, _mm_loadu_si128(base.byte_add(offset)));
            }
            _mm_storeu_si128((&raw mut out).cast(), acc);
        }
        out
    }
    #[cfg(not(target_arch = "x86_64"))]
    offsets.iter().fold(Block::ZERO, |acc, &at| {
        acc ^ secret[at / size_of::<Block>()]
    })
}
