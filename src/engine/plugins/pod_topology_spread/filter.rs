//! Hard constraints: counts of pods by domain, made once per cycle (PTS-010…016).

use std::sync::Arc;

use crate::engine::framework::plugin::CycleContext;
use crate::engine::node::NodeInfo;
use crate::engine::pod::PodInfo;
use crate::engine::status::Status;
use crate::engine::topology::{CountMap, Counts};
use crate::intern::Symbol;

use super::constraint::{Constraint, Constraints};
use super::counting::count_pods;
use super::critical_paths::CriticalPaths;

/// The two refusals, built once (PTS-014).
pub struct Refusals {
    skew: Status,
    no_label: Status,
}

impl Default for Refusals {
    fn default() -> Refusals {
        let skew = "node(s) didn't match pod topology spread constraints";
        let no_label = format!("{skew} (missing required label)");
        Refusals { skew: Status::unschedulable(skew), no_label: Status::unresolvable(&no_label) }
    }
}

/// The counts of one constraint.
#[derive(Clone, Default, Debug)]
struct Spread {
    pods: Counts<Symbol>,
    critical: CriticalPaths,
    /// 1 if the pod itself counts.
    own: i64,
}

/// The counts of one cycle.
#[derive(Clone, Debug)]
pub struct FilterState {
    constraints: Arc<Constraints>,
    spreads: Vec<Spread>,
}

impl FilterState {
    /// Counts over the whole snapshot. Every domain with an eligible node counts, even with no
    /// pod in it (PTS-012).
    pub fn new(cx: &CycleContext<'_>, constraints: Constraints) -> FilterState {
        let pod = &cx.pod.pod;
        let mut counts: Vec<CountMap<Symbol>> = vec![CountMap::default(); constraints.list.len()];
        let pods_of = count_pods(cx, &constraints);
        for info in cx.snapshot.iter() {
            let Some(node) = &info.node else { continue };
            if !constraints.has_all_keys(&node.metadata.labels) {
                continue;
            }
            for (at, (constraint, counts)) in constraints.list.iter().zip(&mut counts).enumerate() {
                let Some(value) = info.label(constraint.key) else { continue };
                if constraints.includes(constraint, pod, node) {
                    *counts.entry(value).or_default() += pods_of[at].on(info.id);
                }
            }
        }
        let spread = |(constraint, counts): (&Constraint, CountMap<Symbol>)| {
            let mut critical = CriticalPaths::default();
            counts.iter().for_each(|(value, count)| critical.update(*value, *count));
            let own = i64::from(constraint.selector.matches(&pod.metadata.labels));
            Spread { pods: counts.into(), critical, own }
        };
        let spreads = constraints.list.iter().zip(counts).map(spread).collect();
        FilterState { constraints: Arc::new(constraints), spreads }
    }

    /// PTS-013, PTS-014
    pub fn filter(&self, node: &NodeInfo, refusals: &Refusals) -> Status {
        for (constraint, spread) in self.constraints.list.iter().zip(&self.spreads) {
            let Some(value) = node.label(constraint.key) else { return refusals.no_label.clone() };
            let too_few = (spread.pods.keys() as i64) < constraint.min_domains;
            let least = if too_few { 0 } else { spread.critical.least() };
            if spread.pods.get(value) + spread.own - least > constraint.max_skew {
                return refusals.skew.clone();
            }
        }
        Status::SUCCESS
    }

    /// Counts `other` in or out. Terminating pods count here, and so do all pods for a selector
    /// of everything (PTS-016).
    pub fn count_pod(&mut self, pod: &PodInfo, other: &PodInfo, info: &NodeInfo, sign: i64) {
        let (own, other) = (&pod.pod.metadata, &other.pod.metadata);
        let Some(node) = &info.node else { return };
        let constraints = &self.constraints;
        if own.namespace != other.namespace || !constraints.has_all_keys(&node.metadata.labels) {
            return;
        }
        for (constraint, spread) in constraints.list.iter().zip(&mut self.spreads) {
            if constraint.selector.matches(&other.labels)
                && constraints.includes(constraint, &pod.pod, node)
                && let Some(value) = info.label(constraint.key)
            {
                let count = spread.pods.add(value, sign);
                spread.critical.update(value, count);
            }
        }
    }
}
