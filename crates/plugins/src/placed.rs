//! Which pods count as placed when an event decides whether another pod is requeued.

use kubestep_api::Pod;
use kubestep_config::FeatureGates;
use kubestep_config::versions::Switch;

/// Whether the pod has a node or is nominated to one; without `switch`, whether it has a node.
pub fn is_placed(pod: &Pod, features: &FeatureGates, switch: Switch) -> bool {
    let is_nominated = !pod.status.nominated_node_name.is_empty();
    !pod.spec.node_name.is_empty() || (is_nominated && features.has(switch))
}
