//! The program, called within this process: reads documents as its commands do, explains a pod, and
//! returns the result of the pods.

use std::collections::BTreeSet;

use kubestep::report;
use kubestep_api::{Kind, Object};
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_debug::fix::{self, SearchLimits};
use kubestep_debug::why::ask;
use kubestep_framework::pod::NamespacedName;
use serde_json::{Value, json};

/// Cycles that run before a question, as by default in the command.
const CYCLES: usize = 1_000;
/// How long a run may take, in virtual microseconds: longer than a pod can stay unschedulable
/// before it is flushed.
const WATCHED: i64 = 6 * 60 * 1_000_000;

/// Documents with the scheduler configuration.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub documents: &'a [Value],
    pub config: Option<&'a str>,
    pub gates: &'a str,
}

/// A complete scheduler configuration with these settings.
pub fn configuration(settings: &str) -> String {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    format!("{head}{settings}\n")
}

fn open(input: Input<'_>) -> Result<Session, String> {
    let features = FeatureGates::parse(input.gates).map_err(|error| error.to_string())?;
    let registry = kubestep::plugins::registry();
    let text = input.config.map(configuration);
    let config = config::resolve(text.as_deref(), &features, &registry.descriptors())
        .map_err(|error| error.to_string())?;
    let mut world = World::new(&config, features, &registry).map_err(|error| error.to_string())?;
    let objects = input.documents.iter().filter_map(|document| object(document).transpose());
    let objects: Result<Vec<Object>, String> = objects.collect();
    kubestep_cluster::load(&mut world, objects?);
    Ok(Session::new(world))
}

/// The object of a document; `None` if the scheduler does not read its kind.
fn object(document: &Value) -> Result<Option<Object>, String> {
    let Some(kind) = document["kind"].as_str().and_then(Kind::by_name) else { return Ok(None) };
    let read = Object::deserialize_as(kind, document);
    read.map(Some).map_err(|error| format!("{error}: {document}"))
}

fn key(name: &str) -> NamespacedName {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    NamespacedName::new(namespace.into(), name.into())
}

/// The answer of `kubestep explain POD --fix -o json`.
pub fn explain(input: Input<'_>, pod: &str) -> Result<Value, String> {
    let mut session = open(input)?;
    let start = session.world().clone();
    session.run_until_idle(CYCLES, |_| false);
    let why = ask(&mut session, key(pod), &[]).ok_or("there is no such pod")?;
    let (world, limits) = (session.world(), SearchLimits::default());
    let fixes = fix::fixes(world, &start, key(pod), limits, &mut |_, _| true);
    let mut answer = report::why::value(&why);
    report::add_version(&mut answer, *session.world().scheduler().features());
    answer["fixes"] = report::fixes::value(&fixes);
    Ok(answer)
}

/// The result for a pod.
#[derive(Debug)]
pub struct End {
    pub node: Option<String>,
    /// Whether it waits at Permit or in PreBind, with its resources reserved.
    pub waits: bool,
    /// Pods that existed at first and were deleted.
    pub evicted: BTreeSet<String>,
}

impl End {
    pub fn is_placed(&self) -> bool {
        self.node.is_some() || self.waits
    }
}

/// Runs the scheduler until the pod has a node, or for some minutes.
pub fn run(input: Input<'_>, pod: &str) -> Result<End, String> {
    let mut session = open(input)?;
    let before = pods(session.world());
    let end = session.world().now().0 + WATCHED;
    loop {
        session.run_until_idle(CYCLES, |_| false);
        let due = session.world().next_timer();
        if end_of(session.world(), pod).is_placed() || due.is_none_or(|due| due.0 > end) {
            break;
        }
        session.advance_to_next_timer();
    }
    let mut seen = end_of(session.world(), pod);
    seen.evicted = &before - &pods(session.world());
    Ok(seen)
}

fn pods(world: &World) -> BTreeSet<String> {
    world.api().objects().pods.keys().map(ToString::to_string).collect()
}

fn end_of(world: &World, pod: &str) -> End {
    let pod = key(pod);
    let object = world.api().objects().pod(pod);
    let node = object.map(|object| object.spec.node_name).filter(|node| !node.is_empty());
    let waits = world.scheduler().waiting().iter().any(|waiting| waiting.pod().key() == pod);
    End { node: node.map(|node| node.to_string()), waits, evicted: BTreeSet::new() }
}

/// The documents as a list that the program reads.
pub fn list(documents: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": documents})
}
