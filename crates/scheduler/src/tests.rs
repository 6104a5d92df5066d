//! Edge cases of a cycle: skipped pods, failures while the cluster changes, pods that plugins
//! activate, how far the search goes.

mod batching;
mod event_labels;
mod older;
mod proportion;
mod recorded;
mod replay;

use std::sync::Arc;

use serde_json::json;

use crate::cycle::{Cycle, Failure};
use crate::{Change, Scheduler};
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Name, Object, Pod, Time, find_condition};
use kubestep_config as config;
use kubestep_config::ExtensionPoint::{self, *};
use kubestep_config::{FeatureGates, KubeVersion};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::status::Status;
use kubestep_framework::testing::scripted::{Scripted, register};
use kubestep_framework::testing::{Asked, FakeHost, NodeBuilder, PodBuilder, info, key, node, pod};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// A scheduler with a host that accepts every request.
struct Bench {
    scheduler: Scheduler,
    host: FakeHost,
}

impl Bench {
    /// With this configuration (without its header) and these plugins, which it may name.
    fn new(configuration: &str, plugins: &[&Scripted]) -> Bench {
        Bench::of(FeatureGates::default(), configuration, plugins)
    }

    fn of(features: FeatureGates, configuration: &str, plugins: &[&Scripted]) -> Bench {
        let mut registry = kubestep_plugins::registry();
        register(&mut registry, plugins);
        let text = format!("{HEAD}{configuration}");
        let config = config::resolve(Some(&text), &features, &registry.descriptors()).unwrap();
        let scheduler = Scheduler::new(&config, features, &registry).unwrap();
        Bench { scheduler, host: FakeHost::default() }
    }

    /// The default configuration and one more plugin at all its points.
    fn with(plugin: &Scripted) -> Bench {
        let name = plugin.name;
        let profile = format!("plugins: {{multiPoint: {{enabled: [{{name: {name}}}]}}}}");
        Bench::new(&format!("profiles:\n- {profile}\n"), &[plugin])
    }

    fn add(&mut self, object: impl Into<Object>) {
        self.scheduler.handle(Change::Add(object.into()), Time(0), &mut self.host);
    }

    fn update(&mut self, old: Pod, new: Pod) {
        let (old, new) = (old.into(), new.into());
        self.scheduler.handle(Change::Update { old, new }, Time(0), &mut self.host);
    }

    fn delete(&mut self, object: impl Into<Object>) {
        self.scheduler.handle(Change::Delete(object.into()), Time(0), &mut self.host);
    }

    fn step(&mut self) -> CycleRecord {
        self.scheduler.schedule_one(Time(0), &mut self.host).unwrap()
    }

    fn place(&self, name: &str) -> QueueName {
        self.scheduler.queue().queue_of(key(name))
    }

    /// The events since the last call, as `reason: note`; the other requests are dropped.
    fn events(&mut self) -> Vec<String> {
        let event = |asked| match asked {
            Asked::Event(event) => Some(format!("{}: {}", event.reason, event.note)),
            _ => None,
        };
        std::mem::take(&mut self.host.asked).into_iter().filter_map(event).collect()
    }

    /// A cycle of the pod that is popped next.
    fn begin(&mut self) -> Cycle {
        let cx = self.scheduler.cluster.queue_context(Time(0));
        let queued = self.scheduler.queue.pop(&cx).unwrap();
        let Ok(cycle) = self.scheduler.begin(queued, Time(0), &mut self.host) else {
            panic!("the pod is not worth a cycle")
        };
        cycle
    }
}

fn nothing_in_flight(bench: &Bench) -> bool {
    bench.scheduler.queue().in_flight().is_empty()
}

#[test]
fn a_pod_of_an_unknown_profile_is_dropped() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1"));
    let stray = info(pod("stray").spec(json!({"schedulerName": "other"})));
    let cx = bench.scheduler.cluster.queue_context(Time(0));
    bench.scheduler.queue.add(&cx, stray);
    assert_eq!(bench.step().outcome, Outcome::Dropped);
    assert_eq!((bench.place("stray"), bench.events().len()), (QueueName::None, 0));
    assert!(nothing_in_flight(&bench));
}

