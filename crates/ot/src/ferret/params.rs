//! LPN parameter sets. **Security parameters**: not tunable below 128 bits.
//!
//! Primal LPN over GF(2^128) with regular noise and a local linear code of ten ones a row. The sets are
//! b10 to b13 of the emp-ot library's Ferret (1.0-alpha), which its authors chose with an LPN estimator for
//! about 128 bits against the published attacks on regular LPN; they replace the sets of the Ferret paper
//! (Yang et al., CCS 2020). The hybrid attack binds, and gains from more samples at the same `k`: an
//! iteration never makes more than `trees · 2^depth` of them.

use crate::Security;
use crate::trees::checked::{CHECK_BITS, CHECK_COTS};

/// One of the four parameter sets, named by `log2` of the LPN secret's length `k`.
///
/// Larger sets cost fewer bits a COT; smaller ones start sooner and stay in a smaller cache. Both
/// parties must choose the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// `k` = 2^16: 850 trees of depth 10.
    K16,
    /// `k` = 2^17: 1170 trees of depth 11.
    K17,
    /// `k` = 2^18: 1520 trees of depth 12.
    K18,
    /// `k` = 2^19: 1900 trees of depth 13.
    K19,
}

impl Set {
    /// All sets, smallest first.
    pub const ALL: [Self; 4] = [Self::K16, Self::K17, Self::K18, Self::K19];

    /// Noise weight = number of trees.
    #[must_use]
    pub const fn trees(self) -> usize {
        match self {
            Self::K16 => 850,
            Self::K17 => 1170,
            Self::K18 => 1520,
            Self::K19 => 1900,
        }
    }

    /// `log2` of the secret's length.
    #[must_use]
    pub const fn log_secret(self) -> u32 {
        match self {
            Self::K16 => 16,
            Self::K17 => 17,
            Self::K18 => 18,
            Self::K19 => 19,
        }
    }

    /// Depth of a tree; a tree gives `2^depth` COTs.
    #[must_use]
    pub const fn depth(self) -> u32 {
        self.log_secret() - 6
    }

    /// LPN instances run side by side (1 or 2): a local choice of speed, but an agreement constant. One
    /// instance for the smallest set, which starts a session, and where two secrets overflow the cache.
    #[must_use]
    pub const fn instances(self) -> usize {
        match self {
            Self::K17 => 2,
            Self::K16 | Self::K18 | Self::K19 => 1,
        }
    }

    /// COTs an iteration makes, all instances together.
    #[must_use]
    pub const fn made(self) -> usize {
        (self.trees() * self.instances()) << self.depth()
    }

    /// COTs an iteration consumes: the LPN secrets and the trees' OTs.
    #[must_use]
    pub const fn seed(self) -> usize {
        self.instances() * ((1 << self.log_secret()) + self.trees() * self.depth() as usize)
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

    /// The set that serves a demand of `cots` COTs in one direction: the smallest where starting dominates,
    /// else the fastest. [`Set::K19`] sends the least and is chosen by name.
    #[must_use]
    pub const fn for_demand(cots: u64) -> Self {
        if cots <= 100_000 {
            Self::K16
        } else {
            Self::K17
        }
    }

    /// Its name, for handshakes and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::K16 => "k16",
            Self::K17 => "k17",
            Self::K18 => "k18",
            Self::K19 => "k19",
        }
    }
}
