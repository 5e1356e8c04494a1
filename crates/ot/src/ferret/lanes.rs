//! Ferret in lanes: under one Δ, several ends with a channel each share the LPN secrets of an iteration.
//!
//! A row needs its trees and the secrets, so any lane can make any group. With secrets of its own every lane would push the
//! others' out of the cache. An iteration is a list of *tasks*: a group each, and one that makes the next iteration (all
//! groups whose outputs seed it) and comes while the other lanes still have groups to make. The sender's lane takes the next
//! task and names it, the receiver's lane does the same one, each at most once.
//!
//! ```text
//! sender's lane                                        receiver's lane
//! takes a task            ──its number, 64 bits──▶     does it too: in range, and for the first time
//!                         ──c_2 … c_d, its groups──▶
//! ```
//! Bits: 64 a task, beside those of the groups ([`bits`]).
//!
//! **No deadlock** as long as every lane goes on by itself at both ends (a thread each). A sender waits only for a lane of its own party
//! that is computing the next iteration, having flushed. A receiver waits for a lane of its own that has the next iteration to make, or
//! the oldest one to finish ([`OPEN`]): the messages for that were sent before the one it holds, and need no later iteration; so the
//! oldest wait always ends. If all lanes wait or have left, all fail; so they do if one fails with the next iteration half made, and
//! one that has waited for a minute.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use volvelle_net::{Channel, Label};
use volvelle_prim::Block;
use volvelle_prim::lpn::LocalLinearCode;
use zeroize::Zeroizing;

use super::groups::{Grower, Half, Iteration, ReceiverHalf, SenderHalf};
use super::{Set, supply};
use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};
use crate::{OtError, Security};

const TASK: Label = Label::new("ot/lanes/task");

/// Iterations with tasks left that a receiver keeps: lanes that are so far ahead of another wait for it.
const OPEN: usize = 16;

/// How long a lane waits for another: one that is idle while its peer goes on is out of step, or its thread has given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bits of an iteration's tasks' numbers.
const NUMBER_BITS: u64 = 64;

/// Bits an iteration sends, in lanes.
const fn bits(set: Set) -> u64 {
    set.bits() + NUMBER_BITS * tasks(set) as u64
}

/// Tasks of an iteration. The last in number makes the next one: the groups from `tasks − 1` on.
const fn tasks(set: Set) -> usize {
    set.handed_out() / set.group_outputs(0) + 1
}

/// A task in hand.
pub(crate) struct Task {
    /// Of the iteration, from 0.
    number: u64,
    index: usize,
    iteration: Arc<Iteration>,
}

/// What the lanes of a party share, for one direction.
pub(crate) struct Pool {
    set: Set,
    lanes: usize,
    state: Mutex<State>,
    news: Condvar,
}

struct State {
    /// Iterations with tasks left.
    open: BTreeMap<u64, Open>,
    /// The last iteration made.
    newest: u64,
    /// Room of one that is done with.
    spare: Option<Iteration>,
    /// Lanes that have waited since the last news, how many there have been, and lanes that will not come again.
    waiting: usize,
    news: u64,
    left: usize,
    failed: bool,
}

struct Open {
    iteration: Arc<Iteration>,
    taken: Vec<bool>,
    left: usize,
}

impl State {
    fn open(&mut self, number: u64, iteration: Iteration, tasks: usize) {
        self.newest = number;
        let open = Open {
            iteration: Arc::new(iteration),
            taken: vec![false; tasks],
            left: tasks,
        };
        self.open.insert(number, open);
    }

    /// Takes a task that may not exist or be taken already.
    fn take(&mut self, number: u64, index: usize) -> Result<Task, OtError> {
        let refused = OtError::LaneTask {
            iteration: number,
            task: index as u64,
        };
        let Some(open) = self.open.get_mut(&number) else {
            return Err(refused);
        };
        if std::mem::replace(&mut open.taken[index], true) {
            return Err(refused);
        }
        open.left -= 1;
        let iteration = Arc::clone(&open.iteration);
        if open.left == 0 {
            self.open.remove(&number);
        }
        Ok(Task {
            number,
            index,
            iteration,
        })
    }
}

