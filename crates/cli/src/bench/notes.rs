//! What the two ends of a lane have noted of the same stretches, compared by whoever comes second, so that neither end waits
//! for the other, or for another lane, to have its results checked.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::CliError;

/// Notes that an end may be ahead of the other. Then it waits until half of them are met: waking it costs time.
const AHEAD: usize = 32;

/// Between two ends, numbered 0 and 1.
pub struct Notes<T> {
    state: Mutex<State<T>>,
    news: Condvar,
}

struct State<T> {
    /// Of each end, those that the other has not come to.
    unmet: [VecDeque<T>; 2],
    /// An end has left and will note no more.
    left: bool,
}

/// An end; when it is dropped the other no longer waits for it.
pub struct Taker<'a, T> {
    notes: &'a Notes<T>,
    end: usize,
}

impl<T> Notes<T> {
    /// None yet.
    pub fn new() -> Self {
        let state = State {
            unmet: [VecDeque::new(), VecDeque::new()],
            left: false,
        };
        Self {
            state: Mutex::new(state),
            news: Condvar::new(),
        }
    }

    /// End 0 or 1 begins to take notes.
    pub fn join(&self, end: usize) -> Taker<'_, T> {
        Taker { notes: self, end }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Taker<'_, T> {
    /// Gives the note of this end's next stretch: keeps it for the other end, or returns it and the other's of the same stretch
    /// if that is there.
    ///
    /// # Errors
    /// [`CliError::OtherThread`] if the other end has left and would have to be waited for.
    pub fn give(&self, note: T) -> Result<Option<[T; 2]>, CliError> {
        let (own, other) = (self.end, 1 - self.end);
        let mut state = self.notes.lock();
        if let Some(theirs) = state.unmet[other].pop_front() {
            if state.unmet[other].len() == AHEAD / 2 {
                self.notes.news.notify_all();
            }
            return Ok(Some([note, theirs]));
        }
        state.unmet[own].push_back(note);
        if state.unmet[own].len() < AHEAD {
            return Ok(None);
        }
        let state = self
            .notes
            .news
            .wait_while(state, |state| {
                state.unmet[own].len() > AHEAD / 2 && !state.left
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.unmet[own].len() > AHEAD / 2 {
            return Err(CliError::OtherThread);
        }
        Ok(None)
    }
}

impl<T> Drop for Taker<'_, T> {
    fn drop(&mut self) {
        self.notes.lock().left = true;
        self.notes.news.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_the_same_stretch_meet_whoever_is_ahead() {
        const COUNT: usize = 1000;
        let notes = Notes::new();
        let met = std::thread::scope(|scope| {
            let ends = [0, 1].map(|end| {
                let notes = &notes;
                scope.spawn(move || {
                    let taker = notes.join(end);
                    let pairs = (0..COUNT).filter_map(|i| taker.give(i).unwrap());
                    pairs.map(|[own, theirs]| assert_eq!(own, theirs)).count()
                })
            });
            ends.map(|end| end.join().unwrap())
        });
        assert_eq!(met[0] + met[1], COUNT);
    }

    #[test]
    fn an_end_that_leaves_is_not_waited_for() {
        let notes = Notes::new();
        let taker = notes.join(0);
        drop(notes.join(1));
        let given: Vec<_> = (0..AHEAD).map(|i| taker.give(i)).collect();
        assert!(given[AHEAD - 2].is_ok() && given[AHEAD - 1].is_err());
    }
}
