//! The drivers whose limit a node would exceed, for Filter and for explanations.

use super::count::{Attachable, LookupError, Migrated};
use super::{Attachments, count_of, limit};
use kubestep_api::CsiNode;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
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

/// The CSINode of a node.
pub(super) fn csi_node<'a>(cx: &CycleContext<'a>, node: &NodeInfo) -> Option<&'a CsiNode> {
    let key = NamespacedName::new(Symbol::EMPTY, node.name);
    cx.objects.csi_nodes.get(&key).map(|csi_node| csi_node.as_ref())
}

/// A node and its limits.
pub(super) struct VolumeLimits<'a> {
    node: &'a NodeInfo,
    pub(super) csi_node: Option<&'a CsiNode>,
    /// The in-tree plugins whose volumes count there.
    pub(super) migrated: Migrated,
    /// Up to 1.31: what the node itself has to allocate.
    allocatable: &'a [(Symbol, i64)],
}

impl<'a> VolumeLimits<'a> {
    pub(super) fn of(cx: &CycleContext<'a>, node: &'a NodeInfo) -> VolumeLimits<'a> {
        let allocatable: &[(Symbol, i64)] = match cx.features.has(Switch::OnlyCsiNodesLimit) {
            true => &[],
            false => node.allocatable.scalars.as_slice(),
        };
        let csi_node = csi_node(cx, node);
        let migrated = Migrated::of(csi_node, cx.features);
        VolumeLimits { node, csi_node, migrated, allocatable }
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

    /// The drivers whose limit would be exceeded by `new` volumes, each once.
    pub(super) fn exceeded(
        &self,
        cx: &CycleContext<'_>,
        attachments: &Attachments,
        new: &Attachable,
    ) -> Result<Vec<OverLimit>, Status> {
        // Pods on the node are checked, and may cause errors, if there is any limit.
        if new.is_empty() || self.are_none() {
            return Ok(Vec::new());
        }
        if self.allow_at_most(attachments, new) {
            debug_assert!(self.counted(cx, attachments, new).is_ok_and(|over| over.is_empty()));
            return Ok(Vec::new());
        }
        self.counted(cx, attachments, new)
    }

    /// The same, from the volumes of all pods on the node.
    fn counted(
        &self,
        cx: &CycleContext<'_>,
        attachments: &Attachments,
        new: &Attachable,
    ) -> Result<Vec<OverLimit>, Status> {
        let mut attached = self.attached_by_pods(cx)?;
        let new = new.without(&attached);
        for (driver, handle) in attachments.of_node(self.node.name) {
            attached.add(*driver, *handle);
        }
        let mut over: Vec<OverLimit> = Vec::new();
        for driver in new.drivers() {
            let Some(limit) = self.of_driver(driver) else { continue };
            let (attached, new) = (attached.count(driver), new.count(driver));
            let known = over.last().is_some_and(|last| last.driver == driver);
            if attached + new > limit && !known {
                over.push(OverLimit { driver, limit, attached, new });
            }
        }
        Ok(over)
    }

    /// Whether no limit would be exceeded even if every claim on the node were another volume of the
    /// same driver: then the claims need not be looked up. Only claims cause no errors.
    fn allow_at_most(&self, attachments: &Attachments, new: &Attachable) -> bool {
        let claims = self.node.pvc_ref_counts.len();
        let most = (claims + attachments.of_node(self.node.name).len()) as i64;
        let allows =
            |driver| self.of_driver(driver).is_none_or(|limit| most + new.count(driver) <= limit);
        self.node.unclaimed_volumes == 0 && new.drivers().all(allows)
    }

    /// The volumes of the pods on the node.
    fn attached_by_pods(&self, cx: &CycleContext<'_>) -> Result<Attachable, Status> {
        let mut attached = Attachable::default();
        for pod in self.node.pods.iter() {
            let added = attached.add_pod(&pod.pod, cx.objects, self.migrated, false);
            if let Err(LookupError::NotFound(text) | LookupError::Other(text)) = added {
                return Err(Status::error(&text));
            }
        }
        Ok(attached)
    }
}
