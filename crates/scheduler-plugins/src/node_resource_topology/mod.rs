//! NodeResourceTopologyMatch: rejects nodes whose kubelet could not take the resources of a pod or
//! container from one NUMA zone, and scores nodes by their zones.
//!
//! [`topology`] is the NodeResourceTopology, [`align`] the check, [`score`] the strategies,
//! [`cache`] what is known of zones that changed since their agent reported them, with the
//! [`fingerprint`] of the pods on a node.
//!
//! Preemption mode `Enabled` accounts for victims by the placement that an agent may report in the
//! NodeResourceTopology. That report is not read, so that mode decides as upstream does without it.
//!
//! Upstream: `pkg/noderesourcetopology` of kubernetes-sigs/scheduler-plugins.

pub mod align;
mod args;
pub mod cache;
pub mod fingerprint;
pub mod score;
#[cfg(test)]
mod tests;
pub mod topology;

use std::sync::Arc;

use crate::node_resource_topology::align::{Misalignment, needs};
use crate::node_resource_topology::args::NodeResourceTopologyMatchArgs;
use crate::node_resource_topology::cache::{NodeReport, ReportCache};
use crate::node_resource_topology::score::ZoneScoring;
use crate::node_resource_topology::topology::TOPOLOGIES;
use kubestep_framework::api::Pod;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::{
    ArgsType, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventObjects, EventResource, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{BindContext, CycleContext, Explanation, HandlerContext, Plugin};
use kubestep_framework::pod::qos::{QosClass, qos_class};
use kubestep_framework::record::scores::MAX_NODE_SCORE;
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    signs: false,
    args: Some(ArgsType::of::<NodeResourceTopologyMatchArgs>()),
    doc: "rejects nodes on which resources would come from several NUMA zones",
    long_doc: "If the NodeResourceTopology of a node says that its kubelet has the policy \
               single-numa-node, all resources of each container (scope container) or of the pod \
               (scope pod) must be free in one NUMA zone. Of pods that are not Guaranteed only \
               devices count. The score of a Guaranteed pod is by the strategy of the arguments, \
               that of others 100.",
    example: "A container requests 6 CPUs, and of the 8 free ones of a node 4 are in each zone: \
              \"cannot align container\".",
    ..PluginDescriptor::new(
        "NodeResourceTopologyMatch",
        &[
            ExtensionPoint::PreFilter,
            ExtensionPoint::Filter,
            ExtensionPoint::Score,
            ExtensionPoint::Reserve,
            ExtensionPoint::PostBind,
        ],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(args: &ProfileArgs, _: &FeatureGates) -> Built {
    let args: NodeResourceTopologyMatchArgs = args.of();
    Ok(Arc::new(TopologyMatch { cache: args.cache(), strategy: args.strategy() }))
}

struct TopologyMatch {
    cache: ReportCache,
    strategy: ZoneScoring,
}

impl TopologyMatch {
    /// Why the node cannot align the pod.
    fn misalignment(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> Option<Misalignment> {
        let class = qos_class(&cx.pod.pod);
        if class == QosClass::BestEffort && !requests_devices(&cx.pod.pod) {
            return None;
        }
        let topology = match self.cache.known(cx.objects, cx.shared, node.name) {
            NodeReport::Stale(why) => return Some(Misalignment::Stale(why)),
            NodeReport::Nothing => return None,
            NodeReport::NodeTopology(topology) => topology,
        };
        if !topology.manager.is_single_numa_node {
            return None;
        }
        let mut zones = topology.zones;
        let needs = needs(&cx.pod.pod, topology.manager.scope);
        needs.iter().find_map(|need| need.align(&mut zones, node, class))
    }
}

/// Whether a container requests a resource that Kubernetes itself does not have.
fn requests_devices(pod: &Pod) -> bool {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let lists = containers.filter_map(|container| container.resources.requests.as_ref());
    lists.flat_map(|list| list.keys()).any(|name| !align::is_native(&name))
}

impl Plugin for TopologyMatch {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let topologies = EventResource::Custom(TOPOLOGIES);
        Some(vec![
            Registration::always(EventResource::Pod, Action::DELETE),
            Registration::always(
                EventResource::Node,
                Action::ADD | Action::UPDATE_NODE_ALLOCATABLE,
            ),
            Registration::always(topologies, Action::ADD | Action::UPDATE),
        ])
    }

    fn handles_events(&self) -> bool {
        true
    }

    fn handle_event(&self, cx: &mut HandlerContext<'_>, objects: &EventObjects) {
        self.cache.handle_event(cx, objects);
    }

    fn filter(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
        self.misalignment(cx, node).map_or(Status::SUCCESS, |found| found.status())
    }

    fn explain(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Vec<Explanation> {
        self.misalignment(cx, node).map(|found| found.explain()).unwrap_or_default()
    }

    fn score(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        let class = qos_class(&cx.pod.pod);
        if class != QosClass::Guaranteed {
            return Ok(MAX_NODE_SCORE);
        }
        match self.cache.known(cx.objects, cx.shared, node.name) {
            NodeReport::NodeTopology(topology) => {
                Ok(self.strategy.score(&cx.pod.pod, topology.manager, topology.zones))
            }
            _ => Ok(0),
        }
    }

    fn reserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        self.cache.reserve(cx);
        Status::SUCCESS
    }

    fn unreserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) {
        self.cache.unreserve(cx);
    }

    fn post_bind(&self, cx: &mut BindContext<'_>, _: &mut CycleState) {
        self.cache.bound(cx);
    }
}
