//! What is made of a case's runs, and in which order cases are run.

use std::collections::BTreeMap;

use volvelle_lut::Protocol;
use volvelle_prim::{Block, Prg};

use super::case::{Case, Key, Kind};
use super::measure::Trial;
use crate::bench::lut::Run;
use crate::bench::making::Making;

/// How the planner's choice by total time went in one case.
#[derive(Clone, Debug)]
pub struct ChoiceMade {
    pub link: usize,
    pub kind: Kind,
    /// What it chose before each turn, the same ones once.
    pub chosen: Vec<Protocol>,
    /// What was measured for these: the median over the turns.
    pub us: f64,
}

impl ChoiceMade {
    /// `us`: what was measured in a case.
    pub fn of(
        (link, kind): (usize, Kind),
        mut chosen: Vec<Protocol>,
        us: impl Fn(&Key) -> Option<f64>,
    ) -> Option<Self> {
        let of_turn = chosen.iter().filter_map(|&protocol| {
            us(&Key {
                link,
                kind,
                protocol,
                once: None,
            })
        });
        let mut us: Vec<f64> = of_turn.collect();
        us.sort_by(f64::total_cmp);
        chosen.dedup();
        Some(Self {
            link,
            kind,
            chosen,
            us: *us.get(us.len() / 2)?,
        })
    }
}

/// Cases of the same kind, which differ in the protocol alone.
pub fn groups(trials: &BTreeMap<Key, Trial>) -> Vec<Vec<Key>> {
    let mut groups: BTreeMap<_, Vec<Key>> = BTreeMap::new();
    for &key in trials.keys() {
        let group = groups.entry((key.link, key.kind, key.once));
        group.or_default().push(key);
    }
    groups.into_values().collect()
}

/// Puts them in another order each turn.
pub fn shuffle<T>(items: &mut [T], turn: usize) {
    let mut prg = Prg::from_seed(Block(turn as u128));
    for left in (2..=items.len()).rev() {
        let place = prg.next_block().0 % left as u128;
        items.swap(left - 1, place as usize);
    }
}

/// The median run, with what was checked in all.
pub fn median(mut runs: Vec<Case>) -> Case {
    let (checked, wrong) = runs.iter().fold((0, 0), |(checked, wrong), run| {
        (checked + run.checked, wrong + run.wrong)
    });
    runs.sort_by(|a, b| a.total().us.total_cmp(&b.total().us));
    let median = runs.swap_remove(runs.len() / 2);
    Case {
        checked,
        wrong,
        ..median
    }
}

/// The making of OTs in some runs, and how many these used.
pub struct Made {
    pub making: Making,
    pub used: f64,
}

impl Made {
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let (mut making, mut used) = (Making::default(), 0.0);
        for phase in runs.into_iter().flat_map(|run| [&run.prep, &run.online]) {
            making.add(phase);
            used += phase.used();
        }
        Self { making, used }
    }

    /// The same, each OT for what made the median one: a slow spell in some of the runs does not count.
    pub fn typical<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let runs: Vec<Self> = runs.into_iter().map(|run| Self::of([run])).collect();
        Self {
            used: runs.iter().map(|run| run.used).sum(),
            making: Making::typical(runs.into_iter().map(|run| run.making)),
        }
    }

    /// Whether they have not lived on what was left over. A party makes all that both use.
    pub fn is_enough(&self) -> bool {
        self.making.is_of(self.used / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A choice that changed from turn to turn is judged by what it was in each.
    #[test]
    fn the_choice_of_each_turn_counts() {
        let kind = Kind {
            entries: 4,
            word: 8,
            xor: false,
        };
        let (doubling, splut) = (Protocol::Doubling, Protocol::SpLut);
        let us = |key: &Key| match key.protocol {
            Protocol::Doubling => Some(1.0),
            Protocol::SpLut => Some(2.0),
            _ => None,
        };
        let chosen = vec![doubling, splut, splut];
        let choice = ChoiceMade::of((2, kind), chosen, us).unwrap();
        assert_eq!((choice.us, choice.chosen), (2.0, vec![doubling, splut]));
        assert!(ChoiceMade::of((2, kind), vec![Protocol::Tree], us).is_none());
    }
}
