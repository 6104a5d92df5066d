//! Preemption from the decision to the bound preemptor, with all background work.

use crate::World;
use kubestep_api::Pod;
use kubestep_config as config;
use kubestep_config::{Feature, FeatureGates};
use kubestep_framework::record::{Outcome, QueueName};
use kubestep_framework::testing::{PodBuilder, key, node, pod};

fn world(config: Option<&str>, features: FeatureGates) -> World {
    let registry = kubestep_plugins::registry();
    let config = config::resolve(config, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.create(node("n1").into());
    world
}

fn low(name: &str, cpu: &str) -> Pod {
    pod(name).priority(1).requests("cpu", cpu)
}

fn high() -> Pod {
    pod("high").priority(9).requests("cpu", "3").label("app", "high")
}

/// The events since the last call, as `pod reason: note`.
fn events(world: &mut World) -> Vec<String> {
    let text = |event: kubestep_framework::host::ApiEvent| {
        format!("{} {}: {}", event.regarding.name, event.reason, event.note)
    };
    world.api_mut().take_events().into_iter().map(text).collect()
}

const NO_CPU: &str = "0/1 nodes are available: 1 Insufficient cpu.";

#[test]
fn victims_go_and_the_preemptor_comes() {
    let mut world = world(None, FeatureGates::default());
    for name in ["a", "b", "c"] {
        world.create(low(name, "1300m").on("n1").started(1).into());
    }
    world.create(high().into());
    events(&mut world);
    let record = world.step().unwrap();
    assert_eq!(record.outcome, Outcome::Unschedulable);
    assert_eq!(record.message, NO_CPU);
    assert_eq!(record.nominated_node, Some("n1".into()));
    let victims = record.preemption.as_ref().unwrap().victims.clone();
    assert_eq!(victims, [key("a"), key("b"), key("c")]);
    // In the background, so after the end of the cycle.
    let preempted = |name| format!("{name} Preempted: Preempted by pod default-high on node n1");
    let mut expected = vec![format!("high FailedScheduling: {NO_CPU}")];
    expected.extend(["a", "b", "c"].map(preempted));
    assert_eq!(events(&mut world), expected);
    assert_eq!(world.api_mut().take_deleted_pods(), victims);
    assert_eq!(world.scheduler().preemptions().count(), 0);
    let status = &world.api().objects().pod(key("high")).unwrap().status;
    assert_eq!(status.nominated_node_name, "n1");
    // The deletions requeued it, and it is no longer gated.
    let place = world.scheduler().queue().queue_of(key("high"));
    assert!(matches!(place, QueueName::Active | QueueName::Backoff), "{place:?}");
    world.advance(2_000_000);
    let record = world.step().unwrap();
    assert_eq!((record.outcome, record.node), (Outcome::Scheduled, Some("n1".into())));
    assert_eq!(record.nominated_first, Some("n1".into()));
}

#[test]
fn without_the_gate_victims_go_within_the_cycle() {
    let features = FeatureGates::default().with(Feature::SchedulerAsyncPreemption, false);
    let mut world = world(None, features);
    world.create(low("a", "4").on("n1").into());
    world.create(high().into());
    events(&mut world);
    world.step().unwrap();
    let preempted = "a Preempted: Preempted by pod default-high on node n1".to_owned();
    assert_eq!(events(&mut world), [preempted, format!("high FailedScheduling: {NO_CPU}")]);
    world.advance(2_000_000);
    assert_eq!(world.step().unwrap().outcome, Outcome::Scheduled);
}

#[test]
fn a_victim_that_waits_at_permit_goes_back_to_the_queue() {
    let config = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {permit: {enabled: [{name: ManualPermit}]}}
  pluginConfig:
  - name: ManualPermit
    args: {selector: {matchLabels: {held: by-hand}}}
";
    let mut world = world(Some(config), FeatureGates::default());
    world.create(low("held", "2").label("held", "by-hand").into());
    assert_eq!(world.step().unwrap().outcome, Outcome::Waiting);
    assert_eq!(world.scheduler().waiting().len(), 1);
    world.create(high().into());
    events(&mut world);
    assert_eq!(world.step().unwrap().nominated_node, Some("n1".into()));
    let memory = "held Preempted: Preempted by pod default-high on node n1 (in kube-scheduler \
                  memory).";
    assert!(events(&mut world).contains(&memory.to_owned()));
    assert!(world.api_mut().take_deleted_pods().is_empty());
    assert!(world.scheduler().waiting().is_empty());
    let finished = world.scheduler_mut().take_finished();
    assert_eq!(finished[0].outcome, Outcome::SchedulerError);
    assert_eq!(world.scheduler().queue().queue_of(key("held")), QueueName::Backoff);
    world.advance(2_000_000);
    let record = world.step().unwrap();
    assert_eq!((record.pod, record.outcome), (key("high"), Outcome::Scheduled));
}
