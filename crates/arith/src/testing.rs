//! What tests of protocols on shares have in common: two parties in threads on ideal OTs, with the meter held
//! to the stated cost. Behind the `testing` feature, for tests only.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Debug;

use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Phase, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, Block, Prg};

use crate::ring::Ring;

/// Batch sizes around the word and byte limits.
pub const BATCHES: [usize; 6] = [1, 7, 64, 65, 129, 1000];

/// Ring sizes of the random tests.
pub const RINGS: [u32; 6] = [7, 8, 16, 32, 37, 64];

/// A generator for a test's inputs.
#[must_use]
pub fn prg(seed: usize) -> Prg {
    Prg::from_seed(Block(seed as u128))
}

/// The bits that two XOR shares stand for.
#[must_use]
pub fn xor(x: &BitVec, y: &BitVec) -> BitVec {
    let mut out = x.clone();
    out.xor_assign(y);
    out
}

/// The words that two additive shares stand for.
#[must_use]
pub fn add(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(&x, &y)| ring.add(x, y)).collect()
}

/// Which of a pair a party gets.
#[derive(Clone, Copy)]
pub struct Side(Role);

impl Side {
    /// The party's own.
    #[must_use]
    pub fn pick<T>(self, pair: &(T, T)) -> &T {
        match self.0 {
            Role::Client => &pair.0,
            Role::Server => &pair.1,
        }
    }

    /// The party's own words.
    #[must_use]
    pub fn words(self, pair: &(Vec<u64>, Vec<u64>)) -> &[u64] {
        self.pick::<Vec<u64>>(pair)
    }

    /// Which party it is.
    #[must_use]
    pub fn role(self) -> Role {
        self.0
    }
}

/// Runs `prepare` and `run` at both parties.
///
/// # Panics
/// If a party fails, or the meter does not show `cost`, to the bit, round and OT.
pub fn both<P, T: Send, E: Debug>(
    cost: PhasedCost,
    prepare: impl Fn(&mut Channel, &mut Ot) -> Result<P, E> + Sync,
    run: impl Fn(&mut Channel, P, Side) -> Result<T, E> + Sync,
) -> (T, T) {
    let (mut client_ot, mut server_ot) = volvelle_ot::testing::ideal_pair(7);
    let party = |ch: &mut Channel, ot: &mut Ot| {
        ch.set_phase(Phase::Preprocessing);
        let prepared = prepare(ch, ot).unwrap();
        check_cots(ot, cost.prep);
        ch.flush().unwrap();
        ch.set_phase(Phase::Online);
        let side = Side(ch.role());
        let out = run(ch, prepared, side).unwrap();
        ch.flush().unwrap();
        check(ch, Phase::Preprocessing, cost.prep);
        check(ch, Phase::Online, cost.online);
        out
    };
    run_pair(
        |ch| party(ch, &mut client_ot),
        |ch| party(ch, &mut server_ot),
    )
}

fn check(ch: &Channel, phase: Phase, cost: Cost) {
    let traffic = ch.meter().phase(phase);
    let (sent, received) = match ch.role() {
        Role::Client => (cost.client_bits, cost.server_bits),
        Role::Server => (cost.server_bits, cost.client_bits),
    };
    assert_eq!(
        (traffic.sent * 8, traffic.received * 8),
        (sent, received),
        "bits sent and received in {phase:?}"
    );
    assert_eq!(traffic.rounds, cost.rounds, "rounds in {phase:?}");
}

fn check_cots(ot: &Ot, cost: Cost) {
    let stats = ot.stats();
    let (sent, received) = match ot.role() {
        Role::Client => (cost.cots_client, cost.cots_server),
        Role::Server => (cost.cots_server, cost.cots_client),
    };
    assert_eq!(
        (stats.consumed_send, stats.consumed_recv),
        (sent, received),
        "OTs as sender and receiver"
    );
}
