//! Oblivious transfers: of which kind, and what makes them.

use clap::ValueEnum;
use volvelle_ot::ferret::Set;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{Engine, OtConfig, dual};

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
    /// The same with 2^23 outputs
    DualQc23,
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
            Self::DualQc23 => dual(dual::Code::QuasiCyclic, dual::Size::N23),
        })
    }
}
