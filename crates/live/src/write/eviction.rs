//! Evicts a victim of preemption: first sets the condition with the reason, then deletes the pod.
//! Both name the UID, so that a recreated pod is left alone.

use http::Method;
use serde_json::json;

use crate::failure::Failure;
use crate::write::call::{Call, Calls, Content};
use crate::write::pod_status;
use kubestep_api::Condition;
use kubestep_cluster::remote::{PodRef, Written};
use kubestep_framework::host::PodStatusPatch;

/// Evicts the pod.
///
/// # Errors
/// The server rejected the condition or the deletion, although the pod exists.
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

/// Whether there is no such pod, or none with that UID.
fn is_gone(failure: &Failure) -> bool {
    match failure {
        Failure::Absent(_) => true,
        Failure::Server { code: 409, message, .. } => message.contains("UID"),
        _ => false,
    }
}
