//! Changes that a person can ask for in a simulated cluster: each is plain data, prints as the
//! words that it is read from ("cordon node a"), and is applied whole or not at all.
//!
//! Sessions apply edits in forks, the search for the smallest change tries them on copies of
//! the world, and the command line and the interface read them from text. What is changed is
//! only ever the simulation.

mod change;
mod companions;
pub mod configuration;
mod fields;
mod fixed;
mod hand;
mod node;
mod object;
pub mod offers;
pub(crate) mod owner;
mod parse;
mod parse_scheduler;
mod path;
mod pod;
mod policy;
mod resize;
mod term;
mod words;

use std::path::Path;

use kubestep_api::intern::Symbol;
use kubestep_api::{
    Affinity, Kind, Object, ObjectKey, Quantity, Taint, TaintEffect, Toleration,
    TopologySpreadConstraint,
};
use kubestep_cluster::World;
use kubestep_config::{ExtensionPoint, Overlay};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::intervention::Intervention;
use kubestep_scheduler::what_if::{HoldRule, PodSelection};

pub(crate) use fields::changes;
pub use fields::{FieldChange, Operation};
pub(crate) use object::value;
pub use parse::{FORMS, Form};
pub(crate) use resize::asks;
pub use term::{Term, TermList};
pub use words::yaml;

/// A change of the cluster.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit {
    /// Creates the object, or puts it in place of the one of its name.
    Put(Object),
    /// Deletes an object.
    Delete(ObjectKey),
    /// Sets a field of an object, or with `None` takes it away.
    Set {
        /// The object.
        object: ObjectKey,
        /// The field as the API writes it: `spec.containers[0].image`.
        path: String,
        /// What it becomes.
        value: Option<serde_json::Value>,
    },
    /// Adds nodes that differ from `like` only in their names and host name labels.
    AddNodes {
        /// How many, at least 1.
        count: u32,
        /// The node to copy.
        like: Symbol,
    },
    /// Changes a node.
    Node(Symbol, NodeEdit),
    /// Changes a pod.
    Pod(NamespacedName, PodEdit),
    /// Changes the scheduler's configuration.
    Policy(PolicyEdit),
    /// Decides in the scheduler's place in the next cycle of a pod.
    Decide(NamespacedName, Intervention),
    /// Holds pods at Permit, in their cycles to come.
    Hold(HoldRule),
    /// Holds these pods no more, or none; those that wait go on.
    Release(Option<PodSelection>),
    /// Moves a waiting pod into the active queue, without waiting for anything but its gates.
    Activate(NamespacedName),
    /// Tries a pod again that waits for an event, as if one had come that helps.
    Requeue(NamespacedName),
    /// Makes something fail.
    Fail(Fault),
    /// Takes back all decisions and faults that are still to come.
    Heal,
    /// Deletes a node together with its pods, as when it breaks down for good.
    Lose(Symbol),
}

/// A change of the scheduler's configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyEdit {
    /// A weight, or a plugin switched on or off.
    Overlay(Overlay),
    /// A feature gate by its name.
    Feature(String, bool),
    /// Another document, YAML or JSON, which also forgets weights and switches.
    Load(String),
}

/// Something that is made to fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// What fails.
    pub what: FaultKind,
    /// For which pod; any without. Extenders are down for all.
    pub pod: Option<NamespacedName>,
    /// Whether it fails until healed, or only once.
    pub lasting: bool,
}

/// What can be made to fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The API server refuses the binding.
    Bind,
    /// A plugin gives an error at a point.
    Plugin(Symbol, ExtensionPoint),
    /// The extender of that URL does not answer.
    Extender(String),
}

/// A change of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeEdit {
    /// Takes it out of service for new pods.
    Cordon,
    /// Puts it back into service.
    Uncordon,
    /// Adds a taint; one of the same key and effect gets the value.
    Taint(Taint),
    /// Removes the taints of that key, with `Some` only those of that effect.
    Untaint(Symbol, Option<TaintEffect>),
    /// Sets a label.
    Label(Symbol, Symbol),
    /// Removes a label.
    Unlabel(Symbol),
    /// Sets how much of a resource pods can have, capacity along with it where it is less.
    Resize(Symbol, Quantity),
}

