//! Whole documents with the in-tree plugins: what kube-scheduler would run, what it would refuse, and
//! how a configuration is shown.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

mod overlay;
mod resolve;
mod shown;
mod validation;

use kubestep_config::{ConfigError, FeatureGates, PluginDescriptor, ResolvedConfig};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn plugins() -> Vec<PluginDescriptor> {
    kubestep_plugins::registry().descriptors()
}

/// Resolves a document without its head.
fn resolve_body(body: &str, gates: &FeatureGates) -> Result<ResolvedConfig, ConfigError> {
    kubestep_config::resolve(Some(&format!("{HEAD}{body}")), gates, &plugins())
}
