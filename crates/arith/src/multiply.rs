//! Products of shared numbers.
//!
//! Computes ⟨x·y⟩ in Z_{2^l} by a Beaver triple whose cross terms come from OTs (Gilboa, CRYPTO'99):
//!
//! ```text
//! preprocessing, each way: l random OTs; sender Q has r_{i,0}, r_{i,1}, receiver P has bits a_i, r_{i,a_i}
//!     a_P = Σ a_i·2^i                 b_Q = r_{0,1} − r_{0,0}  mod 2^l
//!     Q → P:  u_i = r_{i,0} + b_Q − r_{i,1}  mod 2^{l−i},  0 < i < l
//!     a_P·b_Q = Σ 2^i·(r_{i,a_i} + a_i·u_i)  at P   +   −Σ 2^i·r_{i,0}  at Q             (u_0 = 0)
//!     c_P = a_P·b_P + P's shares of a_P·b_Q and of a_Q·b_P
//! online, both ways:  x_P − a_P,  y_P − b_P                               d = x − a,  e = y − b
//!     z_P = c_P + d·b_P + e·a_P (+ d·e at C)
//! ```
//!
//! Preprocessing: l(l − 1) bits (a's bits are the random choices and b is the first OT's own correlation, so
//! neither is sent), 2l OTs, 1 round. Online: 4l bits, 1 round.
//!
//! Security: u_i is masked by the pad that P does not have; a_P is unseen choices; b_Q is masked from P by
//! r_{0,1⊕a_0}. d and e are masked by a and b.

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{Block, pack};

use zeroize::Zeroizing;

use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::pads::{self, Items};
use crate::ring::Ring;
use crate::wire;

const CROSS: Label = Label::new("arith/multiply/cross");
const OPEN: Label = Label::new("arith/multiply/open");

/// A batch of prepared products.
pub struct Multiply {
    ring: Ring,
    a: Zeroizing<Vec<u64>>,
    b: Zeroizing<Vec<u64>>,
    c: Zeroizing<Vec<u64>>,
}

fn items(ring: Ring, batch: usize) -> Items {
    Items {
        count: batch,
        ots: ring.bits() as usize,
        width: 1,
    }
}

/// Bytes of the u_i of `count` products.
fn cross_len(ring: Ring, count: usize) -> usize {
    (1..ring.bits())
        .map(|bits| pack::packed_len(count, bits))
        .sum()
}

