//! VolumeZone: a node fits only if its zone and region labels match those of the bound volumes.
//!
//! Only labels of volumes count; VolumeBinding checks their node affinity.
//! Upstream: `pkg/scheduler/framework/plugins/volumezone/volume_zone.go`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::older_events;
use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{Labels, Name, PersistentVolume, PersistentVolumeClaim, VolumeBindingMode};
use kubestep_config::{
    DefaultProfile, ExtensionPoint, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::error::PluginError;
use kubestep_framework::events::{
    Action, EventObjects, EventResource, HintResult, OlderRegistration, QueueingHint, Registration,
};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

/// The topology labels in upstream's order, each with its GA name.
const TOPOLOGY_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "zone labels of volumes",
    long_doc: "Rejects a node whose zone or region label is not among those of the pod's volumes.",
    example: "The claim is bound to a volume labelled topology.kubernetes.io/zone=a: nodes of zone \
              b are rejected.",
    ..PluginDescriptor::new("VolumeZone", &[ExtensionPoint::PreFilter, ExtensionPoint::Filter])
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, _: &FeatureGates) -> Built {
    Ok(Arc::new(VolumeZone::default()))
}

impl Default for VolumeZone {
    fn default() -> VolumeZone {
        VolumeZone {
            name: "VolumeZone".into(),
            labels: TOPOLOGY_LABELS.map(|(label, today)| (label.into(), today.into())),
            conflict: rejection(),
        }
    }
}

#[derive(Clone)]
struct VolumeZone {
    name: Symbol,
    labels: [(Symbol, Symbol); 4],
    conflict: Status,
}

/// The status of a node with a conflict.
pub fn rejection() -> Status {
    Status::unresolvable("node(s) had no available volume zone")
}

/// A topology label of a volume and the values that a node may have for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    /// The claim that is bound to the volume.
    pub claim: NamespacedName,
    /// The name of the volume.
    pub volume: Name,
    /// The key of the label on the volume.
    pub label: Symbol,
    /// The GA name of that label.
    today: Symbol,
    /// The zones or regions that the volume is in.
    pub values: BTreeSet<Name>,
}

impl Topology {
    /// The value of a node for this label, or for its GA name.
    pub fn of_node(&self, node: &Labels) -> Option<Name> {
        node.get(self.label).or_else(|| node.get(self.today)).copied()
    }

    fn allows(&self, node: &Labels) -> bool {
        self.of_node(node).is_some_and(|value| self.values.contains(&value))
    }
}

/// The topology labels of all of the pod's volumes.
#[derive(Clone, PartialEq, Debug)]
struct Topologies(Vec<Topology>);

impl Topologies {
    /// The labels whose values exclude the node.
    fn conflicts<'a>(&'a self, node: &'a Labels) -> impl Iterator<Item = &'a Topology> {
        // A node without any topology label is taken to be in a cluster with a single zone.
        let zoned = || TOPOLOGY_LABELS.iter().any(|(label, _)| node.get_str(label).is_some());
        self.0.iter().filter(move |topology| !topology.allows(node) && zoned())
    }
}

/// The labels of the pod's volumes that exclude a node.
pub fn conflicts(cx: &CycleContext<'_>, state: &CycleState, node: &Labels) -> Vec<Topology> {
    let conflicts = |all: &Topologies| all.conflicts(node).cloned().collect();
    match state.read::<Topologies>() {
        Some(all) => conflicts(all),
        None => {
            let all = VolumeZone::default().of_pod(cx.pod, cx.objects);
            all.map(|all| conflicts(&all)).unwrap_or_default()
        }
    }
}

impl VolumeZone {
    /// Looks up the volumes of all claims that the pod names; ephemeral volumes do not count.
    fn of_pod(&self, pod: &PodInfo, objects: &Objects) -> Result<Topologies, PluginError> {
        let mut all = Vec::new();
        for key in volumes::named_claims(&pod.pod) {
            if key.name.is_empty() {
                return Err("PersistentVolumeClaim had no name".into());
            }
            let claim = volumes::find_claim(objects, key)?;
            let name = claim.spec.volume_name;
            if name.is_empty() {
                check_unbound(claim, objects)?;
                continue;
            }
            let volume = objects.persistent_volumes.get(&NamespacedName::new(Symbol::EMPTY, name));
            let volume = volume.ok_or_else(|| volumes::not_found("persistentvolume", name))?;
            all.extend(self.of_volume(key, volume));
        }
        Ok(Topologies(all))
    }

    /// A new volume helps, and one whose topology labels changed.
    fn after_volume_change(&self, objects: &EventObjects) -> HintResult {
        let of = |volume| self.of_volume(NamespacedName::default(), volume);
        Ok(QueueingHint::queue_if(match objects.persistent_volumes()? {
            (Some(old), Some(new)) => of(old) != of(new),
            _ => true,
        }))
    }

