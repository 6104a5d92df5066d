//! The extenders of the corpus: they answer by rules, which its README describes.
//!
//! JSON names are those of `k8s.io/kube-scheduler/extender/v1`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Labels of the nodes by name, for extenders with a node cache.
pub type NodeLabels = BTreeMap<String, BTreeMap<String, String>>;

/// Rejects the nodes with a label of this value.
#[derive(Clone, Default, Deserialize)]
pub struct Rejection {
    key: String,
    value: String,
    message: String,
}

/// The behavior of an extender.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    fail: Option<Rejection>,
    unresolvable: Option<Rejection>,
    filter_error: String,
    filter_status: u16,
    score_label: String,
    score_status: u16,
    bind_error: String,
    preempt_drop: Vec<String>,
    preempt_status: u16,
}

/// The highest score an extender gives.
const MAX_SCORE: i64 = 10;

impl Rule {
    /// The answer of extender `index` to a call: a body, or an HTTP code other than 200.
    pub fn answer(&self, verb: &str, body: &Value, labels: &NodeLabels) -> Result<Value, u16> {
        match verb {
            "filter" if self.filter_status != 0 => Err(self.filter_status),
            "filter" => Ok(self.filter(body, labels)),
            "prioritize" if self.score_status != 0 => Err(self.score_status),
            "prioritize" => Ok(self.prioritize(body, labels)),
            "preempt" if self.preempt_status != 0 => Err(self.preempt_status),
            "preempt" => Ok(self.preempt(body)),
            "bind" => Ok(json!({"Error": self.bind_error})),
            _ => Err(404),
        }
    }

    fn filter(&self, body: &Value, labels: &NodeLabels) -> Value {
        let mut failed = Map::new();
        let mut unresolvable = Map::new();
        for name in node_names(body) {
            let matches = |rejection: &&Rejection| {
                labels.get(&name).and_then(|of| of.get(&rejection.key)) == Some(&rejection.value)
            };
            if let Some(rejection) = self.unresolvable.as_ref().filter(matches) {
                unresolvable.insert(name, json!(rejection.message));
            } else if let Some(rejection) = self.fail.as_ref().filter(matches) {
                failed.insert(name, json!(rejection.message));
            }
        }
        let passes = |name: &str| !failed.contains_key(name) && !unresolvable.contains_key(name);
        let (nodes, names) = match items(body) {
            None => {
                let names: Vec<_> = node_names(body).into_iter().filter(|n| passes(n)).collect();
                (Value::Null, json!(names))
            }
            Some(items) => {
                let items: Vec<_> = items.iter().filter(|node| passes(name_of(node))).collect();
                (json!({"items": items}), Value::Null)
            }
        };
        json!({
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": unresolvable,
            "Error": self.filter_error,
        })
    }

    fn prioritize(&self, body: &Value, labels: &NodeLabels) -> Value {
        let score = |name: &String| {
            let label = labels.get(name).and_then(|of| of.get(&self.score_label));
            label.and_then(|label| label.parse::<i64>().ok()).unwrap_or(0).min(MAX_SCORE)
        };
        let entry = |name: String| json!({"Host": name, "Score": score(&name)});
        node_names(body).into_iter().map(entry).collect()
    }

    fn preempt(&self, body: &Value) -> Value {
        let meta = &body["NodeNameToMetaVictims"];
        let whole = if meta.is_object() { meta } else { &body["NodeNameToVictims"] };
        let mut kept = Map::new();
        for (node, victims) in whole.as_object().into_iter().flatten() {
            if !self.preempt_drop.contains(node) {
                kept.insert(node.clone(), meta_victims(victims));
            }
        }
        json!({"NodeNameToMetaVictims": kept})
    }
}

/// Victims with UIDs only, from either format.
fn meta_victims(victims: &Value) -> Value {
    let uid = |pod: &Value| match &pod["UID"] {
        Value::Null => json!({"UID": pod["metadata"]["uid"]}),
        uid => json!({"UID": uid}),
    };
    let pods: Vec<Value> = victims["Pods"].as_array().into_iter().flatten().map(uid).collect();
    json!({"Pods": pods, "NumPDBViolations": victims["NumPDBViolations"]})
}

fn items(body: &Value) -> Option<&Vec<Value>> {
    body["Nodes"]["items"].as_array()
}

fn name_of(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// The nodes in a call, in either format.
fn node_names(body: &Value) -> Vec<String> {
    match items(body) {
        Some(items) => items.iter().map(|node| name_of(node).to_owned()).collect(),
        None => {
            let names = body["NodeNames"].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(rule: Value) -> Rule {
        serde_json::from_value(rule).unwrap()
    }

    fn labels() -> NodeLabels {
        let of = |rank: &str, disk: &str| {
            [("rank".to_owned(), rank.to_owned()), ("disk".to_owned(), disk.to_owned())].into()
        };
        [("a".to_owned(), of("3", "hdd")), ("b".to_owned(), of("30", "ssd"))].into()
    }

    #[test]
    fn filters_by_label() {
        let fail = json!({"key": "disk", "value": "hdd", "message": "no"});
        let rule = rule(json!({"fail": fail}));
        let answer = rule.answer("filter", &json!({"NodeNames": ["a", "b"]}), &labels());
        let expected = json!({
            "Nodes": null, "NodeNames": ["b"], "FailedNodes": {"a": "no"},
            "FailedAndUnresolvableNodes": {}, "Error": "",
        });
        assert_eq!(answer, Ok(expected));
        let nodes = json!({"Nodes": {"items": [{"metadata": {"name": "a"}}]}});
        let answer = rule.answer("filter", &nodes, &labels()).unwrap();
        assert_eq!(answer["Nodes"], json!({"items": []}));
    }

    #[test]
    fn scores_by_label_up_to_ten() {
        let rule = rule(json!({"scoreLabel": "rank"}));
        let answer = rule.answer("prioritize", &json!({"NodeNames": ["a", "b", "c"]}), &labels());
        let score = |host: &str, score: i64| json!({"Host": host, "Score": score});
        assert_eq!(answer, Ok(json!([score("a", 3), score("b", 10), score("c", 0)])));
    }

    #[test]
    fn drops_candidates_and_fails_by_code() {
        let dropping = rule(json!({"preemptDrop": ["a"]}));
        let pods = json!({"Pods": [{"metadata": {"uid": "u"}}], "NumPDBViolations": 1});
        let body = json!({"NodeNameToVictims": {"a": pods, "b": pods}});
        let kept = json!({"b": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}});
        let answer = dropping.answer("preempt", &body, &labels());
        assert_eq!(answer, Ok(json!({"NodeNameToMetaVictims": kept})));
        let failing = rule(json!({"preemptStatus": 500}));
        assert_eq!(failing.answer("preempt", &body, &labels()), Err(500));
    }
}
