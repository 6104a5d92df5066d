//! Settings of the queue, from the configuration.

use kubestep_config::versions::Behaviour;

/// The queue's settings. Durations are in microseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueSettings {
    /// The backoff after the first failure (`podInitialBackoffSeconds`).
    pub initial_backoff: i64,
    /// The longest backoff (`podMaxBackoffSeconds`); 0 turns backoff off.
    pub max_backoff: i64,
    /// How long a pod may stay unschedulable before it is retried without an event.
    pub max_unschedulable_duration: i64,
    /// Whether pods are popped from backoff when no pod is active (gate SchedulerPopFromBackoffQ).
    pub pop_from_backoff: bool,
    /// Whether extenders are configured; they take part in requeueing then.
    pub has_extenders: bool,
    /// Whether pods of a group are retried by backoff alone (gate GenericWorkload).
    pub generic_workload: bool,
    /// Whether hints decide which events requeue a pod (gate SchedulerQueueingHints).
    pub hints: bool,
    /// What the version of kube-scheduler changed.
    pub behaviour: Behaviour,
    /// Whether pods are signed (gate OpportunisticBatching; not with extenders, which cannot sign).
    pub signs: bool,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            initial_backoff: 1_000_000,
            max_backoff: 10_000_000,
            max_unschedulable_duration: 300_000_000,
            pop_from_backoff: true,
            has_extenders: false,
            generic_workload: false,
            hints: true,
            behaviour: Behaviour::default(),
            signs: false,
        }
    }
}
