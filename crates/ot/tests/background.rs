//! OTs made ahead on threads of their own.
#![allow(missing_docs, clippy::unwrap_used)]

use std::thread;
use std::time::{Duration, Instant};

use volvelle_net::memory_pair;
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Config, Label, Listener, NetError, Role, connect};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{Engine, Ot, OtConfig, OtDemand, OtError, Security};
use volvelle_prim::Block;

const CONFIG: OtConfig = OtConfig::ferret(Set::K16);

/// Requests of many sizes, the server sending first for a change; returns own view of them.
fn requests(ot: &mut Ot, ch: &mut Channel) -> Result<Vec<(u8, Block, Block)>, OtError> {
    let mut seen = Vec::new();
    for count in [1, 1000, 8192, 20_000, 3, 300_000] {
        for ot_sender in [Role::Server, Role::Client] {
            let (mut zeros, mut ones) = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
            let mut choices = vec![0; count];
            if ch.role() == ot_sender {
                ot.send_random(ch, 1, &mut zeros, &mut ones)?;
            } else {
                ot.recv_random(ch, 1, &mut choices, &mut zeros)?;
            }
            seen.extend((0..count).map(|i| (choices[i], zeros[i], ones[i])));
        }
    }
    Ok(seen)
}

#[test]
fn requests_of_any_size_are_served_in_order() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let ((c1, s1), (c2, s2)) = (memory_pair(), memory_pair());
        let run = |a, b| {
            move |ch: &mut Channel| {
                let ot = Ot::setup(ch, CONFIG.with_security(security)).unwrap();
                requests(&mut ot.make_ahead(a, b), ch).unwrap()
            }
        };
        let (client, server) = run_pair(run(c1, c2), run(s1, s2));
        assert_eq!(client.len(), server.len());
        for (c, s) in client.iter().zip(&server) {
            // One of the two is the OT sender: its choice is 0 and its second pad is not zero.
            let (sender, receiver) = if c.2 == Block::ZERO { (s, c) } else { (c, s) };
            assert!(receiver.1 == [sender.1, sender.2][usize::from(receiver.0)]);
        }
    }
}

#[test]
fn a_peer_that_leaves_is_an_error_and_stays_one() {
    let ((c1, s1), (c2, s2)) = (memory_pair(), memory_pair());
    let (ends, ()) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, CONFIG).unwrap().make_ahead(c1, c2);
            let (mut choices, mut pads) = (vec![0; 1_000_000], vec![Block::ZERO; 1_000_000]);
            let first = ot.recv_random(ch, 1, &mut choices, &mut pads).unwrap_err();
            let second = ot.recv_random(ch, 1, &mut choices, &mut pads).unwrap_err();
            (first, second)
        },
        |ch| drop(Ot::setup(ch, CONFIG).unwrap().make_ahead(s1, s2)),
    );
    assert!(
        matches!(ends, (OtError::Net(_), OtError::Broken)),
        "{ends:?}"
    );
}

#[test]
fn what_is_buffered_leaves_before_a_party_waits_for_its_background() {
    const NOTE: Label = Label::new("test/note");
    // More than both ends make ahead: the server's draw needs the client's, which comes after the note.
    const COUNT: usize = 300_000;
    let ((c1, s1), (c2, s2)) = (memory_pair(), memory_pair());
    run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, CONFIG).unwrap().make_ahead(c1, c2);
            ch.recv(NOTE, &mut [0; 8]).unwrap();
            let mut pads = vec![Block::ZERO; COUNT];
            ot.send_random(ch, 1, &mut pads, &mut vec![Block::ZERO; COUNT])
                .unwrap();
        },
        |ch| {
            let mut ot = Ot::setup(ch, CONFIG).unwrap().make_ahead(s1, s2);
            ch.send(NOTE, &[0; 8]).unwrap();
            let mut pads = vec![Block::ZERO; COUNT];
            ot.recv_random(ch, 1, &mut vec![0; COUNT], &mut pads)
                .unwrap();
        },
    );
}

/// What [`requests`] ask for, a direction.
const ASKED: u64 = 1 + 1000 + 8192 + 20_000 + 3 + 300_000;

fn demand(cots: u64) -> OtDemand {
    OtDemand {
        client_sends: cots,
        server_sends: cots,
    }
}

/// Bits of making what [`requests`] ask for: on the main channel, and in the background for a demand.
fn bits(config: OtConfig, ahead: Option<u64>) -> (u64, u64) {
    let ((c1, s1), (c2, s2)) = (memory_pair(), memory_pair());
    let run = |a, b| {
        move |ch: &mut Channel| {
            let mut ot = Ot::setup(ch, config).unwrap();
            if let Some(cots) = ahead {
                ot = ot.make_ahead_for(a, b, demand(cots));
            }
            let before = ch.meter().total().bits();
            requests(&mut ot, ch).unwrap();
            (ch.meter().total().bits() - before, ot.background().bits())
        }
    };
    let (client, server) = run_pair(run(c1, c2), run(s1, s2));
    assert_eq!(client, server);
    client
}

#[test]
fn a_known_demand_costs_what_it_costs_without_a_background() {
    for config in [CONFIG, OtConfig::new(Engine::SoftSpoken(Piece::Four))] {
        let (plain, none) = bits(config, None);
        assert_eq!(none, 0);
        assert_eq!(bits(config, Some(ASKED)), (0, plain));
        // Too little was announced: the rest is made when it is asked for.
        for less in [0, 5000] {
            assert_eq!(bits(config, Some(less)), (0, plain), "{less}");
        }
    }
}

/// Whatever a thread waits for, and however long the peer keeps its end alive.
#[test]
fn a_background_ends_with_its_session() {
    let config = Config::new().timeout(Duration::from_secs(1));
    let wire = || {
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().to_string();
        let plain = volvelle_net::Security::Plain;
        thread::scope(|scope| {
            let server = scope.spawn(|| listener.accept(Role::Server, &plain, &config, None));
            let client = connect(&address, Role::Client, &plain, &config).unwrap();
            (client, server.join().unwrap().unwrap())
        })
    };
    let ((c1, _s1), (c2, mut s2)) = (wire(), wire());
    run_pair(
        // The thread that receives waits for a server that makes nothing.
        |ch| {
            drop(
                Ot::setup(ch, CONFIG)
                    .unwrap()
                    .make_ahead_for(c1, c2, demand(1000)),
            )
        },
        |ch| drop(Ot::setup(ch, CONFIG).unwrap()),
    );
    let start = Instant::now();
    let ended = s2.recv(Label::new("test/nothing"), &mut [0]).unwrap_err();
    assert!(matches!(ended, NetError::Disconnected { .. }), "{ended}");
    assert!(start.elapsed() < Duration::from_secs(5));
}
