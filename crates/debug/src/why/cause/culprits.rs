//! The pods in a topology domain that cause a rejection: found once for all nodes and by class, so
//! that the cost depends on the number of pod classes.

use std::sync::Arc;

use hashbrown::HashMap;
use serde::Serialize;

use super::RejectedCase;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::pod::class::PodClass;
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::topology::TopologyColumn;

/// The most pods that are listed by name.
const NAMED: usize = 3;

/// A pod that causes the rejection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingPod {
    /// Namespace and name of the pod.
    pub pod: NamespacedName,
    /// Name of its node.
    pub node: Name,
}

/// The pods that cause the rejection.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockingPods {
    /// The number of pods, those not in `first` included.
    pub count: usize,
    /// At most three of them, by namespace and name.
    pub first: Vec<BlockingPod>,
}

impl BlockingPods {
    /// The first one and how many more.
    pub fn text(&self) -> String {
        let Some(first) = self.first.first() else { return "a pod".to_owned() };
        let more = match self.count {
            0 | 1 => String::new(),
            2 => " and another pod".to_owned(),
            count => format!(" and {} other pods", count - 1),
        };
        format!("{} on {}{more}", first.pod, first.node)
    }
}

/// Culprits by the index of their domain.
pub(super) struct ByDomain {
    column: Arc<TopologyColumn>,
    domains: HashMap<usize, BlockingPods>,
}

impl ByDomain {
    /// The pods of the classes that `matches`, by domains of `key`.
    pub fn of(snapshot: &Snapshot, key: Symbol, matches: impl Fn(&PodClass) -> bool) -> ByDomain {
        let column = snapshot.topology(key);
        let mut by_domain = ByDomain { column, domains: HashMap::new() };
        for pods in snapshot.pods().classes().filter(|pods| matches(&pods.class)) {
            for (node, number) in pods.nodes.iter() {
                let Some(domain) = by_domain.column.domain(*node) else { continue };
                let known = by_domain.domains.entry(domain).or_default();
                known.count += *number as usize;
                let Some(node) = snapshot.get(*node) else { continue };
                name_some(known, node, &pods.class);
            }
        }
        // Classes are not sorted.
        for known in by_domain.domains.values_mut() {
            known.first.sort_by_key(|culprit| (culprit.pod, culprit.node));
        }
        by_domain
    }

    /// The pods in the node's domain, and the pods nominated to the node, which `case` counts in
    /// addition to the snapshot.
    pub fn at(&self, case: &RejectedCase<'_>, matches: impl Fn(&PodClass) -> bool) -> BlockingPods {
        let domain = self.column.domain(case.plain.id);
        let mut culprits =
            domain.and_then(|domain| self.domains.get(&domain)).cloned().unwrap_or_default();
        if std::ptr::eq(case.node, case.plain) {
            return culprits;
        }
        let is_new =
            |pod: &&Arc<PodInfo>| !case.plain.pods.iter().any(|there| there.uid() == pod.uid());
        for pod in case.node.pods.iter().filter(is_new).filter(|pod| matches(&pod.class)) {
            culprits.count += 1;
            culprits.first.push(BlockingPod { pod: pod.key(), node: case.plain.name });
        }
        culprits
    }
}

fn name_some(known: &mut BlockingPods, node: &NodeInfo, class: &Arc<PodClass>) {
    let free = NAMED.saturating_sub(known.first.len());
    let of_class = node.pods.iter().filter(|pod| Arc::ptr_eq(&pod.class, class)).take(free);
    known.first.extend(of_class.map(|pod| BlockingPod { pod: pod.key(), node: node.name }));
}
