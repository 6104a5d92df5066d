//! What is shown within a cycle is the cluster as of the frame, as the engine had it then.

use crate::frames::Position;
use crate::session::tests::{seen, story};
use crate::trace::Entry;
use crate::{Depth, Session, StepOutcome};
use kubestep_cluster::World;
use kubestep_config::ExtensionPoint::{Bind, Filter, PostFilter, Reserve};
use kubestep_framework::record::QueueName;
use kubestep_source::fixtures;

/// Pods on a node, in the cache.
fn pods_on(world: &World, node: &str) -> usize {
    let nodes = world.scheduler().cache().nodes();
    nodes.filter(|info| info.name == node).map(|info| info.pods.len()).sum()
}

/// Steps on until the frame is at that point.
fn step_to(session: &mut Session, is_it: impl Fn(&Position) -> bool) {
    for _ in 0..500 {
        if is_it(&session.position()) {
            return;
        }
        assert_ne!(session.step_into(), StepOutcome::Idle);
    }
    panic!("no such frame");
}

#[test]
fn the_first_step_stands_at_the_pop_and_a_cycle_stepped_over_is_over() {
    let (mut into, mut over) = (story("tour"), story("tour"));
    assert_eq!(
        (into.step_into(), over.step_over()),
        (StepOutcome::NewCycle, StepOutcome::NewCycle)
    );
    let popped = into.history().get(into.position().entry.unwrap()).unwrap().clone();
    assert!(matches!(&popped, Entry::Move(moved) if moved.to == QueueName::InFlight));
    assert_eq!(over.position(), Position::START);
    let pod = popped.pod();
    let place =
        |session: &mut Session| session.world_at_position().scheduler().queue().queue_of(pod);
    assert_eq!((place(&mut into), place(&mut over)), (QueueName::InFlight, QueueName::Backoff));
}

#[test]
fn preemption_is_seen_at_post_filter_and_its_victim_gone_only_after_the_cycle() {
    let mut session = story("tour");
    session.step_into();
    let nominated = |session: &mut Session| {
        session.world_at_position().scheduler().queue().nominated_pods().iter().count()
    };
    step_to(&mut session, |frame| frame.point == Some(Filter) && frame.node.is_some());
    let record = session.record().unwrap().clone();
    let (node, victims) = {
        let preemption = record.preemption.as_ref().unwrap();
        (preemption.node.to_string(), preemption.victims.len())
    };
    let before = pods_on(session.world_at_position(), &node);
    assert_eq!((nominated(&mut session), session.newest_known_cycle()), (0, 0));
    step_to(&mut session, |frame| frame.point == Some(PostFilter) && frame.plugin.is_some());
    let under_way = session.world_at_position().scheduler().preemptions().count();
    assert_eq!((under_way, pods_on(session.world_at_position(), &node)), (1, before));
    session.step_out();
    session.step_out();
    assert_eq!(session.position(), Position::START);
    assert_eq!((nominated(&mut session), session.newest_known_cycle()), (1, 1));
    assert_eq!(pods_on(session.world_at_position(), &node), before - victims);
}

#[test]
fn a_bound_pod_is_in_the_queue_then_assumed_then_bound() {
    let mut session = story("tour");
    session.run_until_idle(99, |record| record.node.is_some());
    let record = session.record().unwrap().clone();
    let (pod, node) = (record.pod, record.node.unwrap());
    let number = record.cycle;
    let mut at = |point| {
        session.go_to_cycle(number);
        session.enter();
        step_to(&mut session, |frame| frame.point == Some(point));
        let world = session.world_at_position();
        let object = world.api().objects().pod(pod).unwrap().spec.node_name;
        (pods_on(world, &node.text()), object == node)
    };
    let (filter, reserve, bind) = (at(Filter), at(Reserve), at(Bind));
    assert_eq!((reserve.0, bind.0), (filter.0 + 1, filter.0 + 1));
    assert_eq!((filter.1, reserve.1, bind.1), (false, false, true));
}

/// Whether no frame of the stop comes after the position.
fn is_last(session: &Session) -> bool {
    session.position().next(&session.tree(), Depth::Node).is_none()
}

#[test]
fn every_state_within_is_one_on_the_way_and_the_last_is_the_end() {
    for story_of in fixtures::STORIES {
        let mut session = story(story_of.name);
        session.run_until_idle(6, |_| false);
        session.advance_to_next_timer();
        session.run_until_idle(2, |_| false);
        let end = seen(session.world());
        session.go_to_stop(0);
        let mut before = seen(session.world_at_position());
        let mut states = 0;
        while !(session.is_at_newest() && is_last(&session)) {
            assert_eq!(session.step_into(), StepOutcome::Moved);
            let now = seen(session.world_at_position());
            states += usize::from(now != before);
            before = now;
            let last = session.timeline().last_stop_of(session.step()) == session.stop_index();
            if last && is_last(&session) {
                let step = session.step();
                assert_eq!(before, seen(&session.world_at(step)), "{} {step}", story_of.name);
            }
        }
        // The pods of some stories are all bound: nothing happens without an edit.
        let is_idle = session.history().cycles().next().is_none();
        assert!(states > 1 || is_idle, "{}", story_of.name);
        assert_eq!(end, seen(session.world()), "{}: looking changes nothing", story_of.name);
    }
}

#[test]
fn entries_stand_in_the_order_in_which_they_happened() {
    let mut session = story("tour");
    session.run_cycle();
    let stop = session.stop().unwrap().clone();
    let kind = |id: u32| match session.history().get(crate::trace::EntryId(id)).unwrap() {
        Entry::Cycle(_) => "cycle".to_owned(),
        Entry::Move(moved) => format!("{} → {}", moved.from.as_str(), moved.to.as_str()),
        Entry::Hint(hint) => format!("hint {}", hint.plugin),
        Entry::Event(_, event) => event.reason.to_owned(),
    };
    let kinds: Vec<String> = stop.entries.map(kind).collect();
    let at = |word: &str| kinds.iter().position(|kind| kind.contains(word)).unwrap();
    assert_eq!((at("→ in flight"), at("cycle")), (0, 1), "{kinds:?}");
    assert!(at("in flight →") < at("FailedScheduling"), "{kinds:?}");
    assert!(at("FailedScheduling") < at("Preempted"), "{kinds:?}");
}
