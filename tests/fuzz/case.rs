//! A random cluster and the steps that change it. Both depend only on the seed, so that every run
//! of a case is the same.

use kubestep_api::{Kind, Object};
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::{Feature, FeatureGates, KubeVersion};
use serde_json::{Value, json};

use crate::gates;
use crate::objects;
use crate::random::Random;

/// Profiles and settings to be tried.
const CONFIGS: &[Option<&str>] = &[
    None,
    None,
    Some("percentageOfNodesToScore: 30"),
    Some(
        "profiles:
- plugins: {permit: {enabled: [{name: ManualPermit}]}}
  pluginConfig:
  - {name: ManualPermit, args: {selector: {matchLabels: {held: 'yes'}}}}",
    ),
    Some(
        "profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}
  - {name: PodTopologySpread, args: {defaultingType: System}}",
    ),
];

/// A step of a case.
pub enum Step {
    /// Runs up to that many cycles.
    Run(usize),
    Create(Vec<Value>),
    /// Patches an object, as with `kubectl patch --type merge`; no effect if it was deleted.
    Patch(Kind, String, Value),
    /// Deletes the object of that kind and name.
    Delete(Kind, String),
    /// Advances the clock by that many seconds.
    Advance(i64),
    /// Allows, or rejects, the first pod that waits at Permit.
    Decide(bool),
}

/// A cluster and the steps that change it.
pub struct Case {
    pub config: Option<String>,
    pub features: Vec<(&'static str, bool)>,
    /// The version that decides.
    version: KubeVersion,
    /// Whether extenders are configured.
    pub has_extenders: bool,
    /// Whether the scheduler's own status patches change a pod's resource version.
    status_patches_count: bool,
    /// Lists of objects; the order of arrival matters only within a list.
    pub lists: Vec<Vec<Value>>,
    /// Pending pods, which are created last.
    pub pending: Vec<Value>,
    pub steps: Vec<Step>,
}

impl Case {
    /// Few nodes and many steps, under a random version.
    pub fn small(seed: u64) -> Case {
        let mut case = Case::of_default_version(seed);
        let versions: Vec<KubeVersion> = KubeVersion::all().collect();
        case.version = versions[Random::new(seed ^ 0x7e57).below(versions.len())];
        let gates = FeatureGates::of(case.version);
        case.features.retain(|(gate, _)| {
            Feature::from_name(gate).is_some_and(|gate| gates.spec(gate).is_some())
        });
        case
    }

    fn of_default_version(seed: u64) -> Case {
        let mut r = Random::new(seed);
        let nodes = 2 + r.below(28);
        Case::new(&mut r, nodes, 15, 40)
    }

    /// Like [`Case::small`] under the default version, with feature gates enabled that are off by
    /// default, and pod groups or extenders.
    pub fn with_gates(seed: u64) -> Case {
        let mut case = Case::of_default_version(seed);
        gates::decorate(&mut case, seed);
        case
    }

    /// A case of each kind.
    pub fn both(seed: u64) -> [Case; 2] {
        [Case::small(seed), Case::with_gates(seed)]
    }

    /// Full nodes, and pods of a few kinds that preempt others. No object lets a decision depend on
    /// more than a node and the pods on it.
    pub fn crowded(seed: u64) -> Case {
        let mut case = Case::of_default_version(seed);
        let mut r = Random::new(seed);
        let nodes = 3 + r.below(10);
        let names: Vec<String> = (0..nodes).map(|i| format!("n{i}")).collect();
        case.config = None;
        case.lists = vec![names.iter().map(|name| objects::node(&mut r, name)).collect()];
        for name in &names {
            let pod = |i| objects::plain_pod(&mut r, &format!("{name}-{i}"), Some(name));
            case.lists.push((0..4).map(pod).collect());
        }
        case.pending =
            (0..15).map(|i| objects::plain_pod(&mut r, &format!("p{i}"), None)).collect();
        case.steps = (0..60)
            .map(|number| match step(&mut r, number, nodes) {
                Step::Create(_) => {
                    let name = format!("p{}", 100 + number);
                    Step::Create(vec![objects::plain_pod(&mut r, &name, None)])
                }
                step => step,
            })
            .collect();
        case
    }

    /// Enough nodes for threads to share the work.
    pub fn large(seed: u64) -> Case {
        let mut r = Random::new(seed);
        let nodes = 600 + r.below(60);
        Case::new(&mut r, nodes, 6, 8)
    }

    fn new(r: &mut Random, nodes: usize, pending: usize, steps: usize) -> Case {
        let names: Vec<String> = (0..nodes).map(|i| format!("n{i}")).collect();
        let mut lists = vec![names.iter().map(|name| objects::node(r, name)).collect()];
        lists.extend(objects::unrelated(r).into_iter().map(|object| vec![object]));
        for name in &names {
            lists.extend(objects::beside_node(r, name).into_iter().map(|object| vec![object]));
            let pods =
                (0..r.below(4)).flat_map(|i| objects::pod(r, &format!("{name}-{i}"), Some(name)));
            lists.push(pods.collect());
        }
        let pods = (0..=r.below(pending)).flat_map(|i| objects::pod(r, &format!("p{i}"), None));
        let (pending, claims): (Vec<Value>, Vec<Value>) =
            pods.partition(|object| object["kind"] == "Pod");
        lists.extend(claims.into_iter().map(|claim| vec![claim]));
        let mut case = Case {
            config: CONFIGS[r.below(CONFIGS.len())].map(document),
            features: Vec::new(),
            version: KubeVersion::default(),
            has_extenders: false,
            status_patches_count: r.chance(50),
            lists,
            pending,
            steps: Vec::new(),
        };
        for gate in
            ["OpportunisticBatching", "SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ"]
        {
            if r.chance(25) {
                case.features.push((gate, false));
            }
        }
        case.steps = (0..steps).map(|i| step(r, i, nodes)).collect();
        case
    }

