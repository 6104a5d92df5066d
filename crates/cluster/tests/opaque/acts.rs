//! What a plugin of another's may do at each extension point, against what certainty says of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::clusters::{Numbers, PLUGINS, configuration, crowd, decision, fill, world};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_config::ExtensionPoint::{
    self, Bind, Filter, Permit, PostFilter, PreBind, PreFilter, Reserve, Score,
};
use kubestep_config::PluginDescriptor;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{
    BindContext, CycleContext, PermitAnswer, Plugin, PostFilterAnswer, PostFilterContext,
    PreFilterAnswer,
};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::record::certainty::{Certainty, Uncertainty};
use kubestep_framework::registry::Entry;
use kubestep_framework::status::Status;

const ACTOR: &str = "Actor";
/// The extension points at which it acts.
const POINTS: &[ExtensionPoint] =
    &[PreFilter, Filter, PostFilter, Score, Reserve, Permit, PreBind, Bind];

/// What it does in one cycle; nothing by default.
#[derive(Clone, Default, Debug)]
struct Acts {
    /// The points at which it rejects the pod, and whether preemption could help.
    rejects: Vec<(ExtensionPoint, bool)>,
    /// The nodes that PreFilter leaves.
    only: Option<Vec<Name>>,
    /// The nodes that Filter rejects, and whether preemption could help there.
    nodes: BTreeMap<Name, bool>,
    scores: BTreeMap<Name, i64>,
    /// The node that PostFilter nominates.
    nominates: Option<Name>,
}

impl Acts {
    fn at(&self, point: ExtensionPoint) -> Status {
        let found = self.rejects.iter().find(|(other, _)| *other == point);
        found.map_or(Status::SUCCESS, |(_, is_resolvable)| rejection(*is_resolvable))
    }
}

fn rejection(is_resolvable: bool) -> Status {
    let reason = "the actor is against it";
    if is_resolvable { Status::unschedulable(reason) } else { Status::unresolvable(reason) }
}

/// A plugin that does as it is told.
#[derive(Clone, Default)]
struct Actor(Arc<Mutex<Acts>>);

impl Actor {
    fn acts(&self) -> Acts {
        self.0.lock().unwrap().clone()
    }
}

impl Plugin for Actor {
    fn name(&self) -> Symbol {
        ACTOR.into()
    }
    fn pre_filter(&self, _: &CycleContext<'_>, _: &mut CycleState) -> PreFilterAnswer {
        let acts = self.acts();
        PreFilterAnswer { status: acts.at(PreFilter), nodes: acts.only }
    }
    fn filter(&self, _: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
        let acts = self.acts();
        acts.nodes.get(&node.name).map_or(Status::SUCCESS, |resolvable| rejection(*resolvable))
    }
    fn post_filter(&self, _: &mut PostFilterContext<'_>, _: &CycleState) -> PostFilterAnswer {
        let nominate = self.acts().nominates;
        let status = nominate.map_or(rejection(true), |_| Status::SUCCESS);
        PostFilterAnswer { status, nominate, ..PostFilterAnswer::default() }
    }
    fn score(&self, _: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        Ok(self.acts().scores.get(&node.name).copied().unwrap_or(0))
    }
    fn reserve(&self, _: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        self.acts().at(Reserve)
    }
    fn permit(&self, _: &mut BindContext<'_>, _: &mut CycleState) -> PermitAnswer {
        self.acts().at(Permit).into()
    }
    fn pre_bind_pre_flight(&self, _: &BindContext<'_>, _: &CycleState) -> Status {
        Status::SUCCESS
    }
    fn pre_bind(&self, _: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        self.acts().at(PreBind)
    }
    fn bind(&self, _: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        let status = self.acts().at(Bind);
        if status.is_success() { Status::skip() } else { status }
    }
}

/// The same cluster twice: with the actor, and where it is opaque.
struct Pair {
    blind: World,
    seeing: World,
    actor: Actor,
}

impl Pair {
    /// The actor runs at all points in front of the others, or at `points` behind them.
    fn new(seed: u64, points: Option<&[ExtensionPoint]>) -> Pair {
        let actor = Actor::default();
        let (plays, part) = (actor.clone(), points.unwrap_or(POINTS));
        let plugin = PluginDescriptor { signs: false, ..PluginDescriptor::new(ACTOR, part) };
        let mut text = configuration(&plugin, 1 + (seed % 3) as i32, PLUGINS);
        if points.is_none() {
            let end = text.find("      preFilter").unwrap();
            text.truncate(end);
            text = text.replace("enabled: [", &format!("enabled: [{{name: {ACTOR}}}, "));
        }
        let in_tree = kubestep_plugins::registry();
        let mut all = in_tree.clone();
        all.register(Entry::new(plugin, move |_, _| Ok(Arc::new(plays.clone())))).unwrap();
        let [mut blind, mut seeing] = [world(&text, &in_tree), world(&text, &all)];
        for world in [&mut blind, &mut seeing] {
            fill(world, seed);
            if seed.is_multiple_of(3) {
                crowd(world, seed);
            }
        }
        Pair { blind, seeing, actor }
    }

    /// Begins at a later cycle.
    fn skip(&mut self, cycles: u64) {
        for _ in 0..cycles {
            let [one, other] = [self.blind.step(), self.seeing.step()];
            assert_eq!(one.map(|record| whole(&record)), other.map(|record| whole(&record)));
        }
    }

