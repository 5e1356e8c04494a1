//! Counting what a channel carries: bytes, messages, rounds, wall time; by phase and by named span.
//!
//! **What a round is.** Every frame carries a Lamport clock. A party sends with one more than the highest clock
//! it has *received*, so a message's clock is the length of the longest chain of messages that each had to
//! arrive before the next could be sent. Messages sent one after the other without receiving anything share one
//! clock, and so do messages that cross each other: both are one round. The rounds of a stretch of work are the
//! number by which the highest clock this party has seen (sent or received) rose during it. Both parties get the
//! same number once every message sent has been received.
//!
//! A change of [`Phase`] raises the clock's floor to the highest clock seen, so that a phase's first message
//! always opens a new round and phases count theirs separately. A span does not: a span whose messages ride along
//! in a round that is already open has 0 rounds, and the spans' rounds add up to the channel's.
//!
//! Keep-alive and abort frames are not counted at all. Framing is 12 bytes a message; what TCP and TLS add below
//! is not counted.

use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant};

use crate::frame::HEADER;
use crate::role::Phase;

/// What went over a channel during some stretch of work, as one party sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Payload bytes sent.
    pub sent: u64,
    /// Payload bytes received.
    pub received: u64,
    /// Bytes of frame headers sent.
    pub framing_sent: u64,
    /// Bytes of frame headers received.
    pub framing_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Rounds (see the module's introduction).
    pub rounds: u64,
    /// Wall time.
    pub wall: Duration,
}

impl Traffic {
    /// Payload bits sent by both parties together.
    #[must_use]
    pub fn bits(&self) -> u64 {
        (self.sent + self.received) * 8
    }

    /// Both of two stretches of work that ran side by side, on two channels: bytes add up, of rounds and wall time the
    /// larger counts.
    #[must_use]
    pub fn alongside(self, other: Traffic) -> Traffic {
        let (rounds, wall) = (self.rounds.max(other.rounds), self.wall.max(other.wall));
        Traffic {
            rounds,
            wall,
            ..self + other
        }
    }
}

impl Add for Traffic {
    type Output = Traffic;

    fn add(self, other: Traffic) -> Traffic {
        Traffic {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            framing_sent: self.framing_sent + other.framing_sent,
            framing_received: self.framing_received + other.framing_received,
            messages_sent: self.messages_sent + other.messages_sent,
            messages_received: self.messages_received + other.messages_received,
            rounds: self.rounds + other.rounds,
            wall: self.wall + other.wall,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        *self = *self + other;
    }
}

/// What happened between an earlier reading (`other`) and a later one (`self`); never negative.
impl Sub for Traffic {
    type Output = Traffic;

    fn sub(self, other: Traffic) -> Traffic {
        Traffic {
            sent: self.sent.saturating_sub(other.sent),
            received: self.received.saturating_sub(other.received),
            framing_sent: self.framing_sent.saturating_sub(other.framing_sent),
            framing_received: self.framing_received.saturating_sub(other.framing_received),
            messages_sent: self.messages_sent.saturating_sub(other.messages_sent),
            messages_received: self
                .messages_received
                .saturating_sub(other.messages_received),
            rounds: self.rounds.saturating_sub(other.rounds),
            wall: self.wall.saturating_sub(other.wall),
        }
    }
}

/// One named span; its full name is its ancestors' and its own, joined by `/`.
#[derive(Clone, Debug)]
struct Span {
    name: &'static str,
    parent: Option<usize>,
    traffic: Traffic,
}

/// A span being measured: where it began.
#[derive(Debug)]
pub(crate) struct Opened {
    span: usize,
    outer: Option<usize>,
    before: Traffic,
    at: Instant,
}

/// The counters of one end of a channel. A clone is a reading: its clocks stand still.
#[derive(Debug)]
pub struct Meter {
    /// Everything but `wall`, which `started` gives.
    total: Traffic,
    started: Instant,
    frozen: Option<Instant>,
    phase: Phase,
    phase_before: Traffic,
    phase_at: Instant,
    /// Completed stretches of each phase.
    phases: [Traffic; 3],
    spans: Vec<Span>,
    current: Option<usize>,
    clock: Clock,
}

/// The Lamport clock: highest values received, sent, and the floor set by the last change of phase.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    heard: u32,
    sent: u32,
    floor: u32,
}

impl Clock {
    fn seen(&self) -> u32 {
        self.heard.max(self.sent)
    }
}

