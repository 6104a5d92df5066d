//! Requests of pods, with the exact values of upstream's tests.

use serde_json::{Value, json};

use super::*;
use crate::testing::{decoded, list, sized_pod};

fn spec(containers: &[&str]) -> Value {
    sized_pod("p", "", containers)["spec"].take()
}

fn pod(containers: &[&str]) -> Pod {
    decoded(json!({"spec": spec(containers)}))
}

fn pod_level(requests: &str, containers: &[&str]) -> Pod {
    let mut spec = spec(containers);
    spec["resources"] = json!({"requests": list(requests)});
    decoded(json!({"spec": spec}))
}

fn resource_list(text: &str) -> ResourceList {
    decoded(list(text))
}

fn with_status() -> RequestOptions {
    RequestOptions::with_status(&FeatureGates::default())
}

fn plain(pod: &Pod) -> ResourceList {
    pod_requests(pod, &RequestOptions::default())
}

#[test]
fn containers_sum_up_and_init_containers_run_one_by_one() {
    for (containers, expected) in [
        (&["main cpu=1 memory=1Gi", "main cpu=2"][..], "cpu=3 memory=1Gi"),
        (&["init cpu=5", "init cpu=6", "main cpu=1 memory=1"], "cpu=6 memory=1"),
        (&["sidecar cpu=1", "main cpu=1"], "cpu=2"),
        (&["init cpu=5", "sidecar cpu=1", "sidecar cpu=2", "sidecar cpu=3", "main cpu=1"], "cpu=7"),
        // A sidecar that starts after a plain init container does not count for it.
        (
            &[
                "init cpu=5",
                "sidecar cpu=1",
                "sidecar cpu=2",
                "init cpu=5",
                "sidecar cpu=3",
                "main cpu=1",
            ],
            "cpu=8",
        ),
        (&["sidecar cpu=10", "init cpu=200", "main cpu=100"], "cpu=210"),
        (&["init memory=5", "main cpu=1"], "cpu=1 memory=5"),
        (
            &["main example.com/gpu=2", "main example.com/gpu=1 storage=3"],
            "example.com/gpu=3 storage=3",
        ),
        (&["main cpu=0"], "cpu=0"),
        (&["main"], ""),
    ] {
        assert_eq!(plain(&pod(containers)), resource_list(expected), "{containers:?}");
    }
}

#[test]
fn fractions_are_summed_exactly_and_rounded_once() {
    let summed = plain(&pod(&["main cpu=0.1m memory=1.5", "main cpu=0.1m memory=1.5"]));
    let resource = Resource::from_list(&summed);
    assert_eq!((resource.milli_cpu, resource.memory), (1, 3));
}

#[test]
fn pod_level_requests_replace_what_can_be_set_there() {
    for (own, containers, expected) in [
        ("memory=2Mi", &["main cpu=2m"][..], "memory=2Mi cpu=2m"),
        ("memory=6Mi cpu=8m", &["main memory=3Mi cpu=2m"], "memory=6Mi cpu=8m"),
        ("memory=2Mi", &["main memory=9Mi", "sidecar memory=9Mi"], "memory=2Mi"),
        // Storage is not supported in pod-level requests.
        ("storage=2Mi", &["main storage=3Mi"], "storage=3Mi"),
        ("storage=2Mi", &["main memory=3Mi"], "memory=3Mi"),
        ("cpu=1 storage=2Mi", &["main storage=3Mi cpu=2"], "cpu=1 storage=3Mi"),
        ("cpu=1 hugepages-2Mi=10Mi", &["main hugepages-2Mi=6Mi"], "cpu=1 hugepages-2Mi=10Mi"),
        (
            "cpu=1 hugepages-2Mi=10Mi",
            &["main hugepages-1Gi=2Gi"],
            "cpu=1 hugepages-2Mi=10Mi hugepages-1Gi=2Gi",
        ),
        (
            "memory=15Mi cpu=18m",
            &["sidecar memory=5Mi cpu=4m", "init memory=6Mi cpu=8m", "main memory=3Mi cpu=2m"],
            "memory=15Mi cpu=18m",
        ),
    ] {
        assert_eq!(plain(&pod_level(own, containers)), resource_list(expected), "{own}");
    }
    let skipping = RequestOptions { skip_pod_level: true, ..RequestOptions::default() };
    let requests = pod_requests(&pod_level("memory=2Mi", &["main cpu=1"]), &skipping);
    assert_eq!(requests, resource_list("cpu=1"));
}

