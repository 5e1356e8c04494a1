//! Moving a vector's elements by a secret permutation or shift, on one party's own machine: neither
//! time nor addresses depend on the secret.

use volvelle_prim::Prg;
use zeroize::Zeroizing;

/// Batcher's merge exchange, a sorting network for any number of elements (Knuth, The Art of Computer
/// Programming 3, Algorithm 5.2.2M).
pub(crate) struct Network {
    elements: usize,
    comparisons: Vec<(u16, u16)>,
}

/// A permutation `π` as what the network does to sort it: 1 for each comparison that exchanges. It
/// then brings element `i` to place `π(i)`.
pub(crate) struct Switches(Zeroizing<Vec<u8>>);

/// Comparisons of the network for a number of elements.
pub(crate) fn comparisons(elements: usize) -> usize {
    let mut count = 0;
    for_comparisons(elements, |_, _| count += 1);
    count
}

/// Calls `visit` with the places of each comparison, in order.
fn for_comparisons(elements: usize, mut visit: impl FnMut(usize, usize)) {
    let half = elements.next_power_of_two() / 2;
    let mut p = half;
    while p > 0 {
        let (mut q, mut r, mut d) = (half, 0, p);
        loop {
            let low = (0..elements.saturating_sub(d)).filter(|i| i & p == r);
            low.for_each(|i| visit(i, i + d));
            if q == p {
                break;
            }
            (d, q, r) = (q - p, q / 2, p);
        }
        p /= 2;
    }
}

impl Switches {
    /// Which comparisons exchange, last first.
    pub fn backwards(&self) -> impl Iterator<Item = u8> {
        self.0.iter().rev().copied()
    }
}

impl Network {
    /// For a number of elements, at most `2^16`.
    pub fn new(elements: usize) -> Self {
        let mut comparisons = Vec::new();
        for_comparisons(elements, |low, high| {
            comparisons.push((low as u16, high as u16));
        });
        Self {
            elements,
            comparisons,
        }
    }

    /// Number of comparisons.
    pub fn len(&self) -> usize {
        self.comparisons.len()
    }

    /// The places compared, last first.
    pub fn backwards(&self) -> impl Iterator<Item = (usize, usize)> {
        let comparisons = self.comparisons.iter().rev();
        comparisons.map(|&(low, high)| (low.into(), high.into()))
    }

    /// The switches of `π(0), π(1), …`; nothing if that is no permutation, which is all that time shows.
    pub fn switches(&self, permutation: &[u32]) -> Option<Switches> {
        let mut keys = Zeroizing::new(permutation.iter().map(|&p| p.into()).collect());
        let switches = self.sort(&mut keys);
        let wrong = keys
            .iter()
            .zip(0..)
            .fold(0, |wrong, (&p, i)| wrong | (p ^ i));
        (wrong == 0).then_some(switches)
    }

    /// The switches of a uniform permutation: the ranks of random keys.
    pub fn random(&self, prg: &mut Prg) -> Switches {
        let mut words = Zeroizing::new(vec![0; 2 * self.elements]);
        prg.fill_u64(&mut words);
        // 128 bits: two keys are equal with probability below n²/2^129.
        let keys = words.chunks_exact(2);
        let keys = keys.map(|w| u128::from(w[0]) << 64 | u128::from(w[1]));
        self.sort(&mut Zeroizing::new(keys.collect()))
    }

    fn sort(&self, keys: &mut Zeroizing<Vec<u128>>) -> Switches {
        let mut exchanges = Zeroizing::new(Vec::with_capacity(self.comparisons.len()));
        for &(low, high) in &self.comparisons {
            let (a, b) = (keys[low as usize], keys[high as usize]);
            let exchange = u8::from(b < a);
            let change = (a ^ b) & u128::from(exchange).wrapping_neg();
            keys[low as usize] = a ^ change;
            keys[high as usize] = b ^ change;
            exchanges.push(exchange);
        }
        Switches(exchanges)
    }

    /// Moves element `i` to place `π(i)`.
    pub fn forward(&self, switches: &Switches, values: &mut [u64]) {
        let steps = self.comparisons.iter().zip(switches.0.iter());
        steps.for_each(|(at, &exchange)| swap(values, at, exchange));
    }

