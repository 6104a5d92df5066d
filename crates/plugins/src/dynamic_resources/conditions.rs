//! Binding conditions: conditions that devices must meet before the pod is bound.

use std::collections::BTreeSet;

use crate::dynamic_resources::structured::binding_conditions;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    AllocatedDeviceStatus, Condition, ConditionStatus, DeviceRequestAllocationResult, Duration,
    Name, ResourceClaim, Time, find_condition,
};
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;
use kubestep_framework::host::ApiEvent;
use kubestep_framework::plugin::BindContext;
use kubestep_framework::status::Status;
use kubestep_framework::stopwatch::Work;

use super::post_filter::key;
use super::state::ClaimState;

/// Whether the devices of a claim meet their binding conditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// All conditions are met, or there are none.
    Ready,
    /// Some conditions are not met.
    Waiting,
    /// A binding failure condition is true; the message.
    Failed(String),
}

/// Whether all devices of an allocated claim are ready to be bound.
pub fn readiness(claim: &ResourceClaim, gates: &FeatureGates) -> Readiness {
    let Some(allocation) = &claim.status.allocation else { return Readiness::Waiting };
    let results = allocation.devices.results.iter();
    for result in results.filter(|result| !result.binding_conditions.is_empty()) {
        let Some(status) = status_of(claim, result) else { return Readiness::Waiting };
        let is_true = |type_| {
            find_condition(&status.conditions, type_)
                .filter(|condition| condition.status == ConditionStatus::True)
        };
        if let Some(failed) = result.binding_failure_conditions.iter().find_map(|c| is_true(*c)) {
            return Readiness::Failed(failure(claim.metadata.name, failed, gates));
        }
        if !result.binding_conditions.iter().all(|condition| is_true(*condition).is_some()) {
            return Readiness::Waiting;
        }
    }
    Readiness::Ready
}

fn failure(claim: Name, failed: &Condition, gates: &FeatureGates) -> String {
    let (reason, message) = (&failed.reason, &failed.message);
    match gates.has(Switch::DeviceBindingMessages) {
        true => {
            format!("device binding failed: claim={claim}, reason={reason}, message={message:?}")
        }
        false => format!("claim {claim} binding failed: reason={reason}, message={message:?}"),
    }
}

/// The message if devices are not ready in time: of a claim that was allocated long ago, or of the
/// wait as a whole.
fn timeout_message(claim: Option<Name>, gates: &FeatureGates) -> String {
    match (claim, gates.has(Switch::DeviceBindingMessages)) {
        (Some(claim), true) => format!("device binding timeout: claim={claim}"),
        (Some(claim), false) => format!("claim {claim} binding timeout"),
        (None, true) => "device binding timeout: context deadline exceeded".to_owned(),
        (None, false) => "device binding timeout".to_owned(),
    }
}

/// The status that the driver reports for the device.
fn status_of<'a>(
    claim: &'a ResourceClaim,
    result: &DeviceRequestAllocationResult,
) -> Option<&'a AllocatedDeviceStatus> {
    claim.status.devices.iter().find(|status| {
        (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device)
    })
}

/// Whether any device of the claim has binding conditions.
pub(crate) fn has_conditions(claim: &ResourceClaim) -> bool {
    let allocation = claim.status.allocation.iter();
    let mut results = allocation.flat_map(|allocation| &allocation.devices.results);
    results.any(|result| !result.binding_conditions.is_empty())
}

/// Whether the claim has binding conditions and was allocated more than `timeout` ago.
pub(crate) fn is_timed_out(claim: &ResourceClaim, timeout: Duration, now: Time) -> bool {
    let allocated = claim.status.allocation.as_ref();
    let since = allocated.and_then(|allocation| allocation.allocation_timestamp);
    since.is_some_and(|since| has_conditions(claim) && since + timeout < now)
}

/// Success once all devices are ready, Wait until then; an error after `timeout`.
pub fn wait(cx: &mut BindContext<'_>, state: &mut ClaimState, timeout: Duration) -> Status {
    let waits = state.claims.iter().any(|claim| has_conditions(&claim.claim));
    if !binding_conditions(cx.features) || !waits {
        return Status::SUCCESS;
    }
    if state.waiting_since.is_none() {
        cx.host.event(ApiEvent {
            regarding: cx.pod.key(),
            uid: cx.pod.uid(),
            related: None,
            reporter: cx.pod.pod.spec.scheduler_name,
            kind: "Normal",
            reason: "BindingConditionsPending",
            action: "Scheduling",
            note: format!("waiting for binding conditions for device on node {}", cx.node),
        });
    }
    let since = *state.waiting_since.get_or_insert(cx.now);
    let (status, result) = match pod_readiness(cx, state, timeout) {
        Ok(Readiness::Waiting) if cx.now < since + timeout => return Status::wait(),
        Ok(Readiness::Ready) => (Status::SUCCESS, "success"),
        Ok(Readiness::Waiting) => (Status::error(timeout_message(None, cx.features)), "timeout"),
        Ok(Readiness::Failed(text)) | Err(NotReady::Failed(text)) => {
            (Status::error(&text), "failure")
        }
        Err(NotReady::TimedOut(text)) => (Status::error(&text), "timeout"),
    };
    measure(cx, state, result, cx.now - since);
    status
}

