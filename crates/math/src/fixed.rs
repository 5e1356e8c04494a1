//! Fixed-point numbers in Z_{2^l}.

use volvelle_arith::Ring;

use crate::error::{MathError, check_range};

/// A format: numbers k/2^frac for integers k of `bits` bits, two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fixed {
    ring: Ring,
    frac: u32,
}

impl Fixed {
    /// A format of `bits` (1 to 64) bits, `frac` (below `bits`) of them fraction.
    pub fn new(bits: u32, frac: u32) -> Result<Fixed, MathError> {
        let ring = Ring::new(bits)?;
        check_range("fraction bits", 0, bits - 1, frac)?;
        Ok(Fixed { ring, frac })
    }

    /// l.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.ring.bits()
    }

    /// f.
    #[must_use]
    pub fn frac(self) -> u32 {
        self.frac
    }

    /// Z_{2^l}.
    #[must_use]
    pub fn ring(self) -> Ring {
        self.ring
    }

    /// The distance between neighbours, 2^−f.
    #[must_use]
    pub fn ulp(self) -> f64 {
        (-f64::from(self.frac)).exp2()
    }

    /// The nearest number of the format, ties away from zero.
    pub fn encode(self, value: f64) -> Result<u64, MathError> {
        let half = f64::from(self.bits() - 1).exp2();
        let scaled = (value * f64::from(self.frac).exp2()).round();
        // For 64 bits, 2^63 itself is a float but not in the ring; NaN fails both.
        if scaled >= -half && scaled < half {
            Ok(self.ring.from_signed(scaled as i64))
        } else {
            let (low, high) = (-half * self.ulp(), (half - 1.0) * self.ulp());
            Err(MathError::OutOfRange {
                value,
                bits: self.bits(),
                frac: self.frac,
                low,
                high,
            })
        }
    }

    /// Encodes a slice.
    pub fn encode_all(self, values: &[f64]) -> Result<Vec<u64>, MathError> {
        values.iter().map(|&v| self.encode(v)).collect()
    }

    /// The number an element of the ring stands for.
    #[must_use]
    pub fn decode(self, element: u64) -> f64 {
        self.ring.to_signed(element) as f64 * self.ulp()
    }

    /// Decodes a slice.
    #[must_use]
    pub fn decode_all(self, elements: &[u64]) -> Vec<f64> {
        elements.iter().map(|&e| self.decode(e)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_rounding() {
        for (bits, frac) in [(8, 3), (37, 12), (64, 18), (64, 0), (1, 0)] {
            let fixed = Fixed::new(bits, frac).unwrap();
            for k in [-1i64, 0] {
                let element = fixed.ring().from_signed(k);
                assert_eq!(fixed.encode(fixed.decode(element)).unwrap(), element);
            }
        }
        let fixed = Fixed::new(16, 4).unwrap();
        assert_eq!(fixed.encode(1.0 + 0.49 / 16.0).unwrap(), 16);
        assert_eq!(
            fixed.encode(-1.0 - 0.51 / 16.0).unwrap(),
            fixed.ring().from_signed(-17)
        );
        assert_eq!(
            fixed.decode_all(&fixed.encode_all(&[0.5, -2.25]).unwrap()),
            [0.5, -2.25]
        );
    }

    #[test]
    fn out_of_range() {
        let fixed = Fixed::new(8, 4).unwrap();
        assert_eq!(fixed.encode(-8.0).unwrap(), 0x80);
        for bad in [8.0, -8.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(
                fixed.encode(bad),
                Err(MathError::OutOfRange { .. })
            ));
        }
        assert!(Fixed::new(64, 0).unwrap().encode(2f64.powi(63)).is_err());
        assert!(Fixed::new(8, 8).is_err());
        assert!(Fixed::new(65, 8).is_err());
    }
}
