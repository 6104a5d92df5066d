//! Recordings of a cluster whose scheduler is simulated by the test.

use super::*;
use kubestep_api::{Condition, ConditionStatus, Object, ObjectKey, Pod};
use kubestep_cluster::{START, World};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, pod};

const SECOND: i64 = 1_000_000;

fn session(objects: Vec<Object>) -> Session {
    let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    kubestep_cluster::load(&mut world, objects);
    world.note_writes();
    Session::new(world)
}

fn nodes() -> Vec<Object> {
    vec![node("n1").offers("cpu", "4").into(), node("n2").offers("cpu", "2").into()]
}

struct Story {
    changes: Vec<RecordedChange>,
    version: u64,
}

impl Story {
    fn new() -> Story {
        Story { changes: Vec::new(), version: 1_000 }
    }

    fn put(mut self, seconds: i64, object: impl Into<Object>) -> Story {
        self.version += 1;
        let mut object = object.into();
        object.metadata_mut().resource_version = self.version.to_string().as_str().into();
        self.add(seconds, ObjectChange::Put(object))
    }

    fn delete(self, seconds: i64, key: ObjectKey) -> Story {
        self.add(seconds, ObjectChange::Delete(key))
    }

    fn add(mut self, seconds: i64, what: ObjectChange) -> Story {
        let at = Time(START.0 + seconds * SECOND);
        self.changes.push(RecordedChange { at, line: 1, what });
        self
    }

    fn play(&self) -> (Session, Vec<ReplayedDecision>) {
        let mut session = session(nodes());
        let end = Time(START.0 + 100 * SECOND);
        let decisions = replay(&mut session, &self.changes, end, |_| {});
        (session, decisions)
    }

    fn verdicts(&self) -> Vec<String> {
        let reported = |one: &ReplayedDecision| {
            format!("{} {}: {}", one.decision.pod.name, one.verdict().0.as_str(), one.verdict().1)
        };
        self.play().1.iter().map(reported).collect()
    }
}

fn refused(name: &str, message: &str) -> Pod {
    let mut pod = pod(name).requests("cpu", "3");
    pod.status.conditions.push(Condition {
        type_: "PodScheduled".into(),
        status: ConditionStatus::False,
        reason: "Unschedulable".into(),
        message: message.into(),
        ..Condition::default()
    });
    pod
}

#[test]
fn what_both_decide_is_the_same_and_what_not_says_where() {
    let web = || pod("web").requests("cpu", "3");
    let db = || pod("db").requests("cpu", "1");
    let story =
        Story::new().put(1, web()).put(2, web().on("n1")).put(3, db()).put(4, db().on("n1"));
    assert_eq!(
        story.verdicts(),
        ["web same: ", "db different: Score: n1 has 416 here, the best node 435"]
    );
}

#[test]
fn a_room_that_a_deletion_makes_is_used_when_it_comes() {
    let web = || pod("web").requests("cpu", "4");
    let big = || pod("big").requests("cpu", "4");
    let message = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, \
                   preemption: 0/2 nodes are available: 1 No preemption victims found for incoming \
                   pod, 1 Preemption is not helpful for scheduling.";
    let mut refused = refused("big", message);
    refused.spec = big().spec;
    let deleted = Object::from(web()).key();
    let story = Story::new()
        .put(1, web())
        .put(1, web().on("n1"))
        .put(2, big())
        .put(3, refused)
        .delete(50, deleted)
        .put(51, big().on("n1"));
    let (session, decisions) = story.play();
    let verdicts: Vec<&str> = decisions.iter().map(|one| one.verdict().0.as_str()).collect();
    assert_eq!(verdicts, ["same", "same", "same"], "{decisions:#?}");
    let node = session.world().api().objects().pod(key("big")).unwrap().spec.node_name;
    assert_eq!(node, "n1");
}

#[test]
fn what_was_decided_before_cannot_be_compared() {
    let mut session = session(nodes());
    let mut world = session.world().clone();
    world.accept(refused("old", "for reasons of its own").into());
    session = Session::new(world);
    let decisions = replay(&mut session, &[], Time(START.0 + SECOND), |_| {});
    assert_eq!(decisions[0].verdict().0, Agreement::Incomparable);
}

/// Every replay gives the same bytes, and earlier steps can be visited.
#[test]
fn a_replay_is_the_same_every_time() {
    let mut story = Story::new();
    for at in 0..20 {
        let name = format!("p{at}");
        story = story.put(at, pod(&name).requests("cpu", "1"));
        if at % 3 == 0 {
            story = story.put(at + 1, pod(&name).requests("cpu", "1").on("n2"));
        }
    }
    let (mut first, decisions) = story.play();
    let (second, again) = story.play();
    assert_eq!(decisions, again);
    let lines = |session: &Session| -> Vec<String> {
        let cycles = session.history().cycles();
        cycles.map(|record| kubestep_debug::trace::json::cycle(record).to_string()).collect()
    };
    assert_eq!(lines(&first), lines(&second));
    let steps = first.timeline().steps().end();
    assert!(steps > story.changes.len(), "each change is a step: {steps}");
    first.go_to_stop(0);
    let mut stops = 1;
    while !first.is_at_newest() {
        let stop = first.stop_index();
        first.go_to_stop(stop + 1);
        stops += 1;
    }
    assert_eq!(stops, first.timeline().stops().end());
}
