//! How the text of each field is pseudonymized: one table, by the field's name and where it is.

use super::fields::{FieldPosition, is_custom};
use kubestep_api::Kind;

/// Fields with public values: kinds, phases, operators, times, quantities, drivers.
const KEPT: &[&str] = &[
    "apiVersion",
    "kind",
    "creationTimestamp",
    "deletionTimestamp",
    "resourceVersion",
    "type",
    "status",
    "reason",
    "lastProbeTime",
    "lastTransitionTime",
    "startTime",
    "timeAdded",
    "allocationTimestamp",
    "phase",
    "effect",
    "operator",
    "preemptionPolicy",
    "restartPolicy",
    "protocol",
    "whenUnsatisfiable",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "action",
    "accessModes",
    "volumeMode",
    "volumeBindingMode",
    "persistentVolumeReclaimPolicy",
    "reclaimPolicy",
    "volumeLifecycleModes",
    "allocationMode",
    "source",
    "disruptionMode",
    "declaredFeatures",
    "minAvailable",
    "maxUnavailable",
    "apiGroup",
    "resource",
    "maximumVolumeSize",
    "allocationMultiplier",
    "default",
    "validValues",
    "min",
    "max",
    "step",
    "version",
    "versions",
    "bindingConditions",
    "bindingFailureConditions",
    "matchAttribute",
    "distinctAttribute",
    "capacityKey",
    "time",
];
/// Fields that name drivers, which are as public as Kubernetes' own names.
const DRIVERS: &[&str] = &["driver", "provisioner", "attacher"];
/// Fields of custom kinds with public values.
const CUSTOM_KEPT: &[&str] = &["available", "allocatable", "topologyPolicies"];
/// Fields with label keys.
const KEYS: &[&str] = &["topologyKey", "topologyKeys", "matchLabelKeys", "mismatchLabelKeys"];
/// Fields with sentences in which names are replaced.
const SENTENCES: &[&str] = &["message"];
/// Fields that no decision depends on and that may contain anything.
pub(super) const DROPPED: &[&str] = &["parameters", "description", "fieldPath"];

/// How a text is pseudonymized.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Treatment {
    Keep,
    Drop,
    Driver,
    LabelKey,
    Message,
    Expression,
    Scheduler,
    Resource,
    Image,
    Disk,
    Host,
    PriorityClass,
    /// A zone of a NodeResourceTopology: a NUMA zone is kept.
    Zone,
    /// A name that ends with a dash.
    Stem,
    /// A device request, or one of its alternatives: `request/alternative`.
    Requests,
    /// The object's own name.
    OwnName,
    /// A pseudonym that begins with this word.
    Name(&'static str),
}

