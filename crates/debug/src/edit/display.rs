//! Edits as text that [`super::parse`] reads.

use std::fmt;

use crate::edit::{Edit, Fault, FaultKind, HostPort, NodeEdit, PodEdit, PolicyEdit};
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Container, Kind, Labels, Name, Object, ObjectKey, ObjectMeta, Pod, PriorityClass, Protocol,
    Quantity, Toleration, TolerationOperator,
};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::intervention::Intervention;
use kubestep_framework::resource::amount;

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Put(object) => match bare_class(object).or_else(|| bare_pod(object)) {
                Some(words) => write!(f, "put {words}"),
                // The object itself would not fit a line.
                None => write!(f, "edited {}", Key(object.key())),
            },
            Edit::Delete(key) => write!(f, "delete {}", Key(*key)),
            Edit::Set { object, path, value: Some(value) } => {
                write!(f, "set {} {path}={value}", Key(*object))
            }
            Edit::Set { object, path, value: None } => write!(f, "unset {} {path}", Key(*object)),
            Edit::AddNew { count: 1, template } => write!(f, "add 1 node of {template}"),
            Edit::AddNew { count, template } => write!(f, "add {count} nodes of {template}"),
            Edit::AddNodes { count: 1, like } => write!(f, "add 1 node like {like}"),
            Edit::AddNodes { count, like } => write!(f, "add {count} nodes like {like}"),
            Edit::Node(name, edit) => node(f, *name, edit),
            Edit::Policy(edit) => policy(f, edit),
            Edit::Decide(pod, what) => {
                let (verb, node) = decision(what);
                write!(f, "{verb} node {node} for pod {}", QualifiedName(pod.namespace, pod.name))
            }
            Edit::Activate(pod) => {
                write!(f, "activate pod {}", QualifiedName(pod.namespace, pod.name))
            }
            Edit::Requeue(pod) => {
                write!(f, "requeue pod {}", QualifiedName(pod.namespace, pod.name))
            }
            Edit::Hold(rule) => write!(f, "hold {rule}"),
            Edit::Release(None) => f.write_str("release"),
            Edit::Release(Some(pods)) => write!(f, "release {pods}"),
            Edit::Fail(fault) => write!(f, "{fault}"),
            Edit::Heal => f.write_str("heal"),
            Edit::Lose(nodes) => write!(f, "lose {nodes}"),
            Edit::Drain { nodes, force: false } => write!(f, "drain {nodes}"),
            Edit::Drain { nodes, force: true } => write!(f, "drain {nodes} force"),
            Edit::Rollout(workload, template) => {
                let kind = workload.kind.as_str().to_lowercase();
                write!(f, "rollout {kind} {}{template}", workload.key)
            }
            Edit::Pod(key, edit) => {
                let (verb, rest) = pod(edit);
                write!(f, "{verb} pod {}", QualifiedName(key.namespace, key.name))?;
                if rest.is_empty() { Ok(()) } else { write!(f, " {rest}") }
            }
        }
    }
}

/// The verb of an intervention, and the node or plugin that it names.
fn decision(what: &Intervention) -> (&'static str, &dyn fmt::Display) {
    match what {
        Intervention::Choose(node) => ("choose", node),
        Intervention::Force(node) => ("force", node),
        Intervention::Veto(node) => ("veto", node),
        Intervention::Fail(_, plugin) => ("fail", plugin),
        // A hold is a separate edit.
        Intervention::Hold(_) => ("hold", &Name::EMPTY),
    }
}

impl Edit {
    /// The edit as one line that parses to the same edit. Unlike [`fmt::Display`], it contains the
    /// whole object of a `put`.
    pub fn line(&self) -> String {
        match self {
            Edit::Put(object) => format!("put {}", document(object)),
            Edit::Policy(PolicyEdit::Load(new)) => format!("config {}", new.text),
            other => other.to_string(),
        }
    }
}

/// A PriorityClass of which only the name and the value are set.
fn bare_class(object: &Object) -> Option<String> {
    let Object::PriorityClass(class) = object else { return None };
    let mut bare = new_class(class.metadata.name, class.value);
    // One that was read has a UID, which its name decides.
    bare.metadata.uid = class.metadata.uid;
    let words = || format!("priorityclass {} with value {}", class.metadata.name, class.value);
    (**class == bare).then(words)
}

