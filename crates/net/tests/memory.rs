//! Channels in memory: framing, metering, errors.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use volvelle_net::testing::{run_pair, run_pair_recorded, scripted};
use volvelle_net::{Config, Label, NetError, Phase, Role, memory_pair, memory_pair_with};

const A: Label = Label::new("test/a");
const B: Label = Label::new("test/b");

#[test]
fn messages_of_all_sizes_arrive_in_order() {
    let sizes = [
        0,
        1,
        11,
        12,
        13,
        65_523,
        65_524,
        65_525,
        65_536,
        65_537,
        200_000,
        3 << 20,
        5,
    ];
    let bytes = |size: usize| (0..size).map(|i| (i * 31 + size) as u8).collect::<Vec<_>>();
    run_pair(
        |channel| {
            for size in sizes {
                channel.send(A, &bytes(size)).unwrap();
            }
            channel.flush().unwrap();
        },
        |channel| {
            for size in sizes {
                let mut got = vec![0; size];
                channel.recv(A, &mut got).unwrap();
                assert!(got == bytes(size), "size {size}");
            }
        },
    );
}

#[test]
fn both_send_much_at_once_without_waiting() {
    let both = |channel: &mut volvelle_net::Channel| {
        let sent = vec![channel.role() as u8 + 1; 32 << 20];
        channel.send(A, &sent).unwrap();
        let mut got = vec![0; 32 << 20];
        channel.recv(A, &mut got).unwrap();
        assert!(
            got.iter()
                .all(|&byte| byte == channel.role().other() as u8 + 1)
        );
    };
    run_pair(both, both);
}

#[test]
fn variable_length_is_bounded() {
    let (mut client, mut server) = memory_pair();
    client.send(A, b"12345").unwrap();
    client.send(A, b"12345").unwrap();
    client.flush().unwrap();
    assert_eq!(server.recv_bounded(A, 5).unwrap(), b"12345");
    let refused = server.recv_bounded(A, 4).unwrap_err();
    assert_eq!(
        refused,
        NetError::TooLong {
            label: "test/a",
            max: 4,
            got: 5
        }
    );
}