/// Where a rule applies.
#[derive(Clone, Copy)]
enum RuleScope {
    Anywhere,
    /// Directly in a field of this name.
    In(&'static str),
    /// In objects of this kind.
    Of(Kind),
    /// In objects of custom kinds.
    OfCustom,
    /// In objects of this kind, directly in a field of this name.
    OfIn(Kind, &'static str),
    /// In objects of custom kinds, directly in a field of this name.
    OfCustomIn(&'static str),
}

impl RuleScope {
    fn includes(self, at: FieldPosition<'_>) -> bool {
        match self {
            RuleScope::Anywhere => true,
            RuleScope::In(parent) => at.parent == parent,
            RuleScope::Of(kind) => at.kind == kind,
            RuleScope::OfCustom => is_custom(at),
            RuleScope::OfIn(kind, parent) => at.kind == kind && at.parent == parent,
            RuleScope::OfCustomIn(parent) => is_custom(at) && at.parent == parent,
        }
    }

    /// Of two rules for a position, the one with the larger number applies.
    fn specificity(self) -> u8 {
        match self {
            RuleScope::Anywhere => 0,
            RuleScope::In(_) => 1,
            RuleScope::Of(_) | RuleScope::OfCustom => 2,
            RuleScope::OfIn(..) | RuleScope::OfCustomIn(_) => 3,
        }
    }
}

/// The treatment of fields with texts.
struct TextRule {
    fields: &'static [&'static str],
    scope: RuleScope,
    treatment: Treatment,
}

impl TextRule {
    const fn new(
        fields: &'static [&'static str],
        scope: RuleScope,
        treatment: Treatment,
    ) -> TextRule {
        TextRule { fields, scope, treatment }
    }

    fn matches(&self, at: FieldPosition<'_>) -> bool {
        self.fields.contains(&at.field) && self.scope.includes(at)
    }
}

/// Every field whose text does not get a pseudonym that begins with `name`.
#[rustfmt::skip]
const TEXTS: &[TextRule] = {
    use RuleScope::{Anywhere, In, Of, OfCustom, OfCustomIn, OfIn};
    &[
        TextRule::new(KEPT, Anywhere, Treatment::Keep),
        TextRule::new(&["capacity"], Anywhere, Treatment::Keep),
        TextRule::new(CUSTOM_KEPT, OfCustom, Treatment::Keep),
        TextRule::new(&["name", "value"], OfCustomIn("attributes"), Treatment::Keep),
        TextRule::new(&["name"], In("os"), Treatment::Keep),
        TextRule::new(DROPPED, Anywhere, Treatment::Drop),
        TextRule::new(DRIVERS, Anywhere, Treatment::Driver),
        TextRule::new(&["name"], In("drivers"), Treatment::Driver),
        TextRule::new(&["name"], OfIn(Kind::CsiDriver, "metadata"), Treatment::Driver),
        TextRule::new(KEYS, Anywhere, Treatment::LabelKey),
        TextRule::new(&["finalizers"], Anywhere, Treatment::LabelKey),
        TextRule::new(SENTENCES, Anywhere, Treatment::Message),
        TextRule::new(&["expression"], Anywhere, Treatment::Expression),
        TextRule::new(&["schedulerName"], Anywhere, Treatment::Scheduler),
        TextRule::new(&["resourceName", "extendedResourceName"], Anywhere, Treatment::Resource),
        TextRule::new(&["name"], OfCustomIn("resources"), Treatment::Resource),
        TextRule::new(&["image", "names", "reference"], Anywhere, Treatment::Image),
        TextRule::new(&["image", "names", "reference"], In("rbd"), Treatment::Name("name")),
        TextRule::new(&["volumeID", "volumeHandle"], Anywhere, Treatment::Disk),
        TextRule::new(&["hostIP"], Anywhere, Treatment::Host),
        TextRule::new(&["priorityClassName"], Anywhere, Treatment::PriorityClass),
        TextRule::new(&["name"], Of(Kind::PriorityClass), Treatment::PriorityClass),
        TextRule::new(&["name"], OfCustomIn("zones"), Treatment::Zone),
        TextRule::new(&["name"], OfCustomIn("costs"), Treatment::Zone),
        TextRule::new(&["generateName"], Anywhere, Treatment::Stem),
        TextRule::new(&["requests", "request"], Anywhere, Treatment::Requests),
        TextRule::new(&["name"], In("metadata"), Treatment::OwnName),
        TextRule::new(&["nodeName", "nominatedNodeName", "nodeID"], Anywhere, Treatment::Name("node")),
        TextRule::new(&["namespace", "namespaces"], Anywhere, Treatment::Name("namespace")),
        TextRule::new(&["uid"], Anywhere, Treatment::Name("uid")),
        TextRule::new(&["claimName", "resourceClaimName"], Anywhere, Treatment::Name("claim")),
        TextRule::new(&["storageClassName", "deviceClassName", "volumeAttributesClassName"], Anywhere,
            Treatment::Name("class")),
        TextRule::new(&["volumeName", "persistentVolumeName"], Anywhere, Treatment::Name("volume")),
    ]
};

/// The treatment by the most specific rule for the position. A field without one gets a pseudonym.
pub(super) fn treatment(at: FieldPosition<'_>) -> Treatment {
    let rules = TEXTS.iter().filter(|rule| rule.matches(at));
    let rule = rules.max_by_key(|rule| rule.scope.specificity());
    rule.map_or(Treatment::Name("name"), |rule| rule.treatment)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every position that the table distinguishes: its fields and one that it does not name, in
    /// every field and kind that a rule is about, and in others.
    fn positions() -> Vec<FieldPosition<'static>> {
        let fields = TEXTS.iter().flat_map(|rule| rule.fields).copied().chain(["other"]);
        let parents = TEXTS.iter().filter_map(|rule| match rule.scope {
            RuleScope::In(parent) | RuleScope::OfIn(_, parent) | RuleScope::OfCustomIn(parent) => {
                Some(parent)
            }
            _ => None,
        });
        let parents: Vec<&str> = parents.chain(["spec"]).collect();
        kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
        let kinds: Vec<Kind> = Kind::all().chain(Kind::all_custom()).collect();
        let mut positions = Vec::new();
        for field in fields {
            for parent in parents.iter().copied() {
                let at = |kind: &Kind| FieldPosition { kind: *kind, field, parent };
                positions.extend(kinds.iter().map(at));
            }
        }
        positions
    }

    #[test]
    fn no_two_rules_for_a_position_are_equally_specific() {
        for at in positions() {
            let rules: Vec<&TextRule> = TEXTS.iter().filter(|rule| rule.matches(at)).collect();
            let most = rules.iter().map(|rule| rule.scope.specificity()).max();
            let first = rules.iter().filter(|rule| Some(rule.scope.specificity()) == most);
            let FieldPosition { kind, field, parent } = at;
            assert!(first.count() <= 1, "{kind:?}: {parent}.{field}");
        }
    }

    #[test]
    fn a_field_that_no_rule_names_gets_a_pseudonym() {
        assert!(positions().iter().any(|at| is_custom(*at)), "a custom kind is among them");
        for at in positions().into_iter().filter(|at| at.field == "other") {
            assert_eq!(treatment(at), Treatment::Name("name"), "{:?}: {}", at.kind, at.parent);
        }
    }
}
