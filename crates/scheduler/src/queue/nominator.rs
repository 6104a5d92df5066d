//! Which pods are nominated to which nodes.
//!
//! Upstream: `pkg/scheduler/backend/queue/nominator.go`.

use std::mem::take;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use kubestep_api::{Name, Pod, Uid};
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::nominated::NominatedPods;
use kubestep_framework::pod::{NamespacedName, PodInfo};

/// A reference to a nominated pod.
#[derive(Clone, Copy, PartialEq, Debug)]
struct NominatedPodRef {
    /// Namespace and name of the pod.
    key: NamespacedName,
    uid: Uid,
}

/// Nominated pods by node, in the order nominated, and the node by the pod's UID.
#[derive(Clone, Default)]
pub(super) struct Nominator {
    /// Which pod is at which position in the lists of `pods`.
    by_node: HashMap<Name, Vec<NominatedPodRef>>,
    node_of: HashMap<Uid, Name>,
    /// The nodes by pod: two pods may bear a name one after the other.
    nodes_of: HashMap<NamespacedName, Vec<Name>>,
    /// As they were queued when they were last [updated](Nominator::update_pods).
    pods: NominatedPods,
    /// Pods that were nominated, queued, popped or replaced since.
    touched: HashSet<NamespacedName>,
}

impl Nominator {
    /// Nominates `pod` to `node`, or with `None` to the node of its own status. An empty name ends
    /// its nomination: upstream lists such pods under the empty name, where nothing reads them. A
    /// pod that was deleted or is already bound is not nominated.
    pub(super) fn add(&mut self, pod: &Pod, node: Option<Name>, objects: &Objects) {
        let uid = pod.metadata.uid;
        self.remove(uid);
        let node = node.unwrap_or(pod.status.nominated_node_name);
        let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        if node.is_empty()
            || objects.pod(key).is_none_or(|listed| !listed.spec.node_name.is_empty())
        {
            return;
        }
        let pod = NominatedPodRef { key, uid };
        self.node_of.insert(uid, node);
        self.nodes_of.entry(key).or_default().push(node);
        self.by_node.entry(node).or_default().push(pod);
        self.pods.push(node, stub(pod));
        self.touched.insert(key);
    }

    /// Replaces `old` by `new`. If neither object carries a nomination, one that only the scheduler
    /// knows of so far is kept.
    pub(super) fn update(&mut self, old: &Pod, new: &Pod, objects: &Objects) {
        let silent = |pod: &Pod| pod.status.nominated_node_name.is_empty();
        let known = self.node_of.get(&old.metadata.uid).copied();
        let keep = if silent(old) && silent(new) { known } else { None };
        self.remove(old.metadata.uid);
        self.add(new, keep, objects);
    }

    /// Deletes the pod's nomination.
    pub(super) fn remove(&mut self, uid: Uid) {
        let Some(node) = self.node_of.remove(&uid) else { return };
        let Some(pods) = self.by_node.get_mut(&node) else { return };
        let Some(at) = pods.iter().position(|pod| pod.uid == uid) else { return };
        let pod = pods.remove(at);
        if pods.is_empty() {
            self.by_node.remove(&node);
        }
        self.pods.remove(node, at);
        self.leave(pod.key, node);
    }

    fn leave(&mut self, key: NamespacedName, node: Name) {
        let Some(nodes) = self.nodes_of.get_mut(&key) else { return };
        if let Some(at) = nodes.iter().position(|other| *other == node) {
            nodes.swap_remove(at);
        }
        if nodes.is_empty() {
            self.nodes_of.remove(&key);
        }
    }

    /// Whether the pod with that UID is nominated.
    pub(super) fn contains(&self, uid: Uid) -> bool {
        self.node_of.contains_key(&uid)
    }

    /// Notes that a pod was queued, popped or replaced.
    pub(super) fn touch(&mut self, key: NamespacedName) {
        self.touched.insert(key);
    }

    /// Whether a pod with that name is nominated.
    pub(super) fn concerns(&self, key: NamespacedName) -> bool {
        self.nodes_of.contains_key(&key)
    }

    /// Whether no pod was touched since the last update.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.touched.is_empty()
    }

    /// The nominated pods, each as it is queued now; one that is not queued is a stub.
    pub(super) fn current(
        &self,
        queued: impl Fn(NamespacedName) -> Option<Arc<PodInfo>>,
    ) -> NominatedPods {
        let mut pods = self.pods.clone();
        self.replace_touched(&mut pods, queued);
        pods
    }

    /// The same, kept for the next call.
    pub(super) fn update_pods(
        &mut self,
        queued: impl Fn(NamespacedName) -> Option<Arc<PodInfo>>,
    ) -> NominatedPods {
        // Taken out, so that the list is not copied.
        let mut pods = take(&mut self.pods);
        self.replace_touched(&mut pods, queued);
        self.touched.clear();
        self.pods = pods.clone();
        pods
    }

    fn replace_touched(
        &self,
        pods: &mut NominatedPods,
        queued: impl Fn(NamespacedName) -> Option<Arc<PodInfo>>,
    ) {
        for key in &self.touched {
            for node in self.nodes_of.get(key).into_iter().flatten() {
                let on_node = self.by_node.get(node).into_iter().flatten().enumerate();
                for (at, pod) in on_node.filter(|(_, pod)| pod.key == *key) {
                    pods.replace(*node, at, queued(*key).unwrap_or_else(|| stub(*pod)));
                }
            }
        }
    }

    /// Whether each pod is as it is queued now.
    pub(super) fn is_as_queued(
        &self,
        queued: impl Fn(NamespacedName) -> Option<Arc<PodInfo>>,
    ) -> bool {
        self.by_node.iter().all(|(node, pods)| {
            let listed = self.pods.for_node(*node);
            let is_current = |(pod, info): (&NominatedPodRef, &Arc<PodInfo>)| match queued(pod.key)
            {
                Some(now) => Arc::ptr_eq(&now, info),
                None => *info == stub(*pod),
            };
            listed.len() == pods.len() && pods.iter().zip(listed).all(is_current)
        })
    }
}

/// What is known of a pod that is in no queue.
fn stub(pod: NominatedPodRef) -> Arc<PodInfo> {
    let mut stub = Pod::default();
    stub.metadata.namespace = pod.key.namespace;
    stub.metadata.name = pod.key.name;
    stub.metadata.uid = pod.uid;
    Arc::new(PodInfo::new(Arc::new(stub)))
}
