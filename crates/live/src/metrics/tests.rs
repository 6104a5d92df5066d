//! Names, types and labels of the metrics, and what each event counts.

use std::sync::Arc;

use super::*;
use kubestep_cluster::remote::CallType;
use kubestep_config as config;
use kubestep_config::ExtensionPoint;
use kubestep_framework::events::ClusterEvent;
use kubestep_framework::record::Candidate;
use kubestep_framework::status::Status;
use kubestep_framework::stopwatch::{Done, Spent, Work};

/// The metrics that both kube-scheduler 1.36.2 and kubestep serve: name, type, labels. The
/// remaining ones of kube-scheduler belong to Go, client-go or the API machinery, and are not about
/// scheduling.
const NAMES: &str = "\
kubernetes_build_info gauge build_date,compiler,git_commit,git_tree_state,git_version,go_version,major,minor,platform
kubernetes_feature_enabled gauge name,stage
leader_election_master_status gauge name
leader_election_slowpath_total counter name
process_cpu_seconds_total counter
process_max_fds gauge
process_network_receive_bytes_total counter
process_network_transmit_bytes_total counter
process_open_fds gauge
process_resident_memory_bytes gauge
process_start_time_seconds gauge
process_virtual_memory_bytes gauge
process_virtual_memory_max_bytes gauge
rest_client_rate_limiter_duration_seconds histogram host,verb
rest_client_request_duration_seconds histogram host,verb
rest_client_request_retries_total counter code,host,verb
rest_client_request_size_bytes histogram host,verb
rest_client_requests_total counter code,host,method
rest_client_response_size_bytes histogram host,verb
rest_client_transport_cache_entries gauge
rest_client_transport_create_calls_total counter result
scheduler_async_api_call_execution_duration_seconds histogram call_type,result
scheduler_async_api_call_execution_total counter call_type,result
scheduler_batch_attempts_total counter profile,result
scheduler_batch_cache_flushed_total counter profile,reason
scheduler_cache_size gauge type
scheduler_dra_bindingconditions_allocations_total counter driver,profile,status
scheduler_dra_bindingconditions_wait_duration_seconds histogram driver,profile,status
scheduler_event_handling_duration_seconds histogram event
scheduler_framework_extension_point_duration_seconds histogram extension_point,profile,status
scheduler_get_node_hint_duration_seconds histogram hinted,profile
scheduler_goroutines gauge operation
scheduler_inflight_events gauge event
scheduler_pending_async_api_calls gauge call_type
scheduler_pending_pods gauge queue
scheduler_permit_wait_duration_seconds histogram result
scheduler_plugin_evaluation_total counter extension_point,plugin,profile
scheduler_plugin_execution_duration_seconds histogram extension_point,plugin,status
scheduler_pod_scheduled_after_flush_total counter
scheduler_pod_scheduling_attempts histogram
scheduler_pod_scheduling_sli_duration_seconds histogram attempts
scheduler_podgroup_schedule_attempts_total counter profile,result
scheduler_podgroup_scheduling_algorithm_duration_seconds histogram
scheduler_podgroup_scheduling_attempt_duration_seconds histogram profile,result
scheduler_preemption_attempts_total counter
scheduler_preemption_goroutines_duration_seconds histogram result
scheduler_preemption_goroutines_execution_total counter result
scheduler_preemption_victims histogram
scheduler_queue_incoming_pods_total counter event,queue
scheduler_queueing_hint_execution_duration_seconds histogram event,hint,plugin
scheduler_resourceclaim_creates_total counter status
scheduler_schedule_attempts_total counter profile,result
scheduler_scheduling_algorithm_duration_seconds histogram
scheduler_scheduling_attempt_duration_seconds histogram profile,result
scheduler_store_schedule_results_duration_seconds histogram profile
scheduler_unschedulable_pods gauge plugin,profile
scheduler_volume_scheduling_stage_error_total counter operation
version_info gauge binary,component,emulation,min_compat
";

