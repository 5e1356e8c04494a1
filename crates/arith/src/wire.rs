//! Messages of packed words and bits.
//!
//! A message longer than [`PIECE`] goes out as several frames. Two parties that both send a long message read
//! while they write once [`LEAD`] pieces are unread, so that neither waits for the other; below that (32 MiB)
//! an exchange is one round on the meter as well.

use volvelle_net::{Channel, Label};
use volvelle_prim::{BitVec, pack};

use crate::error::ArithError;
use crate::ring::Ring;

/// Largest frame sent, in bytes. Local tuning, but both parties must agree on it.
const PIECE: usize = 4 << 20;

/// Pieces sent ahead of the first one read.
const LEAD: usize = 8;

fn pieces(len: usize) -> usize {
    len.div_ceil(PIECE).max(1)
}

fn piece(index: usize, len: usize) -> std::ops::Range<usize> {
    index * PIECE..len.min((index + 1) * PIECE)
}

pub(crate) fn send_bytes(ch: &mut Channel, label: Label, bytes: &[u8]) -> Result<(), ArithError> {
    for i in 0..pieces(bytes.len()) {
        ch.send(label, &bytes[piece(i, bytes.len())])?;
    }
    Ok(())
}

/// Receives exactly `len` bytes, where `len` comes from this party's own parameters.
pub(crate) fn recv_bytes(
    ch: &mut Channel,
    label: Label,
    len: usize,
) -> Result<Vec<u8>, ArithError> {
    let mut bytes = vec![0; len];
    for i in 0..pieces(len) {
        ch.recv(label, &mut bytes[piece(i, len)])?;
    }
    Ok(bytes)
}

/// Sends `mine` and receives the peer's message of `len` bytes, at once.
pub(crate) fn exchange_bytes(
    ch: &mut Channel,
    label: Label,
    mine: &[u8],
    len: usize,
) -> Result<Vec<u8>, ArithError> {
    let mut theirs = vec![0; len];
    let mut read = 0;
    for i in 0..pieces(mine.len()) {
        if i >= LEAD && read < pieces(len) {
            ch.recv(label, &mut theirs[piece(read, len)])?;
            read += 1;
        }
        ch.send(label, &mine[piece(i, mine.len())])?;
    }
    for i in read..pieces(len) {
        ch.recv(label, &mut theirs[piece(i, len)])?;
    }
    Ok(theirs)
}

pub(crate) fn bits_from(label: Label, bytes: &[u8], bits: usize) -> Result<BitVec, ArithError> {
    BitVec::from_bytes(bytes, bits).ok_or(ArithError::Padding {
        label: label.name(),
        bits,
    })
}

pub(crate) fn send_bits(ch: &mut Channel, label: Label, bits: &BitVec) -> Result<(), ArithError> {
    send_bytes(ch, label, &bits.to_bytes())
}

pub(crate) fn recv_bits(ch: &mut Channel, label: Label, len: usize) -> Result<BitVec, ArithError> {
    let bytes = recv_bytes(ch, label, len.div_ceil(8))?;
    bits_from(label, &bytes, len)
}

/// Sends `mine` and receives as many bits.
pub(crate) fn exchange_bits(
    ch: &mut Channel,
    label: Label,
    mine: &BitVec,
) -> Result<BitVec, ArithError> {
    let theirs = exchange_bytes(ch, label, &mine.to_bytes(), mine.len().div_ceil(8))?;
    bits_from(label, &theirs, mine.len())
}

pub(crate) fn pack_words(ring: Ring, words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pack::packed_len(words.len(), ring.bits()));
    pack::pack_append(words, ring.bits(), &mut bytes);
    bytes
}

pub(crate) fn unpack_words(ring: Ring, bytes: &[u8], count: usize) -> Vec<u64> {
    let mut words = vec![0; count];
    pack::unpack_into(bytes, ring.bits(), &mut words);
    words
}

/// Sends `mine` and receives as many words of the ring.
pub(crate) fn exchange_words(
    ch: &mut Channel,
    label: Label,
    ring: Ring,
    mine: &[u64],
) -> Result<Vec<u64>, ArithError> {
    let theirs = exchange_bytes(
        ch,
        label,
        &pack_words(ring, mine),
        pack::packed_len(mine.len(), ring.bits()),
    )?;
    Ok(unpack_words(ring, &theirs, mine.len()))
}

/// Bits on the wire of a message of `count` values of `bits` bits.
pub(crate) fn wire_bits(count: usize, bits: u32) -> u64 {
    pack::packed_len(count, bits) as u64 * 8
}

/// Bits on the wire of a message of `count` bits.
pub(crate) fn wire_bools(count: usize) -> u64 {
    count.div_ceil(8) as u64 * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_net::testing::run_pair;

    #[test]
    fn long_exchanges_of_any_lengths_end() {
        let label = Label::new("test/wire");
        let lengths = [0, 1, PIECE, PIECE + 1, (LEAD + 3) * PIECE + 5];
        for mine in lengths {
            for theirs in lengths {
                let bytes = |len: usize, factor: usize| {
                    (0..len).map(|i| (i * factor) as u8).collect::<Vec<u8>>()
                };
                let (at_client, at_server) = run_pair(
                    |ch| exchange_bytes(ch, label, &bytes(mine, 3), theirs).unwrap(),
                    |ch| exchange_bytes(ch, label, &bytes(theirs, 5), mine).unwrap(),
                );
                assert!(
                    at_client == bytes(theirs, 5) && at_server == bytes(mine, 3),
                    "{mine} {theirs}"
                );
            }
        }
    }

    #[test]
    fn set_padding_is_an_error() {
        let label = Label::new("test/wire");
        let (result, ()) = run_pair(
            |ch| recv_bits(ch, label, 5),
            |ch| {
                ch.send(label, &[0xff]).unwrap();
                ch.flush().unwrap();
            },
        );
        assert!(matches!(result, Err(ArithError::Padding { bits: 5, .. })));
    }
}
