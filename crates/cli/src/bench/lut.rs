//! `volvelle bench lut`: lookups of random indices in random tables.

use volvelle_lut::{Demand, Generator, Index, Prepared, Protocol, Table};
use volvelle_net::Phase;
use volvelle_prim::{Block, Prg, mask};

use super::choice;
use super::lanes::{End, Lanes, Measured, Wires, split};
use super::{Case, Parameters};
use crate::args::plan::{OutputKind, ProtocolChoice};
use crate::args::store::Maker;
use crate::args::{BenchArgs, BenchLutArgs, IndexKind};
use crate::error::CliError;
use crate::report::PerItem;

/// Seeds the entries of the tables.
const TABLE_SEED: Block = Block(0x7461_626c_6520_7365_6564);

/// What both parties look up, and how.
pub struct Job {
    protocol: Protocol,
    demand: Demand,
    /// Public, and the same at both parties wherever they are.
    tables: Vec<Table>,
}

/// What a job has cost a lookup, and which results were wrong.
pub struct Outcome {
    pub prep: PerItem,
    pub online: PerItem,
    /// For each end, its lane and how many of the lane's lookups were wrong.
    pub wrong: Vec<(usize, usize)>,
}

/// What one run of a job has measured.
pub struct Run {
    pub prep: Measured,
    pub online: Measured,
    /// For each end, its lane and how many of the lane's lookups were wrong.
    pub wrong: Vec<(usize, usize)>,
}

impl Job {
    /// Lookups in tables of random entries.
    pub fn new(protocol: Protocol, demand: Demand) -> Result<Self, CliError> {
        protocol.takes(&demand)?;
        let mut prg = Prg::from_seed(TABLE_SEED);
        let tables = demand.words().iter().map(|&bits| {
            let mut entries = vec![0; 1 << demand.log_entries()];
            prg.fill_masked(&mut entries, bits);
            Table::new(bits, entries)
        });
        Ok(Self {
            tables: tables.collect::<Result<_, _>>()?,
            protocol,
            demand,
        })
    }

    /// Runs the job, `sizes[lane]` lookups in each lane, and checks every result.
    pub fn run(&self, lanes: &mut Lanes, sizes: &[usize]) -> Result<Outcome, CliError> {
        let run = self.measure(lanes, sizes)?;
        self.outcome(lanes, run)
    }

    /// Runs the job and checks every result, but does not yet say what making OTs took.
    pub fn measure(&self, lanes: &mut Lanes, sizes: &[usize]) -> Result<Run, CliError> {
        let indices = self.indices(lanes, sizes);
        let batches = lanes.each(sizes);
        let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, |end, batch| {
            let demand = self.demand.with_batch(batch)?;
            let (ch, ot) = (&mut end.channel, &mut end.ot);
            let prepared = Prepared::prepare(ch, ot, self.protocol, &demand, &self.tables)?;
            Ok(prepared)
        })?;
        let inputs = prepared.into_iter().zip(&indices).collect();
        let (outputs, online) = lanes.phase(Phase::Online, inputs, |end, (prepared, index)| {
            Ok(prepared.lookup(&mut end.channel, index, &self.tables)?)
        })?;
        let wrong = self.check(lanes, &indices, &outputs)?;
        Ok(Run {
            prep,
            online,
            wrong,
        })
    }

    /// What a run has cost a lookup.
    pub(super) fn outcome(&self, lanes: &mut Lanes, run: Run) -> Result<Outcome, CliError> {
        let batch = self.demand.batch();
        Ok(Outcome {
            prep: lanes.per_item(&run.prep, batch)?,
            online: lanes.per_item(&run.online, batch)?,
            wrong: run.wrong,
        })
    }

    /// Each end's shares of random indices.
    pub(super) fn indices(&self, lanes: &Lanes, sizes: &[usize]) -> Vec<Vec<u64>> {
        let mut prg = Prg::from_os();
        lanes.map(|end| {
            let mut values = vec![0; sizes[end.lane]];
            prg.fill_masked(&mut values, self.demand.log_entries());
            values
        })
    }

    /// For each end, its lane and how many of the lane's outputs are wrong.
    pub(super) fn check(
        &self,
        lanes: &mut Lanes,
        indices: &[Vec<u64>],
        outputs: &[Vec<Vec<u64>>],
    ) -> Result<Vec<(usize, usize)>, CliError> {
        if lanes.both_here() {
            return Ok(self.check_here(indices, outputs));
        }
        let results = indices.iter().zip(outputs).collect();
        let (wrong, _) = lanes.phase(Phase::Online, results, |end, (index, outputs)| {
            Ok((end.lane, self.wrong(end, index, outputs)?))
        })?;
        Ok(wrong)
    }

    /// The same where both ends of a lane are here: nothing is sent, which over a slow link would take longer than the lookups.
    fn check_here(&self, indices: &[Vec<u64>], outputs: &[Vec<Vec<u64>>]) -> Vec<(usize, usize)> {
        let mut ends = Vec::with_capacity(indices.len());
        let lanes = indices.chunks_exact(2).zip(outputs.chunks_exact(2));
        for (lane, (index, outputs)) in lanes.enumerate() {
            let wrong = self.differ([&index[0], &index[1]], [&outputs[0], &outputs[1]]);
            ends.extend([(lane, wrong); 2]);
        }
        ends
    }

    pub(super) fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(super) fn demand(&self) -> &Demand {
        &self.demand
    }

    pub(super) fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// How many of a lane's lookups differ from a table.
    fn wrong(&self, end: &mut End, index: &[u64], outputs: &[Vec<u64>]) -> Result<usize, CliError> {
        let k = self.demand.log_entries();
        let own = self.tables.iter().zip(outputs);
        let own = own.map(|(table, own)| (own.as_slice(), table.bits()));
        let opened: Vec<_> = [(index, k)].into_iter().chain(own).collect();
        let mut theirs = end.open_all_to_check(&opened)?;
        let their_index = theirs.remove(0);
        Ok(self.differ([index, &their_index], [outputs, &theirs]))
    }

    /// How many lookups differ from a table, of both parties' shares of indices and outputs.
    fn differ(&self, index: [&[u64]; 2], outputs: [&[Vec<u64>]; 2]) -> usize {
        let k = self.demand.log_entries();
        // A table without outputs is none looked up in.
        let all = outputs.iter().all(|of| of.len() == self.tables.len());
        let mut right = vec![all; index[0].len()];
        for ((table, a), b) in self.tables.iter().zip(outputs[0]).zip(outputs[1]) {
            for (i, right) in right.iter_mut().enumerate() {
                let found = if self.demand.is_xor() {
                    a[i] ^ b[i]
                } else {
                    a[i].wrapping_add(b[i]) & mask(table.bits())
                };
                let at = self.demand.shape().index.join(index[0][i], index[1][i], k);
                *right &= found == table.entries()[at as usize];
            }
        }
        right.iter().filter(|right| !**right).count()
    }
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchLutArgs) -> Result<(), CliError> {
    args.entries.say_padding();
    match (args.protocol == ProtocolChoice::Grotto, args.dealer) {
        (true, true) => return super::dealer::run(args),
        (true, false) => {
            return Err(CliError::Dealer(
                "grotto has a third party that both must trust; start one with --dealer",
            ));
        }
        (false, true) => {
            return Err(CliError::Dealer(
                "only grotto has a dealer; give --protocol grotto or leave out --dealer",
            ));
        }
        (false, false) => {}
    }
    super::each_engine(&args.bench, |bench| {
        run_one(&BenchLutArgs {
            bench,
            ..args.clone()
        })
    })
}

