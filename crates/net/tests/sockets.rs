//! Channels over TCP and TLS on loopback: they work, and whatever the peer does instead is an error in time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use volvelle_net::testing::run_ends;
use volvelle_net::{
    Arrival, Channel, Config, Credentials, Handshake, Label, Listener, NetError, NewIdentity, Role,
    Security, connect,
};

const A: Label = Label::new("test/a");

/// Short enough for a test, long enough for a loaded machine.
const LIMIT: Duration = Duration::from_secs(1);

fn config() -> Config {
    Config::new().timeout(LIMIT)
}

fn identity() -> NewIdentity {
    NewIdentity::generate("test", 1).unwrap()
}

fn knowing(own: &NewIdentity, peer: &NewIdentity) -> Security {
    let credentials =
        Credentials::from_pem(own.certificate_pem(), own.key_pem(), peer.certificate_pem());
    Security::Tls(credentials.unwrap())
}

type End = Result<Channel, NetError>;

fn pair(client: &Security, server: &Security) -> (End, End) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    thread::scope(|scope| {
        let server = scope.spawn(|| listener.accept(Role::Server, server, &config(), Some(LIMIT)));
        let client = connect(&address, Role::Client, client, &config());
        (client, server.join().unwrap())
    })
}

fn good_pair(secure: bool) -> (Channel, Channel) {
    let (client, server) = if secure {
        let (c, s) = (identity(), identity());
        pair(&knowing(&c, &s), &knowing(&s, &c))
    } else {
        pair(&Security::Plain, &Security::Plain)
    };
    (client.unwrap(), server.unwrap())
}

/// A channel towards a peer that is played by the test on a bare socket.
fn against(role: Role, security: &Security, play: impl FnOnce(TcpStream) + Send) -> End {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr();
    thread::scope(|scope| {
        scope.spawn(move || play(TcpStream::connect(address).unwrap()));
        listener.accept(role, security, &config(), Some(LIMIT))
    })
}

fn within<T>(limit: Duration, f: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let value = f();
    let took = start.elapsed();
    assert!(took <= limit, "took {took:?}, allowed {limit:?}");
    value
}

#[test]
fn large_and_small_messages_cross_both_ways_at_once() {
    for secure in [false, true] {
        let talk = |channel: &mut Channel| {
            let mine = channel.role() as u8 + 1;
            for size in [0, 1, 4095, 4096, 65_536, 20 << 20, 3] {
                channel.send(A, &vec![mine; size]).unwrap();
            }
            for size in [0, 1, 4095, 4096, 65_536, 20 << 20, 3] {
                let mut got = vec![0; size];
                channel.recv(A, &mut got).unwrap();
                assert!(got.iter().all(|&byte| byte == 3 - mine));
            }
        };
        run_ends(good_pair(secure), talk, talk);
    }
}

#[test]
fn last_messages_arrive_although_the_sender_is_gone() {
    for secure in [false, true] {
        let (mut client, mut server) = good_pair(secure);
        client.send(A, &[7; 1 << 20]).unwrap();
        // Unread at the client, which must not cost its own last words.
        server.send(A, &[0; 1000]).unwrap();
        server.flush().unwrap();
        let gone = thread::spawn(move || drop(client));
        let mut got = vec![0; 1 << 20];
        server.recv(A, &mut got).unwrap();
        assert_eq!(
            server.recv(A, &mut [0]).unwrap_err(),
            NetError::Disconnected { awaited: "test/a" }
        );
        gone.join().unwrap();
    }
}

