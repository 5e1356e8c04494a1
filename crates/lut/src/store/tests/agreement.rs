//! What the parties tell each other: its cost, both ends of skipping and giving up, and peers that send anything.

use proptest::prelude::*;
use volvelle_net::testing::scripted;

use super::*;

fn small() -> Shape {
    shape(3, Index::Arithmetic, Output::word(32))
}

#[test]
fn cost_is_what_the_meter_counts() {
    for output in [
        Output::Xor,
        Output::Arithmetic {
            words: vec![1, 64, 9],
        },
    ] {
        let shape = shape(5, Index::Boolean, output);
        let cost = Store::reconcile_cost(&shape);
        let stores = Stores::new(&shape);
        let meters = stores.both(|party| {
            let mut store = party.create().unwrap();
            let made = party.ch.meter().total();
            store.reconcile(party.ch).unwrap();
            [made, party.ch.meter().total() - made]
        });
        for (client, server) in meters.0.into_iter().zip(meters.1) {
            assert_eq!(client.sent * 8, cost.client_bits);
            assert_eq!(server.sent * 8, cost.server_bits);
            assert_eq!(client.rounds.max(server.rounds), cost.rounds);
        }
    }
}

/// A change of what goes over the wire shows up here.
#[test]
fn terms_as_bytes() {
    let terms = Terms {
        present: true,
        share: [1; ID],
        id: [2; ID],
        count: 0x0304,
        cursor: 5,
        shape: shape(8, Index::Boolean, Output::Arithmetic { words: vec![64, 7] }),
    };
    let mut expected = vec![1, 0, 1];
    expected.extend([1; 16]);
    expected.extend([2; 16]);
    expected.extend([4, 3, 0, 0, 0, 0, 0, 0]);
    expected.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([8, 1, 0, 2, 0, 64, 7]);
    assert_eq!(terms.encode(), expected);
    assert_eq!(Terms::decode(&expected).unwrap().encode(), expected);
    for cut in 0..expected.len() {
        assert!(Terms::decode(&expected[..cut]).is_err(), "{cut}");
    }
}

/// One party has used more than the other.
#[test]
fn both_go_on_from_the_later_cursor() {
    for ahead in [Role::Client, Role::Server] {
        for lost in [1, 7, 4096, 9000, 10_000] {
            let stores = Stores::filled(&small(), &[10_000]);
            let outputs = stores.both(|party| {
                let mut store = party.open().unwrap();
                if party.ch.role() == ahead {
                    drop(store.take(lost).unwrap());
                }
                // Reconciled on the same connection, and so on the next.
                store.reconcile(party.ch).unwrap();
                assert_eq!(store.cursor(), lost as u64);
                drop(store);
                let mut store = party.open().unwrap();
                assert_eq!(store.remaining(), 10_000 - lost as u64);
                (store.remaining() > 0).then(|| party.look_up(&mut store, 10_000 - lost))
            });
            if let (Some(client), Some(server)) = outputs {
                check(&small(), (client, server));
            }
        }
    }
}

/// One party has stored a batch that the other has not; both make it again.
#[test]
fn what_only_one_party_holds_is_given_up() {
    for ahead in [Role::Client, Role::Server] {
        for used in [0, 50] {
            let stores = Stores::filled(&small(), &[100]);
            stores.both(|party| {
                let mut store = party.open().unwrap();
                let lookups = party.prepare(5000).unwrap();
                if party.ch.role() == ahead {
                    store.append(lookups).unwrap();
                }
                if used > 0 {
                    party.look_up(&mut store, used);
                }
            });
            let outputs = stores.both(|party| {
                let mut store = party.open().unwrap();
                assert_eq!(store.remaining(), 100 - used as u64);
                party.add(&mut store, 6000);
                party.look_up(&mut store, 6100 - used)
            });
            check(&small(), outputs);
        }
    }
}

/// A copy from before comes back: nothing of it is used again.
#[test]
fn an_old_copy_at_one_party() {
    let stores = Stores::filled(&small(), &[100]);
    let copy = std::fs::read(stores.path(Role::Server)).unwrap();
    stores.both(|party| {
        let mut store = party.open().unwrap();
        party.look_up(&mut store, 60);
        party.add(&mut store, 200);
        party.look_up(&mut store, 90);
    });
    std::fs::write(stores.path(Role::Server), copy).unwrap();
    let outputs = stores.both(|party| {
        let mut store = party.open().unwrap();
        assert_eq!((store.cursor(), store.remaining()), (150, 0));
        party.add(&mut store, 10);
        party.look_up(&mut store, 10)
    });
    check(&small(), outputs);
}

/// A reservation is skipped when the process that made it is gone, and not while it lives.
#[test]
fn reservations() {
    let stores = Stores::filled(&small(), &[1000]);
    stores.both(|party| {
        let mut store = party.open().unwrap();
        store.reserve(100);
        party.look_up(&mut store, 3);
        party.look_up(&mut store, 3);
        store.reconcile(party.ch).unwrap();
        assert_eq!(store.cursor(), 6);
        party.look_up(&mut store, 95);
        assert_eq!(store.cursor(), 101);
    });
    let cursors = stores.both(|party| {
        let mut store = party.open().unwrap();
        let cursor = store.cursor();
        store.reserve(u64::MAX);
        party.look_up(&mut store, 5);
        cursor
    });
    assert_eq!(cursors, (106, 106));
    stores.both(|party| assert_eq!(party.open().unwrap().remaining(), 0));
}

