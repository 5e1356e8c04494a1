//! What changes in a store: cursor and ends, in two pages that say the same.
//!
//! A record is written to one page and synced, then to the other, whose turn it is to be first at the next record. So at any
//! moment one page is whole and synced, and a page that was being written when the power went is recognised by its
//! tag: the other one then holds the same, or what held before, a cursor that nobody has acted on yet.

use volvelle_prim::Prg;
use zeroize::Zeroizing;

use super::error::StoreError;
use super::header::{PAGE, take};
use super::key::{KEY, NONCE, SubKey, TAG};

const TEXT: usize = 8 * 8 + KEY;
/// Bytes of a record as it lies in its page.
pub(super) const RECORD: usize = NONCE + TEXT + TAG;
/// Where chunks begin: after the header and the two pages.
pub(super) const CHUNKS: u64 = 3 * PAGE as u64;

/// The `number`-th key of a chain in which each comes from the one before and none from the one after: who learns a
/// store's present key cannot read chunks that are used up.
#[derive(Clone)]
pub(super) struct Link {
    pub number: u64,
    pub key: SubKey,
}

impl Link {
    pub fn first(prg: &mut Prg) -> Self {
        Self {
            number: 0,
            key: SubKey::random(prg),
        }
    }

    pub fn next(&self) -> Self {
        Self {
            number: self.number + 1,
            key: self.key.sub("volvelle store 1 next"),
        }
    }
}

/// A chunk's place, or that of the chunk to come.
#[derive(Clone)]
pub(super) struct Place {
    pub link: Link,
    /// Where it begins in the file.
    pub offset: u64,
    /// The number of its first correlation.
    pub first: u64,
}

/// What is true of a store.
#[derive(Clone)]
pub(super) struct State {
    /// Counts records.
    pub sequence: u64,
    /// Correlations below this number are used up, or given up.
    pub cursor: u64,
    /// The chunk that holds the correlation at the cursor, or the tail.
    pub head: Place,
    /// The end of the last chunk; its `first` is the number of correlations ever stored.
    pub tail: Place,
}

impl State {
    /// Of an empty store.
    pub fn new(prg: &mut Prg) -> Self {
        let place = Place {
            link: Link::first(prg),
            offset: CHUNKS,
            first: 0,
        };
        Self {
            sequence: 0,
            cursor: 0,
            head: place.clone(),
            tail: place,
        }
    }

    /// Where the record is written first.
    pub const fn page(&self) -> u64 {
        slot_offset(self.sequence % 2)
    }

    /// Where it is written then: first place of the next record.
    pub const fn twin(&self) -> u64 {
        slot_offset((self.sequence + 1) % 2)
    }

    /// The record, encrypted; `bound` is the header's digest.
    pub fn seal(
        &self,
        key: &SubKey,
        bound: &[u8],
        prg: &mut Prg,
    ) -> Result<[u8; RECORD], StoreError> {
        let mut text = Zeroizing::new(Vec::with_capacity(TEXT));
        let Place {
            link,
            offset,
            first,
        } = &self.head;
        for number in [self.sequence, self.cursor, link.number, *offset, *first] {
            text.extend(number.to_le_bytes());
        }
        let Place {
            link: last,
            offset,
            first,
        } = &self.tail;
        for number in [last.number, *offset, *first] {
            text.extend(number.to_le_bytes());
        }
        text.extend(link.key.bytes());
        let mut nonce = [0; NONCE];
        prg.fill_bytes(&mut nonce);
        let tag = key.seal(&nonce, bound, &mut text)?;
        let mut record = [0; RECORD];
        record[..NONCE].copy_from_slice(&nonce);
        record[NONCE..NONCE + TEXT].copy_from_slice(&text);
        record[NONCE + TEXT..].copy_from_slice(&tag);
        Ok(record)
    }

    /// Reads a record.
    pub fn unseal(record: &[u8; RECORD], key: &SubKey, bound: &[u8]) -> Option<Self> {
        let mut rest = &record[..];
        let nonce = take(&mut rest)?;
        let mut text = Zeroizing::new(take::<TEXT>(&mut rest)?);
        let tag = take(&mut rest)?;
        if !key.unseal(&nonce, bound, &mut *text, &tag) {
            return None;
        }
        let mut rest = &text[..];
        let mut number = || take(&mut rest).map(u64::from_le_bytes);
        let (sequence, cursor) = (number()?, number()?);
        let head = (number()?, number()?, number()?);
        let tail = (number()?, number()?, number()?);
        let link = Link {
            number: head.0,
            key: SubKey::from_slice(&Zeroizing::new(take(&mut rest)?)),
        };
        let mut last = link.clone();
        while last.number < tail.0 {
            last = last.next();
        }
        Some(Self {
            sequence,
            cursor,
            head: Place {
                link,
                offset: head.1,
                first: head.2,
            },
            tail: Place {
                link: last,
                offset: tail.1,
                first: tail.2,
            },
        })
    }
}

/// Where the record of either page lies.
pub(super) const fn slot_offset(slot: u64) -> u64 {
    (1 + slot) * PAGE as u64
}
