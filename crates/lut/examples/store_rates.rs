//! How fast lookups go to a store and come back: `cargo run --release -p volvelle-lut --example store_rates [-- COUNT]`.
//!
//! A million one-hot correlations of 256 entries, with XOR-shared outputs and with additive ones of 64 bits, in one file a
//! party in the temporary folder. Writing ends with the sync that makes them last; reading begins with opening the file
//! in which they are. What comes back is used for lookups, every one of which is checked.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use volvelle_lut::{Generator, Index, Lookups, LutError, Output, Shape, Store, StoreKey, Table};
use volvelle_net::{Channel, Role, memory_pair};
use volvelle_ot::{Ot, OtConfig};
use volvelle_prim::{Prg, mask};

/// Correlations taken at once.
const BATCH: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let count = match std::env::args().nth(1) {
        Some(count) => count.parse::<usize>()?.div_ceil(BATCH).max(1) * BATCH,
        None => 1_000_000,
    };
    println!(
        "{count} one-hot correlations of 256 entries, two parties side by side, rates of one party\n"
    );
    println!(
        "| outputs | file, MB | written, 1/s | read, 1/s | takes of 1000: each, µs | with 100 000 reserved: each, µs |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, output) in [("XOR", Output::Xor), ("64 bits", Output::word(64))] {
        let shape = Shape {
            log_entries: 8,
            index: Index::Arithmetic,
            output,
        };
        let folder = tempfile::tempdir()?;
        let (client, server) = memory_pair();
        let party = |channel: Channel| {
            let path = folder.path().join(channel.role().to_string());
            measure(channel, &path, &shape, count)
        };
        let (client, server) = std::thread::scope(|scope| {
            let server = scope.spawn(|| party(server));
            (party(client), server.join())
        });
        let (client, _) = (client?, server.map_err(|_| "the server panicked")??);
        let rate = |time: Duration| count as f64 / time.as_secs_f64();
        println!(
            "| {name} | {:.1} | {:.0} | {:.0} | {:.0} | {:.0} |",
            client.bytes as f64 / 1e6,
            rate(client.written),
            rate(client.read),
            client.take.as_secs_f64() * 1e6,
            client.reserved_take.as_secs_f64() * 1e6,
        );
    }
    Ok(())
}

struct Figures {
    bytes: u64,
    written: Duration,
    read: Duration,
    take: Duration,
    reserved_take: Duration,
}

fn measure(
    mut channel: Channel,
    path: &Path,
    shape: &Shape,
    count: usize,
) -> Result<Figures, LutError> {
    let ch = &mut channel;
    let additive = shape.output != Output::Xor;
    let key = StoreKey::from_bytes(&[3; 32]);
    let mut ot = Ot::setup(ch, OtConfig::default())?;
    let mut store = Store::create(path, &key, ch, shape)?;
    let mut written = Duration::ZERO;
    for _ in 0..count / BATCH {
        let lookups = Lookups::prepare(ch, &mut ot, Generator::Doubling, shape, BATCH)?;
        in_turn(ch)?;
        let start = Instant::now();
        store.append(lookups)?;
        written += start.elapsed();
        hand_over(ch)?;
    }
    drop(store);

    let bytes = std::fs::metadata(path).map_or(0, |m| m.len());
    in_turn(ch)?;
    let start = Instant::now();
    let mut store = Store::open(path, &key)?;
    let mut read = start.elapsed();
    hand_over(ch)?;
    store.reconcile(ch)?;
    // The last batch is for the small takes.
    for _ in 1..count / BATCH {
        in_turn(ch)?;
        let start = Instant::now();
        let lookups = store.take(BATCH)?;
        read += start.elapsed();
        hand_over(ch)?;
        use_up(ch, lookups, additive)?;
    }
    read = read.mul_f64(count as f64 / (count - BATCH).max(1) as f64);
    let take = takes(ch, &mut store)?;
    store.reserve(BATCH as u64);
    let reserved_take = takes(ch, &mut store)?;
    Ok(Figures {
        bytes,
        written,
        read,
        take,
        reserved_take,
    })
}

/// Fifty takes of a thousand.
fn takes(ch: &mut Channel, store: &mut Store) -> Result<Duration, LutError> {
    let additive = store.shape().output != Output::Xor;
    let mut took = Duration::ZERO;
    for _ in 0..50 {
        in_turn(ch)?;
        let start = Instant::now();
        let lookups = store.take(1000)?;
        took += start.elapsed();
        hand_over(ch)?;
        use_up(ch, lookups, additive)?;
    }
    Ok(took / 50)
}

const TURN: volvelle_net::Label = volvelle_net::Label::new("example/turn");

/// The client first, then the server, so that one does not measure the other.
fn in_turn(ch: &mut Channel) -> Result<(), LutError> {
    if ch.role() == Role::Server {
        ch.recv(TURN, &mut [])?;
    }
    Ok(())
}

fn hand_over(ch: &mut Channel) -> Result<(), LutError> {
    ch.send(TURN, &[])?;
    if ch.role() == Role::Client {
        ch.recv(TURN, &mut [])?;
    }
    ch.flush()?;
    Ok(())
}

/// Looks up, opens, and checks.
fn use_up(ch: &mut Channel, lookups: Lookups, additive: bool) -> Result<(), LutError> {
    let table = Table::from_fn(8, 64, |i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))?;
    let mut index = vec![0; lookups.len()];
    Prg::from_os().fill_masked(&mut index, 8);
    let tables = std::slice::from_ref(&table);
    let outputs = if additive {
        lookups.lookup(ch, &index, tables)?
    } else {
        lookups.lookup_xor(ch, &index, tables)?
    };
    let (their_index, their_outputs) = (reveal(ch, &index)?, reveal(ch, &outputs[0])?);
    for i in 0..index.len() {
        let at = (index[i] + their_index[i]) & mask(8);
        let (a, b) = (outputs[0][i], their_outputs[i]);
        let got = if additive { a.wrapping_add(b) } else { a ^ b };
        assert_eq!(got, table.entries()[at as usize], "lookup {i}");
    }
    Ok(())
}

fn reveal(ch: &mut Channel, words: &[u64]) -> Result<Vec<u64>, LutError> {
    const REVEAL: volvelle_net::Label = volvelle_net::Label::new("example/reveal");
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    ch.send(REVEAL, &bytes)?;
    let mut theirs = vec![0; bytes.len()];
    ch.recv(REVEAL, &mut theirs)?;
    let words = theirs.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
    Ok(words.collect())
}
