//! The difference of two histories as text: a summary, then for each pod what led to it.

use std::collections::BTreeSet;
use std::fmt::Write;

use indexmap::IndexMap;

use crate::report::cut::CutRuns;
use crate::report::upgrade::text::VersionCauses;
use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_config::ExtensionPoint;
use kubestep_debug::diff::{
    ComparedVerdict, DecisionDifference, Difference, Pair, PluginScore, PodChange, PodDifference,
    ScoreDifference, ScoreSource, VerdictDifference,
};
use kubestep_framework::record::Outcome;

/// Nodes that are listed in one line.
const NODES: usize = 4;
/// Names that are listed of all nodes that one side has, and of pods.
const NAMES: usize = 8;
/// Nodes with scores that are listed.
const SCORES: usize = 6;

/// The text of `diff`.
pub fn text(difference: &Difference, sides: &Pair<String>, cut: &CutRuns) -> String {
    let lines = cut.lines(Pair { a: "a", b: "b" }).into_iter();
    let lines: String = lines.map(|line| line + "\n").collect();
    whole(difference, sides, &format!("{difference}\n"), &lines)
}

/// The whole difference, with what a version causes between the summary and the pods. Where that is
/// all, its summary is the only one.
pub fn with_causes(
    difference: &Difference,
    sides: &Pair<String>,
    causes: &VersionCauses,
) -> String {
    let VersionCauses { summary, text, .. } = causes;
    match causes.explains_all {
        true => whole(difference, sides, summary, text),
        false => {
            whole(difference, sides, &format!("{difference}\n"), &format!("\n{summary}{text}"))
        }
    }
}

/// The whole difference, with `more` between the summary and the pods.
pub fn whole(difference: &Difference, sides: &Pair<String>, summary: &str, more: &str) -> String {
    let mut out = format!("a: {}\nb: {}\n{summary}", sides.a, sides.b);
    for (side, uncertain) in [("a", difference.uncertain.a), ("b", difference.uncertain.b)] {
        if uncertain > 0 {
            let decisions = count(uncertain, "decision");
            // Writing into a String cannot fail.
            let _ = writeln!(out, "{side}: opaque plugins could have changed {decisions}");
        }
    }
    out.push_str(&nodes_of_one_side(difference));
    out.push_str(more);
    let (quiet, telling): (Vec<_>, Vec<_>) =
        difference.pods.iter().partition(|pod| differs_only_on_other_nodes(pod));
    for pod in telling {
        out.push('\n');
        out.push_str(&pod_text(pod));
    }
    if !quiet.is_empty() {
        let names = quiet.iter().map(|pod| pod.pod.to_string());
        let (pods, have) =
            (count(quiet.len(), "pod"), if quiet.len() == 1 { "has" } else { "have" });
        let names = listed(names, NAMES);
        // Writing into a String cannot fail.
        let _ = writeln!(out, "\n{pods} {have} the same result; only those nodes differ: {names}");
    }
    out
}

/// `nodes on side b only: node-3, node-4`, for each side that has such.
fn nodes_of_one_side(difference: &Difference) -> String {
    let mut nodes: Pair<BTreeSet<Name>> = Pair::default();
    let decisions = difference.pods.iter().flat_map(|pod| &pod.decisions);
    for verdict in decisions.flat_map(|decision| &decision.verdicts) {
        let side = match verdict.side() {
            Some("a") => &mut nodes.a,
            Some(_) => &mut nodes.b,
            None => continue,
        };
        side.extend(&verdict.nodes);
    }
    let line = |(side, nodes): (&str, &BTreeSet<Name>)| match nodes.len() {
        0 => String::new(),
        number => {
            let names = listed(nodes.iter().map(Name::to_string), NAMES);
            format!("{} on side {side} only: {names}\n", count(number, "node"))
        }
    };
    line(("a", &nodes.a)) + &line(("b", &nodes.b))
}

