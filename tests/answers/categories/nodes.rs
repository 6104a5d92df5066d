//! Nodes that reject pods: cordons and taints.

use serde_json::{Value, json};

use super::categories;
use crate::change::What;
use crate::cluster::Case;
use crate::random::Random;

categories! {
    cordoned_by_kubectl, cordoned_field_only, taint_no_schedule, taint_no_execute,
    taint_without_value, taint_value_differs, taint_effect_differs, taints_two,
    taint_key_typo, node_not_ready, node_unreachable, node_disk_pressure,
}

fn cordoned_by_kubectl(r: &mut Random) -> Case {
    cordoned(r, |case, at| {
        let since = "2026-01-01T07:00:00Z";
        case.taint(
            at,
            json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule",
            "timeAdded": since}),
        );
    })
}

fn cordoned_field_only(r: &mut Random) -> Case {
    cordoned(r, |_, _| {})
}

fn cordoned(r: &mut Random, also: impl Fn(&mut Case, usize)) -> Case {
    let mut case = Case::new(r);
    for at in case.nodes() {
        cordon(&mut case, at);
        also(&mut case, at);
    }
    case
}

/// Cordons a node: one cause, with or without its taint.
pub fn cordon(case: &mut Case, at: usize) {
    case.node(at)["spec"]["unschedulable"] = json!(true);
    let name = case.name(at);
    case.truth.node(&name, "cordoned", json!({}));
    case.truth.offered = vec![What::Set("/spec/unschedulable".into(), None)];
}

/// Adds a taint that the pod does not tolerate.
pub fn tainted(case: &mut Case, at: usize, key: &str, value: &str, effect: &str) {
    let mut taint = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        taint["value"] = json!(value);
    }
    case.taint(at, taint);
    let name = case.name(at);
    case.truth.node(&name, "taint", json!({"key": key, "value": value, "effect": effect}));
}

fn all_tainted(r: &mut Random, key: &str, value: &str, effect: &str, tolerations: Value) -> Case {
    let mut case = Case::new(r);
    case.nodes().for_each(|at| tainted(&mut case, at, key, value, effect));
    if !tolerations.is_null() {
        case.pod["spec"]["tolerations"] = tolerations;
    }
    case
}

fn taint_no_schedule(r: &mut Random) -> Case {
    let value = *r.pick(&[&"payments", &"batch", &"gpu"]);
    all_tainted(r, "dedicated", value, "NoSchedule", Value::Null)
}

fn taint_no_execute(r: &mut Random) -> Case {
    all_tainted(r, "example.com/drain", "soon", "NoExecute", Value::Null)
}

fn taint_without_value(r: &mut Random) -> Case {
    all_tainted(r, "example.com/reserved", "", "NoSchedule", Value::Null)
}

fn taint_value_differs(r: &mut Random) -> Case {
    let tolerations = json!([{"key": "dedicated", "operator": "Equal", "value": "batch",
        "effect": "NoSchedule"}]);
    all_tainted(r, "dedicated", "payments", "NoSchedule", tolerations)
}

fn taint_effect_differs(r: &mut Random) -> Case {
    let tolerations = json!([{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}]);
    all_tainted(r, "dedicated", "payments", "NoExecute", tolerations)
}

fn taint_key_typo(r: &mut Random) -> Case {
    let tolerations = json!([{"key": "dedicatd", "operator": "Exists"}]);
    all_tainted(r, "dedicated", "payments", "NoSchedule", tolerations)
}

/// Two taints are two causes, whichever the filter reports.
fn taints_two(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    for at in case.nodes() {
        tainted(&mut case, at, "dedicated", "payments", "NoSchedule");
        tainted(&mut case, at, "example.com/drain", "soon", "NoExecute");
    }
    case
}

fn node_not_ready(r: &mut Random) -> Case {
    of_condition(r, "not-ready", ("Ready", "False"), &["NoSchedule"])
}

fn node_unreachable(r: &mut Random) -> Case {
    of_condition(r, "unreachable", ("Ready", "Unknown"), &["NoSchedule", "NoExecute"])
}

fn node_disk_pressure(r: &mut Random) -> Case {
    of_condition(r, "disk-pressure", ("DiskPressure", "True"), &["NoSchedule"])
}

/// Taints that a controller adds for conditions of the node. The condition is one cause, however
/// many taints it has.
fn of_condition(r: &mut Random, name: &str, condition: (&str, &str), effects: &[&str]) -> Case {
    let mut case = Case::new(r);
    let (kind, status) = condition;
    let key = format!("node.kubernetes.io/{name}");
    for at in case.nodes() {
        let conditions = match kind {
            "Ready" => json!([{"type": kind, "status": status}]),
            _ => json!([{"type": "Ready", "status": "True"}, {"type": kind, "status": status}]),
        };
        case.node(at)["status"]["conditions"] = conditions;
        for effect in effects {
            case.taint(at, json!({"key": key, "effect": effect}));
        }
        let node = case.name(at);
        let fields = json!({"condition": kind, "status": status, "taint": key});
        case.truth.node(&node, "nodeCondition", fields);
    }
    case
}
