//! Why a pod's claims cannot be had on a node, as Filter found it: its status is made of these
//! reasons, and an explanation reads them.

use std::sync::Arc;

use super::extended::Mappings;
use crate::dynamic_resources::structured::AllocationError;
use kubestep_api::ResourceClaim;
use kubestep_api::intern::Symbol;
use kubestep_framework::status::Status;

/// Why a pod's claims cannot be had on a node.
#[derive(Clone, PartialEq, Debug)]
pub enum Reason {
    /// Only the status tells: it is about the claims themselves, or the node's own resources.
    Said(Status),
    /// These claims cannot be allocated together.
    NotAllocated(Wanted),
    /// The search for devices has no answer.
    Failed(AllocationError),
    /// Allocated claims that cannot be used on the node.
    Unavailable(Vec<Unavailable>),
}

/// Claims that devices are searched for.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Wanted {
    /// The claims.
    pub claims: Vec<Arc<ResourceClaim>>,
    /// Which request of the claim for extended resources stands for which resource.
    pub mappings: Mappings,
}

/// An allocated claim that cannot be used on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Unavailable {
    /// Its index among the pod's claims.
    pub index: usize,
    /// The claim.
    pub claim: Arc<ResourceClaim>,
    /// Why.
    pub why: WhyUnavailable,
}

/// Why an allocated claim cannot be used on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhyUnavailable {
    /// Its devices cannot be reached from the node.
    OutOfReach,
    /// A device of it failed; how.
    Failed(String),
    /// Its devices were not ready in time.
    TimedOut,
}

impl Reason {
    /// What Filter says of the node for it.
    pub fn refusal(&self, node: Symbol) -> Status {
        match self {
            Reason::Said(status) => status.clone(),
            Reason::NotAllocated(_) => Status::unresolvable("cannot allocate all claims"),
            Reason::Failed(AllocationError::OnNode(text)) => Status::unresolvable(text),
            Reason::Failed(AllocationError::TimedOut) => {
                Status::error(&format!("node {node}: timed out trying to allocate devices"))
            }
            Reason::Failed(AllocationError::Failed(text)) => Status::error(text),
            Reason::Unavailable(_) => {
                Status::unresolvable("resourceclaim not available on the node")
            }
        }
    }
}
