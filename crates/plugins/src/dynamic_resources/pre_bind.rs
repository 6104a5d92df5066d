//! PreBind: writes allocations and reservations into the claims.

use std::sync::Arc;
use std::task::{Poll, ready};

use crate::dynamic_resources::structured::binding_conditions;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocationResult, Duration, Name, Object, PodExtendedResourceClaimStatus, ResourceClaim,
    ResourceClaimConsumerReference, Time, Uid,
};
use kubestep_framework::dra::counts_shares;
use kubestep_framework::host::{Host, HostError};
use kubestep_framework::plugin::BindContext;

use super::extended::IN_MEMORY_NAME;
use super::node_resources;
use super::post_filter::{CLAIM, key};
use super::reserve::add_finalizer;
use super::state::{ClaimOfPod, ClaimState, Writing};
use super::workload::is_reserved_for_pod_or_group;

/// How often a claim is written if the writes conflict, and the pause between two writes, as in
/// client-go's `DefaultRetry` without its jitter.
const MOST_TRIES: u32 = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Writes every claim that is not yet reserved for the pod.
///
/// # Errors
/// A claim changed since the cycle started, or cannot be written.
pub(crate) fn bind_claims(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
) -> Poll<Result<(), HostError>> {
    for at in 0..state.claims.len() {
        let claim = &state.claims[at].claim;
        if state.claims[at].writing.is_some()
            || !is_reserved_for_pod_or_group(claim, &cx.pod.pod, cx.features)
        {
            ready!(bind_claim(cx, state, at))?;
        }
    }
    if let Some(claim) = state.to_announce() {
        ready!(announce(cx, state, &claim))?;
    }
    Poll::Ready(node_resources::write(cx, state))
}

fn bind_claim(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
    at: usize,
) -> Poll<Result<(), HostError>> {
    let is_extended = Some(at) == state.extended_index();
    let claim = state.claims[at].claim.clone();
    let allocation = state.claims[at].allocation.clone();
    if is_extended && allocation.is_none() && claim.spec.devices.requests.is_empty() {
        return Poll::Ready(Ok(()));
    }
    if !may_write(cx, &state.claims[at]) {
        return Poll::Pending;
    }
    let written = ready!(write_claim(cx, state, at, is_extended, allocation.as_ref()));
    state.claims[at].writing = None;
    if written.as_ref().is_err_and(HostError::is_conflict) && state.claims[at].may_try_again(cx.now)
    {
        return Poll::Pending;
    }
    let mut assumed = false;
    if let Ok(written) = &written {
        let shares = counts_shares(cx.features);
        assumed = cx.shared.claims.assume(cx.objects, written.clone(), shares);
    }
    if allocation.is_some() {
        cx.shared.claims.remove_pending(claim.metadata.uid, assumed && !is_extended);
    }
    state.claims[at].claim = written?;
    state.announces |= is_extended;
    Poll::Ready(Ok(()))
}

/// Whether the claim may be written now: the pause after a conflict is over, and no other pod's
/// write of it is unanswered, on whose result this write must be based.
fn may_write(cx: &BindContext<'_>, claim: &ClaimOfPod) -> bool {
    claim.writing.is_some()
        || (claim.retry_at.is_none_or(|at| at <= cx.now)
            && !cx.host.is_being_updated(CLAIM, key(&claim.claim)))
}

impl ClaimOfPod {
    /// Whether a write that failed with a conflict is retried on the latest version, as in
    /// client-go's `RetryOnConflict`.
    fn may_try_again(&mut self, now: Time) -> bool {
        self.conflicts += 1;
        let again = self.conflicts < MOST_TRIES;
        self.retry_at = again.then_some(now + RETRY_PAUSE);
        again
    }
}

fn write_claim(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
    at: usize,
    is_extended: bool,
    allocation: Option<&AllocationResult>,
) -> Poll<Result<Arc<ResourceClaim>, HostError>> {
    let claim = match state.claims[at].writing.clone() {
        Some(Writing::Status(claim)) => claim,
        _ => {
            let claim = ready!(protected(cx, state, at, is_extended, allocation.is_some()))?;
            with_reservation(cx, state, at, claim, allocation)?
        }
    };
    let name = key(&claim);
    let what = match allocation {
        Some(_) => "add allocation and reservation",
        None => "add reservation",
    };
    state.claims[at].writing = Some(Writing::Status(claim.clone()));
    let written = ready!(update(cx, claim));
    Poll::Ready(written.map_err(|error| error.context(format!("{what} to claim {name}"))))
}

