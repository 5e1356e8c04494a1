//! Packed bit vectors.

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Prg;

/// A vector of bits, 64 a word, least significant first; bits beyond the length are always zero.
/// Most hold shares, so the words are wiped when dropped.
#[derive(Clone, Default, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct BitVec {
    words: Vec<u64>,
    len: usize,
}

impl std::fmt::Debug for BitVec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BitVec({} bits)", self.len)
    }
}

impl BitVec {
    /// `len` zero bits.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        Self {
            words: vec![0; len.div_ceil(64)],
            len,
        }
    }

    /// Bit `i` is `f(i)`.
    #[must_use]
    pub fn from_fn(len: usize, mut f: impl FnMut(usize) -> bool) -> Self {
        let mut bits = Self::zeros(len);
        for (w, word) in bits.words.iter_mut().enumerate() {
            let count = 64.min(len - w * 64);
            *word = (0..count).fold(0, |acc, b| acc | u64::from(f(w * 64 + b)) << b);
        }
        bits
    }

    /// From words; bits beyond `len` are cleared.
    ///
    /// # Panics
    /// If there are not exactly `⌈len/64⌉` words.
    #[must_use]
    pub fn from_words(words: Vec<u64>, len: usize) -> Self {
        assert_eq!(words.len(), len.div_ceil(64), "words for {len} bits");
        let mut bits = Self { words, len };
        bits.clear_padding();
        bits
    }

    /// `len` uniform bits.
    #[must_use]
    pub fn random(prg: &mut Prg, len: usize) -> Self {
        let mut words = vec![0; len.div_ceil(64)];
        prg.fill_u64(&mut words);
        Self::from_words(words, len)
    }

    /// Number of bits.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bits.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`.
    ///
    /// # Panics
    /// If `i` is out of range.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> bool {
        assert!(i < self.len, "bit {i} of {}", self.len);
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// Sets bit `i`, without a branch on `bit`.
    ///
    /// # Panics
    /// If `i` is out of range.
    #[inline]
    pub fn set(&mut self, i: usize, bit: bool) {
        assert!(i < self.len, "bit {i} of {}", self.len);
        let word = &mut self.words[i / 64];
        *word = *word & !(1 << (i % 64)) | u64::from(bit) << (i % 64);
    }

    /// The words; the padding of the last one is zero.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The words to write into. Whoever sets a bit beyond the length calls [`Self::clear_padding`].
    #[inline]
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Clears the bits beyond the length.
    #[inline]
    pub fn clear_padding(&mut self) {
        if !self.len.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.len % 64)) - 1;
        }
    }

    fn zip_assign(&mut self, other: &Self, op: impl Fn(u64, u64) -> u64) {
        assert_eq!(self.len, other.len, "bit vectors of one length");
        for (a, &b) in self.words.iter_mut().zip(&other.words) {
            *a = op(*a, b);
        }
    }

    /// `self ⊕= other`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn xor_assign(&mut self, other: &Self) {
        self.zip_assign(other, |a, b| a ^ b);
    }

    /// `self ∧= other`.
    ///
    /// # Panics
    /// If the lengths differ.
    #[inline]
    pub fn and_assign(&mut self, other: &Self) {
        self.zip_assign(other, |a, b| a & b);
    }

    /// Flips every bit.
    pub fn not_assign(&mut self) {
        self.words.iter_mut().for_each(|w| *w = !*w);
        self.clear_padding();
    }

    /// `⌈len/8⌉` bytes, least significant bit first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(self.len.div_ceil(8));
        bytes
    }

    /// Inverse of [`Self::to_bytes`]; `None` if the number of bytes is wrong or a padding bit is set.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], len: usize) -> Option<Self> {
        if bytes.len() != len.div_ceil(8) {
            return None;
        }
        let words = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .collect();
        let given = Self { words, len };
        let mut clean = given.clone();
        clean.clear_padding();
        (clean == given).then_some(given)
    }

    /// The bits in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.words[i / 64] >> (i % 64) & 1 == 1)
    }

    /// Number of ones.
    #[must_use]
    pub fn count_ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Appends the bits of `other`.
    pub fn extend_bits(&mut self, other: &Self) {
        let shift = self.len % 64;
        if shift == 0 {
            self.words.extend_from_slice(&other.words);
        } else {
            for &word in &other.words {
                if let Some(last) = self.words.last_mut() {
                    *last |= word << shift;
                }
                self.words.push(word >> (64 - shift));
            }
        }
        self.len += other.len;
        self.words.truncate(self.len.div_ceil(64));
    }

    /// Bits `start .. start + len`.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn slice(&self, start: usize, len: usize) -> Self {
        assert!(
            start + len <= self.len,
            "bits {start}..{} of {}",
            start + len,
            self.len
        );
        let (first, shift) = (start / 64, start % 64);
        let words = (0..len.div_ceil(64))
            .map(|w| {
                let low = self.words[first + w] >> shift;
                match self.words.get(first + w + 1) {
                    Some(&next) if shift > 0 => low | next << (64 - shift),
                    _ => low,
                }
            })
            .collect();
        Self::from_words(words, len)
    }
}

impl FromIterator<bool> for BitVec {
    fn from_iter<I: IntoIterator<Item = bool>>(iter: I) -> Self {
        let mut words = Vec::new();
        let mut len = 0;
        for bit in iter {
            if len % 64 == 0 {
                words.push(0);
            }
            words[len / 64] |= u64::from(bit) << (len % 64);
            len += 1;
        }
        Self { words, len }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_vector_of_bools(a in prop::collection::vec(any::<bool>(), 0..300),
                                         b in prop::collection::vec(any::<bool>(), 0..300),
                                         cut in any::<prop::sample::Index>()) {
            let x: BitVec = a.iter().copied().collect();
            prop_assert_eq!(&x, &BitVec::from_fn(a.len(), |i| a[i]));
            prop_assert_eq!(x.iter().collect::<Vec<_>>(), a.clone());
            prop_assert_eq!(BitVec::from_bytes(&x.to_bytes(), a.len()), Some(x.clone()));
            let mut joined = x.clone();
            joined.extend_bits(&b.iter().copied().collect());
            let both: Vec<bool> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&joined, &both.iter().copied().collect::<BitVec>());
            let start = cut.index(both.len() + 1);
            prop_assert_eq!(joined.slice(start, both.len() - start), both[start..].iter().copied().collect());
            let mut flipped = x.clone();
            flipped.not_assign();
            prop_assert_eq!(flipped.count_ones(), a.len() - x.count_ones());
        }
    }

    #[test]
    fn padding_bits_are_refused() {
        assert!(BitVec::from_bytes(&[0b1000], 3).is_none());
        assert!(BitVec::from_bytes(&[0, 0], 8).is_none());
    }
}
