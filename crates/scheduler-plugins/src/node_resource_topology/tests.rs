//! Nodes with NUMA zones: which pods they can align, and how they score.

use serde_json::{Value, json};

use super::cache::ReportCache;
use super::*;
use crate::testing::{object, problems, world};
use kubestep_framework::api::Object;
use kubestep_framework::record::Outcome;
use kubestep_framework::testing::{Cluster, NodeBuilder, PodBuilder, info, node, pod};

/// Zones with these free amounts, `cpu=4 memory=8Gi`.
fn topology(node: &str, policy: &str, zones: &[&str]) -> Object {
    let resource = |text: &str| {
        let (name, amount) = text.split_once('=').unwrap();
        json!({"name": name, "capacity": "999", "allocatable": "999", "available": amount})
    };
    let zone = |(id, text): (usize, &&str)| {
        let resources: Vec<Value> = text.split_whitespace().map(resource).collect();
        json!({"name": format!("node-{id}"), "type": "Node", "resources": resources})
    };
    let zones: Vec<Value> = zones.iter().enumerate().map(zone).collect();
    object(json!({
        "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology",
        "metadata": {"name": node}, "topologyPolicies": [policy], "zones": zones,
    }))
}

/// A pod with a container for each text `request|limit`, both `cpu=1 memory=1Gi`; without a limit,
/// it is the request.
fn sized(containers: &[&str]) -> Pod {
    let list = |text: &str| kubestep_framework::testing::list(text);
    let container = |(at, text): (usize, &&str)| {
        let (requests, limits) = text.split_once('|').unwrap_or((text, text));
        json!({"name": format!("c{at}"), "resources": {"requests": list(requests), "limits": list(limits)}})
    };
    let containers: Vec<Value> = containers.iter().enumerate().map(container).collect();
    pod("p").spec(json!({"containers": containers}))
}

const NIC: &str = "vendor.com/nic";
const CONTAINER: &str = "SingleNUMANodeContainerLevel";
const POD: &str = "SingleNUMANodePodLevel";

/// The node, and what Filter says of a pod there.
fn filter(policy: &str, zones: &[&str], containers: &[&str]) -> String {
    let node = node("n").offers("cpu", "12").offers("memory", "16Gi").offers(NIC, "20");
    let node = node.offers("hugepages-2Mi", "256Mi").offers("vendor.com/free", "9");
    let cluster = Cluster::new([node], []).with(topology("n", policy, zones));
    let plugin = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
    let pod = info(sized(containers));
    let status = cluster.filter(&plugin, &pod).unwrap().remove(0);
    let explained = plugin.explain(&cluster.cx(&pod), &CycleState::default(), cluster.node("n"));
    assert_eq!(explained.len(), usize::from(!status.is_success()));
    status.message()
}

