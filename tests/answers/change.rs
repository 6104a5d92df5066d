//! Changes of objects as data, and how proposals are parsed into them.
//!
//! Proposals are lines in kubestep's edit language; only this file knows it. The changes field by
//! field are applied unparsed, as JSON Patch.

use serde_json::{Value, json};

use crate::cluster::key_of;
use crate::truth::all;

/// An object by kind and `namespace/name`. Kinds are compared case-insensitively.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub kind: String,
    pub key: String,
}

impl Target {
    pub fn new(kind: &str, key: &str) -> Target {
        Target { kind: kind.to_lowercase(), key: key.to_owned() }
    }
}

/// A change of one object. Paths are JSON pointers, in which the dots of a label need no escape.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub target: Target,
    pub what: What,
}

/// An operation on an object.
#[derive(Clone, PartialEq, Debug)]
pub enum What {
    Delete,
    /// Sets a field, or removes it if there is no value.
    Set(String, Option<Value>),
    /// Appends to a list.
    Append(String, Value),
    /// Removes the elements of a list that contain these fields.
    Remove(String, Value),
    /// Creates an object, or replaces the one of its name.
    Put(Value),
    /// Adds that many copies of this node.
    Copy(usize),
    /// Sets the sum of the containers' requests; each keeps its share.
    Total(String, String),
    /// Removes a host port.
    Unport(Value),
}

impl Change {
    pub fn new(kind: &str, key: &str, what: What) -> Change {
        Change { target: Target::new(kind, key), what }
    }

    pub fn set(kind: &str, key: &str, path: impl Into<String>, value: Value) -> Change {
        Change::new(kind, key, What::Set(path.into(), Some(value)))
    }

    pub fn unset(kind: &str, key: &str, path: impl Into<String>) -> Change {
        Change::new(kind, key, What::Set(path.into(), None))
    }
}

/// A proposal of the program.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub changes: Vec<Change>,
    pub lines: Vec<String>,
    /// The changes field by field.
    pub fields: Vec<Value>,
    pub node: String,
    pub evicted: Vec<String>,
    pub notes: Vec<String>,
    /// Whether pods ahead in the queue take the resources first.
    pub is_contended: bool,
    pub waits: bool,
}

/// The proposals of an explanation, in order.
pub fn proposals(explained: &Value) -> Result<Vec<Proposal>, String> {
    all(&explained["fixes"]["found"]).map(proposal).collect()
}

