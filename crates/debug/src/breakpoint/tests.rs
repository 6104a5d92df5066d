//! Breakpoints on the built-in stories: the same hits forward and backward, set before and
//! afterwards; and hits compared with evaluating each frame separately.

use super::list::Hit;
use super::variables::{Facts, NodeFacts, ScoreFacts, StatusFacts};
use super::*;
use crate::fork::Branches;
use crate::{ContinueOutcome, Position, Session, StopSearch};
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::{ExtensionPoint, FeatureGates};
use kubestep_framework::record::{CycleRecord, QueueName, VerdictId};
use kubestep_framework::resource::amount;
use kubestep_framework::status::{Code, Status};
use kubestep_source::Filter;
use kubestep_source::fixtures;

/// Stories that together reach every extension point.
const STORIES: &[&str] = &["tour", "held-at-permit", "preemption-budget", "gated"];

fn story(name: &str) -> Session {
    let cluster = fixtures::find(name).unwrap().cluster;
    let read = kubestep_source::read_text("test", cluster.into(), &Filter::default()).unwrap();
    let (features, registry) =
        (FeatureGates::default(), kubestep_scheduler_plugins::add_to(kubestep_plugins::registry()));
    let text = read.scheduler_config.as_ref().map(|found| found.text.as_str());
    let resolved = config::resolve(text, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&resolved, features, &registry).unwrap();
    kubestep_cluster::load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    Session::new(world)
}

/// One location of each kind and granularity.
const PLACES: &[&str] = &[
    "pod:*",
    "pod:default/web-* if attempts >= 1 && feasible > 0",
    "Filter",
    "Score every:2",
    "TaintToleration",
    "PreFilter/NodeResourcesFit from:2",
    "node:a-*",
    "Filter node:*-0 if verdict != 'Success'",
    "Filter/NodeResourcesFit if message.contains('cpu')",
    "Filter/NodeAffinity if verdict == 'Unschedulable' || verdict == 'UnschedulableAndUnresolvable'",
    "if verdict == 'Wait' || verdict == 'Error'",
    "if score > 60 && weighted >= 120",
    "if total > 300",
    "if node.free.cpu < 1500m && pod.requests.cpu > 0",
    "NodeResourcesFit if node.free.memory > 1Gi && raw > 0",
    "Score node:b-* if node.pods >= 1",
    "on:scheduled",
    "on:unschedulable NodeResourcesFit",
    "on:preemption",
    "on:nomination node:b-*",
    "on:permit-wait",
    "on:permit-timeout",
    "on:tie if ties > 1",
    "queue:unschedulable",
    "queue:backoff if event != ''",
    "-l app=web queue:in-flight",
    "if from == 'backoff'",
    "-l app",
];

const WATCHES: &[&str] = &[
    "node:b-0 cpu stop",
    "node:b-0 stop",
    "queue:active stop if value < before",
    "pod:default/web-0 stop",
];

fn set_all(session: &mut Session) {
    let known = session.plugin_names();
    session.change_breakpoints(|list| {
        for text in PLACES {
            list.add(Definition::parse_break(text, &known).unwrap(), true);
        }
        for text in WATCHES {
            list.add(Definition::parse_watch(text).unwrap(), true);
        }
    });
}

fn set(session: &mut Session, text: &str) -> u32 {
    let known = session.plugin_names();
    let definition = Definition::parse_break(text, &known).unwrap();
    session.change_breakpoints(|list| list.add(definition, true))
}

fn watch(session: &mut Session, text: &str) -> u32 {
    let definition = Definition::parse_watch(text).unwrap();
    session.change_breakpoints(|list| list.add(definition, true))
}

/// Runs a story through several timers. Returns the stops on the way; stops at the same moment
/// count as one.
fn run(session: &mut Session) -> Vec<Hit> {
    let mut hits = Vec::new();
    for _ in 0..4 {
        while let ContinueOutcome::Stopped(hit) = session.continue_on(|| true) {
            hits.push(hit);
        }
        let since = Moment::after(session.history().len());
        if session.advance_to_next_timer().is_none() {
            break;
        }
        // Time that has passed is over: who wants the stops in it asks for them.
        if let StopSearch::Found(hit) = session.stop_after(since, None, &mut || true) {
            session.stopped(hit);
            hits.push(hit);
        }
    }
    hits
}

fn moments(hits: &[Hit]) -> Vec<Moment> {
    hits.iter().map(|hit| hit.moment).collect()
}