/// What is used up cannot be read from the file by who has the key: neither record has the key of a used chunk, after
/// a single call too.
#[test]
fn used_chunks_have_no_key_any_more() {
    for (count, link) in [(4096 + 1, 1), (2 * 4096, 2), (3 * 4096, 3)] {
        let stores = Stores::filled(&small(), &[3 * 4096]);
        stores.both(|party| {
            let mut store = party.open().unwrap();
            assert_eq!(store.file.state.head.link.number, 0);
            drop(store.take(count).unwrap());
        });
        let path = stores.path(Role::Client);
        let bytes = std::fs::read(&path).unwrap();
        // Each record alone.
        for spoilt in [1, 2] {
            let mut bytes = bytes.clone();
            bytes[spoilt * header::PAGE] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            let mut store = Store::open(&path, &key(Role::Client)).unwrap();
            let head = store.file.state.head.clone();
            assert_eq!(head.link.number, link);
            assert_eq!(head.first, 4096 * link);
            assert_eq!(store.file.read_chunk(&head).is_ok(), link < 3);
            let mut first = head.clone();
            (first.offset, first.first, first.link.number) = (state::CHUNKS, 0, 0);
            assert!(store.file.read_chunk(&first).is_err());
        }
    }
}

/// A byte changed anywhere in a used, closed store never takes its cursor back.
#[test]
fn no_changed_byte_lowers_the_cursor() {
    let stores = Stores::filled(&small(), &[20]);
    stores.both(|party| {
        let mut store = party.open().unwrap();
        party.look_up(&mut store, 7);
        party.look_up(&mut store, 6);
    });
    let path = stores.path(Role::Client);
    let bytes = std::fs::read(&path).unwrap();
    // Header, records, first chunk, and some of the padding of each page.
    let pages = (0..=3).flat_map(|page| page * header::PAGE..page * header::PAGE + 300);
    for at in pages.filter(|&at| at < bytes.len()) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        std::fs::write(&path, changed).unwrap();
        if let Ok(store) = Store::open(&path, &key(Role::Client)) {
            assert_eq!(store.cursor(), 13, "{at}");
        }
    }
}

/// On Linux the space of used chunks goes back to the file system.
#[test]
#[cfg(target_os = "linux")]
fn used_chunks_take_no_space() {
    use std::os::unix::fs::MetadataExt;
    let shape = shape(8, Index::Boolean, Output::Xor);
    let stores = Stores::filled(&shape, &[5 * 4096]);
    let size = || {
        let file = std::fs::metadata(stores.path(Role::Client)).unwrap();
        (file.len(), file.blocks() * 512)
    };
    let (len, before) = size();
    if before < len {
        return; // This file system does not say what a file takes.
    }
    let outputs = stores.both(|party| {
        let mut store = party.open().unwrap();
        [4 * 4096 + 1, 4095].map(|count| party.look_up(&mut store, count))
    });
    let (same, after) = size();
    assert_eq!(same, len);
    assert!(after < before / 4, "{before} {after}");
    for pair in outputs.0.into_iter().zip(outputs.1) {
        check(&shape, pair);
    }
}

/// What the server sent when it was asked to reconcile, and what this client makes of it.
fn reconcile_against(stores: &Stores, script: Vec<u8>) -> Result<u64, LutError> {
    let mut store = Store::open(&stores.path(Role::Client), &key(Role::Client)).unwrap();
    let mut channel = scripted(Role::Client, script);
    store.reconcile(&mut channel)?;
    Ok(store.cursor())
}

fn script(stores: &Stores) -> Vec<u8> {
    let ends = volvelle_net::testing::run_pair_recorded(
        |ch| {
            let mut store = Store::open(&stores.path(Role::Client), &key(Role::Client)).unwrap();
            store.reconcile(ch).unwrap();
        },
        |ch| {
            let mut store = Store::open(&stores.path(Role::Server), &key(Role::Server)).unwrap();
            store.reconcile(ch).unwrap();
        },
    );
    ends.2.server_sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn peers_that_send_anything(flips in prop::collection::vec((0usize..200, 1u8..), 1..6), cut in 0usize..200) {
        let stores = Stores::filled(&small(), &[10]);
        let mut script = script(&stores);
        prop_assert_eq!(reconcile_against(&stores, script.clone()).unwrap(), 0);
        let cut = cut % script.len();
        prop_assert!(reconcile_against(&stores, script[..cut].to_vec()).is_err());
        for (at, flip) in flips {
            let at = at % script.len();
            script[at] ^= flip;
        }
        // An error, or numbers that another peer could have sent.
        let _ = reconcile_against(&stores, script);
        let store = Store::open(&stores.path(Role::Client), &key(Role::Client)).unwrap();
        prop_assert!(store.remaining() <= 10);
    }
}

/// Numbers near the end of their range do not wrap around.
#[test]
fn absurd_numbers() {
    let stores = Stores::filled(&small(), &[10]);
    let honest = Store::open(&stores.path(Role::Client), &key(Role::Client));
    let honest = honest.unwrap().terms();
    let terms = |cursor, count| Terms {
        cursor,
        count,
        ..honest.clone()
    };
    for (cursor, count) in [(u64::MAX, u64::MAX), (11, 10), (0, 1 << 49)] {
        let (client, _) = stores.connect(
            |party| party.open().map(drop),
            |party| agree::exchange(party.ch, &terms(cursor, count)).map(drop),
        );
        let error = store_error(client);
        assert!(matches!(error, StoreError::Peer { .. }), "{error}");
    }
    // No end of a batch here.
    let (client, _) = stores.connect(
        |party| party.open().map(drop),
        |party| agree::exchange(party.ch, &terms(0, 4)).map(drop),
    );
    let error = store_error(client);
    assert!(
        matches!(error, StoreError::Misaligned { peers: 4, .. }),
        "{error}"
    );
}
