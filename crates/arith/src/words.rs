//! Products of a bit known to one party and ring elements known to the other, the choice being made online.
//!
//! ```text
//! preprocessing: one random OT: sender (r0, r1), receiver (c, r_c), cut to words of the rings
//! online:   receiver → sender:  f = b ⊕ c                                       1 bit
//!           sender → receiver:  u = r_f + Δ − r_{1⊕f}                            l bits a word
//!           sender's share: −r_f;  receiver's: r_c + b·u
//! ```
//!
//! As c = b ⊕ f, the receiver has r_f if b = 0, and r_{1⊕f} + u = r_f + Δ if b = 1.
//!
//! Security: f is masked by c, and u by the pad that the receiver does not have.

use volvelle_net::Channel;
use volvelle_ot::Ot;
use volvelle_prim::{BitVec, Block, pack};

use crate::error::ArithError;
use crate::pads::{self, Items};
use crate::ring::Ring;
use crate::wire;

/// Word `k` of a pad.
fn word(blocks: &[Block], k: usize) -> u64 {
    let block = blocks[k / 2].0;
    (block >> (64 * (k % 2))) as u64
}

/// Blocks of a pad with one word for each ring.
fn width(rings: &[Ring]) -> usize {
    rings.len().div_ceil(2).max(1)
}

fn items(rings: &[Ring], batch: usize) -> Items {
    Items {
        count: batch,
        ots: 1,
        width: width(rings),
    }
}

/// All zeros or all ones.
fn spread(bits: &BitVec, i: usize) -> u64 {
    u64::from(bits.get(i)).wrapping_neg()
}

/// The bits that `count` words of each ring take on the wire.
pub(crate) fn message_bits(rings: &[Ring], count: usize) -> u64 {
    rings.iter().map(|r| wire::wire_bits(count, r.bits())).sum()
}

fn pack_all(rings: &[Ring], words: &[Vec<u64>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (ring, words) in rings.iter().zip(words) {
        pack::pack_append(words, ring.bits(), &mut bytes);
    }
    bytes
}

/// The sender's half of a batch.
pub(crate) struct WordSender {
    rings: Vec<Ring>,
    zeros: Vec<Vec<u64>>,
    ones: Vec<Vec<u64>>,
}

/// The receiver's half of a batch.
pub(crate) struct WordReceiver {
    rings: Vec<Ring>,
    choices: BitVec,
    pads: Vec<Vec<u64>>,
}

/// Fills `rings.len()` rows of words from chunks of pads.
fn store(rows: &mut [Vec<u64>], rings: &[Ring], start: usize, pads: &[Block]) {
    for (j, pad) in pads.chunks(width(rings)).enumerate() {
        for (k, (row, ring)) in rows.iter_mut().zip(rings).enumerate() {
            row[start + j] = ring.reduce(word(pad, k));
        }
    }
}

fn store_choices(bits: &mut BitVec, start: usize, choices: &[u8]) {
    for (k, choices) in choices.chunks(64).enumerate() {
        bits.words_mut()[start / 64 + k] = pads::gather_choices(choices);
    }
}

impl WordSender {
    fn empty(rings: &[Ring], batch: usize) -> WordSender {
        let rows = vec![vec![0; batch]; rings.len()];
        WordSender {
            rings: rings.to_vec(),
            zeros: rows.clone(),
            ones: rows,
        }
    }

    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        rings: &[Ring],
        batch: usize,
    ) -> Result<WordSender, ArithError> {
        let mut this = WordSender::empty(rings, batch);
        pads::send(ch, ot, items(rings, batch), |start, zeros, ones| {
            store(&mut this.zeros, rings, start, zeros);
            store(&mut this.ones, rings, start, ones);
        })?;
        Ok(this)
    }

    /// The message to the receiver, and this party's shares: for ring k, of bit·deltas[k].
    pub fn answer(self, fix: &BitVec, deltas: &[Vec<u64>]) -> (Vec<u8>, Vec<Vec<u64>>) {
        let (mut message, mut share) = (self.zeros, self.ones);
        for (k, ring) in self.rings.iter().enumerate() {
            for i in 0..fix.len() {
                let (r0, r1) = (message[k][i], share[k][i]);
                let swap = (r0 ^ r1) & spread(fix, i);
                let (r_f, r_other) = (r0 ^ swap, r1 ^ swap);
                message[k][i] = ring.sub(ring.add(r_f, deltas[k][i]), r_other);
                share[k][i] = ring.neg(r_f);
            }
        }
        (pack_all(&self.rings, &message), share)
    }
}

impl WordReceiver {
    fn empty(rings: &[Ring], batch: usize) -> WordReceiver {
        let pads = vec![vec![0; batch]; rings.len()];
        WordReceiver {
            rings: rings.to_vec(),
            choices: BitVec::zeros(batch),
            pads,
        }
    }

    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        rings: &[Ring],
        batch: usize,
    ) -> Result<WordReceiver, ArithError> {
        let mut this = WordReceiver::empty(rings, batch);
        pads::recv(ch, ot, items(rings, batch), |start, choices, pads| {
            store_choices(&mut this.choices, start, choices);
            store(&mut this.pads, rings, start, pads);
        })?;
        Ok(this)
    }

    /// The message to the sender.
    pub fn fix(&self, bits: &BitVec) -> BitVec {
        let mut fix = bits.clone();
        fix.xor_assign(&self.choices);
        fix
    }

    /// Bytes of the sender's answer.
    pub fn answer_len(&self) -> usize {
        (message_bits(&self.rings, self.choices.len()) / 8) as usize
    }

    /// This party's shares, from the sender's answer.
    pub fn finish(self, bits: &BitVec, answer: &[u8]) -> Vec<Vec<u64>> {
        let mut shares = self.pads;
        let mut rest = answer;
        for (share, ring) in shares.iter_mut().zip(&self.rings) {
            let (bytes, tail) = rest.split_at(pack::packed_len(share.len(), ring.bits()));
            rest = tail;
            let words = wire::unpack_words(*ring, bytes, share.len());
            for (i, (s, u)) in share.iter_mut().zip(words).enumerate() {
                *s = ring.add(*s, u & spread(bits, i));
            }
        }
        shares
    }
}

/// Both halves: this party as sender, and as receiver.
pub(crate) fn prepare_both(
    ch: &mut Channel,
    ot: &mut Ot,
    rings: &[Ring],
    batch: usize,
) -> Result<(WordSender, WordReceiver), ArithError> {
    let mut sender = WordSender::empty(rings, batch);
    let mut receiver = WordReceiver::empty(rings, batch);
    pads::both(
        ch,
        ot,
        items(rings, batch),
        |start, zeros, ones| {
            store(&mut sender.zeros, rings, start, zeros);
            store(&mut sender.ones, rings, start, ones);
        },
        |start, choices, pads| {
            store_choices(&mut receiver.choices, start, choices);
            store(&mut receiver.pads, rings, start, pads);
        },
    )?;
    Ok((sender, receiver))
}
