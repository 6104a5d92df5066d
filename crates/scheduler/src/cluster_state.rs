//! What plugins see of the cluster. Upstream: `framework.Handle`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::host::SchedulerHost;
use kubestep_api::{Kind, Name, ObjectKey, Pod, Time};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{BindContext, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::pod_groups::group_of;
use kubestep_framework::shared::PluginStore;
use kubestep_framework::snapshot::Snapshot;

/// What plugins see of the cluster: objects, nodes, and the state that plugins share.
#[derive(Clone, Default)]
pub(crate) struct ClusterState {
    /// All objects except nodes.
    pub objects: Objects,
    /// The nodes with their pods, as of the last cycle that began.
    pub snapshot: Snapshot,
    pub shared: PluginStore,
    pub features: FeatureGates,
}

impl ClusterState {
    /// What plugins see when the queue asks them.
    pub(crate) fn queue_context(&self, now: Time) -> QueueContext<'_> {
        QueueContext { objects: &self.objects, features: &self.features, shared: &self.shared, now }
    }

    /// What plugins see from Reserve to PostBind, for a pod that goes to `node`.
    pub fn bind_context<'a>(
        &'a mut self,
        pod: &'a Arc<PodInfo>,
        node: Name,
        now: Time,
        host: &'a mut dyn SchedulerHost,
    ) -> BindContext<'a> {
        BindContext {
            pod,
            node,
            snapshot: &self.snapshot,
            objects: &self.objects,
            features: &self.features,
            shared: &mut self.shared,
            host,
            now,
        }
    }

    /// The group of a pod; `None` while the GenericWorkload gate is off.
    pub fn group(&self, pod: &Pod) -> Option<NamespacedName> {
        group_of(pod, &self.features).filter(|_| self.features.enabled(Feature::GenericWorkload))
    }

    /// Adds the pod to the members of its group, if it has one.
    pub(crate) fn add_group_member(&mut self, pod: &Pod) {
        if let Some(group) = self.group(pod) {
            self.shared.pod_groups.add(group, pod);
        }
    }

    /// Volumes, volume claims and resource claims that Reserve decided in memory and that are
    /// not yet written.
    pub fn reserved_objects(&self) -> BTreeSet<ObjectKey> {
        let key = |kind| {
            move |name: NamespacedName| ObjectKey {
                kind,
                namespace: name.namespace,
                name: name.name,
            }
        };
        let assumed = &self.shared.volumes;
        let volumes =
            assumed.volumes.names(&self.objects).into_iter().map(key(Kind::PersistentVolume));
        let claims =
            assumed.claims.names(&self.objects).into_iter().map(key(Kind::PersistentVolumeClaim));
        let devices = self.shared.claims.unwritten().map(key(Kind::ResourceClaim));
        volumes.chain(claims).chain(devices).collect()
    }
}