#[test]
fn a_pod_that_is_being_deleted_is_passed_over_with_an_event() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1"));
    let mut leaving = pod("p");
    leaving.metadata.deletion_timestamp = Some(Time(1));
    bench.add(leaving);
    assert_eq!(bench.step().outcome, Outcome::Dropped);
    let text = "FailedScheduling: skip schedule deleting pod: default/p";
    assert_eq!(bench.events(), [text]);
    assert!(nothing_in_flight(&bench));
}

#[test]
fn a_pod_that_is_assumed_already_is_passed_over_silently() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1"));
    bench.add(pod("p"));
    bench.scheduler.cache.assume_pod(info(pod("p").on("n1"))).unwrap();
    assert_eq!(bench.step().outcome, Outcome::Dropped);
    assert!(bench.events().is_empty() && nothing_in_flight(&bench));
}

#[test]
fn without_nodes_a_pod_goes_to_backoff_and_nothing_is_preempted() {
    let evicts = Scripted::new("Evicts", &[PostFilter]);
    let mut bench = Bench::with(&evicts);
    bench.add(pod("p").nominated("deleted"));
    let record = bench.step();
    assert_eq!(record.outcome, Outcome::Unschedulable);
    assert_eq!(record.message, "no nodes available to schedule pods");
    assert!(evicts.asked().is_empty() && record.post_filter.is_empty());
    assert_eq!(bench.place("p"), QueueName::Backoff);
    let queued = bench.scheduler.queue().get(key("p")).unwrap();
    assert_eq!((queued.unschedulable_plugins.len(), queued.consecutive_errors), (0, 1));
    let cleared = bench.host.asked.iter().any(|asked| {
        matches!(asked, Asked::Patch(_, patch) if patch.nominated_node == Some(Name::EMPTY))
    });
    assert!(cleared, "{:?}", bench.host.asked);
}

