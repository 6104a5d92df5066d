//! Updates of volumes, volume claims and resource claims: what the scheduler writes before it binds
//! a pod.
//!
//! An update is sent as the difference from the version that the decision was based on, together
//! with that version: if another client was faster, the server rejects it.

use http::Method;
use serde_json::{Map, Value, json};

use crate::failure::RequestFailure;
use crate::kinds::{self, ReadKind};
use crate::list;
use crate::write::call::{BodyFormat, Calls, WriteCall};
use kubestep_api::decode::DecodeError;
use kubestep_api::{Kind, Object};
use kubestep_cluster::remote::WriteOutcome;
use kubestep_framework::pod::NamespacedName;

/// The status code if another client was faster.
pub(super) const CONFLICT: u16 = 409;
/// The subresource that is written separately.
const STATUS: &str = "status";

/// Sends an update.
///
/// # Errors
/// The server rejected it: the object was deleted or has changed.
pub(super) async fn update(
    calls: &Calls,
    before: &Object,
    after: &Object,
) -> Result<WriteOutcome, RequestFailure> {
    let malformed = |error: serde_json::Error| RequestFailure::Malformed(error.to_string());
    let [before, changed] = [before, after].map(Object::to_json);
    let (before, changed) = (before.map_err(malformed)?, changed.map_err(malformed)?);
    let mut patch = difference(&before, &changed).unwrap_or_else(|| json!({}));
    let status = patch.as_object_mut().and_then(|patch| patch.remove(STATUS));
    let mut version = after.metadata().resource_version.to_string();
    let mut written = WriteOutcome::Done;
    if has_changes(&patch) {
        written = send(calls, after, "", patch, &version).await?;
        match &written {
            WriteOutcome::Object(object) => {
                version = object.metadata().resource_version.to_string()
            }
            WriteOutcome::Conflict { .. } => return Ok(written),
            _ => {}
        }
    }
    if let Some(status) = status {
        let patch = json!({ STATUS: status });
        written = send(calls, after, "/status", patch, &version).await?;
    }
    Ok(written)
}

/// Whether anything besides the version changed.
fn has_changes(patch: &Value) -> bool {
    let Some(patch) = patch.as_object() else { return false };
    patch.iter().any(|(name, value)| match (name.as_str(), value.as_object()) {
        ("metadata", Some(metadata)) => metadata.keys().any(|name| name != "resourceVersion"),
        _ => true,
    })
}

async fn send(
    calls: &Calls,
    object: &Object,
    part: &str,
    mut patch: Value,
    version: &str,
) -> Result<WriteOutcome, RequestFailure> {
    let at = ObjectPath::of(calls, object.kind(), NamespacedName::of(object)).await?;
    patch["metadata"]["resourceVersion"] = version.into();
    patch["metadata"]["uid"] = object.metadata().uid.to_string().into();
    let (method, content) = (Method::PATCH, BodyFormat::MergePatch);
    let path = format!("{}{part}", at.path);
    let call = WriteCall { method, path, content, body: patch };
    match calls.make(&call).await {
        // As upstream, only updates of resource claims are retried.
        Err(RequestFailure::Server { code: CONFLICT, message, .. })
            if at.row.kind == Kind::ResourceClaim =>
        {
            newest(calls, &at, message).await
        }
        answer => at.read(&answer?),
    }
}

/// The present version of the object, so that the update can be retried on it.
async fn newest(
    calls: &Calls,
    at: &ObjectPath,
    problem: String,
) -> Result<WriteOutcome, RequestFailure> {
    let refused =
        |problem| RequestFailure::Server { code: CONFLICT, message: problem, after: None };
    let Ok(answer) = calls.get(&at.path).await else { return Err(refused(problem)) };
    match at.read(&answer) {
        Ok(WriteOutcome::Object(newest)) => Ok(WriteOutcome::Conflict { problem, newest }),
        _ => Err(refused(problem)),
    }
}

/// Where an object is on the server.
pub(super) struct ObjectPath {
    row: &'static ReadKind,
    /// The API version in which it is written.
    version: &'static str,
    /// The path of the object.
    pub path: String,
}

impl ObjectPath {
    /// The path of the object with that key.
    ///
    /// # Errors
    /// The server does not serve the kind, or did not answer.
    pub async fn of(
        calls: &Calls,
        kind: Kind,
        key: NamespacedName,
    ) -> Result<ObjectPath, RequestFailure> {
        let (row, version) = version_of(calls, kind).await?;
        let list = row.path(version, Some(key.namespace.as_str()));
        Ok(ObjectPath { row, version, path: format!("{list}/{}", key.name) })
    }

    /// The object in the server's answer.
    pub fn read(&self, answer: &[u8]) -> Result<WriteOutcome, RequestFailure> {
        read(self.row, self.version, answer)
    }
}

async fn version_of(
    calls: &Calls,
    kind: Kind,
) -> Result<(&'static ReadKind, &'static str), RequestFailure> {
    let row =
        kinds::row(kind).ok_or_else(|| RequestFailure::Malformed(format!("{kind} is not read")))?;
    Ok((row, calls.version_of(row).await?))
}

fn read(row: &ReadKind, version: &str, answer: &[u8]) -> Result<WriteOutcome, RequestFailure> {
    let text = String::from_utf8_lossy(answer);
    let object = list::read(&text, row, &row.api_version(version));
    let malformed = |error: DecodeError| RequestFailure::Malformed(error.to_string());
    Ok(WriteOutcome::Object(object.map_err(malformed)?))
}

/// The merge patch (RFC 7396) that turns `before` into `after`; `None` if they are equal. We do not
/// know every field that the server has, so only what changed may be sent.
pub(super) fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (before, after) if before == after => None,
        (Value::Object(before), Value::Object(after)) => Some(of_maps(before, after).into()),
        (_, after) => Some(after.clone()),
    }
}

fn of_maps(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in after {
        let old = before.get(name).unwrap_or(&Value::Null);
        if let Some(change) = difference(old, value) {
            patch.insert(name.clone(), change);
        }
    }
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    patch
}

/// Creates an object and returns the server's version of it.
///
/// # Errors
/// The server did not create it.
pub(super) async fn create(calls: &Calls, object: &Object) -> Result<WriteOutcome, RequestFailure> {
    let (kind, namespace) = (object.kind(), object.metadata().namespace);
    let (row, version) = version_of(calls, kind).await?;
    let mut body =
        object.to_json().map_err(|error| RequestFailure::Malformed(error.to_string()))?;
    body["apiVersion"] = row.api_version(version).into();
    body["kind"] = kind.to_string().into();
    let path = row.path(version, Some(namespace.as_str()));
    let call = WriteCall { method: Method::POST, path, content: BodyFormat::Json, body };
    read(row, version, &calls.make(&call).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_alone_is_no_change() {
        assert!(!has_changes(&json!({})));
        assert!(!has_changes(&json!({"metadata": {"resourceVersion": "2"}})));
        assert!(has_changes(&json!({"metadata": {"annotations": {"a": "b"}}})));
        assert!(has_changes(&json!({"spec": {}})));
    }

    #[test]
    fn only_what_changed() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": "gone"});
        let after = json!({"a": 1, "b": {"c": [1, 2], "d": 2}, "f": {"g": true}});
        let patch = json!({"b": {"c": [1, 2]}, "e": null, "f": {"g": true}});
        assert_eq!(difference(&before, &after), Some(patch));
        assert_eq!(difference(&before, &before), None);
    }
}
