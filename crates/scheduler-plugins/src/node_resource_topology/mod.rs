//! NodeResourceTopologyMatch: rejects nodes whose kubelet could not take the resources of a pod or
//! container from one NUMA zone, and scores nodes by their zones.
//!
//! [`topology`] is the NodeResourceTopology, [`align`] the check, [`score`] the strategies,
//! [`cache`] what is known of zones that changed since their agent reported them, with the
//! [`fingerprint`] of the pods on a node, and [`placement`] what victims of preemption free in which zone.
//!
//! Upstream: `pkg/noderesourcetopology` of kubernetes-sigs/scheduler-plugins.

pub mod align;
mod args;
pub mod cache;
mod exclusive;
pub mod fingerprint;
pub mod placement;
pub mod score;
#[cfg(test)]
mod tests;
pub mod topology;

use kubestep_framework::api::Name;
use std::sync::Arc;

use crate::node_resource_topology::align::{Misalignment, needs};
use crate::node_resource_topology::args::NodeResourceTopologyMatchArgs;
use crate::node_resource_topology::cache::{NodeReport, ReportCache};
use crate::node_resource_topology::exclusive::requests_devices;
use crate::node_resource_topology::placement::Victims;
use crate::node_resource_topology::score::ZoneScoring;
use crate::node_resource_topology::topology::TOPOLOGIES;
use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::{
    ArgsType, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventObjects, EventResource, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{
    BindContext, CycleContext, Explanation, HandlerContext, Plugin, PreFilterAnswer,
};
use kubestep_framework::pod::PodInfo;
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
    let counts_victims = args.counts_victims();
    Ok(Arc::new(TopologyMatch { cache: args.cache(), strategy: args.strategy(), counts_victims }))
}

struct TopologyMatch {
    cache: ReportCache,
    strategy: ZoneScoring,
    /// Whether preemption mode is `Enabled`.
    counts_victims: bool,
}

impl TopologyMatch {
    /// Why the node cannot align the pod.
    fn misalignment(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Option<Misalignment> {
        let class = qos_class(&cx.pod.pod);
        if class == QosClass::BestEffort && !requests_devices(&cx.pod.pod) {
            return None;
        }
        let mut topology = match self.cache.known(cx.objects, cx.shared, node.name) {
            NodeReport::Stale(why) => return Some(Misalignment::Stale(why)),
            NodeReport::Nothing => return None,
            NodeReport::NodeTopology(topology) => topology,
        };
        if let Some(victims) = state.read::<Victims>().filter(|victims| !victims.0.is_empty())
            && let Err(why) = self.cache.release(cx.shared, node.name, victims, &mut topology.zones)
        {
            return Some(Misalignment::Eviction(why));
        }
        if !topology.manager.is_single_numa_node {
            return None;
        }
        let mut zones = topology.zones;
        let needs = needs(&cx.pod.pod, topology.manager.scope);
        needs.iter().find_map(|need| need.align(&mut zones, node, class))
    }
}

/// The status of upstream if PreFilter did not run.
fn no_victims() -> Status {
    Status::error("not found")
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

    fn nodes_rejected(&self, cx: &mut HandlerContext<'_>, nodes: &[Name]) {
        self.cache.rejected(cx, nodes);
    }

    fn pre_filter(&self, _: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        if self.counts_victims {
            state.write(Victims::default());
        }
        PreFilterAnswer::default()
    }

    fn add_pod(
        &self,
        _: &CycleContext<'_>,
        state: &mut CycleState,
        added: &PodInfo,
        _: &NodeInfo,
    ) -> Status {
        if !self.counts_victims {
            return Status::SUCCESS;
        }
        let Some(victims) = state.read_mut::<Victims>() else { return no_victims() };
        victims.0.remove(&added.key());
        Status::SUCCESS
    }

    fn remove_pod(
        &self,
        _: &CycleContext<'_>,
        state: &mut CycleState,
        removed: &PodInfo,
        _: &NodeInfo,
    ) -> Status {
        if !self.counts_victims {
            return Status::SUCCESS;
        }
        let Some(victims) = state.read_mut::<Victims>() else { return no_victims() };
        victims.0.insert(removed.key(), removed.pod.clone());
        Status::SUCCESS
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        self.misalignment(cx, state, node).map_or(Status::SUCCESS, |found| found.status())
    }

    fn explain(
        &self,
        cx: &CycleContext<'_>,
        state: &CycleState,
        node: &NodeInfo,
    ) -> Vec<Explanation> {
        self.misalignment(cx, state, node).map(|found| found.explain()).unwrap_or_default()
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
