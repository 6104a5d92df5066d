//! The table of feature gates: the stage, default and lock of each by version.
//!
//! Upstream: `pkg/features/kube_features.go`; from 1.37 on, the scheduler's own gates are in
//! `staging/src/k8s.io/kube-scheduler/pkg/features/kube_features.go`. Of a gate that is older than
//! the oldest version served, the last change before that version is the first one listed.

use crate::versions::KubeVersion;

/// How mature a feature is in a version of Kubernetes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeatureStage {
    /// Off by default; may be removed.
    Alpha,
    /// Usually on by default.
    Beta,
    /// Stable; usually locked to on.
    Ga,
}

impl FeatureStage {
    /// The stage as upstream writes it.
    pub const fn name(self) -> &'static str {
        match self {
            FeatureStage::Alpha => "ALPHA",
            FeatureStage::Beta => "BETA",
            FeatureStage::Ga => "GA",
        }
    }
}

impl std::fmt::Display for FeatureStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a gate is in a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GateSpec {
    /// How mature the feature is.
    pub stage: FeatureStage,
    /// Whether it is on by default.
    pub default: bool,
    /// Whether it is locked to its default.
    pub locked: bool,
}

/// A gate with its history.
pub(super) struct Gate {
    pub feature: Feature,
    pub name: &'static str,
    /// The minor versions in which the gate changed, in order; `None` where it was removed.
    pub history: &'static [(u8, Option<GateSpec>)],
    pub needs: &'static [Feature],
    pub effect: &'static str,
}

impl Gate {
    /// The gate in `version`; `None` if that version does not have it.
    pub const fn at(&self, version: KubeVersion) -> Option<GateSpec> {
        let (mut spec, mut i) = (None, 0);
        while i < self.history.len() && self.history[i].0 <= version.minor() {
            spec = self.history[i].1;
            i += 1;
        }
        spec
    }
}

/// Gates that a version merged into another one, each with that one.
pub(super) const MERGED: &[(Feature, Feature)] = &[
    (Feature::GangScheduling, Feature::GenericWorkload),
    (Feature::WorkloadAwarePreemption, Feature::GenericWorkload),
];

macro_rules! spec {
    (Removed) => { None };
    ($stage:ident on locked) => { spec!($stage true true) };
    ($stage:ident on) => { spec!($stage true false) };
    ($stage:ident off) => { spec!($stage false false) };
    ($stage:ident $default:literal $locked:literal) => {
        Some(GateSpec { stage: FeatureStage::$stage, default: $default, locked: $locked })
    };
}

macro_rules! features {
    ($($name:ident {
        $($minor:literal $stage:ident $($rest:ident)*),*
    } [$($need:ident)*] $effect:literal)*) => {
        /// A feature gate of kube-scheduler, of any version that is supported.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Feature { $(#[doc = $effect] $name,)* }

        /// One row for each gate, in the order of the enum.
        pub(super) const GATES: &[Gate] = &[$(Gate {
            feature: Feature::$name,
            name: stringify!($name),
            history: &[$(($minor, spec!($stage $($rest)*)),)*],
            needs: &[$(Feature::$need),*],
            effect: $effect,
        },)*];
    };
}

