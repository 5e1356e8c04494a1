//! The command line.

pub mod plan;
pub mod store;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::plan::{
    BenchPaperArgs, PlanArgs, ProtocolChoice, objectives, protocols, two_party_protocols,
};
use self::store::{LookupArgs, PreprocessArgs};
use volvelle_lut::MAX_LOG_ENTRIES;
use volvelle_lut::plan::Objective;
use volvelle_net::Link;
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{BaseOt, Engine, OtConfig, Security, dual};

/// Two parties compute on data that neither shows the other.
#[derive(Debug, Parser)]
#[command(
    name = "volvelle",
    version,
    after_help = "\
Begin with `volvelle demo`: it starts a server that holds a model and a client that holds images,
and the client learns the classes, the server nothing.
`volvelle <command> --help` shows examples of each command.",
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Classify handwritten digits privately, server and client on this machine
    Demo(DemoArgs),
    /// Hold a model and answer clients without seeing their images
    Serve(ServeArgs),
    /// Have images classified by a server without showing them
    Query(QueryArgs),
    /// Make private table lookups ahead and keep them on disk, at both parties
    Preprocess(PreprocessArgs),
    /// Look things up in a public table with what `preprocess` has made
    Lookup(LookupArgs),
    /// Make the key and certificate a party shows the other
    Keygen(KeygenArgs),
    /// Deal correlations to the two parties of a bench; `bench lut --dealer` starts it
    #[command(hide = true)]
    Deal(DealArgs),
    /// Say which lookup protocol suits a table, a link and this machine, and what each would cost
    Plan(PlanArgs),
    /// Measure protocols; every result is checked against plaintext
    #[command(subcommand)]
    Bench(BenchCommand),
}

const LINK_HELP: &str = "Emulated link: loopback (none), lan (3000 Mbit/s, 0.8 ms), \
    wan (100 Mbit/s, 50 ms), or RATE,RTT such as 200Mbit,20ms";

/// `volvelle demo`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  volvelle demo                 360 images over TLS on loopback
  volvelle demo --link wan      the same as if the parties were 50 ms apart
  volvelle demo --link wan --ahead off --protocol rotation
  volvelle demo --json          one line of JSON at the end, no progress bar")]
pub struct DemoArgs {
    #[arg(long, value_name = "LINK", default_value = "loopback", help = LINK_HELP)]
    pub link: Link,
    /// Images classified at once: more need fewer rounds and more memory
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch: u32,
    /// How the network's tables are looked up; auto: the client plans, see `volvelle plan`
    #[arg(long, value_name = "PROTOCOL", default_value = "auto", value_parser = two_party_protocols())]
    pub protocol: ProtocolChoice,
    /// Make oblivious transfers ahead in the background, on two more threads and connections
    #[arg(long, value_enum, default_value_t = Ahead::Auto)]
    pub ahead: Ahead,
    /// Classify only the first N of the 360 images
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub images: Option<u32>,
    /// End with one line of JSON instead of a summary
    #[arg(long)]
    pub json: bool,
    /// Use TCP without encryption or certificates instead of TLS
    #[arg(long)]
    pub plain_tcp: bool,
}

/// Whether oblivious transfers are made ahead in the background, on two more threads and connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ahead {
    /// If the parties are so far apart that it saves time: by the round trip that the client sees
    Auto,
    /// Always
    On,
    /// Never
    Off,
}

