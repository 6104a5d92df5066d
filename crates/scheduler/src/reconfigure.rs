//! Another configuration for a running scheduler: its profiles are built again, while cache,
//! listers, queue and clock stay. The result equals a restart with that configuration.

use std::sync::Arc;

use crate::Scheduler;
use crate::profiles::{Profiles, UnusableProfile, queue_settings};
use kubestep_api::{Kind, Time};
use kubestep_config::versions::Switch;
use kubestep_config::{Feature, FeatureGates, ResolvedConfig};
use kubestep_framework::dra::counts_shares;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::pod_groups::PodGroups;
use kubestep_framework::pod_groups::policy::watched_resource;
use kubestep_framework::registry::Registry;

/// The gates that change what a pod requests from its node.
const COUNTING: [Feature; 3] = [
    Feature::PodLevelResources,
    Feature::InPlacePodLevelResourcesVerticalScaling,
    Feature::DRANodeAllocatableResources,
];

impl Scheduler {
    /// Takes on another configuration. Pods that wait for an event are tried again, as after
    /// a restart; pods whose profile is new enter the queue, pods whose profile was removed
    /// leave it. Pods that wait at Permit go on waiting under their old profile.
    ///
    /// # Errors
    /// A plugin rejects its arguments. Nothing was changed.
    pub fn reconfigure(
        &mut self,
        config: &ResolvedConfig,
        features: FeatureGates,
        registry: &Registry,
        now: Time,
    ) -> Result<(), UnusableProfile> {
        let profiles = Profiles::new(config, &features, registry)?;
        let before = self.cluster.features;
        let counts_anew = |gate: &Feature| features.enabled(*gate) != before.enabled(*gate);
        if features.behaviour() != before.behaviour() || COUNTING.iter().any(counts_anew) {
            self.cache.recount(&features);
        }
        if counts_shares(&features) != counts_shares(&before) {
            let objects = &self.cluster.objects;
            self.cluster.shared.claims.observe_all(objects, counts_shares(&features));
        }
        self.cluster.features = features;
        if watched_resource(&features) != watched_resource(&before) {
            self.regroup(&profiles);
        }
        let handlers = self.event_handlers();
        self.profiles = profiles;
        self.start_event_handlers(&handlers, now);
        self.algorithm.batches.clear();
        self.algorithm.answers.clear();
        let cx = self.cluster.queue_context(now);
        let settings = queue_settings(config, &features);
        self.queue.reconfigure(&cx, settings, &self.profiles.frameworks);
        self.update_queued_pods(now);
        Ok(())
    }

    /// Finds the members of all groups again. Up to 1.35, pods of other schedulers are members, too.
    fn regroup(&mut self, profiles: &Profiles) {
        self.cluster.shared.pod_groups = PodGroups::default();
        let only_served = self.cluster.features.has(Switch::PodGroupCycles);
        for pod in self.cluster.objects.pods.values().cloned().collect::<Vec<_>>() {
            if !only_served || !pod.spec.node_name.is_empty() || profiles.serve(&pod) {
                self.cluster.add_group_member(&pod);
            }
            let assumed = self.cache.pod(pod.metadata.uid);
            if let Some(assumed) = assumed.filter(|_| self.cache.is_assumed(pod.metadata.uid)) {
                self.cluster.shared.pod_groups.assume(&assumed.pod);
            }
        }
    }

    /// Pods of new profiles enter the queue, pods of removed profiles leave it.
    fn update_queued_pods(&mut self, now: Time) {
        let mut keys = self.cluster.objects.keys(Kind::Pod);
        keys.sort_unstable();
        for key in keys {
            let Some(pod) = self.cluster.objects.pod(key).cloned() else { continue };
            let queued = self.queue.get(key).is_some();
            let known = queued || self.cache.is_assumed(pod.metadata.uid);
            match (self.profiles.serve(&pod), pod.spec.node_name.is_empty()) {
                (true, true) if !known => {
                    self.cluster.add_group_member(&pod);
                    let cx = self.cluster.queue_context(now);
                    let info = PodInfo::with_features(pod, cx.features);
                    self.queue.add(&cx, Arc::new(info));
                }
                (false, true) if queued => self.queue.delete(&pod),
                _ => {}
            }
        }
    }
}
