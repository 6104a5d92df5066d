//! Learned verdicts against recorded messages of kube-scheduler 1.36.2 with an additional plugin,
//! `Toy`, that rejects pods at PreFilter and nodes at Filter, for one or two reasons.
//!
//! Each line of `learned/messages.jsonl` has a cluster, whether Toy runs before the in-tree filters,
//! the message about its pending pod, and the nodes that Toy rejected.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_config::{FeatureGates, UnknownPlugins, resolve_as};
use kubestep_debug::learned::known::KnownVerdicts;
use kubestep_debug::learned::{Learned, heard, learn};
use kubestep_framework::testing::{NodeBuilder, PodBuilder, key, node, pod};
use serde_json::{Value, json};

fn world(case: &Value) -> World {
    let filter = "filter: {enabled: [{name: Toy}]}";
    let plugins = match case["first"].as_bool().unwrap() {
        true => format!("multiPoint: {{enabled: [{{name: Toy}}]}}, {filter}"),
        false => format!("preFilter: {{enabled: [{{name: Toy}}]}}, {filter}"),
    };
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles: [{{plugins: {{{plugins}}}}}]"
    );
    let (gates, registry) = (FeatureGates::default(), kubestep_plugins::registry());
    let (descriptors, unknown) = (registry.descriptors(), UnknownPlugins::Opaque);
    let config = resolve_as(Some(&text), Vec::new(), &gates, &descriptors, unknown).unwrap();
    let mut world = World::new(&config, gates, &registry).unwrap();
    fill(&mut world, case);
    world
}

fn fill(world: &mut World, case: &Value) {
    let is = |value: &Value, field: &str| value[field].as_bool() == Some(true);
    for entry in case["nodes"].as_array().unwrap() {
        let mut node = node(entry["name"].as_str().unwrap())
            .label("zone", entry["zone"].as_str().unwrap())
            .offers("cpu", &entry["cpu"].to_string());
        let taint = json!({"key": "t", "value": "1", "effect": "NoSchedule"});
        let taints = Vec::from_iter(is(entry, "taint").then_some(taint));
        node.spec.taints = serde_json::from_value(json!(taints)).unwrap();
        node.spec.unschedulable = is(entry, "cordoned");
        world.create(node.into());
    }
    let milli = |value: &Value| format!("{}m", value["milliCpu"]);
    let running = case["running"].as_array().into_iter().flatten();
    for (at, entry) in running.enumerate() {
        let priority = if is(entry, "low") { -5 } else { 100 };
        let running = pod(&format!("old{at}")).requests("cpu", &milli(entry)).priority(priority);
        world.create(running.on(entry["node"].as_str().unwrap()).into());
    }
    let wanted = &case["pod"];
    let mut spec = json!({});
    if let Some(zone) = wanted["zone"].as_str() {
        spec["nodeSelector"] = json!({"zone": zone});
    }
    if is(wanted, "tolerates") {
        spec["tolerations"] = json!([{"key": "t", "operator": "Exists"}]);
    }
    let memory = format!("{}Gi", wanted["memoryGi"]);
    let new = pod("new").requests("cpu", &milli(wanted)).requests("memory", &memory);
    world.create(new.priority(0).spec(spec).into());
}

/// Whether what was learned is right; `true` if the number is exact.
fn check(learned: &Learned, case: &Value, at: &str) -> bool {
    let refused: Vec<Name> = serde_json::from_value(case["refused"].clone()).unwrap();
    assert_eq!(learned.contradictions, Vec::<String>::new(), "{at}: {learned:?}");
    let range = learned.at_least..=learned.at_most;
    assert!(range.contains(&refused.len()), "{at}: {refused:?} {learned:?}");
    assert_eq!(learned.is_spoken(), !refused.is_empty(), "{at}: {learned:?}");
    let certain = learned.nodes.iter().filter(|_| learned.is_spoken());
    for node in certain {
        assert!(refused.contains(node), "{at}: {node} {learned:?}");
    }
    for node in &refused {
        let named = learned.nodes.contains(node) || learned.among.contains(node);
        assert!(named, "{at}: {node} {learned:?}");
    }
    learned.at_least == learned.at_most
}

#[test]
fn the_number_of_rejected_nodes_is_reproduced() {
    let text = include_str!("learned/messages.jsonl");
    let (mut all, mut exact, mut spoken) = (0, 0, 0);
    for (at, line) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let message = case["message"].as_str().unwrap();
        let at = format!("line {}: {message}", at + 1);
        let mut world = world(&case);
        let asked = heard(&world, key("new"), Some(message)).unwrap().learned.unwrap();
        let record = world.step().unwrap();
        let known = KnownVerdicts::of_record(&record).unwrap();
        let recorded = learn(&known, message).unwrap();
        assert_eq!(asked, recorded, "{at}: a probe and a record tell the same");
        exact += usize::from(check(&recorded, &case, &at));
        spoken += usize::from(recorded.is_spoken());
        all += 1;
    }
    assert!(all >= 100 && spoken >= 80, "{spoken} of {all} spoken");
    assert_eq!(exact, all, "{exact} of {all} exact");
}
