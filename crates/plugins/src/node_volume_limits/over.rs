//! The drivers whose limit a node would exceed, for Filter and for explanations.

use super::count::{Attachable, LookupError, Migrated};
use super::{Attachments, count_of, limit};
use crate::volumes;
use kubestep_api::CsiNode;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::node::NodeInfo;
use kubestep_framework::plugin::CycleContext;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::status::Status;

/// The prefix of the resources with which nodes limit volumes.
const ATTACHABLE: &str = "attachable-volumes-";
/// The prefix of those that limit the volumes of a CSI driver.
const ATTACHABLE_CSI: &str = "attachable-volumes-csi-";

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

/// The limits of a node.
struct VolumeLimits<'a> {
    csi_node: Option<&'a CsiNode>,
    /// Up to 1.31: what the node itself has to allocate.
    allocatable: &'a [(Symbol, i64)],
}

impl<'a> VolumeLimits<'a> {
    fn of(cx: &CycleContext<'a>, node: &'a NodeInfo) -> VolumeLimits<'a> {
        let allocatable: &[(Symbol, i64)] = match cx.features.has(Switch::OnlyCsiNodesLimit) {
            true => &[],
            false => node.allocatable.scalars.as_slice(),
        };
        VolumeLimits { csi_node: csi_node(cx, node), allocatable }
    }

    /// Whether there is none, of whatever volumes.
    fn are_none(&self) -> bool {
        let limits_volumes = |name: &Symbol| name.starts_with(ATTACHABLE);
        let drivers = self.csi_node.map_or(&[][..], |csi_node| &csi_node.spec.drivers);
        drivers.iter().all(|entry| count_of(entry).is_none())
            && !self.allocatable.iter().any(|(name, _)| limits_volumes(name))
    }

    /// The maximum number of volumes of a driver.
    fn of_driver(&self, driver: Symbol) -> Option<i64> {
        let of_node = || {
            // Upstream shortens names of 40 characters and more to a hash, which matches no name here.
            let is_its = |name: &Symbol| name.strip_prefix(ATTACHABLE_CSI) == Some(driver.as_str());
            self.allocatable.iter().find(|(name, _)| is_its(name)).map(|(_, limit)| *limit)
        };
        self.csi_node.and_then(|csi_node| limit(csi_node, driver)).or_else(of_node)
    }
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
    let limits = VolumeLimits::of(cx, node);
    // Pods on the node are checked, and may cause errors, if there is any limit.
    if new.is_empty() || limits.are_none() {
        return Ok(Vec::new());
    }
    let migrated = Migrated::of(limits.csi_node, cx.features);
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
        let Some(limit) = limits.of_driver(driver) else { continue };
        let (attached, new) = (attached.count(driver), new.count(driver));
        let known = over.last().is_some_and(|last| last.driver == driver);
        if attached + new > limit && !known {
            over.push(OverLimit { driver, limit, attached, new });
        }
    }
    Ok(over)
}
