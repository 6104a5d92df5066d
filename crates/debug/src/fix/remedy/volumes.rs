//! Volumes: use another class, request what a free volume has, give the node access to the volume,
//! or delete the pod that uses it.
//!
//! The location of a bound volume is fixed: the API server rejects a change of an existing node
//! affinity (`ValidatePersistentVolumeUpdate` in `pkg/apis/core/validation`), and with another zone
//! label the pod would get a node to which the disk cannot be attached. Nothing is proposed for
//! that.

use std::sync::Arc;

use super::resources::evictable;
use super::{Obstacle, Remedies, affinity, delete};
use crate::edit::Edit;
use crate::why::cause::{
    CauseDetail, OtherZone, UnmetExpression, VolumeCause, VolumeLimit, VolumeProblem, VolumeTaken,
};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{NodeMatcher, Selector};
use kubestep_api::{
    Kind, Name, NodeSelector, ObjectKey, PersistentVolume, PersistentVolumeClaim, Quantity,
};
use kubestep_cluster::World;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_plugins::volume_binding::{SELECTED_NODE, capacity, requested};
use kubestep_plugins::volumes;
use serde_json::{Value, json};

/// Ways to match existing volumes that are tried per claim.
const WAYS: usize = 4;

/// The remedies for a claim that cannot use a volume on the node.
pub(super) fn claim(need: &Obstacle<'_>, cause: &VolumeCause) -> Remedies {
    let (world, key) = (need.world, cause.claim);
    let objects = world.api().objects();
    let Some(claim) = objects.persistent_volume_claims.get(&key) else { return Remedies::new() };
    match &cause.problem {
        VolumeProblem::ProvisionedForOtherNode { .. } => {
            let path = format!("metadata.annotations['{SELECTED_NODE}']");
            vec![vec![set(key, path, None)]]
        }
        VolumeProblem::OutOfReach { volume, unmet } => {
            within_reach(need, *volume, unmet).into_iter().collect()
        }
        // An edit of a claim that a controller created is lost when it creates the next.
        _ if claim.metadata.controller().is_some() => Remedies::new(),
        VolumeProblem::NoVolume { class, .. } => {
            let suiting = suiting(need, key, claim, *class).into_iter();
            suiting.chain(other_classes(world, key)).collect()
        }
        VolumeProblem::TopologyNotAllowed { class, .. } => {
            let object =
                ObjectKey { kind: Kind::StorageClass, namespace: Symbol::EMPTY, name: *class };
            let path = "allowedTopologies".to_owned();
            let anywhere = vec![Edit::Set { object, path, value: None }];
            other_classes(world, key).chain([anywhere]).collect()
        }
        VolumeProblem::NoSpace { largest, .. } => {
            let largest = largest.as_ref().and_then(|size| size.parse::<Quantity>().ok());
            let smaller = largest.filter(|size| !size.is_zero());
            let smaller = smaller.map(|size| vec![of_size(key, &size)]);
            smaller.into_iter().chain(other_classes(world, key)).collect()
        }
        _ => Remedies::new(),
    }
}

/// The changes of the claim for it to get a free volume of its class that the node can access: the
/// fewest changes first, then the largest volume.
fn suiting(
    need: &Obstacle<'_>,
    key: NamespacedName,
    claim: &PersistentVolumeClaim,
    class: Name,
) -> Remedies {
    let volumes = need.world.api().objects().persistent_volumes.sorted();
    let free = volumes.into_iter().map(|(_, volume)| volume).filter(|volume| {
        volume.spec.claim_ref.is_none() && volume.spec.storage_class_name == class
    });
    let reached = free.filter(|volume| reaches(need, volume));
    let reached: Vec<_> = reached.collect();
    let of_claim =
        |volume: &&Arc<PersistentVolume>| (capacity(volume), to_suit(key, claim, volume));
    let mut ways: Vec<(Quantity, Vec<Edit>)> = reached.iter().map(of_claim).collect();
    ways.retain(|(size, edits)| !size.is_zero() && !edits.is_empty());
    ways.sort_by(|a, b| (a.1.len().cmp(&b.1.len())).then(b.0.cmp(&a.0)));
    let mut distinct = Remedies::new();
    for (_, edits) in ways {
        if !distinct.contains(&edits) {
            distinct.push(edits);
        }
    }
    distinct.truncate(WAYS);
    distinct.extend(larger(key, claim, &reached));
    distinct
}

/// The largest of the volumes that are too small for the claim, and suit it otherwise, made as large
/// as the claim requests.
fn larger(
    key: NamespacedName,
    claim: &PersistentVolumeClaim,
    volumes: &[&Arc<PersistentVolume>],
) -> Option<Vec<Edit>> {
    let wanted = requested(claim)?;
    let too_small = |volume: &&&Arc<PersistentVolume>| {
        capacity(volume) < *wanted
            && to_suit(key, claim, volume) == [of_size(key, &capacity(volume))]
    };
    let volume = volumes.iter().filter(too_small).max_by_key(|volume| capacity(volume))?;
    let kind = Kind::PersistentVolume;
    let object = ObjectKey { kind, namespace: Symbol::EMPTY, name: volume.metadata.name };
    let path = "spec.capacity.storage".to_owned();
    Some(vec![Edit::Set { object, path, value: Some(json!(wanted.to_string())) }])
}

fn reaches(need: &Obstacle<'_>, volume: &PersistentVolume) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|nodes| nodes.required.as_ref());
    let Some(node) = &need.node.node else { return false };
    let matches = |required: &NodeSelector| {
        NodeMatcher::new(required, "").matches(&node.metadata.labels, Name::EMPTY)
    };
    required.is_none_or(|required| matches(required).unwrap_or(false))
}

