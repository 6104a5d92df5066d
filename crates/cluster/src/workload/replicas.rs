//! Identical pods: single pods, ReplicationControllers, ReplicaSets, Deployments.

use serde_json::{Value, json};

use super::manifest::{WorkloadManifest, owner};
use super::{ExpandedWorkload, WorkloadInputs, named, owned_pod};
use kubestep_api::decode::from_value;
use kubestep_api::{DecodeError, Kind, Name, Object, Pod};

/// The label with the template hash on the pods of a Deployment's ReplicaSet.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";

/// A single pod, or copies of it.
pub(super) fn pod(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let mut pod = manifest.pod(manifest.value, "")?;
    let generated = pod.metadata.name.is_empty() && !pod.metadata.generate_name.is_empty();
    if !generated && pod.metadata.name.is_empty() {
        return Err(manifest.error("metadata.name", "is missing"));
    }
    let name = match generated {
        true => pod.metadata.generate_name.to_string(),
        false => pod.metadata.name.to_string(),
    };
    let replicas = surroundings.replicas.unwrap_or(1);
    let alone = replicas == 1 && !generated;
    pod.metadata.name = Name::EMPTY;
    let base = name.trim_end_matches('-').to_owned();
    let notices = match manifest.field("spec.nodeName").as_str() {
        Some(node) if !node.is_empty() => {
            vec![format!("{}: is tried without its node {node}", manifest.title())]
        }
        _ => Vec::new(),
    };
    let make = move |number: usize| {
        let own =
            if alone && number == 0 { base.clone() } else { format!("{base}-{}", number + 1) };
        vec![named(&pod, &own).into()]
    };
    let name = format!("Pod {}/{name}", manifest.namespace);
    Ok(ExpandedWorkload {
        name,
        owners: Vec::new(),
        replicas,
        can_grow: true,
        notices,
        make: Box::new(make),
    })
}

/// The pods of a ReplicationController, which all are alike.
pub(super) fn replication_controller(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let owners = vec![manifest.object(Kind::ReplicationController)?];
    let pod = owned_pod(manifest)?;
    alike(manifest, surroundings, owners, pod, manifest.name)
}

/// The pods of a ReplicaSet, which all are alike.
pub(super) fn replica_set(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let owners = vec![manifest.object(Kind::ReplicaSet)?];
    let pod = owned_pod(manifest)?;
    alike(manifest, surroundings, owners, pod, manifest.name)
}

/// A Deployment's ReplicaSet, and its pods.
pub(super) fn deployment(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    let mut pod = manifest.template_pod()?;
    let hash = manifest.hash();
    let name = format!("{}-{hash}", manifest.name);
    pod.metadata.labels.insert(TEMPLATE_HASH.into(), Name::new(&hash));
    let selector = selector(manifest, &hash)?;
    let uid = kubestep_api::admission::derived_uid(&format!("ReplicaSet {name}"));
    let set = json!({
        "metadata": {
            "name": name, "namespace": manifest.namespace, "uid": uid,
            "labels": &pod.metadata.labels,
            "ownerReferences": [manifest.owner()],
        },
        "spec": {"selector": selector},
    });
    let set = from_value(Kind::ReplicaSet, set)
        .map_err(|error| manifest.error(&error.path, error.message))?;
    pod.metadata.owner_references = vec![owner("apps/v1", "ReplicaSet", &name, uid)].into();
    alike(manifest, surroundings, vec![set], pod, &name)
}

/// The Deployment's selector, narrowed to the pods of this template.
fn selector(manifest: &WorkloadManifest<'_>, hash: &str) -> Result<Value, DecodeError> {
    const PATH: &str = "spec.selector";
    let mut selector = manifest.field(PATH).clone();
    let labels = match &mut selector {
        Value::Null => return Ok(Value::Null),
        Value::Object(fields) => fields.entry("matchLabels").or_insert_with(|| json!({})),
        _ => return Err(manifest.error(PATH, "is not a label selector")),
    };
    match labels {
        Value::Object(labels) => drop(labels.insert(TEMPLATE_HASH.to_owned(), json!(hash))),
        Value::Null => *labels = json!({TEMPLATE_HASH: hash}),
        _ => return Err(manifest.error("spec.selector.matchLabels", "is not a map of labels")),
    }
    Ok(selector)
}

/// Pods of one template with numbered names.
fn alike(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
    owners: Vec<Object>,
    pod: Pod,
    prefix: &str,
) -> Result<ExpandedWorkload, DecodeError> {
    let written = manifest.count("spec.replicas")?;
    let prefix = prefix.to_owned();
    let make = move |number: usize| vec![named(&pod, &format!("{prefix}-{}", number + 1)).into()];
    Ok(ExpandedWorkload {
        name: manifest.title(),
        owners,
        replicas: surroundings.replicas.or(written).unwrap_or(1),
        can_grow: true,
        notices: Vec::new(),
        make: Box::new(make),
    })
}
