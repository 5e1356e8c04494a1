//! `volvelle bench lut --protocol grotto --dealer`: three processes, right results, and no dealer left behind.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{strings, volvelle};
use serde_json::Value;

fn bench(args: &str) -> Value {
    let fixed = strings(&["bench", "lut", "--protocol", "grotto", "--dealer", "--json"]);
    let args: Vec<&str> = args.split(' ').collect();
    volvelle([fixed, strings(&args)].concat()).json()
}

#[test]
fn lookups_are_right_and_cost_what_they_should() {
    for (args, prep, online) in [
        ("--entries 256 --bits 8 --batch 2000", 2.0 * 644.0, 16.0),
        ("--entries 256 --bits 64 --batch 500", 2.0 * 1031.0, 16.0),
        (
            "--entries 256 --bits 37 --index boolean --batch 3000",
            2.0 * 257.0,
            16.0,
        ),
        ("--entries 2 --bits 1 --batch 64", 2.0 * 2.0, 2.0),
    ] {
        let report = bench(args);
        assert_eq!(report["wrong"].as_u64(), Some(0), "{report}");
        let bits = |phase: &str| report[phase]["bits"].as_f64().unwrap();
        // A seed of 128 bits to each party.
        assert!((prep..prep + 5.0).contains(&bits("prep")), "{report}");
        assert_eq!(bits("online"), online, "{report}");
        assert_eq!(report["online"]["rounds"].as_u64(), Some(1), "{report}");
        let model = report["case"]["model"].as_str().unwrap();
        assert!(model.contains("dealer") && model.contains("weaker"));
    }
}

#[test]
fn lanes_and_links() {
    let report = bench("--entries 16 --bits 8 --batch 301 --threads 3 --link 1000Mbit,1ms");
    assert_eq!(report["checked"].as_u64(), Some(301), "{report}");
    assert_eq!(report["wrong"].as_u64(), Some(0), "{report}");
}

#[test]
fn the_model_has_to_be_asked_for() {
    let alone = strings(&["bench", "lut", "--protocol", "grotto", "--batch", "10"]);
    volvelle(alone).assert_error(1, &["--dealer", "third"]);
    let other = strings(&["bench", "lut", "--protocol", "splut", "--dealer"]);
    volvelle(other).assert_error(1, &["--dealer", "grotto"]);
    let remote = strings(&[
        "bench",
        "lut",
        "--protocol",
        "grotto",
        "--dealer",
        "--plain-tcp",
        "--listen",
        "127.0.0.1:0",
    ]);
    volvelle(remote).assert_error(1, &["one machine"]);
}

/// A dealer whose parent is gone, which is how it sees its standard input end, ends too.
#[cfg(unix)]
#[test]
fn the_dealer_ends_with_its_parent() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let mut dealer = Command::new(env!("CARGO_BIN_EXE_volvelle"))
        .args([
            "deal",
            "--protocol",
            "grotto",
            "--batch",
            "5",
            "--child",
            "--json",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(dealer.stdin.take());
    let start = Instant::now();
    while dealer.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(10), "it still runs");
        std::thread::sleep(Duration::from_millis(5));
    }
}
