//! The plugins that come with kube-scheduler 1.36, plus kubestep's own
//! ManualPermit: which extension points each implements and what it does. The
//! one table that configuration, engine and help texts share.
//!
//! Upstream: `pkg/scheduler/framework/plugins/registry.go`, the interface
//! assertions of each plugin, and
//! `pkg/scheduler/apis/config/v1/default_plugins.go` for the default profile.

use super::features::{Feature, FeatureGates};
use super::intree_args as args;
use super::points::ExtensionPoint::{self, *};
use super::points::{ArgumentDoc, PluginDescriptor};

/// The name of kubestep's own plugin, off unless a configuration enables it.
pub const MANUAL_PERMIT: &str = "ManualPermit";

const fn plugin(
    name: &'static str,
    points: &[ExtensionPoint],
    doc: &'static str,
    long_doc: &'static str,
) -> PluginDescriptor {
    PluginDescriptor { doc, long_doc, ..PluginDescriptor::new(name, points) }
}

/// The builder steps of the table below: each names one way in which a plugin differs from most.
impl PluginDescriptor {
    const fn weighs(self, weight: i32) -> Self {
        PluginDescriptor { default_weight: Some(weight), ..self }
    }
    const fn takes(self, args_kind: &'static str, args: &'static [ArgumentDoc]) -> Self {
        PluginDescriptor { args_kind: Some(args_kind), args, ..self }
    }
    const fn example(self, example: &'static str) -> Self {
        PluginDescriptor { example, ..self }
    }
    const fn needs(self, gate: Feature) -> Self {
        PluginDescriptor { gate: Some(gate), ..self }
    }
    const fn unsigned(self) -> Self {
        PluginDescriptor { signs: false, ..self }
    }
    const fn any_event(self) -> Self {
        PluginDescriptor { registers_events: false, ..self }
    }
}

