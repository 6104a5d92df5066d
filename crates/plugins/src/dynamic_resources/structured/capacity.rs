//! Consumable capacity: how much a request consumes of a device that several claims share, and
//! whether that much is left.
//!
//! Upstream: `consumable_capacity.go` of the allocator.

use std::collections::BTreeMap;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, CapacityRequirements, DeviceCapacity,
    Quantity, QuantityFormat,
};
use kubestep_framework::dra::allocated::Capacities;

/// The capacities of a device by name.
pub(crate) type DeviceCapacities = BTreeMap<Symbol, DeviceCapacity>;

/// Whether the request fits with what is `consumed` and what this search is `allocating`. A
/// request for a capacity that the device does not have never fits.
pub fn fits(
    request: Option<&CapacityRequirements>,
    capacities: &DeviceCapacities,
    consumed: Option<&Capacities>,
    allocating: Option<&Capacities>,
) -> bool {
    let known = |name: &Symbol| capacities.contains_key(name);
    if request.is_some_and(|request| !request.requests.keys().all(known)) {
        return false;
    }
    capacities.iter().all(|(name, capacity)| {
        let mut sum = amount(requested(request, *name), capacity);
        if violates(&sum, capacity.request_policy.as_ref()) {
            return false;
        }
        for taken in [consumed, allocating].into_iter().flatten() {
            if let Some(taken) = taken.get(name) {
                sum.add(taken);
            }
        }
        sum <= capacity.value
    })
}

/// The consumption of each capacity by the request.
pub(crate) fn consumption(
    request: Option<&CapacityRequirements>,
    capacities: &DeviceCapacities,
) -> Capacities {
    let each = capacities.iter();
    each.map(|(name, capacity)| (*name, amount(requested(request, *name), capacity))).collect()
}

fn requested(request: Option<&CapacityRequirements>, name: Symbol) -> Option<&Quantity> {
    request.and_then(|request| request.requests.get(&name))
}

/// The request, rounded up according to the capacity's policy; without a request the policy's
/// default, or the full capacity.
fn amount(request: Option<&Quantity>, capacity: &DeviceCapacity) -> Quantity {
    let policy = capacity.request_policy.as_ref();
    let Some(request) = request else {
        let default = policy.and_then(|policy| policy.default.as_ref());
        return default.unwrap_or(&capacity.value).clone();
    };
    let Some(policy) = policy else { return request.clone() };
    if let Some(range) = &policy.valid_range
        && let Some(min) = &range.min
    {
        return round_up_in_range(request, min, range);
    }
    let next = policy.valid_values.iter().find(|valid| request <= *valid);
    next.unwrap_or(request).clone()
}

/// The request rounded up to `min` plus a whole number of steps.
fn round_up_in_range(
    request: &Quantity,
    min: &Quantity,
    range: &CapacityRequestPolicyRange,
) -> Quantity {
    if request < min {
        return min.clone();
    }
    let step = range.step.as_ref().map_or(0, Quantity::value);
    if step == 0 {
        return request.clone();
    }
    let added = request.value().wrapping_sub(min.value());
    let steps = added.wrapping_div(step) + i64::from(added.wrapping_rem(step) != 0);
    let rounded = min.value().wrapping_add(step.wrapping_mul(steps));
    Quantity::new(rounded, QuantityFormat::BinarySi)
}

/// Whether the policy forbids the amount. The policy's default is always allowed, but only in the
/// same notation, as upstream compares the structs.
fn violates(amount: &Quantity, policy: Option<&CapacityRequestPolicy>) -> bool {
    let Some(policy) = policy else { return false };
    if policy.default.as_ref().is_some_and(|default| default.is_identical(amount)) {
        return false;
    }
    match &policy.valid_range {
        Some(range) => violates_range(amount, range),
        None if policy.valid_values.is_empty() => false,
        None => !policy.valid_values.contains(amount),
    }
}

fn violates_range(amount: &Quantity, range: &CapacityRequestPolicyRange) -> bool {
    if range.max.as_ref().is_some_and(|max| amount > max) {
        return true;
    }
    let step = range.step.as_ref().map_or(0, Quantity::value);
    let min = range.min.as_ref().map_or(0, Quantity::value);
    step != 0 && amount.value().wrapping_sub(min).wrapping_rem(step) != 0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn capacity(policy: Value) -> DeviceCapacities {
        serde_json::from_value(json!({"memory": {"value": "10", "requestPolicy": policy}})).unwrap()
    }

    fn request(amount: &str) -> CapacityRequirements {
        serde_json::from_value(json!({"requests": {"memory": amount}})).unwrap()
    }

    fn taken(request: Option<&CapacityRequirements>, policy: Value) -> String {
        consumption(request, &capacity(policy))[&Symbol::new("memory")].to_string()
    }

    #[test]
    fn a_request_is_rounded_up_as_the_policy_says() {
        let range = json!({"default": "1", "validRange": {"min": "2", "max": "8", "step": "3"}});
        for (asked, got) in [("1", "2"), ("2", "2"), ("3", "5"), ("5", "5"), ("6", "8")] {
            assert_eq!(taken(Some(&request(asked)), range.clone()), got, "{asked}");
        }
        assert_eq!(taken(None, range), "1");
        let values = json!({"default": "4", "validValues": ["2", "4", "8"]});
        for (asked, got) in [("1", "2"), ("4", "4"), ("5", "8"), ("9", "9")] {
            assert_eq!(taken(Some(&request(asked)), values.clone()), got, "{asked}");
        }
        assert_eq!(taken(Some(&request("7")), Value::Null), "7");
        assert_eq!(taken(None, Value::Null), "10");
    }

    #[test]
    fn what_the_policy_forbids_does_not_fit() {
        let fits =
            |asked: &str, policy: Value| fits(Some(&request(asked)), &capacity(policy), None, None);
        let range = json!({"validRange": {"min": "2", "max": "8", "step": "3"}});
        assert!(fits("6", range.clone()));
        assert!(!fits("9", range));
        assert!(!fits("9", json!({"validValues": ["2", "8"]})));
        // The default need not be one of the policy's valid values.
        assert!(fits("9", json!({"default": "9", "validValues": ["2", "8"]})));
        assert!(!fits("11", Value::Null));
    }

    #[test]
    fn an_unknown_capacity_and_too_much_together_do_not_fit() {
        let other: CapacityRequirements =
            serde_json::from_value(json!({"requests": {"cores": "1"}})).unwrap();
        assert!(!fits(Some(&other), &capacity(Value::Null), None, None));
        let four: Capacities = [(Symbol::new("memory"), "4".parse().unwrap())].into();
        let fits = |asked: &str| {
            fits(Some(&request(asked)), &capacity(Value::Null), Some(&four), Some(&four))
        };
        assert!(fits("2"));
        assert!(!fits("3"));
    }
}
