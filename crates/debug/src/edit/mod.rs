//! Edits of a simulated cluster: each is plain data, prints as the words that it is parsed from
//! ("cordon node a"), and is applied completely or not at all.
//!
//! Sessions apply edits in branches, the search for the smallest fix tries them on copies of the
//! world, and the command line and the interface parse them from text. An edit only changes the
//! simulation. As inputs of a session they are replayed with it, with the same effect on the same
//! state.

pub(crate) mod companions;
pub mod configuration;
mod display;
mod disrupt;
mod fields;
mod fixed;
mod intervention;
mod node;
pub mod node_set;
mod object;
pub mod offers;
pub(crate) mod owner;
mod parse;
mod parse_scheduler;
mod path;
mod pod;
mod replaced;
mod resize;
mod rollout;
mod term;

use std::path::Path;

use crate::input::Change;
use kubestep_api::intern::Symbol;
use kubestep_api::{
    Affinity, Kind, Name, Object, ObjectKey, Quantity, Taint, TaintEffect, Toleration,
    TopologySpreadConstraint,
};
use kubestep_cluster::World;
use kubestep_cluster::rollout::WorkloadName;
use kubestep_config::versions::Served;
use kubestep_config::{ExtensionPoint, Overlay};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::intervention::Intervention;
use kubestep_framework::registry::Registry;
use kubestep_scheduler::what_if::{HoldRule, PodSelection};

pub use configuration::NewConfiguration;
pub use display::yaml;
pub(crate) use display::{new_class, new_pod};
pub(crate) use fields::changes;
pub use fields::{FieldChange, FieldOperation};
pub use node_set::NodeSet;
pub(crate) use object::value;
pub use parse::{EditForm, FORMS};
pub(crate) use replaced::request;
pub use replaced::with_replaced;
pub(crate) use resize::asks;
pub use rollout::TemplateEdit;
pub(crate) use term::affinity_change;
pub use term::{TermList, TermRef};

/// A change of the cluster.
#[derive(Clone, PartialEq, Debug)]
pub enum Edit {
    /// Creates the object, or replaces the one of the same name.
    Put(Object),
    /// Deletes an object; without one of that name, the edit fails.
    Delete(ObjectKey),
    /// Sets a field of an object, or removes it if the value is `None`.
    Set {
        /// Kind, namespace and name of the object.
        object: ObjectKey,
        /// The path of the field, as in the API: `spec.containers[0].image`.
        path: String,
        /// The value as JSON; `None` removes the field.
        value: Option<serde_json::Value>,
    },
    /// Adds nodes that differ from `like` only in their names and hostname labels.
    AddNodes {
        /// How many, at least 1.
        count: u32,
        /// The node to copy.
        like: Name,
    },
    /// Adds nodes of a template: of a pool, a node group or an instance type.
    AddNew {
        /// How many, at least 1.
        count: u32,
        /// The template's id, such as `nodepool/general/m5.large/zone-a/spot`.
        template: Symbol,
    },
    /// Changes one node, by name.
    Node(Name, NodeEdit),
    /// Changes one pod; what a cluster does not allow deletes it and creates it again.
    Pod(NamespacedName, PodEdit),
    /// Changes the scheduler's configuration.
    Policy(PolicyEdit),
    /// Makes a scheduling decision in the next cycle of a pod.
    Decide(NamespacedName, Intervention),
    /// Holds pods at Permit in future cycles.
    Hold(HoldRule),
    /// Stops holding these pods, or all; those that wait are allowed.
    Release(Option<PodSelection>),
    /// Moves a waiting pod to the active queue at once. Gates still apply.
    Activate(NamespacedName),
    /// Requeues a pod that waits for an event, as if an event had requeued it.
    Requeue(NamespacedName),
    /// Makes a binding, a plugin or an extender fail, once or until [`Edit::Heal`].
    Fail(Fault),
    /// Removes all decisions and faults that are still to come.
    Heal,
    /// Deletes nodes together with their pods, as if they failed permanently. Controllers recreate
    /// the pods.
    Lose(NodeSet),
    /// Cordons nodes and evicts their pods, as far as disruption budgets allow.
    Drain {
        /// The nodes to drain, one after the other.
        nodes: NodeSet,
        /// Whether pods without a controller are evicted too.
        force: bool,
    },
    /// Replaces the pods of a workload by pods of another template, as its strategy says.
    Rollout(WorkloadName, TemplateEdit),
}

