//! Guests in simulated clusters. The guests are in `guests`, as text.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has to stop, and reads its guests from files"
)]

use kubestep_cluster::World;
use kubestep_framework::config::{FeatureGates, PluginArgs, ProfileArgs, resolve};
use kubestep_framework::prelude::*;
use kubestep_framework::record::VerdictId;
use kubestep_framework::testing::{Cluster, NodeBuilder, info, node, pod};
use kubestep_wasm::{GuestError, GuestLimits, GuestModule, entry, guests};

/// Limits that a debug build reaches soon.
const LIMITS: GuestLimits = GuestLimits { instructions: 1_000_000, memory: 8 << 20 };

fn module(wat: &str) -> Result<GuestModule, GuestError> {
    GuestModule::new(&wat::parse_str(wat).unwrap())
}

fn guest(name: &str) -> Entry {
    let text = std::fs::read_to_string(format!("tests/guests/{name}.wat")).unwrap();
    entry("Guest".into(), vec![("file://guest.wasm".into(), module(&text).unwrap())], LIMITS)
}

/// A cluster with these nodes, and a scheduler with the guest.
fn world(name: &str, config: &str, nodes: &[&str]) -> World {
    let mut registry = kubestep_plugins::registry();
    registry.register(guest(name)).unwrap();
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
         - plugins: {{multiPoint: {{enabled: [{{name: Guest, weight: 9}}]}}}}\n  \
           pluginConfig:\n  - name: Guest\n    \
             args: {{guestURL: 'file://guest.wasm', guestConfig: '{config}'}}\n"
    );
    let gates = FeatureGates::default();
    let config = resolve(Some(&text), &gates, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, gates, &registry).unwrap();
    nodes.iter().for_each(|name| world.create(node(name).offers("cpu", "9").into()));
    world
}

/// The outcome of one pod: its node, or why it has none.
fn outcome(world: &mut World, name: &str) -> String {
    world.create(pod(name).into());
    let record = world.step().unwrap();
    record.node.map_or_else(|| record.message.clone(), |node| node.to_string())
}

#[test]
fn filter_rejects_nodes_with_its_reason() {
    let mut world = world("other_team", "b", &["a1", "b1", "c1"]);
    assert_eq!(outcome(&mut world, "p"), "b1");
    let mut world = self::world("other_team", "z", &["a1", "b1", "c1"]);
    let message = outcome(&mut world, "p");
    assert!(message.starts_with("0/3 nodes are available: 3 node is another team's."), "{message}");
}

#[test]
fn score_and_normalized_score_are_columns() {
    let mut world = world("digits", "", &["n1", "n2"]);
    world.create(pod("p").into());
    let record = world.step().unwrap();
    let column = record.score.plugins.iter().find(|column| column.plugin == "Guest").unwrap();
    assert_eq!(column.weight, 9);
    let values = |column: &dyn Fn(usize) -> Option<i64>| [column(0), column(1)];
    assert_eq!(values(&|at| column.raw.get(at)), [Some(10), Some(20)]);
    assert_eq!(values(&|at| column.normalized.get(at)), [Some(20), Some(10)]);
    assert_eq!(record.node, Some("n1".into()));
}

#[test]
fn a_guest_gets_pod_and_node_as_protobuf() {
    let mut world = world("labels", "", &["n1", "n2"]);
    world.create(node("n3").offers("cpu", "9").label("for", "blue").into());
    assert_eq!(outcome(&mut world, "blue"), "n3");
}

#[test]
fn state_lasts_for_a_cycle() {
    let mut world = world("first_two", "", &["n1", "n2", "n3", "n4"]);
    for name in ["p", "q"] {
        world.create(pod(name).into());
        let record = world.step().unwrap();
        let mut columns = record.filter.plugins.iter();
        let column = columns.find(|column| column.plugin == "Guest").unwrap();
        let passes = |at: &u32| column.verdicts.get(NodeId(*at)) == Some(VerdictId::PASS);
        let passed = (0..4).filter(passes).count();
        assert_eq!(passed, 2, "in each cycle, from the beginning");
    }
}

#[test]
fn a_copied_state_is_independent() {
    let mut args = ProfileArgs::default();
    let url = serde_json::json!({"guestURL": "file://guest.wasm"});
    args.set("Guest".into(), PluginArgs::raw(url));
    let registry = Registry::of([guest("first_two")]).unwrap();
    let plugin = registry.build("Guest".into(), &args, &FeatureGates::default()).unwrap();
    let cluster = Cluster::of(vec![serde_json::json!({"metadata": {"name": "n"}})], vec![]);
    let pod = info(pod("p"));
    let (cx, mut state) = (cluster.cx(&pod), CycleState::default());
    assert!(plugin.pre_filter(&cx, &mut state).status.is_success());
    let (node, added) = (cluster.node("n").clone(), pod.clone());
    assert!(plugin.filter(&cx, &state, &node).is_success());
    let mut copy = state.clone();
    for _ in 0..3 {
        assert!(plugin.add_pod(&cx, &mut copy, &added, &node).is_success());
    }
    assert!(plugin.filter(&cx, &copy, &node).is_rejected(), "the copy counted on");
    assert!(plugin.filter(&cx, &state, &node).is_success(), "the original did not");
    assert!(plugin.filter(&cx, &state, &node).is_rejected(), "until now");
}

