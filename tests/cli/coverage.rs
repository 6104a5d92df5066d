//! The command line is covered by examples: every subcommand with its help, every option and each
//! of its values, and every exit code occur in a call whose whole output is in a file of this
//! folder.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use kubestep::cli::EXITS;

use crate::harness::words;

/// Options that other tests cover, because their output is only visible in a terminal or differs
/// each time: `timings` in `run.rs`, `shell` in `render.rs`, `tui` in `tests/live/attended.rs`.
const COVERED_BY_OTHER_TESTS: &[&str] = &["timings", "shell", "tui"];

/// Exit codes that need a cluster. `schedule::a_lost_lease_ends_it` of the suite `live` covers this
/// one.
const WITH_A_CLUSTER: &[u8] = &[5];

/// A call with its exit code.
struct Kept {
    line: String,
    code: Option<u8>,
}

fn kept() -> Vec<Kept> {
    let mut files = Vec::new();
    find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli"), &mut files);
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("$ kubestep") {
                found.push(Kept { line: line.trim().to_owned(), code: None });
            } else if let Some(code) = line.strip_prefix("# exit ")
                && let Some(last) = found.last_mut()
            {
                last.code = code.parse().ok();
            }
        }
    }
    found
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
}

/// `run --pod`, `run --output=json`: the options in the calls, as clap parses them.
fn met(command: &Command, calls: &[Kept]) -> BTreeSet<String> {
    let mut met = BTreeSet::new();
    for Kept { line, .. } in calls {
        if line.contains("--help") {
            let name = line.split(' ').next().unwrap().trim_start_matches("--help");
            met.insert(format!("{name} --help").trim().to_owned());
        }
        let all = ["kubestep"].into_iter().chain(words(line));
        if let Ok(matches) = command.clone().try_get_matches_from(all) {
            note(command, "", &matches, &mut met);
        }
    }
    met
}

fn note(command: &Command, path: &str, matches: &ArgMatches, met: &mut BTreeSet<String>) {
    met.insert(path.to_owned());
    for arg in arguments(command) {
        let id = arg.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        met.insert(format!("{path} {id}"));
        for value in matches.get_raw(id).into_iter().flatten() {
            met.insert(format!("{path} {id}={}", value.to_string_lossy()));
        }
    }
    if let Some((name, matches)) = matches.subcommand() {
        let below = command.find_subcommand(name).unwrap();
        note(below, format!("{path} {name}").trim(), matches, met);
    }
}

/// Hidden flags are those of kube-scheduler that are not supported: the help of "schedule" lists
/// them, and a unit test at their table tries them.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
}

/// The options with which a command must be called.
fn wanted(command: &Command) -> Vec<String> {
    let mut wanted = Vec::new();
    for arg in arguments(command) {
        let id = arg.get_id();
        wanted.push(id.to_string());
        if arg.get_action().takes_values() {
            let values = arg.get_possible_values();
            wanted.extend(values.iter().map(|value| format!("{id}={}", value.get_name())));
        }
    }
    wanted
}

#[test]
fn every_subcommand_and_option_occurs() {
    if kubestep_output::golden::is_updating() {
        // The files are being written.
        return;
    }
    let mut command = kubestep::cli::command();
    command.build();
    let met = met(&command, &kept());
    let commands: Vec<(&str, &Command)> = [("", &command)]
        .into_iter()
        .chain(command.get_subcommands().map(|c| (c.get_name(), c)))
        .collect();
    let mut missing = Vec::new();
    for (name, of) in &commands {
        if !met.contains(format!("{name} --help").trim()) && *name != "help" {
            missing.push(format!("{name} --help"));
        }
        for wanted in wanted(of) {
            let id = wanted.split('=').next().unwrap();
            let sharing = commands.iter().filter(|(_, c)| arguments(c).any(|a| a.get_id() == id));
            let sharing: Vec<&str> = sharing.map(|(name, _)| *name).collect();
            // For options that several commands share, one command is enough.
            let is_met = sharing.iter().any(|name| met.contains(&format!("{name} {wanted}")));
            if !is_met && !COVERED_BY_OTHER_TESTS.contains(&id) {
                missing.push(format!("{name} {wanted}"));
            }
        }
    }
    assert!(missing.is_empty(), "no call whose output is kept has:\n{}", missing.join("\n"));
}

#[test]
fn every_exit_code_occurs() {
    let kept = kept();
    for (exit, meaning) in EXITS.iter().filter(|(exit, _)| !WITH_A_CLUSTER.contains(&exit.code())) {
        let code = Some(exit.code());
        assert!(kept.iter().any(|kept| kept.code == code), "{code:?}: {meaning}");
    }
    assert!(kept.iter().all(|kept| kept.code.is_some()), "a call without an exit code");
}

/// Every subcommand has a call that fails and one that succeeds.
#[test]
fn every_subcommand_fails_in_some_call() {
    let kept = kept();
    let command = kubestep::cli::command();
    let fails = |name: &str| {
        let of = |kept: &&Kept| kept.line.split(' ').next() == Some(name);
        kept.iter().filter(of).any(|kept| kept.code.is_some_and(|code| code > 1))
    };
    let names = command.get_subcommands().map(Command::get_name);
    let missing: Vec<&str> = names.filter(|name| !fails(name)).collect();
    assert!(missing.is_empty(), "no call is kept that ends with an error: {missing:?}");
}
