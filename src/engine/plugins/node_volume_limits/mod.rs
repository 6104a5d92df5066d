//! NodeVolumeLimits: a node takes only as many volumes of a CSI driver as its CSINode says.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::{CsiNode, VolumeAttachment};
use crate::config::{Feature, FeatureGates, ProfileArgs};
use crate::engine::framework::cycle_state::CycleState;
use crate::engine::framework::events::{
    Action, ClusterEvent, EventObjects, EventResource, Hint, Registration,
};
use crate::engine::framework::plugin::{CycleContext, Plugin, PreFilterAnswer, QueueContext};
use crate::engine::node::NodeInfo;
use crate::engine::objects::Objects;
use crate::engine::pod::{NamespacedName, PodInfo};
use crate::engine::status::Status;
use crate::engine::volumes;
use crate::intern::Symbol;

mod count;
mod hints;

use count::{Attachable, LookupError};

/// Builds the plugin.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Result<Arc<dyn Plugin>, String> {
    Ok(Arc::new(NodeVolumeLimits {
        name: "NodeVolumeLimits".into(),
        limit_scaling: features.enabled(Feature::VolumeLimitScaling),
        exceeded: Status::unschedulable("node(s) exceed max volume count"),
    }))
}

struct NodeVolumeLimits {
    name: Symbol,
    limit_scaling: bool,
    exceeded: Status,
}

impl NodeVolumeLimits {
    /// The refusal for a driver that insists on being there and is not (CSI-006).
    fn missing_driver(
        &self,
        objects: &Objects,
        new: &Attachable,
        csi_node: Option<&CsiNode>,
    ) -> Option<Status> {
        if !self.limit_scaling {
            return None;
        }
        let missing = new.drivers().find(|driver| {
            let known = objects.csi_drivers.get(&NamespacedName::new(Symbol::EMPTY, *driver));
            let insists = known
                .is_some_and(|known| known.spec.prevent_pod_scheduling_if_missing == Some(true));
            let drivers = csi_node.map_or(&[][..], |csi_node| &csi_node.spec.drivers);
            insists && !drivers.iter().any(|present| present.name == *driver)
        })?;
        Some(Status::unschedulable(&format!("{missing} CSI driver is not installed on the node")))
    }
}

/// How many volumes of `driver` the node takes; `None` for any number (CSI-007).
fn limit(csi_node: &CsiNode, driver: Symbol) -> Option<i64> {
    let entry = csi_node.spec.drivers.iter().rfind(|entry| entry.name == driver)?;
    entry.allocatable.as_ref()?.count.map(i64::from)
}

/// The attached volumes by node, as (driver, handle): made once per cycle, as each node needs
/// its own.
#[derive(Clone, Default)]
struct Attachments(Arc<HashMap<Symbol, Vec<(Symbol, Symbol)>>>);

impl Attachments {
    fn new(objects: &Objects) -> Attachments {
        let mut by_node: HashMap<Symbol, Vec<(Symbol, Symbol)>> = HashMap::new();
        for attachment in objects.volume_attachments.values() {
            if let Some(volume) = attached_volume(objects, attachment) {
                by_node.entry(attachment.spec.node_name).or_default().push(volume);
            }
        }
        Attachments(Arc::new(by_node))
    }

    /// Volumes attached to the node that no pod on it uses count as well (CSI-008).
    fn add_to(&self, node: Symbol, attached: &mut Attachable) {
        for (driver, handle) in self.0.get(&node).into_iter().flatten() {
            attached.add(*driver, *handle);
        }
    }
}

fn attached_volume(objects: &Objects, attachment: &VolumeAttachment) -> Option<(Symbol, Symbol)> {
    let name = attachment.spec.source.persistent_volume_name?;
    let volume = objects.persistent_volumes.get(&NamespacedName::new(Symbol::EMPTY, name))?;
    let driver = attachment.spec.attacher;
    (!driver.is_empty()).then_some((driver, volume.spec.csi.as_ref()?.volume_handle))
}

impl Plugin for NodeVolumeLimits {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        Some(vec![
            Registration::always(EventResource::CsiNode, Action::ADD),
            Registration::hinted(EventResource::CsiNode, Action::UPDATE),
            Registration::hinted(EventResource::Pod, Action::DELETE),
            Registration::hinted(EventResource::PersistentVolumeClaim, Action::ADD),
            Registration::hinted(EventResource::VolumeAttachment, Action::DELETE),
        ])
    }

    fn hint(
        &self,
        _cx: &QueueContext<'_>,
        pod: &PodInfo,
        event: &ClusterEvent,
        objects: &EventObjects,
    ) -> Result<Hint, String> {
        let helps = hints::helps(&pod.pod, event.resource, objects)?;
        Ok(if helps { Hint::Queue } else { Hint::Skip })
    }

    /// CSI-001
    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        if !cx.pod.pod.spec.volumes.iter().any(count::may_attach) {
            return Status::skip().into();
        }
        state.write(Attachments::new(cx.objects));
        PreFilterAnswer::default()
    }

    /// CSI-002…009
    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let csi_node = cx.objects.csi_nodes.get(&NamespacedName::new(Symbol::EMPTY, node.name));
        let csi_node = csi_node.map(|csi_node| csi_node.as_ref());
        let mut new = Attachable::default();
        match new.add_pod(&cx.pod.pod, cx.objects, csi_node.is_some(), true) {
            Ok(()) => {}
            Err(LookupError::NotFound(text)) => return volumes::unresolvable(text),
            Err(LookupError::Other(text)) => return Status::error(&text),
        }
        if let Some(refusal) = self.missing_driver(cx.objects, &new, csi_node) {
            return refusal;
        }
        let Some(csi_node) = csi_node else { return Status::SUCCESS };
        if !new.drivers().any(|driver| limit(csi_node, driver).is_some()) {
            return Status::SUCCESS;
        }
        let mut attached = Attachable::default();
        for pod in &node.pods {
            let added = attached.add_pod(&pod.pod, cx.objects, true, false);
            if let Err(LookupError::NotFound(text) | LookupError::Other(text)) = added {
                return Status::error(&text);
            }
        }
        new.remove_all(&attached);
        match state.read::<Attachments>() {
            Some(attachments) => attachments.add_to(node.name, &mut attached),
            None => Attachments::new(cx.objects).add_to(node.name, &mut attached),
        }
        let exceeds = |driver: Symbol| {
            let wanted = attached.count(driver) + new.count(driver);
            limit(csi_node, driver).is_some_and(|limit| wanted > limit)
        };
        match new.drivers().any(exceeds) {
            true => self.exceeded.clone(),
            false => Status::SUCCESS,
        }
    }

    fn sign(
        &self,
        _cx: &QueueContext<'_>,
        pod: &PodInfo,
    ) -> Result<Vec<(&'static str, String)>, Symbol> {
        Ok(volumes::sign(&pod.pod))
    }
}

#[cfg(test)]
mod tests;
