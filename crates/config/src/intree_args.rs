//! The documentation of the arguments of the plugins in [`super::intree`], field by field.
//!
//! It does not contain the defaults: they come from decoding empty arguments, so that they are
//! always right.

use super::points::ArgumentDoc;

const fn arg(name: &'static str, takes: &'static str, doc: &'static str) -> ArgumentDoc {
    ArgumentDoc { name, takes, doc }
}

/// The arguments of DefaultPreemption.
pub(super) const DEFAULT_PREEMPTION: &[ArgumentDoc] = &[
    arg(
        "minCandidateNodesPercentage",
        "0 to 100",
        "Share of the nodes that are looked at for victims, at least.",
    ),
    arg(
        "minCandidateNodesAbsolute",
        "a number",
        "Number of nodes that are looked at for victims, at least; the larger of the two counts.",
    ),
];

/// The arguments of DynamicResources.
pub(super) const DYNAMIC_RESOURCES: &[ArgumentDoc] = &[
    arg(
        "filterTimeout",
        "a duration",
        "How long the search for devices may take on one node before the node is refused; 0s is \
         without limit.",
    ),
    arg(
        "bindingTimeout",
        "a duration",
        "How long PreBind waits until the devices' binding conditions are met.",
    ),
];

/// The arguments of InterPodAffinity.
pub(super) const INTER_POD_AFFINITY: &[ArgumentDoc] = &[
    arg(
        "hardPodAffinityWeight",
        "0 to 100",
        "Weight with which required affinity terms of pods already placed attract the new pod.",
    ),
    arg(
        "ignorePreferredTermsOfExistingPods",
        "true or false",
        "Leaves preferred terms of pods already placed out of the score, which is faster.",
    ),
];

/// The arguments of ManualPermit.
pub(super) const MANUAL_PERMIT: &[ArgumentDoc] = &[
    arg("selector", "a label selector", "The pods that are held; an empty one holds every pod."),
    arg("timeoutSeconds", "1 to 900", "After so many seconds a held pod is rejected."),
];

/// The arguments of NodeAffinity.
pub(super) const NODE_AFFINITY: &[ArgumentDoc] = &[arg(
    "addedAffinity",
    "a node affinity",
    "Holds for every pod of the profile in addition to what the pod itself asks for.",
)];

/// The arguments of NodeResourcesBalancedAllocation.
pub(super) const BALANCED_ALLOCATION: &[ArgumentDoc] =
    &[arg("resources", "a list of name and weight 1", "The resources whose use should be even.")];

/// The arguments of NodeResourcesFit.
pub(super) const NODE_RESOURCES_FIT: &[ArgumentDoc] = &[
    arg(
        "ignoredResources",
        "a list of names",
        "Extended resources that Filter does not check, because somebody else does.",
    ),
    arg(
        "ignoredResourceGroups",
        "a list of prefixes",
        "The same for all extended resources with that prefix: example.com means example.com/gpu \
         and all others of example.com.",
    ),
    arg(
        "scoringStrategy",
        "type, resources, requestedToCapacityRatio",
        "How nodes score: LeastAllocated prefers free ones, MostAllocated full ones, and \
         RequestedToCapacityRatio follows a curve from utilization (0 to 100) to score (0 to 10). \
         resources names what counts, with weights from 1 to 100.",
    ),
];

/// The arguments of PodTopologySpread.
pub(super) const POD_TOPOLOGY_SPREAD: &[ArgumentDoc] = &[
    arg(
        "defaultConstraints",
        "a list of constraints without labelSelector",
        "Constraints for pods that have none, with the selector of the Services and controllers \
         that they belong to; needs defaultingType List.",
    ),
    arg(
        "defaultingType",
        "System or List",
        "System spreads pods without constraints softly over hosts (maxSkew 3) and zones (maxSkew \
         5); List takes defaultConstraints.",
    ),
];

/// The arguments of VolumeBinding.
pub(super) const VOLUME_BINDING: &[ArgumentDoc] = &[
    arg("bindTimeoutSeconds", "a number", "How long PreBind waits until the volumes are bound."),
    arg(
        "shape",
        "a list of utilization and score",
        "With the gate StorageCapacityScoring: the curve from used storage capacity (0 to 100) to \
         score (0 to 10).",
    ),
];
