//! The progress bar, on standard error and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts images.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar to `total`; hidden if `quiet` or if standard error is no terminal.
    pub fn new(total: u64, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template("  {msg:<16} [{bar:32}] {pos}/{len}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// Counts to another total.
    pub fn set_length(&self, total: u64) {
        self.bar.set_length(total);
    }

    /// Shows what is being done.
    pub fn say(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.tick();
    }

    /// Shows how many are done, and what is being done now.
    pub fn set(&self, done: u64, what: &str) {
        self.bar.set_position(done);
        self.say(what);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// An error leaves no half-drawn bar behind.
impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