/// A change of the scheduler's configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyEdit {
    /// Sets a weight, or enables or disables a plugin.
    Overlay(Overlay),
    /// Sets a feature gate.
    Feature(String, bool),
    /// Decides as another version of kube-scheduler, with the feature gates that are set.
    Version(Served),
    /// Loads another configuration. Earlier weights and switches are dropped.
    Load(NewConfiguration),
}

/// A fault that the simulation injects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The operation that fails.
    pub what: FaultKind,
    /// The pod it applies to; `None`: any. Extenders fail for all pods.
    pub pod: Option<NamespacedName>,
    /// Whether it lasts until `heal`, or applies only once.
    pub lasting: bool,
}

/// The kinds of faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The API server rejects the binding.
    Bind,
    /// A plugin returns an error at an extension point.
    Plugin(Symbol, ExtensionPoint),
    /// The extender of that URL does not answer.
    Extender(String),
}

/// A change of a node.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeEdit {
    /// Sets `spec.unschedulable`, as `kubectl cordon` does.
    Cordon,
    /// Unsets `spec.unschedulable`, as `kubectl uncordon` does.
    Uncordon,
    /// Adds a taint, or sets the value of the one with the same key and effect.
    Taint(Taint),
    /// Removes the taints with that key, and with that effect if one is given.
    Untaint(Symbol, Option<TaintEffect>),
    /// Sets a label of the node: key and value.
    Label(Symbol, Name),
    /// Removes the label with that key.
    Unlabel(Symbol),
    /// Sets the allocatable amount of a resource; capacity is raised to it if it is less.
    Resize(Symbol, Quantity),
}

/// A change of a pod.
#[derive(Clone, PartialEq, Debug)]
pub enum PodEdit {
    /// Sets a label of the pod: key and value.
    Label(Symbol, Name),
    /// Removes the label with that key.
    Unlabel(Symbol),
    /// Sets the request for a resource, of one container or of the whole pod. For the whole pod,
    /// each container keeps its share. Limits that would be too low are raised.
    Resize {
        /// The container; `None` for the whole pod.
        container: Option<Symbol>,
        /// Name of the resource, for example `cpu`.
        resource: Symbol,
        /// Zero removes the request.
        amount: Quantity,
    },
    /// Adds a toleration to `spec.tolerations`.
    Tolerate(Toleration),
    /// Removes the tolerations that equal this one.
    Untolerate(Toleration),
    /// Adds a label to the `nodeSelector`.
    Select(Symbol, Name),
    /// Removes a label from the `nodeSelector`.
    Unselect(Symbol),
    /// Sets the whole affinity, or removes it.
    Affinity(Option<Box<Affinity>>),
    /// Removes one term of the affinity, or one expression of a term.
    Relax(TermRef),
    /// Adds a spread constraint, or replaces the one with the same topology key and
    /// `whenUnsatisfiable`.
    Spread(Box<TopologySpreadConstraint>),
    /// Removes the spread constraints on that topology key.
    Unspread(Symbol),
    /// Adds a host port to the first container.
    Port(HostPort),
    /// Removes that host port.
    Unport(HostPort),
    /// Adds a scheduling gate.
    Gate(Symbol),
    /// Removes a scheduling gate.
    Ungate(Symbol),
    /// Sets the priority. In a cluster only a PriorityClass can.
    Priority(i32),
    /// Gives the pod a PriorityClass, with its priority and preemption policy.
    PriorityClass(Symbol),
}

/// A host port of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostPort {
    /// `hostPort`, 1 to 65535.
    pub port: i32,
    /// TCP if it is unset.
    pub protocol: kubestep_api::Protocol,
    /// The host IP; "" for all.
    pub ip: Symbol,
}

/// Side effects of an applied edit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Applied {
    /// What else changed, one sentence each.
    pub notes: Vec<String>,
}

/// Why an edit or another change of a session cannot be parsed or applied. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EditError(pub String);

