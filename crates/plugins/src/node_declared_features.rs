//! NodeDeclaredFeatures: rejects nodes that do not declare a kubelet feature that the pod needs.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go` and
//! `staging/src/k8s.io/component-helpers/nodedeclaredfeatures`.

use std::sync::Arc;

use super::signers;
use crate::keys;
use kubestep_api::intern::Symbol;
use kubestep_api::{ContainerRestartRuleAction, PodSpec};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginChange, PluginDescriptor,
    ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, QueueingHint, Registration,
};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// Whether a pod needs a feature.
type Needs = fn(&PodSpec, &FeatureGates) -> bool;

/// The features that upstream registers, sorted by name, and when a pod needs them.
const REGISTRY: [(&str, Needs); 5] = [
    ("ExtendWebSocketsToKubelet", |_, _| false),
    ("InPlacePodLevelResourcesVerticalScaling", |_, _| false),
    ("InPlacePodVerticalScalingInitContainers", |_, _| false),
    ("RestartAllContainersOnContainerExits", restarts_all_containers),
    ("UserNamespacesHostNetworkSupport", uses_host_network_in_user_namespace),
];

fn restarts_all_containers(spec: &PodSpec, _: &FeatureGates) -> bool {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    containers
        .flat_map(|container| &container.restart_policy_rules)
        .any(|rule| rule.action == ContainerRestartRuleAction::RestartAllContainers)
}

fn uses_host_network_in_user_namespace(spec: &PodSpec, gates: &FeatureGates) -> bool {
    let counts = gates.has(Switch::HostNetworkUsersNeedFeature);
    counts && spec.host_network && spec.host_users == Some(false)
}

/// A set of features: bit i stands for the i-th of the registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FeatureSet(u8);

impl FeatureSet {
    /// The features that a pod needs.
    fn needed_by(spec: &PodSpec, gates: &FeatureGates) -> FeatureSet {
        let needed = REGISTRY.iter().enumerate().filter(|(_, (_, needs))| needs(spec, gates));
        FeatureSet(needed.fold(0, |set, (at, _)| set | 1 << at))
    }

    /// The features that a node declares. Upstream merges both lists and assumes that the node's is
    /// sorted, so it misses features that are out of order; up to 1.35 it does not.
    fn declared(features: &[Symbol], in_order: bool) -> FeatureSet {
        if !in_order {
            let is_declared =
                |at: &usize| features.iter().any(|name| name.as_str() == REGISTRY[*at].0);
            let declared = (0..REGISTRY.len()).filter(is_declared);
            return FeatureSet(declared.fold(0, |set, at| set | 1 << at));
        }
        let (mut set, mut known) = (0, 0);
        for feature in features {
            while known < REGISTRY.len() && REGISTRY[known].0 < feature.as_str() {
                known += 1;
            }
            if known < REGISTRY.len() && REGISTRY[known].0 == feature.as_str() {
                set |= 1 << known;
                known += 1;
            }
        }
        FeatureSet(set)
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names of those that are not declared.
    fn lacking_in(self, declared: FeatureSet) -> Vec<&'static str> {
        let lacks = |at: &usize| (self.0 & !declared.0) & (1 << at) != 0;
        (0..REGISTRY.len()).filter(lacks).map(|at| REGISTRY[at].0).collect()
    }

    fn is_subset_of(self, other: FeatureSet) -> bool {
        self.0 & !other.0 == 0
    }
}

/// The features that a pod needs and a node does not declare, as the plugin reads its list.
pub fn undeclared(pod: &PodSpec, node: &NodeInfo, gates: &FeatureGates) -> Vec<&'static str> {
    let declared = node.node.as_ref().map_or(&[][..], |node| &node.status.declared_features);
    let declared = FeatureSet::declared(declared, gates.has(Switch::DeclaredFeaturesInOrder));
    FeatureSet::needed_by(pod, gates).lacking_in(declared)
}

/// The status of a node that lacks features, as up to 1.35.
fn rejection_by_name(features: &[&str]) -> Status {
    Status::unresolvable(&format!(
        "node declared features check failed - unsatisfied requirements: {}",
        features.join(", ")
    ))
}

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Gated(Feature::NodeDeclaredFeatures),
    history: &[PluginChange::Exists(Switch::NodeDeclaredFeaturesPlugin)],
    doc: "features that the node must declare",
    long_doc: "Infers from the pod which node features it requires and rejects nodes that do not \
               declare them in status.declaredFeatures.",
    example: "A pod that requires a feature of the kubelet is rejected on nodes whose \
              status.declaredFeatures does not list it, such as nodes of an older version.",
    ..PluginDescriptor::new(
        "NodeDeclaredFeatures",
        &[ExtensionPoint::PreFilter, ExtensionPoint::Filter],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    let name = Symbol::new("NodeDeclaredFeatures");
    Ok(Arc::new(NodeDeclaredFeatures {
        name,
        enabled: features.enabled(Feature::NodeDeclaredFeatures),
        in_order: features.has(Switch::DeclaredFeaturesInOrder),
        lacking: features
            .has(Switch::DeclaredFeaturesFixedMessage)
            .then(|| Status::unresolvable("node(s) didn't match Pod's required features").by(name)),
    }))
}

