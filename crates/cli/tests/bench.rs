//! `volvelle bench`: every case runs, is right, and says so in the promised fields.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::net::TcpListener;

use common::{Ended, Process, strings, volvelle};
use serde_json::Value;

#[track_caller]
fn bench(args: &str) -> Value {
    let args: Vec<&str> = args.split(' ').collect();
    let report =
        volvelle([strings(&["bench"]), strings(&args), strings(&["--json"])].concat()).json();
    for phase in ["prep", "online", "total"] {
        for field in ["bits", "us", "rounds"] {
            assert!(
                report[phase][field].as_f64().is_some_and(|v| v >= 0.0),
                "{phase} {field}: {report}"
            );
        }
    }
    assert!(
        report["setup"]["bits"].as_f64().unwrap() > 0.0
            && report["setup"]["ms"].as_f64().unwrap() > 0.0
    );
    assert_eq!(report["wrong"].as_u64(), Some(0), "{report}");
    assert!(report["peak_mib"].as_f64().unwrap() > 0.0);
    report
}

#[test]
fn lookups() {
    for protocol in ["rotation", "doubling", "splut"] {
        for (entries, bits) in [(2, 1), (16, 8), (64, 37), (256, 64)] {
            for index in ["arithmetic", "boolean"] {
                let report = bench(&format!(
                    "lut --protocol {protocol} --entries {entries} --bits {bits} --index {index} --batch 300"
                ));
                assert_eq!(report["checked"].as_u64(), Some(300), "{report}");
                assert_eq!(report["case"]["entries"].as_u64(), Some(entries));
            }
        }
    }
}

#[test]
fn lookups_by_way_of_the_disk() {
    for more in [
        "rotation --entries 16 --bits 8 --threads 2",
        "doubling --entries 64 --bits 1",
        "doubling --entries 16 --bits 20 --index boolean",
        "doubling --entries 256 --bits 64 --link 1Gbit,1ms",
    ] {
        // More than is stored at once.
        let plain = bench(&format!("lut --batch 70000 --protocol {more}"));
        let stored = bench(&format!("lut --batch 70000 --store --protocol {more}"));
        assert_eq!(stored["checked"].as_u64(), Some(70_000));
        for rate in ["written_per_s", "read_per_s", "bytes_each"] {
            assert!(stored["store"][rate].as_f64().unwrap() > 0.0, "{stored}");
        }
        assert!(plain["store"].is_null());
        let bits = |report: &Value| report["online"]["bits"].as_f64().unwrap();
        assert!((bits(&plain) - bits(&stored)).abs() < 0.01, "{stored}");
    }
    volvelle(["bench", "lut", "--store", "--protocol", "splut"])
        .assert_error(1, &["splut", "store"]);
}

/// Without `--protocol` and `--engine` the planner chooses, and says what.
#[test]
fn lookups_by_what_suits() {
    for (more, bits) in [
        ("", 64),
        ("--link wan --objective bits", 8),
        ("--index boolean --objective total", 5),
    ] {
        let args = format!("lut --entries 64 --bits {bits} --batch 1000 {more}");
        let report = bench(args.trim());
        let case = &report["case"];
        assert!(
            case["chosen"].is_string() && case["protocol"] != "auto",
            "{report}"
        );
        assert_eq!(case["engine"], "ferret-k17", "{report}");
    }
    let report = bench("lut --protocol doubling --batch 1000");
    assert!(report["case"]["chosen"].is_null(), "{report}");
}