/// All plugins a configuration may name. The first twenty-three are upstream's (CFG-053).
pub const PLUGINS: &[PluginDescriptor] = &[
    plugin(
        "SchedulingGates",
        &[PreEnqueue],
        "keeps a pod out of the queue while it has scheduling gates",
        "A pod with entries in spec.schedulingGates is not tried at all. It enters the active \
         queue when the last gate is removed.",
    )
    .example("A pod with schedulingGates [{name: example.com/quota}] is listed as gated. As soon as a controller removes that entry, it is tried.")
    .unsigned(),
    plugin(
        "PrioritySort",
        &[QueueSort],
        "orders the active queue by priority, then by time",
        "The pod with the higher priority is tried first; among equals, the one that entered the \
         queue earlier.",
    )
    .example("A pod of priority 1000 created now is tried before one of priority 0 that has waited for an hour.")
    .unsigned()
    .any_event(),
    plugin(
        "NodeUnschedulable",
        &[Filter],
        "keeps pods off cordoned nodes",
        "A node with spec.unschedulable is refused, unless the pod tolerates the taint \
         node.kubernetes.io/unschedulable:NoSchedule.",
    )
    .example("After \"kubectl cordon n1\" only pods that tolerate node.kubernetes.io/unschedulable, as those of a DaemonSet do, can still go to n1."),
    plugin(
        "NodeName",
        &[Filter],
        "only the node that the pod names",
        "If a pod asks for a node by spec.nodeName, all other nodes are refused.",
    )
    .example("A pod that was created with nodeName n1 and is given to the scheduler all the same passes on n1 alone."),
    plugin(
        "TaintToleration",
        &[Filter, PreScore, Score],
        "taints that the pod does not tolerate",
        "Taints with the effect NoSchedule or NoExecute refuse the node, unless the pod tolerates \
         them. Untolerated PreferNoSchedule taints lower the score.",
    )
    .example("A node with the taint gpu=yes:NoSchedule takes only pods with a toleration of the key gpu (operator Exists, or value yes).")
    .weighs(3),
    plugin(
        "NodeAffinity",
        &[PreFilter, Filter, PreScore, Score],
        "node selector and node affinity",
        "spec.nodeSelector and the required node affinity must match the node, and so must the \
         addedAffinity of the plugin's arguments. Preferred terms add their weight to the score.",
    )
    .example("With nodeSelector {disktype: ssd} every node without the label disktype=ssd is refused; a preferred term of weight 50 lets nodes that match it score higher.")
    .weighs(2)
    .takes("NodeAffinityArgs", args::NODE_AFFINITY),
    plugin(
        "NodePorts",
        &[PreFilter, Filter],
        "host ports that are already taken",
        "A node is refused if a pod on it uses one of the host ports the pod asks for, with the \
         same protocol and an overlapping address.",
    )
    .example("Two pods with hostPort 8080 and protocol TCP cannot be on one node, unless their hostIP differs and neither is 0.0.0.0."),
    plugin(
        "NodeResourcesFit",
        &[PreFilter, Filter, PreScore, Score, PlacementScore],
        "CPU, memory, pods and other resources left on the node",
        "The pod's requests plus those of the pods on the node must not exceed what the node can \
         allocate. The score follows the scoring strategy: LeastAllocated (the default) spreads, \
         MostAllocated packs, RequestedToCapacityRatio follows a curve.",
    )
    .example("A node with 4 CPUs, of which pods request 3500m, refuses a pod that requests 1 CPU: \"Insufficient cpu\". What the pods really use does not count.")
    .weighs(1)
    .takes("NodeResourcesFitArgs", args::NODE_RESOURCES_FIT),
    plugin(
        "VolumeRestrictions",
        &[PreFilter, Filter],
        "disks and claims that only one pod may use",
        "Refuses nodes where an in-line disk (GCE, AWS, iSCSI, RBD) is in use by another pod, and \
         pods whose ReadWriteOncePod claim is in use.",
    )
    .example("A claim with the access mode ReadWriteOncePod is used by a running pod; a second pod with the claim stays pending until the first one is gone, or is preempted."),
    plugin(
        "NodeVolumeLimits",
        &[PreFilter, Filter],
        "how many CSI volumes a node can attach",
        "Counts the CSI volumes of the pods on a node for each driver and refuses the node when \
         the limit of its CSINode object would be exceeded.",
    )
    .example("The CSINode of n1 allows 25 volumes of ebs.csi.aws.com and 25 are attached: a pod with one more volume of that driver is refused there."),
    plugin(
        "VolumeBinding",
        &[PreFilter, Filter, PreScore, Score, Reserve, PreBind],
        "persistent volume claims: bound, to be bound, to be provisioned",
        "The volumes of bound claims must be reachable from the node; for unbound claims that wait \
         for a consumer there must be a volume or a way to provision one. Reserve assumes the \
         choice, PreBind writes it and waits until the volumes are bound.",
    )
    .example("A claim of a class with WaitForFirstConsumer is unbound: the node is chosen first, and then a volume is bound or provisioned where that node can reach it.")
    .takes("VolumeBindingArgs", args::VOLUME_BINDING),
    plugin(
        "VolumeZone",
        &[PreFilter, Filter],
        "zone labels of volumes",
        "Refuses a node whose zone or region label is not among those of the pod's volumes.",
    )
    .example("The claim is bound to a volume labelled topology.kubernetes.io/zone=a: nodes of zone b are refused."),
    plugin(
        "PodTopologySpread",
        &[PreFilter, Filter, PreScore, Score],
        "spreads matching pods over zones, nodes or other domains",
        "Constraints with DoNotSchedule refuse nodes where the skew would exceed maxSkew; those \
         with ScheduleAnyway score. Pods without constraints get the default ones of the plugin's \
         arguments.",
    )
    .example("With maxSkew 1 over zones, and 2, 2 and 1 matching pods in three zones, the next pod can only go to the third.")
    .weighs(2)
    .takes("PodTopologySpreadArgs", args::POD_TOPOLOGY_SPREAD),
    plugin(
        "InterPodAffinity",
        &[PreFilter, Filter, PreScore, Score],
        "pods that attract or repel other pods",
        "Required affinity and anti-affinity, of the pod and of the pods already placed, refuse \
         nodes; preferred terms score, and so do the required affinity terms of placed pods with \
         hardPodAffinityWeight.",
    )
    .example("Required anti-affinity to its own label over kubernetes.io/hostname: each replica gets a node for itself, and one replica more than nodes stays pending.")
    .weighs(2)
    .takes("InterPodAffinityArgs", args::INTER_POD_AFFINITY),
    plugin(
        "DynamicResources",
        &[PreEnqueue, PreFilter, Filter, PostFilter, Score, Reserve, PreBind],
        "resource claims: devices allocated to pods",
        "Finds devices for the pod's resource claims on each node, scores by the alternatives \
         taken, reserves the allocation and writes it before binding. As PostFilter it frees an \
         idle claim that stands in the way.",
    )
    .example("A claim asks for one device of the class gpu.example.com: nodes whose ResourceSlices offer no free device of the class are refused.")
    .weighs(2)
    .takes("DynamicResourcesArgs", args::DYNAMIC_RESOURCES)
    .needs(Feature::DynamicResourceAllocation),
    plugin(
        "DefaultPreemption",
        &[PreEnqueue, PostFilter],
        "makes room by evicting pods of lower priority",
        "When no node is feasible, looks for the node where the fewest and least important pods \
         must go, honouring disruption budgets where possible, and nominates it. While the victims \
         are being deleted the pod stays out of the queue.",
    )
    .example("A pod of priority 1000 fits nowhere; on n1 it would without a pod of priority 0: that pod is deleted, and n1 becomes the nominated node.")
    .takes("DefaultPreemptionArgs", args::DEFAULT_PREEMPTION)
    .unsigned(),
    plugin(
        "NodeResourcesBalancedAllocation",
        &[PreScore, Score],
        "prefers nodes whose resources would be used evenly",
        "The score is high where CPU and memory (or the resources of the arguments) would be used \
         to about the same fraction after the pod is placed.",
    )
    .example("A pod that brings a node to 50% of CPU and 50% of memory scores higher there than on a node it would bring to 90% and 10%.")
    .weighs(1)
    .takes("NodeResourcesBalancedAllocationArgs", args::BALANCED_ALLOCATION)
    .any_event(),
    plugin(
        "ImageLocality",
        &[Score],
        "prefers nodes that have the images already",
        "Scores by the size of the pod's images present on the node, scaled by how many nodes have \
         them.",
    )
    .example("A node that has the 800 MB image of the pod scores higher than one that has to pull it, most so if many nodes have it.")
    .weighs(1)
    .any_event(),
    plugin(
        "DefaultBinder",
        &[Bind],
        "binds the pod to the chosen node",
        "Creates the Binding through the API.",
    )
    .example("A cycle that ends well ends with its answer: the pod has spec.nodeName.")
    .unsigned()
    .any_event(),
    plugin(
        "NodeDeclaredFeatures",
        &[PreFilter, Filter],
        "features that the node must declare",
        "Infers from the pod which node features it needs and refuses nodes that do not declare \
         them in status.declaredFeatures.",
    )
    .example("A pod that can only run with a feature of the kubelet is refused on nodes whose status.declaredFeatures does not list it, such as nodes of an older version.")
    .needs(Feature::NodeDeclaredFeatures),
    plugin(
        "GangScheduling",
        &[PreEnqueue, Permit],
        "starts a pod group only when enough of its pods can",
        "Pods of a group stay out of the queue until minCount of them exist, and wait in Permit \
         until minCount of them have a node.",
    )
    .example("A group with minCount 4 and three pods: the three are not tried. When the fourth is created, all are, and they start together or not at all.")
    .unsigned()
    .needs(Feature::GangScheduling),
    plugin(
        "TopologyPlacementGenerator",
        &[PlacementGenerate],
        "the topology domains in which a pod group might be placed",
        "Makes one candidate placement of each domain of the topology key that the pod group asks \
         for.",
    )
    .example("A group asks for one rack: each value of the rack label is a candidate, with the nodes that have it.")
    .unsigned()
    .any_event()
    .needs(Feature::TopologyAwareWorkloadScheduling),
    plugin(
        "PodGroupPodsCount",
        &[PlacementScore],
        "prefers placements that take more pods of the group",
        "Scores a placement by the share of the group's pods that it takes.",
    )
    .example("Of two racks, one takes 6 of 8 pods of the group and one takes all 8: the second scores higher.")
    .weighs(1)
    .unsigned()
    .any_event()
    .needs(Feature::TopologyAwareWorkloadScheduling),
    plugin(
        MANUAL_PERMIT,
        &[Permit],
        "holds pods in Permit until you allow or reject them (kubestep's own)",
        "Not part of Kubernetes and off unless a configuration enables it. Pods that match the \
         selector of its arguments wait in Permit, so that you can look at the cluster with the \
         node reserved; after timeoutSeconds they are rejected.",
    )
    .example("With selector {matchLabels: {app: db}} every database pod stops at Permit, and \"a\" or \"x\" in the view of waiting pods decides.")
    .takes("ManualPermitArgs", args::MANUAL_PERMIT)
    .unsigned()
    .any_event(),
];

