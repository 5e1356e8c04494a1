//! `cost` is what the meter counts, exactly.

use super::*;

fn check(case: &Case, batch: usize) {
    let client = random_index(case.log_entries, batch, 1);
    let server = random_index(case.log_entries, batch, 2);
    let run = case.run(&client, &server, 9);
    compare(&run, &case.cost(batch), &format!("{batch} of {case:?}"));
}

/// Asserts that the meters and the OTs of a run have counted what `cost` says.
pub(super) fn compare(run: &Run, cost: &PhasedCost, what: &str) {
    check_meters(&run.meters, cost, what);
    check_ots(&run.ots, cost, what);
}

/// Both parties' bits and rounds.
pub(super) fn check_meters(meters: &[Meter; 2], cost: &PhasedCost, what: &str) {
    for (phase, cost) in [
        (Phase::Preprocessing, cost.prep),
        (Phase::Online, cost.online),
    ] {
        let [client, server] = meters.each_ref().map(|m| m.phase(phase));
        assert_eq!(
            client.sent * 8,
            cost.client_bits,
            "client, {phase:?}, {what}"
        );
        assert_eq!(
            server.sent * 8,
            cost.server_bits,
            "server, {phase:?}, {what}"
        );
        assert_eq!(client.received, server.sent);
        assert_eq!(server.received, client.sent);
        let rounds = client.rounds.max(server.rounds);
        assert_eq!(rounds, cost.rounds, "rounds, {phase:?}, {what}");
    }
}

/// Both parties' OTs.
pub(super) fn check_ots(ots: &[Ot; 2], cost: &PhasedCost, what: &str) {
    let stats = ots.each_ref().map(Ot::stats);
    let total = cost.total();
    assert_eq!(
        stats[0].consumed_send, total.cots_client,
        "client's OTs, {what}"
    );
    assert_eq!(stats[1].consumed_recv, total.cots_client);
    assert_eq!(
        stats[1].consumed_send, total.cots_server,
        "server's OTs, {what}"
    );
    assert_eq!(stats[0].consumed_recv, total.cots_server);
}

#[test]
fn cost_is_what_the_meter_counts() {
    for log_entries in (1..=13).chain([16]) {
        for case in cases(log_entries, &[13, 1, 64]) {
            check(&case, 1);
            check(&case, 77);
        }
    }
    for log_entries in [1, 4, 8] {
        for case in cases(log_entries, &[8]) {
            check(&case, 9001);
        }
        for case in cases(log_entries, &[1]) {
            check(&case, 100);
        }
    }
}

/// The figures of the documentation, bits a lookup at a large batch.
#[test]
fn headline_costs() {
    const BATCH: u64 = 100_000;
    let cost = |generator, log_entries, output| {
        let shape = Shape {
            log_entries,
            index: Index::Arithmetic,
            output,
        };
        let cost = Lookups::cost(generator, &shape, BATCH as usize);
        [cost.prep.bits() / BATCH, cost.online.bits() / BATCH]
    };
    use crate::Generator::{Doubling, Rotation, Tree};
    assert_eq!(
        cost(Rotation, 8, Output::word(64)),
        [128 * 7 + 256 + 2, 16 + 126]
    );
    assert_eq!(
        cost(Doubling, 8, Output::word(64)),
        [494 + 28 + 2, 16 + 126]
    );
    assert_eq!(cost(Doubling, 4, Output::Xor), [22 + 6, 8]);
    assert_eq!(cost(Doubling, 2, Output::Xor), [2 + 1, 4]);
    assert_eq!(cost(Doubling, 8, Output::word(1)), [494 + 28, 16]);
    assert_eq!(
        cost(Tree, 16, Output::word(16)),
        [256 * 9 + 240 + 120 + 2, 32 + 30]
    );
    assert_eq!(cost(Tree, 12, Output::Xor), [256 * 5 + 240 + 66, 24]);
    assert_eq!(cost(Tree, 8, Output::Xor), [256 + 240 + 28, 16]);
    let splut = SpLut::cost(8, &[64], BATCH as usize);
    assert_eq!(splut.online.bits() / BATCH, 8 + 256 * 64);
    assert_eq!((splut.prep.bits(), splut.prep.cots()), (0, 8 * BATCH));
}

/// Beyond what may be in flight a party waits, and the cost function knows.
#[test]
fn rounds_of_huge_batches() {
    let shape = |log_entries| Shape {
        log_entries,
        index: Index::Arithmetic,
        output: Output::Xor,
    };
    let rounds = |log_entries, batch| {
        Lookups::cost(crate::Generator::Doubling, &shape(log_entries), batch)
            .prep
            .rounds
    };
    assert_eq!(rounds(8, 1_000_000), 7);
    assert_eq!(rounds(12, 100_000), 11);
    assert!(rounds(12, 1_000_000) > 11);
    let batch = 140_000;
    let case = Case {
        protocol: Protocol::Doubling,
        log_entries: 12,
        index: Index::Arithmetic,
        tables: Tables::Bits(bit_tables(12, 1, 1)),
    };
    assert_eq!(case.cost(batch).prep.rounds, 13);
    check(&case, batch);
}
