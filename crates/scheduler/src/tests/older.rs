//! What the cycle of older versions does otherwise.

use super::*;
use kubestep_api::Name;
use kubestep_config::Feature;
use kubestep_config::versions::{Switch, VersionChange};
use kubestep_framework::status::Code;

/// The default gates, and the same without the switch.
fn with_and_without(switch: Switch) -> [FeatureGates; 2] {
    let (with, older) = (FeatureGates::default(), switch.since().before().unwrap());
    [with, VersionChange::Switch(switch).applied(with, FeatureGates::of(older))]
}

/// Both switches of DynamicResources: its PostFilter answers up to 1.32, and again since 1.34.
#[test]
fn in_1_33_post_filter_of_dynamic_resources_ignores_pods_without_claims() {
    let answers = [32, 33, 34].map(|minor| {
        let gates = FeatureGates::of(KubeVersion::of_minor(minor).unwrap());
        let gates = gates.with(Feature::DynamicResourceAllocation, true);
        let mut bench = Bench::of(gates, "", &[]);
        bench.add(node("n1"));
        bench.add(pod("p").requests("cpu", "9"));
        bench.step().message.contains("no new claims to deallocate")
    });
    assert_eq!(answers, [true, false, true]);
}

#[test]
fn up_to_1_34_a_failure_keeps_the_nomination_if_nothing_runs_at_post_filter() {
    let clears = with_and_without(Switch::NominationClearedOnFailure).map(|gates| {
        let none = "profiles:\n- plugins: {postFilter: {disabled: [{name: '*'}]}}\n";
        let mut bench = Bench::of(gates, none, &[]);
        bench.add(node("n1"));
        bench.add(pod("p").requests("cpu", "9").nominated("n1"));
        assert_eq!(bench.step().outcome, Outcome::Unschedulable);
        bench.host.asked.iter().any(|asked| {
            matches!(asked, Asked::Patch(_, patch) if patch.nominated_node == Some(Name::EMPTY))
        })
    });
    assert_eq!(clears, [true, false]);
}

#[test]
fn up_to_1_34_a_pod_that_is_deleted_in_pre_bind_stays_assumed() {
    let assumed = with_and_without(Switch::DeletedAssumedPodForgotten).map(|gates| {
        let slow = Scripted {
            pre_flight: Some(Status::SUCCESS),
            ..Scripted::new("Slow", &[PreBind]).says(PreBind, Status::new(Code::Wait, "a moment"))
        };
        let profile = "profiles:\n- plugins: {multiPoint: {enabled: [{name: Slow}]}}\n";
        let mut bench = Bench::of(gates, profile, &[&slow]);
        bench.add(node("n1"));
        bench.add(pod("p"));
        assert_eq!(bench.step().outcome, Outcome::Waiting);
        bench.delete(pod("p"));
        bench.scheduler.cache().pod_count()
    });
    assert_eq!(assumed, [0, 1]);
}
