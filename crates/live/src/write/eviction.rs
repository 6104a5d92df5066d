//! Evicting a victim of preemption: the condition first, which says why, then the deletion. Both
//! name the UID: another pod of the name is none of the scheduler's business.

use http::Method;
use serde_json::json;

use crate::failure::Failure;
use crate::write::call::{Call, Calls, Content};
use crate::write::pod_status;
use kubestep_api::Condition;
use kubestep_cluster::remote::{PodRef, Written};
use kubestep_framework::host::PodStatusPatch;

/// Evicts.
///
/// # Errors
/// The server marked or deleted nothing, though the pod is there.
pub(super) async fn evict(
    calls: &Calls,
    pod: PodRef,
    condition: Option<Condition>,
) -> Result<Written, Failure> {
    if condition.is_some() {
        let patch = PodStatusPatch { condition, nominated_node: None };
        match pod_status::patch(calls, pod, &patch).await {
            Err(failure) if is_gone(&failure) => return Ok(Written::Gone),
            patched => patched?,
        };
    }
    let (namespace, name) = (pod.key.namespace, pod.key.name);
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let body = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid},
    });
    let call = Call { method: Method::DELETE, path, content: Content::Json, body };
    match calls.make(&call).await {
        Err(failure) if is_gone(&failure) => Ok(Written::Gone),
        deleted => deleted.map(|_| Written::Done),
    }
}

/// There is no such pod, or none of that UID.
fn is_gone(failure: &Failure) -> bool {
    match failure {
        Failure::Absent(_) => true,
        Failure::Server { code: 409, message } => message.contains("UID"),
        _ => false,
    }
}
