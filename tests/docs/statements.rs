//! Statements in the documents that can be checked: which categories of the corpus agree in full,
//! and how to use each feature.

use std::fs;

use clap::Command;
use kubestep::tui::action;

use crate::documents::{Document, top};
use crate::names::words;

/// Exactly the categories that the conformance test requires in full are stated to agree in full.
pub fn categories(documents: &[Document]) -> Vec<String> {
    let text = &Document::find(documents, "docs/src/conformance.md").text;
    let test = fs::read_to_string(top("tests/conformance/main.rs")).unwrap();
    let (_, complete) = test.split_once("const COMPLETE: &[&str] = &[").unwrap();
    let (complete, _) = complete.split_once("];").unwrap();
    let files = fs::read_dir(top("tests/conformance")).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> =
        files.filter_map(|name| name.strip_suffix(".jsonl.gz").map(str::to_owned)).collect();
    assert!(names.len() > 20, "{} categories", names.len());
    let mut violations = Vec::new();
    for category in names {
        let row = text.lines().find_map(|line| line.strip_prefix(&format!("| {category} | ")));
        let Some(row) = row else {
            violations.push(format!("{category} has no row"));
            continue;
        };
        let agree = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let (passed, rest) = agree.split_once('/').unwrap();
        // After the comma: how many of them under which tie break.
        let (total, _) = rest.split_once(", ").unwrap_or((rest, ""));
        if (passed == total) != complete.contains(&format!("\"{category}\"")) {
            violations.push(format!("{category}: {agree}"));
        }
    }
    violations
}

/// Rows of the feature table that name a key, command or option that does not exist, or that claim
/// a feature without one.
pub fn features(documents: &[Document]) -> Vec<String> {
    let text = &Document::find(documents, "docs/src/comparison.md").text;
    let command = kubestep::cli::command();
    let keys = action::manual();
    let (mut violations, mut features) = (Vec::new(), 0);
    for row in text.lines().filter(|line| line.starts_with("| ") && !line.contains("**")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, mark, how, ..] = cells.as_slice() else { continue };
        if *mark == "kubestep" {
            continue;
        }
        if mark.is_empty() != how.is_empty() {
            violations.push(format!("a mark without a way, or the reverse: {row}"));
        }
        for named in how.split('`').skip(1).step_by(2) {
            if !exists(named, &command, &keys) {
                violations.push(format!("there is no {named}: {row}"));
            }
        }
        features += usize::from(*mark == "✓");
    }
    assert!(features > 90, "{features} features");
    violations
}

/// Whether a key, a command of the debugger or a subcommand exists.
fn exists(named: &str, command: &Command, keys: &str) -> bool {
    if keys.contains(&format!("`{named}`")) || keys.contains(&format!("`{named} ")) {
        return true;
    }
    let words = words(named);
    let mut of = command;
    words.iter().enumerate().all(|(at, word)| {
        let mut all = std::iter::once(of).chain(command.get_subcommands());
        if let Some(option) = word.strip_prefix("--") {
            return all.any(|of| of.get_arguments().any(|arg| arg.get_long() == Some(option)));
        }
        if let Some(option) = word.strip_prefix('-') {
            return all
                .any(|of| of.get_arguments().any(|arg| arg.get_short() == option.chars().next()));
        }
        let first = at == usize::from(words[0] == "kubestep");
        if let (true, Some(subcommand)) = (first, command.find_subcommand(word)) {
            of = subcommand;
            return true;
        }
        // The program itself, or the value of an option.
        (at == 0 && word == "kubestep") || (at > 0 && words[at - 1].starts_with('-'))
    })
}
