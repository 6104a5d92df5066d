//! NodePorts: two pods on a node cannot use the same host port.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodeports/node_ports.go`.

use std::sync::Arc;

use super::signers;
use crate::is_placed;
use crate::older_events;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod::ports::{HostPort, container_host_ports};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "host ports that are already in use",
    long_doc: "A node is rejected if a pod on it uses one of the host ports that the pod requests, \
               with the same protocol and an overlapping address.",
    example: "Two pods with hostPort 8080 and protocol TCP cannot be on one node, unless their \
             hostIP differs and neither is 0.0.0.0.",
    ..PluginDescriptor::new("NodePorts", &[ExtensionPoint::PreFilter, ExtensionPoint::Filter])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    let name = Symbol::new("NodePorts");
    let text = "node(s) didn't have free ports for the requested pod ports";
    Ok(Arc::new(NodePorts { name, taken: Status::unschedulable(text).by(name) }))
}

struct NodePorts {
    name: Symbol,
    taken: Status,
}

/// Marks that PreFilter ran; the ports are in the pod's info.
#[derive(Clone)]
struct PortsWanted;

/// The host ports that the pod wants and that are in use on the node: each with one in use that
/// conflicts with it.
pub fn taken<'a>(
    pod: &'a PodInfo,
    node: &'a NodeInfo,
) -> impl Iterator<Item = (&'a HostPort, &'a HostPort)> {
    pod.host_ports
        .iter()
        .flat_map(|wanted| node.used_ports.conflicting(wanted).map(move |used| (wanted, used)))
}

impl Plugin for NodePorts {
    fn name(&self) -> Symbol {
        self.name
    }

    fn filter_key(&self, pod: &PodInfo) -> Option<String> {
        Some(format!("{:?}", pod.host_ports))
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::hinted(EventResource::Pod, Action::DELETE, after_pod_deletion),
            Registration::always(EventResource::Node, Action::ADD),
        ])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::all_node_updates
    }

    fn admits(&self, _cx: &QueueContext<'_>, pod: &PodInfo, node: &NodeInfo) -> bool {
        taken(pod, node).next().is_none()
    }

    /// Skips pods without host ports; those of init containers count only for sidecars.
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        if cx.pod.host_ports.is_empty() {
            return Status::skip().into();
        }
        state.write(PortsWanted);
        PreFilterAnswer::default()
    }

    /// Unschedulable only, as preemption can free a port. Conflicts among the pod's own ports are
    /// not checked.
    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        if state.read::<PortsWanted>().is_none() {
            return Status::error(r#"reading "PreFilterNodePorts" from cycleState: not found"#);
        }
        match taken(cx.pod, node).next() {
            Some(_) => self.taken.clone(),
            None => Status::SUCCESS,
        }
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        signers::host_ports(&pod.pod)
    }
}

/// A deleted pod helps if it used a host port that the pod wants.
fn after_pod_deletion(cx: &QueueContext<'_>, pod: &PodInfo, objects: &EventObjects) -> HintResult {
    let (Some(deleted), _) = objects.pods()? else { return Ok(QueueingHint::Queue) };
    if !is_placed(deleted, cx.features, Switch::PortsHintCountsNominated) {
        return Ok(QueueingHint::Skip);
    }
    let freed = container_host_ports(deleted, cx.features);
    let conflicts = |wanted: &HostPort| freed.iter().any(|free| wanted.conflicts_with(free));
    Ok(QueueingHint::queue_if(pod.host_ports.iter().any(conflicts)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use kubestep_api::{Object, Pod};
    use kubestep_framework::testing::{Cluster, decoded, info_of, plugin};

    /// A pod with ports given as `protocol/address/number`; `node` may be empty.
    fn with_ports(node: &str, ports: &[&str]) -> Value {
        let ports: Vec<Value> = ports
            .iter()
            .map(|port| {
                let parts: Vec<&str> = port.split('/').collect();
                json!({"protocol": parts[0], "hostIP": parts[1],
                    "hostPort": parts[2].parse::<i32>().unwrap()})
            })
            .collect();
        json!({"metadata": {"name": "p"},
            "spec": {"nodeName": node, "containers": [{"name": "c", "ports": ports}]}})
    }

    #[test]
    fn ports_clash_by_protocol_address_and_number() {
        let ports = plugin(build, &ProfileArgs::default());
        for (wanted, used, clash) in [
            (vec!["UDP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/9090"], false),
            (vec!["UDP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/8080"], true),
            (vec!["TCP/127.0.0.1/8080"], vec!["UDP/127.0.0.1/8080"], false),
            (vec!["TCP/127.0.0.1/8080"], vec!["TCP/127.0.0.2/8080"], false),
            (vec!["UDP/0.0.0.0/8001"], vec!["UDP/127.0.0.1/8001"], true),
            (vec!["TCP/10.0.10.10/8001"], vec!["TCP/0.0.0.0/8001"], true),
            (vec!["TCP//8001", "UDP//8080"], vec!["TCP/127.0.0.1/8001"], true),
            (vec!["TCP//80", "SCTP//8080"], vec!["SCTP/10.1.1.1/8080"], true),
        ] {
            let cluster =
                Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![with_ports("n", &used)]);
            let rejections = cluster.rejections(&ports, &info_of(with_ports("", &wanted)));
            let reason = "node(s) didn't have free ports for the requested pod ports";
            assert_eq!(rejections, [if clash { reason } else { "" }], "{wanted:?} {used:?}");
        }
    }

    #[test]
    fn pods_without_host_ports_skip_and_only_sidecars_count_of_init_containers() {
        let ports = plugin(build, &ProfileArgs::default());
        let cluster = Cluster::of(vec![json!({"metadata": {"name": "n"}})], vec![]);
        let plain = with_ports("", &["TCP//0"]);
        assert!(cluster.filter(&ports, &info_of(plain)).unwrap_err().is_skip());
        let init = |policy: Value| {
            info_of(json!({"spec": {"initContainers": [
                {"name": "i", "restartPolicy": policy, "ports": [{"hostPort": 80}]}]}}))
        };
        assert!(cluster.filter(&ports, &init(Value::Null)).unwrap_err().is_skip());
        assert!(cluster.filter(&ports, &init("Always".into())).unwrap()[0].is_success());
    }

    #[test]
    fn a_deleted_pod_matters_if_it_held_a_wanted_port_on_a_node() {
        let ports = plugin(build, &ProfileArgs::default());
        let waiting = info_of(with_ports("", &["TCP//80"]));
        let hint = |deleted: Value| {
            let old = Object::from(decoded::<Pod>(deleted));
            Cluster::default().hint(&ports, &waiting, Some(old), None)
        };
        assert_eq!(hint(with_ports("n", &["TCP/10.0.0.1/80"])), QueueingHint::Queue);
        assert_eq!(hint(with_ports("n", &["UDP//80"])), QueueingHint::Skip);
        assert_eq!(hint(with_ports("n", &[])), QueueingHint::Skip);
        assert_eq!(hint(with_ports("", &["TCP//80"])), QueueingHint::Skip);
        let mut nominated = with_ports("", &["TCP//80"]);
        nominated["status"] = json!({"nominatedNodeName": "n"});
        assert_eq!(hint(nominated), QueueingHint::Queue);
    }
}