impl Ahead {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// How a party shows who it is and knows the other.
#[derive(Clone, Debug, Args)]
pub struct PeerArgs {
    /// This party's key and certificate, as `volvelle keygen` makes them: DIR/NAME
    #[arg(long, value_name = "DIR/NAME", required_unless_present = "plain_tcp")]
    pub identity: Option<PathBuf>,
    /// The certificate of the other party, which it has sent you (NAME.cert.pem)
    #[arg(long, value_name = "FILE", required_unless_present = "plain_tcp")]
    pub peer_cert: Option<PathBuf>,
    /// TCP without encryption or certificates: anyone on the way can read and alter everything
    #[arg(long, conflicts_with_all = ["identity", "peer_cert"])]
    pub plain_tcp: bool,
    #[arg(long, value_name = "LINK", default_value = "loopback", help = LINK_HELP)]
    pub link: Link,
    /// Give up when the other party is silent for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub timeout: u32,
}

/// `volvelle serve`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example, on the machine with the model:
  volvelle keygen --out keys --name server       (send keys/server.cert.pem to the client)
  volvelle serve --model data/digits-mlp.safetensors --listen 0.0.0.0:7000 \\
      --identity keys/server --peer-cert client.cert.pem")]
pub struct ServeArgs {
    /// The weights, a safetensors file
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: String,
    /// Images classified at once; the client must say the same
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch: u32,
    /// How the network's tables are looked up, as the client says; auto: the client plans
    #[arg(long, value_name = "PROTOCOL", default_value = "auto", value_parser = two_party_protocols())]
    pub protocol: ProtocolChoice,
    /// Make oblivious transfers ahead in the background, on two more threads and connections; the other party must say the same
    #[arg(long, value_enum, default_value_t = Ahead::Auto)]
    pub ahead: Ahead,
    /// Clients served at once; more wait for their turn
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub clients: u32,
    /// Serve one client and end
    #[arg(long)]
    pub once: bool,
    /// Print a line of JSON for the address and one for each client
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub peer: PeerArgs,
    #[command(flatten)]
    pub child: ChildArgs,
}

/// `volvelle query`
#[derive(Debug, Args)]
#[command(after_help = "\
Example, on the machine with the images:
  volvelle keygen --out keys --name client       (send keys/client.cert.pem to the server)
  volvelle query --images data/digits-test.csv --connect server.example:7000 \\
      --identity keys/client --peer-cert server.cert.pem

An images file has one image a line: 64 pixels 0..16, comma-separated, row by row, and optionally
the class. The classes found are printed one a line.")]
pub struct QueryArgs {
    /// The images, a CSV file
    #[arg(long, value_name = "FILE")]
    pub images: PathBuf,
    /// The server's address
    #[arg(long, value_name = "HOST:PORT")]
    pub connect: String,
    /// Images classified at once, as the server says: more need fewer rounds and more memory
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch: u32,
    /// How the network's tables are looked up, as the server says; auto: planned here, see `volvelle plan`
    #[arg(long, value_name = "PROTOCOL", default_value = "auto", value_parser = two_party_protocols())]
    pub protocol: ProtocolChoice,
    /// Make oblivious transfers ahead in the background, on two more threads and connections; the other party must say the same
    #[arg(long, value_enum, default_value_t = Ahead::Auto)]
    pub ahead: Ahead,
    /// Print one line of JSON with the classes and the cost
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub peer: PeerArgs,
    #[command(flatten)]
    pub child: ChildArgs,
}

/// What `volvelle demo` tells the processes it starts.
#[derive(Clone, Debug, Args)]
pub struct ChildArgs {
    /// Report progress as lines of JSON, and end when standard input does
    #[arg(long, hide = true)]
    pub child: bool,
}

/// `volvelle keygen`
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  volvelle keygen --out keys --name alice
writes keys/alice.key.pem, which nobody else may see, and keys/alice.cert.pem, which the other
party needs for its --peer-cert.")]
pub struct KeygenArgs {
    /// Folder to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Name of the party: letters, digits, '-', '_' and '.'
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// How long the certificate is valid
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
}

/// `volvelle bench`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Oblivious transfers
    Ot(BenchOtArgs),
    /// Private table lookup
    Lut(BenchLutArgs),
    /// Private comparison (the millionaires' problem)
    Compare(BenchCompareArgs),
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

/// Base OTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OtBase {
    /// On Curve25519
    Ristretto,
    /// Post-quantum: ML-KEM-768
    MlKem,
}

