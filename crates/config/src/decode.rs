//! From the text of a document to typed values, strictly: unknown and repeated
//! fields are errors.
//!
//! Upstream: `pkg/scheduler/apis/config/scheme`,
//! `staging/src/k8s.io/kube-scheduler/config/v1/types.go`.

use kubestep_api::intern::Symbol;

use super::decode_args::{self, has_args_kind};
use super::defaults;
use super::features::FeatureGates;
use super::path::FieldPath;
use super::points::{PluginDescriptor, PointSet};
use super::problem::{ConfigError, ConfigStage, Problem};
use super::reader::{Fields, Reader};
use super::types::{
    API_VERSION, ClientConnectionConfiguration, KIND, KubeSchedulerConfiguration,
    KubeSchedulerProfile, LeaderElectionConfiguration, OLDER_API_VERSION, PluginConfig, Plugins,
};
use super::yaml_value::{ParsedDocuments, YamlValue, find_repeated, parse};

/// A decoded document, with the defaults of its fields, and warnings.
pub struct DecodedDocument {
    /// The document. Its profiles have no default plugins and arguments yet.
    pub document: KubeSchedulerConfiguration,
    /// Warnings: valid for upstream, but probably a mistake.
    pub warnings: Vec<Problem>,
}

/// What decides on plugin arguments beside the document.
pub(super) struct Context<'a> {
    /// The plugins that a document may name.
    pub plugins: &'a [PluginDescriptor],
    pub gates: &'a FeatureGates,
    /// Whether a document of [`OLDER_API_VERSION`] is read.
    pub reads_older: bool,
}

impl Context<'_> {
    /// Whether documents and arguments of that version are read.
    pub fn reads(&self, version: &str) -> bool {
        version == API_VERSION || (self.reads_older && version == OLDER_API_VERSION)
    }
}

/// Decodes `text`; the problems have their places in it.
pub(super) fn decode(text: &str, context: &Context<'_>) -> Result<DecodedDocument, ConfigError> {
    let parsed = parse(text).map_err(|problem| ConfigError::one(ConfigStage::Decode, problem))?;
    let ParsedDocuments { root, yaml, more } = parsed;
    check_kind(&root, context).map_err(|problem| ConfigError::one(ConfigStage::Decode, problem))?;
    let mut reader = Reader { problems: Vec::new(), yaml };
    find_repeated(&root, &FieldPath::root(), text, &mut reader.problems);
    let document = configuration(&mut reader, &root, context);
    if !reader.problems.is_empty() {
        return Err(ConfigError { stage: ConfigStage::Decode, problems: reader.problems });
    }
    let ignored = more
        .then(|| Problem::new(&FieldPath::root(), "only the first document of the file is read"));
    let warnings = older_version(&root, context).into_iter().chain(ignored).collect();
    Ok(DecodedDocument { document, warnings })
}

/// A document must say what it is.
fn check_kind(root: &YamlValue, context: &Context<'_>) -> Result<(), Problem> {
    let here = FieldPath::root();
    if !matches!(root, YamlValue::Map(_) | YamlValue::Null) {
        let message = format!("expected a map of fields, got {}", root.describe());
        return Err(Problem::new(&here, message));
    }
    let kind = type_field(root, "kind", &here)?;
    let version = type_field(root, "apiVersion", &here)?;
    if kind.is_empty() {
        return Err(Problem::new(&here, "kind is missing").help(format!("write kind: {KIND}")));
    }
    if version.is_empty() {
        let help = format!("write apiVersion: {API_VERSION}");
        return Err(Problem::new(&here, "apiVersion is missing").help(help));
    }
    if !context.reads(version) {
        let problem = Problem::new(&here.field("apiVersion"), format!("{version:?} is not served"));
        return Err(
            problem.help(format!("kube-scheduler {} takes {API_VERSION}", context.gates.version()))
        );
    }
    if kind != KIND {
        let message = match has_args_kind(kind, context.plugins) {
            true => format!("{kind:?} holds the arguments of a plugin, not a configuration"),
            false => format!("there is no kind {kind:?} in {API_VERSION}"),
        };
        return Err(Problem::new(&here.field("kind"), message).help(format!("write {KIND}")));
    }
    Ok(())
}

/// The notice about a document whose version kube-scheduler does not take any more.
fn older_version(root: &YamlValue, context: &Context<'_>) -> Option<Problem> {
    let here = FieldPath::root();
    let version = type_field(root, "apiVersion", &here).ok()?;
    let message = format!(
        "kube-scheduler {} does not take {version:?}; it is read as {API_VERSION:?}",
        context.gates.version()
    );
    (version != API_VERSION).then(|| Problem::new(&here.field("apiVersion"), message))
}

/// `kind` or `apiVersion`; empty if absent.
pub(super) fn type_field<'n>(
    node: &'n YamlValue,
    name: &str,
    path: &FieldPath,
) -> Result<&'n str, Problem> {
    match node.get(name) {
        Some(YamlValue::Text(text)) => Ok(text),
        None | Some(YamlValue::Null) => Ok(""),
        Some(other) => {
            let message = format!("expected text, got {}", other.describe());
            Err(Problem::new(&path.field(name), message))
        }
    }
}

