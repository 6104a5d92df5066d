//! Topology domains: the domain of each node, and counts by domain.
//!
//! Upstream keeps counts in maps by label and value. Here the values of a label are numbered once
//! for as long as no node's labels change, so that looking up a node's count is two array reads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use fixedbitset::FixedBitSet;
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::node::NodeId;
use crate::snapshot::Snapshot;
use crate::snapshot::pod_index::ClassPods;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;

/// The slot of a node without the label.
const NONE: u32 = u32::MAX;

/// The values of one node label: the domains of a topology key.
#[derive(Debug, Default)]
pub struct TopologyColumn {
    domain_of: Vec<u32>,
    values: Vec<Name>,
    /// The slots that are in some domain.
    labelled: FixedBitSet,
    /// The nodes of each domain, once they were asked for.
    members: OnceLock<Vec<Vec<NodeId>>>,
}

impl TopologyColumn {
    fn new(key: Symbol, snapshot: &Snapshot) -> TopologyColumn {
        let mut column = TopologyColumn {
            domain_of: vec![NONE; snapshot.slots()],
            values: Vec::new(),
            labelled: FixedBitSet::with_capacity(snapshot.slots()),
            members: OnceLock::new(),
        };
        let mut known: HashMap<Name, u32> = HashMap::new();
        for node in snapshot.iter() {
            let Some(value) = node.label(key) else { continue };
            column.labelled.insert(node.id.index());
            column.domain_of[node.id.index()] = *known.entry(value).or_insert_with(|| {
                column.values.push(value);
                column.values.len() as u32 - 1
            });
        }
        column
    }

    /// The domain of the node in a slot, `None` if it lacks the label.
    pub fn domain(&self, node: NodeId) -> Option<usize> {
        let domain = self.domain_of.get(node.index()).copied().filter(|domain| *domain != NONE)?;
        Some(domain as usize)
    }

    /// The nodes in a domain, by slot.
    pub fn members(&self, domain: usize) -> &[NodeId] {
        let members = self.members.get_or_init(|| {
            let mut members = vec![Vec::new(); self.values.len()];
            for slot in self.labelled.ones() {
                members[self.domain_of[slot] as usize].push(NodeId(slot as u32));
            }
            members
        });
        members.get(domain).map_or(&[], Vec::as_slice)
    }

    /// For each of `nodes`, the value of its domain among `values`, one for each domain; `none`
    /// without the label.
    pub fn gather<'a, T: Copy>(
        &'a self,
        nodes: &'a [NodeId],
        values: &'a [T],
        none: T,
    ) -> impl Iterator<Item = T> + 'a {
        // The number of no domain is beyond the end of the values.
        let domain = |node: &NodeId| self.domain_of.get(node.index()).map_or(NONE, |at| *at);
        nodes.iter().map(move |node| values.get(domain(node) as usize).copied().unwrap_or(none))
    }

    /// As [`TopologyColumn::gather`], for all slots.
    pub fn by_slot<'a, T: Copy>(
        &'a self,
        values: &'a [T],
        none: T,
    ) -> impl Iterator<Item = T> + 'a {
        let value = move |domain: &u32| values.get(*domain as usize).copied().unwrap_or(none);
        self.domain_of.iter().map(value)
    }

    /// The slots of all nodes that have the label.
    pub fn labelled(&self) -> &FixedBitSet {
        &self.labelled
    }

    /// How many values the key has among the nodes.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether no node has the label.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The label's value in a domain.
    pub fn value(&self, domain: usize) -> Name {
        self.values.get(domain).copied().unwrap_or_default()
    }
}

/// Columns by topology key.
type Columns = Vec<(Symbol, Arc<TopologyColumn>)>;

/// The columns that were used since the labels of any node last changed.
#[derive(Clone, Default, Debug)]
pub struct TopologyColumns(Arc<Mutex<Columns>>);

impl TopologyColumns {
    /// The column of a key.
    pub(crate) fn get(&self, key: Symbol, snapshot: &Snapshot) -> Arc<TopologyColumn> {
        // A column is complete before it is added, so a poisoned lock is still valid.
        let mut columns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, column)) = columns.iter().find(|(other, _)| *other == key) {
            return column.clone();
        }
        let column = Arc::new(TopologyColumn::new(key, snapshot));
        columns.push((key, column.clone()));
        column
    }
}

/// The topology keys for which the pods of a class are kept by domain.
const SUMS: usize = 4;

/// How many pods of one class each domain has, for the topology keys that were asked about last;
/// they follow the pods.
#[derive(Default, Debug)]
pub(super) struct DomainSums(Mutex<Vec<(Arc<TopologyColumn>, Vec<i64>)>>);

