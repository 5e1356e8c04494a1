//! `volvelle bench lut --protocol grotto --dealer`: lookups that a third process, the dealer, has prepared.
//!
//! The dealer is this same program, started as `volvelle deal` and connected with both parties of every lane by TCP on loopback. It
//! ends when this process does. The model is weaker than that of all other benches, and what is printed says so.

use std::time::{Duration, Instant};

use volvelle_lut::{Dealt, Index, Output, Shape, Table, dealer};
use volvelle_net::{Channel, Config, Label, Listener, Phase, Role, Security, connect};
use volvelle_prim::{Block, Prg, mask};

use super::Case;
use super::lanes::{run_all, split};
use crate::args::plan::OutputKind;
use crate::args::{BenchLutArgs, DealArgs, IndexKind};
use crate::child::{Event, Family, end_with_parent};
use crate::error::CliError;
use crate::report::{PerItem, Setup, micros};
use crate::session;

/// From the client: all are connected, deal.
const GO: Label = Label::new("dealer/go");

/// What the dealer and the parties give each other, who may compute for long between two messages.
const TIMEOUT: Duration = Duration::from_secs(600);

/// How long the dealer waits for the parties.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// What is said of the model wherever figures are shown.
const MODEL: &str = "trusted dealer in a third process, weaker than two-party";

/// Seeds the entries of the table.
const TABLE_SEED: Block = Block(0x7461_626c_6520_7365_6564);

/// One party's end of one lane.
struct End {
    lane: usize,
    dealer: Channel,
    peer: Channel,
}

fn shape(args: &BenchLutArgs) -> Shape {
    let index = match args.index {
        IndexKind::Arithmetic => Index::Arithmetic,
        IndexKind::Boolean => Index::Boolean,
    };
    Shape {
        log_entries: args.entries.log(),
        index,
        output: match args.output() {
            OutputKind::Xor => Output::Xor,
            OutputKind::Additive => Output::word(args.bits),
        },
    }
}

fn config(args: &BenchLutArgs) -> Config {
    Config::new().timeout(TIMEOUT).link(args.bench.link)
}

/// Runs the bench.
///
/// # Errors
/// If the dealer cannot be started, a party fails or a result is wrong.
pub fn run(args: &BenchLutArgs) -> Result<(), CliError> {
    if args.remote.is_given() {
        return Err(CliError::Dealer(
            "the dealer's bench runs on one machine: leave out --listen and --connect",
        ));
    }
    // There are no oblivious transfers, so there is nothing to make ahead.
    let mut args = args.clone();
    args.bench.ahead = false;
    let (args, start) = (&args, Instant::now());
    let sizes = split(args.batch as usize, &args.bench)?;
    let folder = tempfile::Builder::new()
        .prefix("volvelle-dealer-")
        .tempdir();
    let family = Family::new(folder.map_err(CliError::Temporary)?);
    let ends = connect_all(args, &family)?;
    let setup = Setup {
        bits: 0.0,
        ms: start.elapsed().as_secs_f64() * 1e3,
    };
    let case = measure(args, &sizes, ends, setup)?;
    family.end();
    case.finish(args.bench.json)
}

/// Starts the dealer, and connects both parties of every lane with it and with each other.
fn connect_all(args: &BenchLutArgs, family: &Family) -> Result<Vec<End>, CliError> {
    let [entries, bits, batch, threads] = [
        args.entries.padded(),
        args.bits,
        args.batch,
        args.bench.threads,
    ]
    .map(|n| n.to_string());
    let (index, link) = (shape(args).index.to_string(), args.bench.link.to_string());
    let deal = [
        "deal",
        "--protocol",
        "grotto",
        "--entries",
        &entries,
        "--bits",
        &bits,
        "--index",
        &index,
        "--output",
        args.output().name(),
        "--batch",
        &batch,
        "--threads",
        &threads,
        "--link",
        &link,
    ];
    family.start("dealer", &deal)?;
    let address = loop {
        if let (_, Event::Listening { listening }) = family.next_event()? {
            break listening;
        }
    };
    let peers = session::local_channels(&args.bench)?;
    let ends = peers.into_iter().enumerate().map(|(number, peer)| {
        let dealer = connect(&address, peer.role(), &Security::Plain, &config(args))?;
        Ok(End {
            lane: number / 2,
            dealer,
            peer,
        })
    });
    ends.collect()
}

