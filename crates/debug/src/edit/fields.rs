//! The changes of edits, field by field, for programs: JSON Patch operations (RFC 6902) on API
//! objects, and objects that are created or deleted.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Edit, display, object, pod_key};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, Object, ObjectKey};
use kubestep_cluster::World;

/// An operation on an object or one of its fields.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The index of the edit that it belongs to, from 0.
    pub edit: usize,
    /// What is done to the object or field.
    pub operation: FieldOperation,
    /// The kind of the object.
    #[serde(serialize_with = "kind")]
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Symbol,
    /// `metadata.name` of the object.
    pub name: Name,
    /// The field as a JSON pointer; empty for the whole object.
    pub path: String,
    /// The new value; absent if the field is removed or the object deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Whether an API server only allows it if the object is deleted and created again.
    pub recreates: bool,
}

/// An operation, as in JSON Patch, plus creating and deleting objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FieldOperation {
    /// Creates the object with `value`.
    Create,
    /// Deletes the object; there is no value.
    Delete,
    /// Sets an unset field, or inserts an element into a list; `-` appends.
    Add,
    /// Changes a field that is set.
    Replace,
    /// Removes a field or an element of a list.
    Remove,
}

fn kind<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.as_str())
}

/// The changes of the edits in order, as far as they can be applied.
pub(crate) fn changes(edits: &[Edit], world: &World) -> Vec<FieldChange> {
    let mut world = world.clone();
    let mut changes = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let before = targets(edit, &world);
        let before: Vec<(ObjectKey, Option<Object>)> =
            before.into_iter().map(|key| (key, object::find(&world, key))).collect();
        if edit.apply(&mut world).is_err() {
            break;
        }
        let is_new = |key: &ObjectKey| !before.iter().any(|(other, _)| other == key);
        let created = targets(edit, &world).into_iter().filter(is_new).map(|key| (key, None));
        for (key, old) in before.iter().cloned().chain(created) {
            let new = object::find(&world, key);
            changes.extend(of_object(key, old.as_ref(), new.as_ref(), at));
        }
    }
    changes
}

/// The objects that an edit changes.
fn targets(edit: &Edit, world: &World) -> Vec<ObjectKey> {
    let node = |name| ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name };
    match edit {
        Edit::Put(object) => vec![object.key()],
        Edit::Delete(object) | Edit::Set { object, .. } => vec![*object],
        Edit::Node(name, _) => vec![node(*name)],
        Edit::Pod(key, _) => vec![pod_key(*key)],
        Edit::AddNodes { .. } | Edit::AddNew { .. } => {
            object::keys(world, Kind::Node).into_iter().map(|key| node(key.name)).collect()
        }
        // Edits of the scheduler or of a single attempt change no object.
        _ => Vec::new(),
    }
}

fn of_object(
    key: ObjectKey,
    old: Option<&Object>,
    new: Option<&Object>,
    edit: usize,
) -> Vec<FieldChange> {
    let uid = |object: &Object| object.metadata().uid;
    let (operations, recreates) = match (old, new) {
        (None, Some(new)) => {
            (vec![(FieldOperation::Create, String::new(), Some(created(new)))], false)
        }
        (Some(_), None) => (vec![(FieldOperation::Delete, String::new(), None)], false),
        (Some(old), Some(new)) if old != new => {
            let mut operations = Vec::new();
            difference(&given(old), &given(new), "", &mut operations);
            (operations, uid(old) != uid(new))
        }
        _ => (Vec::new(), false),
    };
    let ObjectKey { kind, namespace, name } = key;
    let change = |(operation, path, value)| FieldChange {
        edit,
        operation,
        kind,
        namespace,
        name,
        path,
        value,
        recreates,
    };
    operations.into_iter().map(change).collect()
}

/// The object as a person would create it: without the fields that the API server sets.
fn created(object: &Object) -> Value {
    let mut document = display::document(object);
    if let Some(Value::Object(metadata)) = document.get_mut("metadata") {
        metadata.retain(|name, _| !["uid", "resourceVersion"].contains(&name.as_str()));
    }
    document
}

