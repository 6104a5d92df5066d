//! Objects as the API server would store them: decoded, named, admitted, updated.

use std::sync::Arc;

use serde_json::Value;

use crate::BenchError;
use crate::manifest::NewObject;
use kubestep_api::admission::{self, PriorityClasses};
use kubestep_api::decode::{Decoded, Text, decode};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Node, Object, Pod, PodPhase};
use kubestep_cluster::World;

/// Decodes manifests, and gives their objects the names and UIDs that an API server would.
#[derive(Default)]
pub(super) struct ObjectMaker {
    /// The value that was decoded last, with its object: many objects share a value.
    last: Option<(Arc<Value>, Option<Object>)>,
    /// Objects that were named or identified.
    count: u64,
}

impl ObjectMaker {
    /// The name of an object, and the object if the scheduler reads its kind.
    ///
    /// # Errors
    /// It has no name, or cannot be decoded.
    pub fn make(&mut self, new: &NewObject) -> Result<(String, Option<Object>), BenchError> {
        let name = match new.name() {
            "" => format!("{}{:05}", new.generate_name(), self.next()),
            name => name.to_owned(),
        };
        if name.is_empty() {
            return Err(format!("a {} has neither a name nor generateName", new.kind()).into());
        }
        let Some(mut object) = self.decoded(&new.value)? else { return Ok((name, None)) };
        let namespaced = object.kind().is_namespaced();
        let metadata = object.metadata_mut();
        metadata.name = Name::new(&name);
        metadata.namespace = match (namespaced, new.namespace.as_str()) {
            (false, _) => Symbol::EMPTY,
            (true, "") if metadata.namespace.is_empty() => Symbol::new("default"),
            (true, "") => metadata.namespace,
            (true, namespace) => Symbol::new(namespace),
        };
        Ok((name, Some(object)))
    }

    fn decoded(&mut self, value: &Arc<Value>) -> Result<Option<Object>, BenchError> {
        if let Some((last, object)) = &self.last
            && Arc::ptr_eq(last, value)
        {
            return Ok(object.clone());
        }
        let object = match decode(Text::Json(&value.to_string()), None) {
            Ok(Decoded::Object(object)) => Some(object),
            Ok(Decoded::Unread(_)) => None,
            Err(error) => return Err(error.to_string().into()),
        };
        self.last = Some((value.clone(), object.clone()));
        Ok(object)
    }

    /// A number that no other object has.
    pub fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Gives a new object what the API server gives it. Its UID is new even if an object of that
    /// name existed.
    ///
    /// # Errors
    /// Admission rejects it.
    pub fn admit(&mut self, object: &mut Object, world: &World) -> Result<(), BenchError> {
        let uid = format!("uid-{}", self.next());
        let metadata = object.metadata_mut();
        metadata.uid = uid.into();
        metadata.creation_timestamp = Some(world.now());
        let classes = world.api().objects().priority_classes.values().map(AsRef::as_ref);
        admission::admit(object, &PriorityClasses::new(classes))
            .map_err(|error| error.to_string().into())
    }
}

/// The versions that an update gives an object, one after the other: upstream updates the object
/// and then its status.
pub(super) fn updates(stored: &Object, mut new: Object, subresource: Option<&str>) -> Vec<Object> {
    let (old, metadata) = (stored.metadata(), new.metadata_mut());
    metadata.uid = old.uid;
    metadata.creation_timestamp = old.creation_timestamp;
    match (stored, new) {
        (Object::Pod(stored), Object::Pod(new)) => {
            pod_updates(stored, Arc::unwrap_or_clone(new), subresource)
        }
        (Object::Node(stored), Object::Node(new)) => node_updates(stored, new),
        (_, new) => vec![new],
    }
}

fn pod_updates(stored: &Arc<Pod>, mut new: Pod, subresource: Option<&str>) -> Vec<Object> {
    let status = std::mem::replace(&mut new.status, stored.status.clone());
    let mut pod = match subresource {
        Some("resize") => {
            let mut pod = Pod::clone(stored);
            for (own, resized) in pod.spec.containers.iter_mut().zip(&new.spec.containers) {
                own.resources = resized.resources.clone();
            }
            pod
        }
        _ => {
            new.spec.node_name = stored.spec.node_name;
            new.spec.priority = new.spec.priority.or(stored.spec.priority);
            new.spec.preemption_policy =
                new.spec.preemption_policy.or(stored.spec.preemption_policy);
            new
        }
    };
    let first = Object::from(pod.clone());
    let phase = pod.status.phase;
    pod.status = status;
    if pod.status.phase == PodPhase::default() {
        pod.status.phase = phase;
    }
    vec![first, pod.into()]
}

fn node_updates(stored: &Arc<Node>, new: Arc<Node>) -> Vec<Object> {
    let mut first = Node::clone(&new);
    first.status = stored.status.clone();
    vec![first.into(), new.into()]
}
