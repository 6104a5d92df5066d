//! The time of one scheduling cycle, from the pop to the placed pod, for each kind of workload.
//!
//! `cargo bench --bench cycles`; `KUBESTEP_BENCH_NODES=5000` for large clusters. Every measured
//! cycle starts from a copy of the same world, in which the first cycles have already run.

use criterion::{BatchSize, Criterion};
use kubestep_api::{Kind, Object};
use kubestep_cluster::{World, load};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use serde_json::{Value, json};

/// Default number of nodes; upstream's benchmarks use 5000.
const NODES: usize = 1000;
/// Placed pods per node.
const PLACED: usize = 2;
/// Pending pods, enough for the cycles before the measured one.
const PENDING: usize = 20;
/// Cycles before the measured one.
const BEFORE: usize = 5;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// The requirements of the pods in a cluster.
#[derive(Clone, Copy, PartialEq)]
enum Workload {
    /// A little CPU and memory.
    Basic,
    /// Topology spread over zones and hosts.
    Spread,
    /// Anti-affinity to pods of the same app on a host.
    AntiAffinity,
    /// Preferred affinity to pods of the same tier in a zone.
    Affinity,
    /// Pending pods require a disk that no node has.
    Unschedulable,
    /// Pending pods request more CPU than any node has.
    Unfit,
}

const WORKLOADS: &[(&str, Workload)] = &[
    ("basic", Workload::Basic),
    ("spread", Workload::Spread),
    ("antiaffinity", Workload::AntiAffinity),
    ("affinity", Workload::Affinity),
    ("unsched", Workload::Unschedulable),
    ("unfit", Workload::Unfit),
];

fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

fn node(number: usize) -> Value {
    let name = node_name(number);
    let disk = if number.is_multiple_of(2) { "hdd" } else { "ssd" };
    let labels = json!({
        HOST: name, ZONE: format!("zone-{}", number % 3),
        "kubernetes.io/arch": "amd64", "disktype": disk,
    });
    let taints = match number % 10 {
        9 => json!([{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]),
        _ => json!([]),
    };
    let images = json!([{"names": [image(number)], "sizeBytes": 300_000_000}]);
    json!({
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "images": images,
            "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "200Gi"},
        },
    })
}

fn image(number: usize) -> String {
    format!("registry.example/app:{}", number % 7)
}

fn pod(workload: Workload, number: usize, node: Option<String>) -> Value {
    let pending = node.is_none();
    let name = if pending { format!("p-{number}") } else { format!("b-{number}") };
    let app = format!("app-{}", number % 50);
    let tier = format!("t{}", number % 3);
    let created = "2026-01-01T00:00:00Z";
    let mut spec = wishes(workload, &app, &tier, pending);
    spec["priority"] = json!(0);
    spec["containers"] = json!([{
        "name": "c", "image": image(number),
        "resources": {"requests": requests(workload, pending)},
    }]);
    let mut status = json!({"phase": "Pending"});
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
        status = json!({"phase": "Running", "startTime": created});
    }
    let labels = json!({"app": app, "tier": tier});
    let metadata = json!({"name": name, "namespace": "default", "uid": name, "labels": labels,
        "creationTimestamp": created});
    json!({"metadata": metadata, "spec": spec, "status": status})
}

fn requests(workload: Workload, pending: bool) -> Value {
    match workload == Workload::Unfit && pending {
        true => json!({"cpu": "64", "memory": "100Gi"}),
        false => json!({"cpu": "100m", "memory": "200Mi"}),
    }
}

/// The part of a pod's spec that is specific to the workload.
fn wishes(workload: Workload, app: &str, tier: &str, pending: bool) -> Value {
    let of_app = json!({"matchLabels": {"app": app}});
    match workload {
        Workload::Spread => {
            let one = |skew: u8, key: &str, otherwise: &str| {
                json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": otherwise,
                    "labelSelector": of_app})
            };
            let hard = one(1, ZONE, "DoNotSchedule");
            json!({"topologySpreadConstraints": [hard, one(3, HOST, "ScheduleAnyway")]})
        }
        Workload::AntiAffinity => {
            let term = json!({"labelSelector": of_app, "topologyKey": HOST});
            let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            json!({"affinity": {"podAntiAffinity": required}})
        }
        Workload::Affinity => {
            let selector = json!({"matchLabels": {"tier": tier}});
            let term = json!({"labelSelector": selector, "topologyKey": ZONE});
            let term = json!({"weight": 10, "podAffinityTerm": term});
            let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": [term]});
            json!({"affinity": {"podAffinity": preferred}})
        }
        Workload::Unschedulable if pending => json!({"nodeSelector": {"disktype": "nvme"}}),
        Workload::Basic | Workload::Unschedulable | Workload::Unfit => json!({}),
    }
}

/// The cluster with the default scheduler, after a few cycles.
fn world(workload: Workload, nodes: usize) -> Result<World, String> {
    let features = FeatureGates::default();
    let registry = kubestep_plugins::registry();
    let config = config::resolve(None, &features, &registry.descriptors())
        .map_err(|error| error.to_string())?;
    let mut world = World::new(&config, features, &registry).map_err(|error| error.to_string())?;
    let namespace = json!({"metadata": {"name": "default", "uid": "ns"}});
    let mut objects = vec![read(Kind::Namespace, &namespace)?];
    for number in 0..nodes {
        objects.push(read(Kind::Node, &node(number))?);
    }
    for number in 0..nodes * PLACED {
        let on = node_name(number % nodes);
        objects.push(read(Kind::Pod, &pod(workload, number, Some(on)))?);
    }
    for number in 0..PENDING {
        objects.push(read(Kind::Pod, &pod(workload, number, None))?);
    }
    load(&mut world, objects);
    world.run(BEFORE);
    Ok(world)
}

fn read(kind: Kind, json: &Value) -> Result<Object, String> {
    Object::deserialize_as(kind, json).map_err(|error| error.to_string())
}

fn cycles(criterion: &mut Criterion, nodes: usize) -> Result<(), String> {
    let mut group = criterion.benchmark_group(format!("cycle/{nodes}"));
    group.sample_size(20);
    for (name, workload) in WORKLOADS {
        let world = world(*workload, nodes)?;
        group.bench_function(*name, |bencher| {
            let copy = || world.clone();
            // The world is returned, so that dropping it is not measured.
            let cycle = |mut world: World| (world.step(), world);
            bencher.iter_batched(copy, cycle, BatchSize::LargeInput);
        });
    }
    group.finish();
    Ok(())
}

fn main() -> Result<(), String> {
    let nodes = std::env::var("KUBESTEP_BENCH_NODES").ok().and_then(|text| text.parse().ok());
    let mut criterion = Criterion::default().configure_from_args();
    cycles(&mut criterion, nodes.unwrap_or(NODES))?;
    criterion.final_summary();
    Ok(())
}
