//! NodeUnschedulable: rejects unschedulable (cordoned) nodes for pods that do not tolerate them.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go`.

use std::sync::Arc;

use super::signers;
use crate::keys;
use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_api::selector::tolerates;
use kubestep_api::{Pod, Taint, TaintEffect};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "keeps pods off cordoned nodes",
    long_doc: "A node with spec.unschedulable is rejected, unless the pod tolerates the taint \
               node.kubernetes.io/unschedulable:NoSchedule.",
    example: "After \"kubectl cordon n1\" only pods that tolerate \
              node.kubernetes.io/unschedulable, such as those of a DaemonSet, are scheduled to n1.",
    ..PluginDescriptor::new("NodeUnschedulable", &[ExtensionPoint::Filter])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    let name = Symbol::new("NodeUnschedulable");
    let key = Symbol::new("node.kubernetes.io/unschedulable");
    Ok(Arc::new(NodeUnschedulable {
        name,
        taint: Taint { key, effect: TaintEffect::NoSchedule, ..Taint::default() },
        comparisons: features.enabled(Feature::TaintTolerationComparisonOperators),
        cordoned: Status::unresolvable("node(s) were unschedulable").by(name),
    }))
}

struct NodeUnschedulable {
    name: Symbol,
    /// The taint that a pod must tolerate to run on an unschedulable node.
    taint: Taint,
    comparisons: bool,
    cordoned: Status,
}

fn is_tolerated_by(pod: &Pod, taint: &Taint, comparisons: bool) -> bool {
    pod.spec.tolerations.iter().any(|toleration| tolerates(toleration, taint, comparisons))
}

/// A node helps if it was cordoned, or is new, and is not cordoned now.
fn after_node_change(cx: &QueueContext<'_>, _: &PodInfo, objects: &EventObjects) -> HintResult {
    let (old, new) = objects.nodes()?;
    let old = old.filter(|_| cx.features.has(Switch::UncordonRequeues));
    let was_cordoned = old.is_none_or(|node| node.spec.unschedulable);
    Ok(QueueingHint::queue_if(was_cordoned && new.is_some_and(|node| !node.spec.unschedulable)))
}

impl Plugin for NodeUnschedulable {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        keys::tolerations(pod)
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let nodes = Action::ADD | Action::UPDATE_NODE_TAINT;
        let (taint, comparisons) = (self.taint.clone(), self.comparisons);
        let tolerations = Action::UPDATE_POD_TOLERATION;
        Some(vec![
            Registration::hinted(EventResource::Node, nodes, after_node_change),
            Registration::hinted(EventResource::Pod, tolerations, move |_, pod, objects| {
                let updated = objects.updated_pod(pod.uid())?;
                let tolerates = |pod: &Pod| is_tolerated_by(pod, &taint, comparisons);
                Ok(QueueingHint::queue_if(updated.is_some_and(tolerates)))
            }),
        ])
    }

    /// Tolerations are events since 1.32, with queueing hints only.
    fn older_registration(&self) -> OlderRegistration {
        |rules, newest| {
            let counts = newest.event.resource != EventResource::Pod;
            older_events::all_node_updates(rules, newest).filter(|_| counts)
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        let cordoned = node.node.as_ref().is_some_and(|node| node.spec.unschedulable);
        if cordoned && !is_tolerated_by(&cx.pod.pod, &self.taint, self.comparisons) {
            return self.cordoned.clone();
        }
        Status::SUCCESS
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        signers::tolerations(&pod.pod)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::Node;
    use kubestep_api::Object;
    use kubestep_config::KubeVersion;
    use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

    fn node(cordoned: bool) -> Value {
        json!({"metadata": {"name": "n"}, "spec": {"unschedulable": cordoned}})
    }

    fn tolerating(key: &str) -> Value {
        json!({"metadata": {"name": "p", "uid": "1"}, "spec": {"tolerations": [
            {"key": key, "effect": "NoSchedule", "operator": "Exists"}]}})
    }

    #[test]
    fn a_cordoned_node_takes_only_pods_that_tolerate_it() {
        let cluster = Cluster::of(vec![node(true), node(false)], vec![]);
        let cordon = plugin(build, &ProfileArgs::default());
        let rejections = |json| cluster.rejections(&cordon, &info_of(json));
        assert_eq!(rejections(json!({})), ["node(s) were unschedulable", ""]);
        assert_eq!(rejections(tolerating("node.kubernetes.io/unschedulable")), ["", ""]);
        assert_eq!(rejections(tolerating("other")), ["node(s) were unschedulable", ""]);
    }

    #[test]
    fn a_retry_is_worth_it_when_a_node_opens_or_the_pod_learns_to_tolerate() {
        let cluster = Cluster::default();
        let cordon = plugin(build, &ProfileArgs::default());
        let waiting = info_of(tolerating("other"));
        let hint = |old: Option<bool>, new: bool| {
            let node = |cordoned| Object::from(decoded::<Node>(node(cordoned)));
            cluster.hint(&cordon, &waiting, old.map(node), Some(node(new)))
        };
        assert_eq!(hint(None, false), QueueingHint::Queue);
        assert_eq!(hint(None, true), QueueingHint::Skip);
        assert_eq!(hint(Some(true), false), QueueingHint::Queue);
        assert_eq!(hint(Some(false), false), QueueingHint::Skip);
        assert_eq!(hint(Some(false), true), QueueingHint::Skip);
        assert_eq!(hint(Some(true), true), QueueingHint::Skip);
        let changed = |key: &str, uid: &str| {
            let mut json = tolerating(key);
            json["metadata"]["uid"] = uid.into();
            let new = Object::from(decoded::<Pod>(json));
            cluster.hint(&cordon, &waiting, None, Some(new))
        };
        assert_eq!(changed("node.kubernetes.io/unschedulable", "1"), QueueingHint::Queue);
        assert_eq!(changed("node.kubernetes.io/unschedulable", "2"), QueueingHint::Skip);
        assert_eq!(changed("more", "1"), QueueingHint::Skip);
    }

    #[test]
    fn up_to_1_31_every_update_of_an_open_node_is_worth_a_retry() {
        let of_1_31 = FeatureGates::of(KubeVersion::OLDEST);
        let cluster = Cluster { features: of_1_31, ..Cluster::default() };
        let cordon = plugin(build, &ProfileArgs::default());
        let hint = |old: bool, new: bool| {
            let node = |cordoned| Some(Object::from(decoded::<Node>(node(cordoned))));
            cluster.hint(&cordon, &info_of(tolerating("other")), node(old), node(new))
        };
        assert_eq!(
            [hint(false, false), hint(true, true)],
            [QueueingHint::Queue, QueueingHint::Skip]
        );
    }
}