/// Why waiting cannot continue.
enum NotReady {
    TimedOut(String),
    Failed(String),
}

/// Records, for each driver whose devices have binding conditions, how a wait that took
/// `span` ended.
fn measure(cx: &BindContext<'_>, state: &ClaimState, status: &'static str, span: Duration) {
    let allocations = state.claims.iter().filter_map(|of| of.claim.status.allocation.as_ref());
    let results = allocations.flat_map(|allocation| &allocation.devices.results);
    let drivers: BTreeSet<Symbol> = results
        .filter(|result| !result.binding_conditions.is_empty())
        .map(|result| result.driver)
        .collect();
    let profile = cx.pod.pod.spec.scheduler_name;
    let nanos = u64::try_from(span.nanos).unwrap_or(0);
    for driver in drivers {
        cx.shared.timer.took(Work::BindingConditions { profile, driver, status }, nanos);
    }
}

/// Whether the devices of all claims are ready, by the latest state of the claims.
fn pod_readiness(
    cx: &BindContext<'_>,
    state: &mut ClaimState,
    timeout: Duration,
) -> Result<Readiness, NotReady> {
    for of_pod in &mut state.claims {
        let name = key(&of_pod.claim);
        let listed = cx.shared.claims.get(cx.objects, name);
        of_pod.unlisted &= listed.is_none();
        // A claim that the plugin just created may not be listed yet: wait for it.
        let claim = listed.or_else(|| of_pod.unlisted.then(|| of_pod.claim.clone()));
        let missing = || NotReady::Failed(format!("could not find ResourceClaim \"{name}\""));
        let claim = claim.ok_or_else(missing)?;
        let found = readiness(&claim, cx.features);
        if found == Readiness::Waiting && is_timed_out(&claim, timeout, cx.now) {
            let text = timeout_message(Some(claim.metadata.name), cx.features);
            return Err(NotReady::TimedOut(text));
        }
        of_pod.claim = claim;
        if found != Readiness::Ready {
            return Ok(found);
        }
    }
    Ok(Readiness::Ready)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_config::KubeVersion;
    use kubestep_framework::testing::decoded;

    #[test]
    fn up_to_1_35_failures_and_timeouts_are_worded_differently() {
        let condition =
            json!({"type": "Broken", "status": "True", "reason": "Hot", "message": "so"});
        let device = json!({"driver": "d", "pool": "p", "device": "a"});
        let mut result = device.clone();
        result["bindingConditions"] = json!(["Ready"]);
        result["bindingFailureConditions"] = json!(["Broken"]);
        let mut status = device;
        status["conditions"] = json!([condition]);
        let claim: ResourceClaim = decoded(json!({
            "metadata": {"name": "c"},
            "status": {"allocation": {"devices": {"results": [result]}}, "devices": [status]},
        }));
        let texts = [35, 36].map(|minor| {
            let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
            let Readiness::Failed(text) = readiness(&claim, &gates) else { panic!("no failure") };
            [text, timeout_message(Some("c".into()), &gates), timeout_message(None, &gates)]
        });
        let older = [
            "claim c binding failed: reason=Hot, message=\"so\"",
            "claim c binding timeout",
            "device binding timeout",
        ];
        let newer = [
            "device binding failed: claim=c, reason=Hot, message=\"so\"",
            "device binding timeout: claim=c",
            "device binding timeout: context deadline exceeded",
        ];
        assert_eq!(texts, [older, newer]);
    }

    #[test]
    fn a_wait_ends_with_the_timeout_since_the_allocation() {
        let claim = |conditions: &[&str]| -> ResourceClaim {
            let result =
                json!({"driver": "d", "pool": "p", "device": "a", "bindingConditions": conditions});
            let allocation = json!({
                "allocationTimestamp": "1970-01-01T00:01:00Z", "devices": {"results": [result]},
            });
            decoded(json!({"metadata": {"name": "c"}, "status": {"allocation": allocation}}))
        };
        let is_timed_out = |conditions, second: i64| {
            let now = Time(second * 1_000_000);
            is_timed_out(&claim(conditions), Duration::from_secs(600), now)
        };
        assert!(!is_timed_out(&["Ready"], 660));
        assert!(is_timed_out(&["Ready"], 661));
        assert!(!is_timed_out(&[], 661), "there is nothing to wait for");
    }
}
