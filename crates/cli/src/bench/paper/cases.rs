//! What is measured for the tables of the paper.

use volvelle_lut::Protocol;
use volvelle_lut::plan::Objective;

use super::case::{Effort, Key, Kind, LINKS};
use super::measure::Measurements;
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
    let arithmetic = [Published::SpLut, Published::Rotl];
    let boolean = [Published::Flute, Published::FlutePlus];
    for &link in done.effort().links {
        done.time_machine(|_, _| true)?;
        let mut keys = Vec::new();
        for kind in arithmetic_kinds(done, link) {
            keys.extend(session(done, link, kind, &arithmetic)?);
        }
        for kind in boolean_kinds(done) {
            keys.extend(session(done, link, kind, &boolean)?);
        }
        done.measure(keys, LINKS[link].0)?;
    }
    done.time_machine(|_, _| true)?;
    let keys = table_10_keys(done)?;
    done.measure(keys, "Table 10")
}

/// Of Tables 5, 3, 6 and 11.
fn arithmetic_kinds(done: &Measurements, link: usize) -> Vec<Kind> {
    let effort = done.effort();
    let mut kinds = grid(&MAIN_ENTRIES, &effort.some(&ARITHMETIC_WORDS), arithmetic);
    let sizes = effort.some(&ENTRIES);
    if link == LOOPBACK {
        // Table 3 is about bits alone, for which any link will do.
        kinds.extend(grid(&sizes, &effort.some(&TABLE_3_WORDS), arithmetic));
    } else {
        kinds.extend(grid(&sizes, &effort.some(&ARITHMETIC_WORDS), arithmetic));
        if effort.batch > Effort::SMOKE.batch {
            kinds.extend(grid(&MAIN_ENTRIES, &[TABLE_11_WORD], arithmetic));
        }
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Of Table 7 and Figure 13.
fn boolean_kinds(done: &Measurements) -> Vec<Kind> {
    grid(&MAIN_ENTRIES, &done.effort().some(&BOOLEAN_WORDS), boolean)
}

fn grid(sizes: &[u32], words: &[u32], kind: fn(u32, u32) -> Kind) -> Vec<Kind> {
    let kinds = words
        .iter()
        .flat_map(|&word| sizes.iter().map(move |&n| kind(n, word)));
    kinds.collect()
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
) -> Result<Vec<Key>, CliError> {
    let demand = kind.demand(done.effort().batch)?;
    let planner = done.planner(link).objective(Objective::Total);
    let ways = planner.plan(&demand)?.ways;
    let best = ways.iter().map(|way| way.total.us).fold(f64::MAX, f64::min);
    let rivals = ways
        .iter()
        .filter(|way| way.total.us <= done.effort().rivals * best)
        .map(|way| way.protocol);
    let published = of_paper.iter().filter_map(|published| published.here());
    let mut all: Vec<Protocol> = published.chain(rivals).collect();
    all.push(done.choose(link, kind, Objective::default(), None)?);
    let key = |protocol| Key {
        link,
        kind,
        protocol,
        once: None,
    };
    Ok(all.into_iter().map(key).collect())
}

pub fn table_10_batches(done: &Measurements) -> [u32; 3] {
    BATCHES.map(|batch| batch.min(done.effort().batch as u32))
}

/// The paper's protocol, if it is here, and `auto`, for each batch and link of each row.
fn table_10_keys(done: &mut Measurements) -> Result<Vec<Key>, CliError> {
    let mut keys = Vec::new();
    let rows: Vec<usize> = done.effort().some(&[0, 1, 2, 3]);
    for (place, row) in TABLE_10.iter().enumerate() {
        if !rows.contains(&(place % 4)) {
            continue;
        }
        let kind = row_kind(row.protocol, row.entries, row.word);
        for link in emulated_links(done) {
            for batch in table_10_batches(done) {
                let auto = done.choose(link, kind, Objective::default(), Some(batch))?;
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
