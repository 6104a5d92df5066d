//! The names under which changes of the cluster are counted.

use super::*;
use kubestep_api::{Namespace, Node, PersistentVolumeClaim, PodPhase};

fn changed_pod(change: impl FnOnce(&mut Pod)) -> Object {
    let mut pod = Pod::default();
    pod.spec.scheduler_name = "default-scheduler".into();
    change(&mut pod);
    Arc::new(pod).into()
}

fn changed_node(change: impl FnOnce(&mut Node)) -> Object {
    let mut node = Node::default();
    change(&mut node);
    Arc::new(node).into()
}

fn labels(old: Option<&Object>, new: Option<&Object>) -> Vec<String> {
    Bench::new("", &[]).scheduler.event_labels(old, new)
}

#[test]
fn a_node_counts_by_what_changed() {
    let plain = changed_node(|_| {});
    let labelled = changed_node(|node| {
        node.metadata.labels.insert("a".into(), "b".into());
        node.spec.unschedulable = true;
    });
    assert_eq!(labels(None, Some(&plain)), ["NodeAdd"]);
    assert_eq!(
        labels(Some(&labelled), Some(&plain)),
        ["NodeUpdateNodeTaint", "NodeUpdateNodeLabel"]
    );
    assert_eq!(labels(Some(&plain), Some(&plain)), Vec::<String>::new());
    assert_eq!(labels(Some(&plain), None), ["NodeDelete"]);
}

#[test]
fn a_pod_counts_by_where_it_is_and_what_changed() {
    let version = |pod: &mut Pod| pod.metadata.resource_version = "2".into();
    let label = |pod: &mut Pod| {
        pod.metadata.labels.insert("a".into(), "b".into());
    };
    let bind = |pod: &mut Pod| pod.spec.node_name = "n".into();
    let waiting = changed_pod(|_| {});
    let bound = changed_pod(bind);
    let of = |old: &Object, new: &Object| labels(Some(old), Some(new));
    assert_eq!(labels(None, Some(&waiting)), ["UnschedulablePodAdd"]);
    assert_eq!(of(&waiting, &waiting), Vec::<String>::new());
    assert_eq!(of(&waiting, &changed_pod(version)), ["UnschedulablePodUpdate"]);
    let both = changed_pod(|pod| (version(pod), label(pod)).1);
    let expected = ["UnschedulablePodUpdate", "UnschedulablePodUpdatePodLabel"];
    assert_eq!(of(&waiting, &both), expected);
    assert_eq!(of(&waiting, &bound), ["AssignedPodAdd", "UnschedulablePodDelete"]);
    let changed = changed_pod(|pod| (bind(pod), label(pod)).1);
    assert_eq!(of(&bound, &changed), ["AssignedPodUpdate", "AssignedPodUpdatePodLabel"]);
    let terminal = changed_pod(|pod| {
        bind(pod);
        pod.status.phase = PodPhase::Succeeded;
    });
    assert_eq!(of(&bound, &terminal), ["AssignedPodDelete"]);
    assert_eq!(labels(Some(&terminal), None), Vec::<String>::new());
}

#[test]
fn what_has_no_handler_is_not_counted() {
    let other = changed_pod(|pod| pod.spec.scheduler_name = "other".into());
    assert_eq!(labels(None, Some(&other)), Vec::<String>::new());
    let claim: Object = Arc::new(PersistentVolumeClaim::default()).into();
    assert_eq!(labels(None, Some(&claim)), ["PersistentVolumeClaimAdd"]);
    let namespace: Object = Arc::new(Namespace::default()).into();
    assert_eq!(labels(None, Some(&namespace)), Vec::<String>::new());
}
