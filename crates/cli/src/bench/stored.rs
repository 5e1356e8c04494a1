//! `volvelle bench lut --store`: lookups that go to a store on the disk and come back before they are used. Writing and reading are
//! timed by themselves; the bench's preprocessing and online time are without them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use volvelle_lut::{Generator, Lookups, LutError, Store, StoreKey};
use volvelle_net::Phase;
use volvelle_prim::Prg;

use super::lanes::{End, Lanes};
use super::lut::{Job, Outcome, Run};
use crate::error::CliError;

/// Lookups stored and taken at once.
const AT_ONCE: usize = 1 << 16;

/// How fast a party's disk is, the slower party's.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rates {
    /// Lookups written a second, the sync that makes them last included.
    pub written_per_s: f64,
    /// Lookups read a second, from opening the file on.
    pub read_per_s: f64,
    /// Size of a lookup in the file.
    pub bytes_each: f64,
}

/// A store that has been written and closed.
struct Stored {
    path: PathBuf,
    key: StoreKey,
    count: usize,
    written: Duration,
}

impl Job {
    /// As [`Job::run`], by way of stores in a temporary folder.
    pub fn run_stored(
        &self,
        lanes: &mut Lanes,
        sizes: &[usize],
    ) -> Result<(Outcome, Rates), CliError> {
        let Some(generator) = self.protocol().generator() else {
            return Err(CliError::Stored(self.protocol().name()));
        };
        let folder = tempfile::tempdir().map_err(CliError::Temporary)?;
        let indices = self.indices(lanes, sizes);
        let (stored, prep) =
            lanes.timed_phase(Phase::Preprocessing, lanes.each(sizes), |end, count| {
                let start = Instant::now();
                let stored = self.write(end, generator, folder.path(), count)?;
                let computing = start.elapsed().saturating_sub(stored.written);
                Ok((stored, computing))
            })?;
        let mut rates = Rates {
            written_per_s: f64::INFINITY,
            read_per_s: f64::INFINITY,
            bytes_each: 0.0,
        };
        for end in &stored {
            rates.written_per_s = rates.written_per_s.min(rate(end.count, end.written));
            let size = std::fs::metadata(&end.path).map_or(0, |file| file.len());
            rates.bytes_each = rates.bytes_each.max(size as f64 / end.count as f64);
        }
        let (lookups, _) = lanes.phase(Phase::Preprocessing, stored, read)?;
        for (lookups, took) in &lookups {
            let count = lookups.iter().map(Lookups::len).sum();
            rates.read_per_s = rates.read_per_s.min(rate(count, *took));
        }
        let inputs = lookups.into_iter().zip(&indices).collect();
        let (outputs, online) = lanes.phase(
            Phase::Online,
            inputs,
            |end, ((lookups, _), index): ((Vec<Lookups>, Duration), &Vec<u64>)| {
                Ok(self.use_up(end, lookups, index)?)
            },
        )?;
        let wrong = self.check(lanes, &indices, &outputs)?;
        let run = Run {
            prep,
            online,
            wrong,
        };
        let done = self.outcome(lanes, run)?;
        Ok((done, rates))
    }

    fn write(
        &self,
        end: &mut End,
        generator: Generator,
        folder: &Path,
        count: usize,
    ) -> Result<Stored, CliError> {
        let (ch, ot, shape) = (&mut end.channel, &mut end.ot, self.demand().shape());
        let mut key = [0; 32];
        Prg::from_os().fill_bytes(&mut key);
        let mut stored = Stored {
            path: folder.join(format!("{}-{}", ch.role(), end.lane)),
            key: StoreKey::from_bytes(&key),
            count,
            written: Duration::ZERO,
        };
        let mut store = Store::create(&stored.path, &stored.key, ch, shape)?;
        for count in portions(count) {
            let lookups = Lookups::prepare(ch, ot, generator, shape, count)?;
            let start = Instant::now();
            store.append(lookups)?;
            stored.written += start.elapsed();
        }
        Ok(stored)
    }

    fn use_up(
        &self,
        end: &mut End,
        lookups: Vec<Lookups>,
        index: &[u64],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        let (tables, ch) = (self.tables(), &mut end.channel);
        let mut outputs = vec![Vec::with_capacity(index.len()); tables.len()];
        let mut rest = index;
        for lookups in lookups {
            let (now, later) = rest.split_at(lookups.len().min(rest.len()));
            rest = later;
            let found = if self.demand().is_xor() {
                lookups.lookup_xor(ch, now, tables)?
            } else {
                lookups.lookup(ch, now, tables)?
            };
            for (all, found) in outputs.iter_mut().zip(found) {
                all.extend(found);
            }
        }
        Ok(outputs)
    }
}

/// Takes everything; the time is that of opening the file and reading.
fn read(end: &mut End, stored: Stored) -> Result<(Vec<Lookups>, Duration), CliError> {
    let start = Instant::now();
    let mut store = Store::open(&stored.path, &stored.key)?;
    let opening = start.elapsed();
    store.reconcile(&mut end.channel)?;
    let start = Instant::now();
    let lookups = portions(stored.count)
        .map(|count| store.take(count))
        .collect::<Result<Vec<_>, _>>()?;
    Ok((lookups, opening + start.elapsed()))
}

fn portions(count: usize) -> impl Iterator<Item = usize> {
    (0..count)
        .step_by(AT_ONCE)
        .map(move |first| AT_ONCE.min(count - first))
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}
