//! Writes to the stand-in for an API server: bindings, pod statuses, resource claims, deletions,
//! events and leases, with the errors of a real one.

use serde_json::{Value, json};

use crate::standin::{Request, State, status};

const PODS: &str = "/api/v1/pods";

/// The path of an object's list over all namespaces, and its key in it.
fn place(path: &str) -> Option<(String, String, String)> {
    let (root, rest) = path.split_once("/namespaces/")?;
    let mut parts = rest.split('/');
    let (namespace, plural) = (parts.next()?, parts.next()?);
    let key = format!("{namespace}/{}", parts.next().unwrap_or_default());
    Some((format!("{root}/{plural}"), key, parts.next().unwrap_or_default().to_owned()))
}

/// The object of a path, unless it is a list.
pub fn find(state: &State, path: &str) -> Option<Value> {
    let (list, key, _) = place(path)?;
    state.objects.get(&list)?.get(&key).cloned()
}

/// Applies a write and returns the response.
pub fn answer(state: &mut State, request: &Request) -> (u16, Value) {
    let Some((list, key, part)) = place(&request.path) else {
        return status(404, "the server could not find the requested resource");
    };
    match (request.method.as_str(), part.as_str()) {
        ("POST", "binding") => bind(state, &key, &request.body),
        ("PATCH", "status") if list == PODS => patch(state, &key, &request.body),
        ("PATCH", "" | "status") => merge(state, &list, &key, &request.body),
        ("DELETE", "") => delete(state, &list, &key),
        ("POST", "") => create(state, &list, &key, request.body.clone()),
        ("PUT", "") => replace(state, &list, &key, request.body.clone()),
        _ => status(405, "the server does not allow this method on the requested resource"),
    }
}

fn missing(key: &str) -> (u16, Value) {
    status(404, &format!("{key:?} not found"))
}

/// Stores an object with a new version, and notifies the watches.
fn store(state: &mut State, list: &str, key: &str, mut object: Value) -> (u16, Value) {
    state.version += 1;
    object["metadata"]["resourceVersion"] = state.version.to_string().into();
    let objects = state.objects.entry(list.to_owned()).or_default();
    let old = objects.insert(key.to_owned(), object.clone());
    let (what, code) = if old.is_some() { ("MODIFIED", 200) } else { ("ADDED", 201) };
    state.log.push((state.version, list.to_owned(), what, object.clone()));
    (code, object)
}

fn bind(state: &mut State, key: &str, body: &Value) -> (u16, Value) {
    let Some(mut pod) = state.objects.get(PODS).and_then(|pods| pods.get(key)).cloned() else {
        return missing(key);
    };
    if body["metadata"]["uid"] != pod["metadata"]["uid"] {
        return status(409, "Precondition failed: UID in precondition");
    }
    if let Some(node) = pod["spec"]["nodeName"].as_str() {
        return status(409, &format!("pod {key} is already assigned to node {node:?}"));
    }
    pod["spec"]["nodeName"] = body["target"]["name"].clone();
    store(state, PODS, key, pod);
    (201, json!({"kind": "Status", "status": "Success"}))
}

fn patch(state: &mut State, key: &str, body: &Value) -> (u16, Value) {
    let Some(mut pod) = state.objects.get(PODS).and_then(|pods| pods.get(key)).cloned() else {
        return missing(key);
    };
    for condition in body["status"]["conditions"].as_array().into_iter().flatten() {
        let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|other| other["type"] != condition["type"]);
        conditions.push(condition.clone());
        pod["status"]["conditions"] = conditions.into();
    }
    if let Some(node) = body["status"].get("nominatedNodeName") {
        pod["status"]["nominatedNodeName"] = node.as_str().unwrap_or_default().into();
    }
    store(state, PODS, key, pod)
}

/// A merge patch, or a strategic merge patch that removes users from a claim.
fn merge(state: &mut State, list: &str, key: &str, patch: &Value) -> (u16, Value) {
    let Some(old) = state.objects.get(list).and_then(|all| all.get(key)) else {
        return missing(key);
    };
    let (old, version) = (old.clone(), &patch["metadata"]["resourceVersion"]);
    if !version.is_null() && *version != old["metadata"]["resourceVersion"] {
        return status(409, "the object has been modified");
    }
    let mut new = old.clone();
    let leaves = patch["status"]["reservedFor"].as_array().into_iter().flatten();
    let leaves: Vec<&Value> = leaves.filter(|user| user["$patch"] == "delete").collect();
    match leaves.is_empty() {
        true => merge_into(&mut new, patch),
        false => {
            let users = new["status"]["reservedFor"].as_array_mut();
            let stays = |user: &Value| leaves.iter().all(|leaver| leaver["uid"] != user["uid"]);
            users.into_iter().for_each(|users| users.retain(&stays));
        }
    }
    if new == old { (200, old) } else { store(state, list, key, new) }
}

/// A JSON merge patch, as in RFC 7396.
fn merge_into(value: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, field) in fields {
        match field {
            Value::Null => drop(value.as_object_mut().unwrap().remove(name)),
            field => merge_into(&mut value[name.as_str()], field),
        }
    }
}

fn delete(state: &mut State, list: &str, key: &str) -> (u16, Value) {
    let Some(mut object) = state.objects.get_mut(list).and_then(|all| all.remove(key)) else {
        return missing(key);
    };
    state.version += 1;
    object["metadata"]["resourceVersion"] = state.version.to_string().into();
    state.log.push((state.version, list.to_owned(), "DELETED", object.clone()));
    (200, object)
}

fn create(state: &mut State, list: &str, namespace: &str, object: Value) -> (u16, Value) {
    let key = format!("{namespace}{}", object["metadata"]["name"].as_str().unwrap_or_default());
    if state.objects.get(list).is_some_and(|all| all.contains_key(&key)) {
        return status(409, &format!("{key:?} already exists"));
    }
    store(state, list, &key, object)
}

fn replace(state: &mut State, list: &str, key: &str, object: Value) -> (u16, Value) {
    let Some(old) = state.objects.get(list).and_then(|all| all.get(key)) else {
        return missing(key);
    };
    if old["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] {
        return status(409, "the object has been modified");
    }
    store(state, list, key, object)
}
