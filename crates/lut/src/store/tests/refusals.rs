//! What a store refuses, and that it is unchanged by it.

use proptest::prelude::*;
use proptest::sample::Index as Pick;

use super::*;
use crate::store::file::StoreFile;
use crate::store::header::PAGE;

fn small() -> Shape {
    shape(2, Index::Arithmetic, Output::word(8))
}

/// Opens the client's store with other bytes.
fn open_bytes(bytes: &[u8]) -> Result<Store, LutError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    std::fs::write(&path, bytes).unwrap();
    Store::open(&path, &key(Role::Client))
}

#[test]
fn more_than_is_left() {
    let stores = Stores::filled(&small(), &[10]);
    let outputs = stores.both(|party| {
        let mut store = party.open().unwrap();
        for asked in [11, usize::MAX] {
            let error = store_error(store.take(asked));
            assert!(
                matches!(error, StoreError::Exhausted { asked: a, left: 10 } if a == asked as u64)
            );
        }
        assert!(matches!(store.take(0), Err(LutError::EmptyBatch)));
        assert_eq!((store.cursor(), store.remaining()), (0, 10));
        party.look_up(&mut store, 10)
    });
    check(&small(), outputs);
}

#[test]
fn before_the_parties_have_compared() {
    let stores = Stores::filled(&small(), &[10]);
    stores.both(|party| {
        let lookups = party.prepare(1).unwrap();
        let mut store = Store::open(&party.path, &key(party.ch.role())).unwrap();
        let error = store_error(store.take(1));
        assert!(matches!(error, StoreError::NotReconciled), "{error}");
        let error = store_error(store.append(lookups));
        assert!(matches!(error, StoreError::NotReconciled), "{error}");
    });
}

#[test]
fn lookups_of_another_shape() {
    let stores = Stores::filled(&small(), &[]);
    stores.both(|party| {
        let mut store = party.open().unwrap();
        party.shape.output = Output::word(9);
        let lookups = party.prepare(1).unwrap();
        let error = store_error(store.append(lookups)).to_string();
        assert!(error.contains("additive outputs of 8 bits"), "{error}");
        assert!(error.contains("additive outputs of 9 bits"), "{error}");
    });
}

#[test]
fn wrong_keys_and_files() {
    let stores = Stores::filled(&small(), &[10]);
    let path = stores.path(Role::Client);
    let error = store_error(Store::open(&path, &key(Role::Server)));
    assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
    let passphrase = StoreKey::from_passphrase("tea").unwrap();
    let error = store_error(Store::open(&path, &passphrase)).to_string();
    assert!(
        error.contains("made with a key file, not with a passphrase"),
        "{error}"
    );

    let bytes = std::fs::read(&path).unwrap();
    for foreign in [&b""[..], b"VOLVELLE", &[0; 20_000], b"#!/bin/sh\n"] {
        let error = store_error(open_bytes(foreign));
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    }
    let error = store_error(Store::open(stores.folder.path(), &key(Role::Client)));
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    let mut newer = bytes.clone();
    newer[16] = 2;
    let error = store_error(open_bytes(&newer));
    let version = |e: &StoreError| {
        matches!(
            e,
            StoreError::Version {
                expected: 1,
                got: 2,
                ..
            }
        )
    };
    assert!(version(&error), "{error}");
    for len in [17, 100, PAGE, 3 * PAGE - 1, bytes.len() - 1] {
        let error = store_error(open_bytes(&bytes[..len]));
        assert!(matches!(error, StoreError::Damaged { .. }), "{len} {error}");
    }
    // Beyond its end there may be what an interruption has left.
    assert!(open_bytes(&[&bytes[..], &[1; 100]].concat()).is_ok());
}

