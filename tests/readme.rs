//! The README is kept true: its key table, screens, stories, themes and categories are those
//! of the program.
//!
//! `UPDATE_GOLDEN=1 cargo test --test readme -- --test-threads=1` rewrites the key table and the
//! pictures, one after the other because they are in one file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use kubestep::cli::EXITS;
use kubestep::tui::action;
use kubestep_source::fixtures::STORIES;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn readme() -> String {
    fs::read_to_string(path("README.md")).unwrap()
}

/// Held by a test that may rewrite the file.
static REWRITING: Mutex<()> = Mutex::new(());

/// The names of a folder's files, up to the first dot, that end in `ending`.
fn names(folder: &str, ending: &str) -> Vec<String> {
    let files = fs::read_dir(path(folder)).unwrap();
    let files = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        files.filter_map(|name| name.strip_suffix(ending).map(str::to_string)).collect();
    names.sort();
    names
}

#[test]
fn the_key_table_is_that_of_the_program() {
    let _alone = REWRITING.lock().unwrap_or_else(PoisonError::into_inner);
    const START: &str = "<!-- keys: made by the program, see tests/readme.rs -->\n";
    const END: &str = "<!-- end of keys -->\n";
    let text = readme();
    let (before, rest) = text.split_once(START).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let expected = format!("{}\n", action::manual());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path("README.md"), format!("{before}{START}{expected}{END}{after}")).unwrap();
    } else {
        assert_eq!(table, expected);
    }
}

#[test]
fn every_story_is_named() {
    let text = readme();
    for story in STORIES {
        let row = format!("| `{}` | {} |", story.name, story.about);
        assert!(text.contains(&row), "{row}");
    }
}

#[test]
fn every_exit_code_is_told() {
    let rows: String =
        EXITS.iter().map(|(exit, text)| format!("| {} | {text} |\n", exit.code())).collect();
    assert!(readme().contains(&format!("| exit code | meaning |\n|---|---|\n{rows}\n")), "{rows}");
}

#[test]
fn every_theme_is_named() {
    let text = readme();
    let themes = names("themes", ".yaml");
    assert!(themes.len() > 1);
    for theme in themes {
        assert!(text.contains(&format!("`{theme}`")), "{theme}");
    }
}

/// A category that the conformance test requires in full is said to agree in full, and only
/// such a one.
#[test]
fn the_categories_of_the_corpus_are_told_truly() {
    let text = readme();
    let test = fs::read_to_string(path("tests/conformance/main.rs")).unwrap();
    let (_, complete) = test.split_once("const COMPLETE: &[&str] = &[").unwrap();
    let (complete, _) = complete.split_once("];").unwrap();
    let categories = names("tests/conformance", ".jsonl.gz");
    assert!(categories.len() > 1);
    for category in categories {
        let row = text.lines().find_map(|line| line.strip_prefix(&format!("| {category} | ")));
        let agree = row.unwrap_or(&category).trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let (passed, rest) = agree.split_once('/').unwrap();
        // Behind a comma: how many of them under which choice.
        let (total, _) = rest.split_once(", ").unwrap_or((rest, ""));
        let required = complete.contains(&format!("\"{category}\""));
        assert_eq!(passed == total, required, "{category}: {agree}");
    }
}

/// The words of a line; what is between quotation marks is one.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('"').enumerate();
    let words = parts.map(|(at, part)| match at % 2 {
        0 => part.split(' ').filter(|word| !word.is_empty()).collect(),
        _ => vec![part],
    });
    words.collect::<Vec<Vec<&str>>>().concat()
}

/// What the program prints for a line, or some lines of it.
fn printed(line: &str, lines: Option<(usize, usize)>) -> String {
    let output = assert_cmd::Command::cargo_bin("kubestep")
        .unwrap()
        .env_clear()
        .args(words(line))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let (from, to) = lines.unwrap_or((1, all.len()));
    assert!(!all.is_empty() && to <= all.len(), "kubestep {line}: {text}");
    let before = if from > 1 { "…\n" } else { "" };
    let after = if to < all.len() { "…\n" } else { "" };
    format!("$ kubestep {line}\n{before}{}\n{after}", all[from - 1..to].join("\n"))
}

/// Every example stands behind the command that prints it.
#[test]
fn examples_are_printed_by_the_program() {
    let _alone = REWRITING.lock().unwrap_or_else(PoisonError::into_inner);
    const MARK: &str = "<!-- printed by: kubestep ";
    const FENCE: &str = "```console\n";
    let mut text = readme();
    let (mut from, mut examples) = (0, 0);
    while let Some(at) = text[from..].find(MARK).map(|at| from + at) {
        let (call, _) = text[at + MARK.len()..].split_once(" -->").unwrap();
        let (line, lines) = call.split_once("; lines ").unwrap_or((call, ""));
        let lines = lines.split_once(" to ");
        let lines = lines.map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()));
        let expected = printed(line, lines);
        let start = at + text[at..].find(FENCE).unwrap() + FENCE.len();
        let end = start + text[start..].find("```\n").unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            text.replace_range(start..end, &expected);
            fs::write(path("README.md"), &text).unwrap();
        } else {
            assert_eq!(&text[start..end], expected);
        }
        (from, examples) = (start, examples + 1);
    }
    assert!(examples > 0 && text.matches(FENCE).count() == examples);
}

