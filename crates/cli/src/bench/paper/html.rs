//! The report as one HTML file: tables, and plots as inline SVG. No scripts, nothing fetched.

use plotters::prelude::*;

use super::Section;
use super::case::{Case, Kind, LINKS};
use super::cases::MAIN_ENTRIES;
use super::evaluate::ratio;
use super::measure::Measurements;
use super::published::{self, Published, Row};
use super::tables::{find, find_auto};
use crate::error::CliError;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}\
table{border-collapse:collapse;font-size:13px;margin:1rem 0}th,td{border:1px solid #ccc;padding:2px 8px;text-align:right}\
th{background:#f2f2f2}td:nth-child(3),th:nth-child(3){text-align:left}svg{max-width:100%;height:auto}\
figure{margin:1rem 0;display:inline-block}";

/// The page.
pub fn page(
    head: &[String],
    sections: &[Section],
    done: &Measurements,
) -> Result<String, CliError> {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Volvelle: the ROTL paper's lookup tables</title>\
         <style>{STYLE}</style></head><body>\n<h1>The ROTL paper's lookup tables, measured again</h1>\n"
    );
    for paragraph in head {
        html += &format!("<p>{}</p>\n", escape(paragraph));
    }
    for plot in plots(done)? {
        html += &format!("<figure>{plot}</figure>\n");
    }
    for section in sections {
        html += &table(section);
    }
    Ok(html + "</body></html>\n")
}

fn table(section: &Section) -> String {
    let mut html = format!("<h2>{}</h2>\n", escape(&section.title));
    if !section.note.is_empty() {
        html += &format!("<p>{}</p>\n", escape(&section.note));
    }
    if section.rows.is_empty() {
        return html;
    }
    let row = |cells: &[String], tag: &str| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", bold(&escape(cell))))
            .collect();
        format!("<tr>{}</tr>\n", cells.concat())
    };
    html += "<table>\n";
    html += &row(&section.header, "th");
    for cells in &section.rows {
        html += &row(cells, "td");
    }
    html + "</table>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Markdown's `**…**` around a whole cell.
fn bold(cell: &str) -> String {
    match cell.strip_prefix("**").and_then(|c| c.strip_suffix("**")) {
        Some(inner) => format!("<b>{inner}</b>"),
        None => cell.to_owned(),
    }
}

/// A line of a plot: its name and its points.
type Series = (String, Vec<(f64, f64)>);

fn plots(done: &Measurements) -> Result<Vec<String>, CliError> {
    let mut plots = Vec::new();
    for (place, (link, _)) in LINKS.iter().enumerate() {
        plots.push(lines(
            &format!("Table 5, l = 64: total time, {link}"),
            "µs a lookup",
            &arithmetic_series(done, place, |row, case| match (row, case) {
                (Some(row), _) => match place {
                    0 => Some(row.lan.prep + row.lan.online),
                    1 => Some(row.wan.prep + row.wan.online),
                    _ => None,
                },
                (_, Some(case)) => Some(case.total().us),
                _ => None,
            }),
        )?);
    }
    plots.push(lines(
        "Table 5, l = 64: total communication",
        "bits a lookup",
        &arithmetic_series(done, 0, |row, case| match (row, case) {
            (Some(row), _) => Some(row.bits.prep + row.bits.online),
            (_, Some(case)) => Some(case.total().bits),
            _ => None,
        }),
    )?);
    plots.push(lines(
        "Figure 13: online time, LAN, l = 8",
        "µs a lookup",
        &figure_13(done),
    )?);
    plots.push(predicted(done)?);
    Ok(plots)
}

/// The curves of Table 5, by entries; `of` reads the paper's row or our case.
fn arithmetic_series(
    done: &Measurements,
    link: usize,
    of: impl Fn(Option<&Row>, Option<&Case>) -> Option<f64>,
) -> Vec<Series> {
    let paper = published::table_5();
    let kind = |entries| Kind {
        entries,
        word: 64,
        xor: false,
    };
    let mut series = Vec::new();
    for published in [Published::SpLut, Published::Rotl] {
        let points = paper
            .iter()
            .filter(|row| row.protocol == published && row.word == 64)
            .filter_map(|row| Some((f64::from(row.entries), of(Some(row), None)?)));
        series.push((format!("{}, paper", published.name()), points.collect()));
        let own = MAIN_ENTRIES.iter().filter_map(|&n| {
            let case = find(done, link, kind(n), published.here()?)?;
            Some((f64::from(n), of(None, Some(case))?))
        });
        series.push((format!("{}, here", published.name()), own.collect()));
    }
    let auto = MAIN_ENTRIES.iter().filter_map(|&n| {
        let case = find_auto(done, link, kind(n))?;
        Some((f64::from(n), of(None, Some(case))?))
    });
    series.push(("auto, here".to_owned(), auto.collect()));
    series
}

fn figure_13(done: &Measurements) -> Vec<Series> {
    let paper = published::table_7();
    let kind = |entries| Kind {
        entries,
        word: 8,
        xor: true,
    };
    let mut series = Vec::new();
    for published in [Published::Flute, Published::FlutePlus] {
        let points = paper
            .iter()
            .filter(|row| row.protocol == published && row.word == 8)
            .map(|row| (f64::from(row.entries), row.lan.online));
        series.push((format!("{}, paper", published.name()), points.collect()));
        let own = MAIN_ENTRIES.iter().filter_map(|&n| {
            let case = find(done, 0, kind(n), published.here()?)?;
            Some((f64::from(n), case.online.us))
        });
        series.push((format!("{}, here", published.name()), own.collect()));
    }
    let auto = MAIN_ENTRIES.iter().filter_map(|&n| {
        let case = find_auto(done, 0, kind(n))?;
        Some((f64::from(n), case.online.us))
    });
    series.push(("auto, here".to_owned(), auto.collect()));
    series
}

/// Lowest and highest of some values, with room around them.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| *v > 0.0)
        .fold((f64::MAX, 0.0f64), |(low, high), v| {
            (low.min(v), high.max(v))
        });
    if low > high {
        return (0.1, 10.0);
    }
    (low / 1.5, high * 1.5)
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Plot(error.to_string())
}

