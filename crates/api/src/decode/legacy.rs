//! Converting objects of other API versions to the shape of our types: `resource.k8s.io/v1`,
//! `scheduling.k8s.io/v1alpha2`, `policy/v1`.

use serde_json::{Map, Value, json};

use crate::Kind;

/// The API versions with another shape, and the kinds in which they have it.
pub(super) const VERSIONS: &[(&str, &[Kind])] = &[
    (V1ALPHA3, DEVICES),
    ("resource.k8s.io/v1beta1", DEVICES),
    ("scheduling.k8s.io/v1alpha1", &[Kind::Workload]),
    ("scheduling.k8s.io/v1alpha3", GROUPS),
    ("scheduling.k8s.io/v1beta1", GROUPS),
    ("policy/v1beta1", &[Kind::PodDisruptionBudget]),
];
const DEVICES: &[Kind] = &[Kind::ResourceClaim, Kind::ResourceClaimTemplate, Kind::ResourceSlice];
const GROUPS: &[Kind] = &[Kind::Workload, Kind::PodGroup];
const V1ALPHA3: &str = "resource.k8s.io/v1alpha3";

/// Fields of a v1beta1 request that v1 has under `exactly`.
const EXACTLY: [&str; 7] = [
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
];

/// The label by which policy/v1beta1 distinguishes budgets of all pods from budgets of none.
const EMPTY_SELECTOR: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

/// Whether the version's structure differs from that of our types.
pub(super) fn is_legacy(kind: Kind, api_version: &str) -> bool {
    VERSIONS.iter().any(|(version, kinds)| *version == api_version && kinds.contains(&kind))
}

/// Converts a value of that version.
pub(super) fn upgrade(kind: Kind, api_version: &str, object: &mut Value) {
    if !is_legacy(kind, api_version) {
        return;
    }
    match kind {
        Kind::PodDisruptionBudget => budget(object),
        Kind::PodGroup => group(&mut object["spec"]),
        Kind::Workload => workload(&mut object["spec"]),
        _ => devices(kind, api_version, object),
    }
}

/// Fields of a request move under `exactly`, those of a device out of `basic`. v1beta2 already has
/// the structure of v1.
fn devices(kind: Kind, api_version: &str, object: &mut Value) {
    let list = match kind {
        Kind::ResourceClaim => object.pointer_mut("/spec/devices/requests"),
        Kind::ResourceClaimTemplate => object.pointer_mut("/spec/spec/devices/requests"),
        _ => object.pointer_mut("/spec/devices"),
    };
    for item in maps(list) {
        match kind {
            Kind::ResourceSlice => lift_basic(item, api_version),
            _ => nest_exactly(item),
        }
    }
}

/// The mappings of a list.
fn maps(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut)
}

fn lift_basic(device: &mut Map<String, Value>, api_version: &str) {
    if let Some(Value::Object(basic)) = device.remove("basic") {
        device.extend(basic);
    }
    let capacity = device.get_mut("capacity").and_then(Value::as_object_mut);
    for amount in capacity.into_iter().flat_map(|capacity| capacity.values_mut()) {
        if api_version == V1ALPHA3 && !amount.is_object() {
            *amount = json!({"value": amount.take()});
        }
    }
}

fn nest_exactly(request: &mut Map<String, Value>) {
    // Without a class the request is a prioritized list.
    let class = request.get("deviceClassName").and_then(Value::as_str);
    if class.is_none_or(str::is_empty) {
        return;
    }
    let moved = EXACTLY.iter().filter_map(|field| request.remove_entry(*field));
    let exactly: Map<String, Value> = moved.collect();
    request.insert("exactly".into(), Value::Object(exactly));
}

/// v1alpha1 has pod groups with policies, and later versions templates of pod groups.
fn workload(spec: &mut Value) {
    if let Some(spec) = spec.as_object_mut()
        && let Some(groups) = spec.remove("podGroups")
    {
        spec.insert("podGroupTemplates".into(), groups);
    }
    for template in maps(spec.get_mut("podGroupTemplates")) {
        if let Some(policy) = template.remove("policy") {
            template.insert("schedulingPolicy".into(), policy);
        }
        disruption_mode(template);
    }
}

/// Since v1alpha3 the template is referred to without a level in between, and a mode is a mapping.
fn group(spec: &mut Value) {
    let Some(spec) = spec.as_object_mut() else { return };
    if let Some(reference) = spec.remove("workloadRef") {
        let workload = json!({
            "workloadName": reference["workloadName"],
            "podGroupTemplateName": reference["templateName"],
        });
        spec.insert("podGroupTemplateRef".into(), json!({"workload": workload}));
    }
    disruption_mode(spec);
}

fn disruption_mode(owner: &mut Map<String, Value>) {
    let Some(mode) = owner.get_mut("disruptionMode") else { return };
    let has = |field: &str| mode.get(field).is_some_and(Value::is_object);
    match (has("single"), has("all")) {
        (true, false) => *mode = "Pod".into(),
        (false, true) => *mode = "PodGroup".into(),
        _ => {}
    }
}

/// An empty selector is one of no pods, which later versions write with a label that no pod has.
fn budget(object: &mut Value) {
    let Some(selector) = object.pointer_mut("/spec/selector") else { return };
    let of_label = |operator: &str| json!({"matchExpressions": [{"key": EMPTY_SELECTOR, "operator": operator}]});
    if selector.as_object().is_some_and(Map::is_empty) {
        *selector = of_label("Exists");
    } else if *selector == of_label("DoesNotExist") {
        *selector = json!({});
    }
}