impl Clone for DomainSums {
    fn clone(&self) -> DomainSums {
        DomainSums(Mutex::new(self.lock().clone()))
    }
}

impl DomainSums {
    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<TopologyColumn>, Vec<i64>)>> {
        // Sums are complete before they are added, so a poisoned lock is still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a change of the number of pods on a node.
    pub(super) fn add(&mut self, node: NodeId, change: i64) {
        let sums = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (column, sums) in sums {
            if let Some(domain) = column.domain(node) {
                sums[domain] += change;
            }
        }
    }

    /// Visits the domains that have pods, with their number; `nodes` are those of the class.
    pub(super) fn visit(
        &self,
        column: &Arc<TopologyColumn>,
        nodes: &[(NodeId, u32)],
        mut visit: impl FnMut(usize, i64),
    ) {
        let mut known = self.lock();
        let at = known.iter().position(|(other, _)| Arc::ptr_eq(other, column));
        let at = at.unwrap_or_else(|| {
            if known.len() == SUMS {
                known.remove(0);
            }
            let mut sums = vec![0; column.len()];
            for (node, number) in nodes {
                if let Some(domain) = column.domain(*node) {
                    sums[domain] += i64::from(*number);
                }
            }
            known.push((column.clone(), sums));
            known.len() - 1
        });
        let sums = known[at].1.iter().enumerate().filter(|(_, number)| **number != 0);
        sums.for_each(|(domain, number)| visit(domain, *number));
    }
}

/// Counts by domain. Preemption and nominated pods try changes on copies, node by node: a copy
/// shares the counts and holds only its own few changes.
#[derive(Clone, Default, Debug)]
pub struct DomainCounts {
    base: Arc<Vec<i64>>,
    changes: SmallVec<[(usize, i64); 4]>,
    non_zero: usize,
}

impl From<Vec<i64>> for DomainCounts {
    fn from(base: Vec<i64>) -> DomainCounts {
        let non_zero = base.iter().filter(|count| **count != 0).count();
        DomainCounts { base: Arc::new(base), changes: SmallVec::new(), non_zero }
    }
}

impl DomainCounts {
    /// No pods in any of so many domains.
    fn zero(domains: usize) -> DomainCounts {
        DomainCounts { base: Arc::new(vec![0; domains]), ..DomainCounts::default() }
    }

    /// The count of a domain.
    pub fn get(&self, domain: usize) -> i64 {
        let changed = self.changes.iter().find(|(other, _)| *other == domain);
        changed.map_or_else(|| self.base.get(domain).copied().unwrap_or(0), |(_, count)| *count)
    }

    /// The counts of all domains.
    pub fn values(&self) -> Cow<'_, [i64]> {
        if self.changes.is_empty() {
            return Cow::Borrowed(&self.base);
        }
        (0..self.base.len()).map(|domain| self.get(domain)).collect::<Vec<_>>().into()
    }

    /// Changes the count of a domain by `delta` and returns the new count.
    pub fn add(&mut self, domain: usize, delta: i64) -> i64 {
        let old = self.get(domain);
        let new = old + delta;
        match self.changes.iter_mut().find(|(other, _)| *other == domain) {
            Some(entry) => entry.1 = new,
            None => self.changes.push((domain, new)),
        }
        self.non_zero = self.non_zero + usize::from(new != 0) - usize::from(old != 0);
        new
    }

    /// Whether every count is 0.
    pub fn is_all_zero(&self) -> bool {
        self.non_zero == 0
    }
}

/// Counts for several topology keys.
#[derive(Clone, Default, Debug)]
pub struct KeyedCounts(SmallVec<[KeyCounts; 2]>);

/// The counts of one topology key.
#[derive(Clone, Debug)]
pub struct KeyCounts {
    /// The label of nodes whose values are the domains.
    pub key: Symbol,
    /// The domain of each node, by slot.
    pub column: Arc<TopologyColumn>,
    /// The count of each domain.
    pub counts: DomainCounts,
}

