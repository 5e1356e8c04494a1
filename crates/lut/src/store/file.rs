//! One party's file: its parts found, checked and written. What is handed out, and when, is the store's business.

use std::io;
use std::path::{Path, PathBuf};

use volvelle_net::Role;
use volvelle_prim::Prg;
use zeroize::Zeroizing;

use super::chunk::{self, Head};
use super::disk::{self, Disk, failed};
use super::error::StoreError;
use super::header::{self, Header, ID, PAGE, Refusal};
use super::key::{SALT, StoreKey, SubKey};
use super::state::{CHUNKS, Place, RECORD, State, slot_offset};
use crate::exchange::ranges;
use crate::{Lookups, Shape};

const HEADER_KEY: &str = "volvelle store 1 header";
const RECORD_KEY: &str = "volvelle store 1 record";

/// An open file.
pub(super) struct StoreFile {
    disk: Box<dyn Disk>,
    pub path: PathBuf,
    pub header: Header,
    /// The header's, to which everything else is bound.
    digest: [u8; 32],
    key: SubKey,
    prg: Prg,
    /// As on the disk.
    pub state: State,
    /// A record was begun and perhaps not finished.
    broken: bool,
    /// The newest record's second copy is written and not synced.
    unsynced: bool,
    /// Where the first chunk that may still be there begins.
    discarded: u64,
}

impl StoreFile {
    /// Makes an empty one.
    pub fn create(
        path: &Path,
        key: &StoreKey,
        role: Role,
        (shape, id): (&Shape, [u8; ID]),
        replace: bool,
    ) -> Result<Self, StoreError> {
        let mut prg = Prg::from_os();
        let mut salt = [0; SALT];
        prg.fill_bytes(&mut salt);
        let header = Header {
            shape: shape.clone(),
            role,
            kind: key.kind(),
            salt,
            id,
        };
        let master = key.master(&salt)?;
        let mut pages = header.seal(&master.sub(HEADER_KEY), &mut prg)?;
        let state = State::new(&mut prg);
        let key = master.sub(RECORD_KEY);
        let record = state.seal(&key, &header.digest(), &mut prg)?;
        for slot in 1..=2 {
            pages.extend(record);
            pages.resize((slot + 1) * PAGE, 0);
        }
        Ok(Self {
            disk: Box::new(disk::create(path, &pages, replace)?),
            path: path.to_owned(),
            digest: header.digest(),
            header,
            key,
            prg,
            discarded: CHUNKS,
            state,
            broken: false,
            unsynced: false,
        })
    }

    /// Opens one, which must be that of nobody else.
    pub fn open(path: &Path, key: &StoreKey) -> Result<Self, StoreError> {
        Self::open_on(Box::new(disk::open(path)?), path, key)
    }

    pub fn open_on(
        mut disk: Box<dyn Disk>,
        path: &Path,
        key: &StoreKey,
    ) -> Result<Self, StoreError> {
        let io = |e| failed(path, "read", e);
        let len = disk.len().map_err(io)?;
        let mut page = [0; PAGE];
        let here = len.min(PAGE as u64) as usize;
        disk.read(0, &mut page[..here]).map_err(io)?;
        let (header, seal) = Header::decode(&page).map_err(|r| refused(path, r))?;
        if header.kind != key.kind() {
            return Err(StoreError::KeyKind {
                path: path.to_owned(),
                expected: header.kind.name(),
                got: key.kind().name(),
            });
        }
        let master = key.master(&header.salt)?;
        if !seal.fits(&header, &master.sub(HEADER_KEY)) {
            return Err(StoreError::WrongKey {
                path: path.to_owned(),
            });
        }
        if len < CHUNKS {
            return Err(damaged(path, "it has been cut off"));
        }
        let (key, digest) = (master.sub(RECORD_KEY), header.digest());
        let state = latest(&mut *disk, path, |record| {
            State::unseal(record, &key, &digest)
        })?;
        if len < state.tail.offset {
            return Err(damaged(path, "it has been cut off"));
        }
        Ok(Self {
            disk,
            path: path.to_owned(),
            header,
            digest,
            key,
            prg: Prg::from_os(),
            discarded: state.head.offset,
            state,
            broken: false,
            unsynced: false,
        })
    }

    /// Writes lookups behind the end that the record names, where they are not there yet; returns the end
    /// that makes them so. Then they are on the disk.
    pub fn write_chunks(&mut self, lookups: &Lookups) -> Result<Place, StoreError> {
        let len = |count| Lookups::saved_len(&self.header.shape, count);
        let full = self.full();
        let mut bytes = Zeroizing::new(Vec::with_capacity(chunk::HEADER + len(full)));
        let mut tail = self.state.tail.clone();
        for range in ranges(lookups.len(), full) {
            let count = range.len();
            bytes.clear();
            bytes.resize(chunk::HEADER, 0);
            lookups.save(range, &mut bytes);
            chunk::seal(&tail, count, &self.digest, &mut self.prg, &mut bytes)?;
            let written = self.disk.write(tail.offset, &bytes);
            written.map_err(|e| self.give_back_space(e))?;
            tail = after(&tail, bytes.len(), count);
        }
        let synced = self.disk.sync();
        synced.map_err(|e| self.give_back_space(e))?;
        self.unsynced = false;
        Ok(tail)
    }

    /// Correlations of a full chunk.
    fn full(&self) -> usize {
        chunk::full(|count| Lookups::saved_len(&self.header.shape, count))
    }

