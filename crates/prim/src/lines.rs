//! Blocks aligned to cache lines.

use std::ops::{Deref, DerefMut};

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;

/// Four blocks: one cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy, Zeroize)]
struct Line([Block; 4]);

/// A fixed number of blocks, the first at the start of a cache line, so that four blocks from a multiple
/// of four on are one line. Zeroised when dropped.
#[derive(ZeroizeOnDrop)]
pub struct Lines {
    lines: Vec<Line>,
    len: usize,
}

impl Lines {
    /// `len` zero blocks.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        let mut lines = vec![Line([Block::ZERO; 4]); len.div_ceil(4)];
        ask_for_huge_pages(&mut lines);
        Self { lines, len }
    }
}

/// Asks the system to back large memory with huge pages: random reads then miss the TLB less. It may refuse.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(lines: &mut [Line]) {
    /// The usual size of a huge page; smaller memory would only waste one.
    const HUGE: usize = 2 << 20;
    let memory = lines.as_mut_ptr_range();
    let start = (memory.start as usize).next_multiple_of(HUGE);
    let end = memory.end as usize / HUGE * HUGE;
    if end > start {
        let offset = start - memory.start as usize;
        // SAFETY: the range lies within `lines`, which is exclusively borrowed; the advice changes no contents.
        let _ = unsafe {
            rustix::mm::madvise(
                memory.start.byte_add(offset).cast(),
                end - start,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: &mut [Line]) {}

impl Deref for Lines {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: a Line is exactly four Blocks without padding, and `len` of them exist.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: as in `deref`; every bit pattern is a Block.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_start_at_a_cache_line() {
        let mut lines = Lines::zeros(9);
        lines[8] = Block(1);
        assert_eq!((lines.len(), lines.as_ptr() as usize % 64), (9, 0));
        assert!(lines[8] == Block(1) && lines[0] == Block::ZERO);
    }
}
