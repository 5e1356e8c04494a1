//! What goes over the wire: digests, distribution, and peers that send something else.
#![allow(missing_docs, clippy::unwrap_used)]

use sha2::{Digest, Sha256};
use volvelle_net::testing::{Transcript, run_pair_recorded, scripted};
use volvelle_net::{Channel, Role};
use volvelle_ot::ferret::Set;
use volvelle_ot::testing::setup_seeded;
use volvelle_ot::{Ot, OtConfig, OtError};
use volvelle_prim::{Block, Prg};

const CONFIG: OtConfig = OtConfig::ferret(Set::K16);
const COUNT: usize = 300;

/// Set-up, random OTs in both directions, four punctured trees in one.
fn session(ch: &mut Channel, seed: u64) -> Result<(), OtError> {
    let mut ot = setup_seeded(ch, CONFIG, seed)?;
    for sender in [Role::Client, Role::Server] {
        let mut pads = vec![Block::ZERO; COUNT];
        if ch.role() == sender {
            ot.send_random(ch, 1, &mut pads, &mut vec![Block::ZERO; COUNT])?;
        } else {
            ot.recv_random(ch, 1, &mut vec![0; COUNT], &mut pads)?;
        }
    }
    match ch.role() {
        Role::Client => ot.send_pprf(ch, 6, 1, 4, &mut |_, _| ())?,
        Role::Server => ot.recv_pprf(ch, 6, 1, 4, &mut |_, _, _| ())?,
    }
    ch.flush()?;
    Ok(())
}

fn transcript(seed: u64) -> Transcript {
    let (a, b, transcript) = run_pair_recorded(|ch| session(ch, seed), |ch| session(ch, seed + 1));
    a.unwrap();
    b.unwrap();
    transcript
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[test]
fn messages_have_the_recorded_digests() {
    let t = transcript(2026);
    let digests = [hex(&t.client_payload()), hex(&t.server_payload())];
    assert_eq!(
        digests,
        ["820a29f41ce59e69", "c87423b753f33ef6"],
        "the wire format changed"
    );
}

/// Chi-square of byte values, 255 degrees of freedom: mean 255, deviation 22.6.
fn chi_square(bytes: &[u8]) -> f64 {
    let mut counts = [0f64; 256];
    bytes.iter().for_each(|&b| counts[b as usize] += 1.0);
    let expected = bytes.len() as f64 / 256.0;
    counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum()
}

#[test]
fn messages_look_uniform_whatever_the_secrets() {
    // SoftSpoken columns hide the choice bits, tree sums hide the trees; points of the curve are left out.
    for seed in [1, 77] {
        let t = transcript(seed);
        for (name, frames) in [("client", t.client_frames()), ("server", t.server_frames())] {
            let bytes: Vec<u8> = frames
                .iter()
                .filter(|f| f.1.len() > 4096)
                .flat_map(|f| f.1.to_vec())
                .collect();
            assert!(bytes.len() > 100_000);
            let chi = chi_square(&bytes);
            assert!((120.0..420.0).contains(&chi), "{name}: chi-square {chi}");
        }
    }
}

#[test]
fn truncated_and_garbled_peers_give_errors() {
    let t = transcript(5);
    let mut prg = Prg::from_os();
    for (role, bytes) in [
        (Role::Server, &t.client_sent),
        (Role::Client, &t.server_sent),
    ] {
        for _ in 0..12 {
            // The early messages are short, so cut there as often as anywhere.
            let limit = if prg.next_u64() & 1 == 0 {
                6000
            } else {
                bytes.len()
            };
            let cut = prg.next_u64() as usize % limit;
            let mut ch = scripted(role, bytes[..cut].to_vec());
            assert!(session(&mut ch, 6).is_err(), "cut at {cut}");

            let mut noise = vec![0; 500];
            prg.fill_bytes(&mut noise);
            let mut garbled = bytes[..cut].to_vec();
            garbled.extend(noise);
            // Noise may complete the payload it begins in; it is an error unless that was the last.
            let ended = session(&mut scripted(role, garbled), 6).is_err();
            assert!(ended || bytes.len() - cut < 500, "noise at {cut}");

            let mut flipped = bytes.clone();
            flipped[cut] ^= 1 << (prg.next_u64() % 8);
            // A flipped payload bit may pass (semi-honest model) but must not panic.
            let _ = session(&mut scripted(role, flipped), 6);
        }
    }
}

#[test]
fn a_peer_that_hangs_up_at_once_is_an_error() {
    for role in [Role::Client, Role::Server] {
        let mut ch = scripted(role, Vec::new());
        assert!(matches!(Ot::setup(&mut ch, CONFIG), Err(OtError::Net(_))));
    }
}
