//! Fragments of a pod's signature that several plugins use. They do not depend on the order of
//! lists in the spec.
//!
//! Upstream: `staging/src/k8s.io/kube-scheduler/framework/signers.go`.

use serde::Serialize;
use serde_json::{Value, json};

use kubestep_api::intern::Symbol;
use kubestep_api::{NodeSelectorRequirement, NodeSelectorTerm, Pod, PreferredSchedulingTerm};
use kubestep_framework::plugin::Fragments;

/// The part of a signature that one field of the pod gives, as JSON.
pub fn fragment(key: &'static str, value: &impl Serialize) -> Fragments {
    Ok(vec![(key, text(value)?)])
}

/// A value as JSON.
pub fn text(value: &impl Serialize) -> Result<String, Symbol> {
    serde_json::to_string(value).map_err(|error| Symbol::new(&error.to_string()))
}

/// The tolerations, sorted by key and value.
pub fn tolerations(pod: &Pod) -> Fragments {
    let mut all = pod.spec.tolerations.clone();
    all.sort_by_key(|toleration| (toleration.key, toleration.value));
    fragment("v1.Pod.Spec.Tolerations", &all)
}

/// The distinct host ports, including those of init containers.
pub fn host_ports(pod: &Pod) -> Fragments {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let ports = containers.flat_map(|container| &container.ports).map(|port| port.host_port);
    let mut ports: Vec<i32> = ports.filter(|port| *port != 0).collect();
    ports.sort_unstable();
    ports.dedup();
    fragment("v1.Pod.Spec.HostPorts()", &ports)
}

/// Node affinity and node selector.
pub fn node_affinity(pod: &Pod) -> Fragments {
    let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let affinity = affinity.map(|affinity| {
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
        let terms = required.map_or(&[][..], |required| &required.node_selector_terms);
        let preferred = &affinity.preferred_during_scheduling_ignored_during_execution;
        json!({
            "Required": sorted(terms.iter().map(term)),
            "Preferred": sorted(preferred.iter().map(preference)),
        })
    });
    Ok(vec![
        ("v1.Pod.Spec.Affinity.NodeAffinity", text(&affinity)?),
        ("v1.Pod.Spec.Affinity.NodeSelector", text(&pod.spec.node_selector)?),
    ])
}

fn sorted(values: impl Iterator<Item = Value>) -> Vec<String> {
    let mut texts: Vec<String> = values.map(|value| value.to_string()).collect();
    texts.sort_unstable();
    texts
}

fn preference(term_with_weight: &PreferredSchedulingTerm) -> Value {
    json!({"Weight": term_with_weight.weight, "Preference": term(&term_with_weight.preference)})
}

fn term(term: &NodeSelectorTerm) -> Value {
    json!({
        "MatchExpressions": sorted(term.match_expressions.iter().map(requirement)),
        "MatchFields": sorted(term.match_fields.iter().map(requirement)),
    })
}

fn requirement(requirement: &NodeSelectorRequirement) -> Value {
    let mut values = requirement.values.clone();
    values.sort_unstable();
    json!({"key": requirement.key, "operator": requirement.operator, "values": values})
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::testing::decoded;

    #[test]
    fn order_of_tolerations_ports_and_terms_does_not_count() {
        let pod = |swap: bool| {
            let mut tolerations = vec![
                json!({"key": "a", "value": "2"}),
                json!({"key": "a", "value": "1", "operator": "Equal"}),
                json!({"key": "b", "operator": "Exists"}),
            ];
            let mut ports = vec![json!({"hostPort": 80}), json!({"hostPort": 8080}), json!({})];
            let mut expressions = vec![
                json!({"key": "zone", "operator": "In", "values": ["a", "b"]}),
                json!({"key": "arch", "operator": "Exists"}),
            ];
            if swap {
                tolerations.reverse();
                ports.reverse();
                ports.push(json!({"hostPort": 80}));
                expressions.reverse();
                expressions[1]["values"] = json!(["b", "a"]);
            }
            decoded::<Pod>(json!({"spec": {
                "tolerations": tolerations,
                "containers": [{"ports": ports}],
                "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution":
                        {"nodeSelectorTerms": [{"matchExpressions": expressions}]},
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 3, "preference": {"matchExpressions": expressions}}]}}}}))
        };
        let (one, other) = (pod(false), pod(true));
        assert_eq!(tolerations(&one), tolerations(&other));
        assert_eq!(host_ports(&one), host_ports(&other));
        assert_eq!(host_ports(&one).unwrap()[0].1, "[80,8080]");
        assert_eq!(node_affinity(&one), node_affinity(&other));
    }

    #[test]
    fn what_counts_makes_a_difference() {
        let base = decoded::<Pod>(json!({"spec": {"nodeSelector": {"zone": "a"}}}));
        let other = decoded::<Pod>(json!({"spec": {"nodeSelector": {"zone": "b"}}}));
        assert_ne!(node_affinity(&base), node_affinity(&other));
        let fragments = node_affinity(&base).unwrap();
        assert_eq!(fragments[0], ("v1.Pod.Spec.Affinity.NodeAffinity", "null".to_owned()));
        assert_eq!(fragments[1].1, r#"{"zone":"a"}"#);
        let preferring = |zone: &str| {
            let term = json!({"matchExpressions":
                [{"key": "zone", "operator": "In", "values": [zone]}]});
            let preferred = json!([{"weight": 3, "preference": term}]);
            decoded::<Pod>(json!({"spec": {"affinity": {"nodeAffinity":
                {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}}))
        };
        assert_ne!(node_affinity(&preferring("a")), node_affinity(&preferring("b")));
    }
}
