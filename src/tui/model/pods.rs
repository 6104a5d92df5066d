//! The pods of the model, with where each is.

use std::sync::Arc;

use kubestep_api::{Name, Pod};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// A pod of the cluster.
#[derive(Clone, Debug)]
pub struct PodRow {
    pub pod: Arc<Pod>,
    pub place: PodPlace,
}

impl PodRow {
    /// The pod's name with its namespace.
    pub fn name(&self) -> NamespacedName {
        NamespacedName::new(self.pod.metadata.namespace, self.pod.metadata.name)
    }
}

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPlace {
    /// Bound to a node.
    Node(Name),
    /// Held at Permit, with room reserved on a node.
    Waiting(Name),
    Queue(QueueName),
    /// Run to its end.
    Ended,
    /// No profile serves its scheduler name, so no scheduler here takes it.
    Unserved,
}

impl PodPlace {
    /// The place in words.
    pub fn describe(self) -> String {
        match self {
            PodPlace::Node(node) => format!("on {node}"),
            PodPlace::Waiting(node) => format!("waits for {node}"),
            PodPlace::Queue(queue) => queue.as_str().to_owned(),
            PodPlace::Ended => "ended".into(),
            PodPlace::Unserved => "no profile serves it".into(),
        }
    }

    /// Whether the pod still has to be scheduled.
    pub fn is_pending(self) -> bool {
        !matches!(self, PodPlace::Node(_) | PodPlace::Ended)
    }
}
