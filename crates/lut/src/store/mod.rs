//! Correlations kept on disk: made now, used later, in another process (see `docs/protocols/store.md`).
//!
//! A correlation used twice shows the difference of two indices, and one that only one party passes over makes every later
//! result wrong. Hence two rules. The cursor moves on the disk, and is synced, *before* correlations are handed out;
//! and on every connection both parties compare cursors and go on from the later one.
//!
//! ```text
//! header | record | record | chunk | chunk | …
//!          └ cursor, ends, key of the chunk at the cursor; twice, the later that is whole counts
//! ```
//!
//! Everything after the header is encrypted and authenticated (XChaCha20-Poly1305). Chunks' keys form a chain that runs
//! forward only, so that what is used up cannot be read later by who gets file and key.
//!
//! | file | what is there |
//! |---|---|
//! | `agree` | what the parties tell each other |
//! | `file` | one party's file: opening, reading, writing |
//! | `header`, `state`, `chunk` | its parts |
//! | `key` | keys and encryption |
//! | `disk` | files: locks, creation, and what tests put in their place |

mod agree;
mod chunk;
mod disk;
mod error;
mod file;
mod header;
mod key;
mod state;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use volvelle_net::{Channel, Role};
use volvelle_ot::Cost;
use volvelle_prim::Prg;

pub use self::error::StoreError;
pub use self::key::StoreKey;

use self::agree::Terms;
use self::file::StoreFile;
use self::header::{ID, check_shape, describe};
use self::state::{Place, State};
use crate::shape::check_batch;
use crate::{Lookups, LutError, Shape};

/// One party's store of prepared lookups of one shape. A file serves one connection at a time; lanes have a store each.
///
/// Both parties make mirrored calls: [`create`](Self::create) or [`open`](Self::open) and
/// [`reconcile`](Self::reconcile) once a connection, then [`append`](Self::append) and [`take`](Self::take) with the same
/// counts in the same order.
pub struct Store {
    file: StoreFile,
    /// The next correlation to hand out, at or before the file's cursor, and the chunk that it is in.
    cursor: u64,
    reader: Place,
    /// The chunk last read, and where the next one is.
    open: Option<OpenChunk>,
    reserve: u64,
    reconciled: bool,
}

struct OpenChunk {
    first: u64,
    lookups: Lookups,
    next: Place,
}

impl Store {
    /// Makes an empty store at both parties, for lookups of a shape. Both call this with the same shape; the
    /// two stores will work with each other and with no others.
    ///
    /// # Errors
    /// If there is a file, the shape is out of range or not the peer's, or the peer or the disk fails.
    pub fn create(
        path: &Path,
        key: &StoreKey,
        ch: &mut Channel,
        shape: &Shape,
    ) -> Result<Self, LutError> {
        check_shape(shape)?;
        if path.exists() {
            return Err(StoreError::Exists {
                path: path.to_owned(),
            }
            .into());
        }
        let ours = fresh_terms(shape);
        let theirs = agree::exchange(ch, &ours)?;
        Self::make(path, key, ch.role(), (&ours, &theirs), false)
    }

    /// Opens a store, which no other process may have open. [`reconcile`](Self::reconcile) comes next.
    ///
    /// # Errors
    /// If there is no such file, it is no store or damaged, in use, or the key is another.
    pub fn open(path: &Path, key: &StoreKey) -> Result<Self, LutError> {
        Ok(Self::new(StoreFile::open(path, key)?, false))
    }

    /// [`open`](Self::open) and [`reconcile`](Self::reconcile) where there is a file, [`create`](Self::create) where there is
    /// none, at both parties at once. A store that has never held anything is made anew if it is for another shape or role,
    /// or the peer has none that goes with it: making it was interrupted.
    ///
    /// # Errors
    /// As those; and if one party has a store with correlations and the other none.
    pub fn open_or_create(
        path: &Path,
        key: &StoreKey,
        ch: &mut Channel,
        shape: &Shape,
    ) -> Result<Self, LutError> {
        check_shape(shape)?;
        if !path.exists() {
            return Self::create(path, key, ch, shape);
        }
        let mut store = Self::open(path, key)?;
        let ours = match store.check_asked(ch, shape) {
            Ok(()) => store.terms(),
            Err(_) if store.terms().is_unused() => fresh_terms(shape),
            Err(refusal) => return Err(refusal.into()),
        };
        let theirs = agree::exchange(ch, &ours)?;
        if ours.present && theirs.present && theirs.id == ours.id {
            store.settle(&theirs)?;
            return Ok(store);
        }
        if ours.is_unused() && theirs.is_unused() {
            return Self::make(path, key, ch.role(), (&ours, &theirs), true);
        }
        Err(store.refuse(&theirs).into())
    }

