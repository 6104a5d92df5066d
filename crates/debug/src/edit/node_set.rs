//! Nodes that an edit is about: one by its name, or all that have a label.

use std::collections::BTreeSet;
use std::fmt;

use crate::edit::EditError;
use crate::edit::parse::{ParseResult, WordsLeft, assignment, node_key};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Name, ObjectKey};
use kubestep_cluster::World;

/// The namespaces of well-known labels, the preferred one first.
const WELL_KNOWN: [&str; 3] = ["topology.kubernetes.io/", "kubernetes.io/", "node.kubernetes.io/"];

/// Nodes of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeSet {
    /// The node of that name.
    Named(Name),
    /// All nodes with that label. The part of the key before the slash may be left out.
    Labelled(Symbol, Name),
}

impl NodeSet {
    pub(super) fn parse(words: &mut WordsLeft<'_>) -> ParseResult<NodeSet> {
        if let Some(label) = words.peek().filter(|word| word.contains('=')) {
            words.next();
            let (key, value) = assignment(label)?;
            return Ok(NodeSet::Labelled(key.into(), value.into()));
        }
        let key = node_key(words)?;
        match key.kind {
            Kind::Node => Ok(NodeSet::Named(key.name)),
            _ => Err("that is for nodes".into()),
        }
    }

    /// The nodes, by name.
    ///
    /// # Errors
    /// There are none.
    pub fn nodes(&self, world: &World) -> Result<Vec<Name>, EditError> {
        match *self {
            NodeSet::Named(name) => {
                let key = ObjectKey { kind: Kind::Node, namespace: Symbol::EMPTY, name };
                let missing = || match label_key(world, &name.text()) {
                    Ok(label) => EditError(format!(
                        "there is no node {name}; a label is written {label}=VALUE"
                    )),
                    Err(_) => EditError::missing(key, world),
                };
                world.api().node(name).ok_or_else(missing)?;
                Ok(vec![name])
            }
            NodeSet::Labelled(key, value) => {
                let key = label_key(world, &key)?;
                let domains = domains(world, key);
                let found = domains.iter().find(|(other, _)| *other == value);
                found.map(|(_, nodes)| nodes.clone()).ok_or_else(|| {
                    let values: Vec<String> =
                        domains.iter().map(|(value, _)| value.to_string()).collect();
                    EditError(format!(
                        "no node has the label {key}={value}; there is {}",
                        values.join(", ")
                    ))
                })
            }
        }
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeSet::Named(name) => write!(f, "node {name}"),
            NodeSet::Labelled(key, value) => write!(f, "{key}={value}"),
        }
    }
}

/// The label key that a text means: a key that nodes have, or the part of one after the slash, as
/// in `zone`.
///
/// # Errors
/// No node has such a label, or several keys are possible.
pub fn label_key(world: &World, text: &str) -> Result<Symbol, EditError> {
    let labels = world.api().nodes().flat_map(|node| node.metadata.labels.keys());
    let keys: BTreeSet<Symbol> = labels.collect();
    if let Some(exact) = keys.iter().find(|key| **key == text) {
        return Ok(*exact);
    }
    let named = |key: &&Symbol| key.rsplit_once('/').is_some_and(|(_, name)| name == text);
    let found: Vec<Symbol> = keys.iter().filter(named).copied().collect();
    let preferred = WELL_KNOWN
        .iter()
        .find_map(|namespace| found.iter().find(|key| key.strip_prefix(namespace) == Some(text)));
    match (preferred, found.as_slice()) {
        (Some(key), _) | (None, [key]) => Ok(*key),
        (None, []) => {
            let near = kubestep_config::suggest::closest(text, keys.iter().map(|key| key.as_str()));
            let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
            Err(EditError(format!("no node has a label {text}{near}")))
        }
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|key| key.as_str()).collect();
            Err(EditError(format!("{text} may be {}: write the whole key", names.join(" or "))))
        }
    }
}

/// The values of a label with the nodes that have each, both in order.
pub fn domains(world: &World, key: Symbol) -> Vec<(Name, Vec<Name>)> {
    let mut domains = std::collections::BTreeMap::<Name, Vec<Name>>::new();
    for node in world.api().nodes() {
        if let Some(value) = node.metadata.labels.get(key) {
            domains.entry(*value).or_default().push(node.metadata.name);
        }
    }
    domains.values_mut().for_each(|nodes| nodes.sort_unstable());
    domains.into_iter().collect()
}
