//! The nodes that the pods of each class are on, for plugins that count pods over the whole
//! cluster.
//!
//! It is updated with the snapshot, change by change. The cost of counting depends on the number of
//! classes and of nodes with such pods, not on the number of pods.

use std::sync::Arc;

use hashbrown::DefaultHashBuilder;
use indexmap::IndexMap;

use crate::node::{NodeId, NodeInfo, PodList};
use crate::pod::class::PodClass;
use crate::snapshot::topology::{DomainSums, TopologyColumn};

/// The pods of one class by node.
#[derive(Clone, Debug)]
pub struct ClassPods {
    /// What the pods have in common.
    pub class: Arc<PodClass>,
    /// Nodes with the number of the class's pods on each, by slot; never 0.
    pub nodes: Arc<Vec<(NodeId, u32)>>,
    sums: DomainSums,
}

impl ClassPods {
    /// Visits the domains of a topology key that have such pods, with their number. A domain may
    /// come several times.
    pub fn by_domain(&self, column: &Arc<TopologyColumn>, mut visit: impl FnMut(usize, i64)) {
        if column.len() < self.nodes.len() / 2 {
            return self.sums.visit(column, &self.nodes, visit);
        }
        // With so many domains there is nothing to sum up.
        for (node, number) in self.nodes.iter() {
            if let Some(domain) = column.domain(*node) {
                visit(domain, i64::from(*number));
            }
        }
    }
}

/// Classes by the address of their shared part, in no particular order.
type Classes = Arc<IndexMap<usize, ClassPods, DefaultHashBuilder>>;

/// Which of the lists of pods with terms a node belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Listed {
    /// The list of pods with any terms.
    pub with_affinity: bool,
    /// The list of pods with required anti-affinity terms.
    pub with_required_anti_affinity: bool,
}

impl Listed {
    /// In both lists of nodes.
    pub const BOTH: Listed = Listed { with_affinity: true, with_required_anti_affinity: true };

    /// The lists to which the pods of a node make it belong.
    pub fn of(node: &NodeInfo) -> Listed {
        Listed {
            with_affinity: !node.pods_with_affinity.is_empty(),
            with_required_anti_affinity: !node.pods_with_required_anti_affinity.is_empty(),
        }
    }
}

/// The classes of all pods on nodes.
#[derive(Clone, Default, Debug)]
pub struct PodIndex {
    all: Classes,
    with_affinity: Classes,
    with_required_anti_affinity: Classes,
}

impl PodIndex {
    /// The index of these nodes.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a NodeInfo>) -> PodIndex {
        let mut index = PodIndex::default();
        nodes.into_iter().for_each(|node| index.replace(None, Some(node), Listed::BOTH));
        index
    }

    /// All classes. The order has no meaning.
    pub fn classes(&self) -> impl Iterator<Item = &ClassPods> {
        self.all.values()
    }

    /// Those with any affinity terms.
    pub fn with_affinity(&self) -> impl Iterator<Item = &ClassPods> {
        self.with_affinity.values()
    }

    /// Those with required anti-affinity terms.
    pub fn with_required_anti_affinity(&self) -> impl Iterator<Item = &ClassPods> {
        self.with_required_anti_affinity.values()
    }

    /// Replaces a node's former state; `None` is a node that does not exist.
    pub fn replace(&mut self, before: Option<&NodeInfo>, after: Option<&NodeInfo>, listed: Listed) {
        let Some(node) = before.or(after).map(|node| node.id) else { return };
        let none = PodList::default();
        let [old, new] = [before, after].map(|node| node.map_or(&none, |node| &node.pods));
        for (old, new) in old.differences(new) {
            let classes = (old.map(|pod| &pod.class), new.map(|pod| &pod.class));
            if matches!(classes, (Some(old), Some(new)) if Arc::ptr_eq(old, new)) {
                continue;
            }
            classes.0.into_iter().for_each(|class| self.count(node, class, -1, listed));
            classes.1.into_iter().for_each(|class| self.count(node, class, 1, listed));
        }
    }

    fn count(&mut self, node: NodeId, class: &Arc<PodClass>, change: i32, listed: Listed) {
        count_in(&mut self.all, node, class, change);
        if listed.with_affinity && !class.terms.is_empty() {
            count_in(&mut self.with_affinity, node, class, change);
        }
        let repels = !class.terms.required_anti_affinity.is_empty();
        if listed.with_required_anti_affinity && repels {
            count_in(&mut self.with_required_anti_affinity, node, class, change);
        }
    }
}

