//! The pod in the queue: where it is, since when, until when, which plugins rejected it, which
//! events requeue it, and which events were skipped.

use serde::Serialize;

use super::model::{PodLocation, QueuePlace, WaitedPlugin};
use crate::trace::{Entry, History};
use kubestep_api::intern::Symbol;
use kubestep_api::{Pod, Time};
use kubestep_cluster::World;
use kubestep_framework::events::{Action, ClusterEvent, EventResource, Registration};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::{NamespacedName, QueuedPodInfo};
use kubestep_framework::record::{HintRecord, QueueMove, QueueName};
use kubestep_framework::runtime::Framework;
use kubestep_scheduler::WaitingPod;

/// The queue of a pod, and what it waits for.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueWhy {
    /// The queue that it is in.
    pub queue: QueuePlace,
    /// When it entered the queue.
    pub since: Time,
    /// The latest time at which a timer moves it: its backoff ends, or the flush of unschedulable
    /// pods takes it. `None` if no timer does.
    pub until: Option<Time>,
    /// Its position in the active queue, or among the pods in backoff by when that ends, from 1.
    pub position: Option<usize>,
    /// The number of attempts.
    pub attempts: u32,
    /// The plugins that rejected it last.
    pub rejected_by: Vec<Symbol>,
    /// The plugin that gates it.
    pub gated_by: Option<Symbol>,
    /// The events that requeue it, by the plugins that rejected it.
    pub requeueing_events: Vec<RequeueingEvent>,
}

/// An event that a plugin waits for.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequeueingEvent {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The event, in words.
    pub event: String,
    /// Whether the plugin's queueing hint is called for each event before it requeues the pod.
    pub has_hint: bool,
}

/// A move of the pod between queues.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueMoveText {
    /// The virtual time of the move.
    pub time: Time,
    /// The queue it left.
    pub from: QueuePlace,
    /// The queue it entered.
    pub to: QueuePlace,
    /// The event that moved it.
    pub event: Symbol,
    /// The plugin whose hint or gate decided.
    pub plugin: Option<Symbol>,
}

/// A queueing hint that was called for the pod.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HintCall {
    /// The virtual time of the event.
    pub time: Time,
    /// The event, in words.
    pub event: String,
    /// Name of the plugin.
    pub plugin: Symbol,
    /// `Queue`, `QueueSkip` or `Error`.
    pub answer: Symbol,
}

/// The queue of the pod; `None` if it is in no queue.
pub(super) fn of(world: &World, pod: NamespacedName) -> Option<QueueWhy> {
    let queue = world.scheduler().queue();
    let queued = queue.get(pod)?;
    let place = queue.queue_of(pod);
    let settings = queue.settings();
    let until = match place {
        QueueName::Backoff => queued.backoff_expiration.map(|end| settings.backoff_release(end)),
        QueueName::Unschedulable => Some(settings.flush_time(queued.timestamp)),
        _ => None,
    };
    let ends_earlier =
        |other: &&QueuedPodInfo| other.backoff_expiration < queued.backoff_expiration;
    let before = match place {
        QueueName::Active => queue.ahead_of(pod),
        QueueName::Backoff => Some(queue.backoff().into_iter().filter(ends_earlier).count()),
        _ => None,
    };
    Some(QueueWhy {
        queue: QueuePlace(place),
        since: queued.timestamp,
        until,
        position: before.map(|before| before + 1),
        attempts: queued.attempts,
        rejected_by: rejectors(queued),
        gated_by: queued.gating_plugin,
        requeueing_events: match place {
            QueueName::Unschedulable | QueueName::Gated => requeueing_events(world, queued),
            _ => Vec::new(),
        },
    })
}

fn rejectors(queued: &QueuedPodInfo) -> Vec<Symbol> {
    queued.unschedulable_plugins.iter().chain(&queued.pending_plugins).copied().collect()
}

/// The event registrations of the plugins that rejected or gate the pod.
fn requeueing_events(world: &World, queued: &QueuedPodInfo) -> Vec<RequeueingEvent> {
    let frameworks = world.scheduler().frameworks();
    let profile = queued.info.pod.spec.scheduler_name;
    let Some(framework) = frameworks.get(&profile) else { return Vec::new() };
    let mut events = Vec::new();
    for plugin in rejectors(queued).into_iter().chain(queued.gating_plugin) {
        for registration in registrations(framework, plugin) {
            let event = event_text(&registration.event);
            let requeueing =
                RequeueingEvent { plugin, event, has_hint: registration.hint.is_some() };
            if !events.contains(&requeueing) {
                events.push(requeueing);
            }
        }
    }
    events
}

/// A plugin's event registrations; a plugin without any is called for every event.
fn registrations(framework: &Framework, name: Symbol) -> Vec<Registration> {
    let instance = framework.instances().iter().find(|plugin| plugin.name() == name);
    let all = || vec![Registration { event: ClusterEvent::UNSCHEDULABLE_TIMEOUT, hint: None }];
    instance.map_or_else(Vec::new, |plugin: &std::sync::Arc<dyn Plugin>| {
        plugin.events().unwrap_or_else(all)
    })
}

