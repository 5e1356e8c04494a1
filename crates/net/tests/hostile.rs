//! Whatever bytes a peer sends, every receiving state answers with an error: no panic, no hang, no allocation of a
//! size the peer chose.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use volvelle_net::testing::{run_pair_recorded, scripted};
use volvelle_net::{Channel, Handshake, Label, NetError, Role};

const A: Label = Label::new("test/a");
const B: Label = Label::new("test/b");

/// The most address space this process has ever had, in KiB. An allocation of a size the peer chose would show here
/// even if it is never touched.
#[cfg(target_os = "linux")]
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmPeak:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(not(target_os = "linux"))]
fn peak_kib() -> u64 {
    0
}

/// A short protocol that goes through every way of receiving.
fn protocol(channel: &mut Channel) -> Result<(), NetError> {
    Handshake::new().parameter("batch", 3).run(channel)?;
    channel.send(A, &[1; 40])?;
    channel.recv(A, &mut [0; 40])?;
    channel.send(B, &[2; 9000])?;
    channel.recv_bounded(B, 1 << 30)?;
    channel.send(A, &[3; 100_000])?;
    channel.recv(A, &mut vec![0; 100_000])?;
    channel.send(B, &[])?;
    channel.recv(B, &mut [])
}

fn servers_bytes() -> Vec<u8> {
    let (client, server, transcript) = run_pair_recorded(protocol, protocol);
    client.unwrap();
    server.unwrap();
    transcript.server_sent
}

/// Plays the bytes to a client; fails the test if that takes long or much memory.
fn play(bytes: Vec<u8>) -> Result<(), NetError> {
    let peak = peak_kib();
    let start = Instant::now();
    let outcome = protocol(&mut scripted(Role::Client, bytes));
    assert!(start.elapsed() < Duration::from_secs(5));
    // Threads of other tests come and go meanwhile, with 64 MiB of address space each for their heaps.
    let grown = peak_kib() - peak;
    assert!(grown < 512 << 10, "{grown} KiB more");
    outcome
}

#[test]
fn the_true_transcript_passes() {
    play(servers_bytes()).unwrap();
}

#[test]
fn a_huge_announcement_is_not_believed() {
    // A message of 1 GiB is within the bound of the protocol's second message, but does not come.
    let mut bytes = servers_bytes();
    let at = bytes
        .windows(4)
        .position(|word| word == B.hash().to_le_bytes())
        .unwrap()
        - 4;
    bytes[at..at + 4].copy_from_slice(&(1_u32 << 30).to_le_bytes());
    assert_eq!(
        play(bytes).unwrap_err(),
        NetError::Disconnected { awaited: "test/b" }
    );
}

#[test]
fn signs_of_life_do_not_disturb() {
    let alive = Label::new("test/alive");
    let mut header = [0; 12];
    header[4..8].copy_from_slice(&alive.hash().to_le_bytes());
    // That label is not the reserved one, so this is a wrong message.
    assert!(matches!(
        play(header.to_vec()),
        Err(NetError::NotVolvelle { .. })
    ));
    // FNV-1a of "net/alive".
    let hash = b"net/alive".iter().fold(0x811c_9dc5_u32, |h, &b| {
        (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
    });
    header[4..8].copy_from_slice(&hash.to_le_bytes());
    let mut bytes = header.repeat(1000);
    bytes.extend(servers_bytes());
    play(bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_give_errors(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(play(bytes).is_err());
    }

    #[test]
    fn truncations_give_errors(share in 0.0..1.0_f64) {
        let mut bytes = servers_bytes();
        bytes.truncate((bytes.len() as f64 * share) as usize);
        prop_assert!(play(bytes).is_err());
    }

    #[test]
    fn random_bytes_after_a_true_beginning_give_errors(
        share in 0.0..1.0_f64,
        tail in prop::collection::vec(any::<u8>(), 0..4096),
    ) {
        let mut bytes = servers_bytes();
        let cut = (bytes.len() as f64 * share) as usize;
        bytes.truncate(cut);
        bytes.extend(tail);
        // A tail within a payload may by chance be long enough for it; a header it cannot be.
        let _ = play(bytes);
    }

    #[test]
    fn damage_gives_an_error_or_only_another_payload(at in any::<prop::sample::Index>(), xor in 1_u8..) {
        let mut bytes = servers_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= xor;
        let _ = play(bytes);
    }
}
