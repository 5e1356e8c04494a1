//! `volvelle bench paper`: the lookup tables of the ROTL paper (PoPETs 2026) again, at the same sizes, batches and emulated links,
//! the paper's figures beside ours; and how well the planner predicted what was measured.
//!
//! Every lookup is checked. What the paper measures and this repository does not have is said where it is left out.

mod case;
mod cases;
mod evaluate;
mod html;
mod measure;
mod published;
mod runs;
mod sessions;
mod tables;

use std::path::Path;
use std::time::Instant;

use volvelle_lut::plan::Machine;

use self::case::{Case, Effort};
use self::measure::Measurements;
use crate::args::plan::BenchPaperArgs;
use crate::error::CliError;
use crate::report::print;

/// A table of the report.
pub struct Section {
    title: String,
    /// What is to be known to read it.
    note: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails, a result is wrong, or the report cannot be written.
pub fn run(args: &BenchPaperArgs) -> Result<(), CliError> {
    let start = Instant::now();
    let effort = match (args.smoke, args.quick) {
        (true, _) => Effort::SMOKE,
        (false, true) => Effort::QUICK,
        (false, false) => Effort::FULL,
    };
    // Timings of its own are next.
    let machine = match effort.timings {
        0 => Machine::this()?,
        _ => Machine::known(),
    };
    let mut done = Measurements::new(machine, effort);
    cases::measure(&mut done)?;
    let mut sections = tables::sections(&done);
    sections.push(evaluate::predictions(&done));
    sections.push(evaluate::choices(&done));
    let head = head(&done, start.elapsed().as_secs_f64());

    if args.json {
        for case in done.cases() {
            print(&serde_json::to_string(&case.report())?)?;
        }
    } else {
        print(&markdown(&head, &sections))?;
    }
    if let Some(folder) = &args.out {
        let json: Vec<_> = done.cases().map(Case::report).collect();
        write(folder, "paper.md", &markdown(&head, &sections))?;
        write(folder, "paper.json", &serde_json::to_string_pretty(&json)?)?;
        write(folder, "paper.html", &html::page(&head, &sections, &done)?)?;
    }
    let (checked, wrong) = done.checked();
    if wrong > 0 {
        return Err(CliError::Wrong { wrong, checked });
    }
    Ok(())
}

/// What the report begins with.
fn head(done: &Measurements, seconds: f64) -> Vec<String> {
    let (checked, wrong) = done.checked();
    vec![
        format!(
            "Both parties on one machine, a thread each: {}. {} cases in {seconds:.0} s; {checked} lookups checked, \
             {wrong} wrong.",
            done.machine().stamp(),
            done.cases().count(),
        ),
        format!(
            "Batches of up to {}{}; links emulated: LAN 3000 Mbit/s and 0.8 ms, WAN 100 Mbit/s and 50 ms round trip, loopback \
             not emulated. Times are those of the slower party, in microseconds a lookup; bits are both parties', and \
             preprocessing includes making the OTs ({}), each at what the median one took in the runs that make about as many. Set-up, a few tens of milliseconds once a session, is counted in Table 10 \
             alone.",
            done.effort().batch,
            if done.effort().batch < 100_000 { " (the paper: 100 000), so waiting weighs more than in the paper" } else { "" },
            done.engine_names(),
        ),
        "Rows \"paper\" are the paper's figures, from its authors' machines; \"here\" is the same protocol in this repository; \
         \"auto\" is what the planner chooses, its name in parentheses."
            .to_owned(),
    ]
}

fn markdown(head: &[String], sections: &[Section]) -> String {
    let mut text = vec!["# The ROTL paper's lookup tables, measured again".to_owned()];
    for paragraph in head {
        text.extend([String::new(), paragraph.clone()]);
    }
    for section in sections {
        text.extend([String::new(), format!("## {}", section.title)]);
        if !section.note.is_empty() {
            text.extend([String::new(), section.note.clone()]);
        }
        if section.rows.is_empty() {
            continue;
        }
        let row = |cells: &[String]| format!("| {} |", cells.join(" | "));
        text.extend([String::new(), row(&section.header)]);
        text.push(format!("|{}", "---|".repeat(section.header.len())));
        text.extend(section.rows.iter().map(|cells| row(cells)));
    }
    text.join("\n")
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), CliError> {
    let path = folder.join(name);
    let write = || {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, text)
    };
    write().map_err(|source| CliError::Report {
        path: path.clone(),
        source,
    })
}
