//! The difference of two histories as JSON; [`text`] has it as text.

pub mod text;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::report::cut::CutRuns;
use kubestep_config::FeatureGates;
use kubestep_debug::certainty;
use kubestep_debug::diff::{
    DecisionDifference, Difference, FinalState, Pair, PodChange, PodDifference, ScoreDifference,
    VerdictDifference,
};
use kubestep_framework::record::certainty::Certainty;

/// The version of this document.
const SCHEMA: &str = "kubestep/diff/v1";

/// The whole difference. `sides` are short descriptions of both sides, `gates` what decided there.
pub fn document(
    difference: &Difference,
    sides: &Pair<String>,
    gates: &Pair<FeatureGates>,
    cut: &CutRuns,
) -> Value {
    let mut counts: serde_json::Map<String, Value> = PodChange::ALL
        .map(|kind| (kind.as_str().to_owned(), difference.count(kind).into()))
        .into_iter()
        .collect();
    counts.insert("same".into(), difference.same.into());
    let mut value = json!({
        "schema": SCHEMA,
        "sides": pair(sides.a.as_str(), sides.b.as_str()),
        "kubeVersions": of(gates, |gates| gates.version_words()),
        "differs": !difference.is_empty(),
        "complete": !cut.any(),
        "summary": counts,
        "pods": difference.pods.iter().map(pod).collect::<Vec<_>>(),
    });
    if difference.uncertain != Pair::default() {
        value["uncertain"] = of(&difference.uncertain, |count| *count);
    }
    value
}

fn pair(a: impl Into<Value>, b: impl Into<Value>) -> Value {
    json!({"a": a.into(), "b": b.into()})
}

pub(super) fn of<T, V: Into<Value>>(both: &Pair<T>, value: impl Fn(&T) -> V) -> Value {
    pair(value(&both.a), value(&both.b))
}

fn pod(pod: &PodDifference) -> Value {
    json!({
        "pod": pod.pod.to_string(),
        "change": pod.change.as_str(),
        "end": of(&pod.end, end),
        "attempts": of(&pod.attempts, |count| *count),
        "decisions": pod.decisions.iter().map(decision).collect::<Vec<_>>(),
    })
}

pub(super) fn end(end: &FinalState) -> Value {
    let names = |plugins: &[kubestep_api::intern::Symbol]| {
        plugins.iter().map(|name| name.as_str()).collect::<Vec<_>>()
    };
    match end {
        FinalState::Absent => json!({"place": "absent"}),
        FinalState::Node(node) => json!({"place": "node", "node": node}),
        FinalState::Waiting(node) => json!({"place": "waiting", "node": node}),
        FinalState::Queue(queue, plugins) => {
            json!({"place": "queue", "queue": queue.as_str(), "plugins": names(plugins)})
        }
        FinalState::Ended => json!({"place": "ended"}),
        FinalState::Unserved => json!({"place": "unserved"}),
    }
}

fn decision(decision: &DecisionDifference) -> Value {
    let mut value = json!({
        "attempt": decision.attempt,
        "cycle": of(&decision.cycle, |cycle| *cycle),
        "outcome": of(&decision.outcome, |outcome| outcome.map(|one| one.as_str())),
        "node": of(&decision.node, |node| node.map(|node| json!(node))),
        "message": of(&decision.message, Clone::clone),
        "manual": of(&decision.interventions, Clone::clone),
        "notCompared": decision.not_compared,
        "verdicts": decision.verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "scores": decision.scores.iter().map(score).collect::<Vec<_>>(),
    });
    let Pair { a, b } = &decision.certainty;
    if a.is_some() || b.is_some() {
        let one = |side: &Option<Arc<Certainty>>| side.as_deref().map(certainty::value);
        value["certainty"] = of(&decision.certainty, one);
    }
    value
}

fn verdict(verdict: &VerdictDifference) -> Value {
    json!({
        "point": verdict.point.name(),
        "plugin": verdict.plugin.as_str(),
        "verdict": of(&verdict.verdict, ToString::to_string),
        "nodes": verdict.nodes,
    })
}

fn score(score: &ScoreDifference) -> Value {
    let plugins = score.plugins.iter().map(|plugin| {
        json!({
            "plugin": plugin.plugin.as_str(),
            "from": plugin.source().as_str(),
            "raw": of(&plugin.raw, |score| *score),
            "normalized": of(&plugin.normalized, |score| *score),
            "weight": of(&plugin.weight, |score| *score),
        })
    });
    json!({
        "node": score.node,
        "total": of(&score.total, |score| *score),
        "plugins": plugins.collect::<Vec<_>>(),
    })
}