fn configuration(
    reader: &mut Reader,
    root: &YamlValue,
    context: &Context<'_>,
) -> KubeSchedulerConfiguration {
    let path = FieldPath::root();
    let mut f = reader.fields(root, &path);
    f.raw("apiVersion");
    f.raw("kind");
    let parallelism = f.get("parallelism", Reader::int32);
    let leader_election = f.get("leaderElection", leader_election);
    let client_connection = f.get("clientConnection", client_connection);
    let profiling = f.get("enableProfiling", Reader::boolean);
    let contention = f.get("enableContentionProfiling", Reader::boolean);
    let percentage = f.get("percentageOfNodesToScore", Reader::int32);
    let initial = f.get("podInitialBackoffSeconds", Reader::int64);
    let max = f.get("podMaxBackoffSeconds", Reader::int64);
    let profiles = f.list("profiles", |r, node, path| profile(r, node, path, context));
    let extenders = f.value("extenders");
    let delay = f.or_zero("delayCacheUntilActive", Reader::boolean);
    f.finish();
    let default = defaults::document(context.gates);
    KubeSchedulerConfiguration {
        points: default.points,
        parallelism: parallelism.unwrap_or(default.parallelism),
        leader_election: leader_election.unwrap_or(default.leader_election),
        client_connection: client_connection.unwrap_or(default.client_connection),
        enable_profiling: profiling.unwrap_or(true),
        // Follows enableProfiling.
        enable_contention_profiling: contention.unwrap_or(profiling.unwrap_or(true)),
        percentage_of_nodes_to_score: percentage.or(default.percentage_of_nodes_to_score),
        pod_initial_backoff_seconds: initial.unwrap_or(default.pod_initial_backoff_seconds),
        pod_max_backoff_seconds: max.unwrap_or(default.pod_max_backoff_seconds),
        profiles: defaults::name_profiles(profiles.unwrap_or_default()),
        extenders: extenders.unwrap_or_default(),
        delay_cache_until_active: delay,
    }
}

fn leader_election(
    r: &mut Reader,
    node: &YamlValue,
    path: &FieldPath,
) -> LeaderElectionConfiguration {
    let default = defaults::leader_election();
    let mut f = r.fields(node, path);
    let duration = |f: &mut Fields<'_, '_>, name, default| {
        f.get(name, Reader::duration).filter(|duration| duration.nanos != 0).unwrap_or(default)
    };
    let read = LeaderElectionConfiguration {
        leader_elect: f.get("leaderElect", Reader::boolean).unwrap_or(true),
        lease_duration: duration(&mut f, "leaseDuration", default.lease_duration),
        renew_deadline: duration(&mut f, "renewDeadline", default.renew_deadline),
        retry_period: duration(&mut f, "retryPeriod", default.retry_period),
        resource_lock: text_or(&mut f, "resourceLock", default.resource_lock),
        resource_name: text_or(&mut f, "resourceName", default.resource_name),
        resource_namespace: text_or(&mut f, "resourceNamespace", default.resource_namespace),
    };
    f.finish();
    read
}

fn text_or(f: &mut Fields<'_, '_>, name: &'static str, default: String) -> String {
    f.get(name, Reader::text).filter(|text| !text.is_empty()).unwrap_or(default)
}

fn client_connection(
    r: &mut Reader,
    node: &YamlValue,
    path: &FieldPath,
) -> ClientConnectionConfiguration {
    let default = defaults::client_connection();
    let mut f = r.fields(node, path);
    let read = ClientConnectionConfiguration {
        kubeconfig: f.or_zero("kubeconfig", Reader::text),
        accept_content_types: f.or_zero("acceptContentTypes", Reader::text),
        content_type: text_or(&mut f, "contentType", default.content_type),
        // Exactly zero is replaced.
        qps: f.get("qps", Reader::float).filter(|qps| *qps != 0.0).unwrap_or(default.qps),
        burst: f.get("burst", Reader::int32).filter(|n| *n != 0).unwrap_or(default.burst),
    };
    f.finish();
    read
}

/// A profile, with its name as far as it is given.
fn profile(
    r: &mut Reader,
    node: &YamlValue,
    path: &FieldPath,
    context: &Context<'_>,
) -> (Option<Symbol>, KubeSchedulerProfile) {
    let mut f = r.fields(node, path);
    let name = f.get("schedulerName", Reader::symbol);
    let profile = KubeSchedulerProfile {
        scheduler_name: name.unwrap_or_default(),
        percentage_of_nodes_to_score: f.get("percentageOfNodesToScore", Reader::int32),
        plugins: f.or_zero("plugins", |r, node, path| plugins(r, node, path, context)),
        plugin_config: f
            .list("pluginConfig", |r, node, path| plugin_config(r, node, path, context))
            .unwrap_or_default(),
    };
    f.finish();
    (name, profile)
}

fn plugins(r: &mut Reader, node: &YamlValue, path: &FieldPath, context: &Context<'_>) -> Plugins {
    let mut f = r.fields(node, path);
    let mut plugins = Plugins::default();
    for point in PointSet::in_version(context.gates).iter() {
        *plugins.at_mut(point) = f.value(point.key()).unwrap_or_default();
    }
    plugins.multi_point = f.value("multiPoint").unwrap_or_default();
    f.finish();
    plugins
}

fn plugin_config(
    r: &mut Reader,
    node: &YamlValue,
    path: &FieldPath,
    context: &Context<'_>,
) -> PluginConfig {
    let mut f = r.fields(node, path);
    let name = f.or_zero("name", Reader::symbol);
    let args = f.raw("args").unwrap_or(&YamlValue::Null);
    f.finish();
    PluginConfig { name, args: decode_args::args(r, name, args, &path.field("args"), context) }
}