fn demand(args: &BenchLutArgs) -> Result<Demand, CliError> {
    let (k, words, batch) = (args.entries.log(), [args.bits], args.batch as usize);
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    Ok(match args.output() {
        OutputKind::Xor => Demand::xor(k, index, &words, batch)?,
        OutputKind::Additive => Demand::additive(k, index, &words, batch)?,
    })
}

/// Only one-hot correlations are stored: of these, the ones with the fewest bits unless named.
fn protocol_asked(args: &BenchLutArgs, demand: &Demand) -> ProtocolChoice {
    let auto = args.protocol == ProtocolChoice::Auto;
    if !(args.store && auto) {
        return args.protocol;
    }
    ProtocolChoice::Named(match Maker::Auto.generator(demand.shape()) {
        Generator::Rotation => Protocol::Rotation,
        Generator::Tree => Protocol::Tree,
        _ => Protocol::Doubling,
    })
}

fn run_one(args: &BenchLutArgs) -> Result<(), CliError> {
    let demand = demand(args)?;
    if let ProtocolChoice::Named(protocol) = args.protocol {
        choice::check(protocol, &demand)?;
    }
    let parameters = |protocol: &'static str, bench: &BenchArgs| {
        let mut parameters: Parameters = vec![
            ("bench", "lut".into()),
            ("protocol", protocol.into()),
            ("entries", args.entries.padded().into()),
            ("bits", args.bits.into()),
            ("index", demand.shape().index.to_string().into()),
            ("output", args.output().name().into()),
            ("batch", args.batch.into()),
            ("engine", bench.ot_name().into()),
        ];
        if args.store {
            parameters.push(("store", true.into()));
        }
        parameters
    };
    let sizes = split(demand.batch(), &args.bench)?;
    let asked = parameters(args.protocol.name(), &args.bench);
    let mut wires = Wires::connect(&args.bench, Some(&args.remote), &asked)?;
    let choose = || {
        choice::lookup(
            &args.bench,
            protocol_asked(args, &demand),
            args.objective,
            &demand,
        )
    };
    let chosen = match (args.protocol, args.bench.engine()) {
        // Nothing to agree on.
        (ProtocolChoice::Named(_), Some(_)) => choose()?,
        _ => wires.settle(choose)?,
    };
    let protocol = match (args.protocol, chosen.protocol) {
        (ProtocolChoice::Named(protocol), _) | (_, Some(protocol)) => protocol,
        (ProtocolChoice::Auto | ProtocolChoice::Grotto, None) => {
            return Err(CliError::Choice {
                got: "no protocol".to_owned(),
            });
        }
    };
    let bench = args.bench.with_engine(chosen.engine);
    let job = Job::new(protocol, demand.clone())?;
    let mut lanes = wires.set_up(bench.ot_config())?;
    let mut wrong = Vec::new();
    let (mut first_us, mut store) = (None, None);
    let done = if args.store {
        let (done, rates) = job.run_stored(&mut lanes, &sizes)?;
        store = Some(rates);
        done
    } else {
        // Once before what is shown: memory is then this process's, as at any time of a session but its start.
        let first = job.run(&mut lanes, &sizes)?;
        first_us = Some(first.prep.us + first.online.us);
        wrong.extend(first.wrong);
        lanes.warmed_up();
        job.run(&mut lanes, &sizes)?
    };
    wrong.extend(done.wrong);

    let mut parameters = parameters(protocol.name(), &bench);
    if args.protocol == ProtocolChoice::Auto && !args.store {
        parameters.push(("chosen", args.objective.name().into()));
    }
    let mut case = Case::new(parameters, &lanes, &bench, done.prep, done.online);
    case.store = store;
    case.connected(&bench, Some(&args.remote));
    case.first_us = first_us;
    case.check_lanes(&sizes, &wrong);
    case.finish(bench.json)
}
