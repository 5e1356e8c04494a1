//! The one-hot correlation (ROTL, PoPETs 2026, §5; see `docs/protocols/one-hot.md`).
//!
//! Each lookup consumes one: XOR shares of a vector `e ∈ {0,1}^n` that is 1 at a uniform secret
//! position `r` and 0 elsewhere, and shares of `r`, additive mod `n` or XOR according to the index.
//! How it was made ([`crate::rotation`], [`crate::doubling`], [`crate::tree`]) and how it is used are independent.
//!
//! Used once: opening `δ = i − r` (or `i ⊕ r`) tells the peer nothing about the index because `r`
//! is uniform and appears nowhere else; a second use would reveal the difference of two indices. So
//! it is not `Clone`, and using it up takes it by value.

use std::ops::Range;

use volvelle_prim::fold::row_words;
use volvelle_prim::{Lines, lanes, mask, pack};
use zeroize::Zeroizing;

use crate::Index;
use crate::tree::TreeRows;

/// One party's shares of a batch of one-hot correlations.
pub(crate) struct OneHots {
    log_entries: u32,
    index: Index,
    rows: Rows,
    /// Shares of the positions, reduced mod `n`.
    positions: Lines<u32>,
}

/// How rows are kept.
enum Rows {
    /// `max(1, n/64)` words a row; for `n < 64` the low `n` bits.
    Plain(Lines<u64>),
    /// To be grown when they are used.
    Compact(Box<TreeRows>),
}

impl OneHots {
    /// From its parts; there may be more rows than positions, which are reduced here.
    pub fn new(log_entries: u32, index: Index, rows: Lines<u64>, positions: Lines<u32>) -> Self {
        debug_assert!(rows.len() >= positions.len() * row_words(log_entries));
        Self::from_rows(log_entries, index, Rows::Plain(rows), positions)
    }

    /// The same with rows of trees.
    pub fn compact(log_entries: u32, index: Index, rows: TreeRows, positions: Lines<u32>) -> Self {
        Self::from_rows(log_entries, index, Rows::Compact(Box::new(rows)), positions)
    }

    fn from_rows(log_entries: u32, index: Index, rows: Rows, mut positions: Lines<u32>) -> Self {
        positions
            .iter_mut()
            .for_each(|p| *p &= mask(log_entries) as u32);
        Self {
            log_entries,
            index,
            rows,
            positions,
        }
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    pub fn index(&self) -> Index {
        self.index
    }

    pub fn log_entries(&self) -> u32 {
        self.log_entries
    }

    /// Shows the shares of the vectors of some lookups, row by row: `see(i, row)`.
    #[inline]
    pub fn for_rows(&self, lookups: Range<usize>, mut see: impl FnMut(usize, &[u64])) {
        match &self.rows {
            Rows::Plain(rows) => {
                let words = row_words(self.log_entries);
                let rows = rows[lookups.start * words..lookups.end * words].chunks_exact(words);
                lookups.zip(rows).for_each(|(i, row)| see(i, row));
            }
            Rows::Compact(rows) => rows.for_rows(lookups, see),
        }
    }

    /// This party's shares of the positions.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// All rows as one slice, if they are kept as rows.
    pub fn words(&self) -> Option<&[u64]> {
        match &self.rows {
            Rows::Plain(rows) => Some(rows),
            Rows::Compact(_) => None,
        }
    }

    /// The number of ones of each row, modulo 4.
    pub fn weights(&self) -> Zeroizing<Vec<u8>> {
        match &self.rows {
            Rows::Plain(rows) => {
                let mut weights = Zeroizing::new(vec![0; self.len()]);
                lanes::weights(row_words(self.log_entries), rows, &mut weights);
                weights
            }
            Rows::Compact(rows) => rows.weights().clone(),
        }
    }

    /// Starts the opening of the offsets `i − r` (or `i ⊕ r`).
    pub fn opening(&self, index: &[u64]) -> Opening {
        Opening::new(self.index, self.log_entries, &self.positions, index)
    }
}

/// How they are kept: the rows, then four bytes a position.
impl OneHots {
    /// Room for `count` of them.
    pub fn zeros(log_entries: u32, index: Index, count: usize) -> Self {
        Self {
            log_entries,
            index,
            rows: Rows::Plain(Lines::zeros(count * row_words(log_entries))),
            positions: Lines::zeros(count),
        }
    }

    /// Copies some of others to the places from `at` on, made by [`Self::zeros`].
    pub fn copy(&mut self, at: usize, others: &Self, lookups: Range<usize>) {
        let Rows::Plain(rows) = &mut self.rows else {
            unreachable!("trees have no places for rows");
        };
        let words = row_words(self.log_entries);
        others.for_rows(lookups.clone(), |i, row| {
            rows[(at + i - lookups.start) * words..][..words].copy_from_slice(row);
        });
        self.positions[at..][..lookups.len()].copy_from_slice(&others.positions[lookups]);
    }

