//! The one front of all protocols: it looks up what its demand says, and its stated and planned bits are the meter's.

use volvelle_net::Link;

use super::*;
use crate::plan::{Machine, Objective, Planner};
use crate::{Demand, Prepared as AnyPrepared};

fn demands() -> Vec<Demand> {
    let mut demands = Vec::new();
    for log_entries in [1, 2, 3, 6, 8] {
        for index in KINDS {
            for words in [&[1][..], &[8], &[64], &[5, 1, 33]] {
                for batch in [1, 37] {
                    let additive = Demand::additive(log_entries, index, words, batch);
                    let xor = Demand::xor(log_entries, index, words, batch);
                    demands.extend([additive.unwrap(), xor.unwrap()]);
                }
            }
        }
    }
    demands
}

/// Runs one demand and checks outputs and cost; the meters' bits by phase, both parties together.
fn run(protocol: Protocol, demand: &Demand) -> [u64; 2] {
    let (k, shape) = (demand.log_entries(), demand.shape());
    let tables = words(k, demand.words(), 3);
    // Shares are taken modulo the number of entries, whatever is above.
    let shares = |seed| -> Vec<u64> {
        let shares = random_index(k, demand.batch(), seed);
        shares.iter().map(|i| i | (i + seed) << k).collect()
    };
    let (client, server) = (shares(1), shares(2));
    let (mut client_ot, mut server_ot) = ideal_pair(7);
    let party = |ch: &mut Channel, ot: &mut Ot, index: &[u64]| {
        ch.set_phase(Phase::Preprocessing);
        let prepared = AnyPrepared::prepare(ch, ot, protocol, demand, &tables).unwrap();
        ch.set_phase(Phase::Online);
        let outputs = prepared.lookup(ch, index, &tables).unwrap();
        (outputs, ch.meter().clone())
    };
    let (client_out, server_out, _) = run_pair_recorded(
        |ch| party(ch, &mut client_ot, &client),
        |ch| party(ch, &mut server_ot, &server),
    );
    for (t, table) in tables.iter().enumerate() {
        for (i, (&x, &y)) in client.iter().zip(&server).enumerate() {
            let (a, b) = (client_out.0[t][i], server_out.0[t][i]);
            let found = if demand.is_xor() {
                a ^ b
            } else {
                a.wrapping_add(b) & mask(table.bits())
            };
            let at = shape.index.join(x, y, k) as usize;
            assert_eq!(found, table.entries()[at], "{protocol}, {demand}, {i}");
        }
    }
    let cost = protocol.cost(demand).unwrap();
    [
        (Phase::Preprocessing, cost.prep),
        (Phase::Online, cost.online),
    ]
    .map(|(phase, cost)| {
        let [a, b] = [&client_out.1, &server_out.1].map(|meter| meter.phase(phase));
        assert_eq!(
            [a.sent * 8, b.sent * 8],
            [cost.client_bits, cost.server_bits],
            "{protocol}, {demand}, {phase:?}"
        );
        assert_eq!(a.rounds.max(b.rounds), cost.rounds, "{protocol}, {demand}");
        a.bits()
    })
}

/// A boolean index is doubled to the vector that FLUTE+ makes: ranked once.
#[test]
fn doubling_is_not_ranked_beside_flute_plus() {
    let planner = Planner::new(Machine::reference(), Link::LAN);
    let ranked = |demand: Demand| {
        let ways = planner.plan(&demand).unwrap().ways;
        [Protocol::Doubling, Protocol::FlutePlus]
            .map(|protocol| ways.iter().any(|way| way.protocol == protocol))
    };
    let xor = |index| Demand::xor(6, index, &[8], 1000).unwrap();
    assert_eq!(ranked(xor(Index::Boolean)), [false, true]);
    assert_eq!(ranked(xor(Index::Arithmetic)), [true, false]);
    let [doubling, flute_plus] = [Protocol::Doubling, Protocol::FlutePlus]
        .map(|protocol| protocol.cost(&xor(Index::Boolean)));
    assert_eq!(doubling, flute_plus);
}

