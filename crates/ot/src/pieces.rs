//! Random OTs shown in pieces that stay in the first-level cache, for users that keep only some bits of the pads.

use std::ops::Range;

use volvelle_net::Channel;
use volvelle_prim::hash::Tccr;
use volvelle_prim::{Block, lanes};
use zeroize::Zeroizing;

use crate::session::{check_count, check_width};
use crate::{Ot, OtError};

/// Blocks of one pad of a piece's OTs: 8 KiB, and as much of the other pad and of what is hashed.
const BLOCKS: usize = 512;

/// OTs of a full piece: whole words of choices.
fn piece(width: usize) -> usize {
    (BLOCKS / width).max(64) / 64 * 64
}

impl Ot {
    /// [`Self::send_random`] of `count` OTs, of which `see` gets some at a time: their numbers within the call, zero-pads and
    /// one-pads. All but the last piece are of a multiple of 64.
    ///
    /// # Errors
    /// As [`Self::send_random`].
    pub fn send_random_pieces(
        &mut self,
        ch: &mut Channel,
        width: usize,
        count: usize,
        mut see: impl FnMut(Range<usize>, &[Block], &[Block]),
    ) -> Result<(), OtError> {
        check_width(width, width)?;
        check_count("random OTs", count as u64)?;
        self.guarded(|ot| {
            let delta = ot.sender.delta();
            let mut room = ot.room(width, count, 2);
            let most = piece(width).min(count);
            for first in (0..count).step_by(piece(width)) {
                let ots = first..count.min(first + piece(width));
                let (q, pads) = room.split_at_mut(most);
                let q = &mut q[..ots.len()];
                let (zeros, ones) = pads.split_at_mut(most * width);
                let (zeros, ones) = (&mut zeros[..q.len() * width], &mut ones[..q.len() * width]);
                ot.sender.extend(ch, q)?;
                let hash = Tccr {
                    first: ot.tweak(ot.role, ot.sent),
                    width,
                };
                hash.hash_both(q, delta, zeros, ones);
                ot.sent += q.len() as u64;
                see(ots, zeros, ones);
            }
            ot.scratch = room;
            Ok(())
        })
    }

    /// [`Self::recv_random`] of `count` OTs, of which `see` gets some at a time: their numbers within the call, choices (64 a
    /// word), and pads. All but the last piece are of a multiple of 64.
    ///
    /// # Errors
    /// As [`Self::recv_random`].
    pub fn recv_random_pieces(
        &mut self,
        ch: &mut Channel,
        width: usize,
        count: usize,
        mut see: impl FnMut(Range<usize>, &[u64], &[Block]),
    ) -> Result<(), OtError> {
        check_width(width, width)?;
        check_count("random OTs", count as u64)?;
        self.guarded(|ot| {
            let mut room = ot.room(width, count, 1);
            let most = piece(width).min(count);
            let mut choices = Zeroizing::new([0; BLOCKS / 64]);
            for first in (0..count).step_by(piece(width)) {
                let ots = first..count.min(first + piece(width));
                let (r, pads) = room.split_at_mut(most);
                let r = &mut r[..ots.len()];
                let pads = &mut pads[..r.len() * width];
                ot.receiver.extend(ch, r)?;
                let hash = Tccr {
                    first: ot.tweak(ot.role.other(), ot.received),
                    width,
                };
                hash.hash(r, Block::ZERO, pads);
                let choices = &mut choices[..r.len().div_ceil(64)];
                lanes::lowest_bits(r, choices);
                ot.received += r.len() as u64;
                see(ots, choices, pads);
            }
            ot.scratch = room;
            Ok(())
        })
    }

    /// Room for a piece: what is hashed, and `pads` pads of each.
    fn room(&mut self, width: usize, count: usize, pads: usize) -> Zeroizing<Vec<Block>> {
        let blocks = piece(width).min(count) * (1 + pads * width);
        let mut room = std::mem::take(&mut self.scratch);
        if room.len() < blocks {
            // A new vector rather than a longer one: growing would leave secrets behind.
            room = Zeroizing::new(vec![Block::ZERO; blocks]);
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use volvelle_net::testing::run_pair;

    use super::*;
    use crate::testing::ideal_pair;

    /// All pieces of a call, sender's pads and then receiver's, and the choices.
    fn in_pieces(width: usize, count: usize) -> ([Vec<Block>; 3], Vec<u8>) {
        let (mut a, mut b) = ideal_pair(5);
        let (sent, received) = run_pair(
            |ch| {
                let (mut zeros, mut ones) = (Vec::new(), Vec::new());
                let see = |ots: Range<usize>, zero: &[Block], one: &[Block]| {
                    assert_eq!(
                        (ots.start, ots.len()),
                        (zeros.len() / width, zero.len() / width)
                    );
                    assert!(ots.end == count || ots.len().is_multiple_of(64));
                    zeros.extend_from_slice(zero);
                    ones.extend_from_slice(one);
                };
                a.send_random_pieces(ch, width, count, see).unwrap();
                (zeros, ones)
            },
            |ch| {
                let (mut bits, mut pads) = (Vec::new(), Vec::new());
                let see = |ots: Range<usize>, choices: &[u64], pad: &[Block]| {
                    assert_eq!(ots.start, bits.len());
                    assert_eq!(choices.len(), ots.len().div_ceil(64));
                    bits.extend((0..ots.len()).map(|i| (choices[i / 64] >> (i % 64) & 1) as u8));
                    pads.extend_from_slice(pad);
                };
                b.recv_random_pieces(ch, width, count, see).unwrap();
                (bits, pads)
            },
        );
        ([sent.0, sent.1, received.1], received.0)
    }

    #[test]
    fn pieces_are_those_of_one_call() {
        for (width, count) in [(1, 1), (1, 512), (1, 1300), (2, 300), (9, 150), (1, 0)] {
            let (mut a, mut b) = ideal_pair(5);
            let mut pads = [(); 3].map(|()| vec![Block::ZERO; count * width]);
            let mut choices = vec![0; count];
            let [zeros, ones, chosen] = &mut pads;
            let (sent, received) = run_pair(
                |ch| a.send_random(ch, width, zeros, ones),
                |ch| b.recv_random(ch, width, &mut choices, chosen),
            );
            assert!(sent.is_ok() && received.is_ok());
            assert!(
                in_pieces(width, count) == (pads, choices),
                "{width} {count}"
            );
        }
    }

    #[test]
    fn pads_of_no_blocks_are_refused() {
        let (mut a, mut b) = ideal_pair(5);
        let (sent, received) = run_pair(
            |ch| a.send_random_pieces(ch, 0, 3, |_, _, _| {}),
            |ch| b.recv_random_pieces(ch, 0, 3, |_, _, _| {}),
        );
        assert!(matches!(sent, Err(OtError::Shape { .. })));
        assert!(matches!(received, Err(OtError::Shape { .. })));
    }
}
