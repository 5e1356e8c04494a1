//! A shared number times the low bits of another one.
//!
//! Computes ⟨σ·(u mod 2^p)⟩ in Z_{2^w} for ⟨σ⟩ in Z_{2^w}, small p, the low p bits t_C, t_S of the shares of
//! u and their carry [κ] into bit p (a comparison gives it): u mod 2^p = t_C + t_S − 2^p·κ. Cheaper than
//! [`Multiply`](crate::Multiply), as only the p bits of t_C and t_S are multiplied. Each way, Q holding σ_Q
//! and P holding t_P and κ_P:
//!
//! ```text
//! preprocessing: p random OTs; Q has r_{i,0}, r_{i,1}, P has c_i, r_{i,c_i};  ρ = r_{0,1} − r_{0,0}
//!     Q → P:  v_i = r_{i,0} + ρ − r_{i,1}  mod 2^{w−i},  0 < i < p
//!     P has  s_i = r_{i,c_i} + c_i·v_i = r_{i,0} + c_i·ρ
//! online:  P → Q:  f_i = t_{P,i} ⊕ c_i      Q → P:  δ = σ_Q − ρ
//!     t_{P,i}·σ_Q:   P: (1 − 2f_i)·(s_i + c_i·δ)        Q: f_i·σ_Q − (1 − 2f_i)·r_{i,0}
//!     and κ·σ as in [`Mux`](crate::Mux), mod 2^{w−p}, in the same messages
//! ```
//!
//! Preprocessing: 2·Σ_{0<i<p} (w − i) bits, 2(p + 1) OTs, 1 round. Online: 2(p + w) + 2(1 + w − p) = 4w + 2
//! bits, 1 round.
//!
//! Security: v_i is masked by the pad that P does not have, σ_Q by ρ, t_P by the unseen c.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, Block, pack};

use zeroize::Zeroizing;

use crate::error::{ArithError, check_len, check_range};
use crate::flow::Flow;
use crate::mux::correlations;
use crate::pads::{self, Items};
use crate::ring::Ring;
use crate::wire;
use crate::words::{self, WordReceiver, WordSender, negate_if};

const CROSS: Label = Label::new("arith/multiply-low/cross");
const MASKED: Label = Label::new("arith/multiply-low/masked");

/// Prepared products with the low bits of shared numbers.
pub struct MultiplyLow {
    ring: Ring,
    low: Ring,
    /// As Q: for bit i, r_{i,0} of all products; and ρ.
    zeros: Zeroizing<Vec<Vec<u64>>>,
    steps: Zeroizing<Vec<u64>>,
    /// As P: c, and for bit i, s_i of all products.
    choices: Zeroizing<Vec<u64>>,
    chosen: Zeroizing<Vec<Vec<u64>>>,
    /// For κ.
    carry: (WordSender, WordReceiver),
}

fn check(ring: Ring, low_bits: u32) -> Result<(Ring, Ring), ArithError> {
    check_range("low bits of a factor", 1, ring.bits() - 1, low_bits)?;
    Ok((Ring::new(low_bits)?, Ring::new(ring.bits() - low_bits)?))
}

fn items(low: Ring, batch: usize) -> Items {
    Items {
        count: batch,
        ots: low.bits() as usize,
        width: 1,
    }
}

/// Bytes of the v_i of a batch.
fn cross_len(ring: Ring, low: Ring, batch: usize) -> usize {
    (1..low.bits())
        .map(|i| pack::packed_len(batch, ring.bits() - i))
        .sum()
}

/// Bytes of f, then δ; κ's bits and word follow.
fn masked_len(ring: Ring, low: Ring, batch: usize) -> (usize, usize) {
    (
        pack::packed_len(batch, low.bits()),
        pack::packed_len(batch, ring.bits()),
    )
}

