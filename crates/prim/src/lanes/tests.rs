use super::*;
use crate::Block;
use proptest::prelude::*;

/// Bit `i` of the string.
pub(super) fn bit(words: &[u64], i: usize) -> bool {
    words[i / 64] >> (i % 64) & 1 == 1
}

pub(super) fn random(seed: u64, len: usize) -> Vec<u64> {
    let mut out = vec![0; len];
    crate::Prg::from_seed(Block(seed.into())).fill_u64(&mut out);
    out
}

/// A message for each vector, whatever the backend and the width.
#[test]
fn doubling_refuses_other_lengths() {
    for width in [2usize, 64, 128, 256, 512, 1024] {
        let len = 2 * width.div_ceil(64);
        for (received, data) in [(len - 1, 2 * len), (len, len)] {
            let refused = std::panic::catch_unwind(|| {
                let (received, mut data) = (vec![0; received], vec![0; data]);
                append_products(width, &vec![0; len], &[0], &received, &mut data);
            });
            assert!(refused.is_err(), "{width}");
        }
    }
}

proptest! {
    #[test]
    fn doubling_is_its_formula(seed: u64, log in 1u32..12, count in 1usize..300) {
        let w = 1 << log;
        let len = words(count, w);
        let inputs = random(seed, 4 * len);
        let (v, data) = (&inputs[..len], &inputs[len..3 * len]);
        let (fold, received) = (&inputs[2 * len..3 * len], &inputs[3 * len..]);
        let bits = random(seed ^ 1, words(count, 1));
        let mut out = data.to_vec();
        append_products(w, v, &bits, received, &mut out);
        for backend in Backend::available() {
            let mut twin = data.to_vec();
            let done = twin!(backend, append_products(w, v, &bits, received, &mut twin));
            append_products_portable(w, done.unwrap_or(0), v, &bits, received, &mut twin);
            prop_assert!(out == twin, "{:?}", backend);
        }
        for i in 0..count {
            for j in 0..w {
                let at = i * w + j;
                let product = (bit(v, at) ^ bit(received, at)) & bit(&bits, i) ^ bit(fold, at);
                let product = if j == 0 { bit(&bits, i) } else { product };
                prop_assert_eq!(bit(&out, 2 * i * w + j), bit(v, at));
                prop_assert_eq!(bit(&out, (2 * i + 1) * w + j), product);
            }
        }
    }

    #[test]
    fn weights_are_counts(seed: u64, log in 0u32..5, count in 1usize..40) {
        let words = 1 << log;
        let rows = random(seed, words * count);
        let (mut out, mut portable) = (vec![9; count], vec![9; count]);
        weights(words, &rows, &mut out);
        weights_portable(words, &rows, &mut portable);
        for (i, row) in rows.chunks(words).enumerate() {
            let ones: u32 = row.iter().map(|w| w.count_ones()).sum();
            prop_assert_eq!([out[i], portable[i]], [(ones % 4) as u8; 2]);
        }
        for backend in Backend::available() {
            let mut twin = vec![9; count];
            if twin!(backend, weights(words, &rows, &mut twin)) == Some(()) {
                prop_assert_eq!(&twin, &portable);
            }
        }
    }

    #[test]
    fn sums_as_bytes(seed: u64, len in 0usize..200) {
        let (a, b) = (random(seed, 25), random(seed ^ 1, 25));
        let (mut out, mut portable) = (vec![9; len], vec![9; len]);
        xor_to_bytes(&a, &b, &mut out);
        xor_to_bytes_portable(&a, &b, &mut portable);
        prop_assert_eq!(&out, &portable);
        for backend in Backend::available() {
            let mut twin = vec![9; len];
            if twin!(backend, xor_to_bytes(&a, &b, &mut twin)) == Some(()) {
                prop_assert_eq!(&twin, &portable);
            }
        }
        let expected = a.iter().zip(&b).flat_map(|(a, b)| (a ^ b).to_le_bytes());
        prop_assert_eq!(out, expected.take(len).collect::<Vec<_>>());
    }

    #[test]
    fn starting_and_unpacking(seed: u64, count in 1usize..150, one: bool) {
        let bits = random(seed, words(count, 1));
        let mut packed = vec![0; words(count, 2)];
        start(&bits, one, &mut packed, count);
        let mut rows = vec![0; count];
        unpack(2, &packed, &mut rows);
        for (i, row) in rows.into_iter().enumerate() {
            let b = u64::from(bit(&bits, i));
            prop_assert_eq!(row, u64::from(one) | b << 1);
        }
        prop_assert!((2 * count..64 * packed.len()).all(|i| !bit(&packed, i)));
    }

    #[test]
    fn packing_bits(bits in prop::collection::vec(0u8..2, 1..300)) {
        let mut out = vec![0; words(bits.len(), 1)];
        let mut portable = out.clone();
        pack_bits(&bits, &mut out);
        pack_bits_portable(&bits, &mut portable);
        prop_assert_eq!(&out, &portable);
        prop_assert!(bits.iter().enumerate().all(|(i, &b)| bit(&out, i) == (b == 1)));
        let (mut back, mut back_portable) = (vec![9; bits.len()], vec![9; bits.len()]);
        unpack_bits(&out, &mut back);
        unpack_bits_portable(&out, &mut back_portable);
        prop_assert_eq!([&back, &back_portable], [&bits; 2]);
        for backend in Backend::available() {
            let mut twin = vec![0; out.len()];
            if twin!(backend, pack_bits(&bits, &mut twin)) == Some(()) {
                prop_assert_eq!(&twin, &portable);
                let mut back = vec![9; bits.len()];
                prop_assert_eq!(twin!(backend, unpack_bits(&twin, &mut back)), Some(()));
                prop_assert_eq!(&back, &bits);
            }
        }
    }
}
