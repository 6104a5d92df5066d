//! Trials of edits: on a copy of the cluster, with the real scheduler.

use super::replacement::ReplacementPod;
use crate::edit;
use crate::edit::{Edit, owner};
use crate::fix::{Fix, size};
use crate::why::group::joint_pods;
use kubestep_api::{Duration, Kind, Name, Pod};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod_groups::{PodGroupState, pod_group_of};
use std::sync::Arc;

/// Cycles of the pod: one that preempts, one that uses the freed resources, and one to spare.
const ATTEMPTS: usize = 3;
/// How long other pods are observed, in virtual microseconds: longer than a pod can stay
/// unschedulable before it is flushed (five minutes).
const WATCHED: i64 = 6 * 60 * 1_000_000;
/// Cycles of other pods that are observed.
const CYCLES: usize = 5_000;

/// Tries changes for one pod.
pub(super) struct EditTrial<'a> {
    /// The cluster as it is.
    now: &'a World,
    /// The cluster in which changes are tried: later, if a plugin rejects the pod's group until then.
    world: &'a World,
    pod: NamespacedName,
}

/// A copy of the cluster after edits.
struct Edited {
    world: World,
    notes: Vec<String>,
    /// The replacements of pods that the edits delete.
    replacements: Vec<ReplacementPod>,
}

/// The course of events after the edits, in queue order.
struct SimulatedRun {
    world: World,
    /// The node that the pod gets.
    node: Option<Name>,
    /// The virtual time that passes.
    micros: i64,
}

