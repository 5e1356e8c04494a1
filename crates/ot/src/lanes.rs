//! Setting up lanes: several ends of oblivious transfer, for a thread and a channel each.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use volvelle_net::{Channel, Label, Role};
use volvelle_prim::Prg;
use volvelle_prim::lpn::LocalLinearCode;

use crate::ferret::{self, Set};
use crate::session::Sources;
use crate::{Engine, Ot, OtConfig, OtError};

/// Lanes of a session, at most: a byte of the tweak.
const MAX_LANES: usize = 256;

const LANES: Label = Label::new("ot/setup/lanes");

impl Ot {
    /// One end for each of several channels, to be used by as many threads at once. The peer does the same with as many
    /// channels in the same order.
    ///
    /// Semi-honest Ferret is set up once, over the first channel: the lanes have one Δ a direction and share the LPN
    /// secrets, so that they do not push each other's out of the cache (`ferret::lanes`; 64 bits more a task). With any
    /// other engine, and in malicious security, every lane is a session of its own.
    ///
    /// Lanes that share wait for each other at times, for a minute at most. So each needs a thread of its own at both ends, or at least
    /// goes on whatever the others do; a thread that gives up calls [`Self::abandon`]; and with [`Self::make_ahead`] no lane is dropped
    /// before all are done.
    ///
    /// # Errors
    /// As [`Self::setup`]; [`OtError::Shape`] for no channels or more than 256; [`OtError::Config`] if the peer has another
    /// number of lanes or another order. Later [`OtError::LaneTask`] for a peer out of step and [`OtError::OtherLane`] if a lane
    /// fails with something to do that another needs.
    pub fn setup_lanes(channels: &mut [Channel], config: OtConfig) -> Result<Vec<Self>, OtError> {
        let lanes = channels.len();
        if !(1..=MAX_LANES).contains(&lanes) {
            return Err(OtError::Shape {
                what: "lanes (1 to 256)",
                expected: lanes.clamp(1, MAX_LANES),
                got: lanes,
            });
        }
        if lanes > 1 {
            agree_lanes(channels)?;
        }
        let shared = matches!(config.engine, Engine::Ferret(_)) && !config.security.is_malicious();
        if let (true, [first, ..]) = (shared, &mut *channels) {
            return Self::set_up(first, config, Prg::from_os(), lanes);
        }
        let set_up = |ch| Self::setup(ch, config);
        thread::scope(|scope| {
            let threads: Vec<_> = channels
                .iter_mut()
                .map(|ch| scope.spawn(move || set_up(ch)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        })
    }

    /// Lanes of semi-honest Ferret.
    pub(crate) fn ferret_lanes(
        ch: &mut Channel,
        (set, code): (Set, Arc<LocalLinearCode>),
        lanes: usize,
        (mut sender, mut receiver): Sources,
    ) -> Result<Vec<Self>, OtError> {
        let (mut senders, mut receivers) = (vec![], vec![]);
        for ot_sender in [Role::Client, Role::Server] {
            if ch.role() == ot_sender {
                senders = ferret::lanes::senders(ch, &mut *sender, (set, &code), lanes)?;
            } else {
                receivers = ferret::lanes::receivers(ch, &mut *receiver, (set, &code), lanes)?;
            }
        }
        ch.flush()?;
        let ends = senders.into_iter().zip(receivers).zip(0..=u8::MAX);
        Ok(ends
            .map(|((sender, receiver), lane)| {
                let mut ot = Self::from_sources(ch.role(), Box::new(sender), Box::new(receiver));
                ot.lane = lane;
                ot
            })
            .collect())
    }
}

/// Compares the number of lanes, and which lane each channel is.
fn agree_lanes(channels: &mut [Channel]) -> Result<(), OtError> {
    let last = (channels.len() - 1) as u8;
    let sent = (0..=last).zip(&mut *channels).try_for_each(|(lane, ch)| {
        ch.send(LANES, &[last, lane])?;
        ch.flush()
    });
    // A peer with fewer channels has hung up on the last, but says so on the first.
    for (lane, ch) in (0..=last).zip(channels) {
        let mut codes = [0; 2];
        ch.recv(LANES, &mut codes)?;
        let settings = [("lanes less one,", last), ("lane", lane)];
        for ((what, ours), theirs) in settings.into_iter().zip(codes) {
            if ours != theirs {
                return Err(OtError::Config { what, ours, theirs });
            }
        }
    }
    Ok(sent?)
}
