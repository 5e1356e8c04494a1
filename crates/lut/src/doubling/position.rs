//! The position `r = Σ 2^i b_i` of the one in additive shares mod `n = 2^k`.
//!
//! With XOR-shared bits `b_i = b_C,i ⊕ b_S,i`, `r = Σ 2^i (b_C,i + b_S,i − 2·b_C,i·b_S,i) mod n`. The products are wanted mod
//! `2^(k−1−i)`, so there is none for `i = k − 1`. Client's pads `p_0, p_1` and message `p_0 − p_1 + b_C,i`; its share of the
//! product is `−p_0`, the server's `p_{b_S} + b_S·message`. Gilboa's multiplication, CRYPTO 1999.

use std::ops::Range;

use volvelle_net::Role;
use volvelle_prim::{Block, mask, pack};
use zeroize::Zeroizing;

use super::zeros;
use crate::Index;

/// The layout of the client's message: the product of `i = 0` (`k − 1` bits), then the others as fields
/// of one word (at most 55 bits), each packed over the lookups of the frame.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    log_entries: u32,
    index: Index,
}

impl Layout {
    pub fn new(log_entries: u32, index: Index) -> Self {
        Self { log_entries, index }
    }

    /// Bits of product `i`; zero if there is none.
    pub fn bits(self, i: u32) -> u32 {
        match self.index {
            Index::Arithmetic => (self.log_entries - 1).saturating_sub(i),
            Index::Boolean => 0,
        }
    }

    /// Whether there are products at all.
    pub fn any(self) -> bool {
        self.bits(0) > 0
    }

    /// Where field `i` starts in its word.
    fn offset(self, i: u32) -> u32 {
        (1..i).map(|i| self.bits(i)).sum()
    }

    /// Bits of all fields `i ≥ 1`.
    fn rest(self) -> u32 {
        self.offset(self.log_entries)
    }

    /// Bytes of the message for `count` lookups.
    pub fn bytes(self, count: usize) -> usize {
        pack::packed_len(count, self.bits(0)) + pack::packed_len(count, self.rest())
    }
}

/// One party's bits and, if the index is additively shared, its share of their sum.
pub(super) struct Position {
    layout: Layout,
    role: Role,
    /// `Σ 2^i b_i` of the own bits.
    bits: Zeroizing<Vec<u16>>,
    /// Own additive share of `r`, as far as it is known.
    sum: Zeroizing<Vec<u16>>,
    /// Client: its messages, `p_0 − p_1 + b_C,i`, of `i = 0` and of the fields.
    first: Zeroizing<Vec<u64>>,
    rest: Zeroizing<Vec<u64>>,
}

/// A pad's bits from bit `start` on, at least 64 of them or up to the end of their block.
fn bits_from(pad: &[Block], start: usize) -> u64 {
    (pad[start / 128].0 >> (start % 128)) as u64
}

impl Position {
    pub fn new(role: Role, log_entries: u32, index: Index, batch: usize) -> Self {
        let layout = Layout::new(log_entries, index);
        let sums = if index == Index::Arithmetic { batch } else { 0 };
        let messages = if layout.any() && role == Role::Client { batch } else { 0 };
        Self {
            layout,
            role,
            bits: zeros(batch),
            sum: zeros(sums),
            first: zeros(messages),
            rest: zeros(messages),
        }
    }

    /// Sets the own bits `b_i` of some lookups, bytes 0 or 1.
    pub fn set_bits(&mut self, i: u32, lookups: Range<usize>, bits: &[u8]) {
        for (all, &b) in self.bits[lookups.clone()].iter_mut().zip(bits) {
            *all |= u16::from(b) << i;
        }
        if self.layout.index == Index::Arithmetic {
            for (sum, &b) in self.sum[lookups.clone()].iter_mut().zip(bits) {
                *sum = sum.wrapping_add(u16::from(b) << i);
            }
        }
        if self.role == Role::Client && self.layout.bits(i) > 0 {
            self.add_to_message(i, lookups, bits.iter().map(|&b| u64::from(b)));
        }
    }

