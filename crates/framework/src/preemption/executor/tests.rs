//! Evictions step by step, as the host and the preemptor's gate see them.

use super::*;
use crate::pod::NamespacedName;
use crate::preemption::NodeVictims;
use crate::testing::{Asked, Cluster, FakeHost, PodBuilder, info, key, pod};
use kubestep_api::{Pod, Uid};

/// Pods at Permit and in PreBind by UID, with the result of rejecting or cancelling them.
#[derive(Default)]
struct Unbound {
    waiting: Vec<(&'static str, bool)>,
    binding: Vec<(&'static str, bool)>,
    messages: Vec<String>,
}

impl VictimHooks for Unbound {
    fn preempt_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> Option<bool> {
        let (_, stopped) = self.waiting.iter().find(|(waiting, _)| uid == *waiting)?;
        self.messages.push(format!("{plugin}: {message}"));
        Some(*stopped)
    }

    fn reject_waiting(&mut self, uid: Uid, plugin: Symbol, message: &str) -> bool {
        let waits = self.waiting.iter().any(|(waiting, _)| uid == *waiting);
        if waits {
            self.messages.push(format!("rejected by {plugin}: {message}"));
        }
        waits
    }

    fn cancel_binding(&mut self, uid: Uid, cause: &str) -> Option<bool> {
        let (_, stopped) = self.binding.iter().find(|(binding, _)| uid == *binding)?;
        self.messages.push(cause.into());
        Some(*stopped)
    }
}

/// Everything that a test checks.
#[derive(Default)]
struct Scene {
    host: FakeHost,
    hooks: Unbound,
    nominated: NominatedPods,
    shared: PluginStore,
}

impl Scene {
    fn cx(&mut self) -> EvictionContext<'_> {
        let Scene { host, hooks, nominated, .. } = self;
        EvictionContext { host, hooks, nominated, now: Time(7) }
    }

    fn step(&mut self, eviction: &mut Eviction) -> EvictionStage {
        let Poll::Ready(stage) = eviction.step(&mut self.cx()) else {
            panic!("the host answers at once");
        };
        eviction.mark(&mut self.shared);
        stage
    }

    /// The requests to the host since the last call, abbreviated.
    fn asked(&mut self) -> Vec<String> {
        let short = |asked| match asked {
            Asked::Patch(pod, PodStatusPatch { condition: Some(_), .. }) => format!("mark {pod}"),
            Asked::Patch(pod, PodStatusPatch { nominated_node: Some(node), .. }) => {
                format!("nominate {pod} to {:?}", node)
            }
            Asked::Delete(pod) => format!("delete {pod}"),
            Asked::Event(event) => format!("event {}: {}", event.regarding, event.note),
            other => format!("{other:?}"),
        };
        std::mem::take(&mut self.host.asked).into_iter().map(short).collect()
    }
}

fn preemptor() -> Preemptor {
    Preemptor::pod(&info(pod("p").priority(9)))
}

fn preemption(victims: Vec<Pod>) -> Preemption {
    let victims = NodeVictims {
        node: "n1".into(),
        pods: victims.into_iter().map(info).collect(),
        pdb_violations: 0,
        reasons: Vec::new(),
    };
    Preemption {
        plugin: "DefaultPreemption".into(),
        node: "n1".into(),
        candidate: victims.record(),
        victims: victims.pods,
        message_prefix: "preemption: ",
        is_asynchronous: true,
    }
}

fn victims(names: &[&str]) -> Vec<Pod> {
    names.iter().map(|name| pod(name).on("n1")).collect()
}

fn begun(victims: Vec<Pod>, scene: &mut Scene) -> Eviction {
    let eviction = Eviction::new(preemptor(), preemption(victims), Behaviour::default()).unwrap();
    eviction.mark(&mut scene.shared);
    eviction
}

/// The default version without one of its changes.
fn without(switch: Switch) -> Behaviour {
    Behaviour::default().with(switch, false)
}

fn last_pending(scene: &Scene) -> Option<NamespacedName> {
    scene.shared.preempting[&preemptor().uid].last_victim
}

#[test]
fn all_but_the_last_then_the_last() {
    let mut scene = Scene::default();
    let mut eviction = begun(victims(&["a", "b", "c"]), &mut scene);
    assert_eq!(last_pending(&scene), None);
    assert_eq!(scene.step(&mut eviction), EvictionStage::LastPending);
    let note = "Preempted by pod default-p on node n1";
    let deletions = |name: &str| {
        [
            format!("mark default/{name}"),
            format!("delete default/{name}"),
            format!("event default/{name}: {note}"),
        ]
    };
    assert_eq!(scene.asked(), [deletions("a"), deletions("b")].concat());
    assert_eq!(last_pending(&scene), Some(key("c")));
    assert_eq!(scene.step(&mut eviction), EvictionStage::Done);
    assert_eq!(scene.asked(), deletions("c"));
    assert!(scene.shared.preempting.is_empty());
}

#[test]
fn the_victim_gets_the_reason() {
    let mut scene = Scene::default();
    let mut eviction = begun(victims(&["a"]), &mut scene);
    scene.step(&mut eviction);
    scene.step(&mut eviction);
    let condition = Condition {
        type_: "DisruptionTarget".into(),
        status: ConditionStatus::True,
        reason: "PreemptionByScheduler".into(),
        message: "default-scheduler: preempting to accommodate a higher priority pod".into(),
        last_transition_time: Some(Time(7)),
        ..Condition::default()
    };
    let patch = PodStatusPatch { condition: Some(condition.clone()), nominated_node: None };
    assert_eq!(scene.host.asked[0], Asked::Patch(key("a"), patch));
    let Asked::Event(event) = &scene.host.asked[2] else { panic!("no event") };
    assert_eq!((event.kind, event.reason, event.action), ("Normal", "Preempted", "Preempting"));
    // Already marked: it is only deleted.
    let mut known = pod("b").on("n1");
    known.status.conditions = vec![condition];
    scene.asked();
    let mut eviction = begun(vec![known], &mut scene);
    scene.step(&mut eviction);
    scene.step(&mut eviction);
    assert_eq!(scene.asked()[0], "delete default/b");
}

#[test]
fn terminating_victims_are_left_alone() {
    let mut leaving = pod("a").on("n1");
    leaving.metadata.deletion_timestamp = Some(Time(1));
    assert!(
        Eviction::new(preemptor(), preemption(vec![leaving.clone()]), Behaviour::default())
            .is_none()
    );
    let mut scene = Scene::default();
    let both = vec![leaving, pod("b").on("n1")];
    let mut eviction = begun(both.clone(), &mut scene);
    scene.step(&mut eviction);
    assert_eq!(last_pending(&scene), Some(key("b")));
    assert!(scene.asked().is_empty());
    evict_at_once(&mut scene.cx(), &preemptor(), &preemption(both), Behaviour::default()).unwrap();
    assert!(!scene.asked().contains(&"delete default/a".into()));
}

#[test]
fn a_failure_spares_the_last_victim_and_activates_the_preemptor() {
    let mut scene = Scene::default();
    scene.host.refuse = vec!["a".into()];
    let mut eviction = begun(victims(&["a", "b", "c"]), &mut scene);
    assert_eq!(scene.step(&mut eviction), EvictionStage::Failed);
    assert_eq!(scene.asked(), ["mark default/a"]);
    assert!(scene.shared.preempting.is_empty());
    assert_eq!(scene.step(&mut eviction), EvictionStage::Failed);
    assert!(scene.asked().is_empty());
    let outcome = evict_at_once(
        &mut scene.cx(),
        &preemptor(),
        &preemption(victims(&["a"])),
        Behaviour::default(),
    );
    assert_eq!(outcome, Err(HostError::Failed("rejected".to_owned())));
}

/// The failure has cancelled the requests: only a victim at Permit can still be stopped.
#[test]
fn up_to_1_35_a_failure_does_not_spare_a_last_victim_at_permit() {
    let old = without(Switch::FailedVictimEndsPreemption);
    let old = old.with(Switch::WaitingVictimRequeued, false);
    let messages = |waiting: Vec<(&'static str, bool)>| {
        let mut scene = Scene::default();
        scene.host.refuse = vec!["a".into()];
        scene.hooks.waiting = waiting;
        let all = preemption(victims(&["a", "b", "c"]));
        let mut eviction = Eviction::new(preemptor(), all, old).unwrap();
        assert_eq!(scene.step(&mut eviction), EvictionStage::Failed);
        assert!(scene.asked().iter().all(|asked| !asked.starts_with("delete")));
        scene.hooks.messages
    };
    assert_eq!(messages(vec![("default-c", true)]), ["rejected by DefaultPreemption: preempted"]);
    assert!(messages(vec![]).is_empty());
}

#[test]
fn up_to_1_35_the_event_of_a_victim_names_the_preemptor() {
    let related = |behaviour| {
        let mut scene = Scene::default();
        let all = preemption(victims(&["a"]));
        evict_at_once(&mut scene.cx(), &preemptor(), &all, behaviour).unwrap();
        let events = scene.host.asked.iter().filter_map(|asked| match asked {
            Asked::Event(event) => Some(event.related),
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    let preemptor = preemptor();
    let pod = RelatedObject { is_group: false, key: preemptor.pods[0], uid: preemptor.uid };
    assert_eq!(related(without(Switch::PreemptorNotRelated)), [Some(pod)]);
    assert_eq!(related(Behaviour::default()), [None]);
}

#[test]
fn up_to_1_34_the_preemptor_is_let_in_before_the_last_victim_is_evicted() {
    let is_gated = |behaviour| {
        let mut scene = Scene::default();
        let all = preemption(victims(&["a", "b"]));
        let mut eviction = Eviction::new(preemptor(), all, behaviour).unwrap();
        assert_eq!(scene.step(&mut eviction), EvictionStage::LastPending);
        !scene.shared.preempting.is_empty()
    };
    let both = [Behaviour::default(), without(Switch::LastVictimChecked)];
    assert_eq!(both.map(is_gated), [true, false]);
}

#[test]
fn up_to_1_34_a_terminating_victim_is_deleted_again() {
    let mut leaving = pod("a").on("n1");
    leaving.metadata.deletion_timestamp = Some(Time(1));
    let all = || preemption(vec![leaving.clone()]);
    let old = without(Switch::TerminatingVictimSkipped);
    assert!(Eviction::new(preemptor(), all(), old).is_some());
    let deletes = |behaviour| {
        let mut scene = Scene::default();
        evict_at_once(&mut scene.cx(), &preemptor(), &all(), behaviour).unwrap();
        scene.asked().contains(&"delete default/a".into())
    };
    assert_eq!([Behaviour::default(), old].map(deletes), [false, true]);
}

#[test]
fn a_victim_that_is_gone_gets_no_event() {
    let mut scene = Scene::default();
    scene.host.deleted = vec!["a".into()];
    let mut eviction = begun(victims(&["a"]), &mut scene);
    scene.step(&mut eviction);
    assert_eq!(scene.step(&mut eviction), EvictionStage::Done);
    assert_eq!(scene.asked(), ["mark default/a", "delete default/a"]);
}

#[test]
fn victims_that_are_not_bound_are_stopped_in_memory() {
    let mut scene = Scene::default();
    scene.hooks.waiting = vec![("default-a", true), ("default-b", false)];
    scene.hooks.binding = vec![("default-c", true), ("default-d", false)];
    let all = preemption(victims(&["a", "b", "c", "d"]));
    evict_at_once(&mut scene.cx(), &preemptor(), &all, Behaviour::default()).unwrap();
    let asked = scene.asked();
    let memory = "Preempted by pod default-p on node n1 (in kube-scheduler memory).";
    assert_eq!(asked[0], format!("event default/a: {memory}"));
    assert_eq!(asked[1..3], ["mark default/b", "delete default/b"]);
    assert_eq!(asked[4], format!("event default/c: {memory}"));
    assert_eq!(asked[5..7], ["mark default/d", "delete default/d"]);
    let waiting = "DefaultPreemption: preempted";
    let binding = "preempted by DefaultPreemption";
    assert_eq!(scene.hooks.messages, [waiting, waiting, binding, binding]);
}

#[test]
fn up_to_1_35_only_victims_at_permit_are_stopped_by_a_rejection() {
    let mut scene = Scene::default();
    scene.hooks.waiting = vec![("default-a", true)];
    scene.hooks.binding = vec![("default-b", true)];
    let old = without(Switch::WaitingVictimRequeued);
    evict_at_once(&mut scene.cx(), &preemptor(), &preemption(victims(&["a", "b"])), old).unwrap();
    let note = "Preempted by pod default-p on node n1";
    let deleted = ["mark default/b".into(), "delete default/b".into()];
    let events = ["a", "b"].map(|name| format!("event default/{name}: {note}"));
    let [of_a, of_b] = events;
    assert_eq!(scene.asked(), [vec![of_a], deleted.to_vec(), vec![of_b]].concat());
    assert_eq!(scene.hooks.messages, ["rejected by DefaultPreemption: preempted"]);
}

#[test]
fn lower_nominations_to_the_node_are_cleared_first() {
    let mut scene = Scene::default();
    let nominated = |name: &str, priority| info(pod(name).priority(priority).nominated("n1"));
    for pod in [nominated("low", 8), nominated("equal", 9), info(pod("stub"))] {
        scene.nominated.push("n1".into(), pod);
    }
    scene.nominated.push("n2".into(), nominated("other", 1));
    let mut eviction = begun(victims(&["a"]), &mut scene);
    scene.step(&mut eviction);
    assert_eq!(scene.asked(), ["nominate default/low to \"\""]);
    // When that fails, the eviction continues, but the preemptor is activated.
    scene.host.refuse = vec!["low".into()];
    let mut eviction = begun(victims(&["a"]), &mut scene);
    assert_eq!(scene.step(&mut eviction), EvictionStage::LastPending);
    assert_eq!(scene.step(&mut eviction), EvictionStage::Failed);
    assert!(scene.asked().contains(&"delete default/a".into()));
    evict_at_once(
        &mut scene.cx(),
        &preemptor(),
        &preemption(victims(&["a"])),
        Behaviour::default(),
    )
    .unwrap();
}

#[test]
fn the_gate_opens_when_the_last_victim_goes() {
    let mut scene = Scene::default();
    let cluster = Cluster::new([], victims(&["a", "b"]));
    let is_held =
        |scene: &Scene, objects: &Objects| is_preempting(&scene.shared, objects, preemptor().uid);
    let mut eviction = begun(victims(&["a", "b"]), &mut scene);
    assert!(is_held(&scene, &Objects::default()), "nobody is known to be the last yet");
    scene.step(&mut eviction);
    assert!(is_held(&scene, &cluster.objects));
    assert!(!is_held(&scene, &Objects::default()));
    scene.step(&mut eviction);
    assert!(!is_held(&scene, &cluster.objects));
}
