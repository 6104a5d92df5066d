//! The command line: which words there are, and what each starts.
//!
//! One subcommand a file, all in the table of `registry`. Without a subcommand the debugger
//! opens on the files of `-f`, or on a live cluster.

mod attach;
mod bundle;
mod capture;
mod cluster;
mod completions;
mod config;
mod demo;
mod diff;
mod edits;
mod exit;
mod explain;
mod foreign;
mod format;
mod info;
mod man;
mod open;
mod options;
mod plugins;
mod rbac;
mod record;
mod recorded;
mod registry;
mod render;
mod replay;
mod run;
mod schedule;
mod stops;
mod story;
mod test;
mod tries;
mod waiting;

use std::io::{self, Write};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

pub use exit::{EXITS, Exit, Unreachable};
use options::Cli;
use registry::SUBCOMMANDS;

use crate::report::clean::clean;

/// Runs the program on the process's arguments and gives its exit code.
pub fn main() -> Exit {
    let matches = match as_called(command()).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come this way too, and are no errors.
            let _printed = error.print();
            if let Some(file) = unexpected_file(&error) {
                eprintln!("A file is named with -f: -f {file}");
            }
            if let Some(line) = option_before_command(&error) {
                eprintln!("Options stand behind the command: {line}");
            }
            return if error.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    dispatch(&matches).unwrap_or_else(|error| {
        eprintln!("kubestep: {error:#}");
        Exit::of_error(&error)
    })
}

/// The argument that is not expected but would be a file.
fn unexpected_file(error: &clap::Error) -> Option<String> {
    let of_file = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
    let words = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let word = words.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        _ => None,
    })?;
    let is_file = of_file.contains(&error.kind()) && std::path::Path::new(&word).exists();
    is_file.then(|| clean(&word).into_owned())
}

/// An option stands before the command that it is for: the command line in the right order.
fn option_before_command(error: &clap::Error) -> Option<String> {
    let command = match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(word) => word.clone(),
        _ => return None,
    };
    let is_known = SUBCOMMANDS.iter().any(|entry| entry.name == command);
    if error.kind() != ErrorKind::ArgumentConflict || !is_known {
        return None;
    }
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let at = words.iter().position(|word| *word == command)?;
    let command = words.remove(at);
    words.insert(0, command);
    Some(clean(&format!("kubestep {}", words.join(" "))).into_owned())
}

/// The whole command line, as clap and what is made from it take it.
pub fn command() -> clap::Command {
    let subcommands = SUBCOMMANDS.iter().map(|entry| (entry.command)());
    Cli::command().after_help(Exit::table()).subcommands(subcommands)
}

/// kubectl runs `kubectl-step` for `kubectl step`, and that is what its help should say.
fn as_called(command: clap::Command) -> clap::Command {
    let called = std::env::args_os().next().map(std::path::PathBuf::from);
    match called.as_deref().and_then(std::path::Path::file_stem) {
        Some(name) if name == "kubectl-step" => command.bin_name("kubectl step"),
        _ => command,
    }
}

fn dispatch(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let chosen = matches.subcommand();
    let entry = |(name, of_entry)| {
        SUBCOMMANDS.iter().find(|entry| entry.name == name).map(|entry| (entry, of_entry))
    };
    match chosen.and_then(entry) {
        Some((entry, matches)) => (entry.run)(matches),
        None => {
            let cli = Cli::from_arg_matches(matches)?;
            open::debugger(&cli.input, &cli.view)
        }
    }
}

/// Prints text that may quote a cluster: whatever in it could control a terminal is escaped.
fn print_text(text: &str) -> anyhow::Result<()> {
    let lines: Vec<_> = text.split('\n').map(clean).collect();
    print(&lines.join("\n"))
}

/// Prints to standard output. A reader that has seen enough, as `head` does, is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("standard output"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
