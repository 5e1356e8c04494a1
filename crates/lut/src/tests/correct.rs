//! Every output is the table's entry.

use super::*;

/// All pairs of shares, so all index values under all sharings, several times over.
fn exhaustive(log_entries: u32, widths: &[u32]) {
    let n = 1u64 << log_entries;
    let repeats = 1 + 64 / n;
    let pairs: Vec<(u64, u64)> = (0..repeats)
        .flat_map(|_| (0..n * n).map(|p| (p / n, p % n)))
        .collect();
    let (client, server): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
    for case in cases(log_entries, widths) {
        case.check(&client, &server, 7);
    }
}

#[test]
fn exhaustive_2_entries() {
    exhaustive(1, &[1, 8, 64]);
}

#[test]
fn exhaustive_4_entries() {
    exhaustive(2, &[1, 7, 37]);
}

#[test]
fn exhaustive_8_entries() {
    exhaustive(3, &[1]);
    exhaustive(3, &[16, 64]);
}

#[test]
fn exhaustive_16_entries() {
    exhaustive(4, &[1]);
    exhaustive(4, &[8]);
    exhaustive(4, &[64]);
    exhaustive(4, &[37, 1, 64, 7]);
}

/// Every index, and every share of it, of the smallest tree.
#[test]
fn every_index_of_a_tree() {
    let client: Vec<u64> = (0..256).collect();
    for case in cases(8, &[16]).filter(|case| case.protocol == Protocol::Tree) {
        for step in [1, 85] {
            let server: Vec<u64> = (0..256).map(|i| i * step + 3).collect();
            case.check(&client, &server, step);
        }
    }
}

#[test]
fn the_largest_table() {
    for case in cases(20, &[9]).filter(|case| case.index == Index::Arithmetic) {
        case.check(&[5, 0xf_ffff], &[0xa_bcde, 0xf_fffe], 1);
    }
}

#[test]
fn larger_tables() {
    for (log_entries, batch) in [
        (5, 300),
        (6, 300),
        (7, 200),
        (8, 300),
        (9, 100),
        (10, 65),
        (11, 33),
        (12, 17),
        (13, 17),
        (16, 5),
    ] {
        let client = random_index(log_entries, batch, 1);
        let server = random_index(log_entries, batch, 2);
        for case in cases(log_entries, &[64, 37]) {
            case.check(&client, &server, log_entries.into());
        }
    }
}

#[test]
fn every_width() {
    for bits in [1, 7, 8, 16, 32, 37, 64] {
        for log_entries in [3, 8] {
            let client = random_index(log_entries, 100, 3);
            let server = random_index(log_entries, 100, 4);
            for case in cases(log_entries, &[bits]) {
                case.check(&client, &server, bits.into());
            }
        }
    }
}

#[test]
fn batches_that_fill_no_chunk_and_several() {
    for batch in [1, 7, 1000, 8192, 8193, 20_011] {
        let client = random_index(4, batch, 5);
        let server = random_index(4, batch, 6);
        for case in cases(4, &[9, 1]) {
            case.check(&client, &server, batch as u64);
        }
    }
}

