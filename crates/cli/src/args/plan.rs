//! Leaving the choice of a protocol to the planner: `auto`, `volvelle plan`, and `volvelle bench paper`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use volvelle_lut::Protocol;
use volvelle_lut::plan::Objective;
use volvelle_net::Link;

use super::{Entries, IndexKind, LINK_HELP, OtEngine};

/// A protocol by name, or whichever suits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolChoice {
    /// Left to the planner.
    Auto,
    /// This one.
    Named(Protocol),
    /// Point functions from a dealer, a third party that both must trust: a weaker model; needs `--dealer`.
    Grotto,
}

impl ProtocolChoice {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Named(protocol) => protocol.name(),
            Self::Grotto => GROTTO,
        }
    }
}

const GROTTO: &str = "grotto";

/// Every protocol the library has, `auto`, and the one with a dealer.
pub(super) fn protocols() -> impl TypedValueParser<Value = ProtocolChoice> {
    let names = ["auto", GROTTO]
        .into_iter()
        .chain(Protocol::ALL.map(Protocol::name));
    PossibleValuesParser::new(names).map(|name| {
        if name == GROTTO {
            return ProtocolChoice::Grotto;
        }
        name.parse()
            .map_or(ProtocolChoice::Auto, ProtocolChoice::Named)
    })
}

/// The same without the one that has a dealer.
pub(super) fn two_party_protocols() -> impl TypedValueParser<Value = ProtocolChoice> {
    let names = ["auto"].into_iter();
    PossibleValuesParser::new(names.chain(Protocol::ALL.map(Protocol::name))).map(|name| {
        name.parse()
            .map_or(ProtocolChoice::Auto, ProtocolChoice::Named)
    })
}

pub(super) fn objectives() -> impl TypedValueParser<Value = Objective> {
    PossibleValuesParser::new(Objective::ALL.map(Objective::name))
        .map(|name| name.parse().unwrap_or_default())
}

/// `volvelle plan`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  volvelle plan --entries 256 --bits 64 --batch 100000 --link wan
  volvelle plan --entries 1000 --bits 16 --objective total --json      padded to 1024 entries
  volvelle plan --table 256x64:100000 --table 65536x16:1000 --link lan
  volvelle plan --table 256x64,64:5000      two tables read at one index")]
pub struct PlanArgs {
    /// Entries of the table; padded to a power of two
    #[arg(
        long,
        value_name = "N",
        default_value = "256",
        conflicts_with = "table"
    )]
    pub entries: Entries,
    /// Bits of an entry, 1..64
    #[arg(long, value_name = "L", default_value_t = 64, conflicts_with = "table", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// Lookups at once
    #[arg(long, value_name = "N", default_value_t = 100_000, conflicts_with = "table", value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub batch: u32,
    /// Several at once: N entries of L bits (or of L bits in one table, M in another, read at one index), looked up BATCH
    /// times
    #[arg(long, value_name = "NxL[,M…]:BATCH")]
    pub table: Vec<TableSpec>,
    /// How indices are shared: additive modulo N, or XOR
    #[arg(long, value_enum, default_value_t = IndexKind::Arithmetic)]
    pub index: IndexKind,
    /// How outputs are shared: as the index, unless said
    #[arg(long, value_enum)]
    pub output: Option<OutputKind>,
    #[arg(long, value_name = "LINK", default_value = "loopback", help = LINK_HELP)]
    pub link: Link,
    /// What to minimise
    #[arg(long, value_name = "OBJECTIVE", default_value = "balanced", value_parser = objectives())]
    pub objective: Objective,
    /// What makes the oblivious transfers; auto chooses by link and demand
    #[arg(long, value_enum, default_value_t = OtEngine::Auto)]
    pub engine: OtEngine,
    /// Time this machine again instead of using what is kept from last time
    #[arg(long)]
    pub calibrate: bool,
    /// One line of JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

/// Kinds of output shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputKind {
    /// Additive modulo 2^L
    Additive,
    /// XOR
    Xor,
}

impl OutputKind {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Additive => "additive",
            Self::Xor => "xor",
        }
    }
}

/// Tables looked up at one index, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// Entries, 2 or more.
    pub entries: Entries,
    /// Bits of each table.
    pub bits: Vec<u32>,
    /// Lookups.
    pub batch: u32,
}

impl std::str::FromStr for TableSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` should be like 256x64:100000");
        let (shape, batch) = text.split_once(':').ok_or_else(wrong)?;
        let (entries, bits) = shape.split_once('x').ok_or_else(wrong)?;
        let number = |text: &str, max: u32, what: &str| match text.trim().parse::<u32>() {
            Ok(n) if (1..=max).contains(&n) => Ok(n),
            _ => Err(format!("{what} must be 1 to {max}, got `{text}`")),
        };
        let entries = entries.parse()?;
        let bits = bits
            .split(',')
            .map(|bits| number(bits, 64, "bits of an entry"))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            entries,
            bits,
            batch: number(batch, 1 << 26, "the batch")?,
        })
    }
}

/// `volvelle bench paper`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  volvelle bench paper --quick               less than two minutes on 2 cores
  volvelle bench paper --out report          everything, at the paper's batch of 100 000
Writes paper.md, paper.html (with plots) and paper.json to the folder, and the tables to standard output.")]
pub struct BenchPaperArgs {
    /// Fewer cases and smaller batches
    #[arg(long)]
    pub quick: bool,
    /// Next to nothing: for tests of this program
    #[arg(long, hide = true, conflicts_with = "quick")]
    pub smoke: bool,
    /// Folder to write the report to; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// One line of JSON a case instead of Markdown
    #[arg(long)]
    pub json: bool,
}
