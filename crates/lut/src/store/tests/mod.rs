//! Tests of stores, both parties, over ideal OTs.

use std::path::PathBuf;

use tempfile::TempDir;
use volvelle_net::testing::run_pair;
use volvelle_net::{Channel, Role};
use volvelle_ot::Ot;
use volvelle_ot::testing::ideal_pair;
use volvelle_prim::mask;

use super::*;
use crate::{Generator, Index, Output, Table};

mod agreement;
mod power;
mod refusals;
mod use_and_reuse;

const KINDS: [Index; 2] = [Index::Arithmetic, Index::Boolean];

fn shape(log_entries: u32, index: Index, output: Output) -> Shape {
    Shape {
        log_entries,
        index,
        output,
    }
}

fn key(role: Role) -> StoreKey {
    StoreKey::from_bytes(&[1 + u8::from(role == Role::Server); 32])
}

/// A folder with both parties' stores.
struct Stores {
    folder: TempDir,
    shape: Shape,
}

impl Stores {
    fn new(shape: &Shape) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            shape: shape.clone(),
        }
    }

    fn path(&self, role: Role) -> PathBuf {
        self.folder.path().join(role.to_string())
    }

    /// Runs both parties on a new connection, with new OTs.
    fn connect<A: Send, B: Send>(
        &self,
        client: impl FnOnce(&mut Party<'_>) -> A + Send,
        server: impl FnOnce(&mut Party<'_>) -> B + Send,
    ) -> (A, B) {
        let (client_ot, server_ot) = ideal_pair(7);
        let party = |ot, role| (self.path(role), self.shape.clone(), ot);
        let [(a, b, c), (d, e, f)] = [
            party(client_ot, Role::Client),
            party(server_ot, Role::Server),
        ];
        run_pair(
            |ch| {
                client(&mut Party {
                    ch,
                    path: a,
                    shape: b,
                    ot: c,
                })
            },
            |ch| {
                server(&mut Party {
                    ch,
                    path: d,
                    shape: e,
                    ot: f,
                })
            },
        )
    }

    /// Both parties do the same.
    fn both<A: Send>(&self, part: impl Fn(&mut Party<'_>) -> A + Sync) -> (A, A) {
        self.connect(&part, &part)
    }

    /// New stores with these batches.
    fn filled(shape: &Shape, batches: &[usize]) -> Self {
        let stores = Self::new(shape);
        stores.both(|party| {
            let mut store = party.create().unwrap();
            batches
                .iter()
                .for_each(|&batch| party.add(&mut store, batch));
        });
        stores
    }
}

/// A party on a connection.
struct Party<'a> {
    ch: &'a mut Channel,
    path: PathBuf,
    shape: Shape,
    ot: Ot,
}

impl Party<'_> {
    fn create(&mut self) -> Result<Store, LutError> {
        let key = key(self.ch.role());
        Store::create(&self.path, &key, self.ch, &self.shape)
    }

    fn open(&mut self) -> Result<Store, LutError> {
        let mut store = Store::open(&self.path, &key(self.ch.role()))?;
        store.reconcile(self.ch)?;
        Ok(store)
    }

    fn prepare(&mut self, batch: usize) -> Result<Lookups, LutError> {
        let (ch, ot) = (&mut *self.ch, &mut self.ot);
        Lookups::prepare(ch, ot, Generator::Doubling, &self.shape, batch)
    }

    fn add(&mut self, store: &mut Store, batch: usize) {
        store.append(self.prepare(batch).unwrap()).unwrap();
    }

    /// Takes some lookups and looks up.
    fn look_up(&mut self, store: &mut Store, count: usize) -> Outputs {
        let start = store.cursor();
        let lookups = store.take(count).unwrap();
        self.use_up(start, lookups).unwrap()
    }

    /// Looks up, each party with shares that depend on its role only.
    fn use_up(&mut self, start: u64, lookups: Lookups) -> Result<Outputs, LutError> {
        let k = self.shape.log_entries;
        let factor = if self.ch.role() == Role::Client { 3 } else { 7 };
        let index: Vec<u64> = (0..lookups.len() as u64)
            .map(|i| ((start + i) * factor) & mask(k))
            .collect();
        let tables = tables(&self.shape);
        let outputs = match self.shape.output {
            Output::Xor => lookups.lookup_xor(self.ch, &index, &tables),
            Output::Arithmetic { .. } => lookups.lookup(self.ch, &index, &tables),
        };
        Ok(Outputs {
            start,
            index,
            outputs: outputs?,
        })
    }
}

struct Outputs {
    start: u64,
    index: Vec<u64>,
    outputs: Vec<Vec<u64>>,
}

fn tables(shape: &Shape) -> Vec<Table> {
    let xor = [13];
    let widths = match &shape.output {
        Output::Xor => &xor[..],
        Output::Arithmetic { words } => words,
    };
    let table = |&bits| {
        Table::from_fn(shape.log_entries, bits, |i| {
            (i + 5).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    };
    widths.iter().map(|bits| table(bits).unwrap()).collect()
}

/// Checks every output against the tables.
fn check(shape: &Shape, (a, b): (Outputs, Outputs)) {
    assert_eq!((a.start, a.index.len()), (b.start, b.index.len()));
    for (t, table) in tables(shape).iter().enumerate() {
        for (i, (&x, &y)) in a.index.iter().zip(&b.index).enumerate() {
            let (p, q) = (a.outputs[t][i], b.outputs[t][i]);
            let got = match shape.output {
                Output::Xor => p ^ q,
                Output::Arithmetic { .. } => p.wrapping_add(q) & mask(table.bits()),
            };
            let at = shape.index.join(x, y, shape.log_entries) as usize;
            assert_eq!(got, table.entries()[at], "{shape:?} {} {i}", a.start);
        }
    }
}

fn store_error<T>(result: Result<T, LutError>) -> StoreError {
    match result {
        Ok(_) => panic!("no error"),
        Err(LutError::Store(error)) => error,
        Err(other) => panic!("another error: {other}"),
    }
}
