//! An expand-convolute code: the public linear map of dual LPN that random access and a sliding window
//! compute.
//!
//! Source: Raghuraman, Rindal, Tanguy, "Expand-Convolute Codes for Pseudorandom Correlation Generators from
//! LPN", CRYPTO 2023 (ePrint 2023/882), systematic as in the authors' library libOTe ("7×24"). It maps
//! `2n` entries to `n`: with `y` the second half after convolution,
//!
//! ```text
//! output i = (entry i of the first half) ⊕ y[i_0] ⊕ … ⊕ y[i_6]
//! ```
//! Four of the seven indices lie in a quarter of `y` each, three anywhere, as in that library.
//!
//! **Convolution.** Row `i` adds a random subset of the 24 to 27 rows before it and, always, row `i − 28`, so
//! that nothing is ever forgotten. Two passes with independent subsets; between them the window runs on over
//! 28 rows past the end, which are added to the first 28, so that every row of the second pass depends on all.
//! (libOTe: 24 random, the 25th always, two passes that wrap around.)
//!
//! **Layout.** `N` instances, two or four, share the public map: entry `j` of instance `s` is block `N·j + s`, a *row* is
//! one cache line or half of one, and one gather serves `N` outputs.
//!
//! Floors. Gathers, an output: `7/N` cache lines at random from `16·N·n` bytes, `2/N` AES calls; from some 2^20 rows on they
//! bind. A pass of the convolution, a row: 8 loads and 4.75 stores of a row in the first-level cache.

use crate::Block;
use crate::aes::{Aes128, LANES, counters, store_regs};
use crate::simd::{Engine, Kernel};

/// Gathers an output. A security parameter.
pub const WEIGHT: usize = 7;

/// Gathers with a quarter of the rows each; the others go anywhere.
const REGULAR: usize = 4;

/// Rows solved together.
const STEP: usize = 4;

/// Steps in the window: `STEP·STEPS = 24` is the state size. A security parameter.
const STEPS: usize = 6;

/// Distance of the row that is always added; the number of rows past the end.
const ALWAYS: usize = STEP * (STEPS + 1);

/// Rows whose indices are made at once: the index blocks stay in the first-level cache.
const ROWS: usize = 256;

/// How many rows ahead cache lines are asked for. A local tuning knob.
const AHEAD: usize = 16;

/// A public map from `2·2^log_rows` entries to `2^log_rows`, made on demand from a public seed.
///
/// Row `i` takes its indices from `AES_seed(2i)` and `AES_seed(2i + 1)`, 32 bits each; pass `p` takes the
/// subsets of rows `4g … 4g + 3` from `AES_seed(2^64·(p + 1) + g)`, 32 bits each.
pub struct ExpandConvolute<const N: usize> {
    randomness: Aes128,
    log_rows: u32,
}

impl<const N: usize> ExpandConvolute<N> {
    /// The map of a seed.
    ///
    /// # Panics
    /// If `log_rows` is outside `6..=32`.
    #[must_use]
    pub fn new(seed: Block, log_rows: u32) -> Self {
        const { assert!(N == 2 || N == 4, "two or four instances") };
        assert!((6..=32).contains(&log_rows), "2^{log_rows} rows");
        Self {
            randomness: Aes128::new(seed),
            log_rows,
        }
    }

    /// First pass over the rows `from ..` of `table`; those before must have had it. May be called as rows
    /// arrive, for `table` cut off after them.
    ///
    /// # Panics
    /// If `from` or the number of rows is no multiple of 4.
    pub fn absorb(&self, table: &mut [Block], from: usize) {
        self.randomness.dispatch(Convolve::<N> {
            table,
            from,
            pass: 0,
            wrap: 0,
        });
    }

    /// What is left of the convolution once all rows are absorbed.
    ///
    /// # Panics
    /// If `table` is not `2^log_rows` rows.
    pub fn finish(&self, table: &mut [Block]) {
        assert_eq!(table.len(), N << self.log_rows, "rows of the code");
        let rows = 1 << self.log_rows;
        self.randomness.dispatch(Convolve::<N> {
            table,
            from: rows,
            pass: 0,
            wrap: ALWAYS,
        });
        self.randomness.dispatch(Convolve::<N> {
            table,
            from: 0,
            pass: 1,
            wrap: 0,
        });
    }

