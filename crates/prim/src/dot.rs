//! Products of pseudorandom words with table entries, summed: the inner loop of the one-round lookup.

use crate::{Backend, Block};

/// Nodes of which one register holds the words.
pub const GROUP: usize = 4;

/// Sums over all nodes, for two tables each: the first has the low half of a block, the second the high one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dot {
    /// `Σ word·entry`.
    pub products: [u64; 2],
    /// `Σ entry` where bit 0 of the node is set.
    pub odd: [u64; 2],
}

/// Sums over the nodes `j` with words `words[j]` and entries `entries[j ⊕ 4·moved]`, modulo 2^64. Every entry is read.
///
/// # Panics
/// If the lengths differ, or `moved` is not below a quarter of it.
#[must_use]
pub fn dot(nodes: &[Block], words: &[Block], entries: &[[u64; 2]], moved: usize) -> Dot {
    assert!(
        nodes.len() == words.len() && nodes.len() == entries.len(),
        "{} nodes, {} words, {} entries",
        nodes.len(),
        words.len(),
        entries.len()
    );
    assert!(
        moved == 0 || nodes.len().is_power_of_two() && moved < nodes.len() / GROUP,
        "{} entries moved by {moved} groups",
        nodes.len()
    );
    #[cfg(target_arch = "x86_64")]
    {
        let backend = Backend::current();
        if backend == Backend::Vaes {
            // SAFETY: the Vaes backend is current only where AVX-512F and DQ were detected; lengths checked above.
            return unsafe { dot_avx512(nodes, words, entries, moved) };
        }
        if backend >= Backend::Avx2 {
            // SAFETY: these backends are current only where AVX2 was detected; lengths checked above.
            return unsafe { dot_avx2(nodes, words, entries, moved) };
        }
    }
    portable(nodes, words, entries, moved)
}

fn halves(block: Block) -> [u64; 2] {
    [block.0 as u64, (block.0 >> 64) as u64]
}

fn portable(nodes: &[Block], words: &[Block], entries: &[[u64; 2]], moved: usize) -> Dot {
    let mut sums = Dot::default();
    for (j, (node, &word)) in nodes.iter().zip(words).enumerate() {
        let entry = entries[j ^ (GROUP * moved)];
        let odd = u64::from(node.lsb()).wrapping_neg();
        for (half, word) in halves(word).into_iter().enumerate() {
            let product = word.wrapping_mul(entry[half]);
            sums.products[half] = sums.products[half].wrapping_add(product);
            sums.odd[half] = sums.odd[half].wrapping_add(entry[half] & odd);
        }
    }
    sums
}

/// [`portable`] with AVX-512.
///
/// # Safety
/// The machine has AVX-512 F and DQ; the lengths are equal, and `moved` below a quarter of them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn dot_avx512(nodes: &[Block], words: &[Block], entries: &[[u64; 2]], moved: usize) -> Dot {
    use std::arch::x86_64::*;
    let (nodes, last_nodes) = nodes.as_chunks::<GROUP>();
    let (words, last_words) = words.as_chunks::<GROUP>();
    let (groups, last_entries) = entries.as_chunks::<GROUP>();
    let mut products = _mm512_setzero_si512();
    let mut odd = _mm512_setzero_si512();
    let one = _mm512_set1_epi64(1);
    for (g, (node, word)) in nodes.iter().zip(words).enumerate() {
        // SAFETY: all three are 64 readable bytes.
        let (node, word, entry) = unsafe {
            (
                _mm512_loadu_si512(node.as_ptr().cast()),
                _mm512_loadu_si512(word.as_ptr().cast()),
                _mm512_loadu_si512(groups[g ^ moved].as_ptr().cast()),
            )
        };
        products = _mm512_add_epi64(products, _mm512_mullo_epi64(word, entry));
        let set = _mm512_test_epi64_mask(_mm512_shuffle_epi32(node, 0x44), one);
        odd = _mm512_mask_add_epi64(odd, set, odd, entry);
    }
    let mut lanes = [[0u64; 8]; 2];
    for (lanes, sum) in lanes.iter_mut().zip([products, odd]) {
        // SAFETY: the lanes are 64 writable bytes.
        unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), sum) };
    }
    let rest = portable(last_nodes, last_words, last_entries, 0);
    with_lanes(rest, &lanes[0], &lanes[1])
}

