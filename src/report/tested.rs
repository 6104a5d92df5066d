//! The results of `kubestep test`. One type, as text, JSON and JUnit XML.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::report::add_version;
use crate::report::run::junit::escape;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_debug::expect::UnmetExpectation;

/// The results of several tests.
#[derive(Clone, Debug, Default)]
pub struct TestReport {
    /// The tests, in the order they were run.
    pub tests: Vec<Tested>,
}

/// A test that was run.
#[derive(Clone, Debug)]
pub struct Tested {
    /// Path of the test.
    pub file: String,
    /// Name of the test, or of its file.
    pub name: String,
    pub outcome: TestOutcome,
    /// The version and the feature gates that decided, unless it could not be run.
    pub gates: Option<FeatureGates>,
    /// Notices about its input, one sentence each.
    pub notices: Vec<String>,
}

/// The result of a test.
#[derive(Clone, Debug)]
pub enum TestOutcome {
    /// All expectations are met.
    Passed,
    /// These expectations are not met.
    Failed(Vec<UnmetExpectation>),
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
                TestOutcome::Passed => *passed += 1,
                TestOutcome::Failed(_) => *failed += 1,
                TestOutcome::Broken(_) => *broken += 1,
            }
        }
        counts
    }
}

/// One line per test, its failures below it, and the counts.
pub fn text(report: &TestReport) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    for test in &report.tests {
        let word = match &test.outcome {
            TestOutcome::Passed => "ok",
            TestOutcome::Failed(_) => "FAILED",
            TestOutcome::Broken(_) => "ERROR",
        };
        let version = test.gates.and_then(FeatureGates::other_version);
        let version = version.map(|version| format!(", {version}")).unwrap_or_default();
        let _ = writeln!(text, "{word:6}  {}  ({}{version})", test.name, test.file);
        match &test.outcome {
            TestOutcome::Passed => {}
            TestOutcome::Failed(failures) => {
                for failure in failures {
                    let _ = writeln!(text, "        {}", failure.about);
                    let mut line = |what: &str, words: &str| {
                        let _ = writeln!(text, "          {what:9} {words}");
                    };
                    line("expected", &failure.expected);
                    line("found", &failure.found);
                    if !failure.why.is_empty() {
                        line("why", &failure.why);
                    }
                }
            }
            TestOutcome::Broken(problem) => {
                for line in problem.lines() {
                    let _ = writeln!(text, "        {line}");
                }
            }
        }
        if !matches!(test.outcome, TestOutcome::Passed) {
            test.notices.iter().for_each(|notice| {
                let _ = writeln!(text, "        note: {notice}");
            });
        }
    }
    let [passed, failed, broken] = report.counts();
    let _ = writeln!(
        text,
        "\n{}: {passed} passed, {failed} failed, {broken} could not be run",
        count(report.tests.len(), "test")
    );
    text
}

/// The whole report as JSON, by `schema/test.v1.json`.
pub fn json(report: &TestReport) -> Value {
    let [passed, failed, broken] = report.counts();
    json!({
        "schema": "kubestep/test/v1",
        "passed": passed,
        "failed": failed,
        "errors": broken,
        "tests": report.tests.iter().map(test).collect::<Vec<_>>(),
    })
}

fn test(test: &Tested) -> Value {
    let (result, failures, error) = match &test.outcome {
        TestOutcome::Passed => ("passed", &[][..], None),
        TestOutcome::Failed(failures) => ("failed", &failures[..], None),
        TestOutcome::Broken(problem) => ("error", &[][..], Some(problem)),
    };
    let mut value = json!({
        "name": test.name,
        "file": test.file,
        "result": result,
        "failures": failures,
        "error": error,
        "notices": test.notices,
    });
    if let Some(gates) = test.gates {
        add_version(&mut value, gates);
    }
    value
}

/// The results as one test suite of JUnit, for CI systems.
pub fn junit(report: &TestReport) -> String {
    let [_, failed, broken] = report.counts();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"kubestep \
         test\" tests=\"{}\" failures=\"{failed}\" errors=\"{broken}\">\n",
        report.tests.len()
    );
    // Writing into a String cannot fail.
    for test in &report.tests {
        // Tests of one suite may have different versions.
        let version = test.gates.and_then(FeatureGates::other_version);
        let version = version.map(|version| format!(" ({version})")).unwrap_or_default();
        let (file, name) = (escape(&test.file), escape(&format!("{}{version}", test.name)));
        let _ = write!(xml, "    <testcase classname=\"{file}\" name=\"{name}\"");
        match &test.outcome {
            TestOutcome::Passed => xml.push_str("/>\n"),
            TestOutcome::Failed(failures) => {
                xml.push_str(">\n");
                for failure in failures {
                    let message = format!(
                        "{}: expected {}, found {}",
                        failure.about, failure.expected, failure.found
                    );
                    let (message, why) = (escape(&message), escape(&failure.why));
                    let _ = writeln!(
                        xml,
                        "      <failure type=\"expectation\" message=\"{message}\">{why}</failure>"
                    );
                }
                xml.push_str("    </testcase>\n");
            }
            TestOutcome::Broken(problem) => {
                let problem = escape(problem);
                let _ = writeln!(xml, ">\n      <error message=\"{problem}\"/>\n    </testcase>");
            }
        }
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}
