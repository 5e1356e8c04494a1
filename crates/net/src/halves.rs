//! Half of the processors for each party where both are timed in one process, as each would have its own if they were apart. Else the
//! threads of both take turns on a processor and push each other's data out of its cache, which no two machines do.

use crate::role::Role;

/// Keeps this thread on its party's half, where the system has a way to say so and there are two processors.
#[cfg(target_os = "linux")]
pub fn keep_to_own(role: Role) {
    use std::sync::OnceLock;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    // What the process may use. Asked once, by a thread that nobody has kept to a half yet: it takes as long as a short phase.
    static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
    let processors = PROCESSORS.get_or_init(|| {
        let all = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let mut processors: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| all.is_set(cpu))
            .collect();
        // Two that are one core must not be in different halves.
        processors.sort_by_cached_key(|&cpu| {
            (
                topology(cpu, "physical_package_id"),
                topology(cpu, "core_id"),
            )
        });
        processors
    });
    let (client, server) = processors.split_at(processors.len() / 2);
    let own = match role {
        Role::Client => client,
        Role::Server => server,
    };
    let mut set = CpuSet::new();
    own.iter().for_each(|&cpu| set.set(cpu));
    if !client.is_empty() {
        // Where it is not allowed, the system places the thread as it likes.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Nothing, on this system.
#[cfg(not(target_os = "linux"))]
pub fn keep_to_own(_: Role) {}

/// What the system says of a processor; 0 if nothing.
#[cfg(target_os = "linux")]
fn topology(cpu: usize, name: &str) -> i64 {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
