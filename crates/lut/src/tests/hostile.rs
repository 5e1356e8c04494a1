//! A peer that sends anything else than it should gives an error, or wrong outputs, but never a
//! panic.

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use volvelle_net::testing::scripted;

use super::*;

/// Both parties' raw frames of a run, and the party that is to receive them.
fn recorded(case: &Case, batch: usize) -> [(Role, Vec<u8>); 2] {
    let index = random_index(case.log_entries, batch, 1);
    let transcript = case.run(&index, &index, 21).transcript;
    [
        (Role::Client, transcript.server_sent),
        (Role::Server, transcript.client_sent),
    ]
}

/// Runs one party against a script.
fn against(case: &Case, batch: usize, role: Role, script: Vec<u8>) -> Result<(), LutError> {
    let (client_ot, server_ot) = ideal_pair(21);
    let (mut ot, seed) = match role {
        Role::Client => (client_ot, 21 ^ 1),
        Role::Server => (server_ot, 21 ^ 2),
    };
    let index = random_index(case.log_entries, batch, 1);
    let mut channel = scripted(role, script);
    case.party(&mut channel, &mut ot, &index, seed).map(drop)
}

fn all_cases() -> impl Iterator<Item = Case> {
    let trees = cases(9, &[5]).filter(|case| case.protocol == Protocol::Tree);
    cases(3, &[9, 64]).chain(cases(7, &[5])).chain(trees)
}

fn any_case() -> impl Strategy<Value = Case> {
    let all: Vec<Case> = all_cases().collect();
    prop::sample::select(all)
}

#[test]
fn the_recorded_script_is_accepted() {
    for case in all_cases() {
        for (role, script) in recorded(&case, 20) {
            against(&case, 20, role, script).unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn truncations(case in any_case(), client: bool, cut: Pick) {
        let (role, mut script) = recorded(&case, 20)[usize::from(client)].clone();
        if !script.is_empty() {
            script.truncate(cut.index(script.len()));
            prop_assert!(against(&case, 20, role, script).is_err());
        }
    }

    #[test]
    fn garbage(
        case in any_case(),
        client: bool,
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let role = if client { Role::Client } else { Role::Server };
        prop_assert!(against(&case, 20, role, bytes).is_err());
    }

    #[test]
    fn flipped_bytes(
        case in any_case(),
        client: bool,
        flips in prop::collection::vec((any::<Pick>(), 1u8..), 1..8),
    ) {
        let (role, mut script) = recorded(&case, 20)[usize::from(client)].clone();
        if !script.is_empty() {
            for (at, flip) in flips {
                let at = at.index(script.len());
                script[at] ^= flip;
            }
            // Values are not authenticated: in a payload that is a wrong output, in a header an
            // error.
            let _ = against(&case, 20, role, script);
        }
    }

    #[test]
    fn other_parameters(
        case in any_case(),
        other in any_case(),
        client: bool,
        batch in 1usize..40,
    ) {
        let (role, script) = recorded(&other, batch)[usize::from(client)].clone();
        let _ = against(&case, 20, role, script);
    }
}

/// A peer with another batch or table size is found out.
#[test]
fn another_shape_is_an_error() {
    let tables = |log_entries| Tables::Additive(words(log_entries, &[8], 1));
    let case = |log_entries| Case {
        protocol: Protocol::Doubling,
        log_entries,
        index: Index::Arithmetic,
        tables: tables(log_entries),
    };
    for (role, script) in recorded(&case(4), 21) {
        assert!(against(&case(4), 20, role, script).is_err());
    }
    for (role, script) in recorded(&case(5), 20) {
        assert!(against(&case(4), 20, role, script).is_err());
    }
}