fn record(outcome: Outcome) -> CycleRecord {
    let pod = NamespacedName::new("d".into(), "p".into());
    CycleRecord {
        cycle: 7,
        pod,
        attempt: 2,
        profile: "default-scheduler".into(),
        time: Time(3_000_000),
        outcome,
        ..CycleRecord::default()
    }
}

fn moved(from: QueueName, to: QueueName, event: &str) -> SchedulingReport {
    SchedulingReport::Moved(QueueMove {
        time: Time(1_000_000),
        pod: record(Outcome::Waiting).pod,
        from,
        to,
        event: event.into(),
        plugin: None,
        order: None,
    })
}

#[test]
fn pods_that_only_time_woke_are_counted_once_they_are_bound() {
    use QueueName::{Active, InFlight, Unschedulable};
    let mut metrics = Metrics::new("", &FeatureGates::default()).unwrap();
    let bound = SchedulingReport::Decided(Arc::new(record(Outcome::Scheduled)));
    metrics.count(&moved(Unschedulable, Active, FLUSH));
    metrics.count(&moved(Active, InFlight, ""));
    metrics.count(&moved(InFlight, Unschedulable, "ScheduleAttemptFailure"));
    metrics.count(&moved(Unschedulable, Active, "NodeAdd"));
    metrics.count(&bound);
    assert_eq!(metrics.after_flush.get(), 0);
    metrics.count(&moved(Unschedulable, Active, FLUSH));
    metrics.count(&moved(Active, InFlight, ""));
    metrics.count(&bound);
    assert_eq!(metrics.after_flush.get(), 1);
    assert!(metrics.flushed.is_empty());
}

#[test]
fn a_pod_is_counted_from_the_queue_to_its_node() {
    let mut metrics = Metrics::new("kube-scheduler", &FeatureGates::default()).unwrap();
    metrics.count(&moved(QueueName::None, QueueName::Active, "UnschedulablePodAdd"));
    let took = Duration::from_millis(2);
    metrics.count(&SchedulingReport::Cycle(Arc::new(record(Outcome::Waiting)), took));
    metrics.count(&SchedulingReport::Decided(Arc::new(record(Outcome::Scheduled))));
    metrics.count(&SchedulingReport::Lead(Lead::Leading));
    let text = String::from_utf8(text(&metrics.registry())).unwrap();
    for line in [
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 1",
        "scheduler_queue_incoming_pods_total{event=\"UnschedulablePodAdd\",queue=\"active\"} 1",
        "scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"2\",le=\"2.56\"} 1",
        "scheduler_pod_scheduling_sli_duration_seconds_bucket{attempts=\"2\",le=\"1.28\"} 0",
        "scheduler_pod_scheduling_attempts_sum 2",
        "leader_election_master_status{name=\"kube-scheduler\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in:\n{text}");
    }
    assert!(metrics.queued.is_empty() && metrics.under_way.is_empty());
}

fn world() -> World {
    let (plugins, gates) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(None, &gates, &plugins.descriptors()).unwrap();
    World::new(&config, gates, &plugins).unwrap()
}

fn candidate(victims: Vec<NamespacedName>) -> Candidate {
    Candidate { node: "n".into(), victims, pdb_violations: 0, reasons: Vec::new() }
}

