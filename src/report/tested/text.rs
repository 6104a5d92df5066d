//! Test results as text.

use std::fmt::Write;

use super::{Outcome, TestReport};
use kubestep_api::words::count;

/// One line per test, its failures below it, and the counts.
pub fn text(report: &TestReport) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    for test in &report.tests {
        let word = match &test.outcome {
            Outcome::Passed => "ok",
            Outcome::Failed(_) => "FAILED",
            Outcome::Broken(_) => "ERROR",
        };
        let _ = writeln!(text, "{word:6}  {}  ({})", test.name, test.file);
        match &test.outcome {
            Outcome::Passed => {}
            Outcome::Failed(failures) => {
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
            Outcome::Broken(problem) => {
                for line in problem.lines() {
                    let _ = writeln!(text, "        {line}");
                }
            }
        }
        if !matches!(test.outcome, Outcome::Passed) {
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