/// The plugin of that name in [`PLUGINS`].
pub fn find(name: &str) -> Option<&'static PluginDescriptor> {
    PLUGINS.iter().find(|plugin| plugin.name == name)
}

/// The plugins of the default profile under `gates`, in order: what the default
/// MultiPoint list enables. CFG-050, CFG-051
pub fn default_plugins(gates: &FeatureGates) -> Vec<&'static PluginDescriptor> {
    let on = |plugin: &&PluginDescriptor| match plugin.gate {
        Some(gate) => gates.enabled(gate),
        None => plugin.name != MANUAL_PERMIT,
    };
    PLUGINS.iter().filter(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(gates: &str) -> Vec<&'static str> {
        let gates = FeatureGates::parse(gates).unwrap();
        default_plugins(&gates).iter().map(|plugin| plugin.name).collect()
    }

    #[test]
    fn the_default_profile_follows_the_gates() {
        let default = names("");
        assert_eq!(default.len(), 20);
        assert_eq!(
            default[14..],
            [
                "DynamicResources",
                "DefaultPreemption",
                "NodeResourcesBalancedAllocation",
                "ImageLocality",
                "DefaultBinder",
                "NodeDeclaredFeatures",
            ]
        );
        let all = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true";
        assert_eq!(
            names(all)[20..],
            ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount",]
        );
        let off = "NodeDeclaredFeatures=false,InPlacePodLevelResourcesVerticalScaling=false";
        assert_eq!(names(off).last(), Some(&"DefaultBinder"));
    }

    #[test]
    fn descriptors_are_well_formed() {
        for (i, plugin) in PLUGINS.iter().enumerate() {
            assert!(PLUGINS[..i].iter().all(|other| other.name != plugin.name));
            assert!(plugin.points.iter().next().is_some(), "{}", plugin.name);
            assert!(plugin.args_kind.is_none_or(|kind| kind == format!("{}Args", plugin.name)));
            assert!(!plugin.doc.ends_with('.') && plugin.long_doc.ends_with('.'));
            assert!(plugin.example.ends_with('.'), "{}", plugin.name);
            assert_eq!(plugin.args_kind.is_some(), !plugin.args.is_empty(), "{}", plugin.name);
        }
        assert_eq!(PLUGINS.len(), 24);
        assert_eq!(find("ImageLocality").map(|plugin| plugin.default_weight), Some(Some(1)));
        assert_eq!(find("Nope"), None);
    }
}
