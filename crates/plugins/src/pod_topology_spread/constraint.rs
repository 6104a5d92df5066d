//! The constraints of a pod: its own, or the cluster's defaults (PTS-001…004).

use std::sync::Arc;

use fixedbitset::FixedBitSet;

use super::PodTopologySpreadArgs;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{
    Operator, RequiredNodeAffinity, Requirement, Selector, find_untolerated_taint,
};
use kubestep_api::{
    Labels, Node, NodeInclusionPolicy, Pod, Taint, TaintEffect, TopologySpreadConstraint,
    UnsatisfiableConstraintAction,
};
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::class::PodClass;

use super::default_selector::default_selector;

/// What applies to pods without constraints of their own, and how constraints are read.
pub struct Defaults {
    constraints: Vec<TopologySpreadConstraint>,
    system: bool,
    reading: Reading,
}

#[derive(Clone, Copy)]
struct Reading {
    match_label_keys: bool,
    comparisons: bool,
}

impl Defaults {
    /// The system's defaults or those of the arguments (PTS-002).
    pub fn new(args: &PodTopologySpreadArgs, features: &FeatureGates) -> Defaults {
        let system = args.uses_system_defaults();
        let reading = Reading {
            match_label_keys: features.enabled(Feature::MatchLabelKeysInPodTopologySpread),
            comparisons: features.enabled(Feature::TaintTolerationComparisonOperators),
        };
        let constraints = if system { system_defaults() } else { args.constraints() };
        Defaults { constraints, system, reading }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.constraints.is_empty()
    }
}

fn system_defaults() -> Vec<TopologySpreadConstraint> {
    let soft = |key: &str, max_skew| TopologySpreadConstraint {
        max_skew,
        topology_key: key.into(),
        when_unsatisfiable: UnsatisfiableConstraintAction::ScheduleAnyway,
        ..TopologySpreadConstraint::default()
    };
    vec![soft("kubernetes.io/hostname", 3), soft("topology.kubernetes.io/zone", 5)]
}

/// A constraint, ready to use.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    /// How uneven the domains may be.
    pub max_skew: i64,
    /// The node label whose values are the domains.
    pub key: Symbol,
    /// Which pods count.
    pub selector: Selector,
    /// With fewer domains than this the least count is taken for 0.
    pub min_domains: i64,
    /// Whether only nodes count that the pod's node affinity accepts.
    pub honors_affinity: bool,
    /// Whether only nodes count whose taints the pod tolerates.
    pub honors_taints: bool,
}

impl Constraint {
    /// PTS-003, PTS-004
    fn new(
        written: &TopologySpreadConstraint,
        labels: &Labels,
        reading: Reading,
    ) -> Result<Constraint, String> {
        let mut selector = Selector::new(written.label_selector.as_ref())?;
        if reading.match_label_keys {
            let equals = |key: &Symbol| {
                let value = *labels.get(*key)?;
                Some(Requirement::unchecked(*key, Operator::Equals, vec![value]))
            };
            let keys: Vec<_> = written.match_label_keys.iter().filter_map(equals).collect();
            if !keys.is_empty() {
                selector = selector.and(keys);
            }
        }
        let affinity = written.node_affinity_policy.unwrap_or(NodeInclusionPolicy::Honor);
        let taints = written.node_taints_policy.unwrap_or(NodeInclusionPolicy::Ignore);
        Ok(Constraint {
            max_skew: i64::from(written.max_skew),
            key: written.topology_key,
            selector,
            min_domains: written.min_domains.map_or(1, i64::from),
            honors_affinity: affinity == NodeInclusionPolicy::Honor,
            honors_taints: taints == NodeInclusionPolicy::Honor,
        })
    }

    /// Whether pods of a class count: in that namespace, not terminating, selected. A selector
    /// of everything counts none (PTS-011).
    pub fn counts(&self, class: &PodClass, namespace: Symbol) -> bool {
        class.namespace == namespace
            && !class.terminating
            && !self.selector.is_everything()
            && self.selector.matches(&class.labels)
    }
}

