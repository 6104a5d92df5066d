//! perf FILE CYCLES [PERCENT] [WARM]
use kubestep_api::{Kind, Object};
use kubestep_cluster::{World, load};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use serde_json::{Value, json};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let cycles: usize = args[2].parse().unwrap();
    let percent: i64 = args.get(3).map_or(0, |a| a.parse().unwrap());
    let warm: usize = args.get(4).map_or(100, |a| a.parse().unwrap());
    let features = FeatureGates::default();
    let registry = kubestep_plugins::registry();
    let yaml = format!("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: {percent}\n");
    let config = config::resolve(Some(&yaml), &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    let mut objects = Vec::new();
    for item in list["items"].as_array().unwrap() {
        let kind = Kind::by_name(item["kind"].as_str().unwrap()).unwrap();
        objects.push(Object::deserialize_as(kind, item).unwrap());
    }
    drop(list);
    load(&mut world, objects);
    let mut kept = Vec::new();
    for _ in 0..warm { kept.push(world.step()); }
    let start = std::time::Instant::now();
    for _ in 0..cycles { kept.push(world.step()); }
    let took = start.elapsed();
    let rss = std::fs::read_to_string("/proc/self/status").unwrap();
    let rss = rss.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("").to_owned();
    eprintln!("{} {percent} {cycles} cycles {took:?} {:.0}/s {rss}", args[1], cycles as f64 / took.as_secs_f64());
    std::mem::forget(kept);
    std::mem::forget(world);
}