impl KeyedCounts {
    /// The counts of a key, created if there are none yet.
    pub fn of_key(&mut self, key: Symbol, snapshot: &Snapshot) -> &mut KeyCounts {
        let at = self.0.iter().position(|counts| counts.key == key).unwrap_or_else(|| {
            let column = snapshot.topology(key);
            let counts = DomainCounts::zero(column.len());
            self.0.push(KeyCounts { key, column, counts });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// The counts of a key, if there are any.
    pub fn find(&self, key: Symbol) -> Option<&KeyCounts> {
        self.0.iter().find(|counts| counts.key == key)
    }

    /// The counts of every key.
    pub fn iter(&self) -> impl Iterator<Item = &KeyCounts> {
        self.0.iter()
    }

    /// Whether every count is 0.
    pub fn is_all_zero(&self) -> bool {
        self.0.iter().all(|counts| counts.counts.is_all_zero())
    }
}

impl KeyCounts {
    /// The count in the node's domain; `None` if it lacks the label.
    pub fn at(&self, node: NodeId) -> Option<i64> {
        Some(self.counts.get(self.column.domain(node)?))
    }

    /// Changes the count in the node's domain. Nodes without the label do not count.
    pub fn add(&mut self, node: NodeId, delta: i64) {
        if let Some(domain) = self.column.domain(node) {
            self.counts.add(domain, delta);
        }
    }

    /// Counts all pods of a class on their nodes.
    pub fn add_class(&mut self, pods: &ClassPods) {
        let mut counts = std::mem::take(&mut self.counts);
        let base = Arc::make_mut(&mut counts.base);
        pods.by_domain(&self.column, |domain, number| {
            counts.non_zero += usize::from(base[domain] == 0);
            base[domain] += number;
        });
        self.counts = counts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Cluster, NodeBuilder, PodBuilder, node, pod};

    fn cluster() -> Cluster {
        let nodes = [
            node("a1").label("zone", "a"),
            node("b1").label("zone", "b"),
            node("bare"),
            node("a2").label("zone", "a"),
        ];
        let pods = ["a1", "a2", "bare", "b1", "a1"].into_iter().enumerate();
        Cluster::new(nodes, pods.map(|(i, node)| pod(&format!("p{i}")).on(node)))
    }

    #[test]
    fn domains_are_numbered_in_node_order() {
        let cluster = cluster();
        let column = cluster.snapshot.topology("zone".into());
        let domains: Vec<_> = (0..5).map(|slot| column.domain(NodeId(slot))).collect();
        assert_eq!(domains, [Some(0), Some(1), None, Some(0), None]);
        assert_eq!(column.labelled().ones().collect::<Vec<_>>(), [0, 1, 3]);
        assert_eq!((column.value(0), column.value(1), column.len()), ("a".into(), "b".into(), 2));
        assert!(Arc::ptr_eq(&column, &cluster.snapshot.topology("zone".into())));
        let members = [0, 1, 2].map(|domain| column.members(domain).to_vec());
        assert_eq!(members, [vec![NodeId(0), NodeId(3)], vec![NodeId(1)], vec![]]);
        let by_slot: Vec<i64> = column.by_slot(&[7, 8], -1).collect();
        assert_eq!(by_slot, [7, 8, -1, 7]);
        let nodes = [NodeId(3), NodeId(2), NodeId(9)];
        assert_eq!(column.gather(&nodes, &[7, 8], -1).collect::<Vec<_>>(), [7, -1, -1]);
        assert!(cluster.snapshot.topology("rack".into()).is_empty());
    }

    #[test]
    fn changed_labels_number_the_domains_again() {
        let mut cluster = cluster();
        let before = cluster.snapshot.topology("zone".into());
        let same = cluster.snapshot.get(NodeId(1)).cloned();
        cluster.snapshot.set_node(NodeId(1), same);
        assert!(Arc::ptr_eq(&before, &cluster.snapshot.topology("zone".into())));
        let mut moved = (**cluster.snapshot.get(NodeId(1)).unwrap()).clone();
        moved.set_node(Arc::new(node("b1").label("zone", "a")));
        cluster.snapshot.set_node(NodeId(1), Some(Arc::new(moved)));
        assert_eq!(cluster.snapshot.topology("zone".into()).len(), 1);
    }

    #[test]
    fn a_copy_keeps_its_changes_to_itself() {
        let original: DomainCounts = vec![5, 0].into();
        let mut copy = original.clone();
        assert_eq!(copy.add(0, -5), 0);
        assert_eq!((original.get(0), copy.get(0)), (5, 0));
        assert!(copy.is_all_zero() && !original.is_all_zero());
        assert_eq!(copy.add(1, 2), 2);
        assert!(!copy.is_all_zero());
    }

    #[test]
    fn classes_are_counted_where_their_pods_are() {
        let cluster = cluster();
        let mut counts = KeyedCounts::default();
        for pods in cluster.snapshot.pods().classes() {
            counts.of_key("zone".into(), &cluster.snapshot).add_class(pods);
        }
        let zones = counts.find("zone".into()).unwrap();
        assert_eq!(
            (zones.at(NodeId(3)), zones.at(NodeId(1)), zones.at(NodeId(2))),
            (Some(3), Some(1), None)
        );
        let zones = counts.of_key("zone".into(), &cluster.snapshot);
        [0, 0, 3].into_iter().for_each(|slot| zones.add(NodeId(slot), -1));
        assert!(!counts.is_all_zero());
        counts.of_key("zone".into(), &cluster.snapshot).add(NodeId(1), -1);
        assert!(counts.is_all_zero());
    }
}
