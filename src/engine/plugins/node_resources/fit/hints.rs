//! Which cluster events make a pod worth another try that did not fit (03-queue, section 9).

use super::super::{incoming_request, is_served_by_devices};
use super::check::{Demand, Exempt};
use crate::api::{Node, Pod};
use crate::config::Feature;
use crate::engine::extended_resources::implicit_resource;
use crate::engine::framework::events::{EventObjects, Hint};
use crate::engine::framework::plugin::QueueContext;
use crate::engine::node::{NodeId, NodeInfo};
use crate::engine::pod::PodInfo;
use crate::engine::requests::{RequestOptions, pod_requests};
use crate::engine::resource::{Resource, is_scalar_name};
use crate::intern::Symbol;

fn queue_if(worth_it: bool) -> Result<Hint, String> {
    Ok(if worth_it { Hint::Queue } else { Hint::Skip })
}

/// A pod was deleted or requests less.
pub fn after_pod_event(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> Result<Hint, String> {
    match objects.pods()? {
        (Some(deleted), None) => {
            let held_a_node = !deleted.spec.node_name.is_empty();
            queue_if(held_a_node || !deleted.status.nominated_node_name.is_empty())
        }
        (Some(old), Some(new)) => queue_if(frees_something(cx, pod, old, new)),
        _ => Ok(Hint::Queue),
    }
}

/// Whether a change of another pod, or of the pod itself, frees something the pod requests.
fn frees_something(cx: &QueueContext<'_>, pod: &PodInfo, old: &Pod, new: &Pod) -> bool {
    if !cx.features.enabled(Feature::InPlacePodVerticalScaling) {
        return false;
    }
    if new.metadata.uid == pod.uid() {
        return true;
    }
    if new.spec.node_name.is_empty() {
        return false;
    }
    let options = RequestOptions {
        pod_level_status: cx.features.enabled(Feature::InPlacePodLevelResourcesVerticalScaling),
        ..RequestOptions::with_status()
    };
    let before = Resource::from_list(&pod_requests(old, &options));
    let after = Resource::from_list(&pod_requests(new, &options));
    let wanted = pod_requests(&pod.pod, &options);
    wanted.iter().any(|(name, quantity)| {
        let counted = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || is_scalar_name(&name);
        counted && !quantity.is_zero() && before.amount(name) > after.amount(name)
    })
}

/// A node appeared, or offers other amounts.
pub fn after_node_change(
    cx: &QueueContext<'_>,
    pod: &PodInfo,
    objects: &EventObjects,
) -> Result<Hint, String> {
    let (old, new) = objects.nodes()?;
    let Some(new) = new else { return Ok(Hint::Skip) };
    let demand = Demand::new(cx, pod, &Exempt::default());
    if !demand.lacking(&empty_node(new)).is_none() {
        return Ok(Hint::Skip);
    }
    let Some(old) = old else { return Ok(Hint::Queue) };
    queue_if(offers_more(cx, &incoming_request(pod, cx.features), old, new))
}

fn empty_node(node: &Node) -> NodeInfo {
    let mut info = NodeInfo::new(NodeId(0), node.metadata.name);
    info.allocatable = allocatable(node);
    info
}

fn allocatable(node: &Node) -> Resource {
    node.status.allocatable.as_ref().map(Resource::from_list).unwrap_or_default()
}

/// Whether the node offers more of something requested, or more pods.
fn offers_more(cx: &QueueContext<'_>, request: &Resource, old: &Node, new: &Node) -> bool {
    let (old, new) = (allocatable(old), allocatable(new));
    if new.allowed_pods > old.allowed_pods {
        return true;
    }
    let rose = |requested: i64, old: i64, new: i64| requested > 0 && new > old;
    rose(request.milli_cpu, old.milli_cpu, new.milli_cpu)
        || rose(request.memory, old.memory, new.memory)
        || rose(request.ephemeral_storage, old.ephemeral_storage, new.ephemeral_storage)
        || request.scalars.iter().filter(|(_, amount)| *amount != 0).any(|(name, _)| {
            let (before, after) = (old.scalar(*name), new.scalar(*name));
            after > before || (after <= 0 && is_served_by_devices(cx, *name))
        })
}

/// A device class appeared or changed.
pub fn after_device_class(pod: &PodInfo, objects: &EventObjects) -> Result<Hint, String> {
    let (old, new) = objects.device_classes()?;
    let Some(new) = new else { return Ok(Hint::Skip) };
    let requests = pod_requests(&pod.pod, &RequestOptions::default());
    let wants = |name: Symbol| requests.contains_key(name);
    let resource = new.spec.extended_resource_name;
    if let Some(old) = old {
        if old.spec.extended_resource_name.unwrap_or_default() == resource.unwrap_or_default() {
            return Ok(Hint::Skip);
        }
    } else if wants(implicit_resource(new)) {
        return Ok(Hint::Queue);
    }
    queue_if(resource.is_some_and(wants))
}
