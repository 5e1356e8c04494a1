//! `volvelle serve`: hold a model and answer clients, one after another.

use std::time::Duration;

use volvelle_net::{Listener, Role};

use crate::args::ServeArgs;
use crate::child::{Event, end_with_parent};
use crate::digits::fixed::FixedModel;
use crate::digits::private;
use crate::digits::weights;
use crate::error::CliError;
use crate::report::{SessionReport, bytes, count, print};
use crate::session::{config, converse, handshake, security};

/// Between a session that failed and the next.
const PAUSE: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// If the model or the keys are no good or the address cannot be listened on; with `--once`, also if the
/// session fails. Without it a session's failure is reported and the next client served.
pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    if args.child.child {
        end_with_parent();
    }
    let model = FixedModel::new(&weights::read(&args.model)?)?;
    let security = security(&args.peer)?;
    let config = config(&args.peer);
    let listener = Listener::bind(&args.listen)?;
    announce(args, &listener)?;
    loop {
        let served = listener
            .accept(Role::Server, &security, &config, None)
            .map_err(CliError::from)
            .and_then(|channel| {
                converse(channel, |channel| {
                    handshake(args.batch).run(channel)?;
                    private::serve(channel, &model, args.batch as usize)
                })
            });
        match served {
            Ok(report) => tell(args, report)?,
            Err(error) if args.once => return Err(error),
            Err(error) => {
                eprintln!("error: {}", crate::error::one_line(&error));
                // Whatever is wrong may be wrong at once again.
                std::thread::sleep(PAUSE);
            }
        }
        if args.once {
            return Ok(());
        }
    }
}

fn announce(args: &ServeArgs, listener: &Listener) -> Result<(), CliError> {
    let listening = listener.local_addr().to_string();
    if args.json {
        return Event::Listening { listening }.print();
    }
    let protection = if args.peer.plain_tcp {
        "plain TCP, not encrypted"
    } else {
        "TLS"
    };
    print(&format!(
        "listening on {listening} ({protection}); Ctrl-C ends this"
    ))
}

fn tell(args: &ServeArgs, report: SessionReport) -> Result<(), CliError> {
    if args.json {
        return Event::Report(Box::new(report)).print();
    }
    print(&format!(
        "{} classified in {:.1} s, {} on the wire",
        count(report.images as usize, "image", "images"),
        report.wall_s,
        bytes((report.setup.bits + report.prep.bits + report.online.bits) / 8.0),
    ))
}
