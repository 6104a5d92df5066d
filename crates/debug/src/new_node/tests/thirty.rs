//! Thirty pods before karpenter's pools and a catalogue of instance types, some with planted near
//! misses: which node each would get, or what rejects it, and which pool misses by one requirement.

use super::*;
use kubestep_cluster::load;
use kubestep_source::{Filter, read_text};

const CATALOGUE: &str = include_str!("../../../../../tests/cli/new_node/catalogue.json");
const POOLS: &str = include_str!("../../../../../tests/cli/new_node/pools.yaml");
const PODS: &str = include_str!("../../../../../tests/cli/new_node/pods.yaml");

/// Why the pool `full` creates no node.
const FULL: &str = "its limit of 20 cpu leaves 4, and the node has 16";

/// Each pod, with the first node of the answer, what rejects that or why it cannot be created, and
/// the pools that miss by one of their requirements.
const EXPECTED: [(&str, &str, &str, &[&str]); 30] = [
    ("web", "nodepool/general/c-1x-amd64-linux/test-zone-a/spot", "", &[]),
    ("api", "nodepool/general/c-2x-amd64-linux/test-zone-a/spot", "", &[]),
    ("cache", "nodepool/arm/s-2x-arm64-linux/test-zone-c/spot", "", &[]),
    ("arm", "nodepool/arm/s-2x-arm64-linux/test-zone-c/spot", "", &[]),
    (
        "arm-in-a",
        "",
        "NodeAffinity",
        &[
            "general: kubernetes.io/arch",
            "arm: topology.kubernetes.io/zone",
            "full: node.kubernetes.io/instance-type",
        ],
    ),
    ("in-c", "nodepool/arm/s-2x-arm64-linux/test-zone-c/spot", "", &[]),
    (
        "amd-in-c",
        "nodepool/data/m-1x-amd64-linux/test-zone-c/on-demand/example.com/tier=gold",
        "",
        &[],
    ),
    (
        "spot-in-c",
        "",
        "NodeAffinity",
        &[
            "general: topology.kubernetes.io/zone",
            "data: karpenter.sh/capacity-type",
            "arm: kubernetes.io/arch",
        ],
    ),
    ("train", "nodepool/gpu/m-8x-amd64-linux/test-zone-a/on-demand", "", &[]),
    (
        "train-intolerant",
        "nodepool/gpu/m-8x-amd64-linux/test-zone-a/on-demand",
        "TaintToleration",
        &[],
    ),
    ("train-3", "nodepool/gpu/m-8x-amd64-linux/test-zone-a/on-demand", "NodeResourcesFit", &[]),
    ("train-in-b", "", "NodeResourcesFit", &["gpu: topology.kubernetes.io/zone"]),
    ("large", "nodepool/arm/s-16x-arm64-linux/test-zone-c/spot", "", &[]),
    (
        "large-amd",
        "nodepool/data/m-16x-amd64-linux/test-zone-b/on-demand/example.com/tier=gold",
        "",
        &[],
    ),
    ("huge", "", "NodeResourcesFit", &[]),
    (
        "team-full",
        "nodepool/full/c-16x-amd64-linux/test-zone-a/spot",
        FULL,
        &["full: node.kubernetes.io/instance-type"],
    ),
    ("gold", "nodepool/data/m-1x-amd64-linux/test-zone-b/on-demand/example.com/tier=gold", "", &[]),
    (
        "silver",
        "nodepool/data/m-1x-amd64-linux/test-zone-b/on-demand/example.com/tier=silver",
        "",
        &[],
    ),
    ("bronze", "", "NodeAffinity", &["data: example.com/tier"]),
    ("team-shop", "nodepool/general/c-1x-amd64-linux/test-zone-a/spot", "", &[]),
    ("team-ops", "", "NodeAffinity", &[]),
    ("pinned", "nodepool/general/s-4x-amd64-linux/test-zone-a/spot", "", &[]),
    (
        "pinned-large",
        "nodepool/full/c-16x-amd64-linux/test-zone-a/spot",
        FULL,
        &[
            "general: karpenter.kwok.sh/instance-cpu",
            "data: karpenter.kwok.sh/instance-family",
            "arm: kubernetes.io/arch",
        ],
    ),
    ("coming", "nodeclaim/general-coming", "", &[]),
    ("coming-intolerant", "nodeclaim/general-coming", "TaintToleration", &[]),
    ("old", "node/old-1", "", &[]),
    ("old-intolerant", "node/old-1", "TaintToleration", &[]),
    ("gated", "nodepool/general/c-1x-amd64-linux/test-zone-a/spot", "", &[]),
    ("claimless", "", "NodeVolumeLimits", &[]),
    ("more-than-4", "nodepool/general/c-8x-amd64-linux/test-zone-a/spot", "", &[]),
];

