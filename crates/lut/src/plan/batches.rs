//! How many lookups a self-timing runs at a time.

use std::time::Duration;

use super::machine::{Both, Machine, Own};
use crate::{Demand, Index, Protocol};

/// A batch that took this long is long enough, and less where others leave a protocol far behind.
const ENOUGH: Duration = Duration::from_micros(1500);
const ENOUGH_BASELINE: Duration = Duration::from_micros(700);
/// Lookups that are cut in several chunks, so that the parties work side by side as in large batches; as many as this are
/// tried where they take no longer than that.
const SEVERAL: (usize, Duration) = (4096, Duration::from_micros(5000));
/// A first batch that took this long stands for large ones too.
pub(super) const LONG: Duration = Duration::from_millis(5);
/// The first batch, and the largest.
pub(super) const BATCHES: (usize, usize) = (64, 1 << 15);
/// Bits that a first batch may send.
const FIRST_BITS: u64 = 1 << 23;

/// A first batch of a case, if the protocol takes it and can run one in good time.
pub(super) fn demand(
    protocol: Protocol,
    xor: bool,
    log_entries: u32,
    words: &[u32],
) -> Option<Demand> {
    let of = |batch| {
        if xor {
            Demand::xor(log_entries, Index::Boolean, words, batch).ok()
        } else {
            Demand::additive(log_entries, Index::Arithmetic, words, batch).ok()
        }
    };
    let bits_each = protocol.cost(&of(BATCHES.0)?)?.total().bits() / BATCHES.0 as u64;
    if bits_each > FIRST_BITS {
        return None;
    }
    // FLUTE works on planes of 512 lookups, however few there are.
    let first = if protocol == Protocol::Flute {
        512
    } else {
        BATCHES.0 as u64
    };
    of((FIRST_BITS / bits_each.max(1)).clamp(1, first) as usize)
}

/// The next batch after one that took so long, the same if it was long enough.
pub(super) fn grow(batch: usize, took: Duration, protocol: Protocol) -> usize {
    let contends = !protocol.is_baseline() || matches!(protocol, Protocol::SpLut | Protocol::Flute);
    let (enough, several) = if contends {
        (ENOUGH, SEVERAL.0)
    } else {
        (ENOUGH_BASELINE, 0)
    };
    let took = took.as_secs_f64().max(1e-6);
    let for_time = 1.2 * enough.as_secs_f64() / took;
    let for_chunks = (several as f64 / batch as f64).min(SEVERAL.1.as_secs_f64() / took);
    let factor = for_time.max(for_chunks).min(32.0);
    if factor < 1.3 {
        return batch;
    }
    ((batch as f64 * factor) as usize).min(BATCHES.1)
}

/// The batch that takes long enough by earlier timings.
pub(super) fn enough(machine: &Machine, protocol: Protocol, small: &Demand) -> usize {
    let phases = machine.own(protocol, small);
    let took = |batch: usize| {
        let phase = |[a, b]: Both| {
            let of = |own: Own| own.fixed + own.each * batch as f64;
            of(a).max(of(b))
        };
        Duration::from_nanos(phases.map(phase).iter().sum::<f64>() as u64)
    };
    let mut batch = small.batch();
    while took(small.batch()) <= LONG {
        let next = grow(batch, took(batch), protocol);
        if next == batch {
            break;
        }
        batch = next;
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_until_they_take_long_enough_and_have_several_chunks() {
        let (ms, one) = (Duration::from_millis, Protocol::Doubling);
        assert_eq!(grow(8192, ms(2), one), 8192);
        assert_eq!(grow(8192, ms(1), one), 14745);
        assert_eq!(grow(512, ms(1), one), 2560);
        assert_eq!(grow(2048, ms(2), one), 4096);
        assert_eq!(grow(512, ms(5), one), 512);
        assert_eq!(grow(64, Duration::ZERO, one), 64 * 32);
        assert_eq!(grow(BATCHES.1 - 1, ms(1), one), BATCHES.1);
        assert_eq!(grow(BATCHES.1, Duration::ZERO, one), BATCHES.1);
        assert_eq!(grow(64, ms(1), Protocol::OpLut), 64);
    }
}
