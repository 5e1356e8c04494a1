//! Memory aligned to cache lines, and where it is large in huge pages.
//!
//! Large memory is dearest when it is first touched: the system hands it out page by page, zeroed. A huge
//! page costs one such fault for 2 MiB, and random reads in it miss the TLB less. The system has to be asked
//! before the first touch, for whole pages; so this is allocated by hand.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::Block;

/// Bytes of a cache line.
const LINE: usize = 64;
/// The usual size of a huge page.
const HUGE: usize = 2 << 20;
/// Memory of less would waste too much of one. A fault costs about the same for a page of either size, so 64 of
/// the small ones are already far dearer.
const WORTH_HUGE: usize = HUGE / 8;

mod sealed {
    use super::{Block, Zeroize};

    /// Every bit pattern is a value, and none needs dropping.
    pub trait Plain: Copy + Send + Sync + Zeroize {}
    impl Plain for u32 {}
    impl Plain for u64 {}
    impl Plain for Block {}
}
use sealed::Plain;

/// A fixed number of blocks or words, the first at the start of a cache line (so that four blocks
/// from a multiple of four on are one line). Zeroised when dropped.
pub struct Lines<T: Plain = Block> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: they own their memory, as a Vec does, and its values are Send.
unsafe impl<T: Plain> Send for Lines<T> {}
// SAFETY: shared references give shared slices only, of values that are Sync.
unsafe impl<T: Plain> Sync for Lines<T> {}

impl<T: Plain> Lines<T> {
    /// `len` zeros.
    ///
    /// # Panics
    /// If that is more than can be addressed; if there is not so much memory the process ends, as with vectors.
    #[must_use]
    pub fn zeros(len: usize) -> Self {
        let layout = Self::layout(len);
        // SAFETY: the layout has at least a cache line.
        let memory = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        if layout.align() == HUGE {
            ask_for_huge_pages(start, layout.size());
        }
        let start = start.cast::<T>();
        // SAFETY: room for as many values was just allocated.
        unsafe { start.write_bytes(0, len) };
        Self { start, len }
    }

    /// What is allocated: whole lines, or whole huge pages.
    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<T>());
        let layout = bytes.and_then(|bytes| {
            let unit = if bytes < WORTH_HUGE { LINE } else { HUGE };
            let size = bytes.max(1).checked_next_multiple_of(unit)?;
            Layout::from_size_align(size, unit).ok()
        });
        layout.unwrap_or_else(|| panic!("{len} values are more than can be addressed"))
    }
}

/// Asks the system to back memory with huge pages. It may refuse.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(start: NonNull<u8>, size: usize) {
    let advice = rustix::mm::Advice::LinuxHugepage;
    // SAFETY: the range is one allocation, not yet in use; the advice changes no contents.
    let _ = unsafe { rustix::mm::madvise(start.as_ptr().cast(), size, advice) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_: NonNull<u8>, _: usize) {}

impl<T: Plain> Drop for Lines<T> {
    fn drop(&mut self) {
        self.iter_mut().zeroize();
        // SAFETY: `zeros` allocated it with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.len)) };
    }
}

impl<T: Plain> ZeroizeOnDrop for Lines<T> {}

impl<T: Plain> Deref for Lines<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values were allocated and set to zero, which is a value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Lines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; the exclusive reference to `self` is one to its memory.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_start_at_a_cache_line() {
        for len in [0, 1, 9, HUGE / 32, HUGE / 16 - 1, HUGE / 16, HUGE / 16 + 3] {
            let mut lines = Lines::zeros(len);
            assert_eq!((lines.len(), lines.as_ptr() as usize % LINE), (len, 0));
            assert!(lines.iter().all(|&block| block == Block::ZERO));
            if let Some(last) = lines.last_mut() {
                *last = Block(1);
            }
            assert!(lines.iter().filter(|&&block| block == Block(1)).count() == len.min(1));
        }
    }

    #[test]
    fn large_ones_are_whole_huge_pages() {
        let words = Lines::<u64>::zeros(HUGE / 8 + 1);
        assert_eq!(words.as_ptr() as usize % HUGE, 0);
        assert_eq!(Lines::<u64>::layout(words.len()).size(), 2 * HUGE);
    }

    #[test]
    #[should_panic(expected = "more than can be addressed")]
    fn too_many_are_refused() {
        let _ = Lines::<Block>::zeros(usize::MAX / 8);
    }
}
