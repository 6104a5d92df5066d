//! Changing the configuration of a scheduler in use: its profiles are rebuilt, while cache,
//! listers, queue and time stay. The effect is that of a restart that takes no time.

use std::sync::Arc;

use crate::Scheduler;
use crate::queue::QueueSettings;
use crate::scheduler::{Frameworks, SECOND};
use kubestep_api::{Kind, Time};
use kubestep_config::types::Extender;
use kubestep_config::{Feature, FeatureGates, ResolvedConfig};
use kubestep_framework::dra::counts_shares;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::registry::Registry;
use kubestep_framework::runtime::Framework;

/// The profiles of a configuration, and its extenders.
pub(crate) fn frameworks(
    config: &ResolvedConfig,
    features: &FeatureGates,
    registry: &Registry,
) -> Result<(Frameworks, Arc<[Extender]>), String> {
    let extenders: Arc<[Extender]> = config.extenders.as_slice().into();
    let mut frameworks = Frameworks::new();
    for profile in &config.profiles {
        let name = profile.scheduler_name;
        let framework = Framework::new(profile.clone(), registry, features)
            .map_err(|err| format!("creating profile for scheduler name {name}: {err}"))?;
        frameworks.insert(name, Arc::new(framework.with_extenders(extenders.clone())));
    }
    Ok((frameworks, extenders))
}

/// The queue settings in a configuration.
pub(crate) fn queue_settings(config: &ResolvedConfig, features: &FeatureGates) -> QueueSettings {
    QueueSettings {
        initial_backoff: config.pod_initial_backoff_seconds * SECOND,
        max_backoff: config.pod_max_backoff_seconds * SECOND,
        pop_from_backoff: features.enabled(Feature::SchedulerPopFromBackoffQ),
        has_extenders: !config.extenders.is_empty(),
        generic_workload: features.enabled(Feature::GenericWorkload),
        signs: features.enabled(Feature::OpportunisticBatching) && config.extenders.is_empty(),
        ..QueueSettings::default()
    }
}

/// The feature gates that affect what a pod counts for on its node.
const COUNTING: [Feature; 3] = [
    Feature::PodLevelResources,
    Feature::InPlacePodLevelResourcesVerticalScaling,
    Feature::DRANodeAllocatableResources,
];

impl Scheduler {
    /// Switches to another configuration. Pods that wait for an event are requeued, as after a
    /// restart; pods whose profile is added or removed enter or leave the queue. Pods that wait at
    /// Permit keep waiting under their old profile.
    ///
    /// # Errors
    /// A plugin rejects its arguments; the text is upstream's. Nothing was changed.
    pub fn reconfigure(
        &mut self,
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
        now: Time,
    ) -> Result<(), String> {
        let (frameworks, extenders) = frameworks(config, &features, registry)?;
        if COUNTING.iter().any(|gate| features.enabled(*gate) != self.features.enabled(*gate)) {
            self.cache.recount(&features);
        }
        if counts_shares(&features) != counts_shares(&self.features) {
            self.shared.claims.observe_all(&self.objects, counts_shares(&features));
        }
        (self.features, self.extenders) = (features, extenders);
        self.frameworks = Arc::new(frameworks);
        self.percentage_of_nodes_to_score = config.percentage_of_nodes_to_score;
        self.batches.clear();
        self.kept.clear();
        let frameworks = self.frameworks.clone();
        let (queue, cx) = self.queue_context(now);
        queue.reconfigure(&cx, queue_settings(config, &features), &frameworks);
        self.sort_out_pods(now);
        Ok(())
    }

    /// Adds the pods of new profiles to the queue and removes those of deleted profiles.
    fn sort_out_pods(&mut self, now: Time) {
        let mut keys = self.objects.keys(Kind::Pod);
        keys.sort_unstable();
        for key in keys {
            let Some(pod) = self.objects.pod(key).cloned() else { continue };
            let queued = self.queue.get(key).is_some();
            let known = queued || self.cache.is_assumed(pod.metadata.uid);
            match (self.is_ours(&pod), pod.spec.node_name.is_empty()) {
                (true, true) if !known => {
                    self.note_member(&pod);
                    let (queue, cx) = self.queue_context(now);
                    queue.add(&cx, Arc::new(PodInfo::with_features(pod, cx.features)));
                }
                (false, true) if queued => self.queue.delete(&pod),
                _ => {}
            }
        }
    }
}
