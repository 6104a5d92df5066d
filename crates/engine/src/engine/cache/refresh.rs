//! Bringing the snapshot up to date with the cache, in proportion to what changed.
//!
//! Upstream: `UpdateSnapshot` in `pkg/scheduler/backend/cache/cache.go` (C-030…035).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::cache::Cache;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::snapshot::Snapshot;
use crate::intern::Symbol;

/// Which lists of the snapshot must be made anew.
#[derive(Default)]
struct Stale {
    order: bool,
    secondary: bool,
}

impl Cache {
    /// Brings `snapshot` up to date. Gives the slots that changed, in order.
    pub fn update_snapshot(&mut self, snapshot: &mut Snapshot) -> Vec<NodeId> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        let mut stale = Stale::default();
        for id in &changed {
            self.refresh_node(snapshot, *id, &mut stale);
        }
        if snapshot.by_name.len() > self.tree.count() {
            self.drop_vanished(snapshot);
            stale.order = true;
        }
        if stale.order {
            let list = self.tree.list();
            let known = list.iter().filter_map(|name| snapshot.by_name.get(name).copied());
            snapshot.order = Arc::new(known.collect());
        }
        if stale.order || stale.secondary {
            rebuild_secondary(snapshot);
        }
        changed
    }

    /// Takes one node over; ghosts are skipped (C-030).
    fn refresh_node(&self, snapshot: &mut Snapshot, id: NodeId, stale: &mut Stale) {
        let Some(info) = &self.nodes[id.index()] else { return };
        let Some(node) = &info.node else { return };
        // The image counts are those of this moment and stay so until the node changes (C-011).
        let image_states = self.images.states(node);
        let info = Arc::new(NodeInfo { image_states, ..NodeInfo::clone(info) });
        match snapshot.get(id) {
            Some(before) => stale.secondary |= secondary_differs(before, &info),
            None => {
                stale.order = true;
                Arc::make_mut(&mut snapshot.by_name).insert(info.name, id);
            }
        }
        snapshot.set_node(id, Some(info));
    }

    /// Drops nodes that are gone or ghosts from the snapshot and frees their slots (C-032).
    fn drop_vanished(&mut self, snapshot: &mut Snapshot) {
        let real = |cache: &Cache, id: NodeId| {
            cache.nodes[id.index()].as_ref().is_some_and(|info| info.node.is_some())
        };
        let vanished: Vec<(Symbol, NodeId)> = snapshot
            .by_name
            .iter()
            .map(|(name, id)| (*name, *id))
            .filter(|(_, id)| !real(self, *id))
            .collect();
        for (name, id) in vanished {
            snapshot.set_node(id, None);
            Arc::make_mut(&mut snapshot.by_name).remove(&name);
            if self.nodes[id.index()].is_none() {
                self.slots.remove(&name);
                self.free.push(id);
            }
        }
        // Slots are handed out again in a fixed order, whatever the order of the map.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// Whether the lists of nodes with affinity or of used claims may have changed (C-031).
fn secondary_differs(before: &NodeInfo, after: &NodeInfo) -> bool {
    let (old, new) = (&before.pvc_ref_counts, &after.pvc_ref_counts);
    before.pods_with_affinity.is_empty() != after.pods_with_affinity.is_empty()
        || before.pods_with_required_anti_affinity.is_empty()
            != after.pods_with_required_anti_affinity.is_empty()
        || old.len() != new.len()
        || !new.keys().all(|claim| old.contains_key(claim))
}

fn rebuild_secondary(snapshot: &mut Snapshot) {
    let with = |has: fn(&NodeInfo) -> bool| -> Arc<Vec<NodeId>> {
        Arc::new(snapshot.iter().filter(|node| has(node)).map(|node| node.id).collect())
    };
    let with_affinity = with(|node| !node.pods_with_affinity.is_empty());
    let with_required = with(|node| !node.pods_with_required_anti_affinity.is_empty());
    let claims: BTreeSet<_> =
        snapshot.iter().flat_map(|node| node.pvc_ref_counts.keys().copied()).collect();
    snapshot.with_affinity = with_affinity;
    snapshot.with_required_anti_affinity = with_required;
    snapshot.used_claims = Arc::new(claims);
}
