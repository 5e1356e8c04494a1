//! Sessions that cases run in, and their sources of OTs.

use volvelle_lut::Demand;
use volvelle_lut::plan::{Machine, Prediction};
use volvelle_net::Link;
use volvelle_ot::{Engine, Horizon, OtConfig, OtDemand, Security};

use super::case::{Case, Key, LINKS};
use crate::args::{BenchArgs, OtBase, OtEngine, OtSecurity, Transport};
use crate::bench::lanes::Lanes;
use crate::bench::lut::Job;
use crate::error::CliError;
use crate::report::PerItem;

/// Runs a case in a session that ends with it, its set-up counted.
pub fn alone(
    key: &Key,
    demand: &Demand,
    predicted: Prediction,
    machine: &Machine,
) -> Result<Case, CliError> {
    let (link, batch) = (LINKS[key.link].1, demand.batch());
    let engine = engine_once(key, demand);
    let mut lanes = connect(link, engine)?;
    let done = Job::new(key.protocol, demand.clone())?.run(&mut lanes, &[batch])?;
    let each = 1.0 / batch as f64;
    let setup_ns = engine.figures().setup_time_ns(&link, machine.setup_speed());
    Ok(Case {
        key: *key,
        batch,
        prep: done.prep,
        online: done.online,
        setup: PerItem {
            bits: lanes.setup.bits * each,
            us: lanes.setup.ms * 1e3 * each,
            rounds: 0,
        },
        engine,
        ot_ns: lanes.making().ns(),
        predicted,
        predicted_setup_us: setup_ns / 1e3 * each,
        checked: batch,
        wrong: wrong(&done.wrong, batch),
    })
}

/// How many lookups of a lane were wrong.
pub fn wrong(ends: &[(usize, usize)], batch: usize) -> usize {
    let most = ends.iter().map(|(_, wrong)| *wrong).max();
    most.unwrap_or(batch)
}

fn ots(key: &Key, demand: &Demand) -> OtDemand {
    let cost = key.protocol.cost(demand).unwrap_or_default().total();
    OtDemand {
        client_sends: cost.cots_client,
        server_sends: cost.cots_server,
    }
}

/// The engine of a session that ends with this demand.
pub fn engine_once(key: &Key, demand: &Demand) -> Engine {
    let link = LINKS[key.link].1;
    let (ots, security) = (ots(key, demand), Security::SemiHonest);
    OtConfig::plan(&link, &ots, Horizon::Once, security).engine
}

/// The engine of a session that goes on.
pub fn session_engine(link: Link) -> Engine {
    let many = OtDemand {
        client_sends: 1 << 20,
        server_sends: 1 << 20,
    };
    OtConfig::plan(&link, &many, Horizon::Session, Security::SemiHonest).engine
}

/// A session of one lane, both ends here.
pub fn connect(link: Link, engine: Engine) -> Result<Lanes, CliError> {
    let bench = BenchArgs {
        threads: 1,
        link,
        transport: Transport::Memory,
        engine: OtEngine::Auto,
        planned: Some(engine),
        base: OtBase::Ristretto,
        security: OtSecurity::SemiHonest,
        ahead: false,
        json: false,
    };
    Lanes::new(&bench, None, &Vec::new())
}
