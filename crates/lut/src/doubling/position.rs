//! The position `r = Σ 2^i b_i` of the one in additive shares mod `n = 2^k`.
//!
//! With XOR-shared bits `b_i = b_C,i ⊕ b_S,i`, `r = Σ 2^i (b_C,i + b_S,i − 2·b_C,i·b_S,i) mod n`.
//! The products are wanted mod `2^(k−1−i)`, so there is none for `i = k − 1`. Client's pads `p_0,
//! p_1` and message `p_0 − p_1 + b_C,i`; its share of the product is `−p_0`, the server's `p_{b_S}
//! + b_S·message`. Gilboa's multiplication, CRYPTO 1999.

use std::ops::Range;

use volvelle_net::Role;
use volvelle_prim::fields::{self, Field, InPads};
use volvelle_prim::{Block, Lines, lanes, pack};

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

    /// The products.
    fn products(self) -> Range<u32> {
        0..if self.any() { self.log_entries - 1 } else { 0 }
    }

    /// The products of each word.
    fn words(self) -> impl Iterator<Item = Range<u32>> {
        let end = self.products().end;
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

    /// The word that product `i` is a field of, and where it is there.
    fn place(self, i: u32) -> (usize, Field) {
        let words = self.words().enumerate();
        let (word, fields) = words
            .filter(|(_, fields)| fields.start <= i)
            .last()
            .unwrap_or((0, 0..0));
        let field = Field {
            start: (fields.start..i).map(|i| self.bits(i)).sum(),
            bits: self.bits(i),
        };
        (word, field)
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

/// One party's share of the position, as far as it is made.
pub(crate) struct Position {
    layout: Layout,
    role: Role,
    batch: usize,
    /// The sum of `2^i b_i` of the own bits and of what the products add.
    sums: Lines<u32>,
    /// Server: its bits that are factors, one a lookup, bit after bit.
    factors: Lines<u64>,
    /// Client: its messages, `p_0 − p_1 + b_C,i`, word by word.
    messages: Vec<Lines<u64>>,
}

impl Position {
    pub fn new(role: Role, layout: Layout, batch: usize) -> Self {
        let (messages, factors) = match role {
            Role::Client => (layout.words().map(|_| Lines::zeros(batch)).collect(), 0),
            Role::Server => (Vec::new(), layout.products().len()),
        };
        Self {
            layout,
            role,
            batch,
            sums: Lines::zeros(batch),
            factors: Lines::zeros(factors * lanes::words(batch, 1)),
            messages,
        }
    }

    /// Where the own bits `b_i` of some lookups, which start at a multiple of 64, are among the factors.
    fn factors_at(&self, i: u32, lookups: &Range<usize>) -> Range<usize> {
        let start = i as usize * lanes::words(self.batch, 1);
        start + lookups.start / 64..start + lookups.end.div_ceil(64)
    }

    /// Sets the own bits `b_i` of some lookups, 64 a word.
    pub fn set_bits(&mut self, i: u32, lookups: Range<usize>, bits: &[u64]) {
        fields::add_powers(bits, i, &mut self.sums[lookups.clone()]);
        if self.layout.bits(i) == 0 {
            return;
        }
        match self.role {
            Role::Client => {
                let (word, field) = self.layout.place(i);
                fields::add_bits(bits, field, &mut self.messages[word][lookups]);
            }
            Role::Server => {
                let at = self.factors_at(i, &lookups);
                self.factors[at].copy_from_slice(bits);
            }
        }
    }

    /// Client: takes in the pads of OTs it sent; the product's start at bit `start` of a pad.
    pub fn keep_sent(
        &mut self,
        i: u32,
        lookups: Range<usize>,
        start: usize,
        (zeros, ones): (&[Block], &[Block]),
        width: usize,
    ) {
        let place = InPads {
            blocks: width,
            start,
        };
        let (word, field) = self.layout.place(i);
        let messages = &mut self.messages[word][lookups.clone()];
        fields::add_differences(zeros, ones, place, field, messages);
        // A share −p_0 of the product is a share 2^(i+1)·p_0 of r.
        fields::add_pads(zeros, place, i + 1, &mut self.sums[lookups]);
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
        let place = InPads {
            blocks: width,
            start,
        };
        fields::sub_pads(pads, place, i + 1, &mut self.sums[lookups]);
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
        for (products, bits) in layout.words().zip(layout.word_bits()) {
            let (packed, rest) = frame.split_at(pack::packed_len(lookups.len(), bits));
            frame = rest;
            pack::unpack_into(packed, bits, &mut messages);
            for i in products {
                let (_, field) = layout.place(i);
                let own = &self.factors[self.factors_at(i, &lookups)];
                let sums = &mut self.sums[lookups.clone()];
                fields::sub_products(own, &messages, field, i + 1, sums);
            }
        }
    }

    /// The shares of `r`, to be reduced mod `n`.
    pub fn finish(self) -> Lines<u32> {
        self.sums
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
                let (word, field) = layout.place(i);
                assert_eq!(field.start, filled[word]);
                filled[word] += layout.bits(i);
            }
            assert_eq!(filled, bits);
            assert_eq!(Layout::new(k, Index::Boolean).bytes(100), 0);
        }
    }
}
