//! Refills that the peer leaves in the middle, at either end: an error, and from then on nothing but errors.

use std::thread::sleep;
use std::time::Duration;

use volvelle_net::testing::{run_pair, run_pair_recorded, scripted};
use volvelle_net::{Channel, Role};
use volvelle_ot::dual::{self, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::testing::setup_seeded;
use volvelle_ot::{CorrelatedBatch, Engine, Ot, OtConfig, OtError, Security};

use super::session::{self, assert_broken, payloads, receive, send, supported, undisturbed};

/// OTs with the client as sender that go well, then those in which the peer leaves.
#[derive(Clone, Copy, Debug)]
struct Case {
    config: OtConfig,
    before: usize,
    count: usize,
}

const fn case(engine: Engine, security: Security, before: usize, count: usize) -> Case {
    Case {
        config: OtConfig::new(engine).with_security(security),
        before,
        count,
    }
}

const K16: Engine = Engine::Ferret(Set::K16);
const K17: Engine = Engine::Ferret(Set::K17);
const EXTENSION: Engine = Engine::SoftSpoken(Piece::Two);
const EXPAND_CONVOLUTE: Engine = Engine::Dual(dual::Set::expand_convolute(Size::N18));
const QUASI_CYCLIC: Engine = Engine::Dual(dual::Set::quasi_cyclic(Size::N18));

/// In an iteration, between two, in the first message of all.
const CASES: [Case; 10] = {
    use Security::{Malicious, SemiHonest};
    [
        case(K16, SemiHonest, 100, 60_000),
        case(K16, Malicious, 100, 850_000),
        case(K17, SemiHonest, 100, 60_000),
        case(K17, Malicious, 0, 1),
        case(EXTENSION, SemiHonest, 100, 60_000),
        case(EXTENSION, Malicious, 100, 60_000),
        // In the half of the noise that is compressed first; in the other one.
        case(EXPAND_CONVOLUTE, SemiHonest, 0, 1),
        case(EXPAND_CONVOLUTE, SemiHonest, 100, 60_000),
        case(QUASI_CYCLIC, SemiHonest, 0, 1),
        case(QUASI_CYCLIC, Malicious, 0, 1),
    ]
};

fn correlated(ot: &mut Ot, ch: &mut Channel, count: usize) -> Result<(), OtError> {
    let mut batch = CorrelatedBatch::new(count);
    match ch.role() {
        Role::Client => batch.send(ch, ot)?,
        Role::Server => batch.receive(ch, ot)?,
    }
    Ok(ch.flush()?)
}

/// Set-up and the OTs that go well.
fn begin(ch: &mut Channel, case: Case) -> Ot {
    let seed = u64::from(ch.role() == Role::Server);
    let mut ot = setup_seeded(ch, case.config, seed).unwrap();
    correlated(&mut ot, ch, case.before).unwrap();
    ot
}

/// Bytes of the peer that this end has read.
fn read(ch: &Channel) -> usize {
    let total = ch.meter().total();
    (total.received + total.framing_received) as usize
}

/// This end, whose peer's messages stop after `heard`.
fn is_broken_after(case: Case, role: Role, heard: &[u8]) {
    let mut ch = scripted(role, heard.to_vec());
    let mut ot = begin(&mut ch, case);
    let consumed = ot.stats().consumed_send + ot.stats().consumed_recv;
    let error = correlated(&mut ot, &mut ch, case.count).unwrap_err();
    assert!(matches!(error, OtError::Net(_)), "{case:?}: {error:?}");
    assert_broken(&mut ot);
    let after = ot.stats().consumed_send + ot.stats().consumed_recv;
    assert_eq!(after, consumed, "{case:?}: handed out");
}

#[test]
fn an_end_that_waits_for_its_peer_is_broken_when_that_stops() {
    for case in CASES {
        if !supported(&case.config) {
            continue;
        }
        let party = |ch: &mut Channel| {
            let mut ot = begin(ch, case);
            let from = read(ch);
            correlated(&mut ot, ch, case.count).unwrap();
            from..read(ch)
        };
        let (client, server, transcript) = undisturbed(|| run_pair_recorded(party, party));
        let mut ends = 0;
        for (role, range, stream) in [
            (Role::Client, client, &transcript.server_sent),
            (Role::Server, server, &transcript.client_sent),
        ] {
            // Where a sender waits for nothing: the next test.
            if range.is_empty() {
                continue;
            }
            ends += 1;
            for stop in [range.start + range.len() / 2, range.end - 1] {
                is_broken_after(case, role, &stream[..stop]);
            }
        }
        let waits = case.config.security.is_malicious() && !matches!(case.config.engine, EXTENSION);
        assert_eq!(ends, if waits { 2 } else { 1 }, "{case:?}: ends that wait");
    }
}

#[test]
fn a_sender_that_waits_for_nothing_is_broken_when_it_finds_its_peer_gone() {
    for engine in [K16, K17, EXPAND_CONVOLUTE, QUASI_CYCLIC] {
        let case = case(engine, Security::SemiHonest, 100, 0);
        run_pair(
            |ch| {
                let mut ot = begin(ch, case);
                let error = until_it_fails(|| send(&mut ot, ch, 10_000));
                assert!(matches!(error, OtError::Net(_)), "{engine}: {error:?}");
                assert_broken(&mut ot);
            },
            |ch| drop(begin(ch, case)),
        );
    }
}

/// The error of the call that fails in the end: a peer that is gone may be noticed late.
pub fn until_it_fails(mut call: impl FnMut() -> Result<(), OtError>) -> OtError {
    for _ in 0..5_000 {
        if let Err(error) = call() {
            return error;
        }
        sleep(Duration::from_millis(2));
    }
    panic!("a call without a peer does not fail");
}

#[test]
fn a_receiver_is_broken_when_it_finds_its_peer_gone() {
    for engine in [K17, EXPAND_CONVOLUTE] {
        let case = case(engine, Security::SemiHonest, 100, 0);
        run_pair(
            |ch| drop(begin(ch, case)),
            |ch| {
                let mut ot = begin(ch, case);
                let error = until_it_fails(|| receive(&mut ot, ch, 10_000));
                assert!(matches!(error, OtError::Net(_)), "{engine}: {error:?}");
                assert_broken(&mut ot);
            },
        );
    }
}

#[test]
fn what_was_handed_out_before_a_tree_was_cut_off_is_right() {
    for case in &CASES[..6] {
        let ([client, _], transcript) = session::run(case.config, None);
        let trees = payloads(&transcript, Role::Client, "ot/trees");
        let [.., last] = &trees[..] else {
            panic!("{case:?}: no trees")
        };
        let heard = transcript.client_sent[..last.start + last.len() / 2].to_vec();
        let mut ch = scripted(Role::Server, heard);
        let server = session::end(&mut ch, case.config);
        assert!(matches!(server.done, Err(OtError::Net(_))), "{case:?}");
        client.view.fits(&server.view, &format!("{case:?}"));
        assert_broken(&mut server.ot.unwrap());
    }
}
