//! Pods that request more than any node has free.

use serde_json::json;

use super::categories;
use crate::cluster::{Case, MI, milli, own};
use crate::random::Random;

categories! {
    cpu_taken, cpu_too_large, cpu_exact_boundary, memory_taken, memory_too_large, pods_full,
    ephemeral_taken, ephemeral_too_large, extended_missing, extended_taken, hugepages_taken,
    cpu_and_memory, one_holds_both, overhead, sidecar, init_rules, pod_level, two_containers,
    resize_in_progress, terminating_holds, ended_does_not, fragmented, far_node_of_group,
    daemon_holds, reserved_for_nominated,
}

/// Leaves too little CPU on all nodes: less than the pod requests.
fn short_of_cpu(r: &mut Random, case: &mut Case, needed: i64) {
    for at in case.nodes() {
        let left = 100 * r.below((needed / 100) as usize) as i64;
        case.leave_cpu(at, left, r);
        cpu_is_short(case, at, needed);
    }
}

pub fn cpu_is_short(case: &mut Case, at: usize, needed: i64) {
    let room = &case.rooms[at];
    case.truth.short(&room.name, "cpu", [room.cpu, room.used_cpu, needed]);
}

fn memory_is_short(case: &mut Case, at: usize, needed: i64) {
    let room = &case.rooms[at];
    let figures = [room.memory * MI, room.used_memory * MI, needed * MI];
    case.truth.short(&room.name, "memory", figures);
}

fn cpu_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 500 + 100 * r.below(15) as i64;
    case.ask("cpu", &milli(needed));
    short_of_cpu(r, &mut case, needed);
    case
}

fn cpu_too_large(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 1000 * (17 + r.below(8) as i64);
    case.ask("cpu", &milli(needed));
    case.nodes().for_each(|at| cpu_is_short(&mut case, at, needed));
    case
}

/// One millicore is missing.
fn cpu_exact_boundary(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 700 + 50 * r.below(8) as i64;
    case.ask("cpu", &milli(needed));
    for at in case.nodes() {
        case.leave_cpu(at, needed - 1, r);
        cpu_is_short(&mut case, at, needed);
    }
    case
}

fn memory_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 1024 + 256 * r.below(8) as i64;
    case.ask("memory", &format!("{needed}Mi"));
    for at in case.nodes() {
        case.leave_memory(at, 64 * r.below(16) as i64, r);
        memory_is_short(&mut case, at, needed);
    }
    case
}

fn memory_too_large(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 1024 * (40 + r.below(30) as i64);
    case.ask("memory", &format!("{needed}Mi"));
    case.nodes().for_each(|at| memory_is_short(&mut case, at, needed));
    case
}

fn pods_full(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    for at in case.nodes() {
        let pod = case.running(at, 50, 32);
        case.add(pod);
        let (name, pods) = (case.name(at), case.rooms[at].pods);
        case.offer(at, "pods", &pods.to_string());
        case.truth.short(&name, "pods", [pods, pods, 1]);
    }
    case
}

/// Runs a pod that requests that much of a resource on the node.
fn hold(case: &mut Case, at: usize, resource: &str, amount: &str) {
    let mut pod = case.running(at, 10, 8);
    pod["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount);
    case.add(pod);
}

fn ephemeral_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 20 + r.below(30) as i64;
    case.ask("ephemeral-storage", &format!("{needed}Gi"));
    for at in case.nodes() {
        let taken = 101 - needed + r.below(needed as usize - 1) as i64;
        hold(&mut case, at, "ephemeral-storage", &format!("{taken}Gi"));
        let figures = [100, taken, needed].map(|amount| amount * 1024 * MI);
        let name = case.name(at);
        case.truth.short(&name, "ephemeral-storage", figures);
    }
    case
}

fn ephemeral_too_large(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 101 + r.below(50) as i64;
    case.ask("ephemeral-storage", &format!("{needed}Gi"));
    for at in case.nodes() {
        let name = case.name(at);
        let figures = [100, 0, needed].map(|amount| amount * 1024 * MI);
        case.truth.short(&name, "ephemeral-storage", figures);
    }
    case
}

fn extended_missing(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 1 + r.below(3) as i64;
    case.ask("example.com/gpu", &needed.to_string());
    for at in case.nodes() {
        let name = case.name(at);
        case.truth.short(&name, "example.com/gpu", [0, 0, needed]);
    }
    case
}

fn extended_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 1 + r.below(4) as i64;
    case.ask("example.com/gpu", &needed.to_string());
    for at in case.nodes() {
        let offered = needed + r.below(3) as i64;
        case.offer(at, "example.com/gpu", &offered.to_string());
        let taken = offered - r.below(needed as usize) as i64;
        hold(&mut case, at, "example.com/gpu", &taken.to_string());
        let name = case.name(at);
        case.truth.short(&name, "example.com/gpu", [offered, taken, needed]);
    }
    case
}

