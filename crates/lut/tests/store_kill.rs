//! Two processes look things up from their stores over TCP; one of them is killed (SIGKILL) again and again, at random
//! moments: while it connects, makes correlations, stores them, takes them or uses them. Each party writes
//! down, outside of its store, what was handed out to it. Afterwards nothing may have been handed out twice, what both used
//! must have been the same, and every result right.
//!
//! `cargo test -p volvelle-lut --test store_kill` kills six times; with `-- --ignored two_hundred` 200 times.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use volvelle_lut::{Generator, Index, Lookups, LutError, Output, Shape, Store, StoreKey, Table};
use volvelle_net::{Channel, Config, Label, Listener, NetError, Role, Security, connect};
use volvelle_ot::testing::ideal_pair;
use volvelle_prim::Prg;

const CONTROL: Label = Label::new("test/control");
const REVEAL: Label = Label::new("test/reveal");
/// Tell the child processes who they are and where to work.
const ROLE: &str = "VOLVELLE_KILL_ROLE";
const FOLDER: &str = "VOLVELLE_KILL_FOLDER";

/// Lookups made at once, twice in a row, when fewer are left than the largest batch.
const MADE: usize = 3000;
const LARGEST: u64 = 250;
/// No party waits longer for anything.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn six_kills() {
    kill_again_and_again(6);
}

#[test]
#[ignore = "takes half a minute"]
fn two_hundred() {
    kill_again_and_again(200);
}

/// Not a test: what the child processes run.
#[test]
#[ignore = "started by the others"]
fn party() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else {
        return;
    };
    let role = match role.as_str() {
        "client" => Role::Client,
        _ => Role::Server,
    };
    let mut party = Party::new(role, folder.into());
    if let Err(error) = party.run() {
        party.note("ERROR", &error.to_string());
    }
}

// ---- the parties

struct Party {
    role: Role,
    folder: PathBuf,
    journal: File,
    store: Option<Store>,
    shape: Shape,
    table: Table,
}

impl Party {
    fn new(role: Role, folder: PathBuf) -> Self {
        let journal = OpenOptions::new()
            .append(true)
            .create(true)
            .open(journal_path(&folder, role));
        Self {
            role,
            folder,
            journal: journal.unwrap(),
            store: None,
            shape: Shape {
                log_entries: 4,
                index: Index::Arithmetic,
                output: Output::word(16),
            },
            table: Table::from_fn(4, 16, |i| (i + 1) * 3119).unwrap(),
        }
    }

    /// One line, in one piece.
    fn note(&mut self, what: &str, detail: &str) {
        let line = format!("{what} {detail}\n");
        self.journal.write_all(line.as_bytes()).unwrap();
    }

    /// Connects and works, again whenever the peer is gone.
    fn run(&mut self) -> Result<(), LutError> {
        // Not long: a client may have the address of a server that was killed.
        let config = Config::new().timeout(Duration::from_millis(400));
        let address = self.folder.join("address");
        let listener = (self.role == Role::Server).then(|| {
            let listener = Listener::bind("127.0.0.1:0").unwrap();
            let new = self.folder.join("address.new");
            std::fs::write(&new, listener.local_addr().to_string()).unwrap();
            std::fs::rename(new, &address).unwrap();
            listener
        });
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let channel = match &listener {
                Some(listener) => {
                    let patience = Some(Duration::from_secs(1));
                    listener.accept(Role::Server, &Security::Plain, &config, patience)
                }
                None => {
                    let address = std::fs::read_to_string(&address).unwrap_or_default();
                    connect(&address, Role::Client, &Security::Plain, &config)
                }
            };
            let worked = channel
                .map_err(LutError::from)
                .and_then(|mut ch| self.work(&mut ch));
            match worked {
                Ok(()) => return Ok(()),
                // Between one life of the peer and the next.
                Err(LutError::Net(_)) => sleep(Duration::from_millis(2)),
                Err(other) => return Err(other),
            }
        }
        self.note("ERROR", "no end in sight");
        Ok(())
    }

    /// One connection.
    fn work(&mut self, ch: &mut Channel) -> Result<(), LutError> {
        let path = self.folder.join(format!("{}.store", self.role));
        match &mut self.store {
            Some(store) => store.reconcile(ch)?,
            None => {
                let key = StoreKey::from_bytes(&[7; 32]);
                let mut store = Store::open_or_create(&path, &key, ch, &self.shape)?;
                // Some processes make one sync serve several batches.
                store.reserve(u64::from(std::process::id() % 2) * 400);
                self.store = Some(store);
            }
        }
        let seed = self.told(ch, || Prg::from_os().next_u64())?;
        let (client_ot, server_ot) = ideal_pair(seed);
        let mut ot = match self.role {
            Role::Client => client_ot,
            Role::Server => server_ot,
        };
        loop {
            let stop = self.folder.join("stop");
            if self.told(ch, || u64::from(stop.exists()))? == 1 {
                return Ok(());
            }
            if self.store.as_ref().is_none_or(|s| s.remaining() < LARGEST) {
                for _ in 0..2 {
                    let made =
                        Lookups::prepare(ch, &mut ot, Generator::Doubling, &self.shape, MADE)?;
                    self.store.as_mut().unwrap().append(made)?;
                }
            }
            self.look_up(ch)?;
        }
    }

    /// A number that the client decides on.
    fn told(&self, ch: &mut Channel, decide: impl FnOnce() -> u64) -> Result<u64, NetError> {
        let mut number = [0; 8];
        if self.role == Role::Client {
            number = decide().to_le_bytes();
            ch.send(CONTROL, &number)?;
            ch.flush()?;
        } else {
            ch.recv(CONTROL, &mut number)?;
        }
        Ok(u64::from_le_bytes(number))
    }

    fn look_up(&mut self, ch: &mut Channel) -> Result<(), LutError> {
        let store = self.store.as_mut().unwrap();
        let start = store.cursor();
        let count = 1 + (start.wrapping_mul(2_654_435_761) >> 7) % LARGEST;
        let lookups = store.take(count as usize)?;
        let range = format!("{start} {count}");
        self.note("took", &range);
        let mut index = vec![0; count as usize];
        Prg::from_os().fill_masked(&mut index, 4);
        let output = lookups.lookup(ch, &index, std::slice::from_ref(&self.table))?;
        let mine: Vec<u64> = index.iter().chain(&output[0]).copied().collect();
        let theirs = reveal(ch, &mine)?;
        let right = (0..count as usize).all(|i| {
            let at = (mine[i] + theirs[i]) % 16;
            let got = mine[count as usize + i] + theirs[count as usize + i];
            got % (1 << 16) == self.table.entries()[at as usize]
        });
        self.note(if right { "right" } else { "WRONG" }, &range);
        Ok(())
    }
}

