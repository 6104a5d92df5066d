//! NodeVolumeLimits: limits the volumes of each CSI driver on a node, as its CSINode specifies.
//!
//! Upstream: `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;

use crate::older_events;
use crate::volumes;
use kubestep_api::intern::Symbol;
use kubestep_api::{CsiNode, CsiNodeDriver, Name, VolumeAttachment};
use kubestep_config::versions::Switch;
use kubestep_config::{
    DefaultProfile, ExtensionPoint, Feature, FeatureGates, PluginDescriptor, ProfileArgs,
};
use kubestep_framework::cycle_state::CycleState;
use kubestep_framework::events::{Action, EventResource, OlderRegistration, Registration};
use kubestep_framework::node::NodeInfo;
use kubestep_framework::objects::Objects;
use kubestep_framework::plugin::{CycleContext, Fragments, Plugin, PreFilterAnswer, QueueContext};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::registry::Built;
use kubestep_framework::status::Status;

mod count;
mod hints;
pub mod in_tree;
mod over;

pub use over::OverLimit;

use count::{Attachable, LookupError, Migrated};
use over::VolumeLimits;

/// What configurations and the manual know of the plugin.
pub const PLUGIN: PluginDescriptor = PluginDescriptor {
    default_profile: DefaultProfile::Present,
    doc: "how many CSI volumes a node can attach",
    long_doc: "Counts the CSI volumes of the pods on a node for each driver and rejects the node \
               if the limit of its CSINode object would be exceeded.",
    example: "The CSINode of n1 allows 25 volumes of ebs.csi.aws.com and 25 are attached: a pod \
              with one more volume of that driver is rejected there.",
    ..PluginDescriptor::new(
        "NodeVolumeLimits",
        &[ExtensionPoint::PreFilter, ExtensionPoint::Filter],
    )
};

/// Builds the plugin for a profile, from its arguments.
pub fn build(_: &ProfileArgs, features: &FeatureGates) -> Built {
    Ok(Arc::new(NodeVolumeLimits {
        name: "NodeVolumeLimits".into(),
        exceeded: rejection(&LimitReason::OverLimit(Vec::new())),
        hints_attachments: features.has(Switch::VolumeLimitsHints),
    }))
}

struct NodeVolumeLimits {
    name: Symbol,
    /// Built once, as every full node gets it.
    exceeded: Status,
    /// Whether updates of CSINodes and deletions of VolumeAttachments have hints.
    hints_attachments: bool,
}

/// A driver that must be installed on the node (`preventPodSchedulingIfMissing`) and is not.
fn missing_driver(
    cx: &CycleContext<'_>,
    new: &Attachable,
    csi_node: Option<&CsiNode>,
) -> Option<Symbol> {
    // Up to 1.35 every known driver must be installed.
    let opts_in = cx.features.has(Switch::VolumeLimitScalingOptIn);
    new.drivers().find(|driver| {
        let known =
            cx.objects.csi_drivers.get(&NamespacedName::new(Symbol::EMPTY, (*driver).into()));
        let insists = known.is_some_and(|known| {
            !opts_in || known.spec.prevent_pod_scheduling_if_missing == Some(true)
        });
        let drivers = csi_node.map_or(&[][..], |csi_node| &csi_node.spec.drivers);
        insists && !drivers.iter().any(|present| present.name == *driver)
    })
}

/// Why a node cannot take the pod's volumes.
#[derive(Clone, PartialEq, Debug)]
pub enum LimitReason {
    /// The driver must be installed on the node and is not.
    MissingDriver(Symbol),
    /// Drivers whose limit would be exceeded; not empty.
    OverLimit(Vec<OverLimit>),
}

/// The status for a reason.
pub fn rejection(reason: &LimitReason) -> Status {
    match reason {
        LimitReason::MissingDriver(driver) => {
            Status::unschedulable(&format!("{driver} CSI driver is not installed on the node"))
        }
        LimitReason::OverLimit(_) => Status::unschedulable("node(s) exceed max volume count"),
    }
}

/// The reason why the node cannot take the pod's volumes; `None` if it can.
///
/// # Errors
/// Filter's status if the volumes cannot be counted.
pub fn reason(
    cx: &CycleContext<'_>,
    state: &CycleState,
    node: &NodeInfo,
) -> Result<Option<LimitReason>, Status> {
    let unprepared;
    let state = match state.read::<LimitState>() {
        Some(state) => state,
        None => {
            unprepared = LimitState::new(cx.objects);
            &unprepared
        }
    };
    let limits = VolumeLimits::of(cx, node);
    let new = state.new_volumes(cx, limits.migrated)?;
    if cx.features.enabled(Feature::VolumeLimitScaling)
        && let Some(driver) = missing_driver(cx, new, limits.csi_node)
    {
        return Ok(Some(LimitReason::MissingDriver(driver)));
    }
    let over = limits.exceeded(cx, &state.attachments, new)?;
    Ok((!over.is_empty()).then_some(LimitReason::OverLimit(over)))
}

