//! Volumes: a class that exists, or one volume less on the node.

use serde_json::json;

use super::resources::evictable;
use super::{Need, Remedies, delete};
use crate::api::{Kind, ObjectKey, Pod};
use crate::config::suggest;
use crate::debug::edit::Edit;
use crate::debug::why::cause::VolumeLimit;
use crate::engine::objects::Objects;
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::volumes;
use crate::intern::Symbol;
use crate::sim::World;

/// The class that was probably meant, else each there is, for claims of a class that is not there.
pub(super) fn other_class(world: &World, pod: &Pod) -> Remedies {
    let objects = world.api().objects();
    let there = |class: Symbol| {
        objects.storage_classes.contains_key(&NamespacedName::new(Symbol::EMPTY, class))
    };
    let known: Vec<&str> = objects.storage_classes.keys().map(|key| key.name.as_str()).collect();
    let mut remedies = Remedies::new();
    for volume in volumes::claims(pod) {
        let Some(claim) = objects.persistent_volume_claims.get(&volume.key) else { continue };
        let class = volumes::class_of(claim);
        if class.is_empty() || there(class) {
            continue;
        }
        let near = suggest::closest(&class, known.iter().copied());
        let chosen = near.map_or_else(|| known.clone(), |near| vec![near]);
        remedies.extend(chosen.into_iter().map(|name| vec![of_class(volume.key, name)]));
    }
    remedies
}

fn of_class(claim: NamespacedName, class: &str) -> Edit {
    let kind = Kind::PersistentVolumeClaim;
    let object = ObjectKey { kind, namespace: claim.namespace, name: claim.name };
    Edit::Set { object, path: "spec.storageClassName".into(), value: Some(json!(class)) }
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
