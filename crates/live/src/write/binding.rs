//! Binds a pod to a node: `pods/binding`. The UID is sent along, so that a pod recreated under the
//! same name is not bound.

use http::Method;
use serde_json::json;

use crate::failure::Failure;
use crate::write::call::{Call, Calls, Content};
use kubestep_api::intern::Symbol;
use kubestep_cluster::remote::{PodRef, Written};

/// Binds the pod.
///
/// # Errors
/// The server did not bind: the pod was deleted, recreated, or already has a node.
pub(super) async fn bind(calls: &Calls, pod: PodRef, node: Symbol) -> Result<Written, Failure> {
    let (namespace, name) = (pod.key.namespace, pod.key.name);
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": namespace, "name": name, "uid": pod.uid},
        "target": {"kind": "Node", "name": node},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/binding");
    calls.make(&Call { method: Method::POST, path, content: Content::Json, body }).await?;
    Ok(Written::Done)
}
