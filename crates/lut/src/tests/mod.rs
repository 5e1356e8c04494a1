//! Tests of whole lookups, both parties, over ideal OTs.

mod baselines;
mod correct;
mod cost;
mod flute;
mod front;
mod grotto;
mod hostile;
mod privacy;
mod vectors;
mod wire;

use volvelle_net::testing::{Transcript, run_pair_recorded};
use volvelle_net::{Channel, Meter, Phase, Role};
use volvelle_ot::testing::ideal_pair;
use volvelle_ot::{Ot, PhasedCost};
use volvelle_prim::{BitVec, Block, Prg, mask};

use crate::{BitTable, Index, Lookups, LutError, OneRound, Output, Protocol, Shape, SpLut, Table};

/// What to look things up in.
#[derive(Clone, Debug)]
enum Tables {
    Additive(Vec<Table>),
    Xor(Vec<Table>),
    Bits(Vec<BitTable>),
}

impl Tables {
    fn output(&self) -> Output {
        match self {
            Self::Additive(tables) => Output::Arithmetic {
                words: tables.iter().map(Table::bits).collect(),
            },
            Self::Xor(_) | Self::Bits(_) => Output::Xor,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Additive(tables) | Self::Xor(tables) => tables.len(),
            Self::Bits(tables) => tables.len(),
        }
    }

    fn entry(&self, t: usize, i: u64) -> u64 {
        match self {
            Self::Additive(tables) | Self::Xor(tables) => tables[t].entries()[i as usize],
            Self::Bits(tables) => tables[t].entries().get(i as usize).into(),
        }
    }

    fn join(&self, t: usize, a: u64, b: u64) -> u64 {
        match self {
            Self::Additive(tables) => a.wrapping_add(b) & mask(tables[t].bits()),
            Self::Xor(_) | Self::Bits(_) => a ^ b,
        }
    }
}

/// A case: everything both parties agree on.
#[derive(Clone, Debug)]
struct Case {
    protocol: Protocol,
    log_entries: u32,
    index: Index,
    tables: Tables,
}

impl Case {
    fn shape(&self) -> Shape {
        Shape {
            log_entries: self.log_entries,
            index: self.index,
            output: self.tables.output(),
        }
    }

    fn cost(&self, batch: usize) -> PhasedCost {
        match (self.protocol.generator(), &self.tables) {
            (Some(generator), _) => Lookups::cost(generator, &self.shape(), batch),
            (None, _) if self.protocol == Protocol::OneRound => {
                OneRound::cost(&self.shape(), batch)
            }
            (None, Tables::Additive(tables) | Tables::Xor(tables)) => {
                let words: Vec<u32> = tables.iter().map(Table::bits).collect();
                SpLut::cost(self.log_entries, &words, batch)
            }
            (None, Tables::Bits(_)) => unreachable!("SP-LUT has no tables of bits"),
        }
    }

    /// One party's run.
    fn party(
        &self,
        ch: &mut Channel,
        ot: &mut Ot,
        index: &[u64],
        seed: u64,
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let prepared = self.prepare(ch, ot, index.len(), seed)?;
        ch.set_phase(Phase::Online);
        self.look_up(prepared, ch, index)
    }

    fn prepare(
        &self,
        ch: &mut Channel,
        ot: &mut Ot,
        batch: usize,
        seed: u64,
    ) -> Result<Prepared, LutError> {
        ch.set_phase(Phase::Preprocessing);
        let mut prg = Prg::from_seed(Block(seed.into()));
        let shape = self.shape();
        Ok(match self.protocol.generator() {
            Some(generator) => Prepared::Lookups(Lookups::prepare_with(
                ch, ot, generator, &shape, batch, &mut prg,
            )?),
            None if self.protocol == Protocol::OneRound => {
                Prepared::OneRound(OneRound::prepare(ch, ot, &shape, batch)?)
            }
            None => Prepared::SpLut(SpLut::prepare_with(ch, ot, shape.log_entries, batch, prg)?),
        })
    }

    fn look_up(
        &self,
        prepared: Prepared,
        ch: &mut Channel,
        index: &[u64],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        match (prepared, &self.tables) {
            (Prepared::Lookups(p), Tables::Additive(tables)) => p.lookup(ch, index, tables),
            (Prepared::Lookups(p), Tables::Xor(tables)) => p.lookup_xor(ch, index, tables),
            (Prepared::Lookups(p), Tables::Bits(tables)) => {
                let outputs = p.lookup_bits(ch, index, tables)?;
                Ok(outputs
                    .iter()
                    .map(|bits| bits.iter().map(u64::from).collect())
                    .collect())
            }
            (Prepared::OneRound(p), Tables::Additive(tables)) => p.lookup(ch, index, tables),
            (Prepared::OneRound(_), _) => unreachable!("one round has additive outputs only"),
            (Prepared::SpLut(p), Tables::Additive(t)) => p.lookup(ch, self.index, index, t),
            (Prepared::SpLut(p), Tables::Xor(t)) => p.lookup_xor(ch, self.index, index, t),
            (Prepared::SpLut(_), Tables::Bits(_)) => unreachable!("SP-LUT has no tables of bits"),
        }
    }

