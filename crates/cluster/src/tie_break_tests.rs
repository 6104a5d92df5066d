//! Tie breaking, from the setting to the chosen node.

use crate::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::trace;
use kubestep_framework::record::CycleRecord;
use kubestep_framework::testing::{PodBuilder, node, pod};
use kubestep_framework::tie_break::TieBreak;

/// Preemption evaluates only one candidate.
const ONE_CANDIDATE: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}
";

/// The nodes n1, n2, … with 4 CPUs, each with a pod that requests the given cpu.
fn world(tie_break: TieBreak, used: &[&str]) -> World {
    let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(Some(ONE_CANDIDATE), &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.scheduler_mut().set_tie_break(tie_break);
    for (at, cpu) in used.iter().enumerate() {
        let name = format!("n{}", at + 1);
        world.create(node(&name).into());
        world.create(pod(&format!("on-{name}")).requests("cpu", cpu).on(&name).into());
    }
    world
}

/// Schedules one pod and returns the record of its cycle.
fn first_cycle(tie_break: TieBreak, used: &[&str]) -> CycleRecord {
    let mut world = world(tie_break, used);
    world.create(pod("new").priority(9).requests("cpu", "1").into());
    (*world.step().unwrap()).clone()
}

#[test]
fn the_setting_picks_among_the_best() {
    let taken = |tie_break| {
        let record = first_cycle(tie_break, &["3", "3", "1", "3", "1"]);
        let tied = record.tied_nodes();
        let tie: Vec<_> = tied.iter().map(|id| record.nodes.name(*id).text()).collect();
        assert_eq!(tie, ["n3", "n5"]);
        assert_eq!(record.tie_break, tie_break);
        record.node.unwrap()
    };
    assert_eq!(taken(TieBreak::Upstream), "n5");
    assert_eq!(taken(TieBreak::First), "n3");
    assert_eq!(taken(TieBreak::Seed(1)), "n5");
    assert_eq!(taken(TieBreak::Seed(2)), "n3");
}

#[test]
fn each_cycle_is_picked_for_again() {
    let taken = |tie_break| {
        let mut world = world(tie_break, &["1", "1", "1", "1"]);
        ["a", "b", "c", "d"].map(|name| {
            world.create(pod(name).requests("cpu", "1").into());
            world.step().unwrap().node.unwrap().to_string()
        })
    };
    assert_eq!(taken(TieBreak::First), ["n1", "n2", "n3", "n4"]);
    // From seed 1: 1 of 4, 1 of 3, 0 of 2.
    assert_eq!(taken(TieBreak::Seed(1)), ["n2", "n3", "n1", "n4"]);
    assert_eq!(taken(TieBreak::Seed(1)), taken(TieBreak::Seed(1)));
}

#[test]
fn preemption_begins_where_the_seed_says() {
    let taken = |tie_break| {
        let record = first_cycle(tie_break, &["4", "4", "4"]);
        let candidates: Vec<_> = record.candidates.iter().map(|candidate| candidate.node).collect();
        assert_eq!(candidates, Vec::from_iter(record.nominated_node));
        record.nominated_node.unwrap()
    };
    assert_eq!(taken(TieBreak::Upstream), "n1");
    assert_eq!(taken(TieBreak::First), "n1");
    // Seed 2 gives 1 of 3, seed 1 gives 2.
    assert_eq!(taken(TieBreak::Seed(2)), "n2");
    assert_eq!(taken(TieBreak::Seed(1)), "n3");
}

#[test]
fn a_trace_names_the_setting_where_it_mattered() {
    let used = ["3", "3", "1", "3", "1"];
    let named = |tie_break, used: &[&str]| {
        let record = first_cycle(tie_break, used);
        let (full, summary) = (trace::json::cycle(&record), trace::json::summary(&record));
        assert_eq!(full.get("tieBreak"), summary.get("tieBreak"));
        full.get("tieBreak").map(ToString::to_string)
    };
    assert_eq!(named(TieBreak::Seed(2), &used).as_deref(), Some("\"seed:2\""));
    assert_eq!(named(TieBreak::First, &used).as_deref(), Some("\"first\""));
    assert_eq!(named(TieBreak::Upstream, &used), None);
    assert_eq!(named(TieBreak::Seed(2), &["3", "1"]), None);
}
