//! Defaults of a document, and the completion of its profiles: the default
//! plugins merged in and arguments added for every enabled plugin that takes some.
//!
//! Upstream: `pkg/scheduler/apis/config/v1/defaults.go`,
//! `staging/src/k8s.io/component-base/config/v1alpha1/defaults.go`.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;

use super::decode::Context;
use super::features::FeatureGates;
use super::merge::{default_plugin_sets, merge};
use super::points::{PointSet, find_plugin};
use super::types::{
    ClientConnectionConfiguration, DEFAULT_SCHEDULER_NAME, KubeSchedulerConfiguration,
    KubeSchedulerProfile, LeaderElectionConfiguration, PluginConfig,
};
use kubestep_api::Duration;

/// `parallelism`: the goroutines that filter nodes.
const PARALLELISM: i32 = 16;

/// How kube-scheduler elects a leader.
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

/// How kube-scheduler talks to the API server.
pub fn client_connection() -> ClientConnectionConfiguration {
    ClientConnectionConfiguration {
        kubeconfig: String::new(),
        accept_content_types: String::new(),
        content_type: "application/vnd.kubernetes.protobuf".to_owned(),
        qps: 50.0,
        burst: 100,
    }
}

/// The document that says nothing, in the version of `gates`. Its profile has no plugins and
/// arguments yet.
pub fn document(gates: &FeatureGates) -> KubeSchedulerConfiguration {
    KubeSchedulerConfiguration {
        points: PointSet::in_version(gates),
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
/// name; an empty name stays empty.
pub(crate) fn name_profiles(
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
pub(super) fn complete(document: &mut KubeSchedulerConfiguration, context: &Context<'_>) {
    let default = default_plugin_sets(context);
    for profile in &mut document.profiles {
        profile.plugins = merge(&default, &profile.plugins);
        add_arguments(profile, context);
    }
}

/// Default arguments for the plugins enabled anywhere that are given none, sorted by name.
fn add_arguments(profile: &mut KubeSchedulerProfile, context: &Context<'_>) {
    let configured: BTreeSet<Symbol> =
        profile.plugin_config.iter().map(|config| config.name).collect();
    let enabled: BTreeSet<Symbol> =
        profile.plugins.sets().flat_map(|set| &set.enabled).map(|plugin| plugin.name).collect();
    for name in enabled.difference(&configured) {
        if let Some(args) = find_plugin(context.plugins, name).and_then(|plugin| plugin.args) {
            let args = Some(args.default(context.gates));
            profile.plugin_config.push(PluginConfig { name: *name, args });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
