//! Victims: which ones, their events and conditions, and the preemptor.

use serde_json::{Value, json};

use crate::beside::Story;
use crate::beside::stage::Stage;
use crate::objects::node;

pub const STORIES: &[Story] = &[("preemption", preemption), ("in-vain", in_vain)];

fn class(name: &str, value: i64, policy: &str) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": name}, "value": value, "preemptionPolicy": policy,
    })
}

fn with_class(stage: &Stage, name: &str, cpu: &str, class: &str) -> Value {
    let mut pod = stage.pod(name, cpu);
    pod["spec"]["priorityClassName"] = class.into();
    pod
}

/// A pod on its own node with a finalizer: it stays until the story removes the finalizer.
fn victim(stage: &Stage, name: &str, node: &str, app: &str) -> Value {
    let mut pod = with_class(stage, name, "2", "low");
    pod["metadata"]["labels"] = json!({"app": app});
    pod["metadata"]["finalizers"] = json!(["example.com/seen"]);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

fn preemption(stage: &mut Stage) {
    let classes = vec![
        class("low", 1, "PreemptLowerPriority"),
        class("high", 1_000, "PreemptLowerPriority"),
        class("polite", 1_000, "Never"),
    ];
    stage.create(classes);
    stage.create(vec![node("a", "2"), node("b", "2")]);
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    });
    stage.create(vec![
        victim(stage, "guarded", "a", "guarded"),
        victim(stage, "free", "b", "free"),
        budget,
    ]);
    let status = r#"{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}"#;
    stage.kubectl_here(
        &format!("patch pdb guard --subresource=status --type merge -p {status}"),
        "",
    );
    stage.until("both are bound", |seen| seen.is_bound("guarded") && seen.is_bound("free"));
    stage.create(vec![with_class(stage, "polite", "2", "polite")]);
    stage.until("the polite one waits", |seen| seen.is_rejected("polite"));
    stage.create(vec![with_class(stage, "preemptor", "2", "high")]);
    stage.until("the victim has its event", |seen| seen.has_event("free", "Preempted"));
    stage.until("the preemptor is nominated", |seen| {
        seen.pod("preemptor")["status"]["nominatedNodeName"] == "b"
            && seen.pod("free")["metadata"]["deletionTimestamp"].is_string()
    });
    let patch = r#"{"metadata":{"finalizers":null}}"#;
    stage.kubectl_here(&format!("patch pod free --type merge -p {patch}"), "");
    stage.until("the preemptor is bound", |seen| seen.pod("preemptor")["spec"]["nodeName"] == "b");
    stage.kubectl_here(&format!("patch pod guarded --type merge -p {patch}"), "");
}

/// No pod can be preempted: the message for each reason.
fn in_vain(stage: &mut Stage) {
    let (mut closed, small) = (node("closed", "8"), node("small", "1"));
    closed["spec"]["taints"] = json!([{"key": "k", "effect": "NoSchedule"}]);
    stage.create(vec![closed, small]);
    stage.create(vec![stage.pod("sitting", "1")]);
    stage.until("one is bound", |seen| seen.is_bound("sitting"));
    stage.create(vec![class("higher", 2_000, "PreemptLowerPriority")]);
    stage.create(vec![stage.pod("equal", "1"), with_class(stage, "too-large", "4", "higher")]);
    stage.until("both are rejected", |seen| {
        seen.is_rejected("equal") && seen.is_rejected("too-large")
    });
}
