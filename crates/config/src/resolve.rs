//! Resolves a document into what the engine runs: decode, default, validate, build.

use super::construct;
use super::decode::{Context, DecodedDocument, decode};
use super::defaults::{complete, document};
use super::features::FeatureGates;
use super::opaque::{self, UnknownPlugins};
use super::overlay::Overlay;
use super::points::{PluginDescriptor, in_version};
use super::problem::{ConfigError, ConfigStage, Problem};
use super::profile::ResolvedProfile;
use super::types::{Extender, KubeSchedulerConfiguration};
use super::validation::validate;
use super::warnings;

/// A configuration with which kube-scheduler would start.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedConfig {
    /// The document with all defaults.
    pub document: KubeSchedulerConfiguration,
    /// The plugins that it could name, as the version has them, and the opaque ones that it names.
    pub plugins: Vec<PluginDescriptor>,
    /// What happens to plugins that are not part of this program.
    pub unknown: UnknownPlugins,
    /// The version it was resolved for, with its feature gates.
    pub features: FeatureGates,
    /// The profiles, in the order of the document; the first one's order is the queue's.
    pub profiles: Vec<ResolvedProfile>,
    /// The extenders in the order they are asked, time limits filled in.
    pub extenders: Vec<Extender>,
    /// Backoff after the first failed attempt, in seconds.
    pub pod_initial_backoff_seconds: i64,
    /// Longest backoff, in seconds.
    pub pod_max_backoff_seconds: i64,
    /// The percentage of nodes to score; 0 for adaptive. Profiles may override it.
    pub percentage_of_nodes_to_score: i32,
    /// Worker threads of upstream's scheduler.
    pub parallelism: i32,
    /// Settings that are allowed but have no or another effect than they seem to have.
    pub warnings: Vec<Problem>,
    /// The text of the document; `None` for the default configuration.
    pub text: Option<String>,
    /// The changes made on top of the document.
    pub overlays: Vec<Overlay>,
}

impl ResolvedConfig {
    /// The profile for pods with that `schedulerName`; the scheduler ignores other pods.
    pub fn profile(&self, scheduler_name: &str) -> Option<&ResolvedProfile> {
        self.profiles.iter().find(|profile| profile.scheduler_name == scheduler_name)
    }

    /// The document of the running scheduler, as `kube-scheduler --write-config-to` writes it: with
    /// the arguments of built plugins only, sorted by name, and the changes that extenders cause.
    pub fn completed(&self) -> KubeSchedulerConfiguration {
        let mut document = self.document.clone();
        for (profile, built) in document.profiles.iter_mut().zip(&self.profiles) {
            let configs = &mut profile.plugin_config;
            configs
                .retain(|config| config.args.is_some() && built.instances.contains(&config.name));
            configs.sort_by_key(|config| config.name);
            for config in configs {
                config.args = built.args.get(config.name).cloned();
            }
        }
        construct::set_time_limits(&mut document.extenders);
        document
    }
}