#[test]
fn pre_filter_narrows_permit_waits_and_enqueue_registers() {
    let mut world = world("narrow", "", &["a", "b", "c"]);
    world.create(pod("p").into());
    let record = world.step().unwrap();
    assert_eq!(world.scheduler().waiting().iter().count(), 1);
    assert!(record.node.is_some_and(|node| node == "b" || node == "c"), "{record:?}");
    let mut world = {
        let mut branch = world.clone();
        world.advance(4_900_000);
        assert_eq!(world.scheduler().waiting().iter().count(), 1);
        branch.advance(5_100_000);
        branch
    };
    assert_eq!(world.scheduler().waiting().iter().count(), 0);
    // Rejected by the time limit, the pod comes back with a new node, and not before.
    world.advance(60_000_000);
    assert!(world.step().is_none());
    world.create(node("d").into());
    assert!(world.step().is_some());
}

#[test]
fn a_guest_that_fails_is_an_error_of_its_plugin() {
    for (how, expected) in [
        ("p", "the guest gave up, as on a panic; it printed \"panic: no GPU\""),
        ("l", "the guest did not end within 1 million instructions, the limit for one call"),
        ("a", "the guest did not end within 1 million instructions, the limit for one call"),
        ("m", "the guest wants more than 8 MiB of memory, the limit"),
        ("d", "the guest's calls are nested too deeply"),
        ("x", "the guest exited with status 3"),
        ("o", "the guest failed: it passed a buffer outside its memory"),
    ] {
        let mut world = world("stop", how, &["n1", "n2"]);
        let message = outcome(&mut world, "p");
        assert_eq!(
            message,
            format!("running \"Guest\" filter plugin: wasm: filter error: {expected}")
        );
        // The next pod gets a fresh guest, and the scheduler goes on.
        assert!(outcome(&mut world, "q").contains(expected));
    }
    assert_eq!(outcome(&mut world("stop", "u", &["n1"]), "p"), "n1");
    let message = outcome(&mut world("stop", "?", &["n1"]), "p");
    assert!(message.contains("the guest returned the unknown status code 99"), "{message}");
}

#[test]
fn what_is_no_guest_is_rejected() {
    let memory = "(memory (export \"memory\") 1)";
    let filter = "(func (export \"filter\") (result i32) i32.const 0)";
    for (wat, expected) in [
        (format!("(module {filter})"), "the guest does not export its memory as \"memory\""),
        (
            format!("(module {memory})"),
            "the guest exports none of filter, score, reserve, permit and bind",
        ),
        (
            format!("(module {memory} (func (export \"prescore\") (result i32) i32.const 0))"),
            "the guest exports none of filter, score, reserve, permit and bind",
        ),
        (
            format!("(module {memory} (func (export \"score\") (result i32) i32.const 0))"),
            "the guest's function score must take no parameters and return i64",
        ),
        (
            format!("(module {memory} (func (export \"unreserve\") (result i32) i32.const 0))"),
            "the guest's function unreserve must take no parameters and return nothing",
        ),
    ] {
        assert_eq!(module(&wat).err().map(|error| error.to_string()).as_deref(), Some(expected));
    }
    let error = GuestModule::new(b"hello").err().unwrap().to_string();
    assert!(error.starts_with("it is not a WebAssembly module that can run here: "), "{error}");
    assert!(module(&format!("(module {memory} {filter})")).is_ok());
    let only = format!("(module {memory} (func (export \"prefilter\") (result i32) i32.const 0))");
    assert_eq!(module(&only).unwrap().points().iter().collect::<Vec<_>>(), [PreFilter]);
}

#[test]
fn a_guest_that_cannot_start_is_rejected() {
    let memory = "(memory (export \"memory\") 1)";
    let filter = "(func (export \"filter\") (result i32) i32.const 0)";
    let built = |wat: String| {
        let entry = entry("Guest".into(), vec![("file:g".into(), module(&wat).unwrap())], LIMITS);
        let registry = Registry::of([entry]).unwrap();
        let mut args = ProfileArgs::default();
        args.set("Guest".into(), PluginArgs::raw(serde_json::json!({"guestURL": "file:g"})));
        registry.build("Guest".into(), &args, &FeatureGates::default())
    };
    let import = format!("(module (import \"k8s.io/api\" \"secrets\" (func)) {memory} {filter})");
    let error = built(import).err().unwrap().to_string();
    assert!(error.contains("secrets"), "{error}");
    let large = format!("(module (memory (export \"memory\") 200) {filter})");
    let error = built(large).err().unwrap().to_string();
    assert!(error.starts_with("wasm: "), "{error}");
    let panics = format!("(module {memory} {filter} (func (export \"_start\") unreachable))");
    let error = built(panics).err().unwrap().to_string();
    assert_eq!(error, "wasm: the guest gave up, as on a panic");
    assert!(built(format!("(module {memory} {filter})")).is_ok());
}

#[test]
fn a_configuration_names_its_guests() {
    let profile = |name: &str, url: &str| {
        format!("- pluginConfig: [{{name: {name}, args: {{guestURL: {url}}}}}, {{name: Other}}]\n")
    };
    let all = [profile("A", "file://a"), profile("A", "file://a"), profile("A", "file://b")];
    let found = guests(&format!("profiles:\n{}", all.concat()));
    let urls: Vec<&str> = found.iter().map(|guest| guest.url.as_str()).collect();
    assert_eq!(urls, ["file://a", "file://b"]);
    assert!(guests("profiles: 3").is_empty() && guests("{").is_empty());
}
