//! Doubles and harnesses for tests of what talks over channels. Not reachable from the program.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::channel::{Channel, Parts};
use crate::config::Config;
use crate::frame::{HEADER, Header};
use crate::memory::{FromQueue, ToQueue, memory_pair};
use crate::outbox::Outbox;
use crate::queue::{Queue, Stop};
use crate::role::Role;
use crate::transport::{Incoming, Outgoing, Shared};

/// Runs both parties on two threads over an in-memory pair; propagates panics.
///
/// # Panics
/// If one of the parties does.
pub fn run_pair<A: Send, B: Send>(
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    run_ends(memory_pair(), client, server)
}

/// As [`run_pair`], over the given ends `(client, server)`.
///
/// # Panics
/// If one of the parties does.
pub fn run_ends<A: Send, B: Send>(
    ends: (Channel, Channel),
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (mut client_end, mut server_end) = ends;
    std::thread::scope(|scope| {
        // Each party owns its end, so that one that panics hangs up on the other.
        let server = scope.spawn(move || server(&mut server_end));
        let client = scope.spawn(move || client(&mut client_end));
        match (client.join(), server.join()) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(panic), Ok(_)) | (Ok(_), Err(panic)) => std::panic::resume_unwind(panic),
            (Err(client), Err(server)) => {
                // The party that fell first is usually the one that did not see a hang-up.
                let hung_up = text(&client).is_some_and(|text| text.contains("Disconnected"));
                std::panic::resume_unwind(if hung_up { server } else { client })
            }
        }
    })
}

fn text(panic: &Box<dyn std::any::Any + Send>) -> Option<&str> {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
}

/// Everything both parties put on the wire, frame headers included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The client's raw frames.
    pub client_sent: Vec<u8>,
    /// The server's raw frames.
    pub server_sent: Vec<u8>,
}

impl Transcript {
    /// The payloads the client sent, one after the other.
    #[must_use]
    pub fn client_payload(&self) -> Vec<u8> {
        frames(&self.client_sent)
            .into_iter()
            .flat_map(|(_, payload)| payload)
            .copied()
            .collect()
    }

    /// The payloads the server sent, one after the other.
    #[must_use]
    pub fn server_payload(&self) -> Vec<u8> {
        frames(&self.server_sent)
            .into_iter()
            .flat_map(|(_, payload)| payload)
            .copied()
            .collect()
    }

    /// SHA-256 of the payloads that the client and the server sent, in hexadecimal. Checked in as constants, they turn a
    /// change of what is on the wire into a change of one line.
    #[must_use]
    pub fn digests(&self) -> (String, String) {
        let digest = |payload: &[u8]| {
            Sha256::digest(payload)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        (
            digest(&self.client_payload()),
            digest(&self.server_payload()),
        )
    }

    /// The client's messages as label hash and payload.
    #[must_use]
    pub fn client_frames(&self) -> Vec<(u32, &[u8])> {
        frames(&self.client_sent)
    }

    /// The server's messages as label hash and payload.
    #[must_use]
    pub fn server_frames(&self) -> Vec<(u32, &[u8])> {
        frames(&self.server_sent)
    }
}

fn frames(mut raw: &[u8]) -> Vec<(u32, &[u8])> {
    let mut found = Vec::new();
    while let Some((header, rest)) = raw.split_first_chunk::<HEADER>() {
        let header = Header::from_bytes(*header);
        let (payload, rest) = rest.split_at((header.length as usize).min(rest.len()));
        found.push((header.label, payload));
        raw = rest;
    }
    found
}

/// As [`run_pair`], recording what each party sent.
///
/// # Panics
/// If one of the parties does.
pub fn run_pair_recorded<A: Send, B: Send>(
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, Transcript) {
    run_pair_altered(None, client, server)
}

/// A change of one byte on the way to the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// Whose byte.
    pub sender: Role,
    /// Which, in its raw frames as a [`Transcript`] has them.
    pub byte: usize,
    /// What is XORed into it.
    pub mask: u8,
}

/// As [`run_pair_recorded`], with a peer that sends something else: a byte is changed on the way, the transcript has it
/// unchanged.
///
/// # Panics
/// If one of the parties does.
pub fn run_pair_altered<A: Send, B: Send>(
    flip: Option<Flip>,
    client: impl FnOnce(&mut Channel) -> A + Send,
    server: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B, Transcript) {
    let config = Config::new().timeout(Duration::from_secs(60));
    let (to_server, to_client) = (
        Arc::new(Queue::between_parties()),
        Arc::new(Queue::between_parties()),
    );
    let logs = [Log::default(), Log::default()];
    let end = |role, out: &Arc<Queue>, inbox: &Arc<Queue>, log: &Log| {
        let shared = Arc::new(Shared::default());
        let recorder = Recorder {
            inner: ToQueue(Arc::clone(out)),
            log: Arc::clone(log),
            flip: flip.filter(|flip| flip.sender == role),
        };
        let outbox = Outbox::threaded(Box::new(recorder), &shared, &config, None);
        let inbox = Box::new(FromQueue::new(Arc::clone(inbox)));
        Channel::new(Parts {
            role,
            outbox,
            inbox,
            shared,
            config,
        })
    };
    let ends = (
        end(Role::Client, &to_server, &to_client, &logs[0]),
        end(Role::Server, &to_client, &to_server, &logs[1]),
    );
    let (a, b) = run_ends(ends, client, server);
    let take = |log: &Log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    let transcript = Transcript {
        client_sent: take(&logs[0]),
        server_sent: take(&logs[1]),
    };
    (a, b, transcript)
}

type Log = Arc<Mutex<Vec<u8>>>;

struct Recorder {
    inner: ToQueue,
    log: Log,
    flip: Option<Flip>,
}

impl Outgoing for Recorder {
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Stop> {
        let start = {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.extend_from_slice(bytes);
            log.len() - bytes.len()
        };
        let within = |flip: Flip| flip.byte.checked_sub(start).filter(|&at| at < bytes.len());
        match self.flip.and_then(|flip| Some((within(flip)?, flip.mask))) {
            Some((at, mask)) => {
                let mut altered = bytes.to_vec();
                altered[at] ^= mask;
                self.inner.write(&altered, shared)
            }
            None => self.inner.write(bytes, shared),
        }
    }

    fn close(&mut self, shared: &Shared) {
        self.inner.close(shared);
    }
}

/// A channel whose peer sends these raw bytes and hangs up; whatever is sent to it is swallowed.
#[must_use]
pub fn scripted(role: Role, bytes: Vec<u8>) -> Channel {
    let config = Config::new();
    let shared = Arc::new(Shared::default());
    let outbox = Outbox::threaded(Box::new(Swallow), &shared, &config, None);
    Channel::new(Parts {
        role,
        outbox,
        inbox: Box::new(Script { bytes, at: 0 }),
        shared,
        config,
    })
}

struct Swallow;

impl Outgoing for Swallow {
    fn write(&mut self, _bytes: &[u8], _shared: &Shared) -> Result<(), Stop> {
        Ok(())
    }

    fn close(&mut self, _shared: &Shared) {}
}

struct Script {
    bytes: Vec<u8>,
    at: usize,
}

impl Incoming for Script {
    fn available(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }

    fn fill(&mut self, _patience: Duration) -> Result<(), Stop> {
        Err(Stop::Closed)
    }
}
