//! Products of a bit known to one party and ring elements known to the other, both chosen online, in one
//! round.
//!
//! ```text
//! preprocessing: one random OT: sender (r0, r1), receiver (c, r_c), cut to words of the rings;   ρ = r1 − r0
//! online:   receiver → sender:  f = b ⊕ c                 1 bit
//!           sender → receiver:  δ = Δ − ρ                  l bits a word
//!           receiver's share of b·Δ: (1 − 2f)·(r_c + c·δ)         sender's: f·Δ − (1 − 2f)·r0
//! ```
//!
//! r_c = r0 + c·ρ, so that r_c + c·δ = r0 + c·Δ; and b = f + (1 − 2f)·c.
//!
//! Security: f is masked by c, and Δ by ρ: the receiver has only one of r0 and r1.

use volvelle_net::Channel;
use volvelle_ot::Ot;
use volvelle_prim::{BitVec, Block, pack};

use zeroize::Zeroizing;

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
pub(crate) fn spread(bits: &BitVec, i: usize) -> u64 {
    u64::from(bits.get(i)).wrapping_neg()
}

/// The bits that `count` words of each ring take on the wire.
pub(crate) fn message_bits(rings: &[Ring], count: usize) -> u64 {
    rings.iter().map(|r| wire::wire_bits(count, r.bits())).sum()
}

/// −x where `flip` is all ones, not reduced.
pub(crate) fn negate_if(flip: u64, x: u64) -> u64 {
    (x ^ flip).wrapping_sub(flip)
}

/// The sender's half of a batch.
pub(crate) struct WordSender {
    rings: Vec<Ring>,
    /// r0.
    zeros: Zeroizing<Vec<Vec<u64>>>,
    /// ρ.
    steps: Zeroizing<Vec<Vec<u64>>>,
}

/// The receiver's half of a batch.
pub(crate) struct WordReceiver {
    rings: Vec<Ring>,
    choices: BitVec,
    pads: Zeroizing<Vec<Vec<u64>>>,
}

/// Fills `rings.len()` rows of words from a chunk of pads.
fn store(rows: &mut [Vec<u64>], rings: &[Ring], start: usize, pads: &[Block]) {
    for (j, pad) in pads.chunks(width(rings)).enumerate() {
        for (k, (row, ring)) in rows.iter_mut().zip(rings).enumerate() {
            row[start + j] = ring.reduce(word(pad, k));
        }
    }
}

impl WordSender {
    fn empty(rings: &[Ring], batch: usize) -> WordSender {
        let rows = Zeroizing::new(vec![vec![0; batch]; rings.len()]);
        WordSender {
            rings: rings.to_vec(),
            zeros: rows.clone(),
            steps: rows,
        }
    }

    fn store(&mut self, start: usize, zeros: &[Block], ones: &[Block]) {
        store(&mut self.zeros, &self.rings, start, zeros);
        store(&mut self.steps, &self.rings, start, ones);
        let end = start + zeros.len() / width(&self.rings);
        for ((steps, zeros), ring) in self
            .steps
            .iter_mut()
            .zip(self.zeros.iter())
            .zip(&self.rings)
        {
            for (step, zero) in steps[start..end].iter_mut().zip(&zeros[start..end]) {
                *step = ring.sub(*step, *zero);
            }
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
            this.store(start, zeros, ones)
        })?;
        Ok(this)
    }

    /// Appends the message to the receiver.
    pub fn mask(&self, deltas: &[Vec<u64>], message: &mut Vec<u8>) {
        for ((ring, steps), deltas) in self.rings.iter().zip(self.steps.iter()).zip(deltas) {
            let masked: Vec<u64> = deltas
                .iter()
                .zip(steps)
                .map(|(&d, &step)| ring.sub(d, step))
                .collect();
            pack::pack_append(&masked, ring.bits(), message);
        }
    }

    /// This party's shares, for ring k of bit·deltas[k], from the receiver's message.
    pub fn finish(mut self, fix: &BitVec, deltas: &[Vec<u64>]) -> Vec<Vec<u64>> {
        let mut shares = std::mem::take(&mut *self.zeros);
        for ((share, deltas), ring) in shares.iter_mut().zip(deltas).zip(&self.rings) {
            for (i, (s, delta)) in share.iter_mut().zip(deltas).enumerate() {
                let flip = spread(fix, i);
                *s = ring.sub(delta & flip, negate_if(flip, *s));
            }
        }
        shares
    }
}

impl WordReceiver {
    fn empty(rings: &[Ring], batch: usize) -> WordReceiver {
        let pads = Zeroizing::new(vec![vec![0; batch]; rings.len()]);
        WordReceiver {
            rings: rings.to_vec(),
            choices: BitVec::zeros(batch),
            pads,
        }
    }

    fn store(&mut self, start: usize, choices: &[u8], pads: &[Block]) {
        for (k, choices) in choices.chunks(64).enumerate() {
            self.choices.words_mut()[start / 64 + k] = pads::gather_choices(choices);
        }
        store(&mut self.pads, &self.rings, start, pads);
    }

    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        rings: &[Ring],
        batch: usize,
    ) -> Result<WordReceiver, ArithError> {
        let mut this = WordReceiver::empty(rings, batch);
        pads::recv(ch, ot, items(rings, batch), |start, choices, pads| {
            this.store(start, choices, pads)
        })?;
        Ok(this)
    }

    /// The message to the sender.
    pub fn fix(&self, bits: &BitVec) -> BitVec {
        let mut fix = bits.clone();
        fix.xor_assign(&self.choices);
        fix
    }

    /// Bytes of the sender's message.
    pub fn message_len(&self) -> usize {
        (message_bits(&self.rings, self.choices.len()) / 8) as usize
    }

    /// This party's shares, from its own and the sender's message.
    pub fn finish(mut self, fix: &BitVec, message: &[u8]) -> Vec<Vec<u64>> {
        let mut shares = std::mem::take(&mut *self.pads);
        let mut rest = message;
        for (share, ring) in shares.iter_mut().zip(&self.rings) {
            let (bytes, tail) = rest.split_at(pack::packed_len(share.len(), ring.bits()));
            rest = tail;
            let deltas = wire::unpack_words(*ring, bytes, share.len());
            for (i, (s, delta)) in share.iter_mut().zip(deltas).enumerate() {
                let chosen = s.wrapping_add(delta & spread(&self.choices, i));
                *s = ring.reduce(negate_if(spread(fix, i), chosen));
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
        |start, zeros, ones| sender.store(start, zeros, ones),
        |start, choices, pads| receiver.store(start, choices, pads),
    )?;
    Ok((sender, receiver))
}
