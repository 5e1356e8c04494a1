//! What making OTs has taken, in a run or in several.

use super::lanes::Measured;

/// What making OTs has taken each end: microseconds, and how many came of it that could be used.
#[derive(Clone, Debug, Default)]
pub struct Making(pub(super) Vec<(f64, f64)>);

impl Making {
    /// Adds what a phase has made.
    pub fn add(&mut self, phase: &Measured) {
        self.0.resize(phase.making().0.len(), (0.0, 0.0));
        for (sum, more) in self.0.iter_mut().zip(&phase.making().0) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
    }

    /// Of several: at each end all OTs, each for what the median one took.
    pub fn typical(several: impl IntoIterator<Item = Self>) -> Self {
        let mut ends: Vec<Vec<(f64, f64)>> = Vec::new();
        for making in several {
            ends.resize(making.0.len(), Vec::new());
            for (end, made) in ends.iter_mut().zip(making.0) {
                end.push(made);
            }
        }
        Self(ends.into_iter().map(typical).collect())
    }

    /// The same time, for OTs used in place of OTs made: what came of it in the long run, waiting for links included.
    pub fn spread_over(mut self, used: f64) -> Self {
        self.0.iter_mut().for_each(|(_, made)| *made = used);
        self
    }

    /// Nanoseconds an OT, the slower party's.
    pub fn ns(&self) -> f64 {
        let ends = self.0.iter().map(|end| average([*end].into_iter()));
        1e3 * ends.fold(0.0, f64::max)
    }

    /// Whether so many were made at each end at least.
    pub fn is_of(&self, ots: f64) -> bool {
        self.0.iter().all(|(_, made)| *made >= ots)
    }
}

/// Σ cost / Σ number; 0 if there is none.
pub fn average(items: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (cost, number) = items.fold((0.0, 0.0), |sum, item| (sum.0 + item.0, sum.1 + item.1));
    if number > 0.0 { cost / number } else { 0.0 }
}

/// Pairs of cost and number: the sums, had each taken the median cost.
fn typical(mut items: Vec<(f64, f64)>) -> (f64, f64) {
    let all: f64 = items.iter().map(|item| item.1).sum();
    items.retain(|item| item.1 > 0.0);
    items.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let mut left = all / 2.0;
    let median = items.iter().find(|item| {
        left -= item.1;
        left <= 0.0
    });
    (median.map_or(0.0, |item| all * item.0 / item.1), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_spell_is_not_typical() {
        let runs = [(30.0, 3.0), (0.0, 0.0), (200.0, 2.0), (22.0, 2.0)];
        assert_eq!(typical(runs.to_vec()), (77.0, 7.0));
        assert_eq!(typical(vec![(5.0, 2.0)]), (5.0, 2.0));
        assert_eq!(typical(vec![]), (0.0, 0.0));
    }
}
