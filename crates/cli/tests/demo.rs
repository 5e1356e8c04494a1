//! `volvelle demo`: parent and two children.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::{LIMIT, Process, volvelle};

#[test]
fn a_subset_over_tls() {
    let report = volvelle(["demo", "--json", "--images", "30", "--batch", "20"]).json();
    assert_eq!(
        (report["images"].as_u64(), report["agree"].as_u64()),
        (Some(30), Some(30))
    );
    assert_eq!(
        (report["transport"].as_str(), report["link"].as_str()),
        (Some("tls"), Some("loopback"))
    );
    for phase in ["prep", "online"] {
        for field in ["bits", "us", "rounds"] {
            assert!(
                report[phase][field].as_f64().unwrap() > 0.0,
                "{phase} {field}: {report}"
            );
        }
    }
    assert!(report["accuracy_private"].as_f64().unwrap() > 0.9);
    assert_eq!(report["batches"].as_u64(), Some(2));
}

#[test]
fn over_plain_tcp_as_text() {
    let ended = volvelle(["demo", "--plain-tcp", "--images", "10", "--link", "lan"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("10 of 10") && ended.stdout.contains("link lan, tcp"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, "", "no progress bar unless on a terminal");
}

/// Keys must not be left behind.
#[cfg(target_os = "linux")]
#[track_caller]
fn assert_empty(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Processes whose parent is `parent`, as the system lists them.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let stat =
            std::fs::read_to_string(PathBuf::from(format!("/proc/{id}/stat"))).unwrap_or_default();
        // After the name, which is in parentheses: state, then the parent.
        let parent_of = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent_of == Some(parent)
    })
    .collect()
}

#[cfg(target_os = "linux")]
fn running(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[cfg(target_os = "linux")]
fn start_slow_demo(temporary: &Path) -> (Process, Vec<u32>) {
    // The link is slow, so the demo is under way for long.
    let demo = Process::start_with_temporary(
        temporary,
        ["demo", "--json", "--batch", "4", "--link", "1Mbit,200ms"],
    );
    let deadline = Instant::now() + LIMIT;
    loop {
        let found = children(demo.id());
        if found.len() == 2 {
            std::thread::sleep(Duration::from_millis(300));
            return (demo, found);
        }
        assert!(Instant::now() < deadline, "no two children");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(target_os = "linux")]
fn send_signal(signal: &str, id: u32) {
    let done = std::process::Command::new("kill")
        .args([signal, &id.to_string()])
        .status()
        .unwrap();
    assert!(done.success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_child_ends_the_demo() {
    for which in 0..2 {
        let temporary = tempfile::tempdir().unwrap();
        let (mut demo, children) = start_slow_demo(temporary.path());
        send_signal("-KILL", children[which]);
        demo.restart_clock();
        demo.wait()
            .assert_error(1, &["process failed", "signal: 9"]);
        assert!(
            !children.iter().any(|id| running(*id)),
            "children left behind"
        );
        assert_empty(temporary.path());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interrupting_the_demo_ends_its_children() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut demo, children) = start_slow_demo(temporary.path());
    send_signal("-INT", demo.id());
    demo.restart_clock();
    let ended = demo.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(
        ended.stderr.contains("interrupted") && ended.took < LIMIT,
        "{ended:?}"
    );
    assert!(
        !children.iter().any(|id| running(*id)),
        "children left behind"
    );
    assert_empty(temporary.path());
}

#[cfg(target_os = "linux")]
#[test]
fn killing_the_demo_ends_its_children() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut demo, children) = start_slow_demo(temporary.path());
    demo.kill();
    let deadline = Instant::now() + LIMIT;
    while children.iter().any(|id| running(*id)) {
        assert!(Instant::now() < deadline, "children left behind");
        std::thread::sleep(Duration::from_millis(10));
    }
}
