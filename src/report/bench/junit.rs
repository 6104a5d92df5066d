//! The workloads as JUnit XML for CI systems: each is a test, and it fails if a threshold is missed.

use std::fmt::Write;

use super::{BenchReport, WorkloadOutcome, WorkloadVerdict, describe_missed, text};
use crate::report::run::junit::escape;

/// The workloads as one test suite.
pub fn junit(report: &BenchReport<'_>) -> String {
    let [_, missed, broken] = report.counts();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"kubestep \
         bench\" tests=\"{}\" failures=\"{missed}\" errors=\"{broken}\">\n",
        report.workloads.len()
    );
    report.workloads.iter().for_each(|outcome| case(outcome, &mut xml));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(outcome: &WorkloadOutcome<'_>, xml: &mut String) {
    let (file, name) = (escape(&outcome.chosen.file()), escape(&outcome.chosen.name()));
    let seconds: f64 = outcome.sides.iter().map(|side| side.wall_seconds).sum();
    // Writing into a String cannot fail.
    let _ =
        writeln!(xml, "    <testcase classname=\"{file}\" name=\"{name}\" time=\"{seconds:.3}\">");
    for side in &outcome.sides {
        if let Err(problem) = &side.result {
            let _ = writeln!(xml, "      <error message=\"{}\"/>", escape(problem));
        }
        for check in side.missed() {
            let message = escape(&describe_missed(check));
            let _ = writeln!(xml, "      <failure type=\"threshold\" message=\"{message}\"/>");
        }
    }
    if outcome.verdict() == WorkloadVerdict::Passed {
        let lines = escape(&text::lines(outcome));
        let _ = writeln!(xml, "      <system-out>{lines}</system-out>");
    }
    xml.push_str("    </testcase>\n");
}
