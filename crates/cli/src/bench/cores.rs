//! A core for each thread of a bench.
//!
//! Where the system puts both parties on one core they take turns, and a short phase is over before the system mends it: its
//! time is then that of both. So a bench whose two ends are here says where its threads are to be, if there are cores for all.

/// As many cores as there are threads, none the sibling of another, if this process may use so many.
#[cfg(target_os = "linux")]
pub fn apart(threads: usize) -> Option<Vec<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity};

    let usable = sched_getaffinity(None).ok()?;
    let cores = (0..CpuSet::MAX_CPU).filter(|&cpu| {
        let sibling = first_sibling(cpu);
        usable.is_set(cpu) && (sibling == cpu || !usable.is_set(sibling))
    });
    let cores: Vec<usize> = cores.take(threads).collect();
    (cores.len() == threads).then_some(cores)
}

/// The first processor of the same core, as far as the system tells.
#[cfg(target_os = "linux")]
fn first_sibling(cpu: usize) -> usize {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    let digits = list.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|d| d.parse().ok()).unwrap_or(cpu)
}

/// Keeps the calling thread on a core.
#[cfg(target_os = "linux")]
pub fn stay_on(core: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};

    let mut only = CpuSet::new();
    only.set(core);
    // If it may not, the figure is what it would have been without.
    let _ = sched_setaffinity(None, &only);
}

#[cfg(not(target_os = "linux"))]
pub fn apart(_: usize) -> Option<Vec<usize>> {
    None
}

#[cfg(not(target_os = "linux"))]
pub fn stay_on(_: usize) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn cores_are_apart_or_there_are_none() {
        let one = apart(1).unwrap();
        assert_eq!(one.len(), 1);
        if let Some(two) = apart(2) {
            assert_ne!(two[0], two[1]);
        }
        assert_eq!(apart(1 << 20), None);
    }
}
