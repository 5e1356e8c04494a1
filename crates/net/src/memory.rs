//! The in-memory transport: two threads of one process.
//!
//! Without an emulated link a channel's chunks go straight into the peer's queue: no thread between, one copy in,
//! one copy out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::channel::{Channel, Parts};
use crate::config::Config;
use crate::outbox::Outbox;
use crate::queue::{CHUNK, Queue, Stop};
use crate::role::Role;
use crate::transport::{Incoming, Outgoing, Shared};

/// Time limit of in-memory pairs unless configured: a peer in the same process cannot be cut off, only busy.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(60);

/// Both ends of a channel within one process, `(client, server)`, with a time limit of 60 s.
///
/// In memory there are no keep-alive frames: the limit holds from message to message. Parties that wait for each other
/// are found out at once.
#[must_use]
pub fn memory_pair() -> (Channel, Channel) {
    memory_pair_with(&Config::new().timeout(MEMORY_TIMEOUT))
}

/// As [`memory_pair`], with the given time limit and, if there is one, emulated link.
#[must_use]
pub fn memory_pair_with(config: &Config) -> (Channel, Channel) {
    let (to_server, to_client) = (
        Arc::new(Queue::between_parties()),
        Arc::new(Queue::between_parties()),
    );
    let end = |role, out: &Arc<Queue>, inbox: &Arc<Queue>| {
        let shared = Arc::new(Shared::default());
        let inbox = FromQueue::new(Arc::clone(inbox));
        let (outbox, inbox) = match config.emulated() {
            None => (
                Outbox::direct(Arc::clone(out), config.patience()),
                inbox.answered_through(out),
            ),
            Some(_) => {
                let wire = Box::new(ToQueue(Arc::clone(out)));
                (Outbox::threaded(wire, &shared, config, None), inbox)
            }
        };
        Channel::new(Parts {
            role,
            outbox,
            inbox: Box::new(inbox),
            shared,
            config: *config,
        })
    };
    (
        end(Role::Client, &to_server, &to_client),
        end(Role::Server, &to_client, &to_server),
    )
}

/// Reads what the peer (or its writer thread) pushes.
pub(crate) struct FromQueue {
    queue: Arc<Queue>,
    /// What the peer reads, if nothing lies between.
    answers: Option<Arc<Queue>>,
    chunk: Vec<u8>,
    at: usize,
}

impl FromQueue {
    pub(crate) fn new(queue: Arc<Queue>) -> FromQueue {
        FromQueue {
            queue,
            answers: None,
            chunk: Vec::new(),
            at: 0,
        }
    }

    /// Watches for the peer waiting for us on this queue while we wait for it.
    fn answered_through(mut self, out: &Arc<Queue>) -> FromQueue {
        self.answers = Some(Arc::clone(out));
        self
    }

    fn wait(&self, patience: Duration) -> Result<(), Stop> {
        const SLICE: Duration = Duration::from_millis(200);
        let Some(answers) = &self.answers else {
            return self.queue.wait(patience);
        };
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.queue.wait(left.min(SLICE)) {
                // A peer found waiting on an empty queue has sent all it will: only we could fill that queue.
                Err(Stop::Silent) if answers.is_awaited() && self.queue.is_empty() => {
                    return Err(Stop::Stalemate);
                }
                Err(Stop::Silent) if left > SLICE => {}
                other => return other,
            }
        }
    }
}

impl Incoming for FromQueue {
    fn available(&self) -> &[u8] {
        &self.chunk[self.at..]
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }

    fn fill(&mut self, patience: Duration) -> Result<(), Stop> {
        while self.available().is_empty() {
            self.wait(patience)?;
            if let Some(chunk) = self.queue.pop(std::mem::take(&mut self.chunk)) {
                self.chunk = chunk.bytes;
                self.at = 0;
            }
        }
        Ok(())
    }
}

impl Drop for FromQueue {
    fn drop(&mut self) {
        self.queue.stop(Stop::Closed);
    }
}

/// Writes into the peer's queue, from a writer thread.
pub(crate) struct ToQueue(pub(crate) Arc<Queue>);

impl Outgoing for ToQueue {
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Stop> {
        for part in bytes.chunks(CHUNK) {
            loop {
                match self.0.push(part.to_vec(), true, Duration::from_millis(100)) {
                    Ok(_) => break,
                    Err(Stop::Silent) if !shared.gave_up() => {}
                    Err(stop) => return Err(stop),
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, _shared: &Shared) {
        self.0.finish();
    }
}