#[test]
fn overhead_comes_on_top_of_everything() {
    let mut sum = pod(&["init cpu=4", "main cpu=1 memory=1"]);
    sum.spec.overhead = Some(resource_list("cpu=1 memory=1 example.com/x=1"));
    assert_eq!(plain(&sum), resource_list("cpu=5 memory=2 example.com/x=1"));
    let mut own = pod_level("cpu=2", &["main cpu=9"]);
    own.spec.overhead = Some(resource_list("cpu=1"));
    assert_eq!(plain(&own), resource_list("cpu=3"));
}

#[test]
fn defaults_stand_in_for_absent_requests_of_each_container() {
    let options = RequestOptions { non_missing: default_requests(), ..RequestOptions::default() };
    for (containers, expected) in [
        (&["main"][..], "cpu=100m memory=200Mi"),
        (&["main", "main cpu=1"], "cpu=1100m memory=400Mi"),
        // An explicit zero stays.
        (&["main cpu=0 memory=0"], "cpu=0 memory=0"),
        (&["init", "main cpu=0 memory=1"], "cpu=100m memory=200Mi"),
        (&["sidecar", "main cpu=0 memory=1"], "cpu=100m memory=209715201"),
    ] {
        let requests = pod_requests(&pod(containers), &options);
        assert_eq!(requests, resource_list(expected), "{containers:?}");
    }
}

/// A pod with one container or sidecar that is being resized.
fn resized(kind: &str, spec_requests: &str, actuated: &str, allocated: &str, reason: &str) -> Pod {
    let container = format!("{kind} {spec_requests}");
    let field = if kind == "main" { "containerStatuses" } else { "initContainerStatuses" };
    let conditions = match reason {
        "" => json!([]),
        reason => json!([{"type": "PodResizePending", "status": "True", "reason": reason},
            {"type": "PodResizePending", "reason": "Deferred"}]),
    };
    let status = json!([{"name": "0", "resources": {"requests": list(actuated)},
        "allocatedResources": list(allocated)}]);
    decoded(
        json!({"spec": spec(&[&container]), "status": {field: status, "conditions": conditions}}),
    )
}

#[test]
fn a_resize_counts_the_largest_of_spec_actuated_and_allocated() {
    let three = ("cpu=30m memory=20M", "cpu=10m memory=30M", "cpu=20m memory=10M");
    for (kind, (spec, actuated, allocated), reason, expected) in [
        ("main", three, "", "cpu=30m memory=30M"),
        ("main", three, "Infeasible", "cpu=20m memory=30M"),
        ("main", three, "Deferred", "cpu=30m memory=30M"),
        ("sidecar", three, "", "cpu=30m memory=30M"),
        ("sidecar", three, "Infeasible", "cpu=20m memory=30M"),
        // A plain init container cannot be resized.
        ("init", three, "Infeasible", "cpu=30m memory=20M"),
        ("main", ("cpu=4", "cpu=2", ""), "Infeasible", "cpu=2"),
        ("main", ("", "cpu=1", "memory=2"), "", "cpu=1 memory=2"),
    ] {
        let pod = resized(kind, spec, actuated, allocated, reason);
        let requests = pod_requests(&pod, &with_status());
        assert_eq!(requests, resource_list(expected), "{kind} {reason}");
        // An unscheduled pod is counted by its spec.
        assert_eq!(plain(&pod), resource_list(spec), "{kind} {reason}");
    }
}

#[test]
fn a_status_without_resources_changes_nothing() {
    let pod: Pod = decoded(json!({"spec": spec(&["main cpu=1"]),
        "status": {"containerStatuses": [{"name": "0", "allocatedResources": {"cpu": "2"}}]}}));
    assert_eq!(pod_requests(&pod, &with_status()), resource_list("cpu=1"));
}

