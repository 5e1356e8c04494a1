//! Both parties talk at once: a batch cut in chunks, a protocol of several steps, one frame a party
//! for every step of every chunk.
//!
//! A party first sends step 0 of all chunks; from then on each frame it takes in lets it send one
//! more, so that step `s + 1` of a chunk leaves as soon as step `s` of that chunk has come. A batch
//! of any size thus takes as many rounds as there are steps, computing and sending overlap, and a
//! chunk's working set stays in the cache. What is under way in one direction never exceeds
//! [`IN_FLIGHT`] bytes: beyond that (batches of millions) a party waits for the peer's frames
//! before it sends on, and [`Plan::rounds`] says how many more rounds the meter will count.

use std::ops::Range;

use volvelle_net::{Channel, Label};

use crate::LutError;

/// Bytes a party may have sent beyond what it has received. An agreement parameter: it decides the
/// order of frames.
const IN_FLIGHT: usize = 32 << 20;

/// Lookups a frame in the online phase; a multiple of 8, so that only the last frame of a batch
/// pads its bits to bytes. An agreement parameter.
pub(crate) const ONLINE_CHUNK: usize = 8192;

/// How a batch is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub batch: usize,
    pub chunk: usize,
    pub steps: usize,
    /// The largest payload of a full chunk's frame, in either direction.
    pub largest_frame: usize,
}

impl Plan {
    fn chunks(&self) -> usize {
        self.batch.div_ceil(self.chunk)
    }

    /// Lookups a frame such that one of `bytes(lookups)` may be in flight: [`ONLINE_CHUNK`], or less for very
    /// wide entries; a multiple of 64.
    pub fn online_chunk(bytes: impl Fn(usize) -> usize) -> usize {
        let mut chunk = ONLINE_CHUNK;
        while chunk > 64 && bytes(chunk) > IN_FLIGHT {
            chunk /= 2;
        }
        chunk
    }

    /// Frames a party sends before it waits for the peer's first.
    fn window(&self) -> usize {
        (IN_FLIGHT / self.largest_frame.max(1)).clamp(1, self.chunks().max(1))
    }

    /// Rounds of the whole exchange: `steps`, unless the batch exceeds what may be in flight.
    pub fn rounds(&self) -> u64 {
        (self.steps * self.chunks()).div_ceil(self.window()) as u64
    }

    /// Step and lookups of frame number `frame`.
    fn frame(&self, frame: usize) -> (usize, Range<usize>) {
        let chunks = self.chunks();
        let start = frame % chunks * self.chunk;
        (frame / chunks, start..self.batch.min(start + self.chunk))
    }
}

/// The lookups of each chunk, in order.
pub(crate) fn ranges(batch: usize, chunk: usize) -> impl Iterator<Item = Range<usize>> {
    (0..batch.div_ceil(chunk)).map(move |c| c * chunk..batch.min((c + 1) * chunk))
}

/// One party's part in an exchange.
pub(crate) trait Steps {
    /// The name of a step's frames.
    fn label(&self, step: usize) -> Label;
    /// Bytes that the peer sends for a chunk of `count` lookups.
    fn incoming(&self, step: usize, count: usize) -> usize;
    /// Appends this party's frame; earlier steps of these lookups have been taken in.
    fn make(&mut self, step: usize, lookups: Range<usize>, frame: &mut Vec<u8>);
    /// Takes in the peer's frame, of exactly the length that [`Self::incoming`] says.
    fn take(&mut self, step: usize, lookups: Range<usize>, frame: &[u8]);
}

/// Runs all steps for the whole batch.
pub(crate) fn exchange(
    ch: &mut Channel,
    plan: &Plan,
    party: &mut impl Steps,
) -> Result<(), LutError> {
    let frames = plan.steps * plan.chunks();
    let window = plan.window();
    let mut frame = Vec::new();
    let mut send = |ch: &mut Channel, number: usize, party: &mut _| {
        let (step, lookups) = plan.frame(number);
        frame.clear();
        Steps::make(party, step, lookups, &mut frame);
        ch.send(Steps::label(party, step), &frame)
    };
    for number in 0..frames.min(window) {
        send(ch, number, party)?;
    }
    let mut incoming = Vec::new();
    for number in 0..frames {
        let (step, lookups) = plan.frame(number);
        incoming.resize(party.incoming(step, lookups.len()), 0);
        ch.recv(party.label(step), &mut incoming)?;
        party.take(step, lookups, &incoming);
        if number + window < frames {
            send(ch, number + window, party)?;
        }
    }
    Ok(())
}

/// Appends words as bytes, `len` in all.
pub(crate) fn append_words(words: impl Iterator<Item = u64>, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    out.reserve(len + 8);
    words.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.truncate(end);
}

/// The bytes as words, into `out`; missing bytes of the last word are zero.
pub(crate) fn read_words(bytes: &[u8], out: &mut Vec<u64>) {
    let (whole, rest) = bytes.as_chunks::<8>();
    out.clear();
    out.extend(whole.iter().map(|b| u64::from_le_bytes(*b)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        out.push(u64::from_le_bytes(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(batch: usize, steps: usize, largest_frame: usize) -> Plan {
        Plan {
            batch,
            chunk: 64,
            steps,
            largest_frame,
        }
    }

    #[test]
    fn rounds_are_steps_until_the_window_is_full() {
        assert_eq!(plan(1, 3, 8).rounds(), 3);
        assert_eq!(plan(64 * 5, 3, 8).rounds(), 3);
        assert_eq!(plan(64 * 5, 0, 8).rounds(), 0);
        assert_eq!(plan(64 * 5, 2, IN_FLIGHT / 2).rounds(), 5);
        assert_eq!(plan(64 * 5, 2, 2 * IN_FLIGHT).rounds(), 10);
    }

    #[test]
    fn frames_cover_the_batch_step_by_step() {
        let plan = plan(150, 2, 8);
        let frames: Vec<_> = (0..6).map(|f| plan.frame(f)).collect();
        let cut = [0..64, 64..128, 128..150];
        assert_eq!(ranges(150, 64).collect::<Vec<_>>(), cut);
        let expected: Vec<_> = (0..2).flat_map(|s| cut.clone().map(|r| (s, r))).collect();
        assert_eq!(frames, expected);
    }

    #[test]
    fn words_and_bytes() {
        let mut bytes = vec![9];
        append_words([1, 0x0203_0405].into_iter(), 11, &mut bytes);
        assert_eq!(bytes, [9, 1, 0, 0, 0, 0, 0, 0, 0, 5, 4, 3]);
        let mut words = vec![7];
        read_words(&bytes[1..], &mut words);
        assert_eq!(words, [1, 0x03_0405]);
        read_words(&bytes[1..9], &mut words);
        assert_eq!(words, [1]);
    }
}
