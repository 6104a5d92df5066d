//! A cache of plugin answers about pods like this one. Answers that depend on one node alone are
//! kept from cycle to cycle, and computed again only for nodes that changed.
//!
//! Each plugin names the fields of a pod that it looks at; all pods that agree in them share its
//! answers. This makes the cost of a cycle proportional to what changed, not to the cluster.

use indexmap::IndexMap;

use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::VerdictId;
use kubestep_framework::record::column::Column;

/// Maximum number of columns; the least recently used one is dropped first.
const COLUMNS: usize = 512;

/// The key of a column: profile, plugin, extension point, and what the plugin looks at in a pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub profile: Symbol,
    pub plugin: Symbol,
    pub point: ExtensionPoint,
    pub pod: String,
}

/// Answers by slot, with the number of rejections among them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub column: Column<VerdictId>,
    pub refused: usize,
}

impl Answers {
    /// Stores the answer about one node.
    pub fn set(&mut self, node: NodeId, verdict: VerdictId) {
        let before = self.column.get(node).is_some_and(VerdictId::is_status);
        self.column.set(node, verdict);
        self.refused = self.refused + usize::from(verdict.is_status()) - usize::from(before);
    }
}

/// A cached column.
#[derive(Clone, Debug)]
pub(crate) enum KeptColumn {
    /// Of a filter plugin.
    Verdicts(Answers),
    /// Of a score plugin: raw scores, unknown for nodes that were never scored.
    Scores(Column<i64>),
}

#[derive(Clone, Debug)]
struct Entry {
    column: KeptColumn,
    /// Up to which entry of the log of changed nodes it is up to date.
    as_of: u64,
}

/// The cached columns, and the log of changed nodes that brings them up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    entries: IndexMap<Key, Entry>,
    /// Nodes in the order they changed; `first` is the number of the first entry.
    changed: Vec<NodeId>,
    first: u64,
}

impl Kept {
    /// Drops all columns, because something other than a node changed.
    pub fn clear(&mut self) {
        *self = Kept::default();
    }

    /// Drops the answers of some plugins.
    pub fn forget(&mut self, plugins: &[Symbol]) {
        self.entries.retain(|key, _| !plugins.contains(&key.plugin));
    }

    /// Logs that nodes changed, in a cluster of `nodes` nodes.
    pub fn note(&mut self, changed: &[NodeId], nodes: usize) {
        self.changed.extend_from_slice(changed);
        // A column that is this far behind is better computed again.
        if self.changed.len() > 4 * nodes + 4096 {
            let dropped = self.changed.len() / 2;
            self.changed.drain(..dropped);
            self.first += dropped as u64;
        }
    }

    /// Removes a column and returns it with the nodes for which it is out of date. `None` if there
    /// is none or it is too far behind.
    pub fn take(&mut self, key: &Key) -> Option<(KeptColumn, Vec<NodeId>)> {
        let entry = self.entries.swap_remove(key)?;
        let behind = usize::try_from(entry.as_of.checked_sub(self.first)?).ok()?;
        let mut stale = self.changed.get(behind..)?.to_vec();
        stale.sort_unstable();
        stale.dedup();
        Some((entry.column, stale))
    }

    /// Puts a column back as up to date.
    pub fn put(&mut self, key: Key, column: KeptColumn) {
        let as_of = self.first + self.changed.len() as u64;
        if self.entries.len() >= COLUMNS && !self.entries.contains_key(&key) {
            let oldest = self.entries.values().enumerate().min_by_key(|(_, entry)| entry.as_of);
            if let Some((at, _)) = oldest {
                self.entries.swap_remove_index(at);
            }
        }
        self.entries.insert(key, Entry { column, as_of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pod: &str) -> Key {
        let (profile, plugin) = ("default-scheduler".into(), "NodeName".into());
        Key { profile, plugin, point: ExtensionPoint::Filter, pod: pod.into() }
    }

    fn some() -> KeptColumn {
        KeptColumn::Verdicts(Answers::default())
    }

    #[test]
    fn a_column_hears_of_each_changed_node_once() {
        let mut kept = Kept::default();
        assert!(kept.take(&key("a")).is_none());
        kept.put(key("a"), some());
        kept.note(&[NodeId(3), NodeId(1), NodeId(3)], 10);
        let (column, stale) = kept.take(&key("a")).unwrap();
        assert_eq!(stale, [NodeId(1), NodeId(3)]);
        kept.put(key("a"), column);
        assert_eq!(kept.take(&key("a")).unwrap().1, []);
    }

    #[test]
    fn a_column_far_behind_is_forgotten() {
        let mut kept = Kept::default();
        kept.put(key("a"), some());
        kept.note(&vec![NodeId(0); 5000], 10);
        assert!(kept.take(&key("a")).is_none());
    }

    #[test]
    fn the_column_unused_for_longest_goes_first() {
        let mut kept = Kept::default();
        for i in 0..=COLUMNS {
            kept.put(key(&i.to_string()), some());
            kept.note(&[NodeId(0)], 10_000);
        }
        assert!(kept.take(&key("0")).is_none());
        assert!(kept.take(&key("1")).is_some());
    }

    #[test]
    fn refusals_are_counted() {
        let mut answers = Answers { column: Column::filled(VerdictId::PASS, 3), refused: 0 };
        let refusal = VerdictId(99);
        answers.set(NodeId(1), refusal);
        answers.set(NodeId(1), refusal);
        answers.set(NodeId(2), refusal);
        answers.set(NodeId(1), VerdictId::PASS);
        assert_eq!(answers.refused, 1);
    }
}