#[test]
fn closing_in_good_order_is_prompt() {
    for secure in [false, true] {
        let (client, server) = good_pair(secure);
        within(Duration::from_secs(1), || {
            let server = thread::spawn(move || server.close());
            client.close().unwrap();
            server.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_reason_arrives_before_the_hang_up() {
    for secure in [false, true] {
        let (mut client, mut server) = good_pair(secure);
        server.send(A, &[0; 1000]).unwrap();
        server.flush().unwrap();
        client.abort("no more ink");
        drop(client);
        let told = NetError::PeerAborted {
            code: 1,
            reason: "no more ink".into(),
        };
        // A sender learns of it at the latest when the buffers on the way are full.
        let learned = (0..1000).find_map(|_| server.send(A, &[0; 1 << 20]).err());
        assert_eq!(learned, Some(told));
    }
}

#[test]
fn a_peer_that_works_is_not_mistaken_for_a_dead_one() {
    for secure in [false, true] {
        run_ends(
            good_pair(secure),
            |client| client.recv(A, &mut [0; 3]).unwrap(),
            |server| {
                thread::sleep(LIMIT * 2);
                server.send(A, &[1; 3]).unwrap();
            },
        );
    }
}

#[test]
fn parties_that_wait_for_each_other_are_told() {
    let wait = |channel: &mut Channel| within(LIMIT * 2, || channel.recv(A, &mut [0]).unwrap_err());
    let (client, server) = run_ends(good_pair(false), wait, wait);
    let outcomes = [client, server];
    assert!(
        outcomes.contains(&NetError::Stalemate { awaited: "test/a" }),
        "{outcomes:?}"
    );
}

#[test]
fn a_stalled_peer_is_a_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut client = connect(&address, Role::Client, &Security::Plain, &config()).unwrap();
    let (_stalled, _) = listener.accept().unwrap();
    let late = within(LIMIT * 2, || client.recv(A, &mut [0]).unwrap_err());
    assert_eq!(
        late,
        NetError::Timeout {
            awaited: "test/a",
            after: LIMIT
        }
    );
    // Nor does what it leaves unread keep us from ending.
    within(LIMIT * 2, || drop(client));
}

#[test]
fn a_peer_that_does_not_take_what_is_sent_cannot_keep_a_channel_from_ending() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut client = connect(&address, Role::Client, &Security::Plain, &config()).unwrap();
    let (_stalled, _) = listener.accept().unwrap();
    client.send(A, &vec![0; 40 << 20]).unwrap();
    within(LIMIT * 3, || drop(client));
}

#[test]
fn a_hang_up_in_the_middle_of_a_message_is_an_error() {
    let mut header = 100_u32.to_le_bytes().to_vec();
    header.extend(A.hash().to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    for cut in [0, 5, 12] {
        let bytes = header[..cut].to_vec();
        let mut server = against(Role::Server, &Security::Plain, move |mut stream| {
            stream.write_all(&bytes).unwrap();
        })
        .unwrap();
        assert_eq!(
            server.recv(A, &mut [0; 100]).unwrap_err(),
            NetError::Disconnected { awaited: "test/a" }
        );
    }
}

#[test]
fn certificates_must_be_the_ones_exchanged() {
    let (c, s, other) = (identity(), identity(), identity());
    // The client is not who the server expects.
    let (client, server) = pair(&knowing(&other, &s), &knowing(&s, &c));
    let (client, server) = (
        client.unwrap_err().to_string(),
        server.unwrap_err().to_string(),
    );
    assert!(
        client.contains("does not accept this party's certificate"),
        "{client}"
    );
    assert!(server.contains("is not the one given for it"), "{server}");
    // The server is not who the client expects.
    let (client, server) = pair(&knowing(&c, &s), &knowing(&other, &c));
    let (client, server) = (
        client.unwrap_err().to_string(),
        server.unwrap_err().to_string(),
    );
    assert!(client.contains("is not the one given for it"), "{client}");
    assert!(
        server.contains("does not accept this party's certificate"),
        "{server}"
    );
}

#[test]
fn a_certificate_with_another_s_key_is_refused() {
    let (c, other) = (identity(), identity());
    let mixed =
        Credentials::from_pem(c.certificate_pem(), other.key_pem(), c.certificate_pem()).unwrap();
    let refused = pair(&Security::Tls(mixed), &Security::Plain)
        .0
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("does not belong to its certificate"),
        "{refused}"
    );
}

#[test]
fn tls_meets_something_else() {
    let (c, s) = (identity(), identity());
    let tls = knowing(&s, &c);
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        &[0; 64],
        &[0x16, 3, 1, 0xff, 0xff, 9, 9],
    ] {
        let outcome = within(LIMIT * 2, || {
            against(Role::Server, &tls, |mut stream| {
                stream.write_all(garbage).unwrap();
                let _ = stream.set_read_timeout(Some(LIMIT));
                let _ = stream.read_to_end(&mut Vec::new());
            })
        });
        let error = outcome.unwrap_err();
        assert!(
            matches!(error, NetError::Tls { .. } | NetError::Timeout { .. }),
            "{error}"
        );
    }
    let silent = within(LIMIT * 3, || {
        against(Role::Server, &tls, |_stream| thread::sleep(LIMIT * 2))
    });
    assert_eq!(
        silent.unwrap_err(),
        NetError::Timeout {
            awaited: "the TLS handshake",
            after: LIMIT
        }
    );
    let gone = against(Role::Server, &tls, drop);
    assert_eq!(
        gone.unwrap_err(),
        NetError::Disconnected {
            awaited: "the TLS handshake"
        }
    );
}

#[test]
fn one_party_with_tls_and_one_without_are_told() {
    let (c, s) = (identity(), identity());
    let hello = |end: End| end.and_then(|mut channel| Handshake::new().run(&mut channel));
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    for client_secure in [true, false] {
        let (client, server) = match client_secure {
            true => (knowing(&c, &s), Security::Plain),
            false => (Security::Plain, knowing(&s, &c)),
        };
        let (client, server) = thread::scope(|scope| {
            let server = scope
                .spawn(|| hello(listener.accept(Role::Server, &server, &config(), Some(LIMIT))));
            let client = within(LIMIT * 2, || {
                hello(connect(&address, Role::Client, &client, &config()))
            });
            (client.unwrap_err(), server.join().unwrap().unwrap_err())
        });
        let told = format!("{client} / {server}");
        assert!(told.contains("plain TCP"), "{told}");
    }
}

#[test]
fn a_forged_record_is_an_error() {
    // A relay between two honest parties that damages one byte after the handshake.
    let (c, s) = (identity(), identity());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let relay = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, relayed) = (
        listener.local_addr(),
        relay.local_addr().unwrap().to_string(),
    );
    thread::scope(|scope| {
        scope.spawn(move || damaging_relay(&relay, address));
        let server = scope.spawn(|| {
            let mut server = listener
                .accept(Role::Server, &knowing(&s, &c), &config(), Some(LIMIT))
                .unwrap();
            server.recv(A, &mut [0; 1000]).unwrap_err()
        });
        let mut client = connect(&relayed, Role::Client, &knowing(&c, &s), &config()).unwrap();
        client.send(A, &[1; 1000]).unwrap();
        let _ = client.recv(A, &mut [0]);
        drop(client);
        let error = server.join().unwrap().to_string();
        assert!(error.contains("damaged or forged"), "{error}");
    });
}

