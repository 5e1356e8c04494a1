//! Malicious security: honest runs, exact costs, and peers that send something else.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::testing::{Flip, Transcript, run_pair, run_pair_altered};
use volvelle_net::{Channel, Label, Phase, Role};
use volvelle_ot::dual::{self, Code, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::testing::setup_seeded;
use volvelle_ot::{BaseOt, CorrelatedBatch, Engine, Ot, OtConfig, OtError, Security};
use volvelle_prim::{Block, Prg};

const MALICIOUS: Security = Security::Malicious;

fn config(engine: Engine) -> OtConfig {
    OtConfig::new(engine).with_security(MALICIOUS)
}

/// Dual LPN of the smallest size.
fn dual_sets() -> [dual::Set; 2] {
    [Code::ExpandConvolute, Code::QuasiCyclic].map(|code| dual::Set {
        code,
        size: Size::N18,
    })
}

fn engines() -> Vec<Engine> {
    let ferret = Set::ALL.into_iter().map(Engine::Ferret);
    ferret
        .chain(dual_sets().map(Engine::Dual))
        .chain(Piece::ALL.into_iter().map(Engine::SoftSpoken))
        .collect()
}

fn correlated(config: OtConfig, count: usize, ot_sender: Role) -> [CorrelatedBatch; 2] {
    let party = |ch: &mut Channel| {
        let mut ot = Ot::setup(ch, config).unwrap();
        let mut batch = CorrelatedBatch::new(count);
        if ch.role() == ot_sender {
            batch.send(ch, &mut ot).unwrap();
        } else {
            batch.receive(ch, &mut ot).unwrap();
        }
        ch.flush().unwrap();
        batch
    };
    let (client, server) = run_pair(party, party);
    [client, server]
}

#[test]
fn honest_parties_pass_with_every_engine_and_set() {
    for engine in engines() {
        let [a, b] = correlated(config(engine), 50_000, Role::Client);
        assert_eq!(a.mismatches(&b), 0, "{engine}");
    }
}

#[test]
fn honest_parties_pass_over_several_iterations_and_with_ml_kem() {
    let config = config(Engine::Ferret(Set::K16)).with_base(BaseOt::MlKem);
    let [a, b] = correlated(config, 2 * Set::K16.made(), Role::Server);
    assert_eq!(a.mismatches(&b), 0);
    let set = dual::Set::quasi_cyclic(Size::N18);
    let config = self::config(Engine::Dual(set));
    let [a, b] = correlated(config, 2 * set.made(), Role::Server);
    assert_eq!(a.mismatches(&b), 0);
}

/// Bits that the main phase of a run with the client as sender takes, up to the first OT of the iteration or chunk
/// after `count` OTs.
fn metered(config: OtConfig, count: usize) -> u64 {
    let party = |ch: &mut Channel| {
        let mut ot = Ot::setup(ch, config).unwrap();
        ch.set_phase(Phase::Preprocessing);
        let mut batch = CorrelatedBatch::new(count);
        match ch.role() {
            Role::Client => batch.send(ch, &mut ot).unwrap(),
            Role::Server => batch.receive(ch, &mut ot).unwrap(),
        }
        ch.flush().unwrap();
        ch.meter().phase(Phase::Preprocessing).bits()
    };
    run_pair(party, party).0
}

#[test]
fn an_iteration_and_a_chunk_send_what_the_formulas_say() {
    for set in [Set::K16, Set::K17] {
        let handed_out = set.handed_out_with(MALICIOUS);
        let bits = metered(config(Engine::Ferret(set)), handed_out);
        // The larger set's seed comes from an iteration of the smallest, which set-up has paid.
        assert_eq!(bits, set.bits_with(MALICIOUS), "{set:?}");
    }
    for set in dual_sets() {
        // Into the second iteration, whose seed the first has made.
        let count = set.handed_out_with(MALICIOUS) + 1;
        let bits = metered(config(Engine::Dual(set)), count);
        assert_eq!(bits, 2 * set.bits_with(MALICIOUS), "{set:?}");
        let trees = 256 * set.instances() as u64;
        let formula = 128 * trees * u64::from(set.depth()) + 640;
        assert_eq!(set.bits_with(MALICIOUS), formula, "{set:?}");
    }
    for piece in Piece::ALL {
        let bits = metered(
            config(Engine::SoftSpoken(piece)),
            2 * Piece::chunk_cots(MALICIOUS),
        );
        assert_eq!(bits, 2 * piece.chunk_bits(MALICIOUS), "{piece:?}");
    }
}

#[test]
fn set_up_sends_what_the_formulas_say() {
    for (base, security, agreement) in [
        (BaseOt::Ristretto, Security::SemiHonest, 24 + 128),
        (BaseOt::MlKem, Security::SemiHonest, 24 + 128),
        (BaseOt::Ristretto, MALICIOUS, 24 + 256 + 128),
        (BaseOt::MlKem, MALICIOUS, 24 + 256 + 128),
    ] {
        let config = OtConfig::new(Engine::SoftSpoken(Piece::Four))
            .with_base(base)
            .with_security(security);
        let party = |ch: &mut Channel| {
            Ot::setup(ch, config).unwrap();
            ch.meter().total().bits()
        };
        let (client, server) = run_pair(party, party);
        let expected = 2 * agreement + base.bits(security) + 2 * Piece::Four.setup_bits(security);
        assert_eq!(
            (client, server),
            (expected, expected),
            "{base:?} {security:?}"
        );
    }
}

/// A tree at the receiver: its point and rows.
type Seen = (usize, Vec<Block>);

/// Bits sent, the sender's rows, the receiver's.
fn pprf(config: OtConfig, depth: u32, count: usize) -> (u64, Vec<Vec<Block>>, Vec<Seen>) {
    let (sent, received) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            // One OT so that an iteration is under way.
            ot.send_random(ch, 1, &mut [Block::ZERO], &mut [Block::ZERO])
                .unwrap();
            ch.set_phase(Phase::Preprocessing);
            let mut all = Vec::new();
            ot.send_pprf(ch, depth, 1, count, &mut |_, rows| all.push(rows.to_vec()))
                .unwrap();
            ch.flush().unwrap();
            (ch.meter().phase(Phase::Preprocessing).bits(), all)
        },
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            ot.recv_random(ch, 1, &mut [0], &mut [Block::ZERO]).unwrap();
            let mut all = Vec::new();
            ot.recv_pprf(ch, depth, 1, count, &mut |_, at, rows| {
                all.push((at, rows.to_vec()))
            })
            .unwrap();
            all
        },
    );
    (sent.0, sent.1, received)
}

