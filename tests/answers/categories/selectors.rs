//! Nodes whose labels or names do not match what the pod requires.

use serde_json::{Value, json};

use super::categories;
use crate::change::What;
use crate::cluster::{Case, ZONE};
use crate::random::Random;

categories! {
    selector_value_typo, selector_key_typo, selector_other_value, selector_two_keys,
    affinity_in_typo, affinity_in_unknown, affinity_not_in, affinity_exists,
    affinity_does_not_exist, affinity_gt, affinity_lt, affinity_gt_version, affinity_two_terms,
    affinity_two_expressions, affinity_name_typo, selector_and_affinity, added_affinity,
    added_affinity_of_one_profile,
}

/// Expects an unmet requirement of the pod or the profile.
pub fn unmet(case: &mut Case, at: usize, of: &str, keys: &[(&str, Option<&str>)]) {
    let name = case.name(at);
    case.truth.node(&name, "affinity", json!({"of": of}));
    for (key, _) in keys {
        case.truth.name(*key);
    }
}

fn select(case: &mut Case, key: &str, value: &str) {
    case.pod["spec"]["nodeSelector"][key] = json!(value);
}

fn selected(r: &mut Random, labels: (&str, &str), wanted: (&str, &str)) -> Case {
    let mut case = Case::new(r);
    select(&mut case, wanted.0, wanted.1);
    for at in case.nodes() {
        case.label(at, labels.0, labels.1);
        unmet(&mut case, at, "nodeSelector", &[(wanted.0, Some(labels.1))]);
    }
    case
}

fn selector_value_typo(r: &mut Random) -> Case {
    selected(r, ("disktype", "ssd"), ("disktype", "sdd"))
}

fn selector_key_typo(r: &mut Random) -> Case {
    selected(r, ("disktype", "ssd"), ("disktyp", "ssd"))
}

fn selector_other_value(r: &mut Random) -> Case {
    selected(r, ("pool", "batch"), ("pool", "web"))
}

fn selector_two_keys(r: &mut Random) -> Case {
    let mut case = selected(r, ("pool", "batch"), ("pool", "web"));
    select(&mut case, "example.com/tier", "gold");
    case.truth.name("example.com/tier");
    case
}

/// Adds node affinity terms that no node meets.
fn with_terms(case: &mut Case, terms: Value) {
    case.pod["spec"]["affinity"]["nodeAffinity"] =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    for at in case.nodes() {
        unmet(case, at, "nodeAffinity", &[]);
    }
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    match values {
        [] => json!({"key": key, "operator": operator}),
        values => json!({"key": key, "operator": operator, "values": values}),
    }
}

/// One expression, and the label that all nodes have.
fn expressed(r: &mut Random, label: (&str, &str), asked: Value) -> Case {
    let mut case = Case::new(r);
    if !label.0.is_empty() {
        case.nodes().for_each(|at| case.label(at, label.0, label.1));
    }
    case.truth.name(asked["key"].as_str().unwrap());
    with_terms(&mut case, json!([{"matchExpressions": [asked]}]));
    case
}

fn affinity_in_typo(r: &mut Random) -> Case {
    expressed(r, ("disktype", "ssd"), expression("disktype", "In", &["sdd"]))
}

fn affinity_in_unknown(r: &mut Random) -> Case {
    expressed(r, ("pool", "batch"), expression("pool", "In", &["web", "edge"]))
}

fn affinity_not_in(r: &mut Random) -> Case {
    expressed(r, ("pool", "batch"), expression("pool", "NotIn", &["batch", "old"]))
}

fn affinity_exists(r: &mut Random) -> Case {
    expressed(r, ("", ""), expression("example.com/nvme", "Exists", &[]))
}

fn affinity_does_not_exist(r: &mut Random) -> Case {
    expressed(r, ("example.com/spot", "yes"), expression("example.com/spot", "DoesNotExist", &[]))
}

fn affinity_gt(r: &mut Random) -> Case {
    let cores = (2 + r.below(6)).to_string();
    expressed(r, ("example.com/cores", &cores), expression("example.com/cores", "Gt", &["8"]))
}

fn affinity_lt(r: &mut Random) -> Case {
    let age = (10 + r.below(6)).to_string();
    expressed(r, ("example.com/age", &age), expression("example.com/age", "Lt", &["8"]))
}

/// Only integers are compared.
fn affinity_gt_version(r: &mut Random) -> Case {
    let asked = expression("example.com/kernel", "Gt", &["6"]);
    let mut case = expressed(r, ("example.com/kernel", "6.12"), asked);
    case.truth.name("whole number");
    case
}

fn affinity_two_terms(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.nodes().for_each(|at| case.label(at, "pool", "batch"));
    with_terms(
        &mut case,
        json!([{"matchExpressions": [expression("pool", "In", &["web"])]},
            {"matchExpressions": [expression("example.com/nvme", "Exists", &[])]}]),
    );
    case
}

fn affinity_two_expressions(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    case.nodes().for_each(|at| case.label(at, "pool", "batch"));
    with_terms(
        &mut case,
        json!([{"matchExpressions": [expression("pool", "In", &["web"]),
            expression(ZONE, "In", &["us-9z"])]}]),
    );
    ["pool", ZONE].iter().for_each(|key| case.truth.name(*key));
    case
}

/// A node field with two letters of its name swapped. PreFilter excludes all nodes, so what the
/// filters would report is not checked.
fn affinity_name_typo(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let meant = case.name(r.below(case.rooms.len()));
    let mut letters: Vec<char> = meant.chars().collect();
    letters.swap(1, 2);
    let written: String = letters.into_iter().collect();
    case.pod["spec"]["affinity"]["nodeAffinity"] = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
            [{"matchFields": [expression("metadata.name", "In", &[&written])]}]}});
    for at in case.nodes() {
        unmet(&mut case, at, "nodeAffinity", &[]);
    }
    case.truth.name(written);
    case.truth.name(meant);
    case
}

/// Both are required: two causes on each node.
fn selector_and_affinity(r: &mut Random) -> Case {
    let mut case = selected(r, ("pool", "batch"), ("pool", "web"));
    with_terms(
        &mut case,
        json!([{"matchExpressions": [expression("example.com/nvme", "Exists", &[])]}]),
    );
    case
}

/// A profile with an added affinity.
pub fn profile_that_adds(expression: &str) -> String {
    format!(
        "profiles:
- schedulerName: default-scheduler
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{expression}]"
    )
}

/// The profile requires it, not the pod.
fn added_affinity(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let ready = "{key: example.com/ready, operator: In, values: ['yes']}";
    case.config = Some(profile_that_adds(ready));
    for at in case.nodes() {
        unmet(&mut case, at, "addedAffinity", &[("example.com/ready", None)]);
    }
    case
}

/// The label cannot be set on a node, but another profile does not require it.
fn added_affinity_of_one_profile(r: &mut Random) -> Case {
    let mut case = Case::new(r);
    let zone = format!("{{key: {ZONE}, operator: In, values: [us-9z]}}");
    case.config = Some(profile_that_adds(&zone) + "\n- schedulerName: anywhere");
    for at in case.nodes() {
        let zone = case.rooms[at].zone.clone();
        unmet(&mut case, at, "addedAffinity", &[(ZONE, Some(&zone))]);
    }
    case.truth.offered.push(What::Set("/spec/schedulerName".into(), Some(json!("anywhere"))));
    case
}
