//! Additive shares of the product of a bit known to the client and a bit known to the server.
//!
//! The product of one OT ([`crate::words`]) whose correlation is the client's bit and whose choice is the server's.
//! Several products, each with its own bits and ring, go in the same messages.
//!
//! Online: 1 + l bits a product, 2 rounds, 1 OT with the client as sender.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, pack};

use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::ring::Ring;
use crate::wire;
use crate::words::{self, WordReceiver, WordSender};

const FIX: Label = Label::new("arith/bit-product/fix");
const ANSWER: Label = Label::new("arith/bit-product/answer");

enum Half {
    Client(Vec<WordSender>),
    Server(Vec<WordReceiver>),
}

/// Prepared products of bits, one batch for each of several rings.
pub struct BitProduct {
    rings: Vec<Ring>,
    batch: usize,
    half: Half,
}

impl BitProduct {
    /// Prepares `batch` products in each of `rings`.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        rings: &[Ring],
        batch: usize,
    ) -> Result<BitProduct, ArithError> {
        let half = match ot.role() {
            volvelle_net::Role::Client => {
                let halves = rings
                    .iter()
                    .map(|&r| WordSender::prepare(ch, ot, &[r], batch));
                Half::Client(halves.collect::<Result<_, _>>()?)
            }
            volvelle_net::Role::Server => {
                let halves = rings
                    .iter()
                    .map(|&r| WordReceiver::prepare(ch, ot, &[r], batch));
                Half::Server(halves.collect::<Result<_, _>>()?)
            }
        };
        Ok(BitProduct {
            rings: rings.to_vec(),
            batch,
            half,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(rings: &[Ring], batch: usize) -> PhasedCost {
        let fix = wire::wire_bools(rings.len() * batch);
        PhasedCost {
            prep: Cost {
                cots_client: (rings.len() * batch) as u64,
                ..Cost::default()
            },
            online: Cost {
                client_bits: words::message_bits(rings, batch),
                server_bits: fix,
                rounds: 2,
                ..Cost::default()
            },
        }
    }

    /// Who speaks when in `run`.
    pub fn flow(flow: &mut Flow) {
        flow.server_sends();
        flow.client_sends();
    }

    /// Shares of own ∧ peer's bit; `own[k]` is this party's bit of the products in ring k.
    pub fn run(self, ch: &mut Channel, own: &[&BitVec]) -> Result<Vec<Vec<u64>>, ArithError> {
        check_len("batches of bit products", self.rings.len(), own.len())?;
        for bits in own {
            check_len("bits of a product", self.batch, bits.len())?;
        }
        match self.half {
            Half::Client(senders) => {
                let fix = wire::recv_bits(ch, FIX, self.rings.len() * self.batch)?;
                let mut message = Vec::new();
                let mut shares = Vec::with_capacity(own.len());
                for (k, (sender, bits)) in senders.into_iter().zip(own).enumerate() {
                    let delta = bits.iter().map(u64::from).collect();
                    let (bytes, share) =
                        sender.answer(&fix.slice(k * self.batch, self.batch), &[delta]);
                    message.extend_from_slice(&bytes);
                    shares.extend(share);
                }
                wire::send_bytes(ch, ANSWER, &message)?;
                Ok(shares)
            }
            Half::Server(receivers) => {
                let mut fix = BitVec::zeros(0);
                for (receiver, bits) in receivers.iter().zip(own) {
                    fix.extend_bits(&receiver.fix(bits));
                }
                wire::send_bits(ch, FIX, &fix)?;
                let len = self
                    .rings
                    .iter()
                    .map(|r| pack::packed_len(self.batch, r.bits()))
                    .sum();
                let message = wire::recv_bytes(ch, ANSWER, len)?;
                let mut rest = message.as_slice();
                let mut shares = Vec::with_capacity(own.len());
                for (receiver, bits) in receivers.into_iter().zip(own) {
                    let (bytes, tail) = rest.split_at(receiver.answer_len());
                    rest = tail;
                    shares.extend(receiver.finish(bits, bytes));
                }
                Ok(shares)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{BATCHES, add, both, prg};

    #[test]
    fn products_of_known_bits() {
        for batch in BATCHES {
            let rings = [Ring::new(1).unwrap(), Ring::new(13).unwrap(), Ring::Z64];
            let mut prg = prg(batch);
            let bits: Vec<_> = rings
                .iter()
                .map(|_| {
                    (
                        BitVec::random(&mut prg, batch),
                        BitVec::random(&mut prg, batch),
                    )
                })
                .collect();
            let (c, s) = both(
                BitProduct::cost(&rings, batch),
                |ch, ot| BitProduct::prepare(ch, ot, &rings, batch),
                |ch, p, side| {
                    p.run(
                        ch,
                        &bits.iter().map(|pair| side.pick(pair)).collect::<Vec<_>>(),
                    )
                },
            );
            for (k, ring) in rings.iter().enumerate() {
                let expected: Vec<_> = (0..batch)
                    .map(|i| u64::from(bits[k].0.get(i) & bits[k].1.get(i)))
                    .collect();
                assert_eq!(add(*ring, &c[k], &s[k]), expected);
            }
        }
    }
}
