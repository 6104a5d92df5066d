//! Nodes with NUMA zones: which pods they can align, and how they score.

use serde_json::{Value, json};

use super::cache::ReportCache;
use super::fingerprint::fingerprint;
use super::placement::{NumaPlacement, container_hash};
use super::*;
use crate::testing::{object, problems, world};
use kubestep_cluster::World;
use kubestep_framework::api::{Object, Pod, PodPhase};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::Outcome;
use kubestep_framework::testing::{Cluster, NodeBuilder, PodBuilder, info, key, node, pod};

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
        "container c0 fits in no NUMA zone: NUMA zone 0 has 4 cpu free of 6 needed, NUMA zone 1 has 2 \
         cpu free of 6 needed"
    );
    assert_eq!(
        words(&["cpu=2 memory=1Gi vendor.com/nic=1"]),
        "container c0 fits in no NUMA zone: NUMA zone 0 has 0 vendor.com/nic free of 1 needed, \
         NUMA zone 1 has no vendor.com/nic of 1 needed"
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
    let plugin: Arc<dyn Plugin> = Arc::new(TopologyMatch {
        cache: ReportCache::Passthrough,
        strategy,
        counts_victims: false,
    });
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
        let plugin: Arc<dyn Plugin> = Arc::new(TopologyMatch {
            cache: ReportCache::Passthrough,
            strategy,
            counts_victims: false,
        });
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

/// A pod that needs 4 CPUs of one zone, on a node with an evictable pod that has those of zone 0: what
/// its cycle decides, by the arguments and what the agent reports of containers.
fn evicting(args: &str, metadata: &str, running: &Pod, allocatable: &str) -> (String, Vec<String>) {
    let mut world = world(&format!(
        "plugins: {{multiPoint: {{enabled: [{{name: NodeResourceTopologyMatch}}]}}}}\n  \
         pluginConfig: [{{name: NodeResourceTopologyMatch, args: {args}}}]"
    ));
    world.create(node("n").offers("cpu", "9").offers("memory", "64Gi").into());
    let mut running = running.clone();
    running.spec.node_name = "n".into();
    running.status.phase = PodPhase::Running;
    let own = NamespacedName::new(running.metadata.namespace, running.metadata.name);
    let print = fingerprint(std::iter::once(own));
    world.create(running.into());
    let topology = topology("n", CONTAINER, &["cpu=0 memory=9Gi", "cpu=2 memory=9Gi"]);
    let mut json = topology.to_json().unwrap();
    json["attributes"] = json!([
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topology.node.k8s.io/numaplacement-metadata", "value": metadata},
        {"name": "nodeTopologyPodsFingerprint", "value": print},
    ]);
    for zone in json["zones"].as_array_mut().unwrap() {
        zone["resources"][1]["allocatable"] = "64Gi".into();
    }
    json["zones"][0]["resources"][0]["allocatable"] = allocatable.into();
    world.create(Object::deserialize_as(topology.kind(), json).unwrap());
    let mut new = sized(&["cpu=4 memory=1Gi"]);
    new.metadata.name = "new".into();
    new.metadata.uid = "new".into();
    new.spec.priority = Some(10);
    world.create(new.into());
    let record = world.step().unwrap();
    let victims = record.preemption.iter().flat_map(|chosen| chosen.victims.iter());
    (record.message.clone(), victims.map(|victim| victim.name.to_string()).collect())
}

#[test]
fn preemption_counts_what_victims_free_in_their_zones() {
    let old = |containers: &[&str]| {
        let mut pod = sized(containers);
        pod.metadata.name = "old".into();
        pod.metadata.uid = "old".into();
        pod
    };
    let (enabled, known) = (
        "{cacheResyncPeriodSeconds: 5, preemptionMode: Enabled}",
        "npv0v001::ve=leb89::cc=1::nn=2::bn=0",
    );
    let pinned = old(&["cpu=4 memory=1Gi"]);
    let (message, victims) = evicting(enabled, known, &pinned, "4");
    assert!(message.contains("cannot align container"), "{message}");
    assert_eq!(victims, ["old"]);
    let in_zone_1 = "npv0v001::ve=leb89::cc=1::nn=2::bn=1";
    assert_eq!(evicting(enabled, in_zone_1, &pinned, "4").1, ["old"]);
    let without = "preemption: 0/1 nodes are available: 1 cannot align container.";
    for (args, metadata) in [
        ("{cacheResyncPeriodSeconds: 5}", known),
        // Only this cache has what agents report of containers.
        ("{preemptionMode: Enabled}", known),
        ("{discardReservedNodes: true, preemptionMode: Enabled}", known),
        // The agent speaks of other containers, or in another way.
        (enabled, "npv0v001::ve=leb89::cc=2::nn=2::bn=0"),
        (enabled, "npv0v001::ve=leb89::cc=1::nn=2::bn=2"),
        (enabled, "npv0v001::ve=plain::cc=1::nn=2::bn=0"),
        (enabled, "npv0v001::ve=leb89::cc=1::nn=2::bn=0::xx=1"),
        (enabled, ""),
    ] {
        let (message, victims) = evicting(args, metadata, &pinned, "4");
        assert!(message.ends_with(without), "{args} {metadata}: {message}");
        assert!(victims.is_empty());
    }
    let (message, _) = evicting(enabled, known, &pinned, "3");
    assert!(message.ends_with(
        "1 eviction simulation in NRT is not possible:resource release request exceeds NUMA \
         allocatable."
    ));
    let mixed = old(&["cpu=4 memory=1Gi", "cpu=500m"]);
    let (message, victims) = evicting(enabled, known, &mixed, "4");
    assert_eq!((message.contains("eviction simulation"), victims.len()), (false, 0), "{message}");
}

/// Two pods of 3 CPUs, and the first again, where each zone has 3: what a zone has is known again
/// only after a rejection.
#[test]
fn a_report_with_all_pods_is_used_once_the_node_rejected_a_pod() {
    let mut world = world(
        "plugins: {multiPoint: {enabled: [{name: NodeResourceTopologyMatch}]}}\n  \
         pluginConfig: [{name: NodeResourceTopologyMatch, args: {cacheResyncPeriodSeconds: 5}}]",
    );
    world.create(node("n").offers("cpu", "32").offers("memory", "64Gi").into());
    let report = |zones: &[&str], pods: &[&str]| {
        let topology = topology("n", CONTAINER, zones);
        let mut json = topology.to_json().unwrap();
        let names = pods.iter().map(|name| key(name));
        let print = fingerprint(names);
        json["attributes"] = json!([{"name": "nodeTopologyPodsFingerprint", "value": print}]);
        Object::deserialize_as(topology.kind(), json).unwrap()
    };
    world.create(report(&["cpu=4 memory=9Gi", "cpu=4 memory=9Gi"], &[]));
    let schedule = |world: &mut World, name: &str| {
        let mut pod = sized(&["cpu=3 memory=1Gi"]);
        pod.metadata.name = name.into();
        pod.metadata.uid = name.into();
        world.create(pod.into());
        world.step().unwrap().outcome
    };
    assert_eq!(schedule(&mut world, "a"), Outcome::Scheduled);
    // The agent reports that the pod is in zone 0, but no pod was rejected, so each zone still
    // lacks what it has.
    world.update(report(&["cpu=1 memory=8Gi", "cpu=4 memory=9Gi"], &["a"]));
    assert_eq!(schedule(&mut world, "b"), Outcome::Unschedulable);
    assert_eq!(schedule(&mut world, "c"), Outcome::Scheduled);
}

#[test]
fn the_agents_words_of_containers_are_read() {
    let containers = [
        ("ns-0", "pod-0", "container-0"),
        ("ns-0", "pod-1", "container-1"),
        ("ns-0", "pod-1", "container-2"),
    ];
    let hash = |(namespace, name, container): (&str, &str, &str)| {
        let mut pod = Pod::default();
        pod.metadata.namespace = namespace.into();
        pod.metadata.name = name.into();
        container_hash(&pod, container)
    };
    let hashes = containers.map(hash);
    let of = |metadata: &str, lists: &[Option<&str>], hashes: &[u64]| {
        let zone = |(id, list): (usize, &Option<&str>)| {
            let attributes: Vec<Value> = list.iter().map(|list| {
                json!({"name": "topology.node.k8s.io/numaplacement-vector", "value": list})
            }).collect();
            json!({"name": format!("node-{id}"), "type": "Node", "attributes": attributes})
        };
        let report = json!({
            "attributes": [
                {"name": "topologyManagerPolicy", "value": "single-numa-node"},
                {"name": "topology.node.k8s.io/numaplacement-metadata", "value": metadata},
            ],
            "zones": lists.iter().enumerate().map(zone).collect::<Vec<_>>(),
        });
        let placement = NumaPlacement::of(&serde_json::from_value(report).unwrap(), hashes)?;
        Some(hashes.iter().map(|hash| placement.zone(*hash)).collect::<Vec<_>>())
    };
    // From the tests of upstream: the list has the second container.
    let three = "npv0v001::ve=leb89::cc=3::nn=2::bn=1";
    assert_eq!(of(three, &[Some("!"), None], &hashes), Some(vec![Some(1), Some(0), Some(1)]));
    for (metadata, lists, hashes) in [
        ("npv0v001::ve=leb89::cc=2::nn=2::bn=1", &[None, None][..], &hashes[..]),
        // Lists of a zone that has none, twice the same container, and one too many.
        (three, &[Some("!"), Some("")], &hashes),
        ("npv0v001::ve=leb89::cc=3::nn=3::bn=2", &[Some("!"), Some("!"), None], &hashes),
        (three, &[Some("$"), None], &hashes[..2]),
        (three, &[Some("$!"), None], &hashes),
        (three, &[Some("%"), None], &hashes),
        (three, &[None, None], &[hashes[0], hashes[1], hashes[1]]),
    ] {
        assert_eq!(of(metadata, lists, hashes), None, "{metadata} {lists:?}");
    }
}

#[test]
fn wrong_arguments_are_rejected() {
    let args = "{scoringStrategy: {type: Best}, preemptionMode: Maybe}";
    let found = problems("NodeResourceTopologyMatch", "score", args);
    for field in ["scoringStrategy.type", "preemptionMode"] {
        assert!(found.contains(&format!("{field}: Invalid value")), "{found}");
    }
    let args = "{scoringStrategy: {type: MostAllocated}}";
    assert!(problems("NodeResourceTopologyMatch", "score", args).is_empty());
}
