//! Loads the objects of a file into a world: first everything except pending pods, in order of
//! appearance, then the pending pods by creation time.
//!
//! Objects get what the API server sets on creation: identity, defaults, priority.

use crate::World;
use kubestep_api::admission;
use kubestep_api::admission::PriorityClasses;
use kubestep_api::{Object, Pod, defaults};

/// Loads `objects` into `world`. Returns warnings about objects that are valid but probably not
/// intended.
pub fn load(world: &mut World, objects: impl IntoIterator<Item = Object>) -> Vec<String> {
    let mut objects: Vec<Object> = objects.into_iter().collect();
    let classes = priority_classes(&objects);
    let warnings = admit(&mut objects, &classes);
    let (mut pending, mut settled): (Vec<Object>, Vec<Object>) =
        objects.into_iter().partition(is_pending);
    // Plugins know all objects of their own kinds when they see the first pod.
    settled.sort_by_key(|object| !matches!(object, Object::Custom(_)));
    // A stable sort: pods created in the same second stay in order of appearance.
    pending.sort_by_key(|object| object.metadata().creation_timestamp);
    world.create_all(settled.into_iter().chain(pending));
    warnings
}

/// Creates objects in a loaded world, in their order, with its priority classes. Returns warnings
/// as [`load`] does.
pub fn add(world: &mut World, mut objects: Vec<Object>) -> Vec<String> {
    let classes = world.api().objects().priority_classes.clone();
    let classes = PriorityClasses::new(classes.values().map(AsRef::as_ref));
    let warnings = admit(&mut objects, &classes);
    world.create_all(objects.into_iter());
    warnings
}

fn admit(objects: &mut [Object], classes: &PriorityClasses) -> Vec<String> {
    let mut warnings = Vec::new();
    for object in objects {
        defaults::apply(object);
        if let Err(error) = admission::admit(object, classes) {
            warnings.push(format!("{}: {error}; its priority is set to 0", object.key()));
        }
    }
    warnings
}

fn priority_classes(objects: &[Object]) -> PriorityClasses {
    PriorityClasses::new(objects.iter().filter_map(|object| match object {
        Object::PriorityClass(class) => Some(class.as_ref()),
        _ => None,
    }))
}

fn is_pending(object: &Object) -> bool {
    let waits = |pod: &Pod| pod.spec.node_name.is_empty() && !pod.is_terminal();
    matches!(object, Object::Pod(pod) if waits(pod))
}