/// Triggers everything that can be counted, once.
fn everything(metrics: &mut Metrics) {
    let error = PluginStatus::new("VolumeBinding".into(), Status::error("e"));
    let victim = NamespacedName::new("d".into(), "v".into());
    let candidate = candidate(vec![victim]);
    let failed = CycleRecord {
        preemption: Some(candidate),
        post_filter: vec![PluginStatus::new("DefaultPreemption".into(), Status::SUCCESS)],
        reserve: vec![error].into(),
        ..record(Outcome::SchedulerError)
    };
    let waited = CycleRecord { permit_wait: Some(Status::SUCCESS), ..record(Outcome::Scheduled) };
    let (profile, plugin) = ("p".into(), "NodeName".into());
    let point = ExtensionPoint::Filter;
    let spent = Spent { point, plugin, turns: 1, nanos: 8, nodes: 1, rejected: 0 };
    let event = ClusterEvent::FORCE_ACTIVATE;
    let work = [
        Work::NodeHint { profile, hinted: false },
        Work::StoredResults { profile },
        Work::QueueingHint { plugin, event, answer: "Queue".into() },
        Work::GroupAlgorithm,
        Work::GroupAttempt { profile, result: "scheduled" },
        Work::BatchAttempt { profile, result: "no_hint" },
        Work::BatchFlush { profile, reason: "expired" },
        Work::BindingConditions { profile, driver: "gpu.x".into(), status: "success" },
    ];
    let answered =
        |what: &str| SchedulingReport::Answered { what: what.into(), error: None, call: None };
    let call = CallType::PodBinding;
    let bound = SchedulingReport::Answered {
        what: "bind".into(),
        error: None,
        call: Some((call, Duration::ZERO)),
    };
    let took = Duration::from_millis(2);
    for report in [
        SchedulingReport::Lead(Lead::Leading),
        SchedulingReport::Handled { event: "NodeAdd".into(), took },
        moved(QueueName::None, QueueName::Active, "UnschedulablePodAdd"),
        SchedulingReport::Cycle(Arc::new(failed), took),
        SchedulingReport::Decided(Arc::new(waited)),
        answered("create claim"),
        answered("evict d/v"),
        SchedulingReport::Sent(call),
        bound,
        SchedulingReport::Spent(None, vec![spent]),
        SchedulingReport::Done(work.map(|work| Done { work, nanos: 7 }).to_vec()),
    ] {
        metrics.count(&report);
    }
}

#[test]
fn names_types_and_labels_are_those_of_kube_scheduler() {
    let gates = FeatureGates::parse("GenericWorkload=true,SchedulerAsyncAPICalls=true").unwrap();
    let mut metrics = Metrics::new("kube-scheduler", &gates).unwrap();
    metrics.report_features(&gates);
    everything(&mut metrics);
    metrics.measure(&world());
    metrics.present.unschedulable.with_label_values(&["NodeName", "p"]).set(1);
    traffic::count_request("h", "GET", Some(200), Duration::ZERO, 0);
    traffic::received("h", "GET", 1);
    traffic::waited("h", "GET", Duration::ZERO);
    traffic::retried("h", "GET", 503);
    traffic::connected();
    traffic::renewed_slowly("kube-scheduler");
    let families = metrics.registry().gather();
    let line = |family: &prometheus::proto::MetricFamily| {
        let mut labels: Vec<&str> =
            family.get_metric()[0].get_label().iter().map(|label| label.name()).collect();
        labels.sort_unstable();
        let kind = format!("{:?}", family.get_field_type()).to_lowercase();
        let line = format!("{} {kind} {}", family.name(), labels.join(","));
        line.trim_end().to_owned() + "\n"
    };
    let found: String = families.iter().map(line).collect();
    assert_eq!(found, NAMES);
}

#[test]
fn a_preemption_is_over_when_every_victim_is_answered() {
    let mut metrics = Metrics::new("", &FeatureGates::default()).unwrap();
    let name = |name: &str| NamespacedName::new("d".into(), name.into());
    let victims = vec![name("a"), name("b")];
    let chosen = candidate(victims);
    metrics.evictions.begin(&chosen);
    let total = |metrics: &Metrics, result: &str| {
        let text = String::from_utf8(text(&metrics.registry())).unwrap();
        let line =
            format!("scheduler_preemption_goroutines_execution_total{{result=\"{result}\"}} 1");
        text.lines().any(|found| found == line)
    };
    metrics.evictions.answered("evict d/a", true);
    assert!(!total(&metrics, "error"));
    metrics.evictions.answered("bind d/b", false);
    metrics.evictions.answered("evict d/b", false);
    assert!(total(&metrics, "error") && !total(&metrics, "success"));
}
