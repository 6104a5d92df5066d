//! A run as JUnit XML for CI systems: each pod is a test, and a pending one is a failure. Each node
//! of a drain and each rollout is a test, too, and fails if it cannot be completed.

use std::fmt::Write;

use super::RunReport;
use crate::report::disruption::describe_blocked;
use crate::report::junit_version;
use crate::report::outcome::conditions;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::certainty::Certainty;

/// The run as one test suite.
pub fn run(report: &RunReport) -> String {
    let disruptions = disruptions(report);
    let failed = disruptions.iter().filter(|disruption| disruption.failure.is_some()).count();
    let tests = report.placed.len() + report.pending.len() + disruptions.len();
    let failures = report.pending.len() + failed;
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing into a String cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites>\n  <testsuite name=\"kubestep run\" tests=\"{tests}\" failures=\"{failures}\">"
    );
    xml += &junit_version(report.gates);
    for entry in &report.placed {
        let node = escape(&entry.node.text());
        let case = case(&entry.pod);
        let uncertain = uncertain(entry.certainty.as_deref());
        let _ = writeln!(xml, "    {case}>\n      <system-out>on {node}{uncertain}</system-out>");
        xml.push_str("    </testcase>\n");
    }
    for entry in &report.pending {
        let (case, reason) = (case(&entry.pod), escape(&entry.reason));
        let kind = escape(entry.place.as_str());
        let uncertain = uncertain(entry.certainty.as_deref());
        let _ = writeln!(xml, "    {case}>");
        let failure = format!("<failure type=\"{kind}\" message=\"{reason}{uncertain}\"/>");
        let _ = writeln!(xml, "      {failure}");
        xml.push_str("    </testcase>\n");
    }
    disruptions.iter().for_each(|disruption| xml.push_str(&disruption.xml()));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The conditions under which an uncertain decision stands, behind another text.
fn uncertain(certainty: Option<&Certainty>) -> String {
    conditions(certainty)
        .map(|text| escape(&format!("\nuncertain: holds {text}")))
        .unwrap_or_default()
}

/// A node of a drain, or a rollout.
struct Disruption {
    class: &'static str,
    name: String,
    /// Why it is not complete.
    failure: Option<String>,
}

fn disruptions(report: &RunReport) -> Vec<Disruption> {
    let Some(disruption) = &report.disruption else { return Vec::new() };
    let drained = disruption.drained.iter().map(|drained| {
        let blocked = disruption.blocked.iter().filter(|blocked| blocked.node == drained.node);
        let lines: Vec<String> = blocked.map(describe_blocked).collect();
        let waits = || format!("node {} waits for the drains before it", drained.node);
        let why = || if lines.is_empty() { waits() } else { lines.join("\n") };
        let failure = drained.done.is_none().then(why);
        Disruption { class: "drain", name: drained.node.to_string(), failure }
    });
    let rollouts = disruption.rollouts.iter().map(|rollout| {
        let failure = rollout.is_open().then(|| rollout.outcome());
        Disruption { class: "rollout", name: rollout.workload.clone(), failure }
    });
    drained.chain(rollouts).collect()
}

impl Disruption {
    fn xml(&self) -> String {
        let (class, name) = (self.class, escape(&self.name));
        let result = match &self.failure {
            None => "<system-out>complete</system-out>".to_owned(),
            Some(why) => format!("<failure type=\"incomplete\" message=\"{}\"/>", escape(why)),
        };
        let case = format!("<testcase classname=\"{class}\" name=\"{name}\">");
        format!("    {case}\n      {result}\n    </testcase>\n")
    }
}

fn case(pod: &NamespacedName) -> String {
    format!(
        "<testcase classname=\"{}\" name=\"{}\"",
        escape(&pod.namespace),
        escape(&pod.name.text())
    )
}

/// Escapes text for an attribute or an element. Characters that XML does not allow are replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_attribute() {
        assert_eq!(escape("<a & \"b\">\n\u{1b}"), "&lt;a &amp; &quot;b&quot;&gt;&#10;\u{fffd}");
    }
}
