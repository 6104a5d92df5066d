//! Slices with the taints that DeviceTaintRules add to their devices (gate DRADeviceTaintRules, off
//! by default).
//!
//! Upstream: `staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker`. Several rules
//! for a device are applied in the order of their names; upstream's order is random.
//!
//! This implements what upstream intends, not what 1.36.2 does: its tracker watches rules of
//! version v1beta2 but handles those of v1alpha3, so that a rule has no effect, and the next change
//! of a slice while a rule exists ends the scheduler with a panic.

use std::sync::Arc;

use crate::objects::Objects;
use kubestep_api::intern::Symbol;
use kubestep_api::{DeviceTaint, DeviceTaintRule, ResourceSlice};

/// All slices, each with the taints that the rules add.
pub fn tainted_slices(objects: &Objects) -> impl Iterator<Item = Arc<ResourceSlice>> + '_ {
    let rules = &objects.device_taint_rules;
    objects.resource_slices.values().map(|slice| with_rules(slice, rules.values()))
}

/// The slice with the taints of the rules that select its devices; the slice itself if none does.
pub(crate) fn with_rules<'a>(
    slice: &Arc<ResourceSlice>,
    rules: impl Iterator<Item = &'a Arc<DeviceTaintRule>>,
) -> Arc<ResourceSlice> {
    let mut tainted = slice.clone();
    for rule in rules.filter(|rule| means_slice(rule, slice)) {
        let device = rule.spec.device_selector.as_ref().and_then(|selector| selector.device);
        for at in 0..slice.spec.devices.len() {
            if device.is_none_or(|name| name == slice.spec.devices[at].name) {
                let devices = &mut Arc::make_mut(&mut tainted).spec.devices;
                devices[at].taints.push(rule.spec.taint.clone());
            }
        }
    }
    tainted
}

/// The slices whose taints differ after a rule changed, before and after. In `objects` the rule is
/// already added, updated or deleted; `old` is the former rule.
pub fn changed_slices(
    objects: &Objects,
    old: Option<&Arc<DeviceTaintRule>>,
    new: Option<&Arc<DeviceTaintRule>>,
) -> Vec<(Arc<ResourceSlice>, Arc<ResourceSlice>)> {
    let name = old.or(new).map(|rule| rule.metadata.name);
    let rules = &objects.device_taint_rules;
    let others = || rules.values().filter(|rule| Some(rule.metadata.name) != name).cloned();
    let sorted = |extra: Option<&Arc<DeviceTaintRule>>| {
        let mut rules: Vec<_> = others().chain(extra.cloned()).collect();
        rules.sort_by_key(|rule| rule.metadata.name);
        rules
    };
    let (before, after) = (sorted(old), sorted(new));
    let pairs = objects
        .resource_slices
        .values()
        .map(|slice| (with_rules(slice, before.iter()), with_rules(slice, after.iter())));
    pairs.filter(|(before, after)| taints(before).ne(taints(after))).collect()
}

fn taints(slice: &ResourceSlice) -> impl Iterator<Item = (Symbol, &Vec<DeviceTaint>)> {
    slice.spec.devices.iter().map(|device| (device.name, &device.taints))
}

