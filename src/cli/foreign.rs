//! What is said about files of other tools: what they are, and what they do not hold although a
//! pod asks for it.

use std::collections::BTreeSet;

use kubestep_api::{Kind, Object, Pod};
use kubestep_live::kinds;
use kubestep_source::{Foreign, Input};

/// Sentences about all such files of an input.
pub(super) fn notices(input: &Input) -> Vec<String> {
    let there: BTreeSet<Kind> = input.objects.iter().map(|loaded| loaded.object.kind()).collect();
    input.foreign.iter().flat_map(|file| of_file(file, input, &there)).collect()
}

fn of_file(file: &Foreign, input: &Input, there: &BTreeSet<Kind>) -> Vec<String> {
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

/// Kinds that are of use together only: without the first, nothing is known of the others.
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

/// The kinds with what is not known without the first of them.
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

fn pods(input: &Input) -> impl Iterator<Item = &Pod> {
    input.objects.iter().filter_map(|loaded| match &loaded.object {
        Object::Pod(pod) if !pod.is_terminal() => Some(&**pod),
        _ => None,
    })
}

/// Without nodes and pods there is nothing at all to be decided.
fn is_base(kind: Kind) -> bool {
    matches!(kind, Kind::Node | Kind::Pod)
}

fn asked_for(input: &Input, kind: Kind) -> bool {
    pods(input).any(|pod| asks_for(pod, kind))
}

/// Whether what becomes of the pod may depend on objects of the kind.
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
        Kind::PodGroup | Kind::Workload => spec.scheduling_group.is_some(),
        // Terms of affinity name namespaces, and services, sets and budgets name pods.
        Kind::Namespace => spec.affinity.is_some(),
        Kind::PodDisruptionBudget => true,
        Kind::Node | Kind::Pod => is_base(kind),
        Kind::Service | Kind::ReplicationController | Kind::ReplicaSet | Kind::StatefulSet => {
            spec.topology_spread_constraints.is_empty()
        }
    }
}
