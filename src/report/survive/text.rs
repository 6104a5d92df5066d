//! The losses as text for people.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::{LostDomain, SurviveReport, UnplacedPod};
use crate::report::disruption::violation_words;
use kubestep_api::words::count;

/// A table of the domains; then for each that is not survived the pods without a node, and why.
pub fn text(report: &SurviveReport) -> String {
    let mut text = table(report);
    for domain in &report.domains {
        text.push_str(&details(report, domain));
    }
    let failed = report.domains.iter().filter(|domain| !domain.unplaced.is_empty()).count();
    let tried = report.domains.len();
    // Writing into a String cannot fail.
    let _ = match failed {
        0 => writeln!(
            text,
            "\nevery pod that a controller recreates has a node, whichever of {tried} is lost"
        ),
        n => writeln!(text, "\nlosing {n} of {tried} leaves pods without a node"),
    };
    if tried < report.of {
        let _ = writeln!(text, "stopped after {tried} of {}", count(report.of, "domain"));
    }
    if !report.pending_before.is_empty() {
        let _ = writeln!(
            text,
            "{} pending with every node there, and not counted",
            count(report.pending_before.len(), "pod")
        );
    }
    text
}

fn table(report: &SurviveReport) -> String {
    let head =
        [report.key.as_str(), "nodes", "pods lost", "placed", "without a node", "no controller"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(report.domains.iter().map(|domain| {
        let numbers = [
            domain.nodes,
            domain.disruption.left.len(),
            domain.placed(),
            domain.unplaced.len(),
            domain.not_recreated().count(),
        ];
        let [nodes, lost, placed, unplaced, gone] = numbers.map(|number| number.to_string());
        [domain.value.to_string(), nodes, lost, placed, unplaced, gone]
    }));
    let widths: Vec<usize> =
        (0..6).map(|at| rows.iter().map(|row| row[at].width()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = format!("{:<width$}", row[0], width = widths[0]);
        for at in 1..6 {
            let _ = write!(line, "   {:>width$}", row[at], width = widths[at]);
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn details(report: &SurviveReport, domain: &LostDomain) -> String {
    let mut text = String::new();
    let violations = &domain.disruption.violations;
    if domain.unplaced.is_empty() && violations.is_empty() {
        return text;
    }
    let _ = writeln!(text, "\nwithout {}={}:", report.key, domain.value);
    for unplaced in &domain.unplaced {
        let _ = writeln!(text, "  {}\n      {}", unplaced.describe(), unplaced.pending.reason);
    }
    for violation in violations {
        let _ = writeln!(text, "  {}", violation_words(violation));
    }
    text
}

impl UnplacedPod {
    /// `shop/web-7 (for shop/web-1, lost from node-a) pending`.
    pub fn describe(&self) -> String {
        let pod = self.pending.pod;
        match &self.replaces {
            Some(old) if old.pod == pod => {
                format!("{pod} ({} from {}) pending", old.cause.as_str(), old.node)
            }
            Some(old) => {
                format!("{pod} (for {}, {} from {}) pending", old.pod, old.cause.as_str(), old.node)
            }
            None => format!("{pod} pending"),
        }
    }
}
