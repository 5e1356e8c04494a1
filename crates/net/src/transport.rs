//! The seam between a channel and what carries its bytes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::queue::Stop;

/// Where bytes come from.
pub(crate) trait Incoming: Send {
    /// Bytes that are here and not consumed.
    fn available(&self) -> &[u8];

    /// Drops the first `count` available bytes.
    fn consume(&mut self, count: usize);

    /// Waits for at least one more byte. Called when none are available.
    fn fill(&mut self, patience: Duration) -> Result<(), Stop>;

    /// Waits for at least one byte and puts what comes straight into `out`. Called when none are available and
    /// `out` is large. Returns how many came.
    fn read(&mut self, out: &mut [u8], patience: Duration) -> Result<usize, Stop> {
        self.fill(patience)?;
        let count = self.available().len().min(out.len());
        out[..count].copy_from_slice(&self.available()[..count]);
        self.consume(count);
        Ok(count)
    }

    /// Before closing: reads and forgets what the peer still sends, until it closes too or `patience` is over.
    /// Closing a socket over unread bytes would reset the connection and could destroy our last words.
    fn linger(&mut self, _patience: Duration) {}
}

/// Where bytes go to.
pub(crate) trait Outgoing: Send {
    /// Writes everything, waiting for as long as it takes unless told to give up.
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Stop>;

    /// Takes everything but writes only what the transport takes without waiting; false if some is held back, which
    /// the next `write` then sends first.
    fn start(&mut self, bytes: &[u8], shared: &Shared) -> Result<bool, Stop> {
        self.write(bytes, shared).map(|()| true)
    }

    /// Tells the peer that nothing more will come.
    fn close(&mut self, shared: &Shared);
}

/// What a channel and its writer thread know of each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    waiting: AtomicBool,
    progress: AtomicU64,
    give_up: AtomicBool,
    hung_up: AtomicBool,
}

impl Shared {
    /// The channel waits for the peer (or no longer does).
    pub(crate) fn set_waiting(&self, waiting: bool) {
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Something other than a keep-alive came in.
    pub(crate) fn note_progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// This party waits for the peer no longer.
    pub(crate) fn hang_up(&self) {
        self.hung_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn hung_up(&self) -> bool {
        self.hung_up.load(Ordering::Relaxed)
    }

    /// Asks the writer thread to end without writing what is left.
    pub(crate) fn give_up(&self) {
        self.give_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn gave_up(&self) -> bool {
        self.give_up.load(Ordering::Relaxed)
    }
}
