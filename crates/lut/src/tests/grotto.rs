//! Lookups that a dealer has prepared.

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use volvelle_net::memory_pair;
use volvelle_net::testing::{run_ends, scripted};

use super::privacy::{BOUND, chi_square};
use super::*;
use crate::grotto::dealer::deal_with;
use crate::{Dealt, StepTable};

/// What to look things up in.
#[derive(Clone, Debug)]
enum Read {
    Tables(Tables),
    Steps(Vec<StepTable>),
}

#[derive(Clone, Debug)]
struct Case {
    log_entries: u32,
    index: Index,
    read: Read,
    /// Whether the keys are evaluated ahead.
    ahead: bool,
}

impl Case {
    fn shape(&self) -> Shape {
        Shape {
            log_entries: self.log_entries,
            index: self.index,
            output: match &self.read {
                Read::Tables(tables) => tables.output(),
                Read::Steps(_) => Output::Xor,
            },
        }
    }

    fn look_up(
        &self,
        mut dealt: Dealt,
        ch: &mut Channel,
        index: &[u64],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        assert_eq!(dealt.len(), index.len());
        if self.ahead {
            dealt.expand();
        }
        match &self.read {
            Read::Tables(Tables::Additive(tables)) => dealt.lookup(ch, index, tables),
            Read::Tables(Tables::Xor(tables)) => dealt.lookup_xor(ch, index, tables),
            Read::Tables(Tables::Bits(_)) => unreachable!("no tables of bits"),
            Read::Steps(tables) => dealt.lookup_steps(ch, index, tables),
        }
    }

    /// Deals, and returns what the client's and the server's keys took on the wire, and the keys.
    fn deal(&self, batch: usize, seed: u64) -> ([Transcript; 2], [Dealt; 2]) {
        let shape = self.shape();
        // One link is recorded, the other end of the other waits in memory; then the other way round, with the same seed.
        let deal = |a: &mut Channel, b: &mut Channel| {
            deal_with(a, b, &shape, batch, &mut Prg::from_seed(Block(seed.into()))).unwrap();
        };
        let (mut aside, _far) = memory_pair();
        let (client, (), to_client) = run_pair_recorded(
            |ch| Dealt::receive(ch, &shape, batch).unwrap(),
            |ch| deal(ch, &mut aside),
        );
        let (mut aside, _far) = memory_pair();
        let ((), server, to_server) = run_pair_recorded(
            |ch| deal(&mut aside, ch),
            |ch| Dealt::receive(ch, &shape, batch).unwrap(),
        );
        ([to_client, to_server], [client, server])
    }

    fn check(&self, client: &[u64], server: &[u64], seed: u64) {
        let batch = client.len();
        let ([to_client, to_server], [a, b]) = self.deal(batch, seed);
        let cost = Dealt::cost(&self.shape(), batch);
        let dealt = [to_client.server_payload(), to_server.client_payload()];
        let bits = dealt.map(|bytes| 8 * bytes.len() as u64);
        assert_eq!(
            bits,
            [cost.prep.client_bits, cost.prep.server_bits],
            "{self:?}"
        );
        let party = |ch: &mut Channel, dealt, index| {
            ch.set_phase(Phase::Online);
            let outputs = self.look_up(dealt, ch, index).unwrap();
            (outputs, ch.meter().phase(Phase::Online))
        };
        let ((a, sent), (b, received)) = run_ends(
            memory_pair(),
            |ch| party(ch, a, client),
            |ch| party(ch, b, server),
        );
        assert_eq!(8 * sent.sent, cost.online.client_bits, "{self:?}");
        assert_eq!(8 * received.sent, cost.online.server_bits, "{self:?}");
        assert_eq!(sent.rounds, cost.online.rounds, "{self:?}");
        for (t, (a, b)) in a.iter().zip(&b).enumerate() {
            for (i, (&x, &y)) in client.iter().zip(server).enumerate() {
                let at = self.index.join(x, y, self.log_entries);
                let (got, expected) = match &self.read {
                    Read::Tables(tables) => (tables.join(t, a[i], b[i]), tables.entry(t, at)),
                    Read::Steps(tables) => (a[i] ^ b[i], tables[t].entry(at)),
                };
                assert_eq!(got, expected, "{self:?} lookup {i} at {x}, {y}");
            }
        }
    }
}