fn reveal(ch: &mut Channel, words: &[u64]) -> Result<Vec<u64>, NetError> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    ch.send(REVEAL, &bytes)?;
    let mut theirs = vec![0; bytes.len()];
    ch.recv(REVEAL, &mut theirs)?;
    let words = theirs.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b));
    Ok(words.collect())
}

fn journal_path(folder: &Path, role: Role) -> PathBuf {
    folder.join(format!("{role}.journal"))
}

// ---- the one who kills

/// Both processes, ended when this is dropped.
struct Pair {
    folder: PathBuf,
    children: [Child; 2],
}

const ROLES: [Role; 2] = [Role::Client, Role::Server];

impl Pair {
    fn start(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            children: ROLES.map(|role| spawn(folder, role)),
        }
    }

    fn kill(&mut self, which: usize) {
        self.children[which].kill().unwrap();
        self.children[which].wait().unwrap();
        self.children[which] = spawn(&self.folder, ROLES[which]);
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        for child in &mut self.children {
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < deadline, "a party does not end");
                sleep(Duration::from_millis(5));
            }
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(folder: &Path, role: Role) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["party", "--exact", "--ignored"])
        .env(ROLE, role.to_string())
        .env(FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn kill_again_and_again(kills: usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut pair = Pair::start(folder.path());
    let mut random = Prg::from_os();
    let mut killed = [0; 2];
    for _ in 0..kills {
        // From a moment before the process has connected to hundreds of batches later.
        sleep(Duration::from_micros(random.next_u64() % 160_000));
        let which = (random.next_u64() % 2) as usize;
        pair.kill(which);
        killed[which] += 1;
    }
    let before = Journal::read(folder.path(), Role::Client).right.len();
    let deadline = Instant::now() + PATIENCE;
    while Journal::read(folder.path(), Role::Client).right.len() < before + 20 {
        assert!(Instant::now() < deadline, "work does not resume");
        sleep(Duration::from_millis(10));
    }
    std::fs::write(folder.path().join("stop"), "").unwrap();
    pair.wait();

    let [client, server] = ROLES.map(|role| Journal::read(folder.path(), role));
    for (own, peer) in [(&client, &server), (&server, &client)] {
        assert!(own.other.is_empty(), "{:?}", own.other);
        for pair in own.took.windows(2) {
            let [(start, count), (next, _)] = [pair[0], pair[1]];
            assert!(start + count <= next, "{start} {count} and {next} {own:?}");
        }
        for range in &own.right {
            assert!(own.took.contains(range), "{range:?}");
            assert!(peer.took.contains(range), "{range:?} only at one party");
        }
    }
    println!(
        "killed the client {} and the server {} times: {} batches taken, {} checked, {} correlations numbered",
        killed[0],
        killed[1],
        client.took.len() + server.took.len(),
        client.right.len() + server.right.len(),
        client.took.last().unwrap().0,
    );
}

/// What a party wrote down, in order.
#[derive(Debug, Default)]
struct Journal {
    took: Vec<(u64, u64)>,
    right: Vec<(u64, u64)>,
    other: Vec<String>,
}

impl Journal {
    fn read(folder: &Path, role: Role) -> Self {
        let text = std::fs::read_to_string(journal_path(folder, role)).unwrap_or_default();
        let mut journal = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |i: usize| words.get(i).and_then(|w| w.parse().ok()).unwrap_or(0);
            match words[0] {
                "took" => journal.took.push((number(1), number(2))),
                "right" => journal.right.push((number(1), number(2))),
                _ => journal.other.push(line.to_owned()),
            }
        }
        journal
    }
}
