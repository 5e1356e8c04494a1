//! The shape of every protocol's messages (labels and lengths in order), as digests: a change of what goes
//! over the wire shows here, and is one line.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Inputs, PROTOCOLS};
use volvelle_net::testing::run_pair_recorded;
use volvelle_ot::testing::ideal_pair;

/// FNV-1a over the labels' hashes and the lengths.
fn digest(frames: &[(u32, &[u8])]) -> u32 {
    let bytes = frames.iter().flat_map(|(label, payload)| {
        label
            .to_le_bytes()
            .into_iter()
            .chain((payload.len() as u32).to_le_bytes())
    });
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Client's and server's messages, 100 items. The lookup's are pinned where they are made.
const DIGESTS: [(&str, u32, u32); 11] = [
    ("and", 0x6905e2dc, 0x6905e2dc),
    ("mux", 0x678a9fbf, 0x678a9fbf),
    ("b2a", 0xe2954e1c, 0x2ba1f0bd),
    ("cheetah", 0x53090e5f, 0x27c60175),
    ("compact", 0xe83aedac, 0x0145e0ac),
    ("truncate", 0xc5dca333, 0x97a44711),
    ("multiply", 0xae1614f0, 0xae1614f0),
    ("multiply-low", 0x8b792230, 0x8b792230),
    ("matrix-clear", 0x9f68edbb, 0x88ac3709),
    ("matrix-shared", 0xbfea52f5, 0x960bbca4),
    ("open", 0x83b1e004, 0x83b1e004),
];

#[test]
fn messages_keep_their_shape() {
    let inputs = || Inputs {
        x: vec![5; 100],
        y: vec![7; 100],
    };
    let mut found = Vec::new();
    for (name, protocol) in PROTOCOLS.into_iter().filter(|(name, _)| *name != "one-hot") {
        let (mut client, mut server) = ideal_pair(3);
        let (c, s, transcript) = run_pair_recorded(
            |ch| protocol(ch, &mut client, &inputs()),
            |ch| protocol(ch, &mut server, &inputs()),
        );
        c.unwrap();
        s.unwrap();
        found.push((
            name,
            digest(&transcript.client_frames()),
            digest(&transcript.server_frames()),
        ));
    }
    assert_eq!(found, DIGESTS);
}