struct NodeDeclaredFeatures {
    name: Symbol,
    enabled: bool,
    /// Whether features that a node declares out of order do not count.
    in_order: bool,
    /// The status of every rejected node; `None` where the reason lists the features.
    lacking: Option<Status>,
}

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        keys::key_of(&pod.pod.spec)
    }

    fn events(&self) -> Option<Vec<Registration>> {
        if !self.enabled {
            return Some(Vec::new());
        }
        let nodes = Action::ADD | Action::UPDATE_NODE_DECLARED_FEATURE;
        Some(vec![
            Registration::hinted(EventResource::Node, nodes, after_node_change),
            Registration::hinted(EventResource::Pod, Action::UPDATE, after_own_change),
        ])
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        let needed = FeatureSet::needed_by(&cx.pod.pod.spec, cx.features);
        if !self.enabled || needed.is_empty() {
            return Status::skip().into();
        }
        state.write(needed);
        PreFilterAnswer::default()
    }

    fn filter(&self, _cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        if !self.enabled {
            return Status::SUCCESS;
        }
        let Some(needed) = state.read::<FeatureSet>() else {
            let text =
                r#"error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found"#;
            return Status::error(text);
        };
        let declared = node.node.as_ref().map_or(&[][..], |node| &node.status.declared_features);
        let declared = FeatureSet::declared(declared, self.in_order);
        match &self.lacking {
            _ if needed.is_subset_of(declared) => Status::SUCCESS,
            Some(fixed) => fixed.clone(),
            None => rejection_by_name(&needed.lacking_in(declared)).by(self.name),
        }
    }

    fn sign(&self, cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        let needed = FeatureSet::needed_by(&pod.pod.spec, cx.features);
        let bit = |at: usize| if needed.0 & (1 << at) == 0 { '0' } else { '1' };
        let bits: String = (0..REGISTRY.len()).map(bit).collect();
        signers::fragment("v1.Pod.Spec.RequiredFeatures()", &bits)
    }
}

/// A node helps if it is new or declares other features than before.
fn after_node_change(_: &QueueContext<'_>, _: &PodInfo, objects: &EventObjects) -> HintResult {
    let (old, new) = objects.nodes()?;
    let declared = |node: &'_ kubestep_api::Node| node.status.declared_features.clone();
    Ok(QueueingHint::queue_if(old.is_none() || old.map(declared) != new.map(declared)))
}

