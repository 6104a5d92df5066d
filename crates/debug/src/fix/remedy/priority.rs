//! Priorities: always through a class, as an API server rejects a bare number.

use crate::edit::{self, Edit, PodEdit};
use kubestep_api::{Name, Object, PreemptionPolicy};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// The highest value of a user-defined class (`HighestUserDefinablePriority`).
pub(in crate::fix) const HIGHEST: i32 = 1_000_000_000;
/// The name prefix of the system's own classes.
const SYSTEM: &str = "system-";

/// Gives the pod the lowest class that has at least that value and may preempt; one is created if
/// there is none. `None` if no class can have such a value.
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
            && !class.metadata.name.text().starts_with(SYSTEM)
    });
    if let Some(class) = usable.min_by_key(|class| (class.value, class.metadata.name)) {
        return Some(vec![Edit::Pod(pod, PodEdit::PriorityClass(class.metadata.name.interned()))]);
    }
    let is_free = |name: &Name| !classes().any(|class| class.metadata.name == *name);
    let names = ["", "-preempting"].map(|end| Name::new(&format!("priority-{value}{end}")));
    let name = names.into_iter().find(is_free)?;
    let create = Edit::Put(Object::from(edit::new_class(name, value)));
    Some(vec![create, Edit::Pod(pod, PodEdit::PriorityClass(name.interned()))])
}