/// The nominated node is evaluated although PreFilter left it out, and the rejection found then
/// stays in its record.
#[test]
fn a_nominated_node_outside_the_ones_left_keeps_its_verdict() {
    let mut bench = Bench::new("", &[]);
    for name in ["n1", "n2"] {
        bench.add(node(name));
    }
    let named = json!([{"key": "metadata.name", "operator": "In", "values": ["n2"]}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchFields": named}]}}});
    let pod = pod("p").nominated("n1").requests("cpu", "9").spec(json!({"affinity": affinity}));
    bench.add(pod);
    let record = bench.step();
    let rejected_by = |at: usize| {
        let verdict = record.filter.verdicts.iter().nth(at).unwrap();
        record.verdicts.get(verdict).unwrap().plugin()
    };
    assert_eq!([0, 1].map(rejected_by), ["NodeAffinity", "NodeResourcesFit"].map(Symbol::new));
}

/// Fails the cycle of the pod `p` after `change`. Returns the events, the number of patches, and
/// the queue that the pod is in.
fn failed_after(change: impl FnOnce(&mut Bench)) -> (Vec<String>, usize, QueueName) {
    failed_in("1.36", change)
}

fn failed_in(release: &str, change: impl FnOnce(&mut Bench)) -> (Vec<String>, usize, QueueName) {
    let mut bench = Bench::of(KubeVersion::nearest(release).unwrap().gates(), "", &[]);
    bench.add(node("n1"));
    bench.add(pod("p"));
    let mut cycle = bench.begin();
    change(&mut bench);
    let failure = Failure::plain(Status::unschedulable("full"));
    let Bench { scheduler, host } = &mut bench;
    scheduler.fail(&mut cycle, failure, host);
    assert!(nothing_in_flight(&bench), "the pod is done in every case");
    let patches = bench.host.asked.iter().filter(|asked| matches!(asked, Asked::Patch(..)));
    let patches = patches.count();
    (bench.events(), patches, bench.place("p"))
}

#[test]
fn a_failed_pod_is_looked_up_before_it_is_queued_again() {
    let reported = || vec!["FailedScheduling: full".to_owned()];
    assert_eq!(failed_after(|_| {}), (reported(), 1, QueueName::Backoff));
    // Deleted or bound: not requeued, but event and condition are written.
    assert_eq!(failed_after(|bench| bench.delete(pod("p"))), (reported(), 1, QueueName::None));
    let bound = |bench: &mut Bench| {
        let mut bound = pod("p").on("n1");
        bound.metadata.resource_version = "2".into();
        bench.update(pod("p"), bound);
    };
    assert_eq!(failed_after(bound), (reported(), 1, QueueName::None));
    // Recreated under the same name: nothing is written about the old one.
    let recreated = |bench: &mut Bench| {
        bench.delete(pod("p"));
        let mut recreated = pod("p");
        recreated.metadata.uid = "recreated".into();
        bench.add(recreated);
    };
    assert_eq!(failed_after(recreated), (vec![], 0, QueueName::Active));
    // Older patch releases write it about the new one, which stays queued.
    assert_eq!(failed_in("1.35.4", recreated), (reported(), 1, QueueName::Active));
}

#[test]
fn a_failed_pod_is_queued_as_the_api_has_it_now() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1"));
    bench.add(pod("p"));
    let mut cycle = bench.begin();
    let mut newer = pod("p").label("app", "web");
    newer.metadata.resource_version = "2".into();
    bench.update(pod("p"), newer);
    let Bench { scheduler, host } = &mut bench;
    scheduler.fail(&mut cycle, Failure::plain(Status::error("broken")), host);
    let queued = bench.scheduler.queue().get(key("p")).unwrap();
    assert!(queued.info.pod.metadata.labels.get("app".into()).is_some());
}

#[test]
fn long_messages_are_whole_in_the_condition_and_cut_in_the_event() {
    let text = "x".repeat(2000);
    let long = Scripted::new("Long", &[PreFilter]).says(PreFilter, Status::error(&text));
    let mut bench = Bench::with(&long);
    bench.add(node("n1"));
    bench.add(pod("p"));
    let message = bench.step().message;
    assert_eq!(message, format!("running PreFilter plugin \"Long\": {text}"));
    let reported = bench.host.asked.iter().find_map(|asked| match asked {
        Asked::Patch(_, patch) => patch.condition.as_ref().map(|c| c.message.to_string()),
        _ => None,
    });
    assert_eq!(reported, Some(message));
    let note = bench.events()[0].strip_prefix("FailedScheduling: ").unwrap().to_owned();
    assert_eq!((note.len(), note.ends_with("x ...")), (1024, true));
}

/// The queue of a pod in backoff after a plugin at `point` asked to activate it.
fn activated_at(point: ExtensionPoint) -> QueueName {
    let asks = Scripted {
        activates: Some(key("other")),
        pre_flight: Some(Status::SUCCESS),
        ..Scripted::new("Asks", &[point])
    };
    let fails = Scripted::new("Fails", &[PreFilter]).says(PreFilter, Status::error("no"));
    let profiles = "profiles:\n- schedulerName: default-scheduler\n  plugins: {multiPoint: \
                    {enabled: [{name: Asks}]}}\n- schedulerName: failing\n  plugins: {multiPoint: {enabled: [{name: Fails}]}}\n";
    let mut bench = Bench::new(profiles, &[&asks, &fails]);
    bench.add(node("n1"));
    bench.add(pod("other").spec(json!({"schedulerName": "failing"})));
    assert_eq!(bench.step().outcome, Outcome::SchedulerError);
    assert_eq!(bench.place("other"), QueueName::Backoff);
    bench.add(pod("p"));
    assert_eq!(bench.step().outcome, Outcome::Scheduled);
    bench.place("other")
}

#[test]
fn plugins_can_ask_for_other_pods_in_either_cycle() {
    for point in [Reserve, Permit, PreBind, PostBind] {
        assert_eq!(activated_at(point), QueueName::Active, "{point}");
    }
}

#[test]
fn the_chosen_node_is_announced_before_a_binding_that_takes_time() {
    let announced = |pre_flight: Status, refuse: bool| {
        let slow = Scripted { pre_flight: Some(pre_flight), ..Scripted::new("Slow", &[PreBind]) };
        let mut bench = Bench::with(&slow);
        bench.host.refuse = if refuse { vec!["p".into()] } else { Vec::new() };
        bench.add(node("n1"));
        bench.add(pod("p"));
        let record = bench.step();
        let nominated = bench.host.asked.iter().find_map(|asked| match asked {
            Asked::Patch(_, patch) => patch.nominated_node,
            _ => None,
        });
        (record, nominated, slow.asked())
    };
    let (record, nominated, asked) = announced(Status::SUCCESS, false);
    assert_eq!((record.outcome, nominated), (Outcome::Scheduled, Some("n1".into())));
    assert_eq!(asked, ["PreBind p"]);
    let (record, nominated, asked) = announced(Status::skip(), false);
    assert_eq!((record.outcome, nominated, asked.len()), (Outcome::Scheduled, None, 0));
    let (record, _, asked) = announced(Status::error("no"), false);
    assert_eq!(record.outcome, Outcome::SchedulerError);
    assert_eq!(record.message, "running PreBindPreFlight \"Slow\": no");
    assert!(asked.is_empty());
    // A failed write of the nomination does not stop the cycle: here, Bind is rejected too.
    let (record, _, asked) = announced(Status::SUCCESS, true);
    assert_eq!(record.message, "running Bind plugin \"DefaultBinder\": rejected");
    assert_eq!(asked, ["PreBind p"]);
}

#[test]
fn a_bound_pod_is_reported() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1"));
    bench.add(pod("shop/p"));
    bench.step();
    assert_eq!(bench.events(), ["Scheduled: Successfully assigned shop/p to n1"]);
}

