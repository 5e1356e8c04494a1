//! The power goes at every moment, and the disk keeps what it likes of what was not synced.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use volvelle_prim::{Block, Prg};

use super::*;
use crate::store::disk::Disk;
use crate::store::file::StoreFile;

/// What a disk may keep or lose of a write that was not synced; less than a record, so that records tear.
const SECTOR: usize = 64;

#[derive(Default)]
struct Medium {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What was synced.
    kept: Vec<u8>,
    /// Not synced: offset and length.
    pending: Vec<(usize, usize)>,
    /// Writes and syncs until the power goes.
    fuel: Option<usize>,
    /// Bytes that there is room for.
    room: Option<usize>,
    /// Where reading fails.
    bad: Option<u64>,
}

impl Medium {
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.fuel {
            Some(0) => return Err(io::Error::other("no power")),
            Some(fuel) => *fuel -= 1,
            None => {}
        }
        Ok(())
    }

    /// After the power went: of every sector not synced, the old or the new.
    fn restart(&mut self, prg: &mut Prg) {
        self.kept.resize(self.seen.len().max(self.kept.len()), 0);
        for (offset, len) in std::mem::take(&mut self.pending) {
            let sectors = offset / SECTOR..(offset + len).div_ceil(SECTOR);
            for sector in sectors.filter(|_| prg.next_u64() & 1 == 1) {
                let from = (sector * SECTOR).max(offset);
                let to = ((sector + 1) * SECTOR).min(offset + len);
                self.kept[from..to].copy_from_slice(&self.seen[from..to]);
            }
        }
        self.seen = self.kept.clone();
        self.fuel = None;
    }
}

#[derive(Clone, Default)]
struct Simulated(Arc<Mutex<Medium>>);

impl Simulated {
    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.0.lock().unwrap()
    }

    /// A copy of a file.
    fn of(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let disk = Self::default();
        disk.medium().seen = bytes.clone();
        disk.medium().kept = bytes;
        disk
    }

    fn open(&self, role: Role) -> Result<Store, StoreError> {
        let disk = Box::new(self.clone());
        let file = StoreFile::open_on(disk, Path::new("simulated"), &key(role))?;
        Ok(Store::new(file, false))
    }
}

impl Disk for Simulated {
    fn len(&mut self) -> io::Result<u64> {
        Ok(self.medium().seen.len() as u64)
    }

    fn read(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.medium().bad == Some(offset) {
            return Err(io::Error::other("bad sector"));
        }
        let (medium, offset) = (self.medium(), offset as usize);
        let bytes = medium.seen.get(offset..offset + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut medium, offset) = (self.medium(), offset as usize);
        medium.spend()?;
        let end = offset + bytes.len();
        if medium.room.is_some_and(|room| end > room) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let longer = end.max(medium.seen.len());
        medium.seen.resize(longer, 0);
        medium.seen[offset..end].copy_from_slice(bytes);
        medium.pending.push((offset, bytes.len()));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut medium = self.medium();
        medium.spend()?;
        medium.kept = medium.seen.clone();
        medium.pending.clear();
        Ok(())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let mut medium = self.medium();
        medium.spend()?;
        medium.seen.truncate(len as usize);
        Ok(())
    }

    fn discard(&mut self, from: u64, to: u64) {
        let mut medium = self.medium();
        let range = from as usize..to as usize;
        medium.seen[range.clone()].fill(0);
        medium.kept[range].fill(0);
    }
}

/// What was handed out to a party, and what came of it.
#[derive(Default)]
struct Log {
    took: Vec<(u64, u64)>,
    outputs: Vec<Outputs>,
}

/// Some work; ends early if something fails at either party.
fn work(party: &mut Party<'_>, store: &mut Store, log: &mut Log) -> Result<(), LutError> {
    store.reconcile(party.ch)?;
    for step in [5, 7, 0, 1, 30, 0, 9] {
        if step == 0 {
            let lookups = party.prepare(20)?;
            store.append(lookups)?;
            continue;
        }
        let start = store.cursor();
        let lookups = store.take(step)?;
        log.took.push((start, step as u64));
        log.outputs.push(party.use_up(start, lookups)?);
    }
    Ok(())
}

/// All that is left.
fn drain(party: &mut Party<'_>, store: &mut Store, log: &mut Log) {
    store.reconcile(party.ch).unwrap();
    let left = store.remaining() as usize;
    log.took.push((store.cursor(), left as u64));
    log.outputs.push(party.look_up(store, left));
    assert_eq!(log.outputs.last().unwrap().index.len(), left);
}

