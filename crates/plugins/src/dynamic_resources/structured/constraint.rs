//! Constraints over the devices of a claim: matchAttribute and distinctAttribute.
//!
//! Upstream: `constraint.go` and `matchAttributeConstraint` in `allocator_incubating.go`. List
//! values never match: upstream's plugin does not pass DRAListTypeAttributes to the allocator.

use std::collections::BTreeMap;

use kubestep_api::intern::Symbol;
use kubestep_api::{Device, DeviceAttribute, DeviceConstraint};

/// The name of a request; in a prioritized list, with the name of the alternative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestName {
    /// The name of the request in the claim.
    pub base: Symbol,
    /// The name of the alternative, if the request is a prioritized list.
    pub sub: Option<Symbol>,
}

impl RequestName {
    /// The name in allocation results: `request` or `request/alternative`.
    pub fn full(self) -> Symbol {
        match self.sub {
            Some(sub) => Symbol::new(&format!("{}/{sub}", self.base)),
            None => self.base,
        }
    }
}

/// A constraint with the values of the devices allocated so far.
#[derive(Clone, Debug)]
pub struct ConstraintState {
    pub(super) requests: Vec<Symbol>,
    pub(super) attribute: Symbol,
    rule: ConstraintRule,
    devices: usize,
}

#[derive(Clone, Debug)]
enum ConstraintRule {
    /// All devices have the value of the first one.
    Same(Option<DeviceAttribute>),
    /// All values differ. As upstream, only one value is stored for each request, so for a request
    /// with several devices only the last one is compared.
    Distinct(BTreeMap<Symbol, DeviceAttribute>),
}

impl ConstraintState {
    /// The constraint of a claim; `None` if its type is unknown. Without `distinct`, a
    /// distinctAttribute constraint is of unknown type.
    pub fn new(written: &DeviceConstraint, distinct: bool) -> Option<ConstraintState> {
        let (attribute, rule) = match (written.match_attribute, written.distinct_attribute) {
            (Some(attribute), _) => (attribute, ConstraintRule::Same(None)),
            (None, Some(attribute)) if distinct => {
                (attribute, ConstraintRule::Distinct(BTreeMap::new()))
            }
            (None, _) => return None,
        };
        Some(ConstraintState { requests: written.requests.clone(), attribute, rule, devices: 0 })
    }

    /// Whether the values must differ; otherwise they must be equal.
    pub(super) fn is_distinct(&self) -> bool {
        matches!(self.rule, ConstraintRule::Distinct(_))
    }

    /// Adds a device allocated for a request; `false` if the constraint forbids it.
    pub fn add(&mut self, request: RequestName, device: &Device, driver: Symbol) -> bool {
        if !self.applies_to(request) {
            return true;
        }
        let Some(value) = lookup(device, driver, self.attribute) else { return false };
        if self.devices > 0 && !self.rule.allows(value) {
            return false;
        }
        match &mut self.rule {
            ConstraintRule::Same(first) if self.devices == 0 => *first = Some(value.clone()),
            ConstraintRule::Same(_) => {}
            ConstraintRule::Distinct(values) => {
                values.insert(request.base, value.clone());
            }
        }
        self.devices += 1;
        true
    }

    /// Removes the device added last for a request.
    pub fn remove(&mut self, request: RequestName) {
        if !self.applies_to(request) {
            return;
        }
        if let ConstraintRule::Distinct(values) = &mut self.rule {
            values.remove(&request.base);
        }
        self.devices = self.devices.saturating_sub(1);
    }

    pub(super) fn applies_to(&self, request: RequestName) -> bool {
        let named = |name: Symbol| self.requests.contains(&name);
        self.requests.is_empty()
            || named(request.base)
            || (request.sub.is_some() && named(request.full()))
    }
}

impl ConstraintRule {
    fn allows(&self, value: &DeviceAttribute) -> bool {
        match self {
            ConstraintRule::Same(first) => {
                first.as_ref().is_some_and(|first| compare(value, first, false))
            }
            ConstraintRule::Distinct(values) => {
                values.values().all(|other| compare(value, other, true))
            }
        }
    }
}

