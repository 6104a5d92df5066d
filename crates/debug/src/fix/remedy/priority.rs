//! Priorities: always by a class, as an API server refuses a bare number.

use crate::edit::{Edit, PodEdit};
use kubestep_api::intern::Symbol;
use kubestep_api::{Object, ObjectMeta, PreemptionPolicy, PriorityClass};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// The highest value of a class that is not the system's (`HighestUserDefinablePriority`).
pub(in crate::fix) const HIGHEST: i32 = 1_000_000_000;
/// What the names of the system's own classes begin with.
const SYSTEM: &str = "system-";

/// Gives the pod the lowest class of at least that value that may preempt; one is created if there
/// is none. `None` if no class can have such a value.
pub(in crate::fix) fn at_least(
    world: &World,
    pod: NamespacedName,
    value: i32,
) -> Option<Vec<Edit>> {
    if value > HIGHEST {
        return None;
    }
    let classes = || world.api().objects().priority_classes.values();
    let usable = classes().filter(|class| {
        (value..=HIGHEST).contains(&class.value)
            && class.preemption_policy != Some(PreemptionPolicy::Never)
            && !class.metadata.name.starts_with(SYSTEM)
    });
    if let Some(class) = usable.min_by_key(|class| (class.value, class.metadata.name)) {
        return Some(vec![Edit::Pod(pod, PodEdit::PriorityClass(class.metadata.name))]);
    }
    let is_free = |name: &Symbol| !classes().any(|class| class.metadata.name == *name);
    let names = ["", "-preempting"].map(|end| Symbol::new(&format!("priority-{value}{end}")));
    let name = names.into_iter().find(is_free)?;
    let metadata = ObjectMeta { name, ..ObjectMeta::default() };
    let class = PriorityClass { metadata, value, ..PriorityClass::default() };
    let create = Edit::Put(Object::from(class));
    Some(vec![create, Edit::Pod(pod, PodEdit::PriorityClass(name))])
}