    /// Bytes of `count` of them.
    pub fn saved_len(log_entries: u32, count: usize) -> usize {
        saved_rows(log_entries, count) + 4 * count
    }

    /// Appends some as bytes.
    pub fn save(&self, lookups: Range<usize>, out: &mut Vec<u8>) {
        out.reserve(Self::saved_len(self.log_entries, lookups.len()));
        let mut words = Lines::zeros(lookups.len() * row_words(self.log_entries));
        let mut places = words.chunks_exact_mut(row_words(self.log_entries));
        self.for_rows(lookups.clone(), |_, row| {
            if let Some(place) = places.next() {
                place.copy_from_slice(row);
            }
        });
        pack::pack_append(&words, saved_bits(self.log_entries), out);
        for &position in &self.positions[lookups] {
            out.extend_from_slice(&position.to_le_bytes());
        }
    }

    /// Reads `count` of them from [`Self::saved_len`] bytes.
    pub fn load(log_entries: u32, index: Index, count: usize, bytes: &[u8]) -> Self {
        let (packed, positions) = bytes.split_at(saved_rows(log_entries, count));
        let mut rows = Lines::zeros(count * row_words(log_entries));
        pack::unpack_into(packed, saved_bits(log_entries), &mut rows);
        let mut shares = Lines::zeros(count);
        for (share, bytes) in shares.iter_mut().zip(positions.as_chunks().0) {
            *share = u32::from_le_bytes(*bytes);
        }
        Self::new(log_entries, index, rows, shares)
    }
}

/// Bits of a word of a row that are kept: all, or those that a short row has.
const fn saved_bits(log_entries: u32) -> u32 {
    if log_entries < 6 {
        1 << log_entries
    } else {
        64
    }
}

fn saved_rows(log_entries: u32, count: usize) -> usize {
    pack::packed_len(count * row_words(log_entries), saved_bits(log_entries))
}

/// The opening of the offsets, the first step of every lookup: `k` bits each way.
pub(crate) struct Opening {
    /// This party's shares; small, since memory touched for the first time costs more than the opening.
    own: Vec<u32>,
    /// A chunk's shares or offsets, and the peer's shares.
    chunk: Vec<u64>,
    peer: Vec<u64>,
    log_entries: u32,
    index: Index,
}

impl Opening {
    pub const LABEL: volvelle_net::Label = volvelle_net::Label::new("lut/open-offset");

    /// Of the offsets of `index` from positions, given a party's shares of both.
    pub fn new(kind: Index, log_entries: u32, positions: &[u32], index: &[u64]) -> Self {
        let (ring, shares) = (mask(log_entries) as u32, positions.iter().zip(index));
        let own = match kind {
            Index::Arithmetic => shares
                .map(|(&r, &i)| (i as u32).wrapping_sub(r) & ring)
                .collect(),
            Index::Boolean => shares.map(|(&r, &i)| (i as u32 ^ r) & ring).collect(),
        };
        Self::from_shares(own, log_entries, kind)
    }

    /// Of offsets given as this party's shares, below `n`.
    pub fn from_shares(own: Vec<u32>, log_entries: u32, index: Index) -> Self {
        Self {
            own,
            chunk: Vec::new(),
            peer: Vec::new(),
            log_entries,
            index,
        }
    }

    /// Payload bytes of a frame.
    pub fn bytes(log_entries: u32, count: usize) -> usize {
        pack::packed_len(count, log_entries)
    }

    /// Appends this party's shares of some lookups' offsets.
    pub fn make(&mut self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.load(lookups);
        pack::pack_append(&self.chunk, self.log_entries, frame);
    }

    /// Opens some lookups' offsets from the peer's frame: public from here on, in `0..n`.
    pub fn open_offsets(&mut self, lookups: Range<usize>, frame: &[u8]) -> &[u64] {
        self.peer.resize(lookups.len(), 0);
        pack::unpack_into(frame, self.log_entries, &mut self.peer);
        self.load(lookups);
        let shares = self.chunk.iter_mut().zip(&self.peer);
        // One loop each, without a choice inside: they are a good part of a lookup's time.
        match self.index {
            Index::Arithmetic => {
                let ring = mask(self.log_entries);
                shares.for_each(|(own, &peer)| *own = own.wrapping_add(peer) & ring);
            }
            Index::Boolean => shares.for_each(|(own, &peer)| *own ^= peer),
        }
        &self.chunk
    }

    fn load(&mut self, lookups: Range<usize>) {
        self.chunk.clear();
        self.chunk
            .extend(self.own[lookups].iter().map(|&share| u64::from(share)));
    }
}
