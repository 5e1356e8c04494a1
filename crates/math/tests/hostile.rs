//! Cut and changed messages make errors or wrong shares, never a panic.

#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use volvelle_arith::{Ring, Variant};
use volvelle_math::{Argmax, ArgmaxShape, Fixed, Gelu, GeluPlan, MathError};
use volvelle_net::testing::{run_pair_recorded, scripted};
use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_ot::testing::ideal_pair;

type Function = fn(&mut Channel, &mut Ot) -> Result<Vec<u64>, MathError>;

fn gelu(ch: &mut Channel, ot: &mut Ot) -> Result<Vec<u64>, MathError> {
    let plan = GeluPlan::new(Fixed::new(37, 12)?)?;
    Gelu::prepare(ch, ot, &plan, 9)?.run(ch, &[12_345; 9])
}

fn argmax(ch: &mut Channel, ot: &mut Ot) -> Result<Vec<u64>, MathError> {
    let shape = ArgmaxShape {
        ring: Ring::new(16)?,
        classes: 5,
        variant: Variant::Cheetah,
    };
    Argmax::prepare(ch, ot, &shape, 3)?.run(ch, &[77; 15])
}

const FUNCTIONS: [Function; 2] = [gelu, argmax];

/// What each party receives in an honest run: (to the client, to the server).
fn record(function: Function) -> [Vec<u8>; 2] {
    let (mut client, mut server) = ideal_pair(3);
    let (c, s, transcript) = run_pair_recorded(
        |ch| function(ch, &mut client),
        |ch| function(ch, &mut server),
    );
    c.unwrap();
    s.unwrap();
    [transcript.server_sent, transcript.client_sent]
}

fn play(function: Function, role: Role, bytes: Vec<u8>) -> bool {
    let (mut client, mut server) = ideal_pair(3);
    let ot = if role == Role::Client {
        &mut client
    } else {
        &mut server
    };
    function(&mut scripted(role, bytes), ot).is_ok()
}

#[test]
fn every_truncation_is_an_error() {
    for function in FUNCTIONS {
        for (role, bytes) in [Role::Client, Role::Server]
            .into_iter()
            .zip(record(function))
        {
            assert!(play(function, role, bytes.clone()));
            for end in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
                assert!(!play(function, role, bytes[..end].to_vec()), "{role} {end}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_bytes_do_not_panic(at: prop::sample::Index, value: u8) {
        for function in FUNCTIONS {
            for (role, mut bytes) in [Role::Client, Role::Server].into_iter().zip(record(function)) {
                let at = at.index(bytes.len());
                bytes[at] = value;
                play(function, role, bytes);
            }
        }
    }

    #[test]
    fn garbage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        for function in FUNCTIONS {
            for role in [Role::Client, Role::Server] {
                prop_assert!(!play(function, role, bytes.clone()));
            }
        }
    }
}
