//! The part of an object that is written to a file: what a scheduler reads. Annotations of other
//! programs and parameters of drivers are omitted, because they may contain secrets.

use hashbrown::HashMap;
use serde_json::{Map, Value};

use kubestep_api::{Kind, Object};

/// The annotations that the scheduler and its plugins read: those of the volume binder, the old
/// annotation for a storage class, plugins migrated to CSI, claims created for extended resources.
/// Provisioners write the seventh, which the simulated provisioner reads; the rest is for plugins of
/// the project scheduler-plugins.
const READ: [&str; 10] = [
    "volume.kubernetes.io/selected-node",
    "pv.kubernetes.io/bind-completed",
    "pv.kubernetes.io/bound-by-controller",
    "volume.beta.kubernetes.io/storage-class",
    "storage.alpha.kubernetes.io/migrated-plugins",
    "resource.kubernetes.io/extended-resource-claim",
    "pv.kubernetes.io/provisioned-by",
    "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority",
    "preemption-toleration.scheduling.x-k8s.io/toleration-seconds",
    "topology.node.k8s.io/fingerprint",
];

/// Paths of lists of device configurations.
const CONFIGURATIONS: [&str; 4] = [
    "/spec/config",
    "/spec/devices/config",
    "/spec/spec/devices/config",
    "/status/allocation/devices/config",
];

/// The object as JSON for a file that holds one state.
///
/// # Errors
/// The object cannot be serialized; no such object is known.
pub fn json(object: &Object) -> serde_json::Result<Value> {
    let mut value = object.to_json()?;
    if let Some(annotations) = annotations(&mut value) {
        annotations.retain(|key, _| READ.contains(&key.as_str()));
        remove_empty(&mut value);
    }
    remove_parameters(object.kind(), &mut value);
    Ok(value)
}

/// Serializes objects for a file that holds changes.
#[derive(Debug, Default)]
pub struct Minimal {
    /// Values of node annotations seen so far, each with its number.
    values: HashMap<String, usize>,
}

impl Minimal {
    /// As [`json`]. A change of a node's annotations is an event for the scheduler, so the
    /// annotations that it does not read keep a number as their value.
    ///
    /// # Errors
    /// As [`json`].
    pub fn json(&mut self, object: &Object) -> serde_json::Result<Value> {
        if object.kind() != Kind::Node {
            return json(object);
        }
        let mut value = object.to_json()?;
        let annotations = annotations(&mut value).into_iter().flatten();
        for (_, value) in annotations.filter(|(key, _)| !READ.contains(&key.as_str())) {
            let next = self.values.len();
            let text = value.as_str().unwrap_or_default().to_owned();
            *value = self.values.entry(text).or_insert(next).to_string().into();
        }
        Ok(value)
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}

fn remove_empty(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        if metadata.get("annotations").is_some_and(is_empty) {
            metadata.remove("annotations");
        }
    }
}

fn remove_parameters(kind: Kind, object: &mut Value) {
    if let (Kind::StorageClass, Some(fields)) = (kind, object.as_object_mut()) {
        fields.remove("parameters");
    }
    for path in CONFIGURATIONS {
        let entries = object.pointer_mut(path).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            if let Some(opaque) = entry.get_mut("opaque").and_then(Value::as_object_mut) {
                opaque.remove("parameters");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::decode::{Decoded, Text, decode};
    use serde_json::json;

    fn object(value: &Value) -> Object {
        match decode(Text::Json(&value.to_string()), None).unwrap() {
            Decoded::Object(object) => object,
            Decoded::Unread(kind) => panic!("{kind}"),
        }
    }

    fn written(value: Value) -> String {
        super::json(&object(&value)).unwrap().to_string()
    }

    #[test]
    fn what_no_scheduler_reads_is_left_out() {
        let opaque = json!([{"opaque": {"driver": "gpu", "parameters": {"key": "SECRET"}}}]);
        let requests = json!([{"name": "r", "exactly": {"deviceClassName": "c"}}]);
        let devices = json!({"config": opaque, "requests": requests});
        let metadata = json!({"name": "a", "namespace": "d", "annotations": {"x": "SECRET"},
            "managedFields": [{"manager": "SECRET"}]});
        for value in [
            json!({"kind": "StorageClass", "apiVersion": "storage.k8s.io/v1",
                "parameters": {"key": "SECRET"}, "provisioner": "p"}),
            json!({"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1",
                "spec": {"config": opaque}}),
            json!({"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1",
                "spec": {"devices": devices},
                "status": {"allocation": {"devices": {"config": opaque}}}}),
            json!({"kind": "ResourceClaimTemplate", "apiVersion": "resource.k8s.io/v1",
                "spec": {"spec": {"devices": devices}}}),
            json!({"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"name": "c",
                "env": [{"name": "KEY", "value": "SECRET"}], "args": ["SECRET"]}]}}),
            json!({"kind": "Node", "apiVersion": "v1"}),
        ] {
            let mut value = value;
            value["metadata"] = metadata.clone();
            let text = written(value.clone());
            assert!(!text.contains("SECRET") && !text.contains("annotations"), "{text}");
            assert_eq!(text.contains("gpu"), value.to_string().contains("gpu"), "{text}");
        }
    }

    #[test]
    fn what_a_scheduler_reads_stays() {
        let annotations: Map<String, Value> =
            READ.iter().map(|key| ((*key).to_owned(), "v".into())).collect();
        let text = written(json!({"kind": "PersistentVolumeClaim", "apiVersion": "v1",
            "metadata": {"name": "a", "namespace": "d", "annotations": annotations}}));
        assert!(READ.iter().all(|key| text.contains(&format!("\"{key}\":\"v\""))), "{text}");
    }

    #[test]
    fn a_change_of_a_nodes_annotations_can_be_seen() {
        let mut minimal = Minimal::default();
        let mut node = |note: &str| {
            let value = json!({"kind": "Node", "apiVersion": "v1",
                "metadata": {"name": "a", "annotations": {"x": note}}});
            minimal.json(&object(&value)).unwrap()["metadata"]["annotations"]["x"].clone()
        };
        assert_eq!([node("SECRET"), node("other"), node("SECRET")], ["0", "1", "0"]);
    }
}
