//! Creates an object: the claim for a pod's extended resources.

use http::Method;

use crate::failure::Failure;
use crate::kinds;
use crate::write::call::{Call, Calls, Content};
use crate::write::object::read;
use kubestep_api::Object;
use kubestep_cluster::remote::Written;

/// Creates an object and returns the server's version of it.
///
/// # Errors
/// The server did not create it.
pub(super) async fn create(calls: &Calls, object: &Object) -> Result<Written, Failure> {
    let (kind, namespace) = (object.kind(), object.metadata().namespace);
    let row = kinds::row(kind).ok_or_else(|| Failure::Malformed(format!("{kind} is not read")))?;
    let version = row.versions[0];
    let mut body = object.to_json().map_err(|error| Failure::Malformed(error.to_string()))?;
    body["apiVersion"] = row.api_version(version).into();
    body["kind"] = kind.to_string().into();
    let path = row.path(version, Some(namespace.as_str()));
    let call = Call { method: Method::POST, path, content: Content::Json, body };
    read(row, &calls.make(&call).await?)
}
