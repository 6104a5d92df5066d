//! Drains, as `kubectl drain --ignore-daemonsets --delete-emptydir-data` does them: all nodes are
//! cordoned, then one after another is emptied through the Eviction API. The pods of a node are
//! evicted at once; an eviction that a disruption budget rejects is retried after 5 seconds.
//!
//! Upstream: `evictPods` in `staging/src/k8s.io/kubectl/pkg/drain/drain.go`, `filters.go` beside it,
//! and `pkg/registry/core/pod/storage/eviction.go`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::replace::{is_daemon, is_mirror};
use super::{RemovalCause, SkippedPod, key_of, runs};
use crate::World;
use crate::api_server::ApiServer;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{Duration, Name, Pod, Taint, TaintEffect, Time, Uid};
use kubestep_framework::pod::NamespacedName;

/// How long kubectl waits before it retries a rejected eviction.
const RETRY: Duration = Duration::from_secs(5);
/// The taint of cordoned nodes.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The nodes to be drained.
#[derive(Clone, Default, Debug)]
pub(super) struct Drain {
    nodes: Vec<Drained>,
    /// Nodes whose turn has not come, each with the pods that it had when it was cordoned.
    later: VecDeque<(Name, Vec<NamespacedName>)>,
    open: Vec<Blocked>,
    /// How often the evictions of a pod were rejected.
    rejections: BTreeMap<NamespacedName, u32>,
}

/// A node of a drain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// Name of the node.
    pub node: Name,
    /// When its last pod was evicted; `None` if it is not empty yet.
    pub done: Option<Time>,
}

/// A pod that could not be evicted yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// Name of its node.
    pub node: Name,
    /// How often the eviction was rejected.
    pub rejections: u32,
    /// Why, the last time; `None` if it was not tried yet.
    pub rejection: Option<EvictionRejection>,
    /// When it is tried again; `None` if kubectl stops trying.
    pub due: Option<Time>,
    uid: Uid,
}

/// Why the Eviction API rejects an eviction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvictionRejection {
    /// The budget allows no disruption now.
    Budget {
        /// Namespace and name of the budget.
        budget: NamespacedName,
        /// How many healthy pods it needs.
        needed: i32,
        /// How many it has.
        healthy: i32,
    },
    /// Several budgets cover the pod, which the Eviction API does not support.
    SeveralBudgets(Vec<NamespacedName>),
}

impl fmt::Display for EvictionRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvictionRejection::Budget { budget, needed, healthy } => {
                let needed = count(*needed, "healthy pod");
                write!(f, "budget {budget} needs {needed} and has {healthy}")
            }
            EvictionRejection::SeveralBudgets(budgets) => {
                let names: Vec<String> = budgets.iter().map(ToString::to_string).collect();
                write!(f, "the Eviction API supports one budget for a pod: {}", names.join(", "))
            }
        }
    }
}

/// Why kubectl does not begin a drain: these pods have no controller, and `--force` was not given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DrainRejection(pub Vec<NamespacedName>);

impl Drain {
    pub fn nodes(&self) -> &[Drained] {
        &self.nodes
    }

    pub fn blocked(&self) -> &[Blocked] {
        &self.open
    }

    pub fn next(&self) -> Option<Time> {
        self.open.iter().filter_map(|blocked| blocked.due).min()
    }

    pub fn rejections(&self, pod: NamespacedName) -> u32 {
        self.rejections.get(&pod).copied().unwrap_or(0)
    }
}

impl World {
    /// Begins to drain the nodes, in this order. What cannot be evicted at once is tried again as
    /// the clock moves. `force` also evicts pods without a controller.
    ///
    /// # Errors
    /// Pods have no controller, and `force` is `false`; nothing is changed.
    pub fn drain(&mut self, nodes: &[Name], force: bool) -> Result<(), DrainRejection> {
        let alone = |pod: &Arc<Pod>| pod.metadata.controller().is_none() && !is_mirror(pod);
        let pods = self.api.pods_on(nodes);
        let unmanaged = pods.iter().filter(|pod| alone(pod));
        let mut unmanaged: Vec<_> = unmanaged.map(|pod| key_of(pod)).collect();
        unmanaged.sort_unstable();
        if !unmanaged.is_empty() && !force {
            return Err(DrainRejection(unmanaged));
        }
        let mut on_node = BTreeMap::<Name, Vec<NamespacedName>>::new();
        for pod in &pods {
            on_node.entry(pod.spec.node_name).or_default().push(key_of(pod));
        }
        for node in nodes {
            self.cordon(*node);
        }
        let now = self.now;
        let drain = &mut self.api.disruptions(now).drain;
        drain.nodes.extend(nodes.iter().map(|node| Drained { node: *node, done: None }));
        let pods = |node: &Name| (*node, on_node.remove(node).unwrap_or_default());
        drain.later.extend(nodes.iter().map(pods));
        self.settle();
        self.continue_drain();
        Ok(())
    }

    /// When a drain tries again; `None` if none is under way.
    pub fn next_eviction(&self) -> Option<Time> {
        self.disruptions()?.next_eviction()
    }

