//! Disruptions: nodes that are drained or lost, and what the rest of the control plane does then.
//!
//! From the first disruption on, the cluster has the controllers that replace pods (`replace.rs`)
//! and the one that keeps disruption budgets (`budget.rs`); a drain goes on by itself until its
//! nodes are empty (`drain.rs`), and so do updates of workloads (`crate::rollout`). The scheduler places the replacements in cycles as ever. Three
//! things differ from a real cluster: a deleted pod has no grace period, a replacement is available
//! as soon as it is bound, and a lost node is deleted at once, without the delays of the node
//! lifecycle controller and the pod garbage collector.

mod budget;
pub(crate) mod claims;
mod drain;
pub(crate) mod replace;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::World;
use crate::api_server::ApiServer;
use crate::rollout::Rollout;
use budget::Budgets;
use drain::Drain;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Pod, PodPhase, Time};
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::Change;

pub(crate) use budget::DESIRED_REPLICAS;
pub(crate) use budget::scaled;

pub use budget::BudgetViolation;
pub use drain::{Blocked, DrainRejection, Drained, EvictionRejection};

/// Everything about the disruptions of a cluster so far.
#[derive(Clone, Default, Debug)]
pub struct Disruptions {
    removed: Vec<RemovedPod>,
    skipped: Vec<SkippedPod>,
    lost_nodes: Vec<Name>,
    drain: Drain,
    budgets: Budgets,
    /// Pods that left, and that no controller has reacted to: positions in `removed`.
    unanswered: Vec<(usize, Arc<Pod>)>,
    pub(crate) rollouts: Vec<Rollout>,
}

/// A pod that left its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The node it was on.
    pub node: Name,
    /// Whether it was evicted, lost or preempted.
    pub cause: RemovalCause,
    /// The virtual time at which it left.
    pub at: Time,
    /// How often its eviction was rejected before.
    pub rejections: u32,
    /// The pod that its controller creates instead.
    pub replacement: Replacement,
}

/// Why a pod left its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemovalCause {
    /// A drain evicted it.
    Drained,
    /// Its node was lost.
    Lost,
    /// Another pod preempted it.
    Preempted,
}

impl RemovalCause {
    /// As in JSON: `drained`, `lost`, …
    pub fn name(self) -> &'static str {
        match self {
            RemovalCause::Drained => "drained",
            RemovalCause::Lost => "lost",
            RemovalCause::Preempted => "preempted",
        }
    }

    /// One word for texts and JSON: `evicted`, `lost`, `preempted`.
    pub fn as_str(self) -> &'static str {
        match self {
            RemovalCause::Drained => "evicted",
            RemovalCause::Lost => "lost",
            RemovalCause::Preempted => "preempted",
        }
    }
}

/// What replaces a pod that left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// Its controller has not reacted yet.
    Due,
    /// A pod that the controller created.
    Pod(NamespacedName),
    /// No pod, and why.
    Nothing(&'static str),
}

/// A pod that a drain leaves on its node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SkippedPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// Name of its node.
    pub node: Name,
    /// What keeps the drain from evicting it, in words.
    pub why: &'static str,
}

impl Disruptions {
    /// The pods that left their nodes, in order.
    pub fn removed(&self) -> &[RemovedPod] {
        &self.removed
    }

    /// The pods that drains leave on their nodes.
    pub fn skipped(&self) -> &[SkippedPod] {
        &self.skipped
    }

    /// The lost nodes, in order.
    pub fn lost_nodes(&self) -> &[Name] {
        &self.lost_nodes
    }

    /// The drained nodes, in order, with what became of each.
    pub fn drained(&self) -> &[Drained] {
        self.drain.nodes()
    }

    /// The pods that a drain could not evict yet, in order.
    pub fn blocked(&self) -> &[Blocked] {
        self.drain.blocked()
    }

    /// When a drain tries again; `None` if none is under way.
    pub fn next_eviction(&self) -> Option<Time> {
        self.drain.next()
    }

    /// The rollouts, in order.
    pub fn rollouts(&self) -> &[Rollout] {
        &self.rollouts
    }

    /// How much has happened; a larger number means progress.
    pub fn progress(&self, now: Time) -> usize {
        let rollouts = self.rollouts.iter().map(|rollout| rollout.progress(now)).sum::<usize>();
        self.removed.len() + rollouts
    }

    /// The budgets that had fewer healthy pods than they need since the first disruption.
    pub fn violations(&self) -> Vec<BudgetViolation> {
        self.budgets.violations()
    }

    /// For each replacement the pod that it was created for, through replacements of replacements.
    pub fn origins(&self) -> HashMap<NamespacedName, &RemovedPod> {
        let mut origins: HashMap<NamespacedName, &RemovedPod> = HashMap::new();
        for removed in &self.removed {
            if let Replacement::Pod(pod) = removed.replacement {
                // A StatefulSet's replacement has the name of the pod that it replaces.
                let first = origins.get(&removed.pod).copied().unwrap_or(removed);
                origins.insert(pod, first);
            }
        }
        origins
    }
}

impl World {
    /// The disruptions so far; `None` before the first.
    pub fn disruptions(&self) -> Option<&Disruptions> {
        self.api.disruptions.as_deref()
    }

