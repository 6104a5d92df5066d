//! Differences that are known in advance.

use super::*;
use crate::Session;
use crate::edit::Edit;
use crate::edit::tests::{NODES, bound, container, world};
use kubestep_framework::testing::key;

/// The original and a branch with that edit, both run to the end.
fn sides(pods: &str, edits: &[&str]) -> (Session, Session) {
    let original = Session::new(world(&format!("{NODES}{pods}")));
    let mut branch = original.clone();
    for text in edits {
        let edit: Edit = text.parse().unwrap();
        branch.change(std::sync::Arc::new(edit)).unwrap();
    }
    let run = |mut session: Session| {
        session.run_until_idle(20, |_| false);
        session
    };
    (run(original), run(branch))
}

fn difference(pods: &str, edits: &[&str]) -> Difference {
    let (a, b) = sides(pods, edits);
    compare(Side::of(&a), Side::of(&b))
}

fn pod(name: &str, more: &str) -> String {
    format!("---\n{{kind: Pod, metadata: {{name: {name}}}, spec: {{{}}}}}\n", container(more))
}

#[test]
fn the_same_is_no_difference() {
    let found = difference(&pod("p", ""), &[]);
    assert!(found.is_empty());
    assert_eq!(found.to_string(), "nothing differs: 1 pod is the same");
}

#[test]
fn a_moved_pod_tells_which_verdict_moved_it() {
    let found = difference(&(pod("p", "") + &pod("q", "")), &["cordon node a"]);
    // p goes first to a, q then to b: with a cordoned, both are on b.
    assert_eq!(
        found.to_string(),
        "1 pod moves to another node, 1 has the same result for different reasons; 0 pods are the same"
    );
    let moved = &found.pods[0];
    assert_eq!((moved.pod, moved.change), (key("p"), PodChange::Moved));
    assert_eq!((moved.end.a.to_string(), moved.end.b.to_string()), ("on a".into(), "on b".into()));
    let decision = moved.last().unwrap();
    let verdict = decision.verdicts.iter().find(|one| one.plugin == "NodeUnschedulable").unwrap();
    assert_eq!(verdict.nodes, ["a"]);
    assert_eq!(verdict.verdict.a, ComparedVerdict::Passes);
    assert_eq!(verdict.verdict.b.to_string(), "node(s) were unschedulable");
    // With one feasible node no scores are computed.
    assert!(decision.scores.iter().all(|score| score.total.b.is_none()));
}

#[test]
fn nodes_of_one_verdict_are_one_difference() {
    let large = pod("p", "resources: {requests: {cpu: 6}}");
    let found = difference(&large, &["resize pod p cpu=1"]);
    assert_eq!(found.pods[0].change, PodChange::Placed);
    assert_eq!(found.pods[0].end.a.to_string(), "unschedulable (NodeResourcesFit)");
    let decision = found.pods[0].last().unwrap();
    let fit = decision.verdicts.iter().filter(|one| {
        one.plugin == "NodeResourcesFit" && one.point == kubestep_config::ExtensionPoint::Filter
    });
    let fit: Vec<_> = fit.collect();
    assert_eq!((fit.len(), fit[0].nodes.as_slice()), (1, &["a".into(), "b".into()][..]));
    assert_eq!(fit[0].verdict.a.to_string(), "Insufficient cpu");
    assert_eq!(decision.outcome.a.map(|one| one.as_str()), Some("Unschedulable"));
}

#[test]
fn scores_say_where_their_difference_comes_from() {
    let on_b = bound("q", "b", &container("resources: {requests: {cpu: 2}}"));
    let of = |edit: &str, plugin: &str| {
        let found = difference(&(pod("p", "") + &on_b), &[edit]);
        let decision = found.pods[0].last().unwrap().clone();
        let score = decision.scores.iter().find(|score| score.node == "b").unwrap().clone();
        let score = score.plugins.into_iter().find(|score| score.plugin == plugin);
        score.map(|score| (score.source(), score.weighted()))
    };
    let (source, weighted) = of("weight NodeResourcesFit=3", "NodeResourcesFit").unwrap();
    assert_eq!(source, ScoreSource::Weight);
    assert_eq!(weighted.b.unwrap(), weighted.a.unwrap() * 3);
    let (source, _) = of("resize node b cpu=8", "NodeResourcesFit").unwrap();
    assert_eq!(source, ScoreSource::Raw);
    let (source, weighted) = of("disable NodeResourcesFit at Score", "NodeResourcesFit").unwrap();
    assert_eq!((source, weighted.b), (ScoreSource::Presence, None));
    assert_eq!(of("weight NodeResourcesFit=3", "ImageLocality"), None);
}

#[test]
fn pods_are_lost_wait_elsewhere_and_vanish() {
    let three = pod("p", "") + &pod("q", "") + &pod("r", "");
    let edits = ["cordon node a", "cordon node b", "gate pod q wait", "delete pod r"];
    let found = difference(&three, &edits);
    let kinds: Vec<_> = found.pods.iter().map(|one| (one.pod.name, one.change)).collect();
    let lost = |name: &str| (name.into(), PodChange::Lost);
    assert_eq!(kinds, [("r".into(), PodChange::Presence), lost("p"), lost("q")]);
    assert_eq!(found.pods[2].end.b.to_string(), "gated (SchedulingGates)");
    assert_eq!(found.pods[2].attempts, Pair { a: 1, b: 0 });
    let text = "2 pods lose their nodes, 1 exists on one side only; 0 pods are the same";
    assert_eq!(found.to_string(), text);
    // With the sides swapped, they are gained.
    let (a, b) = sides(&three, &edits);
    let back = compare(Side::of(&b), Side::of(&a));
    assert_eq!(back.count(PodChange::Placed), 2);
    let waits = difference(&pod("p", "resources: {requests: {cpu: 9}}"), &["gate pod p wait"]);
    assert_eq!(waits.pods[0].change, PodChange::Waits);
}

#[test]
fn interventions_are_shown() {
    let found = difference(&pod("p", ""), &["force node b for pod p"]);
    let decision = found.pods[0].last().unwrap();
    assert_eq!(decision.interventions.b, ["node b forced manually"]);
    assert!(decision.interventions.a.is_empty());
}
