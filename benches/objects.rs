//! The time of one object: to decode it, to load it, and to change it in a loaded cluster.
//!
//! `cargo bench --bench objects`; `KUBESTEP_BENCH_NODES=15000` for large clusters.
//! `KUBESTEP_BENCH_ONCE=CHANGE` makes that change once, for a tool that counts instructions:
//! `valgrind --tool=callgrind --toggle-collect='objects::measured*' …`.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use kubestep_api::decode::{Text, decode};
use kubestep_api::{Kind, Object};
use kubestep_cluster::{World, load};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_framework::pod::NamespacedName;
use kubestep_source::{Filter, read_text};
use serde_json::{Value, json};

/// Default number of nodes.
const NODES: usize = 1_000;
/// Placed pods per node.
const PLACED: usize = 10;
/// Pods in the text that is decoded.
const READ: usize = 1_000;

fn node(number: usize) -> Value {
    let name = format!("node-{number:05}");
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": format!("zone-{}", number % 3),
    });
    let images: Vec<Value> = (0..30)
        .map(|image| json!({"names": [format!("registry.example/app:{image}")], "sizeBytes": 9}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "status": {"images": images, "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    })
}

/// A pod as kubectl prints it: most fields are not read by a scheduler.
fn pod(number: usize, node: usize) -> Value {
    let app = format!("app-{}", number % 50);
    let name = format!("{app}-6d4cf56db6-{number}");
    let env: Vec<Value> =
        (0..20).map(|at| json!({"name": format!("SETTING_{at}"), "value": "some value"})).collect();
    let probe = json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10});
    let container = json!({
        "name": "main", "image": format!("registry.example/app:{}", number % 30), "env": env,
        "readinessProbe": probe, "livenessProbe": probe,
        "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
    });
    let volumes = json!([
        {"name": "config", "configMap": {"name": app}},
        {"name": format!("kube-api-access-{number}"), "projected": {"defaultMode": 420}},
        {"name": "data", "persistentVolumeClaim": {"claimName": format!("data-{number}")}},
    ]);
    let term = json!({"labelSelector": {"matchLabels": {"app": app}},
        "topologyKey": "kubernetes.io/hostname"});
    let apart = json!([{"weight": 1, "podAffinityTerm": term}]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name,
            "labels": {"app": app}, "resourceVersion": number.to_string(),
            "managedFields": [{"manager": "kubelet", "fieldsV1": container}, {"fieldsV1": probe}]},
        "spec": {"nodeName": format!("node-{node:05}"), "schedulerName": "default-scheduler",
            "containers": [container], "volumes": volumes,
            "affinity": {"podAntiAffinity":
                {"preferredDuringSchedulingIgnoredDuringExecution": apart}}},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn object(json: &Value) -> Object {
    let kind = if json["kind"] == "Pod" { Kind::Pod } else { Kind::Node };
    match Object::deserialize_as(kind, json) {
        Ok(object) => object,
        Err(error) => unreachable!("a bench's own object: {error}"),
    }
}

fn empty() -> Result<World, String> {
    let (features, registry) = (FeatureGates::default(), kubestep_plugins::registry());
    let config = config::resolve(None, &features, &registry.descriptors());
    World::new(&config.map_err(|error| error.to_string())?, features, &registry)
        .map_err(|error| error.to_string())
}

/// A cluster that the scheduler has seen completely.
fn cluster(nodes: usize) -> Result<World, String> {
    let mut world = empty()?;
    let pods = (0..nodes * PLACED).map(|at| object(&pod(at, at % nodes)));
    load(&mut world, (0..nodes).map(|at| object(&node(at))).chain(pods));
    cycle(&mut world);
    Ok(world)
}

/// Updates the scheduler's snapshot, which happens when a pod is scheduled.
fn cycle(world: &mut World) {
    let mut waiting = pod(0, 0);
    waiting["metadata"]["name"] = json!("waiting");
    waiting["metadata"]["uid"] = json!("waiting");
    waiting["spec"] = json!({"containers": [], "nodeName": "", "nodeSelector": {"no": "node"}});
    world.create(object(&waiting));
    black_box(world.step());
    world.delete(Kind::Pod, NamespacedName::new("default".into(), "waiting".into()));
}

/// A change of one object.
type Change = fn(&mut World, usize);

const CHANGES: &[(&str, Change)] = &[
    ("pod added", |world, _| world.create(object(&pod(usize::MAX, 7)))),
    ("pod changed", |world, _| {
        let mut changed = pod(7, 7);
        changed["metadata"]["labels"]["rev"] = json!("2");
        world.update(object(&changed));
    }),
    ("pod deleted", |world, _| {
        world.delete(Kind::Pod, NamespacedName::new("default".into(), "app-7-6d4cf56db6-7".into()));
    }),
    ("node added", |world, nodes| world.create(object(&node(nodes)))),
    ("node changed", |world, _| {
        let mut changed = node(7);
        changed["status"]["allocatable"]["cpu"] = json!("31");
        world.update(object(&changed));
    }),
    ("node deleted", |world, _| {
        world.delete(Kind::Node, NamespacedName::new("".into(), "node-00007".into()));
    }),
];

#[inline(never)]
fn measured(world: &mut World, nodes: usize, change: Change) {
    change(world, nodes);
}

fn changes(criterion: &mut Criterion, nodes: usize) -> Result<(), String> {
    let mut group = criterion.benchmark_group(format!("change/{nodes}"));
    group.sample_size(20);
    let world = cluster(nodes)?;
    for (name, change) in CHANGES {
        group.bench_function(*name, |bencher| {
            // What a copy shares with the original would be copied within the measured time.
            let copy = || {
                let mut copy = world.clone();
                copy.create(object(&pod(usize::MAX - 1, 3)));
                copy.create(object(&node(nodes + 1)));
                copy
            };
            let changed = |mut world: World| {
                measured(&mut world, nodes, *change);
                world
            };
            bencher.iter_batched(copy, changed, BatchSize::LargeInput);
        });
    }
    group.finish();
    Ok(())
}

fn loading(criterion: &mut Criterion) -> Result<(), String> {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    let one = serde_json::to_string_pretty(&pod(1, 1)).map_err(|error| error.to_string())?;
    group.throughput(Throughput::Bytes(one.len() as u64));
    group.bench_function("decode a pod", |bencher| {
        bencher.iter(|| decode(Text::Json(black_box(&one)), None).is_ok());
    });
    let items: Vec<Value> = (0..READ).map(|at| pod(at, at % 10)).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    for (name, text) in [
        ("read JSON", serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?),
        ("read YAML", serde_yaml::to_string(&list).map_err(|error| error.to_string())?),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            let read = |text: String| read_text(name, text.into(), &Filter::default()).is_ok();
            bencher.iter_batched(|| text.clone(), read, BatchSize::LargeInput);
        });
    }
    let objects: Vec<Object> = items.iter().map(object).collect();
    group.throughput(Throughput::Elements(READ as u64));
    let world = empty()?;
    group.bench_function("load pods", |bencher| {
        let prepared = || (world.clone(), objects.clone());
        let loaded = |(mut world, objects): (World, Vec<Object>)| {
            load(&mut world, objects);
            world
        };
        bencher.iter_batched(prepared, loaded, BatchSize::LargeInput);
    });
    group.finish();
    Ok(())
}

fn main() -> Result<(), String> {
    let nodes = std::env::var("KUBESTEP_BENCH_NODES").ok().and_then(|text| text.parse().ok());
    let nodes = nodes.unwrap_or(NODES);
    if let Ok(wanted) = std::env::var("KUBESTEP_BENCH_ONCE") {
        let found = CHANGES.iter().find(|(name, _)| *name == wanted);
        let (_, change) = found.ok_or_else(|| format!("no change is called {wanted:?}"))?;
        measured(&mut cluster(nodes)?, nodes, *change);
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    loading(&mut criterion)?;
    changes(&mut criterion, nodes)?;
    criterion.final_summary();
    Ok(())
}
