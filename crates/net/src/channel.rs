//! The channel: what protocols talk over.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::error::NetError;
use crate::frame::{self, ABORT, ALIVE, HEADER, Header, Label, MAX_REASON};
use crate::meter::Meter;
use crate::outbox::Outbox;
use crate::queue::Stop;
use crate::role::{Phase, Role};
use crate::transport::{Incoming, Shared};

/// Payloads of this size and more are read straight into their place.
const DIRECT: usize = 4 << 10;
/// Buffers of messages with variable length grow by at most this much before the bytes are there.
const GROWTH: usize = 1 << 20;
/// How much of the peer's output is looked through for its reason after it hung up, and for how long.
const LAST_WORDS: usize = 64 << 20;
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(250);
/// How long dropping a channel waits for the peer to hang up too, so that our last words are not destroyed.
const LINGER: Duration = Duration::from_millis(250);

/// One party's end of a connection: framed, buffered, full duplex, metered.
///
/// * `send` gathers frames and never waits for the peer while less than 64 MiB are under way.
/// * `recv` flushes first, so a protocol cannot deadlock on its own buffer. It takes exactly the message asked for:
///   another label or length is an error before anything is read or allocated.
/// * A peer that gives no sign of life for the time limit is an error; so is one that waits for us while we wait for
///   it.
/// * After the first error every further call gives the same error; only [`Channel::abort`] still does something.
/// * Dropping the channel sends what is gathered. [`Channel::close`] also waits for the peer to be done.
pub struct Channel {
    role: Role,
    outbox: Outbox,
    inbox: Box<dyn Incoming>,
    shared: Arc<Shared>,
    config: Config,
    meter: Meter,
    /// Labels met so far, to name one that comes at the wrong moment.
    names: BTreeMap<u32, &'static str>,
    failed: Option<NetError>,
    /// A frame was begun and not finished, so nothing sensible can follow.
    torn: bool,
    /// By when everything that is received must be here.
    deadline: Option<(Instant, Duration)>,
}

/// Ends a channel's waiting from another thread.
#[derive(Clone, Debug)]
pub struct HangUp(Arc<Shared>);

impl HangUp {
    /// The channel's present or next wait for the peer ends with [`NetError::Disconnected`]: at the next sign of life,
    /// or when those fail to come. What was sent is still delivered.
    pub fn now(&self) {
        self.0.hang_up();
    }
}

/// What a transport makes a channel of.
pub(crate) struct Parts {
    pub(crate) role: Role,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Box<dyn Incoming>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: Config,
}

impl Channel {
    pub(crate) fn new(parts: Parts) -> Channel {
        let Parts {
            role,
            outbox,
            inbox,
            shared,
            config,
        } = parts;
        Channel {
            role,
            outbox,
            inbox,
            shared,
            config,
            meter: Meter::new(),
            names: BTreeMap::new(),
            failed: None,
            torn: false,
            deadline: None,
        }
    }

    /// A handle to end this channel's waiting from another thread.
    #[must_use]
    pub fn hang_up(&self) -> HangUp {
        HangUp(Arc::clone(&self.shared))
    }

    /// From now on the peer has `time` altogether for what is received, signs of life or not; `None` lifts that. For
    /// peers that are not known yet.
    pub fn limit(&mut self, time: Option<Duration>) {
        self.deadline = time.map(|time| (Instant::now() + time, time));
    }

    /// Which party this end is.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Sends one message. It may stay in the buffer until the next `recv` or `flush`.
    ///
    /// # Errors
    /// If the peer is gone, takes nothing for the time limit while 64 MiB are under way, or the payload is longer
    /// than 1 GiB.
    pub fn send(&mut self, label: Label, payload: &[u8]) -> Result<(), NetError> {
        self.check()?;
        let clock = self.meter.next_clock();
        let header = Header::new(label, payload.len(), clock)?;
        self.names.insert(label.hash(), label.name());
        if let Err(stop) = self.outbox.frame(header, payload) {
            return Err(self.fail_sending(stop, label.name()));
        }
        self.meter.count_sent(payload.len(), clock);
        Ok(())
    }

    /// Receives one message of exactly the payload's length.
    ///
    /// # Errors
    /// If another message comes, or none for the time limit, or the peer is gone or gives up.
    pub fn recv(&mut self, label: Label, payload: &mut [u8]) -> Result<(), NetError> {
        let length = payload.len();
        self.recv_with(
            label,
            |length_got| {
                if length_got == length {
                    Ok(())
                } else {
                    Err(NetError::WrongLength {
                        label: label.name(),
                        expected: length,
                        got: length_got,
                    })
                }
            },
            |channel, _| channel.fill(payload, label.name()),
        )
    }

