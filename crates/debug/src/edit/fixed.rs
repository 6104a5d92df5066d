//! Immutable fields: an API server does not let them change once an object exists. The rules for
//! pods are in [`super::pod`].
//!
//! Upstream: the `Validate…Update` functions in `pkg/apis/*/validation` and the `+k8s:immutable`
//! tags of the types.

use std::sync::Arc;

use serde_json::Value;

use super::path;
use kubestep_api::{Kind, Object, PersistentVolumeClaim, PersistentVolumeClaimPhase};

/// The immutable fields of each kind, by their paths.
const IMMUTABLE: &[(Kind, &[&str])] = &[
    (
        Kind::PersistentVolumeClaim,
        &["spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeMode"],
    ),
    (Kind::StorageClass, &["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]),
    (Kind::PriorityClass, &["value", "preemptionPolicy"]),
    (Kind::PodGroup, &["spec"]),
    (Kind::Workload, &["spec"]),
    (Kind::ResourceClaim, &["spec"]),
    (Kind::ResourceClaimTemplate, &["spec"]),
    (Kind::ResourceSlice, &["spec.driver", "spec.pool.name", "spec.nodeName"]),
    (Kind::CsiDriver, &["spec.attachRequired", "spec.volumeLifecycleModes"]),
    (Kind::CsiStorageCapacity, &["nodeTopology", "storageClassName"]),
    (Kind::VolumeAttachment, &["spec"]),
    (Kind::ReplicaSet, &["spec.selector"]),
    (Kind::StatefulSet, &["spec.selector"]),
];

/// The mutable fields of a volume's spec; all others describe where the data is.
const MUTABLE_OF_VOLUME: [&str; 7] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
];

/// The immutable fields that differ, by their paths.
pub(super) fn fields(old: &Object, new: &Object) -> Vec<String> {
    let (Ok(was), Ok(is)) = (old.to_json(), new.to_json()) else { return Vec::new() };
    let differs = |path: &String| path::get(&was, path) != path::get(&is, path);
    let paths = IMMUTABLE.iter().filter(|(kind, _)| *kind == old.kind());
    let mut paths: Vec<String> =
        paths.flat_map(|(_, paths)| *paths).map(|path| (*path).to_owned()).collect();
    match (old, new) {
        (Object::PersistentVolumeClaim(old), Object::PersistentVolumeClaim(new)) => {
            paths.extend(of_claim(old, new).into_iter().map(str::to_owned));
        }
        (Object::PersistentVolume(_), _) => paths.extend(of_volume(&was, &is)),
        _ => {}
    }
    paths.retain(differs);
    paths
}

/// The volume name is set once; the request of a bound claim may grow.
fn of_claim(old: &PersistentVolumeClaim, new: &PersistentVolumeClaim) -> Vec<&'static str> {
    let mut paths = Vec::new();
    if !old.spec.volume_name.is_empty() {
        paths.push("spec.volumeName");
    }
    let storage = |claim: &PersistentVolumeClaim| {
        claim.spec.resources.requests.get("storage".into()).cloned()
    };
    let bound = new.status.phase == PersistentVolumeClaimPhase::Bound;
    if !bound || storage(new) < storage(old) {
        paths.push("spec.resources");
    }
    if !bound {
        paths.push("spec.volumeAttributesClassName");
    }
    paths
}

/// A node affinity may be added to a volume that has none.
fn of_volume(was: &Value, is: &Value) -> Vec<String> {
    let names = |of: &Value| -> Vec<String> {
        let spec = of.get("spec").and_then(Value::as_object);
        spec.into_iter().flat_map(|fields| fields.keys().cloned()).collect()
    };
    let mut all = names(was);
    all.extend(names(is).into_iter().filter(|name| name != "nodeAffinity"));
    all.sort_unstable();
    all.dedup();
    all.retain(|name| !MUTABLE_OF_VOLUME.contains(&name.as_str()));
    all.into_iter().map(|name| format!("spec.{name}")).collect()
}

/// The object as just created: without the status that controllers set.
pub(super) fn without_status(mut object: Object) -> Object {
    match &mut object {
        Object::PersistentVolumeClaim(claim) => Arc::make_mut(claim).status = Default::default(),
        Object::ResourceClaim(claim) => Arc::make_mut(claim).status = Default::default(),
        Object::PodGroup(group) => Arc::make_mut(group).status = Default::default(),
        _ => {}
    }
    object
}