#[test]
fn a_pod_is_out_of_flight_before_pre_bind_and_not_while_it_waits_at_permit() {
    let wait = || Status::new(kubestep_framework::status::Code::Wait, "a moment");
    let permit = Scripted::new("Waits", &[Permit]).says(Permit, wait());
    let mut bench = Bench::with(&permit);
    bench.add(node("n1"));
    bench.add(pod("p"));
    assert_eq!(bench.step().outcome, Outcome::Waiting);
    assert!(!nothing_in_flight(&bench));
    let slow = Scripted {
        pre_flight: Some(Status::SUCCESS),
        ..Scripted::new("Slow", &[PreBind]).says(PreBind, wait())
    };
    let mut bench = Bench::with(&slow);
    bench.add(node("n1"));
    bench.add(pod("p"));
    assert_eq!(bench.step().outcome, Outcome::Waiting);
    assert!(nothing_in_flight(&bench), "the pod is done before PreBind");
}

/// Upstream's `IsPodRunningPreemption` counts the last victim until it is deleted, and the API call
/// that marks it comes before the one that deletes it.
#[test]
fn a_preemptor_is_gated_while_its_last_victim_is_only_marked() {
    let extender = "extenders:\n- urlPrefix: http://extender\n  filterVerb: filter\n  \
                    nodeCacheCapable: true\n";
    let mut bench = Bench::new(extender, &[]);
    let victim = pod("victim").requests("cpu", "1").on("n1");
    bench.add(node("n1").offers("cpu", "1"));
    bench.add(node("n2").offers("cpu", "1"));
    bench.add(victim.clone());
    bench.add(pod("p").requests("cpu", "1").priority(9));
    bench.host.extender_answers = vec![Ok(json!({"NodeNames": [], "FailedNodes": {"n2": "no"}}))];
    assert_eq!(bench.step().preemption.unwrap().victims, [key("victim")]);
    assert!(bench.scheduler.evict_next(Time(0), &mut bench.host)); // only the last victim is left
    assert!(bench.scheduler.evict_next(Time(0), &mut bench.host));
    bench.update(victim.clone(), victim.clone().label("any", "event"));
    assert_eq!(bench.place("p"), QueueName::Gated);
    bench.delete(victim);
    assert_eq!(bench.place("p"), QueueName::Backoff);
    assert!(bench.scheduler.evict_next(Time(0), &mut bench.host));
    assert!(bench.scheduler.preemptions().next().is_none());
    let plugins = &bench.scheduler.queue().get(key("p")).unwrap().unschedulable_plugins;
    assert!(plugins.contains(&Symbol::new("DefaultPreemption")));
}

