//! `--emulated-version` and `--feature-gates` against kube-scheduler 1.36.2 itself: which values of
//! which gates it refuses, and why. It was started with every gate that the table has in 1.36, on
//! and off, under every version that it emulates.

use super::*;

/// What kube-scheduler 1.36.2 refuses under an emulated version; it accepts all other values.
struct Refused {
    emulated: u8,
    /// Gates that the emulated version does not have, on or off.
    absent: &'static str,
    /// Values that are locked out.
    locked: &'static str,
    /// Values under which a gate that is on lacks one that it needs.
    dependency: &'static str,
}

#[rustfmt::skip]
const REFUSED: [Refused; 4] = [
    Refused {
        emulated: 36,
        absent: "\
",
        locked: "\
        DynamicResourceAllocation=false DRAAdminAccess=false VolumeAttributesClass=false \
        NodeInclusionPolicyInPodTopologySpread=false MatchLabelKeysInPodAffinity=false \
        InPlacePodVerticalScaling=false SidecarContainers=false SchedulerQueueingHints=false \
        PodSchedulingReadiness=false PodObservedGenerationTracking=false \
        MutableCSINodeAllocatableCount=false",
        dependency: "\
        DRAResourceClaimDeviceStatus=false MatchLabelKeysInPodTopologySpread=false \
        PodLevelResources=false NodeDeclaredFeatures=false GangScheduling=true \
        TopologyAwareWorkloadScheduling=true WorkloadAwarePreemption=true \
        DRAWorkloadResourceClaims=true",
    },
    Refused {
        emulated: 35,
        absent: "\
        DRAResourceClaimGranularStatusAuthorization TopologyAwareWorkloadScheduling \
        WorkloadAwarePreemption DRAWorkloadResourceClaims DRANodeAllocatableResources \
        DRAListTypeAttributes",
        locked: "\
        DynamicResourceAllocation=false NodeInclusionPolicyInPodTopologySpread=false \
        MatchLabelKeysInPodAffinity=false InPlacePodVerticalScaling=false \
        SidecarContainers=false SchedulerQueueingHints=false PodSchedulingReadiness=false \
        PodObservedGenerationTracking=false",
        dependency: "\
        MatchLabelKeysInPodTopologySpread=false InPlacePodLevelResourcesVerticalScaling=true \
        DRADeviceTaintRules=true GangScheduling=true",
    },
    Refused {
        emulated: 34,
        absent: "\
        DRAResourceClaimGranularStatusAuthorization InPlacePodLevelResourcesVerticalScaling \
        OpportunisticBatching NodeDeclaredFeatures DRADeviceTaintRules GenericWorkload \
        GangScheduling TopologyAwareWorkloadScheduling WorkloadAwarePreemption \
        DRAWorkloadResourceClaims DRANodeAllocatableResources DRAListTypeAttributes \
        VolumeLimitScaling TaintTolerationComparisonOperators",
        locked: "\
        NodeInclusionPolicyInPodTopologySpread=false MatchLabelKeysInPodAffinity=false \
        SidecarContainers=false SchedulerQueueingHints=false PodSchedulingReadiness=false",
        dependency: "\
        DynamicResourceAllocation=false MatchLabelKeysInPodTopologySpread=false",
    },
    Refused {
        emulated: 33,
        absent: "\
        DRAExtendedResource DRAConsumableCapacity DRADeviceBindingConditions \
        DRASchedulerFilterTimeout DRAResourceClaimGranularStatusAuthorization \
        MatchLabelKeysInPodTopologySpreadSelectorMerge InPlacePodLevelResourcesVerticalScaling \
        NominatedNodeNameForExpectation ClearingNominatedNodeNameAfterBinding \
        OpportunisticBatching NodeDeclaredFeatures DRADeviceTaintRules SchedulerAsyncAPICalls \
        GenericWorkload GangScheduling TopologyAwareWorkloadScheduling WorkloadAwarePreemption \
        DRAWorkloadResourceClaims DRANodeAllocatableResources DRAListTypeAttributes \
        VolumeLimitScaling TaintTolerationComparisonOperators",
        locked: "\
        NodeInclusionPolicyInPodTopologySpread=false MatchLabelKeysInPodAffinity=false \
        SidecarContainers=false PodSchedulingReadiness=false",
        dependency: "\
        DRAAdminAccess=true DRAPrioritizedList=true DRADeviceTaints=true \
        DRAPartitionableDevices=true",
    },
];

#[test]
fn an_emulating_scheduler_accepts_and_refuses_what_kube_scheduler_does() {
    let own = KubeVersion::default();
    for Refused { emulated, absent, locked, dependency } in REFUSED {
        let gates = FeatureGates::emulating(own, KubeVersion::of_minor(emulated).unwrap());
        let lists = |list: &str, text: &str| list.split_whitespace().any(|one| one == text);
        for gate in Feature::all().filter(|gate| gate.spec(own).is_some()) {
            for on in [true, false] {
                let pair = format!("{gate}={on}");
                let found = match gates.parsed(&pair) {
                    Ok(_) => "accepted",
                    Err(FeatureGateError::Absent { .. }) => "absent",
                    Err(FeatureGateError::Locked { .. }) => "locked",
                    Err(FeatureGateError::Dependency { .. }) => "dependency",
                    Err(_) => "rejected",
                };
                let expected = match () {
                    () if lists(absent, gate.name()) => "absent",
                    () if lists(locked, &pair) => "locked",
                    () if lists(dependency, &pair) => "dependency",
                    () => "accepted",
                };
                assert_eq!(found, expected, "emulating 1.{emulated}: {pair}");
            }
        }
    }
}

#[test]
fn values_that_kube_scheduler_cannot_read_are_rejected_under_every_emulated_version() {
    for Refused { emulated, .. } in REFUSED {
        let version = KubeVersion::of_minor(emulated).unwrap();
        let gates = FeatureGates::emulating(KubeVersion::default(), version);
        let name = "SchedulerQueueingHints";
        assert!(matches!(gates.parsed(name), Err(FeatureGateError::NoValue(_))));
        let maybe = gates.parsed(&format!("{name}=maybe"));
        assert!(matches!(maybe, Err(FeatureGateError::BadValue { .. })));
        for text in ["", "AllBeta=true", "AllAlpha=false", " SchedulerAsyncPreemption = 1 "] {
            assert!(gates.parsed(text).is_ok(), "{text:?} under 1.{emulated}");
        }
    }
}
