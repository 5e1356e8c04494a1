//! `volvelle plan`: exact bits, every protocol, a choice and its reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{strings, volvelle};
use serde_json::Value;

fn plan(args: &str) -> Value {
    let args: Vec<&str> = args.split_whitespace().collect();
    volvelle([strings(&["plan", "--json"]), strings(&args)].concat()).json()
}

#[test]
fn a_plan_for_machines() {
    let report = plan("--entries 256 --bits 64 --batch 100000 --link wan");
    assert_eq!(
        (&report["link"], &report["objective"]),
        (&"wan".into(), &"balanced".into())
    );
    assert!(report["machine"].as_str().unwrap().contains("instructions"));
    let plan = &report["plans"][0];
    assert_eq!(plan["batch"], 100_000);
    let ways = plan["ways"].as_array().unwrap();
    assert_eq!(ways[0]["protocol"], plan["chosen"]);
    assert!(
        plan["reason"]
            .as_str()
            .unwrap()
            .starts_with(plan["chosen"].as_str().unwrap())
    );
    for name in ["rotation", "doubling", "splut"] {
        let way = ways.iter().find(|way| way["protocol"] == name).unwrap();
        for phase in ["prep", "online", "total"] {
            let (bits, us) = (&way[phase]["bits"], &way[phase]["us"]);
            assert!(
                bits.as_f64().unwrap() >= 0.0 && us.as_f64().unwrap() >= 0.0,
                "{way}"
            );
        }
        assert!(way["total"]["us"].as_f64().unwrap() > 0.0, "{way}");
    }
    let doubling = ways
        .iter()
        .find(|way| way["protocol"] == "doubling")
        .unwrap();
    assert_eq!(doubling["online"]["batch_bits"], 14_200_000);
    assert_eq!(doubling["prep"]["batch_bits"], 52_400_000);
}

/// The bits planned are those that the bench meters.
#[test]
fn planned_bits_are_metered_bits() {
    for shape in [
        "--entries 16 --bits 8",
        "--entries 256 --bits 33",
        "--entries 64 --bits 1",
        "--entries 4 --bits 7 --index boolean",
    ] {
        let report = plan(&format!("{shape} --batch 777 --engine ferret-k17"));
        for way in report["plans"][0]["ways"].as_array().unwrap() {
            let name = way["protocol"].as_str().unwrap();
            let args = format!(
                "bench lut {shape} --batch 777 --engine ferret-k17 --protocol {name} --json"
            );
            let metered = volvelle(args.split(' ')).json();
            for phase in ["prep", "online", "total"] {
                let (planned, metered) = (
                    way[phase]["bits"].as_f64().unwrap(),
                    metered[phase]["bits"].as_f64().unwrap(),
                );
                assert!(
                    (planned - metered).abs() < 1e-6 * metered.max(1.0),
                    "{shape} {name} {phase}: {planned} {metered}"
                );
            }
        }
    }
}

#[test]
fn several_tables_and_padding() {
    let report = plan("--table 256x64:100000 --table 1000x16,5:20 --link lan --objective bits");
    let plans = report["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[1]["entries"], 1024);
    assert_eq!(plans[1]["padded"], "1000 entries are padded to 1024");
    assert_eq!(plans[1]["bits"], serde_json::json!([16, 5]));
    assert!(plans[0]["padded"].is_null());
    let ended = volvelle(["plan", "--table", "1000x16:20"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("1000 entries are padded to 1024") && ended.stdout.contains("* ")
    );
}

/// Every protocol is shown or refused, one line a cause.
#[test]
fn refusals_of_one_cause_are_one_line() {
    let ended = volvelle(["plan", "--entries", "65536", "--batch", "1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("1 lookup, 65536 entries of 64 bits"));
    let refusals: Vec<&str> = ended
        .stdout
        .lines()
        .filter(|l| l.contains("not for"))
        .collect();
    let [size] = refusals[..] else {
        panic!("{refusals:?}");
    };
    assert!(
        size.contains("not for 65536 entries: rotation, doubling") && size.contains("(2 to 4096)")
    );
    let ended = volvelle(["plan", "--entries", "16"]);
    assert!(
        ended
            .stdout
            .contains("not for additively shared indices: flute+, flute"),
        "{ended:?}"
    );
}

#[test]
fn bad_input() {
    for (args, word) in [
        (&["plan", "--table", "256"][..], "256x64:100000"),
        (&["plan", "--table", "256x65:1"], "64"),
        (&["plan", "--table", "256x64:0"], "batch"),
        (&["plan", "--table", "0x64:1"], "entries"),
        (&["plan", "--table", "1x64:10"], "2 to 1048576"),
        (&["plan", "--bits", "0"], "bits"),
        (&["plan", "--objective", "luck"], "luck"),
    ] {
        volvelle(args).assert_error(2, &[word]);
    }
}
