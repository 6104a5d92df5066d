//! Plans that need no trial: they contain a change that is known to work.

use crate::edit::{Edit, NodeEdit, PodEdit};
use kubestep_api::Object;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;

/// Whether `plan` does at least what `known` does.
pub(super) fn covers(plan: &[Edit], known: &[Edit], world: &World) -> bool {
    let priorities = priority(known, world).map(|known| (known, priority(plan, world)));
    let (is_enough, rest): (bool, Vec<&Edit>) = match priorities {
        None => (true, known.iter().collect()),
        Some((known_value, value)) => {
            let rest = known.iter().filter(|edit| !is_of_priority(edit)).collect();
            (value.is_some_and(|value| value >= known_value), rest)
        }
    };
    is_enough && rest.into_iter().all(|part| plan.iter().any(|edit| implies(edit, part)))
}

fn implies(edit: &Edit, part: &Edit) -> bool {
    match (edit, part) {
        (Edit::AddNodes { count, like }, Edit::AddNodes { count: fewer, like: same }) => {
            like == same && count >= fewer
        }
        (Edit::AddNew { count, template }, Edit::AddNew { count: fewer, template: same }) => {
            template == same && count >= fewer
        }
        (
            Edit::Node(node, NodeEdit::Resize(resource, amount)),
            Edit::Node(same, NodeEdit::Resize(of_same, less)),
        ) => (node, resource) == (same, of_same) && amount >= less,
        (
            Edit::Pod(pod, PodEdit::Resize { container, resource, amount }),
            Edit::Pod(
                same,
                PodEdit::Resize { container: in_same, resource: of_same, amount: more },
            ),
        ) => (pod, container, resource) == (same, in_same, of_same) && amount <= more,
        (edit, part) => edit == part,
    }
}

fn is_of_priority(edit: &Edit) -> bool {
    matches!(edit, Edit::Pod(_, PodEdit::PriorityClass(_)) | Edit::Put(Object::PriorityClass(_)))
}

/// The priority that the edits give a pod, through a class that exists or that they create.
fn priority(edits: &[Edit], world: &World) -> Option<i32> {
    let class = edits.iter().find_map(|edit| match edit {
        Edit::Pod(_, PodEdit::PriorityClass(class)) => Some(*class),
        _ => None,
    })?;
    let created = edits.iter().find_map(|edit| match edit {
        Edit::Put(Object::PriorityClass(new)) if new.metadata.name == class => Some(new.value),
        _ => None,
    });
    let classes = &world.api().objects().priority_classes;
    let existing = || Some(classes.get(&NamespacedName::new(Symbol::EMPTY, class.into()))?.value);
    created.or_else(existing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::{NODES, edit, world};

    #[test]
    fn more_of_the_same_is_covered() {
        let class = "---\n{kind: PriorityClass, metadata: {name: high}, value: 100}\n";
        let world = world(&format!("{NODES}{class}"));
        let put = |value| {
            format!(
                "put {{kind: PriorityClass, apiVersion: scheduling.k8s.io/v1, metadata: {{name: \
                 p-{value}}}, value: {value}}}"
            )
        };
        let covers = |plan: &[&str], known: &[&str]| {
            let edits = |texts: &[&str]| texts.iter().map(|text| edit(text)).collect::<Vec<_>>();
            covers(&edits(plan), &edits(known), &world)
        };
        let [p200, p20, p9] = [200, 20, 9].map(put);
        let (p200, p20, p9) = (p200.as_str(), p20.as_str(), p9.as_str());
        for (plan, known, covered) in [
            (vec!["delete pod a", "uncordon node a"], vec!["uncordon node a"], true),
            (vec!["delete pod a"], vec!["delete pod b"], false),
            (vec!["add 3 nodes like a"], vec!["add 1 node like a"], true),
            (vec!["add 1 node like a"], vec!["add 3 nodes like a"], false),
            (vec!["resize pod p cpu=1"], vec!["resize pod p cpu=2"], true),
            (vec!["resize pod p cpu=2"], vec!["resize pod p cpu=1"], false),
            (vec!["resize node a cpu=8"], vec!["resize node a cpu=6"], true),
            (vec!["resize node b cpu=8"], vec!["resize node a cpu=6"], false),
            (vec![p200, "priority pod p p-200"], vec!["priority pod p high"], true),
            (vec!["priority pod p high"], vec![p200, "priority pod p p-200"], false),
            (vec![p9, "priority pod p p-9"], vec!["priority pod p high"], false),
            (
                vec![p200, "priority pod p p-200"],
                vec!["uncordon node a", p20, "priority pod p p-20"],
                false,
            ),
        ] {
            assert_eq!(covers(&plan, &known), covered, "{plan:?} after {known:?}");
        }
    }
}
