//! The protocols on silent OTs, one after the other over one engine, which talks on the same channel at
//! moments of its own.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Inputs, PROTOCOLS, matrix, ring, shape};
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase};
use volvelle_ot::{Ot, OtConfig};
use volvelle_prim::{Block, Prg};

const BATCH: usize = 4000;

fn party(ch: &mut Channel, inputs: &Inputs) -> Vec<Vec<u64>> {
    ch.set_phase(Phase::Setup);
    let mut ot = Ot::setup(ch, OtConfig::default()).unwrap();
    ch.set_phase(Phase::Preprocessing);
    PROTOCOLS
        .iter()
        .map(|(_, protocol)| protocol(ch, &mut ot, inputs).unwrap())
        .collect()
}

#[test]
fn right_on_silent_ots() {
    let inputs = |seed| {
        let mut values = vec![0; 2 * BATCH];
        Prg::from_seed(Block(seed)).fill_masked(&mut values, 32);
        Inputs {
            y: values.split_off(BATCH),
            x: values,
        }
    };
    let (client, server) = (inputs(1), inputs(2));
    let (at_client, at_server) = run_pair(|ch| party(ch, &client), |ch| party(ch, &server));
    let ring = ring();
    for (k, (name, _)) in PROTOCOLS.iter().enumerate() {
        let (c, s) = (&at_client[k], &at_server[k]);
        for i in 0..c.len() {
            let (x, y) = (
                ring.add(client.x[i], server.x[i]),
                ring.add(client.y[i], server.y[i]),
            );
            let (bit_x, bit_y) = (
                (client.x[i] ^ server.x[i]) & 1,
                (client.y[i] ^ server.y[i]) & 1,
            );
            let sum = ring.add(c[i], s[i]);
            let product = |vectors: &dyn Fn(usize) -> u64| {
                let (row, cols) = (i % shape().rows, shape().cols);
                let weights = &matrix().entries()[row * cols..][..cols].to_vec();
                let vector = i / shape().rows;
                weights.iter().enumerate().fold(0, |sum, (j, &w)| {
                    ring.add(
                        sum,
                        ring.mul(ring.from_signed(w), vectors(vector * cols + j)),
                    )
                })
            };
            let right = match *name {
                "and" => c[i] ^ s[i] == bit_x & bit_y,
                "mux" => sum == bit_x * y,
                "b2a" => sum == bit_x,
                "cheetah" | "compact" | "one-hot" => {
                    (c[i] ^ s[i] == 1) == (ring.to_signed(ring.sub(x, y)) >= 0)
                }
                "truncate" => sum == ring.from_signed(ring.to_signed(x) >> 7),
                "multiply" => sum == ring.mul(x, y),
                "multiply-low" => {
                    let low = (client.y[i] & 127) + (server.y[i] & 127);
                    sum == ring.mul(x, low.wrapping_sub(bit_x << 7))
                }
                "matrix-clear" => sum == product(&|e| client.x[e]),
                "matrix-shared" => sum == product(&|e| ring.add(client.x[e], server.x[e])),
                "open" => c[i] == x && s[i] == x,
                other => panic!("no check for {other}"),
            };
            assert!(right, "{name}, item {i}");
        }
    }
}