fn hugepages_taken(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 128 * (2 + r.below(3) as i64);
    case.ask("hugepages-2Mi", &format!("{needed}Mi"));
    for at in case.nodes() {
        let taken = 1024 - needed + 128;
        case.offer(at, "hugepages-2Mi", "1Gi");
        hold(&mut case, at, "hugepages-2Mi", &format!("{taken}Mi"));
        let name = case.name(at);
        case.truth.short(&name, "hugepages-2Mi", [1024, taken, needed].map(|mi| mi * MI));
    }
    case
}

fn cpu_and_memory(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let (cpu, memory) = (900, 2048);
    case.ask("cpu", &milli(cpu));
    case.ask("memory", &format!("{memory}Mi"));
    for at in case.nodes() {
        case.leave_memory(at, 128 * r.below(8) as i64, r);
        case.leave_cpu(at, 100 * r.below(8) as i64, r);
        // The pods that request CPU also request a little memory.
        cpu_is_short(&mut case, at, cpu);
        memory_is_short(&mut case, at, memory);
    }
    case
}

/// One of many pods frees enough of both.
fn one_holds_both(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let (cpu, memory) = (1000, 2048);
    case.ask("cpu", &milli(cpu));
    case.ask("memory", &format!("{memory}Mi"));
    for at in case.nodes() {
        let both = case.running(at, 1000, 2048);
        let only_cpu = case.running(at, 900, 16);
        let only_memory = case.running(at, 10, 1900);
        [only_cpu, both, only_memory].into_iter().for_each(|pod| case.add(pod));
        let rest = (case.rooms[at].free_cpu() - 200, case.rooms[at].free_memory() - 256);
        let mut agent = case.running(at, rest.0, rest.1);
        own(&mut agent, "DaemonSet", "large-agent");
        case.add(agent);
        cpu_is_short(&mut case, at, cpu);
        memory_is_short(&mut case, at, memory);
    }
    case
}

fn overhead(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let overhead = 250 * (1 + r.below(3) as i64);
    case.ask("cpu", "500m");
    case.pod["spec"]["overhead"] = json!({"cpu": milli(overhead)});
    let needed = 500 + overhead;
    for at in case.nodes() {
        case.leave_cpu(at, 500 + 50 * r.below(5) as i64, r);
        cpu_is_short(&mut case, at, needed);
    }
    case
}

/// A sidecar runs together with the containers.
fn sidecar(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let (main, beside) = (1000 + 100 * r.below(5) as i64, 300);
    case.ask("cpu", &milli(main));
    case.pod["spec"]["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always",
        "image": "registry.example/proxy:1", "resources": {"requests": {"cpu": milli(beside)}}}]);
    for at in case.nodes() {
        case.leave_cpu(at, main + 50 * r.below(6) as i64, r);
        cpu_is_short(&mut case, at, main + beside);
    }
    case
}

/// An init container requests more than the containers.
fn init_rules(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 2000 + 250 * r.below(4) as i64;
    case.ask("cpu", "300m");
    case.pod["spec"]["initContainers"] = json!([{"name": "migrate",
        "image": "registry.example/migrate:1", "resources": {"requests": {"cpu": milli(needed)}}}]);
    short_of_cpu_with_some(r, &mut case, needed, 400);
    case.truth.name("migrate");
    case
}

/// The pod-level request counts, not that of its container.
fn pod_level(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let needed = 2000 + 250 * r.below(4) as i64;
    case.ask("cpu", "300m");
    case.pod["spec"]["resources"] = json!({"requests": {"cpu": milli(needed)}});
    short_of_cpu_with_some(r, &mut case, needed, 400);
    case
}

/// Each node has at least `some` free, but less than needed.
fn short_of_cpu_with_some(r: &mut Random, case: &mut Case, needed: i64, some: i64) {
    for at in case.nodes() {
        let left = some + 50 * r.below(((needed - some) / 50) as usize) as i64;
        case.leave_cpu(at, left, r);
        cpu_is_short(case, at, needed);
    }
}

fn two_containers(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let second = 400 + 100 * r.below(5) as i64;
    case.ask("cpu", "600m");
    let container = json!({"name": "second", "image": "registry.example/second:1",
        "resources": {"requests": {"cpu": milli(second)}}});
    case.pod["spec"]["containers"].as_array_mut().unwrap().push(container);
    short_of_cpu_with_some(r, &mut case, 600 + second, 600);
    case
}