#[test]
fn a_resize_of_the_pod_as_a_whole() {
    let pod = |reason: &str| {
        let mut pod = resized("main", "cpu=9", "", "", reason);
        pod.spec.resources = pod_level("cpu=4 memory=4", &[]).spec.resources;
        pod.status.resources = Some(decoded(json!({"requests": list("cpu=2 memory=6")})));
        pod.status.allocated_resources = Some(resource_list("cpu=3"));
        pod
    };
    let with_status = with_status();
    assert_eq!(pod_requests(&pod(""), &with_status), resource_list("cpu=4 memory=6"));
    assert_eq!(pod_requests(&pod("Infeasible"), &with_status), resource_list("cpu=3 memory=6"));
    let without = RequestOptions { pod_level_status: false, ..with_status.clone() };
    assert_eq!(pod_requests(&pod(""), &without), resource_list("cpu=4 memory=4"));
    // A resource that only an infeasible resize would add counts as zero.
    let mut added = pod("Infeasible");
    added.status.resources = Some(decoded(json!({"requests": list("cpu=2")})));
    assert_eq!(pod_requests(&added, &with_status), resource_list("cpu=3 memory=0"));
}

#[test]
fn claims_on_node_resources_are_added_to_the_containers() {
    let mut pod = pod(&["main cpu=100m", "main"]);
    pod.status.node_allocatable_resource_claim_statuses = vec![
        decoded(json!({"resources": list("cpu=50m memory=1Gi")})),
        decoded(json!({"resources": list("cpu=25m")})),
    ];
    let gates = FeatureGates::default().with(Feature::DRANodeAllocatableResources, true);
    let accounted = accounted(&pod, &gates);
    assert_eq!(accounted.resource.milli_cpu, 175);
    assert_eq!(accounted.resource.memory, 1 << 30);
    assert_eq!(plain(&pod), resource_list("cpu=100m"));
    pod.spec.resources = pod_level("cpu=1", &[]).spec.resources;
    assert_eq!(super::accounted(&pod, &gates).resource.milli_cpu, 1000);
}

/// Upstream's CalculateResource reads the global feature gates, so they decide what a pod counts
/// for.
#[test]
fn what_is_accounted_depends_on_the_feature_gates() {
    let mut pod = resized("main", "cpu=500m", "", "", "");
    pod.spec.resources = pod_level("cpu=3", &[]).spec.resources;
    pod.status.resources = Some(decoded(json!({"requests": list("cpu=3500m")})));
    pod.status.node_allocatable_resource_claim_statuses =
        vec![decoded(json!({"resources": list("cpu=9 example.com/x=1")}))];
    let (whole, resize) =
        (Feature::PodLevelResources, Feature::InPlacePodLevelResourcesVerticalScaling);
    let all = FeatureGates::default();
    for (gates, expected) in [
        (all, 3500),
        (all.with(resize, false), 3000),
        (all.with(resize, false).with(whole, false), 500),
        (all.with(whole, false).with(Feature::DRANodeAllocatableResources, true), 9500),
    ] {
        let accounted = accounted(&pod, &gates);
        assert_eq!(accounted.resource.milli_cpu, expected);
        assert_eq!(accounted.non_zero_milli_cpu, expected);
    }
}

#[test]
fn what_is_accounted_with_and_without_defaults() {
    let counted = |pod: &Pod| {
        let accounted = accounted(pod, &FeatureGates::default());
        let resource = &accounted.resource;
        (
            (resource.milli_cpu, resource.memory),
            (accounted.non_zero_milli_cpu, accounted.non_zero_memory >> 20),
        )
    };
    for (pod, requested, non_zero) in [
        (pod(&["main"]), (0, 0), (100, 200)),
        (pod(&["main", "main"]), (0, 0), (200, 400)),
        (pod(&["main cpu=1", "main"]), (1000, 0), (1100, 400)),
        (pod(&["main cpu=0 memory=0"]), (0, 0), (0, 0)),
        // With pod-level requests, a default applies only to what the whole pod does not request.
        (pod_level("cpu=2", &["main", "main"]), (2000, 0), (2000, 400)),
        (pod_level("cpu=2", &["main memory=1Mi", "main"]), (2000, 1 << 20), (2000, 1)),
        (pod_level("cpu=2 memory=2Mi", &["main"]), (2000, 2 << 20), (2000, 2)),
        (pod_level("storage=1", &["main"]), (0, 0), (100, 200)),
        (
            resized("main", "cpu=700m memory=800Mi", "cpu=500m memory=500Mi", "", "Infeasible"),
            (500, 500 << 20),
            (500, 500),
        ),
    ] {
        assert_eq!(counted(&pod), (requested, non_zero), "{:?}", pod.spec);
    }
}
