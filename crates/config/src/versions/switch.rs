//! The table of switches: every change of a version that no gate governs.
//!
//! A switch is on from the version that brought the change. Code reads as the newest version and
//! asks for the switch where an older version differs, when the plugin, profile or queue is built.

use std::fmt;

use super::KubeVersion;

/// How a change is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// Recorded decisions of both versions show it.
    Recorded,
    /// It was read in the source of both versions; no recorded decision shows it.
    Read,
    /// It was read in the source of both versions and is listed only: kubestep decides as the newer
    /// version in both.
    Listed,
    /// It is announced for a version whose source is not public as a whole.
    Announced,
}

impl Evidence {
    /// All kinds, the best proved first.
    pub const ALL: [Evidence; 4] =
        [Evidence::Recorded, Evidence::Read, Evidence::Listed, Evidence::Announced];

    /// What is known, and what not, in one sentence.
    pub const fn meaning(self) -> &'static str {
        match self {
            Evidence::Recorded => "Recorded decisions of both versions show it.",
            Evidence::Read => "Read in the source of both versions; no recorded decision shows it.",
            Evidence::Listed => "For information: kubestep decides as the newer version in both.",
            Evidence::Announced => "Announced; kubestep decides as the version before.",
        }
    }

    /// The word in lists and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Evidence::Recorded => "recorded",
            Evidence::Read => "read",
            Evidence::Listed => "listed",
            Evidence::Announced => "announced",
        }
    }
}

