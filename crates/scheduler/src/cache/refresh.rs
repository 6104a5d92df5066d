//! Bringing the snapshot up to date with the cache, in proportion to what changed.
//!
//! Upstream: `UpdateSnapshot` in `pkg/scheduler/backend/cache/cache.go` (C-030…035).

use std::sync::Arc;

use crate::cache::Cache;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::snapshot::{Listed, Snapshot};

/// What of the snapshot's lists is out of date.
#[derive(Default)]
struct Stale {
    /// Nodes came or went.
    order: bool,
    /// Nodes that came to belong to other lists than before.
    listed: Vec<NodeId>,
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

    /// Takes one node over; ghosts are skipped (C-030).
    fn refresh_node(&mut self, snapshot: &mut Snapshot, id: NodeId, stale: &mut Stale) {
        let Some(info) = &self.nodes[id.index()] else { return };
        let Some(node) = &info.node else {
            self.vanished.insert(id, info.name);
            return;
        };
        // The image counts are those of this moment and stay so until the node changes (C-011).
        let image_states = self.images.states(node);
        let info = Arc::new(NodeInfo { image_states, ..NodeInfo::clone(info) });
        let before = snapshot.get(id).map(|before| Listed::of(before));
        if before.is_none() {
            stale.order = true;
        }
        if before.unwrap_or_default() != Listed::of(&info) {
            stale.listed.push(id); // C-031
        }
        snapshot.set_node(id, Some(info));
    }

    /// Drops nodes that are gone or ghosts from the snapshot (C-032). Says whether there were
    /// any.
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

    /// Gives up slots that nobody needs any more.
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
        // Slots are handed out again in a fixed order.
        self.free.sort_unstable_by(|a, b| b.cmp(a));
    }

    fn is_real(&self, id: NodeId) -> bool {
        self.nodes[id.index()].as_ref().is_some_and(|info| info.node.is_some())
    }
}
