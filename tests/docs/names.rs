//! Commands, options and actions that the documents name exist.

use clap::Command;
use kubestep::tui::action;

use crate::documents::{Block, Document};

/// The words of a line; quoted text is one word.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Commands in `sh` blocks that the program would reject, and names in prose that do not exist.
pub fn violations(documents: &[Document]) -> Vec<String> {
    let command = kubestep::cli::command();
    let mut violations = Vec::new();
    let mut lines = 0;
    for document in documents {
        for line in document.blocks().iter().flat_map(lines_of) {
            lines += 1;
            if let Err(error) = command.clone().try_get_matches_from(words(&line)) {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default().to_owned();
                let is_help = error.contains("Usage:") && line.contains("--help");
                if !is_help {
                    violations.push(format!("{}: {line}: {first}", document.name));
                }
            }
        }
        let prose = document.prose();
        let unknown = prose.split('`').skip(1).step_by(2).filter(|code| !is_known(code, &command));
        violations.extend(unknown.map(|code| format!("{}: there is no {code}", document.name)));
    }
    assert!(lines > 50, "{lines} commands were found");
    violations
}

/// The calls of the program in a block of commands, without comments, redirections and pipes.
fn lines_of(block: &Block<'_>) -> Vec<String> {
    if block.language != "sh" {
        return Vec::new();
    }
    let joined = block.text.replace("\\\n", " ");
    let call = |line: &str| {
        let end = [" #", " |", " >", " &"].iter().filter_map(|mark| line.find(mark)).min();
        line[..end.unwrap_or(line.len())].trim().to_owned()
    };
    joined.lines().filter(|line| line.starts_with("kubestep")).map(call).collect()
}

/// Whether code in prose is an existing option or action, or neither of them.
fn is_known(code: &str, command: &Command) -> bool {
    let first = code.split([' ', '\n', '=', '[']).next().unwrap_or_default();
    if let Some(option) = first.strip_prefix("--") {
        let mut all = std::iter::once(command).chain(command.get_subcommands());
        return all.any(|of| of.get_arguments().any(|arg| arg.get_long() == Some(option)));
    }
    match first.strip_prefix(':') {
        Some(name) if !name.is_empty() => {
            action::all().any(|action| action.name == name || action.aliases.contains(&name))
        }
        _ => true,
    }
}
