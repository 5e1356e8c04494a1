//! Sums of the rows and columns of matrices of ring elements whose rows stand moved by public amounts: the
//! local work of secret-shared rotation and permutation.

use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use crate::Backend;
use crate::Block;

/// Of `n` columns `d_0, d_1, …` of `n` elements each: `row = Σ d_t`, and `diagonal[j] = Σ d_t[j + t mod n]`.
/// An element is a little-endian word of `element_bytes` bytes, 1, 2, 4 or 8, and so is the ring; a column takes
/// whole blocks.
///
/// # Panics
/// If the lengths do not fit, or the size of an element is another.
pub fn rotated(leaves: &[Block], element_bytes: usize, row: &mut [u64], diagonal: &mut [u64]) {
    let n = row.len();
    assert_eq!(diagonal.len(), n, "diagonal sums");
    let blocks = (n * element_bytes).div_ceil(16);
    assert_eq!(leaves.len(), n * blocks, "blocks of {n} columns");
    assert!(
        matches!(element_bytes, 1 | 2 | 4 | 8),
        "elements of {element_bytes} bytes"
    );
    #[cfg(target_arch = "x86_64")]
    {
        let backend = Backend::current();
        if backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512 was detected.
            return unsafe {
                avx512::rotated(Block::as_bytes(leaves), element_bytes, row, diagonal)
            };
        }
        if backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2, BMI1, BMI2 and POPCNT were detected.
            return unsafe { avx2::rotated(Block::as_bytes(leaves), element_bytes, row, diagonal) };
        }
    }
    rotated_any(Block::as_bytes(leaves), element_bytes, row, diagonal);
}

/// Of trees of `2^k` leaves, 8 or more, leaf `j ⊕ δ_i` of tree `i` being element `j < n` of row `i`: `rows[i]`
/// is the sum of row `i`, `columns[j]` that of the elements `j`. In the ring of words.
///
/// # Panics
/// If the lengths do not fit, or a `δ` is not below the number of leaves.
pub fn renamed(trees: &[u64], delta: &[u64], rows: &mut [u64], columns: &mut [u64]) {
    let leaves = trees.len() / delta.len();
    assert!(leaves.is_power_of_two() && leaves >= 8, "{leaves} leaves");
    assert_eq!(trees.len(), leaves * delta.len(), "leaves of whole trees");
    assert_eq!(rows.len(), delta.len(), "row sums");
    assert!(columns.len() <= leaves, "columns of {leaves} leaves");
    #[cfg(target_arch = "x86_64")]
    {
        let backend = Backend::current();
        if backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512 was detected.
            return unsafe { avx512::renamed(trees, delta, rows, columns) };
        }
        if backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2, BMI1, BMI2 and POPCNT were detected.
            return unsafe { avx2::renamed(trees, delta, rows, columns) };
        }
    }
    renamed_any(trees, delta, rows, columns);
}