fn cluster() -> World {
    let mut world = world("");
    let mut known = Provisioning::default();
    for (name, text) in [("c.json", CATALOGUE), ("pools.yaml", POOLS), ("pods.yaml", PODS)] {
        let input = read_text(name, text.into(), &Filter::default()).unwrap();
        known.merge(input.auxiliary.provisioning);
        load(&mut world, input.objects.into_iter().map(|loaded| loaded.object));
    }
    world.set_provisioning(known);
    world.run(40);
    world
}

/// The answer in the form of [`EXPECTED`].
fn answer(world: &World, name: &str) -> (String, String, Vec<String>) {
    let pod = NamespacedName::new("shop".into(), name.into());
    let answer = new_nodes(world, pod, &mut |_, _| true).unwrap();
    let first = &answer.nodes[0];
    let plugins = first.verdict.blockers.iter().map(|blocker| blocker.plugin.to_string());
    let why = plugins.chain(first.closed.clone()).collect::<Vec<_>>().join(", ");
    let miss = |miss: &NearMiss| {
        let (key, _) = miss.requirement.split_once(' ').unwrap();
        format!("{}: {key}", miss.pool)
    };
    (first.origin.id(), why, answer.near_misses.iter().map(miss).collect())
}

#[test]
fn each_of_thirty_pods_has_the_planted_answer() {
    let world = cluster();
    let mut wrong = Vec::new();
    for (pod, node, why, misses) in EXPECTED {
        let (got, reason, near) = answer(&world, pod);
        let is_right = (node.is_empty() || got == node) && reason == why && near == misses;
        if !is_right {
            wrong.push(format!("{pod}: {got} [{reason}] {near:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn what_no_node_resolves_is_said_first() {
    let world = cluster();
    let obstacles = |name: &str| {
        let pod = NamespacedName::new("shop".into(), name.into());
        new_nodes(&world, pod, &mut |_, _| true).unwrap().obstacles()
    };
    assert!(obstacles("gated")[0].contains("quota"), "{:?}", obstacles("gated"));
    assert!(obstacles("claimless")[0].contains("none"), "{:?}", obstacles("claimless"));
    assert!(obstacles("web").is_empty());
}

#[test]
fn startup_taints_daemon_sets_and_limits_are_part_of_the_answer() {
    let world = cluster();
    let pod = NamespacedName::new("shop".into(), "web".into());
    let answer = new_nodes(&world, pod, &mut |_, _| true).unwrap();
    let first = &answer.nodes[0];
    assert_eq!(first.startup_taints[0].key, "example.com/setup");
    assert_eq!(first.daemons.len(), 1, "{:?}", first.daemons);
    assert_eq!(first.room, Some(16));
    let on_arm = answer.nodes.iter().find(|new| new.origin.source() == "NodePool arm").unwrap();
    assert_eq!(on_arm.daemons.len(), 2, "{:?}", on_arm.daemons);
    let gpu = answer.nodes.iter().find(|new| new.origin.source() == "NodePool gpu").unwrap();
    assert_eq!(gpu.price, Some(0.736), "twice the price of the catalogue");
}
