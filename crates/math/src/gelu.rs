//! GELU of shared fixed-point numbers.
//!
//! Source: the draft of ROTL, §II-E (after Hou et al.): 0 below −α, x above α, in between a table of 256
//! straight lines. Here α = 4: the tails then err by |GELU(−4)| = 1.3·10⁻⁴, the lines by some 0.5·10⁻⁴; α = 8
//! makes the lines err by 2·10⁻⁴ and α = 2 the tails by 0.05.
//!
//! With u = x + α, p = f − 5 (a line is 2^p ulps long), s = f − 4 (fraction bits of a slope) and the ring
//! Z_{2^w}, w = 2f:
//!
//! ```text
//! 1. c1 = 1{u ≥ 0}, c2 = 1{u − 2α ≥ 0}, κ = carry of the shares of u into bit p        one comparison of 2 numbers, two cuts
//! 2. ⟨κ⟩ mod 256 from [κ];   segment = ⌊u/2^p⌋ mod 256                                  the shares' own parts and κ
//! 3. slope, intercept = T[segment]                                                    one lookup, two tables
//! 4. v = slope·t + intercept,  t = u mod 2^p                                           product with low bits in Z_{2^w}
//! 5. y = ⌊v/2^s⌋ − 1/4  in Z_{2^l}                                                     0 ≤ v < 2^{w−1}: bounded, exact
//! 6. out = (c1 ⊕ c2)·y + c2·x                                                         multiplexers; c2 implies c1
//! ```
//!
//! The intercepts are a quarter too high, so that v is not negative: a known top bit makes the truncation
//! cheap. Every step is exact, so the result is [`gelu_plain_fixed`] bit for bit. The product is cheap
//! because t has only p bits and v only f + s + 3: for l = 37, f = 12 it is 7 bits times 24 instead of 37
//! times 37.
//!
//! Domain: −2^{l−1} + 2α ≤ x < 2^{l−1} − α, in ulps: all of the ring but its ends. Formats: 6 ≤ f ≤ 31 and
//! f + 5 ≤ l. Error against f64 for f = 12: at most 0.74 ulp, 0.2 in the mean over −6 … 6 (tests below).
//!
//! Cost and rounds: the sums over the steps ([`Gelu::cost`]). Security: that of the steps; nothing is opened.

use volvelle_arith::{
    BitToArith, Flow, MultiplyLow, Mux, PrefixCompare, Range, Rescale, Ring, Sign, Variant,
    carry_input,
};
use volvelle_lut::{Demand, Index, LutError, Prepared, Protocol, Table};
use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::BitVec;

use crate::erf::gelu;
use crate::error::{MathError, check_len, check_range};
use crate::fixed::Fixed;

/// log₂ of the number of lines.
const LOG_SEGMENTS: u32 = 8;

/// log₂ α.
const LOG_ALPHA: u32 = 2;

/// The public part: formats and tables. Both parties make the same one.
#[derive(Clone, Debug)]
pub struct GeluPlan {
    fixed: Fixed,
    /// Z_{2^w}.
    wide: Ring,
    slopes: Table,
    intercepts: Table,
    variant: Variant,
    protocol: Protocol,
}

impl GeluPlan {
    /// The plan for a format with 6 ≤ f ≤ 31 and l ≥ f + 5.
    pub fn new(fixed: Fixed) -> Result<GeluPlan, MathError> {
        check_range("fraction bits of GELU", 6, 31, fixed.frac())?;
        check_range("bits of GELU", fixed.frac() + 5, 64, fixed.bits())?;
        let wide = Ring::new(2 * fixed.frac())?;
        let lines: Vec<(i64, i64)> = (0..1 << LOG_SEGMENTS)
            .map(|segment| line(fixed, segment))
            .collect();
        let table = |f: &dyn Fn(&(i64, i64)) -> i64| {
            Table::new(
                wide.bits(),
                lines.iter().map(|line| wide.from_signed(f(line))).collect(),
            )
        };
        Ok(GeluPlan {
            fixed,
            wide,
            slopes: table(&|line| line.0)?,
            intercepts: table(&|line| line.1)?,
            variant: Variant::Cheetah,
            protocol: Protocol::Doubling,
        })
    }

    /// The same with comparisons made in another way.
    #[must_use]
    pub fn with_variant(self, variant: Variant) -> GeluPlan {
        GeluPlan { variant, ..self }
    }

    /// The same with segments looked up in another way. Results do not depend on it.
    ///
    /// # Errors
    /// If the protocol does not take such lookups ([`Self::lookups`]).
    pub fn with_protocol(self, protocol: Protocol) -> Result<GeluPlan, MathError> {
        protocol.takes(&self.lookups(1)?)?;
        Ok(GeluPlan { protocol, ..self })
    }

    /// How segments are looked up.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The lookups of `batch` evaluations: what to ask a [planner](volvelle_lut::plan::Planner) about.
    ///
    /// # Errors
    /// If the batch is empty.
    pub fn lookups(&self, batch: usize) -> Result<Demand, MathError> {
        let words = [self.wide.bits(); 2];
        Ok(Demand::additive(
            LOG_SEGMENTS,
            Index::Arithmetic,
            &words,
            batch,
        )?)
    }

