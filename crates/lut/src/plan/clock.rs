//! Processor time of a thread, where the system tells it.

use std::time::Duration;

/// Processor time that this thread has used.
#[cfg(unix)]
pub(super) fn processor_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Time that has passed, which stands in for it.
#[cfg(not(unix))]
pub(super) fn processor_time() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_run_backwards() {
        let before = processor_time();
        let work: u64 = (0..100_000u64).map(std::hint::black_box).sum();
        assert!(work > 0 && processor_time() >= before);
    }
}
