//! The ring Z_{2^l}, 1 ≤ l ≤ 64.

use crate::error::{ArithError, check_range};

/// The ring of integers mod 2^l; elements are `u64`s below 2^l.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ring {
    bits: u32,
}

impl Ring {
    /// Z_{2^64}.
    pub const Z64: Ring = Ring { bits: 64 };

    /// The ring Z_{2^bits}, for 1 to 64 bits.
    pub fn new(bits: u32) -> Result<Ring, ArithError> {
        check_range("ring bits", 1, 64, bits)?;
        Ok(Ring { bits })
    }

    /// l.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// 2^l − 1.
    pub fn mask(self) -> u64 {
        volvelle_prim::mask(self.bits)
    }

    /// `x` mod 2^l.
    pub fn reduce(self, x: u64) -> u64 {
        x & self.mask()
    }

    /// `x + y`.
    pub fn add(self, x: u64, y: u64) -> u64 {
        self.reduce(x.wrapping_add(y))
    }

    /// `x − y`.
    pub fn sub(self, x: u64, y: u64) -> u64 {
        self.reduce(x.wrapping_sub(y))
    }

    /// `x · y`.
    pub fn mul(self, x: u64, y: u64) -> u64 {
        self.reduce(x.wrapping_mul(y))
    }

    /// `−x`.
    pub fn neg(self, x: u64) -> u64 {
        self.reduce(x.wrapping_neg())
    }

    /// `x` as a two's complement number of l bits.
    pub fn to_signed(self, x: u64) -> i64 {
        let unused = 64 - self.bits;
        ((x << unused) as i64) >> unused
    }

    /// `x` mod 2^l.
    pub fn from_signed(self, x: i64) -> u64 {
        self.reduce(x as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        assert!(Ring::new(0).is_err());
        assert!(Ring::new(65).is_err());
        assert_eq!(Ring::new(64).unwrap().mask(), u64::MAX);
    }

    #[test]
    fn signed_round_trip() {
        for bits in 1..=10 {
            let ring = Ring::new(bits).unwrap();
            let half = 1i64 << (bits - 1);
            for x in -half..half {
                assert_eq!(ring.to_signed(ring.from_signed(x)), x);
                assert_eq!(
                    ring.add(ring.from_signed(x), ring.neg(ring.from_signed(x))),
                    0
                );
            }
        }
        assert_eq!(
            Ring::Z64.to_signed(Ring::Z64.from_signed(i64::MIN)),
            i64::MIN
        );
    }
}
