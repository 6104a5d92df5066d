//! Runs the steps of a case and returns everything that can be observed.

use std::sync::Arc;

use kubestep_api::Kind;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_debug::trace::{PodStates, json};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::CycleRecord;
use serde_json::{Value, json};

use crate::case::{Step, read};

/// What can be observed of a step: its cycles, and the state of the pods after it.
pub fn take(world: &mut World, step: &Step) -> Result<Value, String> {
    let cycles = act(world, step)?;
    Ok(seen(world, &cycles))
}

/// What can be observed of all steps.
pub fn take_all(world: &mut World, steps: &[Step]) -> Result<Vec<Value>, String> {
    steps.iter().map(|step| take(world, step)).collect()
}

/// Runs a step and returns its cycles.
pub fn act(world: &mut World, step: &Step) -> Result<Vec<Arc<CycleRecord>>, String> {
    match step {
        Step::Run(cycles) => return Ok(world.run(*cycles)),
        Step::Create(objects) => {
            for object in objects {
                world.create(read(object)?);
            }
        }
        Step::Patch(kind, name, patch) => {
            let Some(key) = find(world, *kind, name) else { return Ok(Vec::new()) };
            let Some(object) = world.api().get(*kind, key) else { return Ok(Vec::new()) };
            let mut json = object.to_json().map_err(|error| error.to_string())?;
            merge(&mut json, patch);
            json["kind"] = json!(kind.as_str());
            world.update(read(&json)?);
        }
        Step::Delete(kind, name) => {
            if let Some(key) = find(world, *kind, name) {
                world.delete(*kind, key);
            }
        }
        Step::Advance(seconds) => world.advance(seconds * 1_000_000),
        Step::Decide(allow) => decide(world, *allow),
    }
    Ok(Vec::new())
}

/// The key of the object of that name, whatever its namespace; names are unique.
fn find(world: &World, kind: Kind, name: &str) -> Option<NamespacedName> {
    let namespaces: &[&str] = match kind.is_namespaced() {
        true => &["default", "shop", "lab"],
        false => &[""],
    };
    let mut keys = namespaces.iter().map(|space| NamespacedName::new((*space).into(), name.into()));
    keys.find(|key| world.api().get(kind, *key).is_some())
}

fn decide(world: &mut World, allow: bool) {
    let Some(uid) = world.scheduler().waiting().first().map(|pod| pod.pod().uid()) else { return };
    match allow {
        true => world.allow(uid, None),
        false => world.reject(uid, Symbol::new("ManualPermit"), "not today"),
    };
}

/// Applies a merge patch to a document; `null` removes.
fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *document = patch.clone();
        return;
    };
    for (name, value) in fields {
        match (value, document.as_object_mut()) {
            (Value::Null, Some(document)) => drop(document.remove(name)),
            _ => merge(&mut document[name.as_str()], value),
        }
    }
}

/// Cycles, and the state of the pods.
pub fn seen(world: &World, cycles: &[Arc<CycleRecord>]) -> Value {
    let scheduler = world.scheduler();
    let state = PodStates::new(scheduler.queue(), world.api().objects(), Vec::new());
    let waiting: Vec<_> = scheduler.waiting().iter().map(|pod| pod.pod().key()).collect();
    json!({
        "cycles": cycles.iter().map(|record| json::cycle(record)).collect::<Vec<_>>(),
        "state": json::state(&state),
        "waiting": waiting.iter().map(NamespacedName::to_string).collect::<Vec<_>>(),
    })
}

/// The first difference of two runs.
pub fn compare(expected: &[Value], got: &[Value]) -> Result<(), String> {
    if expected.len() != got.len() {
        return Err(format!("{} steps instead of {}", got.len(), expected.len()));
    }
    for (number, (expected, got)) in expected.iter().zip(got).enumerate() {
        if expected != got {
            return Err(difference(format!("step {number}"), expected, got));
        }
    }
    Ok(())
}

/// The innermost difference of two unequal documents.
fn difference(place: String, expected: &Value, got: &Value) -> String {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let other = a.keys().chain(b.keys()).find(|key| a.get(*key) != b.get(*key));
            if let Some(key) = other {
                let null = Value::Null;
                let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                return difference(format!("{place}.{key}"), a, b);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            if let Some(at) = (0..a.len()).find(|at| a[*at] != b[*at]) {
                return difference(format!("{place}[{at}]"), &a[at], &b[at]);
            }
        }
        _ => {}
    }
    format!("{place}: {expected} became {got}")
}