    /// Receives one message of any length up to `max`.
    ///
    /// # Errors
    /// As [`Channel::recv`], and if the message is longer than `max`.
    pub fn recv_bounded(&mut self, label: Label, max: usize) -> Result<Vec<u8>, NetError> {
        let mut payload = Vec::new();
        self.recv_with(
            label,
            |length| {
                if length <= max {
                    Ok(())
                } else {
                    Err(NetError::TooLong {
                        label: label.name(),
                        max,
                        got: length,
                    })
                }
            },
            |channel, length| {
                while payload.len() < length {
                    let from = payload.len();
                    payload.resize(length.min(from + GROWTH), 0);
                    channel.fill(&mut payload[from..], label.name())?;
                }
                Ok(())
            },
        )?;
        Ok(payload)
    }

    /// Sends what is gathered in the buffer.
    ///
    /// # Errors
    /// If the peer is gone.
    pub fn flush(&mut self) -> Result<(), NetError> {
        self.check()?;
        self.outbox
            .flush()
            .map_err(|stop| self.fail_sending(stop, "room to send"))
    }

    /// Books what follows under another phase, whose first message opens a new round. Both parties must change phases
    /// at the same point of the protocol. Does nothing if that phase is under way already.
    pub fn set_phase(&mut self, phase: Phase) {
        self.meter.set_phase(phase);
    }

    /// Runs `f` and books its traffic under `name`, within the span that is open, if any.
    pub fn span<T>(&mut self, name: &'static str, f: impl FnOnce(&mut Channel) -> T) -> T {
        let opened = self.meter.open(name);
        let value = f(self);
        self.meter.close(opened);
        value
    }

    /// What this end has counted so far.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Tells the peer that this party gives up, so that it gets [`NetError::PeerAborted`] with the reason (of which
    /// 512 bytes go) rather than a bare hang-up. Nothing can be sent or received afterwards.
    pub fn abort(&mut self, reason: &str) {
        const UNSPECIFIED: u16 = 1;
        let payload = frame::abort_payload(UNSPECIFIED, reason);
        if !self.torn
            && let Ok(header) = Header::new(ABORT, payload.len(), 0)
        {
            self.outbox.last_frame(header, &payload);
        }
        self.torn = true;
        self.failed.get_or_insert(NetError::Disconnected {
            awaited: "anything after giving up",
        });
    }

    /// Ends the conversation in good order: sends what is gathered and waits until the peer hangs up too, for the
    /// time limit at most.
    ///
    /// # Errors
    /// If something could not be sent.
    pub fn close(mut self) -> Result<(), NetError> {
        self.flush()?;
        let patience = self.config.patience();
        self.outbox
            .finish(patience)
            .map_err(|stop| self.explain(stop, "room to send"))?;
        self.inbox.linger(patience);
        Ok(())
    }

    fn check(&self) -> Result<(), NetError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// The one way in for messages: header, checks, payload, meter.
    fn recv_with(
        &mut self,
        label: Label,
        admit: impl FnOnce(usize) -> Result<(), NetError>,
        read: impl FnOnce(&mut Channel, usize) -> Result<(), NetError>,
    ) -> Result<(), NetError> {
        self.flush()?;
        self.names.insert(label.hash(), label.name());
        self.shared.set_waiting(true);
        let received = self.next_header(label).and_then(|header| {
            let length = header.length as usize;
            admit(length)?;
            self.admit_clock(label, header.clock)?;
            read(self, length)?;
            self.meter.count_received(length, header.clock);
            Ok(())
        });
        self.shared.set_waiting(false);
        received.inspect_err(|error| self.failed = Some(error.clone()))
    }

    /// The header of the next message, which must be `label`'s; passes over signs of life.
    fn next_header(&mut self, label: Label) -> Result<Header, NetError> {
        let mut stuck_since = Instant::now();
        loop {
            let mut bytes = [0; HEADER];
            self.fill(&mut bytes, label.name())?;
            let header = Header::from_bytes(bytes);
            if header.label == ALIVE.hash() && header.length == 0 {
                // The peer is alive. If all it does is wait, and nothing of ours is on its way, so do both for ever.
                if header.clock == 0 || !self.outbox.is_idle() {
                    stuck_since = Instant::now();
                } else if stuck_since.elapsed() + self.config.heartbeat() >= self.config.patience()
                {
                    return Err(NetError::Stalemate {
                        awaited: label.name(),
                    });
                }
                continue;
            }
            self.shared.note_progress();
            if header.label == ABORT.hash() {
                return Err(self.abort_reason(header, label));
            }
            if header.label != label.hash() {
                let got_name = self.names.get(&header.label).copied();
                return Err(NetError::WrongLabel {
                    expected: label.name(),
                    got: header.label,
                    got_name,
                });
            }
            return Ok(header);
        }
    }

