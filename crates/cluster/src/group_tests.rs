//! Pod groups that must stay in one topology domain, and groups that preempt as a whole, from the
//! first pod to the bound group.

use serde_json::{Value, json};

use crate::World;
use kubestep_api::{Object, Pod};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::{CycleRecord, Outcome, QueueName};
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, object, pod};

const PLACED: &str =
    "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true";
const PREEMPTING: &str = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true";

fn world_of(gates: &str, configuration: Option<&str>) -> World {
    let features = FeatureGates::parse(gates).unwrap();
    let registry = kubestep_plugins::registry();
    let config = config::resolve(configuration, &features, &registry.descriptors()).unwrap();
    World::new(&config, features, &registry).unwrap()
}

/// Nodes as (name, rack, CPU); an empty rack means no label.
fn world(gates: &str, nodes: &[(&str, &str, &str)]) -> World {
    let mut world = world_of(gates, None);
    for (name, rack, cpu) in nodes {
        let node = node(name).offers("cpu", cpu);
        let node = if rack.is_empty() { node } else { node.label("rack", rack) };
        world.create(node.into());
    }
    world
}

fn group(name: &str, spec: Value) -> Object {
    let metadata = json!({"name": name, "namespace": "default", "uid": name});
    object(json!({"kind": "PodGroup", "metadata": metadata, "spec": spec}))
}

