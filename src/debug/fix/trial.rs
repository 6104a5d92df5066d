//! Trying edits: on a copy of the cluster, with the scheduler itself.

use std::sync::Arc;

use super::replacement::Replacement;
use crate::api::Pod;
use crate::debug::edit::{Edit, owner};
use crate::debug::fix::{Fix, size};
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;
use crate::sim::World;

/// Cycles of the pod: one that evicts, one that takes the room, and one to spare.
const ATTEMPTS: usize = 3;
/// How long the others are watched, in virtual microseconds: longer than the queue leaves a
/// pod alone (five minutes).
const WATCHED: i64 = 6 * 60 * 1_000_000;
/// Cycles of the others that are watched.
const CYCLES: usize = 5_000;

/// Tries changes for one pod.
pub(super) struct Trial<'a> {
    world: &'a World,
    pod: NamespacedName,
}

/// A copy of the cluster after edits.
struct Edited {
    world: World,
    notes: Vec<String>,
    /// What controllers made in place of pods that the edits delete.
    replacements: Vec<Replacement>,
}

impl Trial<'_> {
    pub fn new(world: &World, pod: NamespacedName) -> Trial<'_> {
        Trial { world, pod }
    }

    /// What comes of the edits if the pod is tried at once: `None` if it does not get a node,
    /// or they cannot be applied.
    pub fn run(&self, edits: &[Edit]) -> Option<Fix> {
        let Edited { mut world, mut notes, replacements } = self.edited(edits)?;
        let waiting: Vec<NamespacedName> = waiting(&world).collect();
        for attempt in 0..=ATTEMPTS {
            if attempt > 0 {
                world.step_ahead(self.pod)?;
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
            // What is less only orders plans.
            let size = (size * 100.0).round() / 100.0;
            let edits = edits.to_vec();
            let (contended, alike) = (false, 0);
            return Some(Fix { edits, size, node, waits, evicted, contended, notes, alike });
        }
        None
    }

    /// Whether the pod would come back to its node if it were evicted.
    fn is_of_node(&self, pod: NamespacedName) -> bool {
        self.world.api().objects().pod(pod).is_some_and(|pod| owner::is_of_node(pod))
    }

    /// Says in the fix whether the pod gets its node also in the queue's own order.
    pub fn look_at_others(&self, fix: &mut Fix) {
        fix.contended =
            !self.edited(&fix.edits).is_some_and(|edited| self.gets_there(edited.world));
    }

    fn gets_there(&self, mut world: World) -> bool {
        let end = world.now().0 + WATCHED;
        for _ in 0..CYCLES {
            if self.node(&world).is_some() {
                return true;
            }
            if world.step().is_some() {
                continue;
            }
            let due = world.next_timer().filter(|due| due.0 <= end);
            let Some(due) = due else { return false };
            world.advance((due.0 - world.now().0).max(0));
        }
        false
    }

    fn edited(&self, edits: &[Edit]) -> Option<Edited> {
        let mut world = self.world.clone();
        let mut notes = Vec::new();
        for edit in edits {
            notes.extend(edit.apply(&mut world).ok()?.notes);
        }
        let deleted = world.api_mut().take_deleted_pods();
        let objects = self.world.api().objects();
        let deleted = deleted.into_iter().filter(|pod| world.api().objects().pod(*pod).is_none());
        let deleted: Vec<Arc<Pod>> = deleted.filter_map(|pod| objects.pod(pod).cloned()).collect();
        let replace = |pod: &Arc<Pod>| Replacement::of(&mut world, pod);
        let replacements = deleted.iter().filter_map(replace).collect();
        Some(Edited { world, notes, replacements })
    }

    /// The pod's node, and whether it still waits for a plugin.
    fn node(&self, world: &World) -> Option<(Symbol, bool)> {
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

/// The pods that wait at Permit or in PreBind.
fn waiting(world: &World) -> impl Iterator<Item = NamespacedName> + '_ {
    world.scheduler().waiting().iter().map(|waiting| waiting.pod().key())
}

/// The pods that had to go: deleted, or no longer allowed to wait.
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
