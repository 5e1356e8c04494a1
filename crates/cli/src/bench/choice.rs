//! What `auto` stands for. Between two machines the client chooses, by its link and its own timings, and tells the server, which
//! takes nothing that it does not know.
//!
//! A bench's set-up is measured by itself and its session may go on, so engines are chosen by what an OT costs in the long
//! run ([`Horizon::Session`]).

use volvelle_lut::plan::{Machine, Objective, Planner, Plans};
use volvelle_lut::{Demand, Index, LutError, Protocol};
use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Engine, Horizon, OtConfig, OtDemand};

use crate::args::BenchArgs;
use crate::args::plan::ProtocolChoice;
use crate::error::CliError;

const CHOICE: Label = Label::new("bench/choice");
/// Bytes that a choice takes on the wire: two names, padded with spaces. An agreement constant.
const BYTES: usize = 64;

/// What both parties run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The lookup protocol, if it is about lookups.
    pub protocol: Option<Protocol>,
    /// The source of oblivious transfers.
    pub engine: Engine,
}

impl Choice {
    /// Nothing but an engine.
    pub fn of_engine(engine: Engine) -> Self {
        Self {
            protocol: None,
            engine,
        }
    }

    /// The client's part of agreeing.
    pub fn send(&self, ch: &mut Channel) -> Result<(), CliError> {
        let protocol = self.protocol.map_or("-", Protocol::name);
        let text = format!("{:<BYTES$}", format!("{} {protocol}", self.engine));
        ch.send(CHOICE, text.as_bytes())?;
        Ok(ch.flush()?)
    }

    /// The server's part.
    pub fn receive(ch: &mut Channel) -> Result<Self, CliError> {
        let mut text = [0; BYTES];
        ch.recv(CHOICE, &mut text)?;
        let text = String::from_utf8_lossy(&text);
        Self::read(&text).ok_or_else(|| CliError::Choice {
            got: text.trim().escape_debug().to_string(),
        })
    }

    fn read(text: &str) -> Option<Self> {
        let mut names = text.split_whitespace();
        let engine = Engine::by_name(names.next()?)?;
        let protocol = match names.next()? {
            "-" => None,
            name => Some(name.parse().ok()?),
        };
        Some(Self { protocol, engine })
    }
}

/// The engine for what OTs these bits ask for.
pub fn engine(bench: &BenchArgs, cost: &Cost) -> Engine {
    let demand = OtDemand {
        client_sends: cost.cots_client,
        server_sends: cost.cots_server,
    };
    bench.engine().unwrap_or_else(|| {
        OtConfig::plan(&bench.link, &demand, Horizon::Session, bench.security()).engine
    })
}

/// Protocol and engine for a demand; this machine is timed only if the protocol is left open.
pub fn lookup(
    bench: &BenchArgs,
    asked: ProtocolChoice,
    objective: Objective,
    demand: &Demand,
) -> Result<Choice, CliError> {
    let (protocol, engine) = match asked {
        ProtocolChoice::Named(protocol) => {
            check(protocol, demand)?;
            let cost = protocol.cost(demand).ok_or(LutError::NoProtocol)?;
            (protocol, engine(bench, &cost.total()))
        }
        // Lookups with a dealer never come here.
        ProtocolChoice::Auto | ProtocolChoice::Grotto => {
            let planner = Planner::new(Machine::this()?, bench.link)
                .objective(objective)
                .security(bench.security());
            let plans = plans(planner, bench.engine(), std::slice::from_ref(demand))?;
            (plans.plans[0].chosen().protocol, plans.engine)
        }
    };
    Ok(Choice {
        protocol: Some(protocol),
        engine,
    })
}

/// Protocols for demands of one session, with OTs of this engine or else of the one that suits them. Near ties are settled by timing
/// what has not been timed before, and that is kept. What `volvelle plan` shows is what `auto` takes.
pub fn plans(
    planner: Planner,
    engine: Option<Engine>,
    demands: &[Demand],
) -> Result<Plans, CliError> {
    let plans = || -> Result<Plans, LutError> {
        let engine = match engine {
            Some(engine) => engine,
            None => planner.plan_all(demands, Horizon::Session)?.engine,
        };
        let mut planner = planner.engine(engine);
        if let Some(machine) = planner.settle(demands)? {
            machine.keep();
        }
        planner.plan_each(demands)
    };
    plans().map_err(|e| demands.iter().fold(e, because).into())
}

/// Whether a protocol meets a demand.
///
/// # Errors
/// If it does not; with what to ask for instead, where another kind of shares would do.
pub fn check(protocol: Protocol, demand: &Demand) -> Result<(), CliError> {
    let Err(source) = protocol.takes(demand) else {
        return Ok(());
    };
    let (k, index) = (demand.log_entries(), demand.shape().index);
    let (words, batch) = (demand.words(), demand.batch());
    let others = [
        ("--output xor", Demand::xor(k, index, words, batch)?),
        (
            "--output additive",
            Demand::additive(k, index, words, batch)?,
        ),
        // Its outputs are XOR-shared where nothing else is said.
        (
            "--index boolean",
            Demand::xor(k, Index::Boolean, words, batch)?,
        ),
    ];
    let other = others
        .iter()
        .find(|(_, other)| protocol.takes(other).is_ok());
    Err(match other {
        Some(&(give, _)) => CliError::Shares { source, give },
        None => source.into(),
    })
}

/// Why no protocol takes a demand, where that is for its batch: how many lookups would do.
pub fn because(error: LutError, demand: &Demand) -> LutError {
    let most = |error: &LutError| match error {
        LutError::Memory { most, .. } => Some(*most),
        _ => None,
    };
    let refusals = Protocol::ALL.into_iter();
    let refusals = refusals.filter_map(|protocol| protocol.takes(demand).err());
    match error {
        LutError::NoProtocol => refusals
            .filter(|refusal| most(refusal).is_some())
            .max_by_key(most)
            .unwrap_or(error),
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use volvelle_net::testing::run_pair;

    use super::*;

    #[test]
    fn the_server_learns_the_clients_choice() {
        for engine in Engine::PLANNED {
            for protocol in Protocol::ALL.map(Some).into_iter().chain([None]) {
                let choice = Choice { protocol, engine };
                let (sent, got) = run_pair(|ch| choice.send(ch), Choice::receive);
                sent.unwrap();
                assert_eq!(got.unwrap(), choice);
            }
        }
    }

    #[test]
    fn an_unknown_choice_is_refused() {
        for text in ["", "ferret-k17", "ferret-k99 doubling", "ferret-k17 magic"] {
            assert_eq!(Choice::read(text), None);
            let padded = format!("{text:<BYTES$}");
            let (_, got) = run_pair(
                |ch| ch.send(CHOICE, padded.as_bytes()).and_then(|()| ch.flush()),
                Choice::receive,
            );
            assert!(matches!(got, Err(CliError::Choice { .. })), "{text}");
        }
    }
}
