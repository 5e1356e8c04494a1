//! Additive shares of the product of a bit known to the client and a bit known to the server.
//!
//! The product of one OT ([`crate::words`]) whose correlation is the client's bit and whose choice is the
//! server's. Several products, each with its own bits and ring, go in the same messages.
//!
//! Online: 1 + l bits a product, 1 round, 1 OT with the client as sender.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::ring::Ring;
use crate::wire;
use crate::words::{self, WordReceiver, WordSender};

const FIX: Label = Label::new("arith/bit-product/fix");
const MASKED: Label = Label::new("arith/bit-product/masked");

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
                rounds: 1,
                ..Cost::default()
            },
        }
    }

    /// Who speaks when in `run`.
    pub fn flow(flow: &mut Flow) {
        flow.exchange(1);
    }

    /// Shares of own ∧ peer's bit; `own[k]` is this party's bit of the products in ring k.
    pub fn run(self, ch: &mut Channel, own: &[&BitVec]) -> Result<Vec<Vec<u64>>, ArithError> {
        check_len("batches of bit products", self.rings.len(), own.len())?;
        for bits in own {
            check_len("bits of a product", self.batch, bits.len())?;
        }
        match self.half {
            Half::Client(senders) => client(ch, senders, own),
            Half::Server(receivers) => server(ch, receivers, own),
        }
    }
}

fn client(
    ch: &mut Channel,
    senders: Vec<WordSender>,
    own: &[&BitVec],
) -> Result<Vec<Vec<u64>>, ArithError> {
    let deltas: Vec<[Vec<u64>; 1]> = own
        .iter()
        .map(|bits| [bits.iter().map(u64::from).collect()])
        .collect();
    let mut message = Vec::new();
    for (sender, deltas) in senders.iter().zip(&deltas) {
        sender.mask(deltas, &mut message);
    }
    wire::send_bytes(ch, MASKED, &message)?;
    let fix = wire::recv_bits(ch, FIX, own.iter().map(|bits| bits.len()).sum())?;
    let products =
        senders
            .into_iter()
            .zip(&deltas)
            .enumerate()
            .flat_map(|(k, (sender, deltas))| {
                let batch = deltas[0].len();
                sender.finish(&fix.slice(k * batch, batch), deltas)
            });
    Ok(products.collect())
}

fn server(
    ch: &mut Channel,
    receivers: Vec<WordReceiver>,
    own: &[&BitVec],
) -> Result<Vec<Vec<u64>>, ArithError> {
    let fixes: Vec<BitVec> = receivers
        .iter()
        .zip(own)
        .map(|(receiver, bits)| receiver.fix(bits))
        .collect();
    let mut fix = BitVec::zeros(0);
    fixes.iter().for_each(|bits| fix.extend_bits(bits));
    wire::send_bits(ch, FIX, &fix)?;
    let message = wire::recv_bytes(
        ch,
        MASKED,
        receivers.iter().map(WordReceiver::message_len).sum(),
    )?;
    let mut rest = message.as_slice();
    let products = receivers
        .into_iter()
        .zip(&fixes)
        .flat_map(|(receiver, fix)| {
            let (bytes, tail) = rest.split_at(receiver.message_len());
            rest = tail;
            receiver.finish(fix, bytes)
        });
    Ok(products.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{BATCHES, add, both, prg};

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
