//! What every engine makes is what it should be: all correlated OTs of more than an iteration are correlated, and blocks,
//! pads and choices look uniform, in both directions.
//!
//! Randomness comes from fixed seeds, so that a failure is one of the code and comes again.

use std::sync::mpsc::sync_channel;

use volvelle_net::testing::{run_pair, scripted};
use volvelle_net::{Channel, Role};
use volvelle_prim::Block;

use super::measures::{Bits, Blocks};
use crate::dual::{self, Size};
use crate::ferret;
use crate::softspoken::Piece;
use crate::testing::setup_seeded;
use crate::{Engine, Ot, OtConfig, OtError, Security};

/// Correlated OTs compared at a time.
const WINDOW: usize = 1 << 16;
/// Correlated OTs made after the first iteration's.
const BEYOND: usize = 10_000;
/// Random OTs a direction, made after that.
const RANDOM: usize = 1 << 17;

/// Correlated OTs of an iteration; extension has none, so some chunks.
fn iteration(
    OtConfig {
        engine, security, ..
    }: OtConfig,
) -> usize {
    match engine {
        Engine::Ferret(set) => set.handed_out_with(security),
        Engine::Dual(set) => set.handed_out(),
        Engine::SoftSpoken(_) => 20 * Piece::chunk_cots(security),
    }
}

/// Sizes of the windows of a run.
fn windows(config: OtConfig) -> impl Iterator<Item = usize> {
    let count = iteration(config) + BEYOND;
    (0..count)
        .step_by(WINDOW)
        .map(move |at| WINDOW.min(count - at))
}

struct Sent {
    zeros: Vec<Block>,
    ones: Vec<Block>,
}

struct Received {
    choices: Vec<u8>,
    pads: Vec<Block>,
}

fn send(ot: &mut Ot, ch: &mut Channel) -> Sent {
    let mut sent = Sent {
        zeros: vec![Block::ZERO; RANDOM],
        ones: vec![Block::ZERO; RANDOM],
    };
    ot.send_random(ch, 1, &mut sent.zeros, &mut sent.ones)
        .unwrap();
    ch.flush().unwrap();
    sent
}

fn receive(ot: &mut Ot, ch: &mut Channel) -> Received {
    let mut received = Received {
        choices: vec![9; RANDOM],
        pads: vec![Block::ZERO; RANDOM],
    };
    ot.recv_random(ch, 1, &mut received.choices, &mut received.pads)
        .unwrap();
    received
}

/// Every pad is that of the choice and not the other one; pads of both kinds, their differences, and choices look uniform.
fn check_random(sent: &Sent, received: &Received, what: &str) {
    let (mut zeros, mut ones, mut apart) = (Blocks::new(), Blocks::new(), Blocks::new());
    zeros.add(sent.zeros.iter().copied());
    ones.add(sent.ones.iter().copied());
    let pairs = || sent.zeros.iter().zip(&sent.ones);
    apart.add(pairs().map(|(&a, &b)| a ^ b));
    for (i, (zero, one)) in pairs().enumerate() {
        let (chosen, other) = match received.choices[i] {
            0 => (zero, one),
            1 => (one, zero),
            choice => panic!("{what}: choice {choice}"),
        };
        let pad = &received.pads[i];
        assert!(pad == chosen && pad != other, "{what}: OT {i}");
    }
    zeros.look_uniform(&format!("{what}: zero-pads"));
    ones.look_uniform(&format!("{what}: one-pads"));
    apart.look_uniform(&format!("{what}: differences of pads"));
    let mut choices = Bits::new();
    choices.add(received.choices.iter().map(|&choice| choice == 1));
    choices.look_uniform(&format!("{what}: choices"));
}