#[test]
fn a_passphrase() {
    let stores = Stores::new(&small());
    let made = stores.both(|party| {
        let key = StoreKey::from_passphrase("correct horse").unwrap();
        let mut store = Store::create(&party.path, &key, party.ch, &party.shape).unwrap();
        party.add(&mut store, 5);
    });
    assert_eq!(made, ((), ()));
    let path = stores.path(Role::Client);
    let open = |passphrase| Store::open(&path, &StoreKey::from_passphrase(passphrase).unwrap());
    let error = store_error(open("correct house"));
    assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
    assert_eq!(open("correct horse").unwrap().remaining(), 5);
    assert!(StoreKey::from_passphrase("").is_err());
}

#[test]
fn a_second_opening_and_a_second_creation() {
    let stores = Stores::filled(&small(), &[10]);
    let path = stores.path(Role::Client);
    let open = || Store::open(&path, &key(Role::Client));
    let first = open().unwrap();
    let error = store_error(open());
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    drop(first);
    open().unwrap();
    let (client, _) = stores.connect(|party| party.create(), |_| ());
    let error = store_error(client);
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    open().unwrap();
}

/// A process that died while it made a store leaves a file of another name.
#[test]
fn what_an_interrupted_creation_leaves_is_no_hindrance() {
    let stores = Stores::new(&small());
    let left = stores.folder.path().join("client.new");
    std::fs::write(&left, [7; 30_000]).unwrap();
    stores.both(|party| {
        let mut store = party.create().unwrap();
        party.add(&mut store, 5);
    });
    assert!(!left.exists());
    let outputs = stores.both(|party| {
        let mut store = party.open().unwrap();
        party.look_up(&mut store, 5)
    });
    check(&small(), outputs);
}

#[test]
fn stores_that_do_not_go_together() {
    let (stores, others) = (
        Stores::filled(&small(), &[10]),
        Stores::filled(&small(), &[10]),
    );
    let wider = Stores::filled(&shape(3, Index::Boolean, Output::Xor), &[10]);
    let with = |other: &Stores| {
        let path = other.path(Role::Server);
        let server = |party: &mut Party<'_>| {
            party.path = path.clone();
            store_error(party.open())
        };
        stores.connect(|party| store_error(party.open()), server)
    };
    let (client, server) = with(&others);
    assert!(matches!(client, StoreError::OtherPeer { .. }), "{client}");
    assert!(matches!(server, StoreError::OtherPeer { .. }), "{server}");
    let (client, server) = with(&wider);
    for error in [client, server] {
        let text = error.to_string();
        assert!(matches!(error, StoreError::OtherShape { .. }), "{text}");
        assert!(
            text.contains("4 entries") && text.contains("8 entries"),
            "{text}"
        );
    }
    // One party's store at both.
    let (client, _) = stores.connect(
        |party| {
            party.path = stores.path(Role::Server);
            let mut store = Store::open(&party.path, &key(Role::Server)).unwrap();
            store_error(store.reconcile(party.ch))
        },
        |_| (),
    );
    assert!(matches!(client, StoreError::Role { .. }), "{client}");
}

/// A store that has never held anything is in nobody's way; one that has is not given up.
#[test]
fn another_shape_asked_for() {
    let wider = shape(3, Index::Boolean, Output::Xor);
    let open = |stores: &Stores| {
        stores.both(|party| {
            let key = key(party.ch.role());
            let store = Store::open_or_create(&party.path, &key, party.ch, &wider);
            store.map(|store| store.shape().clone())
        })
    };
    let empty = Stores::filled(&small(), &[]);
    std::fs::remove_file(empty.path(Role::Server)).unwrap();
    for _again in 0..2 {
        let (client, server) = open(&empty);
        assert_eq!(
            (client.unwrap(), server.unwrap()),
            (wider.clone(), wider.clone())
        );
    }
    let (client, server) = open(&Stores::filled(&small(), &[1]));
    for error in [store_error(client), store_error(server)] {
        let text = error.to_string();
        assert!(matches!(error, StoreError::FileShape { .. }), "{text}");
        assert!(
            text.contains("is for 4 entries") && text.contains("asked for were 8 entries"),
            "{text}"
        );
    }
}

