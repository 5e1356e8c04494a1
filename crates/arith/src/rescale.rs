//! Exact truncation between rings: shares of ⌊v / 2^f⌋ in Z_{2^l} from shares of v in Z_{2^m}.
//!
//! With the shares as unsigned numbers, v = v_C + v_S − 2^m·wrap, and
//!
//! ```text
//! ⌊v / 2^f⌋ = ⌊v_C / 2^f⌋ + ⌊v_S / 2^f⌋ + carry − 2^{m−f}·wrap          in Z_{2^l}
//! carry = 1{(v_C mod 2^f) + (v_S mod 2^f) ≥ 2^f}        wrap = 1{v_C + v_S ≥ 2^m}
//! ```
//!
//! from Z_{2^m} into Z_{2^l}. Signed numbers are first shifted by a multiple of 2^f to be non-negative. carry
//! is a comparison on f bits; wrap is one on m bits, with the same leaves ([`PrefixCompare`]); but if v is
//! known to be below 2^{m−1}, so that its top bit is 0, wrap = msb_C ∨ msb_S, one OT ([`BitProduct`]). Where
//! l ≤ m − f the wrap vanishes. Both bits become additive by one OT each, carry in Z_{2^l}, wrap in
//! Z_{2^{l−m+f}}. (SIRNN, Rathee et al., S&P'21, §IV; the known sign is Cheetah's §5.1.)
//!
//! Truncation (l = m: [`Truncate`](crate::Truncate)), truncate-and-reduce (l = m − f) and extension (f = 0:
//! [`Extend`](crate::Extend)) are cases of it.
//!
//! Online: comparison of f (or f, m) bits, then l + (l − m + f) bits (bounded: 1 more). Rounds: one more
//! than the comparison.
//!
//! Security: that of the comparison and of [`BitProduct`].

use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::b2a;
use crate::bit_product::BitProduct;
use crate::compare::carry_input;
use crate::error::{ArithError, check_len, check_range};
use crate::flow::Flow;
use crate::millionaire::{PrefixCompare, Variant};
use crate::ring::Ring;

/// How the values in the ring are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// As two's complement numbers.
    Signed,
    /// As numbers from 0 to 2^m − 1.
    Unsigned,
}

/// Which values occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// All of the ring.
    Full,
    /// Signed: −2^{m−2} ≤ v < 2^{m−2}; unsigned: v < 2^{m−1}. Cheaper. Outside of it the result is wrong.
    Bounded,
}

/// The parameters of a [`Rescale`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Params {
    from: Ring,
    to: Ring,
    shift: u32,
    sign: Sign,
    range: Range,
}

impl Params {
    fn check(self) -> Result<Params, ArithError> {
        let spare = match (self.sign, self.range) {
            (Sign::Unsigned, Range::Full) => 0,
            (Sign::Unsigned, Range::Bounded) | (Sign::Signed, Range::Full) => 1,
            (Sign::Signed, Range::Bounded) => 2,
        };
        check_range(
            "ring bits of a number to truncate",
            spare.max(1),
            64,
            self.from.bits(),
        )?;
        check_range(
            "bits to truncate",
            0,
            self.from.bits() - spare.max(1),
            self.shift,
        )?;
        Ok(self)
    }

    /// Bits of the shifted-down number.
    fn kept(self) -> u32 {
        self.from.bits() - self.shift
    }

    /// The ring in which wrap counts.
    fn wrap_ring(self) -> Option<Ring> {
        Ring::new(self.to.bits().saturating_sub(self.kept())).ok()
    }

    /// Added before, to make the number non-negative.
    fn offset(self) -> u64 {
        match (self.sign, self.range) {
            _ if self.wrap_ring().is_none() => 0,
            (Sign::Unsigned, _) => 0,
            (Sign::Signed, Range::Full) => 1 << (self.from.bits() - 1),
            (Sign::Signed, Range::Bounded) => 1 << (self.from.bits() - 2),
        }
    }

    /// The cuts of the comparison: carry, then wrap.
    fn cuts(self) -> Vec<u32> {
        let carry = (self.shift > 0).then_some(self.shift);
        let wrap =
            (self.wrap_ring().is_some() && self.range == Range::Full).then_some(self.from.bits());
        carry.into_iter().chain(wrap).collect()
    }

    /// The rings of the bit products: carry's (2·b_C·b_S), then wrap's.
    fn products(self) -> Vec<Ring> {
        let carry = if self.shift > 0 {
            b2a::product_ring(self.to)
        } else {
            None
        };
        let wrap = match self.range {
            Range::Full => self.wrap_ring().and_then(b2a::product_ring),
            Range::Bounded => self.wrap_ring(),
        };
        carry.into_iter().chain(wrap).collect()
    }
}

