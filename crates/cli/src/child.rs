//! The processes `volvelle demo` starts, and what they tell it.
//!
//! A child writes one JSON object a line to standard output ([`Event`]) and at most one line, an error, to
//! standard error. It ends when its standard input does, so that none outlives the demo, however that ends.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::error::CliError;
use crate::report::{SessionReport, print};

/// What is kept of a child's standard error.
const MAX_STDERR: u64 = 4096;
/// Longest line read from a child.
const MAX_LINE: u64 = 16 << 20;
/// When one party fails the other does too: how long to wait for the one that knows more.
const GRACE: Duration = Duration::from_millis(700);
/// How often an ending child is looked at.
const POLL: Duration = Duration::from_millis(10);

/// A line of a child's standard output.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Event {
    /// The server waits for clients.
    Listening {
        /// Its address, with the port it was given.
        listening: String,
    },
    /// Some images are done.
    Progress {
        /// How many.
        done: u64,
        /// What is being done now.
        phase: String,
    },
    /// A session has ended well.
    Report(Box<SessionReport>),
}

impl Event {
    /// Writes the line.
    ///
    /// # Errors
    /// If standard output is closed.
    pub fn print(&self) -> Result<(), CliError> {
        print(&serde_json::to_string(self)?)
    }
}

/// Ends this process when its standard input does: the demo that started it is gone.
pub fn end_with_parent() {
    thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        std::process::exit(1);
    });
}

/// From a child's reader thread.
enum Message {
    Event(Event),
    Ended { status: ExitStatus, stderr: String },
    Unreadable(String),
}

/// What must be cleaned up whichever way the demo ends.
struct Estate {
    children: Mutex<Vec<Child>>,
    folder: Mutex<Option<TempDir>>,
    interrupted: AtomicBool,
}

impl Estate {
    fn clear(&self) {
        for child in self
            .children
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter_mut()
        {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.remove_folder();
    }

    /// Dropping it removes it, the keys in it too.
    fn remove_folder(&self) {
        self.folder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

/// The demo's child processes and its temporary folder.
pub struct Family {
    estate: Arc<Estate>,
    sender: Sender<(&'static str, Message)>,
    receiver: Receiver<(&'static str, Message)>,
}

impl Family {
    /// No children yet. `folder` is removed at the end; Ctrl-C ends children and folder before the program.
    pub fn new(folder: TempDir) -> Self {
        let estate = Arc::new(Estate {
            children: Mutex::new(Vec::new()),
            folder: Mutex::new(Some(folder)),
            interrupted: AtomicBool::new(false),
        });
        let handled = Arc::clone(&estate);
        // Fails only if a handler is there already; then Ctrl-C ends the whole process group anyway.
        let _ = ctrlc::set_handler(move || {
            handled.interrupted.store(true, Ordering::SeqCst);
            handled.clear();
            eprintln!("\nerror: interrupted; the processes it had started were ended");
            std::process::exit(130);
        });
        let (sender, receiver) = channel();
        Self {
            estate,
            sender,
            receiver,
        }
    }

    /// Starts this program again with these arguments.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start(&self, name: &'static str, args: &[&str]) -> Result<(), CliError> {
        let fail = |source| CliError::Start { name, source };
        let program = std::env::current_exe().map_err(fail)?;
        let mut command = Command::new(program);
        // Its own group: Ctrl-C then reaches this process alone, which ends the others and says so once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command
            .args(args)
            .args(["--child", "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fail)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let id = child.id();
        self.estate
            .children
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(child);
        let (estate, sender) = (Arc::clone(&self.estate), self.sender.clone());
        thread::spawn(move || {
            let stderr = thread::spawn(move || {
                let mut text = String::new();
                if let Some(stderr) = stderr {
                    let _ = stderr.take(MAX_STDERR).read_to_string(&mut text);
                }
                text
            });
            if let Some(stdout) = stdout {
                read_events(name, stdout, &sender);
            }
            let stderr = stderr.join().unwrap_or_default();
            if let Some(status) = ended(&estate, id) {
                let _ = sender.send((name, Message::Ended { status, stderr }));
            }
        });
        Ok(())
    }

    /// The next event of any child.
    ///
    /// # Errors
    /// If a child ended badly.
    pub fn next_event(&self) -> Result<(&'static str, Event), CliError> {
        loop {
            let Ok((name, message)) = self.receiver.recv() else {
                return Err(CliError::Child {
                    name: "server",
                    reason: "it is gone".to_owned(),
                });
            };
            match message {
                Message::Event(event) => return Ok((name, event)),
                Message::Ended { status, .. } if status.success() => {}
                Message::Ended { .. } if self.estate.interrupted.load(Ordering::SeqCst) => loop {
                    // The handler is ending the program.
                    thread::park();
                },
                Message::Ended { status, stderr } => {
                    return Err(self.root_cause(name, status, &stderr));
                }
                Message::Unreadable(reason) => return Err(CliError::Child { name, reason }),
            }
        }
    }

    /// The better explanation of two: a process that was killed says nothing, its peer only that it is gone.
    fn root_cause(&self, name: &'static str, status: ExitStatus, stderr: &str) -> CliError {
        let first = failure(name, status, stderr);
        if status.code().is_none() {
            return first;
        }
        loop {
            match self.receiver.recv_timeout(GRACE) {
                Ok((name, Message::Ended { status, stderr })) if status.code().is_none() => {
                    return failure(name, status, &stderr);
                }
                Ok((_, Message::Ended { .. })) => return first,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return first,
            }
        }
    }

    /// Removes the folder: the children have read what is in it.
    pub fn remove_folder(&self) {
        self.estate.remove_folder();
    }

    /// Ends whatever still runs and removes the folder.
    pub fn end(&self) {
        self.estate.clear();
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_events(name: &'static str, stdout: impl Read, sender: &Sender<(&'static str, Message)>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = String::new();
        match reader.by_ref().take(MAX_LINE).read_line(&mut line) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) => {
                let _ = sender.send((name, Message::Unreadable(e.to_string())));
                return;
            }
        }
        let message = match serde_json::from_str(&line) {
            Ok(event) => Message::Event(event),
            Err(e) => Message::Unreadable(format!("it wrote an unknown line: {e}")),
        };
        if sender.send((name, message)).is_err() {
            return;
        }
    }
}

/// Waits for a child's end without holding the lock, so that it can be killed meanwhile.
fn ended(estate: &Estate, id: u32) -> Option<ExitStatus> {
    loop {
        {
            let mut children = estate
                .children
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let child = children.iter_mut().find(|child| child.id() == id)?;
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
        thread::sleep(POLL);
    }
}

fn failure(name: &'static str, status: ExitStatus, stderr: &str) -> CliError {
    let said = stderr
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("error: "));
    CliError::Child {
        name,
        reason: said.map_or_else(|| format!("it ended with {status}"), str::to_owned),
    }
}