/// An update of the pod itself helps if it requires other features than before.
fn after_own_change(cx: &QueueContext<'_>, pod: &PodInfo, objects: &EventObjects) -> HintResult {
    let (old, _) = objects.pods()?;
    let needed = |pod: &kubestep_api::Pod| FeatureSet::needed_by(&pod.spec, cx.features);
    let updated = objects.updated_pod(pod.uid())?;
    Ok(QueueingHint::queue_if(updated.is_some_and(|new| old.map(needed) != Some(needed(new)))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::{Node, Object, Pod};
    use kubestep_config::KubeVersion;
    use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

    const RESTART: &str = "RestartAllContainersOnContainerExits";
    const USERS: &str = "UserNamespacesHostNetworkSupport";

    fn node(name: &str, features: &[&str]) -> Value {
        json!({"metadata": {"name": name}, "status": {"declaredFeatures": features}})
    }

    fn needs_users(uid: &str) -> Value {
        json!({"metadata": {"uid": uid}, "spec": {"hostNetwork": true, "hostUsers": false}})
    }

    #[test]
    fn a_pod_without_needs_skips() {
        let features = plugin(build, &ProfileArgs::default());
        let cluster = Cluster::of(vec![node("n", &[])], vec![]);
        for spec in [
            json!({}),
            json!({"hostNetwork": true}),
            json!({"hostNetwork": true, "hostUsers": true}),
            json!({"hostUsers": false}),
            json!({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}),
        ] {
            let status = cluster.filter(&features, &info_of(json!({"spec": spec}))).unwrap_err();
            assert!(status.is_skip(), "{spec}");
        }
    }

    #[test]
    fn needs_must_be_declared_in_a_sorted_list() {
        let features = plugin(build, &ProfileArgs::default());
        let nodes = vec![
            node("both", &["A", RESTART, "Unknown", USERS]),
            node("one", &[USERS]),
            node("unsorted", &[USERS, RESTART]),
            node("none", &[]),
        ];
        let cluster = Cluster::of(nodes, vec![]);
        let lacks = "node(s) didn't match Pod's required features";
        let rejections = |json| cluster.rejections(&features, &info_of(json));
        assert_eq!(rejections(needs_users("1")), ["", "", "", lacks]);
        let rules = json!([{"action": "Restart"}, {"action": "RestartAllContainers"}]);
        let restarting =
            json!({"spec": {"initContainers": [{"restartPolicyRules": rules.clone()}]}});
        assert_eq!(rejections(restarting), ["", lacks, lacks, lacks]);
        let mut both = needs_users("1");
        both["spec"]["containers"] = json!([{"restartPolicyRules": rules}]);
        assert_eq!(rejections(both), ["", lacks, lacks, lacks]);
    }

    #[test]
    fn what_a_node_does_not_declare_is_named() {
        let cluster = Cluster::of(vec![node("one", &[USERS]), node("none", &[])], vec![]);
        let mut pod = needs_users("1");
        pod["spec"]["containers"] =
            json!([{"restartPolicyRules": [{"action": "RestartAllContainers"}]}]);
        let (pod, gates) = (info_of(pod), FeatureGates::default());
        let named = |node| undeclared(&pod.pod.spec, node, &gates);
        let named: Vec<_> = cluster.snapshot.iter().map(|node| named(node)).collect();
        assert_eq!(named, [vec![RESTART], vec![RESTART, USERS]]);
    }

    #[test]
    fn up_to_1_35_order_and_user_namespaces_on_the_host_network_do_not_matter() {
        let of_1_35 = FeatureGates::of(KubeVersion::of_minor(35).unwrap());
        let gates = of_1_35.with(Feature::NodeDeclaredFeatures, true);
        let features = build(&ProfileArgs::default(), &gates).unwrap();
        let nodes = vec![node("unsorted", &[USERS, RESTART]), node("none", &[])];
        let cluster = Cluster { features: gates, ..Cluster::of(nodes, vec![]) };
        let rules = json!([{"action": "RestartAllContainers"}]);
        let restarting = info_of(json!({"spec": {"containers": [{"restartPolicyRules": rules}]}}));
        let lacks =
            format!("node declared features check failed - unsatisfied requirements: {RESTART}");
        assert_eq!(cluster.rejections(&features, &restarting), [String::new(), lacks]);
        let in_namespace = cluster.filter(&features, &info_of(needs_users("1")));
        assert!(in_namespace.unwrap_err().is_skip());
    }

    #[test]
    fn a_changed_list_or_changed_needs_are_worth_a_retry() {
        let features = plugin(build, &ProfileArgs::default());
        let waiting = info_of(needs_users("1"));
        let on_node = |old: Option<&[&str]>, new: &[&str]| {
            let node = |features: &[&str]| Object::from(decoded::<Node>(node("n", features)));
            let old = old.map(node);
            Cluster::default().hint(&features, &waiting, old, Some(node(new)))
        };
        assert_eq!(on_node(None, &[]), QueueingHint::Queue);
        assert_eq!(on_node(Some(&[]), &[USERS]), QueueingHint::Queue);
        assert_eq!(on_node(Some(&[USERS]), &[USERS]), QueueingHint::Skip);
        let on_pod = |old: Value, new: Value| {
            let pod = |json| Some(Object::from(decoded::<Pod>(json)));
            Cluster::default().hint(&features, &waiting, pod(old), pod(new))
        };
        let plain = |uid: &str| json!({"metadata": {"uid": uid}});
        assert_eq!(on_pod(needs_users("1"), plain("1")), QueueingHint::Queue);
        assert_eq!(on_pod(needs_users("1"), needs_users("1")), QueueingHint::Skip);
        assert_eq!(on_pod(needs_users("2"), plain("2")), QueueingHint::Skip);
    }

    #[test]
    fn the_signature_is_the_set_as_bits() {
        let features = plugin(build, &ProfileArgs::default());
        let fragments =
            features.sign(&Cluster::default().queue(), &info_of(needs_users("1"))).unwrap();
        assert_eq!(fragments, [("v1.Pod.Spec.RequiredFeatures()", "\"00001\"".to_owned())]);
    }
}
