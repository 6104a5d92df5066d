//! Changing one object costs work in proportion to the change, not to the cluster: the tests count
//! plugin calls and the parts of the snapshot that are rebuilt.

use super::*;
use crate::cache::Cache;
use kubestep_api::Node;
use kubestep_framework::node::NodeId;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::snapshot::pod_index::ClassPods;

/// Pods on each node.
const PODS: usize = 3;

fn zoned(at: usize) -> Node {
    let zone = ["a", "b", "c"][at % 3];
    node(&format!("n{at}")).label("topology.kubernetes.io/zone", zone)
}

/// A pod of one of six apps with a claim; the pods of two of them have anti-affinity to app `x`.
fn placed(at: usize, on: usize) -> Pod {
    let volumes = json!([{"persistentVolumeClaim": {"claimName": format!("claim-{at}")}}]);
    let term = json!({"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"});
    let apart = json!({"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let spec = if at % 6 < 2 {
        json!({"volumes": volumes, "affinity": apart})
    } else {
        json!({"volumes": volumes})
    };
    let made = pod(&format!("p{at}")).requests("cpu", "10m").label("app", &format!("{}", at % 6));
    made.spec(spec).on(&format!("n{on}"))
}

/// What one change rebuilds in the snapshot of a cluster.
fn renewed(nodes: usize, change: fn(&mut Cache)) -> Vec<&'static str> {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    (0..nodes).for_each(|at| cache.add_node(Arc::new(zoned(at))));
    (0..nodes * PODS).for_each(|at| cache.add_pod(info(placed(at, at % nodes))));
    cache.update_snapshot(&mut snapshot);
    let (before, zones) = (snapshot.clone(), snapshot.topology("zone".into()));
    change(&mut cache);
    cache.update_snapshot(&mut snapshot);
    let mut parts = vec!["node"; new_nodes(&before, &snapshot)];
    parts.extend(vec!["class"; new_classes(&before, &snapshot)]);
    let zones_kept = Arc::ptr_eq(&zones, &snapshot.topology("zone".into()));
    let lists = before.shared_with(&snapshot).into_iter().chain([("domains", zones_kept)]);
    parts.extend(lists.filter(|(_, same)| !same).map(|(name, _)| name));
    parts
}

fn new_nodes(before: &Snapshot, after: &Snapshot) -> usize {
    let is_old = |id: NodeId| match (before.get(id), after.get(id)) {
        (Some(before), Some(after)) => Arc::ptr_eq(before, after),
        (before, after) => before.is_none() && after.is_none(),
    };
    (0..after.slots() as u32).filter(|slot| !is_old(NodeId(*slot))).count()
}

fn new_classes(before: &Snapshot, after: &Snapshot) -> usize {
    let is_in = |pods: &&ClassPods| {
        let mut classes = before.pods().classes();
        classes.any(|other| Arc::ptr_eq(&other.nodes, &pods.nodes))
    };
    after.pods().classes().filter(|pods| !is_in(pods)).count()
}

/// Name of a change, the change, and what it may rebuild.
type CacheChange = (&'static str, fn(&mut Cache), &'static [&'static str]);

#[test]
fn what_a_change_makes_again_does_not_grow_with_the_cluster() {
    let changes: [CacheChange; 7] = [
        ("pod added", |cache| cache.add_pod(info(placed(903, 5))), &["node", "class", "claims"]),
        (
            "pod removed",
            |cache| drop(cache.remove_pod(&placed(3, 3))),
            &["node", "class", "claims"],
        ),
        (
            "pod changed",
            |cache| {
                let changed = info(placed(3, 3).requests("cpu", "20m"));
                cache.update_pod(&placed(3, 3), changed).unwrap();
            },
            &["node"],
        ),
        (
            "node changed",
            |cache| cache.update_node(Arc::new(zoned(4).offers("cpu", "9"))),
            &["node"],
        ),
        (
            "node relabelled",
            |cache| cache.update_node(Arc::new(zoned(4).label("rack", "1"))),
            &["node", "domains"],
        ),
        (
            "node added",
            |cache| cache.add_node(Arc::new(zoned(900))),
            &["node", "order", "ranks", "names", "terms", "domains"],
        ),
        (
            "node removed",
            |cache| cache.remove_node(&zoned(4)).unwrap(),
            &["node", "class", "order", "ranks", "names", "claims", "terms", "domains"],
        ),
    ];
    for (name, change, expected) in changes {
        for nodes in [12, 120] {
            assert_eq!(renewed(nodes, change), expected, "{name} among {nodes} nodes");
        }
    }
}

/// The number of nodes on which a plugin runs in the cycle after a change.
fn asked_after(nodes: usize, change: fn(&mut Bench)) -> usize {
    let plugin = Scripted { has_key: true, ..Scripted::new("Counting", &[Filter]) };
    let mut bench = Bench::with(&plugin);
    (0..nodes).for_each(|at| bench.add(zoned(at)));
    ["x", "y"].into_iter().for_each(|name| bench.add(pod(name)));
    assert!(bench.step().node.is_some());
    assert_eq!(plugin.asked().len(), nodes);
    change(&mut bench);
    assert!(bench.step().node.is_some());
    plugin.asked().len()
}

/// Name of a change, the change, and the number of nodes that it affects.
type BenchChange = (&'static str, fn(&mut Bench), usize);

#[test]
fn after_a_change_plugins_are_asked_only_about_the_nodes_it_is_about() {
    let changes: [BenchChange; 6] = [
        ("nothing", |_| {}, 1), // the node of the first pod
        ("pod added", |bench| bench.add(placed(3, 9)), 2),
        ("node added", |bench| bench.add(zoned(900)), 2),
        ("node removed", |bench| bench.delete(zoned(9)), 1),
        (
            "node recreated",
            |bench| {
                bench.delete(zoned(9));
                bench.add(zoned(9));
            },
            2,
        ),
        (
            "claim added",
            |bench| {
                let name = json!({"name": "c", "namespace": "default"});
                let claim = json!({"kind": "PersistentVolumeClaim", "metadata": name});
                bench.add(kubestep_framework::testing::object(claim));
            },
            1,
        ),
    ];
    for (name, change, expected) in changes {
        for nodes in [12, 120] {
            assert_eq!(asked_after(nodes, change), expected, "{name} among {nodes} nodes");
        }
    }
}
