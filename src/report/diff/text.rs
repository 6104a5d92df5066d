//! The difference of two histories as text: a summary, then for each pod what led to it.

use std::fmt::Write;

use kubestep_config::ExtensionPoint;
use kubestep_debug::diff::{
    Change, Decision, Difference, Pair, PluginScore, PodDifference, ScoreDifference, Source,
    Verdict, VerdictDifference,
};
use kubestep_framework::record::Outcome;

/// Nodes that are listed in one line.
const NODES: usize = 4;
/// Nodes with scores that are listed.
const SCORES: usize = 6;

/// The whole difference.
pub fn text(difference: &Difference, sides: &Pair<String>) -> String {
    with_causes(difference, sides, "")
}

/// The whole difference, with `causes` between the summary and the pods.
pub fn with_causes(difference: &Difference, sides: &Pair<String>, causes: &str) -> String {
    let mut out = format!("a: {}\nb: {}\n{difference}\n{causes}", sides.a, sides.b);
    for pod in &difference.pods {
        out.push('\n');
        out.push_str(&pod_text(pod));
    }
    out
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
pub fn decision_lines(decision: &Decision, change: Change) -> Vec<String> {
    let mut lines = Vec::new();
    let outcome = |outcome: Option<Outcome>| outcome.map_or("not tried", Outcome::as_str);
    if decision.outcome.differs() {
        lines.push(format!("{} → {}", outcome(decision.outcome.a), outcome(decision.outcome.b)));
    }
    if decision.node.differs() && change != Change::Moved {
        let name = |node: Option<kubestep_api::intern::Symbol>| {
            node.map_or("no node".to_owned(), |node| node.to_string())
        };
        lines.push(format!("chosen: {} → {}", name(decision.node.a), name(decision.node.b)));
    }
    for (side, words) in [("a", &decision.interventions.a), ("b", &decision.interventions.b)] {
        lines.extend(words.iter().map(|word| format!("{side}: {word}")));
    }
    let telling = decision.verdicts.iter().filter(|one| !follows(one, decision));
    lines.extend(telling.map(verdict));
    lines.extend(scores(&decision.scores));
    if decision.not_compared {
        lines.push("verdicts and scores were omitted from a record and are not compared".into());
    }
    lines
}

/// Whether a verdict differs only because of the outcome: its extension point was reached on one
/// side only.
fn follows(difference: &VerdictDifference, decision: &Decision) -> bool {
    let Pair { a, b } = &difference.verdict;
    let one_sided = *a == Verdict::None || *b == Verdict::None;
    one_sided && difference.point != ExtensionPoint::Filter && decision.outcome.differs()
}

fn scores(scores: &[ScoreDifference]) -> Vec<String> {
    let only = |side: &str| vec![format!("nodes were scored on side {side} only")];
    match scores {
        [] => Vec::new(),
        scores if scores.iter().all(|score| score.total.a.is_none()) => only("b"),
        scores if scores.iter().all(|score| score.total.b.is_none()) => only("a"),
        scores => {
            let mut lines: Vec<String> = scores.iter().take(SCORES).flat_map(score_lines).collect();
            if scores.len() > SCORES {
                lines.push(format!("… and the scores of {} more nodes", scores.len() - SCORES));
            }
            lines
        }
    }
}

fn verdict(difference: &VerdictDifference) -> String {
    let VerdictDifference { point, plugin, verdict, nodes } = difference;
    let place = match point {
        ExtensionPoint::Filter => String::new(),
        point => format!(" at {point}"),
    };
    let more = nodes.len().saturating_sub(NODES);
    let mut names: Vec<String> = nodes.iter().take(NODES).map(ToString::to_string).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let on = match nodes.len() {
        0 => String::new(),
        1 => format!(" on {}", names.join(", ")),
        count => format!(" on {count} nodes ({})", names.join(", ")),
    };
    format!("{plugin}{place}: {} → {}{on}", verdict.a, verdict.b)
}

fn score_lines(score: &ScoreDifference) -> Vec<String> {
    if let Some((side, total)) =
        score.total.a.map(|a| ("a", a)).xor(score.total.b.map(|b| ("b", b)))
    {
        return vec![format!("{} was scored on side {side} only: {total}", score.node)];
    }
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
        Source::Presence => "scored on one side only".to_owned(),
        Source::Raw => {
            format!("raw {}, normalized {}", change(score.raw), change(score.normalized))
        }
        Source::Normalized => format!("normalized {}, by other nodes", change(score.normalized)),
        Source::Weight => format!("weight {}", change(score.weight)),
    };
    format!("{} {}: {from}", score.plugin, change(score.weighted()))
}
