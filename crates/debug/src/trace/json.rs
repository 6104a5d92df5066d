//! Cycles and states as JSON, in the notation of the conformance corpus.
//!
//! What is empty is left out. Lists that upstream leaves unordered are sorted, so that equal
//! cycles give equal documents.

use serde_json::{Map, Value, json};

use crate::certainty;
use crate::trace::state::{PodState, PodStates};
use kubestep_framework::node::NodeId;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::nodes::NodeList;
use kubestep_framework::record::{
    Candidate, CycleRecord, Outcome, PlacementRecord, PluginStatus, QueueName, VerdictId,
};
use kubestep_framework::status::{Code, Status};

/// A cycle, with the field names of the corpus.
pub fn cycle(record: &CycleRecord) -> Value {
    let mut out = JsonFields::default();
    out.set("pod", json!(record.pod.to_string()));
    out.set("attempt", json!(record.attempt));
    out.set("preFilter", answers(&record.pre_filter));
    out.set("nodeHint", json!(record.node_hint));
    out.set("filter", filter(record));
    out.set("filterAll", filter_all(record));
    out.set("extenderFilter", extender_filter(record));
    out.set("feasible", names(record, &record.feasible));
    out.set("postFilter", answers(&record.post_filter));
    out.set("candidates", candidates(&record.candidates));
    out.set("placements", record.placements.iter().map(placement).collect());
    let chosen = record.placement.and_then(|at| record.placements.get(at));
    out.set("placement", json!(chosen.map(|placement| placement.name)));
    scoring(record, &mut out);
    out.set("reserve", answers(&record.reserve));
    out.set("permit", answers(&record.permit));
    out.set("preBind", answers(&record.pre_bind));
    out.set("bind", answers(&record.bind));
    out.set("result", json!(record.outcome.as_str()));
    out.set("message", json!(record.message));
    if record.outcome == Outcome::Scheduled {
        out.set("node", json!(record.node));
    }
    out.set("nominatedNode", json!(record.nominated_node));
    out.set("tieBreak", json!(record.other_tie_break().map(|how| how.to_string())));
    out.set("interventions", interventions(record).unwrap_or_default());
    out.set("certainty", record.certainty().map(|it| certainty::value(&it)).unwrap_or_default());
    // Where scoring failed, upstream's result says nothing of the nodes.
    if record.feasible.len() == 1 || !record.score.totals.is_empty() {
        out.set("evaluated", json!(record.evaluated_nodes));
    }
    out.into()
}

/// A cycle in one short line: who, what became of it, and a few counts.
pub fn summary(record: &CycleRecord) -> Value {
    let chosen =
        record.feasible.iter().position(|node| Some(record.nodes.name(*node)) == record.node);
    let total = chosen.and_then(|at| record.score.totals.get(at));
    let mut line = serde_json::json!({
        "pod": record.pod.to_string(),
        "attempt": record.attempt,
        "result": record.outcome.as_str(),
        "evaluated": record.evaluated_nodes,
        "feasible": record.feasible.len(),
    });
    let optional = [
        ("node", record.node.map(|node| node.text().as_str().into())),
        ("message", Some(record.message.as_str()).filter(|text| !text.is_empty()).map(Value::from)),
        ("nominatedNode", record.nominated_node.map(|node| node.text().as_str().into())),
        ("total", total.map(Value::from)),
        ("tieBreak", record.other_tie_break().map(|how| how.to_string().into())),
        ("interventions", interventions(record)),
        ("certainty", record.certainty().map(|it| certainty::value(&it))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            line[key] = value;
        }
    }
    line
}

/// What a person decided in this cycle, each in words; `None` in a cycle without manual decisions.
fn interventions(record: &CycleRecord) -> Option<Value> {
    let decided = record.interventions.iter().filter(|one| one.decided(record));
    let words: Vec<String> = decided.map(ToString::to_string).collect();
    (!words.is_empty()).then(|| words.into())
}

/// The state after a step, with the field names of the corpus.
pub fn state(state: &PodStates) -> Value {
    let mut out = JsonFields::default();
    for (queue, pods) in [
        (QueueName::Active, &state.active),
        (QueueName::Backoff, &state.backoff),
        (QueueName::Unschedulable, &state.unschedulable),
    ] {
        let mut pods: Vec<&PodState> = pods.iter().collect();
        pods.sort_by_cached_key(|pod| pod.pod.to_string());
        out.set(queue.as_str(), pods.into_iter().map(queued).collect());
    }
    let by_pod = |(pod, node): (&NamespacedName, &_)| (pod.to_string(), json!(node));
    out.set("placed", Value::Object(state.placed.iter().map(by_pod).collect()));
    out.set("nominated", Value::Object(state.nominated.iter().map(by_pod).collect()));
    let mut deleted: Vec<String> = state.deleted.iter().map(|pod| pod.to_string()).collect();
    deleted.sort_unstable();
    out.set("deleted", json!(deleted));
    out.into()
}

fn queued(pod: &PodState) -> Value {
    let mut out = JsonFields::default();
    out.set("pod", json!(pod.pod.to_string()));
    out.set("plugins", json!(pod.plugins));
    out.set("pending", json!(pod.pending));
    if pod.gated {
        out.set("gated", json!(true));
    }
    if pod.attempts > 0 {
        out.set("attempts", json!(pod.attempts));
    }
    out.into()
}

/// An object under construction. Empty values do not get in.
#[derive(Default)]
struct JsonFields(Map<String, Value>);

