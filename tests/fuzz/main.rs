//! Random clusters, each run in two ways that must have the same result.
//!
//! Decisions must not depend on threads, on the order in which unrelated objects arrive, on what is
//! recorded, on copies, or on caches.
//!
//! - `KUBESTEP_FUZZ_SEEDS`: `100` for seeds 0 to 99, `17..18` for one.

mod case;
#[path = "../why/explained.rs"]
mod explained;
mod gates;
mod objects;
mod random;
mod run;
#[path = "../why/scored.rs"]
mod scored;
mod time;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kubestep_cluster::World;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::pod_index::{ClassPods, PodIndex};
use serde_json::Value;

use case::{Case, Step};
use random::Random;

/// The seeds to run: those of the environment variable, or the first few.
fn seeds(few: u64) -> Range<u64> {
    let Ok(text) = std::env::var("KUBESTEP_FUZZ_SEEDS") else { return 0..few };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)),
        None => Some(0).zip(number(&text)),
    };
    let seeds = range.map_or(0..0, |(from, to)| from..to);
    assert!(!seeds.is_empty(), "KUBESTEP_FUZZ_SEEDS={text} names no seed");
    seeds
}

/// The failures, with how to reproduce them.
fn failures(
    test: &str,
    seeds: Range<u64>,
    property: impl Fn(u64) -> Result<(), String>,
) -> Vec<String> {
    let of_seed = |seed: u64| {
        let text = property(seed).err()?;
        let again =
            format!("KUBESTEP_FUZZ_SEEDS={seed}..{} cargo test --test fuzz {test}", seed + 1);
        Some(format!("seed {seed}: {text}\n    again: {again}"))
    };
    seeds.filter_map(of_seed).collect()
}

fn none(failures: Vec<String>) {
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn threads() {
    none(failures("threads", seeds(2), |seed| {
        let case = Case::large(seed);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|error| error.to_string())?;
            pool.install(|| run::take_all(&mut case.world()?, &case.steps))
        };
        let one = on(1)?;
        run::compare(&one, &on(2)?)?;
        run::compare(&one, &on(4)?)
    }));
}

#[test]
fn order_of_arrival() {
    none(failures("order_of_arrival", seeds(16), |seed| {
        for case in Case::both(seed) {
            let mut shuffled = case.shuffled_world(&mut Random::new(!seed))?;
            let first = run::take_all(&mut case.world()?, &case.steps)?;
            run::compare(&first, &run::take_all(&mut shuffled, &case.steps)?)?;
        }
        Ok(())
    }));
}

#[test]
fn recording() {
    none(failures("recording", seeds(16), |seed| {
        for case in Case::both(seed) {
            let drained = drained(&mut case.world()?, &case.steps)?;
            run::compare(&kept(&mut case.world()?, &case.steps)?, &drained)?;
        }
        Ok(())
    }));
}

/// All records are taken after each step and dropped at once.
fn drained(world: &mut World, steps: &[Step]) -> Result<Vec<Value>, String> {
    let mut all = Vec::new();
    for step in steps {
        all.push(run::take(world, step)?);
        let scheduler = world.scheduler_mut();
        scheduler.take_finished();
        scheduler.queue_mut().drain_moves();
        scheduler.queue_mut().drain_hints();
        world.api_mut().take_events();
        world.api_mut().take_deleted_pods();
    }
    Ok(all)
}

/// No records are taken until the last step.
fn kept(world: &mut World, steps: &[Step]) -> Result<Vec<Value>, String> {
    let mut moments: Vec<(World, Vec<Arc<CycleRecord>>)> = Vec::new();
    for step in steps {
        let cycles = run::act(world, step)?;
        moments.push((world.clone(), cycles));
    }
    Ok(moments.iter().map(|(world, cycles)| run::seen(world, cycles)).collect())
}

#[test]
fn copies() {
    none(failures("copies", seeds(16), |seed| {
        let [small, gated] = Case::both(seed);
        let [other, _] = Case::both(seed + 1_000_000);
        copied(&small, &other)?;
        copied(&gated, &other)
    }));
}

/// A copy behaves like the original, and the original is not affected by it.
fn copied(case: &Case, other: &Case) -> Result<(), String> {
    let first = run::take_all(&mut case.world()?, &case.steps)?;
    let mut world = case.world()?;
    let mut copies = Vec::new();
    let mut again = Vec::new();
    for (number, step) in case.steps.iter().enumerate() {
        if number % 7 == 3 {
            copies.push((number, world.clone()));
        }
        if number % 11 == 5 {
            // Another copy diverges; this must not affect the original.
            run::take_all(&mut world.clone(), &other.steps)?;
        }
        again.push(run::take(&mut world, step)?);
    }
    run::compare(&first, &again)?;
    for (number, mut copy) in copies {
        let rest = run::take_all(&mut copy, &case.steps[number..])?;
        let result = run::compare(&first[number..], &rest);
        result.map_err(|text| format!("from the copy before step {number}: {text}"))?;
    }
    Ok(())
}

#[test]
fn time_travel() {
    none(failures("time_travel", seeds(16), time::comes_back));
}