impl Pool {
    fn new(set: Set, lanes: usize, first: Iteration) -> Arc<Self> {
        let mut state = State {
            open: BTreeMap::new(),
            newest: 0,
            spare: None,
            waiting: 0,
            news: 0,
            left: 0,
            failed: false,
        };
        state.open(0, first, tasks(set));
        Arc::new(Self {
            set,
            lanes,
            state: Mutex::new(state),
            news: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sender's next task. An iteration's last one comes while the other lanes have as much to do as it takes.
    fn next(&self) -> Result<Task, OtError> {
        let last = tasks(self.set) - 1;
        let ahead = self.lanes * (self.set.groups() - last);
        let turn = last.saturating_sub(ahead);
        let mut state = self.lock();
        loop {
            if let Some((&number, open)) = state.open.first_key_value() {
                let place = last + 1 - open.left;
                let index = match place {
                    _ if place < turn => place,
                    _ if place == turn => last,
                    _ => place - 1,
                };
                return state.take(number, index);
            }
            state = self.wait(state)?;
        }
    }

    /// The task that the sender named.
    fn named(&self, task: u64) -> Result<Task, OtError> {
        let tasks = tasks(self.set) as u64;
        let number = task / tasks;
        let mut state = self.lock();
        while number > state.newest {
            state = self.wait(state)?;
        }
        let task = state.take(number, (task % tasks) as usize)?;
        if !state.open.contains_key(&number) {
            self.tell(&mut state);
        }
        Ok(task)
    }

    /// The next iteration, after `number`, is made.
    fn begin(&self, number: u64, iteration: Iteration) -> Result<(), OtError> {
        let mut state = self.lock();
        while state.open.len() >= OPEN {
            state = self.wait(state)?;
        }
        state.open(number + 1, iteration, tasks(self.set));
        self.tell(&mut state);
        Ok(())
    }

    /// Room for an iteration.
    fn room(&self) -> Iteration {
        let spare = self.lock().spare.take();
        spare.unwrap_or_else(|| Iteration::empty(self.set, Security::SemiHonest))
    }

    /// A lane is done with a task.
    fn done(&self, task: Task) {
        if let Some(room) = Arc::into_inner(task.iteration) {
            self.lock().spare = Some(room);
        }
    }

    /// A lane will not come again; `failed` if it owes the next iteration.
    fn leave(&self, failed: bool) {
        let mut state = self.lock();
        state.left += 1;
        state.failed |= failed || state.waiting > 0 && state.waiting + state.left >= self.lanes;
        self.news.notify_all();
    }

    /// Lets all who wait look again.
    fn tell(&self, state: &mut State) {
        state.news += 1;
        state.waiting = 0;
        self.news.notify_all();
    }

    /// Waits for news.
    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> Result<MutexGuard<'a, State>, OtError> {
        state.waiting += 1;
        if state.waiting + state.left >= self.lanes {
            state.failed = true;
            self.news.notify_all();
        }
        let news = state.news;
        let (mut state, timeout) = self
            .news
            .wait_timeout_while(state, PATIENCE, |state| state.news == news && !state.failed)
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            state.waiting -= 1;
            return Err(OtError::OtherLane);
        }
        if state.failed {
            return Err(OtError::OtherLane);
        }
        Ok(state)
    }
}

/// How the two ends of a lane come to the same task.
pub(crate) trait Agree: Half {
    fn agree(&self, ch: &mut Channel, pool: &Pool) -> Result<Task, OtError>;
}

impl Agree for SenderHalf {
    fn agree(&self, ch: &mut Channel, pool: &Pool) -> Result<Task, OtError> {
        ch.flush()?;
        let task = pool.next()?;
        let number = task.number * tasks(pool.set) as u64 + task.index as u64;
        ch.send(TASK, &number.to_le_bytes())?;
        Ok(task)
    }
}

impl Agree for ReceiverHalf {
    fn agree(&self, ch: &mut Channel, pool: &Pool) -> Result<Task, OtError> {
        let mut number = [0; 8];
        ch.recv(TASK, &mut number)?;
        pool.named(u64::from_le_bytes(number))
    }
}

/// One end of a lane.
pub(crate) struct Lane<H: Half> {
    grower: Grower<H>,
    pool: Arc<Pool>,
    /// Of the last group, `used..end` is not yet handed out.
    used: usize,
    end: usize,
    made: u64,
    /// Makes the next iteration.
    seeding: bool,
    gone: bool,
}

impl<H: Agree> Lane<H> {
    fn all(
        half: impl Fn() -> H,
        (set, code): (Set, &Arc<LocalLinearCode>),
        first: Iteration,
        lanes: usize,
    ) -> Vec<Self> {
        let pool = Pool::new(set, lanes, first);
        let lane = |_| Self {
            grower: Grower::new(half(), (set, Arc::clone(code)), None),
            pool: Arc::clone(&pool),
            used: 0,
            end: 0,
            made: 0,
            seeding: false,
            gone: false,
        };
        (0..lanes).map(lane).collect()
    }

