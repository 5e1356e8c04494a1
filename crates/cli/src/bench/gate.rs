//! Stretches of work that several threads do at once and that are timed together.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    clock: Mutex<Clock>,
}

/// When the stretch began, and the time of those before.
struct Clock {
    start: Instant,
    total: Duration,
}

/// Another thread has left and will not come.
#[derive(Debug)]
pub struct Broken;

impl From<Broken> for CliError {
    fn from(_: Broken) -> Self {
        Self::OtherThread
    }
}

/// A thread that will come to every meeting; those who wait for it after it has left, by an error or a panic, are let go.
pub struct Member<'a>(&'a Gate);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.broken.store(true, Ordering::SeqCst);
    }
}

impl Gate {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        let clock = Clock {
            start: Instant::now(),
            total: Duration::ZERO,
        };
        Self {
            threads,
            arrivals: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            clock: Mutex::new(clock),
        }
    }

    /// One of the threads begins to take part.
    pub fn join(&self) -> Member<'_> {
        Member(self)
    }

    /// The time of all stretches so far.
    pub fn total(&self) -> Duration {
        self.clock().total
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member<'_> {
    /// Waits for all threads, then runs this one's part of a stretch, and waits for all again. The stretch
    /// begins when the last thread has come and ends when the last is done.
    ///
    /// # Errors
    /// The part's, or [`Broken`] if another thread has left.
    pub fn stretch<E: From<Broken>>(&self, part: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        self.meet_and(|clock| clock.start = Instant::now())?;
        part()?;
        self.meet_and(|clock| clock.total += clock.start.elapsed())?;
        Ok(())
    }

    /// Waits for all threads.
    ///
    /// # Errors
    /// [`Broken`] if one has left.
    pub fn meet(&self) -> Result<(), Broken> {
        self.meet_and(|_| ())
    }

    /// `last` is what the last thread to come does before all go on.
    fn meet_and(&self, last: impl FnOnce(&mut Clock)) -> Result<(), Broken> {
        let Gate {
            threads, arrivals, ..
        } = self.0;
        let place = arrivals.fetch_add(1, Ordering::SeqCst);
        // The last one counts again once it has looked at the clock.
        let round = threads + 1;
        let complete = (place / round + 1) * round;
        if place % round == threads - 1 {
            last(&mut self.0.clock());
            arrivals.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        let mut looks = 0;
        while arrivals.load(Ordering::SeqCst) < complete {
            // One that has left after it came is no hindrance.
            let left = self.0.broken.load(Ordering::SeqCst);
            if left && arrivals.load(Ordering::SeqCst) < complete {
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
                    let member = gate.join();
                    for round in 0..50 {
                        member
                            .stretch(|| {
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
            let other = scope.spawn(|| gate.join().stretch(|| Ok::<(), Broken>(())));
            assert!(gate.join().stretch(|| Err(Broken)).is_err());
            assert!(other.join().unwrap().is_err());
        });
    }
}
