//! What the API server does to objects on creation in addition to defaulting: namespace, uid,
//! priority from priority classes, label keys merged into selectors.
//!
//! The default tolerations (`not-ready` and `unreachable` for 300 s) are not added: an exported pod
//! has them already, and for a manually written one they would matter only on nodes with those
//! NoExecute taints, where they would hide the taint that the user wants to see.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::intern::Symbol;
use crate::{
    Affinity, LabelSelector, LabelSelectorOperator, Labels, Name, Object, Pod, PodAffinityTerm,
    PreemptionPolicy, PriorityClass, Uid,
};

/// The built-in class for cluster-critical pods.
const SYSTEM_CLUSTER_CRITICAL: (&str, i32) = ("system-cluster-critical", 2_000_000_000);
/// The built-in class for node-critical pods.
const SYSTEM_NODE_CRITICAL: (&str, i32) = ("system-node-critical", 2_000_001_000);

/// Priority and preemption policy of a class.
type Class = (i32, PreemptionPolicy);

/// The priority classes of a cluster, with the built-in ones.
#[derive(Clone, Debug, PartialEq)]
pub struct PriorityClasses {
    by_name: BTreeMap<Symbol, Class>,
    /// The default class; of several the one with the lowest value.
    default: Option<(Symbol, Class)>,
}

/// A pod names a priority class that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no PriorityClass with name {0} was found")]
pub struct UnknownPriorityClass(pub Symbol);

impl PriorityClasses {
    /// The given classes and the built-in ones.
    pub fn new<'a>(classes: impl IntoIterator<Item = &'a PriorityClass>) -> PriorityClasses {
        let built_in = [SYSTEM_CLUSTER_CRITICAL, SYSTEM_NODE_CRITICAL];
        let built_in =
            built_in.map(|(name, value)| (name.into(), (value, PreemptionPolicy::default())));
        let mut made = PriorityClasses { by_name: BTreeMap::from(built_in), default: None };
        for class in classes {
            made.add(class);
        }
        made
    }

    fn add(&mut self, class: &PriorityClass) {
        let name = class.metadata.name.interned();
        let values = (class.value, class.preemption_policy.unwrap_or_default());
        self.by_name.insert(name, values);
        let lowest = self.default.is_none_or(|(_, (value, _))| class.value < value);
        if class.global_default && lowest {
            self.default = Some((name, values));
        }
    }

    /// Sets the pod's priority, preemption policy and class name as the Priority admission plugin
    /// does. Values that the pod already has are kept: exported pods carry their priority even if
    /// their class was not exported.
    pub fn admit(&self, pod: &mut Pod) -> Result<(), UnknownPriorityClass> {
        let name = pod.spec.priority_class_name;
        let (name, (priority, policy)) = match (self.by_name.get(&name), self.default) {
            (Some(class), _) => (name, *class),
            (None, _) if !name.is_empty() && pod.spec.priority.is_some() => {
                (name, Class::default())
            }
            (None, _) if !name.is_empty() => return Err(UnknownPriorityClass(name)),
            // A pod with a priority but without a class does not get the default class.
            (None, Some(default)) if pod.spec.priority.is_none() => default,
            (None, _) => (name, Class::default()),
        };
        pod.spec.priority_class_name = name;
        pod.spec.priority.get_or_insert(priority);
        pod.spec.preemption_policy.get_or_insert(policy);
        Ok(())
    }
}

/// Merges `matchLabelKeys` and `mismatchLabelKeys` into the label selectors of the same term, as
/// the API server does when it stores a pod; the scheduler reads only the selectors. A key for
/// which the pod has no label is left out; an absent selector stays absent. Exported pods, which
/// are already merged, do not change.
pub fn merge_label_keys(pod: &mut Pod) {
    let labels = pod.metadata.labels.clone();
    pod.spec.topology_spread_constraints.update(|constraints| {
        for constraint in constraints {
            let keys = &constraint.match_label_keys;
            if let Some(selector) = &mut constraint.label_selector {
                merge(selector, keys, LabelSelectorOperator::In, &labels);
            }
        }
    });
    let Some(affinity) = &mut pod.spec.affinity else { return };
    affinity.update(|affinity| {
        for term in pod_affinity_terms(affinity) {
            let Some(selector) = &mut term.label_selector else { continue };
            merge(selector, &term.match_label_keys, LabelSelectorOperator::In, &labels);
            merge(selector, &term.mismatch_label_keys, LabelSelectorOperator::NotIn, &labels);
        }
    });
}

