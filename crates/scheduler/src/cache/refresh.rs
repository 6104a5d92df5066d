//! Updates the snapshot from the cache. The cost is proportional to what changed.
//!
//! Upstream: `UpdateSnapshot` in `pkg/scheduler/backend/cache/cache.go`.

use std::sync::Arc;

use crate::cache::Cache;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::snapshot::{Listed, Snapshot};

/// Which of the snapshot's lists are out of date.
#[derive(Default)]
struct StaleLists {
    /// Nodes were added or deleted.
    order: bool,
    /// Nodes whose membership in the lists of nodes with affinity, anti-affinity or volume claims
    /// may have changed.
    listed: Vec<NodeId>,
}

impl Cache {
    /// Updates `snapshot` and returns the slots that changed, in order.
    pub(crate) fn update_snapshot(&mut self, snapshot: &mut Snapshot) -> Vec<NodeId> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        let mut stale = StaleLists::default();
        for id in &changed {
            self.refresh_node(snapshot, *id, &mut stale);
        }
        if snapshot.filled_slots() > self.tree.count() {
            stale.order |= self.drop_vanished(snapshot);
        }
        self.free_slots(snapshot);
        if stale.order {
            let list = self.tree.list();
            let known = list.iter().filter_map(|name| snapshot.by_name(*name).map(|node| node.id));
            snapshot.set_order(known.collect());
        }
        stale.listed.iter().for_each(|id| snapshot.list(*id));
        changed
    }

    /// Copies one node into the snapshot; ghosts are skipped.
    fn refresh_node(&mut self, snapshot: &mut Snapshot, id: NodeId, stale: &mut StaleLists) {
        let Some(info) = &self.nodes[id.index()] else { return };
        let Some(node) = &info.node else {
            self.vanished.insert(id, info.name);
            return;
        };
        // As upstream, the image counts are those of this moment. They do not change when another
        // node gets the image, only when this node is copied again.
        let image_states = self.images.states(node);
        let info = Arc::new(NodeInfo { image_states, ..NodeInfo::clone(info) });
        let before = snapshot.get(id).map(|before| Listed::of(before));
        if before.is_none() {
            stale.order = true;
        }
        if before.unwrap_or_default() != Listed::of(&info) {
            stale.listed.push(id);
        }
        snapshot.set_node(id, Some(info));
    }

    /// Drops deleted nodes and ghosts from the snapshot. `true` if there were any.
    fn drop_vanished(&mut self, snapshot: &mut Snapshot) -> bool {
        let mut dropped = false;
        for id in self.vanished.keys() {
            if self.is_real(*id) || snapshot.get(*id).is_none() {
                continue;
            }
            snapshot.set_node(*id, None);
            dropped = true;
        }
        dropped
    }

    /// Frees the slots that the snapshot no longer uses.
    fn free_slots(&mut self, snapshot: &Snapshot) {
        let vanished = std::mem::take(&mut self.vanished);
        for (id, name) in vanished {
            if self.is_real(id) {
                continue;
            }
            if snapshot.get(id).is_some() || self.nodes[id.index()].is_some() {
                self.vanished.insert(id, name);
                continue;
            }
            Arc::make_mut(&mut self.slots).remove(&name);
            self.free.push(id);
        }
        // Freed slots are reused in a fixed order.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn is_real(&self, id: NodeId) -> bool {
        self.nodes[id.index()].as_ref().is_some_and(|info| info.node.is_some())
    }
}
