//! Lookups made by one pair of processes and used by another; and what goes wrong with stores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use common::{Ended, PATIENCE, Process, strings, volvelle};
use tempfile::TempDir;

/// Both parties' files in one folder.
struct Parties {
    folder: TempDir,
}

const SIDES: [&str; 2] = ["server", "client"];

impl Parties {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        let lines: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
        std::fs::write(self.path(name), lines.join("\n")).unwrap();
    }

    /// A command with one party's store and key.
    fn args(&self, command: &str, side: &str, more: &[&str]) -> Vec<String> {
        let path = |name: &str| self.path(&format!("{side}.{name}")).display().to_string();
        let mut args = strings(&[command, "--plain-tcp", "--json"]);
        args.extend(["--store".to_owned(), path("store")]);
        args.extend(["--key-file".to_owned(), path("key")]);
        args.extend(strings(more));
        if command == "lookup" {
            args.extend(["--index".to_owned(), path("index")]);
        }
        args
    }

    fn start_server(&self, command: &str, more: &[&str]) -> (Process, String) {
        let mut args = self.args(command, "server", more);
        args.extend(strings(&["--listen", "127.0.0.1:0"]));
        let mut server = Process::start(args);
        let address = server.address();
        server.restart_clock();
        (server, address)
    }

    fn start_client(&self, command: &str, address: &str, more: &[&str]) -> Process {
        let mut args = self.args(command, "client", more);
        args.extend(strings(&["--connect", address]));
        Process::start(args)
    }

    /// Server and client, started with these arguments each.
    fn run(&self, command: &str, server: &[&str], client: &[&str]) -> (Ended, Ended) {
        let (server, address) = self.start_server(command, server);
        let client = self.start_client(command, &address, client).wait();
        (server.wait(), client)
    }

    fn preprocess(&self, shape: &[&str]) -> (Ended, Ended) {
        self.run("preprocess", shape, shape)
    }

    fn lookup(&self, more: &[&str]) -> (Ended, Ended) {
        let table = self.path("table").display().to_string();
        let mut args = vec!["--table", &table];
        args.extend(more);
        self.run("lookup", &args, &args)
    }
}

fn outputs(ended: &Ended) -> Vec<u64> {
    let json = ended.json();
    let outputs = json["outputs"].as_array().unwrap();
    outputs.iter().map(|o| o.as_u64().unwrap()).collect()
}

fn ready(ended: &Ended) -> u64 {
    ended.json()["ready"].as_u64().unwrap()
}

#[test]
fn made_by_one_pair_of_processes_used_by_others() {
    let parties = Parties::new();
    let shape = ["--entries", "16", "--bits", "20", "--count", "100"];
    let (server, client) = parties.preprocess(&shape);
    assert_eq!((ready(&server), ready(&client)), (100, 100));
    parties.write("table", (0..16).map(|i| i * i * 1000));
    let (theirs, ours) = ([3, 15, 0, 9], [4, 2, 0, 11]);
    parties.write("server.index", theirs);
    parties.write("client.index", ours);
    let entries: Vec<u64> = [7u64, 1, 0, 4].iter().map(|i| i * i * 1000).collect();

    let (server, client) = parties.lookup(&["--open"]);
    assert_eq!(
        (outputs(&server), outputs(&client)),
        (entries.clone(), entries.clone())
    );
    assert_eq!((ready(&server), ready(&client)), (96, 96));

    let (server, client) = parties.lookup(&[]);
    let sums = outputs(&server).into_iter().zip(outputs(&client));
    let sums: Vec<u64> = sums.map(|(a, b)| (a + b) % (1 << 20)).collect();
    assert_eq!(sums, entries);

    // Filled up again.
    let (server, client) = parties.preprocess(&shape);
    assert_eq!(server.json()["made"].as_u64(), Some(8));
    assert_eq!(ready(&client), 100);
}

