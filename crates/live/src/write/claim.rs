//! Writes to resource claims other than updates of the whole object: a user is removed, and a claim
//! is deleted together with its finalizer.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::failure::RequestFailure;
use crate::write::call::{BodyFormat, Calls, WriteCall};
use crate::write::object::{CONFLICT, ObjectPath};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, ResourceClaim, Uid};
use kubestep_cluster::remote::WriteOutcome;
use kubestep_framework::pod::NamespacedName;

/// How often the removal of the finalizer is retried after conflicts, and the pause in between:
/// client-go's `DefaultRetry`.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(10);

/// Removes a user from `reservedFor` of a claim. The patch has no version and only this entry, so
/// it cannot conflict with other pods' reservations.
///
/// # Errors
/// The server rejected the patch.
/// The server did not take it.
pub(super) async fn release(
    calls: &Calls,
    key: NamespacedName,
    uid: Uid,
    user: Uid,
) -> Result<WriteOutcome, RequestFailure> {
    let ObjectPath { path, .. } = ObjectPath::of(calls, Kind::ResourceClaim, key).await?;
    let body = json!({
        "metadata": {"uid": uid},
        "status": {"reservedFor": [{"$patch": "delete", "uid": user}]},
    });
    let (method, content) = (Method::PATCH, BodyFormat::StrategicPatch);
    let call = WriteCall { method, path: format!("{path}/status"), content, body };
    done_or_gone(calls.make(&call).await)
}

/// Removes the finalizer and deletes the claim.
///
/// # Errors
/// The server rejected one of them, although the claim exists.
pub(super) async fn delete(
    calls: &Calls,
    claim: &ResourceClaim,
    finalizer: Symbol,
) -> Result<WriteOutcome, RequestFailure> {
    match remove_finalizer(calls, claim.clone(), finalizer).await {
        Err(RequestFailure::Absent(_)) => return Ok(WriteOutcome::Gone),
        removed => removed?,
    }
    let ObjectPath { path, .. } = ObjectPath::of(calls, Kind::ResourceClaim, key(claim)).await?;
    let body = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": claim.metadata.uid},
    });
    let call = WriteCall { method: Method::DELETE, path, content: BodyFormat::Json, body };
    done_or_gone(calls.make(&call).await)
}

async fn remove_finalizer(
    calls: &Calls,
    mut claim: ResourceClaim,
    finalizer: Symbol,
) -> Result<(), RequestFailure> {
    let at = ObjectPath::of(calls, Kind::ResourceClaim, key(&claim)).await?;
    for tries in 1.. {
        let Some(body) = without(&claim, finalizer) else { break };
        let (method, content) = (Method::PATCH, BodyFormat::MergePatch);
        let call = WriteCall { method, path: at.path.clone(), content, body };
        match calls.make(&call).await {
            Err(RequestFailure::Server { code: CONFLICT, .. }) if tries < TRIES => {}
            answer => return answer.map(drop),
        }
        sleep(PAUSE).await;
        let answer = calls.get(&at.path).await?;
        if let WriteOutcome::Object(Object::ResourceClaim(newest)) = at.read(&answer)? {
            claim = newest.as_ref().clone();
        }
    }
    Ok(())
}

/// The patch that removes the finalizer; `None`: the claim does not have it.
fn without(claim: &ResourceClaim, finalizer: Symbol) -> Option<Value> {
    let metadata = &claim.metadata;
    let mut finalizers = metadata.finalizers.clone();
    finalizers.retain(|other| *other != finalizer);
    (finalizers.len() < metadata.finalizers.len()).then(|| {
        json!({"metadata": {
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version.to_string(),
            "finalizers": finalizers,
        }})
    })
}

fn key(claim: &ResourceClaim) -> NamespacedName {
    NamespacedName::new(claim.metadata.namespace, claim.metadata.name)
}

fn done_or_gone(answer: Result<Vec<u8>, RequestFailure>) -> Result<WriteOutcome, RequestFailure> {
    match answer {
        Err(RequestFailure::Absent(_)) => Ok(WriteOutcome::Gone),
        answer => answer.map(|_| WriteOutcome::Done),
    }
}
