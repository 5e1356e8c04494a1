//! The position `r = Σ 2^i b_i` of the one in additive shares mod `n = 2^k`.
//!
//! With XOR-shared bits `b_i = b_C,i ⊕ b_S,i`, `r = Σ 2^i (b_C,i + b_S,i − 2·b_C,i·b_S,i) mod n`.
//! The products are wanted mod `2^(k−1−i)`, so there is none for `i = k − 1`. Client's pads `p_0,
//! p_1` and message `p_0 − p_1 + b_C,i`; its share of the product is `−p_0`, the server's `p_{b_S}
//! + b_S·message`. Gilboa's multiplication, CRYPTO 1999.

use std::ops::Range;

use volvelle_net::Role;
use volvelle_prim::{Block, mask, pack};
use zeroize::Zeroizing;

use super::zeros;
use crate::Index;

/// The layout of the client's message: the products as fields of as many words a lookup as they need, no field cut,
/// each word packed over the lookups of the frame.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
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

    /// The products of each word.
    fn words(self) -> impl Iterator<Item = Range<u32>> {
        let end = if self.any() { self.log_entries - 1 } else { 0 };
        let mut next = 0;
        std::iter::from_fn(move || {
            let (first, mut bits) = (next, 0);
            while next < end && bits + self.bits(next) <= 64 {
                bits += self.bits(next);
                next += 1;
            }
            (first < next).then_some(first..next)
        })
    }

    /// The word that product `i` is a field of, and where it starts there.
    fn place(self, i: u32) -> (usize, u32) {
        let words = self.words().enumerate();
        let (word, fields) = words
            .filter(|(_, fields)| fields.start <= i)
            .last()
            .unwrap_or((0, 0..0));
        (word, (fields.start..i).map(|i| self.bits(i)).sum())
    }

    /// Bits of each word.
    fn word_bits(self) -> impl Iterator<Item = u32> {
        self.words()
            .map(move |fields| fields.map(|i| self.bits(i)).sum())
    }

    /// Bytes of the message for `count` lookups.
    pub fn bytes(self, count: usize) -> usize {
        self.word_bits()
            .map(|bits| pack::packed_len(count, bits))
            .sum()
    }
}

/// One party's bits and, if the index is additively shared, its share of their sum.
pub(crate) struct Position {
    layout: Layout,
    role: Role,
    /// `Σ 2^i b_i` of the own bits.
    bits: Zeroizing<Vec<u32>>,
    /// The products' part in the own additive share of `r`.
    products: Zeroizing<Vec<u32>>,
    /// Client: its messages, `p_0 − p_1 + b_C,i`, word by word.
    messages: Vec<Zeroizing<Vec<u64>>>,
}

/// A pad's bits from bit `start` on, at least 64 of them or up to the end of their block.
fn bits_from(pad: &[Block], start: usize) -> u64 {
    (pad[start / 128].0 >> (start % 128)) as u64
}

impl Position {
    pub fn new(role: Role, layout: Layout, batch: usize) -> Self {
        let messages = match role {
            Role::Client => layout.words().map(|_| zeros(batch)).collect(),
            Role::Server => Vec::new(),
        };
        Self {
            layout,
            role,
            bits: zeros(batch),
            products: zeros(if layout.any() { batch } else { 0 }),
            messages,
        }
    }

    /// Sets the own bits `b_i` of some lookups, bytes 0 or 1.
    pub fn set_bits(&mut self, i: u32, lookups: Range<usize>, bits: &[u8]) {
        for (all, &b) in self.bits[lookups.clone()].iter_mut().zip(bits) {
            *all |= u32::from(b) << i;
        }
        if self.role == Role::Client && self.layout.bits(i) > 0 {
            self.add_to_message(i, lookups, bits.iter().map(|&b| u64::from(b)));
        }
    }

    /// Adds to the messages of product `i`, in their rings.
    fn add_to_message(&mut self, i: u32, lookups: Range<usize>, values: impl Iterator<Item = u64>) {
        let (word, start) = self.layout.place(i);
        let field = mask(self.layout.bits(i)) << start;
        for (message, value) in self.messages[word][lookups].iter_mut().zip(values) {
            let sum = message.wrapping_add(value << start);
            *message ^= (*message ^ sum) & field;
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
        for (sum, zero) in self.products[lookups].iter_mut().zip(zero) {
            *sum = sum.wrapping_add((bits_from(zero, start) as u32) << (i + 1));
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
        for (sum, pad) in self.products[lookups]
            .iter_mut()
            .zip(pads.chunks_exact(width))
        {
            *sum = sum.wrapping_sub((bits_from(pad, start) as u32) << (i + 1));
        }
    }

    /// Client: appends the messages of some lookups.
    pub fn make(&self, lookups: Range<usize>, frame: &mut Vec<u8>) {
        for (messages, bits) in self.messages.iter().zip(self.layout.word_bits()) {
            pack::pack_append(&messages[lookups.clone()], bits, frame);
        }
    }

    /// Server: takes in the client's messages for some lookups: `b_S·message` of its shares of the
    /// products.
    pub fn take(&mut self, lookups: Range<usize>, mut frame: &[u8]) {
        let layout = self.layout;
        let mut messages = zeros(lookups.len());
        for (fields, bits) in layout.words().zip(layout.word_bits()) {
            let (packed, rest) = frame.split_at(pack::packed_len(lookups.len(), bits));
            frame = rest;
            pack::unpack_into(packed, bits, &mut messages);
            for i in fields {
                let (field, (_, start)) = (mask(layout.bits(i)) as u32, layout.place(i));
                let sums = self.bits[lookups.clone()]
                    .iter()
                    .zip(&mut self.products[lookups.clone()]);
                for ((&bits, sum), &message) in sums.zip(messages.iter()) {
                    let chosen = (bits >> i & 1).wrapping_neg() & field;
                    *sum = sum.wrapping_sub(((message >> start) as u32 & chosen) << (i + 1));
                }
            }
        }
    }

    /// The shares of `r`, to be reduced mod `n`.
    pub fn finish(mut self) -> Zeroizing<Vec<u32>> {
        for (bits, &products) in self.bits.iter_mut().zip(self.products.iter()) {
            *bits = bits.wrapping_add(products);
        }
        self.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_fill_words() {
        for k in 1..=crate::MAX_LOG_ENTRIES {
            let layout = Layout::new(k, Index::Arithmetic);
            let bits: Vec<u32> = layout.word_bits().collect();
            assert_eq!(bits.iter().sum::<u32>(), k * (k - 1) / 2);
            assert!(bits.iter().all(|bits| (1..=64).contains(bits)));
            assert_eq!(bits.len() > 1, k >= 12);
            let mut filled = vec![0; bits.len()];
            for i in 0..k - 1 {
                let (word, start) = layout.place(i);
                assert_eq!(start, filled[word]);
                filled[word] += layout.bits(i);
            }
            assert_eq!(filled, bits);
            assert_eq!(Layout::new(k, Index::Boolean).bytes(100), 0);
        }
    }
}
