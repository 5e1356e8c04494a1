//! What the steps of doubling need for the whole batch, and what comes of them.
//!
//! Before step `i`, a chunk of level `i` holds `r_0 ⊕ r_1` of the OTs sent (its *masks*), and `r_0` of the
//! OTs sent ⊕ the pads received (its *folds*), as batches of vectors of `2^i` bits. The step replaces them by
//! the vectors of `2^(i+1)` bits: memory touched for the first time is the dearest of all, so there is to be
//! little of it, and in few pieces. At level 0 there is no step; its vectors of two bits are the start. What comes of the last level
//! is made one-hot.

use std::ops::Range;

use volvelle_prim::{Lines, lanes};

/// Levels `0 … k − 1`.
pub(crate) struct Levels {
    log_entries: u32,
    batch: usize,
    /// The levels but the last, one after the other.
    lower: Lines<u64>,
    /// The last, on its own: it becomes the rows.
    last: Lines<u64>,
    /// Own bits `b_i`, one a lookup, level after level.
    bits: Lines<u64>,
}

/// Where the vectors of `2^(i+1)` bits are within level `i`.
pub(crate) fn vectors_at(i: u32, lookups: &Range<usize>) -> Range<usize> {
    let start = lanes::words(lookups.start, 2 << i);
    start..start + lanes::words(lookups.len(), 2 << i)
}

/// Where the masks are within level `i`, and then the folds; together a chunk's place.
fn pads_at(i: u32, lookups: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let start = lanes::words(lookups.start, 2 << i);
    let len = lanes::words(lookups.len(), 1 << i);
    (start..start + len, start + len..start + 2 * len)
}

impl Levels {
    pub fn new(log_entries: u32, batch: usize) -> Self {
        let last = log_entries - 1;
        Self {
            log_entries,
            batch,
            lower: Lines::zeros(Self::start_of(last, batch)),
            last: Lines::zeros(2 * lanes::words(batch, 1 << last)),
            bits: Lines::zeros(log_entries as usize * lanes::words(batch, 1)),
        }
    }

    /// Where level `i` starts among the lower ones.
    fn start_of(i: u32, batch: usize) -> usize {
        (0..i).map(|i| 2 * lanes::words(batch, 1 << i)).sum()
    }

    fn level(&self, i: u32) -> &[u64] {
        if i + 1 == self.log_entries {
            return &self.last;
        }
        &self.lower[Self::start_of(i, self.batch)..Self::start_of(i + 1, self.batch)]
    }

    fn level_mut(&mut self, i: u32) -> &mut [u64] {
        if i + 1 == self.log_entries {
            return &mut self.last;
        }
        &mut self.lower[Self::start_of(i, self.batch)..Self::start_of(i + 1, self.batch)]
    }

    fn bits_at(&self, i: u32, lookups: &Range<usize>) -> Range<usize> {
        let start = i as usize * lanes::words(self.batch, 1);
        start + lookups.start / 64..start + lookups.end.div_ceil(64)
    }

    /// Room for the own bits of level `i`.
    pub fn bits_mut(&mut self, i: u32, lookups: &Range<usize>) -> &mut [u64] {
        let at = self.bits_at(i, lookups);
        &mut self.bits[at]
    }

    /// The masks and folds of level `i`, to add to: of a piece of a chunk, which starts at a multiple of 64.
    pub fn pads_mut(
        &mut self,
        i: u32,
        chunk: &Range<usize>,
        piece: &Range<usize>,
    ) -> (&mut [u64], &mut [u64]) {
        let (masks, folds) = pads_at(i, chunk);
        let start = lanes::words(piece.start, 1 << i);
        let at = start..start + lanes::words(piece.len(), 1 << i);
        let pads = &mut self.level_mut(i)[masks.start..folds.end];
        let (masks, folds) = pads.split_at_mut(masks.len());
        (&mut masks[at.clone()], &mut folds[at])
    }

    /// The masks of level `i`.
    pub fn masks(&self, i: u32, lookups: &Range<usize>) -> &[u64] {
        &self.level(i)[pads_at(i, lookups).0]
    }

    /// The vectors that came of level `i`.
    pub fn vectors(&self, i: u32, lookups: &Range<usize>) -> &[u64] {
        &self.level(i)[vectors_at(i, lookups)]
    }

    /// The vectors of two bits, `(one, b)`.
    pub fn start(&mut self, one: bool) {
        let batch = self.batch;
        let level = if self.log_entries == 1 {
            &mut self.last
        } else {
            &mut self.lower
        };
        let v = &mut level[..lanes::words(batch, 2)];
        lanes::start(&self.bits[..lanes::words(batch, 1)], one, v, batch);
        if self.log_entries == 1 {
            lanes::one_hots(1, v);
        }
    }

    /// Step `i`, with the peer's message as vectors.
    pub fn double(&mut self, i: u32, lookups: &Range<usize>, received: &[u64]) {
        let log_width = i + 1;
        let (v, bits, data) = self.step(i, lookups);
        lanes::append_products(1 << i, v, bits, received, data);
        if log_width == self.log_entries {
            lanes::one_hots(log_width, &mut self.last[vectors_at(i, lookups)]);
        }
    }

    /// The vectors before step `i`, its bits, and a chunk's place in its level.
    fn step(&mut self, i: u32, lookups: &Range<usize>) -> (&[u64], &[u64], &mut [u64]) {
        let (batch, bits) = (self.batch, self.bits_at(i, lookups));
        let (lower, level) = if i + 1 == self.log_entries {
            (&self.lower[..], &mut self.last[..])
        } else {
            let (lower, rest) = self.lower.split_at_mut(Self::start_of(i, batch));
            (&*lower, rest)
        };
        let vectors = &lower[Self::start_of(i - 1, batch)..][vectors_at(i - 1, lookups)];
        let (masks, folds) = pads_at(i, lookups);
        (
            vectors,
            &self.bits[bits],
            &mut level[masks.start..folds.end],
        )
    }

    /// The vectors of the last step.
    pub fn into_last(self) -> Lines<u64> {
        self.last
    }
}