/// The maximum number of volumes of `driver` on the node; `None` without a limit.
fn limit(csi_node: &CsiNode, driver: Symbol) -> Option<i64> {
    let of_driver = csi_node.spec.drivers.iter().filter(|entry| entry.name == driver);
    of_driver.filter_map(count_of).next_back()
}

/// The limit of one driver of a CSINode; `None` without a limit.
fn count_of(entry: &CsiNodeDriver) -> Option<i64> {
    entry.allocatable.as_ref()?.count.map(i64::from)
}

/// What is the same on every node, or on many.
#[derive(Clone, Default)]
struct LimitState {
    attachments: Attachments,
    /// What the pod adds, by the in-tree plugins that count on a node; collected when a node asks.
    new: [OnceLock<Result<Attachable, Status>>; Migrated::COUNT],
}

impl LimitState {
    fn new(objects: &Objects) -> LimitState {
        LimitState { attachments: Attachments::new(objects), ..LimitState::default() }
    }

    /// The volumes that the pod adds.
    fn new_volumes(
        &self,
        cx: &CycleContext<'_>,
        migrated: Migrated,
    ) -> Result<&Attachable, Status> {
        let new = self.new[migrated.index()].get_or_init(|| new_volumes(cx, migrated));
        new.as_ref().map_err(Status::clone)
    }
}

fn new_volumes(cx: &CycleContext<'_>, migrated: Migrated) -> Result<Attachable, Status> {
    let mut new = Attachable::default();
    match new.add_pod(&cx.pod.pod, cx.objects, migrated, true) {
        Ok(()) => Ok(new),
        Err(LookupError::NotFound(text)) => Err(volumes::unresolvable(text)),
        Err(LookupError::Other(text)) => Err(Status::error(&text)),
    }
}

/// The attached volumes as (driver, handle) by node, collected once per cycle.
#[derive(Clone, Default)]
struct Attachments(Arc<HashMap<Name, Vec<(Symbol, Name)>>>);

impl Attachments {
    fn new(objects: &Objects) -> Attachments {
        let mut by_node: HashMap<Name, Vec<(Symbol, Name)>> = HashMap::new();
        for attachment in objects.volume_attachments.values() {
            if let Some(volume) = attached_volume(objects, attachment) {
                by_node.entry(attachment.spec.node_name).or_default().push(volume);
            }
        }
        Attachments(Arc::new(by_node))
    }

    /// The volumes that are attached to the node: they count even if no pod there uses them.
    fn of_node(&self, node: Name) -> &[(Symbol, Name)] {
        self.0.get(&node).map_or(&[], |volumes| volumes)
    }
}

fn attached_volume(objects: &Objects, attachment: &VolumeAttachment) -> Option<(Symbol, Name)> {
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
        let mut events = vec![
            Registration::always(EventResource::CsiNode, Action::ADD),
            Registration::hinted(EventResource::Pod, Action::DELETE, hints::after_pod_deletion),
            Registration::hinted(
                EventResource::PersistentVolumeClaim,
                Action::ADD,
                hints::after_claim_creation,
            ),
        ];
        events.extend(match self.hints_attachments {
            true => vec![
                Registration::hinted(
                    EventResource::CsiNode,
                    Action::UPDATE,
                    hints::after_limit_change,
                ),
                Registration::hinted(
                    EventResource::VolumeAttachment,
                    Action::DELETE,
                    hints::after_detachment,
                ),
            ],
            false => vec![Registration::always(EventResource::VolumeAttachment, Action::DELETE)],
        });
        Some(events)
    }

    /// The hint for claims is new in 1.32.
    fn older_registration(&self) -> OlderRegistration {
        |_, newest| {
            Some(older_events::without_hint_for(EventResource::PersistentVolumeClaim, newest))
        }
    }

    fn pre_filter(&self, cx: &CycleContext<'_>, state: &mut CycleState) -> PreFilterAnswer {
        if !cx.pod.pod.spec.volumes.iter().any(count::may_attach) {
            return Status::skip().into();
        }
        state.write(LimitState::new(cx.objects));
        PreFilterAnswer::default()
    }

    fn filter(&self, cx: &CycleContext<'_>, state: &CycleState, node: &NodeInfo) -> Status {
        match reason(cx, state, node) {
            Ok(None) => Status::SUCCESS,
            Ok(Some(LimitReason::OverLimit(_))) => self.exceeded.clone(),
            Ok(Some(reason)) => rejection(&reason),
            Err(status) => status,
        }
    }

    fn sign(&self, _cx: &QueueContext<'_>, pod: &PodInfo) -> Fragments {
        Ok(volumes::sign(&pod.pod))
    }
}

#[cfg(test)]
mod tests;