    /// Both parties' runs on these shares.
    fn run(&self, client: &[u64], server: &[u64], seed: u64) -> Run {
        run_parties([client, server], seed, |ch, ot, index, seed| {
            self.party(ch, ot, index, seed).unwrap()
        })
    }

    /// Runs, and checks every output.
    fn check(&self, client: &[u64], server: &[u64], seed: u64) {
        let [a, b] = self.run(client, server, seed).outputs;
        assert_eq!((a.len(), b.len()), (self.tables.len(), self.tables.len()));
        for t in 0..self.tables.len() {
            assert_eq!((a[t].len(), b[t].len()), (client.len(), server.len()));
            for (i, (&x, &y)) in client.iter().zip(server).enumerate() {
                let at = self.index.join(x, y, self.log_entries);
                let got = self.tables.join(t, a[t][i], b[t][i]);
                assert_eq!(
                    got,
                    self.tables.entry(t, at),
                    "{self:?} lookup {i} at {x}, {y}"
                );
            }
        }
    }
}

enum Prepared {
    Lookups(Lookups),
    OneRound(OneRound),
    SpLut(SpLut),
}

/// What came of it; the client's first.
struct Run {
    outputs: [Vec<Vec<u64>>; 2],
    meters: [Meter; 2],
    ots: [Ot; 2],
    transcript: Transcript,
}

/// Runs both parties over ideal OTs, each with its index shares and a seed.
fn run_parties(
    [client, server]: [&[u64]; 2],
    seed: u64,
    party: impl Fn(&mut Channel, &mut Ot, &[u64], u64) -> Vec<Vec<u64>> + Sync,
) -> Run {
    let (mut client_ot, mut server_ot) = ideal_pair(seed);
    let metered = |ch: &mut Channel, ot: &mut Ot, index: &[u64], seed| {
        let outputs = party(ch, ot, index, seed);
        (outputs, ch.meter().clone())
    };
    let (client, server, transcript) = run_pair_recorded(
        |ch| metered(ch, &mut client_ot, client, seed ^ 1),
        |ch| metered(ch, &mut server_ot, server, seed ^ 2),
    );
    Run {
        outputs: [client.0, server.0],
        meters: [client.1, server.1],
        ots: [client_ot, server_ot],
        transcript,
    }
}

fn words(log_entries: u32, widths: &[u32], seed: u64) -> Vec<Table> {
    let mut prg = Prg::from_seed(Block(seed.into()));
    widths
        .iter()
        .map(|&bits| {
            let mut entries = vec![0; 1 << log_entries];
            prg.fill_masked(&mut entries, bits);
            Table::new(bits, entries).unwrap()
        })
        .collect()
}

fn bit_tables(log_entries: u32, count: usize, seed: u64) -> Vec<BitTable> {
    let mut prg = Prg::from_seed(Block(seed.into()));
    (0..count)
        .map(|_| BitTable::new(BitVec::random(&mut prg, 1 << log_entries)).unwrap())
        .collect()
}

fn random_index(log_entries: u32, batch: usize, seed: u64) -> Vec<u64> {
    let mut index = vec![0; batch];
    Prg::from_seed(Block(seed.into())).fill_masked(&mut index, log_entries);
    index
}

const KINDS: [Index; 2] = [Index::Arithmetic, Index::Boolean];

/// The protocols of the cases here; the others have tests of their own.
const CASES: [Protocol; 5] = [
    Protocol::Rotation,
    Protocol::Doubling,
    Protocol::Tree,
    Protocol::OneRound,
    Protocol::SpLut,
];

/// Every protocol, index kind and output kind for tables of a size; `widths` are those of the
/// tables of words.
fn cases(log_entries: u32, widths: &[u32]) -> impl Iterator<Item = Case> {
    let seed = u64::from(log_entries);
    let tables = [
        Tables::Additive(words(log_entries, widths, seed)),
        Tables::Xor(words(log_entries, widths, seed + 100)),
        Tables::Bits(bit_tables(log_entries, widths.len(), seed + 200)),
    ];
    let protocols = CASES.into_iter();
    let fitting = protocols.filter(move |p| p.log_entries().contains(&log_entries));
    fitting.flat_map(move |protocol| {
        let tables = tables.clone();
        KINDS.into_iter().flat_map(move |index| {
            tables
                .clone()
                .into_iter()
                .filter(move |t| match protocol {
                    Protocol::SpLut => !matches!(t, Tables::Bits(_)),
                    Protocol::OneRound => matches!(t, Tables::Additive(_)),
                    _ => true,
                })
                .map(move |tables| Case {
                    protocol,
                    log_entries,
                    index,
                    tables,
                })
        })
    })
}
