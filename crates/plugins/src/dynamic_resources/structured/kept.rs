//! What is kept from cycle to cycle, so that a cycle costs what changed since the last one: the
//! prepared slices with the pools of each node, and what the search found on each node for claims of
//! the same spec.
//!
//! Everything here is computed from immutable objects and is valid while those are the very same
//! ones (by address, and they are held, so that no other takes the address). So what is kept changes
//! no result, whichever branch or moment of a session asks; debug builds compare.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::dynamic_resources::structured::Features;
use crate::dynamic_resources::structured::pools::{NodePools, Slices};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocationResult, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimSpec, ResourceSlice,
};
use kubestep_framework::dra::allocated::PoolDevices;
use kubestep_framework::dra::{AllocatedDevices, PoolId};
use kubestep_framework::objects::{ByKey, Objects};

/// The most demands that are kept; the one unused for longest is dropped first.
const DEMANDS: usize = 16;

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
    found: Mutex<HashMap<Symbol, FoundOnNode>>,
}

/// One result for each claim, or `None` if they do not fit.
pub(crate) type Found = Option<Arc<Vec<AllocationResult>>>;

/// What was found on a node, and what it depends on.
#[derive(Debug)]
struct FoundOnNode {
    pools: Arc<NodePools>,
    /// What was allocated of each pool.
    allocated: Vec<Option<Arc<PoolDevices>>>,
    found: Found,
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
            known.forget_old_nodes(nodes);
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

impl Inventory {
    /// Drops what is kept of nodes once it is far more than there are nodes.
    fn forget_old_nodes(&self, nodes: usize) {
        let most = 2 * nodes + 64;
        self.slices.forget_nodes_beyond(most);
        for demand in &self.demands {
            let mut found = demand.found();
            if found.len() > most {
                found.clear();
            }
        }
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

    fn found(&self) -> MutexGuard<'_, HashMap<Symbol, FoundOnNode>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was found on a node with these pools, if as much of them was allocated then.
    pub(crate) fn on_node(
        &self,
        node: Symbol,
        pools: &Arc<NodePools>,
        allocated: &AllocatedDevices,
    ) -> Option<Found> {
        let kept = self.found();
        let kept = kept.get(&node).filter(|kept| Arc::ptr_eq(&kept.pools, pools))?;
        let mut then = pools.iter().zip(&kept.allocated);
        let is_same = then.all(|(pool, then)| match (allocated.pool(pool.id), then) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (now, then) => now.is_none() && then.is_none(),
        });
        is_same.then(|| kept.found.clone())
    }

    /// Keeps what was found on a node.
    pub(crate) fn keep(
        &self,
        node: Symbol,
        pools: Arc<NodePools>,
        allocated: &AllocatedDevices,
        found: Found,
    ) {
        let of_pool = |id: PoolId| allocated.pool(id).cloned();
        let allocated = pools.iter().map(|pool| of_pool(pool.id)).collect();
        self.found().insert(node, FoundOnNode { pools, allocated, found });
    }
}
