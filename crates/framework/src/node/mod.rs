//! A node as the scheduler sees it: the object, its pods and their sums.
//!
//! Upstream: `NodeInfo` in `pkg/scheduler/framework/types.go`.

mod pod_list;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::pod_list::PodList;

use crate::pod::ports::HostPorts;
use crate::pod::{NamespacedName, PodInfo};
use crate::resource::Resource;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Node, Pod, Uid};

/// A node's slot: a small number that stays the same while the node exists, so that it can index
/// columns of verdicts and scores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The slot as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An image on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageState {
    /// The name of the image, with its tag.
    pub name: Symbol,
    /// Number of nodes that had the image when this node was last refreshed. As upstream, it is not
    /// updated when another node gets the image.
    pub num_nodes: u32,
    /// Size in bytes, as reported by the first node with the image.
    pub size: i64,
}

/// A node, its pods and their sums.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeInfo {
    /// The slot in snapshots and columns.
    pub id: NodeId,
    /// The name, also kept after the object is deleted.
    pub name: Name,
    /// The object; `None` for a ghost: a node that has pods but no object.
    pub node: Option<Arc<Node>>,
    /// The pods on it, in upstream's order, which changes when a pod is removed.
    pub pods: PodList,
    /// Those of `pods` with any pod affinity or anti-affinity.
    pub pods_with_affinity: PodList,
    /// Those of `pods` with required anti-affinity terms.
    pub pods_with_required_anti_affinity: PodList,
    /// Host ports in use.
    pub used_ports: HostPorts,
    /// Sum of the pods' requests.
    pub requested: Resource,
    /// Sum of CPU and memory, with defaults for containers that request none.
    pub non_zero_requested: Resource,
    /// The node's allocatable resources.
    pub allocatable: Resource,
    /// Images on the node, sorted by name.
    pub image_states: Arc<[ImageState]>,
    /// Number of pods that use each persistent volume claim.
    pub pvc_ref_counts: BTreeMap<NamespacedName, u32>,
    /// Number of the pods' volumes that may be attached to the node and are not in `pvc_ref_counts`.
    pub unclaimed_volumes: u32,
    /// The pods, by UID, that use each resource claim on the node's own resources: such a claim
    /// must not be shared.
    pub claim_users: BTreeMap<NamespacedName, BTreeSet<Uid>>,
    /// Changes whenever anything above changes; values are never reused.
    pub generation: u64,
}

impl NodeInfo {
    /// The node of an object, without pods and images: what upstream scores of a node that an
    /// extender returned.
    pub fn of_object(id: NodeId, node: Arc<Node>) -> NodeInfo {
        let mut info = NodeInfo::new(id, node.metadata.name);
        info.set_node(node);
        info
    }

    /// An empty node without an object.
    pub fn new(id: NodeId, name: Name) -> NodeInfo {
        NodeInfo {
            id,
            name,
            node: None,
            pods: PodList::default(),
            pods_with_affinity: PodList::default(),
            pods_with_required_anti_affinity: PodList::default(),
            used_ports: HostPorts::default(),
            requested: Resource::default(),
            non_zero_requested: Resource::default(),
            allocatable: Resource::default(),
            image_states: Arc::default(),
            pvc_ref_counts: BTreeMap::new(),
            unclaimed_volumes: 0,
            claim_users: BTreeMap::new(),
            generation: 0,
        }
    }

    /// The value of a label of the node's object.
    pub fn label(&self, key: Symbol) -> Option<Name> {
        self.node.as_ref()?.metadata.labels.get(key).copied()
    }

    /// Sets the node's object.
    pub fn set_node(&mut self, node: Arc<Node>) {
        self.allocatable =
            node.status.allocatable.as_ref().map(Resource::from_list).unwrap_or_default();
        self.node = Some(node);
    }

