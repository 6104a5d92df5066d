//! Defaults of a document, and the completion of its profiles: the default
//! plugins merged in and arguments added for every enabled plugin that takes some.
//!
//! Upstream: `pkg/scheduler/apis/config/v1/defaults.go`,
//! `staging/src/k8s.io/component-base/config/v1alpha1/defaults.go`.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;

use super::args::{DynamicResourcesArgs, ResourceSpec, UtilizationShapePoint, default_resources};
use super::decode_args::default_args;
use super::duration::Duration;
use super::features::{Feature, FeatureGates};
use super::merge::{default_plugin_sets, merge};
use super::types::{
    ClientConnectionConfiguration, DEFAULT_SCHEDULER_NAME, KubeSchedulerConfiguration,
    KubeSchedulerProfile, LeaderElectionConfiguration, PluginConfig,
};

/// Worker threads. CFG-001
const PARALLELISM: i32 = 16;

/// CFG-002…005
pub fn leader_election() -> LeaderElectionConfiguration {
    LeaderElectionConfiguration {
        leader_elect: true,
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        resource_lock: "leases".to_owned(),
        resource_name: "kube-scheduler".to_owned(),
        resource_namespace: "kube-system".to_owned(),
    }
}

/// CFG-006…010
pub fn client_connection() -> ClientConnectionConfiguration {
    ClientConnectionConfiguration {
        kubeconfig: String::new(),
        accept_content_types: String::new(),
        content_type: "application/vnd.kubernetes.protobuf".to_owned(),
        qps: 50.0,
        burst: 100,
    }
}

/// The document that says nothing. Its profile has no plugins and arguments yet.
pub fn document() -> KubeSchedulerConfiguration {
    KubeSchedulerConfiguration {
        parallelism: PARALLELISM,
        leader_election: leader_election(),
        client_connection: client_connection(),
        enable_profiling: true,
        enable_contention_profiling: true,
        percentage_of_nodes_to_score: Some(0),
        pod_initial_backoff_seconds: 1,
        pod_max_backoff_seconds: 10,
        profiles: name_profiles(Vec::new()),
        extenders: Vec::new(),
        delay_cache_until_active: false,
    }
}

/// There is always a profile, and a single one without a name gets the default
/// name; an empty name stays empty. CFG-016, CFG-020
pub fn name_profiles(
    mut profiles: Vec<(Option<Symbol>, KubeSchedulerProfile)>,
) -> Vec<KubeSchedulerProfile> {
    if profiles.is_empty() {
        profiles.push((None, KubeSchedulerProfile::default()));
    }
    if let [(None, profile)] = profiles.as_mut_slice() {
        profile.scheduler_name = Symbol::new(DEFAULT_SCHEDULER_NAME);
    }
    profiles.into_iter().map(|(_, profile)| profile).collect()
}

/// Merges the default plugins into every profile and adds missing arguments.
pub fn complete(document: &mut KubeSchedulerConfiguration, gates: &FeatureGates) {
    for profile in &mut document.profiles {
        profile.plugins = merge(&default_plugin_sets(gates), &profile.plugins);
        add_arguments(profile, gates);
    }
}

/// Arguments for the plugins enabled anywhere that have none, sorted by name. CFG-100
fn add_arguments(profile: &mut KubeSchedulerProfile, gates: &FeatureGates) {
    let configured: BTreeSet<Symbol> =
        profile.plugin_config.iter().map(|config| config.name).collect();
    let enabled: BTreeSet<Symbol> =
        profile.plugins.sets().flat_map(|set| &set.enabled).map(|plugin| plugin.name).collect();
    for name in enabled.difference(&configured) {
        if let Some(args) = default_args(*name, gates) {
            profile.plugin_config.push(PluginConfig { name: *name, args: Some(args) });
        }
    }
}

/// CPU and memory where no resource is given; a weight of 0 becomes 1. CFG-107, CFG-111
pub fn resources(given: Option<Vec<ResourceSpec>>) -> Vec<ResourceSpec> {
    let Some(mut resources) = given.filter(|resources| !resources.is_empty()) else {
        return default_resources();
    };
    for resource in resources.iter_mut().filter(|resource| resource.weight == 0) {
        resource.weight = 1;
    }
    resources
}

/// The more of a node's storage is used, the lower its score; only with the gate. CFG-117
pub fn storage_shape(
    given: Option<Vec<UtilizationShapePoint>>,
    gates: &FeatureGates,
) -> Option<Vec<UtilizationShapePoint>> {
    let empty = given.as_ref().is_none_or(|shape| shape.is_empty());
    if !empty || !gates.enabled(Feature::StorageCapacityScoring) {
        return given;
    }
    let point = |utilization, score| UtilizationShapePoint { utilization, score };
    Some(vec![point(0, 10), point(100, 0)])
}

/// Time limits exist only with their gates. CFG-118, CFG-119
pub fn dynamic_resources(gates: &FeatureGates) -> DynamicResourcesArgs {
    let default = DynamicResourcesArgs::default();
    let filter = gates.enabled(Feature::DRASchedulerFilterTimeout);
    let binding = gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus);
    DynamicResourcesArgs {
        filter_timeout: default.filter_timeout.filter(|_| filter),
        binding_timeout: default.binding_timeout.filter(|_| binding),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::PluginArgs;

    #[test]
    fn only_a_single_profile_without_a_name_gets_one() {
        let unnamed = || (None, KubeSchedulerProfile::default());
        let names = |profiles| -> Vec<_> {
            name_profiles(profiles).iter().map(|profile| profile.scheduler_name.as_str()).collect()
        };
        assert_eq!(names(vec![]), ["default-scheduler"]);
        assert_eq!(names(vec![unnamed()]), ["default-scheduler"]);
        assert_eq!(names(vec![unnamed(), unnamed()]), ["", ""]);
        assert_eq!(names(vec![(Some(Symbol::EMPTY), unnamed().1)]), [""]);
    }

    #[test]
    fn gates_decide_on_some_arguments() {
        let gates = FeatureGates::default()
            .with(Feature::DRASchedulerFilterTimeout, false)
            .with(Feature::DRADeviceBindingConditions, false)
            .with(Feature::StorageCapacityScoring, true);
        let args = DynamicResourcesArgs { filter_timeout: None, binding_timeout: None };
        assert_eq!(dynamic_resources(&gates), args);
        assert_eq!(dynamic_resources(&FeatureGates::default()), DynamicResourcesArgs::default());
        let shape = storage_shape(None, &gates).unwrap();
        assert_eq!(
            shape.iter().map(|p| (p.utilization, p.score)).collect::<Vec<_>>(),
            [(0, 10), (100, 0)]
        );
        assert_eq!(storage_shape(None, &FeatureGates::default()), None);
    }

    #[test]
    fn default_arguments_are_those_of_the_types() {
        let gates = FeatureGates::default();
        let default = |name: &str| default_args(Symbol::new(name), &gates);
        assert_eq!(
            default("NodeResourcesFit"),
            Some(PluginArgs::NodeResourcesFit(Default::default()))
        );
        assert_eq!(default("VolumeBinding"), Some(PluginArgs::VolumeBinding(Default::default())));
        assert_eq!(default("ManualPermit"), Some(PluginArgs::ManualPermit(Default::default())));
        assert_eq!(default("ImageLocality"), None);
    }
}
