//! Remedies: what lifts a cause. One file a kind of cause. A remedy is only a suggestion to be
//! tried; it need not be certain to help.

mod affinity;
mod devices;
mod pods;
mod ports;
mod problem;
mod resources;
mod spread;
mod taints;
mod volumes;

use std::sync::Arc;

use serde_json::Value;

use crate::api::{Kind, ObjectKey, Pod};
use crate::debug::edit::{Edit, PodEdit};
use crate::debug::why::cause::{Cause, Detail};
use crate::engine::node::NodeInfo;
use crate::engine::pod::NamespacedName;
use crate::sim::World;

pub(super) use problem::{may_preempt, problems};

/// The ways to lift one cause; each is a list of edits.
pub(super) type Remedies = Vec<Vec<Edit>>;

/// A cause to be lifted.
pub(super) struct Need<'a> {
    pub world: &'a World,
    pub key: NamespacedName,
    pub pod: &'a Arc<Pod>,
    pub node: &'a NodeInfo,
    pub cause: &'a Cause,
}

impl Need<'_> {
    fn pod(&self, edit: PodEdit) -> Edit {
        Edit::Pod(self.key, edit)
    }

    /// Sets a field of the pod, or takes it away.
    fn set(&self, path: String, value: Option<Value>) -> Edit {
        set(self.key, path, value)
    }
}

/// The ways to lift a cause, the smaller first.
pub(super) fn of(need: &Need<'_>) -> Remedies {
    match &need.cause.detail {
        Detail::Cordoned(_) => taints::cordoned(need),
        Detail::Taint(taint) => taints::taint(need, taint),
        Detail::Affinity(mismatch) => affinity::mismatch(need, mismatch),
        Detail::PortTaken(taken) => ports::taken(need, taken),
        Detail::NoPodNear(near) => pods::no_pod_near(need, near),
        Detail::PodInTheWay(way) => pods::in_the_way(need, way),
        Detail::Spread(spread) => spread::uneven(need, spread),
        Detail::Shortage(shortage) => resources::shortage(need, shortage),
        Detail::VolumeLimit(limit) => volumes::over_limit(need, limit),
        Detail::Devices(cause) => devices::cannot_be_had(need, cause),
        _ => Vec::new(),
    }
}

fn set(key: NamespacedName, path: String, value: Option<Value>) -> Edit {
    let object = ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name };
    Edit::Set { object, path, value }
}

/// Deletes a pod.
fn delete(key: NamespacedName) -> Edit {
    Edit::Delete(ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name })
}
