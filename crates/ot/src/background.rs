//! Correlated OTs made ahead of demand, in the background.
//!
//! Each direction gets a thread and a channel of its own; the thread keeps a bounded queue of batches
//! full while the parties compute or wait for each other on the main channel. Nothing of a batch depends on
//! inputs, so the two ends may be at different places; order within a direction is what binds them.
//!
//! A thread works on credit: what the session is known to need, and after that what is asked for. Both parties
//! give the same credit, so their threads make the same OTs and send the same bits, and none that nobody uses.
//!
//! An error ends the direction and is given to whoever asks next. Dropping an end closes its queue and hangs up, so
//! that the thread ends too, whatever it waits for.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use volvelle_net::{Channel, HangUp, NetError, Traffic};
use volvelle_prim::Block;
use zeroize::Zeroizing;

use crate::OtError;
use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};

/// COTs a batch. Local tuning: both ends may differ.
const BATCH: u64 = 8192;
/// Batches in the queue: 131 072 COTs, 2 MiB.
const AHEAD: usize = 16;

type Batch = Zeroizing<Vec<Block>>;

/// The consumer's side of a direction.
struct Ahead {
    batches: Receiver<Result<Batch, OtError>>,
    current: Batch,
    used: usize,
    credits: Sender<u64>,
    /// COTs that the thread may have made in all.
    granted: u64,
    /// COTs asked for in all.
    asked: u64,
    progress: Arc<Mutex<Progress>>,
    wire: HangUp,
}

/// What a thread has done. It is brought up to date before a batch is handed over, so that whoever has got a batch sees
/// what it has cost.
#[derive(Clone, Copy)]
struct Progress {
    supply: Supply,
    traffic: Traffic,
}

impl Ahead {
    /// Makes `demand` COTs ahead, as far as the queue holds them.
    fn new(source: impl CotSource + 'static, channel: Channel, demand: u64) -> Self {
        let (queue, batches) = sync_channel(AHEAD);
        let (credits, granted) = self::channel();
        let progress = Arc::new(Mutex::new(Progress::of(&source, &channel)));
        let shared = Arc::clone(&progress);
        let wire = channel.hang_up();
        thread::spawn(move || produce(source, channel, &granted, &queue, &shared));
        let mut ahead = Self {
            batches,
            current: Batch::default(),
            used: 0,
            credits,
            granted: 0,
            asked: 0,
            progress,
            wire,
        };
        ahead.grant(demand);
        ahead
    }

    /// Lets the thread make so many in all.
    fn grant(&mut self, total: u64) {
        if total > self.granted {
            // A thread that has ended says why with its last batch.
            let _ = self.credits.send(total - self.granted);
            self.granted = total;
        }
    }

    fn extend(&mut self, ch: &mut Channel, mut out: &mut [Block]) -> Result<(), OtError> {
        self.asked = self.asked.saturating_add(out.len() as u64);
        self.grant(self.asked);
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

    /// The thread finds its wire hung up, or nobody to give a batch to, and drops its source.
    fn leave(&mut self) {
        self.wire.now();
        self.credits = self::channel().0;
        self.batches = sync_channel(0).1;
    }

    fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.wire.now();
    }
}

impl Progress {
    fn of(source: &impl CotSource, channel: &Channel) -> Self {
        Self {
            supply: source.supply(),
            traffic: channel.meter().total(),
        }
    }
}

fn produce(
    mut source: impl CotSource,
    mut channel: Channel,
    credits: &Receiver<u64>,
    queue: &SyncSender<Result<Batch, OtError>>,
    progress: &Mutex<Progress>,
) {
    let mut left = 0;
    loop {
        while left == 0 {
            match credits.recv() {
                Ok(more) => left = more,
                Err(_) => return,
            }
        }
        let mut batch = Batch::new(vec![Block::ZERO; left.min(BATCH) as usize]);
        left -= batch.len() as u64;
        let made = source
            .extend(&mut channel, &mut batch)
            .and_then(|()| channel.flush().map_err(NetError::into));
        *progress.lock().unwrap_or_else(PoisonError::into_inner) = Progress::of(&source, &channel);
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
    pub(crate) fn new(source: Box<dyn CotSender>, channel: Channel, demand: u64) -> Self {
        Self {
            delta: Zeroizing::new(source.delta()),
            ahead: Ahead::new(source, channel, demand),
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
        self.ahead.progress().supply
    }

    fn background(&self) -> Option<Traffic> {
        Some(self.ahead.progress().traffic)
    }

    fn leave(&mut self) {
        self.ahead.leave();
    }
}

/// Receiver's end whose OTs are made ahead.
pub(crate) struct AheadReceiver(Ahead);

impl AheadReceiver {
    pub(crate) fn new(source: Box<dyn CotReceiver>, channel: Channel, demand: u64) -> Self {
        Self(Ahead::new(source, channel, demand))
    }
}

impl CotReceiver for AheadReceiver {}

impl CotSource for AheadReceiver {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        self.0.extend(ch, out)
    }

    fn supply(&self) -> Supply {
        self.0.progress().supply
    }

    fn background(&self) -> Option<Traffic> {
        Some(self.0.progress().traffic)
    }

    fn leave(&mut self) {
        self.0.leave();
    }
}
