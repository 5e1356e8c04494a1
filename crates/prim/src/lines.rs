//! Memory aligned to cache lines, and where it is large in huge pages.
//!
//! Large memory is dearest when it is first touched: the system hands it out page by page, zeroed. A huge
//! page costs one such fault for 2 MiB, and random reads in it miss the TLB less. The system has to be asked
//! before the first touch, for whole pages; so this is allocated by hand. And what is dropped is kept, erased, for
//! the next that needs as much: a session's batches are mostly of one size.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use zeroize::{ZeroizeOnDrop, optimization_barrier};

use crate::Block;

/// Bytes of a cache line.
const LINE: usize = 64;
/// The usual size of a huge page.
const HUGE: usize = 2 << 20;
/// Memory of less would waste too much of one. A fault costs about the same for a page of either size, so 64 of
/// the small ones are already far dearer.
const WORTH_HUGE: usize = HUGE / 8;
/// Bytes of huge pages that are kept at most.
const KEPT: usize = 64 << 20;

mod sealed {
    use super::Block;

    /// Every bit pattern is a value, and none needs dropping.
    pub trait Plain: Copy + Send + Sync {}
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
        if layout.align() == HUGE
            && let Some(kept) = Kept::lock().take(layout)
        {
            let start = kept.cast::<T>();
            return Self { start, len };
        }
        // SAFETY: the layout has at least a cache line.
        let memory = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        if layout.align() == HUGE {
            ask_for_huge_pages(start, layout.size());
        }
        // All of it, so that it may later be kept for others.
        // SAFETY: so many bytes were just allocated.
        unsafe { start.write_bytes(0, layout.size()) };
        let start = start.cast::<T>();
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
        // SAFETY: all values are this one's own, and zero bytes are a value.
        unsafe { self.start.write_bytes(0, self.len) };
        optimization_barrier(&**self);
        let (start, layout) = (self.start.cast(), Self::layout(self.len));
        if layout.align() == HUGE && layout.size() <= KEPT {
            Kept::lock().give(start, layout);
        } else {
            // SAFETY: `zeros` allocated it with this layout.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

/// Erased memory of whole huge pages, the oldest first.
struct Kept {
    pieces: VecDeque<(NonNull<u8>, Layout)>,
    bytes: usize,
}

// SAFETY: the pieces are nobody else's, and bytes are Send.
unsafe impl Send for Kept {}

impl Kept {
    fn lock() -> MutexGuard<'static, Self> {
        static ALL: Mutex<Kept> = Mutex::new(Kept {
            pieces: VecDeque::new(),
            bytes: 0,
        });
        ALL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of exactly this layout, all zero, if there is one.
    fn take(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let place = self.pieces.iter().rposition(|(_, kept)| *kept == layout)?;
        let (start, _) = self.pieces.remove(place)?;
        self.bytes -= layout.size();
        Some(start)
    }

    /// Takes over memory of [`Lines`] that is all zero, and gives the oldest back to the system if that is too much.
    fn give(&mut self, start: NonNull<u8>, layout: Layout) {
        self.pieces.push_back((start, layout));
        self.bytes += layout.size();
        while self.bytes > KEPT
            && let Some((start, layout)) = self.pieces.pop_front()
        {
            self.bytes -= layout.size();
            // SAFETY: `Lines::zeros` allocated it with this layout, and nobody has it any more.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
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
    fn what_is_kept_is_erased() {
        // A size of no other test, twice, and once of another length within the same pages.
        let size = 7 * HUGE / 8;
        let mut first = Lines::<u64>::zeros(size - 1000);
        first.fill(u64::MAX);
        drop(first);
        for len in [size - 1000, size - 3, size] {
            let mut again = Lines::<u64>::zeros(len);
            assert!(again.iter().all(|&word| word == 0), "{len}");
            again.fill(u64::MAX);
        }
    }

    #[test]
    #[should_panic(expected = "more than can be addressed")]
    fn too_many_are_refused() {
        let _ = Lines::<Block>::zeros(usize::MAX / 8);
    }
}