/// All constraints of one kind, and what of the pod they depend on.
#[derive(Debug)]
pub struct Constraints {
    /// The constraints, in the order written.
    pub list: Vec<Constraint>,
    /// Whether nodes that lack any of the keys are left out of scoring (PTS-030).
    pub require_all_keys: bool,
    affinity: RequiredNodeAffinity,
    comparisons: bool,
}

impl Constraints {
    /// The constraints that a node must meet.
    ///
    /// # Errors
    /// A selector that cannot be parsed (PTS-018).
    pub fn hard(pod: &Pod, objects: &Objects, defaults: &Defaults) -> Result<Constraints, String> {
        let action = UnsatisfiableConstraintAction::DoNotSchedule;
        Constraints::new(pod, objects, defaults, action, "hard")
    }

    /// The constraints that nodes should meet.
    ///
    /// # Errors
    /// A selector that cannot be parsed (PTS-038).
    pub fn soft(pod: &Pod, objects: &Objects, defaults: &Defaults) -> Result<Constraints, String> {
        let action = UnsatisfiableConstraintAction::ScheduleAnyway;
        Constraints::new(pod, objects, defaults, action, "soft")
    }

    fn new(
        pod: &Pod,
        objects: &Objects,
        defaults: &Defaults,
        action: UnsatisfiableConstraintAction,
        kind: &str,
    ) -> Result<Constraints, String> {
        let own = !pod.spec.topology_spread_constraints.is_empty();
        let (doing, written) = match own {
            true => ("obtaining pod's", &*pod.spec.topology_spread_constraints),
            false => ("setting default", &defaults.constraints),
        };
        let list = written
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == action)
            .map(|constraint| Constraint::new(constraint, &pod.metadata.labels, defaults.reading))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|err| format!("{doing} {kind} topology spread constraints: {err}"))?;
        let list = if own { list } else { with_selector(list, pod, objects) };
        Ok(Constraints {
            list,
            require_all_keys: own || !defaults.system,
            affinity: RequiredNodeAffinity::of(pod),
            comparisons: defaults.reading.comparisons,
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the labels have all keys.
    pub fn has_all_keys(&self, labels: &Labels) -> bool {
        self.list.iter().all(|constraint| labels.contains_key(constraint.key))
    }

    /// The nodes on which a constraint counts pods, of those in `nodes`.
    pub fn included(
        &self,
        constraint: &Constraint,
        cx: &CycleContext<'_>,
        nodes: &FixedBitSet,
    ) -> FixedBitSet {
        let mut included = nodes.clone();
        let any_node = !constraint.honors_affinity || self.affinity.is_everything();
        if any_node && !constraint.honors_taints {
            return included;
        }
        for slot in nodes.ones() {
            let node = cx.snapshot.get(NodeId(slot as u32)).and_then(|info| info.node.as_ref());
            let includes = |node: &Arc<Node>| self.includes(constraint, &cx.pod.pod, node);
            included.set(slot, node.is_some_and(includes));
        }
        included
    }

    /// Whether a constraint counts pods on the node (PTS-010). What cannot be parsed of the
    /// affinity matches nothing.
    pub fn includes(&self, constraint: &Constraint, pod: &Pod, node: &Node) -> bool {
        let (labels, name) = (&node.metadata.labels, node.metadata.name);
        if constraint.honors_affinity && !self.affinity.matches(labels, name).unwrap_or(false) {
            return false;
        }
        let keeps_off = |taint: &Taint| {
            matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
        };
        let (taints, tolerations) = (&node.spec.taints, &pod.spec.tolerations);
        !constraint.honors_taints
            || find_untolerated_taint(taints, tolerations, self.comparisons, keeps_off).is_none()
    }
}

/// The defaults for a pod, all with the selector of its services and owner; none without such
/// a selector (PTS-002).
fn with_selector(list: Vec<Constraint>, pod: &Pod, objects: &Objects) -> Vec<Constraint> {
    if list.is_empty() {
        return list;
    }
    let selector = default_selector(pod, objects);
    if selector.is_everything() {
        return Vec::new();
    }
    let with = |constraint| Constraint { selector: selector.clone(), ..constraint };
    list.into_iter().map(with).collect()
}
