//! `volvelle bench`, and where its parties run.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use volvelle_lut::Protocol;
use volvelle_lut::plan::Objective;
use volvelle_net::Link;
use volvelle_ot::{BaseOt, Engine, OtConfig, Security};

use super::ot::{OtBase, OtEngine, OtKind, OtSecurity};
use super::plan::{BenchPaperArgs, OutputKind, ProtocolChoice, objectives, protocols};
use super::vectors::BenchVectorsArgs;
use super::{ChildArgs, Entries, IndexKind, LINK_HELP};

/// `volvelle bench`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Oblivious transfers
    Ot(BenchOtArgs),
    /// Private table lookup
    Lut(BenchLutArgs),
    /// Private comparison (the millionaires' problem)
    Compare(BenchCompareArgs),
    /// Secret permutation and rotation of shared vectors
    Vectors(BenchVectorsArgs),
    /// The lookup tables of the ROTL paper again, its figures beside ours
    Paper(BenchPaperArgs),
}

/// Where both parties of a bench run and how they are connected.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Lanes: threads of each party, each with its own channel and its own oblivious transfers
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    #[arg(long, value_name = "LINK", default_value = "loopback", help = LINK_HELP)]
    pub link: Link,
    /// What connects the parties
    #[arg(long, value_enum, default_value_t = Transport::Memory)]
    pub transport: Transport,
    /// What makes the oblivious transfers: silent OT from LPN (larger secrets send less, need more
    /// cache), or the SoftSpoken extension (more bits a piece send less, compute more); auto chooses by link
    /// and demand
    #[arg(long, value_enum, default_value_t = OtEngine::Auto)]
    pub engine: OtEngine,
    /// What `auto` has come to.
    #[arg(skip)]
    pub planned: Option<Engine>,
    /// The public-key OTs that all others grow from
    #[arg(long, value_enum, default_value_t = OtBase::Ristretto)]
    pub base: OtBase,
    /// What the oblivious transfers stand; what is built on them stays semi-honest
    #[arg(long, value_enum, default_value_t = OtSecurity::SemiHonest)]
    pub security: OtSecurity,
    /// Make oblivious transfers ahead in the background: two threads and two more connections a lane. Those ready
    /// when a phase begins (up to 131 072 a direction) are not in its time
    #[arg(long)]
    pub ahead: bool,
    /// One line of JSON a case instead of a table
    #[arg(long)]
    pub json: bool,
}

impl BenchArgs {
    /// Connections of a lane: the main one, and one a direction for what is made ahead.
    pub fn connections(&self) -> usize {
        if self.ahead { 3 } else { 1 }
    }

    /// The oblivious transfers asked for.
    pub fn ot_config(&self) -> OtConfig {
        let engine = self.engine().unwrap_or(OtConfig::default().engine);
        OtConfig::new(engine)
            .with_base(match self.base {
                OtBase::Ristretto => BaseOt::Ristretto,
                OtBase::MlKem => BaseOt::MlKem,
            })
            .with_security(self.security())
    }

    /// The engine, once it is known.
    pub fn engine(&self) -> Option<Engine> {
        self.engine.engine().or(self.planned)
    }

    /// The same with what `auto` has come to.
    pub fn with_engine(&self, engine: Engine) -> Self {
        Self {
            planned: Some(engine),
            ..self.clone()
        }
    }

    /// What the peer may do.
    pub fn security(&self) -> Security {
        match self.security {
            OtSecurity::SemiHonest => Security::SemiHonest,
            OtSecurity::Malicious => Security::Malicious,
        }
    }

    /// What names the oblivious transfers among a case's parameters.
    pub fn ot_name(&self) -> String {
        let mut name = self
            .engine()
            .map_or_else(|| "auto".to_owned(), |engine| engine.to_string());
        if self.base == OtBase::MlKem {
            name += ", ml-kem";
        }
        if self.security == OtSecurity::Malicious {
            name += ", malicious";
        }
        if self.ahead {
            name += ", made ahead";
        }
        name
    }
}

/// Where the other party of a bench is, if it is not in this process.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Between two machines")]
pub struct RemoteArgs {
    /// Run the server here and wait for the client; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["connect", "transport"])]
    pub listen: Option<String>,
    /// Run the client here and connect to the server
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "transport")]
    pub connect: Option<String>,
    /// This party's key and certificate, as `volvelle keygen` makes them: DIR/NAME
    #[arg(long, value_name = "DIR/NAME", requires = "peer_cert")]
    pub identity: Option<PathBuf>,
    /// The certificate of the other party
    #[arg(long, value_name = "FILE", requires = "identity")]
    pub peer_cert: Option<PathBuf>,
    /// TCP without encryption or certificates
    #[arg(long, conflicts_with = "identity")]
    pub plain_tcp: bool,
}