fn proposal(found: &Value) -> Result<Proposal, String> {
    let texts = |field: &str| -> Vec<String> {
        all(&found[field]).map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    let lines = texts("edits");
    let changes: Result<Vec<Vec<Change>>, String> = lines.iter().map(|line| read(line)).collect();
    Ok(Proposal {
        changes: changes?.concat(),
        lines,
        fields: all(&found["changes"]).cloned().collect(),
        node: found["node"].as_str().unwrap_or_default().to_owned(),
        evicted: texts("evicted"),
        notes: texts("notes"),
        is_contended: found["contended"] == true,
        waits: found["waits"] == true,
    })
}

/// The changes of a line.
fn read(line: &str) -> Result<Vec<Change>, String> {
    let unknown = || format!("not understood: {line}");
    let (verb, rest) = line.split_once(' ').ok_or_else(unknown)?;
    if verb == "put" {
        let object: Value = serde_json::from_str(rest).map_err(|_| unknown())?;
        let kind = object["kind"].as_str().unwrap_or_default();
        return Ok(vec![Change::new(kind, &key_of(&object), What::Put(object.clone()))]);
    }
    if verb == "add" {
        let (count, rest) = rest.split_once(' ').ok_or_else(unknown)?;
        let like = rest.rsplit(' ').next().ok_or_else(unknown)?;
        let count = count.parse().map_err(|_| unknown())?;
        return Ok(vec![Change::new("Node", like, What::Copy(count))]);
    }
    let (kind, rest) = rest.split_once(' ').ok_or_else(unknown)?;
    let (key, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let whats = of_verb(verb, kind, rest).ok_or_else(unknown)?;
    Ok(whats.into_iter().map(|what| Change::new(kind, key, what)).collect())
}

fn of_verb(verb: &str, kind: &str, rest: &str) -> Option<Vec<What>> {
    let set = |path: String, value: Value| What::Set(path, Some(value));
    let pair = || rest.split_once('=');
    Some(vec![match verb {
        "delete" => What::Delete,
        "uncordon" => What::Set("/spec/unschedulable".into(), None),
        "untaint" => What::Remove("/spec/taints".into(), taint(rest)),
        "tolerate" => What::Append("/spec/tolerations".into(), toleration(rest)),
        "label" => set(pointer(&["metadata", "labels", pair()?.0]), json!(pair()?.1)),
        "unlabel" => What::Set(pointer(&["metadata", "labels", rest]), None),
        "select" => set(pointer(&["spec", "nodeSelector", pair()?.0]), json!(pair()?.1)),
        "unselect" => What::Set(pointer(&["spec", "nodeSelector", rest]), None),
        "ungate" => What::Remove("/spec/schedulingGates".into(), json!({"name": rest})),
        "unspread" => {
            What::Remove("/spec/topologySpreadConstraints".into(), json!({"topologyKey": rest}))
        }
        "priority" => match rest.parse::<i64>() {
            Ok(number) => set("/spec/priority".into(), json!(number)),
            Err(_) => set("/spec/priorityClassName".into(), json!(rest)),
        },
        "spread" => {
            What::Append("/spec/topologySpreadConstraints".into(), serde_json::from_str(rest).ok()?)
        }
        "unport" => What::Unport(port(rest)),
        "relax" => What::Set(term(rest)?, None),
        "set" => set(dotted(pair()?.0), serde_json::from_str(pair()?.1).ok()?),
        "unset" => What::Set(dotted(rest), None),
        "resize" if kind == "node" => {
            let (resource, amount) = pair()?;
            let field = |list: &str| set(pointer(&["status", list, resource]), json!(amount));
            return Some(vec![field("allocatable"), field("capacity")]);
        }
        "resize" => match rest.split_once(' ') {
            None => What::Total(pair()?.0.into(), pair()?.1.into()),
            Some((container, amounts)) => {
                let (resource, amount) = amounts.split_once('=')?;
                set(pointer(&["container", container, resource]), json!(amount))
            }
        },
        _ => return None,
    }])
}

/// A JSON pointer of these names.
pub fn pointer(names: &[&str]) -> String {
    let escaped = names.iter().map(|name| name.replace('~', "~0").replace('/', "~1"));
    escaped.map(|name| format!("/{name}")).collect()
}

/// `spec.a[0].b['c.d']` as a JSON pointer.
fn dotted(path: &str) -> String {
    let plain = |path: &str| {
        let names = path.split(['.', '[']).map(|name| name.trim_end_matches(']'));
        pointer(&names.filter(|name| !name.is_empty()).collect::<Vec<_>>())
    };
    // Every second part is quoted.
    let parts = path.split('\'').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 { pointer(&[part]) } else { plain(part) });
    parts.collect()
}

fn taint(text: &str) -> Value {
    match text.rsplit_once(':') {
        Some((key, effect)) => json!({"key": key, "effect": effect}),
        None => json!({"key": text}),
    }
}

/// `key=value:Effect`, `key:Effect`, `key`, `all`, or JSON.
fn toleration(text: &str) -> Value {
    if let Ok(written) = serde_json::from_str(text) {
        return written;
    }
    let (what, effect) = match text.rsplit_once(':') {
        Some((what, effect)) => (what, Some(effect)),
        None => (text, None),
    };
    let mut toleration = match what.split_once('=') {
        _ if what == "all" => json!({"operator": "Exists"}),
        Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
        None => json!({"key": what, "operator": "Exists"}),
    };
    if let Some(effect) = effect {
        toleration["effect"] = json!(effect);
    }
    toleration
}

/// A host port as edits write it: `8080/TCP@10.0.0.1`.
fn port(text: &str) -> Value {
    let (text, address) = text.split_once('@').unwrap_or((text, ""));
    let (port, protocol) = text.split_once('/').unwrap_or((text, "TCP"));
    json!({"port": port.parse::<i64>().unwrap_or_default(), "protocol": protocol,
        "address": address})
}

/// The pointer of `nodeAffinity.required[0][1]` and the like.
fn term(text: &str) -> Option<String> {
    let (list, index) = text.split_once(".required[")?;
    let required = format!("/spec/affinity/{list}/requiredDuringSchedulingIgnoredDuringExecution");
    let index = index.strip_suffix(']')?;
    if list != "nodeAffinity" {
        return Some(format!("{required}/{index}"));
    }
    let path = match index.split_once("][") {
        Some((term, expression)) => format!("{term}/expression/{expression}"),
        None => index.to_owned(),
    };
    Some(format!("{required}/nodeSelectorTerms/{path}"))
}

#[test]
fn paths_are_read_with_and_without_quotes() {
    for (path, read) in [
        ("spec.volumes[0].name", "/spec/volumes/0/name"),
        ("spec.a[0].matchLabels['example.com/app'].b", "/spec/a/0/matchLabels/example.com~1app/b"),
    ] {
        assert_eq!(dotted(path), read);
    }
}
