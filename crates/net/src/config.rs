//! What a user may choose about a channel.

use std::time::Duration;

use crate::link::Link;
use crate::queue::CHUNK;

/// Time limit and emulated link of a channel. Local tuning: nothing here is agreed with the peer, but both parties
/// should use about the same time limit, since keep-alive frames are sent four times in it (and every 2 s at
/// least).
#[derive(Clone, Copy, Debug)]
pub struct Config {
    timeout: Duration,
    link: Option<Link>,
}

/// Longest time limit; more would overflow clocks.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Default for Config {
    fn default() -> Config {
        Config {
            timeout: Duration::from_secs(8),
            link: None,
        }
    }
}

impl Config {
    /// A limit of 8 s and no emulation.
    #[must_use]
    pub fn new() -> Config {
        Config::default()
    }

    /// How long the peer may give no sign of life before that is an error; also bounds connecting and handshakes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Config {
        self.timeout = timeout.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Emulates this link in the sending direction; give it to both parties. [`Link::LOOPBACK`] is no emulation.
    #[must_use]
    pub fn link(mut self, link: Link) -> Config {
        self.link = Some(link);
        self
    }

    /// The time limit, with the longest silence that the emulated link makes by itself on top.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout
            + self.link.map_or(Duration::ZERO, |link| {
                link.rtt() + link.transfer_time(CHUNK as u64)
            })
    }

    /// The link, if it is to be emulated.
    pub(crate) fn emulated(&self) -> Option<Link> {
        self.link.filter(|link| !link.is_loopback())
    }

    /// How often a socket's writer thread says that this party is alive.
    pub(crate) fn heartbeat(&self) -> Duration {
        (self.timeout / 4).min(Duration::from_secs(2))
    }
}