/// A change of a pod.
#[derive(Clone, PartialEq, Debug)]
pub enum PodEdit {
    /// Sets a label.
    Label(Symbol, Symbol),
    /// Removes a label.
    Unlabel(Symbol),
    /// Sets the request for a resource: of one container, or of the pod in all, where each
    /// container keeps its share. Limits that would be too low follow.
    Resize {
        /// The container; `None` for the whole pod.
        container: Option<Symbol>,
        /// For example `cpu`.
        resource: Symbol,
        /// Zero takes the request away.
        amount: Quantity,
    },
    /// Adds a toleration.
    Tolerate(Toleration),
    /// Removes a toleration.
    Untolerate(Toleration),
    /// Asks for a label of the node (`nodeSelector`).
    Select(Symbol, Symbol),
    /// Asks for that label no more.
    Unselect(Symbol),
    /// Sets all of the affinity, or takes it away.
    Affinity(Option<Box<Affinity>>),
    /// Takes away one term of the affinity, or one expression of a term.
    Relax(Term),
    /// Adds a spread constraint; one of the same topology key and strictness is replaced.
    Spread(Box<TopologySpreadConstraint>),
    /// Removes the spread constraints on that topology key.
    Unspread(Symbol),
    /// Asks for a host port, in the first container.
    Port(HostPort),
    /// Asks for that host port no more.
    Unport(HostPort),
    /// Adds a scheduling gate.
    Gate(Symbol),
    /// Removes a scheduling gate.
    Ungate(Symbol),
    /// Sets the priority, which a cluster only does by a class.
    Priority(i32),
    /// Gives the pod a PriorityClass, with its priority and preemption policy.
    PriorityClass(Symbol),
}

/// A port of the host that a container wants for itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPort {
    /// The number.
    pub port: i32,
    /// The protocol.
    pub protocol: kubestep_api::Protocol,
    /// The address; "" for all of them.
    pub ip: Symbol,
}

/// What applying an edit did beyond its words.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// One sentence each.
    pub notes: Vec<String>,
}

/// Why an edit cannot be read or applied. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EditError(pub String);

impl EditError {
    /// That there is no such object, with what may be meant.
    fn missing(key: ObjectKey, world: &World) -> EditError {
        let near = object::names(world, key.kind);
        let near =
            kubestep_config::suggest::closest(&key.name, near.iter().map(|name| name.as_str()));
        let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
        EditError(format!("there is no {key}{near}"))
    }
}

impl Edit {
    /// Changes the cluster and lets it settle.
    ///
    /// # Errors
    /// The object is not there, or the change makes no sense for it. The cluster is then as
    /// it was.
    pub fn apply(&self, world: &mut World) -> Result<Applied, EditError> {
        match self {
            Edit::Put(object) => object::put(world, object.clone()),
            Edit::Delete(key) => object::delete(world, *key),
            Edit::Set { object, path, value } => object::set(world, *object, path, value.as_ref()),
            Edit::AddNodes { count, like } => node::add_like(world, *like, *count),
            Edit::Node(name, edit) => node::apply(world, *name, edit),
            Edit::Pod(key, edit) => pod::apply(world, *key, edit),
            Edit::Policy(edit) => policy::apply(world, edit),
            Edit::Lose(name) => node::lose(world, *name),
            edit => hand::apply(world, edit),
        }
    }

    /// The edits that a line means. `put` and `config` also take a file, which `read` reads, as
    /// in `put @web.yaml`.
    ///
    /// # Errors
    /// The line is no edit, or what is wrong with the file; nothing was done then.
    pub fn read_line(
        line: &str,
        read: impl Fn(&Path) -> Result<String, String>,
    ) -> Result<Vec<Edit>, EditError> {
        let file =
            |verb: &str| line.strip_prefix(verb).map(str::trim).and_then(|t| t.strip_prefix('@'));
        if let Some(path) = file("put ") {
            let text = read(path.as_ref()).map_err(EditError)?;
            return Edit::put_all(path, &text).map_err(|error| EditError(error.to_string()));
        }
        if let Some(path) = file("config ") {
            let text = read(path.as_ref()).map_err(EditError)?;
            return Ok(vec![Edit::Policy(PolicyEdit::Load(text))]);
        }
        match line.strip_prefix("config ").map(str::trim) {
            // A name alone is no configuration.
            Some(name) if !name.is_empty() && !name.contains([':', '{', '\n']) => {
                Err(EditError(format!("to load a file write config @{name}")))
            }
            _ => Ok(vec![line.parse()?]),
        }
    }

    /// The edits that put each object of a text (YAML or JSON, any number of documents).
    ///
    /// # Errors
    /// What is wrong in which line and field; `name` stands for the file.
    pub fn put_all(name: &str, text: &str) -> Result<Vec<Edit>, Box<kubestep_source::SourceError>> {
        object::read(name, text)
    }
}

/// The key of a pod as an object.
fn pod_key(key: NamespacedName) -> ObjectKey {
    ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name }
}

#[cfg(test)]
pub(crate) mod tests;
