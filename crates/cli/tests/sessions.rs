//! A server and a client process: what they agree on, and what happens when they do not, or when one dies.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime};

use common::{Ended, Process, data, images, keys, strings, volvelle};
use volvelle_net::NewIdentity;

/// How both sides name themselves and each other.
#[derive(Clone)]
struct Names {
    server: Vec<String>,
    client: Vec<String>,
}

fn plain() -> Names {
    Names {
        server: strings(&["--plain-tcp"]),
        client: strings(&["--plain-tcp"]),
    }
}

fn tls(folder: &Path, server: [&str; 2], client: [&str; 2]) -> Names {
    let arguments = |[own, peer]: [&str; 2]| {
        let path = |name: &str| folder.join(name).display().to_string();
        vec![
            "--identity".to_owned(),
            path(own),
            "--peer-cert".to_owned(),
            path(&format!("{peer}.cert.pem")),
        ]
    };
    Names {
        server: arguments(server),
        client: arguments(client),
    }
}

fn serve(names: &Names, more: &[&str]) -> Process {
    let model = data("digits-mlp.safetensors");
    let mut args = strings(&[
        "serve",
        "--once",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--model",
        &model,
    ]);
    args.extend(names.server.iter().cloned());
    args.extend(strings(more));
    Process::start(&args)
}

fn query(names: &Names, address: &str, images: &Path, more: &[&str]) -> Process {
    let images = images.display().to_string();
    let mut args = strings(&["query", "--json", "--connect", address, "--images", &images]);
    args.extend(names.client.iter().cloned());
    args.extend(strings(more));
    Process::start(&args)
}

fn both(names: &Names, serve_more: &[&str], query_more: &[&str], count: usize) -> (Ended, Ended) {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), count);
    let mut server = serve(names, serve_more);
    let address = server.address();
    server.restart_clock();
    let client = query(names, &address, &images, query_more).wait();
    (server.wait(), client)
}

/// The first seven held-out images' classes.
fn classes(count: usize) -> Vec<u64> {
    let text = std::fs::read_to_string(data("digits-test.csv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .take(count)
        .map(|line| line.rsplit(',').next().unwrap().parse().unwrap())
        .collect()
}

fn answers(client: &Ended) -> Vec<u64> {
    client.json()["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class.as_u64().unwrap())
        .collect()
}

#[test]
fn over_tcp() {
    let (server, client) = both(&plain(), &["--batch", "4"], &["--batch", "4"], 7);
    assert_eq!(answers(&client), classes(7));
    let (server, client) = (server.json(), client.json());
    assert_eq!(
        (server["images"].as_u64(), client["batches"].as_u64()),
        (Some(7), Some(2))
    );
    assert!(server.get("classes").is_none(), "the server has no answers");
    assert_eq!(server["online"]["bits"], client["online"]["bits"]);
    assert_eq!(server["prep"]["bits"], client["prep"]["bits"]);
    assert_eq!(server["online"]["rounds"], client["online"]["rounds"]);
}

const AHEAD: [&str; 2] = ["--ahead", "on"];

/// The same answers, and the same bits but for the handshakes of two more connections.
#[test]
fn with_ots_made_ahead() {
    let folder = keys(&["server", "client"]);
    let names = tls(folder.path(), ["server", "client"], ["client", "server"]);
    for names in [plain(), names] {
        let run = |ahead| {
            let more = ["--batch", "4", "--protocol", "doubling", "--ahead", ahead];
            let (server, client) = both(&names, &more, &more, 7);
            assert_eq!(answers(&client), classes(7));
            (server.json(), client.json())
        };
        let ((_, off), (server, client)) = (run("off"), run("on"));
        assert_eq!(off["ahead"].as_bool(), Some(false));
        for report in [&server, &client] {
            assert_eq!(report["ahead"].as_bool(), Some(true));
            assert_eq!(report["prep"]["bits"], off["prep"]["bits"]);
            assert_eq!(report["online"]["bits"], off["online"]["bits"]);
        }
        assert_eq!(server["setup"]["bits"], client["setup"]["bits"]);
    }
}

#[test]
fn several_clients_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 30);
    let model = data("digits-mlp.safetensors");
    let mut args = strings(&["serve", "--json", "--plain-tcp", "--listen", "127.0.0.1:0"]);
    args.extend(strings(&["--model", &model, "--batch", "10"]));
    args.extend(strings(&["--clients", "2", "--timeout", "3"]));
    args.extend(strings(&AHEAD));
    let mut server = Process::start(&args);
    let address = server.address();
    // One says nothing, one rubbish, one hangs up: nobody waits for them.
    let silent = TcpStream::connect(&address).unwrap();
    let mut rubbish = TcpStream::connect(&address).unwrap();
    rubbish.write_all(&[0x55; 100]).unwrap();
    drop(TcpStream::connect(&address).unwrap());
    let more = ["--batch", "10", AHEAD[0], AHEAD[1]];
    let clients: Vec<Process> = (0..4)
        .map(|_| query(&plain(), &address, &images, &more))
        .collect();
    for client in clients {
        assert_eq!(answers(&client.wait()), classes(30));
    }
    for _ in 0..4 {
        assert!(server.line().contains("\"images\":30"));
    }
    drop((silent, rubbish));
}

#[test]
fn over_tls() {
    let folder = keys(&["server", "client"]);
    let names = tls(folder.path(), ["server", "client"], ["client", "server"]);
    let (server, client) = both(&names, &[], &[], 5);
    assert_eq!(answers(&client), classes(5));
    server.json();
}

#[test]
fn answers_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 3);
    let mut server = serve(&plain(), &[]);
    let address = server.address();
    let images = images.display().to_string();
    let client = volvelle([
        "query",
        "--plain-tcp",
        "--connect",
        &address,
        "--images",
        &images,
    ]);
    let lines: Vec<u64> = client
        .stdout
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert_eq!(lines, classes(3));
    server.wait().json();
}

