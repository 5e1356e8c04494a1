//! `volvelle serve`: hold a model and answer clients, several at once.

use std::sync::Arc;
use std::thread;

use volvelle_net::Listener;

use crate::args::ServeArgs;
use crate::child::{Event, end_with_parent};
use crate::connections::{Places, Reception, Visit};
use crate::digits::fixed::FixedModel;
use crate::digits::private::{self, Settings};
use crate::digits::weights;
use crate::error::CliError;
use crate::report::{SessionReport, bytes, count, print};
use crate::session::{converse, handshake, terms};

/// Runs the command.
///
/// # Errors
/// If the model or the keys are no good or the address cannot be listened on; with `--once`, also if the
/// session fails. Without it a session's failure is reported and others are served.
pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    if args.child.child {
        end_with_parent();
    }
    let model = Arc::new(FixedModel::new(&weights::read(&args.model)?)?);
    let handshake = handshake(args.batch, args.protocol);
    let terms = terms(&args.peer, args.ahead, handshake)?;
    let listener = Listener::bind(&args.listen)?;
    announce(args, &listener)?;
    let reception = Reception::open(listener, terms);
    if args.once {
        let report = serve(args, &model, reception.next()?)?;
        return tell(args, report);
    }
    let places = Places::new(args.clients as usize);
    loop {
        let visit = match reception.next() {
            Ok(visit) => visit,
            Err(error) => {
                complain(&error);
                continue;
            }
        };
        let (args, model, place) = (args.clone(), Arc::clone(&model), places.take());
        thread::spawn(move || {
            match serve(&args, &model, visit) {
                Ok(report) => {
                    // Nobody hears what this server has to say.
                    if let Err(error) = tell(&args, report) {
                        complain(&error);
                        std::process::exit(1);
                    }
                }
                Err(error) => complain(&error),
            }
            drop(place);
        });
    }
}

fn serve(args: &ServeArgs, model: &FixedModel, visit: Visit) -> Result<SessionReport, CliError> {
    let Visit {
        channel,
        background,
        ..
    } = visit;
    let settings = Settings {
        batch: args.batch as usize,
        protocol: args.protocol,
        link: args.peer.link,
    };
    converse(channel, |channel| {
        private::serve(channel, background, model, settings)
    })
}

fn complain(error: &CliError) {
    eprintln!("error: {}", crate::error::one_line(error));
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