impl RemoteArgs {
    /// Whether there is another process to talk to.
    pub fn is_given(&self) -> bool {
        self.listen.is_some() || self.connect.is_some()
    }
}

/// What connects two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// A pair of queues in this process
    Memory,
    /// TCP on loopback, not encrypted
    Tcp,
    /// TLS 1.3 on loopback
    Tls,
}

/// `volvelle bench ot`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  volvelle bench ot --kind cot --engine ferret --count 16777216 --json
  volvelle bench ot --engine all --json          a line for each engine")]
pub struct BenchOtArgs {
    /// Correlated OTs, or random OTs (correlated ones hashed)
    #[arg(long, value_enum, default_value_t = OtKind::Cot)]
    pub kind: OtKind,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1 << 24, value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub count: u64,
    #[command(flatten)]
    pub bench: BenchArgs,
}

/// `volvelle bench lut`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  volvelle bench lut --entries 256 --bits 64 --batch 100000
  volvelle bench lut --protocol rotation --entries 256 --bits 64 --link wan --json
  volvelle bench lut --protocol splut --entries 16 --bits 8
  volvelle bench lut --protocol tree --entries 65536 --bits 16 --batch 10000
  volvelle bench lut --store --batch 1000000         by way of the disk
  volvelle bench lut --protocol grotto --dealer      a third party deals: a weaker model
Between two machines, the same bench on both:
  volvelle bench lut --protocol doubling --listen 0.0.0.0:7000 --plain-tcp
  volvelle bench lut --protocol doubling --connect server.example:7000 --plain-tcp")]
pub struct BenchLutArgs {
    /// The protocol; auto: the client plans, see `volvelle plan`
    #[arg(long, value_name = "PROTOCOL", default_value = "auto", value_parser = protocols())]
    pub protocol: ProtocolChoice,
    /// What auto is to minimise
    #[arg(long, value_name = "OBJECTIVE", default_value = "balanced", value_parser = objectives())]
    pub objective: Objective,
    /// Entries of the table, padded to a power of two; most protocols take 2..4096, `tree` 256..1048576, `one-round`
    /// 2..65536
    #[arg(long, value_name = "N", default_value = "256")]
    pub entries: Entries,
    /// Bits of an entry, 1..64
    #[arg(long, value_name = "L", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// How the index is shared: additive modulo N, or XOR
    #[arg(long, value_enum, default_value_t = IndexKind::Arithmetic)]
    pub index: IndexKind,
    /// How outputs are shared; unless said, by XOR with 1 bit or a boolean index, and additively otherwise and by
    /// `one-round`
    #[arg(long, value_enum)]
    pub output: Option<OutputKind>,
    /// Lookups at once
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub batch: u32,
    /// Start a dealer as a third process, for the protocol that has one
    #[arg(long)]
    pub dealer: bool,
    /// Write what is preprocessed to a store on the disk (in TMPDIR) and read it back before it is used; auto: what sends the fewest bits
    #[arg(long, conflicts_with = "dealer")]
    pub store: bool,
    #[command(flatten)]
    pub bench: BenchArgs,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

impl BenchLutArgs {
    /// How outputs are shared.
    pub fn output(&self) -> OutputKind {
        let xor = self.index == IndexKind::Boolean || self.bits == 1;
        match self.output {
            Some(output) => output,
            None if xor && self.protocol != ProtocolChoice::Named(Protocol::OneRound) => {
                OutputKind::Xor
            }
            None => OutputKind::Additive,
        }
    }
}

/// `volvelle deal`
#[derive(Debug, Args)]
pub struct DealArgs {
    /// The bench that is dealt to.
    #[command(flatten)]
    pub lut: BenchLutArgs,
    #[command(flatten)]
    pub child: ChildArgs,
}

/// `volvelle bench compare`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  volvelle bench compare --variant cheetah --bits 32 --batch 1048576 --json")]
pub struct BenchCompareArgs {
    /// The protocol
    #[arg(long, value_enum, default_value_t = CompareVariant::Cheetah)]
    pub variant: CompareVariant,
    /// Bits of the numbers compared, 1..64
    #[arg(long, value_name = "L", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// Comparisons at once
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub batch: u32,
    #[command(flatten)]
    pub bench: BenchArgs,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Comparison protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareVariant {
    /// Blocks compared by one-hot lookups
    Onehot,
    /// Blocks of four bits compared by 1-of-16 OT
    Cheetah,
    /// Blocks of two bits compared by 1-of-4 OT: fewest bits, a round more
    Compact,
}

impl CompareVariant {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Onehot => "onehot",
            Self::Cheetah => "cheetah",
            Self::Compact => "compact",
        }
    }
}