/// Removes what [`merge_label_keys`] adds for the pod's present labels, so that it can be merged for
/// others.
pub fn unmerge_label_keys(pod: &mut Pod) {
    let labels = pod.metadata.labels.clone();
    pod.spec.topology_spread_constraints.update(|constraints| {
        for constraint in constraints {
            let keys = &constraint.match_label_keys;
            if let Some(selector) = &mut constraint.label_selector {
                unmerge(selector, keys, LabelSelectorOperator::In, &labels);
            }
        }
    });
    let Some(affinity) = &mut pod.spec.affinity else { return };
    affinity.update(|affinity| {
        for term in pod_affinity_terms(affinity) {
            let Some(selector) = &mut term.label_selector else { continue };
            unmerge(selector, &term.match_label_keys, LabelSelectorOperator::In, &labels);
            unmerge(selector, &term.mismatch_label_keys, LabelSelectorOperator::NotIn, &labels);
        }
    });
}

fn unmerge(
    selector: &mut LabelSelector,
    keys: &[Symbol],
    operator: LabelSelectorOperator,
    labels: &Labels,
) {
    selector.match_expressions.retain(|expression| {
        let of_label = |value: &Name| expression.values == [*value];
        let is_merged = keys.contains(&expression.key) && expression.operator == operator;
        !(is_merged && labels.get(expression.key).is_some_and(of_label))
    });
}

fn pod_affinity_terms(affinity: &mut Affinity) -> impl Iterator<Item = &mut PodAffinityTerm> {
    let towards = affinity.pod_affinity.iter_mut().flat_map(|affinity| {
        let preferred = &mut affinity.preferred_during_scheduling_ignored_during_execution;
        let required = &mut affinity.required_during_scheduling_ignored_during_execution;
        required.iter_mut().chain(preferred.iter_mut().map(|term| &mut term.pod_affinity_term))
    });
    let away = affinity.pod_anti_affinity.iter_mut().flat_map(|affinity| {
        let preferred = &mut affinity.preferred_during_scheduling_ignored_during_execution;
        let required = &mut affinity.required_during_scheduling_ignored_during_execution;
        required.iter_mut().chain(preferred.iter_mut().map(|term| &mut term.pod_affinity_term))
    });
    towards.chain(away)
}

fn merge(
    selector: &mut LabelSelector,
    keys: &[Symbol],
    operator: LabelSelectorOperator,
    labels: &Labels,
) {
    for key in keys {
        let Some(value) = labels.get(*key) else { continue };
        let merged = selector.match_expressions.iter().any(|expression| {
            expression.key == *key
                && expression.operator == operator
                && expression.values == [*value]
        });
        if !merged {
            selector.add_expression(*key, operator, vec![*value]);
        }
    }
}

/// Sets the required metadata of an object: a namespace (`default`) if its kind has one, and a uid.
/// The uid depends on the object's key alone, so that runs are reproducible.
pub fn identify(object: &mut Object) {
    let namespaced = object.kind().is_namespaced();
    let metadata = object.metadata();
    if namespaced && metadata.namespace.is_empty() {
        object.metadata_mut().namespace = "default".into();
    } else if !namespaced && !metadata.namespace.is_empty() {
        object.metadata_mut().namespace = Symbol::EMPTY;
    }
    if object.metadata().uid.is_empty() {
        let uid = derived_uid(&object.key().to_string());
        object.metadata_mut().uid = uid;
    }
}

/// A UID in the format of a UUID, from two different 64-bit hashes of `text` (FNV-1a).
pub fn derived_uid(text: &str) -> Uid {
    let hash = |basis: u64| {
        text.bytes()
            .fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let (high, low) = (hash(0xcbf2_9ce4_8422_2325), hash(0x8422_2325_cbf2_9ce4));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff,
    )
    .into()
}

