//! Truncation of signed numbers within a ring.
//!
//! Exact by [`Rescale`](crate::Rescale), or each party on its own with a stated error: [`Truncation`].
//!
//! Cost, rounds and security: those of the rescaling; none for [`Truncation::Local`].

use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};

use crate::error::{ArithError, check_len, check_range};
use crate::millionaire::Variant;
use crate::rescale::{Range, Rescale, Sign};
use crate::ring::Ring;

/// How [`Truncate`] truncates a signed number v by f bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truncation {
    /// Each party shifts its own share (SecureML, Mohassel and Zhang, S&P'17). No communication. Over uniform
    /// shares the result is off by 2^{l−f} with probability exactly |v|/2^l; besides that it is ⌊v/2^f⌋, or
    /// one more with probability exactly (v mod 2^f)/2^f.
    Local,
    /// ⌊v/2^f⌋ for −2^{l−2} ≤ v < 2^{l−2}.
    Bounded,
    /// ⌊v/2^f⌋ always.
    Exact,
}

impl Truncation {
    fn range(self) -> Option<Range> {
        match self {
            Truncation::Local => None,
            Truncation::Bounded => Some(Range::Bounded),
            Truncation::Exact => Some(Range::Full),
        }
    }
}

/// Prepared truncations of signed numbers within a ring.
pub struct Truncate {
    ring: Ring,
    shift: u32,
    batch: usize,
    rescale: Option<Rescale>,
}

impl Truncate {
    /// Prepares `batch` truncations by `shift` (below l − 1) bits.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        truncation: Truncation,
        ring: Ring,
        shift: u32,
        batch: usize,
    ) -> Result<Truncate, ArithError> {
        check_range("bits to truncate", 0, ring.bits() - 1, shift)?;
        let rescale = truncation
            .range()
            .map(|range| {
                Rescale::prepare(
                    ch,
                    ot,
                    variant,
                    (ring, ring),
                    shift,
                    Sign::Signed,
                    range,
                    batch,
                )
            })
            .transpose()?;
        Ok(Truncate {
            ring,
            shift,
            batch,
            rescale,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(
        variant: Variant,
        truncation: Truncation,
        ring: Ring,
        shift: u32,
        batch: usize,
    ) -> Result<PhasedCost, ArithError> {
        check_range("bits to truncate", 0, ring.bits() - 1, shift)?;
        match truncation.range() {
            None => Ok(PhasedCost::default()),
            Some(range) => Rescale::cost(variant, (ring, ring), shift, Sign::Signed, range, batch),
        }
    }

    /// Shares of v truncated.
    pub fn run(self, ch: &mut Channel, shares: &[u64]) -> Result<Vec<u64>, ArithError> {
        check_len("numbers to truncate", self.batch, shares.len())?;
        match self.rescale {
            Some(rescale) => rescale.run(ch, shares),
            None => Ok(local(ch.role(), self.ring, self.shift, shares)),
        }
    }
}

fn local(role: Role, ring: Ring, shift: u32, shares: &[u64]) -> Vec<u64> {
    let truncated = |&v: &u64| match role {
        Role::Client => ring.reduce(v) >> shift,
        Role::Server => ring.neg(ring.neg(v) >> shift),
    };
    shares.iter().map(truncated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::share;
    use crate::testing::{add, both, prg};

    #[test]
    fn local_is_off_by_one_or_wraps() {
        let ring = Ring::new(6).unwrap();
        for shift in 1..5 {
            for v in -32i64..32 {
                let errors: Vec<i64> = (0..64)
                    .map(|c| {
                        let s = ring.sub(ring.from_signed(v), c);
                        let parts = [(Role::Client, c), (Role::Server, s)];
                        let sum = parts.map(|(role, share)| local(role, ring, shift, &[share])[0]);
                        ring.to_signed(
                            ring.sub(ring.add(sum[0], sum[1]), ring.from_signed(v >> shift)),
                        )
                    })
                    .collect();
                let wrong = errors.iter().filter(|e| !(0..=1).contains(*e)).count();
                assert_eq!(wrong as u64, v.unsigned_abs(), "wraps of {v} >> {shift}");
                // Wrapped or not, the distance is 0 or 1 besides.
                let up: i64 = errors.iter().map(|e| e.rem_euclid(64 >> shift)).sum();
                assert_eq!(
                    up,
                    64 * v.rem_euclid(1 << shift) / (1 << shift),
                    "one more for {v} >> {shift}"
                );
            }
        }
    }

    #[test]
    fn truncate_modes() {
        let ring = Ring::new(16).unwrap();
        let mut prg = prg(5);
        let values: Vec<u64> = (-1000..1000).map(|v| ring.from_signed(v)).collect();
        let shares = share(&mut prg, ring, &values);
        for truncation in [Truncation::Bounded, Truncation::Exact, Truncation::Local] {
            let (c, s) = both(
                Truncate::cost(Variant::Cheetah, truncation, ring, 4, values.len()).unwrap(),
                |ch, ot| {
                    Truncate::prepare(ch, ot, Variant::Cheetah, truncation, ring, 4, values.len())
                },
                |ch, p, side| p.run(ch, side.words(&shares)),
            );
            let right = add(ring, &c, &s)
                .iter()
                .zip(-1000i64..)
                .filter(|&(&got, v)| {
                    let error = ring.to_signed(got) - (v >> 4);
                    error == 0 || truncation == Truncation::Local && error == 1
                })
                .count();
            assert!(
                right == values.len() || truncation == Truncation::Local && right > 1900,
                "{truncation:?} {right}"
            );
        }
    }

    #[test]
    fn bad_parameters_are_errors() {
        let ring = Ring::new(8).unwrap();
        assert!(Truncate::cost(Variant::Cheetah, Truncation::Local, ring, 8, 1).is_err());
        assert!(Truncate::cost(Variant::Cheetah, Truncation::Bounded, ring, 7, 1).is_err());
    }
}
