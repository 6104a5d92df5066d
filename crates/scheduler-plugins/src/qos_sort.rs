//! QOSSort: sorts the active queue by priority, then by quality-of-service class.
//!
//! Upstream: `pkg/qos/queue_sort.go` of kubernetes-sigs/scheduler-plugins.

use std::cmp::Reverse;
use std::sync::Arc;

use kubestep_framework::api::intern::Symbol;
use kubestep_framework::config::{ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::pod::QueuedPodInfo;
use kubestep_framework::pod::qos::qos_class;
use kubestep_framework::registry::Built;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    registers_events: false,
    signs: false,
    doc: "orders the active queue by priority, then by QoS class",
    long_doc: "The pod with the higher priority is tried first. Of pods with equal priority, \
               Guaranteed ones come before Burstable ones and those before BestEffort ones; then \
               the one that entered the queue first.",
    example: "A Guaranteed pod created now is tried before a BestEffort pod of the same priority \
              that has waited for an hour.",
    ..PluginDescriptor::new("QOSSort", &[ExtensionPoint::QueueSort])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(QosSort))
}

struct QosSort;

impl Plugin for QosSort {
    fn name(&self) -> Symbol {
        PLUGIN.name.into()
    }

    fn less(&self, a: &QueuedPodInfo, b: &QueuedPodInfo) -> bool {
        let (first, second) = (Reverse(a.info.priority()), Reverse(b.info.priority()));
        let class = |pod: &QueuedPodInfo| Reverse(qos_class(&pod.info.pod));
        first < second || (first == second && (class(a), a.timestamp) < (class(b), b.timestamp))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_framework::api::Time;
    use kubestep_framework::testing::{PodBuilder, info, pod};

    const NONE: [&str; 2] = ["0", "0"];

    /// A pod with this priority, CPU request and CPU limit (memory likewise), and timestamp.
    fn queued(priority: i32, [request, limit]: [&str; 2], timestamp: i64) -> QueuedPodInfo {
        let amounts = |amount| json!({"cpu": amount, "memory": amount});
        let resources = json!({"requests": amounts(request), "limits": amounts(limit)});
        let spec = json!({"containers": [{"name": "c", "resources": resources}]});
        QueuedPodInfo::new(info(pod("p").priority(priority).spec(spec)), Time(timestamp))
    }

    #[test]
    fn priority_then_class_then_time() {
        let (burstable, guaranteed) = (["1", "2"], ["1", "1"]);
        for (a, b, expected) in [
            (queued(100, NONE, 0), queued(50, guaranteed, 0), true),
            (queued(50, NONE, 0), queued(80, NONE, 0), false),
            (queued(0, NONE, 2), queued(0, NONE, 1), false),
            (queued(0, NONE, 0), queued(0, guaranteed, 0), false),
            (queued(0, burstable, 0), queued(0, guaranteed, 0), false),
            (queued(0, burstable, 2), queued(0, burstable, 1), false),
            (queued(0, guaranteed, 9), queued(0, burstable, 1), true),
            (queued(0, guaranteed, 1), queued(0, guaranteed, 2), true),
            (queued(0, guaranteed, 1), queued(0, guaranteed, 1), false),
        ] {
            assert_eq!(QosSort.less(&a, &b), expected, "{a:?} {b:?}");
        }
    }
}
