//! The report on an upgrade as JUnit XML: each pod is a test, and so is each thing that is refused;
//! what differs is a failure.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::UpgradeReport;
use super::text::{cause_words, pod_words};
use crate::report::run::junit::escape;
use kubestep_framework::pod::NamespacedName;

/// The report as one test suite.
pub fn document(report: &UpgradeReport) -> String {
    let mut failing: BTreeMap<NamespacedName, Vec<String>> = BTreeMap::new();
    let upgrade = report.upgrade.as_ref();
    for pod in upgrade.iter().flat_map(|upgrade| &upgrade.pods) {
        let text = format!("{}, because of {}", pod_words(pod), cause_words(&pod.cause));
        failing.entry(pod.pod).or_default().push(text);
    }
    let same = upgrade.map_or(&[][..], |upgrade| &upgrade.same);
    let failures = failing.len() + report.refused.len();
    let tests = failures + same.len();
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing into a String cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites>\n  <testsuite name=\"kubestep upgrade\" tests=\"{tests}\" failures=\"{failures}\">"
    );
    for refused in &report.refused {
        let kind = refused.kind;
        case(&mut xml, kind.describe(), &refused.subject, Some((kind.as_str(), &refused.reason)));
    }
    for (pod, texts) in &failing {
        case(&mut xml, &pod.namespace, &pod.name, Some(("differs", &texts.join("\n"))));
    }
    for pod in same {
        case(&mut xml, &pod.namespace, &pod.name, None);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn case(xml: &mut String, class: &str, name: &str, failure: Option<(&str, &str)>) {
    let (class, name) = (escape(class), escape(name));
    let _ = write!(xml, "    <testcase classname=\"{class}\" name=\"{name}\"");
    let _ = match failure {
        None => writeln!(xml, "/>"),
        Some((kind, text)) => {
            let text = escape(text);
            writeln!(xml, ">\n      <failure type=\"{kind}\" message=\"{text}\"/>\n    </testcase>")
        }
    };
}
