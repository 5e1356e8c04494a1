//! Dual-LPN parameter sets. **Security parameters**: not tunable below 128 bits.
//!
//! Regular noise of `t` blocks in `2n` positions, compressed by a public code to `n`. Against linear tests a code of
//! relative distance `δ` needs `(1 − 2δ)^t ≤ 2^−128` (Boyle et al., CRYPTO 2019 and 2022; Raghuraman–Rindal–Tanguy,
//! CRYPTO 2023). The distances are those that the library libOTe publishes for its parameters "ExConv7x24"
//! (`δ = 0.15`) and "QuasiCyclic" (`δ = 0.2`), *pseudo-distances*: estimates of the lowest weight that anyone can find,
//! above what is proved. They ask for 249 and 174 blocks. We take 256 in both: 131 bits by that measure for
//! expand-convolute; 188 for quasi-cyclic, whose rotations give an attacker some `n` targets at once.

use crate::Security;
use crate::trees::checked::{CHECK_BITS, CHECK_COTS};

/// The public code that compresses the noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Seven gathers from a vector convoluted with a window of 24 (Raghuraman–Rindal–Tanguy, CRYPTO 2023). The
    /// faster one; its pseudo-distance is an estimate.
    ExpandConvolute,
    /// A random quasi-cyclic code: products modulo `x^p − 1` (Boyle et al., CCS 2019). The older assumption.
    QuasiCyclic,
}

/// `log2` of the outputs of an instance: larger ones send less a COT, need more memory and start later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Size {
    /// 2^18: trees of depth 11.
    N18,
    /// 2^20: depth 13.
    N20,
    /// 2^22: depth 15.
    N22,
    /// 2^23: depth 16.
    N23,
    /// 2^17, in two instances like the largest, for tests of those in little time.
    #[cfg(test)]
    N17,
}

impl Size {
    /// All sizes, smallest first.
    pub const ALL: [Self; 4] = [Self::N18, Self::N20, Self::N22, Self::N23];

    /// `log2` of the outputs.
    #[must_use]
    pub const fn log_rows(self) -> u32 {
        match self {
            Self::N18 => 18,
            Self::N20 => 20,
            Self::N22 => 22,
            Self::N23 => 23,
            #[cfg(test)]
            Self::N17 => 17,
        }
    }
}

/// A parameter set. Both parties must choose the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Set {
    /// The public code.
    pub code: Code,
    /// How much an iteration makes.
    pub size: Size,
}

/// `log2` of [`Set::trees`].
const LOG_TREES: u32 = 8;

impl Set {
    /// Expand-convolute of a size.
    #[must_use]
    pub const fn expand_convolute(size: Size) -> Self {
        Self {
            code: Code::ExpandConvolute,
            size,
        }
    }

    /// Quasi-cyclic of a size.
    #[must_use]
    pub const fn quasi_cyclic(size: Size) -> Self {
        Self {
            code: Code::QuasiCyclic,
            size,
        }
    }

    /// Noise weight = number of trees of an instance, half of them for each half of the noise.
    #[must_use]
    pub const fn trees(self) -> usize {
        1 << LOG_TREES
    }

    /// Outputs of an instance, `n`; the noise has `2n` positions.
    #[must_use]
    pub const fn rows(self) -> usize {
        1 << self.size.log_rows()
    }

    /// Depth of a tree; `trees · 2^depth = 2n`.
    #[must_use]
    pub const fn depth(self) -> u32 {
        self.size.log_rows() + 1 - LOG_TREES
    }

    /// Instances run side by side, an agreement constant: four where one gather serves all; two in the largest, of which
    /// four would take 512 MiB a direction.
    #[must_use]
    pub const fn instances(self) -> usize {
        match (self.code, self.size) {
            (Code::ExpandConvolute, Size::N23) => 2,
            #[cfg(test)]
            (Code::ExpandConvolute, Size::N17) => 2,
            (Code::ExpandConvolute, _) => 4,
            (Code::QuasiCyclic, _) => 1,
        }
    }

    /// COTs an iteration makes, all instances together.
    #[must_use]
    pub const fn made(self) -> usize {
        self.rows() * self.instances()
    }

    /// COTs an iteration consumes: those of its trees.
    #[must_use]
    pub const fn seed(self) -> usize {
        self.instances() * self.trees() * self.depth() as usize
    }

    /// COTs an iteration hands out: those made less the seed of the next.
    #[must_use]
    pub const fn handed_out(self) -> usize {
        self.made() - self.seed()
    }

    /// Bits an iteration sends.
    #[must_use]
    pub const fn bits(self) -> u64 {
        (self.instances() * self.trees()) as u64 * (self.depth() as u64 - 1) * 128
    }

    /// COTs an iteration consumes, those of its check included.
    #[must_use]
    pub const fn seed_with(self, security: Security) -> usize {
        self.seed()
            + if security.is_malicious() {
                CHECK_COTS
            } else {
                0
            }
    }

    /// COTs an iteration hands out.
    #[must_use]
    pub const fn handed_out_with(self, security: Security) -> usize {
        self.made() - self.seed_with(security)
    }

    /// Bits an iteration sends, both parties together: with checks every tree has a message of level 1.
    #[must_use]
    pub const fn bits_with(self, security: Security) -> u64 {
        let level_1 = (self.instances() * self.trees()) as u64 * 128;
        self.bits()
            + if security.is_malicious() {
                level_1 + CHECK_BITS
            } else {
                0
            }
    }

    /// Bytes of the compressed noise that one direction keeps at one party, by far the most of its memory.
    #[must_use]
    pub const fn memory(self) -> usize {
        self.made() * 16
    }

    /// Its name, for handshakes and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match (self.code, self.size) {
            (Code::ExpandConvolute, Size::N18) => "ec18",
            (Code::ExpandConvolute, Size::N20) => "ec20",
            (Code::ExpandConvolute, Size::N22) => "ec22",
            (Code::ExpandConvolute, Size::N23) => "ec23",
            (Code::QuasiCyclic, Size::N18) => "qc18",
            (Code::QuasiCyclic, Size::N20) => "qc20",
            (Code::QuasiCyclic, Size::N22) => "qc22",
            (Code::QuasiCyclic, Size::N23) => "qc23",
            #[cfg(test)]
            (_, Size::N17) => "of tests",
        }
    }

    /// A number for the wire, below 0x80: agreement constant.
    pub(crate) const fn wire(self) -> u8 {
        let code = match self.code {
            Code::ExpandConvolute => 0x40,
            Code::QuasiCyclic => 0x60,
        };
        code | self.size.log_rows() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_of_the_next_iteration_comes_from_the_last_eight_trees() {
        for size in Size::ALL.into_iter().chain([Size::N17]) {
            for set in [Set::expand_convolute(size), Set::quasi_cyclic(size)] {
                assert!(set.seed() <= 8 << set.depth(), "{}", set.name());
            }
        }
    }
}
