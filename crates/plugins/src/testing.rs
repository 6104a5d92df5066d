//! Test profiles with a selection of in-tree plugins.

use kubestep_config::{FeatureGates, ProfileArgs};
use kubestep_framework::runtime::Framework;
use kubestep_framework::testing::framework_with;

use crate::registry;

/// A profile with these plugins at every point they implement, and default arguments.
pub fn framework(plugins: &[&str]) -> Framework {
    framework_with(plugins, ProfileArgs::default(), &registry(), FeatureGates::default())
}

#[cfg(test)]
mod tests {
    use kubestep_config::ExtensionPoint;
    use kubestep_framework::testing::names_at;

    use super::*;

    #[test]
    fn a_framework_runs_plugins_where_they_belong() {
        let framework = framework(&["PrioritySort", "DefaultBinder"]);
        assert_eq!(names_at(&framework, ExtensionPoint::QueueSort), ["PrioritySort"]);
        assert_eq!(names_at(&framework, ExtensionPoint::Bind), ["DefaultBinder"]);
        assert!(names_at(&framework, ExtensionPoint::Filter).is_empty());
    }
}
