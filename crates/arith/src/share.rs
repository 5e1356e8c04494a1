//! Making shares of known values, and opening shares to both parties.

use volvelle_net::{Channel, Label};
use volvelle_prim::{BitVec, Prg};

use crate::error::ArithError;
use crate::ring::Ring;
use crate::wire;

const OPEN_ARITH: Label = Label::new("arith/open/words");
const OPEN_BITS: Label = Label::new("arith/open/bits");

/// Splits values into two additive shares; the first is uniform.
pub fn share(prg: &mut Prg, ring: Ring, values: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let mut first = vec![0; values.len()];
    prg.fill_masked(&mut first, ring.bits());
    let second = values
        .iter()
        .zip(&first)
        .map(|(&v, &r)| ring.sub(v, r))
        .collect();
    (first, second)
}

/// Splits bits into two XOR shares; the first is uniform.
pub fn share_bits(prg: &mut Prg, bits: &BitVec) -> (BitVec, BitVec) {
    let first = BitVec::random(prg, bits.len());
    let mut second = bits.clone();
    second.xor_assign(&first);
    (first, second)
}

/// Opens additive shares to both parties. `count·l` bits each way, one round.
pub fn open_arith(ch: &mut Channel, ring: Ring, shares: &[u64]) -> Result<Vec<u64>, ArithError> {
    let mut values = wire::exchange_words(ch, OPEN_ARITH, ring, shares)?;
    for (v, &s) in values.iter_mut().zip(shares) {
        *v = ring.add(*v, s);
    }
    Ok(values)
}

/// Opens XOR shares to both parties. `count` bits each way, one round.
pub fn open_bits(ch: &mut Channel, shares: &BitVec) -> Result<BitVec, ArithError> {
    let mut bits = wire::exchange_bits(ch, OPEN_BITS, shares)?;
    bits.xor_assign(shares);
    Ok(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_net::testing::run_pair;
    use volvelle_prim::Block;

    #[test]
    fn shared_then_opened() {
        let mut prg = Prg::from_seed(Block(1));
        for bits in [1, 7, 8, 16, 32, 37, 64] {
            let ring = Ring::new(bits).unwrap();
            let mut values = vec![0; 77];
            prg.fill_masked(&mut values, bits);
            let (c, s) = share(&mut prg, ring, &values);
            let (at_c, at_s) = run_pair(
                |ch| open_arith(ch, ring, &c).unwrap(),
                |ch| open_arith(ch, ring, &s).unwrap(),
            );
            assert_eq!(at_c, values);
            assert_eq!(at_s, values);
        }
        let bits = BitVec::random(&mut prg, 77);
        let (c, s) = share_bits(&mut prg, &bits);
        let (at_c, at_s) = run_pair(
            |ch| open_bits(ch, &c).unwrap(),
            |ch| open_bits(ch, &s).unwrap(),
        );
        assert!(at_c == bits && at_s == bits);
    }
}
