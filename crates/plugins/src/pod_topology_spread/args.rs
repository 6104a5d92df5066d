//! The arguments: constraints for pods that have none.

use kubestep_api::intern::Symbol;
use kubestep_api::{
    LabelSelector, NodeInclusionPolicy, TopologySpreadConstraint, UnsatisfiableConstraintAction,
};
use kubestep_config::validation::Findings;
use kubestep_config::{Arguments, FeatureGates, FieldPath, argument_object, arguments};

arguments! {
    /// Default constraints of PodTopologySpread.
    pub struct PodTopologySpreadArgs for "PodTopologySpread" {
        default_constraints: Vec<DefaultConstraint> = Vec::new(),
            put_some "defaultConstraints", "a list of constraints without labelSelector",
            "Constraints for pods that have none, with the selector of the Services and controllers \
             that they belong to; needs defaultingType List.";
        defaulting_type: Symbol = Symbol::new(SYSTEM),
            put_some "defaultingType", "System or List",
            "System spreads pods without constraints softly over hosts (maxSkew 3) and zones (maxSkew \
             5); List uses defaultConstraints.";
    }
}

/// The type with built-in constraints.
const SYSTEM: &str = "System";

argument_object! {
    /// A default spread constraint as written: its enumerations are free text until validation.
    #[derive(Default)]
    pub struct DefaultConstraint {
        /// Largest allowed difference between domains.
        max_skew: i32, put "maxSkew";
        /// Label of the nodes that names their domain.
        topology_key: Symbol, put "topologyKey";
        /// `DoNotSchedule` rejects nodes, `ScheduleAnyway` only scores them.
        when_unsatisfiable: Symbol, put "whenUnsatisfiable";
        /// Must not be given: it is deduced for each pod.
        label_selector: Option<LabelSelector>, put_some "labelSelector";
        /// Domains there must be at least.
        min_domains: Option<i32>, put_some "minDomains";
        /// `Honor` or `Ignore`; upstream does not check it.
        node_affinity_policy: Option<Symbol>, put_some "nodeAffinityPolicy";
        /// `Honor` or `Ignore`; upstream does not check it.
        node_taints_policy: Option<Symbol>, put_some "nodeTaintsPolicy";
        /// Labels of the pod that are added to the selector.
        match_label_keys: Vec<Symbol>, put_some "matchLabelKeys";
    }
}

impl Arguments for PodTopologySpreadArgs {
    fn complete(&mut self, _: &FeatureGates) {
        if self.defaulting_type.is_empty() {
            self.defaulting_type = SYSTEM.into();
        }
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        let constraints = &self.default_constraints;
        let defaulting = self.defaulting_type;
        let type_path = path.field("defaultingType");
        if defaulting != "System" && defaulting != "List" {
            found.unsupported(&type_path, &defaulting, &["System", "List"]);
        } else if defaulting == "System" && !constraints.is_empty() {
            let detail = "when .defaultConstraints are not empty";
            found.invalid(&type_path, defaulting.as_str(), detail);
        }
        for i in 0..constraints.len() {
            constraint(found, &constraints[..=i], &path.field("defaultConstraints").index(i));
        }
    }
}

impl PodTopologySpreadArgs {
    /// Whether the built-in constraints apply to pods that have none.
    pub(crate) fn uses_system_defaults(&self) -> bool {
        self.defaulting_type == SYSTEM
    }

    /// The constraints of the list, as a pod would have them.
    pub fn constraints(&self) -> Vec<TopologySpreadConstraint> {
        self.default_constraints.iter().map(DefaultConstraint::to_constraint).collect()
    }
}

/// The last of `constraints`, given those before it.
fn constraint(found: &mut Findings, constraints: &[DefaultConstraint], path: &FieldPath) {
    let Some((last, before)) = constraints.split_last() else { return };
    if last.max_skew <= 0 {
        found.invalid(&path.field("maxSkew"), last.max_skew, "not in valid range (0, inf)");
    }
    let key_path = path.field("topologyKey");
    if last.topology_key.is_empty() {
        found.required(&key_path, "can not be empty");
    } else {
        found.qualified_name(&key_path, &last.topology_key);
    }
    let action_path = path.field("whenUnsatisfiable");
    match last.when_unsatisfiable.as_str() {
        "" => found.required(&action_path, "can not be empty"),
        "DoNotSchedule" | "ScheduleAnyway" => {}
        other => found.unsupported(&action_path, other, &["DoNotSchedule", "ScheduleAnyway"]),
    }
    if last.label_selector.is_some() {
        let detail = "constraint must not define a selector, as they deduced for each pod";
        found.forbidden(&path.field("labelSelector"), detail);
    }
    let identity = |c: &DefaultConstraint| (c.topology_key, c.when_unsatisfiable);
    if before.iter().any(|other| identity(other) == identity(last)) {
        let (key, action) = identity(last);
        found.duplicate(path, &format!("{{{key}, {action}}}"));
    }
}

impl DefaultConstraint {
    /// The constraint as a pod would have it; text that is neither choice counts as the second.
    pub(crate) fn to_constraint(&self) -> TopologySpreadConstraint {
        TopologySpreadConstraint {
            max_skew: self.max_skew,
            topology_key: self.topology_key,
            when_unsatisfiable: match self.when_unsatisfiable.as_str() {
                "DoNotSchedule" => UnsatisfiableConstraintAction::DoNotSchedule,
                _ => UnsatisfiableConstraintAction::ScheduleAnyway,
            },
            label_selector: self.label_selector.clone(),
            min_domains: self.min_domains,
            node_affinity_policy: self.node_affinity_policy.map(policy),
            node_taints_policy: self.node_taints_policy.map(policy),
            match_label_keys: self.match_label_keys.clone(),
        }
    }
}

fn policy(text: Symbol) -> NodeInclusionPolicy {
    match text.as_str() {
        "Honor" => NodeInclusionPolicy::Honor,
        _ => NodeInclusionPolicy::Ignore,
    }
}