#[test]
fn punctured_rows_agree_but_at_the_point_at_the_stated_cost() {
    for (depth, count) in [(1, 3), (4, 8), (8, 21), (3, 0)] {
        let (bits, sent, received) = pprf(config(Engine::Ferret(Set::K16)), depth, count);
        let check = if count == 0 { 0 } else { 640 };
        assert_eq!(bits, count as u64 * u64::from(depth) * 128 + check);
        assert_eq!((sent.len(), received.len()), (count, count));
        for (full, (point, punctured)) in sent.iter().zip(&received) {
            for (i, (a, b)) in full.iter().zip(punctured).enumerate() {
                assert_eq!(a == b, i != *point, "depth {depth} row {i}");
            }
        }
    }
}

/// Set-up, then OTs and trees with the client as sender.
fn session(ch: &mut Channel, config: OtConfig, seed: u64) -> (Result<(), OtError>, Option<Ot>) {
    let mut ot = match setup_seeded(ch, config, seed + u64::from(ch.role() == Role::Server)) {
        Ok(ot) => ot,
        Err(error) => return (Err(error), None),
    };
    let mut use_up = || {
        let mut pads = vec![Block::ZERO; 2000];
        if ch.role() == Role::Client {
            ot.send_random(ch, 1, &mut pads, &mut vec![Block::ZERO; 2000])?;
            ot.send_pprf(ch, 4, 1, 11, &mut |_, _| ())?;
        } else {
            ot.recv_random(ch, 1, &mut vec![0; 2000], &mut pads)?;
            ot.recv_pprf(ch, 4, 1, 11, &mut |_, _, _| ())?;
        }
        Ok(ch.flush()?)
    };
    let done = use_up();
    (done, Some(ot))
}