fn all_forward(session: &mut Session) -> Vec<Hit> {
    let mut from = None;
    let mut hits = Vec::new();
    while let StopSearch::Found(hit) = session.stop_after(from, None, &mut || true) {
        from = Some(hit.moment);
        hits.push(hit);
    }
    hits
}

#[test]
fn set_before_or_afterwards_the_stops_are_the_same() {
    let mut total = 0;
    for of in STORIES.iter().copied() {
        let mut before = story(of);
        set_all(&mut before);
        let stops = run(&mut before);
        let mut afterwards = story(of);
        run(&mut afterwards);
        set_all(&mut afterwards);
        let found = all_forward(&mut afterwards);
        assert!(moments(&stops) == moments(&found), "{of}");
        let counts = |session: &Session| {
            session.breakpoints().items().iter().map(ListedBreakpoint::hits).collect::<Vec<_>>()
        };
        assert_eq!(counts(&before), counts(&afterwards), "{}", of);
        let problems = before.breakpoints().items().iter().filter_map(ListedBreakpoint::problem);
        assert_eq!(problems.count(), 0, "{}", of);
        total += stops.len();
    }
    assert!(total > 250, "{total}");
}

#[test]
fn backward_finds_what_forward_finds() {
    for of in STORIES.iter().copied() {
        let mut session = story(of);
        run(&mut session);
        set_all(&mut session);
        let forward = all_forward(&mut session);
        session.go_to_end();
        let mut backward = Vec::new();
        // Past the start of the last stop.
        let last = forward.last().unwrap();
        session.go_to_hit(last);
        backward.push(last.moment);
        while let ContinueOutcome::Stopped(hit) = session.continue_back(|| true) {
            backward.push(hit.moment);
        }
        backward.reverse();
        assert!(moments(&forward) == backward, "{of}");
        // From each hit, stepping leads to its neighbors.
        for pair in forward.windows(2).step_by(9) {
            session.go_to_hit(&pair[1]);
            assert_eq!(session.moment(), Some(pair[1].moment));
            assert_eq!(
                session.continue_back(|| true),
                ContinueOutcome::Stopped(pair_back(&session, pair))
            );
            let next = session.continue_on(|| true);
            let ContinueOutcome::Stopped(next) = next else { panic!("{next:?}") };
            assert_eq!(next.moment, pair[1].moment);
        }
    }
}

/// The hit that stepping back finds: of several at one moment any is right.
fn pair_back(session: &Session, pair: &[Hit]) -> Hit {
    assert_eq!(session.moment(), Some(pair[0].moment));
    let mut twin = session.clone();
    twin.go_to_hit(&pair[1]);
    let ContinueOutcome::Stopped(next) = twin.continue_back(|| true) else { panic!() };
    assert_eq!(next.moment, pair[0].moment);
    next
}

#[test]
fn every_breakpoint_counts_its_own_stops() {
    for text in PLACES {
        let mut session = story("tour");
        run(&mut session);
        let id = set(&mut session, text);
        let stops = all_forward(&mut session);
        let item = session.breakpoints().get(id).unwrap();
        match item.definition.hits {
            None => assert_eq!(item.hits(), stops.len() as u64, "{text}"),
            Some(hits) => {
                let meant = (1..=item.hits()).filter(|number| hits.counts(*number));
                let numbers: Vec<u64> = stops.iter().map(|hit| hit.number).collect();
                assert_eq!(numbers, meant.collect::<Vec<_>>(), "{text}");
            }
        }
    }
}

/// The facts of every node of a cycle, computed one by one without any shortcut.
fn facts_of_nodes<'a>(
    session: &'a Session,
    at: usize,
    record: &'a CycleRecord,
    text: &str,
) -> Vec<(Position, Facts<'a>)> {
    let ledger = session.recording().ledger;
    let mut all = Vec::new();
    let node = |id| {
        let name = record.nodes.name(id);
        Some(NodeFacts { name, amounts: ledger.after(name, at) })
    };
    for column in &record.filter.plugins {
        for id in record.filter.evaluated.iter() {
            let verdict = column.verdicts.get(*id).unwrap();
            let status = record.verdicts.get(verdict).unwrap_or(&Status::SUCCESS);
            let skipped = verdict == VerdictId::SKIPPED;
            let code = if skipped { Code::Skip } else { status.code() };
            let answer = StatusFacts {
                point: ExtensionPoint::Filter,
                plugin: column.plugin,
                code,
                reasons: status.reasons(),
            };
            let facts = Facts {
                answer: Some(answer),
                message_of_answer: true,
                node: node(*id),
                ..Facts::of_cycle(record)
            };
            all.push((
                Position::new(ExtensionPoint::Filter, Some(column.plugin), Some(*id)),
                facts,
            ));
        }
    }
    for column in record.score.plugins.iter().filter(|_| !text.contains("verdict")) {
        for (at, id) in record.feasible.iter().enumerate() {
            let score = ScoreFacts {
                raw: column.raw.get(at).unwrap(),
                score: column.normalized.get(at).unwrap(),
                weighted: column.weighted(at).unwrap(),
                total: record.score.totals.get(at).unwrap(),
            };
            let facts = Facts { score: Some(score), node: node(*id), ..Facts::of_cycle(record) };
            all.push((Position::new(ExtensionPoint::Score, Some(column.plugin), Some(*id)), facts));
        }
    }
    all
}