/// Correlated OTs with the client as sender, into the second iteration, then random ones both ways.
fn run(config: OtConfig) {
    let what = &format!("{}, {:?}", config.engine, config.security);
    // The server compares, a few windows at a time: the largest sets would fill the memory.
    let (windows_out, windows_in) = sync_channel::<(Block, Vec<Block>)>(4);
    let (client, server) = run_pair(
        move |ch| {
            let mut ot = setup_seeded(ch, config, 1).unwrap();
            for len in windows(config) {
                let mut q = vec![Block::ZERO; len];
                ot.sender.extend(ch, &mut q).unwrap();
                ch.flush().unwrap();
                // If the server has found something wrong, it says so.
                if windows_out.send((ot.sender.delta(), q)).is_err() {
                    return None;
                }
            }
            Some((send(&mut ot, ch), receive(&mut ot, ch)))
        },
        move |ch| {
            let mut ot = setup_seeded(ch, config, 2).unwrap();
            let (mut left, mut right, mut choices) = (Blocks::new(), Blocks::new(), Bits::new());
            for len in windows(config) {
                let mut r = vec![Block::ZERO; len];
                ot.receiver.extend(ch, &mut r).unwrap();
                let (delta, q) = windows_in.recv().unwrap();
                let wrong = |&(&q, &r): &(&Block, &Block)| q ^ r != delta.keep_if(r.lsb().into());
                let mismatches = q.iter().zip(&r).filter(wrong).count();
                assert_eq!((mismatches, q.len()), (0, len), "{what}: mismatches");
                choices.add(r.iter().map(|r| r.lsb()));
                left.add(q);
                right.add(r);
            }
            left.look_uniform_but_for_bit_0(&format!("{what}: sender's blocks"));
            right.look_uniform(&format!("{what}: receiver's blocks"));
            choices.look_uniform(&format!("{what}: correlated choices"));
            (receive(&mut ot, ch), send(&mut ot, ch))
        },
    );
    let client = client.unwrap();
    check_random(&client.0, &server.0, what);
    check_random(&server.1, &client.1, what);
}

/// Whether there is such a combination: a party alone gets as far as to wait for its peer.
fn supported(config: OtConfig) -> bool {
    let alone = Ot::setup(&mut scripted(Role::Client, vec![]), config);
    !matches!(alone, Err(OtError::Unsupported { .. }))
}

fn run_all(engines: impl IntoIterator<Item = Engine>, securities: &[Security]) {
    for engine in engines {
        for &security in securities {
            let config = OtConfig::new(engine).with_security(security);
            if supported(config) {
                run(config);
            }
        }
    }
}

const BOTH: [Security; 2] = [Security::SemiHonest, Security::Malicious];

fn ferret<const N: usize>(sets: [ferret::Set; N]) -> [Engine; N] {
    sets.map(Engine::Ferret)
}

fn expand_convolute(size: Size) -> Engine {
    Engine::Dual(dual::Set::expand_convolute(size))
}

fn quasi_cyclic(size: Size) -> Engine {
    Engine::Dual(dual::Set::quasi_cyclic(size))
}

#[test]
fn ferret_of_one_instance_and_of_two() {
    run_all(ferret([ferret::Set::K16, ferret::Set::K17]), &BOTH);
}

#[test]
fn a_larger_set_of_ferret() {
    run_all(ferret([ferret::Set::K18]), &[Security::SemiHonest]);
}

#[test]
fn softspoken_with_every_piece_size() {
    run_all(Piece::ALL.map(Engine::SoftSpoken), &BOTH);
}

#[test]
fn dual_lpn_of_four_instances_and_of_two() {
    let engines = [Size::N17, Size::N20].map(expand_convolute);
    run_all(engines, &BOTH);
}

#[test]
fn dual_lpn_with_quasi_cyclic_codes() {
    run_all([quasi_cyclic(Size::N18)], &BOTH);
}

#[test]
#[ignore = "half a minute, 1 GiB: cargo test --release -p volvelle-ot --lib all_other_sets -- --ignored"]
fn all_other_sets() {
    let larger = ferret([ferret::Set::K18, ferret::Set::K19]);
    run_all(larger, &[Security::Malicious]);
    run_all(ferret([ferret::Set::K19]), &[Security::SemiHonest]);
    let expand_convolute = [Size::N18, Size::N22, Size::N23].map(expand_convolute);
    run_all(expand_convolute, &BOTH);
    let quasi_cyclic = [Size::N20, Size::N22, Size::N23].map(quasi_cyclic);
    run_all(quasi_cyclic, &BOTH);
}