/// Where in a party's stream the payloads of a label are.
fn payloads(
    transcript: &Transcript,
    sender: Role,
    label: &'static str,
) -> Vec<std::ops::Range<usize>> {
    let (raw, frames) = match sender {
        Role::Client => (&transcript.client_sent, transcript.client_frames()),
        Role::Server => (&transcript.server_sent, transcript.server_frames()),
    };
    let at = |payload: &[u8]| payload.as_ptr() as usize - raw.as_ptr() as usize;
    let named = frames
        .into_iter()
        .filter(|(hash, _)| *hash == Label::new(label).hash());
    named
        .map(|(_, payload)| at(payload)..at(payload) + payload.len())
        .collect()
}

/// Flips a random bit of `tries` messages of a label; every one must be noticed by `victim`, as cheating.
fn flips_are_noticed(config: OtConfig, sender: Role, label: &'static str, tries: usize) {
    let run = |flip| {
        run_pair_altered(
            flip,
            |ch| session(ch, config, 40),
            |ch| session(ch, config, 40),
        )
    };
    let (a, b, transcript) = run(None);
    a.0.unwrap();
    b.0.unwrap();
    let found = payloads(&transcript, sender, label);
    assert!(!found.is_empty(), "{label} is not sent by the {sender}");
    let mut prg = Prg::from_os();
    for _ in 0..tries {
        let range = &found[prg.next_u64() as usize % found.len()];
        let byte = range.start + prg.next_u64() as usize % range.len();
        let flip = Flip {
            sender,
            byte,
            mask: 1 << (prg.next_u64() % 8),
        };
        let (client, server, _) = run(Some(flip));
        let victim = if sender == Role::Client {
            server
        } else {
            client
        };
        assert!(
            matches!(victim.0, Err(OtError::Cheating { .. })),
            "{label} {flip:?}: {:?}",
            victim.0
        );
        if let Some(mut ot) = victim.1 {
            assert_broken(&mut ot);
        }
    }
}

fn assert_broken(ot: &mut Ot) {
    let mut ch = volvelle_net::memory_pair().0;
    let mut one = [Block::ZERO];
    assert!(matches!(
        ot.send_random(&mut ch, 1, &mut one, &mut [Block::ZERO]),
        Err(OtError::Broken)
    ));
    assert!(matches!(
        ot.recv_random(&mut ch, 1, &mut [0], &mut one),
        Err(OtError::Broken)
    ));
    assert!(matches!(
        ot.send_pprf(&mut ch, 1, 1, 1, &mut |_, _| ()),
        Err(OtError::Broken)
    ));
    assert!(matches!(
        ot.recv_pprf(&mut ch, 1, 1, 1, &mut |_, _, _| ()),
        Err(OtError::Broken)
    ));
    assert!(matches!(
        CorrelatedBatch::new(1).send(&mut ch, ot),
        Err(OtError::Broken)
    ));
    assert!(matches!(
        CorrelatedBatch::new(1).receive(&mut ch, ot),
        Err(OtError::Broken)
    ));
}

#[test]
fn altered_trees_of_ferret_and_of_the_punctured_prf_are_noticed() {
    // The client is OT sender in `session`; its trees are both Ferret's and the punctured PRF's.
    let config = config(Engine::Ferret(Set::K16));
    flips_are_noticed(config, Role::Client, "ot/trees", 12);
    flips_are_noticed(config, Role::Client, "ot/trees/answer", 3);
}

