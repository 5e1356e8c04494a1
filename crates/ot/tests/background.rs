//! OTs made ahead on threads of their own.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::memory_pair;
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Label, Role};
use volvelle_ot::ferret::Set;
use volvelle_ot::{Ot, OtConfig, OtError, Security};
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
