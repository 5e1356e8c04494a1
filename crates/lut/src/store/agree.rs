//! What two parties tell each other about their stores.
//!
//! ```text
//!     C                                                      S
//!     version, have one?, share of an id, id,
//!     stored, cursor, shape                     ────────▶
//!                                               ◀────────   the same
//! ```
//!
//! Rounds: 1. Bits: [`cost`]. Nothing of it is secret: it tells how many correlations were made and used, which the
//! peer has seen happen.

use volvelle_net::{Channel, Label};
use volvelle_ot::Cost;

use super::error::StoreError;
use super::header::{ID, MAX_SHAPE, VERSION, decode_shape, encode_shape, take};
use crate::{LutError, Shape};

const LABEL: Label = Label::new("lut/store");
/// More correlations than any two parties make; sums of two such numbers do not overflow.
const MAX_COUNT: u64 = 1 << 48;
const FIXED: usize = 2 + 1 + 2 * ID + 8 + 8;

/// One party's word about its store.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// Whether there is one.
    pub present: bool,
    /// A fresh share of the id of the store to be made, if one is.
    pub share: [u8; ID],
    /// The store's id.
    pub id: [u8; ID],
    /// Correlations ever stored.
    pub count: u64,
    /// Correlations used up.
    pub cursor: u64,
    pub shape: Shape,
}

impl Terms {
    /// A store that has never held anything can be made again without harm.
    pub const fn is_unused(&self) -> bool {
        self.count == 0 && self.cursor == 0
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = VERSION.to_le_bytes().to_vec();
        out.push(self.present.into());
        out.extend(self.share);
        out.extend(self.id);
        out.extend(self.count.to_le_bytes());
        out.extend(self.cursor.to_le_bytes());
        encode_shape(&self.shape, &mut out);
        out
    }

    pub fn decode(mut bytes: &[u8]) -> Result<Self, StoreError> {
        const SHORT: StoreError = StoreError::Peer { what: "its length" };
        let got = u16::from_le_bytes(take(&mut bytes).ok_or(SHORT)?);
        if got != VERSION {
            return Err(StoreError::PeerVersion {
                expected: VERSION,
                got,
            });
        }
        let [present] = take(&mut bytes).ok_or(SHORT)?;
        if present > 1 {
            return Err(StoreError::Peer {
                what: "whether there is one",
            });
        }
        let terms = Self {
            present: present == 1,
            share: take(&mut bytes).ok_or(SHORT)?,
            id: take(&mut bytes).ok_or(SHORT)?,
            count: u64::from_le_bytes(take(&mut bytes).ok_or(SHORT)?),
            cursor: u64::from_le_bytes(take(&mut bytes).ok_or(SHORT)?),
            shape: decode_shape(&mut bytes).ok_or(StoreError::Peer { what: "its shape" })?,
        };
        if !bytes.is_empty() {
            return Err(SHORT);
        }
        if terms.cursor > terms.count || terms.count > MAX_COUNT {
            return Err(StoreError::Peer {
                what: "its numbers",
            });
        }
        Ok(terms)
    }
}

/// Tells the peer, and hears from it; shapes must be the same.
pub(super) fn exchange(ch: &mut Channel, ours: &Terms) -> Result<Terms, LutError> {
    ch.send(LABEL, &ours.encode())?;
    let theirs = Terms::decode(&ch.recv_bounded(LABEL, FIXED + MAX_SHAPE)?)?;
    super::check_same_shape(&ours.shape, "the peer's store is", &theirs.shape)?;
    Ok(theirs)
}

/// What an exchange sends.
pub(super) fn cost(shape: &Shape) -> Cost {
    let mut encoded = Vec::new();
    encode_shape(shape, &mut encoded);
    let bits = 8 * (FIXED + encoded.len()) as u64;
    Cost {
        client_bits: bits,
        server_bits: bits,
        rounds: 1,
        ..Cost::default()
    }
}
