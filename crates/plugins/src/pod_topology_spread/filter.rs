//! Hard constraints: counts of pods by domain, computed once per cycle.

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::snapshot::pod_index::ClassPods;
use kubestep_framework::snapshot::topology::{DomainCounts, TopologyColumn};
use kubestep_framework::status::{DistinctStatuses, Status};

use super::constraint::{Constraints, SpreadConstraint};
use super::critical_paths::CriticalPaths;

/// The two rejections, built once. A missing label is unresolvable, the skew is not.
pub struct SpreadRejections {
    skew: Status,
    no_label: Status,
}

/// Why a constraint rejects a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpreadReason {
    /// The node lacks the topology label.
    NoLabel,
    /// One more pod in the node's domain would exceed the skew.
    Skew,
}

impl SpreadRejections {
    /// The rejection for a reason.
    pub fn of(&self, reason: SpreadReason) -> &Status {
        match reason {
            SpreadReason::NoLabel => &self.no_label,
            SpreadReason::Skew => &self.skew,
        }
    }

    /// The rejections with the plugin's name.
    pub fn new(plugin: Symbol) -> SpreadRejections {
        let skew = "node(s) didn't match pod topology spread constraints";
        let no_label = format!("{skew} (missing required label)");
        SpreadRejections {
            skew: Status::unschedulable(skew).by(plugin),
            no_label: Status::unresolvable(&no_label).by(plugin),
        }
    }
}

/// The counts of one constraint.
#[derive(Clone, Debug)]
struct Spread {
    key: Symbol,
    column: Arc<TopologyColumn>,
    pods: DomainCounts,
    /// The number of domains with an eligible node.
    domains: i64,
    critical: CriticalPaths,
    /// 1 if the constraint's selector matches the pod itself.
    own: i64,
}

impl Spread {
    /// Counts over the whole snapshot. Every domain with an eligible node is included, even if it
    /// has no pods.
    fn new(cx: &CycleContext<'_>, constraint: &SpreadConstraint, eligible: &FixedBitSet) -> Spread {
        let column = cx.snapshot.topology(constraint.key);
        let mut counts = vec![0; column.len()];
        constraint.add_counts(cx, &column, eligible, &mut counts);
        Spread::of(cx, constraint, eligible, counts)
    }

    /// As [`Spread::new`], with the counts of the domains.
    fn of(
        cx: &CycleContext<'_>,
        constraint: &SpreadConstraint,
        eligible: &FixedBitSet,
        counts: Vec<i64>,
    ) -> Spread {
        let column = cx.snapshot.topology(constraint.key);
        let mut known = FixedBitSet::with_capacity(column.len());
        let domain = |slot: usize| column.domain(NodeId(slot as u32));
        match eligible.is_superset(column.labelled()) {
            true => known.insert_range(..),
            false => {
                eligible.ones().filter_map(domain).for_each(|domain| known.insert(domain));
            }
        }
        let metadata = &cx.pod.pod.metadata;
        let mut critical = CriticalPaths::default();
        known.ones().for_each(|domain| critical.update(column.value(domain), counts[domain]));
        Spread {
            key: constraint.key,
            pods: counts.into(),
            domains: known.count_ones(..) as i64,
            critical,
            own: i64::from(constraint.selector.matches(&metadata.labels)),
            column,
        }
    }

    /// Adds to the count of the node's domain.
    fn count(&mut self, node: NodeId, sign: i64) {
        if let Some(domain) = self.column.domain(node) {
            let count = self.pods.add(domain, sign);
            self.critical.update(self.column.value(domain), count);
        }
    }

    /// Why the constraint rejects a node, if it does. `most` is from [`Spread::most`].
    fn rejects(&self, most: i64, node: NodeId) -> Option<SpreadReason> {
        match self.column.domain(node) {
            None => Some(SpreadReason::NoLabel),
            Some(domain) => (self.pods.get(domain) > most).then_some(SpreadReason::Skew),
        }
    }

