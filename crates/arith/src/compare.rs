//! Comparison of shared numbers.
//!
//! The sign of ⟨a⟩ is msb(a) = msb_C ⊕ msb_S ⊕ carry, where carry = 1 if the low l − 1 bits of the shares add
//! up to 2^{l−1} or more: (2^{l−1} − 1 − low_C) < low_S, a millionaires' problem of l − 1 bits
//! ([`Compare`](crate::Compare)). x ≥ y is ¬msb(x − y). (CrypTFlow2, Rathee et al., CCS'20.)
//!
//! Cost, rounds and security: those of the comparison of l − 1 bits; none for l = 1.

use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::{BitVec, mask};

use crate::error::{ArithError, check_len};
use crate::flow::Flow;
use crate::millionaire::{PrefixCompare, Variant};
use crate::ring::Ring;

/// What a party inputs to a comparison of the bits below `cut` ([`Compare`](crate::Compare),
/// [`PrefixCompare`]), so that 1{c < d} is the carry into bit `cut` of the sum of the shares.
#[must_use]
pub fn carry_input(role: Role, cut: u32, share: u64) -> u64 {
    // The complement of every low part is the low part of the complement, so one input serves all lower cuts
    // too.
    let flip = match role {
        Role::Client => u64::MAX,
        Role::Server => 0,
    };
    (share ^ flip) & mask(cut)
}

/// Prepared signs of shared numbers.
pub struct Msb {
    ring: Ring,
    batch: usize,
    carry: Option<PrefixCompare>,
}

impl Msb {
    /// Prepares the signs of `batch` numbers.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        ring: Ring,
        batch: usize,
    ) -> Result<Msb, ArithError> {
        let carry = match ring.bits() {
            1 => None,
            bits => Some(PrefixCompare::prepare(ch, ot, variant, &[bits - 1], batch)?),
        };
        Ok(Msb { ring, batch, carry })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(variant: Variant, ring: Ring, batch: usize) -> Result<PhasedCost, ArithError> {
        match ring.bits() {
            1 => Ok(PhasedCost::default()),
            bits => PrefixCompare::cost(variant, &[bits - 1], batch),
        }
    }

    /// Who speaks when in `run`.
    pub fn flow(variant: Variant, ring: Ring, flow: &mut Flow) -> Result<(), ArithError> {
        match ring.bits() {
            1 => Ok(()),
            bits => PrefixCompare::flow(variant, &[bits - 1], flow),
        }
    }

    /// Shares of 1{a < 0}.
    pub fn run(self, ch: &mut Channel, shares: &[u64]) -> Result<BitVec, ArithError> {
        check_len("numbers to take the sign of", self.batch, shares.len())?;
        let top = self.ring.bits() - 1;
        let mut msb = BitVec::from_fn(shares.len(), |i| shares[i] >> top & 1 == 1);
        if let Some(carry) = self.carry {
            let role = ch.role();
            let inputs: Vec<u64> = shares.iter().map(|&a| carry_input(role, top, a)).collect();
            msb.xor_assign(&carry.run(ch, &inputs)?[0]);
        }
        Ok(msb)
    }
}

/// Prepared comparisons of shared signed numbers.
pub struct GreaterEqual {
    ring: Ring,
    msb: Msb,
}

impl GreaterEqual {
    /// Prepares `batch` comparisons.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        ring: Ring,
        batch: usize,
    ) -> Result<GreaterEqual, ArithError> {
        Ok(GreaterEqual {
            ring,
            msb: Msb::prepare(ch, ot, variant, ring, batch)?,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(variant: Variant, ring: Ring, batch: usize) -> Result<PhasedCost, ArithError> {
        Msb::cost(variant, ring, batch)
    }

    /// Who speaks when in `run`.
    pub fn flow(variant: Variant, ring: Ring, flow: &mut Flow) -> Result<(), ArithError> {
        Msb::flow(variant, ring, flow)
    }

    /// Shares of 1{x ≥ y}, for x − y in −2^{l−1} … 2^{l−1} − 1.
    pub fn run(self, ch: &mut Channel, x: &[u64], y: &[u64]) -> Result<BitVec, ArithError> {
        check_len("right sides of a comparison", x.len(), y.len())?;
        let difference: Vec<u64> = x
            .iter()
            .zip(y)
            .map(|(&x, &y)| self.ring.sub(x, y))
            .collect();
        let mut bits = self.msb.run(ch, &difference)?;
        if ch.role() == Role::Client {
            bits.not_assign();
        }
        Ok(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share;
    use crate::testing::{BATCHES, RINGS, both, prg, xor};

    fn check(variant: Variant, ring: Ring, shares: &(Vec<u64>, Vec<u64>)) {
        let batch = shares.0.len();
        let (c, s) = both(
            Msb::cost(variant, ring, batch).unwrap(),
            |ch, ot| Msb::prepare(ch, ot, variant, ring, batch),
            |ch, p, side| p.run(ch, side.words(shares)),
        );
        let expected = BitVec::from_fn(batch, |i| {
            ring.to_signed(ring.add(shares.0[i], shares.1[i])) < 0
        });
        assert!(xor(&c, &s) == expected, "{variant:?} {ring:?} {batch}");
    }

    #[test]
    fn every_sharing_in_small_rings() {
        for variant in Variant::ALL {
            for bits in 1..=6 {
                let all = || 0..1u64 << bits;
                let c = all().flat_map(|c| all().map(move |_| c)).collect();
                let s = all().flat_map(|_| all()).collect();
                check(variant, Ring::new(bits).unwrap(), &(c, s));
            }
        }
    }

    #[test]
    fn signs() {
        for bits in RINGS {
            for batch in BATCHES {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let mut values = vec![0; batch];
                prg.fill_masked(&mut values, bits);
                for (v, edge) in values.iter_mut().zip([
                    0,
                    1,
                    ring.mask(),
                    ring.mask() >> 1,
                    (ring.mask() >> 1) + 1,
                ]) {
                    *v = edge;
                }
                check(Variant::Cheetah, ring, &share(&mut prg, ring, &values));
            }
        }
    }

    #[test]
    fn greater_or_equal() {
        let ring = Ring::new(9).unwrap();
        let pairs: Vec<(i64, i64)> = (-128..127)
            .flat_map(|x| [-128, -1, 0, x, 127].map(|y| (x, y)))
            .collect();
        let mut prg = prg(0);
        let x: Vec<u64> = pairs.iter().map(|p| ring.from_signed(p.0)).collect();
        let y: Vec<u64> = pairs.iter().map(|p| ring.from_signed(p.1)).collect();
        let (xs, ys) = (share(&mut prg, ring, &x), share(&mut prg, ring, &y));
        let (c, s) = both(
            GreaterEqual::cost(Variant::Cheetah, ring, pairs.len()).unwrap(),
            |ch, ot| GreaterEqual::prepare(ch, ot, Variant::Cheetah, ring, pairs.len()),
            |ch, p, side| p.run(ch, side.words(&xs), side.words(&ys)),
        );
        assert!(xor(&c, &s) == BitVec::from_fn(pairs.len(), |i| pairs[i].0 >= pairs[i].1));
    }
}