    /// After a write that failed, likely because the disk is full.
    fn give_back_space(&mut self, source: io::Error) -> StoreError {
        // If this fails too, the next chunks are written over what is there.
        let _ = self.disk.cut(self.state.tail.offset);
        failed(&self.path, "write", source)
    }

    /// Writes what is true from now on; when it returns, it is on the disk once, and twice after the next sync.
    pub fn write_record(
        &mut self,
        cursor: u64,
        head: Place,
        tail: Place,
    ) -> Result<(), StoreError> {
        self.check()?;
        let state = State {
            sequence: self.state.sequence + 1,
            cursor,
            head,
            tail,
        };
        let record = state.seal(&self.key, &self.digest, &mut self.prg)?;
        // After a failure nobody knows what is on the disk; only reading it again can tell.
        self.broken = true;
        // The page overwritten first is the last record's copy, whose original is synced.
        let written = self.disk.write(state.page(), &record);
        written
            .and_then(|()| self.disk.sync())
            .and_then(|()| self.disk.write(state.twin(), &record))
            .map_err(|e| failed(&self.path, "write", e))?;
        self.broken = false;
        self.unsynced = true;
        self.state = state;
        Ok(())
    }

    /// Gives back the space of chunks before an offset, which are used up.
    pub fn discard_to(&mut self, offset: u64) {
        if self.discarded < offset {
            self.disk.discard(self.discarded, offset);
            self.discarded = offset;
        }
    }

    /// That no record has failed to be written.
    pub fn check(&self) -> Result<(), StoreError> {
        if self.broken {
            return Err(StoreError::Broken {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// The chunk that holds a correlation, at or after another, or the tail.
    pub fn seek(&mut self, from: &Place, number: u64) -> Result<Place, StoreError> {
        let mut place = from.clone();
        while place.first < self.state.tail.first {
            let head = self.head(&place)?;
            let next = self.next(&place, &head);
            if number < next.first {
                return Ok(place);
            }
            place = next;
        }
        Ok(self.state.tail.clone())
    }

    /// The header of the chunk at a place.
    fn head(&mut self, place: &Place) -> Result<Head, StoreError> {
        let mut bytes = [0; chunk::HEADER];
        let read = self.disk.read(place.offset, &mut bytes);
        read.map_err(|e| failed(&self.path, "read", e))?;
        let full = self.full();
        Head::unseal(&bytes, place, &self.digest, full)
            .ok_or_else(|| damaged(&self.path, "the header of a chunk changed"))
    }

    fn next(&self, place: &Place, head: &Head) -> Place {
        let body = Lookups::saved_len(&self.header.shape, head.count);
        after(place, chunk::HEADER + body, head.count)
    }

    /// The chunk at a place, and the place of the next one.
    pub fn read_chunk(&mut self, place: &Place) -> Result<(Lookups, Place), StoreError> {
        let head = self.head(place)?;
        let shape = &self.header.shape;
        let mut body = Zeroizing::new(vec![0; Lookups::saved_len(shape, head.count)]);
        let offset = place.offset + chunk::HEADER as u64;
        let read = self.disk.read(offset, &mut body);
        read.map_err(|e| failed(&self.path, "read", e))?;
        if !head.unseal_body(place, &self.digest, &mut body) {
            return Err(damaged(&self.path, "correlations changed"));
        }
        let lookups = Lookups::load(self.header.role, shape, head.count, &body);
        Ok((lookups, self.next(place, &head)))
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        if self.unsynced && !self.broken {
            // If it fails, opening does it.
            let _ = self.disk.sync();
        }
    }
}

/// The newest record, which is in both pages, synced, when this returns: one changed byte then takes nothing back, and
/// no older record is there to tell older keys.
fn latest(
    disk: &mut dyn Disk,
    path: &Path,
    unseal: impl Fn(&[u8; RECORD]) -> Option<State>,
) -> Result<State, StoreError> {
    let mut unreadable = None;
    let mut pages = [None; 2];
    for (slot, page) in pages.iter_mut().enumerate() {
        let mut record = [0; RECORD];
        match disk.read(slot_offset(slot as u64), &mut record) {
            Ok(()) => *page = Some(record),
            Err(e) => unreadable = Some(e),
        }
    }
    let states = pages.iter().flatten().filter_map(|record| {
        let state = unseal(record)?;
        Some((state, *record))
    });
    let Some((state, record)) = states.max_by_key(|(state, _)| state.sequence) else {
        return Err(match unreadable {
            Some(e) => failed(path, "read", e),
            None => damaged(path, "both records of its cursor changed"),
        });
    };
    // What was read need not have been synced by who wrote it.
    let mut synced = disk.sync();
    if pages[0] != pages[1] {
        for (slot, page) in pages.iter().enumerate() {
            if *page != Some(record) {
                synced = synced.and_then(|()| disk.write(slot_offset(slot as u64), &record));
            }
        }
        synced = synced.and_then(|()| disk.sync());
    }
    synced.map_err(|e| failed(path, "write", e))?;
    Ok(state)
}

/// The place after a chunk of `bytes` bytes.
fn after(place: &Place, bytes: usize, count: usize) -> Place {
    Place {
        link: place.link.next(),
        offset: place.offset + bytes as u64,
        first: place.first + count as u64,
    }
}

fn damaged(path: &Path, what: &'static str) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        what,
    }
}

fn refused(path: &Path, refusal: Refusal) -> StoreError {
    match refusal {
        Refusal::Foreign => StoreError::NotAStore {
            path: path.to_owned(),
        },
        Refusal::Version(got) => StoreError::Version {
            path: path.to_owned(),
            expected: header::VERSION,
            got,
        },
        Refusal::Damaged => damaged(path, "its header changed"),
    }
}