/// The fields that a person writes: not those that the API server and controllers set.
fn given(object: &Object) -> Value {
    let Ok(Value::Object(mut fields)) = object.to_json() else { return Value::Null };
    // In a cluster these hold more than the scheduler reads.
    for part in ["metadata", "spec", "status"] {
        fields.entry(part).or_insert_with(|| Value::Object(Map::new()));
    }
    keep(&mut fields, "metadata", &["labels", "annotations"]);
    match object.kind() {
        Kind::Node => keep(&mut fields, "status", &["allocatable", "capacity"]),
        _ => {
            fields.remove("status");
        }
    }
    Value::Object(fields)
}

fn keep(fields: &mut Map<String, Value>, field: &str, names: &[&str]) {
    if let Some(Value::Object(inner)) = fields.get_mut(field) {
        inner.retain(|name, _| names.contains(&name.as_str()));
    }
}

type Operations = Vec<(FieldOperation, String, Option<Value>)>;

/// The operations that turn `old` into `new`.
fn difference(old: &Value, new: &Value, path: &str, operations: &mut Operations) {
    let at = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                operations.push((FieldOperation::Remove, at(key), None));
            }
            for (key, value) in new {
                match old.get(key) {
                    Some(old) => difference(old, value, &at(key), operations),
                    None => operations.push((FieldOperation::Add, at(key), Some(value.clone()))),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => list_difference(old, new, path, operations),
        (old, new) if old != new => {
            operations.push((FieldOperation::Replace, path.to_owned(), Some(new.clone())));
        }
        _ => {}
    }
}

/// Equal elements at both ends are kept. Of those in between, each is compared with the one at the
/// same index, and the rest is removed or inserted.
fn list_difference(old: &[Value], new: &[Value], path: &str, operations: &mut Operations) {
    let both = old.len().min(new.len());
    let before = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let ends = old.iter().rev().zip(new.iter().rev()).take(both - before);
    let after = ends.take_while(|(a, b)| a == b).count();
    let between = both - before - after;
    for at in before..before + between {
        difference(&old[at], &new[at], &format!("{path}/{at}"), operations);
    }
    let first = before + between;
    for at in (first..old.len() - after).rev() {
        operations.push((FieldOperation::Remove, format!("{path}/{at}"), None));
    }
    for (at, value) in new.iter().enumerate().take(new.len() - after).skip(first) {
        let at = if after == 0 { "-".to_owned() } else { at.to_string() };
        operations.push((FieldOperation::Add, format!("{path}/{at}"), Some(value.clone())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edit::tests::{NODES, edit, world};

    const PODS: &str = "
{kind: PriorityClass, metadata: {name: high}, value: 100}
---
{kind: Pod, metadata: {name: p, labels: {app: p}}, spec: {nodeSelector: {zone: z, 'a/b': c},
 affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
  {matchExpressions: [{key: a, operator: Exists}, {key: b, operator: Exists}]}]}}},
 tolerations: [{key: x, operator: Exists}], schedulingGates: [{name: g}, {name: h}],
 initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 300m}}}],
 containers: [{name: c, ports: [{containerPort: 80, hostPort: 80}],
  resources: {requests: {cpu: 600m}, limits: {cpu: 600m}}}]}}
