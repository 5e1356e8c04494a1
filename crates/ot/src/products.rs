//! Shared random bits times a shared Δ: what the correlated OTs of both directions are, without any message.
//!
//! Let Δ = Δ_C ⊕ Δ_S' with `Δ_S'` the server's Δ but for bit 0, so that bit 0 of Δ is 1. A COT with the server as sender is `q`
//! at the server and `q ⊕ x_C·Δ_S` at the client, shares of `x_C·Δ_S`; one with the client as sender gives `x_S·Δ_C` likewise.
//! With the products that a party has by itself, `x = x_C ⊕ x_S` has its product with Δ in shares:
//!
//! ```text
//! x·Δ = x_C·Δ_C  ⊕  x_C·Δ_S'  ⊕  x_S·Δ_C  ⊕  x_S·Δ_S'
//!       client      COT           COT         server
//! ```
//!
//! Used for the corrections of distributed point functions (Half-Tree, EUROCRYPT 2023, §5). Rounds: 0. Bits: 0.
//!
//! Security: a share is uniform to its holder, and tells it nothing of the other party's bit or Δ. It is *not* a pad: two shares of one party may
//! differ by what the peer knows. It may enter a sum that is opened where Half-Tree's proof says so: under Δ, hashed. The same COTs
//! also give pads, hashed with a tweak as in [`Ot::send_random`].

use volvelle_net::{Channel, Role};
use volvelle_prim::Block;
use volvelle_prim::hash::Tccr;
use zeroize::Zeroizing;

use crate::session::{CHUNK, check_count};
use crate::{Ot, OtError};

impl Ot {
    /// This party's share of Δ; bit 0 of Δ is 1. One Δ for the whole session, all its lanes.
    ///
    /// # Errors
    /// [`OtError::Unsupported`] in malicious security, as for the products it goes with.
    pub fn delta_share(&self) -> Result<Zeroizing<Block>, OtError> {
        self.check_semi_honest()?;
        let delta = self.sender.delta();
        Ok(Zeroizing::new(match self.role {
            Role::Client => delta,
            Role::Server => without_bit_0(delta),
        }))
    }

    /// What is made of products reveals Δ to a peer that cheats, and with it every OT of the session: see
    /// `docs/security.md`.
    fn check_semi_honest(&self) -> Result<(), OtError> {
        if self.checks.is_some() {
            return Err(OtError::Unsupported {
                what: "products with Δ (lookups by trees) would reveal Δ to a peer that cheats; use another protocol",
            });
        }
        Ok(())
    }

    /// For random bits `x` of the peer's: adds this party's share of `x·(its own share of Δ)` to `products`. Pads of the
    /// same OTs go to `pads` (zeros, ones) if there is room for them: the peer has that of `x`.
    ///
    /// # Errors
    /// As [`Self::send_random`], with a width of 1; [`OtError::Unsupported`] in malicious security.
    pub fn send_products(
        &mut self,
        ch: &mut Channel,
        products: &mut [Block],
        (zeros, ones): (&mut [Block], &mut [Block]),
    ) -> Result<(), OtError> {
        self.check_semi_honest()?;
        check_count("random OTs", products.len() as u64)?;
        check_pads(products.len(), zeros.len())?;
        OtError::check("one-pads of random OTs", zeros.len(), ones.len())?;
        self.guarded(|ot| {
            let delta = ot.sender.delta();
            let mut q = Zeroizing::new([Block::ZERO; CHUNK]);
            for (c, products) in products.chunks_mut(CHUNK).enumerate() {
                let q = &mut q[..products.len()];
                ot.sender.extend(ch, q)?;
                if !zeros.is_empty() {
                    let hash = Tccr {
                        first: ot.tweak(ot.role, ot.sent),
                        width: 1,
                    };
                    let at = c * CHUNK..c * CHUNK + q.len();
                    hash.hash_both(q, delta, &mut zeros[at.clone()], &mut ones[at]);
                }
                Block::xor_into(products, q);
                ot.sent += q.len() as u64;
            }
            Ok(())
        })
    }

