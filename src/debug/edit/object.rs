//! Putting, changing and deleting objects of any kind, as an API server would take them:
//! with identity, defaults and priority.
//!
//! What cannot be changed in a pod that exists, a real cluster refuses. Here the pod is
//! deleted and created anew instead, and that is said.

use std::sync::Arc;

use serde_json::Value;

use crate::api::admission::{self, PriorityClasses};
use crate::api::decode::from_value;
use crate::api::{Kind, Object, ObjectKey, Pod, PodStatus, Time, defaults};
use crate::debug::edit::{Applied, Edit, EditError, companions, pod};
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;
use crate::sim::World;
use crate::source::{self, Filter, SourceError};

/// The edits that put each object of a text.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Edit>, Box<SourceError>> {
    let read = source::read_text(name, text.as_bytes().to_vec(), &Filter::default())?;
    Ok(read.objects.into_iter().map(|loaded| Edit::Put(loaded.object)).collect())
}

/// Creates an object, or puts it in place of the one of its name.
pub(super) fn put(world: &mut World, mut object: Object) -> Result<Applied, EditError> {
    if object.metadata().name.is_empty() {
        return Err(EditError(format!("metadata.name: the {} has no name", object.kind())));
    }
    let old = find(world, object.key());
    if let (Some(old), Object::Pod(new)) = (&old, &mut object) {
        keep_status(old, Arc::make_mut(new));
    }
    defaults::apply(&mut object);
    let classes = world.api().objects().priority_classes.values().map(AsRef::as_ref);
    let admitted = admission::admit(&mut object, &PriorityClasses::new(classes));
    admitted.map_err(|error| EditError(format!("{}: {error}", object.key())))?;
    match (old, object) {
        (None, object) => world.create(object),
        (Some(Object::Pod(old)), Object::Pod(new)) => {
            let mut new = Arc::unwrap_or_clone(new);
            if new.metadata.uid == admission::made_up_uid(&pod_text(&old)) {
                new.metadata.uid = old.metadata.uid;
            }
            return Ok(store_pod(world, &old, new));
        }
        (Some(_), object) => world.update(object),
    }
    Ok(Applied::default())
}

fn pod_text(pod: &Pod) -> String {
    let (namespace, name) = (pod.metadata.namespace, pod.metadata.name);
    ObjectKey { kind: Kind::Pod, namespace, name }.to_string()
}

/// A pod that is written without a status has the one that it had.
fn keep_status(old: &Object, new: &mut Pod) {
    if let Object::Pod(old) = old
        && new.status == PodStatus::default()
        && new.spec.node_name == old.spec.node_name
    {
        new.status = old.status.clone();
    }
}

/// Puts a pod in place of one of its name: changed in place as far as the API allows that,
/// else deleted and created anew.
pub(super) fn store_pod(world: &mut World, old: &Pod, mut new: Pod) -> Applied {
    let fixed = pod::fixed_fields(old, &new);
    if fixed.is_empty() && old.metadata.uid == new.metadata.uid {
        world.update(new.into());
        return Applied::default();
    }
    let key = NamespacedName::new(old.metadata.namespace, old.metadata.name);
    let mut note = format!("pod {key} is deleted and created anew");
    if !fixed.is_empty() {
        note += &format!(": {} of a pod cannot be changed in a cluster", fixed.join(", "));
    }
    let node = old.spec.node_name;
    if !node.is_empty() && new.spec.node_name == node {
        note += &format!("; it ran on {node} and is pending now");
        new.spec.node_name = Symbol::EMPTY;
    }
    if old.metadata.uid == new.metadata.uid {
        new.metadata.uid = admission::made_up_uid(&format!("{} anew", old.metadata.uid));
    }
    if new.metadata.creation_timestamp.is_some() {
        // The API has whole seconds.
        let now = world.now().0;
        new.metadata.creation_timestamp = Some(Time(now - now.rem_euclid(1_000_000)));
    }
    new.status = PodStatus::default();
    world.delete(Kind::Pod, key);
    world.create(new.into());
    Applied { notes: vec![note] }
}

/// Deletes an object.
pub(super) fn delete(world: &mut World, key: ObjectKey) -> Result<Applied, EditError> {
    let name = NamespacedName::new(key.namespace, key.name);
    match (world.delete(key.kind, name), key.kind) {
        (false, _) => Err(EditError::missing(key, world)),
        (true, Kind::Pod) => Ok(Applied { notes: companions::free_claims(world, name) }),
        (true, _) => Ok(Applied::default()),
    }
}

/// Sets a field of an object or takes it away.
pub(super) fn set(
    world: &mut World,
    key: ObjectKey,
    path: &str,
    value: Option<&Value>,
) -> Result<Applied, EditError> {
    let old = find(world, key).ok_or_else(|| EditError::missing(key, world))?;
    let mut json = old.to_json().map_err(|error| EditError(format!("{key}: {error}")))?;
    let bad = |error: String| EditError(format!("{key}: {path}: {error}"));
    super::path::set(&mut json, path, value).map_err(bad)?;
    let new = from_value(key.kind, json).map_err(|error| EditError(error.to_string()))?;
    if new == old {
        return Err(bad("nothing changes: it has this value, or no scheduler reads it".into()));
    }
    if new.key() != key || new.metadata().uid != old.metadata().uid {
        return Err(bad("says which object this is and cannot be changed".into()));
    }
    put(world, new)
}

fn find(world: &World, key: ObjectKey) -> Option<Object> {
    world.api().get(key.kind, NamespacedName::new(key.namespace, key.name))
}

/// The names of all objects of a kind, in order.
pub(super) fn names(world: &World, kind: Kind) -> Vec<Symbol> {
    let mut names: Vec<Symbol> = match kind {
        Kind::Node => world.api().nodes().map(|node| node.metadata.name).collect(),
        kind => world.api().objects().keys(kind).into_iter().map(|key| key.name).collect(),
    };
    names.sort_unstable();
    names
}