/// Both work on one connection, which an error ends.
fn both_work(stores: &Stores, parties: &mut [(Store, Log); 2]) -> [bool; 2] {
    let [client, server] = parties;
    let run = |party: &mut Party<'_>, (store, log): &mut (Store, Log)| {
        let worked = work(party, store, log);
        if let Err(LutError::Store(error)) = &worked {
            let expected = matches!(error, StoreError::Io { .. } | StoreError::Broken { .. });
            assert!(expected, "{error}");
        }
        worked.is_ok()
    };
    let (a, b) = stores.connect(|party| run(party, client), |party| run(party, server));
    [a, b]
}

fn check_logs(shape: &Shape, parties: [(Store, Log); 2]) {
    let [client, server] = parties.map(|(_, log)| log);
    for log in [&client, &server] {
        for pair in log.took.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{:?}", log.took);
        }
    }
    // What only one party finished has nothing to compare with.
    for ours in client.outputs {
        let theirs = server.outputs.iter().find(|o| o.start == ours.start);
        if let Some(theirs) = theirs {
            let theirs = Outputs {
                start: theirs.start,
                index: theirs.index.clone(),
                outputs: theirs.outputs.clone(),
            };
            check(shape, (ours, theirs));
        }
    }
}

#[test]
fn at_any_moment() {
    let shape = shape(2, Index::Arithmetic, Output::word(16));
    let stores = Stores::filled(&shape, &[40, 90]);
    let mut prg = Prg::from_seed(Block(1));
    for (victim, reserve) in [(Role::Client, 0), (Role::Server, 0), (Role::Server, 8)] {
        let mut moments = 0;
        for fuel in (0..).map(|fuel| fuel / 3) {
            let disks = [Role::Client, Role::Server].map(|r| (r, Simulated::of(&stores.path(r))));
            let open = |(role, disk): &(Role, Simulated)| {
                let mut store = disk.open(*role).unwrap();
                store.reserve(reserve);
                (store, Log::default())
            };
            let mut parties = disks.each_ref().map(open);
            let at = usize::from(victim == Role::Server);
            disks[at].1.medium().fuel = Some(fuel);
            let done = both_work(&stores, &mut parties) == [true, true];
            // The other party's process lives on, and with it its store.
            disks[at].1.medium().restart(&mut prg);
            parties[at].0 = disks[at].1.open(victim).unwrap();
            assert_eq!(both_work(&stores, &mut parties), [true, true], "{fuel}");
            let [client, server] = &mut parties;
            stores.connect(
                |party| drain(party, &mut client.0, &mut client.1),
                |party| drain(party, &mut server.0, &mut server.1),
            );
            check_logs(&shape, parties);
            moments += 1;
            if done {
                break;
            }
        }
        assert!(moments > 30, "{moments}");
    }
}

#[test]
fn a_full_disk() {
    let shape = shape(4, Index::Boolean, Output::Xor);
    let stores = Stores::filled(&shape, &[5000]);
    let disks = [Role::Client, Role::Server].map(|role| Simulated::of(&stores.path(role)));
    // Room for the first of two chunks.
    for disk in &disks {
        let mut medium = disk.medium();
        medium.room = Some(medium.seen.len() + 26_000);
    }
    let outputs = stores.both(|party| {
        let role = party.ch.role();
        let disk = &disks[usize::from(role == Role::Server)];
        let len = disk.medium().seen.len();
        let mut store = disk.open(role).unwrap();
        store.reconcile(party.ch).unwrap();
        let lookups = party.prepare(5000).unwrap();
        let error = store_error(store.append(lookups));
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        assert_eq!(disk.medium().seen.len(), len);
        let error = store_error(store.take(1));
        assert!(matches!(error, StoreError::NotReconciled), "{error}");
        // All that was there is still there, and taking needs no room.
        store.reconcile(party.ch).unwrap();
        let first = party.look_up(&mut store, 4990);
        disk.medium().room = None;
        party.add(&mut store, 5000);
        assert_eq!(store.remaining(), 5010);
        [first, party.look_up(&mut store, 5010)]
    });
    for pair in outputs.0.into_iter().zip(outputs.1) {
        check(&shape, pair);
    }
}

