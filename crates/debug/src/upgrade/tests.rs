//! Upgrades whose differences and causes are known in advance.

use std::cell::RefCell;

use super::*;
use crate::edit::tests::{NODES, container, world_with};
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, KubeVersion};
use kubestep_framework::testing::key;

fn gates(minor: u8) -> FeatureGates {
    FeatureGates::of(KubeVersion::of_minor(minor).unwrap())
}

fn run(pods: &str) -> impl Fn(FeatureGates) -> Result<Session, RunError> + use<> {
    let cluster = format!("{NODES}{pods}");
    move |gates| {
        let mut session = Session::new(world_with(&cluster, gates));
        session.run_until_idle(50, |_| false);
        Ok(session)
    }
}

/// A pod that requests more than any node has.
fn large(name: &str) -> String {
    let container = container("resources: {requests: {cpu: 9}}");
    format!("---\n{{kind: Pod, metadata: {{name: {name}}}, spec: {{{container}}}}}\n")
}

#[test]
fn nothing_changes_without_pods() {
    let upgrade = compare(gates(31), gates(36), &run(""), 100).unwrap();
    assert!(upgrade.is_empty() && upgrade.changes.len() > 50);
    assert_eq!((upgrade.same, upgrade.runs), (Vec::new(), 2));
}

#[test]
fn a_message_that_three_changes_make_names_them() {
    let upgrade = compare(gates(33), gates(34), &run(&large("p")), 100).unwrap();
    let [pod] = upgrade.pods.as_slice() else { panic!("{:?}", upgrade.pods) };
    assert_eq!((pod.pod, pod.aspect, pod.effect), (key("p"), Aspect::Message, PodEffect::Message));
    assert!(
        pod.message.b.starts_with("0/2 nodes are available: 2 Insufficient cpu. no new claims")
    );
    let unresolvable = VersionChange::Switch(Switch::RequestAboveAllocatableUnresolvable);
    let devices = VersionChange::Gate(Feature::DynamicResourceAllocation);
    let answered = VersionChange::Switch(Switch::ClaimlessPodsAnswered);
    let changes = vec![unresolvable, answered, devices];
    assert_eq!(pod.cause, CausingChanges { changes, smallest: true });
    assert!(upgrade.changes.contains(&unresolvable));
}

#[test]
fn a_gate_that_is_set_on_both_sides_is_no_cause() {
    let set = |minor| gates(minor).with(Feature::DynamicResourceAllocation, true);
    let upgrade = compare(set(33), set(34), &run(&large("p")), 100).unwrap();
    let causes: Vec<_> = upgrade.by_cause().into_iter().map(|(cause, _)| cause.clone()).collect();
    let unresolvable = VersionChange::Switch(Switch::RequestAboveAllocatableUnresolvable);
    let answered = VersionChange::Switch(Switch::ClaimlessPodsAnswered);
    let changes = vec![unresolvable, answered];
    assert_eq!(causes, [CausingChanges { changes, smallest: true }]);
}

#[test]
fn one_search_answers_for_all_pods() {
    let runs = |count| {
        let pods: String = (0..count).map(|i| large(&format!("p-{i}"))).collect();
        let upgrade = compare(gates(33), gates(34), &run(&pods), 100).unwrap();
        assert_eq!(upgrade.by_cause().len(), 1);
        assert_eq!(upgrade.count(PodEffect::Message), count);
        upgrade.runs
    };
    assert_eq!(runs(1), runs(9));
}

#[test]
fn every_set_of_changes_runs_once() {
    let (seen, inner) = (RefCell::new(Vec::new()), run(&large("p")));
    let counted = |gates: FeatureGates| {
        seen.borrow_mut().push(gates);
        inner(gates)
    };
    let upgrade = compare(gates(31), gates(36), &counted, 500).unwrap();
    let all = seen.into_inner();
    assert_eq!(all.len(), upgrade.runs);
    let different: hashbrown::HashSet<_> = all.iter().collect();
    assert_eq!(all.len(), different.len());
}

#[test]
fn past_the_limit_a_cause_is_not_called_the_smallest() {
    let upgrade = compare(gates(31), gates(36), &run(&large("p")), 3).unwrap();
    let [pod] = upgrade.pods.as_slice() else { panic!("{:?}", upgrade.pods) };
    assert!(!pod.cause.smallest && pod.cause.changes.len() > 3);
    assert!(upgrade.runs <= 6);
}

#[test]
fn an_input_that_cannot_be_opened_is_an_error() {
    let fails = |_: FeatureGates| Err(RunError::Rejected("no such plugin".to_owned()));
    assert_eq!(compare(gates(33), gates(34), &fails, 9).unwrap_err().to_string(), "no such plugin");
}
