//! Sessions on the built-in stories: what is restored and done again is what was there.

use super::*;
use crate::trace::{EntryId, PodStates, json};
use crate::why::ask;
use kubestep_config as config;
use kubestep_config::{FeatureGates, UnknownPlugins};
use kubestep_source::Filter;
use kubestep_source::fixtures;

pub(super) fn story(name: &str) -> Session {
    let registry = kubestep_scheduler_plugins::add_to(kubestep_plugins::registry());
    let cluster = fixtures::find(name).unwrap().cluster;
    let read = kubestep_source::read_text("test", cluster.into(), &Filter::default()).unwrap();
    let gates = read.captured.feature_gates.as_deref().map(FeatureGates::parse);
    let features = gates.transpose().unwrap().unwrap_or_default();
    let text = read.scheduler_config.as_ref().map(|found| found.text.as_str());
    let (descriptors, unknown) = (registry.descriptors(), UnknownPlugins::Opaque);
    let resolved = config::resolve_as(text, Vec::new(), &features, &descriptors, unknown).unwrap();
    let mut world = World::new(&resolved, features, &registry).unwrap();
    kubestep_cluster::load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    Session::new(world)
}

/// Everything that can be seen of a state.
pub(super) fn seen(world: &World) -> String {
    let scheduler = world.scheduler();
    let state = PodStates::new(scheduler.queue(), world.api().objects(), Vec::new());
    let waiting: Vec<_> = scheduler.waiting().iter().map(|pod| pod.pod().key()).collect();
    let timer = scheduler.queue().next_timer(world.now());
    format!("{:?} {} {waiting:?} {timer:?}", world.now(), json::state(&state))
}

/// Everything that is recorded.
fn summaries(session: &Session) -> Vec<String> {
    let line = |entry: &Arc<Entry>| match entry.as_ref() {
        Entry::Cycle(record) => format!("{} {}", record.cycle, json::cycle(record)),
        other => format!("{other:?}"),
    };
    session.history().entries().iter().map(line).collect()
}

/// Runs a story with some time between; gives what was seen after every step.
fn play(session: &mut Session, rounds: usize) -> Vec<String> {
    let mut states = vec![seen(session.world())];
    for round in 0..rounds {
        while session.livelock().is_none() && session.run_cycle() == StepOutcome::NewCycle {
            states.push(seen(session.world()));
        }
        let waiting = session.world().scheduler().waiting();
        let uid = waiting.first().map(|pod| (pod.pod().uid(), pod.holds()[0].plugin));
        let decided = match uid {
            Some((uid, _)) if round % 3 == 1 => session.allow(uid, None),
            Some((uid, plugin)) if round % 3 == 2 => session.reject(uid, plugin, "not today"),
            _ => session.advance_to_next_timer().is_some(),
        };
        if decided {
            states.push(seen(session.world()));
        }
    }
    states
}

#[test]
fn every_earlier_state_of_every_story_is_restored() {
    for story_of in fixtures::STORIES {
        let mut session = story(story_of.name);
        let states = play(&mut session, 12);
        assert_eq!(states.len(), session.timeline().steps().end(), "{}", story_of.name);
        for step in (0..states.len()).rev() {
            assert_eq!(seen(&session.world_at(step)), states[step], "{} {step}", story_of.name);
        }
    }
}

#[test]
fn going_on_from_an_earlier_position_tells_the_same_again() {
    for story_of in fixtures::STORIES {
        let mut session = story(story_of.name);
        play(&mut session, 6);
        let (all, steps) =
            (summaries(&session), session.timeline().steps().iter().cloned().collect::<Vec<_>>());
        for stop in 0..session.timeline().stops().end() {
            session.go_to_stop(stop);
            let mut fork = session.fork();
            assert!(summaries(&fork).len() <= all.len() && fork.is_at_newest());
            let from = fork.timeline().steps().end();
            for step in &steps[from..] {
                assert_eq!(fork.apply(step.input.clone().unwrap()), Ok(true));
            }
            assert_eq!(summaries(&fork), all, "{} from stop {stop}", story_of.name);
        }
    }
}

#[test]
fn why_is_answered_alike_when_matrices_were_left_out() {
    let mut left_out = 0;
    for story_of in fixtures::STORIES {
        let mut both = [(); 2].map(|()| story(story_of.name));
        both.iter_mut().for_each(|session| drop(play(session, 12)));
        both[1].set_history_memory(0);
        let pods: Vec<_> = both[0].world().api().objects().pods.keys().copied().collect();
        for pod in pods {
            let own = both[1].history().cycles_of(pod);
            left_out += own.filter(|record| !record.is_whole()).count();
            let [all, few] = both.each_mut().map(|session| format!("{:?}", ask(session, pod, &[])));
            assert_eq!(few, all, "{} {pod}", story_of.name);
        }
    }
    assert!(left_out > 0);
}