/// A gang that must stay within a rack.
fn in_a_rack(min_count: i32) -> Object {
    group(
        "g",
        json!({
            "schedulingPolicy": {"gang": {"minCount": min_count}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
        }),
    )
}

fn gang(min_count: i32, priority: i32) -> Object {
    group(
        "g",
        json!({
            "schedulingPolicy": {"gang": {"minCount": min_count}},
            "priority": priority,
        }),
    )
}

fn member(name: &str) -> Pod {
    pod(name).requests("cpu", "1").spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
}

/// One step: the records of all pods that took part, in the order of their cycles.
fn step(world: &mut World) -> Vec<CycleRecord> {
    let first = world.step().unwrap();
    let others = world.scheduler_mut().take_finished();
    std::iter::once((*first).clone()).chain(others).collect()
}

/// The pods with their nodes, or with their messages.
fn summaries(records: &[CycleRecord]) -> Vec<String> {
    let summary = |record: &CycleRecord| match (record.outcome, record.node) {
        (Outcome::Scheduled, Some(node)) => format!("{} on {node}", record.pod.name),
        _ => format!("{}: {}", record.pod.name, record.message),
    };
    records.iter().map(summary).collect()
}

/// Reason and message of the group's condition.
fn condition(world: &World) -> String {
    let group = &world.api().objects().pod_groups[&key("g")];
    group.status.conditions.iter().map(|c| format!("{}: {}", c.reason, c.message)).collect()
}

/// The placements tried, as `name nodes/placed total`.
fn placements(record: &CycleRecord) -> Vec<String> {
    let text = |placement: &kubestep_framework::record::PlacementRecord| {
        let total = placement.total.map_or_else(String::new, |total| format!(" {total}"));
        format!("{} {}/{}{total}", placement.name, placement.nodes, placement.placed)
    };
    record.placements.iter().map(text).collect()
}

const NODES: &[(&str, &str, &str)] =
    &[("n1", "r1", "1"), ("n2", "r2", "1"), ("n3", "r1", "1"), ("n4", "r2", "2"), ("n5", "", "9")];

#[test]
fn a_group_is_placed_within_one_domain() {
    let mut world = world(PLACED, NODES);
    world.create(in_a_rack(3));
    ["a", "b", "c"].into_iter().for_each(|name| world.create(member(name).into()));
    let records = step(&mut world);
    // The first rack has capacity for two only, and the node without a rack does not count.
    assert_eq!(summaries(&records), ["a on n4", "b on n4", "c on n2"]);
    assert_eq!(placements(&records[0]), ["r1 2/2", "r2 2/3"]);
    assert_eq!(records[0].placement, Some(1));
    assert_eq!(condition(&world), "Scheduled: ");
}

#[test]
fn where_no_domain_will_do_nobody_starts() {
    let mut world = world(PLACED, NODES);
    world.create(in_a_rack(4));
    for (name, priority) in [("a", 4), ("b", 3), ("c", 2), ("d", 1)] {
        world.create(member(name).priority(priority).into());
    }
    let records = step(&mut world);
    let waits = "pod group is unschedulable, waiting for minCount pods from a gang to be \
                 scheduled, one or more plugins asked to wait and no plugin rejected pod";
    let full = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, \
                preemption: not eligible due to placement-based pod group scheduling limitation";
    assert_eq!(
        summaries(&records),
        [format!("a: {waits}"), format!("b: {waits}"), format!("c: {full}"), format!("d: {full}")]
    );
    assert_eq!(
        condition(&world),
        "Unschedulable: 0/2 placements are available, first placement status: pod group is \
         unschedulable"
    );
    assert_eq!(records[0].placement, None);
    assert_eq!(world.scheduler().queue().queue_of(key("a")), QueueName::Backoff);
}

#[test]
fn the_fuller_domain_and_the_one_with_more_pods_wins() {
    let nodes = [("n1", "r1", "8"), ("n2", "r2", "2"), ("n3", "r3", "1")];
    let mut world = world(PLACED, &nodes);
    world.create(in_a_rack(1));
    ["a", "b"].into_iter().for_each(|name| world.create(member(name).into()));
    let records = step(&mut world);
    assert_eq!(summaries(&records), ["a on n2", "b on n2"]);
    // NodeResourcesFit: CPU 2/8, 2/2, 1/1 and memory 400/8192, 400/8192, 200/8192 MiB, halved.
    // PodGroupPodsCount: 2 of 2, 2 of 2, 1 of 2.
    assert_eq!(placements(&records[0]), ["r1 1/2 114", "r2 1/2 152", "r3 1/1 101"]);
}

#[test]
fn later_pods_follow_those_that_are_placed() {
    let mut world = world(PLACED, &[("n1", "r1", "2"), ("n2", "r2", "9"), ("n3", "r1", "4")]);
    world.create(in_a_rack(1));
    world.create(member("a").into());
    assert_eq!(summaries(&step(&mut world)), ["a on n3"]);
    world.create(member("b").into());
    let records = step(&mut world);
    assert_eq!(summaries(&records), ["b on n3"]);
    assert_eq!(placements(&records[0]), ["r1 2/1"]);
}

#[test]
fn without_a_domain_there_is_no_placement() {
    let mut world = world(PLACED, &[("n1", "", "4")]);
    world.create(in_a_rack(1));
    world.create(member("a").into());
    assert_eq!(summaries(&step(&mut world)), ["a: no feasible placements found"]);
    assert_eq!(condition(&world), "Unschedulable: no feasible placements found");
}

#[test]
fn a_pod_that_names_a_node_outside_the_domain_keeps_to_the_domain() {
    let mut world = world(PLACED, &[("n1", "r1", "4"), ("n2", "r2", "1")]);
    world.create(in_a_rack(2));
    world.create(member("a").into());
    // It fits on n2 only, which lacks capacity for both.
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}});
    world.create(member("b").spec(json!({"affinity": affinity})).into());
    let records = step(&mut world);
    assert_eq!(records.iter().filter(|r| r.outcome == Outcome::Scheduled).count(), 0);
    assert_eq!(placements(&records[0]), ["r1 1/1", "r2 1/1"]);
    let text = "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    assert!(records[1].message.starts_with(text), "{}", records[1].message);
}