/// The latest version of the claim, created if it does not exist, with the finalizer if it is to
/// be allocated.
fn protected(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
    at: usize,
    is_extended: bool,
    to_allocate: bool,
) -> Poll<Result<ResourceClaim, HostError>> {
    let mut claim = match state.claims[at].writing.clone() {
        Some(Writing::Finalizer(claim)) => claim,
        _ => {
            let mut claim = state.claims[at].claim.clone();
            if is_extended && claim.metadata.name == IN_MEMORY_NAME {
                claim = ready!(create(cx, state))?;
                state.claims[at].claim = claim.clone();
                state.claims[at].unlisted = true;
            }
            let claim = current(cx.host, claim);
            let name = key(&claim);
            if claim.metadata.deletion_timestamp.is_some() {
                return failed(format!("claim {name} got deleted in the meantime"));
            }
            if to_allocate && claim.status.allocation.is_some() {
                return failed(format!("claim {name} got allocated elsewhere in the meantime"));
            }
            claim
        }
    };
    let under_way = state.claims[at].writing.is_some();
    if under_way || (to_allocate && add_finalizer(&mut claim)) {
        let name = key(&claim);
        state.claims[at].writing = Some(Writing::Finalizer(claim.clone()));
        let updated = ready!(update(cx, claim));
        let what = format!("add finalizer to claim {name}");
        claim = Arc::unwrap_or_clone(updated.map_err(|error| error.context(what))?);
    }
    Poll::Ready(Ok(claim))
}

fn failed<T>(text: String) -> Poll<Result<T, HostError>> {
    Poll::Ready(Err(text.into()))
}

/// The claim with the reservation, and with the allocation if it had none.
fn with_reservation(
    cx: &BindContext<'_>,
    state: &ClaimState,
    at: usize,
    mut claim: ResourceClaim,
    allocation: Option<&AllocationResult>,
) -> Result<ResourceClaim, HostError> {
    if let Some(allocation) = allocation {
        claim.status.allocation = Some(allocation.clone());
    }
    let group = state.bind_to.get(at).cloned().flatten();
    claim.status.reserved_for.push(group.unwrap_or_else(|| reference(cx)));
    if binding_conditions(cx.features) {
        let Some(allocation) = &mut claim.status.allocation else {
            let name = key(&claim);
            return Err(format!("claim {name} got deallocated elsewhere in the meantime").into());
        };
        // The API stores whole seconds.
        allocation.allocation_timestamp.get_or_insert(cx.now.truncated_to_seconds());
    }
    Ok(claim)
}

/// The claim as on the server. Upstream notices an outdated version only when it writes.
pub fn current(host: &dyn Host, claim: Arc<ResourceClaim>) -> ResourceClaim {
    let claim = match host.get(CLAIM, key(&claim)) {
        Some(Object::ResourceClaim(current)) => current,
        _ => claim,
    };
    Arc::unwrap_or_clone(claim)
}

/// The reference to the pod in `reservedFor`.
fn reference(cx: &BindContext<'_>) -> ResourceClaimConsumerReference {
    let metadata = &cx.pod.pod.metadata;
    ResourceClaimConsumerReference {
        api_group: Symbol::EMPTY,
        resource: "pods".into(),
        name: metadata.name,
        uid: metadata.uid,
    }
}

fn update(
    cx: &mut BindContext<'_>,
    claim: ResourceClaim,
) -> Poll<Result<Arc<ResourceClaim>, HostError>> {
    let updated = ready!(cx.host.update(cx.pod.uid(), claim.into()));
    Poll::Ready(updated.and_then(claim_of))
}

fn claim_of(object: Object) -> Result<Arc<ResourceClaim>, HostError> {
    match object {
        Object::ResourceClaim(claim) => Ok(claim),
        other => Err(format!("got a {} for a ResourceClaim", other.kind().plural()).into()),
    }
}

/// Creates the claim for extended resources with its requests for the chosen node.
fn create(
    cx: &mut BindContext<'_>,
    state: &ClaimState,
) -> Poll<Result<Arc<ResourceClaim>, HostError>> {
    let node = cx.node;
    let wanted = state.allocation_on(node).and_then(|found| found.extended.clone());
    let wanted =
        wanted.ok_or_else(|| format!("extended resource claim not found for node {node}"))?;
    let mut claim = Arc::unwrap_or_clone(wanted);
    let namespace = claim.metadata.namespace;
    claim.status.allocation = None;
    claim.metadata.name = Name::EMPTY;
    claim.metadata.uid = Uid::EMPTY;
    let created = ready!(cx.host.create(cx.pod.uid(), claim.into()));
    let what = format!("create claim for extended resources {namespace}/");
    Poll::Ready(created.map_err(|error| error.context(what)).and_then(claim_of))
}

/// Writes into the pod's status which claim serves its extended resources.
fn announce(
    cx: &mut BindContext<'_>,
    state: &mut ClaimState,
    claim: &ResourceClaim,
) -> Poll<Result<(), HostError>> {
    let found = state.allocation_on(cx.node);
    let mappings = found.map(|found| found.mappings.clone()).unwrap_or_default();
    let pod = cx.pod.key();
    if mappings.is_empty() {
        return failed(format!(
            "nil or empty request mappings, no update of pod {pod} ExtendedResourceClaimStatus"
        ));
    }
    let status = PodExtendedResourceClaimStatus {
        request_mappings: mappings,
        resource_claim_name: claim.metadata.name,
    };
    let set = ready!(cx.host.set_extended_resource_claim(pod, status));
    state.announces = false;
    let what = format!("update pod {pod} ExtendedResourceClaimStatus");
    Poll::Ready(set.map_err(|error| error.context(what)))
}