impl JsonFields {
    fn set(&mut self, name: &str, value: Value) {
        let empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !empty {
            self.0.insert(name.to_owned(), value);
        }
    }
}

impl From<JsonFields> for Value {
    fn from(fields: JsonFields) -> Value {
        Value::Object(fields.0)
    }
}

fn verdict(status: &Status) -> JsonFields {
    let mut out = JsonFields::default();
    out.set("code", json!(status.code().as_str()));
    let mut reasons = status.reasons().to_vec();
    reasons.sort_unstable();
    out.set("reasons", json!(reasons));
    out
}

fn answers(answers: &[PluginStatus]) -> Value {
    let one = |answer: &PluginStatus| {
        let mut out = verdict(&answer.status);
        out.set("plugin", json!(answer.plugin));
        let mut nodes = answer.nodes.clone().unwrap_or_default();
        nodes.sort_unstable();
        out.set("nodes", json!(nodes));
        out.set("nominated", json!(answer.nominated));
        Value::from(out)
    };
    answers.iter().map(one).collect()
}

fn names(record: &CycleRecord, nodes: &NodeList) -> Value {
    nodes.iter().map(|node| json!(record.nodes.name(*node))).collect()
}

/// The status behind a verdict number.
fn status(record: &CycleRecord, id: Option<VerdictId>) -> Option<&Status> {
    record.verdicts.get(id?)
}

/// The nodes evaluated to the end. A node whose evaluation ended in an error ends the cycle
/// and is not listed.
fn evaluated(record: &CycleRecord) -> impl Iterator<Item = NodeId> + '_ {
    let final_verdict = |node| status(record, record.filter.verdicts.get(node));
    let failed = move |node| final_verdict(node).is_some_and(|status| status.code() == Code::Error);
    record.filter.evaluated.iter().copied().filter(move |node| !failed(*node))
}

fn filter(record: &CycleRecord) -> Value {
    let one = |node| {
        let status = status(record, record.filter.verdicts.get(node))?;
        let mut out = verdict(status);
        out.set("plugin", json!(status.plugin()));
        Some((record.nodes.name(node).to_string(), out.into()))
    };
    Value::Object(evaluated(record).filter_map(one).collect())
}

fn filter_all(record: &CycleRecord) -> Value {
    let mut out = JsonFields::default();
    for node in evaluated(record) {
        let mut failing = JsonFields::default();
        for column in &record.filter.plugins {
            if let Some(status) = status(record, column.verdicts.get(node)) {
                failing.set(&column.plugin, verdict(&own_words(status)).into());
            }
        }
        out.set(&record.nodes.name(node).text(), failing.into());
    }
    out.into()
}

/// An error without what the framework puts in front of it: each plugin was run alone.
fn own_words(status: &Status) -> Status {
    let prefix = format!("running {:?} filter plugin: ", status.plugin().as_str());
    match (status.code(), status.message().strip_prefix(&prefix)) {
        (Code::Error, Some(text)) => Status::error(text).by(status.plugin()),
        _ => status.clone(),
    }
}

fn extender_filter(record: &CycleRecord) -> Value {
    let one = |(node, status): &(NodeId, Status)| {
        (record.nodes.name(*node).to_string(), verdict(status).into())
    };
    Value::Object(record.filter.extender.iter().map(one).collect())
}

fn candidates(candidates: &[Candidate]) -> Value {
    let mut candidates: Vec<&Candidate> = candidates.iter().collect();
    candidates.sort_by_key(|candidate| candidate.node);
    let one = |candidate: &Candidate| {
        let mut out = JsonFields::default();
        let victims = candidate.victims.iter().map(|pod| json!(pod.to_string()));
        out.set("node", json!(candidate.node));
        out.set("victims", victims.collect());
        out.set("pdbViolations", json!(candidate.pdb_violations));
        Value::from(out)
    };
    candidates.into_iter().map(one).collect()
}

/// A placement on which the pod's group was tried. The corpus has none.
fn placement(placement: &PlacementRecord) -> Value {
    let mut out = JsonFields::default();
    out.set("name", json!(placement.name));
    out.set("nodes", json!(placement.nodes));
    out.set("placed", json!(placement.placed));
    out.set("message", json!(placement.status.message()));
    out.set("total", json!(placement.total));
    out.into()
}

/// PreScore, the scores of plugins and extenders, and the totals.
fn scoring(record: &CycleRecord, out: &mut JsonFields) {
    let score = &record.score;
    out.set("preScore", answers(&score.pre_score));
    let mut scores = JsonFields::default();
    let mut extenders = JsonFields::default();
    let mut totals = JsonFields::default();
    for (at, node) in record.feasible.iter().enumerate() {
        let name = record.nodes.name(*node);
        let mut columns = JsonFields::default();
        for column in &score.plugins {
            if let (Some(raw), Some(normalized)) = (column.raw.get(at), column.normalized.get(at)) {
                let weighted = column.weighted(at);
                columns.set(&column.plugin, json!([raw, normalized, weighted]));
            }
        }
        scores.set(&name.text(), columns.into());
        extenders.set(&name.text(), json!(score.by_extenders(at)));
        totals.set(&name.text(), json!(score.totals.get(at)));
    }
    out.set("scores", scores.into());
    out.set("extenderScores", extenders.into());
    out.set("totals", totals.into());
}

#[cfg(test)]
mod tests;