impl Multiply {
    /// Prepares `batch` products.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        ring: Ring,
        batch: usize,
    ) -> Result<Multiply, ArithError> {
        let items = items(ring, batch);
        let (mut a, mut b) = (vec![0; batch], vec![0; batch]);
        let (mut sent, mut received) = (vec![0; batch], vec![0; batch]);
        let mut message = Vec::with_capacity(cross_len(ring, batch));
        pads::both(
            ch,
            ot,
            items,
            |start, zeros, ones| {
                let range = start..start + zeros.len() / items.ots;
                send_cross(
                    ring,
                    zeros,
                    ones,
                    &mut b[range.clone()],
                    &mut sent[range],
                    &mut message,
                );
            },
            |start, choices, pads| {
                let range = start..start + choices.len() / items.ots;
                recv_cross(
                    ring,
                    choices,
                    pads,
                    &mut a[range.clone()],
                    &mut received[range],
                );
            },
        )?;
        let theirs = wire::exchange_bytes(ch, CROSS, &message, message.len())?;
        add_corrections(ring, items, &theirs, &a, &mut received);
        let c = (0..batch).map(|i| {
            ring.reduce(
                sent[i]
                    .wrapping_add(received[i])
                    .wrapping_add(ring.mul(a[i], b[i])),
            )
        });
        Ok(Multiply {
            ring,
            c: Zeroizing::new(c.collect()),
            a: Zeroizing::new(a),
            b: Zeroizing::new(b),
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(ring: Ring, batch: usize) -> PhasedCost {
        let cross = cross_len(ring, batch) as u64 * 8;
        let open = wire::wire_bits(2 * batch, ring.bits());
        let cots = items(ring, batch).ots as u64 * batch as u64;
        PhasedCost {
            prep: Cost {
                client_bits: cross,
                server_bits: cross,
                rounds: 1,
                cots_client: cots,
                cots_server: cots,
            },
            online: Cost {
                client_bits: open,
                server_bits: open,
                rounds: 1,
                ..Cost::default()
            },
        }
    }

    /// Who speaks when in `run`.
    pub fn flow(flow: &mut Flow) {
        flow.exchange(1);
    }

    /// Shares of x·y.
    pub fn run(self, ch: &mut Channel, x: &[u64], y: &[u64]) -> Result<Vec<u64>, ArithError> {
        let Multiply { ring, a, b, c } = self;
        check_len("left factors", a.len(), x.len())?;
        check_len("right factors", a.len(), y.len())?;
        let masked = x
            .iter()
            .zip(a.iter())
            .chain(y.iter().zip(b.iter()))
            .map(|(&v, &mask)| ring.sub(v, mask));
        let masked: Vec<u64> = masked.collect();
        let theirs = wire::exchange_words(ch, OPEN, ring, &masked)?;
        let open = |i: usize| masked[i].wrapping_add(theirs[i]);
        let first = u64::from(ch.role() == Role::Client);
        let products = (0..x.len()).map(|i| {
            let (d, e) = (open(i), open(x.len() + i));
            let products = d.wrapping_mul(b[i]).wrapping_add(e.wrapping_mul(a[i]));
            ring.reduce(
                c[i].wrapping_add(products)
                    .wrapping_add(first.wrapping_mul(d).wrapping_mul(e)),
            )
        });
        Ok(products.collect())
    }
}

/// The sender's half of a chunk: b, the share of a·b, and the u_i column by column.
fn send_cross(
    ring: Ring,
    zeros: &[Block],
    ones: &[Block],
    b: &mut [u64],
    share: &mut [u64],
    message: &mut Vec<u8>,
) {
    let l = ring.bits() as usize;
    let mut column = vec![0; b.len()];
    for i in 0..l {
        for (k, u) in column.iter_mut().enumerate() {
            let (r0, r1) = (zeros[k * l + i].0 as u64, ones[k * l + i].0 as u64);
            if i == 0 {
                b[k] = ring.sub(r1, r0);
            }
            *u = r0.wrapping_add(b[k]).wrapping_sub(r1);
            share[k] = ring.sub(share[k], r0 << i);
        }
        if i > 0 {
            pack::pack_append(&column, ring.bits() - i as u32, message);
        }
    }
}

/// The receiver's half of a chunk: a, and Σ 2^i·r_{i,a_i}.
fn recv_cross(ring: Ring, choices: &[u8], pads: &[Block], a: &mut [u64], share: &mut [u64]) {
    let l = ring.bits() as usize;
    for (k, (choices, pads)) in choices
        .chunks_exact(l)
        .zip(pads.chunks_exact(l))
        .enumerate()
    {
        for (i, (c, pad)) in choices.iter().zip(pads).enumerate() {
            a[k] |= u64::from(c & 1) << i;
            share[k] = ring.add(share[k], (pad.0 as u64) << i);
        }
    }
}

/// Adds Σ 2^i·a_i·u_i to the receiver's shares.
fn add_corrections(ring: Ring, items: Items, message: &[u8], a: &[u64], share: &mut [u64]) {
    let mut rest = message;
    for (start, len) in items.chunks() {
        let mut column = vec![0; len];
        for i in 1..ring.bits() {
            let (bytes, tail) = rest.split_at(pack::packed_len(len, ring.bits() - i));
            rest = tail;
            pack::unpack_into(bytes, ring.bits() - i, &mut column);
            for (k, u) in column.iter().enumerate() {
                let chosen = u & (a[start + k] >> i & 1).wrapping_neg();
                share[start + k] = ring.add(share[start + k], chosen << i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share;
    use crate::testing::{BATCHES, RINGS, add, both, prg};

    fn check(ring: Ring, xs: &(Vec<u64>, Vec<u64>), ys: &(Vec<u64>, Vec<u64>)) {
        let batch = xs.0.len();
        let (c, s) = both(
            Multiply::cost(ring, batch),
            |ch, ot| Multiply::prepare(ch, ot, ring, batch),
            |ch, p, side| p.run(ch, side.words(xs), side.words(ys)),
        );
        let (x, y) = (add(ring, &xs.0, &xs.1), add(ring, &ys.0, &ys.1));
        let expected: Vec<_> = x.iter().zip(&y).map(|(&x, &y)| ring.mul(x, y)).collect();
        assert_eq!(add(ring, &c, &s), expected);
    }

    #[test]
    fn every_sharing_in_small_rings() {
        for bits in 1..=3u32 {
            let n = 1u64 << bits;
            let part = |k: u32| (0..n.pow(4)).map(|i| i / n.pow(k) % n).collect::<Vec<_>>();
            check(
                Ring::new(bits).unwrap(),
                &(part(0), part(1)),
                &(part(2), part(3)),
            );
        }
    }

    #[test]
    fn rings_and_batches() {
        for bits in RINGS {
            for batch in BATCHES {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let (mut x, mut y) = (vec![0; batch], vec![0; batch]);
                prg.fill_masked(&mut x, bits);
                prg.fill_masked(&mut y, bits);
                (x[0], y[0]) = (ring.mask(), ring.mask());
                check(ring, &share(&mut prg, ring, &x), &share(&mut prg, ring, &y));
            }
        }
    }
}