    /// Rows `first_row ..` of the output: adds to each row of `out`, which has the first half's entries, the seven
    /// rows of the convoluted `table` that it names.
    ///
    /// # Panics
    /// If `table` is not `2^log_rows` rows or `out` not whole rows.
    pub fn expand(&self, first_row: u64, table: &[Block], out: &mut [Block]) {
        assert_eq!(table.len(), N << self.log_rows, "rows of the code");
        assert!(
            out.len().is_multiple_of(N),
            "{} blocks of output rows",
            out.len()
        );
        self.randomness.dispatch(Expand::<N> {
            log_rows: self.log_rows,
            first_row,
            table,
            out,
        });
    }
}

/// The blocks of a row in registers, of which the first [`registers`] are used.
type Row<E> = [<E as Engine>::Reg; 4];

/// How many registers a row of `n` blocks takes: the only one may be half full.
const fn registers<E: Engine>(n: usize) -> usize {
    n.div_ceil(E::WIDTH)
}

#[inline(always)]
fn load_row<E: Engine, const N: usize>(e: E, from: &[Block]) -> Row<E> {
    let mut row = [e.splat(Block::ZERO); 4];
    if N < E::WIDTH {
        row[0] = e.load_half(from);
        return row;
    }
    for i in 0..registers::<E>(N) {
        row[i] = e.load(&from[i * E::WIDTH..]);
    }
    row
}

#[inline(always)]
fn store_row<E: Engine, const N: usize>(e: E, to: &mut [Block], row: &Row<E>) {
    if N < E::WIDTH {
        return e.store_half(to, row[0]);
    }
    for i in 0..registers::<E>(N) {
        e.store(&mut to[i * E::WIDTH..], row[i]);
    }
}

#[inline(always)]
fn add<E: Engine, const N: usize>(e: E, a: &Row<E>, b: &Row<E>) -> Row<E> {
    let mut sum = *a;
    for i in 0..registers::<E>(N) {
        sum[i] = e.xor(a[i], b[i]);
    }
    sum
}

/// `a`, or zero if `bit` is 0.
#[inline(always)]
fn keep_if<E: Engine, const N: usize>(e: E, a: &Row<E>, bit: u32) -> Row<E> {
    let mask = e.splat(Block(u128::from(bit & 1).wrapping_neg()));
    let mut kept = *a;
    for i in 0..registers::<E>(N) {
        kept[i] = e.and(a[i], mask);
    }
    kept
}

/// The sums of all subsets of four rows; subset `b` has row `r` where bit `r` of `b` is set.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Sums<const N: usize>([[Block; N]; 1 << STEP]);

impl<const N: usize> Sums<N> {
    const ZERO: Self = Self([[Block::ZERO; N]; 1 << STEP]);

    #[inline(always)]
    fn fill<E: Engine>(&mut self, e: E, rows: &[Row<E>; STEP]) {
        let mut known = [rows[0]; 1 << STEP];
        for (r, row) in rows.iter().enumerate() {
            known[1 << r] = *row;
            for b in 1..1 << r {
                known[1 << r | b] = add::<E, N>(e, row, &known[b]);
            }
        }
        for (sum, known) in self.0[1..].iter_mut().zip(&known[1..]) {
            store_row::<E, N>(e, sum, known);
        }
    }
}

/// A pass of the convolution over rows `from ..`, then `wrap` rows past the end.
struct Convolve<'a, const N: usize> {
    table: &'a mut [Block],
    from: usize,
    pass: u64,
    wrap: usize,
}