    /// The next cycle if the plugin acts so.
    fn cycle(&self, acts: Acts) -> Arc<CycleRecord> {
        let mut world = self.seeing.clone();
        *self.actor.0.lock().unwrap() = acts;
        let record = world.step().unwrap();
        *self.actor.0.lock().unwrap() = Acts::default();
        record
    }
}

type Decision = (Name, Option<Name>, Option<String>, Option<Name>);

/// The decision with the nomination.
fn whole(record: &CycleRecord) -> Decision {
    let (pod, node, preemption) = decision(record);
    (pod, node, preemption, record.nominated_node)
}

fn random_points(numbers: &mut Numbers) -> Option<Vec<ExtensionPoint>> {
    let some = POINTS.iter().copied().filter(|_| numbers.below(2) == 0).collect();
    (numbers.below(4) > 0).then_some(some)
}

fn random_acts(numbers: &mut Numbers, nodes: &[Name]) -> Acts {
    let mut acts = Acts::default();
    for point in [PreFilter, Reserve, Permit, PreBind, Bind] {
        if numbers.below(8) == 0 {
            acts.rejects.push((point, numbers.below(2) == 0));
        }
    }
    let some = |numbers: &mut Numbers, odds: usize| {
        nodes.iter().copied().filter(|_| numbers.below(odds) == 0).collect::<Vec<_>>()
    };
    acts.only = (numbers.below(4) == 0).then(|| some(numbers, 2));
    acts.only.iter_mut().for_each(|names| names.sort_unstable());
    let odds = 1 + numbers.below(4);
    acts.nodes =
        some(numbers, odds).into_iter().map(|name| (name, numbers.below(2) == 0)).collect();
    acts.scores = nodes.iter().map(|name| (*name, numbers.below(101) as i64)).collect();
    acts.nominates = nodes.get(numbers.below(3 * nodes.len())).copied();
    acts
}

/// Calls `check` with many cycles: the pair before it, the record where the plugin is opaque, and
/// its certainty.
fn each_cycle(mut check: impl FnMut(&str, &Pair, &CycleRecord, &Certainty, &mut Numbers)) {
    for seed in 0..300 {
        let mut numbers = Numbers(seed * 31 + 5);
        let points = random_points(&mut numbers);
        let mut pair = Pair::new(seed, points.as_deref());
        pair.skip(numbers.below(5) as u64);
        let mut blind = pair.blind.clone();
        let Some(record) = blind.step() else { continue };
        let certainty = record.certainty();
        let certainty = certainty.map(|it| (*it).clone()).unwrap_or_default();
        let at = format!("seed {seed}, {points:?}, {certainty:?}");
        check(&at, &pair, &record, &certainty, &mut numbers);
    }
}

#[test]
fn nothing_that_a_plugin_does_changes_a_certain_decision() {
    let (mut certain, mut changed) = (0, 0);
    each_cycle(|at, pair, record, certainty, numbers| {
        let nodes: Vec<Name> = record.nodes.order.iter().map(|id| record.nodes.name(*id)).collect();
        for _ in 0..20 {
            let acts = random_acts(numbers, &nodes);
            let same = whole(&pair.cycle(acts.clone())) == whole(record);
            assert!(same || !certainty.is_certain(), "{at}: {acts:?}");
            changed += usize::from(!same);
        }
        certain += usize::from(certainty.is_certain());
    });
    assert!(certain > 40 && changed > 1000, "{certain} certain, {changed} changed");
}

/// What changes the decision, by the uncertainty.
fn adverse(uncertainty: &Uncertainty, certainty: &Certainty, record: &CycleRecord) -> Option<Acts> {
    let node = |name: Name, points: &[ExtensionPoint]| match points.contains(&Filter) {
        true => Acts { nodes: BTreeMap::from([(name, false)]), ..Acts::default() },
        false => Acts { rejects: vec![(PreFilter, false)], ..Acts::default() },
    };
    match uncertainty {
        Uncertainty::Reject { node: name, points, .. }
        | Uncertainty::RejectPreemption { node: name, points, .. } => Some(node(*name, points)),
        Uncertainty::Prefer { .. } => {
            let rival = certainty.lead.as_ref().unwrap().rival;
            Some(Acts { scores: BTreeMap::from([(rival, 100)]), ..Acts::default() })
        }
        Uncertainty::Hold { points, .. } => {
            Some(Acts { rejects: vec![(points[0], true)], ..Acts::default() })
        }
        Uncertainty::MakeRoom { .. } => {
            let first = record.nodes.name(record.nodes.order[0]);
            Some(Acts { nominates: Some(first), ..Acts::default() })
        }
        _ => None,
    }
}

#[test]
fn each_doubt_is_one_that_a_plugin_can_confirm() {
    let mut confirmed = BTreeMap::new();
    each_cycle(|at, pair, record, certainty, _| {
        for uncertainty in &certainty.uncertainties {
            let Some(acts) = adverse(uncertainty, certainty, record) else {
                if uncertainty.kind() == "allowPreemption" {
                    continue;
                }
                // It keeps the pod out of the queue, so that there is no cycle.
                assert_eq!(uncertainty.kind(), "gate", "{at}");
                assert!(record.node.is_some() || record.preemption.is_some(), "{at}");
                continue;
            };
            let other = pair.cycle(acts.clone());
            assert_ne!(whole(&other), whole(record), "{at}: {uncertainty:?} {acts:?}");
            *confirmed.entry(uncertainty.kind()).or_insert(0) += 1;
        }
    });
    for kind in ["reject", "rejectPreemption", "prefer", "hold", "makeRoom"] {
        assert!(confirmed.get(kind).is_some_and(|count| *count >= 10), "{kind}: {confirmed:?}");
    }
}
