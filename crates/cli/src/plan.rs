//! `volvelle plan`: which lookup protocol suits, what each is expected to cost, and why.

use serde::Serialize;
use volvelle_lut::plan::{Machine, Plan, Planner, Plans, Predicted, Prediction};
use volvelle_lut::{Demand, Index, LutError, Protocol};

use crate::args::IndexKind;
use crate::args::plan::{OutputKind, PlanArgs, TableSpec};
use crate::bench::choice;
use crate::error::CliError;
use crate::report::print;

/// Runs the command.
///
/// # Errors
/// If no protocol takes a table, or this machine cannot be timed.
pub fn run(args: &PlanArgs) -> Result<(), CliError> {
    let single = TableSpec {
        entries: args.entries,
        bits: vec![args.bits],
        batch: args.batch,
    };
    let specs = if args.table.is_empty() {
        std::slice::from_ref(&single)
    } else {
        &args.table
    };
    let demands = specs
        .iter()
        .map(|spec| demand(args, spec))
        .collect::<Result<Vec<_>, _>>()?;
    let machine = if args.calibrate {
        Machine::calibrate_and_keep()?
    } else {
        Machine::this()?
    };
    let stamp = machine.stamp().to_owned();
    let planner = Planner::new(machine, args.link).objective(args.objective);
    let plans = choice::plans(planner, args.engine.engine(), &demands)?;
    if args.json {
        return print(&serde_json::to_string(&Report::new(
            args, specs, &plans, &stamp,
        ))?);
    }
    print(&text(args, specs, &plans, &stamp))
}

fn demand(args: &PlanArgs, spec: &TableSpec) -> Result<Demand, CliError> {
    let log_entries = spec.entries.log();
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    let xor = match args.output {
        Some(output) => output == OutputKind::Xor,
        None => index == Index::Boolean || spec.bits.iter().all(|&bits| bits == 1),
    };
    let make = if xor { Demand::xor } else { Demand::additive };
    Ok(make(log_entries, index, &spec.bits, spec.batch as usize)?)
}

/// The protocols that a demand leaves out, and why.
fn refused(demand: &Demand) -> Vec<(Protocol, LutError)> {
    Protocol::ALL
        .into_iter()
        .filter_map(|protocol| Some((protocol, protocol.takes(demand).err()?)))
        .collect()
}

/// A list of things with a name each.
type Named<T> = Vec<(String, T)>;

/// The same in a line a cause: "not for 65536 entries: rotation, doubling (2 to 4096); ottt (2 to 1024)".
fn refusals(demand: &Demand) -> Vec<String> {
    // Causes, what more there is to say of each, and of which protocols.
    let mut causes: Named<Named<Vec<&str>>> = Vec::new();
    for (protocol, error) in refused(demand) {
        let (cause, detail) = match error {
            LutError::Size { min, max, .. } => (
                format!("{} entries", 1u64 << demand.log_entries()),
                format!(" ({} to {})", 1u64 << min, 1u64 << max),
            ),
            LutError::Unsuited { what, .. } => (what.to_owned(), String::new()),
            LutError::Memory { most, .. } => (
                format!("batches of {}", demand.batch()),
                format!(" (at most {most})"),
            ),
            error => (error.to_string(), String::new()),
        };
        let details = entry(&mut causes, cause);
        entry(details, detail).push(protocol.name());
    }
    causes
        .into_iter()
        .map(|(cause, details)| {
            let each = details.iter();
            let each = each.map(|(detail, names)| names.join(", ") + detail);
            format!("not for {cause}: {}", each.collect::<Vec<_>>().join("; "))
        })
        .collect()
}

/// What a list has under a name, put at its end if need be.
fn entry<T: Default>(list: &mut Named<T>, name: String) -> &mut T {
    let at = list.iter().position(|(other, _)| *other == name);
    let at = at.unwrap_or_else(|| {
        list.push((name, T::default()));
        list.len() - 1
    });
    &mut list[at].1
}

fn text(args: &PlanArgs, specs: &[TableSpec], plans: &Plans, stamp: &str) -> String {
    let mut lines = vec![format!(
        "Link {}, OTs by {}, objective {}; times predicted for {stamp}.",
        args.link, plans.engine, args.objective
    )];
    for (spec, plan) in specs.iter().zip(&plans.plans) {
        lines.push(String::new());
        lines.extend(spec.entries.padding().map(|said| format!("{said}.")));
        lines.extend(table(plan));
        lines.extend(
            refusals(&plan.demand)
                .iter()
                .map(|why| format!("    {why}")),
        );
    }
    if plans.plans.len() > 1 {
        let sum = |of: fn(&Predicted) -> f64| -> f64 {
            let each = plans.plans.iter();
            each.map(|p| of(&p.chosen().total) * p.demand.batch() as f64)
                .sum()
        };
        lines.push(String::new());
        lines.push(format!(
            "All together: {:.3} ms, {:.3} Mbit, {} OTs.",
            sum(|p| p.us) / 1e3,
            sum(|p| p.bits) / 1e6,
            plans.ots.client_sends + plans.ots.server_sends
        ));
    }
    lines.join("\n")
}

