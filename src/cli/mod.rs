//! The command line: which words there are, and what each starts.
//!
//! One subcommand a file. Without a subcommand the debugger opens on the files of `-f`.

mod demo;
mod exit;
mod open;
mod options;
mod run;

use std::io::{self, ErrorKind, Write};

use clap::Parser;

pub use exit::Exit;
use options::{Cli, Command};

/// Runs the program on the process's arguments and gives its exit code.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come this way too, and are no errors.
            let _printed = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    let outcome = match &cli.command {
        None => open::debugger(&cli.input, &cli.view),
        Some(Command::Demo(demo)) => demo::run(demo, &cli.view),
        Some(Command::Run(run)) => run::run(run),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("kubestep: {error:#}");
        Exit::Usage
    })
}

/// Prints to standard output. A reader that has seen enough, as `head` does, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("standard output"))
        }
        _ => Ok(()),
    }
}
