//! Random OTs in chunks that stay in the cache, for protocols that keep only a few bits of each pad.
//!
//! The OT engine talks on the same channel at moments of its own, and frames are read in the order in which
//! they were sent. So a protocol that needs OTs in both directions makes all of them before its first
//! message, and any other reads each message before it makes more OTs.

use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_prim::Block;
use zeroize::Zeroizing;

use crate::error::ArithError;

/// Blocks of pads held at a time. An agreement constant: some protocols send a message a chunk.
const CHUNK_BLOCKS: usize = 1 << 13;

/// A batch of items, each with the same number of OTs.
#[derive(Clone, Copy)]
pub(crate) struct Items {
    /// Number of items.
    pub count: usize,
    /// OTs of an item.
    pub ots: usize,
    /// Blocks of a pad.
    pub width: usize,
}

impl Items {
    /// One OT with one block an item.
    pub fn single(count: usize) -> Items {
        Items {
            count,
            ots: 1,
            width: 1,
        }
    }

    /// Items of a chunk, a multiple of 64.
    fn chunk(self) -> usize {
        (CHUNK_BLOCKS / (self.ots * self.width))
            .next_multiple_of(64)
            .max(64)
    }

    /// (first item, number of items) of each chunk.
    pub fn chunks(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.count)
            .step_by(self.chunk())
            .map(move |start| (start, self.chunk().min(self.count - start)))
    }
}

/// Makes random OTs as sender; `visit(channel, first item, zeros, ones)` sees them chunk by chunk, a multiple
/// of 64 items each but for the last.
pub(crate) fn try_send(
    ch: &mut Channel,
    ot: &mut Ot,
    items: Items,
    mut visit: impl FnMut(&mut Channel, usize, &[Block], &[Block]) -> Result<(), ArithError>,
) -> Result<(), ArithError> {
    let capacity = items.chunk().min(items.count) * items.ots * items.width;
    let mut zeros = Zeroizing::new(vec![Block::ZERO; capacity]);
    let mut ones = Zeroizing::new(vec![Block::ZERO; capacity]);
    for (start, len) in items.chunks() {
        let blocks = len * items.ots * items.width;
        ot.send_random(ch, items.width, &mut zeros[..blocks], &mut ones[..blocks])?;
        visit(ch, start, &zeros[..blocks], &ones[..blocks])?;
    }
    Ok(())
}

/// Makes random OTs as receiver; `visit(channel, first item, choices, pads)`.
pub(crate) fn try_recv(
    ch: &mut Channel,
    ot: &mut Ot,
    items: Items,
    mut visit: impl FnMut(&mut Channel, usize, &[u8], &[Block]) -> Result<(), ArithError>,
) -> Result<(), ArithError> {
    let capacity = items.chunk().min(items.count) * items.ots;
    let mut choices = Zeroizing::new(vec![0; capacity]);
    let mut pads = Zeroizing::new(vec![Block::ZERO; capacity * items.width]);
    for (start, len) in items.chunks() {
        let ots = len * items.ots;
        ot.recv_random(
            ch,
            items.width,
            &mut choices[..ots],
            &mut pads[..ots * items.width],
        )?;
        visit(ch, start, &choices[..ots], &pads[..ots * items.width])?;
    }
    Ok(())
}

/// [`try_send`] with a visitor that sends nothing.
pub(crate) fn send(
    ch: &mut Channel,
    ot: &mut Ot,
    items: Items,
    mut visit: impl FnMut(usize, &[Block], &[Block]),
) -> Result<(), ArithError> {
    try_send(ch, ot, items, |_, start, zeros, ones| {
        visit(start, zeros, ones);
        Ok(())
    })
}

/// [`try_recv`] with a visitor that receives nothing.
pub(crate) fn recv(
    ch: &mut Channel,
    ot: &mut Ot,
    items: Items,
    mut visit: impl FnMut(usize, &[u8], &[Block]),
) -> Result<(), ArithError> {
    try_recv(ch, ot, items, |_, start, choices, pads| {
        visit(start, choices, pads);
        Ok(())
    })
}

/// Makes the same number of OTs in both directions, the client as sender first.
pub(crate) fn both(
    ch: &mut Channel,
    ot: &mut Ot,
    items: Items,
    on_send: impl FnMut(usize, &[Block], &[Block]),
    on_recv: impl FnMut(usize, &[u8], &[Block]),
) -> Result<(), ArithError> {
    match ot.role() {
        Role::Client => {
            send(ch, ot, items, on_send)?;
            recv(ch, ot, items, on_recv)
        }
        Role::Server => {
            recv(ch, ot, items, on_recv)?;
            send(ch, ot, items, on_send)
        }
    }
}

/// Bit `t` of up to 64 blocks, block j's at position j.
pub(crate) fn gather(blocks: &[Block], t: u32) -> u64 {
    blocks
        .iter()
        .enumerate()
        .fold(0, |word, (j, b)| word | (((b.0 >> t) as u64 & 1) << j))
}

/// Up to 64 choice bits, the j-th at position j.
pub(crate) fn gather_choices<'a>(choices: impl IntoIterator<Item = &'a u8>) -> u64 {
    choices
        .into_iter()
        .enumerate()
        .fold(0, |word, (j, &c)| word | (u64::from(c & 1) << j))
}