    /// Labels whose value cannot be parsed as zones are ignored, as upstream.
    fn of_volume(&self, claim: NamespacedName, volume: &PersistentVolume) -> Vec<Topology> {
        let name = volume.metadata.name;
        let topology = |(label, today): &(Symbol, Symbol)| {
            let values = zones(&volume.metadata.labels.get(*label)?.text())?;
            Some(Topology { claim, volume: name, label: *label, today: *today, values })
        };
        self.labels.iter().filter_map(topology).collect()
    }
}

/// The zones in a label's value: one, or several joined by `__`. `None` if any is blank.
fn zones(value: &str) -> Option<BTreeSet<Name>> {
    let named = |zone: &str| (!zone.is_empty()).then(|| zone.into());
    value.split("__").map(str::trim).map(named).collect()
}

/// Accepts a claim without a volume if its class waits for the first consumer; the volume will
/// be created for the chosen node.
fn check_unbound(claim: &PersistentVolumeClaim, objects: &Objects) -> Result<(), PluginError> {
    let name = volumes::class_of(claim);
    if name.is_empty() {
        return Err("PersistentVolumeClaim had no pv name and storageClass name".into());
    }
    let class = objects.storage_classes.get(&NamespacedName::new(Symbol::EMPTY, name));
    match class.map(|class| class.volume_binding_mode) {
        None => Err(volumes::not_found("storageclass.storage.k8s.io", name).into()),
        Some(None) => Err(format!("VolumeBindingMode not set for StorageClass \"{name}\"").into()),
        Some(Some(VolumeBindingMode::WaitForFirstConsumer)) => Ok(()),
        Some(Some(VolumeBindingMode::Immediate)) => Err("PersistentVolume had no name".into()),
    }
}

impl Plugin for VolumeZone {
    fn name(&self) -> Symbol {
        self.name
    }

    fn events(&self) -> Option<Vec<Registration>> {
        let (add, update) = (Action::ADD, Action::UPDATE);
        let plugin = self.clone();
        Some(vec![
            Registration::hinted(EventResource::StorageClass, add, after_class_creation),
            Registration::always(EventResource::Node, add | Action::UPDATE_NODE_LABEL),
            Registration::hinted(
                EventResource::PersistentVolumeClaim,
                add | update,
                after_claim_change,
            ),
            Registration::hinted(
                EventResource::PersistentVolume,
                add | update,
                move |_, _, objects| plugin.after_volume_change(objects),
            ),
        ])
    }

    fn older_registration(&self) -> OlderRegistration {
        older_events::labels_and_taints
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        match self.of_pod(cx.pod, cx.objects) {
            Err(text) => volumes::unresolvable(text).into(),
            Ok(Topologies(none)) if none.is_empty() => Status::skip().into(),
            Ok(topologies) => {
                state.write(topologies);
                PreFilterAnswer::default()
            }
        }
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        let Some(node) = &node.node else { return Status::SUCCESS };
        let labels = &node.metadata.labels;
        let allows = |all: &Topologies| all.conflicts(labels).next().is_none();
        let allowed = match state.read::<Topologies>() {
            Some(topologies) => Ok(allows(topologies)),
            // If the profile disables PreFilter, the volumes are looked up for every node.
            None => self.of_pod(cx.pod, cx.objects).map(|topologies| allows(&topologies)),
        };
        match allowed {
            Ok(true) => Status::SUCCESS,
            Ok(false) => self.conflict.clone(),
            Err(text) => volumes::unresolvable(text),
        }
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        Ok(volumes::sign(&pod.pod))
    }
}

/// A new class helps if it waits for the first consumer.
fn after_class_creation(_: &QueueContext<'_>, _: &PodInfo, objects: &EventObjects) -> HintResult {
    let (_, class) = objects.storage_classes()?;
    let mode = class.and_then(|class| class.volume_binding_mode);
    Ok(QueueingHint::queue_if(mode == Some(VolumeBindingMode::WaitForFirstConsumer)))
}

/// A claim helps if the pod names it.
fn after_claim_change(_: &QueueContext<'_>, pod: &PodInfo, objects: &EventObjects) -> HintResult {
    let (_, Some(claim)) = objects.persistent_volume_claims()? else {
        return Ok(QueueingHint::Queue);
    };
    let key = NamespacedName::new(claim.metadata.namespace, claim.metadata.name);
    Ok(QueueingHint::queue_if(volumes::named_claims(&pod.pod).any(|named| named == key)))
}

#[cfg(test)]
mod tests;