#[test]
fn a_pod_in_pre_bind_can_be_preempted() {
    let slow = Scripted {
        pre_flight: Some(Status::SUCCESS),
        ..Scripted::new("Slow", &[PreBind])
            .says(PreBind, Status::new(kubestep_framework::status::Code::Wait, "a moment"))
    };
    let mut bench = Bench::with(&slow);
    bench.add(node("n1").offers("cpu", "1"));
    bench.add(pod("p").requests("cpu", "1"));
    assert_eq!(bench.step().outcome, Outcome::Waiting);
    bench.events();
    bench.add(pod("important").requests("cpu", "1").priority(9));
    let record = bench.step();
    assert_eq!(record.preemption.unwrap().victims, [key("p")]);
    while bench.scheduler.evict_next(Time(0), &mut bench.host) {}
    let finished = bench.scheduler.take_finished();
    let text = "running PreBind plugin \"Slow\": preempted by DefaultPreemption";
    assert_eq!(
        (finished[0].outcome, finished[0].message.as_str()),
        (Outcome::SchedulerError, text)
    );
    let deleted = bench.host.asked.iter().any(|asked| matches!(asked, Asked::Delete(_)));
    assert!(!deleted, "only its binding is given up");
    assert_eq!(bench.place("p"), QueueName::Backoff);
}

/// Deletes a pod that is assumed but not bound. Returns the finished cycles, and the queue of
/// another pod that waits for the freed resources.
fn deleted_on_its_way(point: ExtensionPoint) -> (Vec<CycleRecord>, QueueName) {
    let wait = Status::new(kubestep_framework::status::Code::Wait, "a moment");
    let plugin = Scripted {
        pre_flight: Some(Status::SUCCESS),
        ..Scripted::new("Waits", &[point]).says(point, wait)
    };
    let mut bench = Bench::with(&plugin);
    bench.add(node("n1").offers("cpu", "1"));
    bench.add(pod("p").requests("cpu", "1"));
    assert_eq!(bench.step().outcome, Outcome::Waiting);
    bench.add(pod("other").requests("cpu", "1"));
    assert_eq!(bench.step().outcome, Outcome::Unschedulable);
    bench.delete(pod("p").requests("cpu", "1"));
    assert_eq!(bench.scheduler.cache().pod_count(), 0);
    (bench.scheduler.take_finished(), bench.place("other"))
}

#[test]
fn a_deleted_pod_on_its_way_gives_its_place_back() {
    let (finished, other) = deleted_on_its_way(Permit);
    assert_eq!(other, QueueName::Backoff);
    assert_eq!(finished[0].permit_wait, Some(Status::unschedulable("removed")));
    assert_eq!(finished[0].message, "0/1 nodes are available: 1 removed.");
    let mut bench = Bench::new("", &[]);
    assert!(!bench.scheduler.reject_waiting(
        "nobody".into(),
        Symbol::EMPTY,
        "removed",
        Time(0),
        &mut bench.host
    ));
    assert_eq!(deleted_on_its_way(PreBind).1, QueueName::Backoff);
}

