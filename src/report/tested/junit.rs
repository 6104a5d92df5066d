//! Test results as JUnit XML for CI systems.

use std::fmt::Write;

use super::{Outcome, TestReport};
use crate::report::run::junit::escape;

/// The results as one test suite.
pub fn junit(report: &TestReport) -> String {
    let [_, failed, broken] = report.counts();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"kubestep \
         test\" tests=\"{}\" failures=\"{failed}\" errors=\"{broken}\">\n",
        report.tests.len()
    );
    // Writing into a String cannot fail.
    for test in &report.tests {
        let (file, name) = (escape(&test.file), escape(&test.name));
        let _ = write!(xml, "    <testcase classname=\"{file}\" name=\"{name}\"");
        match &test.outcome {
            Outcome::Passed => xml.push_str("/>\n"),
            Outcome::Failed(failures) => {
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
            Outcome::Broken(problem) => {
                let problem = escape(problem);
                let _ = writeln!(xml, ">\n      <error message=\"{problem}\"/>\n    </testcase>");
            }
        }
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}
