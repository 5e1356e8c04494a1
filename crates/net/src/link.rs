//! The link emulator: makes one machine show what two would see.
//!
//! Bytes leave at the link's rate, one after the other, and arrive half a round trip after they left. A chunk
//! handed over at time t departs completely at d = max(t, d') + bytes·8/rate, where d' is the departure of the one
//! before, and is delivered at d + rtt/2. The writer thread sleeps until then; since chunks carry the time at which
//! they were handed over, chunks under way overlap as they would on a wire. Payload and frame headers are counted,
//! what TCP and TLS add is not. Each party emulates its own sending direction.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::error::NetError;

/// A network between the parties: rate in each direction, and round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    rate_bits_per_s: u64,
    rtt: Duration,
}

/// Slower than this, one chunk would take as long as a time limit.
const MIN_RATE: u64 = 100_000;
const MAX_RATE: u64 = 1_000_000_000_000;
const MAX_RTT: Duration = Duration::from_secs(5);

impl Link {
    /// No emulation.
    pub const LOOPBACK: Link = Link {
        rate_bits_per_s: u64::MAX,
        rtt: Duration::ZERO,
    };
    /// The papers' local network: 3000 Mbit/s, 0.8 ms.
    pub const LAN: Link = Link {
        rate_bits_per_s: 3_000_000_000,
        rtt: Duration::from_micros(800),
    };
    /// The papers' wide network: 100 Mbit/s, 50 ms.
    pub const WAN: Link = Link {
        rate_bits_per_s: 100_000_000,
        rtt: Duration::from_millis(50),
    };

    /// A link of 100 kbit/s to 1 Tbit/s and a round trip of at most 5 s.
    ///
    /// # Errors
    /// [`NetError::Link`] outside these bounds.
    pub fn new(rate_bits_per_s: u64, rtt: Duration) -> Result<Link, NetError> {
        let link = Link {
            rate_bits_per_s,
            rtt,
        };
        let refuse = |detail: &str| {
            Err(NetError::Link {
                given: link.to_string(),
                detail: detail.into(),
            })
        };
        if !(MIN_RATE..=MAX_RATE).contains(&rate_bits_per_s) {
            return refuse("the rate must be between 100 kbit/s and 1 Tbit/s");
        }
        if rtt > MAX_RTT {
            return refuse("the round-trip time must be 5 s at most");
        }
        Ok(link)
    }

    /// Bits per second in each direction.
    #[must_use]
    pub fn rate_bits_per_s(&self) -> u64 {
        self.rate_bits_per_s
    }

    /// Round-trip time.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.rtt
    }

    /// Whether this is no emulation at all.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        *self == Link::LOOPBACK
    }

    /// How long this many bytes occupy the link.
    #[must_use]
    pub fn transfer_time(&self, bytes: u64) -> Duration {
        if self.is_loopback() {
            return Duration::ZERO;
        }
        let nanos = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.rate_bits_per_s);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Link::LOOPBACK => f.write_str("loopback"),
            Link::LAN => f.write_str("lan"),
            Link::WAN => f.write_str("wan"),
            Link {
                rate_bits_per_s,
                rtt,
            } => {
                let (rate, unit) = match rate_bits_per_s {
                    r if r >= 1_000_000_000 && r % 100_000_000 == 0 => (r as f64 / 1e9, "Gbit"),
                    r if r >= 1_000_000 => (r as f64 / 1e6, "Mbit"),
                    r => (r as f64 / 1e3, "kbit"),
                };
                write!(f, "{rate}{unit},{}ms", rtt.as_secs_f64() * 1e3)
            }
        }
    }
}

impl FromStr for Link {
    type Err = NetError;

    /// `loopback`, `lan`, `wan`, or `RATE,RTT` such as `200Mbit,20ms`.
    fn from_str(text: &str) -> Result<Link, NetError> {
        let refuse = |detail: String| NetError::Link {
            given: text.to_owned(),
            detail,
        };
        match text {
            "loopback" => return Ok(Link::LOOPBACK),
            "lan" => return Ok(Link::LAN),
            "wan" => return Ok(Link::WAN),
            _ => {}
        }
        let (rate, rtt) = text.split_once(',').ok_or_else(|| {
            refuse(
                "give loopback, lan, wan, or a rate and a round-trip time such as 200Mbit,20ms"
                    .into(),
            )
        })?;
        let rate_units = [("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3)];
        let rate = quantity(rate, &rate_units).ok_or_else(|| {
            refuse(format!(
                "rate `{rate}` should be a number with unit kbit, Mbit or Gbit, such as 200Mbit"
            ))
        })?;
        let rtt_units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        let rtt = quantity(rtt, &rtt_units)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| {
                refuse(format!(
                    "round-trip time `{rtt}` should be a number with unit us, ms or s, such as 20ms"
                ))
            })?;
        // Rounding is saturating, so that absurd rates meet the bounds in `new`.
        match Link::new(rate.round() as u64, rtt) {
            Err(NetError::Link { detail, .. }) => Err(refuse(detail)),
            other => other,
        }
    }
}

/// A non-negative finite number followed by one of the units (case ignored), times the unit's value.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let (_, scale) = units
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit.trim_end_matches("/s")))?;
    let number: f64 = number.trim().parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some(number * scale)
}

/// Reckons when chunks arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    link: Link,
    departed: Option<Instant>,
}

impl Pacer {
    pub(crate) fn new(link: Link) -> Pacer {
        Pacer {
            link,
            departed: None,
        }
    }

    /// When `bytes` bytes handed over at `handed` are delivered, after all those handed over before.
    pub(crate) fn delivery(&mut self, handed: Instant, bytes: usize) -> Instant {
        let start = self
            .departed
            .map_or(handed, |departed| departed.max(handed));
        let departed = start + self.link.transfer_time(bytes as u64);
        self.departed = Some(departed);
        departed + self.link.rtt / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_follow_the_plain_computation() {
        // 8 bits a microsecond: a byte takes one.
        let link = Link::new(8_000_000, Duration::from_millis(10)).unwrap();
        let start = Instant::now();
        let at = |micros: u64| start + Duration::from_micros(micros);
        let mut pacer = Pacer::new(link);
        assert_eq!(pacer.delivery(at(0), 1000), at(1000 + 5000));
        // Handed over while the first still departs: departs right behind it.
        assert_eq!(pacer.delivery(at(200), 500), at(1500 + 5000));
        // Handed over after the link has fallen idle: departs at once.
        assert_eq!(pacer.delivery(at(9000), 0), at(9000 + 5000));
        assert_eq!(pacer.delivery(at(9000), 1), at(9001 + 5000));
    }
}