    fn next_group(&mut self, ch: &mut Channel) -> Result<(), OtError> {
        let task = self.grower.half.agree(ch, &self.pool)?;
        let set = self.grower.set();
        if task.index + 1 == tasks(set) {
            self.seeding = true;
            self.seed(ch, &task)?;
            self.seeding = false;
        } else {
            let kept = self.grower.grow(ch, &task.iteration, task.index)?;
            self.made += kept as u64;
            (self.used, self.end) = (0, kept);
        }
        self.pool.done(task);
        Ok(())
    }

    /// Makes the next iteration; the first of its groups comes last, as some of its outputs may be handed out.
    fn seed(&mut self, ch: &mut Channel, task: &Task) -> Result<(), OtError> {
        let set = self.grower.set();
        let mut next = self.pool.room();
        for group in (task.index..set.groups()).rev() {
            let kept = self.grower.grow(ch, &task.iteration, group)?;
            self.grower.seed(group, &mut next);
            self.made += set.group_outputs(group) as u64;
            (self.used, self.end) = (0, kept);
        }
        self.pool.begin(task.number, next)
    }
}

impl<H: Half> Lane<H> {
    fn leave_once(&mut self) {
        if !std::mem::replace(&mut self.gone, true) {
            self.pool.leave(self.seeding);
        }
    }
}

impl<H: Half> Drop for Lane<H> {
    fn drop(&mut self) {
        self.leave_once();
    }
}

impl<H: Agree> CotSource for Lane<H> {
    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.end {
                ch.span("ot/extend", |ch| self.next_group(ch))
                    .inspect_err(|_| self.leave_once())?;
                continue;
            }
            out = hand_out(&self.grower.outputs()[..self.end], &mut self.used, out);
        }
        Ok(())
    }

    fn supply(&self) -> Supply {
        let set = self.grower.set();
        supply(set, Security::SemiHonest, self.made, bits(set))
    }

    fn leave(&mut self) {
        self.leave_once();
    }
}

impl CotSender for Lane<SenderHalf> {
    fn delta(&self) -> Block {
        *self.grower.half.0
    }
}

impl CotReceiver for Lane<ReceiverHalf> {}

/// Sender's ends of so many lanes, seeded by `source`.
pub(crate) fn senders(
    ch: &mut Channel,
    source: &mut dyn CotSender,
    (set, code): (Set, &Arc<LocalLinearCode>),
    lanes: usize,
) -> Result<Vec<Lane<SenderHalf>>, OtError> {
    let first = Iteration::from_source(ch, source, (set, Security::SemiHonest))?;
    let half = || SenderHalf(Zeroizing::new(source.delta()));
    Ok(Lane::all(half, (set, code), first, lanes))
}

/// Receiver's ends, likewise.
pub(crate) fn receivers(
    ch: &mut Channel,
    source: &mut dyn CotReceiver,
    (set, code): (Set, &Arc<LocalLinearCode>),
    lanes: usize,
) -> Result<Vec<Lane<ReceiverHalf>>, OtError> {
    let first = Iteration::from_source(ch, source, (set, Security::SemiHonest))?;
    Ok(Lane::all(|| ReceiverHalf, (set, code), first, lanes))
}
