//! How far a sample is from uniform, in standard deviations.

use volvelle_prim::Block;

/// Deviations beyond this are failures. Under the hypothesis one in 5·10^8 statistics is.
const LIMIT: f64 = 6.0;

fn within(what: &str, statistic: &str, deviation: f64) {
    assert!(
        deviation.abs() < LIMIT,
        "{what}: {statistic} is {deviation:.1} standard deviations off"
    );
}

/// Deviation of the number of ones among `count` fair coins.
fn coins(ones: u64, count: u64) -> f64 {
    (2.0 * ones as f64 - count as f64) / (count as f64).sqrt()
}

/// Deviation of a chi-square value (Wilson and Hilferty, 1931).
fn chi_square(value: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    ((value / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Chi-square of counts against their expectations.
fn distance(counts: impl IntoIterator<Item = (u64, f64)>) -> f64 {
    counts
        .into_iter()
        .map(|(count, expected)| (count as f64 - expected).powi(2) / expected)
        .sum()
}

/// A sample of blocks: how often every byte has every value.
pub(super) struct Blocks {
    counts: Vec<[u64; 256]>,
    len: u64,
}

impl Blocks {
    pub(super) fn new() -> Self {
        Self {
            counts: vec![[0; 256]; 16],
            len: 0,
        }
    }

    pub(super) fn add(&mut self, blocks: impl IntoIterator<Item = Block>) {
        for block in blocks {
            for (counts, byte) in self.counts.iter_mut().zip(block.to_bytes()) {
                counts[usize::from(byte)] += 1;
            }
            self.len += 1;
        }
    }

    fn ones(&self, bit: usize) -> u64 {
        let counts = self.counts[bit / 8].iter().enumerate();
        counts
            .filter(|(value, _)| value >> (bit % 8) & 1 == 1)
            .map(|(_, count)| count)
            .sum()
    }

    /// Every bit is unbiased and the values of every byte are as frequent as one another.
    pub(super) fn look_uniform(&self, what: &str) {
        self.look_uniform_from(0, what);
    }

    /// The same but for bit 0, which is always 0.
    pub(super) fn look_uniform_but_for_bit_0(&self, what: &str) {
        assert_eq!(self.ones(0), 0, "{what}: bit 0");
        self.look_uniform_from(1, what);
    }

    fn look_uniform_from(&self, first_bit: usize, what: &str) {
        assert!(
            self.len > 1 << 15,
            "{what}: too few for statistics, {}",
            self.len
        );
        for bit in first_bit..128 {
            let off = coins(self.ones(bit), self.len);
            within(what, &format!("bit {bit}"), off);
        }
        for (at, counts) in self.counts.iter().enumerate().skip(first_bit) {
            let expected = self.len as f64 / 256.0;
            let value = distance(counts.iter().map(|&count| (count, expected)));
            within(what, &format!("byte {at}"), chi_square(value, 255.0));
        }
    }
}

/// A sequence of bits.
pub(super) struct Bits {
    words: Vec<u64>,
    len: usize,
}

/// Run lengths that are counted apart; longer ones are counted together.
const RUNS: usize = 12;
/// Words of a stretch: 4096 bits.
const STRETCH: usize = 64;

impl Bits {
    pub(super) fn new() -> Self {
        Self {
            words: Vec::new(),
            len: 0,
        }
    }

    pub(super) fn add(&mut self, bits: impl IntoIterator<Item = bool>) {
        for bit in bits {
            if self.len.is_multiple_of(64) {
                self.words.push(0);
            }
            self.words[self.len / 64] |= u64::from(bit) << (self.len % 64);
            self.len += 1;
        }
    }

    /// Ones as often as zeros, over all and in stretches; runs as long as a fair coin's; no bit depends on the one
    /// 1 to 64 places before.
    pub(super) fn look_uniform(&self, what: &str) {
        // Whole words: an end that is left out changes nothing.
        let words = &self.words[..self.len / 64];
        assert!(words.len() >= 512, "{what}: too few for statistics");
        let ones = |words: &[u64]| words.iter().map(|w| u64::from(w.count_ones())).sum();
        within(what, "ones", coins(ones(words), 64 * words.len() as u64));
        let runs = runs(words);
        let all = runs.iter().sum::<u64>() as f64;
        let expected = (1..=RUNS as i32)
            .map(|length| all * 0.5f64.powi(length))
            .chain([all * 0.5f64.powi(RUNS as i32)]);
        let value = distance(runs.into_iter().zip(expected));
        within(what, "runs", chi_square(value, RUNS as f64));
        let stretches = words.chunks_exact(STRETCH);
        let (mut value, freedom) = (0.0, stretches.len() as f64);
        for (at, stretch) in stretches.enumerate() {
            let off = coins(ones(stretch), 64 * STRETCH as u64);
            within(what, &format!("stretch {at}"), off);
            value += off * off;
        }
        within(what, "all stretches", chi_square(value, freedom));
        for lag in 1..=64 {
            let (differ, pairs) = differences(words, lag);
            within(what, &format!("lag {lag}"), coins(differ, pairs));
        }
    }
}

/// How many bits differ from the one `lag ≤ 64` places before, and of how many.
fn differences(words: &[u64], lag: u32) -> (u64, u64) {
    let mut differ = 0;
    for pair in words.windows(2) {
        let later = (u128::from(pair[1]) << 64 | u128::from(pair[0])) >> lag;
        differ += u64::from((pair[0] ^ later as u64).count_ones());
    }
    (differ, 64 * (words.len() as u64 - 1))
}

/// How many runs have length 1, 2, …, and more. The last, which the end cuts off, is not counted.
fn runs(words: &[u64]) -> [u64; RUNS + 1] {
    let (mut counts, mut length, mut last) = ([0; RUNS + 1], 0, words[0] & 1);
    for word in words {
        for i in 0..64 {
            let bit = word >> i & 1;
            if bit != last {
                counts[(length - 1).min(RUNS)] += 1;
                (length, last) = (0, bit);
            }
            length += 1;
        }
    }
    counts
}

mod tests {
    use volvelle_prim::Prg;

    use super::*;

    fn sample() -> (Vec<Block>, Vec<bool>) {
        let mut blocks = vec![Block::ZERO; 1 << 16];
        Prg::from_seed(Block(1)).fill_blocks(&mut blocks);
        let bits = blocks.iter().map(|b| b.lsb()).collect();
        (blocks, bits)
    }

    fn bits(of: impl IntoIterator<Item = bool>) {
        let mut bits = Bits::new();
        bits.add(of);
        bits.look_uniform("test");
    }

    fn blocks(of: impl IntoIterator<Item = Block>) {
        let mut blocks = Blocks::new();
        blocks.add(of);
        blocks.look_uniform("test");
    }

    #[test]
    fn a_generator_passes() {
        let (some, coins) = sample();
        blocks(some);
        bits(coins);
    }

    #[test]
    #[should_panic(expected = "test: bit 77 is")]
    fn a_bias_of_a_fiftieth_in_a_bit_fails() {
        let (some, _) = sample();
        let biased = |(i, b): (usize, Block)| Block(b.0 | u128::from(i % 25 == 0) << 77);
        blocks(some.into_iter().enumerate().map(biased));
    }

    #[test]
    #[should_panic(expected = "test: byte 3 is")]
    fn a_byte_with_unbiased_bits_that_are_not_independent_fails() {
        let (some, _) = sample();
        // Bit 25 is bit 24 in a fifth of the blocks.
        let tied = |(i, b): (usize, Block)| {
            let differ = if i % 5 == 0 { b.0 >> 24 ^ b.0 >> 25 } else { 0 };
            Block(b.0 ^ (differ & 1) << 25)
        };
        blocks(some.into_iter().enumerate().map(tied));
    }

    #[test]
    #[should_panic(expected = "test: lag 37 is")]
    fn a_bit_that_depends_on_the_37th_before_fails() {
        let (_, mut coins) = sample();
        for i in (37..coins.len()).step_by(20) {
            coins[i] = coins[i - 37];
        }
        bits(coins);
    }

    #[test]
    #[should_panic(expected = "test: stretch 3 is")]
    fn a_stretch_of_more_ones_fails() {
        let (_, mut coins) = sample();
        for i in 0..500 {
            coins[3 * 4096 + i] = true;
            coins[11 * 4096 + i] = false;
        }
        bits(coins);
    }

    #[test]
    #[should_panic(expected = "test: runs is")]
    fn long_runs_that_are_missing_fail() {
        let (_, mut coins) = sample();
        for i in 8..coins.len() {
            // The opposite of nine alike, and one alike for it elsewhere, so that nothing but runs shows.
            if coins[i - 8..=i].iter().all(|&b| b == coins[i]) {
                coins[i] = !coins[i];
            }
        }
        bits(coins);
    }
}
