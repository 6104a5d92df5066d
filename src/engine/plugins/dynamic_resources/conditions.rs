//! Conditions that devices have to meet before the pod is bound (DRA-021, DRA-029).

use crate::api::{AllocatedDeviceStatus, DeviceRequestAllocationResult};
use crate::api::{ConditionStatus, ResourceClaim, Time, find_condition};

/// How far the devices of a claim are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// All conditions are met, or there are none.
    Ready,
    /// Not all are met.
    Waiting,
    /// A device failed; how.
    Failed(String),
}

/// Whether all devices of an allocated claim are ready to be bound.
pub fn readiness(claim: &ResourceClaim) -> Readiness {
    let Some(allocation) = &claim.status.allocation else { return Readiness::Waiting };
    let results = allocation.devices.results.iter();
    for result in results.filter(|result| !result.binding_conditions.is_empty()) {
        let Some(status) = status_of(claim, result) else { return Readiness::Waiting };
        let is_true = |type_| {
            find_condition(&status.conditions, type_)
                .filter(|condition| condition.status == ConditionStatus::True)
        };
        if let Some(failed) = result.binding_failure_conditions.iter().find_map(|c| is_true(*c)) {
            return Readiness::Failed(format!(
                "device binding failed: claim={}, reason={}, message={:?}",
                claim.metadata.name, failed.reason, failed.message
            ));
        }
        if !result.binding_conditions.iter().all(|condition| is_true(*condition).is_some()) {
            return Readiness::Waiting;
        }
    }
    Readiness::Ready
}

/// What the driver reports on the device.
fn status_of<'a>(
    claim: &'a ResourceClaim,
    result: &DeviceRequestAllocationResult,
) -> Option<&'a AllocatedDeviceStatus> {
    claim.status.devices.iter().find(|status| {
        (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device)
    })
}

/// Whether any device of the claim has conditions.
pub fn has_conditions(claim: &ResourceClaim) -> bool {
    let allocation = claim.status.allocation.iter();
    let mut results = allocation.flat_map(|allocation| &allocation.devices.results);
    results.any(|result| !result.binding_conditions.is_empty())
}

/// Whether the claim waits for its devices since more than `timeout` microseconds.
pub fn is_timed_out(claim: &ResourceClaim, timeout: i64, now: Time) -> bool {
    let allocated = claim.status.allocation.as_ref();
    let since = allocated.and_then(|allocation| allocation.allocation_timestamp);
    since.is_some_and(|since| has_conditions(claim) && since.0 + timeout < now.0)
}
