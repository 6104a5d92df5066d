//! Manual changes to the scheduler of a running cluster: another configuration, and pods moved in
//! its queue.

use std::sync::Arc;

use crate::{World, WorldError};
use kubestep_config::{FeatureGates, Overlay, ResolvedConfig, resolve_as};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::registry::Registry;

impl World {
    /// The scheduler's present configuration.
    pub fn config(&self) -> &Arc<ResolvedConfig> {
        &self.config
    }

    /// The plugins that a configuration can name.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The same, to be shared.
    pub fn shared_registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Replaces the scheduler's configuration: a document, overrides, and feature gates. Cluster,
    /// queue and clock are kept.
    ///
    /// # Errors
    /// What kube-scheduler would not start with. Nothing is changed then.
    pub fn reconfigure(
        &mut self,
        text: Option<&str>,
        overlays: Vec<Overlay>,
        features: &FeatureGates,
    ) -> Result<(), WorldError> {
        self.reconfigure_with(self.registry.clone(), text, overlays, features)
    }

    /// The same with other plugins that the document can name.
    ///
    /// # Errors
    /// What kube-scheduler would not start with. Nothing is changed then.
    pub fn reconfigure_with(
        &mut self,
        registry: Arc<Registry>,
        text: Option<&str>,
        overlays: Vec<Overlay>,
        features: &FeatureGates,
    ) -> Result<(), WorldError> {
        let descriptors = registry.descriptors();
        let unknown = self.config.unknown;
        let mut config = resolve_as(text, overlays, features, &descriptors, unknown)
            .map_err(WorldError::Config)?;
        if let Some(percentage) = self.percentage_of_other_source() {
            config.percentage_of_nodes_to_score = percentage;
        }
        let before = std::mem::replace(&mut self.registry, registry);
        let done = self.reconfigure_to(config);
        if done.is_err() {
            self.registry = before;
        }
        done
    }

    /// Like [`World::reconfigure`], with a resolved configuration.
    pub(super) fn reconfigure_to(&mut self, config: ResolvedConfig) -> Result<(), WorldError> {
        self.scheduler
            .reconfigure(&config, config.features, &self.registry, self.now)
            .map_err(WorldError::scheduler)?;
        if config.extenders != self.config.extenders {
            self.api.forget_extenders();
        }
        self.config = config.into();
        self.settle();
        Ok(())
    }

    /// Moves a pod to the active queue. `false` if it does not get there.
    pub fn activate(&mut self, key: NamespacedName) -> bool {
        let done = self.scheduler.activate(key, self.now);
        self.settle();
        done
    }

    /// Requeues a pod that waits for an event. `false` if it does not wait for one.
    pub fn retry(&mut self, key: NamespacedName) -> bool {
        let done = self.scheduler.retry(key, self.now);
        self.settle();
        done
    }

    /// `percentageOfNodesToScore`, if it did not come from the document.
    fn percentage_of_other_source(&self) -> Option<i32> {
        let percentage = self.config.percentage_of_nodes_to_score;
        let written = self.config.document.percentage_of_nodes_to_score.unwrap_or_default();
        (percentage != written).then_some(percentage)
    }
}