    /// Adds a pod and what it requests.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        if pod.has_affinity() {
            self.pods_with_affinity.push(pod.clone());
        }
        if !pod.class.terms.required_anti_affinity.is_empty() {
            self.pods_with_required_anti_affinity.push(pod.clone());
        }
        self.account(&pod, 1);
        self.pods.push(pod);
    }

    /// Removes and returns the pod with that UID; `None` if it is not on the node. As upstream, the
    /// last pod moves to its position in each list.
    pub fn remove_pod(&mut self, uid: Uid) -> Option<Arc<PodInfo>> {
        let pod = self.pods.swap_out(uid)?;
        if pod.has_affinity() {
            self.pods_with_affinity.swap_out(uid);
        }
        if !pod.class.terms.required_anti_affinity.is_empty() {
            self.pods_with_required_anti_affinity.swap_out(uid);
        }
        self.account(&pod, -1);
        Some(pod)
    }

    fn account(&mut self, pod: &PodInfo, sign: i64) {
        self.requested.accumulate(&pod.resource.resource, sign);
        self.non_zero_requested.milli_cpu += sign * pod.resource.non_zero_milli_cpu;
        self.non_zero_requested.memory += sign * pod.resource.non_zero_memory;
        for port in &pod.host_ports {
            match sign > 0 {
                true => self.used_ports.add(*port),
                false => self.used_ports.remove(*port),
            }
        }
        for claim in claim_keys(&pod.pod) {
            self.count_claim(claim, sign > 0);
        }
        let volumes = pod.pod.spec.volumes.iter();
        let unclaimed = volumes.filter(|volume| volume.attaches_without_claim()).count() as u32;
        self.unclaimed_volumes = match sign > 0 {
            true => self.unclaimed_volumes + unclaimed,
            false => self.unclaimed_volumes.saturating_sub(unclaimed),
        };
        for status in &pod.pod.status.node_allocatable_resource_claim_statuses {
            let namespace = pod.pod.metadata.namespace;
            let claim = NamespacedName::new(namespace, status.resource_claim_name);
            self.note_claim_user(claim, pod.uid(), sign > 0);
        }
    }

    fn note_claim_user(&mut self, claim: NamespacedName, pod: Uid, added: bool) {
        let users = self.claim_users.entry(claim).or_default();
        if added {
            users.insert(pod);
        } else {
            users.remove(&pod);
        }
        if users.is_empty() {
            self.claim_users.remove(&claim);
        }
    }

    fn count_claim(&mut self, claim: NamespacedName, added: bool) {
        let count = self.pvc_ref_counts.entry(claim).or_insert(0);
        *count = if added { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.pvc_ref_counts.remove(&claim);
        }
    }
}

/// The claims that a pod names directly. As upstream, ephemeral volumes do not count.
pub(crate) fn claim_keys(pod: &Pod) -> impl Iterator<Item = NamespacedName> + '_ {
    pod.spec
        .volumes
        .iter()
        .filter_map(|volume| volume.persistent_volume_claim.as_ref())
        .map(|claim| NamespacedName::new(pod.metadata.namespace, claim.claim_name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PodBuilder, info, pod};

    #[test]
    fn the_last_pod_takes_the_place_of_a_removed_one() {
        let mut node = NodeInfo::new(NodeId(0), "n".into());
        for name in ["a", "b", "c", "d"] {
            node.add_pod(info(pod(name).on("n").requests("cpu", "1")));
        }
        let names = |node: &NodeInfo| -> Vec<String> {
            node.pods.iter().map(|pod| pod.key().name.to_string()).collect()
        };
        let uid = |name: &str| pod(name).metadata.uid;
        assert!(node.remove_pod(uid("b")).is_some());
        assert_eq!(names(&node), ["a", "d", "c"]);
        assert!(node.remove_pod(uid("a")).is_some());
        assert_eq!(names(&node), ["c", "d"]);
        assert!(node.remove_pod(uid("a")).is_none());
        assert_eq!(node.requested.milli_cpu, 2000);
    }
}
