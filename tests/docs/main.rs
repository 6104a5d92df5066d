//! The documents match the program: the README, the book below `docs/src`, and the documents beside
//! the README.
//!
//! - Output, pictures of the screen and tables are printed by the program (`regions`).
//! - Links and anchors lead somewhere (`links`).
//! - Commands, options and actions that the text names exist (`names`).
//! - Statements about the corpus and about features hold (`statements`).
//!
//! `UPDATE_GOLDEN=1 cargo test --test docs` rewrites what the program prints.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

mod documents;
mod links;
mod names;
mod regions;
mod statements;
mod tables;

use documents::{Document, documents};

/// The largest README, in bytes.
const README_LIMIT: usize = 8192;

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

/// Fails with all violations at once.
fn report(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn what_is_printed_is_printed_by_the_program() {
    let mut violations = Vec::new();
    let mut used = Vec::new();
    for document in documents() {
        let made = regions::remake(&document, &mut used);
        if updating() && made != document.text {
            document.write(&made);
        } else if made != document.text {
            let difference = regions::first_difference(&document.text, &made);
            violations.push(format!("{}: {difference}", document.name));
        }
        violations.extend(regions::unmarked(&document));
    }
    for (name, _) in tables::TABLES.iter().filter(|(name, _)| !used.contains(name)) {
        violations.push(format!("no document has the table {name}"));
    }
    report(violations);
}

#[test]
fn pictures_are_those_of_the_program() {
    report(regions::pictures(&documents()));
}

#[test]
fn links_lead_somewhere() {
    report(links::violations(&documents()));
}

#[test]
fn the_contents_name_every_page() {
    report(links::missing_in_the_contents(&documents()));
}

#[test]
fn commands_and_options_exist() {
    report(names::violations(&documents()));
}

#[test]
fn the_features_name_what_exists() {
    report(statements::features(&documents()));
}

#[test]
fn the_categories_of_the_corpus_agree_as_stated() {
    report(statements::categories(&documents()));
}

#[test]
fn the_readme_is_short() {
    let documents = documents();
    let readme = Document::find(&documents, "README.md");
    assert!(readme.text.len() <= README_LIMIT, "{} bytes", readme.text.len());
}

/// Ids of the behaviour reference, such as three letters, a hyphen and three digits, mean nothing to
/// a reader of the documents.
#[test]
fn no_document_names_an_id_of_the_behaviour_reference() {
    let is_id = |word: &str| {
        word.split_once('-').is_some_and(|(letters, digits)| {
            (1..=8).contains(&letters.len())
                && letters.bytes().all(|byte| byte.is_ascii_uppercase())
                && digits.len() == 3
                && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut violations = Vec::new();
    for document in documents() {
        let words = document.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        violations.extend(words.filter(|w| is_id(w)).map(|id| format!("{}: {id}", document.name)));
    }
    report(violations);
}
