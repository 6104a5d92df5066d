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

use kubestep::cli::EXITS;
use kubestep::fixtures::STORIES;
use kubestep::tui::action;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn readme() -> String {
    fs::read_to_string(path("README.md")).unwrap()
}

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
        let (_, agree) = row.unwrap_or(&category).trim_end_matches(" |").rsplit_once(' ').unwrap();
        let (passed, total) = agree.split_once('/').unwrap();
        let required = complete.contains(&format!("\"{category}\""));
        assert_eq!(passed == total, required, "{category}: {agree}");
    }
}

/// Every picture stands behind the command that draws it.
#[test]
fn pictures_are_drawn_by_the_program() {
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
