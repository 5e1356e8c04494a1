//! Random OT, Ferret and the punctured PRF over real and ideal sources.
#![allow(missing_docs, clippy::unwrap_used)]

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase};
use volvelle_ot::convert::{self, OneOfN};
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::testing::ideal_pair;
use volvelle_ot::{Engine, Ot, OtConfig};
use volvelle_prim::{BitVec, Block, Prg};

struct Sent(Vec<Block>, Vec<Block>);
struct Received(Vec<u8>, Vec<Block>);

fn send(ot: &mut Ot, ch: &mut Channel, width: usize, count: usize) -> Sent {
    let mut out = Sent(
        vec![Block::ZERO; count * width],
        vec![Block::ZERO; count * width],
    );
    ot.send_random(ch, width, &mut out.0, &mut out.1).unwrap();
    ch.flush().unwrap();
    out
}

fn receive(ot: &mut Ot, ch: &mut Channel, width: usize, count: usize) -> Received {
    let mut out = Received(vec![9; count], vec![Block::ZERO; count * width]);
    ot.recv_random(ch, width, &mut out.0, &mut out.1).unwrap();
    out
}

/// Every pad checked, pads of a pair differ, choices look uniform.
fn check(sent: &Sent, received: &Received, width: usize) {
    let count = received.0.len();
    for i in 0..count {
        for j in i * width..(i + 1) * width {
            let (chosen, other) = match received.0[i] {
                0 => (sent.0[j], sent.1[j]),
                1 => (sent.1[j], sent.0[j]),
                c => panic!("choice {c}"),
            };
            assert!(received.1[j] == chosen && received.1[j] != other, "OT {i}");
        }
    }
    let ones = received.0.iter().filter(|&&c| c == 1).count() as f64;
    let deviation = (ones - count as f64 / 2.0).abs() / (count as f64 / 4.0).sqrt();
    assert!(deviation < 6.0, "{ones} ones among {count} choices");
}

fn both_directions(count: usize, width: usize, config: OtConfig) {
    let (client, server) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            (
                send(&mut ot, ch, width, count),
                receive(&mut ot, ch, width, count),
            )
        },
        |ch| {
            let mut ot = Ot::setup(ch, config).unwrap();
            (
                receive(&mut ot, ch, width, count),
                send(&mut ot, ch, width, count),
            )
        },
    );
    check(&client.0, &server.0, width);
    check(&server.1, &client.1, width);
}

#[test]
fn ferret_from_cold_in_both_directions() {
    both_directions(5_000, 1, OtConfig::ferret(Set::K16));
    both_directions(777, 3, OtConfig::ferret(Set::K16));
}

#[test]
fn ferret_over_several_iterations() {
    // Over one iteration of 2^16: seeds of the second come from outputs of the first.
    both_directions(2 * Set::K16.made(), 1, OtConfig::ferret(Set::K16));
}

#[test]
fn every_parameter_set_works() {
    for set in Set::ALL {
        both_directions(100_000, 1, OtConfig::ferret(set));
    }
}

#[test]
fn softspoken_with_every_piece_size() {
    for piece in Piece::ALL {
        // Over a chunk, and a part of one.
        both_directions(20_000, 1, OtConfig::new(Engine::SoftSpoken(piece)));
    }
}

#[test]
fn softspoken_sends_what_the_formula_says() {
    for piece in Piece::ALL {
        let config = OtConfig::new(Engine::SoftSpoken(piece));
        let (bits, _) = run_pair(
            |ch| {
                let mut ot = Ot::setup(ch, config).unwrap();
                ch.set_phase(Phase::Preprocessing);
                send(&mut ot, ch, 1, 16_384);
                ch.meter().phase(Phase::Preprocessing).bits()
            },
            |ch| {
                let mut ot = Ot::setup(ch, config).unwrap();
                receive(&mut ot, ch, 1, 16_384);
            },
        );
        assert_eq!(bits, 16_384 * piece.bits_per_cot());
    }
}

