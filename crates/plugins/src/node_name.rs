//! NodeName: a pod whose spec names a node fits on no other node.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodename/node_name.go`.

use std::sync::Arc;

use super::signers;
use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "only the node that the pod names",
    long_doc: "If a pod names a node in spec.nodeName, all other nodes are rejected.",
    example: "A pod that is created with nodeName n1 but still reaches the scheduler passes only \
              on n1.",
    ..PluginDescriptor::new("NodeName", &[ExtensionPoint::Filter])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    let name = Symbol::new("NodeName");
    let other = Status::unresolvable("node(s) didn't match the requested node name").by(name);
    Ok(Arc::new(NodeName { name, other }))
}

struct NodeName {
    name: Symbol,
    other: Status,
}

impl Plugin for NodeName {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        Some(pod.pod.spec.node_name.to_string())
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![Registration::always(EventResource::Node, Action::ADD)])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::all_node_updates
    }

    fn filter(&self, cx: &CycleContext<'_>, _state: &CycleState, node: &NodeInfo) -> Status {
        let wanted = cx.pod.pod.spec.node_name;
        if wanted.is_empty() || wanted == node.name {
            return Status::SUCCESS;
        }
        self.other.clone()
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        signers::fragment("v1.Pod.Spec.NodeName", &pod.pod.spec.node_name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_framework::testing::{Cluster, info_of, plugin};

    #[test]
    fn only_the_named_node_passes() {
        let nodes = ["a", "b"].map(|name| json!({"metadata": {"name": name}}));
        let cluster = Cluster::of(nodes.to_vec(), vec![]);
        let name = plugin(build, &ProfileArgs::default());
        let other = "node(s) didn't match the requested node name";
        for (wanted, expected) in [("", ["", ""]), ("b", [other, ""]), ("c", [other, other])] {
            let new = info_of(json!({"spec": {"nodeName": wanted}}));
            assert_eq!(cluster.rejections(&name, &new), expected);
        }
    }
}