fn means_slice(rule: &DeviceTaintRule, slice: &ResourceSlice) -> bool {
    let Some(selector) = &rule.spec.device_selector else { return true };
    let spec = &slice.spec;
    selector.driver.is_none_or(|driver| driver == spec.driver)
        && selector.pool.is_none_or(|pool| pool == spec.pool.name)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::object;

    /// A slice of pool `p` of a driver with these devices, of which the first is already tainted.
    fn slice(name: &str, driver: &str, devices: &[&str]) -> kubestep_api::Object {
        let mut devices: Vec<Value> = devices.iter().map(|name| json!({"name": name})).collect();
        devices[0]["taints"] = json!([{"key": "own", "effect": "NoSchedule"}]);
        let pool =
            json!({"name": format!("{driver}-pool"), "generation": 1, "resourceSliceCount": 1});
        object(json!({
            "kind": "ResourceSlice", "metadata": {"name": name},
            "spec": {"driver": driver, "pool": pool, "devices": devices, "allNodes": true},
        }))
    }

    fn rule(name: &str, selector: Value) -> kubestep_api::Object {
        object(json!({
            "kind": "DeviceTaintRule", "metadata": {"name": name},
            "spec": {
                "deviceSelector": selector,
                "taint": {"key": name, "value": "v", "effect": "NoExecute"},
            },
        }))
    }

    fn cluster(rules: &[(&str, Value)]) -> Objects {
        let mut objects = Objects::default();
        objects.insert(slice("s1", "d1", &["a", "b"]));
        objects.insert(slice("s2", "d2", &["a"]));
        for (name, selector) in rules {
            objects.insert(rule(name, selector.clone()));
        }
        objects
    }

    /// The keys of the taints, as `slice/device: keys`.
    fn tainted(rules: &[(&str, Value)]) -> Vec<String> {
        let objects = cluster(rules);
        let mut lines = Vec::new();
        for slice in tainted_slices(&objects) {
            for device in &slice.spec.devices {
                let keys: Vec<&str> = device.taints.iter().map(|t| t.key.as_str()).collect();
                lines.push(format!("{}/{}: {}", slice.metadata.name, device.name, keys.join(" ")));
            }
        }
        lines
    }

    #[test]
    fn rules_add_to_the_devices_that_they_mean() {
        assert_eq!(tainted(&[]), ["s1/a: own", "s1/b: ", "s2/a: own"]);
        let all = ["s1/a: own r", "s1/b: r", "s2/a: own r"];
        assert_eq!(tainted(&[("r", Value::Null)]), all);
        assert_eq!(tainted(&[("r", json!({}))]), all);
        let driver = json!({"driver": "d1"});
        assert_eq!(tainted(&[("r", driver)]), ["s1/a: own r", "s1/b: r", "s2/a: own"]);
        let pool = json!({"pool": "d2-pool"});
        assert_eq!(tainted(&[("r", pool)]), ["s1/a: own", "s1/b: ", "s2/a: own r"]);
        let device = json!({"device": "a"});
        assert_eq!(tainted(&[("r", device)]), ["s1/a: own r", "s1/b: ", "s2/a: own r"]);
        let one = json!({"driver": "d1", "pool": "d1-pool", "device": "b"});
        assert_eq!(tainted(&[("r", one)]), ["s1/a: own", "s1/b: r", "s2/a: own"]);
        let nothing = json!({"driver": "d1", "pool": "d2-pool"});
        assert_eq!(tainted(&[("r", nothing)]), ["s1/a: own", "s1/b: ", "s2/a: own"]);
        let both = [("r2", json!({"device": "b"})), ("r1", Value::Null)];
        assert_eq!(tainted(&both), ["s1/a: own r1", "s1/b: r1 r2", "s2/a: own r1"]);
    }

    #[test]
    fn only_slices_with_other_taints_count_as_changed() {
        let of = |selector: Value| match rule("r", selector) {
            kubestep_api::Object::DeviceTaintRule(rule) => rule,
            other => panic!("{other:?}"),
        };
        let names = |old: Option<Value>, new: Option<Value>| -> Vec<String> {
            let rules: Vec<_> = new.clone().into_iter().map(|new| ("r", new)).collect();
            let (old, new) = (old.map(of), new.map(of));
            let changed = changed_slices(&cluster(&rules), old.as_ref(), new.as_ref());
            changed.iter().map(|(before, _)| before.metadata.name.to_string()).collect()
        };
        let (first, second) = (json!({"driver": "d1"}), json!({"driver": "d2"}));
        assert_eq!(names(None, Some(first.clone())), ["s1"]);
        assert_eq!(names(Some(first.clone()), Some(second)), ["s1", "s2"]);
        assert_eq!(names(Some(first.clone()), Some(first.clone())), [""; 0]);
        assert_eq!(names(Some(first), None), ["s1"]);
    }
}
