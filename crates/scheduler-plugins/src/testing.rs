//! What the tests of several plugins share.

use kubestep_framework::config::{ConfigError, FeatureGates, Problem, resolve};
use kubestep_framework::registry::Registry;

/// The problems of a configuration that enables `plugin` at a point with these arguments.
pub fn problems(plugin: &str, point: &str, args: &str) -> Vec<String> {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
         - plugins: {{{point}: {{enabled: [{{name: {plugin}}}]}}}}\n  \
           pluginConfig: [{{name: {plugin}, args: {args}}}]\n"
    );
    let registry = Registry::of(crate::entries()).unwrap();
    match resolve(Some(&text), &FeatureGates::default(), &registry.descriptors()) {
        Ok(_) => Vec::new(),
        Err(ConfigError { problems, .. }) => problems.iter().map(Problem::to_string).collect(),
    }
}
