//! The node groups of cluster-autoscaler, with what its report says of them.

use super::template::{NodeTemplate, TemplateOrigin, take_startup_taints};
use kubestep_api::{Name, NodeGroup, NodeGroupStatus, Provisioning};

/// A template for each group.
pub(super) fn templates(provisioning: &Provisioning) -> Vec<NodeTemplate> {
    let template = |group: &NodeGroup| {
        let mut node = group.node.clone();
        node.metadata.name = "".into();
        node.status.conditions.clear();
        let startup_taints = take_startup_taints(&mut node.spec.taints);
        let status = provisioning.autoscaler.iter().flat_map(|status| &status.node_groups);
        let status = status.into_iter().find(|status| status.name == group.name);
        NodeTemplate {
            pods: Some(group.pods.clone()),
            startup_taints,
            room: status.map(room),
            closed: status.and_then(closed),
            ..NodeTemplate::new(TemplateOrigin::NodeGroup { group: group.name }, node)
        }
    };
    provisioning.node_groups.iter().map(template).collect()
}

/// Counts a new node of a group in the report.
pub(super) fn count(known: &mut Provisioning, group: Name) {
    let groups = known.autoscaler.iter_mut().flat_map(|status| &mut status.node_groups);
    for group in groups.filter(|one| one.name == group) {
        let target = &mut group.health.cloud_provider_target;
        *target = target.saturating_add(1);
    }
}

fn room(status: &NodeGroupStatus) -> usize {
    let left = status.health.max_size.saturating_sub(status.health.cloud_provider_target);
    usize::try_from(left).unwrap_or(0)
}

/// Why cluster-autoscaler would not enlarge the group at present.
fn closed(status: &NodeGroupStatus) -> Option<String> {
    let health = &status.health;
    if status.scale_up.status == "Backoff" {
        let info = &status.scale_up.backoff_info;
        let said = [info.error_code.as_str(), info.error_message.as_str()];
        let said: Vec<&str> = said.into_iter().filter(|text| !text.is_empty()).collect();
        let why = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
        return Some(format!("in backoff{why}"));
    }
    if room(status) == 0 {
        let max = health.max_size;
        return Some(format!(
            "at its maximum size: {} of {max} nodes",
            health.cloud_provider_target
        ));
    }
    (health.status == "Unhealthy").then(|| "unhealthy: too many of its nodes are not ready".into())
}
