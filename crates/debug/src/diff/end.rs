//! Where a pod is at the end of a history.

use std::fmt;

use crate::diff::Side;
use kubestep_api::intern::Symbol;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// Where a pod is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// It does not exist.
    Absent,
    /// On a node.
    Node(Symbol),
    /// At Permit or in PreBind, with its resources on a node reserved.
    Waiting(Symbol),
    /// In a queue, with the plugins that rejected or gate it.
    Queue(QueueName, Vec<Symbol>),
    /// Succeeded or failed.
    Ended,
    /// In no queue: no profile has its scheduler name.
    NobodyServes,
}

impl End {
    /// Where a pod is at the end of that side.
    pub(crate) fn of(side: Side<'_>, key: NamespacedName) -> End {
        let Some(pod) = side.world.api().objects().pod(key) else { return End::Absent };
        if pod.is_terminal() {
            return End::Ended;
        }
        if !pod.spec.node_name.is_empty() {
            return End::Node(pod.spec.node_name);
        }
        let scheduler = side.world.scheduler();
        if let Some(waiting) = scheduler.waiting().iter().find(|one| one.pod().key() == key) {
            return End::Waiting(waiting.node());
        }
        match scheduler.queue().get(key) {
            Some(queued) => {
                let mut plugins = queued.unschedulable_plugins.clone();
                plugins.extend(queued.gating_plugin);
                plugins.sort_unstable();
                plugins.dedup();
                End::Queue(scheduler.queue().place_of(key), plugins)
            }
            None => End::NobodyServes,
        }
    }

    /// The node, if it is bound.
    pub fn node(&self) -> Option<Symbol> {
        match self {
            End::Node(node) => Some(*node),
            _ => None,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Absent => f.write_str("not there"),
            End::Node(node) => write!(f, "on {node}"),
            End::Waiting(node) => write!(f, "waits for {node}"),
            End::Queue(queue, plugins) if plugins.is_empty() => f.write_str(queue.as_str()),
            End::Queue(queue, plugins) => {
                let names: Vec<&str> = plugins.iter().map(|name| name.as_str()).collect();
                write!(f, "{} ({})", queue.as_str(), names.join(", "))
            }
            End::Ended => f.write_str("ended"),
            End::NobodyServes => f.write_str("no profile serves it"),
        }
    }
}
