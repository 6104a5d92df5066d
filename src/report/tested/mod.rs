//! The results of `kubestep test`. One type, and one file per output format.

pub mod json;
pub mod junit;
pub mod text;

use kubestep_debug::expect::Failure;

/// The results of several tests.
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
    /// Its name.
    pub name: String,
    /// Its result.
    pub outcome: Outcome,
    /// Notices about its input, one sentence each.
    pub notices: Vec<String>,
}

/// The result of a test.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All expectations are met.
    Passed,
    /// These expectations are not met.
    Failed(Vec<Failure>),
    /// It could not be run, for this reason.
    Broken(String),
}

impl TestReport {
    /// The numbers of tests that passed, failed, and could not be run.
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
