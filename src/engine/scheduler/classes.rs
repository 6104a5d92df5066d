//! Pods that are alike, and what plugins said of them: answers that depend on one node alone
//! are kept from cycle to cycle, and asked again only for the nodes that changed.
//!
//! This is what makes a cycle's cost follow the change, not the cluster.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::engine::column::Column;
use crate::engine::framework::scoring::{KeptScores, NO_SCORE};
use crate::engine::node::NodeId;
use crate::engine::pod::PodInfo;
use crate::engine::record::VerdictId;
use crate::intern::Symbol;

/// Classes kept at most; the one unused for longest goes first.
const CLASSES: usize = 256;

/// What makes pods alike: everything that plugins of [`Scope::Node`] may look at.
///
/// [`Scope::Node`]: crate::engine::framework::plugin::Scope::Node
pub(super) type ClassKey = Arc<str>;

/// The class of a pod under a profile. Two pods are of one class when profile, namespace,
/// labels and spec are the same to the letter.
pub(super) fn class_key(profile: Symbol, pod: &PodInfo) -> ClassKey {
    let (metadata, status) = (&pod.pod.metadata, &pod.pod.status);
    let resized = (&status.resources, &status.container_statuses, &status.init_container_statuses);
    let parts = (profile, metadata.namespace, &metadata.labels, &pod.pod.spec, resized);
    // Writing to a string fails for no type of ours; an empty key would only mean no sharing.
    serde_json::to_string(&parts).unwrap_or_default().into()
}

/// A filter plugin's verdicts, with how many nodes it refuses.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    pub column: Column<VerdictId>,
    pub refused: usize,
}

impl Verdicts {
    /// Writes the verdict of one node.
    pub fn set(&mut self, node: NodeId, verdict: VerdictId) {
        let before = self.column.get(node).is_some_and(VerdictId::is_status);
        self.column.set(node, verdict);
        self.refused = self.refused + usize::from(verdict.is_status()) - usize::from(before);
    }
}

/// What is kept of one class.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    /// How much of the log of changed nodes is in the columns.
    pub as_of: u64,
    /// By filter plugin.
    pub verdicts: IndexMap<Symbol, Verdicts>,
    /// By score plugin: raw scores of all nodes that were ever scored.
    pub scores: KeptScores,
}

/// The classes, and the log of changed nodes that brings them up to date.
#[derive(Clone, Debug, Default)]
pub(super) struct Classes {
    classes: IndexMap<ClassKey, Class>,
    /// Nodes in the order they changed; the first is number `first`.
    changed: Vec<NodeId>,
    first: u64,
}

impl Classes {
    /// Forgets everything: something changed that is no node.
    pub fn clear(&mut self) {
        *self = Classes::default();
    }

    /// Notes that nodes changed, in a cluster of `nodes` nodes.
    pub fn note(&mut self, changed: &[NodeId], nodes: usize) {
        self.changed.extend_from_slice(changed);
        // A class that is so far behind is better made anew.
        if self.changed.len() > 4 * nodes + 4096 {
            let dropped = self.changed.len() / 2;
            self.changed.drain(..dropped);
            self.first += dropped as u64;
        }
    }

    /// Takes a class out, up to date but for the nodes given beside it. Put it back with
    /// [`Classes::put`].
    pub fn take(&mut self, key: &ClassKey) -> (Class, Vec<NodeId>) {
        let end = self.first + self.changed.len() as u64;
        let fresh = || (Class { as_of: end, ..Class::default() }, Vec::new());
        let Some(mut class) = self.classes.shift_remove(key) else { return fresh() };
        let Some(behind) = class.as_of.checked_sub(self.first) else { return fresh() };
        let mut stale = self.changed[behind as usize..].to_vec();
        stale.sort_unstable();
        stale.dedup();
        class.as_of = end;
        for column in class.scores.values_mut() {
            stale.iter().for_each(|node| column.set(*node, NO_SCORE));
        }
        (class, stale)
    }

    /// Puts a class back as the one used last.
    pub fn put(&mut self, key: ClassKey, class: Class) {
        if self.classes.len() >= CLASSES {
            self.classes.shift_remove_index(0);
        }
        self.classes.insert(key, class);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_hears_of_each_changed_node_once() {
        let mut classes = Classes::default();
        let key: ClassKey = "web".into();
        let (class, stale) = classes.take(&key);
        assert_eq!(stale, []);
        classes.put(key.clone(), class);
        classes.note(&[NodeId(3), NodeId(1), NodeId(3)], 10);
        let (class, stale) = classes.take(&key);
        assert_eq!(stale, [NodeId(1), NodeId(3)]);
        classes.put(key.clone(), class);
        assert_eq!(classes.take(&key).1, []);
    }

    #[test]
    fn a_class_far_behind_starts_anew() {
        let mut classes = Classes::default();
        let key: ClassKey = "web".into();
        let (mut class, _) = classes.take(&key);
        class.verdicts.insert("NodeName".into(), Verdicts::default());
        classes.put(key.clone(), class);
        classes.note(&vec![NodeId(0); 5000], 10);
        let (class, stale) = classes.take(&key);
        assert!(class.verdicts.is_empty() && stale.is_empty());
    }

    #[test]
    fn the_class_unused_for_longest_goes_first() {
        let mut classes = Classes::default();
        let keys: Vec<ClassKey> = (0..=CLASSES).map(|i| format!("{i}").into()).collect();
        for key in &keys {
            let (mut class, _) = classes.take(key);
            class.verdicts.insert("NodeName".into(), Verdicts::default());
            classes.put(key.clone(), class);
        }
        assert!(classes.take(&keys[0]).0.verdicts.is_empty());
        assert!(!classes.take(&keys[1]).0.verdicts.is_empty());
    }

    #[test]
    fn refusals_are_counted() {
        let mut verdicts = Verdicts { column: Column::filled(VerdictId::PASS, 3), refused: 0 };
        let refusal = VerdictId(99);
        verdicts.set(NodeId(1), refusal);
        verdicts.set(NodeId(1), refusal);
        verdicts.set(NodeId(2), refusal);
        verdicts.set(NodeId(1), VerdictId::PASS);
        assert_eq!(verdicts.refused, 1);
    }
}