/// Whether all that differs of a pod is what was said of nodes that one side does not have.
fn differs_only_on_other_nodes(pod: &PodDifference) -> bool {
    let quiet = |decision: &DecisionDifference| {
        let lines = decision_lines(decision, pod.change);
        let verdicts = decision.verdicts.iter().any(|verdict| verdict.side().is_some());
        verdicts && lines.len() == on_other_nodes(decision).len()
    };
    pod.change == PodChange::Reasons
        && !pod.end.differs()
        && !pod.attempts.differs()
        && pod.decisions.iter().all(quiet)
}

/// The first of some names, and how many more there are.
fn listed(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut names: Vec<String> = names.take(most).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

/// The difference of one pod.
pub fn pod_text(pod: &PodDifference) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
    let _ = match pod.end.differs() {
        true => writeln!(out, "{}: {} → {}", pod.pod, pod.end.a, pod.end.b),
        false => writeln!(out, "{}: {} on both sides", pod.pod, pod.end.a),
    };
    if pod.attempts.differs() {
        let _ = writeln!(out, "  attempts: {} → {}", pod.attempts.a, pod.attempts.b);
    }
    let Some(last) = pod.last() else { return out };
    if pod.decisions.len() > 1 {
        let others = pod.decisions.len() - 1;
        let _ = writeln!(out, "  attempt {} (and {others} before it):", last.attempt);
    }
    for line in decision_lines(last, pod.change) {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// The difference of one attempt, as lines.
pub fn decision_lines(decision: &DecisionDifference, change: PodChange) -> Vec<String> {
    let mut lines = Vec::new();
    let outcome = |outcome: Option<Outcome>| outcome.map_or("not made", Outcome::as_str);
    if decision.outcome.differs() {
        let [a, b] = [decision.outcome.a, decision.outcome.b].map(outcome);
        lines.push(format!("attempt {}: {a} → {b}", decision.attempt));
    }
    if decision.node.differs() && change != PodChange::Moved {
        let name = |node: Option<Name>| node.map_or("no node".to_owned(), |node| node.to_string());
        lines.push(format!("chosen: {} → {}", name(decision.node.a), name(decision.node.b)));
    }
    for (side, words) in [("a", &decision.interventions.a), ("b", &decision.interventions.b)] {
        lines.extend(words.iter().map(|word| format!("{side}: {word}")));
    }
    for (side, certainty) in [("a", &decision.certainty.a), ("b", &decision.certainty.b)] {
        let conditions = certainty.iter().flat_map(|certainty| certainty.conditions());
        lines.extend(conditions.map(|condition| format!("{side} is uncertain: holds {condition}")));
    }
    let telling = decision.verdicts.iter().filter(|one| !follows(one, decision));
    lines.extend(telling.map(verdict));
    lines.extend(on_other_nodes(decision));
    lines.extend(scores(&decision.scores));
    if decision.not_compared {
        lines.push("verdicts and scores were omitted from a record and are not compared".into());
    }
    lines
}

/// Whether a verdict differs only because of the outcome, its extension point was reached on one side
/// only, or because of the nodes that one side does not have.
fn follows(difference: &VerdictDifference, decision: &DecisionDifference) -> bool {
    let Pair { a, b } = &difference.verdict;
    if difference.side().is_some() {
        return true;
    }
    if difference.point == ExtensionPoint::Filter {
        return false;
    }
    let one_sided = *a == ComparedVerdict::None || *b == ComparedVerdict::None;
    let other_nodes = decision.verdicts.iter().any(|verdict| verdict.side().is_some());
    one_sided && decision.outcome.differs() || other_nodes && without_counts(a) == without_counts(b)
}

/// The words of a verdict without how many nodes they count.
fn without_counts(verdict: &ComparedVerdict) -> String {
    verdict.to_string().replace(|c: char| c.is_ascii_digit(), "")
}

/// What was said of the nodes that only one side has: a line for those with the same verdicts.
fn on_other_nodes(decision: &DecisionDifference) -> Vec<String> {
    let mut by_node: IndexMap<(&str, Name), Vec<String>> = IndexMap::new();
    for difference in &decision.verdicts {
        let Some(side) = difference.side() else { continue };
        let Pair { a, b } = &difference.verdict;
        for node in &difference.nodes {
            let said = by_node.entry((side, *node)).or_default();
            if let ComparedVerdict::Says(text) = if side == "a" { a } else { b } {
                said.push(format!("{}: {text}", difference.plugin));
            }
        }
    }
    let mut groups: IndexMap<(&str, String), Vec<String>> = IndexMap::new();
    for ((side, node), said) in by_node {
        let said = if said.is_empty() { "passes".to_owned() } else { said.join("; ") };
        groups.entry((side, said)).or_default().push(node.to_string());
    }
    let line = |((side, said), nodes): ((&str, String), Vec<String>)| {
        let number = count(nodes.len(), "node");
        format!("on {number} of side {side} only ({}): {said}", listed(nodes.into_iter(), NODES))
    };
    groups.into_iter().map(line).collect()
}

fn scores(scores: &[ScoreDifference]) -> Vec<String> {
    let on_both = |score: &&ScoreDifference| score.total.a.is_some() == score.total.b.is_some();
    let (both, one): (Vec<_>, Vec<_>) = scores.iter().partition(on_both);
    let mut lines: Vec<String> =
        both.iter().take(SCORES).flat_map(|score| score_lines(score)).collect();
    if let more @ 1.. = both.len().saturating_sub(SCORES) {
        lines.push(format!("… and the scores of {more} more nodes"));
    }
    lines.extend(["a", "b"].into_iter().filter_map(|side| scored_on_one_side(side, &one)));
    lines
}

/// `scored on side a only: b-0 468, c-0 400`.
fn scored_on_one_side(side: &str, scores: &[&ScoreDifference]) -> Option<String> {
    let total = |score: &&ScoreDifference| {
        let total = if side == "a" { score.total.a } else { score.total.b };
        total.map(|total| format!("{} {total}", score.node))
    };
    let totals: Vec<String> = scores.iter().filter_map(total).collect();
    let line = |names| format!("scored on side {side} only: {names}");
    (!totals.is_empty()).then(|| line(listed(totals.into_iter(), NODES)))
}

fn verdict(difference: &VerdictDifference) -> String {
    let VerdictDifference { point, plugin, verdict, nodes } = difference;
    let place = match point {
        ExtensionPoint::Filter => String::new(),
        point => format!(" at {point}"),
    };
    let names = listed(nodes.iter().map(ToString::to_string), NODES);
    let on = match nodes.len() {
        0 => String::new(),
        1 => format!(" on {names}"),
        count => format!(" on {count} nodes ({names})"),
    };
    format!("{plugin}{place}: {} → {}{on}", verdict.a, verdict.b)
}

fn score_lines(score: &ScoreDifference) -> Vec<String> {
    let mut lines = vec![format!("score of {}: {}", score.node, change(score.total))];
    lines.extend(score.plugins.iter().map(|plugin| format!("  {}", plugin_score(plugin))));
    lines
}

fn change(pair: Pair<Option<i64>>) -> String {
    let number =
        |number: Option<i64>| number.map_or("none".to_owned(), |number| number.to_string());
    format!("{} → {}", number(pair.a), number(pair.b))
}

fn plugin_score(score: &PluginScore) -> String {
    let from = match score.source() {
        ScoreSource::Presence => "scored on one side only".to_owned(),
        // The three numbers are the same: the plugin normalizes nothing and weighs one.
        ScoreSource::Raw if score.raw == score.normalized && score.weighted() == score.raw => {
            return format!("{} {}", score.plugin, change(score.raw));
        }
        ScoreSource::Raw => {
            format!("raw {}, normalized {}", change(score.raw), change(score.normalized))
        }
        ScoreSource::Normalized => {
            format!("normalized {}, by other nodes", change(score.normalized))
        }
        ScoreSource::Weight => format!("weight {}", change(score.weight)),
    };
    format!("{} {}: {from}", score.plugin, change(score.weighted()))
}