fn damaging_relay(relay: &TcpListener, address: SocketAddr) {
    let (mut from, _) = relay.accept().unwrap();
    let mut to = TcpStream::connect(address).unwrap();
    let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
    let back = thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(std::net::Shutdown::Both);
    });
    let mut buffer = [0; 65_536];
    while let Ok(count) = from.read(&mut buffer) {
        // Only the test's message comes in one piece this long without being part of the handshake.
        if count == 0 {
            break;
        }
        if count == 12 + 1000 + 22 {
            buffer[500] ^= 1;
        }
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Write);
    back.join().unwrap();
}

#[test]
fn addresses_that_cannot_be_used_say_why() {
    let taken = Listener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().to_string();
    let refused = Listener::bind(&address).unwrap_err().to_string();
    assert!(
        refused.contains(&address) && refused.contains("port is in use"),
        "{refused}"
    );
    let refused = Listener::bind("127.0.0.1").unwrap_err().to_string();
    assert!(refused.contains("such as 127.0.0.1:7000"), "{refused}");
    let refused = Listener::bind("203.0.113.1:0").unwrap_err().to_string();
    assert!(refused.contains("no such address"), "{refused}");
    drop(taken);
    let brief = Config::new().timeout(Duration::from_millis(200));
    let refused = within(Duration::from_secs(2), || {
        connect(&address, Role::Client, &Security::Plain, &brief)
    });
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("nobody listened there for 0.2 s"),
        "{refused}"
    );
}

