//! Correlated OTs made ahead of demand, in the background.
//!
//! Each direction gets a thread and a channel of its own; the thread keeps a bounded queue of batches
//! full while the parties compute or wait for each other on the main channel. Nothing of a batch depends on
//! inputs, so the two ends may be at different places; order within a direction is what binds them.
//!
//! An error ends the direction and is given to whoever asks next. Dropping an end closes its queue; the
//! thread notices at its next batch and hangs up.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use volvelle_net::{Channel, NetError};
use volvelle_prim::Block;
use zeroize::Zeroizing;

use crate::OtError;
use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};

/// COTs a batch. Local tuning: both ends may differ.
const BATCH: usize = 8192;
/// Batches in the queue: 131 072 COTs, 2 MiB.
const AHEAD: usize = 16;

type Batch = Zeroizing<Vec<Block>>;

/// The consumer's side of a direction.
struct Ahead {
    batches: Receiver<Result<Batch, OtError>>,
    current: Batch,
    used: usize,
    supply: Arc<Mutex<Supply>>,
}

impl Ahead {
    fn new(source: impl CotSource + 'static, channel: Channel) -> Self {
        let (queue, batches) = sync_channel(AHEAD);
        let supply = Arc::new(Mutex::new(source.supply()));
        let shared = Arc::clone(&supply);
        thread::spawn(move || produce(source, channel, &queue, &shared));
        Self {
            batches,
            current: Batch::default(),
            used: 0,
            supply,
        }
    }

    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used == self.current.len() {
                // The peer may wait for what is still buffered before it draws, and its thread for that.
                ch.flush()?;
                // The thread says why before it ends; that it ended is all a second caller learns.
                self.current = self
                    .batches
                    .recv()
                    .map_err(|_| OtError::BackgroundEnded)??;
                self.used = 0;
            }
            out = hand_out(&self.current, &mut self.used, out);
        }
        Ok(())
    }

    /// The thread drops its source when it finds nobody to give a batch to.
    fn leave(&mut self) {
        self.batches = sync_channel(0).1;
    }

    fn supply(&self) -> Supply {
        *self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn produce(
    mut source: impl CotSource,
    mut channel: Channel,
    queue: &SyncSender<Result<Batch, OtError>>,
    supply: &Mutex<Supply>,
) {
    loop {
        let mut batch = Batch::new(vec![Block::ZERO; BATCH]);
        let made = source
            .extend(&mut channel, &mut batch)
            .and_then(|()| channel.flush().map_err(NetError::into));
        *supply.lock().unwrap_or_else(PoisonError::into_inner) = source.supply();
        let failed = made.is_err();
        if queue.send(made.map(|()| batch)).is_err() || failed {
            return;
        }
    }
}

/// Sender's end whose OTs are made ahead.
pub(crate) struct AheadSender {
    delta: Zeroizing<Block>,
    ahead: Ahead,
}

impl AheadSender {
    pub(crate) fn new(source: Box<dyn CotSender>, channel: Channel) -> Self {
        Self {
            delta: Zeroizing::new(source.delta()),
            ahead: Ahead::new(source, channel),
        }
    }
}

impl CotSender for AheadSender {
    fn delta(&self) -> Block {
        *self.delta
    }
}

impl CotSource for AheadSender {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        self.ahead.extend(ch, out)
    }

    fn supply(&self) -> Supply {
        self.ahead.supply()
    }

    fn leave(&mut self) {
        self.ahead.leave();
    }
}

/// Receiver's end whose OTs are made ahead.
pub(crate) struct AheadReceiver(Ahead);

impl AheadReceiver {
    pub(crate) fn new(source: Box<dyn CotReceiver>, channel: Channel) -> Self {
        Self(Ahead::new(source, channel))
    }
}

impl CotReceiver for AheadReceiver {}

impl CotSource for AheadReceiver {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        self.0.extend(ch, out)
    }

    fn supply(&self) -> Supply {
        self.0.supply()
    }

    fn leave(&mut self) {
        self.0.leave();
    }
}
