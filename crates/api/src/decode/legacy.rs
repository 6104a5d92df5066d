//! Converting `resource.k8s.io/v1beta1` to v1: the fields of a request move under `exactly`, the
//! fields of a device out of `basic`. v1beta2 already has the structure of v1.

use serde_json::{Map, Value};

use crate::Kind;

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

/// Whether the version's structure differs from that of our types.
pub(super) fn is_legacy(kind: Kind, api_version: &str) -> bool {
    let kinds = [Kind::ResourceClaim, Kind::ResourceClaimTemplate, Kind::ResourceSlice];
    kinds.contains(&kind)
        && matches!(api_version, "resource.k8s.io/v1beta1" | "resource.k8s.io/v1alpha3")
}

/// Converts a value of that version.
pub(super) fn upgrade(kind: Kind, api_version: &str, object: &mut Value) {
    if !is_legacy(kind, api_version) {
        return;
    }
    let list = match kind {
        Kind::ResourceClaim => object.pointer_mut("/spec/devices/requests"),
        Kind::ResourceClaimTemplate => object.pointer_mut("/spec/spec/devices/requests"),
        _ => object.pointer_mut("/spec/devices"),
    };
    let items = list.and_then(Value::as_array_mut).into_iter().flatten();
    for item in items.filter_map(Value::as_object_mut) {
        match kind {
            Kind::ResourceSlice => lift_basic(item),
            _ => nest_exactly(item),
        }
    }
}

fn lift_basic(device: &mut Map<String, Value>) {
    if let Some(Value::Object(basic)) = device.remove("basic") {
        device.extend(basic);
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
