//! Lookups from a store are right, and none is handed out twice.

use super::*;

#[test]
fn every_shape_comes_back_in_another_process() {
    for log_entries in [1, 2, 5, 6, 8, 11] {
        for index in KINDS {
            for output in [
                Output::Xor,
                Output::word(1),
                Output::word(8),
                Output::Arithmetic {
                    words: vec![37, 1, 64, 2],
                },
            ] {
                let shape = shape(log_entries, index, output);
                let stores = Stores::filled(&shape, &[70, 3]);
                let outputs = stores.both(|party| {
                    let mut store = party.open().unwrap();
                    assert_eq!((store.remaining(), store.cursor()), (73, 0));
                    assert_eq!(*store.shape(), party.shape);
                    let outputs = [5, 1, 60, 7].map(|count| party.look_up(&mut store, count));
                    assert_eq!((store.remaining(), store.cursor()), (0, 73));
                    outputs
                });
                for pair in outputs.0.into_iter().zip(outputs.1) {
                    check(&shape, pair);
                }
            }
        }
    }
}

/// Chunks hold 4096 of these; takes begin and end anywhere in them.
#[test]
fn takes_across_chunks_and_processes() {
    let shape = shape(3, Index::Arithmetic, Output::word(9));
    let stores = Stores::filled(&shape, &[10_000, 1]);
    for (count, left) in [(1, 10_000), (4095, 5905), (5000, 905), (904, 1), (1, 0)] {
        let outputs = stores.both(|party| {
            let mut store = party.open().unwrap();
            let outputs = party.look_up(&mut store, count);
            assert_eq!(store.remaining(), left);
            outputs
        });
        check(&shape, outputs);
    }
}

/// Trees grow in groups of sixteen; chunks of these tables hold 2012 rows, or 127, and begin anywhere in a group.
#[test]
fn rows_of_trees_are_kept_wherever_chunks_begin() {
    for (log_entries, batch) in [(12, 2100), (16, 150)] {
        let shape = shape(log_entries, Index::Arithmetic, Output::word(16));
        let stores = Stores::new(&shape);
        let outputs = stores.both(|party| {
            let mut store = party.create().unwrap();
            let (ch, ot) = (&mut *party.ch, &mut party.ot);
            let trees = Lookups::prepare(ch, ot, Generator::Tree, &party.shape, batch);
            store.append(trees.unwrap()).unwrap();
            party.look_up(&mut store, batch)
        });
        check(&shape, outputs);
    }
}