#[test]
fn resources_come_from_one_zone() {
    let large = ["cpu=4 memory=8Gi vendor.com/nic=10", "cpu=8 memory=8Gi vendor.com/nic=10"];
    let small = [
        "cpu=2 memory=4Gi vendor.com/nic=5 hugepages-2Mi=128Mi",
        "cpu=4 memory=4Gi vendor.com/nic=2 hugepages-2Mi=128Mi",
    ];
    let (fits, no_pod, no_container) = ("", "cannot align pod", "cannot align container");
    for (policy, zones, containers, expected) in [
        // Best effort pods only need devices.
        (CONTAINER, &large, &[""][..], fits),
        (POD, &small, &["vendor.com/nic=5"], fits),
        (POD, &small, &["vendor.com/nic=20"], no_pod),
        (CONTAINER, &small, &["vendor.com/nic=5"], fits),
        (CONTAINER, &large, &["vendor.com/nic=20"], no_container),
        // Burstable ones, too: CPU and memory are not exclusive.
        (
            CONTAINER,
            &small,
            &["cpu=3 memory=3Gi vendor.com/nic=11|cpu=4 memory=4Gi vendor.com/nic=11"],
            no_container,
        ),
        (
            POD,
            &small,
            &["cpu=19 memory=5Gi vendor.com/nic=5|cpu=20 memory=6Gi vendor.com/nic=5"],
            fits,
        ),
        (
            CONTAINER,
            &small,
            &["cpu=5 memory=5Gi vendor.com/nic=5|cpu=6 memory=6Gi vendor.com/nic=5"],
            fits,
        ),
        (CONTAINER, &small, &["cpu=4 vendor.com/nic=3"], fits),
        (POD, &small, &["cpu=2 vendor.com/nic=6"], no_pod),
        // Guaranteed ones.
        (CONTAINER, &large, &["cpu=2 memory=2Gi"], fits),
        (CONTAINER, &large, &["cpu=8 memory=8Gi"], fits),
        (CONTAINER, &large, &["cpu=9 memory=1Gi vendor.com/nic=3"], no_container),
        (CONTAINER, &large, &["cpu=2 memory=2Gi hugepages-2Mi=0 vendor.com/nic=3"], fits),
        (CONTAINER, &small, &["cpu=2 memory=2Gi hugepages-2Mi=64Mi vendor.com/nic=3"], fits),
        (
            CONTAINER,
            &small,
            &["cpu=2 memory=2Gi hugepages-2Mi=256Mi vendor.com/nic=3"],
            no_container,
        ),
        (POD, &small, &["cpu=3 memory=1Gi", "cpu=3 memory=1Gi", "cpu=3 memory=1Gi"], no_pod),
        (CONTAINER, &large, &["cpu=4 memory=4Gi", "cpu=8 memory=4Gi"], fits),
        (CONTAINER, &large, &["cpu=8 memory=4Gi", "cpu=6 memory=4Gi"], no_container),
        // A resource of the node without a zone, and one that it does not have.
        (CONTAINER, &large, &["cpu=2 memory=2Gi vendor.com/free=1"], fits),
        (CONTAINER, &large, &["cpu=2 memory=2Gi vendor.com/absent=1"], no_container),
        (CONTAINER, &large, &["cpu=2 memory=2Gi vendor.com/absent=0"], fits),
        // Other policies reject nothing.
        ("BestEffortPodLevel", &small, &["cpu=9 memory=9Gi"], fits),
    ] {
        assert_eq!(
            filter(policy, zones, containers),
            expected,
            "{policy} {zones:?} {containers:?}"
        );
    }
}

#[test]
fn init_containers_give_their_resources_back() {
    let zones = ["cpu=4 memory=4Gi"];
    let with_init = |init: &str, kind: &str| {
        let list = kubestep_framework::testing::list;
        let one = |amounts: &str| json!({"name": "c", "resources": {"requests": list(amounts), "limits": list(amounts)}});
        let mut first = one(init);
        if kind == "sidecar" {
            first["restartPolicy"] = "Always".into();
        }
        let pod = pod("p")
            .spec(json!({"initContainers": [first], "containers": [one("cpu=4 memory=4Gi")]}));
        let node = node("n").offers("cpu", "8").offers("memory", "8Gi");
        let cluster = Cluster::new([node], []).with(topology("n", CONTAINER, &zones));
        let plugin = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
        cluster.rejections(&plugin, &info(pod)).remove(0)
    };
    assert_eq!(with_init("cpu=4 memory=4Gi", "init"), "");
    assert_eq!(with_init("cpu=5 memory=4Gi", "init"), "cannot align init container");
    assert_eq!(with_init("cpu=5 memory=4Gi", "sidecar"), "cannot align sidecar container");
}

