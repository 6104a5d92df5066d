//! A plugin of one's own in a simulated cluster: `turns.rs` has the plugin, with arguments, state
//! that outlives a cycle, a queueing hint and a column in the score table; this file registers it in
//! one line and runs it. `cargo run -p kubestep-cluster --example own_plugin`

mod turns;

use std::sync::Arc;

use kubestep_cluster::World;
use kubestep_framework::prelude::*;
use kubestep_framework::testing::{NodeBuilder, node, pod};

use turns::{PLUGIN, TurnsArgs};

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