#[test]
fn an_iteration_sends_what_the_formula_says() {
    let set = Set::K16;
    let handed_out = set.made() - set.seed();
    let (bits, _) = run_pair(
        |ch| {
            let mut ot = Ot::setup(ch, OtConfig::ferret(set)).unwrap();
            ch.set_phase(Phase::Preprocessing);
            // The last OT of the first iteration, then the first of the second, which needs the whole seed.
            send(&mut ot, ch, 1, handed_out);
            send(&mut ot, ch, 1, 1);
            let stats = ot.stats();
            assert_eq!(stats.made_send as usize, set.made() + (8 << set.depth()));
            assert!((stats.bits_per_ot - set.bits() as f64 / handed_out as f64).abs() < 1e-12);
            ch.meter().phase(Phase::Preprocessing).bits()
        },
        |ch| {
            let mut ot = Ot::setup(ch, OtConfig::ferret(set)).unwrap();
            receive(&mut ot, ch, 1, handed_out);
            receive(&mut ot, ch, 1, 1);
        },
    );
    let one_group = 8 * (u64::from(set.depth()) - 1) * 128;
    assert_eq!(bits, set.bits() + one_group);
}

#[test]
fn punctured_rows_agree_but_at_the_point() {
    for (depth, width, count) in [(1, 1, 9), (2, 1, 8), (4, 1, 21), (8, 2, 10), (9, 4, 3)] {
        let (mut client, mut server) = ideal_pair(depth.into());
        let (sent, received) = run_pair(
            |ch| {
                let mut all = Vec::new();
                client
                    .send_pprf(ch, depth, width, count, &mut |_, rows| {
                        all.push(rows.to_vec())
                    })
                    .unwrap();
                ch.flush().unwrap();
                (all, ch.meter().total().bits())
            },
            |ch| {
                let mut all = Vec::new();
                server
                    .recv_pprf(ch, depth, width, count, &mut |_, point, rows| {
                        all.push((point, rows.to_vec()));
                    })
                    .unwrap();
                all
            },
        );
        assert_eq!(sent.1, 128 * u64::from(depth - 1) * count as u64);
        assert_eq!((sent.0.len(), received.len()), (count, count));
        for (full, (point, punctured)) in sent.0.iter().zip(&received) {
            assert_eq!(full.len(), width << depth);
            for (i, (a, b)) in full.iter().zip(punctured).enumerate() {
                assert_eq!(
                    a == b,
                    i / width != *point,
                    "depth {depth} row {}",
                    i / width
                );
            }
        }
    }
}

#[test]
fn chosen_ots_deliver_the_choice() {
    let mut prg = Prg::from_os();
    let messages: Vec<[Block; 2]> = (0..100)
        .map(|_| [prg.next_block(), prg.next_block()])
        .collect();
    let choices = BitVec::random(&mut prg, 100);
    let (mut client, mut server) = ideal_pair(3);
    let ((), got) = run_pair(
        |ch| convert::send_chosen(&mut client, ch, &messages).unwrap(),
        |ch| convert::recv_chosen(&mut server, ch, &choices).unwrap(),
    );
    assert!((0..100).all(|i| got[i] == messages[i][usize::from(choices.get(i))]));
}

#[test]
fn one_of_n_ots_deliver_the_choice_at_the_stated_cost() {
    let mut prg = Prg::from_os();
    for (log_n, bits) in [(1, 1), (2, 64), (4, 2), (4, 37), (6, 8), (8, 63)] {
        let (spec, count) = (OneOfN { log_n, bits }, 33);
        let mut messages = vec![0; count << log_n];
        prg.fill_masked(&mut messages, bits);
        let mut choices = vec![0; count];
        prg.fill_masked(&mut choices, log_n);
        let (mut client, mut server) = ideal_pair(u64::from(bits));
        let (sent, got) = run_pair(
            |ch| {
                spec.send(&mut client, ch, &messages).unwrap();
                ch.meter().total()
            },
            |ch| spec.recv(&mut server, ch, &choices).unwrap(),
        );
        for i in 0..count {
            assert_eq!(got[i], messages[(i << log_n) + choices[i] as usize]);
        }
        let cost = spec.cost(count);
        assert_eq!(
            (8 * sent.sent, 8 * sent.received),
            (cost.client_bits, cost.server_bits)
        );
    }
}