    /// For random bits `x` of this party's, made here: sets `bits` and adds this party's share of `x·Δ` to `products`, but
    /// for what [`Self::send_products`] adds. Pads of `x` as there.
    ///
    /// # Errors
    /// As [`Self::recv_random`], with a width of 1; [`OtError::Unsupported`] in malicious security.
    pub fn recv_products(
        &mut self,
        ch: &mut Channel,
        bits: &mut [u8],
        products: &mut [Block],
        pads: &mut [Block],
    ) -> Result<(), OtError> {
        self.check_semi_honest()?;
        check_count("random OTs", products.len() as u64)?;
        check_pads(products.len(), pads.len())?;
        OtError::check("bits of products", products.len(), bits.len())?;
        self.guarded(|ot| {
            let own = ot.delta_share()?;
            let mut r = Zeroizing::new([Block::ZERO; CHUNK]);
            let chunks = products.chunks_mut(CHUNK).zip(bits.chunks_mut(CHUNK));
            for (c, (products, bits)) in chunks.enumerate() {
                let r = &mut r[..products.len()];
                ot.receiver.extend(ch, r)?;
                if !pads.is_empty() {
                    let hash = Tccr {
                        first: ot.tweak(ot.role.other(), ot.received),
                        width: 1,
                    };
                    hash.hash(r, Block::ZERO, &mut pads[c * CHUNK..][..r.len()]);
                }
                for ((product, bit), &r) in products.iter_mut().zip(bits).zip(r.iter()) {
                    *bit = u8::from(r.lsb());
                    let theirs = match ot.role {
                        Role::Client => without_bit_0(r),
                        Role::Server => r,
                    };
                    *product ^= theirs ^ own.keep_if(*bit);
                }
                ot.received += r.len() as u64;
            }
            Ok(())
        })
    }
}

/// The server's Δ has bit 0 set like the client's, so theirs would cancel; the sender's blocks have it clear.
const fn without_bit_0(block: Block) -> Block {
    Block(block.0 & !1)
}

/// Pads are for all OTs or for none.
fn check_pads(products: usize, pads: usize) -> Result<(), OtError> {
    if pads == 0 {
        return Ok(());
    }
    OtError::check("pads of products", products, pads)
}

#[cfg(test)]
mod tests {
    use volvelle_net::testing::run_pair;

    use super::*;
    use crate::ferret::Set;
    use crate::testing::ideal_pair;
    use crate::{OtConfig, Security};

    #[test]
    fn shares_add_up_to_products_and_pads_fit() {
        const COUNT: usize = 2500;
        let run = |ch: &mut Channel, ot: &mut Ot| {
            let mut products = vec![Block::ZERO; COUNT];
            let mut bits = vec![2; COUNT];
            let [mut zeros, mut ones, mut chosen] =
                [const { vec![] }; 3].map(|mut v: Vec<Block>| {
                    v.resize(COUNT, Block::ZERO);
                    v
                });
            for sender in [Role::Client, Role::Server] {
                if ot.role() == sender {
                    ot.send_products(ch, &mut products, (&mut zeros, &mut ones))
                        .unwrap();
                } else {
                    ot.recv_products(ch, &mut bits, &mut products, &mut chosen)
                        .unwrap();
                }
            }
            (
                bits,
                products,
                [zeros, ones],
                chosen,
                *ot.delta_share().unwrap(),
            )
        };
        let (mut a, mut b) = ideal_pair(4);
        let (a, b) = run_pair(|ch| run(ch, &mut a), |ch| run(ch, &mut b));
        let delta = a.4 ^ b.4;
        assert!(delta.lsb());
        for i in 0..COUNT {
            let x = a.0[i] ^ b.0[i];
            assert!(a.1[i] ^ b.1[i] == delta.keep_if(x));
            assert!(a.3[i] == b.2[usize::from(a.0[i])][i]);
            assert!(b.3[i] == a.2[usize::from(b.0[i])][i]);
        }
        assert!(a.0.iter().zip(&b.0).any(|(a, b)| a ^ b == 1));
    }

    #[test]
    fn lengths_must_fit() {
        let (mut ot, _) = ideal_pair(4);
        let mut ch = volvelle_net::testing::scripted(Role::Client, vec![]);
        let (mut two, mut one) = ([Block::ZERO; 2], [Block::ZERO; 1]);
        let refused = ot.recv_products(&mut ch, &mut [0; 2], &mut two, &mut one);
        assert!(matches!(refused, Err(OtError::Shape { .. })));
        let refused = ot.recv_products(&mut ch, &mut [0; 1], &mut two, &mut []);
        assert!(matches!(refused, Err(OtError::Shape { .. })));
    }

    #[test]
    fn malicious_security_refuses_them() {
        let config = OtConfig::ferret(Set::K16).with_security(Security::Malicious);
        let refused = run_pair(
            |ch| {
                let mut ot = Ot::setup(ch, config).unwrap();
                assert!(ot.delta_share().is_err());
                ot.send_products(ch, &mut [Block::ZERO], (&mut [], &mut []))
            },
            |ch| {
                let mut ot = Ot::setup(ch, config).unwrap();
                ot.recv_products(ch, &mut [0], &mut [Block::ZERO], &mut [])
            },
        );
        for refused in [refused.0, refused.1] {
            assert!(matches!(refused, Err(OtError::Unsupported { .. })));
        }
    }
}
