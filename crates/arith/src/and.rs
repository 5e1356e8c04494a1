//! AND of XOR-shared bits.
//!
//! Computes [x·y_t], t < m, for shared bits x and y_0 … y_{m−1}, by Beaver triples ([Beaver, CRYPTO'91]; from
//! random OTs as in [Asharov et al., CCS'13]) that share their left factor.
//!
//! ```text
//! preprocessing: one random OT each way; P has pads (r0, r1) of the one and (choice, pad) of the other
//!     a_P = choice      b_P[t] = r0[t] ⊕ r1[t]      c_P[t] = a_P·b_P[t] ⊕ r0[t] ⊕ pad[t]
//! online:  C → S and S → C:  x_P ⊕ a_P,  y_P[t] ⊕ b_P[t]          d = x ⊕ a,  e[t] = y[t] ⊕ b[t]
//!     z_P[t] = c_P[t] ⊕ d·b_P[t] ⊕ e[t]·a_P (⊕ d·e[t] at C)
//! ```
//!
//! Preprocessing: nothing but the two OTs: a's share is the choice bit itself, b's comes from the sender's
//! pads. Online: 2 + 2m bits, 1 round.
//!
//! Security: d and e are masked by a and b. b_P is hidden from the peer, who knows one pad of the two; a_P is
//! the peer's unseen choice.

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::error::{ArithError, check_len, check_range};
use crate::pads::{self, Items};
use crate::wire;

const OPEN: Label = Label::new("arith/and/open");

/// Prepared ANDs of one left bit with several right bits, for a batch.
pub struct AndShared {
    role: Role,
    a: BitVec,
    b: Vec<BitVec>,
    c: Vec<BitVec>,
}