impl Params {
    fn flow(self, variant: Variant, flow: &mut Flow) -> Result<(), ArithError> {
        if !self.cuts().is_empty() {
            PrefixCompare::flow(variant, &self.cuts(), flow)?;
        }
        if !self.products().is_empty() {
            BitProduct::flow(flow);
        }
        Ok(())
    }
}

/// Prepared exact truncations between rings.
pub struct Rescale {
    params: Params,
    batch: usize,
    compare: Option<PrefixCompare>,
    products: Option<BitProduct>,
}

impl Rescale {
    /// Prepares `batch` truncations by `shift` bits from the ring `from` into the ring `to`.
    #[expect(clippy::too_many_arguments, reason = "the parameters of one operation")]
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        variant: Variant,
        (from, to): (Ring, Ring),
        shift: u32,
        sign: Sign,
        range: Range,
        batch: usize,
    ) -> Result<Rescale, ArithError> {
        let params = Params {
            from,
            to,
            shift,
            sign,
            range,
        }
        .check()?;
        let compare = match params.cuts() {
            cuts if cuts.is_empty() => None,
            cuts => Some(PrefixCompare::prepare(ch, ot, variant, &cuts, batch)?),
        };
        let products = match params.products() {
            rings if rings.is_empty() => None,
            rings => Some(BitProduct::prepare(ch, ot, &rings, batch)?),
        };
        Ok(Rescale {
            params,
            batch,
            compare,
            products,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(
        variant: Variant,
        (from, to): (Ring, Ring),
        shift: u32,
        sign: Sign,
        range: Range,
        batch: usize,
    ) -> Result<PhasedCost, ArithError> {
        let params = Params {
            from,
            to,
            shift,
            sign,
            range,
        }
        .check()?;
        let compare = match params.cuts() {
            cuts if cuts.is_empty() => PhasedCost::default(),
            cuts => PrefixCompare::cost(variant, &cuts, batch)?,
        };
        let products = match params.products() {
            rings if rings.is_empty() => PhasedCost::default(),
            rings => BitProduct::cost(&rings, batch),
        };
        let mut cost = compare.then(products);
        let mut flow = Flow::default();
        params.flow(variant, &mut flow)?;
        cost.online.rounds = flow.rounds();
        Ok(cost)
    }

    /// Who speaks when in `run`.
    pub fn flow(
        variant: Variant,
        (from, to): (Ring, Ring),
        shift: u32,
        sign: Sign,
        range: Range,
        flow: &mut Flow,
    ) -> Result<(), ArithError> {
        Params {
            from,
            to,
            shift,
            sign,
            range,
        }
        .check()?
        .flow(variant, flow)
    }

    /// Shares of ⌊v / 2^shift⌋ in the ring `to`.
    pub fn run(self, ch: &mut Channel, shares: &[u64]) -> Result<Vec<u64>, ArithError> {
        check_len("numbers to truncate", self.batch, shares.len())?;
        let Params {
            from,
            to,
            shift,
            range,
            ..
        } = self.params;
        let role = ch.role();
        let offset = if role == Role::Client {
            self.params.offset()
        } else {
            0
        };
        let shares: Vec<u64> = shares.iter().map(|&v| from.add(v, offset)).collect();

        let cuts = self.params.cuts();
        let mut bits = match (self.compare, cuts.last()) {
            (Some(compare), Some(&top)) => {
                let inputs: Vec<u64> = shares.iter().map(|&v| carry_input(role, top, v)).collect();
                compare.run(ch, &inputs)?
            }
            _ => Vec::new(),
        };
        let bounded_wrap = range == Range::Bounded && self.params.wrap_ring().is_some();
        if bounded_wrap {
            bits.push(BitVec::from_fn(shares.len(), |i| {
                shares[i] >> (from.bits() - 1) & 1 == 1
            }));
        }

        let mut rest = bits.iter();
        let carry = if shift > 0 { rest.next() } else { None };
        let wrap = rest.next();
        // In a ring of one bit, an XOR share is additive already.
        let carry_product = carry.filter(|_| to.bits() > 1);
        let wrap_product =
            wrap.filter(|_| bounded_wrap || self.params.wrap_ring().is_some_and(|r| r.bits() > 1));
        let factors: Vec<&BitVec> = carry_product.into_iter().chain(wrap_product).collect();
        let mut products = match self.products {
            Some(products) => products.run(ch, &factors)?.into_iter(),
            None => Vec::new().into_iter(),
        };
        let zeros = || vec![0; shares.len()];
        let carry_product = carry_product
            .and_then(|_| products.next())
            .unwrap_or_else(zeros);
        let wrap_product = wrap_product
            .and_then(|_| products.next())
            .unwrap_or_else(zeros);

        let unshift = offset >> shift;
        let out = shares.iter().enumerate().map(|(i, &v)| {
            let carry = carry
                .map_or(0, |b| u64::from(b.get(i)))
                .wrapping_sub(carry_product[i] << 1);
            let wrap_bit = wrap.map_or(0, |b| u64::from(b.get(i)));
            let wrap = if bounded_wrap {
                wrap_bit.wrapping_sub(wrap_product[i])
            } else {
                wrap_bit.wrapping_sub(wrap_product[i] << 1)
            };
            let wrapped = if self.params.kept() < 64 {
                wrap << self.params.kept()
            } else {
                0
            };
            to.reduce(
                (v >> shift)
                    .wrapping_add(carry)
                    .wrapping_sub(wrapped)
                    .wrapping_sub(unshift),
            )
        });
        Ok(out.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::share::share;
    use crate::testing::{BATCHES, RINGS, both, prg};

    fn read(ring: Ring, sign: Sign, v: u64) -> i128 {
        match sign {
            Sign::Signed => i128::from(ring.to_signed(v)),
            Sign::Unsigned => i128::from(ring.reduce(v)),
        }
    }

    fn in_range(ring: Ring, sign: Sign, range: Range, v: i128) -> bool {
        match (range, sign) {
            (Range::Full, _) => true,
            (Range::Bounded, Sign::Unsigned) => v < 1 << (ring.bits() - 1),
            (Range::Bounded, Sign::Signed) => {
                (-(1 << (ring.bits() - 2))..1 << (ring.bits() - 2)).contains(&v)
            }
        }
    }

    fn check(
        rings: (Ring, Ring),
        shift: u32,
        sign: Sign,
        range: Range,
        shares: &(Vec<u64>, Vec<u64>),
    ) {
        let batch = shares.0.len();
        let variant = Variant::Cheetah;
        let (c, s) = both(
            Rescale::cost(variant, rings, shift, sign, range, batch).unwrap(),
            |ch, ot| Rescale::prepare(ch, ot, variant, rings, shift, sign, range, batch),
            |ch, p, side| p.run(ch, side.words(shares)),
        );
        for i in 0..batch {
            let v = read(rings.0, sign, rings.0.add(shares.0[i], shares.1[i]));
            if in_range(rings.0, sign, range, v) {
                let got = rings.1.add(c[i], s[i]);
                assert_eq!(
                    got,
                    rings.1.reduce((v >> shift) as u64),
                    "{rings:?} >> {shift} {sign:?} {range:?}: {v}"
                );
            }
        }
    }

    #[test]
    fn every_sharing_in_small_rings() {
        for from in 1..=5u32 {
            let all = || 0..1u64 << from;
            let c = all().flat_map(|c| all().map(move |_| c)).collect();
            let s = all().flat_map(|_| all()).collect();
            let shares = (c, s);
            for to in 1..=7 {
                let rings = (Ring::new(from).unwrap(), Ring::new(to).unwrap());
                for (sign, range, spare) in [
                    (Sign::Unsigned, Range::Full, 1),
                    (Sign::Unsigned, Range::Bounded, 1),
                    (Sign::Signed, Range::Full, 1),
                    (Sign::Signed, Range::Bounded, 2),
                ] {
                    for shift in 0..=from.saturating_sub(spare) {
                        if from >= spare {
                            check(rings, shift, sign, range, &shares);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rings_and_batches() {
        for bits in RINGS {
            for batch in BATCHES {
                let ring = Ring::new(bits).unwrap();
                let mut prg = prg(batch);
                let mut values = vec![0; batch];
                prg.fill_masked(&mut values, bits);
                let shares = share(&mut prg, ring, &values);
                for shift in [0, 1, bits / 3, bits - 2] {
                    check((ring, ring), shift, Sign::Signed, Range::Full, &shares);
                    check((ring, ring), shift, Sign::Signed, Range::Bounded, &shares);
                }
            }
        }
    }

    #[test]
    fn bad_parameters_are_errors() {
        let ring = Ring::new(8).unwrap();
        let cost = |shift, sign, range| {
            Rescale::cost(Variant::Cheetah, (ring, ring), shift, sign, range, 1)
        };
        assert!(cost(8, Sign::Signed, Range::Full).is_err());
        assert!(cost(7, Sign::Signed, Range::Bounded).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn random_shapes(seed: u64, batch in 1usize..100, from in 3u32..=64, to in 1u32..=64, shift in 0u32..63, full: bool, signed: bool) {
            let shift = shift % (from - 1);
            let rings = (Ring::new(from).unwrap(), Ring::new(to).unwrap());
            let mut prg = prg(seed as usize);
            let mut values = vec![0; batch];
            prg.fill_masked(&mut values, from);
            let shares = share(&mut prg, rings.0, &values);
            let sign = if signed { Sign::Signed } else { Sign::Unsigned };
            let range = if full { Range::Full } else { Range::Bounded };
            check(rings, shift, sign, range, &shares);
        }
    }
}
