//! The first message each way: who we are and what we are about to do.
//!
//! ```text
//! both:  magic "VOLVELLE" | version u32 | role u8 | count u8 | count × (name length u8, name, value length u16, value)
//! ```
//!
//! One round. Both parties send and compare; both come to the same refusal. The frame's header, the magic and the
//! version keep their places in all versions, so that different versions recognise each other as such.

use crate::channel::Channel;
use crate::error::NetError;
use crate::frame::Label;
use crate::role::Role;

/// Version of everything on the wire. Parties of different versions do not talk.
pub const PROTOCOL_VERSION: u32 = 1;

const HELLO: Label = Label::new("net/hello");
const MAGIC: &[u8; 8] = b"VOLVELLE";
/// Longest handshake message taken from a peer.
const MAX_HELLO: usize = 16 << 10;
const MAX_PARAMETERS: usize = 64;
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 128;

/// What both parties state and compare: protocol version, role, and named parameters.
///
/// ```
/// # use volvelle_net::{Handshake, testing::run_pair};
/// let hello = |entries| Handshake::new().parameter("entries", entries);
/// let (client, server) = run_pair(
///     |channel| hello(256).run(channel),
///     |channel| hello(512).run(channel),
/// );
/// let refused = client.unwrap_err().to_string();
/// assert!(refused.starts_with("parameter `entries`: ours 256, peer's 512"));
/// assert!(server.is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    parameters: Vec<(String, String)>,
}

impl Handshake {
    /// States nothing but version and role.
    #[must_use]
    pub fn new() -> Handshake {
        Handshake::default()
    }

    /// Adds a parameter both parties must agree on. Names are compared in the order added.
    #[must_use]
    pub fn parameter(mut self, name: &str, value: impl ToString) -> Handshake {
        self.parameters.push((name.to_owned(), value.to_string()));
        self
    }

    /// Exchanges and compares. On a mismatch the peer comes to the same conclusion by itself.
    ///
    /// # Errors
    /// [`NetError::NotVolvelle`], [`NetError::Version`], [`NetError::SameRole`], [`NetError::Parameter`], or
    /// [`NetError::Handshake`] if what came is malformed or our own statement too long; and as [`Channel::recv`].
    pub fn run(&self, channel: &mut Channel) -> Result<(), NetError> {
        let ours = self.encode(channel.role())?;
        channel.span("handshake", |channel| {
            channel.send(HELLO, &ours)?;
            let theirs = channel.recv_bounded(HELLO, MAX_HELLO).map_err(stranger)?;
            self.compare(channel.role(), &theirs)
        })
    }

    fn encode(&self, role: Role) -> Result<Vec<u8>, NetError> {
        let too_long = |what: String| NetError::Handshake {
            detail: format!("{what} is too long to state"),
        };
        let mut out = MAGIC.to_vec();
        out.extend(PROTOCOL_VERSION.to_le_bytes());
        out.push(role_code(role));
        if self.parameters.len() > MAX_PARAMETERS {
            return Err(too_long("the list of parameters".into()));
        }
        out.push(self.parameters.len() as u8);
        for (name, value) in &self.parameters {
            if name.len() > MAX_NAME || value.len() > MAX_VALUE {
                return Err(too_long(format!("parameter `{name}`")));
            }
            out.push(name.len() as u8);
            out.extend(name.as_bytes());
            out.extend((value.len() as u16).to_le_bytes());
            out.extend(value.as_bytes());
        }
        Ok(out)
    }

    fn compare(&self, role: Role, theirs: &[u8]) -> Result<(), NetError> {
        let mut rest = Reader(theirs);
        if rest.take(MAGIC.len()) != Some(MAGIC) {
            return Err(NetError::NotVolvelle {
                detail: "its first message is not a handshake".into(),
            });
        }
        let version = rest.array().map(u32::from_le_bytes).ok_or_else(cut_short)?;
        if version != PROTOCOL_VERSION {
            return Err(NetError::Version {
                expected: PROTOCOL_VERSION,
                got: version,
            });
        }
        let [their_role] = rest.array().ok_or_else(cut_short)?;
        if their_role == role_code(role) {
            return Err(NetError::SameRole { role });
        }
        if their_role != role_code(role.other()) {
            return Err(malformed("unknown role"));
        }
        self.compare_parameters(&rest.parameters()?)
    }

    fn compare_parameters(&self, theirs: &[(String, String)]) -> Result<(), NetError> {
        let absent = || "none".to_owned();
        let find = |list: &[(String, String)], name: &str| {
            list.iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        for (name, ours) in &self.parameters {
            let peers = find(theirs, name);
            if peers.as_ref() != Some(ours) {
                let (ours, peers) = (ours.clone(), peers.unwrap_or_else(absent));
                return Err(NetError::Parameter {
                    name: name.clone(),
                    ours,
                    peers,
                });
            }
        }
        for (name, peers) in theirs {
            if find(&self.parameters, name).is_none() {
                let (ours, peers) = (absent(), peers.clone());
                return Err(NetError::Parameter {
                    name: name.clone(),
                    ours,
                    peers,
                });
            }
        }
        Ok(())
    }
}

fn role_code(role: Role) -> u8 {
    match role {
        Role::Client => 0,
        Role::Server => 1,
    }
}

/// A frame of another label or an absurd length at this point was hardly written by this program.
fn stranger(error: NetError) -> NetError {
    match error {
        NetError::WrongLabel { got_name: None, .. } | NetError::TooLong { .. } | NetError::WrongClock { .. } => {
            NetError::NotVolvelle {
                detail: "its first bytes are not a handshake; does one party use TLS and the other plain TCP?".into(),
            }
        }
        other => other,
    }
}

fn malformed(detail: &str) -> NetError {
    NetError::Handshake {
        detail: detail.to_owned(),
    }
}

fn cut_short() -> NetError {
    malformed("cut short")
}

/// Takes a message apart; every step may find that there is not enough of it.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn text(&mut self, length: usize, max: usize) -> Result<String, NetError> {
        if length > max {
            return Err(malformed("a name or value is too long"));
        }
        let text = self.take(length).ok_or_else(cut_short)?;
        let text = str::from_utf8(text).map_err(|_| malformed("a name or value is not text"))?;
        // It may end up on a terminal.
        if text.contains(char::is_control) {
            return Err(malformed("a name or value contains control characters"));
        }
        Ok(text.to_owned())
    }

    fn parameters(&mut self) -> Result<Vec<(String, String)>, NetError> {
        let [count] = self.array().ok_or_else(cut_short)?;
        if usize::from(count) > MAX_PARAMETERS {
            return Err(malformed("too many parameters"));
        }
        let mut list = Vec::new();
        for _ in 0..count {
            let [length] = self.array().ok_or_else(cut_short)?;
            let name = self.text(length.into(), MAX_NAME)?;
            let length = self.array().map(u16::from_le_bytes).ok_or_else(cut_short)?;
            list.push((name, self.text(length.into(), MAX_VALUE)?));
        }
        if self.0.is_empty() {
            Ok(list)
        } else {
            Err(malformed("bytes left over"))
        }
    }
}
