//! Counting rounds of protocols run one after the other.

/// The rounds at which each party has last received, in a run of protocols.
///
/// Rounds do not simply add up: where one protocol ends with a message to the client and the next one begins
/// with a message from the server, the two messages share a round. So a protocol states who speaks when, and
/// this counts as the meter does: a message's round is one more than the last that its sender has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    client: u64,
    server: u64,
}

impl Flow {
    /// The client sends and the server waits for it.
    pub fn client_sends(&mut self) {
        self.server = self.server.max(self.client + 1);
    }

    /// The server sends and the client waits for it.
    pub fn server_sends(&mut self) {
        self.client = self.client.max(self.server + 1);
    }

    /// Both send, then both wait; `times` times.
    pub fn exchange(&mut self, times: u64) {
        for _ in 0..times {
            (self.client, self.server) = (
                self.client.max(self.server + 1),
                self.server.max(self.client + 1),
            );
        }
    }

    /// Rounds so far.
    #[must_use]
    pub fn rounds(self) -> u64 {
        self.client.max(self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_share_a_round() {
        let mut flow = Flow::default();
        flow.client_sends();
        flow.server_sends();
        flow.server_sends();
        flow.client_sends();
        assert_eq!(flow.rounds(), 3);
        flow.exchange(2);
        assert_eq!(flow.rounds(), 5);
    }
}
