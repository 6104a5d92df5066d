//! What the tests of several plugins share.

use serde_json::Value;

use kubestep_cluster::World;
use kubestep_framework::api::{Kind, Object};
use kubestep_framework::config::{ConfigError, FeatureGates, Problem, resolve};
use kubestep_framework::testing::key;

/// What is wrong with a configuration that enables `plugin` at a point with these arguments; empty if
/// nothing is.
pub fn problems(plugin: &str, point: &str, args: &str) -> String {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
         - plugins: {{{point}: {{enabled: [{{name: {plugin}}}]}}}}\n  \
           pluginConfig: [{{name: {plugin}, args: {args}}}]\n"
    );
    let registry = crate::add_to(kubestep_plugins::registry());
    match resolve(Some(&text), &FeatureGates::default(), &registry.descriptors()) {
        Ok(_) => String::new(),
        Err(ConfigError { problems, .. }) => problems.iter().map(Problem::to_string).collect(),
    }
}

/// An object written as in the API, also of a kind that only plugins read.
pub fn object(json: Value) -> Object {
    crate::declare_kinds();
    let field = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    let kind = Kind::of(&field("apiVersion"), &field("kind")).unwrap();
    Object::deserialize_as(kind, json).unwrap()
}

/// A simulated cluster with the in-tree plugins and those of this package, and a scheduler with
/// this profile.
pub fn world(profile: &str) -> World {
    let registry = crate::add_to(kubestep_plugins::registry());
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
         - {profile}\n"
    );
    let gates = FeatureGates::default();
    let config = resolve(Some(&text), &gates, &registry.descriptors()).unwrap();
    World::new(&config, gates, &registry).unwrap()
}

/// The nodes of pods; empty for those without one.
pub fn places(world: &World, pods: &[&str]) -> Vec<String> {
    let place = |name: &&str| {
        let pod = world.api().objects().pod(key(name));
        pod.map_or("deleted".into(), |pod| pod.spec.node_name.to_string())
    };
    pods.iter().map(place).collect()
}

/// The names of the pods that wait at Permit.
pub fn waiting(world: &World) -> Vec<String> {
    let waiting = world.scheduler().waiting().iter();
    waiting.map(|waiting| waiting.pod().key().name.to_string()).collect()
}
