//! Starting the program and holding it to its promises about errors.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// No error may take longer than this.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Ordinary work, on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a process left behind.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ended {
    /// The last line of standard output, as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(self.stdout.lines().last().unwrap_or(""))
            .unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Asserts a one-line error, soon enough, that holds all the given words.
    #[track_caller]
    pub fn assert_error(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("error: "), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        assert!(self.took < LIMIT, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no `{word}` in {self:?}");
        }
    }
}

/// A running `volvelle`. Dropping it ends it.
pub struct Process {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<String>>,
    seen: String,
    start: Instant,
}

impl Process {
    pub fn start<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::start_with_temporary(&std::env::temp_dir(), args)
    }

    /// With another folder for temporary files.
    pub fn start_with_temporary<S: AsRef<std::ffi::OsStr>>(
        temporary: &Path,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_volvelle"))
            .args(args)
            .env("TMPDIR", temporary)
            .env(
                "VOLVELLE_CACHE",
                concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let stdout = child.stdout.take().map(BufReader::new);
        Self {
            child,
            stdout,
            stderr: Some(stderr),
            seen: String::new(),
            start: Instant::now(),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of standard output.
    #[track_caller]
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.as_mut().unwrap().read_line(&mut line).unwrap();
        self.seen.push_str(&line);
        line
    }

    /// The address a server says it listens on.
    #[track_caller]
    pub fn address(&mut self) -> String {
        let line = self.line();
        let value: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"));
        value["listening"].as_str().unwrap().to_owned()
    }

    /// Reads no more of what it prints.
    pub fn close_output(&mut self) {
        self.stdout = None;
    }

    /// Ends it as if the machine had lost power.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// From now on, for [`Ended::took`].
    pub fn restart_clock(&mut self) {
        self.start = Instant::now();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        let mut rest = String::new();
        let stdout = self.stdout.take();
        let reader = thread::spawn(move || {
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_to_string(&mut rest);
            }
            rest
        });
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                Instant::now() < deadline,
                "still running after {PATIENCE:?}"
            );
            thread::sleep(Duration::from_millis(5));
        };
        let took = self.start.elapsed();
        Ended {
            code: status.code(),
            stdout: std::mem::take(&mut self.seen) + &reader.join().unwrap(),
            stderr: self.stderr.take().unwrap().join().unwrap(),
            took,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program to its end.
#[track_caller]
pub fn volvelle<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Ended {
    Process::start(args).wait()
}

/// A file of the repository's `data` folder.
pub fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../data")
        .join(name)
        .display()
        .to_string()
}

/// A folder with keys of these parties.
pub fn keys(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let made = volvelle([
            "keygen",
            "--out",
            &folder.path().display().to_string(),
            "--name",
            name,
        ]);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    folder
}

/// The first `count` held-out images, in a file.
pub fn images(folder: &Path, count: usize) -> PathBuf {
    let text = std::fs::read_to_string(data("digits-test.csv")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let path = folder.join("images.csv");
    let chosen: Vec<&str> = lines.iter().cycle().take(count).copied().collect();
    std::fs::write(&path, chosen.join("\n") + "\n").unwrap();
    path
}

/// Arguments as owned strings.
pub fn strings(args: &[&str]) -> Vec<String> {
    args.iter().map(|s| (*s).to_owned()).collect()
}
