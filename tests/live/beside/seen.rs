//! The objects that a scheduler leaves on an API server, as text that does not depend on the run:
//! no times, no versions, and names instead of UIDs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Paths of lists in a namespace, or of cluster-scoped lists without `{}`.
const LISTS: [&str; 6] = [
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/api/v1/persistentvolumes",
    "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "/apis/scheduling.k8s.io/v1alpha2/namespaces/{}/podgroups",
    "/apis/events.k8s.io/v1/namespaces/{}/events",
];

/// Fields that differ from run to run.
const FLEETING: [&str; 14] = [
    "allocationTimestamp",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "lastTransitionTime",
    "lastPhaseTransitionTime",
    "lastProbeTime",
    "managedFields",
    "eventTime",
    "series",
    "deprecatedFirstTimestamp",
    "deprecatedLastTimestamp",
    "startTime",
];

/// The objects of one story on one side.
#[derive(Default)]
pub struct Seen {
    /// The lists as the server returns them.
    lists: BTreeMap<&'static str, Vec<Value>>,
    /// Names of all objects that were listed, by UID.
    names: BTreeMap<String, String>,
}

impl Seen {
    /// Reads all lists again.
    pub fn read(&mut self, namespace: &str, get: impl Fn(&str) -> Value) {
        for list in LISTS {
            let answer = get(&list.replace("{}", namespace));
            let items = answer["items"].as_array().cloned().unwrap_or_default();
            for item in &items {
                let text = |name: &str| item["metadata"][name].as_str().unwrap_or_default();
                self.names.insert(text("uid").into(), format!("<UID of {}>", text("name")));
            }
            self.lists.insert(list, items);
        }
    }

    fn find(&self, list: &str, name: &str) -> Value {
        let mut items = self.lists.get(list).into_iter().flatten();
        items.find(|item| item["metadata"]["name"] == name).cloned().unwrap_or_default()
    }

    /// A pod, or null.
    pub fn pod(&self, name: &str) -> Value {
        self.find(LISTS[0], name)
    }

    /// A PersistentVolumeClaim, or null.
    pub fn volume_claim(&self, name: &str) -> Value {
        self.find(LISTS[1], name)
    }

    /// A volume, or null.
    pub fn volume(&self, name: &str) -> Value {
        self.find(LISTS[2], name)
    }

    /// Whether a pod is bound.
    pub fn is_bound(&self, name: &str) -> bool {
        self.pod(name)["spec"]["nodeName"].is_string()
    }

    /// A pod's condition, or null.
    pub fn condition(&self, pod: &str, name: &str) -> Value {
        let conditions = self.pod(pod)["status"]["conditions"].as_array().cloned();
        let mut conditions = conditions.unwrap_or_default().into_iter();
        conditions.find(|condition| condition["type"] == name).unwrap_or_default()
    }

    /// Whether a pod had an attempt and was rejected.
    pub fn is_rejected(&self, pod: &str) -> bool {
        self.condition(pod, "PodScheduled")["status"] == "False"
            && self.has_event(pod, "FailedScheduling")
    }

    /// Whether there is an Event of that reason about an object.
    pub fn has_event(&self, regarding: &str, reason: &str) -> bool {
        let mut events = self.lists.get(LISTS[5]).into_iter().flatten();
        events.any(|it| it["regarding"]["name"] == regarding && it["reason"] == reason)
    }

    /// One line per object, and below it the fields to compare.
    pub fn words(&self) -> Vec<String> {
        let items =
            self.lists.iter().flat_map(|(list, items)| items.iter().map(move |it| (list, it)));
        let mut all: Vec<String> =
            items.map(|(list, item)| self.word(list.rsplit('/').next().unwrap(), item)).collect();
        all.sort();
        all.dedup();
        all
    }

    fn word(&self, kind: &str, item: &Value) -> String {
        let metadata = &item["metadata"];
        let mut kept = match kind {
            "events" => {
                let mut kept = item.clone();
                kept["metadata"] = json!({"namespace": metadata["namespace"]});
                kept
            }
            _ => {
                let spec = ["nodeName", "volumeName", "claimRef"];
                let spec = spec.map(|name| (name.to_owned(), item["spec"][name].clone()));
                json!({
                    "metadata": {
                        "name": metadata["name"], "labels": metadata["labels"],
                        "annotations": metadata["annotations"],
                        "finalizers": metadata["finalizers"],
                        "ownerReferences": metadata["ownerReferences"],
                        "leaving": metadata["deletionTimestamp"].is_string(),
                    },
                    "spec": Map::from_iter(spec), "status": item["status"],
                })
            }
        };
        clean(&mut kept);
        let mut text = format!("{kind} {kept}");
        for (uid, name) in &self.names {
            text = text.replace(uid.as_str(), name);
        }
        without_chance(text)
    }
}

/// Replaces the random suffix in the names of claims that the scheduler created.
fn without_chance(text: String) -> String {
    const MADE: &str = "-extended-resources-";
    let mut parts = text.split(MADE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}{MADE}*{}", part.get(5..).unwrap_or_default()))
}

/// Removes fields that differ from run to run or are empty.
fn clean(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !FLEETING.contains(&name.as_str()));
            fields.values_mut().for_each(clean);
            fields.retain(|_, value| !value.is_null());
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}
