//! Which of two ways to sum rows is faster, found out while they are summed.
//!
//! Asking for entries ahead of their use pays where the last-level cache is shared with others that are busy, and costs
//! where it is not; that changes from one second to the next. Both ways give the same, and what is timed is public.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Runs of fewer rows are not timed.
const ROWS: usize = 1 << 10;
/// Of so many runs each way gets one, whichever is faster.
const PROBES: u32 = 32;

pub(super) enum Pace {
    /// Always this way: entries asked for ahead or not.
    Always(bool),
    Timed(Timed),
}

/// Lately, rows in turn and with entries asked for ahead have taken so many picoseconds each.
#[derive(Default)]
pub(super) struct Timed {
    runs: AtomicU32,
    row: [AtomicU32; 2],
}

impl Pace {
    pub fn timed() -> Self {
        Self::Timed(Timed::default())
    }

    /// Sums so many rows by `sum`, which is told whether to ask for entries ahead.
    pub fn run(&self, rows: usize, sum: impl FnOnce(bool)) {
        let timed = match self {
            Self::Always(ahead) => return sum(*ahead),
            Self::Timed(timed) => timed,
        };
        let ahead = timed.next();
        if rows < ROWS {
            return sum(ahead);
        }
        let start = Instant::now();
        sum(ahead);
        timed.note(ahead, rows, start.elapsed());
    }
}

impl Timed {
    fn next(&self) -> bool {
        let [in_turn, ahead] = &self.row;
        match self.runs.fetch_add(1, Ordering::Relaxed) % PROBES {
            0 => false,
            1 => true,
            _ => ahead.load(Ordering::Relaxed) < in_turn.load(Ordering::Relaxed),
        }
    }

    /// A quarter of what is known is new, and that at most twice as slow, so that an interrupted run does not count for long.
    fn note(&self, ahead: bool, rows: usize, took: Duration) {
        let row = &self.row[usize::from(ahead)];
        let new = (1000 * took.as_nanos() / rows as u128).clamp(1, 1 << 24) as u32;
        let known = match row.load(Ordering::Relaxed) {
            0 => new,
            known => known - known / 4 + new.min(2 * known) / 4,
        };
        row.store(known, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_way_is_taken_and_the_other_looked_at_now_and_then() {
        let timed = Timed::default();
        let took = |ns| Duration::from_nanos(ns);
        for (slow, fast) in [(false, true), (true, false)] {
            let mut runs = [0; 2];
            for _ in 0..100 * PROBES {
                let ahead = timed.next();
                runs[usize::from(ahead)] += 1;
                let ns = if ahead == slow { 12_000 } else { 10_000 };
                timed.note(ahead, 1000, took(ns));
            }
            assert!(runs[usize::from(slow)] < 120, "{runs:?}");
            assert!(runs[usize::from(fast)] > 30 * 100, "{runs:?}");
        }
        // One interrupted run.
        let before = timed.next();
        timed.note(before, 1000, took(1 << 40));
        for _ in 0..4 * PROBES {
            timed.note(timed.next(), 1000, took(10_000));
        }
        let known = timed.row.each_ref().map(|row| row.load(Ordering::Relaxed));
        assert!(known.iter().all(|known| *known < 11_000), "{known:?}");
    }

    #[test]
    fn short_runs_and_fixed_ways() {
        let pace = Pace::timed();
        let mut seen = Vec::new();
        for _ in 0..4 {
            pace.run(ROWS - 1, |ahead| seen.push(ahead));
        }
        assert_eq!(seen, [false, true, false, false]);
        for way in [false, true] {
            Pace::Always(way).run(ROWS, |ahead| assert_eq!(ahead, way));
        }
    }
}