#[test]
fn shortcuts_change_nothing() {
    let texts = [
        "NodeResourcesFit if message.contains('memory') && node.free.cpu < 2",
        "NodeResourcesFit if verdict != 'Success' && node.free.cpu < 1500m",
        "TaintToleration if verdict != 'Success' && attempts > 0",
        "ImageLocality if score >= 0 && node.pods < 2",
        "NodeResourcesBalancedAllocation if raw > 70 && total > 200",
    ];
    let mut hits = 0;
    for of in STORIES.iter().copied() {
        for text in texts {
            let mut session = story(of);
            run(&mut session);
            set(&mut session, text);
            let found: Vec<_> =
                all_forward(&mut session).iter().map(|hit| (hit.entry(), hit.frame)).collect();
            let (plugin, condition) = text.split_once(" if ").unwrap();
            let condition = condition::Condition::parse(condition).unwrap();
            let mut expected = Vec::new();
            for (at, entry) in session.history().entries().iter().enumerate() {
                let Some(record) = entry.as_cycle() else { continue };
                let facts = facts_of_nodes(&session, at, record, text).into_iter();
                let of_plugin = facts.filter(|(frame, _)| frame.plugin.unwrap() == *plugin);
                let holding = of_plugin.filter(|(_, facts)| condition.holds(facts) == Ok(true));
                expected
                    .extend(holding.map(|(frame, _)| (crate::trace::EntryId(at as u32), frame)));
            }
            assert!(found == expected, "{of} {text}");
            hits += found.len();
        }
    }
    assert!(hits > 50, "{hits}");
}

#[test]
fn watches_follow_the_cluster() {
    for of in STORIES.iter().copied() {
        let mut session = story(of);
        let queues = [QueueName::Active, QueueName::Backoff, QueueName::Unschedulable];
        let ids = queues.map(|queue| watch(&mut session, &format!("queue:{}", queue.as_str())));
        let nodes: Vec<_> =
            session.world().scheduler().cache().nodes().map(|node| node.name).collect();
        let free: Vec<_> =
            nodes.iter().map(|node| watch(&mut session, &format!("node:{node} cpu"))).collect();
        let names: Vec<_> = session.world().api().objects().pods.keys().copied().collect();
        let pods: Vec<_> =
            names.iter().map(|pod| watch(&mut session, &format!("pod:{pod}"))).collect();
        run(&mut session);
        let loaded = session.world_at(0);
        for step in 0..session.timeline().steps().end() {
            let world = session.world_at(step);
            let len = session.timeline().steps().get(step).unwrap().entries.end as usize;
            let value = |id: u32| {
                let item = session.breakpoints().get(id).unwrap();
                item.value_after(&session.recording(), len).unwrap().to_string()
            };
            let queue = world.scheduler().queue();
            let lengths =
                [queue.active().len(), queue.backoff().len(), queue.unschedulable().len()];
            assert_eq!(ids.map(value), lengths.map(|n| n.to_string()), "{} {step}", of);
            for (name, id) in nodes.iter().zip(&free) {
                let info = world.scheduler().cache().nodes().find(|n| n.name == *name).unwrap();
                let milli = info.allocatable.milli_cpu - info.requested.milli_cpu;
                let quantity = amount::cpu(milli);
                assert_eq!(value(*id), quantity, "{} {step} {name}", of);
            }
            for (key, id) in names.iter().zip(&pods) {
                let node = |world: &World| {
                    let pod = world.api().objects().pods.get(key).cloned();
                    pod.map(|pod| pod.spec.node_name).filter(|node| !node.is_empty())
                };
                if node(&loaded).is_some() {
                    continue;
                }
                let waits = world.scheduler().waiting().iter().find(|pod| pod.pod().key() == *key);
                let expected = match (node(&world), waits) {
                    (Some(node), _) => format!("on {node}"),
                    (None, Some(waiting)) => format!("waits for {}", waiting.node()),
                    (None, None) => queue.queue_of(*key).as_str().to_owned(),
                };
                assert_eq!(value(*id), expected, "{of} {step} {key}");
            }
        }
    }
}

