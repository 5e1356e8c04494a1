//! Chunks: some correlations, encrypted under a key of their own, and a header that says how many they are.
//!
//! ```text
//! number, first (8 bytes each), count (4), 0 (4) | nonce (24) | tag of the correlations (16) | tag of all this (16) | correlations
//! ```
//! The header has a tag of its own, so that a chunk can be passed over without reading it.

use volvelle_prim::Prg;

use super::error::StoreError;
use super::header::take;
use super::key::{NONCE, SubKey, TAG};
use super::state::{Link, Place};

const FIELDS: usize = 24;
const BOUND: usize = FIELDS + NONCE + TAG;
/// Bytes before the correlations.
pub(super) const HEADER: usize = BOUND + TAG;

/// Most correlations of a chunk, and most bytes unless one alone is larger. Local tuning: a reader takes
/// what the header says, up to the same limits.
const MAX_COUNT: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

/// Correlations of a full chunk, given what some take.
pub(super) fn full(len: impl Fn(usize) -> usize) -> usize {
    (MAX_BYTES / len(1).max(1)).clamp(1, MAX_COUNT)
}

/// What a chunk's header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub count: usize,
    nonce: [u8; NONCE],
    tag: [u8; TAG],
}

fn fields(place: &Place, count: usize) -> [u8; FIELDS] {
    let mut fields = [0; FIELDS];
    fields[..8].copy_from_slice(&place.link.number.to_le_bytes());
    fields[8..16].copy_from_slice(&place.first.to_le_bytes());
    fields[16..20].copy_from_slice(&(count as u32).to_le_bytes());
    fields
}

fn body_key(link: &Link) -> SubKey {
    link.key.sub("volvelle store 1 body")
}

fn head_key(link: &Link) -> SubKey {
    link.key.sub("volvelle store 1 head")
}

fn bound(digest: &[u8], fields: &[u8]) -> Vec<u8> {
    [digest, fields].concat()
}

/// Encrypts `chunk`, which is room for the header and then `count` correlations, in place.
pub(super) fn seal(
    place: &Place,
    count: usize,
    digest: &[u8],
    prg: &mut Prg,
    chunk: &mut [u8],
) -> Result<(), StoreError> {
    let (head, body) = chunk.split_at_mut(HEADER);
    let fields = fields(place, count);
    // A chunk that was cut off is written again under the same key, so the nonce must be another.
    let mut nonce = [0; NONCE];
    prg.fill_bytes(&mut nonce);
    let tag = body_key(&place.link).seal(&nonce, &bound(digest, &fields), body)?;
    let signed = [&fields[..], &nonce, &tag].concat();
    let head_tag = head_key(&place.link).seal(&nonce, &bound(digest, &signed), &mut [])?;
    head[..BOUND].copy_from_slice(&signed);
    head[BOUND..].copy_from_slice(&head_tag);
    Ok(())
}

impl Head {
    /// Reads the header of the chunk that must be at `place` and has at most `full` correlations.
    pub fn unseal(bytes: &[u8; HEADER], place: &Place, digest: &[u8], full: usize) -> Option<Self> {
        let signed = &bytes[..BOUND];
        let mut rest = &bytes[..];
        let got: [u8; FIELDS] = take(&mut rest)?;
        let (nonce, tag) = (take(&mut rest)?, take(&mut rest)?);
        let head_tag = take(&mut rest)?;
        let count = u32::from_le_bytes([got[16], got[17], got[18], got[19]]) as usize;
        let right = got == fields(place, count)
            && (1..=full).contains(&count)
            && head_key(&place.link).unseal(&nonce, &bound(digest, signed), &mut [], &head_tag);
        right.then_some(Self { count, nonce, tag })
    }

    /// Decrypts the correlations in place.
    #[must_use]
    pub fn unseal_body(&self, place: &Place, digest: &[u8], body: &mut [u8]) -> bool {
        let bound = bound(digest, &fields(place, self.count));
        body_key(&place.link).unseal(&self.nonce, &bound, body, &self.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::state::State;

    /// A chunk larger than any that is written is not read, whatever its tags say: memory is taken by its count.
    #[test]
    fn a_count_above_the_limit() {
        let mut prg = Prg::from_seed(volvelle_prim::Block(3));
        let place = State::new(&mut prg).head;
        for (count, right) in [(0, false), (1, true), (7, true), (8, false)] {
            let mut bytes = [0; HEADER];
            seal(&place, count, b"digest", &mut prg, &mut bytes).unwrap();
            let head = Head::unseal(&bytes, &place, b"digest", 7);
            assert_eq!(head.is_some(), right, "{count}");
        }
        assert_eq!(
            (full(|_| 36), full(|_| 1 << 18), full(|_| 1 << 21)),
            (4096, 4, 1)
        );
    }
}
