//! Every way of looking up, by name: what it takes, and what it costs.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use volvelle_net::Role;
use volvelle_ot::PhasedCost;
use volvelle_prim::Block;
use volvelle_prim::fold::row_words;

use crate::shape::{SMALL, check_size};
use crate::{
    Demand, Flute, FlutePlus, GarbledLut, Garbling, Generator, Index, Lookups, LutError, OneRound,
    OpLut, Ottt, Setup, SpLut, flute, flute_plus, one_round,
};

/// A whole way of looking up, by name. [`Prepared`](crate::Prepared) runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// One-hot correlations by [`Generator::Rotation`].
    Rotation,
    /// One-hot correlations by [`Generator::Doubling`].
    Doubling,
    /// One-hot correlations by [`Generator::Tree`].
    Tree,
    /// Additively shared outputs in one round, [`OneRound`].
    OneRound,
    /// XOR-shared index and outputs by products of random bits, [`FlutePlus`].
    FlutePlus,
    /// The same as first published, a baseline: [`Flute`].
    Flute,
    /// A baseline: 1-of-n OT of the masked table, [`SpLut`].
    SpLut,
    /// A baseline: truth tables by 1-of-n OT, [`OpLut`] as published.
    OpLut,
    /// A baseline: truth tables by a barrel shifter, [`OpLut`] with [`Setup::Shifter`].
    OpLutShifter,
    /// A baseline: one-time truth tables, [`Ottt`].
    Ottt,
    /// A baseline: a garbled row for each entry, [`GarbledLut`].
    Garbled,
    /// A baseline: a garbled lookup with a logarithmic number of ciphertexts, XOR-shared outputs.
    GarbledLog,
}

impl Protocol {
    /// Every protocol, in the order in which they are documented.
    pub const ALL: [Self; 12] = [
        Self::Rotation,
        Self::Doubling,
        Self::Tree,
        Self::OneRound,
        Self::FlutePlus,
        Self::Flute,
        Self::SpLut,
        Self::OpLut,
        Self::OpLutShifter,
        Self::Ottt,
        Self::Garbled,
        Self::GarbledLog,
    ];