/// The portable twins compiled for wider registers.
#[cfg(target_arch = "x86_64")]
macro_rules! compiled_for {
    ($module:ident, $features:literal) => {
        mod $module {
            /// # Safety
            /// The machine has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn rotated(
                leaves: &[u8],
                element_bytes: usize,
                row: &mut [u64],
                diagonal: &mut [u64],
            ) {
                super::rotated_any(leaves, element_bytes, row, diagonal);
            }

            /// # Safety
            /// The machine has the features.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn renamed(
                trees: &[u64],
                delta: &[u64],
                rows: &mut [u64],
                columns: &mut [u64],
            ) {
                super::renamed_any(trees, delta, rows, columns);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
compiled_for!(avx2, "avx2,bmi1,bmi2,popcnt");
#[cfg(target_arch = "x86_64")]
compiled_for!(avx512, "avx512f,avx512bw,avx512dq,avx512vl");

macro_rules! rotated_in {
    ($name:ident, $word:ty, $bytes:expr) => {
        #[inline(always)]
        fn $name(leaves: &[u8], row: &mut [u64], diagonal: &mut [u64]) {
            let n = row.len();
            let mut sums = Zeroizing::new(vec![0 as $word; 2 * n]);
            let (straight, moved) = sums.split_at_mut(n);
            for (t, leaf) in leaves.chunks_exact(leaves.len() / n).enumerate() {
                let column = &leaf.as_chunks::<$bytes>().0[..n];
                let (wrapped, kept) = column.split_at(t);
                let (low, high) = moved.split_at_mut(n - t);
                for (sum, d) in straight.iter_mut().zip(column) {
                    *sum = sum.wrapping_add(<$word>::from_le_bytes(*d));
                }
                for (sum, d) in low.iter_mut().zip(kept) {
                    *sum = sum.wrapping_add(<$word>::from_le_bytes(*d));
                }
                for (sum, d) in high.iter_mut().zip(wrapped) {
                    *sum = sum.wrapping_add(<$word>::from_le_bytes(*d));
                }
            }
            for (out, &sum) in row.iter_mut().zip(straight.iter()) {
                *out = u64::from(sum);
            }
            for (out, &sum) in diagonal.iter_mut().zip(moved.iter()) {
                *out = u64::from(sum);
            }
        }
    };
}

rotated_in!(rotated_u8, u8, 1);
rotated_in!(rotated_u16, u16, 2);
rotated_in!(rotated_u32, u32, 4);
rotated_in!(rotated_u64, u64, 8);

#[inline(always)]
fn rotated_any(leaves: &[u8], element_bytes: usize, row: &mut [u64], diagonal: &mut [u64]) {
    match element_bytes {
        1 => rotated_u8(leaves, row, diagonal),
        2 => rotated_u16(leaves, row, diagonal),
        4 => rotated_u32(leaves, row, diagonal),
        _ => rotated_u64(leaves, row, diagonal),
    }
}

/// Column sums are kept apart by the low three bits of `δ`, so that what moves is groups of eight words.
#[inline(always)]
fn renamed_any(trees: &[u64], delta: &[u64], rows: &mut [u64], columns: &mut [u64]) {
    let groups = trees.len() / delta.len() / 8;
    let mut sums = Zeroizing::new(vec![[0u64; 8]; 8 * groups]);
    let trees = trees.as_chunks::<8>().0.chunks_exact(groups);
    let (whole, rest) = (columns.len() / 8, columns.len() % 8);
    for ((tree, &delta), row) in trees.zip(delta).zip(rows) {
        let (low, high) = (delta as usize % 8, delta as usize / 8);
        let sums = &mut sums[low * groups..][..groups];
        let mut across = [0u64; 8];
        for (group, sums) in sums.iter_mut().enumerate() {
            let leaves = &tree[group ^ high];
            // Elements beyond the last column are in no row.
            let counts = u64::from(group < whole).wrapping_neg();
            for t in 0..8 {
                sums[t] = sums[t].wrapping_add(leaves[t]);
                across[t] = across[t].wrapping_add(leaves[t] & counts);
            }
        }
        *row = 0;
        for sum in across {
            *row = row.wrapping_add(sum);
        }
        for t in 0..rest {
            *row = row.wrapping_add(tree[whole ^ high][t ^ low]);
        }
    }
    for (j, column) in columns.iter_mut().enumerate() {
        *column = 0;
        for low in 0..8 {
            *column = column.wrapping_add(sums[low * groups + j / 8][(j % 8) ^ low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    fn random(seed: u64, len: usize) -> Vec<u64> {
        let mut words = vec![0; len];
        Prg::from_seed(Block(seed.into())).fill_u64(&mut words);
        words
    }

    #[test]
    fn rotated_sums_are_their_formula() {
        for (log, element_bytes) in (1..=6).flat_map(|log| [1, 2, 4, 8].map(|b| (log, b))) {
            let n = 1usize << log;
            let blocks = (n * element_bytes).div_ceil(16);
            let mut leaves = vec![Block::ZERO; n * blocks];
            Prg::from_seed(Block(7)).fill_blocks(&mut leaves);
            let (mut row, mut diagonal) = (vec![1; n], vec![2; n]);
            rotated(&leaves, element_bytes, &mut row, &mut diagonal);
            let element = |t: usize, j: usize| {
                let at = 16 * t * blocks + j * element_bytes;
                let bytes = &Block::as_bytes(&leaves)[at..at + element_bytes];
                bytes.iter().rev().fold(0, |x, &b| x << 8 | u64::from(b))
            };
            let ring = crate::mask(8 * element_bytes as u32);
            let sum = |terms: &dyn Fn(usize) -> u64| {
                (0..n).fold(0, |sum: u64, t| sum.wrapping_add(terms(t))) & ring
            };
            for j in 0..n {
                assert_eq!(row[j], sum(&|t| element(t, j)), "{n}, {element_bytes}");
                assert_eq!(diagonal[j], sum(&|t| element(t, (j + t) % n)));
            }
            let (mut twin_row, mut twin_diagonal) = (vec![0; n], vec![0; n]);
            let bytes = Block::as_bytes(&leaves);
            rotated_any(bytes, element_bytes, &mut twin_row, &mut twin_diagonal);
            assert_eq!((&row, &diagonal), (&twin_row, &twin_diagonal));
            #[cfg(target_arch = "x86_64")]
            if Backend::available().contains(&Backend::Avx2) {
                // SAFETY: AVX2, BMI1, BMI2 and POPCNT were detected.
                unsafe { avx2::rotated(bytes, element_bytes, &mut twin_row, &mut twin_diagonal) };
                assert_eq!((row, diagonal), (twin_row, twin_diagonal));
            }
        }
    }

    #[test]
    fn renamed_sums_are_their_formula() {
        for n in [5, 7, 8, 9, 15, 16, 17, 24, 60, 64] {
            let leaves = usize::next_power_of_two(n).max(8);
            let trees = random(n as u64, n * leaves);
            let delta: Vec<u64> = random(1, n).iter().map(|d| d % leaves as u64).collect();
            let (mut rows, mut columns) = (vec![1; n], vec![2; n]);
            renamed(&trees, &delta, &mut rows, &mut columns);
            let element = |i: usize, j: usize| trees[i * leaves + (j ^ delta[i] as usize)];
            let sum = |terms: &dyn Fn(usize) -> u64| {
                (0..n).fold(0, |sum: u64, t| sum.wrapping_add(terms(t)))
            };
            for j in 0..n {
                assert_eq!(rows[j], sum(&|t| element(j, t)), "{n}");
                assert_eq!(columns[j], sum(&|t| element(t, j)), "{n}");
            }
            let (mut twin_rows, mut twin_columns) = (vec![0; n], vec![0; n]);
            renamed_any(&trees, &delta, &mut twin_rows, &mut twin_columns);
            assert_eq!((&rows, &columns), (&twin_rows, &twin_columns));
            #[cfg(target_arch = "x86_64")]
            if Backend::available().contains(&Backend::Avx2) {
                // SAFETY: AVX2, BMI1, BMI2 and POPCNT were detected.
                unsafe { avx2::renamed(&trees, &delta, &mut twin_rows, &mut twin_columns) };
                assert_eq!((rows, columns), (twin_rows, twin_columns));
            }
        }
    }
}