/// A pod that [`new_pod`] makes.
fn bare_pod(object: &Object) -> Option<String> {
    let Object::Pod(pod) = object else { return None };
    let (labels, node) = (&pod.metadata.labels, pod.spec.node_name);
    let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
    let mut bare = new_pod(key, labels.clone(), node);
    bare.metadata.uid = pod.metadata.uid;
    if **pod != bare || labels.is_empty() || node.is_empty() {
        return None;
    }
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Some(format!("pod {key} with {} on {node}", labels.join(",")))
}

/// A PriorityClass with that name and value.
pub(crate) fn new_class(name: Name, value: i32) -> PriorityClass {
    let metadata = ObjectMeta { name, ..ObjectMeta::default() };
    PriorityClass { metadata, value, ..PriorityClass::default() }
}

/// A pod on a node, with these labels and one container that requests nothing.
pub(crate) fn new_pod(key: NamespacedName, labels: Labels, node: Name) -> Pod {
    let metadata =
        ObjectMeta { name: key.name, namespace: key.namespace, labels, ..ObjectMeta::default() };
    let container = Container { name: Symbol::new("main"), ..Container::default() };
    let mut pod = Pod { metadata, ..Pod::default() };
    pod.spec.containers = vec![container].into();
    pod.spec.node_name = node;
    pod
}

/// `pod shop/web`, `node a`, `StorageClass fast`.
struct Key(ObjectKey);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { kind, namespace, name } = self.0;
        let name = QualifiedName(namespace, name);
        match kind {
            // Another kind has the same name.
            Kind::Custom(custom) if Kind::by_name(kind.as_str()) != Some(kind) => {
                write!(f, "{} {name}", custom.full_name())
            }
            kind => write!(f, "{} {name}", kind.as_str().to_lowercase()),
        }
    }
}

struct QualifiedName(Symbol, Name);

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            f.write_str(&self.1.text())
        } else {
            write!(f, "{}/{}", self.0, self.1)
        }
    }
}

fn node(f: &mut fmt::Formatter<'_>, name: Name, edit: &NodeEdit) -> fmt::Result {
    match edit {
        NodeEdit::Cordon => write!(f, "cordon node {name}"),
        NodeEdit::Uncordon => write!(f, "uncordon node {name}"),
        NodeEdit::Taint(taint) => write!(f, "taint node {name} {taint}"),
        NodeEdit::Untaint(key, None) => write!(f, "untaint node {name} {key}"),
        NodeEdit::Untaint(key, Some(effect)) => write!(f, "untaint node {name} {key}:{effect}"),
        NodeEdit::Label(key, value) => write!(f, "label node {name} {key}={value}"),
        NodeEdit::Unlabel(key) => write!(f, "unlabel node {name} {key}"),
        NodeEdit::Resize(resource, amount) => {
            write!(f, "resize node {name} {resource}={}", written(*resource, amount))
        }
    }
}

/// An amount as reports show it: 1.8 CPUs, not 1800m. A finer one is written in full.
pub(super) fn written(resource: Symbol, quantity: &Quantity) -> String {
    let shown = amount::of(resource.as_str(), quantity.milli_value());
    match resource == "cpu" && Quantity::parse(&shown).is_ok_and(|shown| shown == *quantity) {
        true => shown,
        false => quantity.to_string(),
    }
}

