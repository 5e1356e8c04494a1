//! `volvelle preprocess`: make lookups ahead and keep them.

use std::time::Instant;

use serde::Serialize;
use volvelle_lut::{Generator, Index, Lookups, Output, Shape, Store};
use volvelle_net::{Channel, Handshake, Phase, Traffic};
use volvelle_ot::{Ot, OtConfig, OtDemand};

use crate::args::IndexKind;
use crate::args::store::PreprocessArgs;
use crate::connections::{Background, Visit};
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::{Cost, bytes, count, print};
use crate::session::{converse, meet, terms};
use crate::store_key;

/// Bits of one-hot vectors made and stored at once; what an interruption loses. An agreement parameter.
const BATCH_BITS: u64 = 1 << 25;
/// Most lookups at once.
const MAX_BATCH: u64 = 1 << 16;

/// What has come of it.
#[derive(Debug, Serialize)]
struct Report {
    /// Lookups made now.
    made: u64,
    /// Unused lookups in the store.
    ready: u64,
    /// Size of the store's file.
    file_bytes: u64,
    setup: Cost,
    prep: Cost,
    wall_s: f64,
}

/// Runs the command.
///
/// # Errors
/// If the store or its key is no good, the disk is full, or the session fails. What was stored before stays.
pub fn run(args: &PreprocessArgs) -> Result<(), CliError> {
    args.entries.say_padding();
    let shape = shape(args);
    // Before there is a key or a store that is good for nothing.
    args.protocol.generator(&shape).check(shape.log_entries)?;
    let key = store_key::load_or_make(&args.store, args.json)?;
    // Fails only if a handler is there already.
    let _ = ctrlc::set_handler(|| {
        eprintln!(
            "\nerror: interrupted; what is stored is kept, the same command goes on from there"
        );
        std::process::exit(130);
    });
    let progress = Progress::new(args.count, args.json);
    progress.say("connecting");
    let terms = terms(&args.peer, args.ahead, handshake(args))?;
    let Visit {
        channel,
        background,
        ..
    } = meet(&args.endpoint, terms, args.json)?;
    let start = Instant::now();
    let mut report = converse(channel, |ch| {
        let path = &args.store.store;
        let mut store = Store::open_or_create(path, &key, ch, &shape)?;
        fill(ch, background, &mut store, args, &progress)
    })?;
    progress.finish();
    report.wall_s = start.elapsed().as_secs_f64();
    report.file_bytes = std::fs::metadata(&args.store.store).map_or(0, |file| file.len());
    if args.json {
        return print(&serde_json::to_string(&report)?);
    }
    print(&format!(
        "{} ready in {} ({}); {} made in {:.1} s, {} on the wire",
        count(report.ready as usize, "lookup", "lookups"),
        args.store.store.display(),
        bytes(report.file_bytes as f64),
        report.made,
        report.wall_s,
        bytes((report.setup.bits + report.prep.bits) / 8.0),
    ))
}

fn shape(args: &PreprocessArgs) -> Shape {
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    let xor = index == Index::Boolean || args.bits == 1;
    Shape {
        log_entries: args.entries.log(),
        index,
        output: if xor {
            Output::Xor
        } else {
            Output::word(args.bits)
        },
    }
}

/// What both parties must say alike.
fn handshake(args: &PreprocessArgs) -> Handshake {
    let shape = shape(args);
    Handshake::new()
        .parameter("task", "preprocess")
        .parameter("protocol", args.protocol.generator(&shape).name())
        .parameter("entries", args.entries)
        .parameter(
            "bits",
            if shape.output == Output::Xor {
                0
            } else {
                args.bits
            },
        )
        .parameter("index", shape.index)
        .parameter("count", args.count)
}

/// Makes what is missing.
fn fill(
    ch: &mut Channel,
    background: Option<Background>,
    store: &mut Store,
    args: &PreprocessArgs,
    progress: &Progress,
) -> Result<Report, CliError> {
    let generator = args.protocol.generator(store.shape());
    let at_once = (BATCH_BITS / u64::from(args.entries)).clamp(1, MAX_BATCH);
    let shape = store.shape().clone();
    let before = store.remaining();
    let missing = args.count.saturating_sub(before);
    let (mut ot, mut background) = (None, background);
    let mut connected = Traffic::default();
    while store.remaining() < args.count {
        progress.set(store.remaining(), "preprocessing");
        let ot = match &mut ot {
            Some(ot) => ot,
            None => {
                ch.set_phase(Phase::Setup);
                let mut made = Ot::setup(ch, OtConfig::default())?;
                if let Some(background) = background.take() {
                    let [client_sends, server_sends] = background.wait()?;
                    connected = client_sends.meter().total() + server_sends.meter().total();
                    let demand = demand(generator, &shape, missing, at_once);
                    made = made.make_ahead_for(client_sends, server_sends, demand);
                }
                ot.insert(made)
            }
        };
        ch.set_phase(Phase::Preprocessing);
        let batch = at_once.min(args.count - store.remaining()) as usize;
        store.append(Lookups::prepare(ch, ot, generator, &shape, batch)?)?;
    }
    let mut report = Report {
        made: store.remaining().saturating_sub(before),
        ready: store.remaining(),
        file_bytes: 0,
        setup: Cost::of(&ch.meter().phase(Phase::Setup)),
        prep: Cost::of(&ch.meter().phase(Phase::Preprocessing)),
        wall_s: 0.0,
    };
    if let Some(ot) = ot {
        report.setup.add_background(connected);
        report.prep.add_background(ot.background() - connected);
    }
    Ok(report)
}

/// OTs that making `missing` lookups takes, `at_once` of them in a batch.
fn demand(generator: Generator, shape: &Shape, missing: u64, at_once: u64) -> OtDemand {
    let of = |batch: u64| match batch {
        0 => OtDemand::default(),
        batch => OtDemand::of(&Lookups::cost(generator, shape, batch as usize).prep),
    };
    of(at_once).times(missing / at_once) + of(missing % at_once)
}
