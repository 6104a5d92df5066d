//! Putting, changing and deleting objects of any kind, as an API server would take them:
//! with identity, defaults and priority.
//!
//! A change of an immutable field, which an API server rejects, recreates the object instead, and
//! a note says so.

use std::sync::Arc;

use serde_json::Value;

use crate::edit::{Applied, Edit, EditError, companions, fixed, owner, pod};
use kubestep_api::admission;
use kubestep_api::admission::PriorityClasses;
use kubestep_api::decode::from_value;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Node, Object, ObjectKey, Pod, PodStatus, Time, Uid, defaults};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_source::{Filter, SourceError};

/// The edits that put each object of a text.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Edit>, Box<SourceError>> {
    let read = kubestep_source::read_text(
        name,
        text.as_bytes().to_vec(),
        &Filter { strict: true, ..Filter::default() },
    )?;
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
            if new.metadata.uid == admission::derived_uid(&pod_text(&old)) {
                new.metadata.uid = old.metadata.uid;
            }
            return Ok(store_pod(world, &old, new));
        }
        (Some(old), object) => return Ok(store(world, &old, object)),
    }
    Ok(Applied::default())
}

/// Puts an object in place of one of its name: changed in place as far as the API allows that,
/// else deleted and created again.
fn store(world: &mut World, old: &Object, new: Object) -> Applied {
    let immutable = fixed::fields(old, &new);
    if immutable.is_empty() {
        world.update(new);
        return Applied::default();
    }
    let key = old.key();
    let mut new = fixed::without_status(new);
    if new.metadata().uid == old.metadata().uid {
        new.metadata_mut().uid = uid_after(old.metadata().uid);
    }
    world.delete(key.kind, NamespacedName::new(key.namespace, key.name));
    world.create(new);
    Applied { notes: vec![recreated(&key.to_string(), &immutable)] }
}

/// A uid for what takes the place of the object of that uid.
fn uid_after(uid: Uid) -> Uid {
    admission::derived_uid(&format!("{uid} recreated"))
}

/// `pod default/web is recreated: spec.nodeSelector is immutable`.
fn recreated(key: &str, immutable: &[impl AsRef<str>]) -> String {
    let fields: Vec<&str> = immutable.iter().map(AsRef::as_ref).collect();
    match fields.as_slice() {
        [] => format!("{key} is recreated"),
        [field] => format!("{key} is recreated: {field} is immutable"),
        fields => format!("{key} is recreated: {} are immutable", fields.join(", ")),
    }
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

/// The same for a pod, with what its controller makes of it.
pub(super) fn store_pod(world: &mut World, old: &Pod, mut new: Pod) -> Applied {
    let fixed = pod::fixed_fields(old, &new);
    let template = owner::note(world, old);
    if fixed.is_empty() && old.metadata.uid == new.metadata.uid {
        world.update(new.into());
        return Applied { notes: template.into_iter().collect() };
    }
    let key = NamespacedName::new(old.metadata.namespace, old.metadata.name);
    let mut note = recreated(&format!("pod {key}"), &fixed);
    let node = old.spec.node_name;
    if !node.is_empty() && new.spec.node_name == node && world.api().node(node).is_some() {
        note += &format!("; it ran on {node} and is pending now");
        new.spec.node_name = Name::EMPTY;
    }
    if old.metadata.uid == new.metadata.uid {
        new.metadata.uid = uid_after(old.metadata.uid);
    }
    if new.metadata.creation_timestamp.is_some() {
        // The API has whole seconds.
        let now = world.now().0;
        new.metadata.creation_timestamp = Some(Time(now - now.rem_euclid(1_000_000)));
    }
    new.status = PodStatus::default();
    world.delete(Kind::Pod, key);
    world.create(new.into());
    Applied { notes: std::iter::once(note).chain(template).collect() }
}

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
        return Err(bad("identifies the object and cannot be changed".into()));
    }
    put(world, new)
}

/// The value of a field of an object, if it is set.
pub(crate) fn value(world: &World, key: ObjectKey, path: &str) -> Option<Value> {
    super::path::get(&find(world, key)?.to_json().ok()?, path).cloned()
}

pub(super) fn find(world: &World, key: ObjectKey) -> Option<Object> {
    world.api().get(key.kind, NamespacedName::new(key.namespace, key.name))
}

/// All objects of a kind, in the order of namespaces and names.
pub(super) fn keys(world: &World, kind: Kind) -> Vec<NamespacedName> {
    let of_node = |node: &Arc<Node>| NamespacedName::new(Symbol::default(), node.metadata.name);
    let mut keys: Vec<NamespacedName> = match kind {
        Kind::Node => world.api().nodes().map(of_node).collect(),
        kind => world.api().objects().keys(kind).into_iter().collect(),
    };
    keys.sort_unstable();
    keys
}
