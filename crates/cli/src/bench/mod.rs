//! `volvelle bench`: what protocols cost, measured, with every result checked against plaintext.

pub mod choice;
pub mod compare;
pub mod dealer;
mod lanes;
pub mod lut;
mod making;
mod notes;
pub mod ot;
pub mod paper;
mod stored;
pub mod vectors;

use clap::ValueEnum;
use serde::{Serialize, Serializer};
use serde_json::Value;

use self::lanes::Lanes;
use self::stored::Rates;
use crate::args::{BenchArgs, OtEngine, RemoteArgs};
use crate::error::CliError;
use crate::report::{PerItem, Setup, bytes, forget_peak, peak_mib, print};

/// A case's parameters, in the order in which they are shown.
type Parameters = Vec<(&'static str, Value)>;

/// Runs a bench with the engine asked for, or with each.
fn each_engine(
    bench: &BenchArgs,
    run: impl Fn(BenchArgs) -> Result<(), CliError>,
) -> Result<(), CliError> {
    if bench.engine != OtEngine::All {
        return run(bench.clone());
    }
    for &engine in OtEngine::value_variants() {
        // `ferret` is one of the others under its usual name.
        if !matches!(engine, OtEngine::All | OtEngine::Auto | OtEngine::Ferret) {
            forget_peak();
            run(BenchArgs {
                engine,
                ..bench.clone()
            })?;
        }
    }
    Ok(())
}

/// One measured case: the line of JSON.
#[derive(Debug, Serialize)]
struct Case {
    #[serde(serialize_with = "as_map")]
    case: Parameters,
    prep: PerItem,
    online: PerItem,
    total: PerItem,
    setup: Setup,
    /// From nothing to the first 10 000 OTs, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    cold_ms: Option<f64>,
    /// How fast lookups went to a store and came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Rates>,
    /// The same µs as in `total`, of a first batch, which touches memory for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_us: Option<f64>,
    checked: u64,
    wrong: u64,
    threads: u32,
    peak_mib: f64,
}

impl Case {
    /// A case whose results are still to be checked.
    fn new(
        case: Parameters,
        lanes: &Lanes,
        bench: &BenchArgs,
        prep: PerItem,
        online: PerItem,
    ) -> Self {
        let total = prep.then(&online);
        Self {
            case,
            prep,
            online,
            total,
            setup: lanes.setup,
            cold_ms: None,
            store: None,
            first_us: None,
            checked: 0,
            wrong: 0,
            threads: bench.threads,
            peak_mib: 0.0,
        }
    }

    /// How the parties were connected is not a parameter that they compare, but one that is shown.
    fn connected(&mut self, bench: &BenchArgs, remote: Option<&RemoteArgs>) {
        let transport = match remote.filter(|remote| remote.is_given()) {
            Some(remote) if remote.plain_tcp => "tcp".to_owned(),
            Some(_) => "tls".to_owned(),
            None => format!("{:?}", bench.transport).to_lowercase(),
        };
        self.case.push(("link", bench.link.to_string().into()));
        self.case.push(("transport", transport.into()));
    }

    /// Counts results that were compared with plaintext.
    fn check(&mut self, checked: usize, wrong: usize) {
        self.checked += checked as u64;
        self.wrong += wrong as u64;
    }

    /// Counts what each end has found in its lane; where both ends are here, both have looked at the same results.
    fn check_lanes(&mut self, sizes: &[usize], found: &[(usize, usize)]) {
        for (lane, size) in sizes.iter().enumerate() {
            let wrong = found
                .iter()
                .filter(|(of, _)| *of == lane)
                .map(|(_, wrong)| *wrong);
            self.check(*size, wrong.max().unwrap_or(*size));
        }
    }

    /// Prints the case; wrong results are an error.
    fn finish(mut self, json: bool) -> Result<(), CliError> {
        self.peak_mib = (peak_mib() * 10.0).round() / 10.0;
        if json {
            print(&serde_json::to_string(&self)?)?;
        } else {
            print(&(self.table() + &self.store_line()))?;
        }
        if self.wrong > 0 {
            return Err(CliError::Wrong {
                wrong: self.wrong,
                checked: self.checked,
            });
        }
        Ok(())
    }

    fn table(&self) -> String {
        let parameters: Vec<String> = self
            .case
            .iter()
            .map(|(name, value)| format!("{name} {}", value.to_string().trim_matches('"')))
            .collect();
        let row = |name: &str, cost: &PerItem| {
            format!(
                "  {name:<15}{:>14.3}{:>14.4}{:>16.3}{:>9}",
                cost.bits,
                cost.us,
                rate(cost.us),
                cost.rounds
            )
        };
        let cold = self.cold_ms.map_or_else(String::new, |ms| {
            format!(", {ms:.0} ms to the first 10 000")
        });
        [
            parameters.join(", "),
            "  per item                 bits            µs       million/s   rounds".to_owned(),
            row("preprocessing", &self.prep),
            row("online", &self.online),
            row("total", &self.total),
            format!(
                "  set-up {}, {:.0} ms{cold}; {} checked, {} wrong; threads a party {}; peak memory {:.0} MiB",
                bytes(self.setup.bits / 8.0),
                self.setup.ms,
                self.checked,
                self.wrong,
                self.threads,
                self.peak_mib,
            ),
        ]
        .join("\n")
    }

    fn store_line(&self) -> String {
        self.store.as_ref().map_or_else(String::new, |store| {
            format!(
                "\n  store: {:.2} million/s written, {:.2} million/s read, {:.0} bytes each",
                store.written_per_s / 1e6,
                store.read_per_s / 1e6,
                store.bytes_each,
            )
        })
    }
}

fn as_map<S: Serializer>(parameters: &Parameters, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(parameters.iter().map(|(name, value)| (name, value)))
}

fn rate(us: f64) -> f64 {
    if us > 0.0 { 1.0 / us } else { 0.0 }
}
