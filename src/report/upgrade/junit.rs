//! The report on an upgrade as JUnit XML: each pod is a test, and so is each thing that is rejected;
//! what differs is a failure. A run that was ended is an error, and pods that were the same until
//! then are skipped.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::UpgradeReport;
use super::text::{describe_cause, describe_pod};
use crate::report::run::junit::escape;
use kubestep_framework::pod::NamespacedName;

/// The report as one test suite.
pub fn document(report: &UpgradeReport) -> String {
    let mut failing: BTreeMap<NamespacedName, Vec<String>> = BTreeMap::new();
    let upgrade = report.upgrade.as_ref();
    for pod in upgrade.iter().flat_map(|upgrade| &upgrade.pods) {
        let text = format!("{}, because of {}", describe_pod(pod), describe_cause(&pod.cause));
        failing.entry(pod.pod).or_default().push(text);
    }
    let mut cases = String::new();
    for rejected in &report.rejected {
        let kind = rejected.kind;
        let result = failure(kind.as_str(), &rejected.reason);
        cases.push_str(&case(kind.describe(), &rejected.subject, &result));
    }
    for (pod, texts) in &failing {
        cases.push_str(&case(
            &pod.namespace,
            &pod.name.text(),
            &failure("differs", &texts.join("\n")),
        ));
    }
    let ended = report.ended();
    for line in &ended {
        let error = format!("<error type=\"incomplete\" message=\"{}\"/>", escape(line));
        cases.push_str(&case("kubestep upgrade", "complete runs", &error));
    }
    let same = upgrade.map_or(&[][..], |upgrade| &upgrade.same);
    let of_same = if ended.is_empty() { "" } else { "<skipped message=\"not known\"/>" };
    cases.extend(same.iter().map(|pod| case(&pod.namespace, &pod.name.text(), of_same)));
    let failures = failing.len() + report.rejected.len();
    let tests = failures + ended.len() + same.len();
    let others = match ended.len() {
        0 => String::new(),
        errors => format!(" errors=\"{errors}\" skipped=\"{}\"", same.len()),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"kubestep \
         upgrade\" tests=\"{tests}\" failures=\"{failures}\"{others}>\n{cases}  </testsuite>\n\
         </testsuites>\n"
    )
}

fn failure(kind: &str, text: &str) -> String {
    format!("<failure type=\"{kind}\" message=\"{}\"/>", escape(text))
}

/// A test with its result as an element; none: it passed.
fn case(class: &str, name: &str, result: &str) -> String {
    let mut xml =
        format!("    <testcase classname=\"{}\" name=\"{}\"", escape(class), escape(name));
    // Writing into a String cannot fail.
    let _ = match result {
        "" => writeln!(xml, "/>"),
        result => writeln!(xml, ">\n      {result}\n    </testcase>"),
    };
    xml
}