/// A pod that is being resized down uses the old amount until the kubelet is done.
fn resize_in_progress(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "800m");
    for at in case.nodes() {
        let (held, wanted) = (1500, 300);
        let mut pod = case.running(at, held, 64);
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(milli(wanted));
        pod["status"]["containerStatuses"] = json!([{"name": "main", "ready": true,
            "resources": {"requests": {"cpu": milli(held), "memory": "64Mi"}},
            "allocatedResources": {"cpu": milli(held), "memory": "64Mi"}}]);
        case.add(pod);
        case.leave_cpu(at, 700 - 50 * r.below(6) as i64, r);
        cpu_is_short(&mut case, at, 800);
    }
    case
}

/// A pod that is being deleted uses its resources until it has ended.
fn terminating_holds(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "900m");
    for at in case.nodes() {
        let mut pod = case.running(at, 1000, 64);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T07:59:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(600);
        pod["metadata"]["finalizers"] = json!(["example.com/backup"]);
        case.add(pod);
        case.leave_cpu(at, 100 * r.below(8) as i64, r);
        cpu_is_short(&mut case, at, 900);
    }
    case
}

/// A pod that has ended uses nothing.
fn ended_does_not(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "900m");
    for at in case.nodes() {
        let number = case.number();
        let mut pod = crate::cluster::pod_object(&format!("job-{number}"), 2000, 64);
        pod["spec"]["nodeName"] = json!(case.name(at));
        pod["status"] = json!({"phase": if r.chance(50) { "Succeeded" } else { "Failed" }});
        own(&mut pod, "Job", "nightly");
        case.add(pod);
        case.leave_cpu(at, 100 * r.below(8) as i64, r);
        cpu_is_short(&mut case, at, 900);
    }
    case
}

/// The total is sufficient, but no single node is.
fn fragmented(r: &mut Random) -> Case {
    let nodes = 4 + r.below(9);
    let mut case = Case::sized(r, nodes);
    case.ask("cpu", "1500m");
    for at in case.nodes() {
        case.leave_cpu(at, 1000 + 50 * r.below(9) as i64, r);
        cpu_is_short(&mut case, at, 1500);
    }
    case
}

/// Of many similar nodes, only on the last in order is one eviction enough.
fn far_node_of_group(r: &mut Random) -> Case {
    let nodes = 5 + r.below(4);
    let mut case = Case::sized(r, nodes);
    case.ask("cpu", "3000m");
    for at in case.nodes() {
        let is_last = at + 1 == nodes;
        let part = if is_last { 3000 } else { 1000 };
        let mut agent = case.running(at, case.rooms[at].free_cpu() - 3000, 8);
        own(&mut agent, "DaemonSet", "large-agent");
        case.add(agent);
        for _ in 0..3000 / part {
            let pod = case.running(at, part, 8);
            case.add(pod);
        }
        cpu_is_short(&mut case, at, 3000);
    }
    case
}

/// Pods that are recreated use the resources: evicting them does not help.
fn daemon_holds(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "900m");
    for at in case.nodes() {
        let rest = case.rooms[at].free_cpu() - 500;
        let mut pod = case.running(at, rest, 64);
        if r.chance(50) {
            own(&mut pod, "Node", &case.name(at));
            pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "a"});
        } else {
            own(&mut pod, "DaemonSet", "large-agent");
        }
        pod["spec"]["priority"] = json!(0);
        case.add(pod);
        cpu_is_short(&mut case, at, 900);
    }
    case
}

/// Resources reserved for a nominated pod of higher priority, which waits for its victim to end.
fn reserved_for_nominated(r: &mut Random) -> Case {
    let mut case = Case::sized(r, 1);
    let needed = 1000 + 100 * r.below(5) as i64;
    case.ask("cpu", &milli(needed));
    let reserved = needed + 700;
    let mut agent = case.running(0, case.rooms[0].free_cpu() - reserved, 8);
    own(&mut agent, "DaemonSet", "large-agent");
    case.add(agent);
    let mut victim = case.running(0, 500, 64);
    victim["metadata"]["deletionTimestamp"] = json!("2026-01-01T07:59:00Z");
    victim["metadata"]["deletionGracePeriodSeconds"] = json!(600);
    victim["status"]["conditions"] = json!([{"type": "DisruptionTarget", "status": "True",
        "reason": "PreemptionByScheduler"}]);
    case.add(victim);
    let mut boss = crate::cluster::pod_object("boss", reserved, 64);
    boss["spec"]["priority"] = json!(1000);
    boss["metadata"]["creationTimestamp"] = json!("2026-01-01T07:58:00Z");
    boss["status"] = json!({"phase": "Pending", "nominatedNodeName": case.name(0)});
    case.add(boss);
    let room = case.rooms[0].clone();
    let free = room.free_cpu() - reserved;
    let figures = json!({"resource": "cpu", "allocatable": room.cpu, "requested": room.used_cpu,
        "nominated": reserved, "free": free, "needed": needed, "shortBy": needed - free});
    case.truth.node(&room.name, "shortage", figures);
    case
}