/// Does all of the above for an object that is about to be created, after its defaults.
pub fn admit(object: &mut Object, classes: &PriorityClasses) -> Result<(), UnknownPriorityClass> {
    identify(object);
    let Object::Pod(pod) = object else { return Ok(()) };
    let pod = Arc::make_mut(pod);
    merge_label_keys(pod);
    classes.admit(pod)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_yaml<T: serde::de::DeserializeOwned>(text: &str) -> T {
        crate::yaml::from_str(text).unwrap()
    }

    fn classes() -> PriorityClasses {
        let classes: Vec<PriorityClass> = from_yaml(
            "[{metadata: {name: high}, value: 1000, preemptionPolicy: Never},
              {metadata: {name: usual}, value: 10, globalDefault: true},
              {metadata: {name: lesser}, value: 5, globalDefault: true}]",
        );
        PriorityClasses::new(&classes)
    }

    fn admitted(spec: &str, classes: &PriorityClasses) -> (String, i32, PreemptionPolicy) {
        let mut pod: Pod = from_yaml(&format!("spec: {spec}"));
        classes.admit(&mut pod).unwrap();
        let spec = &pod.spec;
        (
            spec.priority_class_name.to_string(),
            spec.priority.unwrap(),
            spec.preemption_policy.unwrap(),
        )
    }

    #[test]
    fn priority_comes_from_the_class_or_the_default_one() {
        use PreemptionPolicy::{Never, PreemptLowerPriority};
        let (some, none) = (classes(), PriorityClasses::new([]));
        let cases = [
            ("{priorityClassName: high}", &some, ("high", 1000, Never)),
            ("{}", &some, ("lesser", 5, PreemptLowerPriority)),
            ("{}", &none, ("", 0, PreemptLowerPriority)),
            ("{priority: 7}", &some, ("", 7, PreemptLowerPriority)),
            ("{priority: 7, preemptionPolicy: Never}", &none, ("", 7, Never)),
            ("{priority: 9, priorityClassName: gone}", &none, ("gone", 9, PreemptLowerPriority)),
            (
                "{priorityClassName: system-node-critical}",
                &none,
                ("system-node-critical", 2_000_001_000, PreemptLowerPriority),
            ),
        ];
        for (spec, classes, (name, priority, policy)) in cases {
            assert_eq!(admitted(spec, classes), (name.to_string(), priority, policy), "{spec}");
        }
    }

    #[test]
    fn an_unknown_class_is_rejected() {
        let mut pod: Pod = from_yaml("spec: {priorityClassName: gone}");
        let error = classes().admit(&mut pod).unwrap_err();
        assert_eq!(error.to_string(), "no PriorityClass with name gone was found");
    }

    #[test]
    fn label_keys_become_expressions_once() {
        let mut pod: Pod = from_yaml(
            "metadata: {labels: {app: web, rev: '2'}}
spec:
  topologySpreadConstraints:
  - {matchLabelKeys: [rev, none], labelSelector: {matchLabels: {app: web}}}
  - {matchLabelKeys: [rev]}
  affinity:
    podAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - podAffinityTerm: {matchLabelKeys: [app], labelSelector: {}}
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {mismatchLabelKeys: [rev], labelSelector: {}}",
        );
        merge_label_keys(&mut pod);
        let once = pod.clone();
        merge_label_keys(&mut pod);
        assert_eq!(pod, once);
        let selector = |selector: &Option<LabelSelector>| {
            crate::Selector::new(selector.as_ref()).unwrap().to_string()
        };
        let spread = &pod.spec.topology_spread_constraints;
        assert_eq!(selector(&spread[0].label_selector), "app=web,rev in (2)");
        assert_eq!(selector(&spread[1].label_selector), "<none>");
        let affinity = pod.spec.affinity.as_mut().unwrap();
        let terms: Vec<_> =
            pod_affinity_terms(affinity).map(|term| selector(&term.label_selector)).collect();
        assert_eq!(terms, ["app in (web)", "rev notin (2)"]);
    }

    #[test]
    fn objects_get_a_namespace_and_a_uid_that_is_always_the_same() {
        let mut pod = Object::from(from_yaml::<Pod>("metadata: {name: a}"));
        identify(&mut pod);
        let first = pod.metadata().clone();
        assert_eq!(first.namespace, "default");
        assert_eq!(first.uid.to_string().len(), 36);
        identify(&mut pod);
        assert_eq!(*pod.metadata(), first);
        let mut other = Object::from(from_yaml::<Pod>("metadata: {name: b, namespace: default}"));
        identify(&mut other);
        assert_ne!(other.metadata().uid, first.uid);
        let node: crate::Node = from_yaml("metadata: {name: a, namespace: x, uid: mine}");
        let mut node = Object::from(node);
        identify(&mut node);
        assert_eq!(
            (node.metadata().namespace.as_str(), node.metadata().uid.to_string().as_str()),
            ("", "mine")
        );
    }
}
