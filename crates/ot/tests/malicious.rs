//! Malicious security: honest runs and exact costs. Peers that send something else: `hostile`.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase, Role};
use volvelle_ot::dual::{self, Code, Size};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{BaseOt, CorrelatedBatch, Engine, Ot, OtConfig, Security};
use volvelle_prim::Block;

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
