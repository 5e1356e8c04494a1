//! What a party receives looks the same whatever the inputs: bytes are uniform by a chi-square test, for
//! all-zero and for random inputs.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Inputs, PROTOCOLS};
use volvelle_net::testing::run_pair_recorded;
use volvelle_ot::testing::ideal_pair;
use volvelle_prim::{Block, Prg};

/// A multiple of 64: no padding bits.
const BATCH: usize = 1 << 14;

/// χ² of the bytes against the uniform distribution, 255 degrees of freedom.
fn chi_square(bytes: &[u8]) -> f64 {
    let mut counts = [0f64; 256];
    for &b in bytes {
        counts[b as usize] += 1.0;
    }
    let expected = bytes.len() as f64 / 256.0;
    counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum()
}

#[test]
fn messages_are_uniform_for_any_input() {
    let zero = || Inputs {
        x: vec![0; BATCH],
        y: vec![0; BATCH],
    };
    let random = |seed| {
        let mut values = vec![0; 2 * BATCH];
        Prg::from_seed(Block(seed)).fill_masked(&mut values, 32);
        Inputs {
            y: values.split_off(BATCH),
            x: values,
        }
    };
    for (name, protocol) in PROTOCOLS {
        // Opening sends the shares themselves, which are uniform only if they are shares.
        if name == "open" {
            continue;
        }
        for (kind, client_inputs, server_inputs) in
            [("zero", zero(), zero()), ("random", random(1), random(2))]
        {
            let (mut client, mut server) = ideal_pair(9);
            let (c, s, transcript) = run_pair_recorded(
                |ch| protocol(ch, &mut client, &client_inputs),
                |ch| protocol(ch, &mut server, &server_inputs),
            );
            c.unwrap();
            s.unwrap();
            for (sender, payload) in [
                ("client", transcript.client_payload()),
                ("server", transcript.server_payload()),
            ] {
                let chi = chi_square(&payload);
                // Beyond 400 with probability 10⁻⁸.
                assert!(
                    payload.is_empty() || chi < 400.0,
                    "{name}, {kind} inputs, {sender} sends: χ² = {chi}"
                );
            }
        }
    }
}
