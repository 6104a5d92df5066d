//! Nodes that are cordoned, tainted or down.

use super::*;

const CORDONED: &str =
    "unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]";

/// `kubectl cordon` sets the field, and the node controller adds the taint.
#[test]
fn a_cordon_is_one_cause_and_is_lifted_by_uncordon() {
    let cluster = node("a", "", CORDONED) + &web("1", "");
    assert_eq!(causes(&cluster, "a"), ["NodeUnschedulable: cordoned (spec.unschedulable)"]);
    assert_eq!(proposed(&cluster), ["uncordon node a", "add 1 node like a"]);
    let why = why(&cluster);
    assert_eq!(why.node("a".into()).unwrap().missing, 1.0);
    assert_eq!(why.groups[0].reasons.len(), 1);
}

/// A node is uncordoned with one command; the other labels would need another pod.
#[test]
fn an_uncordon_comes_before_what_recreates_the_pod() {
    let cluster = node("a", "disk: ssd", CORDONED)
        + &node("b", "disk: hdd", "")
        + &web("1", "nodeSelector: {disk: ssd},");
    let proposed = proposed(&cluster);
    assert_eq!(proposed[0], "uncordon node a", "{proposed:?}");
    assert!(proposed.iter().any(|edit| edit.contains("select pod")), "{proposed:?}");
}

/// Only the field is set: the node controller has not added the taint yet. Another taint is a
/// separate cause.
#[test]
fn a_cordon_goes_together_with_other_causes() {
    let field = node("a", "", "unschedulable: true") + &web("1", "");
    assert_eq!(proposed(&field)[0], "uncordon node a");
    let tainted = CORDONED.replace("taints: [", "taints: [{key: gpu, effect: NoSchedule}, ");
    let cluster = node("a", "", &tainted) + &web("1", "");
    let expected = ["tolerate pod default/web gpu:NoSchedule; uncordon node a".to_owned()];
    let proposed = proposed(&cluster);
    let sorted = |text: &str| {
        let mut edits: Vec<&str> = text.split("; ").collect();
        edits.sort_unstable();
        edits.join("; ")
    };
    assert_eq!(sorted(&proposed[0]), expected[0]);
    assert!(!proposed.iter().any(|edits| edits.contains("unschedulable")), "{proposed:?}");
}

fn down(taint: &str, condition: &str) -> String {
    let taints = format!(
        "taints: [{{key: node.kubernetes.io/{taint}, effect: NoSchedule}}, {{key: \
         node.kubernetes.io/{taint}, effect: NoExecute}}]"
    );
    node("a", "", &taints).replace("status: {", &format!("status: {{conditions: [{condition}], "))
}

/// A taint that the node controller would add again is neither a cause nor removed.
#[test]
fn a_node_that_is_down_is_said_to_be_down() {
    let unknown = "{type: Ready, status: Unknown, reason: NodeStatusUnknown}";
    let cluster = down("unreachable", unknown) + &web("1", "");
    assert_eq!(
        causes(&cluster, "a"),
        ["TaintToleration: node unreachable: its kubelet does not report (Ready=Unknown, \
          NodeStatusUnknown)"]
    );
    assert_eq!(proposed(&cluster), ["add 1 node like a"]);
    let without_condition = down("disk-pressure", "") + &web("1", "");
    assert_eq!(
        causes(&without_condition, "a"),
        ["TaintToleration: node under disk pressure (DiskPressure=True)"]
    );
    // The condition has ended, and the controller is about to remove the taint.
    let over = down("not-ready", "{type: Ready, status: 'True'}") + &web("1", "");
    assert_eq!(causes(&over, "a").len(), 2);
    assert!(proposed(&over)[0].starts_with("untaint node a node.kubernetes.io/not-ready"));
}
