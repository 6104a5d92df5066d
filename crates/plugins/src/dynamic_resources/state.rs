//! What the plugin keeps of a pod from PreFilter to PreBind.
//!
//! Upstream: `stateData` in `dynamicresources.go` and `claimStore` in `claims.go`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;

use crate::dynamic_resources::structured::Allocator;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::NodeMatcher;
use kubestep_api::{
    AllocationResult, ContainerExtendedResourceRequest, NodeAllocatableResourceClaimStatus,
    ResourceClaim, ResourceClaimConsumerReference, Time,
};
use kubestep_framework::status::Status;

/// What Filter found for a node.
#[derive(Clone, Default, Debug)]
pub struct NodeAllocation {
    /// One for each claim that has to be allocated.
    pub results: Vec<AllocationResult>,
    /// The claim for extended resources as this node needs it.
    pub extended: Option<Arc<ResourceClaim>>,
    /// Which request of it is for which container.
    pub mappings: Vec<ContainerExtendedResourceRequest>,
    /// What the claims take of the node's own resources.
    pub node_resources: Vec<NodeAllocatableResourceClaimStatus>,
}

/// What Filter found so far, by the node's name. Within a cycle the answer for a node does not
/// change, so it is computed once.
#[derive(Clone, Default, Debug)]
pub struct Found {
    /// The verdicts.
    pub statuses: HashMap<Symbol, Status>,
    /// The nodes where something was to be allocated.
    pub allocations: HashMap<Symbol, Arc<NodeAllocation>>,
    /// Which allocated claims cannot be used on the node.
    pub unavailable: HashMap<Symbol, Vec<usize>>,
}

/// A claim of the pod.
#[derive(Clone, Debug)]
pub struct ClaimOfPod {
    /// The claim as at the start of the cycle, later as written by the plugin.
    pub claim: Arc<ResourceClaim>,
    /// Where it can be used, if it is allocated and not everywhere.
    pub available_on: Option<NodeMatcher>,
    /// What it is to get: set in Reserve, or in PreFilter if another pod decided it.
    pub allocation: Option<AllocationResult>,
    /// What is being written.
    pub writing: Option<Writing>,
    /// How often others were faster.
    pub conflicts: u32,
    /// Not before is it written again.
    pub retry_at: Option<Time>,
    /// Whether the plugin has made it and no list shows it yet.
    pub unlisted: bool,
}

/// A write of a claim that is under way, as it was begun: what a watch tells meanwhile may
/// already be its result.
#[derive(Clone, Debug)]
pub enum Writing {
    /// It gets the finalizer.
    Finalizer(ResourceClaim),
    /// It gets allocation and reservation.
    Status(ResourceClaim),
}

impl ClaimOfPod {
    /// Nothing is known of it yet.
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
    pub fn is_unallocated(&self) -> bool {
        self.claim.status.allocation.is_none()
    }
}

/// The state of a pod. Written as soon as PreFilter runs, so that its absence tells PostFilter
/// that an earlier plugin ended PreFilter (DRA-033).
#[derive(Clone, Default, Debug)]
pub struct ClaimState {
    /// The claims: those in the spec, then the one for extended resources.
    pub claims: Vec<ClaimOfPod>,
    /// For whom each claim in the spec is to be reserved, where that is the pod's group.
    pub bind_to: Vec<Option<ResourceClaimConsumerReference>>,
    /// How many of them are in the spec.
    pub user_owned: usize,
    /// The UID that the claim for extended resources has until it is created.
    pub initial_uid: Symbol,
    /// The extended resources and the like that the pod requests.
    pub scalars: Vec<(Symbol, i64)>,
    /// Set if anything has to be allocated.
    pub allocator: Option<Arc<Allocator>>,
    /// When PreBind began to wait for binding conditions.
    pub waiting_since: Option<Time>,
    /// Whether the pod's status has to say which claim stands for its extended resources.
    pub announces: bool,
    found: Arc<Mutex<Found>>,
}

impl ClaimState {
    /// Whether there is nothing to do for the pod.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// Where the claim for extended resources is, if there is one.
    pub fn extended_index(&self) -> Option<usize> {
        (self.user_owned < self.claims.len()).then_some(self.user_owned)
    }

    /// The claim for extended resources.
    pub fn extended(&self) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(self.user_owned).map(|claim| &claim.claim)
    }

    /// The claim for extended resources, if the pod's status has yet to name it.
    pub fn to_announce(&self) -> Option<Arc<ResourceClaim>> {
        self.extended().filter(|_| self.announces).cloned()
    }

    /// In how many microseconds a claim is written again after a conflict.
    pub fn until_retry(&self, now: Time) -> Option<i64> {
        let pauses = self.claims.iter().filter_map(|claim| claim.retry_at);
        pauses.map(|at| at.0 - now.0).filter(|left| *left > 0).min()
    }

    /// Whether the pod's spec names no claims.
    pub fn has_no_user_claims(&self) -> bool {
        self.user_owned == 0
    }

    /// The places of the claims that are not allocated.
    pub fn to_allocate(&self) -> Vec<usize> {
        let places = self.claims.iter().enumerate();
        places.filter(|(_, claim)| claim.is_unallocated()).map(|(at, _)| at).collect()
    }

    /// What Filter found.
    pub fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What Filter found for a node.
    pub fn allocation_on(&self, node: Symbol) -> Option<Arc<NodeAllocation>> {
        self.found().allocations.get(&node).cloned()
    }
}
