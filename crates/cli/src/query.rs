//! `volvelle query`: have images classified without showing them.

use std::panic::resume_unwind;
use std::thread;

use crate::args::QueryArgs;
use crate::child::{Event, end_with_parent};
use crate::connections::{Visit, visit};
use crate::digits::images;
use crate::digits::private::{self, Settings};
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::print;
use crate::session::{converse, handshake, terms};

/// Runs the command.
///
/// # Errors
/// If the images or the keys are no good, or the session fails.
pub fn run(args: &QueryArgs) -> Result<(), CliError> {
    if args.child.child {
        end_with_parent();
    }
    let images: Vec<_> = images::read(&args.images)?
        .into_iter()
        .map(|image| image.pixels)
        .collect();
    let handshake = handshake(args.batch, args.protocol);
    let terms = terms(&args.peer, args.ahead, handshake)?;
    let progress = Progress::new(images.len() as u64, args.json);
    progress.say("connecting");
    let settings = Settings {
        batch: args.batch as usize,
        protocol: args.protocol,
        link: args.peer.link,
    };
    let count = images.len();
    // The tables take some milliseconds to make.
    let plan = thread::spawn(move || settings.plan(count));
    let Visit {
        channel,
        background,
        ..
    } = visit(&args.connect, &terms)?;
    let mut on_progress = |done: usize, phase: &'static str| {
        progress.set(done as u64, phase);
        if args.child.child {
            Event::Progress {
                done: done as u64,
                phase: phase.to_owned(),
            }
            .print()?;
        }
        Ok(())
    };
    let report = converse(channel, |channel| {
        let plan = plan.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        private::query(channel, background, &images, plan, &mut on_progress)
    })?;
    progress.finish();
    if args.json {
        return Event::Report(Box::new(report)).print();
    }
    let lines: Vec<String> = report.classes.iter().map(u8::to_string).collect();
    print(&lines.join("\n"))
}