---
{kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: slow}}
";

    fn clusters() -> World {
        let tainted =
            NODES.replacen("status:", "spec: {taints: [{key: k, effect: NoSchedule}]}, status:", 1);
        world(&format!("{tainted}{PODS}"))
    }

    fn of(texts: &[&str]) -> Vec<String> {
        let edits: Vec<Edit> = texts.iter().map(|text| edit(text)).collect();
        let line = |change: FieldChange| {
            let value = serde_json::to_value(&change).unwrap();
            let again = if change.recreates { " (recreates)" } else { "" };
            let operation = value["operation"].as_str().unwrap().to_owned();
            let named =
                format!("{} {} {}", value["kind"].as_str().unwrap(), change.namespace, change.name);
            let new = change.value.map(|value| format!(" {value}")).unwrap_or_default();
            format!("{} {operation} {named} {}{new}{again}", change.edit, change.path)
        };
        changes(&edits, &clusters()).into_iter().map(line).collect()
    }

    #[test]
    fn edits_are_reported_field_by_field() {
        let requests = "resources/requests/cpu";
        for (text, expected) in [
            ("delete pod p", vec!["0 delete Pod default p ".to_owned()]),
            ("untaint node a k", vec!["0 remove Node  a /spec/taints".into()]),
            ("label node a a/b=~c", vec!["0 add Node  a /metadata/labels/a~1b \"~c\"".into()]),
            (
                "cordon node a",
                vec![
                    "0 add Node  a /spec/taints/- {\"effect\":\"NoSchedule\",\"key\":\
                     \"node.kubernetes.io/unschedulable\"}"
                        .into(),
                    "0 add Node  a /spec/unschedulable true".into(),
                ],
            ),
            (
                "resize pod p cpu=300m",
                vec![
                    "0 replace Pod default p /spec/containers/0/resources/limits/cpu \"200m\""
                        .into(),
                    format!("0 replace Pod default p /spec/containers/0/{requests} \"200m\""),
                    format!("0 replace Pod default p /spec/initContainers/0/{requests} \"100m\""),
                ],
            ),
            ("ungate pod p g", vec!["0 remove Pod default p /spec/schedulingGates/0".into()]),
            (
                "unselect pod p a/b",
                vec!["0 remove Pod default p /spec/nodeSelector/a~1b (recreates)".into()],
            ),
            (
                "set persistentvolumeclaim data spec.storageClassName=fast",
                vec![
                    "0 replace PersistentVolumeClaim default data /spec/storageClassName \"fast\" \
                     (recreates)"
                        .into(),
                ],
            ),
        ] {
            let mut found = of(&[text]);
            found.sort();
            assert_eq!(found, expected, "{text}");
        }
        let added = changes(&[edit("add 2 nodes like b")], &clusters());
        let names: Vec<String> = added.iter().map(|change| change.name.to_string()).collect();
        assert_eq!(names, ["b-copy-1", "b-copy-2"]);
        assert_eq!(added[0].value.as_ref().unwrap()["kind"], "Node");
        let second = of(&["uncordon node b", "delete pod p"]);
        assert_eq!(second, [""; 0], "what cannot be applied is not reported");
    }

    /// The result of the operations by RFC 6902.
    fn patched(mut value: Value, operations: &Operations) -> Value {
        for (operation, path, new) in operations {
            let (parent, last) = path.rsplit_once('/').unwrap();
            let last = last.replace("~1", "/").replace("~0", "~");
            match value.pointer_mut(parent).unwrap() {
                Value::Array(items) => match (operation, last.parse::<usize>()) {
                    (FieldOperation::Add, Ok(at)) => items.insert(at, new.clone().unwrap()),
                    (FieldOperation::Add, Err(_)) => items.push(new.clone().unwrap()),
                    (FieldOperation::Remove, at) => drop(items.remove(at.unwrap())),
                    (_, at) => items[at.unwrap()] = new.clone().unwrap(),
                },
                Value::Object(fields) => match new {
                    Some(new) => drop(fields.insert(last, new.clone())),
                    None => drop(fields.remove(&last).unwrap()),
                },
                other => panic!("{path}: {other}"),
            }
        }
        value
    }

    #[test]
    fn the_operations_make_the_new_value_of_the_old_one() {
        let lists = ["", "1", "12", "21", "123", "13", "4213", "2", "3321"];
        let list = |text: &str| text.chars().map(|c| json!({"n": c, "~/": [c]})).collect();
        for (old, new) in lists.iter().flat_map(|old| lists.iter().map(move |new| (old, new))) {
            let of = |text: &str| json!({"l": Value::Array(list(text)), "x": text});
            let mut operations = Vec::new();
            difference(&of(old), &of(new), "", &mut operations);
            assert_eq!(patched(of(old), &operations), of(new), "{old} to {new}: {operations:?}");
        }
    }
}
