//! What a protocol sends and consumes, as exact formulas.

use std::iter::Sum;
use std::ops::Add;

/// Exact cost of a protocol run over its whole batch. Bits are payload bytes × 8: values are packed
/// over a message and a message is whole bytes. OT generation is counted in OTs, not in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bits the client sends.
    pub client_bits: u64,
    /// Bits the server sends.
    pub server_bits: u64,
    /// Length of the longest chain of dependent messages.
    pub rounds: u64,
    /// OTs consumed with the client as OT sender.
    pub cots_client: u64,
    /// OTs consumed with the server as OT sender.
    pub cots_server: u64,
}

impl Cost {
    /// Bits sent by both parties together.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.client_bits + self.server_bits
    }

    /// OTs consumed in both directions.
    #[must_use]
    pub const fn cots(&self) -> u64 {
        self.cots_client + self.cots_server
    }

    /// This, then `next`: everything adds, rounds too.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        let mut total = self.alongside(next);
        total.rounds = self.rounds + next.rounds;
        total
    }

    /// This and `other` in the same rounds: bits and OTs add, rounds are the larger number.
    #[must_use]
    pub const fn alongside(self, other: Self) -> Self {
        Self {
            client_bits: self.client_bits + other.client_bits,
            server_bits: self.server_bits + other.server_bits,
            rounds: if self.rounds > other.rounds {
                self.rounds
            } else {
                other.rounds
            },
            cots_client: self.cots_client + other.cots_client,
            cots_server: self.cots_server + other.cots_server,
        }
    }
}

impl Add for Cost {
    type Output = Self;
    fn add(self, next: Self) -> Self {
        self.then(next)
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), Self::then)
    }
}

/// Cost split by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhasedCost {
    /// Before inputs are known.
    pub prep: Cost,
    /// After.
    pub online: Cost,
}

impl PhasedCost {
    /// Both phases of this, then both of `next`.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        Self {
            prep: self.prep.then(next.prep),
            online: self.online.then(next.online),
        }
    }

    /// Preprocessing and online together.
    #[must_use]
    pub const fn total(&self) -> Cost {
        self.prep.then(self.online)
    }
}