#[test]
fn a_seed_picks_among_equal_placements() {
    let chosen = |tie_break: &str| {
        let mut world = world(PLACED, &[("n1", "r1", "4"), ("n2", "r2", "4")]);
        world.scheduler_mut().set_tie_break(tie_break.parse().unwrap());
        world.create(in_a_rack(1));
        world.create(member("a").into());
        step(&mut world)[0].node.unwrap().to_string()
    };
    assert_eq!((chosen("upstream"), chosen("first")), ("n1".into(), "n1".into()));
    let picked: Vec<String> = (0..8).map(|seed| chosen(&format!("seed:{seed}"))).collect();
    assert!(picked.iter().any(|node| node == "n1") && picked.iter().any(|node| node == "n2"));
}

/// Full nodes, each with a pod of low priority.
fn full(gates: &str) -> World {
    let mut world = world(gates, &[("n1", "", "1"), ("n2", "", "1"), ("n3", "", "1")]);
    for (name, node, priority) in [("x", "n1", 1), ("y", "n2", 2), ("z", "n3", 99)] {
        world.create(pod(name).requests("cpu", "1").priority(priority).on(node).into());
    }
    world
}

/// The events since the last call, as `pod reason: note`.
fn events(world: &mut World) -> Vec<String> {
    let text = |event: kubestep_framework::host::ApiEvent| {
        format!("{} {}: {}", event.regarding.name, event.reason, event.note)
    };
    world.api_mut().take_events().into_iter().map(text).collect()
}

const NO_ROOM: &str = "0/3 nodes are available: 3 Insufficient cpu. no new claims to \
                       deallocate, preemption: not eligible due to workload aware preemption enabled";

#[test]
fn a_group_evicts_as_many_pods_as_it_needs() {
    let mut world = full(PREEMPTING);
    world.create(gang(2, 50));
    ["a", "b"].into_iter().for_each(|name| world.create(member(name).into()));
    events(&mut world);
    let records = step(&mut world);
    assert_eq!(summaries(&records), [format!("a: {NO_ROOM}"), format!("b: {NO_ROOM}")]);
    let taken = records[0].preemption.as_ref().unwrap();
    assert_eq!(
        (taken.node, taken.victims.as_slice()),
        ("cluster".into(), &[key("y"), key("x")][..])
    );
    let preempted = |name| format!("{name} Preempted: Preempted by podgroup g on node cluster");
    assert_eq!(events(&mut world)[2..], [preempted("y"), preempted("x")]);
    assert_eq!(condition(&world), "Unschedulable: pod group is unschedulable");
    world.advance(5_000_000);
    let records = step(&mut world);
    assert_eq!(records.iter().filter(|r| r.outcome == Outcome::Scheduled).count(), 2);
    assert_eq!(condition(&world), "Scheduled: ");
    assert!(world.api().objects().pod(key("z")).is_some());
}

#[test]
fn pods_that_have_a_place_are_nominated_while_the_others_wait_for_victims() {
    let mut world = full(PREEMPTING);
    world.create(node("n4").offers("cpu", "1").into());
    world.create(gang(2, 50));
    ["a", "b"].into_iter().for_each(|name| world.create(member(name).into()));
    let records = step(&mut world);
    let no_room = NO_ROOM.replace("0/3", "0/4").replace("3 Ins", "4 Ins");
    assert_eq!(
        summaries(&records),
        ["a: pod group is unschedulable".into(), format!("b: {no_room}")]
    );
    assert_eq!(records[0].nominated_node, Some("n4".into()));
    assert_eq!(records[1].nominated_node, None);
    assert_eq!(world.api_mut().take_deleted_pods(), [key("x")]);
    world.advance(5_000_000);
    let mut bound = summaries(&step(&mut world));
    bound.sort();
    assert_eq!(bound, ["a on n4", "b on n1"]);
}

