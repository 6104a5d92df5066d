//! A profile as the engine runs it: the plugins of each extension point in order, with weights,
//! and the arguments of every plugin.

use kubestep_api::intern::Symbol;

use super::points::ExtensionPoint;
use super::types::{
    DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, ManualPermitArgs,
    NodeAffinityArgs, NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PluginArgs,
    PodTopologySpreadArgs, VolumeBindingArgs,
};

/// A profile after defaulting, validation and expansion.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ResolvedProfile {
    /// The `schedulerName` of the pods that it schedules.
    pub scheduler_name: Symbol,
    /// Overrides the configuration's percentage for this profile's pods; 0 means adaptive.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// The plugins at each point, indexed by [`ExtensionPoint::index`].
    pub points: [Vec<ResolvedPlugin>; ExtensionPoint::COUNT],
    /// Every plugin that must be built, in the order of the registry. A plugin may be built without
    /// running at any point; its cluster events still count.
    pub instances: Vec<Symbol>,
    /// The arguments of the plugins.
    pub args: ProfileArgs,
}

impl ResolvedProfile {
    /// The plugins that run at `point`, in order.
    pub fn at(&self, point: ExtensionPoint) -> &[ResolvedPlugin] {
        &self.points[point.index()]
    }
}

/// A plugin at an extension point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedPlugin {
    /// The plugin's name.
    pub name: Symbol,
    /// Its effective weight; 0 at points without weights.
    pub weight: i32,
    /// Which set enabled it.
    pub origin: Origin,
}

/// The plugin set that enabled a plugin at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The MultiPoint set.
    MultiPoint,
    /// The point's own set.
    Specific,
    /// The point's own set, which overrides the MultiPoint entry.
    Override,
}

/// The arguments of all plugins of a profile; defaults if they are not configured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProfileArgs {
    /// For DefaultPreemption.
    pub default_preemption: DefaultPreemptionArgs,
    /// For DynamicResources.
    pub dynamic_resources: DynamicResourcesArgs,
    /// For InterPodAffinity.
    pub inter_pod_affinity: InterPodAffinityArgs,
    /// For ManualPermit.
    pub manual_permit: ManualPermitArgs,
    /// For NodeAffinity.
    pub node_affinity: NodeAffinityArgs,
    /// For NodeResourcesBalancedAllocation.
    pub node_resources_balanced_allocation: NodeResourcesBalancedAllocationArgs,
    /// For NodeResourcesFit. As upstream, the resources that extenders mark `ignoredByScheduler`
    /// replace its ignored resources.
    pub node_resources_fit: NodeResourcesFitArgs,
    /// For PodTopologySpread.
    pub pod_topology_spread: PodTopologySpreadArgs,
    /// For VolumeBinding.
    pub volume_binding: VolumeBindingArgs,
    /// For plugins whose argument kind is unknown.
    pub raw: Vec<(Symbol, serde_json::Value)>,
    /// The plugins that run in the profile, but not at Filter, so that later points lack the state
    /// that Filter stores.
    pub without_filter: Vec<Symbol>,
}

impl ProfileArgs {
    /// Stores the arguments of the plugin `name`.
    pub fn set(&mut self, name: Symbol, args: PluginArgs) {
        match args {
            PluginArgs::DefaultPreemption(args) => self.default_preemption = args,
            PluginArgs::DynamicResources(args) => self.dynamic_resources = args,
            PluginArgs::InterPodAffinity(args) => self.inter_pod_affinity = args,
            PluginArgs::ManualPermit(args) => self.manual_permit = args,
            PluginArgs::NodeAffinity(args) => self.node_affinity = args,
            PluginArgs::NodeResourcesBalancedAllocation(args) => {
                self.node_resources_balanced_allocation = args;
            }
            PluginArgs::NodeResourcesFit(args) => self.node_resources_fit = args,
            PluginArgs::PodTopologySpread(args) => self.pod_topology_spread = args,
            PluginArgs::VolumeBinding(args) => self.volume_binding = args,
            PluginArgs::Raw(args) => self.raw.push((name, args)),
        }
    }
}