fn table(plan: &Plan) -> Vec<String> {
    let mut lines = vec![
        format!("{}:", plan.demand),
        format!(
            "    {:<11}{:^33}{:^14}{:^33}",
            "", "bits a lookup", "rounds", "µs a lookup, predicted"
        ),
        format!(
            "    {:<11}{:>11}{:>11}{:>11}{:>14}{:>11}{:>11}{:>11}",
            "protocol", "prep", "online", "total", "(of OTs)", "prep", "online", "total"
        ),
    ];
    for (place, way) in plan.ways.iter().enumerate() {
        lines.push(format!(
            "  {} {:<11}{:>11.1}{:>11.1}{:>11.1}{:>14}{:>11.3}{:>11.3}{:>11.3}",
            if place == 0 { '*' } else { ' ' },
            way.protocol.name(),
            way.prep.bits,
            way.online.bits,
            way.total.bits,
            rounds(way),
            way.prep.us,
            way.online.us,
            way.total.us
        ));
    }
    lines.push(format!("  * {}", plan.reason));
    lines
}

/// Rounds of both phases, and in parentheses those that making OTs is taken to add.
fn rounds(way: &Prediction) -> String {
    let own = format!("{} + {}", way.prep.rounds, way.online.rounds);
    match way.total.ot_rounds {
        0 => own,
        more => format!("{own} (+{more})"),
    }
}

/// The line of JSON.
#[derive(Serialize)]
struct Report {
    link: String,
    engine: String,
    objective: &'static str,
    machine: String,
    plans: Vec<PlanReport>,
}

#[derive(Serialize)]
struct PlanReport {
    entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    padded: Option<String>,
    bits: Vec<u32>,
    batch: usize,
    index: String,
    output: &'static str,
    chosen: &'static str,
    reason: String,
    ways: Vec<Way>,
    refused: Vec<String>,
}

#[derive(Serialize)]
struct Way {
    protocol: &'static str,
    prep: Share,
    online: Share,
    total: Share,
}

/// A lookup's share of a phase, and what the whole batch sends, exactly, apart from making OTs.
#[derive(Serialize)]
struct Share {
    bits: f64,
    us: f64,
    rounds: u64,
    /// Rounds that making OTs is taken to add.
    ot_rounds: u64,
    batch_bits: u64,
    batch_ots: u64,
}

impl Report {
    fn new(args: &PlanArgs, specs: &[TableSpec], plans: &Plans, stamp: &str) -> Self {
        let each = specs.iter().zip(&plans.plans);
        Self {
            link: args.link.to_string(),
            engine: plans.engine.to_string(),
            objective: args.objective.name(),
            machine: stamp.to_owned(),
            plans: each
                .map(|(spec, plan)| PlanReport::new(spec, plan))
                .collect(),
        }
    }
}

impl PlanReport {
    fn new(spec: &TableSpec, plan: &Plan) -> Self {
        let demand = &plan.demand;
        Self {
            entries: 1 << demand.log_entries(),
            padded: spec.entries.padding(),
            bits: demand.words().to_vec(),
            batch: demand.batch(),
            index: demand.shape().index.to_string(),
            output: if demand.is_xor() { "xor" } else { "additive" },
            chosen: plan.chosen().protocol.name(),
            reason: plan.reason.clone(),
            ways: plan.ways.iter().map(Way::new).collect(),
            refused: refused(demand)
                .iter()
                .map(|(_, why)| why.to_string())
                .collect(),
        }
    }
}

impl Way {
    fn new(way: &Prediction) -> Self {
        let share = |phase: &Predicted, cost: volvelle_ot::Cost| Share {
            bits: phase.bits,
            us: phase.us,
            rounds: phase.rounds,
            ot_rounds: phase.ot_rounds,
            batch_bits: cost.bits(),
            batch_ots: cost.cots(),
        };
        Self {
            protocol: way.protocol.name(),
            prep: share(&way.prep, way.cost.prep),
            online: share(&way.online, way.cost.online),
            total: share(&way.total, way.cost.total()),
        }
    }
}
