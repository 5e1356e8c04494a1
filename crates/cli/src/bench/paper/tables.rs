//! The paper's tables, filled in.

use volvelle_lut::Protocol;
use volvelle_lut::plan::Objective;

use super::Section;
use super::case::{Case, Key, Kind, LINKS};
use super::measure::Measurements;
use super::published::{self, ARITHMETIC_WORDS, ENTRIES, Published, Row, TABLE_3_WORDS, TABLE_10};

use super::cases::{
    BOOLEAN_WORDS, LAN, LOOPBACK, MAIN_ENTRIES, TABLE_11_WORD, WAN, arithmetic, boolean, row_kind,
    table_10_batches,
};

/// All tables and the figure.
pub fn sections(done: &Measurements) -> Vec<Section> {
    vec![
        table_3(done),
        table_5(done),
        table_6(done),
        table_7(done),
        figure_13(done),
        table_10(done),
        table_11(done),
    ]
}

/// The case of a protocol in a session.
pub fn find(done: &Measurements, link: usize, kind: Kind, protocol: Protocol) -> Option<&Case> {
    done.get(&Key {
        link,
        kind,
        protocol,
        once: None,
    })
}

/// The case of what `auto` stands for.
pub fn find_auto(done: &Measurements, link: usize, kind: Kind) -> Option<&Case> {
    let protocol = done.auto(link, kind, Objective::default(), None)?;
    find(done, link, kind, protocol)
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1e5 => format!("{v:.2e}"),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

fn missing() -> String {
    "–".to_owned()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

/// Total, online, preprocessing.
fn phases(total: f64, online: f64, prep: f64) -> [String; 3] {
    [number(total), number(online), number(prep)]
}

fn published_row(row: &Row) -> Vec<String> {
    let mut cells = vec![
        row.entries.to_string(),
        row.word.to_string(),
        format!("{}, paper", row.protocol.name()),
    ];
    for phase in [row.bits, row.lan, row.wan] {
        cells.extend(phases(phase.prep + phase.online, phase.online, phase.prep));
    }
    cells.push(missing());
    cells
}

/// Cells of one protocol here, by links; bits from whichever link there is.
fn own_row(kind: Kind, name: String, cases: [Option<&Case>; 3]) -> Vec<String> {
    let mut cells = vec![kind.entries.to_string(), kind.word.to_string(), name];
    match cases.iter().flatten().next() {
        Some(case) => cells.extend(phases(case.total().bits, case.online.bits, case.prep.bits)),
        None => cells.extend([missing(), missing(), missing()]),
    }
    for case in &cases[..2] {
        match case {
            Some(case) => cells.extend(phases(case.total().us, case.online.us, case.prep.us)),
            None => cells.extend([missing(), missing(), missing()]),
        }
    }
    cells.push(cases[LOOPBACK].map_or_else(missing, |case| {
        let [total, online, prep] = phases(case.total().us, case.online.us, case.prep.us);
        format!("{total} / {online} / {prep}")
    }));
    cells
}

const PHASES: [&str; 13] = [
    "n",
    "l",
    "protocol",
    "bits: total",
    "online",
    "prep.",
    "LAN µs: total",
    "online",
    "prep.",
    "WAN µs: total",
    "online",
    "prep.",
    "loopback µs: total / online / prep.",
];

/// The paper's rows of some sizes, ours below each.
fn by_size(
    done: &Measurements,
    rows: &[Row],
    words: &[u32],
    kind: fn(u32, u32) -> Kind,
) -> Vec<Vec<String>> {
    let mut cells = Vec::new();
    for n in MAIN_ENTRIES {
        for &word in words {
            let kind = kind(n, word);
            for row in rows.iter().filter(|r| (r.entries, r.word) == (n, word)) {
                cells.push(published_row(row));
                if let Some(protocol) = row.protocol.here() {
                    let name = format!("{}, here", row.protocol.name());
                    let found = [LAN, WAN, LOOPBACK].map(|l| find(done, l, kind, protocol));
                    cells.push(own_row(kind, name, found));
                }
            }
            let autos = [LAN, WAN, LOOPBACK].map(|link| find_auto(done, link, kind));
            let mut chosen: Vec<&str> = autos
                .iter()
                .flatten()
                .map(|case| case.key.protocol.name())
                .collect();
            chosen.dedup();
            cells.push(own_row(
                kind,
                format!("**auto ({})**", chosen.join(", ")),
                autos,
            ));
        }
    }
    cells
}

fn table_5(done: &Measurements) -> Section {
    let words = done.effort().some(&ARITHMETIC_WORDS);
    Section {
        title: "Table 5: arithmetic lookup".to_owned(),
        note: batches(done, false),
        header: names(&PHASES),
        rows: by_size(done, &published::table_5(), &words, arithmetic),
    }
}

fn table_7(done: &Measurements) -> Section {
    let words = done.effort().some(&BOOLEAN_WORDS);
    let mut note = batches(done, true);
    for published in [Published::Flute, Published::FlutePlus] {
        if published.here().is_none() {
            note += &format!(" {} is not in this repository.", published.name());
        }
    }
    Section {
        title: "Table 7: boolean lookup".to_owned(),
        note,
        header: names(&PHASES),
        rows: by_size(done, &published::table_7(), &words, boolean),
    }
}

/// Which cases were run with fewer lookups.
fn batches(done: &Measurements, xor: bool) -> String {
    let full = done.effort().batch;
    let smaller: Vec<String> = done
        .cases()
        .filter(|case| case.key.kind.xor == xor && case.key.once.is_none() && case.batch < full)
        .map(|case| {
            format!(
                "{} {} n={} l={}: {}",
                LINKS[case.key.link].0,
                case.key.protocol,
                case.key.kind.entries,
                case.key.kind.word,
                case.batch
            )
        })
        .collect();
    if smaller.is_empty() {
        return format!("Batch {full}.");
    }
    format!(
        "Batch {full}, but fewer lookups for {}.",
        smaller.join("; ")
    )
}

fn table_3(done: &Measurements) -> Section {
    let words = done.effort().some(&TABLE_3_WORDS);
    let sizes = done.effort().some(&ENTRIES);
    let mut header = names(&["n"]);
    for word in &words {
        header.extend([
            format!("l={word}, paper"),
            "ROTL here".to_owned(),
            "auto".to_owned(),
        ]);
    }
    let bits = |kind, protocol: Option<Protocol>| {
        protocol
            .and_then(|protocol| find(done, LOOPBACK, kind, protocol))
            .map(|case| case.total().bits)
    };
    let rows = sizes.iter().map(|&n| {
        let mut cells = vec![n.to_string()];
        for &word in &words {
            let kind = arithmetic(n, word);
            let place = |list: &[u32], value| list.iter().position(|&v| v == value);
            let paper = place(&ENTRIES, n)
                .zip(place(&TABLE_3_WORDS, word))
                .map(|(row, column)| published::TABLE_3[row][column]);
            let splut = bits(kind, Published::SpLut.here());
            let over = |own: Option<f64>| match (splut, own) {
                (Some(splut), Some(own)) => number(splut / own),
                _ => missing(),
            };
            let auto = find_auto(done, LOOPBACK, kind).map(|case| case.total().bits);
            cells.extend([
                paper.map_or_else(missing, number),
                over(bits(kind, Published::Rotl.here())),
                over(auto),
            ]);
        }
        cells
    });
    Section {
        title: "Table 3: total communication of SP-LUT over that of the others".to_owned(),
        note: "Above 1, the other sends less than SP-LUT; each against the SP-LUT of the same implementation. Words of 128 bits are two tables of 64 here. \
               The paper's Table 3 leaves out the n bits of ROTL's message that its Table 5 counts."
            .to_owned(),
        rows: rows.collect(),
        header,
    }
}

fn table_6(done: &Measurements) -> Section {
    let words = done.effort().some(&ARITHMETIC_WORDS);
    let sizes = done.effort().some(&ENTRIES);
    let mut header = names(&["link", "n"]);
    for word in &words {
        header.extend([
            format!("l={word}, paper"),
            "ROTL here".to_owned(),
            "auto".to_owned(),
        ]);
    }
    let mut rows = Vec::new();
    for (link, paper) in [
        (LAN, &published::TABLE_6_LAN),
        (WAN, &published::TABLE_6_WAN),
    ] {
        for &n in &sizes {
            let mut cells = vec![LINKS[link].0.to_owned(), n.to_string()];
            for &word in &words {
                let kind = arithmetic(n, word);
                let online = |protocol: Option<Protocol>| {
                    protocol
                        .and_then(|protocol| find(done, link, kind, protocol))
                        .map(|case| case.online.us)
                };
                let splut = online(Published::SpLut.here());
                let over = |own: Option<f64>| match (splut, own) {
                    (Some(splut), Some(own)) => number(splut / own),
                    _ => missing(),
                };
                let place = |list: &[u32], value| list.iter().position(|&v| v == value);
                let paper = place(&ENTRIES, n)
                    .zip(place(&ARITHMETIC_WORDS, word))
                    .map(|(row, column)| paper[row][column]);
                let auto = find_auto(done, link, kind).map(|case| case.online.us);
                cells.extend([
                    paper.map_or_else(missing, number),
                    over(online(Published::Rotl.here())),
                    over(auto),
                ]);
            }
            rows.push(cells);
        }
    }
    Section {
        title: "Table 6: online time of SP-LUT over that of the others".to_owned(),
        note: "Above 1, the other answers sooner than SP-LUT; each against the SP-LUT of the same implementation.".to_owned(),
        header,
        rows,
    }
}

fn figure_13(done: &Measurements) -> Section {
    let words = done.effort().some(&BOOLEAN_WORDS);
    let paper = published::table_7();
    let mut rows = Vec::new();
    for n in MAIN_ENTRIES {
        for &word in &words {
            let online = |published: Published| {
                paper
                    .iter()
                    .find(|r| (r.protocol, r.entries, r.word) == (published, n, word))
                    .map(|row| row.lan.online)
            };
            let here = |published: Published| {
                find(done, LAN, boolean(n, word), published.here()?).map(|case| case.online.us)
            };
            let ratio = |slow: Option<f64>, fast: Option<f64>| match (slow, fast) {
                (Some(slow), Some(fast)) => format!("{:.0}×", slow / fast),
                _ => missing(),
            };
            let show = |value: Option<f64>| value.map_or_else(missing, number);
            let (flute, plus) = (Published::Flute, Published::FlutePlus);
            let auto = find_auto(done, LAN, boolean(n, word)).map(|case| case.online.us);
            rows.push(vec![
                n.to_string(),
                word.to_string(),
                show(online(flute)),
                show(online(plus)),
                ratio(online(flute), online(plus)),
                show(here(flute)),
                show(here(plus)),
                ratio(here(flute), here(plus)),
                show(auto),
            ]);
        }
    }
    Section {
        title: "Figure 13: online time of FLUTE and FLUTE+, LAN".to_owned(),
        note: "Microseconds a lookup; the HTML report has the plot.".to_owned(),
        header: names(&[
            "n",
            "l",
            "FLUTE, paper",
            "FLUTE+, paper",
            "ratio",
            "FLUTE, here",
            "FLUTE+, here",
            "ratio",
            "auto, here",
        ]),
        rows,
    }
}

fn table_10(done: &Measurements) -> Section {
    let batches = table_10_batches(done);
    let mut header = names(&["n", "l", "protocol"]);
    for what in ["bits", "LAN µs", "WAN µs"] {
        header.extend(batches.map(|batch| format!("{what}, b={batch}")));
    }
    let mut rows = Vec::new();
    for row in &TABLE_10 {
        let kind = row_kind(row.protocol, row.entries, row.word);
        let case = |link, batch, auto: bool| {
            let protocol = if auto {
                done.auto(link, kind, Objective::default(), Some(batch))?
            } else {
                row.protocol.here()?
            };
            done.get(&Key {
                link,
                kind,
                protocol,
                once: Some(batch),
            })
        };
        if case(LAN, batches[0], true).is_none() {
            continue;
        }
        let first = |name: String| vec![row.entries.to_string(), row.word.to_string(), name];
        let mut cells = first(format!("{}, paper", row.protocol.name()));
        for figures in [row.bits, row.lan, row.wan] {
            cells.extend(figures.map(number));
        }
        rows.push(cells);
        for auto in [false, true] {
            if !auto && row.protocol.here().is_none() {
                continue;
            }
            let cell = |link, batch, of: fn(&Case) -> f64| {
                case(link, batch, auto).map_or_else(missing, |case| {
                    let value = number(of(case));
                    if auto {
                        format!("{value} ({})", case.key.protocol)
                    } else {
                        value
                    }
                })
            };
            let mut cells = first(if auto {
                "**auto**".to_owned()
            } else {
                format!("{}, here", row.protocol.name())
            });
            cells.extend(batches.map(|batch| cell(LAN, batch, |case| case.total().bits)));
            cells.extend(batches.map(|batch| cell(LAN, batch, |case| case.total().us)));
            cells.extend(batches.map(|batch| cell(WAN, batch, |case| case.total().us)));
            rows.push(cells);
        }
    }
    Section {
        title: "Table 10: batches of different sizes, set-up included".to_owned(),
        note: "A session of its own for every case, with the engine that suits a session of that length; base OTs and all else that \
               comes first are counted. Bits are those of the session on the LAN."
            .to_owned(),
        header,
        rows,
    }
}

fn table_11(done: &Measurements) -> Section {
    let rotl = published::table_5();
    let total = |of: published::Phases| number(of.prep + of.online);
    let mut rows = Vec::new();
    for (n, bits, lan, wan) in published::SCALABLE_MPC {
        let kind = arithmetic(n, TABLE_11_WORD);
        rows.push(vec![
            n.to_string(),
            "Scalable MPC, paper".to_owned(),
            number(bits),
            number(lan),
            number(wan),
        ]);
        let paper = rotl
            .iter()
            .find(|r| (r.protocol, r.entries, r.word) == (Published::Rotl, n, TABLE_11_WORD));
        rows.extend(paper.map(|row| {
            vec![
                n.to_string(),
                "ROTL, paper".to_owned(),
                total(row.bits),
                total(row.lan),
                total(row.wan),
            ]
        }));
        let here = |name: String, find: &dyn Fn(usize) -> Option<Case>| {
            let cell = |link, of: fn(&Case) -> f64| {
                find(link).map_or_else(missing, |case| number(of(&case)))
            };
            vec![
                n.to_string(),
                name,
                cell(LAN, |case| case.total().bits),
                cell(LAN, |case| case.total().us),
                cell(WAN, |case| case.total().us),
            ]
        };
        let has = |link: usize| find_auto(done, link, kind).cloned();
        if has(LAN).is_none() {
            continue;
        }
        if let Some(protocol) = Published::Rotl.here() {
            let find = |link: usize| find(done, link, kind, protocol).cloned();
            rows.push(here("ROTL, here".to_owned(), &find));
        }
        rows.push(here("**auto**".to_owned(), &has));
    }
    Section {
        title: "Table 11: other protocols, 32 bits, totals".to_owned(),
        note: "Scalable MPC (homomorphic encryption) is not in this repository, nor is MAESTRO, whose rows in the paper (4 and 8 bits) are of \
               three parties and are left out."
            .to_owned(),
        header: names(&["n", "protocol", "bits", "LAN µs", "WAN µs"]),
        rows,
    }
}