    /// Moves element `π(i)` to place `i`.
    pub fn backward(&self, switches: &Switches, values: &mut [u64]) {
        let steps = self.comparisons.iter().zip(switches.0.iter()).rev();
        steps.for_each(|(at, &exchange)| swap(values, at, exchange));
    }
}

#[inline(always)]
fn swap(values: &mut [u64], &(low, high): &(u16, u16), exchange: u8) {
    let chosen = u64::from(exchange).wrapping_neg();
    let change = (values[low as usize] ^ values[high as usize]) & chosen;
    values[low as usize] ^= change;
    values[high as usize] ^= change;
}

/// Moves element `i` to place `i + shift mod n`, `n` a power of two: one masked step a bit of the
/// shift. `scratch` is as long as the vector.
pub(crate) fn rotate(vector: &mut [u64], shift: u64, scratch: &mut [u64]) {
    for t in 0..vector.len().ilog2() {
        let step = 1 << t;
        let chosen = (shift >> t & 1).wrapping_neg();
        let (head, tail) = scratch.split_at_mut(step);
        head.copy_from_slice(&vector[vector.len() - step..]);
        tail.copy_from_slice(&vector[..vector.len() - step]);
        for (value, &moved) in vector.iter_mut().zip(scratch.iter()) {
            *value ^= (*value ^ moved) & chosen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use volvelle_prim::Block;

    /// All permutations of a few elements.
    fn all(len: usize) -> Vec<Vec<u32>> {
        if len == 0 {
            return vec![vec![]];
        }
        let shorter = all(len - 1);
        let inserted = shorter.iter().flat_map(|p| {
            (0..len).map(move |at| {
                let mut p = p.clone();
                p.insert(at, len as u32 - 1);
                p
            })
        });
        inserted.collect()
    }

    fn check(network: &Network, permutation: &[u32]) {
        let switches = network.switches(permutation).unwrap();
        let values: Vec<u64> = (0..permutation.len() as u64).map(|v| v * v + 3).collect();
        let (mut forward, mut backward) = (values.clone(), values.clone());
        network.forward(&switches, &mut forward);
        network.backward(&switches, &mut backward);
        for (i, &p) in permutation.iter().enumerate() {
            assert_eq!(forward[p as usize], values[i]);
            assert_eq!(backward[i], values[p as usize]);
        }
    }

    #[test]
    fn every_permutation_of_up_to_6() {
        for len in 1..=6 {
            let network = Network::new(len);
            all(len).iter().for_each(|p| check(&network, p));
        }
    }

    #[test]
    fn random_permutations_are_permutations_and_differ() {
        let mut prg = Prg::from_seed(Block(1));
        let network = Network::new(5);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..12_000 {
            let mut values: Vec<u64> = (0..5).collect();
            let switches = network.random(&mut prg);
            network.backward(&switches, &mut values);
            *counts.entry(values).or_insert(0) += 1;
        }
        // 120 permutations, 100 ± 10 each.
        assert_eq!(counts.len(), 120);
        assert!(counts.values().all(|&count| (50..150).contains(&count)));
    }

    #[test]
    fn what_is_no_permutation_is_refused() {
        let network = Network::new(4);
        for wrong in [
            [0, 1, 2, 2],
            [1, 2, 3, 4],
            [0, 0, 0, 0],
            [3, 2, 1, u32::MAX],
        ] {
            assert!(network.switches(&wrong).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_length(len in 1usize..200, seed: u64) {
            let network = Network::new(len);
            let switches = network.random(&mut Prg::from_seed(Block(seed.into())));
            let mut values: Vec<u64> = (0..len as u64).collect();
            network.backward(&switches, &mut values);
            let permutation: Vec<u32> = values.iter().map(|&v| v as u32).collect();
            check(&network, &permutation);
        }
    }

    #[test]
    fn rotations() {
        for log in 1..=6 {
            let vector: Vec<u64> = (0..1 << log).collect();
            for shift in 0..1 << log {
                let (mut rotated, mut scratch) = (vector.clone(), vector.clone());
                rotate(&mut rotated, shift, &mut scratch);
                let mut expected = vector.clone();
                expected.rotate_right(shift as usize);
                assert_eq!(rotated, expected);
            }
        }
    }
}
