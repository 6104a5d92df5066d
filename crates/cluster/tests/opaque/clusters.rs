//! Random clusters, and what counts as the decision of a cycle.
use kubestep_api::Name;
use kubestep_cluster::World;
use kubestep_config::{
    ExtensionPoint, Feature, FeatureGates, PluginDescriptor, UnknownPlugins, resolve_as,
};
use kubestep_framework::record::CycleRecord;
use kubestep_framework::registry::Registry;
use kubestep_framework::testing::{NodeBuilder, PodBuilder, node, pod};
use serde_json::json;

/// The numbers of a linear congruence.
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// The plugins of the default profile that filter or score nodes, or preempt.
pub const PLUGINS: &[&str] = &[
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
];

/// A profile with all of `PLUGINS` by MultiPoint, but `opaque` at the points that it implements.
pub fn configuration(opaque: &PluginDescriptor, weight: i32, known: &[&str]) -> String {
    let names = ["PrioritySort", "DefaultBinder"].iter().chain(known);
    let names = names.filter(|name| **name != opaque.name);
    let multi: Vec<String> = names.map(|name| format!("{{name: {name}}}")).collect();
    let entry = |point: ExtensionPoint| {
        let weight =
            if point.has_weights() { format!(", weight: {weight}") } else { String::new() };
        format!("      {}: {{enabled: [{{name: {}{weight}}}]}}\n", point.key(), opaque.name)
    };
    let points: String = opaque.points.iter().map(entry).collect();
    format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         profiles:\n- plugins:\n      multiPoint:\n        disabled: [{{name: '*'}}]\n        \
         enabled: [{}]\n{points}",
        multi.join(", ")
    )
}

/// A cluster with these plugins; those that the registry lacks are opaque.
pub fn world(configuration: &str, registry: &Registry) -> World {
    let gates = FeatureGates::default().with(Feature::OpportunisticBatching, false);
    let descriptors = registry.descriptors();
    let unknown = UnknownPlugins::Opaque;
    let config =
        resolve_as(Some(configuration), Vec::new(), &gates, &descriptors, unknown).unwrap();
    World::new(&config, gates, registry).unwrap()
}

fn node_count(numbers: &mut Numbers) -> usize {
    2 + numbers.below(6)
}

/// Fills the nodes of [`fill`] with pods that all others may preempt.
pub fn crowd(world: &mut World, seed: u64) {
    for at in 0..node_count(&mut Numbers(seed)) {
        for part in 0..4 {
            let full = pod(&format!("full{at}-{part}")).requests("cpu", "900m").priority(-1);
            world.create(full.on(&format!("n{at}")).into());
        }
    }
}

/// Fills the cluster: nodes with labels, taints and running pods, and pending pods.
pub fn fill(world: &mut World, seed: u64) {
    let mut numbers = Numbers(seed);
    let nodes = node_count(&mut numbers);
    for at in 0..nodes {
        let mut node = node(&format!("n{at}"))
            .label("zone", ["a", "b", "c"][numbers.below(3)])
            .offers("cpu", &(1 + numbers.below(4)).to_string());
        let taint = [None, None, Some("NoSchedule"), Some("PreferNoSchedule")][numbers.below(4)];
        let taints = taint.map(|effect| json!({"key": "t", "value": "1", "effect": effect}));
        node.spec.taints = serde_json::from_value(json!(Vec::from_iter(taints))).unwrap();
        node.spec.unschedulable = numbers.below(7) == 0;
        world.create(node.into());
    }
    for at in 0..numbers.below(6) {
        let on = format!("n{}", numbers.below(nodes));
        let cpu = format!("{}m", 250 * (1 + numbers.below(4)));
        let app = ["x", "y"][numbers.below(2)];
        let running = pod(&format!("old{at}")).label("app", app).requests("cpu", &cpu);
        world.create(running.priority(numbers.below(2) as i32).on(&on).into());
    }
    for at in 0..1 + numbers.below(4) {
        world.create(pending(at, &mut numbers).into());
    }
}

fn pending(at: usize, numbers: &mut Numbers) -> kubestep_api::Pod {
    let cpu = format!("{}m", 250 * (1 + numbers.below(12)));
    let mut spec = json!({});
    if numbers.below(2) == 0 {
        spec["tolerations"] = json!([{"key": "t", "operator": "Exists"}]);
    }
    if numbers.below(3) == 0 {
        spec["nodeSelector"] = json!({"zone": "a"});
    }
    let labels = json!({"matchLabels": {"app": "x"}});
    match numbers.below(4) {
        0 => {
            let action = ["DoNotSchedule", "ScheduleAnyway"][numbers.below(2)];
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": "zone", "labelSelector": labels,
                "whenUnsatisfiable": action,
            }]);
        }
        1 => {
            let term = json!({"topologyKey": "zone", "labelSelector": labels});
            spec["affinity"] = match numbers.below(2) {
                0 => json!({"podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
                _ => json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": term}]}}),
            };
        }
        2 => {
            let term = json!({"matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["b"]}]});
            spec["affinity"] = json!({"nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 10, "preference": term}]}});
        }
        _ => {}
    }
    let pod = pod(&format!("new{at}")).label("app", ["x", "y"][numbers.below(2)]);
    pod.requests("cpu", &cpu).priority(numbers.below(3) as i32).spec(spec)
}

/// What counts as the decision.
pub fn decision(record: &CycleRecord) -> (Name, Option<Name>, Option<String>) {
    let node = record.node.filter(|_| record.outcome.as_str() == "Scheduled");
    (record.pod.name, node, record.preemption.as_ref().map(|chosen| format!("{chosen:?}")))
}
