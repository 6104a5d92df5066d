//! The reasons why a pod's claims are unavailable on a node, as Filter found them: Filter builds
//! its status from these reasons, and explanations show them.

use std::sync::Arc;

use super::extended::Mappings;
use crate::dynamic_resources::structured::AllocationError;
use kubestep_api::{Name, ResourceClaim};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::status::Status;

/// Why a pod's claims are unavailable on a node.
#[derive(Clone, PartialEq, Debug)]
pub enum DeviceReason {
    /// Only a status: for problems of the claims themselves or of the node's own resources.
    Status(Status),
    /// These claims cannot be allocated together.
    NotAllocated(Wanted),
    /// The search for devices ended with an error.
    Failed(AllocationError),
    /// Allocated claims that cannot be used on the node.
    Unavailable(Vec<Unavailable>),
}

/// What must be allocated on a node.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Wanted {
    /// The claims without an allocation.
    pub claims: Vec<Arc<ResourceClaim>>,
    /// Which request of the claim for extended resources serves which container and resource.
    pub mappings: Mappings,
}

/// An allocated claim that cannot be used on a node.
#[derive(Clone, PartialEq, Debug)]
pub struct Unavailable {
    /// Its index among the pod's claims.
    pub index: usize,
    /// The claim, which is allocated.
    pub claim: Arc<ResourceClaim>,
    /// Why its devices cannot be used on the node.
    pub why: WhyUnavailable,
}

/// Why an allocated claim cannot be used on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WhyUnavailable {
    /// The node selector of the allocation does not match the node.
    OutOfReach,
    /// A binding failure condition of a device is true; the message.
    Failed(String),
    /// The devices' binding conditions were not met in time.
    TimedOut,
}

impl DeviceReason {
    /// The status of the node with this reason.
    pub fn rejection(&self, node: Name, gates: &FeatureGates) -> Status {
        match self {
            DeviceReason::Status(status) => status.clone(),
            DeviceReason::NotAllocated(_) => Status::unresolvable("cannot allocate all claims"),
            DeviceReason::Failed(AllocationError::OnNode(text)) => Status::unresolvable(text),
            DeviceReason::Failed(AllocationError::TimedOut) => timed_out(node, gates),
            DeviceReason::Failed(AllocationError::Failed(text)) => Status::error(text),
            DeviceReason::Unavailable(_) => {
                Status::unresolvable("resourceclaim not available on the node")
            }
        }
    }
}

/// The status of a node on which the search took too long.
fn timed_out(node: Name, gates: &FeatureGates) -> Status {
    let text = "timed out trying to allocate devices";
    match gates.has(Switch::DeviceSearchTimeoutFails) {
        true => Status::error(format!("node {node}: {text}")),
        false => Status::unresolvable(text),
    }
}