    /// Adds to the messages of product `i`, in their rings.
    fn add_to_message(&mut self, i: u32, lookups: Range<usize>, values: impl Iterator<Item = u64>) {
        let field = mask(self.layout.bits(i));
        let offset = self.layout.offset(i);
        let messages = if i == 0 { &mut self.first } else { &mut self.rest };
        for (message, value) in messages[lookups].iter_mut().zip(values) {
            let sum = (*message >> offset).wrapping_add(value) & field;
            *message = *message & !(field << offset) | sum << offset;
        }
    }

    /// Client: takes in the pads of OTs it sent; the product's start at bit `start` of a pad.
    pub fn keep_sent(
        &mut self,
        i: u32,
        lookups: Range<usize>,
        start: usize,
        (zero, one): (&[Block], &[Block]),
        width: usize,
    ) {
        let (zero, one) = (zero.chunks_exact(width), one.chunks_exact(width));
        let difference = zero
            .clone()
            .zip(one)
            .map(|(zero, one)| bits_from(zero, start).wrapping_sub(bits_from(one, start)));
        self.add_to_message(i, lookups.clone(), difference);
        // A share −p_0 of the product is a share 2^(i+1)·p_0 of r.
        for (sum, zero) in self.sum[lookups].iter_mut().zip(zero) {
            *sum = sum.wrapping_add((bits_from(zero, start) as u16) << (i + 1));
        }
    }

    /// Server: takes in the pads of OTs it received.
    pub fn keep_received(
        &mut self,
        i: u32,
        lookups: Range<usize>,
        start: usize,
        pads: &[Block],
        width: usize,
    ) {
        for (sum, pad) in self.sum[lookups].iter_mut().zip(pads.chunks_exact(width)) {
            *sum = sum.wrapping_sub((bits_from(pad, start) as u16) << (i + 1));
        }
    }

    /// Client: appends the messages of some lookups.
    pub fn make(&self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        pack::pack_append(&self.first[lookups.clone()], self.layout.bits(0), frame);
        if self.layout.rest() > 0 {
            pack::pack_append(&self.rest[lookups], self.layout.rest(), frame);
        }
    }

    /// Server: takes in the client's messages for some lookups.
    pub fn take(&mut self, lookups: Range<usize>, frame: &[u8]) {
        let layout = self.layout;
        let (first, rest) = frame.split_at(pack::packed_len(lookups.len(), layout.bits(0)));
        let mut messages = zeros(lookups.len());
        pack::unpack_into(first, layout.bits(0), &mut messages);
        self.add_chosen(lookups.clone(), 0..1, &messages);
        if layout.rest() > 0 {
            pack::unpack_into(rest, layout.rest(), &mut messages);
            self.add_chosen(lookups, 1..layout.log_entries - 1, &messages);
        }
    }

    /// Server: the part `b_S·message` of its shares of the products `range`.
    fn add_chosen(&mut self, lookups: Range<usize>, range: Range<u32>, messages: &[u64]) {
        let layout = self.layout;
        let shares = self.bits[lookups.clone()].iter().zip(&mut self.sum[lookups]);
        for ((&bits, sum), &message) in shares.zip(messages) {
            for i in range.clone() {
                let chosen = (bits >> i & 1).wrapping_neg();
                let product = (message >> layout.offset(i)) as u16 & mask(layout.bits(i)) as u16;
                *sum = sum.wrapping_sub((product & chosen) << (i + 1));
            }
        }
    }

    /// The shares of `r`, to be reduced mod `n`.
    pub fn finish(self) -> Zeroizing<Vec<u16>> {
        match self.layout.index {
            Index::Arithmetic => self.sum,
            Index::Boolean => self.bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_one_word() {
        for k in 1..=crate::MAX_LOG_ENTRIES {
            let layout = Layout::new(k, Index::Arithmetic);
            assert_eq!(layout.bits(0) + layout.rest(), k * (k - 1) / 2);
            assert!(layout.rest() <= 55);
            assert_eq!(Layout::new(k, Index::Boolean).bytes(100), 0);
        }
    }
}
