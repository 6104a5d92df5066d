//! Every single change that a person could make, found without analyzing causes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::change::{Change, What, pointer};
use crate::cluster::key_of;
use crate::quantity;
use crate::size;
use crate::truth::all;

const NODE_TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";

/// The documents, and the pod of the question.
pub struct Brute<'a> {
    pub documents: &'a [Value],
    pub pod: &'a Value,
    /// Names of the scheduler's profiles.
    pub profiles: Vec<String>,
}

impl Brute<'_> {
    /// All single changes. Invalid ones are rejected when they are applied.
    pub fn single_changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.deletions());
        changes.extend(self.of_nodes());
        changes.extend(self.of_selectors());
        changes.extend(self.of_affinity());
        changes.extend(self.of_pod());
        changes.extend(self.of_requests());
        changes.extend(self.of_references());
        changes.extend(self.of_claims());
        changes.extend(self.of_volumes());
        changes.extend(self.of_resource_claims());
        changes
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.documents.iter().filter(move |object| object["kind"] == kind)
    }

    fn names(&self, kind: &str) -> Vec<String> {
        let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
        self.of_kind(kind).filter_map(name).collect()
    }

    fn key(&self) -> String {
        key_of(self.pod)
    }

    fn set(&self, path: impl Into<String>, value: Value) -> Change {
        Change::set("Pod", &self.key(), path, value)
    }

    fn unset(&self, path: impl Into<String>) -> Change {
        Change::unset("Pod", &self.key(), path)
    }

    /// Of pods that no controller replaces: whether a replacement takes the room first depends on
    /// when the pod is retried.
    fn deletions(&self) -> Vec<Change> {
        let is_replaced = |pod: &Value| all(&pod["metadata"]["ownerReferences"]).next().is_some();
        let others = self.of_kind("Pod").filter(|pod| !is_replaced(pod));
        let others = others.map(key_of).filter(|key| *key != self.key());
        others.map(|key| Change::new("Pod", &key, What::Delete)).collect()
    }

    fn of_nodes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for node in self.of_kind("Node") {
            let name = key_of(node);
            if node["spec"]["unschedulable"] == true {
                changes.push(Change::unset("Node", &name, "/spec/unschedulable"));
            }
            for taint in all(&node["spec"]["taints"]) {
                changes.push(Change::new(
                    "Node",
                    &name,
                    What::Remove("/spec/taints".into(), taint.clone()),
                ));
                let toleration = json!({"key": taint["key"], "operator": "Exists",
                    "effect": taint["effect"]});
                let tolerate = What::Append("/spec/tolerations".into(), toleration);
                changes.push(Change::new("Pod", &self.key(), tolerate));
            }
            changes.push(Change::new("Node", &name, What::Copy(1)));
            changes.extend(self.larger(node));
        }
        changes
    }

    /// Raises each resource that the pod requests, and the number of pods.
    fn larger(&self, node: &Value) -> Vec<Change> {
        let requests = self.containers().into_iter().map(|(_, container)| container);
        let asked = requests.filter_map(|one| one["resources"]["requests"].as_object());
        let mut resources: BTreeSet<&str> =
            asked.flat_map(|list| list.keys().map(String::as_str)).collect();
        resources.insert("pods");
        let path = |resource: &str| pointer(&["status", "allocatable", resource]);
        let set = |r: &str| Change::set("Node", &key_of(node), path(r), json!("100Ti"));
        resources.into_iter().map(set).collect()
    }

    /// Node selectors and labels of nodes.
    fn of_selectors(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let wanted = self.pod["spec"]["nodeSelector"].as_object();
        for (key, value) in wanted.into_iter().flatten() {
            let path = pointer(&["spec", "nodeSelector", key]);
            changes.push(self.unset(path.clone()));
            for known in self.values(key) {
                changes.push(self.set(path.clone(), json!(known)));
            }
            changes.extend(self.label_each(key, value));
        }
        changes
    }

    fn values(&self, key: &str) -> BTreeSet<String> {
        let value = |node: &Value| node["metadata"]["labels"][key].as_str().map(str::to_owned);
        self.of_kind("Node").filter_map(value).collect()
    }

    fn label_each(&self, key: &str, value: &Value) -> Vec<Change> {
        let path = pointer(&["metadata", "labels", key]);
        let set = |node: &Value| Change::set("Node", &key_of(node), path.clone(), value.clone());
        self.of_kind("Node").map(set).collect()
    }

    fn unlabel_each(&self, key: &str) -> Vec<Change> {
        let path = pointer(&["metadata", "labels", key]);
        let unset = |node: &Value| Change::unset("Node", &key_of(node), path.clone());
        self.of_kind("Node").map(unset).collect()
    }

    fn of_affinity(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let terms = self.pod.pointer(NODE_TERMS).cloned().unwrap_or_default();
        for (at, term) in all(&terms).enumerate() {
            changes.push(self.unset(format!("{NODE_TERMS}/{at}")));
            let lists = ["matchExpressions", "matchFields"];
            let expressions = lists.iter().flat_map(|list| {
                all(&term[*list]).enumerate().map(move |(at, one)| (*list, at, one))
            });
            for (number, (list, place, expression)) in expressions.enumerate() {
                changes.push(self.unset(format!("{NODE_TERMS}/{at}/expression/{number}")));
                let path = format!("{NODE_TERMS}/{at}/{list}/{place}/values");
                changes.extend(self.of_expression(list, path, expression));
            }
        }
        for list in ["podAffinity", "podAntiAffinity"] {
            let path =
                format!("/spec/affinity/{list}/requiredDuringSchedulingIgnoredDuringExecution");
            let terms = self.pod.pointer(&path).cloned().unwrap_or_default();
            changes.extend((0..all(&terms).count()).map(|at| self.unset(format!("{path}/{at}"))));
            changes.extend(self.other_matches(&path, &terms));
        }
        changes
    }

    fn of_expression(&self, list: &str, path: String, expression: &Value) -> Vec<Change> {
        let key = expression["key"].as_str().unwrap_or_default();
        let known: Vec<String> = match list {
            "matchFields" => self.names("Node"),
            _ => self.values(key).into_iter().collect(),
        };
        let mut changes: Vec<Change> =
            known.iter().map(|value| self.set(path.clone(), json!([value]))).collect();
        if list == "matchExpressions" {
            let value = all(&expression["values"]).next().cloned().unwrap_or(json!("true"));
            changes.extend(self.label_each(key, &value));
            changes.extend(self.unlabel_each(key));
        }
        changes
    }

    /// Replaces the labels in pod selectors by those that pods have.
    fn other_matches(&self, path: &str, terms: &Value) -> Vec<Change> {
        let mut changes = Vec::new();
        for (at, term) in all(terms).enumerate() {
            let labels = term["labelSelector"]["matchLabels"].as_object();
            for key in labels.into_iter().flat_map(|labels| labels.keys()) {
                let value =
                    |pod: &Value| pod["metadata"]["labels"][key].as_str().map(str::to_owned);
                let known: BTreeSet<String> = self.of_kind("Pod").filter_map(value).collect();
                let path =
                    format!("{path}/{at}{}", pointer(&["labelSelector", "matchLabels", key]));
                changes.extend(known.iter().map(|value| self.set(path.clone(), json!(value))));
            }
        }
        changes
    }

    fn of_pod(&self) -> Vec<Change> {
        let spec = &self.pod["spec"];
        let mut changes = Vec::new();
        let labels = self.pod["metadata"]["labels"].as_object();
        for key in labels.into_iter().flat_map(|labels| labels.keys()) {
            changes.push(self.unset(pointer(&["metadata", "labels", key])));
        }
        for list in ["schedulingGates", "topologySpreadConstraints"] {
            let elements = (0..all(&spec[list]).count()).rev();
            changes.extend(elements.map(|at| self.unset(format!("/spec/{list}/{at}"))));
        }
        for profile in &self.profiles {
            changes.push(self.set("/spec/schedulerName", json!(profile)));
        }
        for class in self.names("PriorityClass") {
            changes.push(self.set("/spec/priorityClassName", json!(class)));
        }
        changes
    }

    /// The pod's containers with their paths.
    fn containers(&self) -> Vec<(String, &Value)> {
        let of = |list: &'static str| {
            let all = all(&self.pod["spec"][list]).enumerate();
            all.map(move |(at, container)| (format!("/spec/{list}/{at}"), container))
        };
        of("containers").chain(of("initContainers")).collect()
    }

    /// Lowers each request to half of it and to its minimum; removes each host port.
    fn of_requests(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let pod = (String::from("/spec"), &self.pod["spec"]);
        for (path, container) in self.containers().into_iter().chain([pod]) {
            let requests = container["resources"]["requests"].as_object();
            for (resource, asked) in requests.into_iter().flatten() {
                let name = pointer(&["resources", "requests", resource]);
                let least = match resource.as_str() {
                    "cpu" => "1m",
                    "memory" | "ephemeral-storage" => "1Mi",
                    "hugepages-2Mi" => "2Mi",
                    _ => "1",
                };
                let asked = asked.as_str().and_then(|asked| quantity::parse(resource, asked));
                let half = asked.map(|asked| quantity::write(resource, (asked + 1) / 2));
                for amount in half.into_iter().chain([least.to_owned()]) {
                    changes.push(self.set(format!("{path}{name}"), json!(amount)));
                }
            }
            for (at, port) in all(&container["ports"]).enumerate() {
                if !port["hostPort"].is_null() {
                    changes.push(self.unset(format!("{path}/ports/{at}/hostPort")));
                }
            }
        }
        changes
    }

    /// Replaces each name that the pod refers to by the existing ones.
    fn of_references(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (at, volume) in all(&self.pod["spec"]["volumes"]).enumerate() {
            if !volume["persistentVolumeClaim"].is_null() {
                let path = format!("/spec/volumes/{at}/persistentVolumeClaim/claimName");
                changes.extend(self.corrected("PersistentVolumeClaim", path));
            }
        }
        for at in 0..all(&self.pod["spec"]["resourceClaims"]).count() {
            let path = format!("/spec/resourceClaims/{at}/resourceClaimName");
            changes.extend(self.corrected("ResourceClaim", path));
        }
        changes
    }

    /// Existing names that may have been meant. Another claim contains other data, so only typos
    /// are corrected.
    fn corrected(&self, kind: &str, path: String) -> Vec<Change> {
        let set = |name: String| self.set(path.clone(), json!(name));
        let changes = self.names(kind).into_iter().map(set);
        changes.filter(|change| size::is_typo(self.documents, change)).collect()
    }

    fn of_claims(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for claim in self.of_kind("PersistentVolumeClaim") {
            if !claim["spec"]["volumeName"].is_null() {
                continue;
            }
            let set = |path: &str, value| {
                Change::set("PersistentVolumeClaim", &key_of(claim), path, value)
            };
            for class in self.names("StorageClass") {
                changes.push(set("/spec/storageClassName", json!(class)));
            }
            changes.push(set("/spec/resources/requests/storage", json!("1Mi")));
            // Another access mode, size or class means another claim of the same name: its spec is
            // immutable, but no volume or pod depends on a claim that is not bound.
            changes.push(set("/spec/accessModes", json!(["ReadWriteOnce"])));
        }
        changes
    }

    /// Labels nodes with what volumes require.
    fn of_volumes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for volume in self.of_kind("PersistentVolume") {
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            for wanted in all(terms).flat_map(|term| all(&term["matchExpressions"])) {
                let key = wanted["key"].as_str().unwrap_or_default();
                let values = all(&wanted["values"]);
                changes.extend(values.flat_map(|value| self.label_each(key, value)));
            }
        }
        changes
    }

    fn of_resource_claims(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        let open = self.of_kind("ResourceClaim").filter(|c| c["status"]["allocation"].is_null());
        for claim in open {
            let key = key_of(claim);
            let set = |path: String, value| Change::set("ResourceClaim", &key, path, value);
            for at in 0..all(&claim["spec"]["devices"]["requests"]).count() {
                let path = format!("/spec/devices/requests/{at}/exactly");
                for class in self.names("DeviceClass") {
                    changes.push(set(format!("{path}/deviceClassName"), json!(class)));
                }
                changes.push(set(format!("{path}/count"), json!(1)));
                let tolerations = json!([{"operator": "Exists"}]);
                changes.push(set(format!("{path}/tolerations"), tolerations));
                changes.push(set(format!("{path}/allocationMode"), json!("ExactCount")));
                changes.push(Change::unset("ResourceClaim", &key, format!("{path}/selectors")));
                changes.push(Change::unset("ResourceClaim", &key, format!("{path}/capacity")));
            }
            let constraints = all(&claim["spec"]["devices"]["constraints"]).count();
            changes.extend((0..constraints).map(|at| {
                Change::unset("ResourceClaim", &key, format!("/spec/devices/constraints/{at}"))
            }));
        }
        changes
    }
}
