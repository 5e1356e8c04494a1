//! The sending half of a channel: gathers frames into chunks and gets them to the transport.
//!
//! Either the peer itself takes the chunks off the queue (in memory), or a writer thread does and writes them to
//! the transport. On `flush`, when the queue is empty, the calling thread writes to the transport itself as far as
//! that does not wait, which saves a change of thread in every round trip.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::frame::{HEADER, Header};
use crate::link::Pacer;
use crate::queue::{CHUNK, Chunk, Queue, Stop};
use crate::transport::{Outgoing, Shared};

type Wire = Mutex<Box<dyn Outgoing>>;

/// See the module's introduction.
pub(crate) struct Outbox {
    queue: Arc<Queue>,
    buffer: Vec<u8>,
    patience: Duration,
    thread: Option<Thread>,
}

struct Thread {
    wire: Arc<Wire>,
    /// Whether `flush` may write by itself; not if deliveries are paced.
    inline: bool,
    shared: Arc<Shared>,
    handle: JoinHandle<Result<(), Stop>>,
}

impl Outbox {
    /// Chunks go into a queue that the peer reads.
    pub(crate) fn direct(queue: Arc<Queue>, patience: Duration) -> Outbox {
        Outbox {
            queue,
            buffer: Vec::with_capacity(CHUNK),
            patience,
            thread: None,
        }
    }

    /// Chunks go through a writer thread to `out`; with `heartbeat`, the thread says so often that we are alive.
    pub(crate) fn threaded(
        out: Box<dyn Outgoing>,
        shared: &Arc<Shared>,
        config: &Config,
        heartbeat: Option<Duration>,
    ) -> Outbox {
        let pacer = config.emulated().map(Pacer::new);
        let queue = Arc::new(Queue::to_writer(pacer.is_some()));
        let wire = Arc::new(Mutex::new(out));
        let writer = Writer {
            queue: Arc::clone(&queue),
            wire: Arc::clone(&wire),
            shared: Arc::clone(shared),
            pacer,
            heartbeat,
            whole: true,
            progress: 0,
        };
        let handle = std::thread::spawn(move || writer.run());
        let thread = Thread {
            wire,
            inline: pacer.is_none(),
            shared: Arc::clone(shared),
            handle,
        };
        Outbox {
            queue,
            buffer: Vec::with_capacity(CHUNK),
            patience: config.patience(),
            thread: Some(thread),
        }
    }

    /// Takes one frame. A frame is either gathered whole or, if it is longer than a chunk, handed over to its end, so
    /// that what lies in the queue when this returns ends at a frame's end.
    pub(crate) fn frame(&mut self, header: Header, payload: &[u8]) -> Result<(), Stop> {
        let length = HEADER + payload.len();
        if self.buffer.len() + length > CHUNK {
            self.ship(true)?;
        }
        self.buffer.extend_from_slice(&header.to_bytes());
        let mut rest = payload;
        loop {
            let (now, later) = rest.split_at(rest.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            if later.is_empty() {
                break;
            }
            rest = later;
            self.ship(false)?;
        }
        if length > CHUNK {
            self.ship(true)
        } else {
            Ok(())
        }
    }

    /// Sends what is gathered.
    pub(crate) fn flush(&mut self) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Some(thread) = &self.thread
            && thread.inline
            && let Ok(mut wire) = thread.wire.try_lock()
            && self.queue.is_idle()
        {
            let complete = match wire.start(&self.buffer, &thread.shared) {
                Ok(complete) => complete,
                Err(stop) => {
                    self.queue.stop(stop.clone());
                    return Err(stop);
                }
            };
            self.buffer.clear();
            if !complete {
                // An empty chunk: the thread finishes what the transport held back.
                self.queue.push(Vec::new(), true, self.patience)?;
            }
            return Ok(());
        }
        self.ship(true)
    }

    /// Whether everything shipped has left this party.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Queues a last frame without waiting for room, and flushes.
    pub(crate) fn last_frame(&mut self, header: Header, payload: &[u8]) {
        self.buffer.extend_from_slice(&header.to_bytes());
        self.buffer.extend_from_slice(payload);
        self.queue.push_last(std::mem::take(&mut self.buffer));
    }

