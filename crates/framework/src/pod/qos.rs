//! The quality-of-service class of a pod. Upstream: `ComputePodQOS` in
//! `pkg/apis/core/v1/helper/qos/qos.go`.

use kubestep_api::intern::Symbol;
use kubestep_api::{Pod, Quantity, ResourceList, ResourceRequirements};

/// The class, from the lowest to the highest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QosClass {
    /// No request and no limit of CPU or memory.
    BestEffort,
    /// Neither of the others.
    Burstable,
    /// CPU and memory have limits everywhere, and the requests equal them.
    Guaranteed,
}

/// The class of `pod`, by its pod-level resources if it has some, otherwise by its containers.
pub fn qos_class(pod: &Pod) -> QosClass {
    let containers = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let parts: Vec<&ResourceRequirements> = match pod.spec.resources.as_deref() {
        Some(whole) => vec![whole],
        None => containers().map(|container| &container.resources).collect(),
    };
    let sums = ["cpu", "memory"].map(|name| {
        let name = Symbol::new(name);
        let requests = parts.iter().map(|part| amount(part.requests.as_ref(), name));
        let limits = parts.iter().map(|part| amount(part.limits.as_ref(), name));
        (sum(requests), sum(limits), limits_are_set(&parts, name))
    });
    if sums.iter().all(|(request, limit, _)| request.is_none() && limit.is_none()) {
        return QosClass::BestEffort;
    }
    let is_fixed = |(request, limit, is_set): &(Option<Quantity>, Option<Quantity>, bool)| {
        *is_set && request == limit
    };
    if sums.iter().all(is_fixed) { QosClass::Guaranteed } else { QosClass::Burstable }
}

/// The positive amount of a resource.
fn amount(list: Option<&ResourceList>, name: Symbol) -> Option<&Quantity> {
    list?.get(name).filter(|amount| amount.sign().is_gt())
}

fn sum<'a>(amounts: impl Iterator<Item = Option<&'a Quantity>>) -> Option<Quantity> {
    amounts.flatten().cloned().reduce(|mut sum, other| {
        sum.add(&other);
        sum
    })
}

fn limits_are_set(parts: &[&ResourceRequirements], name: Symbol) -> bool {
    parts.iter().all(|part| amount(part.limits.as_ref(), name).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{PodBuilder, pod};

    fn class(spec: Value) -> QosClass {
        qos_class(&pod("p").spec(spec))
    }

    fn container(requests: Value, limits: Value) -> Value {
        json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let (both, more) =
            (json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "2", "memory": "1Gi"}));
        let zero = json!({"cpu": "0", "example.com/gpu": "1"});
        for (containers, expected) in [
            (json!([container(json!({}), json!({}))]), QosClass::BestEffort),
            (json!([container(zero.clone(), zero)]), QosClass::BestEffort),
            (json!([container(both.clone(), both.clone())]), QosClass::Guaranteed),
            (json!([container(both.clone(), more)]), QosClass::Burstable),
            (json!([container(json!({"cpu": "1"}), json!({"cpu": "1"}))]), QosClass::Burstable),
            (
                json!([container(both.clone(), both.clone()), container(json!({}), json!({}))]),
                QosClass::Burstable,
            ),
        ] {
            assert_eq!(class(json!({"containers": containers})), expected, "{containers}");
        }
        let whole = json!({"requests": both, "limits": both});
        let bare = container(json!({}), json!({}));
        let spec = json!({"containers": [bare], "resources": whole});
        assert_eq!(class(spec), QosClass::Guaranteed);
    }
}
