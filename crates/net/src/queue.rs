//! A queue of byte chunks between two threads, bounded by bytes: from a channel to its writer thread, and, in
//! memory, straight from one party to the other.
//!
//! Buffers go round: the consumer hands back the one it has emptied, the producer gets it for the next chunk, so
//! that a busy channel allocates nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Size of the chunks a channel hands over: small frames are gathered up to here, long ones are cut.
pub(crate) const CHUNK: usize = 64 << 10;
/// Bytes under way in one direction above which `send` waits for the peer.
pub(crate) const LIMIT: usize = 64 << 20;
/// Emptied buffers kept for reuse.
const SPARES: usize = 32;
/// How long a consumer looks for a chunk before it sleeps; waking a sleeper costs more than this.
pub(crate) const SPIN: Duration = Duration::from_micros(20);

/// Why a wait ended without what was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The other side is gone.
    Closed,
    /// Nothing happened within the time allowed.
    Silent,
    /// Both parties wait for each other.
    Stalemate,
    /// The transport failed; the message says how.
    Failed(String),
    /// As `Failed`, and TLS is the cause.
    Tls(String),
}

/// A stretch of the byte stream.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    /// When it was handed over; the link emulator reckons from here.
    pub(crate) at: Option<Instant>,
    /// Whether a frame ends where the chunk does.
    pub(crate) whole: bool,
}

#[derive(Debug, Default)]
struct State {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// Taken off the queue but not yet disposed of.
    busy: bool,
    spares: Vec<Vec<u8>>,
    producer_gone: bool,
    stopped: Option<Stop>,
    consumer_waits: bool,
    producer_waits: bool,
}

/// See the module's introduction. One producer, one consumer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    readable: Condvar,
    writable: Condvar,
    /// Chunks queued, plus one if the producer is gone: a hint, to spin on without the lock.
    news: AtomicUsize,
    stamped: bool,
    spinning: bool,
}

impl Queue {
    /// A queue whose consumer is the peer, in the same process.
    pub(crate) fn between_parties() -> Queue {
        Queue::new(false, true)
    }

    /// A queue whose consumer is a writer thread; `stamped` ones note when each chunk was handed over.
    pub(crate) fn to_writer(stamped: bool) -> Queue {
        Queue::new(stamped, false)
    }

    fn new(stamped: bool, spinning: bool) -> Queue {
        Queue {
            state: Mutex::default(),
            readable: Condvar::new(),
            writable: Condvar::new(),
            news: AtomicUsize::new(0),
            stamped,
            spinning,
        }
    }

    /// Queues a chunk and gives an empty buffer for the next. Waits while the queue is full, as long as it moves at
    /// least once in `patience`.
    pub(crate) fn push(
        &self,
        bytes: Vec<u8>,
        whole: bool,
        patience: Duration,
    ) -> Result<Vec<u8>, Stop> {
        let mut state = self.lock();
        while state.bytes >= LIMIT && state.stopped.is_none() {
            let before = state.bytes;
            state.producer_waits = true;
            let (relocked, wait) = self
                .writable
                .wait_timeout(state, patience)
                .unwrap_or_else(PoisonError::into_inner);
            state = relocked;
            state.producer_waits = false;
            if wait.timed_out() && state.bytes >= before {
                return Err(Stop::Silent);
            }
        }
        if let Some(stop) = &state.stopped {
            return Err(stop.clone());
        }
        Ok(self.append(state, bytes, whole))
    }

    /// As `push`, but neither waits nor fails: for the last words of a channel.
    pub(crate) fn push_last(&self, bytes: Vec<u8>) {
        let state = self.lock();
        if state.stopped.is_none() {
            self.append(state, bytes, true);
        }
    }

    fn append(&self, mut state: MutexGuard<'_, State>, bytes: Vec<u8>, whole: bool) -> Vec<u8> {
        let at = self.stamped.then(Instant::now);
        state.bytes += bytes.len();
        state.chunks.push_back(Chunk { bytes, at, whole });
        self.news.fetch_add(1, Ordering::Release);
        let spare = state.spares.pop();
        let wake = state.consumer_waits;
        drop(state);
        if wake {
            self.readable.notify_one();
        }
        spare.unwrap_or_else(|| Vec::with_capacity(CHUNK))
    }

    /// Waits until there is something to pop.
    pub(crate) fn wait(&self, patience: Duration) -> Result<(), Stop> {
        if self.spinning {
            self.spin();
        }
        let mut state = self.lock();
        let deadline = Instant::now() + patience;
        loop {
            if !state.chunks.is_empty() {
                return Ok(());
            }
            if state.producer_gone {
                return Err(Stop::Closed);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Stop::Silent);
            }
            state.consumer_waits = true;
            state = self
                .readable
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.consumer_waits = false;
        }
    }

    /// Takes the first chunk, if any, handing back the buffer of an earlier one.
    pub(crate) fn pop(&self, used: Vec<u8>) -> Option<Chunk> {
        let mut state = self.lock();
        recycle(&mut state, used);
        let chunk = state.chunks.pop_front();
        state.busy = chunk.is_some();
        let chunk = chunk?;
        state.bytes -= chunk.bytes.len();
        self.news.fetch_sub(1, Ordering::Relaxed);
        let wake = state.producer_waits;
        drop(state);
        if wake {
            self.writable.notify_one();
        }
        Some(chunk)
    }

    /// Says that the chunk popped last has been disposed of.
    pub(crate) fn done(&self, used: Vec<u8>) {
        let mut state = self.lock();
        recycle(&mut state, used);
        state.busy = false;
    }

    /// Whether everything pushed has been popped and disposed of.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.chunks.is_empty() && !state.busy
    }

    /// Whether the consumer waits for something to pop.
    pub(crate) fn is_awaited(&self) -> bool {
        let state = self.lock();
        state.chunks.is_empty() && state.consumer_waits
    }

    /// Whether there is nothing to pop.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().chunks.is_empty()
    }

    /// The producer will push no more.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        if !state.producer_gone {
            state.producer_gone = true;
            self.news.fetch_add(1, Ordering::Release);
        }
        drop(state);
        self.readable.notify_one();
    }

    /// The consumer will pop no more, for this reason.
    pub(crate) fn stop(&self, why: Stop) {
        let mut state = self.lock();
        state.stopped.get_or_insert(why);
        state.chunks.clear();
        state.spares.clear();
        state.bytes = 0;
        state.busy = false;
        drop(state);
        self.writable.notify_one();
    }

    /// Waits until the consumer stops, as long as the queue moves at least once in `patience`; true if it did stop.
    pub(crate) fn wait_stopped(&self, patience: Duration) -> bool {
        let mut state = self.lock();
        while state.stopped.is_none() {
            let before = state.bytes;
            let (relocked, wait) = self
                .writable
                .wait_timeout(state, patience)
                .unwrap_or_else(PoisonError::into_inner);
            state = relocked;
            if wait.timed_out() && state.stopped.is_none() && state.bytes >= before {
                return false;
            }
        }
        true
    }

    /// Why the consumer stopped, if it has.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.lock().stopped.clone()
    }

    fn spin(&self) {
        if self.news.load(Ordering::Acquire) != 0 {
            return;
        }
        let start = Instant::now();
        while start.elapsed() < SPIN {
            for _ in 0..32 {
                if self.news.load(Ordering::Acquire) != 0 {
                    return;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn recycle(state: &mut State, mut used: Vec<u8>) {
    if used.capacity() >= CHUNK && state.spares.len() < SPARES {
        used.clear();
        state.spares.push(used);
    }
}
