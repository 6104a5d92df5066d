//! What is kept from cycle to cycle, so that a cycle costs what changed since the last one: the
//! prepared slices with the pools of each node, and what the search found on each node for claims of
//! the same spec.
//!
//! Everything here is computed from immutable objects and is valid while those are the very same
//! ones (by address, and they are held, so that no other takes the address). So what is kept changes
//! no result, whichever branch or moment of a session asks; debug builds compare.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;

use crate::dynamic_resources::structured::Features;
use crate::dynamic_resources::structured::allocator::Allocator;
use crate::dynamic_resources::structured::pools::{NodePools, Slices};
use kubestep_api::{
    AllocationResult, DeviceClass, DeviceTaintRule, Node, ResourceClaim, ResourceClaimSpec,
    ResourceSlice,
};
use kubestep_framework::dra::allocated::PoolDevices;
use kubestep_framework::dra::{AllocatedDevices, PoolId};
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::{ByKey, Objects};
use kubestep_framework::snapshot::Snapshot;

/// The most demands that are kept; the one unused for longest is dropped first.
const DEMANDS: usize = 16;
/// The most nodes that a pass over all nodes searches: from about here on, threads are faster.
const MOST_SEARCHES: usize = 256;
/// The most changed pools that are compared with those of each node, rather than looked up.
const MOST_POOLS: usize = 16;

/// What a plugin keeps.
#[derive(Default, Debug)]
pub struct KeptDevices(Mutex<Option<Inventory>>);

/// The slices of the cluster, and what was found in them.
#[derive(Debug)]
struct Inventory {
    features: Features,
    listed: ByKey<ResourceSlice>,
    rules: ByKey<DeviceTaintRule>,
    slices: Arc<Slices>,
    /// The classes that `demands` were searched with.
    classes: ByKey<DeviceClass>,
    /// From the one unused for longest on.
    demands: Vec<Arc<Demand>>,
}

/// Claims of these specs, and what was found for them on each node.
#[derive(Debug)]
pub struct Demand {
    specs: Vec<ResourceClaimSpec>,
    found: Mutex<FoundOnNodes>,
}

/// One result for each claim, or `None` if they do not fit.
pub(crate) type Found = Option<Arc<Vec<AllocationResult>>>;

/// What was found on nodes.
#[derive(Default, Debug)]
struct FoundOnNodes {
    /// By slot, so they are never more than there were nodes.
    nodes: Vec<Option<FoundOnNode>>,
    /// The last pass over all nodes that was not ended early.
    last: Option<Pass>,
    /// The number of passes.
    passes: u64,
}

/// A pass over all nodes: its number, and what all that it found depends on.
#[derive(Debug)]
struct Pass {
    number: u64,
    slices: Arc<Slices>,
    allocated: Arc<AllocatedDevices>,
}

/// What was found on a node, and what it depends on.
#[derive(Debug)]
pub(super) struct FoundOnNode {
    pub node: Arc<Node>,
    pub pools: Arc<NodePools>,
    /// What was allocated of each pool.
    allocated: SmallVec<[(PoolId, Option<Arc<PoolDevices>>); 1]>,
    pub found: Found,
    /// The number of the last pass for which it was valid; 0 for none.
    pass: u64,
}

impl KeptDevices {
    /// The slices of the cluster, of which there are `nodes` nodes.
    pub(crate) fn slices(
        &self,
        objects: &Objects,
        features: Features,
        nodes: usize,
    ) -> Arc<Slices> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|known| known.features != features) {
            *kept = None;
        }
        let rules = &objects.device_taint_rules;
        let is_same = |known: &&mut Inventory| {
            Arc::ptr_eq(&known.listed, &objects.resource_slices)
                && (Arc::ptr_eq(&known.rules, rules) || !features.taint_rules)
        };
        if let Some(known) = kept.as_mut().filter(is_same) {
            known.slices.forget_nodes_beyond(2 * nodes + 64);
            return known.slices.clone();
        }
        let former = kept.as_ref().map(|known| known.slices.as_ref());
        let slices = Arc::new(Slices::new(objects, features.taint_rules, former));
        let (listed, rules) = (objects.resource_slices.clone(), rules.clone());
        *kept = Some(match kept.take() {
            Some(known) => Inventory { listed, rules, slices: slices.clone(), ..known },
            None => Inventory {
                features,
                listed,
                rules,
                slices: slices.clone(),
                classes: objects.device_classes.clone(),
                demands: Vec::new(),
            },
        });
        slices
    }

    /// What is kept for claims of the same specs as these. Call [`KeptDevices::slices`] before.
    pub(crate) fn demand(
        &self,
        objects: &Objects,
        claims: &[Arc<ResourceClaim>],
    ) -> Option<Arc<Demand>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.as_mut()?;
        if !Arc::ptr_eq(&known.classes, &objects.device_classes) {
            known.classes = objects.device_classes.clone();
            known.demands.clear();
        }
        let at = known.demands.iter().position(|demand| demand.is_for(claims));
        let demand = match at {
            Some(at) => known.demands.remove(at),
            None => Arc::new(Demand::new(claims)),
        };
        if known.demands.len() == DEMANDS {
            known.demands.remove(0);
        }
        known.demands.push(demand.clone());
        Some(demand)
    }
}