#[test]
fn planned_bits_are_the_meters_bits() {
    let planner = Planner::new(Machine::reference(), Link::LAN);
    for demand in demands() {
        let plan = planner.plan(&demand).unwrap();
        assert!(!plan.ways.is_empty());
        for way in &plan.ways {
            let metered = run(way.protocol, &demand);
            assert_eq!(
                metered,
                [way.cost.prep.bits(), way.cost.online.bits()],
                "{} {demand}",
                way.protocol
            );
        }
    }
}

#[test]
fn a_protocol_is_prepared_exactly_where_it_takes_a_demand() {
    for demand in demands() {
        for protocol in Protocol::ALL {
            assert_eq!(
                protocol.takes(&demand).is_ok(),
                protocol.cost(&demand).is_some(),
                "{protocol} {demand}"
            );
        }
    }
}

#[test]
fn the_largest_batch_that_memory_allows() {
    let takes = |protocol: Protocol, demand: &Demand, batch: u64| {
        protocol.takes(&demand.with_batch(batch as usize).unwrap())
    };
    for protocol in Protocol::ALL {
        for k in [
            *protocol.log_entries().start(),
            *protocol.log_entries().end(),
        ] {
            let demand = [
                Demand::additive(k, Index::Arithmetic, &[64], 1).unwrap(),
                Demand::xor(k, Index::Boolean, &[64], 1).unwrap(),
            ];
            let demand = demand.iter().find(|demand| protocol.takes(demand).is_ok());
            let demand = demand.unwrap();
            let Err(LutError::Memory { most, .. }) = takes(protocol, demand, 1 << 40) else {
                panic!("{protocol} 2^{k}");
            };
            takes(protocol, demand, most).unwrap();
            assert!(
                takes(protocol, demand, most + 1).is_err(),
                "{protocol} 2^{k}"
            );
            let rows = most << k >> 3;
            assert!(protocol.generator().is_none() || k > 12 || rows <= 1 << 31);
        }
    }
    let demand = Demand::additive(12, Index::Arithmetic, &[64], 1 << 26).unwrap();
    let refused = Protocol::Doubling.takes(&demand).unwrap_err().to_string();
    assert!(
        refused.contains("67108864 lookups")
            && refused.contains("2048")
            && refused.contains("at once"),
        "{refused}"
    );
}

#[test]
fn other_tables_than_demanded_are_refused() {
    let demand = Demand::additive(3, Index::Arithmetic, &[8], 2).unwrap();
    for tables in [
        words(3, &[9], 1),
        words(4, &[8], 1),
        words(3, &[8, 8], 1),
        vec![],
    ] {
        let (mut ot, _) = ideal_pair(1);
        let mut ch = volvelle_net::memory_pair().0;
        for protocol in Protocol::ALL {
            let refused = AnyPrepared::prepare(&mut ch, &mut ot, protocol, &demand, &tables);
            assert!(refused.is_err(), "{protocol}");
        }
    }
    assert!(Demand::additive(3, Index::Arithmetic, &[8], 0).is_err());
    assert!(Demand::xor(3, Index::Arithmetic, &[], 1).is_err());
    assert!(Demand::xor(3, Index::Arithmetic, &[65], 1).is_err());
    assert!(Demand::xor(0, Index::Arithmetic, &[64], 1).is_err());
}