/// The kinds of objects and of changes, in words.
const RESOURCES: [(EventResource, &str); 5] = [
    (EventResource::Pod, "pod"),
    (EventResource::AssignedPod, "pod on a node"),
    (EventResource::UnschedulablePod, "pod without a node"),
    (EventResource::Node, "node"),
    (EventResource::Wildcard, "anything"),
];

const CHANGES: [(Action, &str); 13] = [
    (Action::ADD, "added"),
    (Action::DELETE, "deleted"),
    (Action::UPDATE_NODE_ALLOCATABLE, "allocatable changed"),
    (Action::UPDATE_NODE_LABEL, "labels changed"),
    (Action::UPDATE_NODE_TAINT, "taints changed"),
    (Action::UPDATE_NODE_CONDITION, "conditions changed"),
    (Action::UPDATE_NODE_ANNOTATION, "annotations changed"),
    (Action::UPDATE_NODE_DECLARED_FEATURE, "declared features changed"),
    (Action::UPDATE_POD_LABEL, "labels changed"),
    (Action::UPDATE_POD_SCALE_DOWN, "scaled down"),
    (Action::UPDATE_POD_TOLERATION, "tolerations changed"),
    (Action::UPDATE_POD_SCHEDULING_GATES_ELIMINATED, "last gate removed"),
    (Action::UPDATE_POD_GENERATED_RESOURCE_CLAIM, "claim generated"),
];

/// An event in words: `node added or taints changed`.
fn event_text(event: &ClusterEvent) -> String {
    if event.is_wildcard() {
        return if event.custom_label.is_empty() { "any event".into() } else { event.label() };
    }
    let named = RESOURCES.iter().find(|(resource, _)| *resource == event.resource);
    // Others are named by their kind, without the group.
    let resource = named.map_or_else(
        || event.resource.as_str().rsplit('/').next().unwrap_or_default(),
        |(_, name)| name,
    );
    let Action(bits) = event.action;
    let all_updates = bits & Action::UPDATE.0 == Action::UPDATE.0;
    let single = |(action, _): &&(Action, &str)| {
        bits & action.0 != 0 && !(all_updates && action.overlaps(Action::UPDATE))
    };
    let mut changes: Vec<&str> = CHANGES.iter().filter(single).map(|(_, name)| *name).collect();
    if all_updates {
        changes.push("changed");
    }
    format!("{resource} {}", changes.join(" or "))
}

/// The pod's history in the queue, in order: moves and queueing hints.
pub(super) fn story(
    world: &World,
    history: &History,
    pod: NamespacedName,
) -> (Vec<QueueMoveText>, Vec<HintCall>) {
    let now = world.now();
    let (mut moves, mut hints) = (Vec::new(), Vec::new());
    for (_, entry) in history.of_pod(pod).filter(|(_, entry)| entry.time() <= now) {
        match entry {
            Entry::Move(moved) => moves.push(move_text(moved)),
            Entry::Hint(hint) => hints.push(hint_call(hint)),
            _ => {}
        }
    }
    (moves, hints)
}

fn move_text(moved: &QueueMove) -> QueueMoveText {
    let QueueMove { time, from, to, event, plugin, .. } = *moved;
    QueueMoveText { time, from: QueuePlace(from), to: QueuePlace(to), event, plugin }
}

fn hint_call(hint: &HintRecord) -> HintCall {
    let HintRecord { time, event, plugin, answer, .. } = *hint;
    HintCall { time, event: event_text(&event), plugin, answer }
}

/// The state of a pod: bound, waiting, or in a queue.
pub(super) fn place_of(world: &World, pod: &Pod) -> PodLocation {
    let scheduler = world.scheduler();
    if pod.is_terminal() {
        return PodLocation::Ended { phase: pod.status.phase.as_str() };
    }
    if !pod.spec.node_name.is_empty() {
        return PodLocation::Bound { node: pod.spec.node_name };
    }
    if let Some(waiting) = scheduler.waiting().iter().find(|w| w.pod().uid() == pod.metadata.uid) {
        return waiting_place(waiting);
    }
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    match scheduler.queue().queue_of(key) {
        QueueName::None if !scheduler.frameworks().contains_key(&pod.spec.scheduler_name) => {
            PodLocation::Unserved { scheduler_name: pod.spec.scheduler_name }
        }
        QueueName::None => PodLocation::Nowhere,
        queue => PodLocation::Queue { queue: QueuePlace(queue) },
    }
}

fn waiting_place(waiting: &WaitingPod) -> PodLocation {
    let held = |hold: &kubestep_scheduler::Hold| WaitedPlugin {
        plugin: hold.plugin,
        deadline: hold.deadline,
    };
    PodLocation::Waiting {
        node: waiting.node(),
        holds: waiting.holds().iter().map(held).collect(),
        in_pre_bind: waiting.in_pre_bind().is_some(),
        since: waiting.since(),
    }
}