#[test]
fn a_store_at_one_party_only() {
    let stores = Stores::filled(&small(), &[10]);
    let aside = stores.folder.path().join("aside");
    std::fs::rename(stores.path(Role::Server), &aside).unwrap();
    let open = |party: &mut Party<'_>| {
        let (path, shape) = (party.path.clone(), party.shape.clone());
        let key = key(party.ch.role());
        Store::open_or_create(&path, &key, party.ch, &shape).map(|store| store.remaining())
    };
    let (client, server) = stores.both(open);
    let (client, server) = (store_error(client), store_error(server));
    assert!(matches!(client, StoreError::PeerHasNone { .. }), "{client}");
    assert!(matches!(server, StoreError::PeerHasOne { .. }), "{server}");
    std::fs::rename(&aside, stores.path(Role::Server)).unwrap();
    let (client, server) = stores.both(open);
    assert_eq!((client.unwrap(), server.unwrap()), (10, 10));

    // Nothing is lost with a store that never held anything.
    let stores = Stores::filled(&small(), &[]);
    std::fs::remove_file(stores.path(Role::Client)).unwrap();
    let (client, server) = stores.both(open);
    assert_eq!((client.unwrap(), server.unwrap()), (0, 0));
    let (client, server) = stores.both(|party| party.open().map(drop));
    assert!(client.is_ok() && server.is_ok());
}

#[test]
fn shapes_out_of_range() {
    let tables = Output::Arithmetic {
        words: vec![8; 1025],
    };
    for shape in [
        shape(0, Index::Arithmetic, Output::Xor),
        shape(2, Index::Arithmetic, tables),
    ] {
        let stores = Stores::new(&shape);
        let (client, _) = stores.connect(|party| party.create().map(drop), |_| ());
        assert!(client.is_err());
        assert!(!stores.path(Role::Client).exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Opening or taking notices, or the byte means nothing.
    #[test]
    fn flipped_bytes(at: Pick, flip in 1u8..) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let mut bytes = ONE.with(Clone::clone);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let file = StoreFile::open(&path, &key(Role::Client));
        let taken = file.map_err(LutError::from).and_then(|file| {
            let mut store = Store::new(file, true);
            store.take(20)
        });
        match taken {
            Err(LutError::Store(
                StoreError::Damaged { .. }
                | StoreError::NotAStore { .. }
                | StoreError::Version { .. }
                | StoreError::WrongKey { .. }
                | StoreError::KeyKind { .. }
                | StoreError::Exhausted { .. },
            )) => {}
            Err(other) => prop_assert!(false, "{other}"),
            Ok(taken) => {
                let mut got = Vec::new();
                taken.save(0..20, &mut got);
                prop_assert!(got == CONTENT.with(Clone::clone));
            }
        }
    }
}

/// Nothing of what is stored is there in the clear.
#[test]
fn the_file_is_encrypted() {
    let stores = Stores::filled(&shape(8, Index::Arithmetic, Output::word(64)), &[20]);
    let path = stores.path(Role::Client);
    let mut content = Vec::new();
    let file = StoreFile::open(&path, &key(Role::Client)).unwrap();
    let taken = Store::new(file, true).take(20).unwrap();
    taken.save(0..20, &mut content);
    let file = std::fs::read(&path).unwrap();
    let parts: std::collections::HashSet<&[u8]> = file.windows(16).collect();
    assert!(content.windows(16).all(|part| !parts.contains(part)));
}

thread_local! {
    /// The client's file of a store of 20 lookups.
    static ONE: Vec<u8> = {
        let stores = Stores::filled(&small(), &[20]);
        std::fs::read(stores.path(Role::Client)).unwrap()
    };
    /// And what is in it.
    static CONTENT: Vec<u8> = {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        std::fs::write(&path, ONE.with(Clone::clone)).unwrap();
        let file = StoreFile::open(&path, &key(Role::Client)).unwrap();
        let mut content = Vec::new();
        Store::new(file, true).take(20).unwrap().save(0..20, &mut content);
        content
    };
}
