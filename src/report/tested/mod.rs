//! What tests of a scheduler came to. One shape, and one file for each format it is printed in.

pub mod json;
pub mod junit;
pub mod text;

use kubestep_debug::expect::Failure;

/// The outcome of several tests.
#[derive(Clone, Debug, Default)]
pub struct TestReport {
    /// The tests, in the order they were run.
    pub tests: Vec<Tested>,
}

/// A test that was run.
#[derive(Clone, Debug)]
pub struct Tested {
    /// Its file.
    pub file: String,
    /// What it is called.
    pub name: String,
    /// What it came to.
    pub outcome: Outcome,
    /// What a reader should know about its input, one sentence each.
    pub notices: Vec<String>,
}

/// What a test came to.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All is as expected.
    Passed,
    /// These expectations do not hold.
    Failed(Vec<Failure>),
    /// It could not be run, and why.
    Broken(String),
}

impl TestReport {
    /// How many passed, failed, and could not be run.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for test in &self.tests {
            let [passed, failed, broken] = &mut counts;
            match test.outcome {
                Outcome::Passed => *passed += 1,
                Outcome::Failed(_) => *failed += 1,
                Outcome::Broken(_) => *broken += 1,
            }
        }
        counts
    }
}
