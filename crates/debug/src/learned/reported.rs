//! Reports that name nodes: the annotations of kube-scheduler-simulator, koordinator's diagnosis,
//! and FailedScheduling events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::known::KnownVerdicts;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;

/// The prefix of the annotations of kube-scheduler-simulator.
const SIMULATOR: &str = "kube-scheduler-simulator.sigs.k8s.io/";
/// What the simulator writes for a plugin that passes a node.
const PASSED: &str = "passed";

/// What opaque plugins reported node by node.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedResults {
    /// Where it is from.
    pub source: &'static str,
    /// The nodes that they rejected.
    pub rejections: Vec<NodeRejection>,
    /// What they added to the totals.
    pub scores: Vec<ReportedScore>,
}

/// A rejection of a node by an opaque plugin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRejection {
    /// Name of the node.
    pub node: Name,
    /// The plugin, if the report names it.
    pub plugin: Option<Symbol>,
    /// The reason in the plugin's words.
    pub reason: String,
}

/// A score of a node by an opaque plugin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedScore {
    /// Name of the node.
    pub node: Name,
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The normalized score times the weight.
    pub weighted: i64,
}

/// Node to plugin to text.
type ByNode = BTreeMap<String, BTreeMap<String, String>>;

/// What the simulator's annotations of a pod say about the `opaque` plugins; `None` if it has none.
pub fn simulator<'a>(
    annotation: impl Fn(&str) -> Option<&'a str>,
    opaque: &[Symbol],
) -> Option<ReportedResults> {
    let read = |name: &str| -> Option<ByNode> {
        serde_json::from_str(annotation(&format!("{SIMULATOR}{name}"))?).ok()
    };
    let (filters, scores) = (read("filter-result"), read("finalscore-result"));
    if filters.is_none() && scores.is_none() {
        return None;
    }
    let mut reported =
        ReportedResults { source: "kube-scheduler-simulator", rejections: vec![], scores: vec![] };
    for (node, plugin, text) in entries(filters.unwrap_or_default(), opaque) {
        if text != PASSED {
            let plugin = Some(plugin);
            reported.rejections.push(NodeRejection { node, plugin, reason: text });
        }
    }
    for (node, plugin, text) in entries(scores.unwrap_or_default(), opaque) {
        if let Ok(weighted) = text.parse() {
            reported.scores.push(ReportedScore { node, plugin, weighted });
        }
    }
    Some(reported)
}

/// The entries of opaque plugins.
fn entries(all: ByNode, opaque: &[Symbol]) -> Vec<(Name, Symbol, String)> {
    let each = all.into_iter().flat_map(|(node, plugins)| {
        let node = Name::new(&node);
        plugins.into_iter().map(move |(plugin, text)| (node, Symbol::new(&plugin), text))
    });
    each.filter(|(_, plugin, _)| opaque.contains(plugin)).collect()
}

/// An entry of koordinator's `nodeFailedDetails`: about one node, or about all nodes that failed
/// alike.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct FailedDetail {
    node_name: String,
    failed_nodes: Vec<String>,
    failed_plugin: String,
    reason: String,
}

/// The details of a diagnosis, which may follow the words of a log line.
fn failed_details(text: &str) -> Option<Vec<FailedDetail>> {
    let value: Value = serde_json::from_str(text.get(text.find('{')?..)?).ok()?;
    let details = value.get("scheduleDiagnosis")?.get("nodeFailedDetails")?;
    serde_json::from_value(details.clone()).ok()
}

/// What koordinator's diagnosis says about plugins that kubestep does not have. A rejection without
/// the name of a plugin counts unless a known plugin rejects the node for that reason. `None` if
/// `text` is no such diagnosis.
pub fn koordinator(text: &str, known: &KnownVerdicts) -> Option<ReportedResults> {
    let details = text.lines().rev().find_map(failed_details).or_else(|| failed_details(text))?;
    let mut rejections = Vec::new();
    for detail in details.into_iter().filter(|detail| !detail.reason.is_empty()) {
        let plugin = Some(detail.failed_plugin.as_str()).filter(|name| !name.is_empty());
        let plugin = plugin.map(Symbol::new);
        let named = std::iter::once(&detail.node_name).filter(|name| !name.is_empty());
        for node in named.chain(&detail.failed_nodes).map(|name| Name::new(name)) {
            let is_opaque = match plugin {
                Some(plugin) => known.opaque.contains(&plugin),
                None => !known.explains(node, &detail.reason),
            };
            if is_opaque {
                let reason = detail.reason.clone();
                rejections.push(NodeRejection { node, plugin, reason });
            }
        }
    }
    Some(ReportedResults { source: "koordinator", rejections, scores: Vec::new() })
}

impl KnownVerdicts {
    /// Whether a known plugin rejects the node with this message.
    fn explains(&self, node: Name, message: &str) -> bool {
        let own = self.nodes.iter().find(|(name, _)| *name == node);
        let rejection = own.and_then(|(_, rejection)| rejection.as_ref());
        rejection.is_some_and(|rejection| {
            rejection.reasons.iter().any(|reason| message.contains(reason.as_str()))
        })
    }
}