    /// The cluster before the first step, its objects in order of creation.
    pub fn world(&self) -> Result<World, String> {
        self.filled(self.lists.concat())
    }

    /// Like [`Case::world`], with the lists interleaved at random.
    pub fn shuffled_world(&self, r: &mut Random) -> Result<World, String> {
        let mut lists: Vec<_> = self.lists.iter().map(|list| list.iter()).collect();
        let mut order = Vec::new();
        while !lists.is_empty() {
            let at = r.below(lists.len());
            match lists[at].next() {
                Some(object) => order.push(object.clone()),
                None => drop(lists.swap_remove(at)),
            }
        }
        self.filled(order)
    }

    fn filled(&self, objects: Vec<Value>) -> Result<World, String> {
        let features = FeatureGates::of(self.version)
            .with_pairs(self.features.iter().copied())
            .map_err(|error| error.to_string())?;
        let registry = kubestep_plugins::registry();
        let config = config::resolve(self.config.as_deref(), &features, &registry.descriptors())
            .map_err(|error| error.to_string())?;
        let mut world =
            World::new(&config, features, &registry).map_err(|error| error.to_string())?;
        world.api_mut().set_status_patches_count(self.status_patches_count);
        if self.has_extenders {
            world.api_mut().set_extenders(gates::extenders());
        }
        for object in objects.iter().chain(&self.pending) {
            world.create(read(object)?);
        }
        Ok(world)
    }
}

pub fn document(settings: &str) -> String {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    format!("{head}{settings}\n")
}

/// The object that a JSON document describes.
pub fn read(json: &Value) -> Result<Object, String> {
    let kind = json["kind"].as_str().and_then(Kind::by_name).ok_or("an unknown kind")?;
    Object::deserialize_as(kind, json).map_err(|error| format!("{error}: {json}"))
}

fn step(r: &mut Random, number: usize, nodes: usize) -> Step {
    let node = format!("n{}", r.below(nodes));
    let placed = format!("n{}-{}", r.below(nodes), r.below(3));
    let pod = if r.chance(50) { placed } else { format!("p{}", r.below(15)) };
    match r.below(100) {
        0..36 => Step::Run(1 + r.below(4)),
        36..40 => other_patch(r),
        40..55 => Step::Advance([1, 3, 12, 301][r.below(4)]),
        55..68 => Step::Create(objects::pod(r, &format!("p{}", 100 + number), None)),
        68..73 => Step::Create(vec![objects::node(r, &format!("n{}", 1000 + number))]),
        73..83 => Step::Patch(Kind::Node, node, node_patch(r)),
        83..91 => Step::Patch(Kind::Pod, pod, pod_patch(r)),
        91..95 => Step::Delete(Kind::Pod, pod),
        95..97 => Step::Delete(Kind::Node, node),
        _ => Step::Decide(r.chance(50)),
    }
}

fn node_patch(r: &mut Random) -> Value {
    match r.below(7) {
        0 => json!({"spec": {"unschedulable": true}}),
        1 => json!({"spec": {"unschedulable": null}}),
        2 => json!({"spec": {"taints": objects::taints(r)}}),
        3 => json!({"spec": {"taints": null}}),
        4 => json!({"metadata": {"labels": {objects::ZONE: objects::zone(r)}}}),
        5 => json!({"status": {"allocatable": objects::allocatable(r)}}),
        _ => json!({"status": {"images": objects::images(r)}}),
    }
}

/// A patch of an object other than a node or pod.
fn other_patch(r: &mut Random) -> Step {
    let patch = |kind, name: &str, patch| Step::Patch(kind, name.to_owned(), patch);
    match r.below(4) {
        0 => {
            let spec = json!({"extendedResourceName": "example.com/fpga"});
            patch(Kind::DeviceClass, "gpu", json!({"spec": spec}))
        }
        1 => patch(Kind::DeviceClass, "gpu", json!({"spec": {"extendedResourceName": null}})),
        2 => patch(Kind::Namespace, "shop", json!({"metadata": {"labels": {"team": "b"}}})),
        _ => {
            let status = json!({"disruptionsAllowed": r.below(3)});
            patch(Kind::PodDisruptionBudget, "PodDisruptionBudget", json!({"status": status}))
        }
    }
}

fn pod_patch(r: &mut Random) -> Value {
    match r.below(5) {
        0 => json!({"metadata": {"labels": {"app": objects::app(r)}}}),
        1 => json!({"spec": {"schedulingGates": null}}),
        2 => json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:05Z"}}),
        3 => json!({"status": {"phase": "Succeeded"}}),
        _ => json!({"spec": {"containers":
            [{"name": "c", "resources": {"requests": objects::requests(r)}}]}}),
    }
}
