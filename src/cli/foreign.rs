//! Notices about files of other tools: what they are, and what they lack although a pod depends on
//! it.

use std::collections::BTreeSet;

use kubestep_api::{Kind, Object, Pod};
use kubestep_live::kinds;
use kubestep_source::{Foreign, ReadInput};

/// The notices about all such files of an input.
pub(super) fn notices(input: &ReadInput) -> Vec<String> {
    let there: BTreeSet<Kind> = input.objects.iter().map(|loaded| loaded.object.kind()).collect();
    input.foreign.iter().flat_map(|file| of_file(file, input, &there)).collect()
}

fn of_file(file: &Foreign, input: &ReadInput, there: &BTreeSet<Kind>) -> Vec<String> {
    let mut said = vec![format!("{} is {}", file.file, file.format)];
    said.extend(file.notes.iter().map(|note| format!("{}: {note}", file.file)));
    let missing: Vec<Kind> =
        file.lacks.iter().copied().filter(|kind| !there.contains(kind)).collect();
    let (asked, others): (Vec<Kind>, Vec<Kind>) =
        missing.into_iter().partition(|kind| is_base(*kind) || asked_for(input, *kind));
    for (kinds, without) in losses(&asked) {
        said.push(format!("{} holds no {}: {without}", file.file, kinds.join(", ")));
    }
    if !others.is_empty() {
        let kinds: Vec<&str> = others.iter().map(|kind| kind.plural()).collect();
        let file = &file.file;
        said.push(format!("{file} holds no {} either; no pod asks for them", kinds.join(", ")));
    }
    said
}

/// Kinds that are only useful together: without the first, the others are ignored.
const TOGETHER: &[&[Kind]] = &[
    &[
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::StorageClass,
        Kind::CsiNode,
        Kind::CsiDriver,
        Kind::CsiStorageCapacity,
        Kind::VolumeAttachment,
    ],
    &[
        Kind::ResourceClaim,
        Kind::ResourceSlice,
        Kind::DeviceClass,
        Kind::DeviceTaintRule,
        Kind::ResourceClaimTemplate,
    ],
    &[Kind::ReplicaSet, Kind::StatefulSet, Kind::ReplicationController, Kind::Service],
];

/// The missing kinds, each with the consequence.
fn losses(missing: &[Kind]) -> Vec<(Vec<&'static str>, &'static str)> {
    let mut rest = missing.to_vec();
    let mut losses = Vec::new();
    while let Some(first) = rest.first().copied() {
        let alone = [first];
        let group = TOGETHER.iter().copied().find(|group| group.contains(&first)).unwrap_or(&alone);
        let kinds: Vec<Kind> = group.iter().copied().filter(|kind| rest.contains(kind)).collect();
        rest.retain(|kind| !kinds.contains(kind));
        let without =
            kinds.first().and_then(|kind| kinds::row(*kind)).map_or("", |row| row.without);
        losses.push((kinds.iter().map(|kind| kind.plural()).collect(), without));
    }
    losses
}

fn pods(input: &ReadInput) -> impl Iterator<Item = &Pod> {
    input.objects.iter().filter_map(|loaded| match &loaded.object {
        Object::Pod(pod) if !pod.is_terminal() => Some(&**pod),
        _ => None,
    })
}

/// Whether nothing can be scheduled without that kind: nodes and pods.
fn is_base(kind: Kind) -> bool {
    matches!(kind, Kind::Node | Kind::Pod)
}

fn asked_for(input: &ReadInput, kind: Kind) -> bool {
    pods(input).any(|pod| asks_for(pod, kind))
}

/// Whether the result for the pod may depend on objects of the kind.
fn asks_for(pod: &Pod, kind: Kind) -> bool {
    let spec = &pod.spec;
    match kind {
        Kind::PersistentVolumeClaim
        | Kind::PersistentVolume
        | Kind::StorageClass
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::CsiStorageCapacity
        | Kind::VolumeAttachment => spec
            .volumes
            .iter()
            .any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()),
        Kind::ResourceClaim
        | Kind::ResourceClaimTemplate
        | Kind::ResourceSlice
        | Kind::DeviceClass
        | Kind::DeviceTaintRule => !spec.resource_claims.is_empty(),
        Kind::PriorityClass => spec.priority.is_none() && !spec.priority_class_name.is_empty(),
        Kind::PodGroup | Kind::Workload => {
            spec.scheduling_group.is_some() || spec.workload_ref.is_some()
        }
        // Affinity terms refer to namespaces; services, sets and budgets select pods.
        Kind::Namespace => spec.affinity.is_some(),
        Kind::PodDisruptionBudget => true,
        Kind::Node | Kind::Pod => is_base(kind),
        Kind::Service | Kind::ReplicationController | Kind::ReplicaSet | Kind::StatefulSet => {
            spec.topology_spread_constraints.is_empty()
        }
        Kind::Custom(_) => false,
    }
}
