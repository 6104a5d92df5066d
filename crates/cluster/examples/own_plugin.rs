//! A plugin of one's own, with arguments, state that outlives a cycle, a queueing hint and a column
//! in the score table: each node takes `most` pods in its life, and nodes that took fewer score
//! higher. Run it with `cargo run -p kubestep-cluster --example own_plugin`.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_cluster::World;
use kubestep_config::validation::Findings;
use kubestep_config::{
    ArgsType, Arguments, ExtensionPoint, FeatureGates, FieldPath, PluginDescriptor, arguments,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::*;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::{BindContext, CycleContext, Plugin, QueueContext};
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Entry;
use kubestep_framework::shared::{PluginState, Shared};
use kubestep_framework::status::Status;
use kubestep_framework::testing::{NodeBuilder, node, pod};

arguments! {
    /// How long a node takes pods.
    struct TurnsArgs for "Turns" {
        most: i64 = 1, put "most", "1 to 100", "How many pods a node takes in its life.";
    }
}

impl Arguments for TurnsArgs {
    fn validate(&self, found: &mut Findings, path: &FieldPath, _: &FeatureGates) {
        if !(1..=100).contains(&self.most) {
            found.invalid(&path.field("most"), self.most, "not in valid range [1, 100]");
        }
    }
}

const POINTS: &[ExtensionPoint] =
    &[ExtensionPoint::Filter, ExtensionPoint::Score, ExtensionPoint::Reserve];
const PLUGIN: PluginDescriptor = PluginDescriptor {
    args: Some(ArgsType::of::<TurnsArgs>()),
    signs: false,
    ..PluginDescriptor::new("Turns", POINTS)
};

/// How many pods each node took. It is not in the plugin, so that a session can go back in time.
#[derive(Clone, Default, PartialEq, Debug)]
struct Taken(BTreeMap<Symbol, i64>);

impl PluginState for Taken {}

impl TurnsArgs {
    fn left(&self, shared: &Shared, node: Symbol) -> i64 {
        let taken = shared.plugins.get::<Taken>().and_then(|taken| taken.0.get(&node));
        self.most - taken.copied().unwrap_or(0)
    }
}

impl Plugin for TurnsArgs {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }
    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![Registration::hinted(EventResource::Node, Action::ADD)])
    }
    fn hint(
        &self,
        cx: &QueueContext<'_>,
        _: &PodInfo,
        _: &ClusterEvent,
        objects: &EventObjects,
    ) -> Result<Hint, String> {
        let (_, added) = objects.nodes()?;
        let helps = added.is_some_and(|node| self.left(cx.shared, node.metadata.name) > 0);
        Ok(if helps { Hint::Queue } else { Hint::Skip })
    }
    fn filter(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Status {
        match self.left(cx.shared, node.name) > 0 {
            true => Status::SUCCESS,
            false => Status::unschedulable("node(s) had their turns"),
        }
    }
    fn score(&self, cx: &CycleContext<'_>, _: &CycleState, node: &NodeInfo) -> Result<i64, Status> {
        Ok(100 * self.left(cx.shared, node.name) / self.most)
    }
    fn reserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) -> Status {
        let node = cx.node;
        cx.shared.plugins.update(|taken: &mut Taken| *taken.0.entry(node).or_default() += 1);
        Status::SUCCESS
    }
    fn unreserve(&self, cx: &mut BindContext<'_>, _: &mut CycleState) {
        let node = cx.node;
        cx.shared.plugins.update(|taken: &mut Taken| *taken.0.entry(node).or_default() -= 1);
    }
}

const CONFIGURATION: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: Turns, weight: 50}]}}
  pluginConfig: [{name: Turns, args: {most: 2}}]
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = kubestep_plugins::registry();
    registry.register(Entry::new(PLUGIN, |args, _| Ok(Arc::new(args.of::<TurnsArgs>()))))?;
    let gates = FeatureGates::default();
    let config = kubestep_config::resolve(Some(CONFIGURATION), &gates, &registry.descriptors())?;
    let mut world = World::new(&config, gates, &registry)?;
    world.create(node("a").offers("cpu", "9").into());
    for name in ["p1", "p2", "p3"] {
        world.create(pod(name).into());
    }
    let cycles = world.run(3);
    let nodes: Vec<_> = cycles.iter().map(|cycle| cycle.node).collect();
    assert_eq!(nodes, [Some("a".into()), Some("a".into()), None]);
    assert!(cycles[2].message.contains("1 node(s) had their turns"), "{}", cycles[2].message);
    world.create(node("b").offers("cpu", "9").into());
    world.create(node("c").offers("cpu", "1").into());
    world.advance(20_000_000);
    let again = world.step().ok_or("the hint requeues the pod")?;
    let column = again.score.plugins.iter().find(|column| column.plugin == "Turns");
    let column = column.ok_or("the plugin has a column in the score table")?;
    assert_eq!((column.weight, column.raw.get(0)), (50, Some(100)));
    Ok(())
}

#[test]
fn the_plugin_runs() {
    main().unwrap();
}