/// The same lookups and bits; what is interrupted goes on as without.
#[test]
fn with_ots_made_ahead() {
    let bits = |ahead| {
        let parties = Parties::new();
        let shape = [
            "--entries",
            "16",
            "--bits",
            "20",
            "--count",
            "70000",
            "--ahead",
            ahead,
        ];
        let (server, client) = parties.preprocess(&shape);
        assert_eq!((ready(&server), ready(&client)), (70_000, 70_000));
        parties.write("table", (0..16).map(|i| i * i * 1000));
        parties.write("server.index", [3, 15]);
        parties.write("client.index", [4, 2]);
        let (server, _) = parties.lookup(&["--open"]);
        assert_eq!(outputs(&server), [49_000, 1000]);
        client.json()["prep"]["bits"].as_f64().unwrap()
    };
    assert_eq!(bits("on"), bits("off"));
}

#[test]
fn boolean_index_and_a_short_table() {
    let parties = Parties::new();
    let shape = [
        "--entries",
        "8",
        "--index",
        "boolean",
        "--count",
        "3",
        "--protocol",
        "rotation",
    ];
    parties.preprocess(&shape);
    parties.write("table", [10, 11, 12, 13, 14]);
    parties.write("server.index", [1, 7]);
    parties.write("client.index", [3, 0]);
    let (server, client) = parties.lookup(&["--open"]);
    assert_eq!(
        (outputs(&server), outputs(&client)),
        (vec![12, 0], vec![12, 0])
    );
    assert!(
        server
            .stderr
            .contains("5 entries, filled up with zeros to the store's 8")
    );
}

#[test]
fn what_a_store_refuses() {
    let parties = Parties::new();
    let shape = ["--entries", "4", "--bits", "8", "--count", "3"];
    parties.preprocess(&shape);
    parties.write("table", [1, 2, 3, 4]);
    for side in SIDES {
        parties.write(&format!("{side}.index"), [0, 1, 2, 3]);
    }
    let table = parties.path("table").display().to_string();
    let lookup = |more: &[&str]| {
        let mut args = parties.args(
            "lookup",
            "client",
            &["--connect", "127.0.0.1:9", "--table", &table],
        );
        args.extend(strings(more));
        args
    };
    // More than there is, twice: nothing is used up.
    for _ in 0..2 {
        volvelle(lookup(&[])).assert_error(1, &["4 correlations asked for", "3 left"]);
    }
    parties.write("client.index", [4]);
    volvelle(lookup(&[])).assert_error(1, &["line 1", "out of range", "0 to 3"]);
    parties.write("client.index", []);
    volvelle(lookup(&[])).assert_error(1, &["no numbers"]);
    parties.write("client.index", [0]);
    parties.write("table", [1, 2, 3, 4, 5]);
    volvelle(lookup(&[])).assert_error(1, &["5 entries", "for 4"]);
    parties.write("table", [256]);
    volvelle(lookup(&[])).assert_error(1, &["line 1", "0 to 255"]);
    parties.write("table", [1, 2, 3, 4]);

    // Another key, no key, a foreign file, a file that is not there.
    let key = parties.path("client.key");
    let digits = std::fs::read_to_string(&key).unwrap();
    std::fs::write(&key, "11".repeat(32)).unwrap();
    volvelle(lookup(&[])).assert_error(1, &["not the key", "client.store"]);
    std::fs::write(&key, "secret").unwrap();
    volvelle(lookup(&[])).assert_error(1, &["64 hexadecimal digits"]);
    std::fs::write(&key, digits).unwrap();
    let store = parties.path("client.store");
    let bytes = std::fs::read(&store).unwrap();
    std::fs::write(&store, &bytes[..bytes.len() - 1]).unwrap();
    volvelle(lookup(&[])).assert_error(1, &["damaged", "cut off"]);
    std::fs::write(&store, "something else").unwrap();
    volvelle(lookup(&[])).assert_error(1, &["not a correlation store"]);
    std::fs::remove_file(&store).unwrap();
    volvelle(lookup(&[])).assert_error(1, &["client.store", "cannot open"]);
    // One party has lost its store.
    let (server, client) = parties.preprocess(&shape);
    server.assert_error(1, &["server.store", "the peer has no store"]);
    client.assert_error(1, &["client.store", "the peer has a store"]);
}

