//! The command line.

mod bench;
mod entries;
mod ot;
pub mod plan;
pub mod store;
pub mod vectors;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use volvelle_net::Link;

pub use self::bench::{
    BenchArgs, BenchCommand, BenchCompareArgs, BenchLutArgs, BenchOtArgs, CompareVariant, DealArgs,
    RemoteArgs, Transport,
};
pub use self::entries::Entries;
pub use self::ot::{OtBase, OtEngine, OtKind, OtSecurity};
use self::plan::{PlanArgs, ProtocolChoice, two_party_protocols};
use self::store::{LookupArgs, PreprocessArgs};

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

/// Kinds of index shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexKind {
    /// Additive modulo the number of entries
    Arithmetic,
    /// XOR, bit by bit
    Boolean,
}