// Name { minor version, stage and default since then, … } [gates it depends on] effect.
features! {
    DynamicResourceAllocation { 26 Alpha off, 32 Beta off, 34 Ga on, 35 Ga on locked } []
        "Resource claims, device classes and the DynamicResources plugin."
    DRAAdminAccess { 32 Alpha off, 34 Beta on, 36 Ga on locked } [DynamicResourceAllocation]
        "Admin access requests, which do not consume devices."
    DRAPrioritizedList { 33 Alpha off, 34 Beta on, 36 Ga on, 37 Ga on locked } [DynamicResourceAllocation]
        "Requests with alternatives (firstAvailable), scored by the alternative used."
    DRAExtendedResource { 34 Alpha off, 36 Beta on, 37 Ga on locked } [DynamicResourceAllocation]
        "Extended resources provided by device classes."
    DRAConsumableCapacity { 34 Alpha off, 36 Beta on } [DynamicResourceAllocation]
        "Devices shared by capacity."
    DRADeviceTaints { 33 Alpha off, 36 Beta on, 37 Ga on } [DynamicResourceAllocation]
        "Tainted devices are only for claims that tolerate them."
    DRADeviceBindingConditions { 34 Alpha off, 36 Beta on } [DynamicResourceAllocation DRAResourceClaimDeviceStatus]
        "PreBind waits until devices are ready to be bound."
    DRAResourceClaimDeviceStatus { 32 Alpha off, 33 Beta on, 37 Ga on locked } []
        "Devices report their status in the claim."
    DRAPartitionableDevices { 33 Alpha off, 36 Beta on } [DynamicResourceAllocation]
        "Devices that consume shared counters, and nodes selected per device."
    DRASchedulerFilterTimeout { 34 Beta on } [DynamicResourceAllocation]
        "A time limit for the allocation on one node."
    DRAResourceClaimGranularStatusAuthorization { 36 Beta on } [DynamicResourceAllocation DRAResourceClaimDeviceStatus]
        "Finer authorization of claim status writes by the API server."
    VolumeAttributesClass { 31 Beta off, 34 Ga on, 36 Ga on locked } []
        "Volumes are matched to claims by their attributes class."
    NodeInclusionPolicyInPodTopologySpread { 26 Beta on, 33 Ga on locked } []
        "nodeAffinityPolicy and nodeTaintsPolicy of spread constraints."
    MatchLabelKeysInPodTopologySpread { 27 Beta on } []
        "matchLabelKeys of spread constraints."
    MatchLabelKeysInPodTopologySpreadSelectorMerge { 34 Beta on } [MatchLabelKeysInPodTopologySpread]
        "The API server merges matchLabelKeys into the selector of a spread constraint."
    MatchLabelKeysInPodAffinity { 31 Beta on, 33 Ga on locked } []
        "The API server merges matchLabelKeys into the selector of a pod affinity term."
    InPlacePodVerticalScaling { 27 Alpha off, 33 Beta on, 35 Ga on locked } []
        "The resources in the status of a running pod count."
    InPlacePodLevelResourcesVerticalScaling { 35 Alpha off, 36 Beta on } [InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures]
        "The same for resources of the pod as a whole."
    PodLevelResources { 32 Alpha off, 34 Beta on } []
        "Requests of the pod as a whole replace the sum of its containers."
    SidecarContainers { 29 Beta on, 33 Ga on locked } []
        "Restartable init containers count as long as the pod runs."
    SchedulerQueueingHints { 28 Beta off, 32 Beta on, 34 Ga on locked } []
        "Plugins decide for each event whether it requeues a pod."
    SchedulerAsyncPreemption { 32 Alpha off, 33 Beta on } []
        "Victims are deleted asynchronously, outside the scheduling cycle."
    SchedulerPopFromBackoffQ { 33 Beta on } []
        "When the active queue is empty, a pod in backoff is popped early."
    NominatedNodeNameForExpectation { 34 Alpha off, 35 Beta on } []
        "The selected node is nominated before a binding cycle that waits."
    ClearingNominatedNodeNameAfterBinding { 34 Alpha off, 35 Beta on } []
        "The API server clears the nominated node when the pod is bound."
    OpportunisticBatching { 35 Beta on } []
        "The result for a pod is reused for the next identical one."
    NodeDeclaredFeatures { 35 Alpha off, 36 Beta on, 37 Ga on locked } []
        "Nodes declare features; the plugin of that name keeps pods off nodes that lack them."
    PodSchedulingReadiness { 30 Ga on locked } []
        "Scheduling gates."
    PodObservedGenerationTracking { 33 Alpha off, 34 Beta on, 35 Ga on locked } []
        "Conditions record the pod's generation."
    MutableCSINodeAllocatableCount { 33 Alpha off, 34 Beta off, 35 Beta on, 36 Ga on locked } []
        "Changed volume limits requeue pods."
    ComponentFlagz { 32 Alpha off, 36 Beta on } []
        "The scheduler's /flagz page."
    ComponentStatusz { 32 Alpha off, 36 Beta on } []
        "The scheduler's /statusz page."
    PodTopologyLabelsAdmission { 33 Alpha off, 35 Beta on } []
        "The API server copies topology labels of the node to its pods."
    DRADeviceTaintRules { 35 Alpha off, 36 Beta off, 37 Ga on } [DRADeviceTaints]
        "Devices are tainted by rules."
    SchedulerAsyncAPICalls { 34 Beta off } []
        "API calls are made asynchronously, outside the scheduling cycle."
    GenericWorkload { 35 Alpha off, 37 Beta off } []
        "Pod groups, scheduled together."
    GangScheduling { 35 Alpha off, 37 Removed } [GenericWorkload]
        "A pod group is scheduled only if enough of its pods fit."
    TopologyAwareWorkloadScheduling { 36 Alpha off } [GenericWorkload]
        "A pod group is placed within one topology domain."
    WorkloadAwarePreemption { 36 Alpha off, 37 Removed } [GangScheduling]
        "Preemption for and of whole pod groups."
    DRAWorkloadResourceClaims { 36 Alpha off, 37 Beta off } [DynamicResourceAllocation GenericWorkload]
        "Claims shared by a pod group."
    DRANodeAllocatableResources { 36 Alpha off } [DynamicResourceAllocation]
        "Devices that count as CPU or memory of the node."
    DRAListTypeAttributes { 36 Alpha off } [DynamicResourceAllocation]
        "Device attributes that are lists."
    VolumeLimitScaling { 35 Alpha off, 37 Beta on } []
        "Pods with CSI volumes are not scheduled to nodes without the driver."
    StorageCapacityScoring { 33 Alpha off, 37 Beta on } []
        "Nodes are scored by their free storage capacity."
    TaintTolerationComparisonOperators { 35 Alpha off } []
        "Tolerations with the operators Lt and Gt."
    CoordinatedLeaderElection { 31 Alpha off, 33 Beta off } []
        "The API server selects the leader."
    CSIMigrationPortworx { 31 Beta on, 33 Ga on locked, 36 Removed } []
        "In-tree Portworx volumes are handled by the CSI driver."
    VolumeCapacityPriority { 21 Alpha off, 33 Removed } []
        "Nodes are scored by the capacity of the static volumes they would use."
    DRAControlPlaneController { 26 Alpha off, 32 Removed } [DynamicResourceAllocation]
        "Claims that a controller allocates, negotiated in PodSchedulingContext objects."
    CompositePodGroup { 37 Alpha off } [GenericWorkload]
        "Groups of pod groups."
    DRADerivedAttributes { 37 Alpha off } [DynamicResourceAllocation]
        "Device attributes derived from others."
    DRADeviceCompatibilityGroups { 37 Alpha off } [DRAPartitionableDevices]
        "Devices that share counters are only allocated together if their groups intersect."
    DRAFractionalCapacityRange { 37 Beta on } [DRAConsumableCapacity]
        "Fractional values in the ranges of consumable capacity."
    DRAOptionalNodeOperations { 37 Alpha off } [DynamicResourceAllocation]
        "Devices that need no preparation on the node."
    InPlacePodVerticalScalingSchedulerPreemption { 37 Alpha off } [InPlacePodVerticalScaling]
        "Preemption for running pods whose resize is deferred."
    InterPodAffinityHostnameFastPath { 37 Alpha off } []
        "A faster computation of pod affinity with the topology key kubernetes.io/hostname."
    PodGroupPreemptionPolicy { 37 Alpha off } [GenericWorkload]
        "A preemption policy of the pod group as a whole."
    SchedulerPreQueueingHints { 37 Alpha off } []
        "Plugins preselect the pods that an event can affect before queueing hints run."
    MaxUnavailableStatefulSet { 24 Alpha off, 35 Beta off } []
        "A StatefulSet's rollout may make several pods unavailable; kube-controller-manager's gate."
}