fn counts(session: &Session) -> Vec<u64> {
    session.breakpoints().items().iter().map(ListedBreakpoint::hits).collect()
}

/// The counts of the same breakpoints added again, without earlier state.
fn counts_anew(session: &Session) -> Vec<u64> {
    let mut plain = session.clone();
    plain.change_breakpoints(Breakpoints::clear);
    set_all(&mut plain);
    counts(&plain)
}

#[test]
fn a_cut_recording_has_the_hits_that_are_in_it() {
    for story_of in STORIES {
        let mut session = story(story_of);
        set_all(&mut session);
        run(&mut session);
        let hits = counts(&session);
        for stop in (1..session.timeline().stops().end()).rev() {
            let mut fork = session.clone();
            fork.go_to_stop(stop);
            fork.cut();
            assert_eq!(counts(&fork), counts_anew(&fork), "{story_of} {}", fork.history().len());
        }
        assert_eq!(hits, counts(&session), "{story_of}");
    }
}

#[test]
fn another_branch_has_the_hits_that_are_in_it() {
    let mut session = story("tour");
    set_all(&mut session);
    run(&mut session);
    let mut branches = Branches::default();
    session.go_to_stop(2);
    branches.fork(&mut session, Some("tried")).unwrap();
    let id = set(&mut session, "Filter/NodeName");
    session.change_breakpoints(|list| list.replace(1, list.items()[3].definition.clone()));
    session.change_breakpoints(|list| list.remove(2));
    session.change_breakpoints(|list| list.set_enabled(3, false));
    session.run_until_idle(9, |_| false);
    for name in ["original", "tried", "original"] {
        let there = session.breakpoints().clone();
        branches.switch(&mut session, name).unwrap();
        let all = session.breakpoints().items().iter();
        let mut plain = session.clone();
        plain.change_breakpoints(Breakpoints::clear);
        let mut hits = Vec::new();
        for (item, theirs) in all.zip(there.items()) {
            assert_eq!((item.id, item.enabled), (theirs.id, theirs.enabled));
            assert_eq!(item.definition, theirs.definition);
            plain.change_breakpoints(|list| list.add(item.definition.clone(), true));
            hits.push(item.hits());
        }
        assert_eq!(hits, counts(&plain), "{name}");
        assert!(session.breakpoints().get(id).is_some() && session.breakpoints().get(2).is_none());
    }
}

