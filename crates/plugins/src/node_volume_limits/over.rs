//! The drivers whose limit a node would exceed, for Filter and for explanations.

use super::count::{Attachable, LookupError, Migrated};
use super::{Attachments, count_of, limit};
use crate::volumes;
use kubestep_api::CsiNode;
use kubestep_api::intern::Symbol;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Status;

/// A driver with more volumes than the node allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OverLimit {
    /// The CSI driver, by name.
    pub driver: Symbol,
    /// The maximum number of its volumes on the node.
    pub limit: i64,
    /// The number of its volumes attached now.
    pub attached: i64,
    /// The number of its volumes that the pod adds.
    pub new: i64,
}

/// The CSINode of a node.
pub(super) fn csi_node<'a>(cx: &CycleContext<'a>, node: &NodeInfo) -> Option<&'a CsiNode> {
    let key = NamespacedName::new(Symbol::EMPTY, node.name);
    cx.objects.csi_nodes.get(&key).map(|csi_node| csi_node.as_ref())
}

/// The volumes that the pod adds.
pub(super) fn new_volumes(cx: &CycleContext<'_>, node: &NodeInfo) -> Result<Attachable, Status> {
    let mut new = Attachable::default();
    let migrated = Migrated::of(csi_node(cx, node), cx.features);
    match new.add_pod(&cx.pod.pod, cx.objects, migrated, true) {
        Ok(()) => Ok(new),
        Err(LookupError::NotFound(text)) => Err(volumes::unresolvable(text)),
        Err(LookupError::Other(text)) => Err(Status::error(&text)),
    }
}

/// The drivers whose limit would be exceeded, each once.
pub(super) fn over_limit(
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &NodeInfo,
    mut new: Attachable,
) -> Result<Vec<OverLimit>, Status> {
    let Some(csi_node) = csi_node(cx, node) else { return Ok(Vec::new()) };
    // Pods on the node are checked, and may cause errors, if any driver has a limit.
    if new.is_empty() || csi_node.spec.drivers.iter().all(|entry| count_of(entry).is_none()) {
        return Ok(Vec::new());
    }
    let migrated = Migrated::of(Some(csi_node), cx.features);
    let mut attached = Attachable::default();
    for pod in &node.pods {
        let added = attached.add_pod(&pod.pod, cx.objects, migrated, false);
        if let Err(LookupError::NotFound(text) | LookupError::Other(text)) = added {
            return Err(Status::error(&text));
        }
    }
    new.remove_all(&attached);
    match state.read::<Attachments>() {
        Some(attachments) => attachments.add_to(node.name, &mut attached),
        None => Attachments::new(cx.objects).add_to(node.name, &mut attached),
    }
    let mut over: Vec<OverLimit> = Vec::new();
    for driver in new.drivers() {
        let Some(limit) = limit(csi_node, driver) else { continue };
        let (attached, new) = (attached.count(driver), new.count(driver));
        let known = over.last().is_some_and(|last| last.driver == driver);
        if attached + new > limit && !known {
            over.push(OverLimit { driver, limit, attached, new });
        }
    }
    Ok(over)
}