    fn cordon(&mut self, name: Name) {
        let Some(node) = self.api.node(name).filter(|node| !node.spec.unschedulable) else {
            return;
        };
        let mut node = node.as_ref().clone();
        node.spec.unschedulable = true;
        let (key, effect) = (Symbol::new(UNSCHEDULABLE), TaintEffect::NoSchedule);
        node.spec.taints.push(Taint { key, effect, ..Taint::default() });
        self.update(node.into());
    }

    /// Evicts the pods that are due; when a node is empty, goes on with the next.
    pub(crate) fn continue_drain(&mut self) {
        while let Some(blocked) = self.next_due() {
            self.try_to_evict(blocked);
        }
    }

    /// The next pod to be tried; of the next node if there is none left on this one.
    fn next_due(&mut self) -> Option<Blocked> {
        let now = self.now;
        loop {
            let drain = &self.api.disruptions.as_ref()?.drain;
            let is_due = |blocked: &&Blocked| blocked.due.is_some_and(|due| due <= now);
            if let Some(blocked) = drain.open.iter().find(is_due) {
                return Some(blocked.clone());
            }
            if drain.next().is_some() {
                return None;
            }
            drain.later.front()?;
            self.open_node();
        }
    }

    /// Begins with the next node.
    fn open_node(&mut self) {
        let now = self.now;
        let next = self.api.disruptions(now).drain.later.pop_front();
        let Some((node, mut keys)) = next else { return };
        keys.sort_unstable();
        let pods = keys.iter().filter_map(|key| self.api.objects().pod(*key).cloned());
        let stays = |pod: &Arc<Pod>| pod.spec.node_name == node && !pod.is_terminal();
        let pods: Vec<Arc<Pod>> = pods.filter(stays).collect();
        let disruptions = self.api.disruptions(now);
        for pod in pods {
            let key = key_of(&pod);
            let why = match () {
                () if is_mirror(&pod) => Some("a static pod: its kubelet runs it from a file"),
                () if is_daemon(&pod) => Some("its DaemonSet ignores cordons"),
                () => None,
            };
            match why {
                Some(why) => disruptions.skipped.push(SkippedPod { pod: key, node, why }),
                None => disruptions.drain.open.push(Blocked {
                    pod: key,
                    node,
                    rejections: 0,
                    rejection: None,
                    uid: pod.metadata.uid,
                    due: Some(now),
                }),
            }
        }
        disruptions.drain.close(node, now);
    }

    fn try_to_evict(&mut self, mut blocked: Blocked) {
        let evicted = self.api.evict_pod(&blocked);
        let now = self.now;
        let drain = &mut self.api.disruptions(now).drain;
        let at = drain.open.iter().position(|open| open.pod == blocked.pod);
        match (evicted, at) {
            (Ok(()), Some(at)) => {
                drain.open.remove(at);
                drain.close(blocked.node, now);
            }
            (Err(rejection), Some(at)) => {
                blocked.rejections += 1;
                drain.rejections.insert(blocked.pod, blocked.rejections);
                let retries = matches!(rejection, EvictionRejection::Budget { .. });
                blocked.due = retries.then(|| now + RETRY);
                blocked.rejection = Some(rejection);
                drain.open[at] = blocked;
            }
            (_, None) => {}
        }
        self.settle();
    }
}

impl Drain {
    /// Notes that a node is empty, if it is.
    fn close(&mut self, node: Name, now: Time) {
        if self.open.iter().any(|open| open.node == node) {
            return;
        }
        let drained =
            self.nodes.iter_mut().find(|other| other.node == node && other.done.is_none());
        if let Some(drained) = drained {
            drained.done = Some(now);
        }
    }
}

impl ApiServer {
    /// What the Eviction API does. A pod that was deleted already counts as evicted.
    fn evict_pod(&mut self, blocked: &Blocked) -> Result<(), EvictionRejection> {
        let pod = self.objects.pod(blocked.pod).filter(|pod| pod.metadata.uid == blocked.uid);
        let Some(pod) = pod.cloned() else { return Ok(()) };
        self.check_budget(&pod)?;
        self.remove_from_node(blocked.pod, RemovalCause::Drained);
        Ok(())
    }

    fn check_budget(&self, pod: &Pod) -> Result<(), EvictionRejection> {
        let ignores_budgets = pod.is_terminal() || !runs(pod);
        let Some(disruptions) = self.disruptions.as_ref().filter(|_| !ignores_budgets) else {
            return Ok(());
        };
        let budgets: Vec<NamespacedName> = disruptions.budgets.of(pod).collect();
        match budgets.as_slice() {
            [] => Ok(()),
            [only] => {
                let status = self.objects.pod_disruption_budgets.get(only).map(|b| &b.status);
                match status.filter(|status| status.disruptions_allowed <= 0) {
                    None => Ok(()),
                    Some(status) => Err(EvictionRejection::Budget {
                        budget: *only,
                        needed: status.desired_healthy,
                        healthy: status.current_healthy,
                    }),
                }
            }
            several => Err(EvictionRejection::SeveralBudgets(several.to_vec())),
        }
    }
}