/// Both phases, and the results checked.
fn measure(
    args: &BenchLutArgs,
    sizes: &[usize],
    ends: Vec<End>,
    setup: Setup,
) -> Result<Case, CliError> {
    let (shape, xor) = (shape(args), shape(args).output == Output::Xor);
    let mut entries = vec![0; 1 << shape.log_entries];
    Prg::from_seed(TABLE_SEED).fill_masked(&mut entries, args.bits);
    let table = Table::new(args.bits, entries)?;
    let mut prg = Prg::from_os();
    let draw = |end: End| {
        let mut index = vec![0; sizes[end.lane]];
        prg.fill_masked(&mut index, shape.log_entries);
        (end, index)
    };
    let ends: Vec<_> = ends.into_iter().map(draw).collect();

    let start = Instant::now();
    let dealt = run_all(ends, |(mut end, index): (End, Vec<u64>)| {
        if end.dealer.role() == Role::Client {
            end.dealer.send(GO, &[])?;
        }
        let mut dealt = Dealt::receive(&mut end.dealer, &shape, index.len())?;
        dealt.expand();
        Ok((end, index, dealt, start.elapsed()))
    })?;
    let items = args.batch as usize;
    let received = dealt
        .iter()
        .map(|(end, ..)| end.dealer.meter().total().received);
    let prep = PerItem {
        bits: received.sum::<u64>() as f64 * 8.0 / items as f64,
        us: slowest(dealt.iter().map(|(.., took)| *took), items),
        rounds: 1,
    };

    let start = Instant::now();
    let done = run_all(dealt, |(mut end, index, dealt, _)| {
        let (ch, tables) = (&mut end.peer, std::slice::from_ref(&table));
        ch.set_phase(Phase::Online);
        let outputs = match shape.output {
            Output::Xor => dealt.lookup_xor(ch, &index, tables)?,
            Output::Arithmetic { .. } => dealt.lookup(ch, &index, tables)?,
        };
        Ok((end, index, outputs, start.elapsed()))
    })?;
    let traffic = done
        .iter()
        .map(|(end, ..)| end.peer.meter().phase(Phase::Online));
    let online = PerItem {
        bits: traffic.clone().map(|t| t.sent).sum::<u64>() as f64 * 8.0 / items as f64,
        us: slowest(done.iter().map(|(.., took)| *took), items),
        rounds: traffic.map(|t| t.rounds).max().unwrap_or(0),
    };

    let mut case = Case {
        case: parameters(args, &shape),
        total: prep.then(&online),
        prep,
        online,
        setup,
        cold_ms: None,
        store: None,
        first_us: None,
        checked: 0,
        wrong: 0,
        threads: args.bench.threads,
        peak_mib: 0.0,
    };
    case.connected(&args.bench, None);
    for lane in done.chunks_exact(2) {
        let [(_, x, a, _), (_, y, b, _)] = lane else {
            continue;
        };
        let right = |&i: &usize| {
            let at = shape.index.join(x[i], y[i], shape.log_entries);
            let found = match xor {
                true => a[0][i] ^ b[0][i],
                false => a[0][i].wrapping_add(b[0][i]) & mask(args.bits),
            };
            found == table.entries()[at as usize]
        };
        let wrong = x.len() - (0..x.len()).filter(right).count();
        case.check(x.len(), wrong);
    }
    Ok(case)
}

fn parameters(args: &BenchLutArgs, shape: &Shape) -> super::Parameters {
    vec![
        ("bench", "lut".into()),
        ("protocol", "grotto".into()),
        ("model", MODEL.into()),
        ("entries", args.entries.padded().into()),
        ("bits", args.bits.into()),
        ("index", shape.index.to_string().into()),
        ("output", args.output().name().into()),
        ("batch", args.batch.into()),
        ("engine", "none".into()),
    ]
}

fn slowest(times: impl Iterator<Item = Duration>, items: usize) -> f64 {
    micros(times.max().unwrap_or_default()) / items as f64
}

/// The dealer's process, `volvelle deal`.
///
/// # Errors
/// If a party does not connect, or is gone before it has been dealt to.
pub fn deal(args: &DealArgs) -> Result<(), CliError> {
    if args.child.child {
        end_with_parent();
    }
    let (args, listener) = (&args.lut, Listener::bind("127.0.0.1:0")?);
    Event::Listening {
        listening: listener.local_addr().to_string(),
    }
    .print()?;
    let (sizes, config) = (split(args.batch as usize, &args.bench)?, config(args));
    // Towards the client the dealer has the server's role, and the other way round.
    let accept =
        |role: Role| listener.accept(role, &Security::Plain, &config, Some(CONNECT_TIMEOUT));
    let lanes = sizes.into_iter().map(|size| {
        let client = accept(Role::Server)?;
        Ok((client, accept(Role::Client)?, size))
    });
    let lanes = lanes.collect::<Result<Vec<_>, CliError>>()?;
    let shape = shape(args);
    run_all(
        lanes,
        |(mut client, mut server, size): (Channel, Channel, usize)| {
            client.recv(GO, &mut [])?;
            Ok(dealer::deal(&mut client, &mut server, &shape, size)?)
        },
    )?;
    Ok(())
}
