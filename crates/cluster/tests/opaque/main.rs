//! Certainty holds: a decision that is certain without a plugin is the same with the plugin, and
//! one that is uncertain changes with some plugin.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

mod acts;
mod clusters;

use std::collections::BTreeMap;
use std::sync::Arc;

use clusters::{PLUGINS, configuration, decision, fill, world};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, PluginDescriptor};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{CycleContext, Plugin};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::record::certainty::Uncertainty;
use kubestep_framework::registry::{Entry, Registry};
use kubestep_framework::status::Status;
use kubestep_framework::testing::{PodBuilder, node, pod};
use kubestep_framework::tie_break::TieBreak;

/// The in-tree plugins but one.
fn without(plugin: &str) -> Registry {
    // The registry does not give its entries away, so they are built by it.
    let all = Arc::new(kubestep_plugins::registry());
    let descriptors = all.descriptors().into_iter().filter(|known| known.name != plugin);
    let entry = |known: PluginDescriptor| {
        let all = all.clone();
        Entry::new(known, move |args, gates| {
            let built = all.build(known.name.into(), args, gates);
            built.map_err(|error| error.to_string().into())
        })
    };
    Registry::of(descriptors.map(entry)).unwrap()
}

#[test]
fn certain_decisions_hold_with_each_in_tree_plugin_in_the_place_of_the_opaque_one() {
    let (mut certain, mut changed) = (BTreeMap::new(), BTreeMap::new());
    let all = kubestep_plugins::registry();
    for opaque in all.descriptors().iter().filter(|plugin| PLUGINS.contains(&plugin.name)) {
        let blind = without(opaque.name);
        for seed in 0..80 {
            let text = configuration(opaque, 1 + (seed % 4) as i32, PLUGINS);
            let mut worlds = [world(&text, &blind), world(&text, &all)];
            for world in &mut worlds {
                if seed % 5 == 0 {
                    world.scheduler_mut().set_tie_break(TieBreak::Seed(seed));
                }
                fill(world, seed * 1_000 + 7);
            }
            let [blind, seeing] = &mut worlds;
            while let (Some(one), Some(other)) = (blind.step(), seeing.step()) {
                let certainty = one.certainty().unwrap();
                let same = decision(&one) == decision(&other);
                let at = format!("{} opaque, seed {seed}, {certainty:?}", opaque.name);
                assert!(same || !certainty.is_certain(), "{at}: {one:?} {other:?}");
                *certain.entry(opaque.name).or_insert(0) += usize::from(certainty.is_certain());
                *changed.entry(opaque.name).or_insert(0) += usize::from(!same);
                // From here on the states differ, or may: who rejected a pod decides on events.
                if !same || one.message != other.message || one.attempt > 1 {
                    break;
                }
            }
        }
    }
    assert_eq!(certain.len(), PLUGINS.len());
    // It can gate every pod that is placed, and make room for every other one.
    assert_eq!(certain.remove("DefaultPreemption"), Some(0));
    for (plugin, number) in certain {
        assert!(number > 0, "no decision without {plugin} was certain");
    }
    let idle = ["NodePorts", "ImageLocality"];
    for (plugin, number) in changed.iter().filter(|(plugin, _)| !idle.contains(plugin)) {
        assert!(*number > 0, "{plugin} changed no decision");
    }
}

/// A plugin with given scores and rejections.
#[derive(Clone, Default)]
struct Judge {
    scores: BTreeMap<Name, i64>,
    rejects: Vec<Name>,
}

const JUDGE: &str = "Judge";

impl Plugin for Judge {
    fn name(&self) -> Symbol {
        JUDGE.into()
    }
    fn filter(&self, _: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
        match self.rejects.contains(&node.name) {
            true => Status::unschedulable("judged"),
            false => Status::SUCCESS,
        }
    }
    fn score(&self, _: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        Ok(self.scores.get(&node.name).copied().unwrap_or(0))
    }
}

/// The first cycle, with the judge or with an opaque plugin of its name.
fn first_cycle(seed: u64, points: &[ExtensionPoint], judge: Option<Judge>) -> Arc<CycleRecord> {
    let plugin = PluginDescriptor { signs: false, ..PluginDescriptor::new(JUDGE, points) };
    let mut registry = kubestep_plugins::registry();
    if let Some(judge) = judge {
        registry.register(Entry::new(plugin, move |_, _| Ok(Arc::new(judge.clone())))).unwrap();
    }
    let weight = 1 + (seed % 3) as i32;
    // Few plugins, so that scores do not depend on all nodes in every case.
    let known =
        if seed.is_multiple_of(2) { PLUGINS } else { &["NodeResourcesFit", "NodeAffinity"] };
    let mut world = world(&configuration(&plugin, weight, known), &registry);
    fill(&mut world, seed);
    world.step().unwrap()
}

