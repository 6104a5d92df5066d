//! The state of the pods between cycles: in which queue and why, or on which node.
//!
//! A [`PodStates`] is a plain copy, small enough to compare and to print; the corpus contains one after
//! every step.

use std::collections::BTreeMap;

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::objects::Objects;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_scheduler::queue::SchedulingQueue;

/// A pod in a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodState {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The plugins that rejected it, sorted.
    pub plugins: Vec<Symbol>,
    /// The plugins that answered Pending, sorted.
    pub pending: Vec<Symbol>,
    /// Whether a PreEnqueue plugin gates it.
    pub gated: bool,
    /// The number of attempts.
    pub attempts: u32,
}

impl PodState {
    /// The state of a pod in the queue.
    pub fn new(queued: &QueuedPodInfo) -> PodState {
        let sorted = |plugins: &[Symbol]| {
            let mut plugins = plugins.to_vec();
            plugins.sort_unstable();
            plugins
        };
        PodState {
            pod: queued.key(),
            plugins: sorted(&queued.unschedulable_plugins),
            pending: sorted(&queued.pending_plugins),
            gated: queued.is_gated(),
            attempts: queued.attempts,
        }
    }
}

/// The state of all pods.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PodStates {
    /// The active queue, in the order in which pods are popped.
    pub active: Vec<PodState>,
    /// The backoff queue, in the order in which backoffs end.
    pub backoff: Vec<PodState>,
    /// The unschedulable pods, gated ones included.
    pub unschedulable: Vec<PodState>,
    /// Pods with a node.
    pub placed: BTreeMap<NamespacedName, Name>,
    /// Pods with a nominated node.
    pub nominated: BTreeMap<NamespacedName, Name>,
    /// Pods deleted since the previous state.
    pub deleted: Vec<NamespacedName>,
}

impl PodStates {
    /// The state of the pods in `queue` and `objects`, after `deleted` were deleted.
    pub fn new(
        queue: &SchedulingQueue,
        objects: &Objects,
        deleted: Vec<NamespacedName>,
    ) -> PodStates {
        let all = |pods: Vec<&QueuedPodInfo>| pods.into_iter().map(PodState::new).collect();
        let mut unschedulable: Vec<PodState> = all(queue.unschedulable());
        unschedulable.extend(queue.gated().into_iter().map(PodState::new));
        let mut state = PodStates {
            active: all(queue.active()),
            backoff: all(queue.backoff()),
            unschedulable,
            deleted,
            ..PodStates::default()
        };
        for (key, pod) in objects.pods.iter() {
            let node = pod.spec.node_name;
            if !node.is_empty() {
                state.placed.insert(*key, node);
            }
            let nominated = pod.status.nominated_node_name;
            if !nominated.is_empty() {
                state.nominated.insert(*key, nominated);
            }
        }
        state
    }
}