    fn admit_clock(&self, label: Label, got: u32) -> Result<(), NetError> {
        let max = self.meter.latest_clock();
        if got == 0 || got > max {
            return Err(NetError::WrongClock {
                label: label.name(),
                max,
                got,
            });
        }
        Ok(())
    }

    fn abort_reason(&mut self, header: Header, awaited: Label) -> NetError {
        let length = header.length as usize;
        if length > 2 + MAX_REASON {
            return NetError::TooLong {
                label: ABORT.name(),
                max: 2 + MAX_REASON,
                got: length,
            };
        }
        let mut payload = vec![0; length];
        match self.fill(&mut payload, awaited.name()) {
            Ok(()) => frame::abort_error(&payload),
            Err(error) => error,
        }
    }

    /// Reads exactly `out.len()` bytes.
    fn fill(&mut self, out: &mut [u8], awaited: &'static str) -> Result<(), NetError> {
        let patience = self.config.patience();
        let mut at = 0;
        while at < out.len() {
            let here = self.inbox.available();
            if !here.is_empty() {
                let count = here.len().min(out.len() - at);
                out[at..at + count].copy_from_slice(&here[..count]);
                self.inbox.consume(count);
                at += count;
                continue;
            }
            let patience = self.time_left(patience, awaited)?;
            let rest = &mut out[at..];
            let step = if rest.len() >= DIRECT {
                self.inbox.read(rest, patience)
            } else {
                self.inbox.fill(patience).map(|()| 0)
            };
            at += step.map_err(|stop| self.explain(stop, awaited))?;
            if out.len() > HEADER {
                self.shared.note_progress();
            }
        }
        Ok(())
    }

    /// How long to wait for the next bytes.
    fn time_left(&self, patience: Duration, awaited: &'static str) -> Result<Duration, NetError> {
        if self.shared.hung_up() {
            return Err(NetError::Disconnected { awaited });
        }
        let Some((deadline, after)) = self.deadline else {
            return Ok(patience);
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(NetError::Timeout { awaited, after });
        }
        Ok(patience.min(left))
    }

    fn explain(&self, stop: Stop, awaited: &'static str) -> NetError {
        match stop {
            Stop::Closed => NetError::Disconnected { awaited },
            Stop::Stalemate => NetError::Stalemate { awaited },
            Stop::Silent => NetError::Timeout {
                awaited,
                after: self.config.patience(),
            },
            Stop::Failed(detail) => NetError::Io {
                doing: "talking to the peer",
                detail,
            },
            Stop::Tls(detail) => NetError::Tls { detail },
        }
    }

    /// Turns a failure to send into an error; a peer that gave up may have said why before it hung up.
    fn fail_sending(&mut self, stop: Stop, awaited: &'static str) -> NetError {
        self.torn = true;
        let last_words = if stop == Stop::Silent {
            None
        } else {
            self.last_words()
        };
        let error = last_words.unwrap_or_else(|| self.explain(stop, awaited));
        self.failed = Some(error.clone());
        error
    }

    fn last_words(&mut self) -> Option<NetError> {
        let deadline = Instant::now() + LAST_WORDS_PATIENCE;
        let mut seen = 0;
        while seen < LAST_WORDS {
            let header = Header::from_bytes(self.take(deadline)?);
            if header.label == ABORT.hash() {
                return Some(self.abort_reason(header, ABORT));
            }
            let length = header.length as usize;
            self.skip(length, deadline)?;
            seen += HEADER + length;
        }
        None
    }

    fn take(&mut self, deadline: Instant) -> Option<[u8; HEADER]> {
        let mut bytes = [0; HEADER];
        for byte in &mut bytes {
            self.await_some(deadline)?;
            *byte = *self.inbox.available().first()?;
            self.inbox.consume(1);
        }
        Some(bytes)
    }

    fn skip(&mut self, mut length: usize, deadline: Instant) -> Option<()> {
        while length > 0 {
            self.await_some(deadline)?;
            let count = self.inbox.available().len().min(length);
            self.inbox.consume(count);
            length -= count;
        }
        Some(())
    }

    fn await_some(&mut self, deadline: Instant) -> Option<()> {
        if self.inbox.available().is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            self.inbox.fill(left.max(Duration::from_millis(1))).ok()?;
        }
        Some(())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // After an error the peer has had its time; what it does not take now it will not take.
        let patience = if self.failed.is_some() {
            LINGER
        } else {
            self.config.patience()
        };
        // Whatever is left unsent, there is nobody to tell.
        let _ = self.outbox.finish(patience);
        self.inbox.linger(LINGER);
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state: Cow<'_, str> = match &self.failed {
            None => "open".into(),
            Some(error) => error.to_string().into(),
        };
        f.debug_struct("Channel")
            .field("role", &self.role)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