#[test]
fn matrices_that_were_left_out_come_back_byte_by_byte() {
    for story_of in fixtures::STORIES {
        let mut session = story(story_of.name);
        play(&mut session, 12);
        let (all, states) = (summaries(&session), play(&mut story(story_of.name), 12));
        session.set_history_memory(0);
        let cycles = session.history().cycle_count() as u64;
        assert!(cycles <= 8 || summaries(&session) != all, "{}", story_of.name);
        for number in (1..=cycles).rev() {
            let record = session.whole_record(number).unwrap();
            let entry = session.history().entry_of_cycle(number).unwrap();
            assert_eq!(format!("{number} {}", json::cycle(&record)), all[entry.0 as usize]);
            session.go_to_cycle(number);
            let step = session.step();
            assert_eq!(seen(session.world_at_position()), states[step]);
        }
    }
}

#[test]
fn a_run_that_only_goes_forward_decides_the_same() {
    for name in ["tour", "held-at-permit", "preemption-budget"] {
        let (mut whole, mut forward) = (story(name), story(name));
        forward.only_forward();
        for session in [&mut whole, &mut forward] {
            session.run_until_idle(99, |_| false);
            session.advance_to_next_timer();
            session.run_until_idle(99, |_| false);
        }
        assert_eq!(summaries(&whole), summaries(&forward), "{name}");
        assert!(whole.restoring(1, true).is_some(), "{name}");
        assert!(forward.restoring(1, true).is_none(), "{name}");
    }
}

#[test]
fn what_a_later_step_completed_is_incomplete_again_after_a_cut() {
    let mut session = story("held-at-permit");
    session.run_until_idle(9, |_| false);
    let before = summaries(&session);
    let end = session.timeline().stops().end() - 1;
    let uid = session.world().scheduler().waiting()[0].pod().uid();
    assert!(session.allow(uid, None));
    assert_ne!(summaries(&session)[..before.len()], before, "the record of the cycle is complete");
    session.go_to_stop(end);
    session.cut();
    assert_eq!(summaries(&session), before);
}

#[test]
fn every_position_forward_is_passed_backward() {
    for story_of in fixtures::STORIES {
        let mut session = story(story_of.name);
        play(&mut session, 2);
        session.go_to_stop(0);
        let place = |session: &Session| (session.stop_index(), session.position());
        let mut forward = vec![place(&session)];
        let steps = session.timeline().steps().end();
        loop {
            let ran = session.step_into();
            if ran != StepOutcome::Moved || session.timeline().steps().end() > steps {
                break;
            }
            forward.push(place(&session));
        }
        session.go_to_stop(forward.last().unwrap().0);
        session.go_to(forward.last().unwrap().1);
        for expected in forward.iter().rev().skip(1) {
            assert_eq!(session.back_into(), StepOutcome::Moved);
            assert_eq!(place(&session), *expected, "{}", story_of.name);
        }
        assert_eq!(session.back_into(), StepOutcome::AtStart);
    }
}

#[test]
fn entries_cycles_and_moments_have_their_stops() {
    let mut session = story("tour");
    play(&mut session, 4);
    for id in 0..session.history().len() as u32 {
        let timeline = session.timeline();
        let stop = timeline.stop_of_entry(EntryId(id)).unwrap();
        let stop = timeline.stops().get(stop).unwrap().clone();
        let own = stop.entries.contains(&id);
        let cycle = session.history().get(EntryId(id)).and_then(Entry::as_cycle);
        assert!(own, "{id}");
        assert_eq!(
            cycle.map(|record| record.cycle).is_some(),
            stop.cycle_entry == Some(EntryId(id))
        );
        assert!(session.go_to_entry(EntryId(id)));
        assert_eq!(session.stop(), Some(&stop));
    }
    let (middle, end) = (session.timeline().steps().get(3).unwrap().time, session.world().now());
    session.go_to_time(end);
    assert!(session.is_at_newest());
    session.go_to_time(middle);
    assert_eq!(session.now(), middle);
    session.go_to_time(Time(0));
    assert_eq!(session.stop_index(), 0);
    assert!(!session.go_to_cycle(0) && !session.go_to_cycle(9_999));
}

#[test]
fn a_gang_that_never_fits_is_a_livelock_and_ends_the_run() {
    let mut session = story("gang-short");
    let ran = session.run_until_idle(1_000, |_| false);
    let livelock = session.livelock().unwrap();
    assert!(livelock.pod.to_string().starts_with("default/train-"), "{livelock}");
    // Five tries of a group of three; a step tries the whole group.
    assert_eq!((ran, livelock.tries, session.history().cycle_count()), (5, 5, 15));
    assert_eq!(session.continue_on(|| true), ContinueOutcome::Idle, "one cycle more, and no end");
    assert!(session.is_at_newest());
    // Time that passes is a change: the next cycle may come to something else.
    session.advance(1_000_000);
    assert_eq!(session.livelock(), None);
}

#[test]
fn attempts_with_progress_are_no_livelock() {
    for story_of in fixtures::STORIES.iter().filter(|story| story.name != "gang-short") {
        let mut session = story(story_of.name);
        for _ in 0..5 {
            session.run_until_idle(1_000, |_| false);
            assert_eq!(session.livelock(), None, "{}", story_of.name);
            session.advance_to_next_timer();
        }
    }
}
