//! The constraints of a pod: its own, or the default constraints.

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
use kubestep_framework::error::PluginError;
use kubestep_framework::node::NodeId;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::class::PodClass;

use super::default_selector::default_selector;

/// The default constraints, and the feature gates that affect how constraints are read.
#[derive(Clone)]
pub struct Defaults {
    constraints: Vec<TopologySpreadConstraint>,
    system: bool,
    reading: ConstraintFeatures,
}

#[derive(Clone, Copy)]
struct ConstraintFeatures {
    match_label_keys: bool,
    comparisons: bool,
}

impl Defaults {
    /// The system defaults, or the default constraints of the arguments.
    pub fn new(args: &PodTopologySpreadArgs, features: &FeatureGates) -> Defaults {
        let system = args.uses_system_defaults();
        let reading = ConstraintFeatures {
            match_label_keys: features.enabled(Feature::MatchLabelKeysInPodTopologySpread),
            comparisons: features.enabled(Feature::TaintTolerationComparisonOperators),
        };
        let constraints = if system { system_defaults() } else { args.constraints() };
        Defaults { constraints, system, reading }
    }

    /// Whether there are no default constraints.
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

/// A constraint with a compiled selector.
#[derive(Clone, PartialEq, Debug)]
pub struct SpreadConstraint {
    /// The maximum difference between the counts of two domains.
    pub max_skew: i64,
    /// The topology key: the node label whose values are the domains.
    pub key: Symbol,
    /// The pods that are counted.
    pub selector: Selector,
    /// With fewer domains, the minimum count is taken to be 0.
    pub min_domains: i64,
    /// Whether only nodes are counted that match the pod's node affinity.
    pub honors_affinity: bool,
    /// Whether only nodes are counted whose taints the pod tolerates.
    pub honors_taints: bool,
}

impl SpreadConstraint {
    /// Each of `matchLabelKeys` that the pod has as a label adds a requirement to the selector. The
    /// defaults are minDomains 1, nodeAffinityPolicy Honor and nodeTaintsPolicy Ignore.
    fn new(
        written: &TopologySpreadConstraint,
        labels: &Labels,
        reading: ConstraintFeatures,
    ) -> Result<SpreadConstraint, PluginError> {
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
        Ok(SpreadConstraint {
            max_skew: i64::from(written.max_skew),
            key: written.topology_key,
            selector,
            min_domains: written.min_domains.map_or(1, i64::from),
            honors_affinity: affinity == NodeInclusionPolicy::Honor,
            honors_taints: taints == NodeInclusionPolicy::Honor,
        })
    }

    /// Whether pods of a class are counted: in that namespace, not terminating, and selected. As
    /// upstream, an empty selector counts no pods.
    pub fn counts(&self, class: &PodClass, namespace: Symbol) -> bool {
        class.namespace == namespace
            && !class.terminating
            && !self.selector.is_everything()
            && self.selector.matches(&class.labels)
    }
}

/// All hard or all soft constraints, and the properties of the pod that they use.
#[derive(Debug)]
pub struct Constraints {
    /// The constraints in the order of the spec.
    pub list: Vec<SpreadConstraint>,
    /// Whether nodes that lack any topology key are ignored in scoring; not so for system defaults.
    pub require_all_keys: bool,
    affinity: RequiredNodeAffinity,
    comparisons: bool,
}

impl Constraints {
    /// The hard constraints: those with DoNotSchedule.
    ///
    /// # Errors
    /// A selector is invalid.
    pub fn hard(
        pod: &Pod,
        objects: &Objects,
        defaults: &Defaults,
    ) -> Result<Constraints, PluginError> {
        let action = UnsatisfiableConstraintAction::DoNotSchedule;
        Constraints::new(pod, objects, defaults, action, "hard")
    }

    /// The soft constraints: those with ScheduleAnyway.
    ///
    /// # Errors
    /// A selector is invalid.
    pub fn soft(
        pod: &Pod,
        objects: &Objects,
        defaults: &Defaults,
    ) -> Result<Constraints, PluginError> {
        let action = UnsatisfiableConstraintAction::ScheduleAnyway;
        Constraints::new(pod, objects, defaults, action, "soft")
    }

    fn new(
        pod: &Pod,
        objects: &Objects,
        defaults: &Defaults,
        action: UnsatisfiableConstraintAction,
        kind: &str,
    ) -> Result<Constraints, PluginError> {
        let own = !pod.spec.topology_spread_constraints.is_empty();
        let (doing, written) = match own {
            true => ("obtaining pod's", &*pod.spec.topology_spread_constraints),
            false => ("setting default", &defaults.constraints),
        };
        let list = written
            .iter()
            .filter(|constraint| constraint.when_unsatisfiable == action)
            .map(|constraint| {
                SpreadConstraint::new(constraint, &pod.metadata.labels, defaults.reading)
            })
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

    /// Whether there are no constraints.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether the labels have all topology keys.
    pub(crate) fn has_all_keys(&self, labels: &Labels) -> bool {
        self.list.iter().all(|constraint| labels.contains_key(constraint.key))
    }

    /// The nodes among `nodes` on which a constraint counts pods.
    pub fn included(
        &self,
        constraint: &SpreadConstraint,
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

    /// Whether a constraint counts pods on the node, by its inclusion policies. Invalid node
    /// affinity matches no node.
    pub fn includes(&self, constraint: &SpreadConstraint, pod: &Pod, node: &Node) -> bool {
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

/// The default constraints for a pod, with the selector of its services and owner; none if that
/// selector is empty.
fn with_selector(
    list: Vec<SpreadConstraint>,
    pod: &Pod,
    objects: &Objects,
) -> Vec<SpreadConstraint> {
    if list.is_empty() {
        return list;
    }
    let selector = default_selector(pod, objects);
    if selector.is_everything() {
        return Vec::new();
    }
    let with = |constraint| SpreadConstraint { selector: selector.clone(), ..constraint };
    list.into_iter().map(with).collect()
}
