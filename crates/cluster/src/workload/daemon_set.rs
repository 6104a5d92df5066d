//! DaemonSets: a pod for each eligible node, bound to it by node affinity.
//!
//! Upstream: `NodeShouldRunDaemonPod` and `AddOrUpdateDaemonPodTolerations` in
//! `pkg/controller/daemon`.

use std::sync::Arc;

use serde_json::Value;

use super::manifest::WorkloadManifest;
use super::{ExpandedWorkload, WorkloadInputs, named, owned_pod};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::{RequiredNodeAffinity, find_untolerated_taint};
use kubestep_api::words::count;
use kubestep_api::{
    Affinity, DecodeError, Name, Node, NodeSelector, NodeSelectorOperator, NodeSelectorRequirement,
    NodeSelectorTerm, Pod, Pooled, Taint, TaintEffect, Toleration, TolerationOperator,
};

/// Taints that every daemon pod tolerates.
const TOLERATED: &[(&str, TaintEffect)] = &[
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/memory-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule),
];
/// The taint that a daemon pod with host network tolerates in addition.
const NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";

/// A DaemonSet's pods, in the order of the nodes.
pub(super) fn expand(
    manifest: &WorkloadManifest<'_>,
    surroundings: &WorkloadInputs<'_>,
) -> Result<ExpandedWorkload, DecodeError> {
    if surroundings.replicas.is_some() {
        let message = "a DaemonSet has one pod for each node: omit --replicas";
        return Err(manifest.error("", message));
    }
    let wanted = node_name(manifest);
    let mut pod = owned_pod(manifest)?;
    pod.metadata.labels.insert("controller-revision-hash".into(), manifest.hash().as_str().into());
    pod.metadata.labels.insert("pod-template-generation".into(), "1".into());
    tolerate(&mut pod);
    let suits = |node: &&Arc<Node>| {
        (wanted.is_empty() || node.metadata.name == wanted) && DaemonFit::of(&pod, node).creates
    };
    let nodes: Vec<Name> =
        surroundings.nodes.iter().filter(suits).map(|node| node.metadata.name).collect();
    let others = surroundings.nodes.len() - nodes.len();
    let notices = (others > 0)
        .then(|| format!("{}: is not for {}", manifest.title(), count(others, "other node")));
    let name = manifest.name.to_owned();
    Ok(ExpandedWorkload {
        name: manifest.title(),
        owners: Vec::new(),
        replicas: nodes.len(),
        can_grow: false,
        notices: notices.into_iter().collect(),
        make: Box::new(move |number| match nodes.get(number) {
            Some(node) => vec![for_node(named(&pod, &format!("{name}-{node}")), *node).into()],
            None => Vec::new(),
        }),
    })
}

fn tolerate(pod: &mut Pod) {
    let network = pod.spec.host_network.then_some((NETWORK_UNAVAILABLE, TaintEffect::NoSchedule));
    let added = TOLERATED.iter().copied().chain(network).map(|(key, effect)| Toleration {
        key: Symbol::new(key),
        operator: TolerationOperator::Exists,
        effect,
        ..Toleration::default()
    });
    pod.spec.tolerations.update(|tolerations| {
        for toleration in added {
            let same = |other: &Toleration| {
                let Toleration { key, operator, value, effect, .. } = other;
                (*key, *operator, *value, *effect)
                    == (toleration.key, toleration.operator, toleration.value, toleration.effect)
            };
            tolerations.retain(|other| !same(other));
            tolerations.push(toleration);
        }
    });
}

/// Whether the controller would create a pod like this one, which runs on another node, for the
/// node. The node affinity of the DaemonSet itself is not known from its pods.
pub fn suits_daemon(pod: &Pod, node: &Node) -> bool {
    DaemonFit::of(&without_affinity(pod), node).creates
}

/// The pod of a DaemonSet's template as far as its pods show it.
pub(crate) fn without_affinity(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    pod.spec.affinity = None;
    pod.spec.node_name = Name::EMPTY;
    pod
}

/// The pod of a DaemonSet's template, with the tolerations that every daemon pod has; `None` if the
/// template is not understood.
pub(crate) fn template(set: &Value) -> Option<Pod> {
    let manifest = WorkloadManifest::new(set);
    let mut pod = manifest.template_pod().ok()?;
    tolerate(&mut pod);
    pod.spec.node_name = Name::new(node_name(&manifest));
    Some(pod)
}

/// The node to which a template binds its pods, empty for all.
fn node_name<'a>(manifest: &WorkloadManifest<'a>) -> &'a str {
    manifest.field("spec.template.spec.nodeName").as_str().unwrap_or_default()
}

/// What the controller of a DaemonSet does on a node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct DaemonFit {
    /// It creates a pod there.
    pub creates: bool,
    /// A pod that is there stays.
    pub keeps: bool,
}

impl DaemonFit {
    /// For the pod of the template. An invalid selector matches no node.
    pub(crate) fn of(pod: &Pod, node: &Node) -> DaemonFit {
        let wanted = pod.spec.node_name;
        let affinity = RequiredNodeAffinity::of(pod);
        let matches = affinity.matches(&node.metadata.labels, node.metadata.name).unwrap_or(false);
        if !matches || !(wanted.is_empty() || wanted == node.metadata.name) {
            return DaemonFit::default();
        }
        let untolerated = |effects: &[TaintEffect]| {
            let (taints, tolerations) = (&node.spec.taints, &pod.spec.tolerations);
            let counts = |taint: &Taint| effects.contains(&taint.effect);
            find_untolerated_taint(taints, tolerations, false, counts).is_some()
        };
        DaemonFit {
            creates: !untolerated(&[TaintEffect::NoExecute, TaintEffect::NoSchedule]),
            keeps: !untolerated(&[TaintEffect::NoExecute]),
        }
    }
}

/// Replaces the required node affinity with one for the node's name.
pub(crate) fn for_node(mut pod: Pod, node: Name) -> Pod {
    let by_name = NodeSelectorRequirement {
        key: "metadata.name".into(),
        operator: NodeSelectorOperator::In,
        values: vec![node],
    };
    let term = NodeSelectorTerm { match_expressions: Vec::new(), match_fields: vec![by_name] };
    let mut affinity = pod.spec.affinity.as_deref().cloned().unwrap_or_else(Affinity::default);
    let mut of_nodes = affinity.node_affinity.take().unwrap_or_default();
    of_nodes.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
    affinity.node_affinity = Some(of_nodes);
    pod.spec.affinity = Some(Pooled::new(affinity));
    pod
}