    /// The highest count with which a domain can take one more pod. With fewer domains than
    /// `minDomains`, upstream uses 0 as the minimum count.
    fn most(&self, constraint: &SpreadConstraint) -> i64 {
        let too_few = self.domains < constraint.min_domains;
        let least = if too_few { 0 } else { self.critical.least() };
        constraint.max_skew - self.own + least
    }
}

impl SpreadConstraint {
    /// Adds the pods that the constraint counts on eligible nodes to the counts of their domains.
    fn add_counts(
        &self,
        cx: &CycleContext<'_>,
        column: &Arc<TopologyColumn>,
        eligible: &FixedBitSet,
        counts: &mut [i64],
    ) {
        let namespace = cx.pod.pod.metadata.namespace;
        let classes = cx.snapshot.pods().classes();
        let counting = classes.filter(|pods| self.counts(&pods.class, namespace));
        match eligible.is_superset(column.labelled()) {
            true => counting.for_each(|pods| {
                pods.by_domain(column, |domain, number| counts[domain] += number);
            }),
            false => counting.for_each(|pods| add_pods(counts, pods, column, eligible)),
        }
    }
}

/// The counts up to 1.32: constraints with the same topology key share them, and on each node the
/// last constraint that includes it counts.
fn shared_spreads(
    cx: &CycleContext<'_>,
    constraints: &Constraints,
    nodes: &FixedBitSet,
) -> Vec<Spread> {
    let shared = |constraint: &SpreadConstraint| {
        let column = cx.snapshot.topology(constraint.key);
        let mut counts = vec![0; column.len()];
        let mut eligible = FixedBitSet::with_capacity(nodes.len());
        for other in constraints.list.iter().rev().filter(|other| other.key == constraint.key) {
            let included = constraints.included(other, cx, nodes);
            let mut left = included.clone();
            left.difference_with(&eligible);
            other.add_counts(cx, &column, &left, &mut counts);
            eligible.union_with(&included);
        }
        Spread::of(cx, constraint, &eligible, counts)
    };
    constraints.list.iter().map(shared).collect()
}

/// Adds the pods of a class on eligible nodes to the counts of their domains.
pub(crate) fn add_pods(
    counts: &mut [i64],
    pods: &ClassPods,
    column: &TopologyColumn,
    eligible: &FixedBitSet,
) {
    for (node, number) in pods.nodes.iter() {
        if eligible.contains(node.index())
            && let Some(domain) = column.domain(*node)
        {
            counts[domain] += i64::from(*number);
        }
    }
}

/// The nodes that have all topology keys, by slot.
pub(crate) fn with_all_keys(cx: &CycleContext<'_>, constraints: &Constraints) -> FixedBitSet {
    let mut nodes = FixedBitSet::with_capacity(cx.snapshot.slots());
    let mut columns = constraints.list.iter().map(|one| cx.snapshot.topology(one.key));
    match columns.next() {
        Some(first) => nodes.union_with(first.labelled()),
        None => cx.snapshot.order().iter().for_each(|id| nodes.insert(id.index())),
    }
    columns.for_each(|column| nodes.intersect_with(column.labelled()));
    nodes
}

/// The counts of a constraint over all domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// The minimum count; 0 if there are fewer domains than `minDomains`.
    pub least: i64,
    /// The number of domains.
    pub domains: i64,
    /// Whether these are fewer than the constraint's `minDomains`.
    pub too_few: bool,
    /// 1 if the constraint's selector matches the pod itself.
    pub own: i64,
}

/// The counts of one cycle.
#[derive(Clone, Debug)]
pub struct SpreadFilterState {
    constraints: Arc<Constraints>,
    spreads: Vec<Spread>,
    /// Whether constraints with the same topology key share their counts.
    shared: bool,
}

impl SpreadFilterState {
    /// Counts for every constraint.
    pub fn new(cx: &CycleContext<'_>, constraints: Constraints) -> SpreadFilterState {
        let nodes = with_all_keys(cx, &constraints);
        let shared = !cx.features.has(Switch::SpreadCountsByConstraint);
        let spread = |constraint: &SpreadConstraint| {
            Spread::new(cx, constraint, &constraints.included(constraint, cx, &nodes))
        };
        let spreads = match shared {
            true => shared_spreads(cx, &constraints, &nodes),
            false => constraints.list.iter().map(spread).collect(),
        };
        SpreadFilterState { constraints: Arc::new(constraints), spreads, shared }
    }