#[test]
fn without_scoring_one_node_is_enough() {
    let evaluated = |configuration: &str| {
        let mut bench = Bench::new(configuration, &[]);
        ["n1", "n2", "n3"].into_iter().for_each(|name| bench.add(node(name)));
        bench.add(pod("p"));
        let record = bench.step();
        (record.feasible.len(), record.evaluated_nodes)
    };
    assert_eq!(evaluated(""), (3, 3));
    let none = "profiles:\n- plugins: {score: {disabled: [{name: '*'}]}}\n";
    assert_eq!(evaluated(none), (1, 1));
}

#[test]
fn how_many_nodes_are_wanted_depends_on_those_that_pre_filter_left() {
    let names: Vec<String> = (0..300).map(|at| format!("n{at:03}")).collect();
    let left = |count: usize| names.iter().take(count).map(|name| Name::new(name)).collect();
    let feasible = |count: usize| {
        let narrows =
            Scripted { narrows_to: Some(left(count)), ..Scripted::new("Narrows", &[PreFilter]) };
        let profile = "percentageOfNodesToScore: 50\nprofiles:\n- plugins: {multiPoint: {enabled: \
                       [{name: Narrows}]}}\n";
        let mut bench = Bench::new(profile, &[&narrows]);
        names.iter().for_each(|name| bench.add(node(name)));
        bench.add(pod("p"));
        bench.step().feasible.len()
    };
    assert_eq!(feasible(300), 150);
    assert_eq!(feasible(240), 120);
    // At least a hundred of the 120 that were left.
    assert_eq!(feasible(120), 100);
}

#[test]
fn pods_that_ended_are_not_there_for_the_scheduler() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1").offers("cpu", "1"));
    let mut ended = pod("ended").requests("cpu", "1").on("n1");
    ended.status.phase = kubestep_api::PodPhase::Succeeded;
    bench.add(ended);
    assert_eq!(bench.scheduler.cache().pod_count(), 0);
    let running = pod("job").requests("cpu", "1").on("n1");
    bench.add(running.clone());
    bench.add(pod("p").requests("cpu", "1"));
    assert_eq!(bench.step().outcome, Outcome::Unschedulable);
    let mut failed = running.clone();
    failed.status.phase = kubestep_api::PodPhase::Failed;
    failed.metadata.resource_version = "2".into();
    bench.update(running.clone(), failed.clone());
    assert_eq!(bench.scheduler.cache().pod_count(), 0);
    assert_eq!(bench.place("p"), QueueName::Backoff);
    // A watch that excludes terminal pods reports one that runs again as added.
    bench.update(failed, running);
    assert_eq!(bench.scheduler.cache().pod_count(), 1);
}

#[test]
fn each_profile_has_its_own_gates_and_the_queue_its_backoff() {
    let config = "podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 5\nprofiles:\n- \
                  schedulerName: default-scheduler\n- schedulerName: open\n  plugins: {preEnqueue: {disabled: [{name: \
                  SchedulingGates}]}}\n";
    let mut bench = Bench::new(config, &[]);
    bench.add(node("n1").offers("cpu", "0"));
    let gated = json!({"schedulingGates": [{"name": "wait"}]});
    bench.add(pod("gated").spec(gated.clone()));
    let mut open = pod("open").requests("cpu", "1").spec(gated);
    open.spec.scheduler_name = "open".into();
    bench.add(open);
    assert_eq!((bench.place("gated"), bench.place("open")), (QueueName::Gated, QueueName::Active));
    bench.step();
    let settings = bench.scheduler.queue().settings();
    assert_eq!([settings.initial_backoff, settings.max_backoff], [3, 5].map(Duration::from_secs));
    // A larger node requeues it into backoff, until three seconds are over.
    let (old, new) = (node("n1").offers("cpu", "0"), node("n1").offers("cpu", "4"));
    let change = Change::Update { old: old.into(), new: new.into() };
    bench.scheduler.handle(change, Time(0), &mut bench.host);
    assert_eq!(bench.place("open"), QueueName::Backoff);
    bench.scheduler.flush(Time(2_900_000), &mut bench.host);
    assert_eq!(bench.place("open"), QueueName::Backoff);
    bench.scheduler.flush(Time(4_000_000), &mut bench.host);
    assert_eq!(bench.place("open"), QueueName::Active);
}

