//! The values that edits replace, for people: `resize pod web cpu=200m (now 1)`. Parsing an edit
//! skips them.

use super::{Edit, NodeEdit, PodEdit, display, object};
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, Pod, Quantity};
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::pod::requests::{RequestOptions, pod_requests};
use serde_json::Value;

/// The verbs whose edits can replace a value.
const VERBS: [&str; 5] = ["resize", "label", "select", "priority", "set"];
const BEGIN: &str = " (now ";

/// The edit, followed by the value that it replaces, if there is one.
pub fn with_replaced(edit: &Edit, world: &World) -> String {
    match replaced(edit, world) {
        Some(old) => format!("{edit}{BEGIN}{old})"),
        None => edit.to_string(),
    }
}

/// The text of an edit without the replaced value.
pub(super) fn without_replaced(text: &str) -> &str {
    let verb = text.split_whitespace().next().unwrap_or_default();
    let Some(inner) = text.strip_suffix(')').filter(|_| VERBS.contains(&verb)) else { return text };
    // The old value of a field is JSON, in which the mark may occur.
    let is_value = |old: &str| verb != "set" || serde_json::from_str::<Value>(old).is_ok();
    let mut marks = inner.match_indices(BEGIN);
    let mark = marks.find(|(at, mark)| is_value(&inner[at + mark.len()..]));
    mark.map_or(text, |(at, _)| &text[..at])
}

/// The value that the edit replaces, written as the edit writes the new one.
fn replaced(edit: &Edit, world: &World) -> Option<String> {
    match edit {
        Edit::Node(name, NodeEdit::Resize(resource, _)) => {
            let node = world.api().node(*name)?;
            let old = node.status.allocatable.as_ref()?.get(*resource)?;
            Some(display::written(*resource, old))
        }
        Edit::Node(name, NodeEdit::Label(key, _)) => {
            world.api().node(*name)?.metadata.labels.get(*key).map(Name::to_string)
        }
        Edit::Pod(key, edit) => of_pod(world, *key, edit),
        Edit::Set { object, path, value: Some(_) } => {
            object::value(world, *object, path).map(|old| old.to_string())
        }
        _ => None,
    }
}

fn of_pod(world: &World, key: NamespacedName, edit: &PodEdit) -> Option<String> {
    let pod = world.api().objects().pod(key)?;
    match edit {
        PodEdit::Resize { container, resource, .. } => {
            let old = request(world, key, *container, *resource)?;
            Some(display::written(*resource, &old))
        }
        PodEdit::Label(key, _) => pod.metadata.labels.get(*key).map(Name::to_string),
        PodEdit::Select(key, _) => pod.spec.node_selector.as_ref()?.get(*key).map(Name::to_string),
        PodEdit::Priority(_) | PodEdit::PriorityClass(_) => priority(pod),
        _ => None,
    }
}

/// The class of the pod, otherwise its number.
fn priority(pod: &Pod) -> Option<String> {
    let class = Some(pod.spec.priority_class_name).filter(|class| !class.is_empty());
    let number = || pod.spec.priority.map(|number| number.to_string());
    class.map(|class| class.to_string()).or_else(number)
}

/// What a container, or the whole pod, requests of a resource.
pub(crate) fn request(
    world: &World,
    pod: NamespacedName,
    container: Option<Symbol>,
    resource: Symbol,
) -> Option<Quantity> {
    let pod = world.api().objects().pod(pod)?;
    let Some(name) = container else {
        return pod_requests(pod, &RequestOptions::default()).get(resource).cloned();
    };
    let mut containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    containers.find(|one| one.name == name)?.resources.request(resource).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::{NODES, edit, world};

    #[test]
    fn what_is_replaced_follows_the_edit_and_is_skipped_when_read() {
        let pod = "---\n{kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {nodeSelector: \
                   {disk: hdd}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}\n";
        let world = world(&format!("{NODES}{pod}"));
        for (text, old) in [
            ("resize pod default/web cpu=200m", Some("1")),
            ("resize pod default/web c cpu=200m", Some("1")),
            ("resize pod default/web memory=1Gi", None),
            ("select pod default/web disk=ssd", Some("hdd")),
            ("select pod default/web zone=a", None),
            ("label pod default/web app=shop", Some("web")),
            ("set pod default/web metadata.labels.app=\"shop\"", Some("\"web\"")),
            ("unselect pod default/web disk", None),
        ] {
            let edit = edit(text);
            let shown = with_replaced(&edit, &world);
            let expected = old.map_or(edit.to_string(), |old| format!("{edit} (now {old})"));
            assert_eq!(shown, expected);
            assert_eq!(shown.parse::<Edit>(), Ok(edit), "{shown}");
        }
        // What a person wrote as a value stays, also within the old value.
        let note = "set pod default/web metadata.annotations.note=moved (now b)";
        assert_eq!(without_replaced(note), note);
        let edit = "set pod default/web metadata.annotations.note=\"x\"";
        assert_eq!(without_replaced(&format!("{edit} (now \"a (now b)\")")), edit);
        assert_eq!(without_replaced("put {a: \"x (now y)\"}"), "put {a: \"x (now y)\"}");
    }
}