#[test]
fn altered_trees_of_dual_lpn_are_noticed() {
    // The set with one instance, as the trees of all are the same.
    let config = config(Engine::Dual(dual::Set::quasi_cyclic(Size::N18)));
    flips_are_noticed(config, Role::Client, "ot/trees", 4);
    flips_are_noticed(config, Role::Client, "ot/trees/answer", 1);
}

#[test]
fn altered_rows_of_the_extension_are_noticed() {
    for piece in [Piece::One, Piece::Eight] {
        // As the main engine (where a flip hits a bit with Δ = 0 nothing changes but the challenge, which is enough).
        let config = config(Engine::SoftSpoken(piece));
        flips_are_noticed(config, Role::Server, "ot/softspoken", 6);
        flips_are_noticed(config, Role::Server, "ot/softspoken/rows", 6);
    }
    flips_are_noticed(
        config(Engine::Ferret(Set::K16)),
        Role::Server,
        "ot/softspoken",
        3,
    );
}

#[test]
fn altered_trees_of_the_extension_are_noticed() {
    let config = config(Engine::SoftSpoken(Piece::Eight));
    for sender in [Role::Client, Role::Server] {
        flips_are_noticed(config, sender, "ot/softspoken/trees", 6);
        flips_are_noticed(config, sender, "ot/setup/commitment", 2);
        flips_are_noticed(config, sender, "ot/setup/share", 2);
    }
}

#[test]
fn an_altered_check_message_of_the_receiver_is_noticed_by_the_receiver() {
    let config = config(Engine::Ferret(Set::K16));
    let run = |flip| {
        run_pair_altered(
            flip,
            |ch| session(ch, config, 8),
            |ch| session(ch, config, 8),
        )
    };
    let (.., transcript) = run(None);
    for range in payloads(&transcript, Role::Server, "ot/trees/challenge") {
        let (_, server, _) = run(Some(Flip {
            sender: Role::Server,
            byte: range.start,
            mask: 1,
        }));
        assert!(
            matches!(server.0, Err(OtError::Cheating { .. })),
            "{:?}",
            server.0
        );
    }
}

#[test]
fn a_mask_of_the_extension_trees_altered_in_set_up_is_noticed_or_harmless() {
    // The side that the receiver of the masks did not choose is never read.
    let config = config(Engine::SoftSpoken(Piece::Eight));
    let run = |flip| {
        run_pair_altered(
            flip,
            |ch| session(ch, config, 21),
            |ch| session(ch, config, 21),
        )
    };
    let (.., transcript) = run(None);
    let range = payloads(&transcript, Role::Server, "ot/softspoken/seeds")[0].clone();
    let mut noticed = 0;
    for i in 0..16 {
        let byte = range.start + 16 * i;
        let (client, ..) = run(Some(Flip {
            sender: Role::Server,
            byte,
            mask: 4,
        }));
        match client.0 {
            Ok(()) => {}
            Err(OtError::Cheating { .. }) => noticed += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(noticed, 8, "one side of each of eight pairs");
}

#[test]
fn settings_that_differ_are_told() {
    let ours = OtConfig::ferret(Set::K16);
    for (theirs, what) in [
        (ours.with_security(MALICIOUS), "security"),
        (ours.with_base(BaseOt::MlKem), "base OT"),
        (OtConfig::ferret(Set::K18), "engine"),
    ] {
        let (a, b) = run_pair(
            |ch| Ot::setup(ch, ours).err(),
            |ch| Ot::setup(ch, theirs).err(),
        );
        for error in [a, b] {
            assert!(
                matches!(error, Some(OtError::Config { what: w, .. }) if w == what),
                "{error:?}"
            );
        }
    }
}
