//! The shadow scheduler on a cluster whose own scheduler is simulated by the test.

use serde_json::json;

use super::*;
use crate::compare::Agreement;
use kubestep_cluster::{START, World};
use kubestep_config as config;
use kubestep_config::{FeatureGates, UnknownPlugins};
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, pod};

const SECOND: i64 = 1_000_000;

/// A session on two nodes of four cores, and the server's `objects`.
struct Play {
    session: Session,
    shadow: Shadow,
    now: Time,
    version: u64,
}

impl Play {
    fn new(objects: Vec<Object>) -> Play {
        Play::configured(None, objects)
    }

    fn configured(text: Option<&str>, objects: Vec<Object>) -> Play {
        let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
        let (plugins, unknown) = (registry.descriptors(), UnknownPlugins::Opaque);
        let config = config::resolve_as(text, Vec::new(), &features, &plugins, unknown).unwrap();
        let mut world = World::new(&config, features, &registry).unwrap();
        world.note_writes();
        let (session, shadow) = (Session::new(world), Shadow::default());
        let mut play = Play { session, shadow, now: START, version: 1_000 };
        play.says(node("n1").offers("cpu", "4").into());
        play.says(node("n2").offers("cpu", "4").into());
        objects.into_iter().for_each(|object| play.says(object));
        play
    }

    /// The server sends this version of an object.
    fn says(&mut self, object: Object) {
        self.says_all(vec![object]);
    }

    fn says_all(&mut self, objects: Vec<Object>) {
        self.now.0 += SECOND / 100;
        let deltas = objects.into_iter().map(|mut object| {
            self.version += 1;
            object.metadata_mut().resource_version = self.version.to_string().as_str().into();
            Delta::Put(object)
        });
        let deltas = deltas.collect();
        self.shadow.take(&mut self.session, deltas, self.now);
    }

    /// The embedded scheduler runs all cycles it can.
    fn works(&mut self) {
        assert!(!self.shadow.work(&mut self.session, Duration::from_secs(10)));
    }

    fn node_of(&self, name: &str) -> String {
        let pod = self.session.world().api().objects().pod(key(name)).unwrap();
        pod.spec.node_name.to_string()
    }

    fn last(&self) -> (Agreement, &str) {
        let last = self.shadow.decisions().last().unwrap();
        (last.verdict, &last.reason)
    }

    fn queue_of(&self, name: &str) -> QueueName {
        self.session.world().scheduler().queue().queue_of(key(name))
    }
}

fn web() -> Pod {
    pod("web").requests("cpu", "3")
}

fn refused(pod: Pod, message: &str) -> Object {
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
    });
    let mut pod = pod;
    pod.status.conditions = vec![serde_json::from_value(condition).unwrap()];
    pod.into()
}

#[test]
fn what_no_scheduler_reads_is_no_step() {
    let mut play = Play::new(vec![pod("old").requests("cpu", "2").on("n1").into()]);
    play.says(web().into());
    let steps = |play: &Play| play.session.timeline().steps().end();
    let before = steps(&play);
    // Heartbeats, and kubelet reports of a running pod.
    play.says_all(vec![node("n1").offers("cpu", "4").into(), node("n2").offers("cpu", "4").into()]);
    play.says(pod("old").requests("cpu", "2").on("n1").into());
    assert_eq!(steps(&play), before);
    // A change and its reversal in one batch are two changes, each of which counts.
    play.says_all(vec![node("n2").offers("cpu", "1").into(), node("n2").offers("cpu", "4").into()]);
    assert_eq!(steps(&play), before + 1);
    play.says(node("n2").offers("cpu", "1").into());
    play.says(pod("old").requests("cpu", "2").label("a", "b").on("n1").into());
    play.says(web().into());
    assert_eq!(steps(&play), before + 4, "a waiting pod is looked at whatever is said of it");
    play.works();
    assert_eq!(play.queue_of("web"), QueueName::Unschedulable);
}