#[test]
fn each_objective_minimises_what_it_says() {
    let demand = Demand::additive(8, Index::Arithmetic, &[64], 100_000).unwrap();
    for link in [Link::LOOPBACK, Link::LAN, Link::WAN] {
        let plan = |objective| {
            let planner = Planner::new(Machine::reference(), link).objective(objective);
            planner.plan(&demand).unwrap()
        };
        let least = |of: fn(&crate::plan::Prediction) -> f64, objective: Objective| {
            let plan = plan(objective);
            let best = plan.ways.iter().map(of).fold(f64::MAX, f64::min);
            let chosen = of(plan.chosen());
            assert!(chosen <= 1.03 * best, "{objective}: {chosen} {best}");
            assert!(plan.reason.starts_with(plan.chosen().protocol.name()));
        };
        least(|way| way.total.bits, Objective::Bits);
        least(|way| way.total.us, Objective::Total);
        least(|way| way.online.us, Objective::Online);
        let balanced = plan(Objective::Balanced);
        let fastest = plan(Objective::Total).chosen().total.us;
        assert!(balanced.chosen().total.us <= (2.0 * fastest).max(fastest + 0.25));
    }
}

/// The ROTL paper's Table 5: what `auto` takes by default sends less than every other protocol, on its links and where none is
/// emulated, with a fifth of the allowed time to spare.
#[test]
fn auto_sends_least_at_every_size_of_the_papers_table_5() {
    for link in [Link::LOOPBACK, Link::LAN, Link::WAN] {
        let planner = Planner::new(Machine::reference(), link);
        for log_entries in [2, 4, 6, 8] {
            for bits in [8, 16, 32, 64] {
                let demand = Demand::additive(log_entries, Index::Arithmetic, &[bits], 100_000);
                let plan = planner.plan(&demand.unwrap()).unwrap();
                let chosen = plan.chosen();
                let fastest = plan.ways.iter().map(|way| way.total.us);
                let fastest = fastest.fold(f64::MAX, f64::min);
                let limit = (2.0 * fastest).max(fastest + 0.25);
                assert!(1.2 * chosen.total.us <= limit, "{link} {}", plan.demand);
                for other in &plan.ways[1..] {
                    // Trees of up to 256 entries are doubling's by another generator and send the same.
                    let same = [chosen.protocol, other.protocol].map(|p| p.name());
                    let same = same.iter().all(|name| ["tree", "doubling"].contains(name));
                    assert!(
                        chosen.total.bits < other.total.bits
                            || same && chosen.total.bits == other.total.bits,
                        "{link} {}: {} and {}",
                        plan.demand,
                        chosen.protocol,
                        other.protocol
                    );
                }
            }
        }
    }
}

/// Protocols that are predicted to be about as fast are timed side by side, and the choice then stays.
#[test]
fn near_ties_are_settled_where_time_is_asked_for() {
    let demands = [Demand::xor(2, Index::Boolean, &[8], 300).unwrap()];
    let mut planner = Planner::new(Machine::reference(), Link::LOOPBACK);
    assert_eq!(planner.settle(&demands).unwrap(), None);
    let mut planner = planner.objective(Objective::Total);
    let machine = planner.settle(&demands).unwrap().unwrap().clone();
    let chosen = planner.plan(&demands[0]).unwrap().chosen().protocol;
    let text = serde_json::to_string(&machine).unwrap();
    let kept = serde_json::from_str::<Machine>(&text).unwrap();
    assert!(kept == machine, "timings are kept as they are");
    // Timings of another moment with what was found out then.
    let later = Machine::reference().with_ties_of(&kept);
    let planner = Planner::new(later, Link::LOOPBACK).objective(Objective::Total);
    assert_eq!(planner.plan(&demands[0]).unwrap().chosen().protocol, chosen);
}

/// The self-timing runs every protocol; what it says is finite and covers all of them.
#[test]
fn a_machine_can_be_calibrated() {
    let machine = Machine::calibrate().unwrap();
    let text = serde_json::to_string(&machine).unwrap();
    assert_eq!(machine, serde_json::from_str(&text).unwrap());
    let planner = Planner::new(machine, Link::LOOPBACK);
    for demand in demands() {
        for way in planner.plan(&demand).unwrap().ways {
            assert!(way.total.us.is_finite() && way.total.us > 0.0, "{way:?}");
        }
    }
}