impl Clone for Meter {
    fn clone(&self) -> Meter {
        Meter {
            frozen: Some(self.now()),
            spans: self.spans.clone(),
            ..*self
        }
    }
}

impl Meter {
    pub(crate) fn new() -> Meter {
        let now = Instant::now();
        Meter {
            total: Traffic::default(),
            started: now,
            frozen: None,
            phase: Phase::Setup,
            phase_before: Traffic::default(),
            phase_at: now,
            phases: [Traffic::default(); 3],
            spans: Vec::new(),
            current: None,
            clock: Clock::default(),
        }
    }

    /// What the given phase has carried so far; the phase that is under way counts up to now.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Traffic {
        let mut traffic = self.phases[phase as usize];
        if phase == self.phase {
            traffic += self.since(self.phase_before, self.phase_at);
        }
        traffic
    }

    /// The phase that is under way.
    #[must_use]
    pub fn current_phase(&self) -> Phase {
        self.phase
    }

    /// What the channel has carried so far, in all phases; the wall time is the channel's age.
    #[must_use]
    pub fn total(&self) -> Traffic {
        self.since(Traffic::default(), self.started)
    }

    /// The spans that have ended at least once, with their full names such as `lut/open`, in the order in which
    /// they first began. A span's traffic includes that of the spans within it.
    pub fn spans(&self) -> impl Iterator<Item = (String, Traffic)> + '_ {
        self.spans
            .iter()
            .enumerate()
            .map(|(index, span)| (self.path(index), span.traffic))
    }

    /// The traffic of the span with this full name.
    #[must_use]
    pub fn span(&self, path: &str) -> Option<Traffic> {
        self.spans()
            .find(|(name, _)| name == path)
            .map(|(_, traffic)| traffic)
    }

    pub(crate) fn set_phase(&mut self, phase: Phase) {
        if phase == self.phase {
            return;
        }
        self.phases[self.phase as usize] += self.since(self.phase_before, self.phase_at);
        self.phase = phase;
        self.phase_before = self.total;
        self.phase_at = Instant::now();
        self.clock.floor = self.clock.seen();
    }

    pub(crate) fn open(&mut self, name: &'static str) -> Opened {
        let outer = self.current;
        let known = self
            .spans
            .iter()
            .position(|span| span.parent == outer && span.name == name);
        let span = known.unwrap_or_else(|| {
            self.spans.push(Span {
                name,
                parent: outer,
                traffic: Traffic::default(),
            });
            self.spans.len() - 1
        });
        self.current = Some(span);
        Opened {
            span,
            outer,
            before: self.total,
            at: Instant::now(),
        }
    }

    pub(crate) fn close(&mut self, opened: Opened) {
        let traffic = self.since(opened.before, opened.at);
        if let Some(span) = self.spans.get_mut(opened.span) {
            span.traffic += traffic;
        }
        self.current = opened.outer;
    }

    /// The clock to send the next frame with.
    pub(crate) fn next_clock(&self) -> u32 {
        self.clock.heard.max(self.clock.floor).saturating_add(1)
    }

    /// The highest clock an honest peer's next frame can have: it has heard at most what we sent, and its floor is
    /// at most what it has heard or sent.
    pub(crate) fn latest_clock(&self) -> u32 {
        self.clock.seen().saturating_add(1)
    }

    pub(crate) fn count_sent(&mut self, payload: usize, clock: u32) {
        self.total.sent += payload as u64;
        self.total.framing_sent += HEADER as u64;
        self.total.messages_sent += 1;
        self.clock.sent = self.clock.sent.max(clock);
        self.total.rounds = u64::from(self.clock.seen());
    }

    pub(crate) fn count_received(&mut self, payload: usize, clock: u32) {
        self.total.received += payload as u64;
        self.total.framing_received += HEADER as u64;
        self.total.messages_received += 1;
        self.clock.heard = self.clock.heard.max(clock);
        self.total.rounds = u64::from(self.clock.seen());
    }

    fn now(&self) -> Instant {
        self.frozen.unwrap_or_else(Instant::now)
    }

    fn since(&self, before: Traffic, at: Instant) -> Traffic {
        Traffic {
            wall: self.now().saturating_duration_since(at),
            ..self.total - before
        }
    }

    fn path(&self, index: usize) -> String {
        let Some(span) = self.spans.get(index) else {
            return String::new();
        };
        match span.parent {
            Some(parent) => format!("{}/{}", self.path(parent), span.name),
            None => span.name.to_owned(),
        }
    }
}