#[test]
fn kept_answers() {
    let forgetful = |case: &Case| {
        let mut world = case.world()?;
        let take = |step: &Step| {
            let Step::Run(cycles) = step else { return run::take(&mut world, step) };
            let mut records = Vec::new();
            for _ in 0..*cycles {
                world.scheduler_mut().clear_answer_cache();
                records.extend(world.step());
            }
            Ok(run::seen(&world, &records))
        };
        case.steps.iter().map(take).collect::<Result<Vec<_>, String>>()
    };
    none(failures("kept_answers", seeds(24), |seed| {
        for case in Case::both(seed).into_iter().chain([Case::crowded(seed)]) {
            run::compare(&forgetful(&case)?, &run::take_all(&mut case.world()?, &case.steps)?)?;
        }
        Ok(())
    }));
}

#[test]
fn rejections_are_explained() {
    none(failures("rejections_are_explained", seeds(24), |seed| {
        let case = Case::small(seed);
        let mut world = case.world()?;
        for (number, step) in case.steps.iter().enumerate() {
            let Step::Run(cycles) = step else {
                run::act(&mut world, step)?;
                continue;
            };
            for _ in 0..*cycles {
                let before = world.clone();
                let Some(record) = world.step() else { break };
                let result = explained::compare(&before, &record);
                let result = result.and_then(|()| scored::compare(&before, &record));
                result.map_err(|text| format!("step {number}: {text}"))?;
            }
        }
        Ok(())
    }));
}

#[test]
fn pod_index() {
    none(failures("pod_index", seeds(16), |seed| {
        Case::both(seed).iter().try_for_each(|case| {
            let mut world = case.world()?;
            case.steps.iter().enumerate().try_for_each(|(number, step)| {
                run::act(&mut world, step)?;
                is_current(world.scheduler().snapshot())
                    .map_err(|text| format!("step {number}: {text}"))
            })
        })
    }));
}

/// Whether the incrementally updated indexes equal those computed from all nodes.
fn is_current(snapshot: &Snapshot) -> Result<(), String> {
    let rebuilt = PodIndex::of(snapshot.iter().map(|node| &**node));
    if counts(snapshot.pods()) != counts(&rebuilt) {
        return Err(described(snapshot, &rebuilt));
    }
    let with = |has: fn(&NodeInfo) -> bool| -> Vec<NodeId> {
        snapshot.iter().filter(|node| has(node)).map(|node| node.id).collect()
    };
    let with_affinity = with(|node| !node.pods_with_affinity.is_empty());
    let listed: Vec<NodeId> = snapshot.with_affinity().map(|node| node.id).collect();
    let with_required = with(|node| !node.pods_with_required_anti_affinity.is_empty());
    let repelling: Vec<NodeId> =
        snapshot.with_required_anti_affinity().map(|node| node.id).collect();
    let unused = snapshot.iter().flat_map(|node| node.pvc_ref_counts.keys());
    let unused: Vec<_> = unused.filter(|claim| !snapshot.is_claim_used(**claim)).collect();
    match (with_affinity == listed, with_required == repelling, unused.is_empty()) {
        (true, true, true) => Ok(()),
        _ => Err(format!("{listed:?} {repelling:?} or {unused:?} are out of date")),
    }
}

/// The counts of an index, by a text for each class.
fn counts(index: &PodIndex) -> BTreeMap<String, BTreeMap<NodeId, u32>> {
    let entry = |list: &str, pods: &ClassPods| {
        (format!("{list} {:?}", pods.class), pods.nodes.iter().copied().collect())
    };
    let all = index.classes().map(|pods| entry("all", pods));
    let with_affinity = index.with_affinity().map(|pods| entry("with affinity", pods));
    let repelling = index.with_required_anti_affinity().map(|pods| entry("repelling", pods));
    all.chain(with_affinity).chain(repelling).collect()
}

fn described(snapshot: &Snapshot, rebuilt: &PodIndex) -> String {
    format!("{:?} should be {:?}", counts(snapshot.pods()), counts(rebuilt))
}

#[test]
fn cases_are_worth_their_time() {
    let mut scheduled = 0;
    let mut rejected = 0;
    let mut groups = 0;
    for case in (0..8).flat_map(Case::both) {
        let mut world = case.world().unwrap();
        let seen = run::take_all(&mut world, &case.steps).unwrap();
        let text = serde_json::to_string(&seen).unwrap();
        scheduled += text.matches("\"result\":\"Scheduled\"").count();
        rejected += text.matches("\"result\":\"Unschedulable\"").count();
        let pods = world.api().objects().pods.values();
        let bound = pods.filter(|pod| !pod.spec.node_name.is_empty());
        groups += bound.filter(|pod| pod.spec.scheduling_group.is_some()).count();
    }
    assert!(scheduled > 40 && rejected > 20, "{scheduled} scheduled, {rejected} rejected");
    assert!(groups > 5, "{groups} members of groups are bound");
    let preempting = |seed| {
        let case = Case::crowded(seed);
        let seen = run::take_all(&mut case.world().unwrap(), &case.steps).unwrap();
        serde_json::to_string(&seen).unwrap().matches("\"nominatedNode\":\"").count()
    };
    let preemptions: usize = (0..8).map(preempting).sum();
    assert!(preemptions > 40, "{preemptions} preemptions");
}
