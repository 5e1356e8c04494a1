//! The one-hot correlation (ROTL, PoPETs 2026, §5; see `docs/protocols/one-hot.md`).
//!
//! Each lookup consumes one: XOR shares of a vector `e ∈ {0,1}^n` that is 1 at a uniform secret
//! position `r` and 0 elsewhere, and shares of `r`, additive mod `n` or XOR according to the index.
//! How it was made ([`crate::rotation`], [`crate::doubling`]) and how it is used are independent.
//!
//! Used once: opening `δ = i − r` (or `i ⊕ r`) tells the peer nothing about the index because `r`
//! is uniform and appears nowhere else; a second use would reveal the difference of two indices. So
//! it is not `Clone`, and using it up takes it by value.

use std::ops::Range;

use volvelle_prim::fold::row_words;
use volvelle_prim::{Lines, mask, pack};
use zeroize::Zeroizing;

use crate::Index;

/// One party's shares of a batch of one-hot correlations.
pub(crate) struct OneHots {
    log_entries: u32,
    index: Index,
    /// `max(1, n/64)` words a row; for `n < 64` the low `n` bits.
    rows: Lines<u64>,
    /// Shares of the positions, reduced mod `n`.
    positions: Zeroizing<Vec<u16>>,
}

impl OneHots {
    /// From its parts; there may be more rows than positions, which are reduced here.
    pub fn new(
        log_entries: u32,
        index: Index,
        rows: Lines<u64>,
        mut positions: Zeroizing<Vec<u16>>,
    ) -> Self {
        debug_assert!(rows.len() >= positions.len() * row_words(log_entries));
        positions
            .iter_mut()
            .for_each(|p| *p &= mask(log_entries) as u16);
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

    /// This party's shares of the positions.
    pub fn positions(&self) -> &[u16] {
        &self.positions
    }

    /// The shares of the vectors of some lookups, row by row.
    pub fn rows(&self, lookups: Range<usize>) -> std::slice::ChunksExact<'_, u64> {
        let words = row_words(self.log_entries);
        self.rows[lookups.start * words..lookups.end * words].chunks_exact(words)
    }

    /// This party's shares of the offsets `i − r` (or `i ⊕ r`) of some lookups: what is opened.
    pub fn offset_shares(&self, lookups: Range<usize>, index: &[u64]) -> impl Iterator<Item = u64> {
        self.positions[lookups.clone()]
            .iter()
            .zip(&index[lookups])
            .map(|(&r, &i)| self.index.split(i, u64::from(r), self.log_entries))
    }
}

/// The opening of the offsets, the first step of every lookup: `k` bits each way.
pub(crate) struct Opening {
    /// This party's shares, then (chunk by chunk) the offsets.
    own: Vec<u64>,
    peer: Vec<u64>,
    log_entries: u32,
    index: Index,
}

impl Opening {
    pub const LABEL: volvelle_net::Label = volvelle_net::Label::new("lut/open-offset");

    pub fn new(onehots: &OneHots, index: &[u64]) -> Self {
        let shares = onehots.offset_shares(0..onehots.len(), index).collect();
        Self::from_shares(onehots.index, onehots.log_entries, shares)
    }

    /// Of offsets given as this party's shares, reduced.
    pub fn from_shares(index: Index, log_entries: u32, shares: Vec<u64>) -> Self {
        Self {
            own: shares,
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
    pub fn make(&self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        pack::pack_append(&self.own[lookups], self.log_entries, frame);
    }

    /// Opens some lookups' offsets from the peer's frame: public from here on, in `0..n`.
    pub fn open_offsets(&mut self, lookups: Range<usize>, frame: &[u8]) -> &[u64] {
        self.peer.resize(lookups.len(), 0);
        pack::unpack_into(frame, self.log_entries, &mut self.peer);
        let own = &mut self.own[lookups];
        for (own, &peer) in own.iter_mut().zip(&self.peer) {
            *own = self.index.join(*own, peer, self.log_entries);
        }
        own
    }
}
