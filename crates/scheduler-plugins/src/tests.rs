//! Configurations as the project's manifests have them.

use kubestep_cluster::World;
use kubestep_framework::config::{
    ConfigError, ExtensionPoint, FeatureGates, ResolvedConfig, UnknownPlugins, resolve, resolve_as,
};

/// A profile in a document like those of the manifests.
fn document(version: &str, profile: &str) -> String {
    format!(
        "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n\
         leaderElection:\n  leaderElect: false\n\
         clientConnection:\n  kubeconfig: \"REPLACE_ME_WITH_KUBE_CONFIG_PATH\"\n\
         profiles:\n{profile}"
    )
}

const COSCHEDULING: &str = r#"
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
    queueSort:
      enabled:
      - name: Coscheduling
      disabled:
      - name: "*"
  pluginConfig:
  - name: Coscheduling
    args:
      permitWaitingTimeSeconds: 10
"#;

const CAPACITY: &str = r#"
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: CapacityScheduling
    postFilter:
      enabled:
      - name: CapacityScheduling
      disabled:
      - name: "*"
"#;

const ALLOCATABLE: &str = r#"
- schedulerName: default-scheduler
  plugins:
    score:
      enabled:
      - name: NodeResourcesAllocatable
      disabled:
      - name: "*"
  pluginConfig:
  - name: NodeResourcesAllocatable
    args:
      mode: Least
      resources:
      - name: cpu
        weight: 1000000
      - name: memory
        weight: 1
"#;

const POD_STATE: &str = r#"
- schedulerName: default-scheduler
  plugins:
    score:
      enabled:
      - name: PodState
"#;

const QOS: &str = r#"
- schedulerName: default-scheduler
  plugins:
    queueSort:
      enabled:
      - name: QOSSort
      disabled:
      - name: "*"
"#;

const TOPOLOGY: &str = r#"
- schedulerName: topo-aware-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: NodeResourceTopologyMatch
    reserve:
      disabled:
      - name: NodeResourceTopologyMatch
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args:
      scoringStrategy:
        type: "LeastAllocated"
"#;

const TOPOLOGY_WITH_CACHE: &str = r#"
- schedulerName: topo-aware-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: NodeResourceTopologyMatch
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args:
      scoringStrategy:
        type: "LeastAllocated"
      cacheResyncPeriodSeconds: 5
"#;

/// As the chart renders its default values.
const CHART: &str = r#"
- schedulerName: scheduler-plugins-scheduler
  plugins:
    multiPoint:
      enabled:
      - name: Coscheduling
      - name: CapacityScheduling
      - name: NodeResourceTopologyMatch
      - name: NodeResourcesAllocatable
      disabled:
      - name: PrioritySort
  pluginConfig:
  - name: Coscheduling
    args:
      permitWaitingTimeSeconds: 10
"#;

const TOLERATION: &str = r#"
- schedulerName: default-scheduler
  plugins:
    postFilter:
      enabled:
      - name: PreemptionToleration
      disabled:
      - name: DefaultPreemption
"#;

/// The plugins at a point of the profile, or the error.
fn plugins(text: &str, point: ExtensionPoint) -> Result<Vec<String>, ConfigError> {
    let (registry, gates) = (crate::add_to(kubestep_plugins::registry()), FeatureGates::default());
    let config = resolve(Some(text), &gates, &registry.descriptors())?;
    World::new(&config, gates, &registry).unwrap();
    let plugins = config.profiles[0].points[point.index()].iter();
    Ok(plugins.map(|plugin| plugin.name.to_string()).collect())
}

#[test]
fn the_configurations_of_the_manifests_load() {
    use ExtensionPoint::{Filter, Permit, PostFilter, QueueSort, Reserve, Score};
    for (profile, point, expected) in [
        (COSCHEDULING, QueueSort, vec!["Coscheduling"]),
        (COSCHEDULING, PostFilter, vec!["DynamicResources", "DefaultPreemption", "Coscheduling"]),
        (COSCHEDULING, Permit, vec!["Coscheduling"]),
        (CAPACITY, PostFilter, vec!["CapacityScheduling"]),
        (CAPACITY, Reserve, vec!["VolumeBinding", "DynamicResources", "CapacityScheduling"]),
        (ALLOCATABLE, Score, vec!["NodeResourcesAllocatable"]),
        (QOS, QueueSort, vec!["QOSSort"]),
        (TOPOLOGY, Reserve, vec!["VolumeBinding", "DynamicResources"]),
        (
            TOPOLOGY_WITH_CACHE,
            Reserve,
            vec!["VolumeBinding", "DynamicResources", "NodeResourceTopologyMatch"],
        ),
        (CHART, QueueSort, vec!["Coscheduling"]),
        (TOLERATION, PostFilter, vec!["PreemptionToleration", "DynamicResources"]),
    ] {
        let got = plugins(&document("v1", profile), point).unwrap();
        if point == PostFilter && profile == TOLERATION {
            assert!(got.contains(&"PreemptionToleration".to_owned()), "{got:?}");
            assert!(!got.contains(&"DefaultPreemption".to_owned()), "{got:?}");
        } else {
            assert_eq!(got, expected, "{profile}");
        }
    }
    for (profile, point, plugin) in
        [(POD_STATE, Score, "PodState"), (TOPOLOGY, Filter, "NodeResourceTopologyMatch")]
    {
        let got = plugins(&document("v1", profile), point).unwrap();
        assert!(got.contains(&plugin.to_owned()), "{got:?}");
    }
}

#[test]
fn versions_that_kube_scheduler_dropped_are_rejected() {
    // Some manifests were never brought up to date.
    for version in ["v1beta1", "v1beta3"] {
        assert!(plugins(&document(version, QOS), ExtensionPoint::QueueSort).is_err());
    }
    for (version, is_read) in [("v1beta1", false), ("v1beta3", true)] {
        let config = looked_at(&document(version, QOS));
        assert_eq!(config.is_ok(), is_read, "{version}");
    }
}

/// The configuration as everything that only looks takes it.
fn looked_at(text: &str) -> Result<ResolvedConfig, ConfigError> {
    let registry = crate::add_to(kubestep_plugins::registry()).descriptors();
    let (gates, unknown) = (FeatureGates::default(), UnknownPlugins::Opaque);
    resolve_as(Some(text), Vec::new(), &gates, &registry, unknown)
}

/// Koordinator has plugins of its own, one of them with a name of this package.
#[test]
fn a_plugin_of_another_project_is_not_taken_for_one_of_this() {
    let profile = "- schedulerName: koord-scheduler\n  plugins:\n    preFilter: {enabled: [{name: \
                   Coscheduling}, {name: ElasticQuota}]}\n    preScore: {enabled: [{name: \
                   Coscheduling}]}\n  pluginConfig:\n  - {name: Coscheduling, args: \
                   {defaultTimeout: 600s}}\n";
    let text = document("v1", profile);
    let config = looked_at(&text).unwrap();
    assert_eq!(config.profiles[0].opaque, ["Coscheduling", "ElasticQuota"]);
    assert!(plugins(&text, ExtensionPoint::PreFilter).is_err(), "a scheduler that writes");
}

#[test]
fn of_the_workspace_only_framework_is_needed() {
    let manifest = include_str!("../Cargo.toml");
    let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
    let (dependencies, _) = dependencies.split_once("\n[").unwrap();
    let own = dependencies.lines().filter(|line| line.starts_with("kubestep-"));
    assert_eq!(own.collect::<Vec<_>>(), ["kubestep-framework.workspace = true"]);
}