#[test]
fn each_zone_is_explained() {
    let node = node("n").offers("cpu", "8").offers("memory", "16Gi").offers(NIC, "4");
    let zones = ["cpu=4 memory=8Gi vendor.com/nic=0", "cpu=2 memory=8Gi"];
    let cluster = Cluster::new([node], []).with(topology("n", CONTAINER, &zones));
    let plugin = build(&ProfileArgs::default(), &FeatureGates::default()).unwrap();
    let words = |containers: &[&str]| {
        let pod = info(sized(containers));
        let all = plugin.explain(&cluster.cx(&pod), &CycleState::default(), cluster.node("n"));
        all.into_iter().map(|it| it.words).collect::<String>()
    };
    assert_eq!(
        words(&["cpu=6 memory=1Gi"]),
        "container c0 fits in no NUMA zone: NUMA zone 0 has 4 of 6 cpu, NUMA zone 1 has 2 of 6 cpu"
    );
    assert_eq!(
        words(&["cpu=2 memory=1Gi vendor.com/nic=1"]),
        "container c0 fits in no NUMA zone: NUMA zone 0 has 0 of 1 vendor.com/nic, NUMA zone 1 has \
         none of 1 vendor.com/nic"
    );
    assert_eq!(
        words(&["cpu=2 memory=1Gi vendor.com/gpu=1"]),
        "container c0 requests vendor.com/gpu, which the node does not have"
    );
}

fn scores(strategy: &str, policy: &str, nodes: &[&[&str]], containers: &[&str]) -> Vec<i64> {
    let name = |at: usize| format!("n{at}");
    let mut cluster = Cluster::new((0..nodes.len()).map(|at| node(&name(at))), []);
    for (at, zones) in nodes.iter().enumerate() {
        cluster = cluster.with(topology(&name(at), policy, zones));
    }
    let strategy = ZoneScoring::by_name(strategy, &[]).unwrap();
    let plugin: Arc<dyn Plugin> =
        Arc::new(TopologyMatch { cache: ReportCache::Passthrough, strategy });
    cluster.raw_scores(&plugin, &info(sized(containers))).unwrap()
}

/// Three nodes of two zones each.
const NODES: [&[&str]; 3] = [
    &["cpu=4 memory=500Mi", "cpu=4 memory=500Mi"],
    &["cpu=2 memory=50Mi", "cpu=2 memory=50Mi"],
    &["cpu=6 memory=60Mi", "cpu=6 memory=60Mi"],
];

#[test]
fn zones_are_scored_by_the_strategy() {
    let pod = ["cpu=2 memory=20Mi"];
    let of = |strategy| scores(strategy, CONTAINER, &NODES, &pod);
    // The mean of both resources: cpu (4-2)/4, memory (500-20)/500; and so on.
    assert_eq!(of("LeastAllocated"), [73, 30, 66]);
    assert_eq!(of("MostAllocated"), [27, 70, 33]);
    assert_eq!(of("BalancedAllocation"), [89, 82, 100]);
    // Pods that are not Guaranteed score the same everywhere.
    assert_eq!(scores("LeastAllocated", POD, &NODES, &["cpu=2"]), [100, 100, 100]);
    assert_eq!(scores("LeastAllocated", "RestrictedPodLevel", &NODES, &pod), [0, 0, 0]);
}

#[test]
fn fewer_zones_score_higher() {
    let (pod, container) = ("BestEffortPodLevel", "BestEffortContainerLevel");
    let of = |cpu: &str| format!("cpu={cpu} memory=50Mi");
    // Of 8 zones at most, each costs 12 points; there are 6 for the nearest zones.
    for (policy, cpus, expected) in [
        (container, &["2"][..], [94, 94, 94]),
        (container, &["4"], [94, 82, 94]),
        (container, &["6"], [82, 0, 94]),
        (container, &["2", "2"], [94, 94, 94]),
        (container, &["1", "3"], [94, 82, 94]),
        (container, &["5", "3"], [82, 0, 94]),
        (pod, &["2", "2"], [94, 82, 82]),
        (pod, &["1", "3"], [94, 82, 82]),
        (pod, &["5", "3"], [82, 0, 82]),
    ] {
        let containers: Vec<String> = cpus.iter().map(|cpu| of(cpu)).collect();
        let containers: Vec<&str> = containers.iter().map(String::as_str).collect();
        let got = scores("LeastNUMANodes", policy, &NODES, &containers);
        assert_eq!(got, expected, "{policy} {cpus:?}");
    }
}