    /// Deletes nodes together with their pods, as if the machines had failed. Budgets do
    /// not apply, as nothing is evicted.
    pub fn lose_nodes(&mut self, nodes: &[Name]) {
        let now = self.now;
        self.api.disruptions(now).lost_nodes.extend(nodes);
        let mut pods = self.api.pods_on(nodes);
        pods.sort_by_key(|pod| (pod.spec.node_name, key_of(pod)));
        for node in nodes {
            self.api.remove(Kind::Node, NamespacedName::new(Symbol::EMPTY, *node));
            self.api.remove(Kind::CsiNode, NamespacedName::new(Symbol::EMPTY, *node));
        }
        self.api.remove_slices(nodes);
        for pod in pods {
            self.api.remove_from_node(key_of(&pod), RemovalCause::Lost);
        }
        self.settle();
    }

    /// When a drain or a rollout goes on by itself; `None` if none does.
    pub fn next_disruption(&self) -> Option<Time> {
        let disruptions = self.disruptions()?;
        let rollouts = disruptions.rollouts.iter();
        let available = rollouts.filter_map(|rollout| rollout.next_available(self.now));
        available.chain(disruptions.next_eviction()).min()
    }

    /// Lets the controllers react to what was delivered. `false` if there was nothing to do.
    pub(super) fn react_to_disruptions(&mut self) -> bool {
        let Some(disruptions) = &mut self.api.disruptions else { return false };
        if disruptions.unanswered.is_empty() && !disruptions.budgets.are_due() {
            return self.continue_rollouts();
        }
        let disruptions = Arc::make_mut(disruptions);
        let unanswered = std::mem::take(&mut disruptions.unanswered);
        let budgets = disruptions.budgets.take_due();
        self.api.update_budgets(&budgets);
        for (at, pod) in unanswered {
            let replacement = self.replace(&pod);
            let now = self.now;
            if let Some(removed) = self.api.disruptions(now).removed.get_mut(at) {
                removed.replacement = replacement;
            }
        }
        true
    }
}

impl ApiServer {
    /// The disruptions so far, to be changed. The first call starts the controllers.
    pub(super) fn disruptions(&mut self, now: Time) -> &mut Disruptions {
        if self.disruptions.is_none() {
            let budgets = Budgets::new(self, now);
            self.disruptions = Some(Arc::new(Disruptions { budgets, ..Disruptions::default() }));
        }
        Arc::make_mut(self.disruptions.get_or_insert_default())
    }

    /// Deletes a pod that leaves its node. Once there are disruptions, its controller replaces it.
    pub(super) fn remove_from_node(&mut self, key: NamespacedName, cause: RemovalCause) -> bool {
        let pod = self.objects.pod(key).cloned();
        if let (Some(disruptions), Some(pod)) = (&mut self.disruptions, pod) {
            Arc::make_mut(disruptions).record_removal(pod, cause, self.now);
        }
        self.remove(Kind::Pod, key)
    }

    /// Notifies the controllers of a change that is delivered.
    pub(super) fn observe(&mut self, change: &Change) {
        let Some(disruptions) = &mut self.disruptions else { return };
        if let Some(observed) = budget::BudgetInput::of(change)
            && disruptions.budgets.concerns(&observed)
        {
            let budgets = &mut Arc::make_mut(disruptions).budgets;
            budgets.observe(&observed, &self.objects, self.now);
        }
        self.observe_rollouts(change);
    }

    /// The pods on these nodes that have not ended.
    fn pods_on(&self, nodes: &[Name]) -> Vec<Arc<Pod>> {
        let nodes: HashSet<Name> = nodes.iter().copied().collect();
        let on_them = |pod: &&Arc<Pod>| nodes.contains(&pod.spec.node_name) && !pod.is_terminal();
        self.objects.pods.values().filter(on_them).cloned().collect()
    }

    /// Removes the resource slices of these nodes' own devices.
    fn remove_slices(&mut self, nodes: &[Name]) {
        let slices = self.objects.resource_slices.iter();
        let own = slices
            .filter(|(_, slice)| slice.spec.node_name.is_some_and(|node| nodes.contains(&node)));
        for key in own.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.remove(Kind::ResourceSlice, key);
        }
    }
}

impl Disruptions {
    fn record_removal(&mut self, pod: Arc<Pod>, cause: RemovalCause, at: Time) {
        let key = key_of(&pod);
        self.removed.push(RemovedPod {
            pod: key,
            node: pod.spec.node_name,
            cause,
            at,
            rejections: self.drain.rejections(key),
            replacement: Replacement::Due,
        });
        self.unanswered.push((self.removed.len() - 1, pod));
    }
}

/// Whether the pod runs on a node; it then counts as healthy. What a simulated scheduler binds runs
/// at once: only a kubelet that has seen a pod sets its start time.
pub(crate) fn runs(pod: &Pod) -> bool {
    let starts = pod.status.phase == PodPhase::Pending && pod.status.start_time.is_some();
    !pod.spec.node_name.is_empty() && !pod.is_terminating() && !starts
}

/// The key of a pod.
pub(crate) fn key_of(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}
