//! What both parties of a timing do: they begin together, each on its half of the processors, and do the same.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use volvelle_net::{Channel, Label, Role, halves};
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{Engine, Ot, OtConfig};

use super::batches::BATCHES;
use super::ties::median;
use crate::{Demand, LutError, Table};

const STEP: Label = Label::new("plan/step");
const DONE: Label = Label::new("plan/done");

/// How often OTs are set up to time that.
const SETUPS: usize = 3;
/// Name of the spans in which OTs are made.
const EXTEND: &str = "ot/extend";

/// Runs both parties, each on its half of the processors; one that fails hangs up, which ends the other.
pub(super) fn both<A: Send, B: Send>(
    client: impl FnOnce() -> Result<A, LutError> + Send,
    server: impl FnOnce() -> Result<B, LutError> + Send,
) -> Result<(A, B), LutError> {
    fn at_home<T>(role: Role, party: impl FnOnce() -> T) -> T {
        halves::keep_to_own(role);
        party()
    }
    let (client, server) = std::thread::scope(|scope| {
        let client = scope.spawn(|| at_home(Role::Client, client));
        let server = scope.spawn(|| at_home(Role::Server, server));
        (client.join(), server.join())
    });
    let client = client.unwrap_or_else(|panic| resume_unwind(panic))?;
    Ok((client, server.unwrap_or_else(|panic| resume_unwind(panic))?))
}

/// Wall time in which OTs were made, those of the set-up aside.
pub(super) fn making(ch: &Channel) -> Duration {
    let spans = ch.meter().spans();
    spans
        .filter(|(name, _)| name.ends_with(EXTEND) && !name.starts_with("ot/setup"))
        .map(|(_, traffic)| traffic.wall)
        .sum()
}

/// What setting OTs up takes, as a multiple of the figures: the median of a few. That of the extension, which is little but
/// public-key work.
pub(super) fn setup(ch: &mut Channel) -> Result<f64, LutError> {
    let engine = Engine::SoftSpoken(Piece::Four);
    let mut times = Vec::new();
    for _ in 0..SETUPS {
        meet(ch)?;
        let start = Instant::now();
        Ot::setup(ch, OtConfig::new(engine))?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    let ns = median(times);
    Ok((100.0 * ns / engine.figures().setup_ns).round() / 100.0)
}

/// Tables of entries that cost as any others do.
pub(super) fn tables(demand: &Demand) -> Result<Vec<Table>, LutError> {
    let words = demand.words().iter();
    let entry = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    words
        .map(|&bits| Table::from_fn(demand.log_entries(), bits, entry))
        .collect()
}

/// The client's decision, at both parties.
pub(super) fn step(ch: &mut Channel, ours: usize) -> Result<usize, LutError> {
    let mut decided = (ours as u64).to_le_bytes();
    match ch.role() {
        Role::Client => ch.send(STEP, &decided)?,
        Role::Server => ch.recv(STEP, &mut decided)?,
    }
    ch.flush()?;
    Ok((u64::from_le_bytes(decided) as usize).min(BATCHES.1))
}

/// Waits for the other party, so that both begin together.
pub(super) fn meet(ch: &mut Channel) -> Result<(), LutError> {
    ch.send(DONE, &[])?;
    ch.recv(DONE, &mut [])?;
    Ok(())
}
