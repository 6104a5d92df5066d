//! Changing a pod's status: `pods/status`, by Kubernetes' own patch, so that the conditions of
//! others stay as they are. The UID is sent along: another pod of the name is not meant.

use http::Method;
use serde_json::{Map, Value, json};

use crate::api::{Condition, NodeAllocatableResourceClaimStatus, PodExtendedResourceClaimStatus};
use crate::engine::host::PodStatusPatch;
use crate::live::failure::Failure;
use crate::live::write::call::{Call, Calls, Content};
use crate::sim::remote::{PodRef, Written};

/// Sets a condition and the nominated node.
///
/// # Errors
/// The server did not take it.
pub(super) async fn patch(
    calls: &Calls,
    pod: PodRef,
    patch: &PodStatusPatch,
) -> Result<Written, Failure> {
    let mut status = Map::new();
    if let Some(condition) = &patch.condition {
        status.insert("conditions".into(), json!([condition_json(condition)]));
    }
    if let Some(node) = patch.nominated_node {
        let value = if node.is_empty() { Value::Null } else { json!(node) };
        status.insert("nominatedNodeName".into(), value);
    }
    set(calls, pod, status.into()).await
}

/// Says which claim stands for the pod's extended resources.
///
/// # Errors
/// The server did not take it.
pub(super) async fn name_claim(
    calls: &Calls,
    pod: PodRef,
    status: &PodExtendedResourceClaimStatus,
) -> Result<Written, Failure> {
    set(calls, pod, json!({ "extendedResourceClaimStatus": status })).await
}

/// Says what the pod's claims take of the node's own resources.
///
/// # Errors
/// The server did not take it.
pub(super) async fn name_node_resources(
    calls: &Calls,
    pod: PodRef,
    statuses: &[NodeAllocatableResourceClaimStatus],
) -> Result<Written, Failure> {
    set(calls, pod, json!({ "nodeAllocatableResourceClaimStatuses": statuses })).await
}

async fn set(calls: &Calls, pod: PodRef, status: Value) -> Result<Written, Failure> {
    let (namespace, name) = (pod.key.namespace, pod.key.name);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/status");
    let body = json!({ "metadata": { "uid": pod.uid }, "status": status });
    let content = Content::StrategicPatch;
    calls.make_again(&Call { method: Method::PATCH, path, content, body }).await?;
    Ok(Written::Done)
}

/// A condition as the API has it.
fn condition_json(condition: &Condition) -> Value {
    let mut json = json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastProbeTime": condition.last_probe_time,
        "lastTransitionTime": condition.last_transition_time,
    });
    if condition.observed_generation != 0 {
        json["observedGeneration"] = condition.observed_generation.into();
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ConditionStatus, Time};

    #[test]
    fn a_condition_has_the_fields_of_the_api() {
        let condition = Condition {
            type_: "PodScheduled".into(),
            status: ConditionStatus::False,
            reason: "Unschedulable".into(),
            message: "no".into(),
            observed_generation: 2,
            last_transition_time: Some(Time(1_767_225_600_000_000)),
            last_probe_time: None,
        };
        let expected = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "no", "observedGeneration": 2, "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        assert_eq!(condition_json(&condition), expected);
    }
}
