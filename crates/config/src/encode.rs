//! A document back to text, as version v1 with everything written out: what
//! `kube-scheduler --write-config-to` shows.
//!
//! Upstream: the JSON tags in `staging/src/k8s.io/kube-scheduler/config/v1` and
//! `staging/src/k8s.io/component-base/config/v1alpha1`.

use super::argument_value::ArgumentValue;
use super::points::{ExtensionPoint, PointSet};
use super::types::{
    API_VERSION, ClientConnectionConfiguration, KIND, KubeSchedulerConfiguration,
    KubeSchedulerProfile, LeaderElectionConfiguration, PluginConfig, Plugins,
};
use super::yaml_value::YamlValue;

/// The document as YAML.
pub fn to_yaml(document: &KubeSchedulerConfiguration) -> String {
    // Serializing a tree of plain values cannot fail.
    serde_yaml::to_string(&configuration(document)).unwrap_or_default()
}

/// The document as JSON.
pub fn to_json(document: &KubeSchedulerConfiguration) -> serde_json::Value {
    serde_json::to_value(configuration(document)).unwrap_or_default()
}

/// A map under construction, in order.
#[derive(Default)]
pub struct Map(Vec<(String, YamlValue)>);

impl Map {
    /// Appends a field, whatever its value.
    #[must_use]
    pub fn put(mut self, name: &str, value: impl Into<YamlValue>) -> Map {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// Appends a field unless upstream's `omitempty` leaves it out: zero, empty, absent.
    #[must_use]
    pub fn put_some(self, name: &str, value: impl Into<YamlValue>) -> Map {
        match value.into() {
            YamlValue::Null | YamlValue::Bool(false) | YamlValue::Int(0) => self,
            YamlValue::Text(text) if text.is_empty() => self,
            YamlValue::List(list) if list.is_empty() => self,
            value => self.put(name, value),
        }
    }
}

impl From<Map> for YamlValue {
    fn from(map: Map) -> YamlValue {
        YamlValue::Map(map.0)
    }
}

impl From<bool> for YamlValue {
    fn from(value: bool) -> YamlValue {
        YamlValue::Bool(value)
    }
}

impl From<i64> for YamlValue {
    fn from(value: i64) -> YamlValue {
        YamlValue::Int(value)
    }
}

impl From<i32> for YamlValue {
    fn from(value: i32) -> YamlValue {
        YamlValue::Int(value.into())
    }
}

impl From<&str> for YamlValue {
    fn from(text: &str) -> YamlValue {
        YamlValue::Text(text.to_owned())
    }
}

impl<T: Into<YamlValue>> From<Option<T>> for YamlValue {
    fn from(value: Option<T>) -> YamlValue {
        value.map_or(YamlValue::Null, Into::into)
    }
}

pub(super) fn list<T>(items: &[T], encode: impl Fn(&T) -> YamlValue) -> YamlValue {
    YamlValue::List(items.iter().map(encode).collect())
}

fn configuration(document: &KubeSchedulerConfiguration) -> YamlValue {
    Map::default()
        .put("apiVersion", API_VERSION)
        .put("kind", KIND)
        .put("parallelism", document.parallelism)
        .put("leaderElection", leader_election(&document.leader_election))
        .put("clientConnection", client_connection(&document.client_connection))
        .put("enableProfiling", document.enable_profiling)
        .put("enableContentionProfiling", document.enable_contention_profiling)
        .put("percentageOfNodesToScore", document.percentage_of_nodes_to_score.unwrap_or(0))
        .put("podInitialBackoffSeconds", document.pod_initial_backoff_seconds)
        .put("podMaxBackoffSeconds", document.pod_max_backoff_seconds)
        .put("profiles", list(&document.profiles, |it| profile(it, document.points)))
        .put_some("extenders", document.extenders.write())
        .put_some("delayCacheUntilActive", document.delay_cache_until_active)
        .into()
}

fn leader_election(config: &LeaderElectionConfiguration) -> YamlValue {
    Map::default()
        .put("leaderElect", config.leader_elect)
        .put("leaseDuration", config.lease_duration.to_string().as_str())
        .put("renewDeadline", config.renew_deadline.to_string().as_str())
        .put("retryPeriod", config.retry_period.to_string().as_str())
        .put("resourceLock", config.resource_lock.as_str())
        .put("resourceName", config.resource_name.as_str())
        .put("resourceNamespace", config.resource_namespace.as_str())
        .into()
}

fn client_connection(config: &ClientConnectionConfiguration) -> YamlValue {
    // The shortest decimal text, as for any 32-bit float; whole numbers without a point.
    let qps: f64 = config.qps.to_string().parse().unwrap_or_default();
    let qps = match qps.fract() == 0.0 && qps.abs() < 1e15 {
        true => YamlValue::Int(qps as i64),
        false => YamlValue::Float(qps),
    };
    Map::default()
        .put("kubeconfig", config.kubeconfig.as_str())
        .put("acceptContentTypes", config.accept_content_types.as_str())
        .put("contentType", config.content_type.as_str())
        .put("qps", qps)
        .put("burst", config.burst)
        .into()
}

fn profile(profile: &KubeSchedulerProfile, points: PointSet) -> YamlValue {
    let percentage = profile.percentage_of_nodes_to_score.map(|value| YamlValue::Int(value.into()));
    let map = Map::default().put("schedulerName", profile.scheduler_name.as_str());
    let map = match percentage {
        Some(percentage) => map.put("percentageOfNodesToScore", percentage),
        None => map,
    };
    map.put("plugins", plugins(&profile.plugins, points))
        .put_some("pluginConfig", list(&profile.plugin_config, plugin_config))
        .into()
}

/// MultiPoint is written between the points of pods and those of placements.
fn plugins(plugins: &Plugins, points: PointSet) -> YamlValue {
    let sets = |map: Map, point: ExtensionPoint| map.put(point.key(), plugins.at(point).write());
    let of_placements = |point: &ExtensionPoint| *point >= ExtensionPoint::PlacementGenerate;
    let of_pods = points.iter().filter(|point| !of_placements(point));
    let map = of_pods.fold(Map::default(), sets);
    let map = map.put("multiPoint", plugins.multi_point.write());
    points.iter().filter(of_placements).fold(map, sets).into()
}

fn plugin_config(config: &PluginConfig) -> YamlValue {
    let args = config.args.as_ref().map(|args| args.encode());
    Map::default().put("name", config.name.as_str()).put("args", args).into()
}