impl EditError {
    /// The error that the object does not exist, with similar names.
    fn missing(key: ObjectKey, world: &World) -> EditError {
        let known = object::keys(world, key.kind);
        let same = known.iter().find(|other| other.name == key.name);
        let in_other_namespace = same.map(NamespacedName::to_string);
        let near = || {
            let names = known.iter().map(|other| other.name);
            kubestep_config::suggest::closest_name(key.name, names).map(|near| near.to_string())
        };
        let near = in_other_namespace.or_else(near);
        let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
        EditError(format!("there is no {key}{near}"))
    }
}

impl Change for Edit {
    fn describe(&self) -> String {
        self.to_string()
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        Edit::apply(self, world).map(|_| ())
    }

    fn sets_gates(&self) -> bool {
        matches!(self, Edit::Policy(PolicyEdit::Feature(..) | PolicyEdit::Version(_)))
    }
}

impl Edit {
    /// Applies the edit and lets the cluster settle.
    ///
    /// # Errors
    /// The object does not exist, or the change is not valid for it. The cluster is then unchanged.
    pub fn apply(&self, world: &mut World) -> Result<Applied, EditError> {
        match self {
            Edit::Put(object) => object::put(world, object.clone()),
            Edit::Delete(key) => object::delete(world, *key),
            Edit::Set { object, path, value } => object::set(world, *object, path, value.as_ref()),
            Edit::AddNodes { count, like } => node::add_like(world, *like, *count),
            Edit::AddNew { count, template } => node::add_new(world, *template, *count),
            Edit::Node(name, edit) => node::apply(world, *name, edit),
            Edit::Pod(key, edit) => pod::apply(world, *key, edit),
            Edit::Policy(edit) => configuration::apply(world, edit),
            Edit::Lose(nodes) => disrupt::lose(world, *nodes),
            Edit::Drain { nodes, force } => disrupt::drain(world, *nodes, *force),
            Edit::Rollout(workload, template) => rollout::apply(world, *workload, template),
            edit => intervention::apply(world, edit),
        }
    }

    /// Parses a line into edits; `, and ` joins several, as proposals are printed. `put` and
    /// `config` also take a file, which `read` reads, as in `put @web.yaml`.
    ///
    /// # Errors
    /// The line is not an edit, or the file is not valid; nothing was changed.
    pub fn read_line<E: std::fmt::Display>(
        line: &str,
        read: impl Fn(&Path) -> Result<String, E>,
    ) -> Result<Vec<Edit>, EditError> {
        let file =
            |verb: &str| line.strip_prefix(verb).map(str::trim).and_then(|t| t.strip_prefix('@'));
        if let Some(path) = file("put ") {
            let text = read(path.as_ref()).map_err(|error| EditError(error.to_string()))?;
            return Edit::put_all(path, &text).map_err(|error| EditError(error.to_string()));
        }
        if let Some(path) = file("config ") {
            let text = read(path.as_ref()).map_err(|error| EditError(error.to_string()))?;
            return Ok(vec![Edit::Policy(PolicyEdit::Load(text.into()))]);
        }
        match line.strip_prefix("config ").map(str::trim) {
            // A plain name is not a configuration.
            Some(name) if !name.is_empty() && !name.contains([':', '{', '\n']) => {
                Err(EditError(format!("to load a file write config @{name}")))
            }
            _ => Edit::joined(line),
        }
    }

    /// The same, where another configuration is loaded with the plugins that it can name: `find`
    /// gives them, with a sentence for each that is missing.
    ///
    /// # Errors
    /// Those of `find`.
    pub fn with_plugins<E>(
        mut self,
        find: impl FnOnce(&str) -> Result<(Registry, Vec<String>), E>,
    ) -> Result<Edit, E> {
        if let Edit::Policy(PolicyEdit::Load(new)) = &mut self {
            *new = std::mem::take(new).with_plugins(find)?;
        }
        Ok(self)
    }

    /// The edits of a line. The text of an object may itself contain `, and `.
    fn joined(line: &str) -> Result<Vec<Edit>, EditError> {
        let parts: Result<Vec<Edit>, EditError> = line.split(", and ").map(str::parse).collect();
        parts.or_else(|error| match line.parse() {
            Ok(edit) => Ok(vec![edit]),
            Err(_) => Err(error),
        })
    }

    /// The edits that put each object of a text (YAML or JSON, any number of documents).
    ///
    /// # Errors
    /// The invalid line and field; `name` is the name of the file.
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
