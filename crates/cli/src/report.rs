//! Costs as they are reported: sums over a session, figures per item, and their wording.

use std::io::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use volvelle_net::Traffic;

use crate::error::CliError;

/// What a phase has cost, both parties' bits together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Cost {
    /// Payload bits both parties have sent.
    pub bits: f64,
    /// Wall time.
    pub us: f64,
    /// Dependent messages, one after the other.
    pub rounds: u64,
}

impl Cost {
    /// From a channel's meter.
    pub fn of(traffic: &Traffic) -> Self {
        Self {
            bits: traffic.bits() as f64,
            us: micros(traffic.wall),
            rounds: traffic.rounds,
        }
    }

    /// Adds a batch: bits and time add up, rounds are those of the batch with the most.
    pub fn add_batch(&mut self, other: Cost) {
        self.bits += other.bits;
        self.us += other.us;
        self.rounds = self.rounds.max(other.rounds);
    }

    /// Adds the bits of what went over other connections meanwhile.
    pub fn add_background(&mut self, traffic: Traffic) {
        self.bits += traffic.bits() as f64;
    }

    /// Spread over `items`.
    pub fn per_item(&self, items: usize) -> PerItem {
        let n = items.max(1) as f64;
        PerItem {
            bits: self.bits / n,
            us: self.us / n,
            rounds: self.rounds,
        }
    }

    /// The same bits, the slower party's time.
    fn slower(self, other: Self) -> Self {
        Self {
            bits: self.bits.max(other.bits),
            us: self.us.max(other.us),
            rounds: self.rounds.max(other.rounds),
        }
    }
}

/// Cost of one item; rounds are those of the whole batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct PerItem {
    /// Bits both parties send.
    pub bits: f64,
    /// Microseconds, the slower party's.
    pub us: f64,
    /// For the batch.
    pub rounds: u64,
}

impl PerItem {
    /// One phase after the other.
    pub fn then(&self, next: &PerItem) -> PerItem {
        PerItem {
            bits: self.bits + next.bits,
            us: self.us + next.us,
            rounds: self.rounds + next.rounds,
        }
    }
}

/// One-time cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Setup {
    /// Bits both parties send.
    pub bits: f64,
    /// Milliseconds, the slower party's.
    pub ms: f64,
}

/// What one party says of a session of the digits model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct SessionReport {
    /// Images classified.
    pub images: u64,
    /// In how many batches.
    pub batches: u64,
    /// Handshake and base OTs.
    pub setup: Cost,
    /// All batches' preprocessing; rounds are a batch's.
    pub prep: Cost,
    /// All batches' online phases; rounds are a batch's.
    pub online: Cost,
    /// From the first message to the last.
    pub wall_s: f64,
    /// How tables were looked up.
    pub protocol: String,
    /// Whether OTs were made ahead in the background. Their bits count for preprocessing, their rounds run beside it and
    /// do not.
    pub ahead: bool,
    /// The answers; the server has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<u8>,
}

impl SessionReport {
    /// Both parties' reports as one: the slower party's times.
    pub fn slower(a: &Self, b: &Self) -> Self {
        Self {
            images: a.images,
            batches: a.batches,
            setup: a.setup.slower(b.setup),
            prep: a.prep.slower(b.prep),
            online: a.online.slower(b.online),
            wall_s: a.wall_s.max(b.wall_s),
            protocol: a.protocol.clone(),
            ahead: a.ahead,
            classes: Vec::new(),
        }
    }
}

/// Writes a line, or several, to standard output; a closed one (`| head`) is an error, not a panic.
///
/// # Errors
/// If standard output is closed or full.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(CliError::Output)
}

/// A duration in microseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Bytes for people.
pub fn bytes(count: f64) -> String {
    match count {
        c if c < 1e3 => format!("{c:.0} B"),
        c if c < 1e6 => format!("{:.1} kB", c / 1e3),
        c if c < 1e9 => format!("{:.1} MB", c / 1e6),
        c => format!("{:.2} GB", c / 1e9),
    }
}

/// A number and its noun.
pub fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Lets [`peak_mib`] count from what is used now, where the system can (Linux).
pub fn forget_peak() {
    // Where it cannot, the peak stays that of the whole process, which is no less.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory this process has had at once, in MiB; 0 where the system does not say.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| {
            rest.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<f64>()
                .ok()
        });
    kib.unwrap_or(0.0) / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_shares() {
        let mut sum = Cost::default();
        sum.add_batch(Cost {
            bits: 80.0,
            us: 4.0,
            rounds: 3,
        });
        sum.add_batch(Cost {
            bits: 40.0,
            us: 2.0,
            rounds: 2,
        });
        assert_eq!(
            sum.per_item(10),
            PerItem {
                bits: 12.0,
                us: 0.6,
                rounds: 3
            }
        );
    }

    #[test]
    fn words() {
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(bytes(1_234_567.0), "1.2 MB");
        assert_eq!(count(1, "batch", "batches"), "1 batch");
        assert!(peak_mib() > 0.5);
    }
}