impl EditTrial<'_> {
    pub fn new<'a>(now: &'a World, world: &'a World, pod: NamespacedName) -> EditTrial<'a> {
        EditTrial { now, world, pod }
    }

    pub fn world(&self) -> &World {
        self.world
    }

    /// The result of the edits if the pod is scheduled first: `None` if it does not get a node, or
    /// the edits cannot be applied.
    pub fn run(&self, edits: &[Edit]) -> Option<Fix> {
        let Edited { mut world, mut notes, replacements } = self.edited(edits)?;
        let waiting: Vec<NamespacedName> = waiting(&world).collect();
        for attempt in 0..=ATTEMPTS {
            if attempt > 0 {
                world.step_ahead(self.pod)?;
            }
            if self.node(&world).is_some_and(|(_, waits)| waits) {
                self.step_its_group(&mut world);
            }
            let Some((node, waits)) = self.node(&world) else { continue };
            let evicted = evicted(&mut world, &waiting);
            if evicted.iter().any(|pod| self.is_of_node(*pod)) {
                return None;
            }
            for replacement in &replacements {
                notes.push(replacement.placed(&mut world, self.pod)?);
            }
            let size = size::of(edits, self.world, self.pod) + size::EVICTED * evicted.len() as f64;
            // Smaller differences only order plans.
            let size = (size * 100.0).round() / 100.0;
            let edits = edits.to_vec();
            return Some(Fix {
                edits,
                changes: Vec::new(),
                size,
                node,
                waits,
                evicted,
                contended: false,
                taken_by: Vec::new(),
                flush_only: false,
                notes,
                similar: Vec::new(),
            });
        }
        None
    }

    /// Schedules the pods for which a plugin lets this one wait: one that finds no node ends its
    /// wait.
    fn step_its_group(&self, world: &mut World) {
        let pod = world.api().objects().pod(self.pod).cloned();
        let joint = pod.and_then(|pod| joint_pods(world, &pod));
        for other in joint.into_iter().flat_map(|joint| joint.pending) {
            world.step_ahead(other);
        }
    }

    /// Whether the pod would return to its node if it were evicted.
    fn is_of_node(&self, pod: NamespacedName) -> bool {
        self.world.api().objects().pod(pod).is_some_and(|pod| owner::is_of_node(pod))
    }

    /// Adds what only proposals need: the changed fields, whether the pod also gets its node in
    /// queue order from `start`, and whether an event or only the flush requeues it in the current
    /// cluster. Returns whether to propose the change.
    pub fn complete(&self, fix: &mut Fix, start: &World, go_on: &mut dyn FnMut() -> bool) -> bool {
        fix.changes = edit::changes(&fix.edits, self.world);
        let plain = fix.edits.iter().filter_map(|edit| edit::affinity_change(edit, self.world));
        fix.notes.splice(0..0, plain.collect::<Vec<String>>());
        let mut course = |world: &World| self.course(self.edited_in(world, &fix.edits)?, go_on);
        let now = course(self.now);
        let first = match std::ptr::eq(start, self.now) {
            true => None,
            false => course(start),
        };
        if !go_on() {
            return true;
        }
        let (now, first) = (now.as_ref(), first.as_ref());
        let judged = first.or(now);
        if judged.is_some_and(|course| self.may_be_left_out(fix, &course.world)) {
            return false;
        }
        let node = judged.and_then(|course| course.node);
        fix.contended = node.is_none();
        fix.node = node.filter(|_| fix.evicted.is_empty()).unwrap_or(fix.node);
        let node_now = now.and_then(|course| course.node).filter(|now| *now != fix.node);
        let differs = first.is_some() && !fix.contended && fix.evicted.is_empty();
        if let Some(node_now) = node_now.filter(|_| differs) {
            let text = "in a run from the start (run --edit); attempted now, it gets";
            fix.notes.push(format!("{text} {node_now}"));
        }
        let effective = now.filter(|course| course.node.is_some()).or(judged);
        let flush = self.world.scheduler().queue().settings().max_unschedulable_duration;
        let is_late = |course: &SimulatedRun| {
            course.node.is_some() && Duration::from_micros(course.micros) >= flush
        };
        fix.flush_only = effective.is_some_and(is_late);
        if let Some(course) = judged.filter(|_| fix.contended) {
            fix.taken_by = self.taken_by(course);
        }
        true
    }

    /// Whether the fix makes the pod's group smaller and leaves another pod of the same or a higher
    /// priority without a node. Upstream, the order of a map decides which pod that is.
    fn may_be_left_out(&self, fix: &Fix, world: &World) -> bool {
        let is_of_group =
            |edit: &Edit| matches!(edit, Edit::Set { object, .. } if object.kind == Kind::PodGroup);
        let objects = world.api().objects();
        let Some(pod) = objects.pod(self.pod) else { return false };
        let group = pod_group_of(pod).and_then(|group| world.scheduler().pod_group(group));
        let left = group.into_iter().flat_map(PodGroupState::unscheduled);
        let mut left = left.filter_map(|key| objects.pod(key));
        fix.edits.iter().any(is_of_group)
            && left.any(|other| other.spec.priority >= pod.spec.priority)
    }

    /// The pods that get a node in this course and have none in the current cluster.
    fn taken_by(&self, course: &SimulatedRun) -> Vec<NamespacedName> {
        let objects = self.world.api().objects();
        let has_node = |pod: &Pod| !pod.spec.node_name.is_empty();
        let is_new = |pod: &&Arc<Pod>| {
            let before = objects.pod(key_of(pod));
            has_node(pod) && before.is_some_and(|before| !has_node(before))
        };
        let placed = course.world.api().objects().pods.values().filter(is_new);
        let mut pods: Vec<NamespacedName> = placed.map(|pod| key_of(pod)).collect();
        pods.sort_unstable();
        pods
    }

    /// Runs in queue order until the pod has a node or no timer is pending. `None` if it is
    /// stopped.
    fn course(&self, edited: Edited, go_on: &mut dyn FnMut() -> bool) -> Option<SimulatedRun> {
        let mut world = edited.world;
        let start = world.now().0;
        for _ in 0..CYCLES {
            if let Some((node, _)) = self.node(&world) {
                let micros = world.now().0 - start;
                return Some(SimulatedRun { world, node: Some(node), micros });
            }
            if !go_on() {
                return None;
            }
            if world.step().is_some() {
                continue;
            }
            let due = world.next_timer().filter(|due| due.0 <= start + WATCHED);
            let Some(due) = due else { break };
            world.advance((due.0 - world.now().0).max(0));
        }
        let micros = world.now().0 - start;
        Some(SimulatedRun { world, node: None, micros })
    }

    fn edited(&self, edits: &[Edit]) -> Option<Edited> {
        self.edited_in(self.world, edits)
    }

    fn edited_in(&self, before: &World, edits: &[Edit]) -> Option<Edited> {
        let mut world = before.clone();
        let mut notes = Vec::new();
        for edit in edits {
            notes.extend(edit.apply(&mut world).ok()?.notes);
        }
        let deleted = world.api_mut().take_deleted_pods();
        let objects = before.api().objects();
        let deleted = deleted.into_iter().filter(|pod| world.api().objects().pod(*pod).is_none());
        let deleted: Vec<Arc<Pod>> = deleted.filter_map(|pod| objects.pod(pod).cloned()).collect();
        let replace = |pod: &Arc<Pod>| ReplacementPod::of(&mut world, pod);
        let replacements = deleted.iter().filter_map(replace).collect();
        Some(Edited { world, notes, replacements })
    }

    /// The pod's node, and whether the pod still waits for a plugin.
    fn node(&self, world: &World) -> Option<(Name, bool)> {
        let pod = world.api().objects().pod(self.pod)?;
        if !pod.spec.node_name.is_empty() {
            let node = world.api().node(pod.spec.node_name)?;
            return Some((node.metadata.name, false));
        }
        let waiting = world.scheduler().waiting().iter();
        let own = waiting.map(|waiting| (waiting.pod().key(), waiting.node()));
        own.into_iter().find(|(key, _)| *key == self.pod).map(|(_, node)| (node, true))
    }
}

fn key_of(pod: &Pod) -> NamespacedName {
    NamespacedName::new(pod.metadata.namespace, pod.metadata.name)
}

/// The pods that wait at Permit or in PreBind.
fn waiting(world: &World) -> impl Iterator<Item = NamespacedName> + '_ {
    world.scheduler().waiting().iter().map(|waiting| waiting.pod().key())
}

/// The pods that were evicted: deleted, or rejected while they waited.
fn evicted(world: &mut World, waited: &[NamespacedName]) -> Vec<NamespacedName> {
    let mut evicted = world.api_mut().take_deleted_pods();
    let placed = |pod: NamespacedName| {
        let object = world.api().objects().pod(pod);
        object.is_some_and(|object| !object.spec.node_name.is_empty())
    };
    let still = |pod: NamespacedName| waiting(world).any(|other| other == pod) || placed(pod);
    let turned_away = waited.iter().filter(|pod| !evicted.contains(pod) && !still(**pod));
    let turned_away: Vec<NamespacedName> = turned_away.copied().collect();
    evicted.extend(turned_away);
    evicted
}
