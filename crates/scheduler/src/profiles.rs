//! The profiles of a configuration, ready to run.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::queue::QueueSettings;
use kubestep_api::intern::Symbol;
use kubestep_api::{Duration, Pod};
use kubestep_config::types::Extender;
use kubestep_config::{Feature, FeatureGates, ResolvedConfig};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod_groups::policy::watched_resource;
use kubestep_framework::registry::Registry;
use kubestep_framework::runtime::{Framework, ProfileError};

/// The profiles by scheduler name, in the configuration's order.
pub type Frameworks = IndexMap<Symbol, Arc<Framework>>;

/// The profiles, and what the configuration says for all of them.
#[derive(Clone)]
pub(crate) struct Profiles {
    pub frameworks: Arc<Frameworks>,
    pub extenders: Arc<[Extender]>,
    /// The plugins that handle events, each once, with the profiles that have it.
    pub handlers: Arc<[Handler]>,
    /// For profiles that have none of their own; 0 adapts it to the number of nodes.
    pub percentage_of_nodes_to_score: i32,
}

/// A profile of a configuration cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("creating profile for scheduler name {scheduler_name}: {source}")]
pub struct UnusableProfile {
    /// The profile, by its scheduler name.
    pub scheduler_name: Symbol,
    /// The plugin that cannot be built, and why.
    pub source: ProfileError,
}

/// A plugin that handles events.
pub(crate) struct Handler {
    /// The plugin as its first profile has it.
    pub plugin: Arc<dyn Plugin>,
    /// The scheduler names of its profiles.
    pub profiles: Vec<Symbol>,
}

fn handlers(frameworks: &Frameworks) -> Arc<[Handler]> {
    let mut handlers: Vec<Handler> = Vec::new();
    for (profile, framework) in frameworks {
        for plugin in framework.instances().iter().filter(|plugin| plugin.handles_events()) {
            let name = plugin.name();
            match handlers.iter_mut().find(|handler| handler.plugin.name() == name) {
                Some(handler) => handler.profiles.push(*profile),
                None => handlers.push(Handler { plugin: plugin.clone(), profiles: vec![*profile] }),
            }
        }
    }
    handlers.into()
}

impl Profiles {
    /// Builds the profiles of a configuration.
    ///
    /// # Errors
    /// A plugin rejects its arguments.
    pub fn new(
        config: &ResolvedConfig,
        features: &FeatureGates,
        registry: &Registry,
    ) -> Result<Profiles, UnusableProfile> {
        let extenders: Arc<[Extender]> = config.extenders.as_slice().into();
        let mut frameworks = Frameworks::new();
        for profile in &config.profiles {
            let name = profile.scheduler_name;
            let framework = Framework::new(profile.clone(), registry, features)
                .map_err(|source| UnusableProfile { scheduler_name: name, source })?;
            frameworks.insert(name, Arc::new(framework.with_extenders(extenders.clone())));
        }
        let percentage_of_nodes_to_score = config.percentage_of_nodes_to_score;
        Ok(Profiles {
            handlers: handlers(&frameworks),
            frameworks: Arc::new(frameworks),
            extenders,
            percentage_of_nodes_to_score,
        })
    }

    /// Whether a profile serves the pod.
    pub fn serve(&self, pod: &Pod) -> bool {
        self.frameworks.contains_key(&pod.spec.scheduler_name)
    }

    /// Whether an extender filters or scores, so that one feasible node is not enough.
    pub(crate) fn extenders_want_all_nodes(&self) -> bool {
        let wants = |extender: &Extender| {
            !extender.filter_verb.is_empty() || !extender.prioritize_verb.is_empty()
        };
        self.extenders.iter().any(wants)
    }
}

/// What a configuration says about the queue.
pub(crate) fn queue_settings(config: &ResolvedConfig, features: &FeatureGates) -> QueueSettings {
    QueueSettings {
        initial_backoff: Duration::from_secs(config.pod_initial_backoff_seconds),
        max_backoff: Duration::from_secs(config.pod_max_backoff_seconds),
        pop_from_backoff: features.enabled(Feature::SchedulerPopFromBackoffQ),
        has_extenders: !config.extenders.is_empty(),
        group_resource: watched_resource(features),
        hints: features.enabled(Feature::SchedulerQueueingHints),
        behaviour: features.behaviour(),
        signs: features.enabled(Feature::OpportunisticBatching) && config.extenders.is_empty(),
        ..QueueSettings::default()
    }
}