#[test]
fn parties_that_disagree() {
    let parties = Parties::new();
    let shape = ["--entries", "4", "--bits", "8", "--count", "3"];
    let (server, client) = parties.run(
        "preprocess",
        &shape,
        &["--entries", "8", "--bits", "8", "--count", "3"],
    );
    server.assert_error(1, &["entries", "4", "8"]);
    client.assert_error(1, &["entries", "4", "8"]);
    parties.preprocess(&shape);
    for side in SIDES {
        parties.write(&format!("{side}.index"), [0]);
    }
    parties.write("table", [1, 2, 3, 4]);
    parties.write("other", [1, 2, 3, 5]);
    let [table, other] = ["table", "other"].map(|name| parties.path(name).display().to_string());
    let (server, client) = parties.run("lookup", &["--table", &table], &["--table", &other]);
    server.assert_error(1, &["table's SHA-256"]);
    client.assert_error(1, &["table's SHA-256"]);
    // Another pair's store of the same shape.
    let others = Parties::new();
    others.preprocess(&shape);
    for name in ["client.store", "client.key"] {
        std::fs::copy(others.path(name), parties.path(name)).unwrap();
    }
    let (server, client) = parties.lookup(&[]);
    server.assert_error(1, &["not made together"]);
    client.assert_error(1, &["not made together"]);
}

/// What comes to nothing leaves nothing in the way of the next attempt.
#[test]
fn a_first_attempt_that_comes_to_nothing() {
    let parties = Parties::new();
    // Refused before anything is made, and before the peer is there.
    let tree = ["--entries", "16", "--protocol", "tree", "--count", "3"];
    let mut args = parties.args("preprocess", "client", &tree);
    args.extend(strings(&["--connect", "127.0.0.1:9"]));
    volvelle(args).assert_error(1, &["tree", "2^8 to 2^20", "2^4"]);
    for name in ["client.store", "client.key"] {
        assert!(!parties.path(name).exists(), "{name}");
    }
    let shape = |entries| ["--entries", entries, "--bits", "8", "--count", "3"];
    let (server, _) = parties.run("preprocess", &shape("16"), &shape("32"));
    server.assert_error(1, &["entries", "16", "32"]);
    let (server, client) = parties.run("preprocess", &shape("200"), &shape("256"));
    assert_eq!((ready(&server), ready(&client)), (3, 3));
    assert_eq!(server.stderr, "200 entries are padded to 256\n");
    let (server, client) = parties.preprocess(&shape("16"));
    for ended in [server, client] {
        ended.assert_error(1, &["for 256 entries", "another file", "both parties"]);
    }
}

#[test]
fn a_store_is_opened_once() {
    let parties = Parties::new();
    parties.preprocess(&["--entries", "4", "--bits", "8", "--count", "3"]);
    parties.write("server.index", [0]);
    parties.write("table", [1, 2, 3, 4]);
    let table = parties.path("table").display().to_string();
    let (_waiting, address) = parties.start_server("lookup", &["--table", &table]);
    let mut second = parties.args("lookup", "server", &["--table", &table]);
    second.extend(["--connect".to_owned(), address]);
    volvelle(second).assert_error(1, &["server.store", "another process"]);
}

/// What is stored when a party is killed is used later, and the rest made.
#[test]
fn preprocessing_goes_on_after_a_kill() {
    let parties = Parties::new();
    let shape = ["--entries", "4096", "--bits", "8", "--count", "60000"];
    let shape = [&shape[..], &["--ahead", "on"]].concat();
    let (mut server, address) = parties.start_server("preprocess", &shape);
    let client = parties.start_client("preprocess", &address, &shape);
    let stored = |side: &str| {
        let path = parties.path(&format!("{side}.store"));
        std::fs::metadata(path).map_or(0, |file| file.len())
    };
    while stored("client") < 5_000_000 {
        thread::sleep(Duration::from_millis(5));
    }
    server.kill();
    client.wait().assert_error(1, &["hung up"]);
    assert!(server.wait().code.is_none());
    let (server, client) = parties.preprocess(&shape);
    assert_eq!((ready(&server), ready(&client)), (60_000, 60_000));
    let made = client.json()["made"].as_u64().unwrap();
    assert!(made < 60_000, "{made} made");
    parties.write("table", (0..4096).map(|i| i % 251));
    parties.write("server.index", (0..1000).map(|i| i * 17 % 4096));
    parties.write("client.index", (0..1000).map(|i| i * 4 % 4096));
    let (_, client) = parties.lookup(&["--open"]);
    let entries: Vec<u64> = (0..1000).map(|i| i * 21 % 4096 % 251).collect();
    assert_eq!(outputs(&client), entries);
}