/// Tables of 1, some and all steps.
fn step_tables(log_entries: u32) -> Vec<StepTable> {
    let n = 1u64 << log_entries;
    let every = |step: usize| {
        let starts = (0..n).step_by(step);
        let steps: Vec<_> = starts.map(|s| (s, (s * 7 + 1) % 256)).collect();
        StepTable::new(log_entries, 8, &steps).unwrap()
    };
    vec![
        every(n as usize),
        every(3),
        every(n as usize / 2 + 1),
        every(1),
    ]
}

fn cases(log_entries: u32, widths: &[u32]) -> Vec<Case> {
    let tables = words(log_entries, widths, 4);
    let mut all = Vec::new();
    for index in KINDS {
        let kinds = [
            Read::Tables(Tables::Additive(tables.clone())),
            Read::Tables(Tables::Xor(tables.clone())),
            Read::Steps(step_tables(log_entries)),
        ];
        for read in kinds {
            if index == Index::Boolean && matches!(read, Read::Steps(_)) {
                continue;
            }
            all.extend([false, true].map(|ahead| Case {
                log_entries,
                index,
                read: read.clone(),
                ahead,
            }));
        }
    }
    all
}

#[test]
fn exhaustive_2_to_16_entries() {
    for (log_entries, widths) in [(1, &[1, 8][..]), (2, &[7, 64]), (3, &[64]), (4, &[8, 16])] {
        let n = 1u64 << log_entries;
        let pairs = (0..1 + 64 / n).flat_map(|_| (0..n * n).map(|p| (p / n, p % n)));
        let (client, server): (Vec<u64>, Vec<u64>) = pairs.unzip();
        for case in cases(log_entries, widths) {
            case.check(&client, &server, 3);
        }
    }
}

#[test]
fn larger_tables_and_batches() {
    for (log_entries, batch) in [(6, 100), (7, 40), (8, 2500), (9, 30), (12, 9)] {
        let client = random_index(log_entries, batch, 1);
        let server = random_index(log_entries, batch, 2);
        for mut case in cases(log_entries, &[13]) {
            if let Read::Steps(tables) = &mut case.read {
                tables.truncate(2);
                let third = 1 << log_entries >> 2;
                let steps = [(0, 200), (third, 7), (2 * third + 1, 99), (3 * third, 1)];
                tables[1] = StepTable::new(log_entries, 8, &steps).unwrap();
            }
            case.check(&client, &server, batch as u64);
        }
    }
}

