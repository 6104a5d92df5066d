//! Two or three causes, on different nodes or on the same one.

use serde_json::json;

use super::categories;
use super::nodes::{cordon, tainted};
use super::resources::cpu_is_short;
use crate::cluster::Case;
use crate::random::Random;

categories! {
    mixed_cpu_or_taint, mixed_cpu_and_taint, mixed_cordon_or_taint, mixed_selector_and_cpu,
    mixed_port_and_cpu, mixed_three, mixed_taint_and_selector, mixed_nearest_is_cordoned,
}

fn full(r: &mut Random, case: &mut Case, at: usize) {
    case.leave_cpu(at, 100 * r.below(8) as i64, r);
    cpu_is_short(case, at, 800);
}

fn asking(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.ask("cpu", "800m");
    case
}

fn taint(case: &mut Case, at: usize) {
    tainted(case, at, "dedicated", "payments", "NoSchedule");
}

fn mixed_cpu_or_taint(r: &mut Random) -> Case {
    let mut case = asking(r);
    for at in case.nodes() {
        if at % 2 == 0 { full(r, &mut case, at) } else { taint(&mut case, at) }
    }
    case
}

fn mixed_cpu_and_taint(r: &mut Random) -> Case {
    let mut case = asking(r);
    for at in case.nodes() {
        full(r, &mut case, at);
        taint(&mut case, at);
    }
    case
}

fn mixed_cordon_or_taint(r: &mut Random) -> Case {
    let mut case = asking(r);
    for at in case.nodes() {
        if at % 2 == 0 { cordon(&mut case, at) } else { taint(&mut case, at) }
    }
    case
}

/// Nodes without the label, or with the label and full.
fn mixed_selector_and_cpu(r: &mut Random) -> Case {
    let mut case = asking(r);
    case.pod["spec"]["nodeSelector"] = json!({"pool": "web"});
    for at in case.nodes() {
        if at == 0 {
            case.label(at, "pool", "web");
            full(r, &mut case, at);
            continue;
        }
        let name = case.name(at);
        case.truth.node(&name, "affinity", json!({"of": "nodeSelector"}));
    }
    case
}

fn mixed_port_and_cpu(r: &mut Random) -> Case {
    let mut case = asking(r);
    let port = json!({"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"});
    case.pod["spec"]["containers"][0]["ports"] = json!([port]);
    for at in case.nodes() {
        if at % 2 == 0 {
            full(r, &mut case, at);
        } else {
            let mut pod = case.running(at, 50, 32);
            pod["spec"]["containers"][0]["ports"] = json!([port]);
            let (name, holder) = (case.name(at), crate::cluster::key_of(&pod));
            case.add(pod);
            case.truth.node(&name, "portTaken", json!({"port": 8080, "holder": holder}));
        }
    }
    case
}

/// A cordon, a taint or too little CPU.
fn mixed_three(r: &mut Random) -> Case {
    let nodes = 3 + r.below(6);
    let mut case = Case::sized(r, nodes);
    case.ask("cpu", "800m");
    for at in case.nodes() {
        match at % 3 {
            0 => full(r, &mut case, at),
            1 => taint(&mut case, at),
            _ => cordon(&mut case, at),
        }
    }
    case
}

fn mixed_taint_and_selector(r: &mut Random) -> Case {
    let mut case = asking(r);
    case.pod["spec"]["nodeSelector"] = json!({"pool": "web"});
    for at in case.nodes() {
        taint(&mut case, at);
        let name = case.name(at);
        case.truth.node(&name, "affinity", json!({"of": "nodeSelector"}));
    }
    case
}

/// One node is only cordoned; all others have two causes.
fn mixed_nearest_is_cordoned(r: &mut Random) -> Case {
    let mut case = asking(r);
    cordon(&mut case, 0);
    case.taint(0, json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
    for at in 1..case.rooms.len() {
        full(r, &mut case, at);
        taint(&mut case, at);
    }
    case
}
