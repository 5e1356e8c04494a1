use super::*;
use crate::Prg;

/// Shift and add.
fn naive(a: Block, b: Block) -> Block {
    let (mut a, mut out) = (a.0, 0);
    for i in 0..128 {
        if b.0 >> i & 1 == 1 {
            out ^= a;
        }
        a = a << 1 ^ if a >> 127 == 1 { 0x87 } else { 0 };
    }
    Block(out)
}

fn paths() -> Vec<Path> {
    Backend::available()
        .into_iter()
        .map(Path::for_backend)
        .collect()
}

fn random(prg: &mut Prg, len: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; len];
    prg.fill_blocks(&mut out);
    out
}

#[test]
fn products_are_those_of_the_definition_on_every_path() {
    let mut prg = Prg::from_seed(Block(3));
    let corners = [0, 1, 2, 1 << 127, u128::MAX, 0x87, u64::MAX.into(), 1 << 64].map(Block);
    let pairs = corners.iter().flat_map(|&a| corners.map(|b| (a, b)));
    let random: Vec<_> = (0..200)
        .map(|_| (prg.next_block(), prg.next_block()))
        .collect();
    for (a, b) in pairs.chain(random) {
        for path in paths() {
            assert!(path.dot(&[a], &[b]).reduce() == naive(a, b), "{path:?}");
        }
        assert!(mul(a, b) == naive(a, b));
    }
}

#[test]
fn sums_of_products_agree_on_every_length_and_path() {
    let mut prg = Prg::from_seed(Block(4));
    for len in 0..40 {
        let (a, b) = (random(&mut prg, len), random(&mut prg, len));
        let expected = a
            .iter()
            .zip(&b)
            .fold(Block::ZERO, |s, (&a, &b)| s ^ naive(a, b));
        let nodes = random(&mut prg, TREES * len);
        for path in paths() {
            assert!(path.dot(&a, &b).reduce() == expected, "{path:?} {len}");
            let lanes = path.dot_lanes(&a, nodes.as_chunks().0);
            for (t, lane) in lanes.into_iter().enumerate() {
                let column: Vec<Block> = nodes.iter().skip(t).step_by(TREES).copied().collect();
                assert!(lane.reduce() == dot(&a, &column), "{path:?} {len} {t}");
            }
        }
    }
}

/// GCM's test case 2 (McGrew–Viega; NIST SP 800-38D's GHASH), whose bits run the other way.
#[test]
fn ghash_has_the_value_of_the_gcm_specification() {
    let gcm = |hex: u128| Block(hex.reverse_bits());
    let h = gcm(0x66e9_4bd4_ef8a_2c3b_884c_fa59_ca34_2b2e);
    let cipher = gcm(0x0388_dace_60b6_a392_f328_c2b9_71b2_fe78);
    let lengths = gcm(0x80);
    let ghash = mul(mul(cipher, h) ^ lengths, h);
    assert!(ghash == gcm(0xf38c_bb1a_d692_23dc_c345_7ae5_b6b0_f885));
}

#[test]
fn powers_and_packing_are_their_formulas() {
    let mut prg = Prg::from_seed(Block(5));
    let base = prg.next_block();
    let table = powers(base, 64);
    for (i, &entry) in table.iter().enumerate() {
        assert!(power(base, i as u64, 6) == entry, "{i}");
    }
    let (delta, bits) = (prg.next_block(), prg.next_block());
    let blocks: Vec<Block> = (0..128)
        .map(|i| delta.keep_if((bits.0 >> i & 1) as u8))
        .collect();
    assert!(pack(&blocks) == mul(bits, delta));
}