#[test]
fn a_server_serves_one_client_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 2);
    let model = data("digits-mlp.safetensors");
    let mut server = Process::start([
        "serve",
        "--json",
        "--plain-tcp",
        "--listen",
        "127.0.0.1:0",
        "--model",
        &model,
    ]);
    let address = server.address();
    // A client that is refused does not end the server.
    query(&plain(), &address, &images, &["--batch", "3"])
        .wait()
        .assert_error(1, &["batch", "120", "3"]);
    for _ in 0..2 {
        assert_eq!(
            answers(&query(&plain(), &address, &images, &[]).wait()),
            classes(2)
        );
    }
}

#[test]
fn another_batch_is_refused_by_both() {
    let (server, client) = both(&plain(), &["--batch", "60"], &["--batch", "120"], 3);
    server.assert_error(1, &["batch", "ours 60", "peer's 120"]);
    client.assert_error(1, &["batch", "ours 120", "peer's 60"]);
}

#[test]
fn another_protocol_or_background_is_refused_by_both() {
    for (name, [ours, theirs]) in [
        ("--protocol", ["rotation", "auto"]),
        ("--protocol", ["auto", "doubling"]),
        ("--ahead", ["off", "on"]),
    ] {
        let (server, client) = both(&plain(), &[name, ours], &[name, theirs], 3);
        let (own, peers) = (format!("ours {ours}"), format!("peer's {theirs}"));
        server.assert_error(1, &[&name[2..], &own, &peers]);
        let (own, peers) = (format!("ours {theirs}"), format!("peer's {ours}"));
        client.assert_error(1, &[&name[2..], &own, &peers]);
    }
    // Agreed on, but not for such lookups.
    let (server, client) = both(
        &plain(),
        &["--protocol", "flute"],
        &["--protocol", "flute"],
        3,
    );
    server.assert_error(1, &["flute"]);
    client.assert_error(1, &["flute"]);
}

#[test]
fn protocols_by_name() {
    for protocol in ["rotation", "one-round"] {
        let more = ["--protocol", protocol];
        let (server, client) = both(&plain(), &more, &more, 3);
        assert_eq!(answers(&client), classes(3));
        assert_eq!(server.json()["protocol"].as_str(), Some(protocol));
    }
}

#[test]
fn wrong_certificates_are_refused_by_both() {
    let folder = keys(&["server", "client", "mallory"]);
    // The client is not who the server expects.
    let (server, client) = both(
        &tls(folder.path(), ["server", "client"], ["mallory", "server"]),
        &[],
        &[],
        1,
    );
    server.assert_error(1, &["ertificate"]);
    client.assert_error(1, &["ertificate"]);
    // The server is not who the client expects.
    let (server, client) = both(
        &tls(folder.path(), ["mallory", "client"], ["client", "server"]),
        &[],
        &[],
        1,
    );
    server.assert_error(1, &["ertificate"]);
    client.assert_error(1, &["ertificate"]);
}

/// An identity whose certificate was valid until an hour ago.
fn expired(folder: &Path, name: &str) {
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();
    let identity = NewIdentity::generate_for(name, now - 48 * hour, now - hour).unwrap();
    let path = |kind: &str| folder.join(format!("{name}.{kind}.pem"));
    identity.save(&path("cert"), &path("key")).unwrap();
}

