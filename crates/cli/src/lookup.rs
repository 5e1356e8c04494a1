//! `volvelle lookup`: use lookups that were made ahead.

use serde::Serialize;
use sha2::{Digest, Sha256};
use volvelle_lut::{Lookups, LutError, Output, Shape, Store, StoreError, Table};
use volvelle_net::{Channel, Handshake, Label, Phase};
use volvelle_prim::{mask, pack};

use crate::args::Ahead;
use crate::args::store::LookupArgs;
use crate::connections::Visit;
use crate::error::CliError;
use crate::numbers;
use crate::report::{Cost, print};
use crate::session::{converse, meet, terms};
use crate::store_key;

const OPEN: Label = Label::new("cli/open-outputs");
/// Lookups at once. An agreement parameter.
const BATCH: usize = 1 << 17;
/// Bits of one-hot vectors at once, for large tables: their lookups are fewer. An agreement parameter.
const BATCH_BITS: usize = 1 << 30;

/// What has come of it.
#[derive(Debug, Serialize)]
struct Report {
    /// This party's shares, or with `--open` the entries.
    outputs: Vec<u64>,
    /// Whether they were opened.
    opened: bool,
    /// Unused lookups left in the store.
    ready: u64,
    online: Cost,
}

/// Runs the command.
///
/// # Errors
/// If a file is no good, the store has too few lookups (none is used then), or the session fails.
pub fn run(args: &LookupArgs) -> Result<(), CliError> {
    let key = store_key::load(&args.store)?;
    let mut store = Store::open(&args.store.store, &key)?;
    let table = read_table(args, store.shape())?;
    let index = numbers::read(&args.index, mask(store.shape().log_entries))?;
    enough(&store, index.len())?;
    let handshake = handshake(args, &table, index.len());
    // What is looked up was made ahead: there is nothing left to make.
    let terms = terms(&args.peer, Ahead::Off, handshake)?;
    let Visit { channel, .. } = meet(&args.endpoint, terms, args.json)?;
    let report = converse(channel, |ch| {
        store.reconcile(ch)?;
        enough(&store, index.len())?;
        ch.set_phase(Phase::Online);
        let mut outputs = Vec::with_capacity(index.len());
        let at_once = (BATCH_BITS >> store.shape().log_entries).min(BATCH);
        for index in index.chunks(at_once) {
            let lookups = store.take(index.len())?;
            outputs.extend(look_up(ch, lookups, index, &table, store.shape())?);
        }
        if args.open {
            open_outputs(ch, &mut outputs, table.bits(), store.shape())?;
        }
        Ok(Report {
            outputs,
            opened: args.open,
            ready: store.remaining(),
            online: Cost::of(&ch.meter().phase(Phase::Online)),
        })
    })?;
    if args.json {
        return print(&serde_json::to_string(&report)?);
    }
    let lines: Vec<String> = report.outputs.iter().map(u64::to_string).collect();
    print(&lines.join("\n"))
}

/// The table, filled up to the store's number of entries.
fn read_table(args: &LookupArgs, shape: &Shape) -> Result<Table, CliError> {
    let bits = match &shape.output {
        Output::Xor => None,
        Output::Arithmetic { words } if words.len() == 1 => words.first().copied(),
        Output::Arithmetic { words } => return Err(CliError::Tables(words.len())),
    };
    let mut entries = numbers::read(&args.table, mask(bits.unwrap_or(64)))?;
    let (got, expected) = (entries.len(), 1usize << shape.log_entries);
    if got > expected {
        return Err(CliError::TableLength { got, expected });
    }
    if got < expected {
        eprintln!("the table has {got} entries, filled up with zeros to the store's {expected}");
        entries.resize(expected, 0);
    }
    let widest = entries.iter().map(|e| 64 - e.leading_zeros()).max();
    let bits = bits.unwrap_or(widest.unwrap_or(1).max(1));
    Ok(Table::new(bits, entries)?)
}

/// Refuses, before anything is used up, what the store cannot serve.
fn enough(store: &Store, asked: usize) -> Result<(), LutError> {
    let (asked, left) = (asked as u64, store.remaining());
    if asked > left {
        return Err(StoreError::Exhausted { asked, left }.into());
    }
    Ok(())
}

/// What both parties must say alike.
fn handshake(args: &LookupArgs, table: &Table, lookups: usize) -> Handshake {
    let mut hash = Sha256::new_with_prefix(table.bits().to_le_bytes());
    for entry in table.entries() {
        hash.update(entry.to_le_bytes());
    }
    let digest: String = hash
        .finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Handshake::new()
        .parameter("task", "lookup")
        .parameter("table's SHA-256", digest)
        .parameter("lookups", lookups)
        .parameter("open", args.open)
}

fn look_up(
    ch: &mut Channel,
    lookups: Lookups,
    index: &[u64],
    table: &Table,
    shape: &Shape,
) -> Result<Vec<u64>, LutError> {
    let tables = std::slice::from_ref(table);
    let outputs = match shape.output {
        Output::Xor => lookups.lookup_xor(ch, index, tables),
        Output::Arithmetic { .. } => lookups.lookup(ch, index, tables),
    };
    Ok(outputs?.into_iter().next().unwrap_or_default())
}

/// Puts both parties' shares together: public from here on.
fn open_outputs(
    ch: &mut Channel,
    outputs: &mut [u64],
    bits: u32,
    shape: &Shape,
) -> Result<(), CliError> {
    let mut theirs = vec![0; BATCH.min(outputs.len())];
    for outputs in outputs.chunks_mut(BATCH) {
        let mut frame = pack::pack(outputs, bits);
        ch.send(OPEN, &frame)?;
        ch.recv(OPEN, &mut frame)?;
        let theirs = &mut theirs[..outputs.len()];
        pack::unpack_into(&frame, bits, theirs);
        for (own, &their) in outputs.iter_mut().zip(&*theirs) {
            *own = match shape.output {
                Output::Xor => *own ^ their,
                Output::Arithmetic { .. } => own.wrapping_add(their) & mask(bits),
            };
        }
    }
    Ok(())
}