/// Whether the values have the same type and are equal; with `differ`, the same type and are not
/// equal. Values that are no scalars never pass.
fn compare(value: &DeviceAttribute, other: &DeviceAttribute, differ: bool) -> bool {
    let equal = if value.string_value.is_some() {
        value.string_value == other.string_value
    } else if value.int_value.is_some() {
        value.int_value == other.int_value
    } else if value.bool_value.is_some() {
        value.bool_value == other.bool_value
    } else if value.version_value.is_some() {
        value.version_value == other.version_value
    } else {
        return false;
    };
    equal != differ
}

/// The attribute of that qualified name; the driver's own attributes may omit the domain.
pub(super) fn lookup(device: &Device, driver: Symbol, name: Symbol) -> Option<&DeviceAttribute> {
    if let Some(value) = device.attributes.get(&name) {
        return Some(value);
    }
    let (domain, id) = name.as_str().split_once('/')?;
    if driver != *domain {
        return None;
    }
    device.attributes.get(&Symbol::new(id))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn device(attributes: Value) -> Device {
        serde_json::from_value(json!({"name": "d", "attributes": attributes})).unwrap()
    }

    fn constraint(json: Value) -> ConstraintState {
        ConstraintState::new(&serde_json::from_value(json).unwrap(), true).unwrap()
    }

    fn request(base: &str) -> RequestName {
        RequestName { base: base.into(), sub: None }
    }

    #[test]
    fn the_first_device_sets_the_value_that_all_others_share() {
        let mut same = constraint(json!({"matchAttribute": "dra.example.com/numa"}));
        let driver = Symbol::new("dra.example.com");
        let (zero, one) =
            (device(json!({"numa": {"int": 0}})), device(json!({"numa": {"int": 1}})));
        let qualified = device(json!({"dra.example.com/numa": {"int": 0}}));
        let text = device(json!({"numa": {"string": "0"}}));
        assert!(same.add(request("a"), &zero, driver));
        assert!(same.add(request("b"), &qualified, driver));
        assert!(!same.add(request("b"), &one, driver));
        assert!(!same.add(request("b"), &text, driver));
        assert!(!same.add(request("b"), &device(json!({})), driver));
        same.remove(request("a"));
        same.remove(request("b"));
        assert!(same.add(request("b"), &one, driver));
        // An unqualified name never means the domain of another driver.
        assert!(!same.add(request("b"), &one, "other.example.com".into()));
    }

    #[test]
    fn a_constraint_names_requests_or_their_alternatives() {
        let mut same = constraint(json!({"requests": ["a", "b/big"], "matchAttribute": "d/x"}));
        let none = device(json!({}));
        let sub = |sub: &str| RequestName { base: "b".into(), sub: Some(sub.into()) };
        assert!(!same.add(request("a"), &none, "d".into()));
        assert!(!same.add(sub("big"), &none, "d".into()));
        assert!(same.add(sub("small"), &none, "d".into()));
        assert!(same.add(request("c"), &none, "d".into()));
    }

    #[test]
    fn distinct_values_are_remembered_one_for_each_request() {
        let mut distinct = constraint(json!({"distinctAttribute": "d/x"}));
        let (one, two) = (device(json!({"x": {"int": 1}})), device(json!({"x": {"int": 2}})));
        assert!(distinct.add(request("a"), &one, "d".into()));
        assert!(!distinct.add(request("b"), &one, "d".into()));
        assert!(distinct.add(request("a"), &two, "d".into()));
        // The value 1 of the same request was overwritten.
        assert!(distinct.add(request("b"), &one, "d".into()));
    }

    #[test]
    fn the_stable_allocator_knows_no_distinct_values() {
        let written = serde_json::from_value(json!({"distinctAttribute": "d/x"})).unwrap();
        assert!(ConstraintState::new(&written, false).is_none());
    }
}
