//! Volumes: another class, a smaller claim, or the pod that has the volume lets it go.

use serde_json::{Value, json};

use super::resources::evictable;
use super::{Need, Remedies, delete};
use crate::edit::Edit;
use crate::why::cause::{VolumeCause, VolumeLimit, VolumeProblem, VolumeTaken};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, ObjectKey, PersistentVolumeClaim, Quantity};
use kubestep_cluster::World;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_plugins::volume_binding::{SELECTED_NODE, capacity, requested};
use kubestep_plugins::volumes;

/// Sizes of existing volumes that are tried for a claim, the largest first.
const SIZES: usize = 3;

/// What helps a claim that cannot have its volume on the node.
pub(super) fn claim(need: &Need<'_>, cause: &VolumeCause) -> Remedies {
    let (world, key) = (need.world, cause.claim);
    let objects = world.api().objects();
    let Some(claim) = objects.persistent_volume_claims.get(&key) else { return Remedies::new() };
    match &cause.problem {
        VolumeProblem::MadeElsewhere { .. } => {
            let path = format!("metadata.annotations['{SELECTED_NODE}']");
            vec![vec![set(key, path, None)]]
        }
        // Whatever is set in a claim that a controller made is lost with the next one.
        _ if claim.metadata.controller().is_some() => Remedies::new(),
        VolumeProblem::NoVolume { class, .. } => {
            let sizes = smaller_sizes(objects, claim, *class);
            let smaller = sizes.into_iter().map(|size| vec![of_size(key, &size)]);
            let selector = claim.spec.selector.as_ref();
            let any = selector.map(|_| vec![set(key, "spec.selector".into(), None)]);
            smaller.chain(any).chain(other_classes(world, key)).collect()
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

/// The sizes of free volumes of the class that are smaller than what the claim asks for, the
/// largest first.
fn smaller_sizes(objects: &Objects, claim: &PersistentVolumeClaim, class: Symbol) -> Vec<Quantity> {
    let Some(wanted) = requested(claim) else { return Vec::new() };
    let free = objects.persistent_volumes.values().filter(|volume| {
        volume.spec.claim_ref.is_none() && volume.spec.storage_class_name == class
    });
    let mut sizes: Vec<Quantity> = free.map(|volume| capacity(volume)).collect();
    sizes.retain(|size| size < wanted && !size.is_zero());
    sizes.sort_by(|a, b| b.cmp(a));
    sizes.dedup();
    sizes.truncate(SIZES);
    sizes
}

/// Every other class, for a claim whose volume is to be provisioned once the node is known.
pub(super) fn other_classes(
    world: &World,
    claim: NamespacedName,
) -> impl Iterator<Item = Vec<Edit>> {
    let objects = world.api().objects();
    let own = objects.persistent_volume_claims.get(&claim).map(|claim| volumes::class_of(claim));
    let names = objects.storage_classes.keys().map(|key| key.name);
    names.filter(move |name| Some(*name) != own).map(move |name| vec![of_class(claim, &name)])
}

/// Lets a claim have that class.
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

/// The pod that uses the volume lets it go.
pub(super) fn taken(taken: &VolumeTaken) -> Remedies {
    vec![vec![delete(taken.by)]]
}

/// The least important pod that has enough volumes of the driver there lets them go.
pub(super) fn over_limit(need: &Need<'_>, limit: &VolumeLimit) -> Remedies {
    let Some(count) = limit.count else { return Remedies::new() };
    let objects = need.world.api().objects();
    let short = usize::try_from(count.attached + count.new - count.limit).unwrap_or(usize::MAX);
    let enough = evictable(need).filter(|pod| volumes_of(objects, pod, limit.driver) >= short);
    let chosen = enough.min_by_key(|pod| pod.priority());
    chosen.map(|pod| vec![delete(pod.key())]).into_iter().collect()
}

/// How many volumes of the driver a pod has.
fn volumes_of(objects: &Objects, pod: &PodInfo, driver: Symbol) -> usize {
    let of_driver = |claim: &volumes::ClaimVolume| {
        let claim = objects.persistent_volume_claims.get(&claim.key)?;
        let name = NamespacedName::new(Symbol::EMPTY, claim.spec.volume_name);
        let volume = objects.persistent_volumes.get(&name)?;
        volume.spec.csi.as_ref().filter(|csi| csi.driver == driver)
    };
    volumes::claims(&pod.pod).filter(|claim| of_driver(claim).is_some()).count()
}
