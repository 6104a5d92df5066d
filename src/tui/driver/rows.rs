//! The rows of the views that show the cluster, from a state of it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::tui::model::{PodPlace, PodRow, QueuedPod, WaitingPod};
use kubestep_api::{Name, Pod, Time};
use kubestep_cluster::World;
use kubestep_framework::pod::nominated::NominatedToNode;
use kubestep_framework::pod::{NamespacedName, PodInfo, QueuedPodInfo as Queued};
use kubestep_framework::record::QueueName;
use kubestep_scheduler::{Scheduler, WaitingStage};

/// The pods held at Permit or in PreBind; not those whose binding is only to be answered.
pub fn waiting(world: &World) -> Vec<WaitingPod> {
    let row = |waiting: &kubestep_scheduler::WaitingPod| WaitingPod {
        info: waiting.pod().clone(),
        node: waiting.node(),
        plugins: waiting.holds().iter().map(|hold| (hold.plugin, hold.deadline)).collect(),
    };
    let held = world.scheduler().waiting().iter().filter(|waiting| is_held(waiting));
    held.map(row).collect()
}

/// Whether a pod is held at Permit or in PreBind, and not only waits for the answer to its binding.
fn is_held(waiting: &kubestep_scheduler::WaitingPod) -> bool {
    waiting.stage() != WaitingStage::Bind
}

/// The nominated pods, each with its node.
pub fn nominated(world: &World) -> Vec<(Name, Arc<PodInfo>)> {
    let all = world.scheduler().queue().nominated_pods();
    let on_node = |(node, pods): (Name, &NominatedToNode)| {
        pods.iter().map(|pod| (node, pod.clone())).collect::<Vec<_>>()
    };
    // The nominator may hold pods under an empty node name: their nomination was cleared.
    all.iter().filter(|(node, _)| !node.is_empty()).flat_map(on_node).collect()
}

/// The last cycle of a pod up to the state: when it ran, and what it said.
pub type LastCycles<'a> = &'a dyn Fn(NamespacedName) -> Option<(Time, String)>;

/// The pods in the queues, by queue and place.
pub fn queued(world: &World, last: LastCycles) -> Vec<QueuedPod> {
    let queue = world.scheduler().queue();
    let settings = queue.settings();
    let backoff_end =
        |pod: &Queued| pod.backoff_expiration.map(|end| settings.backoff_release(end));
    let flush = |pod: &Queued| Some(settings.flush_time(pod.timestamp));
    type HistoryEnd<'a> = &'a dyn Fn(&Queued) -> Option<Time>;
    let never: HistoryEnd = &|_| None;
    let queues: [(QueueName, Vec<&Queued>, HistoryEnd); 5] = [
        (QueueName::Active, queue.active(), never),
        (QueueName::Backoff, queue.backoff(), &backoff_end),
        (QueueName::Unschedulable, queue.unschedulable(), &flush),
        (QueueName::Gated, queue.gated(), never),
        (QueueName::InFlight, queue.in_flight(), never),
    ];
    let mut rows = Vec::new();
    for (name, pods, until) in queues {
        rows.extend(pods.into_iter().map(|pod| row(world, last, (name, pod, until(pod)))));
    }
    rows.extend(unserved(world));
    rows
}

/// Pods that are in no queue because no profile has their scheduler name: a user who looks for a
/// pending pod looks in the queues.
fn unserved(world: &World) -> Vec<QueuedPod> {
    let served = world.scheduler().frameworks();
    let pods = world.api().objects().pods.iter().map(|(_, pod)| pod);
    let pending = pods.filter(|pod| pod.spec.node_name.is_empty() && !pod.is_terminal());
    let unserved = pending.filter(|pod| !served.contains_key(&pod.spec.scheduler_name));
    let row = |pod: &Arc<Pod>| QueuedPod {
        info: Arc::new(PodInfo::new(pod.clone())),
        queue: QueueName::None,
        attempts: 0,
        since: world.now(),
        until: None,
        rejected_by: Vec::new(),
        waits_for: None,
        reason: format!(
            "no profile serves the scheduler name {:?}, which keeps the pod out of every queue; W explains",
            pod.spec.scheduler_name.as_str()
        ),
    };
    let mut rows: Vec<QueuedPod> = unserved.map(row).collect();
    rows.sort_by_key(|row| row.info.key());
    rows
}

fn row(
    world: &World,
    last: LastCycles,
    (queue, pod, until): (QueueName, &Queued, Option<Time>),
) -> QueuedPod {
    let rejected = pod.unschedulable_plugins.iter().chain(&pod.pending_plugins);
    let mut rejected_by: Vec<_> = rejected.copied().collect();
    rejected_by.extend(pod.gating_plugin.filter(|p| !rejected_by.contains(p)));
    let mut waiting = world.scheduler().waiting().iter();
    let held = waiting.find(|waiting| is_held(waiting) && waiting.pod().key() == pod.key());
    rejected_by.extend(held.iter().flat_map(|held| held.holds()).map(|hold| hold.plugin));
    let (popped, said) = last(pod.key()).unzip();
    let reason = if let Some(message) = pod.gating_message {
        message.to_string()
    } else if let Some(held) = held {
        format!("waits at Permit for {}; 7 shows it", held.node())
    } else {
        said.unwrap_or_default()
    };
    QueuedPod {
        info: pod.info.clone(),
        queue,
        attempts: pod.attempts,
        // Of one in flight, since its cycle began, not since it entered the queue before.
        since: popped
            .filter(|_| queue == QueueName::InFlight)
            .unwrap_or_default()
            .max(pod.timestamp),
        until,
        rejected_by,
        reason,
        waits_for: held.map(|held| held.node()),
    }
}

/// All pods by name. `before` are the rows of another state: their order makes sorting fast.
pub fn pods(world: &World, before: &[PodRow]) -> Vec<PodRow> {
    let (scheduler, objects) = (world.scheduler(), &world.api().objects().pods);
    let row = |key: NamespacedName, pod: &Arc<Pod>| PodRow {
        pod: pod.clone(),
        place: place(scheduler, key, pod),
    };
    let names = before.iter().map(PodRow::name);
    let mut rows: Vec<PodRow> =
        names.filter_map(|name| Some(row(name, objects.get(&name)?))).collect();
    if rows.len() < objects.len() {
        let shown: HashSet<NamespacedName> = rows.iter().map(PodRow::name).collect();
        let new = objects.iter().filter(|(key, _)| !shown.contains(*key));
        rows.extend(new.map(|(key, pod)| row(*key, pod)));
        rows.sort_by_key(|row| row.name());
    }
    rows
}

fn place(scheduler: &Scheduler, key: NamespacedName, pod: &Pod) -> PodPlace {
    if pod.is_terminal() {
        return PodPlace::Ended;
    }
    if !pod.spec.node_name.is_empty() {
        return PodPlace::Node(pod.spec.node_name);
    }
    if let Some(waiting) = scheduler.waiting().iter().find(|w| w.pod().key() == key) {
        return PodPlace::Waiting(waiting.node());
    }
    match scheduler.frameworks().contains_key(&pod.spec.scheduler_name) {
        true => PodPlace::Queue(scheduler.queue().queue_of(key)),
        false => PodPlace::Unserved,
    }
}
