//! The configuration after defaulting: upstream's internal
//! `KubeSchedulerConfiguration`, typed, with the arguments of all plugins.
//!
//! Upstream: `pkg/scheduler/apis/config/types.go` and
//! `staging/src/k8s.io/component-base/config/types.go`. Optional fields of a document already have
//! their defaults here; an `Option` is a field that may stay unset.

use kubestep_api::intern::Symbol;

use super::args::PluginArgs;
use super::points::{ExtensionPoint, PointSet};
use kubestep_api::Duration;

/// The only served API version.
pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
/// The version before, with the same fields and defaults; kube-scheduler took it up to 1.28.
pub const OLDER_API_VERSION: &str = "kubescheduler.config.k8s.io/v1beta3";
/// The API group of all configuration kinds.
pub const GROUP: &str = "kubescheduler.config.k8s.io";
/// The kind of the document.
pub const KIND: &str = "KubeSchedulerConfiguration";
/// The name of the default profile.
pub(crate) const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// The document, with defaults filled in.
#[derive(Clone, PartialEq, Debug)]
pub struct KubeSchedulerConfiguration {
    /// The extension points that the version has.
    pub points: PointSet,
    /// The number of worker threads of upstream's scheduler.
    pub parallelism: i32,
    /// Leader election, for `kubestep schedule`.
    pub leader_election: LeaderElectionConfiguration,
    /// API client; `kubestep schedule` uses its kubeconfig and its rate limit for writes.
    pub client_connection: ClientConnectionConfiguration,
    /// Whether the scheduler process serves profiles.
    pub enable_profiling: bool,
    /// Whether the scheduler process serves lock contention profiles.
    pub enable_contention_profiling: bool,
    /// Percentage of nodes to score; 0 for adaptive. Always set after defaulting.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Backoff after the first failed attempt, in seconds.
    pub pod_initial_backoff_seconds: i64,
    /// Longest backoff, in seconds.
    pub pod_max_backoff_seconds: i64,
    /// The profiles; at least one after defaulting.
    pub profiles: Vec<KubeSchedulerProfile>,
    /// The extenders, as written.
    pub extenders: Vec<Extender>,
    /// Whether the informers start only after the election.
    pub delay_cache_until_active: bool,
}

/// Leader election (component-base `LeaderElectionConfiguration`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaderElectionConfiguration {
    /// Whether to elect a leader at all.
    pub leader_elect: bool,
    /// How long other candidates wait after the last renewal before they take over.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops leading.
    pub renew_deadline: Duration,
    /// The pause between two attempts.
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
    /// The Accept header of requests.
    pub accept_content_types: String,
    /// Content type of requests.
    pub content_type: String,
    /// The maximum number of requests per second.
    pub qps: f32,
    /// The maximum number of requests in a burst.
    pub burst: i32,
}

/// A profile: the plugins that schedule the pods of one scheduler name.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KubeSchedulerProfile {
    /// The `schedulerName` of the pods that it schedules.
    pub scheduler_name: Symbol,
    /// Overrides the configuration's percentage for this profile.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// The plugins to enable and disable at each point.
    pub plugins: Plugins,
    /// The arguments of plugins.
    pub plugin_config: Vec<PluginConfig>,
}

/// The plugin sets of a profile.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plugins {
    /// Plugins enabled at every point that they implement.
    pub multi_point: PluginSet,
    /// One set for each extension point.
    points: [PluginSet; ExtensionPoint::COUNT],
}

impl Plugins {
    /// The set of one extension point.
    pub fn at(&self, point: ExtensionPoint) -> &PluginSet {
        &self.points[point.index()]
    }

    /// The set of one extension point, mutable.
    pub fn at_mut(&mut self, point: ExtensionPoint) -> &mut PluginSet {
        &mut self.points[point.index()]
    }

    /// MultiPoint and all sets, in the order of the points.
    pub fn sets(&self) -> impl Iterator<Item = &PluginSet> {
        std::iter::once(&self.multi_point).chain(&self.points)
    }