#[test]
fn shares_count_modulo_the_number_of_entries() {
    let client: Vec<u64> = (0..64).map(|i| i * 0x0123_4567_89ab_cdef).collect();
    let server = vec![u64::MAX; 64];
    for case in cases(3, &[5]) {
        case.check(&client, &server, 1);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let shape = |output| Shape {
        log_entries: 3,
        index: Index::Arithmetic,
        output,
    };
    let good = words(3, &[8], 1);
    let refused = |output, batch, check: &(dyn Fn(Lookups, &mut Channel) -> LutError + Sync)| {
        let (mut a, mut b) = ideal_pair(1);
        let shape = shape(output);
        let one = |ch: &mut Channel, ot: &mut Ot| {
            let generator = crate::Generator::Doubling;
            match Lookups::prepare(ch, ot, generator, &shape, batch) {
                Ok(prepared) => check(prepared, ch),
                Err(error) => error,
            }
        };
        let (a, b, _) = run_pair_recorded(|ch| one(ch, &mut a), |ch| one(ch, &mut b));
        assert_eq!(a.to_string(), b.to_string());
        a
    };
    let never = |_: Lookups, _: &mut Channel| unreachable!();
    assert!(matches!(
        refused(Output::word(8), 0, &never),
        LutError::EmptyBatch
    ));
    assert!(matches!(
        refused(Output::word(65), 1, &never),
        LutError::Bits { got: 65 }
    ));
    let none = Output::Arithmetic { words: vec![] };
    assert!(matches!(
        refused(none, 1, &never),
        LutError::TableCount {
            expected: 1,
            got: 0
        }
    ));
    let sized = |generator, log_entries| {
        let (mut ot, _) = ideal_pair(1);
        let mut ch = volvelle_net::testing::scripted(Role::Client, vec![]);
        let shape = Shape {
            log_entries,
            ..shape(Output::Xor)
        };
        Lookups::prepare(&mut ch, &mut ot, generator, &shape, 1)
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        sized(crate::Generator::Doubling, 13),
        "protocol doubling takes tables of 2^1 to 2^12 entries, got 2^13"
    );
    assert_eq!(
        sized(crate::Generator::Tree, 7),
        "protocol tree takes tables of 2^8 to 2^20 entries, got 2^7"
    );
    let run = |output, index: &'static [u64], tables: Vec<Table>| {
        refused(output, 2, &move |p, ch| {
            p.lookup(ch, index, &tables).unwrap_err()
        })
    };
    let word = || Output::word(8);
    assert!(matches!(
        run(word(), &[1], good.clone()),
        LutError::BatchLength {
            expected: 2,
            got: 1
        }
    ));
    assert!(matches!(
        run(word(), &[1, 2], vec![]),
        LutError::TableCount {
            expected: 1,
            got: 0
        }
    ));
    assert!(matches!(
        run(word(), &[1, 2], words(3, &[9], 1)),
        LutError::TableBits {
            table: 0,
            expected: 8,
            got: 9
        }
    ));
    assert!(matches!(
        run(word(), &[1, 2], words(4, &[8], 1)),
        LutError::TableEntries {
            table: 0,
            expected: 8,
            got: 16
        }
    ));
    assert!(matches!(
        run(Output::Xor, &[1, 2], good.clone()),
        LutError::OutputKind { .. }
    ));
    let xor = refused(word(), 2, &|p, ch| {
        p.lookup_xor(ch, &[1, 2], &good).unwrap_err()
    });
    assert!(matches!(xor, LutError::OutputKind { .. }));
    let none = refused(Output::Xor, 2, &|p, ch| {
        p.lookup_bits(ch, &[1, 2], &[]).unwrap_err()
    });
    assert!(matches!(none, LutError::TableCount { .. }));
}

#[test]
fn one_round_refuses_what_does_not_fit() {
    let run = |shape: Shape, index: &[u64], tables: &[Table]| {
        let (mut a, mut b) = ideal_pair(1);
        let one = |ch: &mut Channel, ot: &mut Ot| {
            OneRound::prepare(ch, ot, &shape, 2)
                .and_then(|prepared| prepared.lookup(ch, index, tables))
                .unwrap_err()
        };
        let (a, b, _) = run_pair_recorded(|ch| one(ch, &mut a), |ch| one(ch, &mut b));
        assert_eq!(a.to_string(), b.to_string());
        a
    };
    let shape = |log_entries, output| Shape {
        log_entries,
        index: Index::Arithmetic,
        output,
    };
    let word = || Output::word(8);
    assert!(matches!(
        run(shape(3, Output::Xor), &[0; 2], &[]),
        LutError::OutputKind { .. }
    ));
    assert!(matches!(
        run(shape(17, word()), &[0; 2], &[]),
        LutError::Size {
            protocol: "one-round",
            min: 1,
            max: 16,
            got: 17
        }
    ));
    assert!(matches!(
        run(shape(3, word()), &[0; 3], &words(3, &[8], 1)),
        LutError::BatchLength {
            expected: 2,
            got: 3
        }
    ));
    assert!(matches!(
        run(shape(3, word()), &[0; 2], &words(3, &[8, 8], 1)),
        LutError::TableCount {
            expected: 1,
            got: 2
        }
    ));
    assert!(matches!(
        run(shape(3, word()), &[0; 2], &words(4, &[8], 1)),
        LutError::TableEntries { .. }
    ));
}

#[test]
fn tables_are_checked() {
    assert!(matches!(
        Table::new(8, vec![0; 6]),
        Err(LutError::Entries { got: 6 })
    ));
    assert!(matches!(
        Table::new(8, vec![0; 1]),
        Err(LutError::Entries { got: 1 })
    ));
    assert!(matches!(
        Table::new(8, vec![0; 1 << 21]),
        Err(LutError::Entries { got: 0x20_0000 })
    ));
    assert!(matches!(
        Table::new(0, vec![0; 2]),
        Err(LutError::Bits { got: 0 })
    ));
    assert!(matches!(
        Table::new(4, vec![15, 16]),
        Err(LutError::EntryTooWide {
            position: 1,
            bits: 4
        })
    ));
    assert!(matches!(
        Table::from_fn(21, 4, |i| i),
        Err(LutError::LogEntries { got: 21 })
    ));
    assert_eq!(
        Table::from_fn(3, 2, |i| i).unwrap().entries(),
        [0, 1, 2, 3, 0, 1, 2, 3]
    );
    assert!(BitTable::from_fn(0, |_| true).is_err());
    assert!(BitTable::new(BitVec::zeros(12)).is_err());
    assert_eq!("splut".parse::<Protocol>().unwrap(), Protocol::SpLut);
    assert!("rotl".parse::<Protocol>().is_err());
}