    /// The hard constraints of the pod.
    pub fn constraints(&self) -> &Constraints {
        &self.constraints
    }

    /// The counts of a constraint, by its index.
    pub fn tally(&self, at: usize) -> Option<Tally> {
        let (constraint, spread) = (self.constraints.list.get(at)?, self.spreads.get(at)?);
        let too_few = spread.domains < constraint.min_domains;
        Some(Tally {
            least: if too_few { 0 } else { spread.critical.least() },
            domains: spread.domains,
            too_few,
            own: spread.own,
        })
    }

    /// The count of the node's domain for a constraint; `None` without a domain.
    pub fn count_at(&self, at: usize, node: NodeId) -> Option<i64> {
        let spread = self.spreads.get(at)?;
        Some(spread.pods.get(spread.column.domain(node)?))
    }

    /// The nodes on which a constraint counts pods.
    pub fn counted_nodes(&self, cx: &CycleContext<'_>, at: usize) -> FixedBitSet {
        let nodes = with_all_keys(cx, &self.constraints);
        match self.constraints.list.get(at) {
            Some(constraint) => self.constraints.included(constraint, cx, &nodes),
            None => nodes,
        }
    }

    /// Every constraint that rejects a node, by its place in the list. The first decides the status.
    pub fn reasons(&self, node: NodeId) -> impl Iterator<Item = (usize, SpreadReason)> {
        let pairs = self.constraints.list.iter().zip(&self.spreads).enumerate();
        pairs.filter_map(move |(at, (constraint, spread))| {
            Some((at, spread.rejects(spread.most(constraint), node)?))
        })
    }

    /// The status of one node.
    pub fn filter(&self, node: NodeId, rejections: &SpreadRejections) -> Status {
        let first = self.reasons(node).next();
        first.map_or(Status::SUCCESS, |(_, reason)| rejections.of(reason).clone())
    }

    /// The statuses of all nodes: the first constraint that is not satisfied decides.
    pub fn filter_all(&self, slots: usize, rejections: &SpreadRejections) -> DistinctStatuses {
        const PASSES: u16 = 0;
        const SKEW: u16 = 1;
        const NO_LABEL: u16 = 2;
        let mut by_slot = vec![PASSES; slots];
        for (constraint, spread) in self.constraints.list.iter().zip(&self.spreads) {
            let most = spread.most(constraint);
            let status = |pods: &i64| if *pods > most { SKEW } else { PASSES };
            let by_domain: Vec<u16> = spread.pods.values().iter().map(status).collect();
            let statuses = spread.column.by_slot(&by_domain, NO_LABEL);
            for (first, status) in by_slot.iter_mut().zip(statuses) {
                *first = if *first == PASSES { status } else { *first };
            }
        }
        let SpreadRejections { skew, no_label } = rejections;
        let statuses = vec![Status::SUCCESS, skew.clone(), no_label.clone()];
        DistinctStatuses { statuses, by_slot }
    }

    /// AddPod and RemovePod: adds `other` to the counts, or removes it. As upstream, and unlike in
    /// the initial counts, terminating pods are counted, and an empty selector matches all pods.
    pub(crate) fn count_pod(&mut self, pod: &PodInfo, other: &PodInfo, info: &NodeInfo, sign: i64) {
        let (own, other) = (&pod.pod.metadata, &other.pod.metadata);
        let Some(node) = &info.node else { return };
        let constraints = &self.constraints;
        if own.namespace != other.namespace || !constraints.has_all_keys(&node.metadata.labels) {
            return;
        }
        for (at, constraint) in constraints.list.iter().enumerate() {
            if !constraint.selector.matches(&other.labels)
                || !constraints.includes(constraint, &pod.pod, node)
            {
                continue;
            }
            for (other, spread) in self.spreads.iter_mut().enumerate() {
                if other == at || (self.shared && spread.key == constraint.key) {
                    spread.count(info.id, sign);
                }
            }
        }
    }
}
