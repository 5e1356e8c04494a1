//! XOR-shared bits to additive shares in Z_{2^l}.
//!
//! b = b_C + b_S − 2·b_C·b_S, the product by one OT mod 2^{l−1} ([`BitProduct`]).
//!
//! Online: 1 bit from the server, l − 1 bits from the client; 1 round; 1 OT. For l = 1 nothing: the XOR share
//! is the additive one.
//!
//! Security: that of [`BitProduct`].

use volvelle_net::Channel;
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::bit_product::BitProduct;
use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::ring::Ring;

/// A batch of prepared conversions.
pub struct BitToArith {
    ring: Ring,
    batch: usize,
    product: Option<BitProduct>,
}

/// The ring of the product, none for l = 1.
pub(crate) fn product_ring(ring: Ring) -> Option<Ring> {
    Ring::new(ring.bits() - 1).ok()
}

/// A share of b_C + b_S − 2·b_C·b_S from one of b_C·b_S.
pub(crate) fn assemble(ring: Ring, bits: &BitVec, product: &[u64]) -> Vec<u64> {
    bits.iter()
        .zip(product)
        .map(|(b, &p)| ring.sub(u64::from(b), p << 1))
        .collect()
}

impl BitToArith {
    /// Prepares `batch` conversions into `ring`.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        ring: Ring,
        batch: usize,
    ) -> Result<BitToArith, ArithError> {
        let product = product_ring(ring)
            .map(|r| BitProduct::prepare(ch, ot, &[r], batch))
            .transpose()?;
        Ok(BitToArith {
            ring,
            batch,
            product,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(ring: Ring, batch: usize) -> PhasedCost {
        product_ring(ring)
            .map(|r| BitProduct::cost(&[r], batch))
            .unwrap_or_default()
    }

    /// Who speaks when in `run`.
    pub fn flow(ring: Ring, flow: &mut Flow) {
        if product_ring(ring).is_some() {
            BitProduct::flow(flow);
        }
    }

    /// Additive shares of the bits.
    pub fn run(self, ch: &mut Channel, bits: &BitVec) -> Result<Vec<u64>, ArithError> {
        check_len("bits to convert", self.batch, bits.len())?;
        let product = match self.product {
            Some(product) => product.run(ch, &[bits])?.swap_remove(0),
            None => vec![0; self.batch],
        };
        Ok(assemble(self.ring, bits, &product))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share_bits;
    use crate::testing::{BATCHES, RINGS, add, both, prg};

    #[test]
    fn bits_become_numbers() {
        for batch in BATCHES {
            for bits in RINGS.into_iter().chain([1, 2]) {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let b = BitVec::random(&mut prg, batch);
                let shares = share_bits(&mut prg, &b);
                let (c, s) = both(
                    BitToArith::cost(ring, batch),
                    |ch, ot| BitToArith::prepare(ch, ot, ring, batch),
                    |ch, p, side| p.run(ch, side.pick(&shares)),
                );
                assert_eq!(
                    add(ring, &c, &s),
                    b.iter().map(u64::from).collect::<Vec<_>>()
                );
            }
        }
    }
}
