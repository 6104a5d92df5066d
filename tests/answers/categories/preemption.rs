//! Pods that could preempt if something were different.

use serde_json::json;

use super::categories;
use super::resources::cpu_is_short;
use crate::cluster::{Case, milli};
use crate::random::Random;

categories! {
    preemption_never, priority_equal, priority_too_low, priority_mixed, budget_and_never,
    priority_system,
}

/// The pod requests that much, and every node is full of pods of these priorities.
fn full_of(r: &mut Random, priorities: &[i64]) -> Case {
    let mut case = Case::new(r);
    let needed = 600 + 100 * r.below(5) as i64;
    case.ask("cpu", &milli(needed));
    for at in case.nodes() {
        let part = (case.rooms[at].free_cpu() - 100) / priorities.len() as i64;
        for priority in priorities {
            let mut pod = case.running(at, part, 64);
            pod["spec"]["priority"] = json!(priority);
            case.add(pod);
        }
        cpu_is_short(&mut case, at, needed);
    }
    case
}

/// The highest priority, with a policy that does not preempt.
fn preemption_never(r: &mut Random) -> Case {
    let mut case = full_of(r, &[0, 10]);
    of_patient_class(&mut case);
    case
}

fn priority_equal(r: &mut Random) -> Case {
    let mut case = full_of(r, &[500, 500, 500]);
    case.pod["spec"]["priority"] = json!(500);
    hold_agents(&mut case);
    case
}

fn priority_too_low(r: &mut Random) -> Case {
    let mut case = full_of(r, &[100_000, 50_000]);
    hold_agents(&mut case);
    case
}

/// Evicting the pods of lower priority frees too little.
fn priority_mixed(r: &mut Random) -> Case {
    let mut case = full_of(r, &[2000, 2000]);
    case.pod["spec"]["priority"] = json!(100);
    hold_agents(&mut case);
    case
}

fn budget_and_never(r: &mut Random) -> Case {
    let mut case = full_of(r, &[0, 0]);
    of_patient_class(&mut case);
    case.add(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"selector": {}, "minAvailable": "100%"}, "status": {"disruptionsAllowed": 0}}));
    case
}

/// All resources are used by system-critical pods.
fn priority_system(r: &mut Random) -> Case {
    let mut case = full_of(r, &[2_000_000_000]);
    hold_agents(&mut case);
    case
}

/// Gives the pod a class of high priority that does not preempt.
fn of_patient_class(case: &mut Case) {
    case.add(json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "patient"}, "value": 1000, "preemptionPolicy": "Never"}));
    let spec = &mut case.pod["spec"];
    spec["priorityClassName"] = json!("patient");
    spec["priority"] = json!(1000);
    spec["preemptionPolicy"] = json!("Never");
}

/// Gives the light load of the nodes the highest priority.
fn hold_agents(case: &mut Case) {
    for pod in case.objects.iter_mut().filter(|object| object["kind"] == "Pod") {
        if pod["spec"]["priority"].is_null() {
            pod["spec"]["priority"] = json!(2_000_000_000);
        }
    }
}
