//! The two parties and the phases of their work.

use std::fmt;

/// Which of the two parties an end of a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The party that asks; goes first where an order is needed.
    Client,
    /// The party that serves.
    Server,
}

impl Role {
    /// The opposite party.
    #[must_use]
    pub fn other(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Client => "client",
            Role::Server => "server",
        })
    }
}

/// The part of the work that traffic is booked under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Once a connection: handshake, base OTs.
    Setup,
    /// Whatever does not depend on the inputs.
    Preprocessing,
    /// The rest.
    Online,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Setup => "setup",
            Phase::Preprocessing => "preprocessing",
            Phase::Online => "online",
        })
    }
}