/// [`portable`] with AVX2, which multiplies 32 bits: `word·entry` is the product of the low halves, and 2^32 times the
/// sum of both mixed products, which are summed apart.
///
/// # Safety
/// The machine has AVX2; the lengths are equal, and `moved` below a quarter of them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn dot_avx2(nodes: &[Block], words: &[Block], entries: &[[u64; 2]], moved: usize) -> Dot {
    use std::arch::x86_64::*;
    let (nodes, last_nodes) = nodes.as_chunks::<GROUP>();
    let (words, last_words) = words.as_chunks::<GROUP>();
    let (groups, last_entries) = entries.as_chunks::<GROUP>();
    let mut low = _mm256_setzero_si256();
    let mut mixed = _mm256_setzero_si256();
    let mut odd = _mm256_setzero_si256();
    for (g, (nodes, words)) in nodes.iter().zip(words).enumerate() {
        let entries = &groups[g ^ moved];
        for half in [0, 2] {
            // SAFETY: all three are 32 readable bytes.
            let (node, word, entry) = unsafe {
                (
                    _mm256_loadu_si256(nodes[half..half + 2].as_ptr().cast()),
                    _mm256_loadu_si256(words[half..half + 2].as_ptr().cast()),
                    _mm256_loadu_si256(entries[half..half + 2].as_ptr().cast()),
                )
            };
            low = _mm256_add_epi64(low, _mm256_mul_epu32(word, entry));
            let swapped = _mm256_shuffle_epi32::<0b10_11_00_01>(entry);
            mixed = _mm256_add_epi32(mixed, _mm256_mullo_epi32(word, swapped));
            // Bit 0 of the node to the sign of its four words, then over each.
            let sign = _mm256_slli_epi32::<31>(_mm256_shuffle_epi32::<0>(node));
            let set = _mm256_srai_epi32::<31>(sign);
            odd = _mm256_add_epi64(odd, _mm256_and_si256(entry, set));
        }
    }
    // The mixed products of a word meet in its high half.
    let mixed = _mm256_add_epi32(mixed, _mm256_slli_epi64::<32>(mixed));
    let high = _mm256_and_si256(mixed, _mm256_set1_epi64x(!0 << 32));
    let products = _mm256_add_epi64(low, high);
    let mut lanes = [[0u64; 4]; 2];
    for (lanes, sum) in lanes.iter_mut().zip([products, odd]) {
        // SAFETY: the lanes are 32 writable bytes.
        unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
    }
    let rest = portable(last_nodes, last_words, last_entries, 0);
    with_lanes(rest, &lanes[0], &lanes[1])
}

/// Adds to sums the lanes of registers of products and of odd nodes' entries.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn with_lanes(mut sums: Dot, products: &[u64], odd: &[u64]) -> Dot {
    for (i, (&product, &odd)) in products.iter().zip(odd).enumerate() {
        sums.products[i % 2] = sums.products[i % 2].wrapping_add(product);
        sums.odd[i % 2] = sums.odd[i % 2].wrapping_add(odd);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn every_length_agrees_with_the_portable_twin() {
        let mut prg = Prg::from_seed(Block(9));
        for len in (1..20).chain([32, 64, 256]) {
            let (mut nodes, mut words) = (vec![Block::ZERO; len], vec![Block::ZERO; len]);
            let mut entries = words.clone();
            for blocks in [&mut nodes, &mut words, &mut entries] {
                prg.fill_blocks(blocks);
            }
            let entries: Vec<[u64; 2]> = entries.into_iter().map(halves).collect();
            let moves = if len.is_power_of_two() {
                len / GROUP
            } else {
                0
            };
            for moved in 0..moves.max(1) {
                let expected = portable(&nodes, &words, &entries, moved);
                assert_eq!(
                    dot(&nodes, &words, &entries, moved),
                    expected,
                    "{len}, {moved}"
                );
                #[cfg(target_arch = "x86_64")]
                if Backend::available().contains(&Backend::Avx2) {
                    // SAFETY: AVX2 was detected; the lengths are those of the call above.
                    let twin = unsafe { dot_avx2(&nodes, &words, &entries, moved) };
                    assert_eq!(twin, expected, "{len}, {moved}");
                }
            }
        }
    }
}
