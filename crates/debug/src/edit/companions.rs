//! What the components of a cluster create and delete along with an object.
//!
//! With a node come its CSINode, the resource slices of its own devices, and custom objects that
//! report about it: a copy of the node gets copies of them, as its kubelet, drivers and agents would
//! publish them. When a pod is deleted, its
//! reservations of resource claims are removed, and claims without a user are deallocated, as by
//! the resource claim controller.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_api::{CsiNode, Name, Object, ResourceClaim, ResourceSlice, Uid, admission};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// Creates for the node `name` copies of what the node `like` has.
pub(crate) fn create(world: &mut World, like: Name, name: Name) {
    let objects = world.api().objects();
    let csi_node = objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, like));
    let csi_node = csi_node.map(|original| Object::from(csi_node_of(original, name)));
    let own = objects.resource_slices.values().filter(|slice| slice.spec.node_name == Some(like));
    let slices = own.map(|slice| Object::from(slice_of(slice, like, name)));
    let key = NamespacedName::new(Symbol::EMPTY, like);
    let reports = objects.custom.values().filter_map(|all| all.get(&key)?.of_empty_node(name));
    let reports = reports.map(|report| Object::Custom(Arc::new(report)));
    let companions: Vec<Object> = csi_node.into_iter().chain(slices).chain(reports).collect();
    for mut object in companions {
        admission::identify(&mut object);
        world.create(object);
    }
}

fn csi_node_of(original: &CsiNode, name: Name) -> CsiNode {
    let mut copy = original.clone();
    copy.metadata.name = name;
    copy.metadata.uid = Uid::EMPTY;
    copy
}

/// The same devices in a pool of their own.
fn slice_of(original: &ResourceSlice, like: Name, name: Name) -> ResourceSlice {
    let mut copy = original.clone();
    copy.metadata.name = renamed(original.metadata.name, like, name);
    copy.metadata.uid = Uid::EMPTY;
    copy.spec.node_name = Some(name);
    copy.spec.pool.name = renamed(original.spec.pool.name, like, name);
    copy
}

/// The text with one node's name replaced by the other's.
fn renamed(text: Name, like: Name, name: Name) -> Name {
    let (like, before) = (like.text(), text.text());
    match before.contains(like.as_str()) {
        true => Name::new(&before.replace(like.as_str(), &name.text())),
        false => Name::new(&format!("{text}-{name}")),
    }
}

/// Removes a deleted pod from the claims that it used. Returns which of them are free now.
pub(super) fn free_claims(world: &mut World, pod: NamespacedName) -> Vec<String> {
    let claims = world.api().objects().resource_claims.sorted().into_iter();
    let claims = claims.map(|(_, claim)| claim).filter(|claim| is_used_by(claim, pod));
    let used: Vec<Arc<ResourceClaim>> = claims.cloned().collect();
    let mut notes = Vec::new();
    for mut claim in used {
        let changed = Arc::make_mut(&mut claim);
        changed.status.reserved_for.retain(|user| user.resource != "pods" || user.name != pod.name);
        let key = NamespacedName::new(changed.metadata.namespace, changed.metadata.name);
        if changed.status.reserved_for.is_empty() && changed.status.allocation.take().is_some() {
            notes.push(format!("the devices of resourceclaim {key} are free"));
        }
        world.update(Object::from(claim));
    }
    notes
}

fn is_used_by(claim: &ResourceClaim, pod: NamespacedName) -> bool {
    let mut users = claim.status.reserved_for.iter();
    claim.metadata.namespace == pod.namespace
        && users.any(|user| user.resource == "pods" && user.name == pod.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::{edit, world};
    use kubestep_source::fixtures;

    fn world_of(story: &str) -> World {
        world(fixtures::find(story).unwrap().cluster)
    }

    #[test]
    fn a_copy_of_a_node_has_devices_and_disks_of_its_own() {
        let mut world = world_of("device-taken");
        edit("add 2 nodes like gpu-0").apply(&mut world).unwrap();
        let slices = &world.api().objects().resource_slices;
        let named = |name: &str| slices.get(&NamespacedName::new(Symbol::EMPTY, name.into()));
        let slice = named("gpu-0-copy-2-gpu.example.com").unwrap();
        assert_eq!(slice.spec.node_name, Some("gpu-0-copy-2".into()));
        assert_eq!(slice.spec.pool.name, "gpu-0-copy-2");
        assert_eq!(slices.len(), 4, "two there were, and two are new");
        let mut world = world_of("volume-limit");
        edit("add 1 node like node-1").apply(&mut world).unwrap();
        let key = NamespacedName::new(Symbol::EMPTY, "node-1-copy-1".into());
        let copy = world.api().objects().csi_nodes.get(&key).unwrap();
        assert_eq!(copy.spec.drivers[0].allocatable.as_ref().unwrap().count, Some(2));
    }

    #[test]
    fn devices_of_a_deleted_pod_are_free() {
        let mut world = world_of("device-taken");
        let applied = edit("delete pod render").apply(&mut world).unwrap();
        assert_eq!(applied.notes, ["the devices of resourceclaim default/render are free"]);
        let claims = &world.api().objects().resource_claims;
        let key = NamespacedName::new("default".into(), "render".into());
        let claim = claims.get(&key).unwrap();
        assert!(claim.status.allocation.is_none() && claim.status.reserved_for.is_empty());
        world.run(10);
        let key = NamespacedName::new("default".into(), "train".into());
        assert_eq!(world.api().objects().pod(key).unwrap().spec.node_name, "gpu-0");
    }
}
