//! `volvelle query`: have images classified without showing them.

use volvelle_net::{Role, connect};

use crate::args::QueryArgs;
use crate::child::{Event, end_with_parent};
use crate::digits::images;
use crate::digits::private;
use crate::error::CliError;
use crate::progress::Progress;
use crate::report::print;
use crate::session::{config, converse, handshake, security};

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
    let security = security(&args.peer)?;
    let progress = Progress::new(images.len() as u64, args.json);
    progress.say("connecting");
    let channel = connect(&args.connect, Role::Client, &security, &config(&args.peer))?;
    let report = converse(channel, |channel| {
        handshake(args.batch).run(channel)?;
        private::query(channel, &images, args.batch as usize, &mut |done, phase| {
            progress.set(done as u64, phase);
            if args.child.child {
                Event::Progress {
                    done: done as u64,
                    phase: phase.to_owned(),
                }
                .print()?;
            }
            Ok(())
        })
    })?;
    progress.finish();
    if args.json {
        return Event::Report(Box::new(report)).print();
    }
    let lines: Vec<String> = report.classes.iter().map(u8::to_string).collect();
    print(&lines.join("\n"))
}
