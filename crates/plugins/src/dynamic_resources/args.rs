//! The arguments: two time limits, each behind its gates.

use kubestep_api::Duration;
use kubestep_config::validation::Findings;
use kubestep_config::{Arguments, Feature, FeatureGates, FieldPath, arguments};

arguments! {
    /// Time limits of DynamicResources. A limit is `None` where its gates are off; a `filter_timeout`
    /// of zero is no limit either.
    #[derive(Copy, Eq)]
    pub struct DynamicResourcesArgs for "DynamicResources" {
        filter_timeout: Option<Duration> = Some(Duration::from_secs(10)),
            put_some "filterTimeout", "a duration",
            "Time limit of the search for devices on one node; after it the node is rejected. 0s: no \
             limit.";
        binding_timeout: Option<Duration> = Some(Duration::from_secs(600)),
            put_some "bindingTimeout", "a duration",
            "How long PreBind waits until the devices' binding conditions are met.";
    }
}

fn has_binding_conditions(gates: &FeatureGates) -> bool {
    gates.enabled(Feature::DRADeviceBindingConditions)
        && gates.enabled(Feature::DRAResourceClaimDeviceStatus)
}

impl Arguments for DynamicResourcesArgs {
    fn defaults(gates: &FeatureGates) -> Self {
        let default = Self::default();
        let filter = gates.enabled(Feature::DRASchedulerFilterTimeout);
        Self {
            filter_timeout: default.filter_timeout.filter(|_| filter),
            binding_timeout: default.binding_timeout.filter(|_| has_binding_conditions(gates)),
        }
    }

    fn validate(&self, found: &mut Findings, path: &FieldPath, gates: &FeatureGates) {
        if let Some(timeout) = self.filter_timeout {
            let path = path.field("filterTimeout");
            if !gates.enabled(Feature::DRASchedulerFilterTimeout) {
                found.forbidden(&path, "DRASchedulingFilterTimeout feature gate is disabled");
            } else if timeout.nanos < 0 {
                found.invalid(&path, timeout.to_string(), "must be zero or positive");
            }
        }
        if let Some(timeout) = self.binding_timeout {
            let path = path.field("bindingTimeout");
            if !has_binding_conditions(gates) {
                let detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus \
                              feature gate is disabled";
                found.forbidden(&path, detail);
            } else if timeout < Duration::from_secs(1) {
                found.invalid(&path, timeout.to_string(), "must be at least 1 second");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_exist_only_with_their_gates() {
        let gates = FeatureGates::default()
            .with(Feature::DRASchedulerFilterTimeout, false)
            .with(Feature::DRADeviceBindingConditions, false);
        let none = DynamicResourcesArgs { filter_timeout: None, binding_timeout: None };
        assert_eq!(DynamicResourcesArgs::defaults(&gates), none);
        let default = DynamicResourcesArgs::defaults(&FeatureGates::default());
        assert_eq!(default, DynamicResourcesArgs::default());
    }
}
