//! Which gates can be set, and what setting them does.

use super::*;

fn error(text: &str) -> String {
    FeatureGates::parse(text).unwrap_err().to_string()
}

#[test]
fn the_table_is_in_the_order_of_the_enum_and_consistent() {
    for (i, feature) in Feature::all().enumerate() {
        assert_eq!(feature as usize, i);
        assert_eq!(Feature::from_name(feature.name()), Some(feature));
        assert!(GATES[i].history.is_sorted_by(|a, b| a.0 < b.0), "{feature}");
        assert!(feature.versions().next().is_some(), "{feature}");
        for spec in feature.versions().filter_map(|version| feature.spec(version)) {
            assert!(spec.stage != FeatureStage::Alpha || !spec.default);
            assert!(!spec.locked || spec.stage == FeatureStage::Ga);
        }
    }
    assert_eq!(FeatureGates::default().known().count(), 47);
    for version in KubeVersion::all() {
        assert!(FeatureGates::of(version).check_dependencies().is_ok(), "{version}");
    }
}

#[test]
fn a_version_has_its_own_gates() {
    let gates = |minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
    assert!(!gates(31).enabled(Feature::SchedulerQueueingHints));
    assert!(gates(32).enabled(Feature::SchedulerQueueingHints));
    let error = |minor, text| gates(minor).parsed(text).unwrap_err().to_string();
    assert_eq!(
        error(34, "OpportunisticBatching=false"),
        "Kubernetes 1.34 has no feature gate OpportunisticBatching: it came with 1.35"
    );
    assert_eq!(
        error(37, "GangScheduling=true"),
        "Kubernetes 1.37 has no feature gate GangScheduling: 1.36 was the last to have it"
    );
    let merged = gates(37).parsed("GenericWorkload=true").unwrap();
    assert!(merged.enabled(Feature::GangScheduling));
    assert_eq!(merged.to_string(), "GenericWorkload=true");
    // Dependencies are checked since 1.35.
    assert!(gates(34).parsed("DRAPrioritizedList=true,DynamicResourceAllocation=false").is_ok());
}

#[test]
fn an_emulated_version_gives_the_gates_and_nothing_else() {
    let (own, old) = (KubeVersion::default(), KubeVersion::of_minor(33).unwrap());
    let gates = FeatureGates::emulating(own, old);
    assert!(!gates.enabled(Feature::DynamicResourceAllocation));
    assert_eq!(gates.behaviour(), FeatureGates::of(own).behaviour());
    assert!(gates.parsed("OpportunisticBatching=true").is_err());
    // A gate that the scheduler itself no longer has is not one, whatever it emulates.
    let oldest = FeatureGates::of(KubeVersion::OLDEST);
    assert!(oldest.parsed("CSIMigrationPortworx=false").is_ok());
    assert!(FeatureGates::of(old).parsed("CSIMigrationPortworx=false").is_err());
    let error = gates.parsed("CSIMigrationPortworx=false").unwrap_err().to_string();
    assert!(error.starts_with("Kubernetes 1.36 has no feature gate CSIMigration"), "{error}");
    assert_eq!(gates.to_string(), "");
}

#[test]
fn gates_of_another_version_are_adopted_as_far_as_they_exist() {
    let of = |minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
    let text = "OpportunisticBatching=false,NodeInclusionPolicyInPodTopologySpread=false";
    let (gates, left_out) = of(34).adopted(text).unwrap();
    let left_out: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    assert_eq!((gates, left_out.len()), (of(34), 2), "{left_out:?}");
    let (gates, left_out) = of(35).adopted("OpportunisticBatching=false").unwrap();
    assert_eq!((gates.to_string().as_str(), left_out.len()), ("OpportunisticBatching=false", 0));
    assert!(of(34).adopted("Quux=true").is_err());
}

#[test]
fn a_gate_that_is_set_to_its_default_stays_set() {
    let of = |minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
    let gates = of(33).parsed("DynamicResourceAllocation=false").unwrap();
    assert_eq!((gates, gates.to_string().as_str()), (of(33), ""));
    assert_eq!(gates.as_set(), "DynamicResourceAllocation=false");
    let (newer, rejected) = of(34).adopted(&gates.as_set()).unwrap();
    assert!(!newer.enabled(Feature::DynamicResourceAllocation) && rejected.is_empty());
    let (_, rejected) = of(36).adopted(&gates.as_set()).unwrap();
    assert!(matches!(rejected[..], [FeatureGateError::Locked { .. }]), "{rejected:?}");
    let named = of(36).parsed("OpportunisticBatching=true").unwrap();
    let without_beta = named.parsed("AllBeta=false").unwrap();
    assert!(without_beta.enabled(Feature::OpportunisticBatching));
    assert_eq!(
        of(36).with(Feature::OpportunisticBatching, false).as_set(),
        "OpportunisticBatching=false"
    );
}

#[test]
fn gates_are_set_as_on_the_command_line() {
    let gates = FeatureGates::parse(" GenericWorkload = true ,,GangScheduling=1").unwrap();
    assert!(gates.enabled(Feature::GangScheduling));
    assert!(gates.enabled(Feature::OpportunisticBatching));
    assert_eq!(gates.to_string(), "GenericWorkload=true,GangScheduling=true");
    assert_eq!(FeatureGates::parse("").unwrap(), FeatureGates::default());
    let last = FeatureGates::parse("OpportunisticBatching=false,OpportunisticBatching=t");
    assert_eq!(last.unwrap(), FeatureGates::default());
}

#[test]
fn a_stage_is_set_but_for_the_gates_named() {
    let gates = FeatureGates::parse("VolumeLimitScaling=false,AllAlpha=true").unwrap();
    assert!(gates.enabled(Feature::StorageCapacityScoring));
    assert!(!gates.enabled(Feature::VolumeLimitScaling));
    assert!(!gates.enabled(Feature::SchedulerAsyncAPICalls));
}

#[test]
fn what_cannot_be_set_is_rejected_with_the_reason() {
    assert_eq!(
        error("GangSheduling=true"),
        "no feature gate \"GangSheduling\" changes the scheduler of Kubernetes 1.36; \
         did you mean GangScheduling (ALPHA, default false)?"
    );
    assert_eq!(
        error("Quux=true"),
        "no feature gate \"Quux\" changes the scheduler of Kubernetes 1.36"
    );
    assert_eq!(
        error("SidecarContainers=false"),
        "feature gate SidecarContainers cannot be set to false: \
         it is GA and locked to true in Kubernetes 1.36"
    );
    assert_eq!(
        error("GangScheduling=true"),
        "feature gate GangScheduling is on (not the default), but needs GenericWorkload, \
         which is off: add GenericWorkload=true or set GangScheduling=false"
    );
    assert_eq!(
        error("GangScheduling"),
        "feature gate \"GangScheduling\" has no value: \
         write GangScheduling=true or GangScheduling=false"
    );
    assert_eq!(
        error("GangScheduling=yes"),
        "feature gate GangScheduling has the value \"yes\": \
         write GangScheduling=true or GangScheduling=false"
    );
}

#[test]
fn a_locked_gate_may_be_given_its_value() {
    assert_eq!(FeatureGates::parse("SidecarContainers=true").unwrap(), FeatureGates::default());
}

#[test]
fn up_to_1_34_a_gate_can_be_on_without_those_that_it_needs() {
    let text = "DRADeviceBindingConditions=true,DRAResourceClaimDeviceStatus=false";
    let is_valid =
        |minor| FeatureGates::of(KubeVersion::of_minor(minor).unwrap()).parsed(text).is_ok();
    assert_eq!([34, 35].map(is_valid), [true, false]);
}
