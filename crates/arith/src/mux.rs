//! Multiplexer: a shared bit times shared words.
//!
//! Computes ⟨b·x⟩ for [b] and ⟨x⟩. As b = b_P + b_Q − 2·b_P·b_Q, the term of P's share is b·x_P = b_P·x_P +
//! b_Q·x_P·(1 − 2b_P), one OT ([`crate::words`]) with P as sender, correlation x_P·(1 − 2b_P) and choice b_Q.
//! (SIRNN, Rathee et al., S&P'21, without the second OT's message.) Several words may share one bit.
//!
//! ```text
//! C ⇄ S:  b_P ⊕ choice_P, masked correlation            1 bit and l bits a word, each way
//! ```
//!
//! Preprocessing: 2 OTs, no bits. Online: 2 + 2·Σl bits, 1 round.
//!
//! Security: bits are masked by unseen choices, correlations by unseen pads.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::ring::Ring;
use crate::wire;
use crate::words::{self, WordReceiver, WordSender};

const MASKED: Label = Label::new("arith/mux/masked");

/// A batch of prepared multiplexers.
pub struct Mux {
    rings: Vec<Ring>,
    batch: usize,
    sender: WordSender,
    receiver: WordReceiver,
}

impl Mux {
    /// Prepares `batch` products of a bit and a word.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        ring: Ring,
        batch: usize,
    ) -> Result<Mux, ArithError> {
        Mux::prepare_many(ch, ot, &[ring], batch)
    }

    /// Prepares `batch` products of a bit and one word of each ring.
    pub fn prepare_many(
        ch: &mut Channel,
        ot: &mut Ot,
        rings: &[Ring],
        batch: usize,
    ) -> Result<Mux, ArithError> {
        let (sender, receiver) = words::prepare_both(ch, ot, rings, batch)?;
        Ok(Mux {
            rings: rings.to_vec(),
            batch,
            sender,
            receiver,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(ring: Ring, batch: usize) -> PhasedCost {
        Mux::cost_many(&[ring], batch)
    }

    /// What `prepare_many` and `run_many` send and consume.
    pub fn cost_many(rings: &[Ring], batch: usize) -> PhasedCost {
        let bits = wire::wire_bools(batch) + words::message_bits(rings, batch);
        PhasedCost {
            prep: Cost {
                cots_client: batch as u64,
                cots_server: batch as u64,
                ..Cost::default()
            },
            online: Cost {
                client_bits: bits,
                server_bits: bits,
                rounds: 1,
                ..Cost::default()
            },
        }
    }

    /// Who speaks when in `run`.
    pub fn flow(flow: &mut Flow) {
        flow.exchange(1);
    }

    /// Shares of b·x.
    pub fn run(
        self,
        ch: &mut Channel,
        bits: &BitVec,
        values: &[u64],
    ) -> Result<Vec<u64>, ArithError> {
        Ok(self.run_many(ch, bits, &[values])?.swap_remove(0))
    }

    /// Shares of b·x_k for each ring k.
    pub fn run_many(
        self,
        ch: &mut Channel,
        bits: &BitVec,
        values: &[&[u64]],
    ) -> Result<Vec<Vec<u64>>, ArithError> {
        check_len("bits of a multiplexer", self.batch, bits.len())?;
        check_len("words of a multiplexer", self.rings.len(), values.len())?;
        for v in values {
            check_len("values of a multiplexer", self.batch, v.len())?;
        }
        let deltas: Vec<Vec<u64>> = values.iter().map(|v| correlations(bits, v)).collect();
        let fix = self.receiver.fix(bits);
        let mut message = fix.to_bytes();
        self.sender.mask(&deltas, &mut message);
        let answer = wire::exchange_bytes(ch, MASKED, &message, message.len())?;
        let (their_fix, masked) = answer.split_at(fix.len().div_ceil(8));
        let their_fix = wire::bits_from(MASKED, their_fix, fix.len())?;
        let mut shares = self.sender.finish(&their_fix, &deltas);
        let received = self.receiver.finish(&fix, masked);
        for (k, share) in shares.iter_mut().enumerate() {
            for (i, s) in share.iter_mut().enumerate() {
                let own = values[k][i] & words::spread(bits, i);
                *s = self.rings[k].reduce(s.wrapping_add(received[k][i]).wrapping_add(own));
            }
        }
        Ok(shares)
    }
}

/// x·(1 − 2b), not reduced.
pub(crate) fn correlations(bits: &BitVec, values: &[u64]) -> Vec<u64> {
    values
        .iter()
        .enumerate()
        .map(|(i, &v)| words::negate_if(words::spread(bits, i), v))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::{share, share_bits};
    use crate::testing::{BATCHES, RINGS, add, both, prg};

    #[test]
    fn selects() {
        for batch in BATCHES {
            for bits in RINGS.into_iter().chain([1]) {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let mut x = vec![0; batch];
                prg.fill_masked(&mut x, bits);
                let b = BitVec::random(&mut prg, batch);
                let (xs, bs) = (share(&mut prg, ring, &x), share_bits(&mut prg, &b));
                let (c, s) = both(
                    Mux::cost(ring, batch),
                    |ch, ot| Mux::prepare(ch, ot, ring, batch),
                    |ch, p, side| p.run(ch, side.pick(&bs), side.words(&xs)),
                );
                let expected: Vec<_> = b.iter().zip(&x).map(|(b, &x)| u64::from(b) * x).collect();
                assert_eq!(add(ring, &c, &s), expected);
            }
        }
    }

    #[test]
    fn several_words_share_a_bit() {
        let (batch, rings) = (
            71,
            [Ring::new(5).unwrap(), Ring::new(37).unwrap(), Ring::Z64],
        );
        let mut prg = prg(1);
        let b = BitVec::random(&mut prg, batch);
        let bs = share_bits(&mut prg, &b);
        let values: Vec<Vec<u64>> = rings
            .iter()
            .map(|r| {
                let mut v = vec![0; batch];
                prg.fill_masked(&mut v, r.bits());
                v
            })
            .collect();
        let split: Vec<_> = rings
            .iter()
            .zip(&values)
            .map(|(r, v)| share(&mut prg, *r, v))
            .collect();
        let (c, s) = both(
            Mux::cost_many(&rings, batch),
            |ch, ot| Mux::prepare_many(ch, ot, &rings, batch),
            |ch, p, side| {
                p.run_many(
                    ch,
                    side.pick(&bs),
                    &split
                        .iter()
                        .map(|x| side.pick(x).as_slice())
                        .collect::<Vec<_>>(),
                )
            },
        );
        for (k, ring) in rings.iter().enumerate() {
            let expected: Vec<_> = b
                .iter()
                .zip(&values[k])
                .map(|(b, &x)| u64::from(b) * x)
                .collect();
            assert_eq!(add(*ring, &c[k], &s[k]), expected);
        }
    }
}
