//! The losses as JUnit XML for CI systems: each domain is a test, and it fails if pods have no
//! node. What is not known is an error.

use std::fmt::Write;

use super::{LostDomain, SurviveReport};
use crate::report::cut::ended_after;
use crate::report::junit_version;
use crate::report::run::junit::escape;
use kubestep_api::words::count;

/// The losses as one test suite.
pub fn junit(report: &SurviveReport) -> String {
    let failures = report.domains.iter().filter(|domain| domain.fails()).count();
    let not_lost = report.not_lost();
    let cut = report.domains.iter().filter(|domain| domain.cut.is_some()).count();
    let errors = match cut + usize::from(not_lost.is_some()) {
        0 => String::new(),
        errors => format!(" errors=\"{errors}\""),
    };
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing into a String cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites>\n  <testsuite name=\"kubestep run --survive\" tests=\"{}\" \
         failures=\"{failures}\"{errors}>",
        report.domains.len() + usize::from(not_lost.is_some())
    );
    xml += &junit_version(report.gates);
    for domain in &report.domains {
        let (key, value) = (escape(&report.key), escape(&domain.value.text()));
        let _ = writeln!(xml, "    <testcase classname=\"{key}\" name=\"{value}\">");
        xml.push_str(&result(domain));
        xml.push_str("    </testcase>\n");
    }
    if let Some(why) = not_lost {
        let key = escape(&report.key);
        let _ = writeln!(
            xml,
            "    <testcase classname=\"{key}\" name=\"every domain\">\n{}    </testcase>",
            error(&why)
        );
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn error(why: &str) -> String {
    format!("      <error type=\"incomplete\" message=\"{}\"/>\n", escape(why))
}

fn result(domain: &LostDomain) -> String {
    if let Some(limit) = domain.cut {
        return error(&ended_after(limit));
    }
    if domain.unplaced.is_empty() {
        let placed = count(domain.placed(), "pod");
        return format!("      <system-out>{placed} placed again</system-out>\n");
    }
    let without = count(domain.unplaced.len(), "pod");
    let lines = domain.unplaced.iter().map(|unplaced| {
        format!("{}: {}", escape(&unplaced.describe()), escape(&unplaced.pending.reason))
    });
    let lines: Vec<String> = lines.collect();
    let text = lines.join("\n");
    format!(
        "      <failure type=\"pending\" message=\"{without} without a node\">{text}</failure>\n"
    )
}