impl AndShared {
    /// Prepares `batch` ANDs of one left bit with `rights` (1 to 128) right bits.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        rights: usize,
        batch: usize,
    ) -> Result<AndShared, ArithError> {
        check_range(
            "right operands of a shared AND",
            1,
            128,
            rights.try_into().unwrap_or(u32::MAX),
        )?;
        let mut a = BitVec::zeros(batch);
        let mut b = vec![BitVec::zeros(batch); rights];
        let mut c_sent = vec![BitVec::zeros(batch); rights];
        let mut c = vec![BitVec::zeros(batch); rights];
        pads::both(
            ch,
            ot,
            Items::single(batch),
            |start, zeros, ones| {
                for (word, (z, o)) in zeros.chunks(64).zip(ones.chunks(64)).enumerate() {
                    for (t, (b, c)) in b.iter_mut().zip(&mut c_sent).enumerate() {
                        let (z, o) = (pads::gather(z, t as u32), pads::gather(o, t as u32));
                        b.words_mut()[start / 64 + word] = z ^ o;
                        c.words_mut()[start / 64 + word] = z;
                    }
                }
            },
            |start, choices, pads| {
                for (word, (choice, pad)) in choices.chunks(64).zip(pads.chunks(64)).enumerate() {
                    a.words_mut()[start / 64 + word] = pads::gather_choices(choice);
                    for (t, c) in c.iter_mut().enumerate() {
                        c.words_mut()[start / 64 + word] = pads::gather(pad, t as u32);
                    }
                }
            },
        )?;
        for ((c, c_sent), b) in c.iter_mut().zip(&c_sent).zip(&b) {
            c.xor_assign(c_sent);
            for ((c, b), a) in c.words_mut().iter_mut().zip(b.words()).zip(a.words()) {
                *c ^= a & b;
            }
        }
        Ok(AndShared {
            role: ot.role(),
            a,
            b,
            c,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(rights: usize, batch: usize) -> PhasedCost {
        let bits = wire::wire_bools(Self::opened_len(rights, batch));
        PhasedCost {
            prep: Self::prep_cost(batch),
            online: Cost {
                client_bits: bits,
                server_bits: bits,
                rounds: 1,
                ..Cost::default()
            },
        }
    }

    pub(crate) fn prep_cost(batch: usize) -> Cost {
        Cost {
            cots_client: batch as u64,
            cots_server: batch as u64,
            ..Cost::default()
        }
    }

    /// Bits each party sends to open a batch.
    pub(crate) fn opened_len(rights: usize, batch: usize) -> usize {
        (1 + rights) * batch
    }

    /// Shares of x·y for each y of `ys`.
    pub fn run(
        self,
        ch: &mut Channel,
        x: &BitVec,
        ys: &[&BitVec],
    ) -> Result<Vec<BitVec>, ArithError> {
        let mut opened = self.masked(x, ys)?;
        opened.xor_assign(&wire::exchange_bits(ch, OPEN, &opened)?);
        Ok(self.finish(&opened))
    }

    /// This party's share of (d, e_0, e_1, …), for the caller to open.
    pub(crate) fn masked(&self, x: &BitVec, ys: &[&BitVec]) -> Result<BitVec, ArithError> {
        check_len("right operands of a shared AND", self.b.len(), ys.len())?;
        check_len("left bits of an AND", self.a.len(), x.len())?;
        let mut out = x.clone();
        out.xor_assign(&self.a);
        for (y, b) in ys.iter().zip(&self.b) {
            check_len("right bits of an AND", self.a.len(), y.len())?;
            let mut e = (*y).clone();
            e.xor_assign(b);
            out.extend_bits(&e);
        }
        Ok(out)
    }

    /// Shares of the products from the opened (d, e_0, e_1, …).
    pub(crate) fn finish(self, opened: &BitVec) -> Vec<BitVec> {
        let len = self.a.len();
        let d = opened.slice(0, len);
        // d·e belongs into one party's share only.
        let with_e = if self.role == Role::Client {
            u64::MAX
        } else {
            0
        };
        let mut out = self.c;
        for (t, (z, b)) in out.iter_mut().zip(&self.b).enumerate() {
            let e = opened.slice((t + 1) * len, len);
            let words = z
                .words_mut()
                .iter_mut()
                .zip(b.words())
                .zip(e.words())
                .zip(d.words())
                .zip(self.a.words());
            for ((((z, b), e), d), a) in words {
                *z ^= (d & (b ^ (e & with_e))) ^ (e & a);
            }
        }
        out
    }
}

/// Prepared ANDs of pairs of bits: [`AndShared`] with one right operand.
pub struct And(AndShared);

impl And {
    /// Prepares `batch` ANDs.
    pub fn prepare(ch: &mut Channel, ot: &mut Ot, batch: usize) -> Result<And, ArithError> {
        AndShared::prepare(ch, ot, 1, batch).map(And)
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(batch: usize) -> PhasedCost {
        AndShared::cost(1, batch)
    }

    /// Shares of x·y, bit by bit.
    pub fn run(self, ch: &mut Channel, x: &BitVec, y: &BitVec) -> Result<BitVec, ArithError> {
        let mut products = self.0.run(ch, x, &[y])?;
        Ok(products.swap_remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share_bits;
    use crate::testing::{BATCHES, both, prg, xor};

    #[test]
    fn and_is_and() {
        for batch in BATCHES {
            let mut prg = prg(batch);
            let (x, y) = (
                BitVec::random(&mut prg, batch),
                BitVec::random(&mut prg, batch),
            );
            let (xs, ys) = (share_bits(&mut prg, &x), share_bits(&mut prg, &y));
            let (c, s) = both(
                And::cost(batch),
                |ch, ot| And::prepare(ch, ot, batch),
                |ch, p, role| p.run(ch, role.pick(&xs), role.pick(&ys)),
            );
            assert!(xor(&c, &s) == BitVec::from_fn(batch, |i| x.get(i) & y.get(i)));
        }
    }

    #[test]
    fn shared_left_operand() {
        for (rights, batch) in [(2, 1), (2, 1000), (3, 64), (128, 65)] {
            let mut prg = prg(batch);
            let x = BitVec::random(&mut prg, batch);
            let ys: Vec<_> = (0..rights)
                .map(|_| BitVec::random(&mut prg, batch))
                .collect();
            let xs = share_bits(&mut prg, &x);
            let split: Vec<_> = ys.iter().map(|y| share_bits(&mut prg, y)).collect();
            let (c, s) = both(
                AndShared::cost(rights, batch),
                |ch, ot| AndShared::prepare(ch, ot, rights, batch),
                |ch, p, role| {
                    let mine: Vec<_> = split.iter().map(|pair| role.pick(pair)).collect();
                    p.run(ch, role.pick(&xs), &mine)
                },
            );
            for (t, y) in ys.iter().enumerate() {
                assert!(xor(&c[t], &s[t]) == BitVec::from_fn(batch, |i| x.get(i) & y.get(i)));
            }
        }
    }

    #[test]
    fn wrong_shapes_are_errors() {
        both(
            PhasedCost {
                prep: AndShared::prep_cost(8),
                online: Cost::default(),
            },
            |ch, ot| AndShared::prepare(ch, ot, 2, 8),
            |ch, p, _| {
                let (x, y) = (BitVec::zeros(8), BitVec::zeros(7));
                assert!(matches!(
                    p.run(ch, &x, &[&x, &y]),
                    Err(ArithError::Length { .. })
                ));
                Ok(())
            },
        );
    }
}
