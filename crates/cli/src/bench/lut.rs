//! `volvelle bench lut`: lookups of random indices in a random table.

use volvelle_lut::{BitTable, Generator, Index, Lookups, Output, Shape, SpLut, Table};
use volvelle_net::Phase;
use volvelle_prim::{BitVec, Prg, mask};

use super::Case;
use super::lanes::{End, Lanes, Pairs, split};
use crate::args::{BenchLutArgs, IndexKind, LutProtocol};
use crate::error::CliError;

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
    SpLut(SpLut),
}

/// One party's shares of what was looked up.
enum Shares {
    Words(Vec<u64>),
    Bits(BitVec),
}

impl Shares {
    fn get(&self, i: usize) -> u64 {
        match self {
            Self::Words(words) => words[i],
            Self::Bits(bits) => u64::from(bits.get(i)),
        }
    }
}

impl Plan {
    /// XOR shares come out where the index is XOR-shared or entries are single bits.
    fn xor_output(&self) -> bool {
        self.index == Index::Boolean || self.bits == 1
    }

    fn prepare(&self, end: &mut End, batch: usize) -> Result<Prepared, CliError> {
        let (ch, ot) = (&mut end.channel, &mut end.ot);
        let generator = match self.protocol {
            LutProtocol::Rotation => Generator::Rotation,
            LutProtocol::Doubling => Generator::Doubling,
            LutProtocol::Splut => {
                return Ok(Prepared::SpLut(SpLut::prepare(
                    ch,
                    ot,
                    self.log_entries,
                    batch,
                )?));
            }
        };
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
        Ok(Prepared::OneHot(Lookups::prepare(
            ch, ot, generator, &shape, batch,
        )?))
    }

    fn look_up(
        &self,
        end: &mut End,
        prepared: Prepared,
        index: &[u64],
    ) -> Result<Shares, CliError> {
        let ch = &mut end.channel;
        let tables = std::slice::from_ref(&self.table);
        let words = match prepared {
            Prepared::OneHot(lookups) if self.bits == 1 => {
                let table =
                    BitTable::from_fn(self.log_entries, |i| self.table.entries()[i as usize] == 1)?;
                let outputs = lookups.lookup_bits(ch, index, &[table])?;
                return Ok(Shares::Bits(
                    outputs
                        .into_iter()
                        .next()
                        .unwrap_or_else(|| BitVec::zeros(0)),
                ));
            }
            Prepared::OneHot(lookups) if self.xor_output() => {
                lookups.lookup_xor(ch, index, tables)?
            }
            Prepared::OneHot(lookups) => lookups.lookup(ch, index, tables)?,
            Prepared::SpLut(lookups) if self.xor_output() => {
                lookups.lookup_xor(ch, self.index, index, tables)?
            }
            Prepared::SpLut(lookups) => lookups.lookup(ch, self.index, index, tables)?,
        };
        Ok(Shares::Words(words.into_iter().next().unwrap_or_default()))
    }

    /// How many outputs differ from the table.
    fn wrong(&self, index: &(Vec<u64>, Vec<u64>), outputs: &(Shares, Shares)) -> usize {
        let right = |i: &usize| {
            let (a, b) = (outputs.0.get(*i), outputs.1.get(*i));
            let found = if self.xor_output() {
                a ^ b
            } else {
                a.wrapping_add(b) & mask(self.bits)
            };
            let wanted = self.index.join(index.0[*i], index.1[*i], self.log_entries);
            found == self.table.entries()[wanted as usize]
        };
        index.0.len() - (0..index.0.len()).filter(right).count()
    }
}

/// Runs the bench.
///
/// # Errors
/// If a protocol fails or a result is wrong.
pub fn run(args: &BenchLutArgs) -> Result<(), CliError> {
    let mut prg = Prg::from_os();
    let log_entries = args.entries.ilog2();
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    let mut entries = vec![0; 1 << log_entries];
    prg.fill_masked(&mut entries, args.bits);
    let table = Table::new(args.bits, entries)?;
    let plan = Plan {
        protocol: args.protocol,
        log_entries,
        bits: args.bits,
        index,
        table,
    };
    let sizes = split(args.batch as usize, &args.bench)?;
    let mut lanes = Lanes::new(&args.bench)?;
    let mut random = |size: &usize| {
        let mut values = vec![0; *size];
        prg.fill_masked(&mut values, log_entries);
        values
    };
    let indices: Pairs<Vec<u64>> = sizes
        .iter()
        .map(|size| (random(size), random(size)))
        .collect();

    let batches = sizes.iter().map(|size| (*size, *size)).collect();
    let (prepared, prep) = lanes.phase(Phase::Preprocessing, batches, |end, batch| {
        plan.prepare(end, batch)
    })?;
    let inputs = prepared
        .into_iter()
        .zip(&indices)
        .map(|((client, server), (own, other))| ((client, own), (server, other)))
        .collect();
    let (outputs, online) = lanes.phase(Phase::Online, inputs, |end, (prepared, index)| {
        plan.look_up(end, prepared, index)
    })?;

    let batch = args.batch as usize;
    let parameters = vec![
        ("bench", "lut".into()),
        ("protocol", args.protocol.name().into()),
        ("entries", args.entries.into()),
        ("bits", args.bits.into()),
        ("index", index.to_string().into()),
        ("batch", batch.into()),
    ];
    let (prep, online) = (lanes.per_item(&prep, batch), lanes.per_item(&online, batch));
    let mut case = Case::new(parameters, &args.bench, prep, online, lanes.setup);
    for (index, outputs) in indices.iter().zip(&outputs) {
        case.check(index.0.len(), plan.wrong(index, outputs));
    }
    case.finish(args.bench.json)
}
