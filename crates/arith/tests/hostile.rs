//! A peer that stops, lies about lengths or sends garbage makes an error, or a wrong share; never a panic or
//! a hang.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Inputs, PROTOCOLS, Protocol};
use proptest::prelude::*;
use volvelle_net::Role;
use volvelle_net::testing::{Transcript, run_pair_recorded, scripted};
use volvelle_ot::testing::ideal_pair;
use volvelle_prim::{Block, Prg};

const BATCH: usize = 20;

fn inputs() -> Inputs {
    let mut values = vec![0; 2 * BATCH];
    Prg::from_seed(Block(1)).fill_masked(&mut values, 32);
    Inputs {
        y: values.split_off(BATCH),
        x: values,
    }
}

fn record(protocol: Protocol) -> Transcript {
    let (mut client, mut server) = ideal_pair(3);
    let (c, s, transcript) = run_pair_recorded(
        |ch| protocol(ch, &mut client, &inputs()),
        |ch| protocol(ch, &mut server, &inputs()),
    );
    c.unwrap();
    s.unwrap();
    transcript
}

/// Plays bytes to a party; whether it got through.
fn play(protocol: Protocol, role: Role, bytes: Vec<u8>) -> bool {
    let (mut client, mut server) = ideal_pair(3);
    let ot = match role {
        Role::Client => &mut client,
        Role::Server => &mut server,
    };
    protocol(&mut scripted(role, bytes), ot, &inputs()).is_ok()
}

fn sent_to(role: Role, transcript: &Transcript) -> &[u8] {
    match role {
        Role::Client => &transcript.server_sent,
        Role::Server => &transcript.client_sent,
    }
}

#[test]
fn an_empty_batch_is_fine() {
    // A lookup of nothing is an error of its own.
    for (name, protocol) in PROTOCOLS.into_iter().filter(|(name, _)| *name != "one-hot") {
        let (mut client, mut server) = ideal_pair(3);
        let none = || Inputs {
            x: Vec::new(),
            y: Vec::new(),
        };
        let (c, s, _) = run_pair_recorded(
            |ch| protocol(ch, &mut client, &none()),
            |ch| protocol(ch, &mut server, &none()),
        );
        assert!(c.unwrap().is_empty() && s.unwrap().is_empty(), "{name}");
    }
}

#[test]
fn what_was_recorded_plays() {
    for (name, protocol) in PROTOCOLS {
        let transcript = record(protocol);
        for role in [Role::Client, Role::Server] {
            assert!(
                play(protocol, role, sent_to(role, &transcript).to_vec()),
                "{name} {role}"
            );
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (name, protocol) in PROTOCOLS {
        let transcript = record(protocol);
        for role in [Role::Client, Role::Server] {
            let bytes = sent_to(role, &transcript);
            for end in (0..bytes.len()).step_by(1 + bytes.len() / 40) {
                assert!(
                    !play(protocol, role, bytes[..end].to_vec()),
                    "{name} {role} {end}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn garbage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000), client: bool) {
        let role = if client { Role::Client } else { Role::Server };
        for (name, protocol) in PROTOCOLS {
            // Some protocols send one party nothing.
            if !sent_to(role, &record(protocol)).is_empty() {
                prop_assert!(!play(protocol, role, bytes.clone()), "{}", name);
            }
        }
    }

    #[test]
    fn changed_bytes_do_not_panic(at: prop::sample::Index, value: u8, client: bool) {
        let role = if client { Role::Client } else { Role::Server };
        for (_, protocol) in PROTOCOLS {
            let mut bytes = sent_to(role, &record(protocol)).to_vec();
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
                play(protocol, role, bytes);
            }
        }
    }
}
