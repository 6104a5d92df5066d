//! Checks the answers of `explain --fix` on clusters with planted causes: the reported causes and
//! figures are the planted ones, a fix is found where one exists, all fixes work when independent
//! code applies them, and no single change is smaller than the first fix.
//!
//! `KUBESTEP_ANSWERS_SEEDS=10 KUBESTEP_ANSWERS_CLUSTERS=5 cargo test --test answers` checks more
//! clusters; `KUBESTEP_ANSWERS_FIRST_SEED` sets the first seed, and `KUBESTEP_ANSWERS_ONLY` selects
//! the categories whose names contain a text. Wrong answers are written to the temporary folder
//! `kubestep-answers`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

mod apply;
mod brute;
mod categories;
mod change;
mod cluster;
mod controllers;
mod measure;
mod program;
mod quantity;
#[path = "../fuzz/random.rs"]
mod random;
mod report;
mod size;
mod truth;

use rayon::prelude::*;

use categories::{CATEGORIES, Category};
use measure::{Examined, Measure};
use random::Random;
use report::Outcome;

fn variable(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}: no number: {text}")))
}

/// The categories that `KUBESTEP_ANSWERS_ONLY` names, or all.
fn chosen() -> Vec<&'static Category> {
    let only = std::env::var("KUBESTEP_ANSWERS_ONLY").unwrap_or_default();
    let chosen: Vec<_> = CATEGORIES
        .iter()
        .flat_map(|group| group.iter())
        .filter(|category| category.name.contains(&only))
        .collect();
    assert!(!chosen.is_empty(), "no category's name contains {only:?}");
    chosen
}

/// One case, the faults of its answer, and their description.
fn examine(category: &Category, seed: u64, number: usize) -> (Outcome, String) {
    let name =
        category.name.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
    let mut random = Random::new(seed.wrapping_mul(1_000_003) ^ name ^ ((number as u64) << 40));
    let case = (category.build)(&mut random);
    let examined = Examined::new(&case);
    let faults = match examined.explained() {
        Ok(explained) => examined.faults(&explained),
        Err(error) => Measure::ALL.map(|measure| (measure, error.clone())).into(),
    };
    let outcome = Outcome { category: category.name, seed, number, faults };
    if outcome.faults.is_empty() {
        return (outcome, String::new());
    }
    let settings = (case.config.as_deref(), case.gates);
    let text = report::write(&outcome, &case.asked(), settings, examined.documents());
    (outcome, text)
}

#[test]
fn answers_are_true() {
    let first = variable("KUBESTEP_ANSWERS_FIRST_SEED", 1);
    let seeds = variable("KUBESTEP_ANSWERS_SEEDS", 1);
    let clusters = variable("KUBESTEP_ANSWERS_CLUSTERS", 1) as usize;
    let of_seed = |category| {
        (first..first + seeds)
            .flat_map(move |seed| (0..clusters).map(move |number| (category, seed, number)))
    };
    let cases: Vec<_> = chosen().into_iter().flat_map(of_seed).collect();
    assert!(!cases.is_empty(), "no seeds or clusters were chosen");
    let examined: Vec<(Outcome, String)> = cases
        .into_par_iter()
        .map(|(category, seed, number)| examine(category, seed, number))
        .collect();
    let (outcomes, texts): (Vec<Outcome>, Vec<String>) = examined.into_iter().unzip();
    let table = report::table(&outcomes);
    println!("{}\n{}", texts.concat(), report::text(&table));
    let wrong = report::wrong(&table);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The command in a separate process, with the documents in a file, gives the same answer.
#[test]
fn the_command_answers_the_same() {
    for name in ["cpu_taken", "claim_no_volume", "gang_quorum"] {
        let mut all = CATEGORIES.iter().flat_map(|group| group.iter());
        let category = all.find(|category| category.name == name).unwrap();
        let case = (category.build)(&mut Random::new(7));
        let examined = Examined::new(&case);
        let explained = examined.explained().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cluster.json");
        std::fs::write(&file, program::list(examined.documents()).to_string()).unwrap();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kubestep"));
        command.args(["explain", &case.asked(), "--fix", "-o", "json", "-f"]).arg(&file);
        if !case.gates.is_empty() {
            command.args(["--feature-gates", case.gates]);
        }
        let printed = command.output().unwrap().stdout;
        let printed: serde_json::Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(printed, explained, "{name}");
    }
}

#[test]
fn names_of_categories_are_unique() {
    let mut names: Vec<&str> =
        CATEGORIES.iter().flat_map(|group| group.iter()).map(|c| c.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count >= 110, "{count} categories");
}