impl<const N: usize> Kernel for Convolve<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let Self {
            table,
            from,
            pass,
            wrap,
        } = self;
        let steps = table.len() / (STEP * N);
        assert!(
            table.len().is_multiple_of(STEP * N) && from.is_multiple_of(STEP),
            "whole steps"
        );
        let zero = [e.splat(Block::ZERO); 4];
        let first = from / STEP;
        // Step g is in slot g mod STEPS, so a nibble of a subset always means the same slot.
        let mut window = [Sums::<N>::ZERO; STEPS];
        for g in first.saturating_sub(STEPS)..first {
            let mut x = [zero; STEP];
            for (r, x) in x.iter_mut().enumerate() {
                *x = load_row::<E, N>(e, &table[(g * STEP + r) * N..]);
            }
            window[g % STEPS].fill(e, &x);
        }
        let mut subsets = [Block::ZERO; LANES * 4];
        let fresh = LANES * E::WIDTH;
        let mut slot = first % STEPS;
        for (i, g) in (first..steps + wrap / STEP).enumerate() {
            if i % fresh == 0 {
                let y = e.encrypt(counters(e, Block(u128::from(pass + 1) << 64 | g as u128)));
                store_regs(e, &mut subsets, y);
            }
            let subset = subsets[i % fresh].0;
            let mut x = [zero; STEP];
            for (r, x) in x.iter_mut().enumerate() {
                let row = g * STEP + r;
                let bits = (subset >> (32 * r)) as u32;
                let mut sum = zero;
                if g < steps {
                    sum = load_row::<E, N>(e, &table[row * N..]);
                }
                if row >= ALWAYS {
                    sum = add::<E, N>(e, &sum, &load_row::<E, N>(e, &table[(row - ALWAYS) * N..]));
                }
                for (k, sums) in window.iter().enumerate() {
                    let chosen = (bits >> (STEP * k) & 15) as usize;
                    sum = add::<E, N>(e, &sum, &load_row::<E, N>(e, &sums.0[chosen]));
                }
                *x = sum;
            }
            for r in 1..STEP {
                let bits = (subset >> (32 * r + STEP * STEPS)) as u32;
                for s in 0..r {
                    x[r] = add::<E, N>(e, &x[r], &keep_if::<E, N>(e, &x[s], bits >> s));
                }
            }
            for (r, x) in x.iter().enumerate() {
                if g < steps {
                    store_row::<E, N>(e, &mut table[(g * STEP + r) * N..], x);
                } else {
                    let start = &mut table[((g - steps) * STEP + r) * N..];
                    let sum = add::<E, N>(e, x, &load_row::<E, N>(e, start));
                    store_row::<E, N>(e, start, &sum);
                }
            }
            window[slot].fill(e, &x);
            slot = if slot + 1 == STEPS { 0 } else { slot + 1 };
        }
    }
}

struct Expand<'a, const N: usize> {
    log_rows: u32,
    first_row: u64,
    table: &'a [Block],
    out: &'a mut [Block],
}

impl<const N: usize> Kernel for Expand<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let Self {
            log_rows,
            first_row,
            table,
            out,
        } = self;
        let mut counter = 2 * first_row;
        let mut blocks = [Block::ZERO; 2 * ROWS];
        for rows in out.chunks_mut(ROWS * N) {
            for group in blocks.chunks_exact_mut(LANES * E::WIDTH) {
                let y = e.encrypt(counters(e, Block(u128::from(counter))));
                store_regs(e, group, y);
                counter += (LANES * E::WIDTH) as u64;
            }
            let pairs = blocks.as_chunks::<2>().0;
            for (r, row) in rows.chunks_exact_mut(N).enumerate() {
                if let Some(later) = pairs.get(r + AHEAD) {
                    for i in indices(later, log_rows) {
                        prefetch(table, i * N);
                    }
                }
                let index = indices(&pairs[r], log_rows);
                let mut sum = load_row::<E, N>(e, row);
                for i in index {
                    // SAFETY: indices are below 2^log_rows and `table` has N·2^log_rows blocks.
                    let entry = unsafe { table.get_unchecked(i * N..(i + 1) * N) };
                    sum = add::<E, N>(e, &sum, &load_row::<E, N>(e, entry));
                }
                store_row::<E, N>(e, row, &sum);
            }
        }
    }
}

/// Asks for the cache line of block `at`, if there is one.
#[inline(always)]
fn prefetch(table: &[Block], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64; a prefetch has no effect but on caches, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().wrapping_add(at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, at);
}

/// The seven indices that two blocks of randomness name.
#[inline(always)]
fn indices(pair: &[Block; 2], log_rows: u32) -> [usize; WEIGHT] {
    let (a, b) = (pair[0].0, pair[1].0);
    let words = [a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64];
    let mut index = [0; WEIGHT];
    for (i, index) in index.iter_mut().enumerate() {
        let word = (words[i / 2] >> (32 * (i as u32 % 2))) & 0xffff_ffff;
        *index = if i < REGULAR {
            i << (log_rows - 2) | (word & ((1 << (log_rows - 2)) - 1)) as usize
        } else {
            (word & ((1 << log_rows) - 1)) as usize
        };
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Prg};

    /// One pass by the definition; returns the rows past the end.
    fn pass(aes: &Aes128, p: u128, rows: &mut Vec<Block>, past: usize) -> Vec<Block> {
        let n = rows.len();
        rows.resize(n + past, Block::ZERO);
        for i in 0..n + past {
            let bits =
                (aes.encrypt(Block((p + 1) << 64 | (i / 4) as u128)).0 >> (32 * (i % 4))) as u32;
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
            let instance =
                |v: &[Block], s: usize| v.chunks(N).map(|row| row[s]).collect::<Vec<_>>();
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
}
