//! Digests of transcripts: a change of what goes over the wire shows up here, on purpose or not.

use sha2::{Digest, Sha256};

use super::*;

fn digest(case: &Case, batch: usize) -> String {
    let client = random_index(case.log_entries, batch, 11);
    let server = random_index(case.log_entries, batch, 12);
    digest_of(&case.run(&client, &server, 13).transcript)
}

/// All frames of a run, in 64 bits.
pub(super) fn digest_of(transcript: &Transcript) -> String {
    let mut hash = Sha256::new();
    for frames in [transcript.client_frames(), transcript.server_frames()] {
        for (label, payload) in frames {
            hash.update(label.to_le_bytes());
            hash.update((payload.len() as u64).to_le_bytes());
            hash.update(payload);
        }
        hash.update(b"|");
    }
    hash.finalize()
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect()
}

#[test]
fn digests() {
    let mut got = Vec::new();
    for log_entries in [3, 8, 10] {
        for case in cases(log_entries, &[37, 8]) {
            let kind = match case.tables {
                Tables::Additive(_) => "additive",
                Tables::Xor(_) => "xor",
                Tables::Bits(_) => "bits",
            };
            let digest = digest(&case, 100);
            got.push(format!(
                "{} {} {log_entries} {kind} {digest}",
                case.protocol, case.index
            ));
        }
    }
    let expected: Vec<&str> = include_str!("wire.txt").lines().collect();
    assert_eq!(
        got,
        expected,
        "the wire format changed:\n{}",
        got.join("\n")
    );
}

/// The two seeds decide everything.
#[test]
fn runs_repeat() {
    for case in cases(5, &[12]) {
        assert_eq!(digest(&case, 70), digest(&case, 70), "{case:?}");
    }
}
