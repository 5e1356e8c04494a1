//! What is measured for the tables of the paper.

use volvelle_lut::Protocol;
use volvelle_lut::plan::Objective;

use super::measure::{Effort, Key, Kind, Measurements};
use super::published::{ARITHMETIC_WORDS, BATCHES, ENTRIES, Published, TABLE_3_WORDS, TABLE_10};
use crate::error::CliError;

pub const LAN: usize = 0;
pub const WAN: usize = 1;
pub const LOOPBACK: usize = 2;

/// Sizes of Tables 5 and 7.
pub const MAIN_ENTRIES: [u32; 4] = [4, 16, 64, 256];
/// The width of Table 11.
pub const TABLE_11_WORD: u32 = 32;
/// Widths of Table 7.
pub const BOOLEAN_WORDS: [u32; 4] = [1, 2, 4, 8];

impl Published {
    /// The protocol here, where there is one.
    pub fn here(self) -> Option<Protocol> {
        let name = match self {
            Self::SpLut => "splut",
            Self::Rotl => "rotation",
            Self::Flute => "flute",
            Self::FlutePlus => "flute+",
        };
        name.parse().ok()
    }
}

pub fn arithmetic(entries: u32, word: u32) -> Kind {
    Kind {
        entries,
        word,
        xor: false,
    }
}

pub fn boolean(entries: u32, word: u32) -> Kind {
    Kind {
        entries,
        word,
        xor: true,
    }
}

/// Measures all that the tables show, link by link.
///
/// # Errors
/// If a protocol fails.
pub fn measure(done: &mut Measurements) -> Result<(), CliError> {
    let effort = *done.effort();
    let (words, few) = (effort.some(&ARITHMETIC_WORDS), effort.some(&BOOLEAN_WORDS));
    for &link in effort.links {
        let arithmetic_kinds = words
            .iter()
            .flat_map(|&word| MAIN_ENTRIES.map(|n| arithmetic(n, word)));
        for kind in arithmetic_kinds {
            session(done, link, kind, &[Published::SpLut, Published::Rotl])?;
        }
        let boolean_kinds = few
            .iter()
            .flat_map(|&word| MAIN_ENTRIES.map(|n| boolean(n, word)));
        for kind in boolean_kinds {
            session(done, link, kind, &[Published::Flute, Published::FlutePlus])?;
        }
    }
    // Table 3 is about bits alone, for which any link will do; Table 6 about the sizes between.
    for kind in table_3_kinds(done) {
        session(done, LOOPBACK, kind, &[Published::SpLut, Published::Rotl])?;
    }
    for link in emulated_links(done) {
        for kind in table_6_kinds(done) {
            session(done, link, kind, &[Published::SpLut, Published::Rotl])?;
        }
    }
    if effort.batch > Effort::SMOKE.batch {
        for link in emulated_links(done) {
            for n in MAIN_ENTRIES {
                session(done, link, arithmetic(n, TABLE_11_WORD), &[Published::Rotl])?;
            }
        }
    }
    for key in table_10_keys(done)? {
        done.measure(key)?;
    }
    Ok(())
}

/// The links of the paper's tables.
fn emulated_links(done: &Measurements) -> Vec<usize> {
    let links = done.effort().links.iter().copied();
    links.filter(|link| *link != LOOPBACK).collect()
}

/// The paper's protocols, what `auto` stands for, and all that might be better.
fn session(
    done: &mut Measurements,
    link: usize,
    kind: Kind,
    of_paper: &[Published],
) -> Result<(), CliError> {
    let demand = kind.demand(done.effort().batch)?;
    let ways = done
        .planner(link)
        .objective(Objective::Total)
        .plan(&demand)?
        .ways;
    let best = ways.iter().map(|way| way.total.us).fold(f64::MAX, f64::min);
    let rivals = ways
        .iter()
        .filter(|way| way.total.us <= done.effort().rivals * best)
        .map(|way| way.protocol);
    let auto = done.auto(link, kind, Objective::default(), None)?;
    let all: Vec<Protocol> = of_paper
        .iter()
        .filter_map(|published| published.here())
        .chain([auto])
        .chain(rivals)
        .collect();
    for protocol in all {
        done.measure(Key {
            link,
            kind,
            protocol,
            once: None,
        })?;
    }
    Ok(())
}

fn table_3_kinds(done: &Measurements) -> Vec<Kind> {
    let words = done.effort().some(&TABLE_3_WORDS);
    let sizes = done.effort().some(&ENTRIES);
    words
        .iter()
        .flat_map(|&word| sizes.iter().map(move |&n| arithmetic(n, word)))
        .collect()
}

fn table_6_kinds(done: &Measurements) -> Vec<Kind> {
    let words = done.effort().some(&ARITHMETIC_WORDS);
    let sizes = done.effort().some(&ENTRIES);
    words
        .iter()
        .flat_map(|&word| sizes.iter().map(move |&n| arithmetic(n, word)))
        .collect()
}

pub fn table_10_batches(done: &Measurements) -> [u32; 3] {
    BATCHES.map(|batch| batch.min(done.effort().batch as u32))
}

/// The paper's protocol, if it is here, and `auto`, for each batch and link of each row.
fn table_10_keys(done: &Measurements) -> Result<Vec<Key>, CliError> {
    let mut keys = Vec::new();
    let rows: Vec<usize> = done.effort().some(&[0, 1, 2, 3]);
    for (place, row) in TABLE_10.iter().enumerate() {
        if !rows.contains(&(place % 4)) {
            continue;
        }
        let kind = row_kind(row.protocol, row.entries, row.word);
        for link in emulated_links(done) {
            for batch in table_10_batches(done) {
                let auto = done.auto(link, kind, Objective::default(), Some(batch))?;
                for protocol in row.protocol.here().into_iter().chain([auto]) {
                    keys.push(Key {
                        link,
                        kind,
                        protocol,
                        once: Some(batch),
                    });
                }
            }
        }
    }
    Ok(keys)
}

pub fn row_kind(protocol: Published, entries: u32, word: u32) -> Kind {
    match protocol {
        Published::SpLut | Published::Rotl => arithmetic(entries, word),
        Published::Flute | Published::FlutePlus => boolean(entries, word),
    }
}
