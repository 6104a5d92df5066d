//! Nodes and pods in one line: typed ones with chained builders, and JSON as in the API for what no
//! builder sets.

use serde_json::{Value, json};

use super::key;
use kubestep_api::{Duration, Node, Pod, PodPhase, Quantity, Time};

/// A node with 4 CPU, 8Gi memory and room for 110 pods.
pub fn node(name: &str) -> Node {
    let resources = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": resources, "allocatable": resources},
    }))
    .unwrap()
}

/// A pod in `default` (or `namespace/name`) with one container, the key as its UID.
pub fn pod(name: &str) -> Pod {
    let key = key(name);
    let uid = format!("{}-{}", key.namespace, key.name);
    serde_json::from_value(json!({
        "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid},
        "spec": {"containers": [{"name": "main"}], "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending"},
    }))
    .unwrap()
}

/// Chained changes of a node.
pub trait NodeBuilder {
    /// Sets a label to that value.
    fn label(self, key: &str, value: &str) -> Self;
    /// Sets an allocatable (and capacity) amount.
    fn offers(self, resource: &str, amount: &str) -> Self;
}

impl NodeBuilder for Node {
    fn label(mut self, key: &str, value: &str) -> Node {
        self.metadata.labels.insert(key.into(), value.into());
        self
    }

    fn offers(mut self, resource: &str, amount: &str) -> Node {
        let amount = Quantity::parse(amount).unwrap();
        for list in [&mut self.status.capacity, &mut self.status.allocatable] {
            list.get_or_insert_default().insert(resource.into(), amount.clone());
        }
        self
    }
}

/// Chained changes of a pod.
pub trait PodBuilder {
    /// Sets a label to that value.
    fn label(self, key: &str, value: &str) -> Self;
    /// Sets a request of its container.
    fn requests(self, resource: &str, amount: &str) -> Self;
    /// Sets `spec.priority`; without it the priority is 0.
    fn priority(self, priority: i32) -> Self;
    /// Puts it on a node, running.
    fn on(self, node: &str) -> Self;
    /// Sets the start time, in seconds since the epoch.
    fn started(self, seconds: i64) -> Self;
    /// Nominates it to a node.
    fn nominated(self, node: &str) -> Self;
    /// Replaces parts of the spec by those of `spec`, written as in the API.
    fn spec(self, spec: Value) -> Self;
}

impl PodBuilder for Pod {
    fn label(mut self, key: &str, value: &str) -> Pod {
        self.metadata.labels.insert(key.into(), value.into());
        self
    }

    fn requests(mut self, resource: &str, amount: &str) -> Pod {
        let requests = &mut self.spec.containers[0].resources.requests;
        let amount = Quantity::parse(amount).unwrap();
        requests.get_or_insert_default().insert(resource.into(), amount);
        self
    }

    fn priority(mut self, priority: i32) -> Pod {
        self.spec.priority = Some(priority);
        self
    }

    fn on(mut self, node: &str) -> Pod {
        self.spec.node_name = node.into();
        self.status.phase = PodPhase::Running;
        self
    }

    fn started(mut self, seconds: i64) -> Pod {
        self.status.start_time = Some(Time(0) + Duration::from_secs(seconds));
        self
    }

    fn nominated(mut self, node: &str) -> Pod {
        self.status.nominated_node_name = node.into();
        self
    }

    fn spec(mut self, spec: Value) -> Pod {
        let mut whole = serde_json::to_value(&self.spec).unwrap();
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        self.spec = serde_json::from_value(whole).unwrap();
        self
    }
}

/// `cpu=1 memory=2Mi` as a resource list.
pub fn list(text: &str) -> Value {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').expect("name=amount"));
    Value::Object(pairs.map(|(name, amount)| (name.to_owned(), json!(amount))).collect())
}

/// A node `n0`, `n1`… with these allocatable amounts.
pub fn sized_node(at: usize, allocatable: &str) -> Value {
    json!({"metadata": {"name": format!("n{at}")}, "status": {"allocatable": list(allocatable)}})
}

/// A pod with one container for each text: `init cpu=1`, `sidecar cpu=1` or `main cpu=1`, named by
/// their index. The node may be empty; the UID is the name.
pub fn sized_pod(name: &str, node: &str, containers: &[&str]) -> Value {
    let mut spec = json!({"nodeName": node, "containers": [], "initContainers": []});
    for (at, text) in containers.iter().enumerate() {
        let (kind, requests) = text.split_once(' ').unwrap_or((text, ""));
        let mut container =
            json!({"name": at.to_string(), "resources": {"requests": list(requests)}});
        if kind == "sidecar" {
            container["restartPolicy"] = json!("Always");
        }
        let field = if kind == "main" { "containers" } else { "initContainers" };
        spec[field].as_array_mut().expect("a list").push(container);
    }
    json!({"metadata": {"name": name, "uid": name}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use kubestep_api::Name;

    use super::*;

    #[test]
    fn a_spec_is_replaced_in_parts() {
        let pod = pod("a").priority(3).spec(json!({"nodeSelector": {"disk": "ssd"}}));
        assert_eq!(pod.spec.priority, Some(3));
        let selector = pod.spec.node_selector.unwrap();
        assert_eq!(selector.get("disk".into()), Some(&Name::new("ssd")));
    }
}
