//! Interrupted calls, calls for nothing, calls for too much.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::convert;
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::testing::ideal_pair;
use volvelle_ot::{Engine, Ot, OtConfig, OtError, Security};
use volvelle_prim::Block;

fn send(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    let (mut zeros, mut ones) = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
    ot.send_random(ch, 1, &mut zeros, &mut ones)
}

fn receive(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    ot.recv_random(ch, 1, &mut vec![0; count], &mut vec![Block::ZERO; count])
}

#[test]
fn a_refill_that_the_peer_interrupts_leaves_an_end_unusable() {
    for security in [Security::SemiHonest, Security::Malicious] {
        for engine in [Engine::Ferret(Set::K16), Engine::SoftSpoken(Piece::Four)] {
            let config = OtConfig::new(engine).with_security(security);
            let (client, ()) = run_pair(
                |ch| {
                    let mut ot = Ot::setup(ch, config).unwrap();
                    receive(&mut ot, ch, 100).unwrap();
                    let first = receive(&mut ot, ch, 2_000_000).unwrap_err();
                    // Not one more OT, though some of the last refill are left; nor in the other direction.
                    let again = [
                        receive(&mut ot, ch, 1),
                        send(&mut ot, ch, 1),
                        receive(&mut ot, ch, 0),
                    ];
                    (first, again)
                },
                |ch| {
                    let mut ot = Ot::setup(ch, config).unwrap();
                    send(&mut ot, ch, 100).unwrap();
                    ch.flush().unwrap();
                },
            );
            // SoftSpoken's sender waits for its receiver, so there the receiver may notice late, but it does.
            if let Engine::Ferret(_) = engine {
                assert!(matches!(client.0, OtError::Net(_)), "{:?}", client.0);
            }
            for error in client.1 {
                assert!(matches!(error, Err(OtError::Broken)), "{error:?}");
            }
        }
    }
}

#[test]
fn a_chosen_ot_that_the_peer_interrupts_leaves_an_end_unusable() {
    let (mut client, mut server) = ideal_pair(1);
    let (errors, ()) = run_pair(
        |ch| {
            let first = convert::send_chosen(&mut client, ch, &[[Block(1), Block(2)]]).unwrap_err();
            (first, send(&mut client, ch, 1).unwrap_err())
        },
        |ch| receive(&mut server, ch, 1).unwrap(),
    );
    assert!(
        matches!(errors, (OtError::Net(_), OtError::Broken)),
        "{errors:?}"
    );
}

#[test]
fn a_panic_in_a_visitor_leaves_an_end_unusable() {
    let config = OtConfig::ferret(Set::K16);
    let (error, _) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            let torn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                ot.send_pprf(ch, 3, 1, 2, &mut |_, _| panic!("in a visitor"))
            }));
            assert!(torn.is_err());
            send(&mut ot, ch, 1).unwrap_err()
        },
        |ch| Ot::setup(ch, config).map(|mut ot| ot.recv_pprf(ch, 3, 1, 2, &mut |_, _, _| ())),
    );
    assert!(matches!(error, OtError::Broken));
}

#[test]
fn a_call_for_nothing_sends_nothing_and_one_refused_for_its_arguments_changes_nothing() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let config = OtConfig::ferret(Set::K16).with_security(security);
        let party = |ch: &mut Channel| {
            let mut ot = Ot::setup(ch, config).unwrap();
            let before = ch.meter().total().bits();
            send(&mut ot, ch, 0).unwrap();
            receive(&mut ot, ch, 0).unwrap();
            ot.send_pprf(ch, 5, 1, 0, &mut |_, _| panic!("no tree"))
                .unwrap();
            ot.recv_pprf(ch, 5, 1, 0, &mut |_, _, _| panic!("no tree"))
                .unwrap();

            let pads = &mut [Block::ZERO; 3];
            let shapes = [
                ot.send_random(ch, 1, pads, &mut [Block::ZERO; 2]),
                ot.send_random(ch, 0, &mut [], &mut []),
                ot.recv_random(ch, 2, &mut [0; 2], pads),
                ot.send_pprf(ch, 0, 1, 1, &mut |_, _| ()),
                ot.recv_pprf(ch, 25, 1, 1, &mut |_, _, _| ()),
                ot.recv_pprf(ch, 5, 0, 1, &mut |_, _, _| ()),
            ];
            assert!(
                shapes
                    .iter()
                    .all(|e| matches!(e, Err(OtError::Shape { .. }))),
                "{shapes:?}"
            );
            for (depth, count) in [(1, (1 << 32) + 1), (24, 1 << 31), (16, usize::MAX)] {
                let limits = [
                    ot.send_pprf(ch, depth, 1, count, &mut |_, _| ()),
                    ot.recv_pprf(ch, depth, 1, count, &mut |_, _, _| ()),
                ];
                assert!(
                    limits
                        .iter()
                        .all(|e| matches!(e, Err(OtError::TooMany { .. }))),
                    "{limits:?}"
                );
            }
            assert_eq!(ch.meter().total().bits(), before);
            // Still in step.
            match ch.role() {
                Role::Client => send(&mut ot, ch, 10).unwrap(),
                Role::Server => receive(&mut ot, ch, 10).unwrap(),
            }
            ch.flush().unwrap();
        };
        run_pair(party, party);
    }
}
