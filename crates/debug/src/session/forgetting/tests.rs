//! Long sessions that drop their past, compared with the same sessions that keep it.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use super::super::tests::{seen, story};
use crate::breakpoint::Definition;
use crate::edit::EditError;
use crate::trace::{Entry, json};
use crate::{Change, Input, Session};
use kubestep_api::{Kind, Object};
use kubestep_cluster::World;
use kubestep_framework::testing::{NodeBuilder as _, PodBuilder as _, key, node, pod};

/// The most copies that are kept when there is no memory for them, including restored states.
const COPIES: usize = 8 + 16;
/// The most steps that are kept when there is no memory for them: those between seven copies if
/// each is a cycle.
const STEPS: usize = 7 * 256;

/// What the API server of a cluster reports.
#[derive(Debug)]
enum TestChange {
    Put(Object),
    Deleted(Kind, String),
}

impl Change for TestChange {
    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn cannot_fail(&self) -> bool {
        true
    }

    fn apply(&self, world: &mut World) -> Result<(), EditError> {
        match self {
            TestChange::Put(object) => world.accept(object.clone()),
            TestChange::Deleted(kind, name) => world.forget(*kind, key(name)),
        }
        Ok(())
    }
}

/// A linear congruential generator, so that each seed gives the same steps.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn version(&mut self) -> String {
        self.below(1 << 30).to_string()
    }

    /// The next input: pods are created, changed and deleted, nodes grow and shrink, time passes,
    /// waiting pods are allowed or rejected.
    fn input(&mut self, session: &Session) -> Input {
        let said = |said: TestChange| Input::Change(Arc::new(said));
        let name = format!("p-{}", self.below(40));
        match self.below(20) {
            0..6 => {
                let cpu = ["1", "2", "900m"][self.below(3) as usize];
                let mut new = pod(&name).requests("cpu", cpu);
                new.metadata.uid = format!("{name}-{}", self.below(1_000)).as_str().into();
                new.metadata.resource_version = self.version().as_str().into();
                said(TestChange::Put(new.into()))
            }
            6..10 => said(TestChange::Deleted(Kind::Pod, name)),
            10..12 => {
                let cpu = ["2", "3", "4"][self.below(3) as usize];
                let mut new = node(&format!("n-{}", self.below(4))).offers("cpu", cpu);
                new.metadata.resource_version = self.version().as_str().into();
                said(TestChange::Put(new.into()))
            }
            12 => said(TestChange::Deleted(Kind::Node, format!("n-{}", self.below(6)))),
            13 => Input::Advance(1_000_000 * (1 + self.below(90) as i64)),
            14 => match session.world().scheduler().waiting().first() {
                Some(waiting) => Input::Allow { uid: waiting.pod().uid(), plugin: None },
                None => Input::Cycle,
            },
            _ => Input::Cycle,
        }
    }
}

/// Two sessions on the same story; the second drops all it can.
fn two(name: &str) -> [Session; 2] {
    let [all, mut few] = [(); 2].map(|()| story(name));
    few.set_history_memory(0);
    few.forget_past();
    let mut both = [all, few];
    for session in &mut both {
        for (text, watch) in [("pod:p-*", false), ("queue:active", true), ("node:n-1", true)] {
            let definition = match watch {
                true => Definition::parse_watch(text).unwrap(),
                false => Definition::parse_break(text, &[]).unwrap(),
            };
            session.change_breakpoints(|breakpoints| breakpoints.add(definition, true));
        }
    }
    both
}

/// Does the same in both and compares the results.
fn go_on(random: &mut Random, both: &mut [Session; 2], steps: usize) {
    for _ in 0..steps {
        let input = random.input(&both[0]);
        let done = both.each_mut().map(|session| session.apply(input.clone()));
        assert_eq!(done[0], done[1]);
    }
    let [all, few] = both;
    assert_eq!(seen(all.world()), seen(few.world()));
    let ends = [&*all, &*few].map(|session| {
        let timeline = session.timeline();
        let cycles = session.history().cycle_count();
        (timeline.steps().end(), timeline.stops().end(), session.history().len(), cycles)
    });
    assert_eq!(ends[0], ends[1]);
    let hits = [&*all, &*few].map(|session| {
        session.breakpoints().items().iter().map(|item| item.hits()).collect::<Vec<_>>()
    });
    assert_eq!(hits[0], hits[1]);
}

/// Compares the records that the second session still has.
fn same_records(all: &mut Session, few: &mut Session) {
    for at in few.history().entries().start()..few.history().len() {
        let reported = [&mut *all, &mut *few].map(|session| {
            let entry = session.history().entries().get(at).unwrap().clone();
            match entry.as_ref() {
                Entry::Cycle(record) => {
                    json::cycle(&session.whole_record(record.cycle).unwrap()).to_string()
                }
                other => format!("{other:?}"),
            }
        });
        assert_eq!(reported[0], reported[1], "entry {at}");
    }
}

#[test]
fn whoever_forgets_decides_the_same_and_goes_back_to_the_same() {
    for (seed, name) in ["tour", "held-at-permit", "preemption-budget"].into_iter().enumerate() {
        let (mut random, mut both) = (Random(seed as u64), two(name));
        for round in 0..5 {
            go_on(&mut random, &mut both, 400);
            let [all, few] = &mut both;
            let start = few.timeline().steps().start();
            assert_eq!(start > 0, few.forgotten_before().is_some());
            for _ in 0..6 {
                let end = few.timeline().steps().end();
                let step = start + random.below((end - start) as u64) as usize;
                assert_eq!(seen(&all.world_at(step)), seen(&few.world_at(step)), "{name} {step}");
            }
            assert_eq!(seen(&all.world_at(start)), seen(&few.world_at(start)), "{name} {round}");
        }
        let [all, few] = &mut both;
        assert!(few.timeline().steps().start() > 0, "{name}");
        same_records(all, few);
    }
}

