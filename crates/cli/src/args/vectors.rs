//! `volvelle bench vectors`.

use clap::{Args, ValueEnum};

use super::{BenchArgs, RemoteArgs};

/// `volvelle bench vectors`
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples; figures are a vector's:
  volvelle bench vectors --kind permute --len 256 --bits 64 --batch 100
  volvelle bench vectors --kind rotate --len 256 --bits 64 --batch 10000 --json")]
pub struct BenchVectorsArgs {
    /// What is done to the vectors
    #[arg(long, value_enum, default_value_t = Move::Permute)]
    pub kind: Move,
    /// Elements of a vector: 2..65536 (by trees 1024); to rotate, a power of two 2..2048
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(2..=65536))]
    pub len: u32,
    /// Bits of an element, 1..64
    #[arg(long, value_name = "L", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub bits: u32,
    /// Vectors at once
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1 << 26))]
    pub batch: u32,
    #[command(flatten)]
    pub bench: BenchArgs,
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// What can be done to a shared vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Move {
    /// Permuted as the server says, prepared by what sends fewer bits
    Permute,
    /// Permuted, prepared by punctured PRFs
    PermuteTrees,
    /// Permuted, prepared by a network of switches
    PermuteSwitches,
    /// Rotated by as much as the server says
    Rotate,
    /// Rotated by as much as both say in shares
    RotateShared,
}

impl Move {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Permute => "permute",
            Self::PermuteTrees => "permute-trees",
            Self::PermuteSwitches => "permute-switches",
            Self::Rotate => "rotate",
            Self::RotateShared => "rotate-shared",
        }
    }
}
