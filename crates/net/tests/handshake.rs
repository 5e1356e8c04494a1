//! The handshake: mismatches name both sides' values, and nothing a peer states does harm.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use volvelle_net::testing::{run_ends, run_pair, run_pair_recorded, scripted};
use volvelle_net::{Handshake, NetError, PROTOCOL_VERSION, Phase, Role, memory_pair};

fn hello() -> Handshake {
    Handshake::new()
        .parameter("entries", 256)
        .parameter("batch", 100_000)
}

/// What a server says to a client.
fn servers_hello(handshake: &Handshake) -> Vec<u8> {
    run_pair_recorded(|c| handshake.run(c), |s| handshake.run(s))
        .2
        .server_sent
}

#[test]
fn equal_statements_pass_in_one_round() {
    let run = |channel: &mut volvelle_net::Channel| {
        hello().run(channel).unwrap();
        channel.meter().clone()
    };
    let (client, server) = run_pair(run, run);
    for meter in [client, server] {
        assert_eq!(meter.phase(Phase::Setup).rounds, 1);
        assert_eq!(meter.span("handshake").unwrap().messages_sent, 1);
    }
}

#[test]
fn parameters_that_differ_are_named_with_both_values() {
    let cases = [
        (
            hello(),
            Handshake::new()
                .parameter("entries", 512)
                .parameter("batch", 100_000),
            "entries",
            "256",
            "512",
        ),
        (
            hello(),
            Handshake::new().parameter("entries", 256),
            "batch",
            "100000",
            "none",
        ),
        (
            Handshake::new().parameter("entries", 256),
            hello(),
            "batch",
            "none",
            "100000",
        ),
    ];
    for (ours, peers, name, our_value, peer_value) in cases {
        let (client, server) = run_pair(|c| ours.run(c), |s| peers.run(s));
        let expected = |ours: &str, peers: &str| NetError::Parameter {
            name: name.into(),
            ours: ours.into(),
            peers: peers.into(),
        };
        assert_eq!(client.unwrap_err(), expected(our_value, peer_value));
        assert_eq!(server.unwrap_err(), expected(peer_value, our_value));
    }
}

#[test]
fn another_version_is_named() {
    let mut bytes = servers_hello(&hello());
    bytes[12 + 8] = 9;
    // Whatever another version says after that is not looked at.
    bytes[12 + 13..].fill(0xff);
    let refused = hello().run(&mut scripted(Role::Client, bytes)).unwrap_err();
    assert_eq!(
        refused,
        NetError::Version {
            expected: PROTOCOL_VERSION,
            got: 9
        }
    );
    let text = refused.to_string();
    assert!(
        text.starts_with("peer speaks protocol version 9, this program 1"),
        "{text}"
    );
}

#[test]
fn two_servers_are_told() {
    let (client, server) = memory_pair();
    let (_, mut other) = (client, server);
    let bytes = servers_hello(&hello());
    let refused = hello().run(&mut scripted(Role::Server, bytes)).unwrap_err();
    assert_eq!(refused, NetError::SameRole { role: Role::Server });
    assert!(refused.to_string().starts_with("both parties are servers"));
    assert!(hello().run(&mut other).is_err(), "its peer is gone");
}

#[test]
fn strangers_are_recognised() {
    for bytes in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 7, 7],
    ] {
        let refused = hello()
            .run(&mut scripted(Role::Client, bytes.to_vec()))
            .unwrap_err();
        assert!(matches!(refused, NetError::NotVolvelle { .. }), "{refused}");
    }
}

#[test]
fn statements_too_long_to_make_are_refused_here() {
    let long = Handshake::new().parameter("name", "x".repeat(10_000));
    let (client, _) = run_ends(memory_pair(), |c| long.run(c), |_| ());
    assert!(matches!(client, Err(NetError::Handshake { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_statements_give_errors(cut in 0_usize..80, at in 0_usize..80, xor in 1_u8..) {
        let bytes = servers_hello(&hello());
        let mut truncated = bytes.clone();
        truncated.truncate(cut.min(bytes.len() - 1));
        prop_assert!(hello().run(&mut scripted(Role::Client, truncated)).is_err());
        let mut damaged = bytes.clone();
        let at = at % bytes.len();
        // Clock 2 is as good as 1: the peer may have heard us before it spoke.
        prop_assume!(!(at == 8 && bytes[at] ^ xor == 2));
        damaged[at] ^= xor;
        prop_assert!(hello().run(&mut scripted(Role::Client, damaged)).is_err());
    }
}
