//! The losses as text for people.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::{LostDomain, SurviveReport, UnplacedPod};
use crate::report::cut::ended_after;
use crate::report::disruption::describe_violation;
use crate::report::pending::PendingGroup;
use kubestep_api::words::count;

/// The answer first, then the table and the details: for a window, which may not show all.
pub fn answer_first(report: &SurviveReport) -> String {
    let notices: String = report.notices.iter().map(|notice| notice.clone() + "\n").collect();
    // A window keeps the columns of indented rows.
    let rows: String = table(report).lines().map(|row| format!("  {row}\n")).collect();
    notices + &conclusion(report) + "\n" + &rows + &all_details(report)
}

/// A table of the domains; then for each that is not survived the pods without a node, and why.
pub fn text(report: &SurviveReport) -> String {
    table(report) + &all_details(report) + "\n" + &conclusion(report)
}

fn all_details(report: &SurviveReport) -> String {
    report.domains.iter().map(|domain| details(report, domain)).collect()
}

/// The answer, and what it does not cover.
fn conclusion(report: &SurviveReport) -> String {
    let mut text = answer(report);
    text.extend(report.not_lost().map(|why| why + "\n"));
    // Writing into a String cannot fail.
    if !report.pending_before.is_empty() && report.cut_before.is_none() {
        let _ = writeln!(
            text,
            "{} already pending before the loss, not counted",
            count(report.pending_before.len(), "pod")
        );
    }
    text
}

/// What is known of the domains that were lost.
fn answer(report: &SurviveReport) -> String {
    let tried = report.domains.len();
    let cut = report.domains.iter().filter(|domain| domain.cut.is_some()).count();
    let failed = report.domains.iter().filter(|domain| domain.fails()).count();
    let known = match (failed, tried - cut) {
        (_, 0) => String::new(),
        (0, known) if cut > 0 => {
            format!("losing {known} of {tried} leaves no pod without a node\n")
        }
        (0, _) if report.domains.iter().all(|domain| domain.placed() == 0) => {
            nothing_recreated(report)
        }
        (0, 1) if report.of == 1 => {
            format!("without {}, every pod that a controller recreates has a node\n", only(report))
        }
        (0, known) => format!(
            "every pod that a controller recreates has a node, whichever of {known} is lost\n"
        ),
        (1, 1) if report.of == 1 => {
            format!("losing {} leaves pods without a node\n", only(report))
        }
        (failed, known) => format!("losing {failed} of {known} leaves pods without a node\n"),
    };
    let not_known = match cut {
        0 => String::new(),
        cut => format!("not known for {cut} of {tried}: --max-cycles ended the run\n"),
    };
    known + &not_known
}

/// The answer if none of the lost pods is recreated.
fn nothing_recreated(report: &SurviveReport) -> String {
    let lost = report.domains.iter().map(|domain| domain.disruption.left.len()).max();
    match lost.unwrap_or(0) {
        0 => "no pod is lost\n".to_owned(),
        most if report.of == 1 => {
            format!("losing {} loses {}; none is recreated\n", only(report), count(most, "pod"))
        }
        most => format!("no lost pod is recreated; at most {} lost at once\n", count(most, "pod")),
    }
}

/// The only domain.
fn only(report: &SurviveReport) -> String {
    report.domains.first().map(|domain| report.describe(domain)).unwrap_or_default()
}

/// The head has the key without its prefix; the details have the whole key.
fn table(report: &SurviveReport) -> String {
    let key = report.key.rsplit('/').next().unwrap_or_default();
    let head = [key, "nodes", "pods lost", "placed", "without a node", "not recreated"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(report.domains.iter().map(|domain| {
        let numbers = [
            domain.nodes,
            domain.disruption.left.len(),
            domain.placed(),
            domain.unplaced.len(),
            domain.not_recreated(),
        ];
        let [nodes, lost, placed, unplaced, deleted] = numbers.map(|number| number.to_string());
        [domain.value.to_string(), nodes, lost, placed, unplaced, deleted]
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
    let _ = writeln!(text, "\nwithout {}:", report.describe(domain));
    if let Some(limit) = domain.cut {
        let (ended, pods) = (ended_after(limit), count(domain.unplaced.len(), "pod"));
        let _ = writeln!(text, "  {ended}: not known for {pods} without a node so far");
    }
    for group in domain.groups.iter().filter(|_| domain.cut.is_none()) {
        text.push_str(&unplaced(domain, group));
    }
    for violation in violations {
        let _ = writeln!(text, "  {}", describe_violation(violation));
    }
    text
}

/// Equal pods, a line each, and why they have no node.
fn unplaced(domain: &LostDomain, group: &PendingGroup) -> String {
    let pods: Vec<&UnplacedPod> =
        group.pods.iter().filter_map(|at| domain.unplaced.get(*at)).collect();
    let reasons = pods.first().map(|first| group.reasons(&first.pending)).unwrap_or_default();
    let pods = pods.iter().map(|pod| format!("  {}\n", pod.describe()));
    pods.chain(reasons.iter().map(|reason| format!("      {reason}\n"))).collect()
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