/// Killed in the middle of a batch: both parties pass over what it had taken, and what they look up then is right.
#[test]
fn looking_up_goes_on_after_a_kill() {
    const COUNT: u64 = 20_000;
    const BATCH: u64 = 4000;
    let parties = Parties::new();
    let count = COUNT.to_string();
    parties.preprocess(&["--entries", "16", "--bits", "8", "--count", &count]);
    parties.write("table", (0..16).map(|i| i * i));
    let table = parties.path("table").display().to_string();
    // Before the chunks: header and cursor.
    let pages = |side: &str| {
        let mut pages = vec![0; 3 * 4096];
        let mut file = std::fs::File::open(parties.path(&format!("{side}.store"))).unwrap();
        file.read_exact(&mut pages).unwrap();
        pages
    };
    let mut left = COUNT;
    for victim in SIDES {
        for side in SIDES {
            parties.write(&format!("{side}.index"), (0..BATCH).map(|i| i % 16));
        }
        let before = pages(victim);
        // So slow that the batch is on its way for long after it was taken.
        let slow = ["--table", &table, "--open", "--link", "10Mbit,400ms"];
        let (mut server, address) = parties.start_server("lookup", &slow);
        let mut client = parties.start_client("lookup", &address, &slow);
        let start = Instant::now();
        while pages(victim) == before {
            assert!(start.elapsed() < PATIENCE);
            thread::sleep(Duration::from_millis(1));
        }
        let (killed, other) = match victim {
            "server" => {
                server.kill();
                (server, client)
            }
            _ => {
                client.kill();
                (client, server)
            }
        };
        let killed = killed.wait();
        assert_eq!(
            (killed.code, killed.stdout.contains("outputs")),
            (None, false)
        );
        other.wait().assert_error(1, &["hung up"]);

        parties.write("server.index", (0..100).map(|i| i * 7 % 16));
        parties.write("client.index", (0..100).map(|i| i * 6 % 16));
        let (server, client) = parties.lookup(&["--open"]);
        let entries: Vec<u64> = (0..100).map(|i| (i * 13 % 16) * (i * 13 % 16)).collect();
        assert_eq!(
            (outputs(&server), outputs(&client)),
            (entries.clone(), entries)
        );
        left -= BATCH + 100;
        assert_eq!((ready(&server), ready(&client)), (left, left), "{victim}");
    }
}

/// Ctrl-C ends one party at once, and the other hears of it; both keep what they have.
#[test]
#[cfg(unix)]
fn preprocessing_is_interrupted() {
    let parties = Parties::new();
    let shape = ["--entries", "4096", "--bits", "8", "--count", "60000"];
    let (server, address) = parties.start_server("preprocess", &shape);
    let client = parties.start_client("preprocess", &address, &shape);
    let store = parties.path("client.store");
    while std::fs::metadata(&store).map_or(0, |file| file.len()) < 5_000_000 {
        thread::sleep(Duration::from_millis(5));
    }
    let id = client.id().to_string();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-INT", &id]).status().unwrap().success());
    let client = client.wait();
    assert_eq!(client.code, Some(130), "{client:?}");
    assert!(
        client.stderr.contains("what is stored is kept"),
        "{client:?}"
    );
    server.wait().assert_error(1, &["hung up"]);
    let (server, _) = parties.preprocess(&shape);
    assert!(server.json()["made"].as_u64().unwrap() < 60_000);
}

#[test]
fn keys_and_passphrases() {
    let nowhere = Path::new("/nonexistent/store").display().to_string();
    let args = [
        "lookup",
        "--plain-tcp",
        "--connect",
        "127.0.0.1:9",
        "--table",
        "t",
        "--index",
        "i",
        "--store",
    ];
    let mut args = strings(&args);
    args.push(nowhere);
    volvelle(args).assert_error(1, &["--key-file", "VOLVELLE_PASSPHRASE"]);
}