impl Demand {
    pub(super) fn new(claims: &[Arc<ResourceClaim>]) -> Demand {
        let specs = claims.iter().map(|claim| claim.spec.clone());
        Demand { specs: specs.collect(), found: Mutex::default() }
    }

    /// Whether these claims have its specs.
    fn is_for(&self, claims: &[Arc<ResourceClaim>]) -> bool {
        self.specs.iter().eq(claims.iter().map(|claim| &claim.spec))
    }

    fn found(&self) -> MutexGuard<'_, FoundOnNodes> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found on the node in a slot, if it had the same pools, and the same was allocated of
    /// them.
    pub(super) fn on_node(
        &self,
        slot: NodeId,
        pools: &Arc<NodePools>,
        (allocator, claims): (&Allocator, &[Arc<ResourceClaim>]),
    ) -> Option<Found> {
        let kept = self.found();
        let kept = kept.nodes.get(slot.index())?.as_ref()?;
        if !Arc::ptr_eq(&kept.pools, pools) || !kept.is_of(allocator.allocated()) {
            return None;
        }
        debug_assert!(allocator.finds(kept, claims));
        Some(kept.found.clone())
    }

    /// Keeps what was found on the node in a slot.
    pub(super) fn keep(&self, slot: NodeId, found: FoundOnNode) {
        let mut kept = self.found();
        let slots = kept.nodes.len().max(slot.index() + 1);
        kept.nodes.resize_with(slots, || None);
        kept.nodes[slot.index()] = Some(found);
    }

    /// By slot of the snapshot, whether the claims fit the node. `None` if too many nodes have to be
    /// searched for one thread, or if what is found on one cannot be kept.
    pub(crate) fn pass(
        &self,
        allocator: &Allocator,
        snapshot: &Snapshot,
        claims: &[Arc<ResourceClaim>],
    ) -> Option<Vec<bool>> {
        let mut kept = self.found();
        let (number, stale) = kept.begin_pass(allocator, snapshot);
        if stale.len() > MOST_SEARCHES {
            return None;
        }
        for (slot, node) in stale {
            let pools = allocator.pools_of(node).ok()?;
            let found = allocator.search_to_keep(node, claims, pools).1?;
            kept.nodes[slot.index()] = Some(FoundOnNode { pass: number, ..found });
        }
        let (slices, allocated) = (allocator.slices.clone(), allocator.allocated().clone());
        kept.last = Some(Pass { number, slices, allocated });
        let mut fits = vec![true; snapshot.slots()];
        for (slot, _) in nodes_of(snapshot) {
            let found = kept.nodes[slot.index()].as_ref();
            debug_assert!(found.is_some_and(|kept| allocator.finds(kept, claims)));
            fits[slot.index()] = found.is_some_and(|kept| kept.found.is_some());
        }
        Some(fits)
    }
}

/// The nodes of a snapshot, each with its slot.
fn nodes_of(snapshot: &Snapshot) -> impl Iterator<Item = (NodeId, &Arc<Node>)> {
    snapshot.iter().filter_map(|node| Some((node.id, node.node.as_ref()?)))
}

impl FoundOnNodes {
    /// Begins a pass: its number, and the nodes on which something else may be found now. What was
    /// found on the others is marked as valid for this pass.
    fn begin_pass<'a>(
        &mut self,
        allocator: &Allocator,
        snapshot: &'a Snapshot,
    ) -> (u64, Vec<(NodeId, &'a Arc<Node>)>) {
        // A pass that ends early is no `last` one, so no later pass has its number.
        self.passes += 1;
        let last = self.last.as_ref();
        let last = last.filter(|last| Arc::ptr_eq(&last.slices, &allocator.slices));
        let changed = last.map(|last| last.allocated.changed_pools(allocator.allocated()));
        let last = last.zip(changed).filter(|(_, changed)| changed.len() <= MOST_POOLS);
        let is_valid = |kept: &FoundOnNode| match &last {
            Some((last, changed)) if kept.pass == last.number => !kept.uses_any(changed),
            _ => allocator.confirms(kept),
        };
        self.nodes.resize_with(self.nodes.len().max(snapshot.slots()), || None);
        let mut stale = Vec::new();
        for (slot, node) in nodes_of(snapshot) {
            match &mut self.nodes[slot.index()] {
                Some(kept) if Arc::ptr_eq(&kept.node, node) && is_valid(kept) => {
                    kept.pass = self.passes;
                }
                _ => stale.push((slot, node)),
            }
        }
        (self.passes, stale)
    }
}

impl FoundOnNode {
    /// What was found on a node with these pools, of which this was allocated.
    pub(super) fn new(
        node: &Arc<Node>,
        pools: Arc<NodePools>,
        allocated: &AllocatedDevices,
        found: Found,
    ) -> FoundOnNode {
        let of_pool = |id: PoolId| (id, allocated.pool(id).cloned());
        let allocated = pools.iter().map(|pool| of_pool(pool.id)).collect();
        FoundOnNode { node: node.clone(), pools, allocated, found, pass: 0 }
    }

    /// Whether the same is allocated of its pools.
    pub(super) fn is_of(&self, allocated: &AllocatedDevices) -> bool {
        self.allocated.iter().all(|(id, then)| match (allocated.pool(*id), then) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        })
    }

    /// Whether it depends on any of these pools.
    fn uses_any(&self, changed: &[PoolId]) -> bool {
        self.allocated.iter().any(|(id, _)| changed.contains(id))
    }
}

#[cfg(test)]
mod tests;
