//! Pods that are not scheduled at all, pod groups, pods ahead in the queue, and pods of
//! controllers.

use serde_json::{Value, json};

use super::categories;
use super::resources::cpu_is_short;
use crate::cluster::{Case, NodeRoom, milli, own, pod_object};
use crate::random::Random;

categories! {
    gate, gates_two, scheduler_typo, scheduler_unknown, gang_quorum, gang_too_large,
    gang_far_too_large, gang_with_large_member, queue_ahead, owned_by_replica_set,
    holders_of_replica_set, owned_by_stateful_set, holders_of_job,
}

fn gated(r: &mut Random, names: &[&str]) -> Case {
    let mut case = Case::new(r);
    let gates: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    case.pod["spec"]["schedulingGates"] = json!(gates);
    case.truth.problems.push("gate");
    names.iter().for_each(|name| case.truth.name(*name));
    case
}

fn gate(r: &mut Random) -> Case {
    gated(r, &["example.com/quota"])
}

fn gates_two(r: &mut Random) -> Case {
    gated(r, &["example.com/quota", "example.com/review"])
}

fn of_scheduler(r: &mut Random, name: &str) -> Case {
    let mut case = Case::new(r);
    case.pod["spec"]["schedulerName"] = json!(name);
    case.truth.problems.push("noProfile");
    case.truth.name(name);
    (case.truth.nodes_open, case.truth.ahead_open) = (true, true);
    case
}

fn scheduler_typo(r: &mut Random) -> Case {
    of_scheduler(r, "defualt-scheduler")
}

fn scheduler_unknown(r: &mut Random) -> Case {
    of_scheduler(r, "volcano")
}

/// A group of that many pods, the last of which is the pod of the question.
fn gang(r: &mut Random, pods: usize, needed: usize, cpu: i64) -> Case {
    let mut case = Case::new(r);
    case.gates = "GenericWorkload=true,GangScheduling=true";
    case.add(json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": needed}}}}));
    case.ask("cpu", &milli(cpu));
    case.pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    for number in 1..pods {
        let mut pod = pod_object(&format!("train-{number}"), cpu, 64);
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        pod["metadata"]["creationTimestamp"] = json!("2026-01-01T07:00:00Z");
        case.add(pod);
    }
    case.truth.problems.push("quorum");
    case.truth.name("train");
    (case.truth.nodes_open, case.truth.ahead_open) = (true, true);
    case
}

/// Fewer pods than the group needs have been created.
fn gang_quorum(r: &mut Random) -> Case {
    let pods = 1 + r.below(3);
    gang(r, pods, pods + 1, 100)
}

/// Each node fits one pod, and one node is missing.
fn gang_too_large(r: &mut Random) -> Case {
    one_to_a_node(r, 1)
}

/// Each node fits one pod, and several nodes are missing.
fn gang_far_too_large(r: &mut Random) -> Case {
    let more = 2 + r.below(2);
    one_to_a_node(r, more)
}

/// A group with more pods than there are nodes, each of which fits one of them.
fn one_to_a_node(r: &mut Random, more: usize) -> Case {
    let mut probe = Random::new(r.below(1 << 30) as u64);
    let mut case = gang(&mut probe, 1, 1, 1000);
    let needed = case.rooms.len() + more;
    for at in case.nodes() {
        let pod = case.running(at, case.rooms[at].free_cpu() - 1500, 8);
        case.add(pod);
    }
    for number in 1..needed {
        let mut pod = pod_object(&format!("train-{number}"), 1000, 64);
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
        pod["metadata"]["creationTimestamp"] = json!("2026-01-01T07:00:00Z");
        case.add(pod);
    }
    let is_group = |object: &&mut Value| object["kind"] == "PodGroup";
    let group = case.objects.iter_mut().find(is_group).unwrap();
    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = json!(needed);
    case
}

/// The pod itself fits together with the others. Another pod of its group fits nowhere.
fn gang_with_large_member(r: &mut Random) -> Case {
    let mut case = gang(r, 2, 3, 100);
    let most = case.rooms.iter().map(NodeRoom::free_cpu).max().unwrap_or_default();
    let mut large = pod_object("train-large", most + 500, 64);
    large["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    large["metadata"]["creationTimestamp"] = json!("2026-01-01T07:30:00Z");
    case.add(large);
    case.truth.name("default/train-large");
    case
}

/// Pods that were scheduled just before use the resources: the figures must name them.
fn queue_ahead(r: &mut Random) -> Case {
    let mut case = Case::sized(r, 1);
    case.ask("cpu", "800m");
    case.leave_cpu(0, 1000, r);
    let mut urgent = pod_object("urgent", 700, 32);
    urgent["spec"]["priority"] = json!(100);
    case.add(urgent);
    case.rooms[0].used_cpu += 700;
    cpu_is_short(&mut case, 0, 800);
    case.truth.name("default/urgent");
    case
}

fn full_for(r: &mut Random, kind: &str, name: &str) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "800m");
    own(&mut case.pod, kind, name);
    for at in case.nodes() {
        case.leave_cpu(at, 100 + 100 * r.below(6) as i64, r);
        cpu_is_short(&mut case, at, 800);
    }
    case
}

fn owned_by_replica_set(r: &mut Random) -> Case {
    full_for(r, "ReplicaSet", "web-5b6c")
}

fn owned_by_stateful_set(r: &mut Random) -> Case {
    full_for(r, "StatefulSet", "web")
}

/// Pods that are recreated use the resources. They are created again after the pod.
fn held_by(r: &mut Random, kind: &str) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "800m");
    for at in case.nodes() {
        let part = case.rooms[at].free_cpu() - 300;
        let mut pod = case.running(at, part, 64);
        own(&mut pod, kind, "api-77d");
        case.add(pod);
        cpu_is_short(&mut case, at, 800);
    }
    case
}

fn holders_of_replica_set(r: &mut Random) -> Case {
    held_by(r, "ReplicaSet")
}

fn holders_of_job(r: &mut Random) -> Case {
    held_by(r, "Job")
}