/// What a peer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OtSecurity {
    /// Follow the protocol and look at everything
    SemiHonest,
    /// Anything; cheating ends the session
    Malicious,
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

/// Kinds of OT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OtKind {
    /// Correlated: q and q ⊕ x·Δ
    Cot,
    /// Random: independent pads
    Rot,
}

/// Makers of OTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OtEngine {
    /// What suits link and demand, in a session that goes on
    Auto,
    /// Silent OT with the usual parameters
    Ferret,
    /// LPN secret of 2^16
    FerretK16,
    /// LPN secret of 2^17, two instances at once
    FerretK17,
    /// LPN secret of 2^18
    FerretK18,
    /// LPN secret of 2^19
    FerretK19,
    /// Pieces of 2 bits
    #[value(name = "softspoken-2")]
    Softspoken2,
    /// Pieces of 4 bits
    #[value(name = "softspoken-4")]
    Softspoken4,
    /// Pieces of 8 bits
    #[value(name = "softspoken-8")]
    Softspoken8,
    /// Dual LPN, expand-convolute code, 2^20 outputs
    #[value(name = "dual-ec20")]
    DualEc20,
    /// The same with 2^23 outputs
    #[value(name = "dual-ec23")]
    DualEc23,
    /// Dual LPN, quasi-cyclic code, 2^20 outputs
    #[value(name = "dual-qc20")]
    DualQc20,
    /// All of them, one after the other
    All,
}

impl OtEngine {
    /// As the library has it; none for `auto`.
    pub fn engine(self) -> Option<Engine> {
        let dual = |code, size| Engine::Dual(dual::Set { code, size });
        Some(match self {
            Self::Auto => return None,
            // `All` is taken apart before it gets here.
            Self::Ferret | Self::All => OtConfig::default().engine,
            Self::FerretK16 => Engine::Ferret(Set::K16),
            Self::FerretK17 => Engine::Ferret(Set::K17),
            Self::FerretK18 => Engine::Ferret(Set::K18),
            Self::FerretK19 => Engine::Ferret(Set::K19),
            Self::Softspoken2 => Engine::SoftSpoken(Piece::Two),
            Self::Softspoken4 => Engine::SoftSpoken(Piece::Four),
            Self::Softspoken8 => Engine::SoftSpoken(Piece::Eight),
            Self::DualEc20 => dual(dual::Code::ExpandConvolute, dual::Size::N20),
            Self::DualEc23 => dual(dual::Code::ExpandConvolute, dual::Size::N23),
            Self::DualQc20 => dual(dual::Code::QuasiCyclic, dual::Size::N20),
        })
    }
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
    /// Entries of the table, a power of two; most protocols take 2..4096, `tree` 256..1048576, `one-round` 2..65536
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = entries)]
    pub entries: u32,
    /// Bits of an entry, 1..64; with 1, and with a boolean index, the output is XOR-shared
    /// (`one-round`: always additive)
    #[arg(long, value_name = "L", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// How the index is shared: additive modulo N, or XOR
    #[arg(long, value_enum, default_value_t = IndexKind::Arithmetic)]
    pub index: IndexKind,
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

/// `volvelle deal`
#[derive(Debug, Args)]
pub struct DealArgs {
    /// The bench that is dealt to.
    #[command(flatten)]
    pub lut: BenchLutArgs,
    #[command(flatten)]
    pub child: ChildArgs,
}

/// Kinds of index shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexKind {
    /// Additive modulo the number of entries
    Arithmetic,
    /// XOR, bit by bit
    Boolean,
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

fn entries(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if n.is_power_of_two() && (2..=1 << MAX_LOG_ENTRIES).contains(&n) => Ok(n),
        _ => Err(format!(
            "expected a power of two from 2 to {}",
            1u32 << MAX_LOG_ENTRIES
        )),
    }
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