#[test]
fn the_same_decision_stays() {
    let mut play = Play::new(vec![pod("old").requests("cpu", "2").on("n1").into()]);
    play.says(web().into());
    play.works();
    assert_eq!(play.node_of("web"), "n2");
    assert_eq!(play.shadow.overlaid(), 1);
    play.says(web().on("n2").into());
    assert_eq!(play.last(), (Agreement::Same, ""));
    assert_eq!(play.shadow.overlaid(), 0);
}

#[test]
fn another_pick_of_a_tie_is_taken_over() {
    let mut play = Play::new(Vec::new());
    play.says(web().into());
    play.works();
    let (ours, theirs) = match play.node_of("web").as_str() {
        "n1" => ("n1", "n2"),
        _ => ("n2", "n1"),
    };
    play.says(web().on(theirs).into());
    let reason = "2 nodes have the best total; upstream picks one at random";
    assert_eq!(play.last(), (Agreement::Tie, reason));
    assert_eq!(play.node_of("web"), theirs);
    let cache = play.session.world().scheduler().cache();
    let room = cache.nodes().find(|node| node.name == ours).unwrap();
    assert!(room.pods.is_empty(), "ours is given up");
}

#[test]
fn a_node_that_we_refuse_is_named_with_the_plugin() {
    let mut play = Play::new(vec![pod("old").requests("cpu", "2").on("n1").into()]);
    // In one batch: the embedded scheduler decides right before the other decision is applied.
    play.says_all(vec![web().into(), web().on("n1").into()]);
    let reason = "Filter: NodeResourcesFit rejects n1 here: Insufficient cpu";
    assert_eq!(play.last(), (Agreement::Different, reason));
    assert_eq!(play.node_of("web"), "n1");
    assert_eq!(play.shadow.decisions()[0].ours, "bound to n2");
}

#[test]
fn a_pod_that_theirs_refuses_is_pending_here_as_well() {
    let mut play = Play::new(Vec::new());
    play.says(web().into());
    play.works();
    play.says(refused(web(), "0/2 nodes are available: 2 moon phase."));
    assert_eq!(play.last().0, Agreement::Different);
    assert!(play.last().1.ends_with("passes every filter here"), "{}", play.last().1);
    assert_eq!((play.node_of("web").as_str(), play.shadow.overlaid()), ("", 0));
    assert_eq!(play.queue_of("web"), QueueName::Unschedulable);
    play.works();
    assert_eq!(play.node_of("web"), "", "it is not tried again at once");
    play.says(web().on("n1").into());
    assert_ne!(play.last().0, Agreement::Untried, "ours had another look before");
}

const OPAQUE: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: MoonPhase}]}, score: {enabled: [{name: MoonPhase}]}}
";

#[test]
fn an_opaque_plugin_explains_a_difference_where_it_can() {
    let opaque = |objects| Play::configured(Some(OPAQUE), objects);
    let mut play = opaque(vec![pod("old").requests("cpu", "2").on("n1").into()]);
    play.says(web().into());
    play.works();
    let message = "0/2 nodes are available: 1 Insufficient cpu, 1 wrong moon phase.";
    play.says(refused(web(), message));
    let words = "MoonPhase rejected 1 node: wrong moon phase; certain: n2";
    assert_eq!(play.last(), (Agreement::Opaque, words));
    let learned = play.shadow.decisions().last().unwrap().learned.clone().unwrap();
    assert_eq!((learned.at_least, learned.at_most), (1, 1));

    // What known plugins say contradicts the message.
    let olds = ["n1", "n2"].map(|node| pod(node).requests("cpu", "2").on(node).into());
    let mut play = opaque(olds.into());
    play.says(web().into());
    play.works();
    play.says(refused(web(), message));
    assert_eq!(play.last().0, Agreement::Different);
    let learned = play.shadow.decisions().last().unwrap().learned.clone().unwrap();
    assert_eq!(learned.contradictions[0], "1 node there, 2 here: Insufficient cpu");

    // Another node, which the plugin may have preferred, and one that a known plugin rejects.
    let mut play = opaque(vec![pod("old").requests("cpu", "1").on("n1").into()]);
    play.says(web().into());
    play.works();
    assert_eq!(play.node_of("web"), "n2");
    play.says(web().on("n1").into());
    assert_eq!(play.last().0, Agreement::Opaque, "{}", play.last().1);
    let mut play = opaque(vec![pod("old").requests("cpu", "2").on("n1").into()]);
    play.says_all(vec![web().into(), web().on("n1").into()]);
    assert_eq!(play.last().0, Agreement::Different, "no plugin lets a pod in");
}