#[test]
fn connecting_waits_for_a_peer_that_starts_later() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    drop(listener);
    let later = {
        let address = address.clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            let listener = Listener::bind(&address).unwrap();
            listener
                .accept(Role::Server, &Security::Plain, &config(), Some(LIMIT))
                .unwrap()
        })
    };
    connect(&address, Role::Client, &Security::Plain, &config()).unwrap();
    later.join().unwrap();
}

#[test]
fn a_listener_gives_up_after_its_time() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let wait = Duration::from_millis(50);
    let nobody = listener
        .accept(Role::Server, &Security::Plain, &config(), Some(wait))
        .unwrap_err();
    assert_eq!(
        nobody,
        NetError::Timeout {
            awaited: "a connection",
            after: wait
        }
    );
}

/// A peer that gives signs of life, or a byte now and then, but no message: the time limit for what is received ends that.
#[test]
fn a_limit_holds_for_peers_that_keep_alive() {
    let (_client, mut server) = good_pair(false);
    let start = Instant::now();
    server.limit(Some(2 * LIMIT));
    let error = server.recv(A, &mut [0; 4]).unwrap_err();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");
    assert!(start.elapsed() < 3 * LIMIT);

    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let mut dribbling = TcpStream::connect(listener.local_addr()).unwrap();
    thread::spawn(move || {
        while dribbling.write_all(&[0]).is_ok() {
            thread::sleep(LIMIT / 4);
        }
    });
    let plain = Security::Plain;
    let mut server = listener
        .accept(Role::Server, &plain, &config(), None)
        .unwrap();
    let start = Instant::now();
    server.limit(Some(2 * LIMIT));
    let error = server.recv(A, &mut [0; 1000]).unwrap_err();
    assert!(matches!(error, NetError::Timeout { .. }), "{error}");
    assert!(start.elapsed() < 3 * LIMIT);
}

#[test]
fn a_limit_can_be_lifted() {
    let (mut client, mut server) = good_pair(true);
    server.limit(Some(LIMIT / 10));
    server.limit(None);
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::sleep(LIMIT / 2);
            client.send(A, &[7]).unwrap();
            client.close().unwrap();
        });
        server.recv(A, &mut [0]).unwrap();
        drop(server);
    });
}

#[test]
fn hanging_up_ends_a_wait_on_another_thread() {
    for secure in [false, true] {
        let (_client, mut server) = good_pair(secure);
        let wire = server.hang_up();
        let start = Instant::now();
        let waiting = thread::spawn(move || server.recv(A, &mut [0]).unwrap_err());
        thread::sleep(LIMIT / 10);
        wire.now();
        let error = waiting.join().unwrap();
        assert!(matches!(error, NetError::Disconnected { .. }), "{error}");
        // At the next sign of life: four in the time limit.
        assert!(start.elapsed() < LIMIT);
    }
}

#[test]
fn who_has_connected_and_says_nothing_keeps_nobody_waiting() {
    let (c, s) = (identity(), identity());
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().to_string();
    let silent = TcpStream::connect(&address).unwrap();
    let security = knowing(&s, &c);
    thread::scope(|scope| {
        let (address, security) = (&address, &security);
        let client =
            scope.spawn(move || connect(address, Role::Client, &knowing(&c, &s), &config()));
        let greet = |arrival: Arrival| arrival.accept(Role::Server, security, &config());
        let first = listener.arrival(Some(LIMIT)).unwrap();
        let first = scope.spawn(move || greet(first));
        let start = Instant::now();
        greet(listener.arrival(Some(LIMIT)).unwrap()).unwrap();
        assert!(start.elapsed() < LIMIT);
        client.join().unwrap().unwrap();
        first.join().unwrap().unwrap_err();
    });
    drop(silent);
}
