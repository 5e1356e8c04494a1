//! The `volvelle` program: private classification of handwritten digits between two processes or machines, private
//! table lookups made ahead and used, and measurements of the protocols beneath them.
//!
//! Exit codes: 0 all went well, 1 something failed (one line on standard error says what), 2 the command line
//! was wrong, 130 interrupted, 141 nobody reads the output any more.

mod args;
mod bench;
mod child;
mod connections;
mod demo;
mod digits;
mod error;
mod keygen;
mod lookup;
mod numbers;
mod plan;
mod preprocess;
mod progress;
mod query;
mod report;
mod serve;
mod session;
mod store_key;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{BenchCommand, Cli, Command};

/// As shells show a program that a closed pipe has ended.
const CLOSED_OUTPUT: u8 = 141;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let result = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Preprocess(args) => preprocess::run(&args),
        Command::Lookup(args) => lookup::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Deal(args) => bench::dealer::deal(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Bench(BenchCommand::Ot(args)) => bench::ot::run(&args),
        Command::Bench(BenchCommand::Lut(args)) => bench::lut::run(&args),
        Command::Bench(BenchCommand::Compare(args)) => bench::compare::run(&args),
        Command::Bench(BenchCommand::Vectors(args)) => bench::vectors::run(&args),
        Command::Bench(BenchCommand::Paper(args)) => bench::paper::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error::is_closed_output(&error) => ExitCode::from(CLOSED_OUTPUT),
        Err(error) => {
            eprintln!("error: {}", error::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Help goes out as it is; a mistake on the command line becomes one line, like every other error.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(error.exit_code() as u8);
    }
    let text = error.to_string();
    let what = text
        .split("\nUsage:")
        .next()
        .unwrap_or(&text)
        .replace("For more information, try '--help'.", "");
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    eprintln!("{what}; see --help of the command for what it takes");
    ExitCode::from(2)
}