/// The newest message of FailedScheduling events about the pod, in a document or list of events;
/// else the text itself.
pub(crate) fn message_for(text: &str, pod: NamespacedName) -> String {
    let documents = kubestep_api::yaml::from_str::<Value>(text).ok();
    let items = documents.iter().flat_map(|document| match document.get("items") {
        Some(Value::Array(items)) => items.clone(),
        _ => vec![document.clone()],
    });
    let about = |event: &Value| {
        let regarding = event.get("regarding").or(event.get("involvedObject"))?;
        let same = regarding.get("name")? == pod.name.text().as_str()
            && regarding.get("namespace").is_none_or(|it| it == pod.namespace.as_str());
        let failed = event.get("reason")? == "FailedScheduling";
        let note = event.get("note").or(event.get("message"))?.as_str()?;
        let times = ["eventTime", "lastTimestamp", "deprecatedLastTimestamp"];
        let time = times.iter().find_map(|field| event.get(*field)?.as_str());
        (same && failed).then(|| (time.unwrap_or_default().to_owned(), note.to_owned()))
    };
    let newest = items.filter_map(|event| about(&event)).max();
    newest.map_or_else(|| text.trim().to_owned(), |(_, note)| note)
}

impl ReportedResults {
    /// What they said, in lines: the rejections by reason, and the scores.
    pub fn lines(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<(Option<Symbol>, &str), Vec<String>> = BTreeMap::new();
        for one in &self.rejections {
            by_reason.entry((one.plugin, &one.reason)).or_default().push(one.node.to_string());
        }
        let rejected = by_reason.into_iter().map(|((plugin, reason), nodes)| {
            let plugin = plugin.map_or("an unknown plugin", |plugin| plugin.as_str());
            format!("{plugin} rejected {}: {reason} ({})", nodes.join(", "), self.source)
        });
        let mut by_plugin: BTreeMap<Symbol, Vec<String>> = BTreeMap::new();
        for score in &self.scores {
            let words = format!("{} {}", score.node, score.weighted);
            by_plugin.entry(score.plugin).or_default().push(words);
        }
        let scored = by_plugin.into_iter().map(|(plugin, nodes)| {
            format!("{plugin} scored, weighted: {} ({})", nodes.join(", "), self.source)
        });
        let mut lines: Vec<String> = rejected.chain(scored).collect();
        if lines.is_empty() {
            lines.push(format!("no opaque plugin rejected or scored a node ({})", self.source));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::known::Rejection;

    #[test]
    fn annotations_name_nodes_and_scores() {
        let annotations = BTreeMap::from([
            (
                "kube-scheduler-simulator.sigs.k8s.io/filter-result",
                r#"{"a": {"NodeName": "passed", "Mine": "wrong moon"}, "b": {"Mine": "passed"}}"#,
            ),
            (
                "kube-scheduler-simulator.sigs.k8s.io/finalscore-result",
                r#"{"b": {"Mine": "70", "NodeAffinity": "0"}}"#,
            ),
        ]);
        let annotation = |name: &str| annotations.get(name).copied();
        let reported = simulator(annotation, &["Mine".into()]).unwrap();
        assert_eq!(
            reported.lines(),
            [
                "Mine rejected a: wrong moon (kube-scheduler-simulator)",
                "Mine scored, weighted: b 70 (kube-scheduler-simulator)"
            ]
        );
        assert_eq!(simulator(|_| None, &["Mine".into()]), None);
    }

    #[test]
    fn a_diagnosis_is_read_by_node_and_in_groups() {
        let cpu = Rejection { reasons: ["Insufficient cpu".into()].into(), is_after_opaque: false };
        let known = KnownVerdicts {
            opaque: vec!["Mine".into()],
            nodes: vec![("a".into(), Some(cpu)), ("b".into(), None), ("c".into(), None)],
            pre_filter: None,
        };
        let text = r#"{"questionedKey": "default/p", "scheduleDiagnosis": {"nodeFailedDetails": [
            {"nodeName": "a", "failedPlugin": "NodeResourcesFit", "reason": "Insufficient cpu"},
            {"nodeName": "b", "failedPlugin": "Mine", "reason": "wrong moon"},
            {"reason": "Insufficient cpu", "failedNodes": ["a"]},
            {"reason": "no sun", "failedNodes": ["c"]}]}}"#;
        assert_eq!(
            koordinator(text, &known).unwrap().lines(),
            [
                "an unknown plugin rejected c: no sun (koordinator)",
                "Mine rejected b: wrong moon (koordinator)"
            ]
        );
        assert_eq!(koordinator("0/3 nodes are available: 3 a.", &known), None);
        let log = "I0101 schedule_diagnosis.go:279] dump diagnosis for default/p, targetPod: \
                   default/p/1: ${\"scheduleDiagnosis\":{\"nodeFailedDetails\":[{\"failedNodes\":[\"b\"],\
                   \"failedPlugin\":\"Mine\",\"reason\":\"wrong moon\"}]}}\nI0101 other.go:1] done";
        let lines = koordinator(log, &known).unwrap().lines();
        assert_eq!(lines, ["Mine rejected b: wrong moon (koordinator)"]);
        let empty = r#"{"scheduleDiagnosis": {"nodeFailedDetails": []}}"#;
        let lines = koordinator(empty, &known).unwrap().lines();
        assert_eq!(lines, ["no opaque plugin rejected or scored a node (koordinator)"]);
    }

    #[test]
    fn the_newest_event_of_the_pod_counts() {
        let pod = NamespacedName::new("default".into(), "p".into());
        let event = |name: &str, time: &str, message: &str| {
            format!(
                "- {{kind: Event, reason: FailedScheduling, message: '{message}', \
                 lastTimestamp: '{time}', involvedObject: {{name: {name}, namespace: default}}}}\n"
            )
        };
        let text = format!(
            "kind: List\nitems:\n{}{}{}",
            event("p", "2026-01-01T00:00:02Z", "second"),
            event("p", "2026-01-01T00:00:01Z", "first"),
            event("q", "2026-01-01T00:00:03Z", "another"),
        );
        assert_eq!(message_for(&text, pod), "second");
        assert_eq!(message_for(" 0/1 nodes … \n", pod), "0/1 nodes …");
    }
}