fn stop_words(session: &mut Session, text: &str) -> String {
    set(session, text);
    match session.continue_on(|| true) {
        ContinueOutcome::Stopped(hit) => {
            message::of_hit(&session.recording(), session.breakpoints(), &hit)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_hit_says_where_it_is() {
    let words = |text| stop_words(&mut story("tour"), text);
    assert_eq!(
        words("Filter/TaintToleration if verdict != 'Success'"),
        "breakpoint 1 (Filter/TaintToleration if verdict != 'Success'), hit 1: cycle 1 of \
         default/payment, Filter ▸ TaintToleration ▸ gpu-0: node(s) had untolerated taint(s)"
    );
    assert!(words("on:preemption").ends_with("PostFilter ▸ DefaultPreemption: Success"));
    assert!(words("queue:unschedulable").contains("moved from"));
    assert!(
        words("on:permit-wait").contains("Permit ▸ ManualPermit: Wait: held for a manual decision")
    );
}

#[test]
fn one_shots_and_hit_counts() {
    let mut session = story("tour");
    let id = set(&mut session, "pod:* once");
    assert!(matches!(session.continue_on(|| true), ContinueOutcome::Stopped(_)));
    assert_eq!(session.record().unwrap().cycle, 1);
    assert!(!session.breakpoints().get(id).unwrap().enabled);
    set(&mut session, "pod:* at:3");
    assert!(matches!(session.continue_on(|| true), ContinueOutcome::Stopped(_)));
    assert_eq!(session.record().unwrap().cycle, 3);
    assert_eq!(session.continue_on(|| true), ContinueOutcome::Idle);
    assert!(matches!(session.continue_back(|| true), ContinueOutcome::Stopped(_)));
    assert_eq!(session.record().unwrap().cycle, 3);
    assert_eq!(session.continue_back(|| true), ContinueOutcome::AtStart);
    assert_eq!(session.stop_index(), 0);
}

#[test]
fn a_permit_timeout_stops_when_the_time_is_over() {
    let mut session = story("held-at-permit");
    let id = set(&mut session, "on:permit-timeout");
    assert_eq!(session.continue_on(|| true), ContinueOutcome::Idle);
    let waiting = session.world().scheduler().waiting().len() as u64;
    assert!(waiting > 0);
    let due = session.world().scheduler().next_permit_timeout().unwrap();
    session.advance(due.0 - session.world().now().0);
    assert!(session.breakpoints().get(id).unwrap().hits() >= waiting);
    session.go_to_stop(0);
    assert!(matches!(session.continue_on(|| true), ContinueOutcome::Stopped(_)));
    let entry = session.position().entry.unwrap();
    let moved = session.history().get(entry).unwrap();
    assert_ne!(moved.time(), session.history().cycle(1).unwrap().time);
}

#[test]
fn logs_tell_of_the_time_that_passed() {
    let mut session = story("tour");
    let known = session.plugin_names();
    let log = Definition::parse_break("on:scheduled log", &known).unwrap();
    session.change_breakpoints(|list| list.add(log, true));
    assert_eq!(session.continue_on(|| true), ContinueOutcome::Idle);
    let end = Moment::after(session.history().len());
    let all = session.logged(None, end, 100);
    assert_eq!(all.len(), 4);
    let middle = Some(all[1].moment);
    assert_eq!(session.logged(None, middle, 100).len(), 2);
    assert_eq!(session.logged(middle, end, 100).len(), 2);
    assert_eq!(session.logged(None, end, 2).len(), 2);
}

#[test]
fn a_condition_that_fails_while_running_says_so() {
    let mut session = story("tour");
    let id = set(&mut session, "if 10 / (cycle - 1) > 3");
    session.continue_on(|| true);
    let problem = session.breakpoints().get(id).unwrap().problem().unwrap();
    assert!(problem.to_lowercase().contains("zero"), "{problem}");
}

#[test]
fn cycles_left_out_are_run_again_to_look_at_them() {
    let mut whole = story("tour");
    run(&mut whole);
    let mut thin = whole.clone();
    thin.set_history_memory(0);
    let left_out =
        |session: &Session| session.history().cycles().filter(|record| !record.is_whole()).count();
    set(&mut whole, "NodeResourcesFit if verdict != 'Success' && node.free.cpu < 2");
    let id = set(&mut thin, "NodeResourcesFit if verdict != 'Success' && node.free.cpu < 2");
    let unseen = thin.breakpoints().get(id).unwrap().unseen();
    assert!(unseen > 0 && unseen == left_out(&thin));
    let (all, again) = (all_forward(&mut whole), all_forward(&mut thin));
    assert!(moments(&all) == moments(&again) && !all.is_empty());
    assert_eq!(thin.breakpoints().get(id).unwrap().unseen(), 0);
}

#[test]
fn a_look_at_a_stretch_runs_only_that_stretch_again() {
    let mut thin = story("tour");
    run(&mut thin);
    while thin.history().cycle_count() < 120 {
        thin.run_until_idle(120, |_| false);
        assert!(thin.advance_to_next_timer().is_some());
    }
    thin.set_history_memory(0);
    let id = set(&mut thin, "NodeResourcesFit if verdict == 'Wait'");
    let unseen = |session: &Session| session.breakpoints().get(id).unwrap().unseen();
    let all = unseen(&thin);
    assert!(all > 100, "{all}");
    assert!(thin.go_to_cycle(60));
    let (from, to) = (thin.moment(), {
        thin.go_to_cycle(61);
        thin.moment()
    });
    assert_eq!(thin.stop_after(from, to, &mut || true), StopSearch::None);
    // To make a cycle whole, some cycles before it are run again too.
    assert!(unseen(&thin) < all && unseen(&thin) >= all - 40, "{} of {all}", unseen(&thin));
    let left = unseen(&thin);
    assert_eq!(thin.stop_before(to, from, &mut || true), StopSearch::None);
    assert_eq!(unseen(&thin), left);
    let end = Moment::after(thin.history().len());
    assert_eq!(thin.unseen_until(end), left);
    assert_eq!(thin.stop_before(end, None, &mut || true), StopSearch::None);
    assert_eq!((unseen(&thin), thin.unseen_until(end)), (0, 0));
}
