//! Strategic merge patches, as Kubernetes clients write them: mappings are merged, `null` deletes a
//! field, and some lists are merged item by item.
//!
//! Upstream: `apimachinery/pkg/util/strategicpatch`, and the tags `patchMergeKey` of the API's
//! types.

use serde_json::{Map, Value};

/// Lists that are merged, with the possible merge keys.
const MERGED: &[(&str, &[&str])] = &[
    ("addresses", &["type"]),
    ("allocatedResourcesStatus", &["name"]),
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("drivers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ownerReferences", &["uid"]),
    ("ports", &["containerPort", "port"]),
    ("resourceClaimStatuses", &["name"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("secrets", &["name"]),
    ("topologySpreadConstraints", &["topologyKey"]),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];
/// Lists of scalars that a patch appends to.
const SETS: &[&str] = &["finalizers"];

const DIRECTIVE: &str = "$patch";
const RETAINED: &str = "$retainKeys";
const DELETED: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Applies a patch to an object.
pub(super) fn apply(value: &mut Value, patch: Value) {
    let Value::Object(mut patch) = patch else {
        *value = patch;
        return;
    };
    if patch.remove(DIRECTIVE).is_some_and(|directive| directive == "replace") {
        *value = Value::Object(patch);
        return;
    }
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(fields) = value else { return };
    if let Some(Value::Array(retained)) = patch.remove(RETAINED) {
        fields.retain(|name, _| retained.iter().any(|kept| kept == name));
    }
    for (name, change) in patch {
        if let Some(list) = name.strip_prefix(DELETED) {
            remove(fields.get_mut(list), &change);
        } else if !name.starts_with(ORDER) {
            field(fields, name, change);
        }
    }
}

fn field(fields: &mut Map<String, Value>, name: String, change: Value) {
    match change {
        Value::Null => {
            fields.remove(&name);
        }
        Value::Array(changes) => {
            let keys = MERGED.iter().find(|(list, _)| *list == name).map(|(_, keys)| *keys);
            let list = fields.entry(name.clone()).or_insert_with(|| Value::Array(Vec::new()));
            match (list, keys) {
                (Value::Array(list), Some(keys)) if keyed(&changes, keys) => {
                    merge(list, changes, keys);
                }
                (Value::Array(list), None) if SETS.contains(&name.as_str()) => {
                    let new = changes.into_iter().filter(|item| !list.contains(item));
                    let new: Vec<Value> = new.collect();
                    list.extend(new);
                }
                (list, _) => *list = Value::Array(changes),
            }
        }
        change => apply(fields.entry(name).or_insert(Value::Null), change),
    }
}

/// Whether every item of a patch has a merge key.
fn keyed(changes: &[Value], keys: &[&str]) -> bool {
    let is_replacement = |item: &Value| item[DIRECTIVE] == "replace";
    !changes.iter().any(is_replacement) && changes.iter().all(|item| key_of(item, keys).is_some())
}

fn key_of<'k>(item: &Value, keys: &[&'k str]) -> Option<&'k str> {
    keys.iter().copied().find(|key| item.get(*key).is_some())
}

fn merge(list: &mut Vec<Value>, changes: Vec<Value>, keys: &[&str]) {
    for change in changes {
        let Some(key) = key_of(&change, keys) else { continue };
        let at = list.iter().position(|item| item[key] == change[key]);
        match at {
            Some(at) if change[DIRECTIVE] == "delete" => {
                list.remove(at);
            }
            Some(at) => apply(&mut list[at], change),
            None if change[DIRECTIVE] == "delete" => {}
            None => {
                let mut item = Value::Null;
                apply(&mut item, change);
                list.push(item);
            }
        }
    }
}

fn remove(list: Option<&mut Value>, deleted: &Value) {
    if let (Some(Value::Array(list)), Some(deleted)) = (list, deleted.as_array()) {
        list.retain(|item| !deleted.contains(item));
    }
}
