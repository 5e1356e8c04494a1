//! `volvelle bench lut`: lookups of random indices in a random table.

use volvelle_lut::{BitTable, Generator, Index, Lookups, OneRound, Output, Shape, SpLut, Table};
use volvelle_net::Phase;
use volvelle_prim::{Block, Prg, mask};

use super::Case;
use super::lanes::{End, Lanes, split};
use crate::args::{BenchLutArgs, IndexKind, LutProtocol};
use crate::error::CliError;

/// Seeds the entries of the table.
const TABLE_SEED: Block = Block(0x7461_626c_6520_7365_6564);

/// What both parties agree on.
struct Plan {
    protocol: LutProtocol,
    log_entries: u32,
    bits: u32,
    index: Index,
    table: Table,
}

/// One party's prepared lookups.
enum Prepared {
    OneHot(Lookups),
    Bits(Lookups, BitTable),
    OneRound(OneRound),
    SpLut(SpLut),
}

impl Plan {
    /// XOR shares come out where the index is XOR-shared or entries are single bits.
    fn xor_output(&self) -> bool {
        let wanted = self.index == Index::Boolean || self.bits == 1;
        wanted && self.protocol != LutProtocol::OneRound
    }

    fn prepare(&self, end: &mut End, batch: usize) -> Result<Prepared, CliError> {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        let output = if self.xor_output() {
            Output::Xor
        } else {
            Output::word(self.bits)
        };
        let shape = Shape {
            log_entries: self.log_entries,
            index: self.index,
            output,
        };
        let generator = match self.protocol {
            LutProtocol::Rotation => Generator::Rotation,
            LutProtocol::Doubling => Generator::Doubling,
            LutProtocol::Tree => Generator::Tree,
            LutProtocol::OneRound => {
                return Ok(Prepared::OneRound(OneRound::prepare(
                    ch, ot, &shape, batch,
                )?));
            }
            // Lookups with a dealer never come here.
            LutProtocol::Splut | LutProtocol::Grotto => {
                return Ok(Prepared::SpLut(SpLut::prepare(
                    ch,
                    ot,
                    self.log_entries,
                    batch,
                )?));
            }
        };
        let lookups = Lookups::prepare(ch, ot, generator, &shape, batch)?;
        if self.bits > 1 {
            return Ok(Prepared::OneHot(lookups));
        }
        let bit = |i: u64| self.table.entries()[i as usize] == 1;
        Ok(Prepared::Bits(
            lookups,
            BitTable::from_fn(self.log_entries, bit)?,
        ))
    }

    /// This party's shares of the outputs.
    fn look_up(
        &self,
        end: &mut End,
        prepared: Prepared,
        index: &[u64],
    ) -> Result<Vec<u64>, CliError> {
        let ch = &mut end.channel;
        let tables = std::slice::from_ref(&self.table);
        let words = match prepared {
            Prepared::Bits(lookups, table) => {
                let outputs = lookups.lookup_bits(ch, index, &[table])?;
                outputs
                    .iter()
                    .map(|bits| bits.iter().map(u64::from).collect())
                    .collect()
            }
            Prepared::OneHot(lookups) if self.xor_output() => {
                lookups.lookup_xor(ch, index, tables)?
            }
            Prepared::OneHot(lookups) => lookups.lookup(ch, index, tables)?,
            Prepared::OneRound(lookups) => lookups.lookup(ch, index, tables)?,
            Prepared::SpLut(lookups) if self.xor_output() => {
                lookups.lookup_xor(ch, self.index, index, tables)?
            }
            Prepared::SpLut(lookups) => lookups.lookup(ch, self.index, index, tables)?,
        };
        Ok(words.into_iter().next().unwrap_or_default())
    }

    /// How many of a lane's outputs differ from the table.
    fn wrong(&self, end: &mut End, index: &[u64], outputs: &[u64]) -> Result<usize, CliError> {
        let their_index = end.open_to_check(index, self.log_entries)?;
        let their_outputs = end.open_to_check(outputs, self.bits)?;
        let right = |i: &usize| {
            let (own, theirs) = (outputs[*i], their_outputs[*i]);
            let found = if self.xor_output() {
                own ^ theirs
            } else {
                own.wrapping_add(theirs) & mask(self.bits)
            };
            let wanted = self
                .index
                .join(index[*i], their_index[*i], self.log_entries);
            found == self.table.entries()[wanted as usize]
        };
        Ok(index.len() - (0..index.len()).filter(right).count())
    }
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchLutArgs) -> Result<(), CliError> {
    match (args.protocol == LutProtocol::Grotto, args.dealer) {
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

fn run_one(args: &BenchLutArgs) -> Result<(), CliError> {
    let log_entries = args.entries.ilog2();
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    // Public, and the same at both parties wherever they are.
    let mut entries = vec![0; 1 << log_entries];
    Prg::from_seed(TABLE_SEED).fill_masked(&mut entries, args.bits);
    let plan = Plan {
        protocol: args.protocol,
        log_entries,
        bits: args.bits,
        index,
        table: Table::new(args.bits, entries)?,
    };
    let batch = args.batch as usize;
    let parameters = vec![
        ("bench", "lut".into()),
        ("protocol", args.protocol.name().into()),
        ("entries", args.entries.into()),
        ("bits", args.bits.into()),
        ("index", index.to_string().into()),
        ("batch", batch.into()),
        ("engine", args.bench.ot_name().into()),
    ];
    let sizes = split(batch, &args.bench)?;
    let mut lanes = Lanes::new(&args.bench, Some(&args.remote), &parameters)?;
    let mut prg = Prg::from_os();
    let indices = lanes.map(|end| {
        let mut values = vec![0; sizes[end.lane]];
        prg.fill_masked(&mut values, log_entries);
        values
    });

    let batches = lanes.each(&sizes);
    let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, |end, batch| {
        plan.prepare(end, batch)
    })?;
    let inputs = prepared.into_iter().zip(&indices).collect();
    let (outputs, online) = lanes.phase(Phase::Online, inputs, |end, (prepared, index)| {
        plan.look_up(end, prepared, index)
    })?;

    let (prep, online) = (
        lanes.per_item(&prep, batch)?,
        lanes.per_item(&online, batch)?,
    );
    let mut case = Case::new(parameters, &lanes, &args.bench, prep, online);
    case.connected(&args.bench, Some(&args.remote));
    let results = indices.iter().zip(&outputs).collect();
    let (wrong, _) = lanes.phase(Phase::Online, results, |end, (index, outputs)| {
        Ok((end.lane, plan.wrong(end, index, outputs)?))
    })?;
    case.check_lanes(&sizes, &wrong);
    case.finish(args.bench.json)
}
