//! How well the planner did: predicted against measured time, and its choice against the best measured.

use super::Section;
use super::case::{Case, Key, LINKS};
use super::measure::Measurements;
use super::runs::ChoiceMade;

/// A prediction this near is a good one.
const NEAR: f64 = 1.5;
/// A choice this near to the best is as good.
const AS_GOOD: f64 = 1.1;

/// How many times too much (or too little, below 1) was predicted.
pub fn ratio(case: &Case) -> f64 {
    case.predicted_us() / case.total().us.max(1e-9)
}

fn is_near(case: &Case) -> bool {
    (1.0 / NEAR..=NEAR).contains(&ratio(case))
}

fn percent(part: usize, all: usize) -> String {
    if all == 0 {
        return "–".to_owned();
    }
    format!(
        "{:.0} % ({part} of {all})",
        100.0 * part as f64 / all as f64
    )
}

/// Predicted over measured total time, by protocol and link.
pub fn predictions(done: &Measurements) -> Section {
    let mut rows = Vec::new();
    let row = |name: String, cases: &[&Case]| {
        let mut ratios: Vec<f64> = cases.iter().map(|case| ratio(case)).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * (ratios.len() - 1) as f64).round() as usize;
            format!("{:.2}", ratios[place])
        };
        let near = cases.iter().filter(|case| is_near(case)).count();
        vec![
            name,
            percent(near, cases.len()),
            at(0.05),
            at(0.5),
            at(0.95),
        ]
    };
    let all: Vec<&Case> = done.cases().collect();
    if all.is_empty() {
        return section("Predictions", String::new(), &[], rows);
    }
    rows.push(row("all cases".to_owned(), &all));
    let some = |name: &str, keep: &dyn Fn(&Key) -> bool| {
        let cases: Vec<&Case> = done.cases().filter(|case| keep(&case.key)).collect();
        (!cases.is_empty()).then(|| row(name.to_owned(), &cases))
    };
    for (place, (name, _)) in LINKS.iter().enumerate() {
        rows.extend(some(name, &|key| key.link == place && key.once.is_none()));
    }
    rows.extend(some("with set-up (Table 10)", &|key| key.once.is_some()));
    for protocol in volvelle_lut::Protocol::ALL {
        rows.extend(some(protocol.name(), &|key| key.protocol == protocol));
    }
    let bits = all.iter().filter(|case| {
        let measured = case.prep.bits + case.online.bits;
        (case.predicted.total.bits - measured).abs() <= 1e-6 * measured.max(1.0)
    });
    section(
        "Predicted against measured time",
        format!(
            "Predicted over measured total time: the share of cases within {NEAR} times, and the ratio's 5th, 50th and 95th \
             percentile. Predicted bits are the metered ones in {}.",
            percent(bits.count(), all.len())
        ),
        &["cases", "within 1.5×", "5 %", "median", "95 %"],
        rows,
    )
}

/// Cases in which several protocols were measured: was the planner's choice the fastest?
pub fn choices(done: &Measurements) -> Section {
    let (mut asked, mut good) = (0, 0);
    let mut rows = Vec::new();
    for ChoiceMade {
        link,
        kind,
        chosen,
        us,
    } in done.choices()
    {
        let (link, kind) = (*link, *kind);
        let cases: Vec<&Case> = done
            .cases()
            .filter(|case| (case.key.link, case.key.kind, case.key.once) == (link, kind, None))
            .collect();
        let batch = cases.iter().map(|case| case.batch).min().unwrap_or(0);
        let best = cases
            .iter()
            .min_by(|a, b| a.total().us.total_cmp(&b.total().us));
        let Some(best) = best.filter(|_| cases.len() > 1) else {
            continue;
        };
        asked += 1;
        if *us <= AS_GOOD * best.total().us {
            good += 1;
            continue;
        }
        let names: Vec<&str> = chosen.iter().map(|protocol| protocol.name()).collect();
        let phases = |case: &Case| {
            let (prep, online) = (case.predicted.prep.us, case.predicted.online.us);
            let measured = format!("{:.3} + {:.3}", case.prep.us, case.online.us);
            format!("{measured} (predicted {prep:.3} + {online:.3})")
        };
        let of_last = cases
            .iter()
            .find(|case| Some(&case.key.protocol) == chosen.last());
        rows.push(vec![
            LINKS[link].0.to_owned(),
            kind.entries.to_string(),
            kind.word.to_string(),
            if kind.xor { "boolean" } else { "arithmetic" }.to_owned(),
            batch.to_string(),
            format!("{} {us:.3}", names.join(", ")),
            of_last.map_or_else(String::new, |case| phases(case)),
            format!("{} {:.3}", best.key.protocol, best.total().us),
            phases(best),
        ]);
    }
    section(
        "The planner's choice against the best measured",
        format!(
            "By total time (`--objective total`), of the protocols measured in a case: the choice was within 10 % of the best in \
             {}.{}",
            percent(good, asked),
            if rows.is_empty() { "" } else { " The others:" }
        ),
        &[
            "link",
            "n",
            "l",
            "index",
            "batch",
            "chosen, µs",
            "phases",
            "best, µs",
            "phases",
        ],
        rows,
    )
}

fn section(title: &str, note: String, header: &[&str], rows: Vec<Vec<String>>) -> Section {
    Section {
        title: title.to_owned(),
        note,
        header: header.iter().map(|&name| name.to_owned()).collect(),
        rows,
    }
}