#[test]
fn near_zones_score_higher() {
    let gpu = |count| format!("cpu=4 memory=5Gi vendor.com/gpu={count}");
    let costs = [[10, 12, 20, 20], [12, 10, 20, 20], [20, 20, 10, 12], [20, 20, 12, 10]];
    let of = |gpus: [u32; 4], wanted: u32| {
        let zones = gpus.map(gpu);
        let mut topology =
            topology("n0", "BestEffortContainerLevel", &zones.each_ref().map(String::as_str));
        let mut json = topology.to_json().unwrap();
        for (zone, costs) in json["zones"].as_array_mut().unwrap().iter_mut().zip(costs) {
            let costs = costs.iter().enumerate();
            zone["costs"] = costs
                .map(|(id, cost)| json!({"name": format!("node-{id}"), "value": cost}))
                .collect();
        }
        topology = Object::deserialize_as(topology.kind(), json).unwrap();
        let cluster = Cluster::new([node("n0")], []).with(topology);
        let strategy = ZoneScoring::LeastNumaNodes;
        let plugin: Arc<dyn Plugin> =
            Arc::new(TopologyMatch { cache: ReportCache::Passthrough, strategy });
        let pod = sized(&[&format!("cpu=2 memory=2Gi vendor.com/gpu={wanted}")]);
        cluster.raw_scores(&plugin, &info(pod)).unwrap()
    };
    assert_eq!(of([1, 1, 0, 0], 1), [94]);
    assert_eq!(of([1, 1, 0, 0], 2), [82]);
    // The GPUs are in zones that are not next to each other.
    assert_eq!(of([1, 0, 1, 0], 2), [76]);
}

/// The outcomes of three pods of 3 CPUs in turn on a node with two zones of 4.
fn in_turn(args: &str) -> Vec<Outcome> {
    let mut world = world(&format!(
        "plugins: {{multiPoint: {{enabled: [{{name: NodeResourceTopologyMatch}}]}}}}\n  \
         pluginConfig: [{{name: NodeResourceTopologyMatch, args: {args}}}]"
    ));
    world.create(topology("n", CONTAINER, &["cpu=4 memory=9Gi", "cpu=4 memory=9Gi"]));
    world.create(node("n").offers("cpu", "32").offers("memory", "64Gi").into());
    for name in ["a", "b"] {
        let mut pod = sized(&["cpu=3 memory=1Gi"]);
        pod.metadata.name = name.into();
        pod.metadata.uid = name.into();
        world.create(pod.into());
    }
    world.run(2).iter().map(|record| record.outcome).collect()
}

#[test]
fn reservations_count_in_every_zone_until_they_are_reported() {
    let both = [Outcome::Scheduled, Outcome::Scheduled];
    assert_eq!(in_turn("{}"), both);
    // The pod is bound at once, so nothing is reserved when the next one comes.
    assert_eq!(in_turn("{discardReservedNodes: true}"), both);
    let first = [Outcome::Scheduled, Outcome::Unschedulable];
    assert_eq!(in_turn("{cacheResyncPeriodSeconds: 5}"), first);
}

#[test]
fn wrong_arguments_are_refused() {
    let args = "{scoringStrategy: {type: Best}, preemptionMode: Maybe}";
    let found = problems("NodeResourceTopologyMatch", "score", args);
    for field in ["scoringStrategy.type", "preemptionMode"] {
        assert!(found.contains(&format!("{field}: Invalid value")), "{found}");
    }
    let args = "{scoringStrategy: {type: MostAllocated}}";
    assert!(problems("NodeResourceTopologyMatch", "score", args).is_empty());
}