/// What a change belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The plugin of that name.
    Plugin(&'static str),
    /// A component of the scheduler, in the words of the documentation.
    Component(&'static str),
}

impl Part {
    /// The name of the plugin or component.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Plugin(name) | Part::Component(name) => name,
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

struct SwitchRow {
    switch: Switch,
    name: &'static str,
    since: u8,
    part: Part,
    evidence: Evidence,
    pull_requests: &'static [u32],
    patches: &'static [&'static str],
    sentence: &'static str,
}

macro_rules! part {
    (cycle) => {
        Part::Component("scheduling cycle")
    };
    (binding) => {
        Part::Component("binding cycle")
    };
    (queue) => {
        Part::Component("scheduling queue")
    };
    (events) => {
        Part::Component("cluster events")
    };
    (preemption) => {
        Part::Component("preemption")
    };
    (batching) => {
        Part::Component("batching")
    };
    (groups) => {
        Part::Component("pod groups")
    };
    (extenders) => {
        Part::Component("extenders")
    };
    (resources) => {
        Part::Component("resources of pods")
    };
    (configuration) => {
        Part::Component("configuration")
    };
    ($plugin:ident) => {
        Part::Plugin(stringify!($plugin))
    };
}

macro_rules! switches {
    ($($name:ident $since:literal $part:ident $evidence:ident [$($pr:literal)*]
        $(from $($patch:literal)+;)? $sentence:literal)*) => {
        /// A change that no gate governs.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Switch { $(#[doc = $sentence] $name,)* }

        /// One row for each switch, in the order of the enum.
        const ROWS: &[SwitchRow] = &[$(SwitchRow {
            switch: Switch::$name,
            name: stringify!($name),
            since: $since,
            part: part!($part),
            evidence: Evidence::$evidence,
            pull_requests: &[$($pr),*],
            patches: &[$($($patch),+)?],
            sentence: $sentence,
        },)*];
    };
}

// Name, minor version since which it is on, plugin or component, evidence, [pull requests], the
// first patch releases of those minor versions that did not begin with it, what it changes.
switches! {
    PodGroupsAreQueued 37 groups Announced []
        "Pod groups are queued as units and not pod by pod."

    BalancedAllocationGain 36 NodeResourcesBalancedAllocation Recorded [135573]
        "The score is how much the pod improves the balance of the node; before, how balanced the node is with the pod."
    ImageVolumesCount 36 ImageLocality Read [130231]
        "Images of image volumes count, too."
    DeclaredFeaturesFixedMessage 36 NodeDeclaredFeatures Read []
        "The reason is a fixed text; before, it lists the missing features."
    DeclaredFeaturesInOrder 36 NodeDeclaredFeatures Read []
        "Features that a node declares out of alphabetical order do not count; before, the order does not matter."
    HostNetworkUsersNeedFeature 36 NodeDeclaredFeatures Read []
        "A pod with hostNetwork and hostUsers: false needs nodes that declare UserNamespacesHostNetworkSupport."
    OwnLabelsRequeue 36 InterPodAffinity Read [135394]
        "A changed label of the pending pod requeues it."
    AffinityHintCountsNominated 36 InterPodAffinity Read [135394]
        "For requeueing, a pod that is nominated to a node counts as placed."
    DeletedAntiAffinityRequeues 36 InterPodAffinity Read [135394]
        "The deletion of a pod whose own anti-affinity matches the pending pod requeues it."
    SpreadHintCountsNominated 36 PodTopologySpread Read []
        "For requeueing, a pod that is nominated to a node counts as placed."
    PortworxAlwaysMigrated 36 NodeVolumeLimits Read []
        "In-tree Portworx volumes count for their CSI driver; before, only if the CSINode's annotation lists their plugin."
    VolumeLimitScalingOptIn 36 NodeVolumeLimits Read []
        "With VolumeLimitScaling, a node without the driver is rejected only if the CSIDriver asks for it."
    WaitingVictimRequeued 36 preemption Read [135719]
        "A victim that is not bound yet returns to the backoff queue; before, one that waits at Permit is rejected, and one in PreBind deleted."
    FailedVictimEndsPreemption 36 preemption Read [135502]
        "After a failed eviction, the last victim is left alone; before, it is rejected if it waits at Permit."
    PreemptorNotRelated 36 preemption Read []
        "The event of a victim names no related object; before, it is the pod that preempts."
    RejectorsKeptWhilePopped 36 queue Read []
        "The plugins that rejected a pod are forgotten at its next failure; before, when it is popped."
    FailureOfCurrentPod 36 cycle Recorded []
        "What a failure writes is compared with the current pod; before, with the pod as it was tried."
    PodsSignedWhenQueued 36 batching Read []
        "The signature of a pod is computed when it is queued, and stays after an update during an attempt that fails; before, it is computed in each cycle."
    SignaturesWithExtendedResources 36 batching Read []
        "With DRAExtendedResource, only pods that request such a resource cannot be batched; before, no pod can."
    PodGroupCycles 36 groups Recorded []
        "The pods of a PodGroup are scheduled in one cycle; before, those of a pod group in a Workload one by one, and Permit holds them."
    PreBindInParallel 36 binding Read []
        "PreBind plugins that allow it run at the same time; before, each waits for the one before it."
    AlternativesOfAllDevices 36 DynamicResources Read []
        "Each alternative of a request can ask for all devices; before, only the first one is allocated as it is written."
    DeviceSearchTimeoutFails 36 DynamicResources Read []
        "A search for devices that takes too long is an error; before, it rejects the node."
    DeviceBindingMessages 36 DynamicResources Read []
        "Failures and timeouts of binding conditions are worded differently; before, \"claim NAME binding failed\" and \"claim NAME binding timeout\"."
    PlacementPoints 36 configuration Recorded []
        "The extension points placementGenerate and placementScore exist."
    ShapeValidated 36 configuration Recorded [132120]
        "RequestedToCapacityRatio without a shape is invalid, as is a shape for another strategy; before, it fails when the plugin is built."

    FirstOfEqualTotals 35 cycle Listed []
        "Of nodes with the same total score, the first of the heap is taken; before, one is drawn at random. No simulation can repeat that: kubestep takes the first in both."
    ExtenderTieKey 35 cycle Listed []
        "Where extenders score, a random second key orders nodes with the same total score. No simulation can repeat that: kubestep takes the first in both."
    AllocatedClaimsScored 35 DynamicResources Read [139017] from "1.35.6" "1.36.2";
        "Score distinguishes claims that are already allocated from those of this cycle; before, a pod with both fails with an error."
    DynamicResourcesScore 35 DynamicResources Recorded []
        "The plugin scores nodes, with weight 2."
    NodeDeclaredFeaturesPlugin 35 NodeDeclaredFeatures Recorded []
        "The plugin exists."
    GangSchedulingPlugin 35 GangScheduling Recorded []
        "The plugin exists."
    PreEnqueueOnceForBackoff 35 queue Read []
        "PreEnqueue does not run for a pod that leaves the backoff queue, in whatever way; before, only not at the end of its backoff."
    LastVictimChecked 35 preemption Read [134294 134730]
        "PreEnqueue lets the preemptor pass if its last victim is already deleted."
    NominationClearedOnFailure 35 cycle Read [135007]
        "A failure clears the nomination even if no PostFilter plugin exists, or NominatedNodeNameForExpectation is on."
    TerminatingVictimSkipped 35 preemption Read []
        "A victim that is already being deleted is not deleted again."
    BindingIsNoDeletion 35 events Recorded []
        "The binding of a pod that was nominated is an update; before, the queue sees a deletion, which requeues pods of at most its priority."
    DeletedAssumedPodForgotten 35 events Read []
        "A pod that is deleted while it is being bound frees its node at once; before, only a pod that waits at Permit is rejected."
    UnusablePoolsSkipped 35 DynamicResources Read []
        "Devices of incomplete and invalid pools are not allocated, and a pool is complete by its slices of all nodes; before, by those of the node, only requests for all devices reject incomplete pools, and an invalid pool is an error."
    GateDependencies 35 configuration Read []
        "A gate that is on without the gates that it depends on is an error."

    RequestAboveAllocatableUnresolvable 34 NodeResourcesFit Recorded []
        "A request that exceeds the allocatable amount cannot be resolved by preemption."
    TaintMessageFixed 34 TaintToleration Recorded [134740 135023] from "1.34.2";
        "The reason does not name the taint."
    ReadWriteOncePodMessage 34 VolumeRestrictions Recorded []
        "The reason names the ReadWriteOncePod access mode in another wording."
    BackoffCountsFailures 34 queue Recorded [128748]
        "The backoff grows with the failures by plugins, or with the errors in a row; before, with all attempts."
    ZeroBackoff 34 queue Read [131965]
        "A maximum backoff of 0 switches the backoff off."
    GatingPluginDecides 34 queue Recorded []
        "An event moves a gated pod only if the plugin that gates it registered for it; before, only pods with scheduling gates stay."
    PreemptionRegistersPodDelete 34 DefaultPreemption Read [133167 134247]
        "With asynchronous preemption, the plugin registers the deletion of pods, with a hint that never requeues."
    RecreatedPodDropped 34 cycle Read [138324] from "1.34.8" "1.35.5";
        "The failure of a pod that was created again under its name is dropped; before, it is written about the new pod."
    AllocatableRequeuesClaims 34 DynamicResources Read []
        "A change of a node's allocatable resources requeues the pods that the plugin rejected."
    AdminAccessOncePerClaim 34 DynamicResources Read []
        "A request with admin access gets no device that another one of its claims gets, and keeps later ones off it; before, it ignores all others."
    AllDevicesReleased 34 DynamicResources Read []
        "The devices of a request for all devices are released when the search goes back behind it; before, they stay taken."
    ClaimlessPodsAnswered 34 DynamicResources Read []
        "PostFilter answers for pods without claims, as up to 1.32."
    DynamicResourcesArgsValidated 34 configuration Recorded []
        "The arguments of DynamicResources are known and validated."

    ErrorBackoffQueue 33 queue Recorded [130772]
        "Pods that failed by an error wait in a backoff queue of their own and are not popped ahead of time."
    BalancedAllocationSkips 33 NodeResourcesBalancedAllocation Recorded [130260]
        "The plugin skips pods that request none of the scored resources."
    SidecarHostPorts 33 NodePorts Read [132040 133390] from "1.33.4";
        "The host ports of restartable init containers count."
    SpreadCountsByConstraint 33 PodTopologySpread Recorded [129119]
        "Pods are counted for each constraint; before, constraints with the same topology key share their counts."
    DoneBeforePreBind 33 binding Recorded [130189]
        "Events during PreBind do not concern the pod any more, and a rejection at PreBind is an error."
    NominatedPodDeletionRequeues 33 events Recorded [129058]
        "A nominated pod that is deleted, or loses its node, requeues pods of at most its priority."
    FitHintCountsNominated 33 NodeResourcesFit Read [129058]
        "For requeueing, a pod that is nominated to a node counts as placed."
    PortsHintCountsNominated 33 NodePorts Read [129058]
        "For requeueing, a pod that is nominated to a node counts as placed."
    VolumeLimitsHintCountsNominated 33 NodeVolumeLimits Read [129058]
        "For requeueing, a pod that is nominated to a node counts as placed."
    AffinityHintComparesTopology 33 InterPodAffinity Read []
        "An update of a node requeues only if it changes a topology label in question."
    VolumeLimitsHints 33 NodeVolumeLimits Read []
        "Updates of CSINodes and deletions of VolumeAttachments have hints."
    ScoredAsFiltered 33 extenders Recorded [130537]
        "Nodes are scored as filtering handed them on: those of an extender without a node cache, without their pods."
    AllDevicesBacktrack 33 DynamicResources Read []
        "A request for all devices needs at least one, and if one is taken, the search goes back; before, none is enough, and the search ends."
    ClaimlessPodsPassed 33 DynamicResources Read []
        "PostFilter has no answer for pods without claims; before, that there are no claims to deallocate, or an error if PreFilter did not run."
    SlicesRequeueAll 33 DynamicResources Read []
        "A change of a ResourceSlice requeues every pod that the plugin rejected; before, only if its claims exist."
    VolumeAffinityMessage 33 VolumeBinding Read []
        "The reason for a volume that is out of reach is worded differently; before, \"node(s) had volume node affinity conflict\"."
    BackoffIncludesEnd 33 queue Read [130772]
        "A pod still backs off at the instant at which its backoff ends."
    ClaimConfigByRequest 33 DynamicResources Read []
        "A configuration of a claim stands in the allocation once for each of its requests that was allocated; before, once."
    CapacityShapeDescending 33 VolumeBinding Read []
        "By default, nodes with more free capacity score higher; before, those with less."

    ExcludedIsUnresolvable 32 cycle Recorded []
        "Nodes that PreFilter excludes count as rejected, and preemption skips them."
    SidecarsInNonZeroRequests 32 resources Recorded []
        "For scoring, the requests of sidecars of placed pods are added; before, the largest init container is compared with the sum of the containers."
    ExtenderReasonReplaces 32 extenders Recorded []
        "The reason of an extender replaces the node's status; before, it is appended."
    EventsByChange 32 events Recorded []
        "Updates of nodes and pods are distinguished by what changed, plugins register for those that concern them, and the deletion of a node is an event."
    GatedPodsBackOff 32 queue Read []
        "A gated pod that was tried before keeps its backoff."
    ActivationInFlight 32 queue Read []
        "A pod that is activated during its attempt is retried if the attempt fails."
    FitHintComparesRequests 32 NodeResourcesFit Read []
        "An update of a node requeues only if a requested resource grew, and any reduced request of the pod itself does."
    UncordonRequeues 32 NodeUnschedulable Read []
        "An update of a node requeues only if it is uncordoned, and new tolerations of the pod do, too; before, any update of a node that is not cordoned does."
    SpreadHintComparesNode 32 PodTopologySpread Read []
        "An update of a node requeues only if its topology labels or taints changed, and changed labels or tolerations of the pod itself do, too."
    AllDevicesMustBeFree 32 DynamicResources Read []
        "A request for all devices fails if one is taken; before, it gets the others, and if the search has to go back behind it, the attempt ends in an error."
    ClassConfigByRequest 32 DynamicResources Read [134793] from "1.32.10" "1.33.6" "1.34.2";
        "The configuration of a class stands in the allocation once, with the requests that it concerns; before, once for each request, as for all."
    NodeAffinityHintComparesNode 32 NodeAffinity Read []
        "An update of a node requeues only if the node did not match before."
    PreemptionGates 32 DefaultPreemption Recorded []
        "The plugin takes part in PreEnqueue."
    StructuredParametersOnly 32 DynamicResources Recorded []
        "Controllers do not allocate claims any more, and the plugin has no PreScore."
    OnlyCsiNodesLimit 32 NodeVolumeLimits Recorded []
        "Only the CSINode limits volumes; before, the node's allocatable attachable-volumes-csi-DRIVER does, too."
    InTreeVolumeLimitsRemoved 32 configuration Recorded []
        "EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits do not exist any more."
}

impl Switch {
    /// All switches, the newest version first.
    pub fn all() -> impl Iterator<Item = Switch> {
        ROWS.iter().map(|row| row.switch)
    }

    /// The switch of that name; upper and lower case differ.
    pub fn from_name(name: &str) -> Option<Switch> {
        ROWS.iter().find(|row| row.name == name).map(|row| row.switch)
    }

    const fn row(self) -> &'static SwitchRow {
        &ROWS[self as usize]
    }

    /// The name, as reports print it.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The version that brought the change.
    pub fn since(self) -> KubeVersion {
        KubeVersion::of_minor(self.row().since).unwrap_or(KubeVersion::NEWEST)
    }

    /// The plugin or component that decides otherwise.
    pub const fn part(self) -> Part {
        self.row().part
    }

    /// How the change is known.
    pub const fn evidence(self) -> Evidence {
        self.row().evidence
    }

    /// The numbers of the pull requests in kubernetes/kubernetes, where they are known.
    pub const fn pull_requests(self) -> &'static [u32] {
        self.row().pull_requests
    }

    /// The first patch releases that have the change, one for each minor version that did not begin
    /// with it.
    pub const fn patches(self) -> &'static [&'static str] {
        self.row().patches
    }

    /// What it changes, in one sentence.
    pub const fn sentence(self) -> &'static str {
        self.row().sentence
    }

    /// Whether kubestep decides otherwise with the switch than without it.
    pub fn is_decided(self) -> bool {
        matches!(self.evidence(), Evidence::Recorded | Evidence::Read)
    }
}

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The switches that are on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Behaviour(u128);

