//! Silent OT from dual LPN: correctness over iterations, exact cost, balanced choices.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase};
use volvelle_ot::dual::{Set, Size};
use volvelle_ot::{CorrelatedBatch, Engine, Ot, OtConfig};
use volvelle_prim::Block;

const CHUNK: usize = 1 << 16;

fn config(set: Set) -> OtConfig {
    OtConfig::new(Engine::Dual(set))
}

fn send(ot: &mut Ot, ch: &mut Channel, count: usize) -> (Vec<Block>, Vec<Block>) {
    let mut pads = (vec![Block::ZERO; count], vec![Block::ZERO; count]);
    for (zeros, ones) in pads.0.chunks_mut(CHUNK).zip(pads.1.chunks_mut(CHUNK)) {
        ot.send_random(ch, 1, zeros, ones).unwrap();
    }
    ch.flush().unwrap();
    pads
}

fn receive(ot: &mut Ot, ch: &mut Channel, count: usize) -> (Vec<u8>, Vec<Block>) {
    let mut got = (vec![9; count], vec![Block::ZERO; count]);
    for (choices, pads) in got.0.chunks_mut(CHUNK).zip(got.1.chunks_mut(CHUNK)) {
        ot.recv_random(ch, 1, choices, pads).unwrap();
    }
    got
}

/// Every pad is the chosen one and not the other; choices are balanced, overall and in stretches.
fn check(sent: &(Vec<Block>, Vec<Block>), received: &(Vec<u8>, Vec<Block>)) {
    for (i, (&choice, &pad)) in received.0.iter().zip(&received.1).enumerate() {
        assert!(choice <= 1, "choice {choice}");
        let (chosen, other) = match choice {
            0 => (sent.0[i], sent.1[i]),
            _ => (sent.1[i], sent.0[i]),
        };
        assert!(pad == chosen && pad != other, "OT {i}");
    }
    for stretch in received.0.chunks(CHUNK).chain([&received.0[..]]) {
        let (ones, count) = (stretch.iter().filter(|&&c| c == 1).count(), stretch.len());
        let deviation = (ones as f64 - count as f64 / 2.0).abs() / (count as f64 / 4.0).sqrt();
        assert!(deviation < 6.0, "{ones} ones among {count} choices");
    }
}

/// Correlated OTs client to server into the third iteration, then random OTs both ways.
fn iterations(set: Set) {
    let count = 2 * set.handed_out() + 1000;
    let (client, server) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, config(set)).unwrap();
            let mut batch = CorrelatedBatch::new(count);
            batch.send(ch, &mut ot).unwrap();
            (batch, send(&mut ot, ch, CHUNK), receive(&mut ot, ch, 1000))
        },
        |ch| {
            let mut ot = Ot::setup(ch, config(set)).unwrap();
            let mut batch = CorrelatedBatch::new(count);
            batch.receive(ch, &mut ot).unwrap();
            (batch, receive(&mut ot, ch, CHUNK), send(&mut ot, ch, 1000))
        },
    );
    assert_eq!(client.0.mismatches(&server.0), 0);
    check(&client.1, &server.1);
    check(&server.2, &client.2);
}

#[test]
fn expand_convolute_over_several_iterations() {
    iterations(Set::expand_convolute(Size::N18));
}

#[test]
fn quasi_cyclic_over_several_iterations() {
    iterations(Set::quasi_cyclic(Size::N18));
}

#[test]
fn larger_sizes_work() {
    for set in [
        Set::expand_convolute(Size::N20),
        Set::quasi_cyclic(Size::N20),
    ] {
        let count = 100_000;
        let (sent, received) = run_pair(
            |ch| send(&mut Ot::setup(ch, config(set)).unwrap(), ch, count),
            |ch| receive(&mut Ot::setup(ch, config(set)).unwrap(), ch, count),
        );
        check(&sent, &received);
    }
}

#[test]
fn an_iteration_sends_what_the_formula_says() {
    for set in [
        Set::expand_convolute(Size::N18),
        Set::quasi_cyclic(Size::N18),
    ] {
        let count = set.handed_out();
        let (bits, _) = run_pair(
            |ch| {
                let mut ot = Ot::setup(ch, config(set)).unwrap();
                ch.set_phase(Phase::Preprocessing);
                send(&mut ot, ch, count);
                let stats = ot.stats();
                assert_eq!(stats.made_send as usize, set.made());
                assert!((stats.bits_per_ot - set.bits() as f64 / count as f64).abs() < 1e-12);
                assert!((stats.overhead - set.made() as f64 / count as f64).abs() < 1e-12);
                ch.meter().phase(Phase::Preprocessing).bits()
            },
            |ch| {
                let mut ot = Ot::setup(ch, config(set)).unwrap();
                receive(&mut ot, ch, count);
            },
        );
        assert_eq!(bits, set.bits());
        let instances = set.instances() as u64;
        assert_eq!(
            set.bits(),
            instances * 256 * 128 * u64::from(set.depth() - 1)
        );
    }
}

#[test]
fn the_large_size_costs_under_a_tenth_of_a_bit() {
    for set in [
        Set::expand_convolute(Size::N23),
        Set::quasi_cyclic(Size::N23),
    ] {
        let bits = set.bits() as f64 / set.handed_out() as f64;
        assert!(bits < 0.06, "{bits}");
    }
}