/// The requirements of the claim that the volume does not meet, changed to what the volume has.
fn to_suit(
    key: NamespacedName,
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
) -> Vec<Edit> {
    let size = capacity(volume);
    let smaller = requested(claim).is_some_and(|wanted| size < *wanted);
    let selector = claim.spec.selector.as_ref();
    let selected = selector.is_none_or(|written| {
        Selector::new(Some(written)).is_ok_and(|s| s.matches(&volume.metadata.labels))
    });
    let (wanted, has) = (&claim.spec.access_modes, &volume.spec.access_modes);
    let kept: Vec<_> = wanted.iter().filter(|mode| has.contains(mode)).cloned().collect();
    let modes = if kept.is_empty() { has } else { &kept };
    let edits = [
        smaller.then(|| of_size(key, &size)),
        (!selected).then(|| set(key, "spec.selector".into(), None)),
        (modes != wanted).then(|| set(key, "spec.accessModes".into(), Some(json!(modes)))),
    ];
    edits.into_iter().flatten().collect()
}

/// Gives the node the labels that the volume's node affinity requires, if a person may set them.
fn within_reach(need: &Obstacle<'_>, volume: Name, unmet: &[UnmetExpression]) -> Option<Vec<Edit>> {
    let objects = need.world.api().objects();
    let volume = objects.persistent_volumes.get(&NamespacedName::new(Symbol::EMPTY, volume))?;
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    if unmet.iter().any(|one| is_of_driver(objects, one.key)) {
        return None;
    }
    required.node_selector_terms.iter().find_map(|term| affinity::label_all(need, term, unmet))
}

/// Whether the label is a topology key of a CSI driver: kubelets set those.
fn is_of_driver(objects: &Objects, label: Symbol) -> bool {
    let mut drivers = objects.csi_nodes.values().flat_map(|node| &node.spec.drivers);
    drivers.any(|driver| driver.topology_keys.contains(&label))
}

/// All other classes, for a claim whose volume is provisioned once the node is selected.
pub(super) fn other_classes(
    world: &World,
    claim: NamespacedName,
) -> impl Iterator<Item = Vec<Edit>> {
    let objects = world.api().objects();
    let own = objects.persistent_volume_claims.get(&claim).map(|claim| volumes::class_of(claim));
    let names = objects.storage_classes.keys().map(|key| key.name);
    names
        .filter(move |name| Some(*name) != own)
        .map(move |name| vec![of_class(claim, &name.text())])
}

/// Changes the class of a claim.
pub(super) fn of_class(claim: NamespacedName, class: &str) -> Edit {
    set(claim, "spec.storageClassName".into(), Some(json!(class)))
}

fn of_size(claim: NamespacedName, size: &Quantity) -> Edit {
    set(claim, "spec.resources.requests.storage".into(), Some(json!(size.to_string())))
}

fn set(claim: NamespacedName, path: String, value: Option<Value>) -> Edit {
    let kind = Kind::PersistentVolumeClaim;
    let object = ObjectKey { kind, namespace: claim.namespace, name: claim.name };
    Edit::Set { object, path, value }
}

/// The causes that no edit of the volume or the claim removes, and why.
pub(in crate::fix) fn unchangeable(detail: &CauseDetail) -> Option<String> {
    match detail {
        CauseDetail::OtherZone(OtherZone { volume, label, zones, .. }) => {
            let zones: Vec<String> = zones.iter().map(|zone| zone.to_string()).collect();
            let zones = zones.join("|");
            Some(format!(
                "the zone of volume {volume} is immutable: only a node in {label}={zones} can attach it"
            ))
        }
        CauseDetail::Volume(VolumeCause {
            problem: VolumeProblem::OutOfReach { volume, unmet },
            ..
        }) => {
            let unmet: Vec<&str> = unmet.iter().map(|one| one.expression.as_str()).collect();
            let nodes: String =
                if unmet.is_empty() { "other labels".into() } else { unmet.join(", ") };
            Some(format!(
                "the node affinity of volume {volume} is immutable: only a node with {nodes} \
                 reaches it"
            ))
        }
        _ => None,
    }
}

/// Deletes the pod that uses the volume.
pub(super) fn taken(taken: &VolumeTaken) -> Remedies {
    vec![vec![delete(taken.by)]]
}

/// Deletes the lowest-priority pod that has enough volumes of the driver on the node.
pub(super) fn over_limit(need: &Obstacle<'_>, limit: &VolumeLimit) -> Remedies {
    let Some(count) = limit.count else { return Remedies::new() };
    let objects = need.world.api().objects();
    let short = usize::try_from(count.attached + count.new - count.limit).unwrap_or(usize::MAX);
    let enough = evictable(need).filter(|pod| volumes_of(objects, pod, limit.driver) >= short);
    let chosen = enough.min_by_key(|pod| pod.priority());
    chosen.map(|pod| vec![delete(pod.key())]).into_iter().collect()
}

/// The number of a pod's volumes of the driver.
fn volumes_of(objects: &Objects, pod: &PodInfo, driver: Symbol) -> usize {
    let of_driver = |claim: &volumes::ClaimVolume| {
        let claim = objects.persistent_volume_claims.get(&claim.key)?;
        let name = NamespacedName::new(Symbol::EMPTY, claim.spec.volume_name);
        let volume = objects.persistent_volumes.get(&name)?;
        volume.spec.csi.as_ref().filter(|csi| csi.driver == driver)
    };
    volumes::claims(&pod.pod).filter(|claim| of_driver(claim).is_some()).count()
}