    /// The name used on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rotation => "rotation",
            Self::Doubling => "doubling",
            Self::Tree => "tree",
            Self::OneRound => "one-round",
            Self::FlutePlus => "flute+",
            Self::Flute => "flute",
            Self::SpLut => "splut",
            Self::OpLut => "oplut",
            Self::OpLutShifter => "oplut-shifter",
            Self::Ottt => "ottt",
            Self::Garbled => "garbled",
            Self::GarbledLog => "garbled-log",
        }
    }

    /// The generator of its one-hot correlations, if it uses any.
    #[must_use]
    pub const fn generator(self) -> Option<Generator> {
        match self {
            Self::Rotation => Some(Generator::Rotation),
            Self::Doubling => Some(Generator::Doubling),
            Self::Tree => Some(Generator::Tree),
            _ => None,
        }
    }

    /// Whether it is here to be compared with.
    #[must_use]
    pub const fn is_baseline(self) -> bool {
        matches!(
            self,
            Self::Flute
                | Self::SpLut
                | Self::OpLut
                | Self::OpLutShifter
                | Self::Ottt
                | Self::Garbled
                | Self::GarbledLog
        )
    }

    /// Whether it asks for the OTs of a part of the batch when the part before has been sent and received, rather than for all OTs
    /// first.
    #[must_use]
    pub const fn draws_between_messages(self) -> bool {
        matches!(
            self,
            Self::Rotation
                | Self::Tree
                | Self::OneRound
                | Self::OpLut
                | Self::OpLutShifter
                | Self::Garbled
                | Self::GarbledLog
        )
    }

    /// The `k` of the tables, of `2^k` entries, that it is for.
    #[must_use]
    pub const fn log_entries(self) -> RangeInclusive<u32> {
        match self {
            Self::Rotation => Generator::Rotation.log_entries(),
            Self::Doubling => Generator::Doubling.log_entries(),
            Self::Tree => Generator::Tree.log_entries(),
            Self::OneRound => one_round::LOG_ENTRIES,
            Self::FlutePlus => flute_plus::SIZES,
            Self::Flute => flute::SIZES,
            Self::SpLut => SMALL,
            Self::OpLut => 1..=Setup::OneOfN.max_log_entries(),
            Self::OpLutShifter => 1..=Setup::Shifter.max_log_entries(),
            Self::Ottt => 1..=Ottt::MAX_LOG_ENTRIES,
            Self::Garbled | Self::GarbledLog => 1..=GarbledLut::MAX_LOG_ENTRIES,
        }
    }

    pub(crate) fn check(self, log_entries: u32) -> Result<(), LutError> {
        check_size(self.name(), self.log_entries(), log_entries)
    }

    /// Whether a peer that cheats in it learns Δ, and with it every OT of the session; OTs of malicious security refuse
    /// it.
    #[must_use]
    pub const fn reveals_delta(self) -> bool {
        matches!(self, Self::Tree | Self::OneRound)
    }

    /// The party that speaks first online, where the other then answers; `None` where both speak at once in every
    /// round. Whoever reckons the rounds of a chain of protocols needs it.
    #[must_use]
    pub const fn speaks_first(self) -> Option<Role> {
        match self {
            Self::SpLut => Some(Role::Client),
            Self::Garbled | Self::GarbledLog => Some(Role::Server),
            _ => None,
        }
    }

    /// Whether the protocol can meet a demand.
    ///
    /// # Errors
    /// [`LutError::Size`], [`LutError::Unsuited`] or [`LutError::Memory`], which says why not.
    pub fn takes(self, demand: &Demand) -> Result<(), LutError> {
        self.check(demand.log_entries())?;
        let refuse = |what| {
            Err(LutError::Unsuited {
                protocol: self,
                what,
            })
        };
        let (xor, boolean) = (demand.is_xor(), demand.shape().index == Index::Boolean);
        match self {
            Self::Flute | Self::FlutePlus if !boolean => refuse("additively shared indices"),
            Self::Flute | Self::FlutePlus | Self::GarbledLog if !xor => {
                refuse("additively shared outputs")
            }
            Self::OneRound if xor => refuse("XOR-shared outputs"),
            _ => self.check_memory(demand),
        }
    }

    fn check_memory(self, demand: &Demand) -> Result<(), LutError> {
        let (batch, each) = (demand.batch() as u64, self.kept_bytes(demand).max(1));
        if batch <= MEMORY / each {
            return Ok(());
        }
        Err(LutError::Memory {
            protocol: self,
            batch,
            mib: batch.saturating_mul(each).div_ceil(1 << 20),
            limit_mib: MEMORY >> 20,
            most: MEMORY / each,
        })
    }

    /// Bytes of a lookup kept between the phases by the party that keeps more.
    fn kept_bytes(self, demand: &Demand) -> u64 {
        let (k, words) = (u64::from(demand.log_entries()), demand.words());
        let (tables, position) = (words.len() as u64, size_of::<u32>() as u64);
        let row = 8 * row_words(demand.log_entries()) as u64;
        let signs = if demand.is_xor() { 0 } else { 1 + 16 * tables };
        let block = size_of::<Block>() as u64;
        match self {
            Self::Rotation | Self::Doubling => row + position + signs,
            Self::FlutePlus | Self::Flute => row + position,
            // Roots and corrections; rows are grown when they are used.
            Self::Tree => block * k.saturating_sub(6) + position + signs,
            Self::OneRound => block * k + position + 8 * tables,
            Self::SpLut => block * (k + 1),
            Self::OpLut | Self::OpLutShifter | Self::Ottt => {
                let entry = |bits: &u32| u64::from(bits.div_ceil(8).next_power_of_two());
                words.iter().map(entry).sum::<u64>() << k
            }
            Self::Garbled | Self::GarbledLog => {
                let (k, index) = (demand.log_entries(), demand.shape().index);
                GarbledLut::cost(self.garbling(), k, index, words, 8)
                    .prep
                    .client_bits
                    / 64
            }
        }
    }

    /// How the garbled protocols garble.
    pub(crate) fn garbling(self) -> Garbling {
        if self == Self::GarbledLog {
            Garbling::LogRow
        } else {
            Garbling::Rows
        }
    }

    /// Exactly what preparing and looking up a demand sends and consumes; `None` where
    /// [`Self::takes`] refuses.
    #[must_use]
    pub fn cost(self, demand: &Demand) -> Option<PhasedCost> {
        self.takes(demand).ok()?;
        let (shape, words, batch) = (demand.shape(), demand.words(), demand.batch());
        let (k, index) = (shape.log_entries, shape.index);
        Some(match self {
            Self::Rotation => Lookups::cost(Generator::Rotation, shape, batch),
            Self::Doubling => Lookups::cost(Generator::Doubling, shape, batch),
            Self::Tree => Lookups::cost(Generator::Tree, shape, batch),
            Self::OneRound => OneRound::cost(shape, batch),
            Self::FlutePlus => FlutePlus::cost(k, batch),
            Self::Flute => Flute::cost(k, batch),
            Self::SpLut => SpLut::cost(k, words, batch),
            Self::OpLut => OpLut::cost(Setup::OneOfN, k, words, batch),
            Self::OpLutShifter => OpLut::cost(Setup::Shifter, k, words, batch),
            Self::Ottt => Ottt::cost(k, index, demand.sharing(), words, batch),
            Self::Garbled | Self::GarbledLog => {
                GarbledLut::cost(self.garbling(), k, index, words, batch)
            }
        })
    }
}

/// Bytes of prepared material that a batch may take at a party.
const MEMORY: u64 = 1 << 31;

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = LutError;

    fn from_str(name: &str) -> Result<Self, LutError> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| LutError::UnknownProtocol {
                got: name.to_owned(),
            })
    }
}

/// The names of all protocols, for messages.
pub(crate) fn names() -> String {
    Protocol::ALL.map(Protocol::name).join(", ")
}