#[test]
fn wrong_label_and_wrong_length_name_what_was_awaited() {
    let (mut client, mut server) = memory_pair();
    server.send(B, &[]).unwrap();
    client.send(B, &[0; 4]).unwrap();
    client.flush().unwrap();
    let refused = server.recv(A, &mut [0; 4]).unwrap_err();
    let NetError::WrongLabel {
        expected: "test/a",
        got_name: Some("test/b"),
        ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!(
        server.send(A, &[]).unwrap_err(),
        refused,
        "the first error stays"
    );

    let (mut client, mut server) = memory_pair();
    client.send(A, &[0; 4]).unwrap();
    client.flush().unwrap();
    let refused = server.recv(A, &mut [0; 5]).unwrap_err();
    assert_eq!(
        refused,
        NetError::WrongLength {
            label: "test/a",
            expected: 5,
            got: 4
        }
    );
}

#[test]
fn a_dropped_peer_is_an_error_at_once() {
    let (client, mut server) = memory_pair();
    drop(client);
    assert_eq!(
        server.recv(A, &mut [0]).unwrap_err(),
        NetError::Disconnected { awaited: "test/a" }
    );

    let (client, mut server) = memory_pair();
    drop(client);
    server.send(A, &[0]).unwrap();
    assert!(matches!(server.flush(), Err(NetError::Disconnected { .. })));
}

#[test]
fn dropping_a_channel_sends_what_is_gathered() {
    let (mut client, mut server) = memory_pair();
    client.send(A, b"bye").unwrap();
    drop(client);
    assert_eq!(server.recv_bounded(A, 3).unwrap(), b"bye");
}

#[test]
fn a_peer_that_gives_up_says_why() {
    let (mut client, mut server) = memory_pair();
    client.abort("out of paper");
    assert!(client.send(A, &[]).is_err());
    let told = server.recv(A, &mut [0]).unwrap_err();
    assert_eq!(
        told,
        NetError::PeerAborted {
            code: 1,
            reason: "out of paper".into()
        }
    );

    // A party that only sends learns of it too.
    let (mut client, mut server) = memory_pair();
    client.send(A, &[0; 100_000]).unwrap();
    client.abort("out of paper");
    drop(client);
    server.send(B, &[0; 100]).unwrap();
    let told = server.flush().unwrap_err();
    assert_eq!(
        told,
        NetError::PeerAborted {
            code: 1,
            reason: "out of paper".into()
        }
    );
}

#[test]
fn a_silent_peer_is_a_timeout() {
    let limit = Duration::from_millis(50);
    let (_client, mut server) = memory_pair_with(&Config::new().timeout(limit));
    let late = server.recv(A, &mut [0]).unwrap_err();
    assert_eq!(
        late,
        NetError::Timeout {
            awaited: "test/a",
            after: limit
        }
    );
}

#[test]
fn parties_that_wait_for_each_other_are_told_at_once() {
    let wait = |channel: &mut volvelle_net::Channel| channel.recv(A, &mut [0]).unwrap_err();
    let start = std::time::Instant::now();
    let (client, server) = run_pair(wait, wait);
    assert!(start.elapsed() < Duration::from_secs(5));
    let told = NetError::Stalemate { awaited: "test/a" };
    assert!(client == told || server == told, "{client} / {server}");
}

#[test]
fn a_peer_that_never_reads_is_a_timeout_once_the_queue_is_full() {
    let limit = Duration::from_millis(50);
    let (mut client, _server) = memory_pair_with(&Config::new().timeout(limit));
    let mebibyte = vec![0; 1 << 20];
    for _ in 0..63 {
        client.send(A, &mebibyte).unwrap();
    }
    let late = (0..3).find_map(|_| client.send(A, &mebibyte).err());
    assert_eq!(
        late,
        Some(NetError::Timeout {
            awaited: "test/a",
            after: limit
        })
    );
}

#[test]
fn bytes_messages_and_rounds_are_counted_by_phase_and_span() {
    let talk = |channel: &mut volvelle_net::Channel| {
        let mut byte = [0; 1];
        // Setup: crossing messages, one round.
        channel.send(A, &[1, 2, 3]).unwrap();
        channel.recv(A, &mut [0; 3]).unwrap();
        channel.set_phase(Phase::Preprocessing);
        // A ping-pong of three messages behind two that share a round: three rounds.
        channel.span("ping", |channel| {
            if channel.role() == Role::Client {
                channel.send(A, &[0; 10]).unwrap();
                channel
                    .span("inner", |channel| channel.send(A, &[0; 10]))
                    .unwrap();
                channel.recv(B, &mut byte).unwrap();
                channel.send(B, &byte).unwrap();
            } else {
                channel.recv(A, &mut [0; 10]).unwrap();
                channel
                    .span("inner", |channel| channel.recv(A, &mut [0; 10]))
                    .unwrap();
                channel.send(B, &byte).unwrap();
                channel.recv(B, &mut byte).unwrap();
            }
        });
        channel.set_phase(Phase::Online);
        // The server goes on although the client spoke last: a new phase is a new round.
        if channel.role() == Role::Client {
            channel.send(B, &byte).unwrap();
            channel.flush().unwrap();
        } else {
            channel.recv(B, &mut byte).unwrap();
        }
        channel.meter().clone()
    };
    let (client, server) = run_pair(talk, talk);
    for meter in [&client, &server] {
        let rounds =
            [Phase::Setup, Phase::Preprocessing, Phase::Online].map(|p| meter.phase(p).rounds);
        assert_eq!(rounds, [1, 3, 1]);
        assert_eq!(meter.total().rounds, 5);
        assert_eq!(meter.phase(Phase::Setup).bits(), 48);
        assert_eq!(meter.phase(Phase::Preprocessing).bits(), 22 * 8);
        assert_eq!(meter.phase(Phase::Online).bits(), 8);
        assert_eq!(meter.span("ping").unwrap().rounds, 3);
        assert_eq!(meter.span("ping/inner").unwrap().rounds, 0, "rides along");
        assert_eq!(meter.span("ping/inner").unwrap().bits(), 80);
        assert_eq!(
            meter.spans().map(|(name, _)| name).collect::<Vec<_>>(),
            ["ping", "ping/inner"]
        );
    }
    let (c, s) = (client.total(), server.total());
    assert_eq!(
        (c.sent, c.received, c.messages_sent, c.messages_received),
        (25, 4, 5, 2)
    );
    assert_eq!((c.framing_sent, c.framing_received), (60, 24));
    assert_eq!(
        (s.sent, s.received, s.framing_sent, s.framing_received),
        (4, 25, 24, 60)
    );
}

#[test]
fn a_meter_s_clone_stands_still() {
    let (client, _server) = memory_pair();
    let reading = client.meter().clone();
    let before = reading.total().wall;
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(reading.total().wall, before);
    assert_eq!(reading.phase(Phase::Setup).wall, before);
    assert!(client.meter().total().wall >= before + Duration::from_millis(5));
}

#[test]
fn clocks_that_cannot_be_are_refused() {
    let frame = |clock: u32| {
        let mut bytes = 0_u32.to_le_bytes().to_vec();
        bytes.extend(A.hash().to_le_bytes());
        bytes.extend(clock.to_le_bytes());
        bytes
    };
    assert!(scripted(Role::Client, frame(1)).recv(A, &mut []).is_ok());
    for got in [0, 2, u32::MAX] {
        let refused = scripted(Role::Client, frame(got))
            .recv(A, &mut [])
            .unwrap_err();
        assert_eq!(
            refused,
            NetError::WrongClock {
                label: "test/a",
                max: 1,
                got
            }
        );
    }
}

#[test]
fn recordings_hold_every_frame() {
    let (.., transcript) = run_pair_recorded(
        |channel| {
            channel.send(A, b"one").unwrap();
            channel.send(B, b"two").unwrap();
            channel.recv(A, &mut [0; 5]).unwrap();
        },
        |channel| {
            channel.recv(A, &mut [0; 3]).unwrap();
            channel.recv(B, &mut [0; 3]).unwrap();
            channel.send(A, b"three").unwrap();
        },
    );
    assert_eq!(transcript.client_payload(), b"onetwo");
    assert_eq!(transcript.server_payload(), b"three");
    assert_eq!(transcript.client_sent.len(), 2 * (12 + 3));
    assert_eq!(
        transcript.client_frames(),
        [(A.hash(), &b"one"[..]), (B.hash(), &b"two"[..])]
    );
    let (client, _) = transcript.digests();
    assert_eq!(
        client,
        "25b6746d5172ed6352966a013d93ac846e1110d5a25e8f183b5931f4688842a1"
    );
    // A recording can be played back.
    let mut replay = scripted(Role::Server, transcript.client_sent);
    replay.recv(A, &mut [0; 3]).unwrap();
    replay.recv(B, &mut [0; 3]).unwrap();
    assert_eq!(
        replay.recv(B, &mut [0; 3]).unwrap_err(),
        NetError::Disconnected { awaited: "test/b" }
    );
}

#[test]
fn one_party_s_panic_reaches_the_caller() {
    let outcome = std::panic::catch_unwind(|| {
        run_pair(
            |_| panic!("the cause"),
            |channel| channel.recv(A, &mut [0]).unwrap(),
        );
    });
    let panic = outcome.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the cause"));
}
