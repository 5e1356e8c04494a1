//! Bad input: one line that says what was wrong, exit code not 0, no panic, no hang.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use common::{LIMIT, Process, data, images, keys, volvelle};

fn model() -> String {
    data("digits-mlp.safetensors")
}

fn serve_model(path: &Path) -> common::Ended {
    volvelle([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--plain-tcp",
        "--once",
        "--model",
        &path.display().to_string(),
    ])
}

fn query_images(path: &Path) -> common::Ended {
    volvelle([
        "query",
        "--connect",
        "127.0.0.1:9",
        "--plain-tcp",
        "--images",
        &path.display().to_string(),
    ])
}

#[test]
fn command_line() {
    volvelle(["demo", "--frobnicate"]).assert_error(2, &["--frobnicate", "--help"]);
    volvelle(["frobnicate"]).assert_error(2, &["frobnicate"]);
    volvelle(["demo", "--link", "fast"]).assert_error(2, &["--link", "lan"]);
    volvelle(["demo", "--batch", "0"]).assert_error(2, &["--batch"]);
    volvelle(["serve", "--model", "m"]).assert_error(2, &["--listen"]);
    volvelle(["serve", "--model", "m", "--listen", "x"]).assert_error(2, &["--identity"]);
    for command in ["bench lut", "preprocess", "plan"] {
        for entries in ["1", "1048577"] {
            let args = command.split(' ').chain(["--entries", entries]);
            volvelle(args).assert_error(2, &["2 to 1048576", entries]);
        }
    }
    volvelle(["bench", "lut", "--protocol", "magic"]).assert_error(2, &["magic", "rotation"]);
    volvelle(["bench", "lut", "--protocol", "doubling", "--bits", "65"])
        .assert_error(2, &["--bits"]);
    volvelle(["preprocess", "--store", "s", "--plain-tcp"])
        .assert_error(2, &["--listen", "--connect"]);
    volvelle(["preprocess", "--store", "s", "--count", "0"]).assert_error(2, &["--count"]);
    volvelle(["bench", "ot", "--count", "-3"]).assert_error(2, &["-3"]);
}

/// What a protocol refuses comes with what to ask for, and before anything is connected.
#[test]
fn lookups_that_a_protocol_does_not_take() {
    let bench = |args: &str| volvelle(["bench", "lut"].into_iter().chain(args.split(' ')));
    for protocol in ["flute", "flute+"] {
        let args = format!("--protocol {protocol} --entries 16");
        bench(&args).assert_error(1, &[protocol, "give --index boolean"]);
        let args = format!("{args} --index boolean --output additive");
        bench(&args).assert_error(1, &[protocol, "give --output xor"]);
    }
    bench("--protocol garbled-log --entries 16").assert_error(1, &["give --output xor"]);
    bench("--protocol one-round --output xor").assert_error(1, &["give --output additive"]);
    bench("--protocol tree --entries 16").assert_error(1, &["2^8 to 2^20"]);
    let huge = "--entries 4096 --batch 67108864";
    for protocol in ["rotation", "doubling", "tree", "one-round", "auto"] {
        let args = format!("--protocol {protocol} {huge}");
        bench(&args).assert_error(1, &["67108864 lookups", "2048", "at once"]);
    }
    let plan = ["plan"].into_iter().chain(huge.split(' '));
    volvelle(plan).assert_error(1, &["67108864 lookups", "2048", "at once"]);
}

/// As in `volvelle plan | head`.
#[test]
#[cfg(unix)]
fn nobody_reads_the_output() {
    let mut plan = Process::start(["plan", "--entries", "16"]);
    plan.close_output();
    let ended = plan.wait();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""));
}

#[test]
fn help_teaches() {
    for command in [
        vec!["--help"],
        vec!["demo", "--help"],
        vec!["serve", "--help"],
        vec!["preprocess", "--help"],
        vec!["lookup", "--help"],
        vec!["bench", "lut", "--help"],
    ] {
        let help = volvelle(&command);
        assert_eq!(help.code, Some(0), "{help:?}");
        assert!(help.stdout.contains("volvelle"), "{help:?}");
        assert!(
            command.len() == 1 || help.stdout.contains("Example"),
            "{help:?}"
        );
    }
}