/// When a cursor cannot be written nothing is handed out, then or later.
#[test]
fn a_failed_sync_hands_out_nothing() {
    let shape = shape(2, Index::Arithmetic, Output::Xor);
    let stores = Stores::filled(&shape, &[10]);
    stores.both(|party| {
        let disk = Simulated::of(&party.path);
        let mut store = disk.open(party.ch.role()).unwrap();
        store.reconcile(party.ch).unwrap();
        disk.medium().fuel = Some(1);
        let error = store_error(store.take(3));
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        disk.medium().fuel = None;
        let error = store_error(store.take(3));
        assert!(matches!(error, StoreError::Broken { .. }), "{error}");
        // The record was written, if not synced.
        assert_eq!(disk.open(party.ch.role()).unwrap().cursor(), 3);
    });
}

/// After a record failed the store says nothing of itself to the peer: it does not know what is on the disk.
#[test]
fn a_failed_record_is_not_reconciled() {
    let shape = shape(2, Index::Arithmetic, Output::Xor);
    let stores = Stores::filled(&shape, &[10]);
    stores.both(|party| {
        let disk = Simulated::of(&party.path);
        let mut store = disk.open(party.ch.role()).unwrap();
        store.reconcile(party.ch).unwrap();
        let lookups = party.prepare(5).unwrap();
        // One chunk and its sync, then the record, whose sync fails.
        disk.medium().fuel = Some(3);
        let error = store_error(store.append(lookups));
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        disk.medium().fuel = None;
        let sent = party.ch.meter().total().sent;
        let error = store_error(store.reconcile(party.ch));
        assert!(matches!(error, StoreError::Broken { .. }), "{error}");
        assert_eq!(party.ch.meter().total().sent, sent);
        let mut store = disk.open(party.ch.role()).unwrap();
        store.reconcile(party.ch).unwrap();
        assert_eq!(store.remaining(), 15);
    });
}

/// A changed byte, or a page that cannot be read, at any moment when no power has gone: the record's copy serves.
#[test]
fn either_record_serves() {
    let shape = shape(2, Index::Arithmetic, Output::Xor);
    let stores = Stores::filled(&shape, &[10]);
    stores.both(|party| {
        let role = party.ch.role();
        let disk = Simulated::of(&party.path);
        let mut store = disk.open(role).unwrap();
        store.reconcile(party.ch).unwrap();
        for cursor in 1..=4 {
            drop(store.take(1).unwrap());
            for page in [0, 1].map(state::slot_offset) {
                // The file as it is now, the process gone without closing it.
                let copy = |bad| {
                    let copy = Simulated::default();
                    copy.medium().seen = disk.medium().seen.clone();
                    copy.medium().bad = bad;
                    copy
                };
                assert_eq!(copy(Some(page)).open(role).unwrap().cursor(), cursor);
                let changed = copy(None);
                changed.medium().seen[page as usize + 50] ^= 1;
                assert_eq!(changed.open(role).unwrap().cursor(), cursor);
                // Opening has repaired it, and synced that.
                let mut medium = changed.medium();
                assert!(medium.kept == disk.medium().seen);
                medium.bad = Some(state::slot_offset(0));
                medium.seen[state::slot_offset(1) as usize] ^= 1;
                drop(medium);
                let error = changed.open(role).unwrap_err();
                assert!(matches!(error, StoreError::Io { .. }), "{error}");
            }
        }
    });
}

/// Closing a store syncs the record's copy, as does opening it after the power went.
#[test]
fn closed_stores_have_one_record_twice() {
    let shape = shape(2, Index::Arithmetic, Output::Xor);
    let stores = Stores::filled(&shape, &[10]);
    let mut prg = Prg::from_seed(Block(2));
    let pages = |disk: &Simulated| {
        let medium = disk.medium();
        [0, 1].map(|slot| {
            let at = state::slot_offset(slot) as usize;
            medium.kept[at..at + state::RECORD].to_vec()
        })
    };
    for close in [true, false] {
        let disk = Simulated::of(&stores.path(Role::Client));
        let mut store = disk.open(Role::Client).unwrap();
        store.reconciled = true;
        drop(store.take(3).unwrap());
        let [first, second] = pages(&disk);
        assert!(first != second, "the copy is not synced yet");
        if close {
            drop(store);
        } else {
            disk.medium().restart(&mut prg);
            assert_eq!(disk.open(Role::Client).unwrap().cursor(), 3);
        }
        let [first, second] = pages(&disk);
        assert!(first == second);
    }
}