    /// Compares this store with the peer's and goes on from the later cursor; correlations that only one party holds
    /// are given up. Every connection begins with this.
    ///
    /// # Errors
    /// If the stores were not made with each other, or the peer or the disk fails. [`StoreError::Broken`], and nothing
    /// sent, if writing a record failed earlier: open the store again.
    pub fn reconcile(&mut self, ch: &mut Channel) -> Result<(), LutError> {
        self.file.check()?;
        self.check_role(ch)?;
        self.reconciled = false;
        let theirs = agree::exchange(ch, &self.terms())?;
        if !theirs.present || theirs.id != self.file.header.id {
            return Err(self.refuse(&theirs).into());
        }
        self.settle(&theirs)?;
        Ok(())
    }

    /// What [`create`](Self::create), [`open_or_create`](Self::open_or_create) and [`reconcile`](Self::reconcile) send.
    #[must_use]
    pub fn reconcile_cost(shape: &Shape) -> Cost {
        agree::cost(shape)
    }

    /// What the lookups are for.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.file.header.shape
    }

    /// As which party it was made.
    #[must_use]
    pub fn role(&self) -> Role {
        self.file.header.role
    }

    /// Lookups left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.file.state.tail.first - self.cursor
    }

    /// The number of the next lookup to be handed out: all before it are used up or given up.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// From now on, moves the cursor on the disk by at least `block` lookups at once (0, as at first: by what is taken). A
    /// sync then serves many small batches; what is left of a block when the process ends is given up.
    pub fn reserve(&mut self, block: u64) {
        self.reserve = block;
    }

    /// Stores lookups, after those already there. When this returns they are on the disk; interrupted, it has stored
    /// none of them.
    ///
    /// # Errors
    /// If their shape is another, or the disk fails. Then the parties must reconcile before they go on; if that gives
    /// [`StoreError::Broken`], because it was the record that failed, open the store again first.
    pub fn append(&mut self, lookups: Lookups) -> Result<(), LutError> {
        self.check_usable()?;
        check_same_shape(self.shape(), "the lookups are", &lookups.shape())?;
        self.in_step(|store| {
            let tail = store.file.write_chunks(&lookups)?;
            let State { cursor, head, .. } = store.file.state.clone();
            store.file.write_record(cursor, head, tail)
        })?;
        Ok(())
    }

    /// Hands out the next `count` lookups, once and never again: the cursor is past them on the disk when this returns.
    ///
    /// # Errors
    /// [`StoreError::Exhausted`] if there are not so many, the cursor unmoved; if `count` is 0. If the disk fails. Then
    /// the parties must reconcile before they go on; if that gives [`StoreError::Broken`], because it was the record
    /// that failed, open the store again first.
    pub fn take(&mut self, count: usize) -> Result<Lookups, LutError> {
        self.check_usable()?;
        check_batch(count)?;
        let left = self.remaining();
        let asked = count as u64;
        if asked > left {
            return Err(StoreError::Exhausted { asked, left }.into());
        }
        Ok(self.in_step(|store| {
            let (lookups, reader) = store.read(count)?;
            store.use_up(asked, reader)?;
            Ok(lookups)
        })?)
    }

    /// Moves the cursor by `count`, to a place.
    fn use_up(&mut self, count: u64, reader: Place) -> Result<(), StoreError> {
        let end = self.cursor + count;
        if end > self.file.state.cursor {
            let tail = self.file.state.tail.clone();
            let reserved = self.cursor.saturating_add(self.reserve);
            let cursor = reserved.clamp(end, tail.first);
            let head = self.file.seek(&reader, cursor)?;
            self.file.write_record(cursor, head, tail)?;
        }
        (self.cursor, self.reader) = (end, reader);
        self.file.discard_to(self.reader.offset);
        Ok(())
    }

    /// Runs what the peer does too. If it fails here, the parties' stores may differ.
    fn in_step<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.reconciled = false;
        let done = step(self)?;
        self.reconciled = true;
        Ok(done)
    }

    fn new(file: StoreFile, reconciled: bool) -> Self {
        Self {
            cursor: file.state.cursor,
            reader: file.state.head.clone(),
            file,
            open: None,
            reserve: 0,
            reconciled,
        }
    }

    fn make(
        path: &Path,
        key: &StoreKey,
        role: Role,
        (ours, theirs): (&Terms, &Terms),
        replace: bool,
    ) -> Result<Self, LutError> {
        if !theirs.is_unused() {
            return Err(StoreError::PeerHasOne {
                path: path.to_owned(),
            }
            .into());
        }
        let mut id = ours.share;
        let shares = id.iter_mut().zip(theirs.share);
        shares.for_each(|(own, their)| *own ^= their);
        let file = StoreFile::create(path, key, role, (&ours.shape, id), replace)?;
        Ok(Self::new(file, true))
    }

    fn terms(&self) -> Terms {
        Terms {
            present: true,
            id: self.file.header.id,
            count: self.file.state.tail.first,
            cursor: self.cursor,
            ..fresh_terms(self.shape())
        }
    }

    /// Goes on from where both parties can.
    fn settle(&mut self, theirs: &Terms) -> Result<(), StoreError> {
        let count = self.file.state.tail.first;
        let start = self.cursor.max(theirs.cursor);
        let end = start.max(count.min(theirs.count));
        let mut tail = self.file.state.tail.clone();
        if end < count && end > start {
            tail = self.file.seek(&self.reader, end)?;
            if tail.first != end {
                return Err(StoreError::Misaligned {
                    path: self.file.path.clone(),
                    peers: end,
                });
            }
        }
        tail.first = end;
        let reader = match start {
            start if start == end => tail.clone(),
            start => self.file.seek(&self.reader, start)?,
        };
        // What was reserved stays so, as far as it is still there.
        let cursor = self.file.state.cursor.clamp(start, end);
        if (cursor, end) != (self.file.state.cursor, count) {
            let head = match cursor {
                cursor if cursor == end => tail.clone(),
                cursor => self.file.seek(&reader, cursor)?,
            };
            self.file.write_record(cursor, head, tail)?;
        }
        (self.cursor, self.reader, self.open) = (start, reader, None);
        self.reconciled = true;
        Ok(())
    }

    /// Why a peer's store does not go with this one.
    fn refuse(&self, theirs: &Terms) -> StoreError {
        let path = self.file.path.clone();
        if theirs.present {
            StoreError::OtherPeer { path }
        } else {
            StoreError::PeerHasNone { path }
        }
    }

    /// Whether this is the store to go on with.
    fn check_asked(&self, ch: &Channel, shape: &Shape) -> Result<(), StoreError> {
        self.check_role(ch)?;
        if self.shape() == shape {
            return Ok(());
        }
        Err(StoreError::FileShape {
            path: self.file.path.clone(),
            asked: describe(shape),
            holds: describe(self.shape()),
        })
    }

    fn check_role(&self, ch: &Channel) -> Result<(), StoreError> {
        let (expected, got) = (self.file.header.role, ch.role());
        if expected == got {
            return Ok(());
        }
        Err(StoreError::Role {
            path: self.file.path.clone(),
            expected,
            got,
        })
    }

    fn check_usable(&self) -> Result<(), StoreError> {
        self.file.check()?;
        if !self.reconciled {
            return Err(StoreError::NotReconciled);
        }
        Ok(())
    }

    /// The next `count` lookups, which are there, and the place of the one after them.
    fn read(&mut self, count: usize) -> Result<(Lookups, Place), StoreError> {
        let mut lookups = Lookups::zeros(self.role(), self.shape(), count);
        let mut place = self.reader.clone();
        let start = self.cursor;
        let (mut at, end) = (start, start + count as u64);
        while at < end {
            let chunk = self.chunk(&place)?;
            let from = (at - place.first) as usize;
            let to = chunk.lookups.len().min((end - place.first) as usize);
            lookups.copy((at - start) as usize, &chunk.lookups, from..to);
            at = place.first + to as u64;
            if at == chunk.next.first {
                place = chunk.next.clone();
            }
        }
        Ok((lookups, place))
    }

    /// The chunk at a place, read or remembered.
    fn chunk(&mut self, place: &Place) -> Result<&OpenChunk, StoreError> {
        let open = self.open.take().filter(|open| open.first == place.first);
        let chunk = match open {
            Some(chunk) => chunk,
            None => {
                let (lookups, next) = self.file.read_chunk(place)?;
                OpenChunk {
                    first: place.first,
                    lookups,
                    next,
                }
            }
        };
        Ok(self.open.insert(chunk))
    }
}

impl fmt::Debug for Store {
    /// Nothing of the contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.file.path)
            .field("cursor", &self.cursor)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

fn fresh_terms(shape: &Shape) -> Terms {
    let mut share = [0; ID];
    Prg::from_os().fill_bytes(&mut share);
    Terms {
        present: false,
        share,
        id: [0; ID],
        count: 0,
        cursor: 0,
        shape: shape.clone(),
    }
}

fn check_same_shape(ours: &Shape, whose: &'static str, theirs: &Shape) -> Result<(), StoreError> {
    if ours == theirs {
        return Ok(());
    }
    Err(StoreError::OtherShape {
        ours: describe(ours),
        whose,
        theirs: describe(theirs),
    })
}
