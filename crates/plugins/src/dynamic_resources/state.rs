//! The plugin's state for a pod, from PreFilter to PreBind.
//!
//! Upstream: `stateData` in `dynamicresources.go` and `claimStore` in `claims.go`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::dynamic_resources::structured::{Allocator, Demand};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{
    AllocationResult, ContainerExtendedResourceRequest, Duration, Name,
    NodeAllocatableResourceClaimStatus, ResourceClaim, ResourceClaimConsumerReference, Time, Uid,
};
use kubestep_framework::status::Status;

/// The allocation that Filter found for a node.
#[derive(Clone, Default, Debug)]
pub struct NodeAllocation {
    /// One result for each claim to be allocated.
    pub results: Arc<Vec<AllocationResult>>,
    /// The claim for extended resources, with its requests for this node.
    pub extended: Option<Arc<ResourceClaim>>,
    /// Which of that claim's requests serves which container.
    pub mappings: Vec<ContainerExtendedResourceRequest>,
    /// The demand of the claims on the node's own resources.
    pub node_resources: Vec<NodeAllocatableResourceClaimStatus>,
}

/// Filter's results so far, by node name. Within a cycle the result for a node does not change,
/// so it is computed once.
#[derive(Clone, Default, Debug)]
pub struct FilterResults {
    /// The status of each node.
    pub statuses: HashMap<Name, Status>,
    /// The nodes on which Filter allocated something.
    pub allocations: HashMap<Name, Arc<NodeAllocation>>,
    /// The indices of allocated claims that cannot be used on the node.
    pub unavailable: HashMap<Name, Vec<usize>>,
    /// Whether all nodes were asked at once: what was found is with the pod's demand.
    pub at_once: bool,
}

/// Claims to be allocated, and what is kept for all of their specs.
#[derive(Clone, Debug)]
pub struct DemandOfPod {
    /// The claims.
    pub claims: Vec<Arc<ResourceClaim>>,
    /// What is kept.
    pub demand: Arc<Demand>,
}

/// A claim of the pod.
#[derive(Clone, Debug)]
pub struct ClaimOfPod {
    /// The claim as of the start of the cycle, later as the plugin wrote it.
    pub claim: Arc<ResourceClaim>,
    /// The nodes on which it can be used, if it is allocated and not usable everywhere.
    pub available_on: Option<NodeMatcher>,
    /// The allocation to be written: set in Reserve, or in PreFilter if it is pending for the
    /// group.
    pub allocation: Option<AllocationResult>,
    /// The write that has started.
    pub writing: Option<Writing>,
    /// The number of write conflicts so far.
    pub conflicts: u32,
    /// After a conflict, the earliest time of the next write.
    pub retry_at: Option<Time>,
    /// Whether the plugin created it and the informer does not list it yet.
    pub unlisted: bool,
}

/// A write of a claim that has started, with the claim as sent: a watch event may show the result
/// before the response arrives.
#[derive(Clone, Debug)]
pub enum Writing {
    /// The finalizer is added.
    Finalizer(ResourceClaim),
    /// Allocation and reservation are written.
    Status(ResourceClaim),
}

impl ClaimOfPod {
    /// A claim at the start of the cycle.
    pub fn new(claim: Arc<ResourceClaim>) -> ClaimOfPod {
        ClaimOfPod {
            claim,
            available_on: None,
            allocation: None,
            writing: None,
            conflicts: 0,
            retry_at: None,
            unlisted: false,
        }
    }

    /// Whether it has no allocation.
    pub(crate) fn is_unallocated(&self) -> bool {
        self.claim.status.allocation.is_none()
    }
}

/// The state of a pod. It is written as soon as PreFilter runs: if it is missing in PostFilter,
/// an earlier plugin ended PreFilter, and PostFilter fails with `not found`, as upstream.
#[derive(Clone, Default, Debug)]
pub struct ClaimState {
    /// The claims of the spec, then the claim for extended resources.
    pub claims: Vec<ClaimOfPod>,
    /// For each claim of the spec, the consumer to reserve it for; `None` for the pod itself.
    pub bind_to: Vec<Option<ResourceClaimConsumerReference>>,
    /// The number of claims of the spec.
    pub user_owned: usize,
    /// The UID of the claim for extended resources until it is created.
    pub initial_uid: Uid,
    /// The scalar resources that the pod requests, extended resources among them.
    pub scalars: Vec<(Symbol, i64)>,
    /// Set if a claim must be allocated.
    pub allocator: Option<Arc<Allocator>>,
    /// All claims to be allocated, as of the start of the cycle, if none is pending for the group.
    pub demand: Option<Arc<DemandOfPod>>,
    /// When PreBind started to wait for binding conditions.
    pub waiting_since: Option<Time>,
    /// Whether the pod's status must still name the claim for its extended resources.
    pub announces: bool,
    found: Arc<Mutex<FilterResults>>,
}

impl ClaimState {
    /// Whether the pod has no claims.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// The index of the claim for extended resources, if there is one.
    pub(crate) fn extended_index(&self) -> Option<usize> {
        (self.user_owned < self.claims.len()).then_some(self.user_owned)
    }

    /// The claim for extended resources.
    pub fn extended(&self) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(self.user_owned).map(|claim| &claim.claim)
    }

    /// The claim for extended resources, if the pod's status does not name it yet.
    pub(crate) fn to_announce(&self) -> Option<Arc<ResourceClaim>> {
        self.extended().filter(|_| self.announces).cloned()
    }

    /// The time until the next write after a conflict.
    pub(crate) fn until_retry(&self, now: Time) -> Option<Duration> {
        let pauses = self.claims.iter().filter_map(|claim| claim.retry_at);
        pauses.map(|at| at - now).filter(|left| *left > Duration::ZERO).min()
    }

    /// Whether the pod's spec references no claims.
    pub(crate) fn has_no_user_claims(&self) -> bool {
        self.user_owned == 0
    }

    /// The indices of the claims without an allocation.
    pub(crate) fn to_allocate(&self) -> Vec<usize> {
        let places = self.claims.iter().enumerate();
        places.filter(|(_, claim)| claim.is_unallocated()).map(|(at, _)| at).collect()
    }

    /// The pod's demand, unless claims of it were allocated since.
    pub(crate) fn unmet_demand(&self) -> Option<(&Allocator, &DemandOfPod)> {
        let is_met = self.claims.iter().any(|claim| claim.allocation.is_some());
        self.allocator.as_deref().zip(self.demand.as_deref()).filter(|_| !is_met)
    }

    /// Filter's results so far.
    pub fn found(&self) -> MutexGuard<'_, FilterResults> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The allocation that Filter found for a node when it was asked about this node alone.
    pub(crate) fn allocation_on(&self, node: Name) -> Option<Arc<NodeAllocation>> {
        self.found().allocations.get(&node).cloned()
    }
}
