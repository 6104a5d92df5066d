//! Answers that are kept from cycle to cycle, because each depends on one node alone: they are
//! computed again only for the nodes that changed.
//!
//! A plugin names what it looks at in a pod (its key); all pods with the same key share its
//! answers. So the cost of a cycle follows the change, not the size of the cluster.

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

use super::nominated::NominatedVerdicts;
use super::raw_scores::RawScores;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::node::NodeId;
use kubestep_framework::preemption::kept::KeptDryRuns;
use kubestep_framework::record::VerdictId;
use kubestep_framework::record::column::Column;

/// The most columns that are kept, and about how much memory they may take, in bytes; the least
/// recently used one is dropped first.
const COLUMNS: usize = 4096;
const BYTES: usize = 256 << 20;
/// Columns that are kept whatever their size.
const FEWEST: usize = 64;

/// The key of a column: profile, plugin (empty if the column depends on all of them), extension
/// point, and what the plugin looks at in a pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AnswerKey {
    pub profile: Symbol,
    pub plugin: Symbol,
    pub point: ExtensionPoint,
    pub pod: String,
}

/// The verdicts of a filter plugin by slot, and how many of them reject the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterAnswers {
    pub column: Column<VerdictId>,
    pub rejected: usize,
}

impl FilterAnswers {
    /// Writes the verdict about one node.
    pub fn set(&mut self, node: NodeId, verdict: VerdictId) {
        let before = self.column.get(node).is_some_and(VerdictId::is_status);
        self.column.set(node, verdict);
        self.rejected = self.rejected + usize::from(verdict.is_status()) - usize::from(before);
    }
}

/// A column in the cache.
#[derive(Clone, Debug)]
pub(crate) enum CachedColumn {
    /// Of a filter plugin.
    Verdicts(FilterAnswers),
    /// Of all filter plugins, with nominated pods counted in.
    WithNominated(Box<NominatedVerdicts>),
    /// Of the dry runs of preemption.
    DryRuns(KeptDryRuns),
    /// Of a score plugin.
    Scores(RawScores),
}

impl CachedColumn {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        match self {
            CachedColumn::Verdicts(answers) => answers.column.len() * size_of::<VerdictId>(),
            CachedColumn::WithNominated(kept) => kept.bytes(),
            CachedColumn::DryRuns(kept) => kept.bytes(),
            CachedColumn::Scores(scores) => scores.bytes(),
        }
    }
}

#[derive(Clone, Debug)]
struct CachedAnswer {
    column: CachedColumn,
    /// The number of the first change that it does not reflect.
    as_of: u64,
}

/// The columns, and the log of changed nodes that brings them up to date.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerCache {
    entries: IndexMap<AnswerKey, CachedAnswer, DefaultHashBuilder>,
    /// Nodes in the order they changed; `first` is the number of the first entry.
    changed: Vec<NodeId>,
    first: u64,
    /// How many columns were dropped.
    dropped: u64,
}

impl AnswerCache {
    /// Forgets everything, because something other than a node changed.
    pub fn clear(&mut self) {
        // Numbers are not reused: a reader of the changes must not take new columns for old ones.
        let (first, dropped) = (self.changes(), self.dropped + 1);
        *self = AnswerCache { first, dropped, ..AnswerCache::default() };
    }

    /// Forgets the answers of these plugins.
    pub fn forget(&mut self, plugins: &[Symbol]) {
        let depends = |on: Symbol| on.is_empty() || plugins.contains(&on);
        self.entries.retain(|key, _| !depends(key.plugin));
        self.dropped += 1;
    }

    /// Logs that nodes changed, in a cluster of `nodes` nodes.
    pub fn note(&mut self, changed: &[NodeId], nodes: usize) {
        self.changed.extend_from_slice(changed);
        // A column that is so far behind is cheaper to compute again.
        if self.changed.len() > 4 * nodes + 4096 {
            let dropped = self.changed.len() / 2;
            self.changed.drain(..dropped);
            self.first += dropped as u64;
        }
    }

    /// A number that changes whenever columns are dropped: one with the same key may be a new one.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of the next change.
    pub fn changes(&self) -> u64 {
        self.first + self.changed.len() as u64
    }

    /// The nodes that changed since there were so many changes, each once. `None` if that is too
    /// far behind.
    pub fn changed_since(&self, changes: u64) -> Option<Vec<NodeId>> {
        let behind = usize::try_from(changes.checked_sub(self.first)?).ok()?;
        let mut changed = self.changed.get(behind..)?.to_vec();
        changed.sort_unstable();
        changed.dedup();
        Some(changed)
    }

    /// Takes a column out, with the nodes for which it is stale. `None` if there is none or it
    /// is too far behind.
    pub fn take(&mut self, key: &AnswerKey) -> Option<(CachedColumn, Vec<NodeId>)> {
        let entry = self.entries.swap_remove(key)?;
        let Some(stale) = self.changed_since(entry.as_of) else {
            self.dropped += 1;
            return None;
        };
        Some((entry.column, stale))
    }

    /// Puts a column back as up to date.
    pub fn put(&mut self, key: AnswerKey, column: CachedColumn) {
        let as_of = self.changes();
        let most = (BYTES / column.bytes().max(1)).clamp(FEWEST, COLUMNS);
        if self.entries.len() >= most && !self.entries.contains_key(&key) {
            let oldest = self.entries.values().enumerate().min_by_key(|(_, entry)| entry.as_of);
            if let Some((at, _)) = oldest {
                self.entries.swap_remove_index(at);
                self.dropped += 1;
            }
        }
        self.entries.insert(key, CachedAnswer { column, as_of });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(pod: &str) -> AnswerKey {
        let (profile, plugin) = ("default-scheduler".into(), "NodeName".into());
        AnswerKey { profile, plugin, point: ExtensionPoint::Filter, pod: pod.into() }
    }

    fn some() -> CachedColumn {
        CachedColumn::Verdicts(FilterAnswers::default())
    }

    #[test]
    fn a_column_hears_of_each_changed_node_once() {
        let mut cache = AnswerCache::default();
        assert!(cache.take(&key("a")).is_none());
        cache.put(key("a"), some());
        cache.note(&[NodeId(3), NodeId(1), NodeId(3)], 10);
        let (column, stale) = cache.take(&key("a")).unwrap();
        assert_eq!(stale, [NodeId(1), NodeId(3)]);
        cache.put(key("a"), column);
        assert_eq!(cache.take(&key("a")).unwrap().1, []);
    }

    #[test]
    fn a_column_far_behind_is_forgotten() {
        let mut cache = AnswerCache::default();
        cache.put(key("a"), some());
        cache.note(&vec![NodeId(0); 5000], 10);
        assert!(cache.take(&key("a")).is_none());
    }

    #[test]
    fn the_column_unused_for_longest_goes_first() {
        let mut cache = AnswerCache::default();
        for i in 0..=COLUMNS {
            cache.put(key(&i.to_string()), some());
            cache.note(&[NodeId(0)], 10_000);
        }
        assert!(cache.take(&key("0")).is_none());
        assert!(cache.take(&key("1")).is_some());
    }

    #[test]
    fn rejections_are_counted() {
        let mut answers = FilterAnswers { column: Column::filled(VerdictId::PASS, 3), rejected: 0 };
        let rejection = VerdictId(99);
        answers.set(NodeId(1), rejection);
        answers.set(NodeId(1), rejection);
        answers.set(NodeId(2), rejection);
        answers.set(NodeId(1), VerdictId::PASS);
        assert_eq!(answers.rejected, 1);
    }
}
