use proptest::prelude::*;

use super::*;
use crate::testing::{BATCHES, both, prg, xor};

fn check(variant: Variant, cuts: &[u32], c: Vec<u64>, d: Vec<u64>) {
    let batch = c.len();
    let numbers = (c, d);
    let (at_c, at_s) = both(
        PrefixCompare::cost(variant, cuts, batch).unwrap(),
        |ch, ot| PrefixCompare::prepare(ch, ot, variant, cuts, batch),
        |ch, p, side| p.run(ch, side.words(&numbers)),
    );
    assert_eq!(at_c.len(), cuts.len());
    for (k, &cut) in cuts.iter().enumerate() {
        let low = volvelle_prim::mask(cut);
        let expected = BitVec::from_fn(batch, |i| numbers.0[i] & low < numbers.1[i] & low);
        assert!(
            xor(&at_c[k], &at_s[k]) == expected,
            "{variant:?}, {cuts:?}, batch {batch}"
        );
    }
}

#[test]
fn all_pairs_of_small_numbers() {
    for variant in Variant::ALL {
        for bits in 1..=6u32 {
            let all = || 0..1u64 << bits;
            let c = all().flat_map(|c| all().map(move |_| c)).collect();
            let d = all().flat_map(|_| all()).collect();
            check(variant, &[bits], c, d);
        }
    }
}

#[test]
fn all_pairs_with_cuts() {
    let all = || 0..1u64 << 6;
    let c: Vec<_> = all().flat_map(|c| all().map(move |_| c)).collect();
    let d: Vec<_> = all().flat_map(|_| all()).collect();
    for variant in Variant::ALL {
        for cuts in [
            vec![1, 6],
            vec![5, 6],
            vec![2, 3, 6],
            vec![1, 2, 3, 4, 5, 6],
        ] {
            check(variant, &cuts, c.clone(), d.clone());
        }
    }
}

#[test]
fn batches_and_widths() {
    for variant in Variant::ALL {
        for bits in [7, 8, 16, 31, 32, 36, 37, 63, 64] {
            for batch in BATCHES {
                let mut prg = prg(batch + bits as usize);
                let (mut c, mut d) = (vec![0; batch], vec![0; batch]);
                prg.fill_masked(&mut c, bits);
                prg.fill_masked(&mut d, bits);
                // Equal numbers, and numbers that differ in one low or high bit.
                for i in (0..batch).step_by(3) {
                    d[i] = c[i] ^ [0, 1, 1 << (bits - 1)][i % 9 / 3];
                }
                check(variant, &[bits], c, d);
            }
        }
    }
}

#[test]
fn edges() {
    for variant in Variant::ALL {
        for bits in [4, 31, 64] {
            let top = volvelle_prim::mask(bits);
            check(
                variant,
                &[bits],
                vec![0, 0, top, top, top, top - 1],
                vec![0, top, 0, top, top - 1, top],
            );
        }
    }
}

#[test]
fn cheetah_costs_284_bits() {
    let cost = Compare::cost(Variant::Cheetah, 31, 8000).unwrap();
    assert_eq!(cost.prep.bits(), 0);
    assert_eq!(cost.online.bits(), 284 * 8000);
    assert_eq!(cost.prep.cots(), 45 * 8000);
    assert_eq!(cost.online.rounds, 5);
}

#[test]
fn one_hot_costs_612_bits() {
    let cost = Compare::cost(Variant::OneHot, 31, 8000).unwrap();
    assert_eq!(
        (cost.prep.bits(), cost.online.bits()),
        (496 * 8000, 116 * 8000)
    );
    assert_eq!(cost.prep.cots(), 86 * 8000);
    assert_eq!(cost.online.rounds, 4);
}

#[test]
fn compact_costs_204_bits() {
    let cost = Compare::cost(Variant::Compact, 31, 8000).unwrap();
    assert_eq!(cost.prep.bits(), 0);
    assert_eq!(cost.online.bits(), 204 * 8000);
    assert_eq!(cost.prep.cots(), 61 * 8000);
    assert_eq!(cost.online.rounds, 6);
}

#[test]
fn bad_parameters_are_errors() {
    for cuts in [&[0][..], &[65], &[], &[4, 4], &[8, 4]] {
        assert!(
            matches!(
                PrefixCompare::cost(Variant::Cheetah, cuts, 1),
                Err(ArithError::Parameter { .. })
            ),
            "{cuts:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_shapes(seed: u64, batch in 1usize..200, first in 1u32..30, second in 1u32..30, variant in prop::sample::select(&Variant::ALL[..])) {
        let mut prg = prg(seed as usize);
        let (mut c, mut d) = (vec![0; batch], vec![0; batch]);
        prg.fill_masked(&mut c, first + second);
        prg.fill_masked(&mut d, first + second);
        check(variant, &[first, first + second], c, d);
    }
}
