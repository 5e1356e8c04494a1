//! Stretches of work that several threads do at once and that are timed together.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;
use std::time::{Duration, Instant};

use crate::error::CliError;

/// Looks at the other threads before the processor is given to them.
const SPINS: u32 = 2000;

/// Where threads meet before and after each stretch. What they do between two stretches is not timed.
pub struct Gate {
    threads: usize,
    arrivals: AtomicUsize,
    broken: AtomicBool,
    clock: Mutex<(Instant, Duration)>,
}

/// Another thread has failed and will not come.
#[derive(Debug)]
pub struct Broken;

impl From<Broken> for CliError {
    fn from(_: Broken) -> Self {
        Self::OtherThread
    }
}

impl Gate {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            threads,
            arrivals: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            clock: Mutex::new((Instant::now(), Duration::ZERO)),
        }
    }

    /// Waits for all threads, then runs this one's part of a stretch, and waits for all again. The stretch
    /// begins when the last thread has come and ends when the last is done.
    ///
    /// # Errors
    /// The part's, or [`Broken`] if another's has failed.
    pub fn stretch<E: From<Broken>>(&self, part: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.meet(|clock| clock.0 = Instant::now())?;
        part().inspect_err(|_| self.broken.store(true, Ordering::SeqCst))?;
        self.meet(|clock| clock.1 += clock.0.elapsed())?;
        Ok(())
    }

    /// The time of all stretches so far.
    pub fn total(&self) -> Duration {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// `last` is what the last thread to come does before all go on.
    fn meet(&self, last: impl FnOnce(&mut (Instant, Duration))) -> Result<(), Broken> {
        let place = self.arrivals.fetch_add(1, Ordering::SeqCst);
        // The last one's own arrival is counted a second time, after it has looked at the clock.
        let round = self.threads + 1;
        let complete = (place / round + 1) * round;
        if place % round == self.threads - 1 {
            last(&mut self.clock.lock().unwrap_or_else(PoisonError::into_inner));
            self.arrivals.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        let mut looks = 0;
        while self.arrivals.load(Ordering::SeqCst) < complete {
            if self.broken.load(Ordering::SeqCst) {
                return Err(Broken);
            }
            looks += 1;
            if looks < SPINS {
                spin_loop();
            } else {
                yield_now();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_done_one_stretch_before_any_begins_the_next() {
        let (gate, done) = (Gate::new(3), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..50 {
                        gate.stretch(|| {
                            assert!(done.fetch_add(1, Ordering::SeqCst) / 3 == round);
                            Ok::<(), Broken>(())
                        })
                        .unwrap();
                        assert!(done.load(Ordering::SeqCst) >= 3 * (round + 1));
                    }
                });
            }
        });
        assert!(gate.total() > Duration::ZERO);
    }

    #[test]
    fn one_that_fails_lets_the_others_go() {
        let gate = Gate::new(2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| gate.stretch(|| Ok::<(), Broken>(())));
            assert!(gate.stretch(|| Err(Broken)).is_err());
            assert!(other.join().unwrap().is_err());
        });
    }
}
