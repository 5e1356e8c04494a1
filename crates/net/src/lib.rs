//! Framed channels between two parties.
//!
//! A [`Channel`] is what every protocol talks over: messages with names ([`Label`]), blocking receive, buffered
//! send, and a [`Meter`] that counts bytes, messages and rounds by [`Phase`] and by named span. Channels come from
//! [`memory_pair`]
//! (two threads of one process) or from [`Listener::accept`] and [`connect`] (TLS 1.3, or plain TCP where asked for by
//! name). A [`Link`] makes any of them behave like a slower network.
//!
//! ```
//! use volvelle_net::{Label, memory_pair};
//!
//! const GREETING: Label = Label::new("example/greeting");
//! let (mut client, mut server) = memory_pair();
//! std::thread::scope(|scope| {
//!     scope.spawn(move || client.send(GREETING, b"hello"));
//!     let mut greeting = [0; 5];
//!     server.recv(GREETING, &mut greeting)?;
//!     assert_eq!(&greeting, b"hello");
//!     assert_eq!(server.meter().total().bits(), 40);
//!     Ok::<_, volvelle_net::NetError>(())
//! })?;
//! # Ok::<_, volvelle_net::NetError>(())
//! ```
//!
//! Nothing here knows of secret sharing or OT; what is secret is for the layers above to mask before they send.

#![forbid(unsafe_code)]

mod channel;
mod config;
mod error;
mod frame;
pub mod halves;
mod handshake;
mod identity;
mod link;
mod memory;
mod meter;
mod outbox;
mod pinned;
mod queue;
mod role;
mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
mod transport;

pub use channel::{Channel, HangUp};
pub use config::Config;
pub use error::NetError;
pub use frame::Label;
pub use handshake::{Handshake, PROTOCOL_VERSION};
pub use identity::{Credentials, NewIdentity};
pub use link::Link;
pub use memory::{memory_pair, memory_pair_with};
pub use meter::{Meter, Traffic};
pub use role::{Phase, Role};
pub use tcp::{Arrival, Listener, Security, connect};
