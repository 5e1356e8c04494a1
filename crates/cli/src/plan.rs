//! `volvelle plan`: which lookup protocol suits, what each is expected to cost, and why.

use serde::Serialize;
use volvelle_lut::plan::{Machine, Plan, Planner, Plans, Predicted, Prediction};
use volvelle_lut::{Demand, Index, Protocol};
use volvelle_ot::Horizon;

use crate::args::IndexKind;
use crate::args::plan::{OutputKind, PlanArgs, TableSpec};
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
    let plans = match args.engine.engine() {
        Some(engine) => planner.engine(engine).plan_each(&demands)?,
        None => planner.plan_all(&demands, Horizon::Session)?,
    };
    if args.json {
        return print(&serde_json::to_string(&Report::new(
            args, specs, &plans, &stamp,
        ))?);
    }
    print(&text(args, specs, &plans, &stamp))
}

fn demand(args: &PlanArgs, spec: &TableSpec) -> Result<Demand, CliError> {
    let log_entries = spec.entries.next_power_of_two().ilog2();
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

/// Where a table is not as it was given.
fn padding(spec: &TableSpec) -> Option<String> {
    let padded = spec.entries.next_power_of_two();
    (padded != spec.entries).then(|| format!("{} entries are padded to {padded}", spec.entries))
}

/// The protocols that a demand leaves out, and why.
fn refused(demand: &Demand) -> Vec<String> {
    Protocol::ALL
        .into_iter()
        .filter_map(|protocol| protocol.takes(demand).err())
        .map(|error| error.to_string())
        .collect()
}

fn text(args: &PlanArgs, specs: &[TableSpec], plans: &Plans, stamp: &str) -> String {
    let mut lines = vec![format!(
        "Link {}, OTs by {}, objective {}; times predicted for {stamp}.",
        args.link, plans.engine, args.objective
    )];
    for (spec, plan) in specs.iter().zip(&plans.plans) {
        lines.push(String::new());
        lines.extend(padding(spec).map(|said| format!("{said}.")));
        lines.extend(table(plan));
        lines.extend(refused(&plan.demand).iter().map(|why| format!("    {why}")));
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
            "    {:<11}{:^33}{:^10}{:^33}",
            "", "bits a lookup", "rounds", "µs a lookup, predicted"
        ),
        format!(
            "    {:<11}{:>11}{:>11}{:>11}{:>10}{:>11}{:>11}{:>11}",
            "protocol", "prep", "online", "total", "", "prep", "online", "total"
        ),
    ];
    for (place, way) in plan.ways.iter().enumerate() {
        lines.push(format!(
            "  {} {:<11}{:>11.1}{:>11.1}{:>11.1}{:>10}{:>11.3}{:>11.3}{:>11.3}",
            if place == 0 { '*' } else { ' ' },
            way.protocol.name(),
            way.prep.bits,
            way.online.bits,
            way.total.bits,
            format!("{} + {}", way.prep.rounds, way.online.rounds),
            way.prep.us,
            way.online.us,
            way.total.us
        ));
    }
    lines.push(format!("  * {}", plan.reason));
    lines
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
            padded: padding(spec),
            bits: demand.words().to_vec(),
            batch: demand.batch(),
            index: demand.shape().index.to_string(),
            output: if demand.is_xor() { "xor" } else { "additive" },
            chosen: plan.chosen().protocol.name(),
            reason: plan.reason.clone(),
            ways: plan.ways.iter().map(Way::new).collect(),
            refused: refused(demand),
        }
    }
}

impl Way {
    fn new(way: &Prediction) -> Self {
        let share = |phase: &Predicted, cost: volvelle_ot::Cost| Share {
            bits: phase.bits,
            us: phase.us,
            rounds: phase.rounds,
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