/// The verb, and the text after the pod's name.
fn pod(edit: &PodEdit) -> (&'static str, String) {
    match edit {
        PodEdit::Label(key, value) => ("label", format!("{key}={value}")),
        PodEdit::Unlabel(key) => ("unlabel", key.to_string()),
        PodEdit::Resize { container: None, resource, amount } => {
            ("resize", format!("{resource}={}", written(*resource, amount)))
        }
        PodEdit::Resize { container: Some(container), resource, amount } => {
            ("resize", format!("{container} {resource}={}", written(*resource, amount)))
        }
        PodEdit::Tolerate(toleration) => ("tolerate", tolerated(toleration)),
        PodEdit::Untolerate(toleration) => ("untolerate", tolerated(toleration)),
        PodEdit::Select(key, value) => ("select", format!("{key}={value}")),
        PodEdit::Unselect(key) => ("unselect", key.to_string()),
        PodEdit::Affinity(None) => ("affinity", "none".into()),
        PodEdit::Affinity(Some(affinity)) => ("affinity", json(affinity)),
        PodEdit::Relax(term) => ("relax", term.to_string()),
        PodEdit::Spread(constraint) => ("spread", json(constraint)),
        PodEdit::Unspread(key) => ("unspread", key.to_string()),
        PodEdit::Port(port) => ("port", port.to_string()),
        PodEdit::Unport(port) => ("unport", port.to_string()),
        PodEdit::Gate(name) => ("gate", name.to_string()),
        PodEdit::Ungate(name) => ("ungate", name.to_string()),
        PodEdit::Priority(priority) => ("priority", priority.to_string()),
        PodEdit::PriorityClass(class) => ("priority", class.to_string()),
    }
}

fn policy(f: &mut fmt::Formatter<'_>, edit: &PolicyEdit) -> fmt::Result {
    match edit {
        PolicyEdit::Overlay(overlay) => write!(f, "{overlay}"),
        PolicyEdit::Feature(name, on) => write!(f, "feature {name}={on}"),
        PolicyEdit::Version(served) => write!(f, "kube-version {}", served.asked),
        PolicyEdit::Load(_) => f.write_str("config"),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            FaultKind::Bind => f.write_str("fail bind")?,
            FaultKind::Plugin(plugin, point) => write!(f, "fail plugin {plugin} at {point}")?,
            FaultKind::Extender(url) => write!(f, "fail extender {url}")?,
        }
        if let Some(pod) = self.pod {
            write!(f, " for pod {}", QualifiedName(pod.namespace, pod.name))?;
        }
        if self.lasting { f.write_str(" always") } else { Ok(()) }
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// `key=value:Effect`, `key:Effect`, `all`; JSON if these cannot express it.
fn tolerated(toleration: &Toleration) -> String {
    let Toleration { key, operator, value, effect, toleration_seconds } = toleration;
    let what = match (key.as_str(), operator) {
        _ if toleration_seconds.is_some() => None,
        ("", TolerationOperator::Exists) => Some("all".into()),
        ("", _) => None,
        (key, TolerationOperator::Exists) => Some(key.to_owned()),
        (key, TolerationOperator::Equal) => Some(format!("{key}={value}")),
        (key, TolerationOperator::Lt) => Some(format!("{key}<{value}")),
        (key, TolerationOperator::Gt) => Some(format!("{key}>{value}")),
        (key, TolerationOperator::Other(text)) if text.is_empty() => Some(format!("{key}={value}")),
        _ => None,
    };
    match what {
        None => json(toleration),
        Some(what) if effect.is_unset() => what,
        Some(what) => format!("{what}:{effect}"),
    }
}

/// As in commands: `8080/TCP`, `8080/UDP@10.0.0.1`.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = if self.protocol.is_unset() { Protocol::Tcp } else { self.protocol };
        write!(f, "{}/{protocol}", self.port)?;
        if self.ip.is_empty() { Ok(()) } else { write!(f, "@{}", self.ip) }
    }
}

/// The object as a document, with `apiVersion` and `kind`.
pub(super) fn document(object: &Object) -> serde_json::Value {
    let group = object.kind().group();
    // The reader accepts any version.
    let version = if group.is_empty() { "v1".into() } else { format!("{group}/v1") };
    let mut document = serde_json::Map::new();
    document.insert("apiVersion".into(), version.into());
    document.insert("kind".into(), object.kind().as_str().into());
    if let Ok(serde_json::Value::Object(fields)) = object.to_json() {
        document.extend(fields);
    }
    document.into()
}

/// The object as YAML, to be edited and put back.
pub fn yaml(object: &Object) -> String {
    // Serializing a tree of plain values does not fail.
    serde_yaml::to_string(&document(object)).unwrap_or_default()
}
