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
use crate::simd::{Engine, Kernel, prefetch};

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

/// What a bit keeps.
static MASKS: [Block; 2] = [Block::ZERO, Block(u128::MAX)];

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
    // The map is public.
    let mask = e.splat(MASKS[(bit & 1) as usize]);
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
        if E::WIDTH < 4 {
            return self.fill_in_turn(e, rows);
        }
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

    /// [`Self::fill`] where there are registers for a few rows only: the subsets of the first three rows in Gray's order, each with
    /// and without the fourth.
    #[inline(always)]
    fn fill_in_turn<E: Engine>(&mut self, e: E, rows: &[Row<E>; STEP]) {
        let sums = &mut self.0;
        store_row::<E, N>(e, &mut sums[8], &rows[3]);
        let a = rows[0];
        let ab = add::<E, N>(e, &a, &rows[1]);
        let b = rows[1];
        let bc = add::<E, N>(e, &b, &rows[2]);
        let abc = add::<E, N>(e, &a, &bc);
        let ac = add::<E, N>(e, &a, &rows[2]);
        for (subset, sum) in [
            (1, a),
            (3, ab),
            (2, b),
            (6, bc),
            (7, abc),
            (5, ac),
            (4, rows[2]),
        ] {
            store_row::<E, N>(e, &mut sums[subset], &sum);
            let with_last = add::<E, N>(e, &sum, &rows[3]);
            store_row::<E, N>(e, &mut sums[8 | subset], &with_last);
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
            let (at, wrapped) = (g * STEP * N, g >= steps);
            // The rows a step and ALWAYS before; none before the first.
            let mut x = [zero; STEP];
            if !wrapped {
                x = load_step::<E, N>(e, &table[at..at + STEP * N]);
            }
            if g > STEPS {
                let before = at - ALWAYS * N;
                let always = load_step::<E, N>(e, &table[before..before + STEP * N]);
                for r in 0..STEP {
                    x[r] = add::<E, N>(e, &x[r], &always[r]);
                }
            }
            // One by one, so that rows stay in registers.
            x[0] = add_window::<E, N>(e, &x[0], &window, subset as u32);
            x[1] = add_window::<E, N>(e, &x[1], &window, (subset >> 32) as u32);
            x[2] = add_window::<E, N>(e, &x[2], &window, (subset >> 64) as u32);
            x[3] = add_window::<E, N>(e, &x[3], &window, (subset >> 96) as u32);
            let inner = subset >> (STEP * STEPS);
            let (second, third) = ((inner >> 32) as u32, (inner >> 64) as u32);
            let fourth = (inner >> 96) as u32;
            x[1] = add_if::<E, N>(e, &x[1], &x[0], second);
            x[2] = add_if::<E, N>(e, &x[2], &x[0], third);
            x[3] = add_if::<E, N>(e, &x[3], &x[0], fourth);
            x[2] = add_if::<E, N>(e, &x[2], &x[1], third >> 1);
            x[3] = add_if::<E, N>(e, &x[3], &x[1], fourth >> 1);
            x[3] = add_if::<E, N>(e, &x[3], &x[2], fourth >> 2);
            if wrapped {
                // Past the end: added to the start.
                let start = &mut table[at - steps * STEP * N..][..STEP * N];
                let there = load_step::<E, N>(e, start);
                for r in 0..STEP {
                    let sum = add::<E, N>(e, &x[r], &there[r]);
                    store_row::<E, N>(e, &mut start[r * N..(r + 1) * N], &sum);
                }
            } else {
                let here = &mut table[at..at + STEP * N];
                for (here, x) in here.chunks_exact_mut(N).zip(&x) {
                    store_row::<E, N>(e, here, x);
                }
            }
            window[slot].fill(e, &x);
            slot = if slot + 1 == STEPS { 0 } else { slot + 1 };
        }
    }
}

#[inline(always)]
fn load_step<E: Engine, const N: usize>(e: E, from: &[Block]) -> [Row<E>; STEP] {
    let mut x = [[e.splat(Block::ZERO); 4]; STEP];
    for (x, from) in x.iter_mut().zip(from.chunks_exact(N)) {
        *x = load_row::<E, N>(e, from);
    }
    x
}

/// `row` and the rows of the window that `bits` name.
#[inline(always)]
fn add_window<E: Engine, const N: usize>(
    e: E,
    row: &Row<E>,
    window: &[Sums<N>; STEPS],
    bits: u32,
) -> Row<E> {
    let mut sum = *row;
    for (k, sums) in window.iter().enumerate() {
        let chosen = (bits >> (STEP * k) & 15) as usize;
        sum = add::<E, N>(e, &sum, &load_row::<E, N>(e, &sums.0[chosen]));
    }
    sum
}

/// `a ⊕ b`, or `a` if the lowest bit of `bits` is 0.
#[inline(always)]
fn add_if<E: Engine, const N: usize>(e: E, a: &Row<E>, b: &Row<E>, bits: u32) -> Row<E> {
    add::<E, N>(e, a, &keep_if::<E, N>(e, b, bits))
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
                        prefetch(table.as_ptr().wrapping_add(i * N));
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
mod tests;