impl Behaviour {
    /// That of a version.
    pub fn of(version: KubeVersion) -> Behaviour {
        let since = Switch::all().filter(|switch| switch.since() <= version);
        since.fold(Behaviour(0), |behaviour, switch| behaviour.with(switch, true))
    }

    /// Whether the change is there.
    pub const fn has(self, switch: Switch) -> bool {
        self.0 & (1 << switch as u8) != 0
    }

    /// A copy with one switch set.
    pub const fn with(self, switch: Switch, on: bool) -> Behaviour {
        let bit = 1 << switch as u8;
        Behaviour(if on { self.0 | bit } else { self.0 & !bit })
    }
}

impl Default for Behaviour {
    /// That of the default version.
    fn default() -> Behaviour {
        Behaviour::of(KubeVersion::default())
    }
}

impl fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Switch::all().filter(|switch| self.has(*switch))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum_the_newest_first() {
        assert!(ROWS.len() <= 128, "a Behaviour holds 128 switches");
        for (i, row) in ROWS.iter().enumerate() {
            assert_eq!(row.switch as usize, i);
            assert_eq!(Switch::from_name(row.name), Some(row.switch));
            assert!(KubeVersion::of_minor(row.since).is_some(), "{}", row.name);
            let announced = row.evidence == Evidence::Announced;
            assert_eq!(announced, !row.switch.since().is_proved(), "{}", row.name);
        }
        assert!(ROWS.is_sorted_by(|a, b| a.since >= b.since));
    }

    #[test]
    fn a_version_has_the_changes_up_to_it() {
        let version = |minor| Behaviour::of(KubeVersion::of_minor(minor).unwrap());
        assert!(version(36).has(Switch::BalancedAllocationGain));
        assert!(!version(35).has(Switch::BalancedAllocationGain));
        assert_eq!(version(31), Behaviour(0));
        let turned = version(36).with(Switch::BalancedAllocationGain, false);
        assert!(turned.has(Switch::ImageVolumesCount) && turned != version(35));
    }
}
