//! Extension: shares in Z_{2^l} of a number shared in Z_{2^m}, m ≤ l.
//!
//! [`Rescale`](crate::Rescale) without a shift: v_C + v_S − 2^m·wrap, and only wrap needs the peer.
//!
//! Online: comparison of m bits and l − m bits (signed numbers below 2^{m−2}: 1 + l − m bits); rounds: the
//! comparison's + 1 (1).

use volvelle_net::Channel;
use volvelle_ot::{Ot, PhasedCost};

use crate::error::{ArithError, check_range};
use crate::millionaire::Variant;
use crate::rescale::{Range, Rescale, Sign};
use crate::ring::Ring;

/// Prepared extensions.
pub struct Extend(Rescale);

fn check(from: Ring, to: Ring) -> Result<(), ArithError> {
    check_range("ring bits to extend to", from.bits(), 64, to.bits())
}

impl Extend {
    /// Prepares `batch` extensions between rings.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        (from, to): (Ring, Ring),
        sign: Sign,
        range: Range,
        batch: usize,
    ) -> Result<Extend, ArithError> {
        check(from, to)?;
        Rescale::prepare(ch, ot, variant, (from, to), 0, sign, range, batch).map(Extend)
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(
        variant: Variant,
        (from, to): (Ring, Ring),
        sign: Sign,
        range: Range,
        batch: usize,
    ) -> Result<PhasedCost, ArithError> {
        check(from, to)?;
        Rescale::cost(variant, (from, to), 0, sign, range, batch)
    }

    /// Shares in the larger ring.
    pub fn run(self, ch: &mut Channel, shares: &[u64]) -> Result<Vec<u64>, ArithError> {
        self.0.run(ch, shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share;
    use crate::testing::{add, both, prg};

    #[test]
    fn extends_signed_and_unsigned() {
        let rings = (Ring::new(8).unwrap(), Ring::new(37).unwrap());
        let values: Vec<u64> = (0..256).collect();
        let shares = share(&mut prg(1), rings.0, &values);
        for sign in [Sign::Signed, Sign::Unsigned] {
            let (c, s) = both(
                Extend::cost(Variant::Cheetah, rings, sign, Range::Full, 256).unwrap(),
                |ch, ot| Extend::prepare(ch, ot, Variant::Cheetah, rings, sign, Range::Full, 256),
                |ch, p, side| p.run(ch, side.words(&shares)),
            );
            let expected: Vec<u64> = match sign {
                Sign::Signed => values
                    .iter()
                    .map(|&v| rings.1.from_signed(rings.0.to_signed(v)))
                    .collect(),
                Sign::Unsigned => values.clone(),
            };
            assert_eq!(add(rings.1, &c, &s), expected);
        }
        assert!(
            Extend::cost(
                Variant::Cheetah,
                (rings.1, rings.0),
                Sign::Signed,
                Range::Full,
                1
            )
            .is_err()
        );
    }
}