/// The README's pictures of the screen, each with what is rendered in it.
const PICTURES: &[(&str, &str)] = &[
    ("filter", "--demo tour --keys nnss3jjjj --size 110x26"),
    ("scores", "--demo tour --keys nn4 --size 110x20"),
    ("why", "--demo spread-skew --keys cgw --size 110x26"),
    ("preemption", "--demo preemption-budget --keys n8 --size 110x20"),
];

#[test]
fn pictures_are_those_of_the_program() {
    let text = readme();
    for (name, screen) in PICTURES {
        let file = path(&format!("docs/{name}.svg"));
        assert!(text.contains(&format!("(docs/{name}.svg)")), "{name}");
        let line = format!("render {screen} -o svg");
        let output = assert_cmd::Command::cargo_bin("kubestep")
            .unwrap()
            .env_clear()
            .args(words(&line))
            .output()
            .unwrap();
        let picture = String::from_utf8(output.stdout).unwrap();
        assert!(picture.starts_with("<svg"), "kubestep {line}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&file, &picture).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap_or_default(), picture, "kubestep {line}");
    }
    assert_eq!(names("docs", ".svg").len(), PICTURES.len());
}

/// What the table of features names is there: keys, words after a colon, commands and options.
#[test]
fn the_features_name_what_is_there() {
    let text = readme();
    let (_, rest) = text.split_once("<details><summary>The table of features</summary>").unwrap();
    let (table, _) = rest.split_once("</details>").unwrap();
    let command = kubestep::cli::command();
    let (_, keys) = text.split_once("<!-- keys: ").unwrap();
    let (keys, _) = keys.split_once("<!-- end of keys -->").unwrap();
    let mut features = 0;
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.contains("**")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (mark, how) = (cells[2], cells[3]);
        assert_eq!(mark.is_empty(), how.is_empty(), "{row}");
        for named in how.split('`').skip(1).step_by(2) {
            assert!(is_there(named, &command, keys), "{named}: {row}");
        }
        features += usize::from(mark == "✓");
    }
    assert!(features > 90, "{features}");
}

/// Whether a key, a command of the debugger or one of the command line is there.
fn is_there(named: &str, command: &clap::Command, keys: &str) -> bool {
    if keys.contains(&format!("`{named}`")) || keys.contains(&format!("`{named} ")) {
        return true;
    }
    let mut of = command;
    words(named).into_iter().enumerate().all(|(at, word)| {
        let mut all = std::iter::once(of).chain(command.get_subcommands());
        if let Some(option) = word.strip_prefix("--") {
            return all.any(|of| of.get_arguments().any(|arg| arg.get_long() == Some(option)));
        }
        if let Some(option) = word.strip_prefix('-') {
            return all
                .any(|of| of.get_arguments().any(|arg| arg.get_short() == option.chars().next()));
        }
        if let (0, Some(subcommand)) = (at, command.find_subcommand(word)) {
            of = subcommand;
            return true;
        }
        // The program itself, or the value of an option.
        at > 0 || word == "kubestep"
    })
}

/// Every picture stands behind the command that draws it.
#[test]
fn pictures_are_drawn_by_the_program() {
    let _alone = REWRITING.lock().unwrap_or_else(PoisonError::into_inner);
    const MARK: &str = "<!-- kubestep render ";
    let mut text = readme();
    let mut from = 0;
    let mut pictures = 0;
    while let Some(at) = text[from..].find(MARK).map(|at| from + at) {
        let options = &text[at + MARK.len()..];
        let options = &options[..options.find(" -->").unwrap()];
        let start = at + text[at..].find("```text\n").unwrap() + "```text\n".len();
        let end = start + text[start..].find("```\n").unwrap();
        let output = assert_cmd::Command::cargo_bin("kubestep")
            .unwrap()
            .env_clear()
            .arg("render")
            .args(options.split(' '))
            .output()
            .unwrap();
        let picture = String::from_utf8(output.stdout).unwrap();
        assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            text.replace_range(start..end, &picture);
            fs::write(path("README.md"), &text).unwrap();
        } else {
            assert_eq!(&text[start..end], picture, "{options}");
        }
        from = start;
        pictures += 1;
    }
    assert!(pictures > 0 && text.matches("```text").count() == pictures);
}