    /// Whether `name` is enabled anywhere, so that the plugin must be built (pluginsNeeded in
    /// `framework.go`).
    pub fn needs(&self, name: &str) -> bool {
        self.sets().any(|set| set.enabled.iter().any(|plugin| plugin.name == name))
    }
}

crate::argument_object! {
    /// The enabled and disabled plugins of one point.
    #[derive(Eq, Default)]
    pub struct PluginSet {
        /// The plugins to enable, in the order in which they run.
        enabled: Vec<PluginRef>, put_some "enabled";
        /// Disabled; `*` means all.
        disabled: Vec<PluginRef>, put_some "disabled";
    }
}

crate::argument_object! {
    /// A plugin in a set.
    #[derive(Copy, Eq, Default)]
    pub struct PluginRef {
        /// The name of the plugin.
        name: Symbol, put "name";
        /// Its weight; 0 if none is set.
        weight: i32, put "weight";
    }
}

/// The arguments of one plugin.
#[derive(Clone, PartialEq, Debug)]
pub struct PluginConfig {
    /// The name of the plugin.
    pub name: Symbol,
    /// Its arguments; `None` only for a plugin whose argument kind is unknown.
    pub args: Option<PluginArgs>,
}

crate::argument_object! {
    /// An HTTP extender, with the verbs that it implements.
    #[derive(Eq, Default)]
    pub struct Extender {
        /// The URL that the verbs are appended to.
        url_prefix: String, put "urlPrefix";
        /// The verb for filtering; empty if the extender does not filter.
        filter_verb: String, put_some "filterVerb";
        /// The verb for preemption; empty if the extender takes no part in it.
        preempt_verb: String, put_some "preemptVerb";
        /// The verb for scoring; empty if the extender does not score.
        prioritize_verb: String, put_some "prioritizeVerb";
        /// The factor for its scores.
        weight: i64, put_some "weight";
        /// The verb for binding; empty if the extender does not bind.
        bind_verb: String, put_some "bindVerb";
        /// Whether to use HTTPS.
        enable_https: bool, put_some "enableHTTPS";
        /// How the connection is secured; `None` without TLS settings.
        tls_config: Option<ExtenderTlsConfig>, put_some "tlsConfig";
        /// The time limit of a call; zero means five seconds.
        http_timeout: Duration, put "httpTimeout";
        /// Whether it caches nodes, so that calls contain only their names.
        node_cache_capable: bool, put_some "nodeCacheCapable";
        /// The resources that it manages; if empty, it is called for every pod.
        managed_resources: Vec<ExtenderManagedResource>, put_some "managedResources";
        /// Whether scheduling continues if a call fails.
        ignorable: bool, put_some "ignorable";
    }
}

impl Extender {
    /// What it does, in the order in which a cycle calls it: `filter`, `prioritize`, ….
    pub fn verbs(&self) -> impl Iterator<Item = &'static str> {
        let verbs = [
            ("filter", &self.filter_verb),
            ("prioritize", &self.prioritize_verb),
            ("preempt", &self.preempt_verb),
            ("bind", &self.bind_verb),
        ];
        verbs.into_iter().filter(|(_, verb)| !verb.is_empty()).map(|(what, _)| what)
    }
}

crate::argument_object! {
    /// A resource that an extender manages.
    #[derive(Copy, Eq, Default)]
    pub struct ExtenderManagedResource {
        /// The name of the resource.
        name: Symbol, put "name";
        /// Whether NodeResourcesFit ignores the resource.
        ignored_by_scheduler: bool, put_some "ignoredByScheduler";
    }
}

/// TLS settings of an extender; the data fields hold base64 as written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExtenderTlsConfig {
    /// Whether to skip verification of the server's certificate.
    pub insecure: bool,
    /// The name that the certificate must be issued for.
    pub server_name: String,
    /// The file of the client certificate.
    pub cert_file: String,
    /// The file of the client key.
    pub key_file: String,
    /// The file of the certificate authority.
    pub ca_file: String,
    /// The certificate of the client, in base64.
    pub cert_data: String,
    /// The key of the client, in base64.
    pub key_data: String,
    /// The certificate of the authority, in base64.
    pub ca_data: String,
}
