//! Remedies: edits that may remove a cause, one file per kind of cause. A remedy is a suggestion to
//! be tried; it need not help.

mod affinity;
mod devices;
mod missing;
mod node;
mod pods;
pub(super) mod priority;
mod problem;
mod resources;
mod spread;
mod volumes;

use std::sync::Arc;

use serde_json::Value;

use crate::edit::{Edit, PodEdit, owner};
use crate::why::cause::{Cause, CauseDetail};
use kubestep_api::{Kind, ObjectKey, Pod};
use kubestep_cluster::World;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::{NamespacedName, PodInfo};

pub(super) use problem::{problems, smaller_group};
pub(super) use resources::{evict, holders};
pub(super) use volumes::unchangeable;

/// The ways to remove one cause; each is a list of edits.
pub(super) type Remedies = Vec<Vec<Edit>>;

/// A cause to be removed.
pub(super) struct Obstacle<'a> {
    pub world: &'a World,
    pub key: NamespacedName,
    pub pod: &'a Arc<Pod>,
    pub node: &'a NodeInfo,
    /// The pods nominated to the node.
    pub nominated: &'a [Arc<PodInfo>],
    pub cause: &'a Cause,
}

impl Obstacle<'_> {
    fn pod(&self, edit: PodEdit) -> Edit {
        Edit::Pod(self.key, edit)
    }

    /// Sets a field of the pod, or removes it.
    fn set(&self, path: String, value: Option<Value>) -> Edit {
        set(self.key, path, value)
    }
}

/// The ways to remove a cause, smaller ones first; without edits that a cluster would undo.
pub(super) fn of(need: &Obstacle<'_>) -> Remedies {
    let lasts = |edit: &Edit| match edit {
        Edit::Delete(key) => leaves_for_good(need.world, *key),
        _ => true,
    };
    let mut remedies = suggested(need);
    remedies.retain(|edits| edits.iter().all(lasts));
    remedies
}

/// Whether deleting the object frees its resources on the node. It does not for static pods, which
/// their kubelet keeps running, for pods of a DaemonSet, which are recreated on the node, and for
/// pods that are already being deleted.
fn leaves_for_good(world: &World, key: ObjectKey) -> bool {
    let name = NamespacedName::new(key.namespace, key.name);
    let pod = world.api().objects().pod(name).filter(|_| key.kind == Kind::Pod);
    pod.is_none_or(|pod| !owner::is_of_node(pod) && !pod.is_terminating())
}

fn suggested(need: &Obstacle<'_>) -> Remedies {
    match &need.cause.detail {
        CauseDetail::Cordoned(_) => node::cordoned(need),
        CauseDetail::Taint(taint) => node::taint(need, taint),
        CauseDetail::Affinity(mismatch) => affinity::mismatch(need, mismatch),
        CauseDetail::PortTaken(taken) => pods::port_taken(need, taken),
        CauseDetail::NoPodNear(near) => pods::no_pod_near(need, near),
        CauseDetail::BlockedByPod(way) => pods::blocked_by_pod(need, way),
        CauseDetail::Spread(spread) => spread::uneven(need, spread),
        CauseDetail::Shortage(shortage) => resources::shortage(need, shortage),
        CauseDetail::Volume(cause) => volumes::claim(need, cause),
        CauseDetail::VolumeTaken(taken) => volumes::taken(taken),
        CauseDetail::VolumeLimit(limit) => volumes::over_limit(need, limit),
        CauseDetail::Devices(cause) => devices::unavailable(need, cause),
        CauseDetail::Plugin(cause) => resources::of_plugin(need, cause),
        _ => Vec::new(),
    }
}

fn set(key: NamespacedName, path: String, value: Option<Value>) -> Edit {
    let object = ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name };
    Edit::Set { object, path, value }
}

fn delete(key: NamespacedName) -> Edit {
    Edit::Delete(ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name })
}
