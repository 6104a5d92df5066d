//! Edge cases of the group cycle, tested from within the scheduler.

use serde_json::json;

use super::*;
use crate::Change;
use kubestep_api::{Object, Pod, Time};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::record::Outcome;
use kubestep_framework::testing::{Asked, FakeHost, PodBuilder, key, node, pod};

fn member(name: &str) -> Pod {
    pod(name).spec(json!({"schedulingGroup": {"podGroupName": "g"}}))
}

/// A scheduler with that configuration and pods of a group in its queue.
fn scheduler(configuration: Option<&str>, pods: impl IntoIterator<Item = Pod>) -> Scheduler {
    let features = FeatureGates::parse("GenericWorkload=true").unwrap();
    let registry = kubestep_plugins::registry();
    let config = config::resolve(configuration, &features, &registry.descriptors()).unwrap();
    let mut scheduler = Scheduler::new(&config, features, &registry).unwrap();
    let mut host = FakeHost::default();
    let pods = pods.into_iter().map(Object::from);
    for object in std::iter::once(node("n1").into()).chain(pods) {
        scheduler.handle(Change::Add(object), Time(0), &mut host);
    }
    scheduler
}

#[test]
fn a_group_that_is_not_known_fails_without_a_word() {
    let mut scheduler = scheduler(None, [member("a")]);
    scheduler.cluster.shared.pod_groups = Default::default();
    let mut host = FakeHost::default();
    let record = scheduler.schedule_one(Time(0), &mut host).unwrap();
    assert_eq!((record.outcome, record.message.as_str()), (Outcome::SchedulerError, ""));
    assert_eq!(host.asked, [], "neither an event nor a condition");
    let queued = scheduler.queue().get(key("a")).unwrap();
    assert_eq!((queued.consecutive_errors, queued.unschedulable_plugins.len()), (1, 0));
}

#[test]
fn on_the_copies_for_preemption_no_node_has_an_image() {
    let mut scheduler = scheduler(None, []);
    let mut with_image = node("n2");
    let image = kubestep_api::ContainerImage { names: vec!["app:1".into()], size_bytes: 10 };
    with_image.status.images = vec![image.into()];
    let mut host = FakeHost::default();
    scheduler.handle(Change::Add(with_image.into()), Time(0), &mut host);
    scheduler.cache.update_snapshot(&mut scheduler.cluster.snapshot);
    let counts = |scheduler: &Scheduler| -> Vec<u32> {
        let images = scheduler.cluster.snapshot.iter().flat_map(|node| node.image_states.iter());
        images.map(|image| image.num_nodes).collect()
    };
    assert_eq!(counts(&scheduler), [1]);
    preemption::forget_image_counts(&mut scheduler.cluster.snapshot);
    assert_eq!(counts(&scheduler), [0]);
}

#[test]
fn the_pods_of_a_group_must_share_a_profile() {
    let profiles = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                    profiles:\n- schedulerName: default-scheduler\n- schedulerName: other\n";
    let other = member("b").spec(json!({"schedulerName": "other"}));
    let mut scheduler = scheduler(Some(profiles), [member("a"), other]);
    let mut host = FakeHost::default();
    let first = scheduler.schedule_one(Time(0), &mut host).unwrap();
    let records: Vec<_> = std::iter::once(first).chain(scheduler.take_finished()).collect();
    let text = "all pods in a single pod group should have the same .spec.schedulerName set, got: \
                \"other\" and \"default-scheduler\"";
    for record in &records {
        assert_eq!((record.outcome, record.message.as_str()), (Outcome::SchedulerError, text));
    }
    let events = host.asked.iter().filter(|asked| matches!(asked, Asked::Event(_)));
    assert_eq!((records.len(), events.count()), (2, 2));
}