#[test]
fn an_extender_that_refuses_is_among_the_rejectors_and_any_event_helps() {
    let extender = "extenders:\n- urlPrefix: http://extender\n  filterVerb: filter\n";
    let mut bench = Bench::new(extender, &[]);
    bench.add(node("n1"));
    bench.add(pod("p"));
    let nothing = json!({"nodenames": [], "nodes": {"items": []}, "failedNodes": {"n1": "no"}});
    bench.host.extender_answers = vec![Ok(nothing)];
    let record = bench.step();
    assert_eq!(record.outcome, Outcome::Unschedulable);
    let queued = bench.scheduler.queue().get(key("p")).unwrap();
    assert_eq!(queued.unschedulable_plugins, [Symbol::new("Extender")]);
    assert_eq!(bench.place("p"), QueueName::Unschedulable);
    let claim = json!({"kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"}});
    bench.add(kubestep_framework::testing::object(claim));
    assert_eq!(bench.place("p"), QueueName::Backoff);
    assert!(record.node_hint.is_none());
}

#[test]
fn what_an_extender_says_of_nodes_that_are_not_there_counts_too() {
    let extender = "extenders:\n- urlPrefix: http://extender\n  filterVerb: filter\n";
    let mut bench = Bench::new(extender, &[]);
    bench.add(node("n1"));
    bench.add(pod("p"));
    let failed = json!({"n1": "no", "n9": "who?"});
    bench.host.extender_answers = vec![Ok(json!({"FailedNodes": failed}))];
    let text = "0/1 nodes are available: 1 no, 1 who?.";
    assert!(bench.step().message.starts_with(text));
    bench.add(pod("q"));
    let named = |names: &[&str]| {
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        Ok(json!({"Nodes": {"items": items}}))
    };
    bench.host.extender_answers = vec![named(&["n9"])];
    let record = bench.step();
    assert_eq!((record.outcome, record.node), (Outcome::Scheduled, Some("n9".into())));
    bench.add(pod("s"));
    bench.host.extender_answers = vec![named(&["n8", "n9", "n1"])];
    assert_eq!(bench.step().outcome, Outcome::Scheduled);
    bench.add(pod("r"));
    bench.host.extender_answers = vec![Ok(json!({"Nodes": []}))];
    let text = "json: cannot unmarshal array into Go struct field ExtenderFilterResult.Nodes of \
                type v1.NodeList";
    assert_eq!(bench.step().message, text);
}

#[test]
fn the_condition_of_a_failed_pod_says_why() {
    let mut bench = Bench::new("", &[]);
    bench.add(node("n1").offers("cpu", "0"));
    bench.add(pod("p").requests("cpu", "1"));
    bench.step();
    let condition = bench.host.asked.iter().find_map(|asked| match asked {
        Asked::Patch(_, patch) => patch.condition.clone(),
        _ => None,
    });
    let condition = condition.unwrap();
    let conditions = [condition];
    let found = find_condition(&conditions, "PodScheduled".into()).unwrap();
    assert_eq!(found.reason, "Unschedulable");
}

#[test]
fn a_pod_is_where_it_can_be_found() {
    let mut bench = Bench::new("", &[]);
    let names: Vec<NamespacedName> = ["active", "failed"].map(key).to_vec();
    bench.add(pod("failed"));
    bench.step();
    bench.add(pod("active"));
    for name in names {
        assert_eq!(bench.scheduler.queue().get(name).map(|found| found.key()), Some(name));
    }
    assert!(bench.scheduler.queue().get(key("nobody")).is_none());
    let same = PodInfo::new(Arc::new(pod("active")));
    assert_eq!(bench.scheduler.queue().get(key("active")).unwrap().uid(), same.uid());
}