    /// Sends what is left and says that nothing more will come. Goes on as long as the transport takes something at
    /// least once in `patience`; an error if something was left.
    pub(crate) fn finish(&mut self, patience: Duration) -> Result<(), Stop> {
        if !self.buffer.is_empty() {
            self.queue.push_last(std::mem::take(&mut self.buffer));
        }
        self.queue.finish();
        let Some(thread) = self.thread.take() else {
            return self.queue.stopped().map_or(Ok(()), Err);
        };
        if !self.queue.wait_stopped(patience) {
            thread.shared.give_up();
        }
        thread
            .handle
            .join()
            .unwrap_or_else(|_| Err(Stop::Failed("the writer thread panicked".into())))
    }

    fn ship(&mut self, whole: bool) -> Result<(), Stop> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.buffer = self
            .queue
            .push(std::mem::take(&mut self.buffer), whole, self.patience)?;
        Ok(())
    }
}

/// Between signs of life that nobody asked for.
const FOREVER: Duration = Duration::from_secs(3600);

/// The writer thread.
struct Writer {
    queue: Arc<Queue>,
    wire: Arc<Wire>,
    shared: Arc<Shared>,
    pacer: Option<Pacer>,
    heartbeat: Option<Duration>,
    /// Whether the last chunk written ended a frame.
    whole: bool,
    /// The channel's progress at the last heartbeat.
    progress: u64,
}

impl Writer {
    /// Runs until the channel has nothing more to send (`Ok`) or nothing more can be sent.
    fn run(mut self) -> Result<(), Stop> {
        let end = loop {
            let step = match self.queue.wait(self.heartbeat.unwrap_or(FOREVER)) {
                Ok(()) => self.write(),
                Err(Stop::Silent) => self.say_alive(),
                Err(_) => break Ok(()),
            };
            if step.is_err() {
                break step;
            }
        };
        lock(&self.wire).close(&self.shared);
        self.queue.stop(end.clone().err().unwrap_or(Stop::Closed));
        end
    }

    fn write(&mut self) -> Result<(), Stop> {
        let chunk = match &mut self.pacer {
            None => None,
            Some(pacer) => {
                let Some(chunk) = self.queue.pop(Vec::new()) else {
                    return Ok(());
                };
                let delivery =
                    pacer.delivery(chunk.at.unwrap_or_else(Instant::now), chunk.bytes.len());
                sleep_until(delivery, &self.shared);
                Some(chunk)
            }
        };
        // Chunks are popped with the wire held: who finds the queue idle while holding it may write.
        let mut wire = lock(&self.wire);
        let Some(Chunk { bytes, whole, .. }) = chunk.or_else(|| self.queue.pop(Vec::new())) else {
            return Ok(());
        };
        wire.write(&bytes, &self.shared)?;
        self.whole = whole;
        self.queue.done(bytes);
        Ok(())
    }

    fn say_alive(&mut self) -> Result<(), Stop> {
        if self.heartbeat.is_none() || !self.whole {
            return Ok(());
        }
        let progress = self.shared.progress();
        let stuck = self.shared.is_waiting() && progress == self.progress;
        self.progress = progress;
        let mut wire = lock(&self.wire);
        // What was queued meanwhile is a better sign of life.
        if !self.queue.is_idle() {
            return Ok(());
        }
        wire.write(&Header::alive(stuck).to_bytes(), &self.shared)
    }
}

/// Never wakes early; late by as little as the system allows.
fn sleep_until(moment: Instant, shared: &Shared) {
    const SLICE: Duration = Duration::from_millis(100);
    /// Sleeping overshoots by about this much, so the last stretch is spent yielding.
    const OVERSHOOT: Duration = Duration::from_micros(80);
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() || shared.gave_up() {
            return;
        }
        if left > OVERSHOOT {
            std::thread::sleep((left - OVERSHOOT).min(SLICE));
        } else {
            std::thread::yield_now();
        }
    }
}

fn lock(wire: &Wire) -> MutexGuard<'_, Box<dyn Outgoing>> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}