fn count_in(classes: &mut Classes, node: NodeId, class: &Arc<PodClass>, change: i32) {
    let address = Arc::as_ptr(class).addr();
    let classes = Arc::make_mut(classes);
    let pods = classes.entry(address).or_insert_with(|| ClassPods {
        class: class.clone(),
        nodes: Arc::default(),
        sums: DomainSums::default(),
    });
    pods.sums.add(node, change.into());
    let nodes = Arc::make_mut(&mut pods.nodes);
    match nodes.binary_search_by_key(&node, |(id, _)| *id) {
        Ok(at) => {
            nodes[at].1 = nodes[at].1.saturating_add_signed(change);
            if nodes[at].1 == 0 {
                nodes.remove(at);
            }
        }
        Err(at) if change > 0 => nodes.insert(at, (node, change.unsigned_abs())),
        Err(_) => {}
    }
    if nodes.is_empty() {
        classes.swap_remove(&address);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pod::PodInfo;
    use crate::snapshot::Snapshot;
    use crate::testing::{self, Cluster, NodeBuilder, PodBuilder, info, pod};

    fn node(slot: u32, pods: &[Arc<PodInfo>]) -> NodeInfo {
        let mut node = NodeInfo::new(NodeId(slot), "n".into());
        pods.iter().for_each(|pod| node.add_pod(pod.clone()));
        node
    }

    fn found(index: &PodIndex, app: &str) -> Vec<(u32, u32)> {
        let mut classes = index.classes();
        let class = classes.find(|pods| pods.class.labels.get_str("app") == Some(&app.into()));
        class.map_or(Vec::new(), |pods| pods.nodes.iter().map(|(id, n)| (id.0, *n)).collect())
    }

    #[test]
    fn pods_are_counted_by_class_and_node() {
        let web = |name: &str| info(pod(name).label("app", "web"));
        let db = info(pod("db").label("app", "db"));
        let first = node(0, &[web("a"), db.clone(), web("b")]);
        let second = node(1, &[web("c")]);
        let mut index = PodIndex::of([&first, &second]);
        assert_eq!(found(&index, "web"), [(0, 2), (1, 1)]);
        assert_eq!(found(&index, "db"), [(0, 1)]);
        let changed = node(0, &[web("a"), web("b")]);
        index.replace(Some(&first), Some(&changed), Listed::BOTH);
        assert_eq!(found(&index, "web"), [(0, 2), (1, 1)]);
        assert_eq!(index.classes().count(), 1);
        index.replace(Some(&changed), None, Listed::BOTH);
        assert_eq!(found(&index, "web"), [(1, 1)]);
    }

    #[test]
    fn pods_by_domain_follow_the_pods() {
        let zone = |slot: u32| if slot < 4 { "a" } else { "b" };
        let nodes = (0..6).map(|slot| testing::node(&format!("n{slot}")).label("zone", zone(slot)));
        let pods = (0..6).map(|slot| pod(&format!("p{slot}")).on(&format!("n{slot}")));
        let mut cluster = Cluster::new(nodes, pods);
        let by_zone = |snapshot: &Snapshot| {
            let (column, mut sums) = (snapshot.topology("zone".into()), [0; 2]);
            let pods = snapshot.pods().classes().next().unwrap();
            pods.by_domain(&column, |domain, number| sums[domain] += number);
            sums
        };
        assert_eq!(by_zone(&cluster.snapshot), [4, 2]);
        let copy = cluster.snapshot.clone();
        cluster.snapshot.change_node("n5".into(), |node| node.add_pod(info(pod("q").on("n5"))));
        assert_eq!((by_zone(&cluster.snapshot), by_zone(&copy)), ([4, 3], [4, 2]));
        let mut moved = (**cluster.snapshot.get(NodeId(0)).unwrap()).clone();
        moved.set_node(Arc::new(testing::node("n0").label("zone", "b")));
        cluster.snapshot.set_node(NodeId(0), Some(Arc::new(moved)));
        assert_eq!(by_zone(&cluster.snapshot), [4, 3], "zone b is the first domain now");
    }

    #[test]
    fn classes_with_terms_are_kept_apart() {
        let term = json!([{"labelSelector": {}, "topologyKey": "zone"}]);
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
        let away = pod("a").spec(json!({"affinity": {"podAntiAffinity": required}}));
        let near = pod("b").spec(json!({"affinity": {"podAffinity": required}}));
        let index = PodIndex::of([&node(0, &[info(away), info(near), info(pod("c"))])]);
        assert_eq!(index.classes().count(), 3);
        assert_eq!(index.with_affinity().count(), 2);
        assert_eq!(index.with_required_anti_affinity().count(), 1);
    }
}