#[test]
fn victims_are_marked_in_the_name_of_the_group() {
    let mut world = full(PREEMPTING);
    world.create(gang(1, 50));
    world.create(member("a").into());
    let mut scheduler = world.scheduler().clone();
    let mut host = kubestep_framework::testing::FakeHost::default();
    scheduler.schedule_one(kubestep_api::Time(0), &mut host).unwrap();
    while scheduler.evict_next(kubestep_api::Time(0), &mut host) {}
    let condition = host.asked.iter().find_map(|asked| match asked {
        kubestep_framework::testing::Asked::Patch(pod, patch) if *pod == key("x") => {
            patch.condition.clone()
        }
        _ => None,
    });
    let text = "default-scheduler: preempting to accommodate a higher priority podgroup";
    assert_eq!(condition.unwrap().message, text);
}

/// The group's condition after one attempt to schedule a single pod of it.
fn refused(mut world: World, group: Object, pod: Pod) -> String {
    world.create(group);
    world.create(pod.into());
    let records = step(&mut world);
    assert!(records.iter().all(|record| record.preemption.is_none()));
    condition(&world)
}

#[test]
fn why_a_group_may_not_preempt_is_reported() {
    let start = "Unschedulable: pod group is unschedulable, ";
    let condition = refused(full(PREEMPTING), gang(1, 0), member("a"));
    let text = "No preemption victims found for incoming preemptor";
    assert_eq!(condition, format!("{start}{text}"));
    let never = member("a").spec(json!({"preemptionPolicy": "Never"}));
    let condition = refused(full(PREEMPTING), gang(1, 50), never);
    assert_eq!(condition, format!("{start}not eligible due to preemptionPolicy=Never."));
    let large = member("a").requests("cpu", "2");
    let condition = refused(full(PREEMPTING), gang(1, 50), large);
    assert_eq!(condition, format!("{start}pod group is unschedulable"));
    let condition = refused(full(PREEMPTING), in_a_rack(1), member("a"));
    let text = "workload aware preemption is not supported for pod groups with scheduling \
                constraints";
    assert_eq!(condition, format!("{start}{text}"));
    let without = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                   profiles:\n- plugins:\n    multiPoint:\n      disabled:\n      - name: \
                   DefaultPreemption\n";
    let mut world = world_of(PREEMPTING, Some(without));
    world.create(node("n1").offers("cpu", "0").into());
    let text = "default preemption plugin is not registered, workload aware preemption is disabled";
    assert_eq!(refused(world, gang(1, 50), member("a")), format!("{start}{text}"));
}

#[test]
fn a_group_without_an_object_is_an_error() {
    let mut world = full("GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true");
    world.create(gang(1, 50));
    world.create(member("a").into());
    assert!(world.delete(kubestep_api::Kind::PodGroup, key("g")));
    let records = step(&mut world);
    assert_eq!(
        summaries(&records),
        ["a: failed to get pod group object: podgroup.scheduling.k8s.io \"g\" not found"]
    );
    assert_eq!(records[0].outcome, Outcome::SchedulerError);
}

#[test]
fn without_the_gate_each_pod_preempts_by_itself() {
    let mut world = full("GenericWorkload=true,GangScheduling=true");
    world.create(gang(2, 50));
    for name in ["a", "b"] {
        world.create(member(name).priority(50).into());
    }
    let records = step(&mut world);
    assert_eq!(records[0].preemption.as_ref().unwrap().node, "n1");
    assert_eq!(records[1].preemption.as_ref().unwrap().node, "n2");
    let text = "pod group is unschedulable, pod group is waiting for preemption to complete";
    assert_eq!(condition(&world), format!("Unschedulable: {text}"));
}

#[test]
fn both_gates_together_place_and_preempt() {
    let both = format!("{PLACED},WorkloadAwarePreemption=true");
    let mut world = full(&both);
    world.create(gang(2, 50));
    ["a", "b"].into_iter().for_each(|name| world.create(member(name).into()));
    let records = step(&mut world);
    assert_eq!(placements(&records[0]), [" 3/0"]);
    assert_eq!(records[0].preemption.as_ref().unwrap().victims, [key("y"), key("x")]);
    assert_eq!(
        condition(&world),
        "Unschedulable: 0/1 placements are available, first placement status: pod group is \
         unschedulable"
    );
}
