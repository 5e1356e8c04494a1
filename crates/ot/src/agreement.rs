//! What the two parties settle before anything else: settings, and randomness that neither controls.
//!
//! ```text
//! semi-honest   both: settings, share                    seed = share ⊕ share'
//! malicious     both: settings, SHA-256(share)    both: share
//! ```
//! In malicious security a party commits to its share before it sees the other's (Blum, 1981): LPN matrices that are
//! weak exist, and nobody may look for one. Bits: 24 + 128, or 24 + 256 + 256, from each party.

use sha2::{Digest, Sha256};
use volvelle_net::{Channel, Label};
use volvelle_prim::{Block, Prg};

use crate::OtError;

const SETTINGS: Label = Label::new("ot/setup/settings");
const SHARE: Label = Label::new("ot/setup/share");
const COMMITMENT: Label = Label::new("ot/setup/commitment");

/// What a peer may do without learning more than its outputs. An agreement constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Security {
    /// Follow the protocol.
    #[default]
    SemiHonest,
    /// Anything: OTs that a cheating peer made wrong are noticed before they are handed out. What
    /// [`crate::convert`] and upper layers do with OTs is not checked.
    Malicious,
}

impl Security {
    /// Whether peers may cheat.
    #[must_use]
    pub const fn is_malicious(self) -> bool {
        matches!(self, Self::Malicious)
    }

    /// A number for the wire: agreement constant.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

/// A setting by name, and its number for the wire.
pub(crate) type Setting = (&'static str, u8);

/// Exchanges the settings and a share each of a seed; returns the seed.
pub(crate) fn agree(
    ch: &mut Channel,
    prg: &mut Prg,
    security: Security,
    settings: &[Setting; 3],
) -> Result<Block, OtError> {
    let share = prg.next_block();
    let mut codes = [0; 3];
    for (code, setting) in codes.iter_mut().zip(settings) {
        *code = setting.1;
    }
    ch.send(SETTINGS, &codes)?;
    match security {
        Security::SemiHonest => ch.send(SHARE, &share.to_bytes())?,
        Security::Malicious => ch.send(COMMITMENT, &commitment(ch, share.to_bytes()))?,
    }
    ch.recv(SETTINGS, &mut codes)?;
    for (&(what, ours), theirs) in settings.iter().zip(codes) {
        if ours != theirs {
            return Err(OtError::Config { what, ours, theirs });
        }
    }
    let mut theirs = [0; 16];
    if security.is_malicious() {
        let mut committed = [0; 32];
        ch.recv(COMMITMENT, &mut committed)?;
        ch.send(SHARE, &share.to_bytes())?;
        ch.recv(SHARE, &mut theirs)?;
        if commitment_of(ch.role().other(), theirs) != committed {
            return Err(OtError::Cheating {
                what: "the share of the common seed",
            });
        }
    } else {
        ch.recv(SHARE, &mut theirs)?;
    }
    Ok(share ^ Block::from_bytes(theirs))
}

fn commitment(ch: &Channel, share: [u8; 16]) -> [u8; 32] {
    commitment_of(ch.role(), share)
}

/// Binding because SHA-256 is collision resistant; hiding because the share is 128 random bits. The role is in
/// it, so that a commitment cannot be sent back.
fn commitment_of(role: volvelle_net::Role, share: [u8; 16]) -> [u8; 32] {
    let role = [u8::from(role == volvelle_net::Role::Server)];
    Sha256::new_with_prefix(b"volvelle OT share v1")
        .chain_update(role)
        .chain_update(share)
        .finalize()
        .into()
}
