//! Base OT: `COUNT` = 128 random OTs in each direction from public-key cryptography.
//!
//! | protocol | module | used for | bits a direction |
//! |---|---|---|---|
//! | Chou–Orlandi on Ristretto | `ristretto` | [`BaseOt::Ristretto`], semi-honest | 256 + 128·256 |
//! | Masny–Rindal on Ristretto | `endemic` | [`BaseOt::Ristretto`], malicious | 256 + 128·512 |
//! | Masny–Rindal from ML-KEM-768 | `mlkem` | [`BaseOt::MlKem`] | 128·(18 688 + 17 408) |
//!
//! Each module's `run` makes both directions at once, in two messages a party. The pads mask messages
//! chosen by the extension, so the weaker "endemic" notion of Masny and Rindal is enough: a party that
//! cheats may fix its own pads, which hides nothing from itself.

mod endemic;
mod mlkem;
mod ristretto;

use volvelle_net::Channel;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::{OtError, Security};

/// OTs in a batch: one a bit of Δ.
pub(crate) const COUNT: usize = 128;

/// The public-key cryptography that a session starts from. An agreement constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BaseOt {
    /// Diffie–Hellman on Ristretto (Curve25519): the least bits and time.
    #[default]
    Ristretto,
    /// ML-KEM-768 (FIPS 203): holds against quantum computers too, at 4.6 Mbit a direction.
    MlKem,
}

impl BaseOt {
    /// All, the default first.
    pub const ALL: [Self; 2] = [Self::Ristretto, Self::MlKem];

    /// A number for the wire: agreement constant.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ristretto => 0,
            Self::MlKem => 1,
        }
    }

    /// Bits both parties send for both directions.
    #[must_use]
    pub const fn bits(self, security: Security) -> u64 {
        let bytes = match (self, security) {
            (Self::Ristretto, Security::SemiHonest) => ristretto::BYTES,
            (Self::Ristretto, Security::Malicious) => endemic::BYTES,
            (Self::MlKem, _) => mlkem::BYTES,
        };
        2 * 8 * bytes as u64
    }
}

/// One party's keys of both directions.
pub(crate) struct Keys {
    /// As sender: both keys of every OT.
    pub(crate) pairs: Zeroizing<Vec<[Block; 2]>>,
    /// As receiver: the chosen ones.
    pub(crate) chosen: Zeroizing<Vec<Block>>,
}

/// Base OTs in both directions; bit `i` of `choices` is this party's choice in OT `i` as receiver.
pub(crate) fn both_ways(
    ch: &mut Channel,
    prg: &mut Prg,
    (base, security): (BaseOt, Security),
    choices: Block,
) -> Result<Keys, OtError> {
    match (base, security) {
        (BaseOt::Ristretto, Security::SemiHonest) => ristretto::run(ch, prg, choices),
        (BaseOt::Ristretto, Security::Malicious) => endemic::run(ch, prg, choices),
        (BaseOt::MlKem, _) => mlkem::run(ch, prg, choices),
    }
}

/// Room for all keys of a sender: pushing them never moves them, which would leave copies.
fn room_for_pairs() -> Zeroizing<Vec<[Block; 2]>> {
    Zeroizing::new(Vec::with_capacity(COUNT))
}

/// Bit `i` of `choices`.
fn choice(choices: Block, i: usize) -> u8 {
    (choices.0 >> i & 1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_net::Role;
    use volvelle_net::testing::{run_pair, scripted};

    const KINDS: [(BaseOt, Security); 4] = [
        (BaseOt::Ristretto, Security::SemiHonest),
        (BaseOt::Ristretto, Security::Malicious),
        (BaseOt::MlKem, Security::SemiHonest),
        (BaseOt::MlKem, Security::Malicious),
    ];

    #[test]
    fn the_receiver_gets_the_chosen_key_of_two_different_ones_at_the_stated_cost() {
        for kind in KINDS {
            let choices = [Prg::from_os().next_block(), Prg::from_os().next_block()];
            let party = |choices| {
                move |ch: &mut Channel| {
                    let keys = both_ways(ch, &mut Prg::from_os(), kind, choices).unwrap();
                    ch.flush().unwrap();
                    (keys, ch.meter().total().bits())
                }
            };
            let (client, server) = run_pair(party(choices[0]), party(choices[1]));
            for (sender, receiver, choices) in [
                (&client.0, &server.0, choices[1]),
                (&server.0, &client.0, choices[0]),
            ] {
                for (i, key) in receiver.chosen.iter().enumerate() {
                    let c = usize::from(choice(choices, i));
                    let pair = sender.pairs[i];
                    assert!(*key == pair[c] && *key != pair[1 - c], "{kind:?} OT {i}");
                }
            }
            assert_eq!(client.1, kind.0.bits(kind.1), "{kind:?}");
        }
    }

    #[test]
    fn a_peer_that_hangs_up_is_an_error() {
        for kind in KINDS {
            let mut ch = scripted(Role::Server, Vec::new());
            let made = both_ways(&mut ch, &mut Prg::from_os(), kind, Block(1));
            assert!(matches!(made, Err(OtError::Net(_))), "{kind:?}");
        }
    }
}