#[test]
fn expired_certificates_are_refused() {
    let folder = keys(&["client"]);
    expired(folder.path(), "server");
    let names = tls(folder.path(), ["server", "client"], ["client", "server"]);
    // The server's own, before it listens.
    serve(&names, &[])
        .wait()
        .assert_error(1, &["server.cert.pem", "expired"]);
    // The peer's, before the client connects.
    let images = images(folder.path(), 1);
    query(&names, "127.0.0.1:9", &images, &[])
        .wait()
        .assert_error(1, &["server.cert.pem", "expired"]);
}

#[test]
fn tls_against_plain_tcp_is_refused_by_both() {
    let folder = keys(&["server", "client"]);
    let encrypted = tls(folder.path(), ["server", "client"], ["client", "server"]);
    let mixed = Names {
        server: encrypted.server.clone(),
        client: plain().client,
    };
    let (server, client) = both(&mixed, &["--timeout", "3"], &["--timeout", "3"], 1);
    server.assert_error(1, &[]);
    client.assert_error(1, &[]);
    let mixed = Names {
        server: plain().server,
        client: encrypted.client,
    };
    let (server, client) = both(&mixed, &["--timeout", "3"], &["--timeout", "3"], 1);
    server.assert_error(1, &[]);
    client.assert_error(1, &[]);
}

/// Which of the two is killed.
fn kill(names: &Names, kill_server: bool, after_lines: usize, ahead: &str) {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 2000);
    let mut server = serve(names, &["--batch", "20", "--ahead", ahead]);
    let address = server.address();
    let more = ["--batch", "20", "--child", "--ahead", ahead];
    let mut client = query(names, &address, &images, &more);
    for _ in 0..after_lines {
        client.line();
    }
    let (mut victim, mut witness) = if kill_server {
        (server, client)
    } else {
        (client, server)
    };
    victim.kill();
    witness.restart_clock();
    witness.wait().assert_error(1, &["peer"]);
}

#[test]
fn a_killed_server_is_an_error() {
    kill(&plain(), true, 1, "off");
    let folder = keys(&["server", "client"]);
    let names = tls(folder.path(), ["server", "client"], ["client", "server"]);
    kill(&names, true, 3, "off");
    for after_lines in [1, 3, 8] {
        kill(&names, true, after_lines, "on");
    }
}

#[test]
fn a_killed_client_is_an_error() {
    kill(&plain(), false, 3, "off");
    let folder = keys(&["server", "client"]);
    let names = tls(folder.path(), ["server", "client"], ["client", "server"]);
    kill(&names, false, 1, "off");
    for after_lines in [1, 3, 8] {
        kill(&plain(), false, after_lines, "on");
    }
}

/// Not dead, but as silent as if the cable had been pulled.
#[cfg(unix)]
#[test]
fn a_silent_peer_is_an_error() {
    for stop_server in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let images = images(folder.path(), 2000);
        let ahead = if stop_server { "on" } else { "off" };
        let more = ["--batch", "20", "--timeout", "3", "--ahead", ahead];
        let mut server = serve(&plain(), &more);
        let address = server.address();
        let more = [&more[..], &["--child"]].concat();
        let mut client = query(&plain(), &address, &images, &more);
        client.line();
        client.line();
        let (stopped, mut witness) = if stop_server {
            (server, client)
        } else {
            (client, server)
        };
        let done = std::process::Command::new("kill")
            .args(["-STOP", &stopped.id().to_string()])
            .status();
        assert!(done.unwrap().success());
        witness.restart_clock();
        witness.wait().assert_error(1, &["3 s"]);
    }
}

/// Passes bytes on, one of those of the client changed.
fn altered(address: &str, at: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().to_string();
    let address = address.to_owned();
    thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let server = TcpStream::connect(address).unwrap();
        let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
        thread::spawn(move || pass_on(from_server, to_client, usize::MAX));
        pass_on(client, server, at);
    });
    own
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, at: usize) {
    let mut buffer = [0; 4096];
    let mut passed = 0;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if (passed..passed + count).contains(&at) {
            buffer[at - passed] ^= 0x40;
        }
        passed += count;
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// Every byte of the client's opening, one at a time: version, role, parameters, lengths.
#[test]
fn an_altered_handshake_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path(), 1);
    let mut seen = Vec::new();
    for at in 0..24 {
        let mut server = serve(&plain(), &["--timeout", "2"]);
        let address = altered(&server.address(), at);
        server.restart_clock();
        let client = query(&plain(), &address, &images, &["--timeout", "2"]).wait();
        let server = server.wait();
        client.assert_error(1, &[]);
        server.assert_error(1, &[]);
        seen.push(server.stderr);
    }
    assert!(seen.iter().any(|line| line.contains("version")), "{seen:?}");
}
