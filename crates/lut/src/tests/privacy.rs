//! What each party receives online looks the same whatever the other's input: uniform.

use super::*;

/// χ² of byte counts against uniform; 255 degrees of freedom, so 255 ± 23.
pub(super) fn chi_square(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|&b| counts[b as usize] += 1);
    let expected = bytes.len() as f64 / 256.0;
    counts
        .iter()
        .map(|&c| (f64::from(c) - expected).powi(2) / expected)
        .sum()
}

/// Five standard deviations.
pub(super) const BOUND: f64 = 255.0 + 5.0 * 22.6;

/// All payloads of one phase, client's and server's, where all of it is to be uniform.
fn payloads(case: &Case, batch: usize, input: u64, seed: u64) -> [Vec<u8>; 2] {
    let (mut client_ot, mut server_ot) = ideal_pair(seed);
    let index = vec![input; batch];
    let zero = vec![0; batch];
    // Preprocessing on a channel of its own, so that the transcript holds the online phase alone.
    let (client, server, _) = run_pair_recorded(
        |ch| case.prepare(ch, &mut client_ot, batch, seed ^ 1).unwrap(),
        |ch| case.prepare(ch, &mut server_ot, batch, seed ^ 2).unwrap(),
    );
    let (_, _, transcript) = run_pair_recorded(
        |ch| case.look_up(client, ch, &index).unwrap(),
        |ch| case.look_up(server, ch, &zero).unwrap(),
    );
    [transcript.client_payload(), transcript.server_payload()]
}

/// Trees with corrections of inner levels.
fn deeper_trees() -> impl Iterator<Item = Case> {
    cases(10, &[16]).filter(|case| matches!(case.protocol, Protocol::Tree | Protocol::OneRound))
}

#[test]
fn online_messages_are_uniform_whatever_the_input() {
    let batch = 16_384;
    for (log_entries, widths) in [(4, [8]), (8, [17]), (8, [64])] {
        for case in cases(log_entries, &widths) {
            for input in [0, (1 << log_entries) - 3] {
                for (seed, sent) in (0..).zip(payloads(&case, batch, input, input + 3)) {
                    let chi = chi_square(&sent);
                    assert!(
                        chi < BOUND,
                        "χ² = {chi}, party {seed}, input {input}, {case:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn preprocessing_messages_are_uniform() {
    for case in cases(8, &[16]).chain(deeper_trees()) {
        let (mut client_ot, mut server_ot) = ideal_pair(1);
        let (_, _, transcript) = run_pair_recorded(
            |ch| drop(case.prepare(ch, &mut client_ot, 8192, 1).unwrap()),
            |ch| drop(case.prepare(ch, &mut server_ot, 8192, 2).unwrap()),
        );
        for sent in [transcript.client_payload(), transcript.server_payload()] {
            let chi = chi_square(&sent);
            assert!(sent.is_empty() || chi < BOUND, "χ² = {chi}, {case:?}");
        }
    }
}

/// The position of the one, and each party's share of it and of the row, are uniform.
#[test]
fn shares_of_outputs_are_uniform() {
    let batch = 65_536;
    for protocol in CASES {
        let log_entries = 4.max(*protocol.log_entries().start());
        let tables = Tables::Additive(vec![Table::from_fn(log_entries, 8, |i| i).unwrap()]);
        let case = Case {
            protocol,
            log_entries,
            index: Index::Arithmetic,
            tables,
        };
        let run = case.run(&vec![3; batch], &vec![4; batch], 5);
        for [shares] in run.outputs.map(|o| <[Vec<u64>; 1]>::try_from(o).unwrap()) {
            let bytes: Vec<u8> = shares.iter().map(|&s| s as u8).collect();
            let chi = chi_square(&bytes);
            assert!(chi < BOUND, "χ² = {chi}, {protocol}");
        }
    }
}
