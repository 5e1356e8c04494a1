//! Blocks aligned to cache lines, and large memory to huge pages.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use zeroize::Zeroize;

use crate::Block;

const LINE: usize = 64;
/// The usual size of a huge page; smaller memory would only waste one.
const HUGE: usize = 2 << 20;

/// A fixed number of blocks, the first at the start of a cache line, so that four blocks from a multiple
/// of four on are one line. Zeroised when dropped.
///
/// From 2 MiB on they are on huge pages if the system grants them: random reads then miss the TLB less. It must be asked
/// before the memory is touched, which is why this is not a vector.
pub struct Lines {
    blocks: NonNull<Block>,
    len: usize,
}

// SAFETY: the blocks are owned, as a vector's are.
unsafe impl Send for Lines {}
// SAFETY: likewise.
unsafe impl Sync for Lines {}

impl Lines {
    /// `len` zero blocks.
    ///
    /// # Panics
    /// If that is more than can be addressed; if there is not so much memory the process ends, as with vectors.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        let layout = layout(len);
        if layout.size() == 0 {
            return Self {
                blocks: NonNull::dangling(),
                len,
            };
        }
        // SAFETY: the layout's size is not 0.
        let memory = unsafe { alloc(layout) };
        let Some(blocks) = NonNull::new(memory.cast::<Block>()) else {
            handle_alloc_error(layout)
        };
        ask_for_huge_pages(blocks, layout);
        // SAFETY: `len` blocks fit into the allocation, and all-zero bytes are blocks.
        unsafe { blocks.write_bytes(0, len) };
        Self { blocks, len }
    }
}

fn layout(len: usize) -> Layout {
    let bytes = size_of::<Block>().checked_mul(len);
    let align = if bytes >= Some(HUGE) { HUGE } else { LINE };
    bytes
        .and_then(|bytes| Layout::from_size_align(bytes, align).ok())
        .unwrap_or_else(|| panic!("{len} blocks are more than can be addressed"))
}

/// Asks the system to back large memory with huge pages. It may refuse.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(blocks: NonNull<Block>, layout: Layout) {
    let whole = layout.size() / HUGE * HUGE;
    if whole > 0 {
        // SAFETY: the range lies within an allocation of this layout; the advice changes no contents.
        let _ = unsafe {
            rustix::mm::madvise(
                blocks.as_ptr().cast(),
                whole,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<Block>, _: Layout) {}

impl Drop for Lines {
    fn drop(&mut self) {
        self.iter_mut().zeroize();
        let layout = layout(self.len);
        if layout.size() > 0 {
            // SAFETY: allocated in `zeros` with the layout of the same length.
            unsafe { dealloc(self.blocks.as_ptr().cast(), layout) };
        }
    }
}

impl Deref for Lines {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        // SAFETY: `len` blocks are there, initialised, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr(), self.len) }
    }
}

impl DerefMut for Lines {
    fn deref_mut(&mut self) -> &mut [Block] {
        // SAFETY: likewise, exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_start_at_a_cache_line() {
        for len in [0, 1, 9, HUGE / 16 - 1, HUGE / 16, HUGE / 16 + 3] {
            let mut lines = Lines::zeros(len);
            assert_eq!((lines.len(), lines.as_ptr() as usize % 16), (len, 0));
            assert!(len == 0 || (lines.as_ptr() as usize).is_multiple_of(LINE));
            assert!(lines.iter().all(|&block| block == Block::ZERO));
            if let Some(last) = lines.last_mut() {
                *last = Block(1);
            }
            assert!(lines.iter().filter(|&&block| block == Block(1)).count() == len.min(1));
        }
    }

    #[test]
    #[should_panic(expected = "more than can be addressed")]
    fn too_many_are_refused() {
        let _ = Lines::zeros(usize::MAX / 8);
    }
}