#[test]
fn the_same_rejection_is_the_same() {
    let mut play = Play::new(Vec::new());
    let big = || pod("big").requests("cpu", "9");
    play.says(big().into());
    play.works();
    let message = play.session.history().last_cycle().unwrap().message.clone();
    play.says(refused(big(), &message));
    assert_eq!(play.last(), (Agreement::Same, ""));
    assert_eq!(play.queue_of("big"), QueueName::Unschedulable);
    assert_eq!(play.shadow.overlaid(), 0);
}

#[test]
fn what_nobody_else_decides_is_given_up() {
    let mut play = Play::new(Vec::new());
    play.says(web().into());
    play.works();
    assert_ne!(play.node_of("web"), "");
    play.now.0 += 31 * SECOND;
    play.shadow.tick(&mut play.session, play.now);
    assert_eq!((play.node_of("web").as_str(), play.shadow.overlaid()), ("", 0));
    assert_eq!(play.queue_of("web"), QueueName::Unschedulable);
    assert!(play.shadow.decisions().is_empty());
}

#[test]
fn patience_begins_with_the_first_decision() {
    let mut play = Play::new(Vec::new());
    play.says(web().into());
    play.shadow.now = Time(0);
    play.works();
    play.now.0 += SECOND;
    play.shadow.tick(&mut play.session, play.now);
    assert_ne!(play.node_of("web"), "");
}

#[test]
fn victims_come_back_until_the_server_lets_them_go() {
    let low = || pod("low").priority(1).requests("cpu", "3");
    let both =
        vec![low().on("n1").into(), pod("other").priority(9).requests("cpu", "3").on("n2").into()];
    let mut play = Play::new(both);
    let high = || pod("high").priority(5).requests("cpu", "3");
    play.says(high().into());
    play.works();
    assert!(play.session.world().api().objects().pod(key("low")).is_none(), "ours evicts it");
    let mut nominated = high();
    nominated.status.nominated_node_name = "n1".into();
    let message = play.session.history().cycles_of(key("high")).next().unwrap().message.clone();
    play.says(refused(nominated, &message));
    assert_eq!(play.shadow.decisions().last().unwrap().theirs, format!("nominated n1: {message}"));
    assert_eq!(play.node_of("low"), "n1", "it is still there");
    let deleted = Delta::Delete { kind: Kind::Pod, key: key("low") };
    play.shadow.take(&mut play.session, vec![deleted], play.now);
    assert!(play.session.world().api().objects().pod(key("low")).is_none());
}

#[test]
fn pods_of_other_schedulers_are_tried_too() {
    let mut play = Play::new(Vec::new());
    let mut foreign = web();
    foreign.spec.scheduler_name = "volcano".into();
    play.says(foreign.into());
    play.works();
    assert_ne!(play.node_of("web"), "");
    assert_eq!(play.session.history().last_cycle().unwrap().profile, "volcano");
}

#[test]
fn an_earlier_state_is_reached_again() {
    let mut play = Play::new(Vec::new());
    for name in ["a", "b", "c"] {
        play.says(pod(name).requests("cpu", "1").into());
        play.works();
        play.says(pod(name).requests("cpu", "1").on("n1").into());
    }
    let nodes = |world: &World| {
        let pods = world.api().objects().pods.iter();
        let mut pods: Vec<_> = pods.map(|(key, pod)| (*key, pod.spec.node_name)).collect();
        pods.sort_unstable();
        pods
    };
    let end = nodes(play.session.world());
    let steps = play.session.timeline().steps().end();
    assert!(nodes(&play.session.world_at(steps / 2)).len() < end.len());
    assert_eq!(nodes(&play.session.world_at(steps - 1)), end);
}
