//! PrioritySort: sorts the active queue by priority, then by the time of enqueueing.
//!
//! Upstream: `pkg/scheduler/framework/plugins/queuesort/priority_sort.go`.

use std::sync::Arc;

use kubestep_api::intern::Symbol;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::QueuedPodInfo;
use kubestep_framework::registry::Built;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    default_profile: DefaultProfile::Present,
    doc: "orders the active queue by priority, then by time",
    long_doc: "The pod with the higher priority is tried first; of pods with equal priority, the \
               one that entered the queue first.",
    example: "A pod of priority 1000 created now is tried before one of priority 0 that has waited \
              for an hour.",
    ..PluginDescriptor::new("PrioritySort", &[ExtensionPoint::QueueSort])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(PrioritySort))
}

struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> Symbol {
        "PrioritySort".into()
    }

    /// Higher priority first, then the earlier timestamp; equal pods have no defined order.
    fn less(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        let (first, second) = (a.info.priority(), b.info.priority());
        first > second || (first == second && a.timestamp < b.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_api::{Pod, Time};
    use kubestep_framework::pod::PodInfo;

    fn queued(priority: Option<i32>, timestamp: i64) -> QueuedPodInfo {
        let mut pod = Pod::default();
        pod.spec.priority = priority;
        QueuedPodInfo::new(Arc::new(PodInfo::new(Arc::new(pod))), Time(timestamp))
    }

    #[test]
    fn priority_then_time() {
        let less = |a, b| PrioritySort.less(&a, &b);
        assert!(less(queued(Some(2), 9), queued(Some(1), 1)));
        assert!(less(queued(Some(1), 1), queued(Some(1), 2)));
        assert!(!less(queued(Some(1), 1), queued(Some(1), 1)));
        assert!(less(queued(None, 1), queued(Some(-1), 0)));
    }
}
