//! The result of every pod.

use std::sync::Arc;

use kubestep_api::{Name, Pod};
use kubestep_debug::Session;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;
use kubestep_framework::record::certainty::Certainty;
use kubestep_framework::tie_break::TieBreak;

/// A pod that was scheduled in this session.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduledPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// Name of its node.
    pub node: Name,
    /// The attempt in which it was scheduled.
    pub attempt: u32,
    /// How a tie was broken, if not as upstream does.
    pub tie_break: Option<TieBreak>,
    /// How certain the decision is, if the profile has opaque plugins.
    pub certainty: Option<Arc<Certainty>>,
}

/// A victim of preemption.
#[derive(Clone, PartialEq, Debug)]
pub struct Evicted {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// The node it was on.
    pub node: Name,
    /// Namespace and name of the preemptor.
    pub by: NamespacedName,
}

/// A pod that has no node.
#[derive(Clone, PartialEq, Debug)]
pub struct Pending {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// Its queue; `None` if no profile has its scheduler name.
    pub place: QueueName,
    /// Why, in the scheduler's words if it gave any.
    pub reason: String,
    /// Whether these are the scheduler's words.
    pub is_quoted: bool,
    /// How certain the last decision is, if there was one and the profile has opaque plugins.
    pub certainty: Option<Arc<Certainty>>,
}

/// The conditions under which an uncertain decision stands; `None` if it is certain.
pub fn conditions(certainty: Option<&Certainty>) -> Option<String> {
    let certainty = certainty.filter(|certainty| !certainty.is_certain())?;
    Some(certainty.conditions().collect::<Vec<_>>().join("; "))
}

/// The pods that were bound in this session, in order.
pub fn placed(session: &Session) -> Vec<ScheduledPod> {
    let bound = session
        .history()
        .cycles()
        .filter(|record| matches!(record.outcome, kubestep_framework::record::Outcome::Scheduled));
    bound
        .filter_map(|record| {
            let (pod, node, attempt) = (record.pod, record.node?, record.attempt);
            let (tie_break, certainty) = (record.other_tie_break(), record.certainty());
            Some(ScheduledPod { pod, node, attempt, tie_break, certainty })
        })
        .collect()
}

/// The pods that were evicted by preemption in this session, in order.
pub fn evicted(session: &Session) -> Vec<Evicted> {
    let pods = &session.world().api().objects().pods;
    let mut evicted = Vec::new();
    for record in session.history().cycles() {
        let Some(chosen) = &record.preemption else { continue };
        // A victim that waited at Permit was only requeued.
        let deleted = chosen.victims.iter().filter(|victim| pods.get(*victim).is_none());
        evicted.extend(deleted.map(|pod| Evicted { pod: *pod, node: chosen.node, by: record.pod }));
    }
    evicted
}

/// The pods without a node, by name.
pub fn pending(session: &Session) -> Vec<Pending> {
    let objects = session.world().api().objects();
    let mut pending: Vec<Pending> = objects
        .pods
        .iter()
        .filter(|(_, pod)| pod.spec.node_name.is_empty() && !pod.is_terminal())
        .map(|(key, pod)| why_pending(session, *key, pod))
        .collect();
    pending.sort_by_key(|entry| entry.pod);
    pending
}

fn why_pending(session: &Session, key: NamespacedName, pod: &Pod) -> Pending {
    let scheduler = session.world().scheduler();
    let place = scheduler.queue().queue_of(key);
    let queued = scheduler.queue().get(key);
    let mut cycles = session.history().cycles_of(key);
    let last = cycles.rfind(|record| record.uid == pod.metadata.uid);
    let certainty = last.and_then(|record| record.certainty());
    let (reason, is_quoted) = if let Some(gate) = queued.and_then(|queued| queued.gating_message) {
        (gate.to_string(), true)
    } else if let Some(waiting) = scheduler.waiting().iter().find(|w| w.pod().key() == key) {
        let plugins: Vec<&str> = waiting.holds().iter().map(|hold| hold.plugin.as_str()).collect();
        let stage = if waiting.in_pre_bind().is_some() { "in PreBind" } else { "at Permit" };
        let text = format!("waits {stage} for {} on node {}", plugins.join(", "), waiting.node());
        (text, false)
    } else if !scheduler.frameworks().contains_key(&pod.spec.scheduler_name) {
        let name = pod.spec.scheduler_name.as_str();
        (format!("no profile serves the scheduler name {name:?}"), false)
    } else {
        match last {
            Some(record) => (record.message.clone(), true),
            None => ("not tried yet".to_owned(), false),
        }
    };
    Pending { pod: key, place, reason, is_quoted, certainty }
}