#[test]
fn model_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    serve_model(&path).assert_error(1, &["cannot read the model", "model.safetensors"]);
    let good = std::fs::read(model()).unwrap();
    for cut in [0, 7, 8, 100, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        serve_model(&path).assert_error(1, &["no whole safetensors file"]);
    }
    std::fs::write(
        &path,
        b"GIF89a, which is not a model, however long it may be",
    )
    .unwrap();
    serve_model(&path).assert_error(1, &["no whole safetensors file"]);
    // The same bytes under another shape.
    let header = String::from_utf8_lossy(&good[8..400]).into_owned();
    let turned = header.replacen("\"shape\":[10,64]", "\"shape\":[64,10]", 1);
    assert_ne!(turned, header);
    let mut bytes = good.clone();
    let at = header.find("\"shape\":[10,64]").map_or(0, |at| 8 + at);
    bytes[at..at + 15].copy_from_slice(b"\"shape\":[64,10]");
    std::fs::write(&path, &bytes).unwrap();
    serve_model(&path).assert_error(1, &["W2", "[64, 10]", "[10, 64]"]);
    // Not a number.
    let mut bytes = good.clone();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    serve_model(&path).assert_error(1, &["NaN", "expected a number"]);
    serve_model(folder.path()).assert_error(1, &["cannot read the model"]);
}

#[test]
fn image_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("images.csv");
    query_images(&path).assert_error(1, &["cannot read images", "images.csv"]);
    for (text, word) in [
        ("", "no images"),
        ("1,2,3\n", "line 1"),
        ("a\n", "line 1"),
        ("\u{0}\u{1}", "line 1"),
    ] {
        std::fs::write(&path, text).unwrap();
        query_images(&path).assert_error(1, &[word]);
    }
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    query_images(&path).assert_error(1, &["cannot read images"]);
}

#[test]
fn addresses() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    volvelle([
        "serve",
        "--plain-tcp",
        "--model",
        &model(),
        "--listen",
        &address,
    ])
    .assert_error(1, &[&address]);
    volvelle([
        "serve",
        "--plain-tcp",
        "--model",
        &model(),
        "--listen",
        "nonsense",
    ])
    .assert_error(1, &["nonsense"]);
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1).display().to_string();
    drop(taken);
    volvelle([
        "query",
        "--plain-tcp",
        "--images",
        &images,
        "--connect",
        &address,
    ])
    .assert_error(1, &[&address]);
    volvelle([
        "query",
        "--plain-tcp",
        "--images",
        &images,
        "--connect",
        "no.such.host.invalid:1",
    ])
    .assert_error(1, &["no.such.host.invalid"]);
}

#[test]
fn identities() {
    let folder = keys(&["alice"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let serve = |identity: &str, peer: &str| {
        volvelle([
            "serve",
            "--once",
            "--listen",
            "127.0.0.1:0",
            "--model",
            &model(),
            "--identity",
            &path(identity),
            "--peer-cert",
            &path(peer),
        ])
    };
    serve("bob", "alice.cert.pem").assert_error(1, &["bob"]);
    serve("alice", "bob.cert.pem").assert_error(1, &["bob.cert.pem"]);
    std::fs::write(path("torn.cert.pem"), "-----BEGIN CERTIFICATE-----\nMIIB").unwrap();
    serve("alice", "torn.cert.pem").assert_error(1, &["torn.cert.pem"]);
    std::fs::write(path("empty.cert.pem"), "").unwrap();
    serve("alice", "empty.cert.pem").assert_error(1, &["empty.cert.pem"]);
    let again = volvelle(["keygen", "--out", &path(""), "--name", "alice"]);
    again.assert_error(1, &["alice"]);
    volvelle(["keygen", "--out", &path(""), "--name", "../bob"]).assert_error(1, &["../bob"]);
    volvelle(["keygen", "--out", &path("alice.key.pem"), "--name", "bob"])
        .assert_error(1, &["alice.key.pem"]);
}

/// A peer that is not this program at all: it answers, and it sends nothing.
#[test]
fn strangers() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1).display().to_string();
    for answer in [
        "HTTP/1.1 400 Bad Request\r\nServer: x\r\nConnection: close\r\n\r\nwhat are you talking about?",
        "",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(answer.as_bytes());
            let mut sink = Vec::new();
            let _ = stream.set_read_timeout(Some(LIMIT * 2));
            let _ = stream.read_to_end(&mut sink);
        });
        let process = Process::start([
            "query",
            "--plain-tcp",
            "--timeout",
            "2",
            "--images",
            &images,
            "--connect",
            &address,
        ]);
        process.wait().assert_error(1, &[]);
        peer.join().unwrap();
    }
}

#[test]
fn a_stranger_calls_the_server() {
    let mut server = Process::start([
        "serve",
        "--once",
        "--json",
        "--plain-tcp",
        "--timeout",
        "2",
        "--listen",
        "127.0.0.1:0",
        "--model",
        &model(),
    ]);
    let address = server.address();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n")
        .unwrap();
    server.restart_clock();
    server.wait().assert_error(1, &[]);
}