impl MultiplyLow {
    /// Prepares `batch` products in `ring` with numbers of `low_bits` (1 to w − 1) bits.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        ring: Ring,
        low_bits: u32,
        batch: usize,
    ) -> Result<MultiplyLow, ArithError> {
        let (low, carry_ring) = check(ring, low_bits)?;
        let rows = vec![vec![0; batch]; low_bits as usize];
        let (mut zeros, mut ones, mut chosen) = (rows.clone(), rows.clone(), rows);
        let mut choices = vec![0; batch];
        let p = low_bits as usize;
        pads::both(
            ch,
            ot,
            items(low, batch),
            |start, r0, r1| {
                transpose(r0, p, start, &mut zeros);
                transpose(r1, p, start, &mut ones);
            },
            |start, c, pads| {
                for (word, c) in choices[start..].iter_mut().zip(c.chunks_exact(p)) {
                    *word = c
                        .iter()
                        .enumerate()
                        .fold(0, |word, (i, &c)| word | u64::from(c & 1) << i);
                }
                transpose(pads, p, start, &mut chosen);
            },
        )?;
        let carry = words::prepare_both(ch, ot, &[carry_ring], batch)?;

        let steps: Vec<u64> = zeros[0]
            .iter()
            .zip(&ones[0])
            .map(|(&r0, &r1)| ring.sub(r1, r0))
            .collect();
        let mut message = Vec::with_capacity(cross_len(ring, low, batch));
        for i in 1..p {
            let column: Vec<u64> = (0..batch)
                .map(|k| zeros[i][k].wrapping_add(steps[k]).wrapping_sub(ones[i][k]))
                .collect();
            pack::pack_append(&column, ring.bits() - i as u32, &mut message);
        }
        let theirs = wire::exchange_bytes(ch, CROSS, &message, message.len())?;
        let mut rest = theirs.as_slice();
        for (i, chosen) in chosen.iter_mut().enumerate().skip(1) {
            let column = Ring::new(ring.bits() - i as u32)?;
            let (bytes, tail) = rest.split_at(pack::packed_len(batch, column.bits()));
            rest = tail;
            for ((s, v), c) in chosen
                .iter_mut()
                .zip(wire::unpack_words(column, bytes, batch))
                .zip(choices.iter())
            {
                *s = s.wrapping_add(v & (c >> i & 1).wrapping_neg());
            }
        }
        Ok(MultiplyLow {
            ring,
            low,
            zeros: zeros.into(),
            steps: steps.into(),
            choices: choices.into(),
            chosen: chosen.into(),
            carry,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(ring: Ring, low_bits: u32, batch: usize) -> Result<PhasedCost, ArithError> {
        let (low, carry_ring) = check(ring, low_bits)?;
        let cross = cross_len(ring, low, batch) as u64 * 8;
        let (fix, masked) = masked_len(ring, low, batch);
        let carry = wire::wire_bools(batch) + words::message_bits(&[carry_ring], batch);
        let online = (fix + masked) as u64 * 8 + carry;
        let cots = (u64::from(low_bits) + 1) * batch as u64;
        Ok(PhasedCost {
            prep: Cost {
                client_bits: cross,
                server_bits: cross,
                rounds: 1,
                cots_client: cots,
                cots_server: cots,
            },
            online: Cost {
                client_bits: online,
                server_bits: online,
                rounds: 1,
                ..Cost::default()
            },
        })
    }

    /// Who speaks when in `run`.
    pub fn flow(flow: &mut Flow) {
        flow.exchange(1);
    }

    /// Shares of σ·(u mod 2^p): `factors` are the shares of σ, `shares` those of u, of which the low p bits
    /// count, `carry` those of the carry into bit p.
    pub fn run(
        self,
        ch: &mut Channel,
        factors: &[u64],
        shares: &[u64],
        carry: &BitVec,
    ) -> Result<Vec<u64>, ArithError> {
        let MultiplyLow {
            ring,
            low,
            zeros,
            steps,
            choices,
            chosen,
            carry: (sender, receiver),
        } = self;
        let batch = steps.len();
        check_len("factors", batch, factors.len())?;
        check_len("numbers to multiply by", batch, shares.len())?;
        check_len("carries", batch, carry.len())?;

        let fix: Vec<u64> = shares
            .iter()
            .zip(choices.iter())
            .map(|(&u, &c)| low.reduce(u ^ c))
            .collect();
        let masked: Vec<u64> = factors
            .iter()
            .zip(steps.iter())
            .map(|(&x, &step)| ring.sub(x, step))
            .collect();
        let carry_fix = receiver.fix(carry);
        let carry_deltas = [correlations(carry, factors)];
        let mut message = wire::pack_words(low, &fix);
        pack::pack_append(&masked, ring.bits(), &mut message);
        message.extend(carry_fix.to_bytes());
        sender.mask(&carry_deltas, &mut message);

        let theirs = wire::exchange_bytes(ch, MASKED, &message, message.len())?;
        let (fix_len, masked_len) = masked_len(ring, low, batch);
        let (their_fix, rest) = theirs.split_at(fix_len);
        let (their_masked, rest) = rest.split_at(masked_len);
        let (their_carry, their_delta) = rest.split_at(batch.div_ceil(8));
        let their_fix = wire::unpack_words(low, their_fix, batch);
        let their_masked = wire::unpack_words(ring, their_masked, batch);
        let their_carry = wire::bits_from(MASKED, their_carry, batch)?;

        let carry_sent = sender.finish(&their_carry, &carry_deltas).swap_remove(0);
        let carry_received = receiver.finish(&carry_fix, their_delta).swap_remove(0);
        let products = (0..batch).map(|k| {
            let own_carry = factors[k] & words::spread(carry, k);
            let carried = own_carry
                .wrapping_add(carry_sent[k])
                .wrapping_add(carry_received[k]);
            // Own times own, own times the peer's f, less 2^p·κ·σ.
            let known = low.reduce(shares[k]).wrapping_add(their_fix[k]);
            let mut sum = factors[k]
                .wrapping_mul(known)
                .wrapping_sub(carried << low.bits());
            for i in 0..zeros.len() {
                let bit = |word: u64| (word >> i & 1).wrapping_neg();
                let received = chosen[i][k].wrapping_add(their_masked[k] & bit(choices[k]));
                let received = negate_if(bit(fix[k]), received);
                let sent = negate_if(bit(their_fix[k]), zeros[i][k]);
                sum = sum.wrapping_add(received.wrapping_sub(sent) << i);
            }
            ring.reduce(sum)
        });
        Ok(products.collect())
    }
}

/// Low words of the pads of successive items, p each, to one row for each of the p.
fn transpose(pads: &[Block], p: usize, start: usize, rows: &mut [Vec<u64>]) {
    for (k, pads) in pads.chunks_exact(p).enumerate() {
        for (row, pad) in rows.iter_mut().zip(pads) {
            row[start + k] = pad.0 as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::{share, share_bits};
    use crate::testing::{BATCHES, add, both, prg};
    use volvelle_prim::mask;

    fn carries(p: u32, x: u64, y: u64) -> bool {
        ((x & mask(p)) + (y & mask(p))) >> p == 1
    }

    fn check(ring: Ring, p: u32, factors: &(Vec<u64>, Vec<u64>), u: &(Vec<u64>, Vec<u64>)) {
        let batch = u.0.len();
        let carry = BitVec::from_fn(batch, |k| carries(p, u.0[k], u.1[k]));
        let carries = share_bits(&mut prg(batch), &carry);
        let (c, s) = both(
            MultiplyLow::cost(ring, p, batch).unwrap(),
            |ch, ot| MultiplyLow::prepare(ch, ot, ring, p, batch),
            |ch, prepared, side| {
                prepared.run(ch, side.words(factors), side.words(u), side.pick(&carries))
            },
        );
        let (x, u) = (
            add(ring, &factors.0, &factors.1),
            add(Ring::Z64, &u.0, &u.1),
        );
        let expected: Vec<u64> = x
            .iter()
            .zip(&u)
            .map(|(&x, &u)| ring.mul(x, u & mask(p)))
            .collect();
        assert_eq!(add(ring, &c, &s), expected, "{ring:?} {p} {batch}");
    }

    #[test]
    fn every_sharing_in_small_rings() {
        for bits in 2..=3u32 {
            for p in 1..bits {
                let (n, m) = (1u64 << bits, 1u64 << p);
                let all =
                    || (0..n * n * m * m).map(|i| (i % n, i / n % n, i / n / n % m, i / n / n / m));
                let factors = all().map(|i| (i.0, i.1)).unzip();
                let u = all().map(|i| (i.2, i.3)).unzip();
                check(Ring::new(bits).unwrap(), p, &factors, &u);
            }
        }
    }

    #[test]
    fn rings_and_batches() {
        for (bits, p) in [(7, 1), (8, 7), (24, 7), (37, 20), (64, 13), (64, 63)] {
            for batch in BATCHES {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let (mut x, mut u) = (vec![0; batch], vec![0; batch]);
                prg.fill_masked(&mut x, bits);
                prg.fill_masked(&mut u, 64);
                (x[0], u[0]) = (ring.mask(), u64::MAX);
                check(
                    ring,
                    p,
                    &share(&mut prg, ring, &x),
                    &share(&mut prg, Ring::Z64, &u),
                );
            }
        }
    }

    #[test]
    fn bad_widths_are_errors() {
        let ring = Ring::new(8).unwrap();
        assert!(MultiplyLow::cost(ring, 0, 1).is_err());
        assert!(MultiplyLow::cost(ring, 8, 1).is_err());
    }
}