    fn lookup_cost(&self, batch: usize) -> Result<PhasedCost, MathError> {
        let demand = self.lookups(batch)?;
        self.protocol.takes(&demand)?;
        Ok(self.protocol.cost(&demand).ok_or(LutError::NoProtocol)?)
    }

    /// Slopes and intercepts.
    fn tables(&self) -> [Table; 2] {
        [self.slopes.clone(), self.intercepts.clone()]
    }

    /// The format of inputs and outputs.
    #[must_use]
    pub fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// α in ulps.
    fn alpha(&self) -> u64 {
        1 << (self.fixed.frac() + LOG_ALPHA)
    }

    /// p, the bits within a line.
    fn line_bits(&self) -> u32 {
        line_bits(self.fixed)
    }

    /// s, the fraction bits of a slope.
    fn slope_frac(&self) -> u32 {
        slope_frac(self.fixed)
    }

    /// The ring of the segment.
    fn segment_ring(&self) -> Result<Ring, MathError> {
        Ok(Ring::new(LOG_SEGMENTS)?)
    }

    fn cuts(&self) -> [u32; 2] {
        [self.line_bits(), self.fixed.bits() - 1]
    }

    fn rings(&self) -> (Ring, Ring) {
        (self.wide, self.fixed.ring())
    }
}

fn line_bits(fixed: Fixed) -> u32 {
    fixed.frac() + LOG_ALPHA + 1 - LOG_SEGMENTS
}

fn slope_frac(fixed: Fixed) -> u32 {
    line_bits(fixed) + 1
}

/// A quarter, in ulps: more than GELU is ever below zero.
fn lift(fixed: Fixed) -> u64 {
    1 << (fixed.frac() - 2)
}

/// Slope and intercept of a line: slope·t + intercept ≈ (GELU + 1/4)·2^{f+s} for t = 0 … 2^p − 1, with the
/// half for rounding.
fn line(fixed: Fixed, segment: i64) -> (i64, i64) {
    let (ulp, length) = (fixed.ulp(), 1i64 << line_bits(fixed));
    let slope_one = f64::from(slope_frac(fixed)).exp2();
    let start = (segment * length - (1 << (fixed.frac() + LOG_ALPHA))) as f64;
    // In ulps; the points are all of the line's, or an even choice of them.
    let value = |t: f64| gelu((start + t) * ulp) / ulp;
    let slope = ((value(length as f64) - value(0.0)) / length as f64 * slope_one).round();
    let points = length.min(256);
    let residues = (0..=points).map(|k| {
        let t = (k * length / points).min(length - 1) as f64;
        value(t) - slope / slope_one * t
    });
    // Half of the largest and the smallest residue leaves the least error either way.
    let (low, high) = residues.fold((f64::MAX, f64::MIN), |(low, high), r| {
        (low.min(r), high.max(r))
    });
    let middle = (low + high) / 2.0 + lift(fixed) as f64;
    let intercept = (middle * slope_one).round() + slope_one / 2.0;
    (slope as i64, intercept as i64)
}

/// What [`Gelu`] computes, on one number in ulps: the protocol's definition.
#[must_use]
pub fn gelu_plain_fixed(plan: &GeluPlan, x: i64) -> i64 {
    let u = x.wrapping_add(plan.alpha() as i64);
    if u < 0 {
        return 0;
    }
    if u >= 2 * plan.alpha() as i64 {
        return x;
    }
    let (segment, t) = (
        (u >> plan.line_bits()) as usize,
        u & ((1 << plan.line_bits()) - 1),
    );
    let slope = plan.wide.to_signed(plan.slopes.entries()[segment]);
    let intercept = plan.intercepts.entries()[segment] as i64;
    ((slope * t + intercept) >> plan.slope_frac()) - lift(plan.fixed) as i64
}

/// A batch of prepared evaluations.
pub struct Gelu {
    plan: GeluPlan,
    batch: usize,
    compare: PrefixCompare,
    carry: BitToArith,
    lookups: Prepared,
    multiply: MultiplyLow,
    truncate: Rescale,
    select: Mux,
}