#[test]
fn headline_costs() {
    const BATCH: u64 = 100_000;
    let bits = |log_entries, output| {
        let index = Index::Arithmetic;
        let shape = Shape {
            log_entries,
            index,
            output,
        };
        let cost = Dealt::cost(&shape, BATCH as usize);
        [cost.prep.client_bits / BATCH, cost.online.bits() / BATCH]
    };
    // A leaf holds 128 bits, 16 words of 8 bits, 2 of 64.
    assert_eq!(bits(8, Output::Xor), [129 + 128, 16]);
    assert_eq!(bits(12, Output::Xor), [5 * 129 + 128, 24]);
    assert_eq!(bits(8, Output::word(8)), [4 * 129 + 128, 16]);
    assert_eq!(bits(8, Output::word(64)), [7 * 129 + 128, 16]);
    assert_eq!(bits(2, Output::Xor), [4, 4]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let case = |index, read| Case {
        log_entries: 3,
        index,
        read,
        ahead: false,
    };
    let additive = case(
        Index::Arithmetic,
        Read::Tables(Tables::Additive(words(3, &[8], 1))),
    );
    let error = |from: &Case, batch, use_it: &(dyn Fn(Dealt, &mut Channel) -> LutError + Sync)| {
        let (_, [dealt, _]) = from.deal(batch, 1);
        use_it(dealt, &mut scripted(Role::Client, vec![]))
    };
    let table = words(3, &[8], 1);
    let short = error(&additive, 2, &|d, ch| {
        d.lookup(ch, &[1], &table).unwrap_err()
    });
    assert!(matches!(
        short,
        LutError::BatchLength {
            expected: 2,
            got: 1
        }
    ));
    let wrong = error(&additive, 1, &|d, ch| {
        d.lookup_xor(ch, &[1], &table).unwrap_err()
    });
    assert!(matches!(wrong, LutError::OutputKind { .. }));
    let wide = words(3, &[9], 1);
    let wide = error(&additive, 1, &|d, ch| {
        d.lookup(ch, &[1], &wide).unwrap_err()
    });
    assert!(matches!(wide, LutError::TableBits { .. }));
    let boolean = case(Index::Boolean, Read::Tables(Tables::Xor(table.clone())));
    let steps = step_tables(3);
    let kind = error(&boolean, 1, &|d, ch| {
        d.lookup_steps(ch, &[1], &steps).unwrap_err()
    });
    assert!(matches!(kind, LutError::IndexKind { .. }));
    let none = error(&boolean, 1, &|d, ch| {
        d.lookup_xor(ch, &[1], &[]).unwrap_err()
    });
    assert!(matches!(none, LutError::TableCount { .. }));
    let mut ch = scripted(Role::Client, vec![]);
    let empty = Dealt::receive(&mut ch, &additive.shape(), 0).err();
    assert!(matches!(empty, Some(LutError::EmptyBatch)));
    let gone = Dealt::receive(&mut ch, &additive.shape(), 1).err();
    assert!(matches!(gone, Some(LutError::Net(_))));
}

#[test]
fn steps_are_checked() {
    let position = |steps: &[(u64, u64)]| match StepTable::new(3, 4, steps) {
        Err(LutError::Step { position, .. }) => Some(position),
        _ => None,
    };
    assert_eq!(position(&[(1, 0)]), Some(0));
    assert_eq!(position(&[(0, 0), (0, 1)]), Some(1));
    assert_eq!(position(&[(0, 0), (5, 1), (4, 1)]), Some(2));
    assert_eq!(position(&[(0, 0), (8, 1)]), Some(1));
    assert!(matches!(
        StepTable::new(3, 4, &[]),
        Err(LutError::Entries { got: 0 })
    ));
    assert!(matches!(
        StepTable::new(3, 4, &[(0, 3), (2, 16)]),
        Err(LutError::EntryTooWide { position: 1, .. })
    ));
    let table = StepTable::new(3, 4, &[(0, 3), (2, 15), (7, 1)]).unwrap();
    let entries: Vec<u64> = (0..8).map(|i| table.entry(i)).collect();
    assert_eq!(entries, [3, 3, 15, 15, 15, 15, 15, 1]);
}

#[test]
fn digests() {
    let digest = |log_entries, output: Tables| {
        let case = Case {
            log_entries,
            index: Index::Arithmetic,
            read: Read::Tables(output),
            ahead: false,
        };
        let ([to_client, to_server], _) = case.deal(50, 9);
        let (digest, other) = (to_client.digests().1, to_server.digests().0);
        format!("{} {}", &digest[..16], &other[..16])
    };
    assert_eq!(
        digest(9, Tables::Xor(words(9, &[8], 1))),
        "038a99d08ad7d72c 4b04f07ee89772ff"
    );
    assert_eq!(
        digest(5, Tables::Additive(words(5, &[37], 1))),
        "9c56123929cb080f c3d4f1d9e2e8fe09"
    );
}

/// What a party receives is uniform bytes; to each party, as its own root is independent of the other's.
#[test]
fn corrections_and_offsets_are_uniform() {
    for case in cases(8, &[8]) {
        let ([to_client, to_server], [a, b]) = case.deal(8192, 5);
        let (index, zero) = (vec![77; 8192], vec![0; 8192]);
        let (_, _, online) = run_pair_recorded(
            |ch| case.look_up(a, ch, &index).unwrap(),
            |ch| case.look_up(b, ch, &zero).unwrap(),
        );
        let sent = [
            to_client.server_payload(),
            to_server.client_payload(),
            online.client_payload(),
            online.server_payload(),
        ];
        for bytes in sent {
            let chi = chi_square(&bytes);
            assert!(chi < BOUND, "χ² = {chi}, {case:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bad_dealers_are_errors(log_entries in 1u32..9, cut: Pick, at: Pick, flip in 1u8..) {
        for case in cases(log_entries, &[5]) {
            let ([to_client, _], _) = case.deal(20, 1);
            let script = to_client.server_sent;
            let receive = |bytes| {
                let mut ch = scripted(Role::Client, bytes);
                Dealt::receive(&mut ch, &case.shape(), 20)
            };
            prop_assert!(receive(script.clone()).is_ok());
            prop_assert!(receive(script[..cut.index(script.len())].to_vec()).is_err());
            let mut flipped = script.clone();
            flipped[at.index(script.len())] ^= flip;
            // Values are not authenticated: wrong keys give wrong outputs, not a panic.
            if let Ok(dealt) = receive(flipped) {
                let index = vec![0; 20];
                let (_, [_, peer]) = case.deal(20, 1);
                run_ends(
                    memory_pair(),
                    |ch| case.look_up(dealt, ch, &index).map(drop),
                    |ch| case.look_up(peer, ch, &index).map(drop),
                ).0.unwrap();
            }
        }
    }
}
