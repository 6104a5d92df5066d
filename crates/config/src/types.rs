//! The configuration after defaulting: upstream's internal
//! `KubeSchedulerConfiguration`, typed, with the arguments of all plugins.
//!
//! Upstream: `pkg/scheduler/apis/config/types.go` and
//! `staging/src/k8s.io/component-base/config/types.go`. What a document may
//! leave out has its default here already; what stays optional is an `Option`.

use kubestep_api::intern::Symbol;

use super::args::PluginArgs;
use super::duration::Duration;
use super::points::ExtensionPoint;

/// API version of the one served version.
pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
/// Group of all configuration kinds.
pub const GROUP: &str = "kubescheduler.config.k8s.io";
/// Kind of the document.
pub const KIND: &str = "KubeSchedulerConfiguration";
/// Name of the default profile.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// The whole document. CFG-001…018
#[derive(Clone, PartialEq, Debug)]
pub struct KubeSchedulerConfiguration {
    /// Worker threads of upstream's scheduler.
    pub parallelism: i32,
    /// Leader election, for `kubestep schedule`.
    pub leader_election: LeaderElectionConfiguration,
    /// API client; of it, `kubestep schedule` takes the kubeconfig and the rate of writes.
    pub client_connection: ClientConnectionConfiguration,
    /// Serve profiles of the scheduler process.
    pub enable_profiling: bool,
    /// Serve lock contention profiles of the scheduler process.
    pub enable_contention_profiling: bool,
    /// Percentage of nodes searched for feasible ones, 0 for adaptive. Always set after defaulting.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Backoff after the first failed attempt, in seconds.
    pub pod_initial_backoff_seconds: i64,
    /// Longest backoff, in seconds.
    pub pod_max_backoff_seconds: i64,
    /// The profiles; at least one after defaulting.
    pub profiles: Vec<KubeSchedulerProfile>,
    /// The extenders, as written.
    pub extenders: Vec<Extender>,
    /// Start the caches only as leader.
    pub delay_cache_until_active: bool,
}

/// Leader election (component-base `LeaderElectionConfiguration`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderElectionConfiguration {
    /// Whether to elect a leader at all.
    pub leader_elect: bool,
    /// How long others wait before they take over.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// Pause between attempts.
    pub retry_period: Duration,
    /// Kind of lock object.
    pub resource_lock: String,
    /// Name of the lock object.
    pub resource_name: String,
    /// Namespace of the lock object.
    pub resource_namespace: String,
}

/// API client (component-base `ClientConnectionConfiguration`).
#[derive(Clone, PartialEq, Debug)]
pub struct ClientConnectionConfiguration {
    /// Path of a kubeconfig file.
    pub kubeconfig: String,
    /// Accept header.
    pub accept_content_types: String,
    /// Content type of requests.
    pub content_type: String,
    /// Requests per second.
    pub qps: f32,
    /// Requests at once.
    pub burst: i32,
}

/// One profile. CFG-020…023
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KubeSchedulerProfile {
    /// The `schedulerName` of the pods it serves.
    pub scheduler_name: Symbol,
    /// Overrides the configuration's percentage for this profile.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Which plugins run where.
    pub plugins: Plugins,
    /// Arguments of plugins.
    pub plugin_config: Vec<PluginConfig>,
}

/// The plugin sets of a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plugins {
    /// Plugins enabled at every point they implement.
    pub multi_point: PluginSet,
    /// One set for each extension point.
    points: [PluginSet; ExtensionPoint::COUNT],
}

impl Plugins {
    /// The set of one extension point.
    pub fn at(&self, point: ExtensionPoint) -> &PluginSet {
        &self.points[point.index()]
    }

    /// The set of one extension point, to be changed.
    pub fn at_mut(&mut self, point: ExtensionPoint) -> &mut PluginSet {
        &mut self.points[point.index()]
    }

    /// MultiPoint and all sets, in the order of the points.
    pub fn sets(&self) -> impl Iterator<Item = &PluginSet> {
        std::iter::once(&self.multi_point).chain(&self.points)
    }

    /// Whether `name` is enabled anywhere, so that the plugin must be built (pluginsNeeded in `framework.go`).
    pub fn needs(&self, name: &str) -> bool {
        self.sets().any(|set| set.enabled.iter().any(|plugin| plugin.name == name))
    }
}

/// What is enabled and disabled at one point.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PluginSet {
    /// Enabled, in order.
    pub enabled: Vec<Plugin>,
    /// Disabled; `*` stands for all.
    pub disabled: Vec<Plugin>,
}

/// A plugin in a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plugin {
    /// Its name.
    pub name: Symbol,
    /// Its weight; 0 where none was written.
    pub weight: i32,
}

/// Arguments for one plugin.
#[derive(Clone, PartialEq, Debug)]
pub struct PluginConfig {
    /// The plugin.
    pub name: Symbol,
    /// Its arguments; `None` only for a plugin whose argument kind is unknown.
    pub args: Option<PluginArgs>,
}

/// An HTTP extender. CFG-030…037
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Extender {
    /// Where it answers.
    pub url_prefix: String,
    /// Appended to the prefix for filtering; empty: not offered.
    pub filter_verb: String,
    /// Appended to the prefix for preemption; empty: not offered.
    pub preempt_verb: String,
    /// Appended to the prefix for scoring; empty: not offered.
    pub prioritize_verb: String,
    /// Factor for its scores.
    pub weight: i64,
    /// Appended to the prefix for binding; empty: not offered.
    pub bind_verb: String,
    /// Whether to speak HTTPS.
    pub enable_https: bool,
    /// How to speak HTTPS.
    pub tls_config: Option<ExtenderTlsConfig>,
    /// Time limit of a call; zero means five seconds.
    pub http_timeout: Duration,
    /// Whether it knows the nodes, so that names are enough.
    pub node_cache_capable: bool,
    /// Resources it manages; empty: it is asked for every pod.
    pub managed_resources: Vec<ExtenderManagedResource>,
    /// Whether scheduling goes on when it fails.
    pub ignorable: bool,
}

/// A resource that an extender manages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtenderManagedResource {
    /// The resource.
    pub name: Symbol,
    /// Whether NodeResourcesFit leaves it to the extender.
    pub ignored_by_scheduler: bool,
}

/// HTTPS settings of an extender; the data fields hold base64 as written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExtenderTlsConfig {
    /// Do not check the server's certificate.
    pub insecure: bool,
    /// Name the certificate must be for.
    pub server_name: String,
    /// Client certificate file.
    pub cert_file: String,
    /// Client key file.
    pub key_file: String,
    /// Authority file.
    pub ca_file: String,
    /// Client certificate.
    pub cert_data: String,
    /// Client key.
    pub key_data: String,
    /// Authority.
    pub ca_data: String,
}