#[test]
fn a_lead_is_exactly_what_a_scorer_needs() {
    const SCORE: &[ExtensionPoint] = &[ExtensionPoint::Score];
    let (mut in_reach, mut out_of_reach) = (0, 0);
    for seed in 0..250 {
        let record = first_cycle(seed, SCORE, None);
        let certainty = record.certainty().unwrap();
        let choice = |favoured: Name, points: i64| {
            let scores = BTreeMap::from([(favoured, points)]);
            first_cycle(seed, SCORE, Some(Judge { scores, ..Judge::default() })).node
        };
        let Some(lead) = &certainty.lead else {
            assert!(certainty.is_certain());
            continue;
        };
        assert_eq!(certainty.is_certain(), lead.in_reach == 0);
        let changes = choice(lead.rival, 100) != record.node;
        assert_eq!(changes, lead.in_reach > 0, "seed {seed}: {lead:?}");
        let allowed = lead.allowed_points().unwrap();
        assert_eq!(choice(lead.rival, allowed), record.node, "seed {seed}: {lead:?}");
        if allowed < 100 {
            assert_ne!(choice(lead.rival, allowed + 1), record.node, "seed {seed}: {lead:?}");
        }
        // No other node is in reach where the strongest rival is not, and the count is right.
        let others = record.feasible.iter().map(|id| record.nodes.name(*id));
        let others = others.filter(|name| Some(*name) != record.node);
        let reached = others.filter(|name| choice(*name, 100) != record.node).count();
        assert_eq!(reached, lead.in_reach, "seed {seed}: {lead:?}");
        in_reach += usize::from(lead.in_reach > 0);
        out_of_reach += usize::from(lead.in_reach == 0);
    }
    assert!(in_reach > 20 && out_of_reach > 5, "{in_reach} in reach, {out_of_reach} not");
}

#[test]
fn a_rejection_of_other_nodes_matters_only_where_it_is_said() {
    const FILTER: &[ExtensionPoint] = &[ExtensionPoint::Filter];
    let (mut alone, mut moved) = (0, 0);
    for seed in 0..250 {
        let record = first_cycle(seed, FILTER, None);
        let certainty = record.certainty().unwrap();
        let choice = |rejects: Vec<Name>| {
            let judge = Judge { rejects, ..Judge::default() };
            first_cycle(seed, FILTER, Some(judge)).node
        };
        let names: Vec<Name> = record.feasible.iter().map(|id| record.nodes.name(*id)).collect();
        let Some(Uncertainty::Reject { node, others, .. }) = certainty.uncertainties.first() else {
            assert_eq!(choice(names), record.node, "seed {seed}: {certainty:?}");
            continue;
        };
        assert_ne!(choice(vec![*node]), record.node, "seed {seed}");
        let rest: Vec<Name> = names.into_iter().filter(|name| name != node).collect();
        for kept in 0..=rest.len() {
            let rejects = rest.iter().enumerate().filter(|(at, _)| *at != kept);
            let choice = choice(rejects.map(|(_, name)| *name).collect());
            assert!(*others || choice == record.node, "seed {seed}: {certainty:?}");
            moved += usize::from(choice != record.node);
        }
        alone += usize::from(!others);
    }
    assert!(alone > 20 && moved > 0, "{alone} alone, {moved} moved");
}

#[test]
fn an_opaque_plugin_changes_nothing() {
    let all: Vec<ExtensionPoint> = ExtensionPoint::ALL
        .into_iter()
        .filter(|point| !matches!(point, ExtensionPoint::QueueSort | ExtensionPoint::Bind))
        .collect();
    for seed in 0..100 {
        let with = first_cycle(seed, &all, None);
        let without = first_cycle(seed, &[], None);
        assert_eq!(decision(&with), decision(&without), "seed {seed}");
        assert_eq!(with.message, without.message, "seed {seed}");
        assert_eq!(with.score.totals, without.score.totals, "seed {seed}");
        let columns = with.filter.plugins.iter().filter(|column| column.plugin == JUDGE);
        assert_eq!(columns.count(), usize::from(!with.filter.plugins.is_empty()));
        assert!(!with.certainty().unwrap().is_certain() || with.node.is_none());
    }
}

#[test]
fn an_opaque_plugin_that_sorts_or_binds_has_a_stand_in() {
    let plugin = PluginDescriptor::new(JUDGE, &[ExtensionPoint::QueueSort, ExtensionPoint::Bind]);
    let text = configuration(&plugin, 1, &[]);
    let text = text.replace("{name: PrioritySort}, ", "").replace("{name: DefaultBinder}", "");
    let mut world = world(&text, &kubestep_plugins::registry());
    world.create(node("n").into());
    for (name, priority) in [("low", 1), ("high", 2)] {
        world.create(pod(name).priority(priority).into());
    }
    let first = world.step().unwrap();
    assert_eq!(decision(&first), ("high".into(), Some("n".into()), None));
    let certainty = first.certainty().unwrap();
    let kinds: Vec<&str> = certainty.uncertainties.iter().map(Uncertainty::kind).collect();
    assert_eq!(kinds, ["order", "hold"]);
    let second = world.step().unwrap();
    let certainty = second.certainty().unwrap();
    let kinds: Vec<&str> = certainty.uncertainties.iter().map(Uncertainty::kind).collect();
    assert_eq!(kinds, ["hold"], "no other pod is active");
}
