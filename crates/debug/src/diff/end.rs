//! Where a pod is at the end of a history.

use std::fmt;

use crate::diff::Side;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// Where a pod is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FinalState {
    /// It does not exist.
    Absent,
    /// Bound to this node.
    Node(Name),
    /// At Permit or in PreBind, with its resources on a node reserved.
    Waiting(Name),
    /// In a queue, with the plugins that rejected or gate it.
    Queue(QueueName, Vec<Symbol>),
    /// Its phase is `Succeeded` or `Failed`.
    Ended,
    /// In no queue: no profile has its scheduler name.
    Unserved,
}

impl FinalState {
    /// Where a pod is at the end of that side.
    pub(crate) fn of(side: Side<'_>, key: NamespacedName) -> FinalState {
        let Some(pod) = side.world.api().objects().pod(key) else { return FinalState::Absent };
        if pod.is_terminal() {
            return FinalState::Ended;
        }
        if !pod.spec.node_name.is_empty() {
            return FinalState::Node(pod.spec.node_name);
        }
        let scheduler = side.world.scheduler();
        if let Some(waiting) = scheduler.waiting().iter().find(|one| one.pod().key() == key) {
            return FinalState::Waiting(waiting.node());
        }
        match scheduler.queue().get(key) {
            Some(queued) => {
                let mut plugins = queued.unschedulable_plugins.clone();
                plugins.extend(queued.gating_plugin);
                plugins.sort_unstable();
                plugins.dedup();
                FinalState::Queue(scheduler.queue().queue_of(key), plugins)
            }
            None => FinalState::Unserved,
        }
    }

    /// The node, if it is bound.
    pub fn node(&self) -> Option<Name> {
        match self {
            FinalState::Node(node) => Some(*node),
            _ => None,
        }
    }
}

impl fmt::Display for FinalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FinalState::Absent => f.write_str("not there"),
            FinalState::Node(node) => write!(f, "on {node}"),
            FinalState::Waiting(node) => write!(f, "waits for {node}"),
            FinalState::Queue(queue, plugins) if plugins.is_empty() => f.write_str(queue.as_str()),
            FinalState::Queue(queue, plugins) => {
                let names: Vec<&str> = plugins.iter().map(|name| name.as_str()).collect();
                write!(f, "{} ({})", queue.as_str(), names.join(", "))
            }
            FinalState::Ended => f.write_str("ended"),
            FinalState::Unserved => f.write_str("no profile serves it"),
        }
    }
}