/// The smallest run of what reproduces the paper's tables: everything is there, and nothing is wrong.
#[test]
fn the_papers_tables() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let ended = volvelle([
        "bench",
        "paper",
        "--smoke",
        "--out",
        &out.display().to_string(),
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for title in [
        "Table 3",
        "Table 5",
        "Table 6",
        "Table 7",
        "Figure 13",
        "Table 10",
        "Table 11",
        "Predicted against",
    ] {
        assert!(
            ended.stdout.contains(&format!("## {title}")) || ended.stdout.contains(title),
            "{title}: {ended:?}"
        );
    }
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    assert_eq!(read("paper.md").trim(), ended.stdout.trim());
    let cases: Vec<Value> = serde_json::from_str(&read("paper.json")).unwrap();
    assert!(cases.len() > 50);
    for case in &cases {
        assert_eq!(case["wrong"], 0, "{case}");
        assert!(case["checked"].as_u64().unwrap() > 0, "{case}");
        let (stated, metered) = (&case["predicted_bits"], &case["total"]["bits"]);
        if case["setup"].is_null() {
            let (stated, metered) = (stated.as_f64().unwrap(), metered.as_f64().unwrap());
            assert!((stated - metered).abs() < 1e-6 * metered, "{case}");
        }
    }
    let html = read("paper.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    assert!(
        html.matches("<svg").count() >= 5 && !html.contains("<script") && !html.contains("src=")
    );
}

#[test]
fn lookups_by_trees() {
    for (protocol, entries) in [
        ("tree", 256),
        ("tree", 8192),
        ("one-round", 2),
        ("one-round", 1024),
    ] {
        for index in ["arithmetic", "boolean"] {
            let report = bench(&format!(
                "lut --protocol {protocol} --entries {entries} --bits 16 --index {index} --batch 40"
            ));
            assert_eq!(report["checked"].as_u64(), Some(40), "{report}");
        }
    }
    let report = bench("lut --protocol one-round --entries 256 --bits 64 --batch 1000");
    assert_eq!(
        (
            report["online"]["bits"].as_f64(),
            report["online"]["rounds"].as_u64()
        ),
        (Some(16.0), Some(1))
    );
}

#[test]
fn lookups_cost_what_they_should() {
    let online = |report: &Value| report["online"]["bits"].as_f64().unwrap();
    let report = bench("lut --protocol doubling --entries 256 --bits 64 --batch 1000");
    assert!(
        online(&report) <= 144.0 && report["online"]["rounds"] == 2,
        "{report}"
    );
    let report = bench("lut --protocol rotation --entries 256 --bits 1 --batch 1000");
    assert_eq!(
        (online(&report), report["online"]["rounds"].as_u64()),
        (16.0, Some(1))
    );
}

#[test]
fn transfers_made_ahead_cost_the_same_bits() {
    for transport in ["memory", "tls"] {
        let case =
            format!("lut --protocol doubling --batch 1000 --threads 2 --transport {transport}");
        let (plain, ahead) = (bench(&case), bench(&format!("{case} --ahead")));
        assert_eq!(plain["total"]["bits"], ahead["total"]["bits"]);
        let engine = ahead["case"]["engine"].as_str().unwrap();
        assert!(engine.ends_with("made ahead"), "{engine}");
    }
}

#[test]
fn comparisons() {
    for variant in ["onehot", "cheetah", "compact"] {
        for bits in [1, 7, 32, 64] {
            let report = bench(&format!(
                "compare --variant {variant} --bits {bits} --batch 500"
            ));
            assert_eq!(report["checked"].as_u64(), Some(500));
        }
    }
}

#[test]
fn oblivious_transfers() {
    for kind in ["cot", "rot"] {
        for engine in ["ferret", "ferret-k16", "softspoken-4"] {
            let report = bench(&format!(
                "ot --kind {kind} --engine {engine} --count 200000"
            ));
            assert_eq!(report["checked"].as_u64(), Some(200_000));
            assert!(report["cold_ms"].as_f64().unwrap() > 0.0);
        }
    }
    let report = bench("ot --kind rot --count 200000 --base ml-kem --security malicious");
    assert_eq!(report["case"]["engine"], "ferret-k17, ml-kem, malicious");
}

#[test]
fn lanes_links_and_transports() {
    for more in [
        "--threads 3",
        "--link lan",
        "--transport tcp",
        "--transport tls --threads 2",
    ] {
        let report = bench(&format!("compare --bits 32 --batch 1001 {more}"));
        assert_eq!(report["checked"].as_u64(), Some(1001), "{more}");
    }
}

/// The server's and the client's end of a bench, each in its own process.
fn apart(server: &str, client: &str) -> (Ended, Ended) {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let args = |args: &str, more: &[&str]| {
        let words: Vec<&str> = args.split(' ').collect();
        [
            strings(&["bench"]),
            strings(&words),
            strings(more),
            strings(&["--json", "--plain-tcp"]),
        ]
        .concat()
    };
    let server = Process::start(args(server, &["--listen", &address]));
    let client = volvelle(args(client, &["--connect", &address]));
    (server.wait(), client)
}

#[test]
fn between_two_processes() {
    for case in [
        "lut --protocol doubling --entries 64 --bits 37 --batch 500 --threads 2",
        "lut --protocol rotation --entries 16 --bits 1 --batch 500",
        "lut --entries 16 --bits 8 --batch 500",
        "compare --bits 32 --batch 1000",
    ] {
        let (server, client) = apart(case, case);
        let (server, client) = (server.json(), client.json());
        assert_eq!(server["checked"], client["checked"], "{server} {client}");
        assert_eq!(
            (server["wrong"].as_u64(), client["wrong"].as_u64()),
            (Some(0), Some(0))
        );
        assert_eq!(
            (&server["prep"], &server["online"]),
            (&client["prep"], &client["online"])
        );
        assert_eq!(client["case"]["transport"], "tcp");
        assert_eq!(server["case"], client["case"]);
    }
}

/// Each party says what differs.
#[test]
fn another_bench_at_the_peer() {
    let case = "lut --protocol doubling --entries 64 --bits 37 --batch 500";
    for (other, name) in [
        (
            "lut --protocol doubling --entries 128 --bits 37 --batch 500",
            "entries",
        ),
        (
            "lut --protocol doubling --entries 64 --bits 37 --batch 400",
            "batch",
        ),
        (
            "lut --protocol doubling --entries 64 --bits 38 --batch 500",
            "bits",
        ),
        (
            "lut --protocol rotation --entries 64 --bits 37 --batch 500",
            "protocol",
        ),
        (
            "lut --protocol doubling --entries 64 --bits 37 --batch 500 --threads 2",
            "threads",
        ),
    ] {
        let (server, client) = apart(case, other);
        let stderr = server.stderr.lines().last().unwrap_or("").to_owned();
        assert!(
            server.code == Some(1) && stderr.contains(&format!("`{name}`")),
            "{server:?}"
        );
        client.assert_error(1, &[&format!("`{name}`")]);
    }
    let (server, client) = apart(case, "compare --bits 32 --batch 500");
    assert_eq!(server.code, Some(1), "{server:?}");
    client.assert_error(1, &["`bench`"]);
}

#[test]
fn a_table_for_people() {
    let ended = volvelle(["bench", "lut", "--protocol", "doubling", "--batch", "100"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for word in ["preprocessing", "online", "total", "100 checked, 0 wrong"] {
        assert!(ended.stdout.contains(word), "{ended:?}");
    }
}

/// Other numbers of entries than powers of two are padded, and that is said.
#[test]
fn padded_tables() {
    let args = "bench lut --protocol doubling --entries 100 --bits 8 --batch 64 --json";
    let ended = volvelle(args.split(' '));
    assert_eq!(ended.stderr, "100 entries are padded to 128\n");
    let report = ended.json();
    assert_eq!(report["case"]["entries"], 128);
    assert_eq!(
        (&report["checked"], &report["wrong"]),
        (&64.into(), &0.into())
    );
}

/// Index and outputs need not be shared alike.
#[test]
fn outputs_shared_otherwise_than_the_index() {
    for (index, output) in [("arithmetic", "xor"), ("boolean", "additive")] {
        for protocol in ["rotation", "ottt", "splut"] {
            let args = format!(
                "bench lut --protocol {protocol} --entries 8 --bits 9 --batch 50 --index {index} --output {output} --json"
            );
            let report = volvelle(args.split(' ')).json();
            assert_eq!(report["case"]["output"], output, "{args}");
            assert_eq!(
                (&report["checked"], &report["wrong"]),
                (&50.into(), &0.into())
            );
        }
    }
}

/// Vectors come out moved as in the clear, and cost what their formulas say.
#[test]
fn vectors() {
    // SP-LUT prepares one OT for a table of two entries, and nothing else.
    let ot = bench("lut --protocol splut --entries 2 --batch 64 --engine ferret-k17");
    let ot = ot["prep"]["bits"].as_f64().unwrap();
    // Bits a vector apart from OTs, and OTs.
    for (kind, bits, ots) in [
        ("permute-trees", 128 * 8 * 2 + 8 * 3 + 8 * (13 + 3), 24),
        ("rotate", 128 * 2 + 8 * 13 + 3, 3),
        ("rotate-shared", 2 * (128 * 2 + 8 * 13 + 3), 6),
    ] {
        let report = bench(&format!(
            "vectors --kind {kind} --len 8 --bits 13 --batch 64 --engine ferret-k17"
        ));
        assert_eq!(report["checked"], 64, "{report}");
        let expected = f64::from(bits) + ot * f64::from(ots);
        let metered = report["total"]["bits"].as_f64().unwrap();
        assert!((metered - expected).abs() < 1e-6, "{report} {expected}");
    }
    bench("vectors --kind permute --len 11 --bits 64 --batch 5 --threads 2");
    for (args, words) in [
        ("--kind rotate --len 100", ["2^k", "100"]),
        ("--kind rotate --len 4096", ["2048", "4096"]),
        (
            "--kind permute --len 65536 --batch 100000",
            ["--batch 1024", "memory"],
        ),
    ] {
        let args = ["bench", "vectors"].into_iter().chain(args.split(' '));
        volvelle(args).assert_error(1, &words);
    }
}
