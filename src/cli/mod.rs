//! The command line: which words there are, and what each starts.
//!
//! One subcommand a file, all in the table of `registry`. Without a subcommand the debugger
//! opens on the files of `-f`, or on a live cluster.

mod attach;
mod bench;
mod bundle;
mod capture;
mod cluster;
mod complete;
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
mod mcp;
mod memory;
mod open;
mod options;
mod plugins;
mod rbac;
mod record;
mod recorded;
mod registry;
mod render;
mod replay;
mod report;
mod run;
mod schedule;
mod stops;
mod survive;
mod test;
mod trace_file;
mod tries;
mod upgrade;
mod version;
mod versions;
mod waiting;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

pub use exit::{EXITS, Exit, Unreachable};
use kubestep_output::clean::{clean_colored, clean_uncolored};
use kubestep_output::cut::long_values;
pub use mcp::tool_rows;
use options::Cli;
use registry::SUBCOMMANDS;

/// Runs the program on the process's arguments and gives its exit code.
pub fn main() -> Exit {
    kubestep_output::report_panics();
    crate::plugins::declare_kinds();
    complete::answer_shell(command);
    let matches = match matches(std::env::args_os().collect()) {
        Ok(matches) => matches,
        Err(error) => {
            show(&error);
            if let Some(file) = unexpected_file(&error) {
                kubestep_output::line(format!("To read a file, use -f: -f {file}"));
            }
            return if error.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    dispatch(&matches).unwrap_or_else(|error| {
        kubestep_output::lines(format!("kubestep: {error:#}"));
        Exit::of_error(&error)
    })
}

/// The parsed command line. The options of the debugger may also stand before the command that they
/// are for.
fn matches(words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    let parsed = as_called(command()).try_get_matches_from(&words);
    let ordered = parsed.as_ref().err().and_then(|error| command_first(error, words));
    ordered.map_or(parsed, |ordered| as_called(command()).try_get_matches_from(ordered))
}

/// Help, the version or an error about the arguments: in clap's colours, unless an argument
/// that it quotes is unclean or long.
fn show(error: &clap::Error) {
    let colored = error.render().ansi().to_string();
    let text = clean_uncolored(&colored);
    let is_plain = clean_colored(&colored) == colored && long_values(&text) == text;
    if is_plain || !error.use_stderr() {
        let _printed = error.print();
    } else {
        kubestep_output::lines(text.trim_end());
    }
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
    is_file.then_some(word)
}

/// The words with the command first, if the error is that an option stands before it.
fn command_first(error: &clap::Error, mut words: Vec<OsString>) -> Option<Vec<OsString>> {
    let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_known = SUBCOMMANDS.iter().any(|entry| entry.name == command);
    if error.kind() != ErrorKind::ArgumentConflict || !is_known {
        return None;
    }
    let at = words.iter().skip(1).position(|word| word == command.as_str())? + 1;
    let command = words.remove(at);
    words.insert(1, command);
    Some(words)
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::Arg;

    use crate::tui::action;

    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn no_heading_takes_in_the_options_of_the_command_behind_it() {
        let mut headings: BTreeMap<String, BTreeSet<Option<String>>> = BTreeMap::new();
        for subcommand in super::command().get_subcommands() {
            for arg in subcommand.get_arguments() {
                let heading = arg.get_help_heading().map(str::to_owned);
                headings.entry(arg.get_id().to_string()).or_default().insert(heading);
            }
        }
        // What is edited makes side b of a comparison.
        headings.remove("edits");
        for (name, found) in headings {
            assert!(!found.contains(&None) || found.len() == 1, "{name}: {found:?}");
        }
    }

    #[test]
    fn commands_of_the_debugger_that_help_names_are_there() {
        let command = super::command();
        let commands = command.get_subcommands().chain([&command]);
        let helps = commands.flat_map(|command| command.get_arguments()).filter_map(Arg::get_help);
        let mut named = 0;
        for help in helps.map(ToString::to_string) {
            let words = help.split(|c: char| !(c.is_alphanumeric() || ":-".contains(c)));
            for name in words.filter_map(|word| word.strip_prefix(':')) {
                named += 1;
                assert!(action::all().any(|spec| spec.name == name), ":{name} in {help}");
            }
        }
        assert!(named > 2);
    }
}