#[test]
fn what_is_kept_does_not_grow() {
    let mut random = Random(7);
    let [_, mut few] = two("tour");
    let mut starts = BTreeSet::new();
    for round in 0..30 {
        for _ in 0..150 {
            let input = random.input(&few);
            few.apply(input).unwrap();
        }
        let (timeline, history) = (few.timeline(), few.history());
        let [steps, stops] = [timeline.steps().count(), timeline.stops().count()];
        assert!(steps <= STEPS && stops <= 2 * STEPS, "round {round}: {steps} {stops}");
        assert!(history.entries().count() <= 8 * STEPS, "round {round}");
        assert!(few.ledger.count() <= 2 * STEPS, "round {round}");
        let items = few.breakpoints().items();
        assert!(items.iter().all(|item| item.kept() <= 8 * STEPS), "round {round}");
        assert!(few.copies().0 <= COPIES, "round {round}");
        assert!(few.recorded_bytes() <= 16_000 * STEPS, "round {round}");
        starts.insert(timeline.steps().start());
    }
    assert!(starts.len() > 15, "{starts:?}");
    // Names of deleted pods leave nothing behind either.
    let kept: BTreeSet<_> = few.history().entries().iter().map(|entry| entry.pod()).collect();
    assert_eq!(few.history().pod_count(), kept.len());
}

#[test]
fn who_never_goes_back_forgets_without_copies() {
    let (mut random, mut both) = (Random(3), two("tour"));
    both[1].only_forward();
    let mut starts = BTreeSet::new();
    for _ in 0..8 {
        go_on(&mut random, &mut both, 400);
        let steps = both[1].timeline().steps();
        assert!(steps.count() <= 2 * super::FEWEST, "{}", steps.count());
        starts.insert(steps.start());
    }
    assert!(starts.len() > 4, "{starts:?}");
    let kept: BTreeSet<_> = both[1].history().entries().iter().map(|entry| entry.pod()).collect();
    assert_eq!(both[1].history().pod_count(), kept.len());
}

#[test]
fn a_budget_that_is_enough_keeps_all() {
    let (mut random, mut session) = (Random(1), story("tour"));
    session.set_history_memory(256 << 20);
    session.forget_past();
    for _ in 0..2_000 {
        let input = random.input(&session);
        session.apply(input).unwrap();
    }
    assert_eq!((session.timeline().steps().start(), session.forgotten_before()), (0, None));
}

#[test]
fn who_stands_in_the_past_stands_at_its_beginning_once_it_is_forgotten() {
    let (mut random, [_, mut few]) = (Random(3), two("tour"));
    few.run_until_idle(20, |_| false);
    few.go_to_cycle(3);
    few.step_into();
    while few.forgotten_before().is_none() {
        let input = random.input(&few);
        few.apply_in_background(input).unwrap();
    }
    let stops = few.timeline().stops();
    assert_eq!(few.stop_index(), stops.start());
    assert_eq!(Some(few.now()), few.forgotten_before());
    assert!(!few.go_to_cycle(3) && few.record().is_none() && few.latest_record().is_none());
    assert_eq!(few.back_into(), super::super::StepOutcome::AtStart);
    assert_eq!(few.previous_cycle(), super::super::StepOutcome::AtStart);
    assert_eq!(few.next_cycle(), super::super::StepOutcome::Moved);
    let first = few.record().unwrap().cycle;
    assert!(few.history().has_forgotten(first - 1) && few.whole_record(first).unwrap().is_whole());
}

#[test]
fn a_branch_keeps_what_it_began_with() {
    let (mut random, mut both) = (Random(5), two("tour"));
    go_on(&mut random, &mut both, 300);
    let [_, few] = &mut both;
    few.go_to_stop(few.timeline().stops().start() + 10);
    let (mut branch, step) = (few.fork(), few.step());
    let expected = seen(&few.world_at(step));
    for _ in 0..1_200 {
        let input = random.input(few);
        few.apply(input).unwrap();
    }
    assert!(few.timeline().steps().start() > step && few.fork().forgotten_before().is_some());
    assert_eq!(seen(&branch.world_at(step)), expected);
    for _ in 0..1_200 {
        let input = random.input(&branch);
        branch.apply(input).unwrap();
    }
    assert_eq!(seen(&branch.world_at(step)), expected, "it forgets nothing itself");
    assert_eq!(seen(&few.fork().world_at(usize::MAX)), seen(few.world()));
}

#[test]
fn a_watch_that_is_set_late_begins_where_the_recording_does() {
    let (mut random, mut both) = (Random(11), two("tour"));
    go_on(&mut random, &mut both, 1_500);
    let values = both.each_mut().map(|session| {
        let add = |text: &str| Definition::parse_watch(text).unwrap();
        let texts = ["queue:active", "queue:unschedulable", "node:n-2 cpu", "pod:default/p-3"];
        let ids = session
            .change_breakpoints(|breakpoints| texts.map(|text| breakpoints.add(add(text), true)));
        let (recording, len) = (session.recording(), session.history().len());
        ids.map(|id| session.breakpoints().get(id).unwrap().value_after(&recording, len))
    });
    assert!(both[1].forgotten_before().is_some());
    assert_eq!(values[0], values[1]);
}