impl Gelu {
    /// Prepares `batch` evaluations.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        plan: &GeluPlan,
        batch: usize,
    ) -> Result<Gelu, MathError> {
        let (wide, ring) = plan.rings();
        Ok(Gelu {
            compare: PrefixCompare::prepare(ch, ot, plan.variant, &plan.cuts(), 2 * batch)?,
            carry: BitToArith::prepare(ch, ot, plan.segment_ring()?, batch)?,
            lookups: Prepared::prepare(
                ch,
                ot,
                plan.protocol,
                &plan.lookups(batch)?,
                &plan.tables(),
            )?,
            multiply: MultiplyLow::prepare(ch, ot, wide, plan.line_bits(), batch)?,
            truncate: Rescale::prepare(
                ch,
                ot,
                plan.variant,
                (wide, ring),
                plan.slope_frac(),
                Sign::Unsigned,
                Range::Bounded,
                batch,
            )?,
            select: Mux::prepare(ch, ot, ring, 2 * batch)?,
            plan: plan.clone(),
            batch,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(plan: &GeluPlan, batch: usize) -> Result<PhasedCost, MathError> {
        let (wide, ring) = plan.rings();
        let shift = plan.slope_frac();
        let lookups = plan.lookup_cost(batch)?;
        let mut cost = PrefixCompare::cost(plan.variant, &plan.cuts(), 2 * batch)?
            .then(BitToArith::cost(plan.segment_ring()?, batch))
            .then(lookups)
            .then(MultiplyLow::cost(wide, plan.line_bits(), batch)?)
            .then(Rescale::cost(
                plan.variant,
                (wide, ring),
                shift,
                Sign::Unsigned,
                Range::Bounded,
                batch,
            )?)
            .then(Mux::cost(ring, 2 * batch));
        let mut flow = Flow::default();
        PrefixCompare::flow(plan.variant, &plan.cuts(), &mut flow)?;
        BitToArith::flow(plan.segment_ring()?, &mut flow);
        match plan.protocol.speaks_first() {
            None => flow.exchange(lookups.online.rounds),
            Some(Role::Client) => {
                flow.client_sends();
                flow.server_sends();
            }
            Some(Role::Server) => {
                flow.server_sends();
                flow.client_sends();
            }
        }
        MultiplyLow::flow(&mut flow);
        Rescale::flow(
            plan.variant,
            (wide, ring),
            shift,
            Sign::Unsigned,
            Range::Bounded,
            &mut flow,
        )?;
        Mux::flow(&mut flow);
        cost.online.rounds = flow.rounds();
        Ok(cost)
    }

    /// Shares of GELU(x).
    pub fn run(self, ch: &mut Channel, x: &[u64]) -> Result<Vec<u64>, MathError> {
        ch.span("gelu", |ch| self.run_in_span(ch, x))
    }

    fn run_in_span(self, ch: &mut Channel, x: &[u64]) -> Result<Vec<u64>, MathError> {
        let Gelu {
            plan,
            batch,
            compare,
            carry,
            lookups,
            multiply,
            truncate,
            select,
        } = self;
        check_len("inputs of GELU", batch, x.len())?;
        let role = ch.role();

        let shifted = shifted_shares(&plan, role, x);
        let top = plan.fixed.bits() - 1;
        let inputs: Vec<u64> = shifted.iter().map(|&u| carry_input(role, top, u)).collect();
        let carries = compare.run(ch, &inputs)?;
        let non_negative = non_negative(role, top, &shifted, &carries[1]);
        let (c1, c2) = (
            non_negative.slice(0, batch),
            non_negative.slice(batch, batch),
        );

        let kappa = carries[0].slice(0, batch);
        let (u, segment) = (&shifted[..batch], carry.run(ch, &kappa)?);
        let segment = segments(&plan, u, &segment);
        let words = lookups.lookup(ch, &segment, &plan.tables())?;
        let mut v = multiply.run(ch, &words[0], u, &kappa)?;
        for (v, &intercept) in v.iter_mut().zip(&words[1]) {
            *v = plan.wide.add(*v, intercept);
        }
        let mut y = truncate.run(ch, &v)?;
        if role == Role::Client {
            y.iter_mut()
                .for_each(|y| *y = plan.fixed.ring().sub(*y, lift(plan.fixed)));
        }

        let mut bits = c1;
        bits.xor_assign(&c2);
        bits.extend_bits(&c2);
        let values: Vec<u64> = y.iter().chain(x).copied().collect();
        let selected = select.run(ch, &bits, &values)?;
        let (inside, above) = selected.split_at(batch);
        Ok(inside
            .iter()
            .zip(above)
            .map(|(&i, &a)| plan.fixed.ring().add(i, a))
            .collect())
    }
}

/// Shares of u = x + α, then of u − 2α.
fn shifted_shares(plan: &GeluPlan, role: Role, x: &[u64]) -> Vec<u64> {
    let ring = plan.fixed.ring();
    let alpha = if role == Role::Client {
        plan.alpha()
    } else {
        0
    };
    let up = x.iter().map(|&x| ring.add(x, alpha));
    up.chain(x.iter().map(|&x| ring.sub(x, alpha))).collect()
}

/// Shares of 1{a ≥ 0} from those of a and of the carry into the top bit.
fn non_negative(role: Role, top: u32, shares: &[u64], carry: &BitVec) -> BitVec {
    let flip = role == Role::Client;
    let mut bits = BitVec::from_fn(shares.len(), |i| (shares[i] >> top & 1 == 1) ^ flip);
    bits.xor_assign(carry);
    bits
}

/// Shares of ⌊u/2^p⌋ mod 2^8 from those of u and of the carry into bit p.
fn segments(plan: &GeluPlan, u: &[u64], kappa: &[u64]) -> Vec<u64> {
    let segment = |(&u, &k): (&u64, &u64)| {
        (u >> plan.line_bits()).wrapping_add(k) & volvelle_prim::mask(LOG_SEGMENTS)
    };
    u.iter().zip(kappa).map(segment).collect()
}

#[cfg(test)]
mod tests;
