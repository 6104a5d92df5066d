//! Objects that the pod or its claims refer to and that do not exist: use the name that was
//! probably meant. Claims without a volume: use a class that provisions one.

use serde_json::json;

use super::volumes::{of_class, other_classes};
use super::{Remedies, set};
use crate::edit::Edit;
use crate::why::references::{self, Reference, ReferenceField};
use kubestep_api::{Kind, Name, ObjectKey};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// For each missing object, the ways to refer to an existing one.
pub(super) fn objects(world: &World, key: NamespacedName) -> Vec<Remedies> {
    let objects = world.api().objects();
    let Some(pod) = objects.pod(key) else { return Vec::new() };
    let missing = references::missing(objects, pod);
    missing.iter().map(|reference| renamed(world, key, reference)).collect()
}

fn renamed(world: &World, pod: NamespacedName, reference: &Reference) -> Remedies {
    let objects = world.api().objects();
    let near = reference.near(objects);
    match &reference.field {
        ReferenceField::OfPod(path) => {
            let edit = |near: Name| vec![set(pod, path.clone(), Some(json!(near)))];
            near.map(edit).into_iter().collect()
        }
        ReferenceField::OfClaim(claim, path) => {
            let kind = Kind::ResourceClaim;
            let object = ObjectKey { kind, namespace: claim.namespace, name: claim.name };
            let edit = |near: Name| {
                let (path, value) = (path.clone(), Some(json!(near)));
                vec![Edit::Set { object, path, value }]
            };
            near.map(edit).into_iter().collect()
        }
        ReferenceField::ClassOf(claim) => match near {
            Some(near) => vec![vec![of_class(*claim, &near.text())]],
            None => other_classes(world, *claim).collect(),
        },
        ReferenceField::Generated => Remedies::new(),
    }
}

/// For each claim that must be bound but is not, the classes with delayed binding.
pub(super) fn unbound(world: &World, key: NamespacedName) -> Vec<Remedies> {
    let objects = world.api().objects();
    let Some(pod) = objects.pod(key) else { return Vec::new() };
    let unbound = references::unbound(objects, pod).into_iter();
    unbound.map(|claim| other_classes(world, claim.key).collect()).collect()
}