/// Resolves the document in `text`, or the default configuration without one.
///
/// `features` says for which version. `registry` has every plugin that may run, usually those of
/// `kubestep_plugins::registry`; the version decides which of them exist.
pub fn resolve(
    text: Option<&str>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<ResolvedConfig, ConfigError> {
    resolve_with(text, Vec::new(), features, registry)
}

/// Resolves a document with changes on top of it.
pub fn resolve_with(
    text: Option<&str>,
    overlays: Vec<Overlay>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<ResolvedConfig, ConfigError> {
    resolve_as(text, overlays, features, registry, UnknownPlugins::Reject)
}

/// The same; `unknown` says what happens to plugins that `registry` does not have.
pub fn resolve_as(
    text: Option<&str>,
    overlays: Vec<Overlay>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
    unknown: UnknownPlugins,
) -> Result<ResolvedConfig, ConfigError> {
    let known = match unknown {
        UnknownPlugins::Opaque => opaque::without_namesakes(text, registry),
        UnknownPlugins::Reject => registry.to_vec(),
    };
    let mut decoded = load_as(text, features, &known, unknown)?;
    check(&decoded.document, features).map_err(|error| error.located(text))?;
    let mut plugins = in_version(&known, features);
    if unknown == UnknownPlugins::Opaque {
        plugins.extend(opaque::descriptors(&decoded.document, &known, registry, features));
    }
    for overlay in &overlays {
        let changed = overlay.apply(&mut decoded.document, &plugins);
        changed.map_err(|problem| ConfigError::one(ConfigStage::Validate, problem))?;
    }
    if !overlays.is_empty() {
        check(&decoded.document, features)?;
    }
    let built = build_of(decoded.document, features, plugins);
    let mut resolved = built.map_err(|error| error.located(text))?;
    resolved.unknown = unknown;
    resolved.warnings.splice(0..0, decoded.warnings);
    if let Some(text) = text {
        resolved.warnings.iter_mut().for_each(|warning| warning.locate(text));
    }
    (resolved.text, resolved.overlays) = (text.map(Into::into), overlays);
    Ok(resolved)
}

fn check(
    document: &KubeSchedulerConfiguration,
    features: &FeatureGates,
) -> Result<(), ConfigError> {
    match validate(document, features) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ConfigError { stage: ConfigStage::Validate, problems }),
    }
}

/// The first three steps: the document in `text` with all defaults, validated.
pub fn load(
    text: Option<&str>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<DecodedDocument, ConfigError> {
    let decoded = load_unvalidated(text, features, registry)?;
    check(&decoded.document, features).map_err(|error| error.located(text))?;
    Ok(decoded)
}

/// The first two steps: the document in `text` with all defaults, not validated, like for a
/// program that embeds kube-scheduler.
pub fn load_unvalidated(
    text: Option<&str>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<DecodedDocument, ConfigError> {
    load_as(text, features, registry, UnknownPlugins::Reject)
}

fn load_as(
    text: Option<&str>,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
    unknown: UnknownPlugins,
) -> Result<DecodedDocument, ConfigError> {
    let context = Context {
        plugins: &in_version(registry, features),
        gates: features,
        reads_older: unknown == UnknownPlugins::Opaque,
    };
    let mut decoded = match text {
        Some(text) => decode(text, &context).map_err(|error| error.located(Some(text)))?,
        None => DecodedDocument { document: document(features), warnings: Vec::new() },
    };
    complete(&mut decoded.document, &context);
    Ok(decoded)
}

/// The last step: the profiles and extenders of a loaded document.
pub fn build(
    document: KubeSchedulerConfiguration,
    features: &FeatureGates,
    registry: &[PluginDescriptor],
) -> Result<ResolvedConfig, ConfigError> {
    build_of(document, features, in_version(registry, features))
}

/// The same with the plugins that the document may name.
fn build_of(
    document: KubeSchedulerConfiguration,
    features: &FeatureGates,
    plugins: Vec<PluginDescriptor>,
) -> Result<ResolvedConfig, ConfigError> {
    let profiles = construct::check_clients(&document.extenders)
        .and_then(|()| construct::profiles(&document, features, &plugins))
        .map_err(|problem| ConfigError::one(ConfigStage::Build, problem))?;
    Ok(ResolvedConfig {
        features: *features,
        profiles,
        extenders: construct::effective_extenders(&document.extenders),
        pod_initial_backoff_seconds: document.pod_initial_backoff_seconds,
        pod_max_backoff_seconds: document.pod_max_backoff_seconds,
        percentage_of_nodes_to_score: document.percentage_of_nodes_to_score.unwrap_or_default(),
        parallelism: document.parallelism,
        warnings: warnings::find(&document, &plugins),
        plugins,
        unknown: UnknownPlugins::Reject,
        document,
        text: None,
        overlays: Vec::new(),
    })
}
