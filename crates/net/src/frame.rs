//! Frames: what a message looks like on the wire.
//!
//! ```text
//! payload length u32 | label hash u32 | clock u32 | payload        (little endian)
//! ```
//!
//! The label hash lets a party that is out of step see it at the next message instead of computing on rubbish.
//! The clock is a Lamport clock and is what rounds are counted by (see [`crate::Meter`]).
//!
//! Two labels are this crate's own and never reach a protocol:
//! `net/alive` has no payload and a clock of 1 if its sender waits for a message and got none since its last
//! `net/alive`, else 0; `net/abort` carries a reason code (u16) and a text.

use crate::error::NetError;

/// Bytes of a frame's header.
pub(crate) const HEADER: usize = 12;
/// Longest payload of one frame: 1 GiB.
pub(crate) const MAX_FRAME: usize = 1 << 30;
/// Longest text of an abort frame, in bytes.
pub(crate) const MAX_REASON: usize = 512;

/// Sent while there is nothing to say.
pub(crate) const ALIVE: Label = Label::reserved("net/alive");
/// Sent before giving up.
pub(crate) const ABORT: Label = Label::reserved("net/abort");

/// Name of a message type. The 32-bit FNV-1a hash of the name is on the wire, so that a peer out of step gives a
/// typed error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    name: &'static str,
    hash: u32,
}

impl Label {
    /// A label; best kept in a `const`.
    ///
    /// # Panics
    /// If the name's hash is that of one of this crate's own labels, which a `const` shows at compile time.
    #[must_use]
    pub const fn new(name: &'static str) -> Label {
        let label = Label::reserved(name);
        assert!(
            label.hash != ALIVE.hash && label.hash != ABORT.hash,
            "this label's hash is reserved"
        );
        label
    }

    const fn reserved(name: &'static str) -> Label {
        Label {
            name,
            hash: fnv1a(name.as_bytes()),
        }
    }

    /// The name given.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What goes on the wire.
    #[must_use]
    pub fn hash(&self) -> u32 {
        self.hash
    }
}

const fn fnv1a(bytes: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    hash
}

/// The header of a frame, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) length: u32,
    pub(crate) label: u32,
    pub(crate) clock: u32,
}

impl Header {
    /// The header for `payload_length` bytes under `label`.
    pub(crate) fn new(label: Label, payload_length: usize, clock: u32) -> Result<Header, NetError> {
        match u32::try_from(payload_length) {
            Ok(length) if payload_length <= MAX_FRAME => Ok(Header {
                length,
                label: label.hash,
                clock,
            }),
            _ => Err(NetError::over_frame(label.name, payload_length)),
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.label.to_le_bytes());
        bytes[8..].copy_from_slice(&self.clock.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; HEADER]) -> Header {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Header {
            length: word(0),
            label: word(4),
            clock: word(8),
        }
    }

    /// A keep-alive frame, which is nothing but a header.
    pub(crate) fn alive(waiting: bool) -> Header {
        Header {
            length: 0,
            label: ALIVE.hash,
            clock: u32::from(waiting),
        }
    }
}

/// The payload of an abort frame.
pub(crate) fn abort_payload(code: u16, reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(MAX_REASON);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let mut payload = code.to_le_bytes().to_vec();
    payload.extend_from_slice(&reason.as_bytes()[..end]);
    payload
}

/// The error an abort frame's payload stands for. The text comes from the peer and may end up on a terminal, so
/// control characters are replaced.
pub(crate) fn abort_error(payload: &[u8]) -> NetError {
    let (code, text) = match payload {
        [low, high, text @ ..] => (u16::from_le_bytes([*low, *high]), text),
        _ => (0, &b"(no reason given)"[..]),
    };
    let reason = String::from_utf8_lossy(text)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    NetError::PeerAborted { code, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_known_answers() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn header_layout_is_fixed() {
        let header = Header {
            length: 0x0403_0201,
            label: 0x0807_0605,
            clock: 0x0c0b_0a09,
        };
        assert_eq!(header.to_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(Header::from_bytes(header.to_bytes()), header);
    }

    #[test]
    fn payloads_over_a_gibibyte_are_refused() {
        let label = Label::new("big");
        assert!(Header::new(label, MAX_FRAME, 1).is_ok());
        let refused = Header::new(label, MAX_FRAME + 1, 1).unwrap_err();
        assert_eq!(
            refused,
            NetError::TooLong {
                label: "big",
                max: MAX_FRAME,
                got: MAX_FRAME + 1
            }
        );
    }

    #[test]
    fn abort_reasons_are_bounded_and_printable() {
        let long = "é".repeat(MAX_REASON);
        assert!(abort_payload(1, &long).len() <= 2 + MAX_REASON);
        assert_eq!(
            abort_error(&abort_payload(1, "disk\n\u{1b}[31mfull")),
            NetError::PeerAborted {
                code: 1,
                reason: "disk  [31mfull".into()
            }
        );
        assert!(matches!(
            abort_error(&[7]),
            NetError::PeerAborted { code: 0, .. }
        ));
    }
}