/// Curves over the number of entries, both axes logarithmic.
fn lines(title: &str, y: &str, series: &[Series]) -> Result<String, CliError> {
    let all = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let (x_range, y_range) = (range(all().map(|p| p.0)), range(all().map(|p| p.1)));
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (560, 380)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(
                (x_range.0..x_range.1).log_scale(),
                (y_range.0..y_range.1).log_scale(),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc("entries of the table")
            .y_desc(y)
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for (place, (name, points)) in series.iter().enumerate() {
            if points.is_empty() {
                continue;
            }
            let colour = Palette99::pick(place).to_rgba();
            let width = if name.starts_with("auto") { 3 } else { 1 };
            chart
                .draw_series(LineSeries::new(
                    points.iter().copied(),
                    colour.stroke_width(width),
                ))
                .map_err(failed)?
                .label(name.as_str())
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(width))
                });
            let dots = points.iter().map(|&p| Circle::new(p, 3, colour.filled()));
            chart.draw_series(dots).map_err(failed)?;
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .position(SeriesLabelPosition::UpperLeft)
            .draw()
            .map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(svg)
}

/// Predicted over measured time, a dot a case, by measured time.
fn predicted(done: &Measurements) -> Result<String, CliError> {
    let points = || done.cases().map(|case| (case.total().us, ratio(case)));
    let x_range = range(points().map(|p| p.0));
    let y_range = range(points().map(|p| p.1).chain([0.4, 2.5]));
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (560, 380)).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Predicted over measured total time", ("sans-serif", 16))
            .margin(10)
            .x_label_area_size(36)
            .y_label_area_size(56)
            .build_cartesian_2d(
                (x_range.0..x_range.1).log_scale(),
                (y_range.0..y_range.1).log_scale(),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc("measured, µs a lookup")
            .y_desc("predicted / measured")
            .light_line_style(WHITE)
            .draw()
            .map_err(failed)?;
        for at in [1.0 / 1.5, 1.0, 1.5] {
            let line = [(x_range.0, at), (x_range.1, at)];
            chart
                .draw_series(LineSeries::new(line, BLACK.mix(0.4)))
                .map_err(failed)?;
        }
        for (place, (name, _)) in LINKS.iter().enumerate() {
            let colour = Palette99::pick(place).to_rgba();
            let dots = done
                .cases()
                .filter(|case| case.key.link == place)
                .map(|case| Circle::new((case.total().us, ratio(case)), 3, colour.filled()));
            chart
                .draw_series(dots)
                .map_err(failed)?
                .label(*name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 3, colour.filled()));
        }
        chart
            .configure_series_labels()
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(failed)?;
        root.present().map_err(failed)?;
    }
    Ok(svg)
}
