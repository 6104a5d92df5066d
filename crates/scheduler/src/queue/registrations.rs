//! What the in-tree plugins register for in older versions, by what they register for in the newest.
//!
//! Upstream: `EventsToRegister` of each plugin, in 1.31 and, without queueing hints, in 1.32 and 1.33.

use std::sync::Arc;

use crate::queue::QueueSettings;
use kubestep_api::intern::Symbol;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{Action, ClusterEvent, EventResource, HintFn, Registration};

/// Plugins that register all updates of nodes up to 1.31.
const ALL_UPDATES: [&str; 6] = [
    "NodeName",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "TaintToleration",
];

/// Other plugins to which a node may matter that was rejected before for its labels or taints.
const LABELS_AND_TAINTS: [&str; 5] =
    ["DynamicResources", "InterPodAffinity", "VolumeBinding", "VolumeRestrictions", "VolumeZone"];

/// What a plugin registers for in the version and with the gate of the settings.
pub(super) fn registrations(
    settings: &QueueSettings,
    plugin: Symbol,
    events: Vec<Registration>,
) -> Vec<Registration> {
    let by_change = settings.behaviour.has(Switch::EventsByChange);
    if by_change && settings.hints {
        return events;
    }
    let older = events.into_iter().filter_map(|Registration { event, hint }| {
        let action = match by_change {
            true => without_hints(plugin, event)?,
            false => up_to_1_31(plugin, event, settings.hints)?,
        };
        let hint = hint.filter(|_| settings.hints && !is_new_hint(plugin, event.resource));
        Some(registration(event.resource, action, hint))
    });
    older.collect()
}

fn registration(
    resource: EventResource,
    action: Action,
    hint: Option<Arc<HintFn>>,
) -> Registration {
    Registration { event: ClusterEvent::new(resource, action), hint }
}

/// The events without hints since 1.32; `None`: none. The check of a node comes before them, so
/// that the node may only pass after an update that does not concern the plugin.
fn without_hints(plugin: Symbol, event: ClusterEvent) -> Option<Action> {
    let name = plugin.as_str();
    let checked = ALL_UPDATES.contains(&name) || LABELS_AND_TAINTS.contains(&name);
    match event.resource {
        EventResource::Node if checked => {
            Some(event.action | Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT)
        }
        EventResource::Pod => of_pods(plugin, event.action),
        _ => Some(event.action),
    }
}

/// The events up to 1.31; `None`: none.
fn up_to_1_31(plugin: Symbol, event: ClusterEvent, hints: bool) -> Option<Action> {
    let name = plugin.as_str();
    match event.resource {
        EventResource::ResourceSlice | EventResource::VolumeAttachment => None,
        EventResource::CsiDriver => Some(Action::ADD | Action::UPDATE),
        EventResource::Node if ALL_UPDATES.contains(&name) => Some(Action::ADD | Action::UPDATE),
        EventResource::Node if LABELS_AND_TAINTS.contains(&name) => {
            Some(event.action | Action::UPDATE_NODE_TAINT)
        }
        EventResource::Pod if name == "DynamicResources" => None,
        EventResource::Pod if hints && ["SchedulingGates", "TaintToleration"].contains(&name) => {
            Some(event.action)
        }
        EventResource::Pod => of_pods(plugin, event.action),
        _ => Some(event.action),
    }
}

/// Neither removed gates nor tolerations are events then.
fn of_pods(plugin: Symbol, action: Action) -> Option<Action> {
    match plugin.as_str() {
        "NodeUnschedulable" | "SchedulingGates" | "TaintToleration" => None,
        "PodTopologySpread" => Some(action.without(Action::UPDATE_POD_TOLERATION)),
        _ => Some(action),
    }
}

/// Whether the plugin has a hint for such events since 1.32 only.
fn is_new_hint(plugin: Symbol, resource: EventResource) -> bool {
    match plugin.as_str() {
        "VolumeBinding" => resource == EventResource::CsiDriver,
        "NodeVolumeLimits" => resource == EventResource::PersistentVolumeClaim,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kubestep_config::KubeVersion;
    use kubestep_config::versions::Behaviour;
    use kubestep_framework::events::QueueingHint;

    use super::*;

    /// The actions that a plugin registers for one resource in a version.
    fn of(minor: u8, hints: bool, plugin: &str, one: Registration) -> Option<(Action, bool)> {
        let behaviour = Behaviour::of(KubeVersion::of_minor(minor).unwrap());
        let settings = QueueSettings { behaviour, hints, ..QueueSettings::default() };
        let mut events = registrations(&settings, plugin.into(), vec![one]);
        events.pop().map(|one| (one.event.action, one.hint.is_some()))
    }

    fn hinted(resource: EventResource, action: Action) -> Registration {
        Registration::hinted(resource, action, |_, _, _| Ok(QueueingHint::Queue))
    }

    #[test]
    fn without_hints_labels_and_taints_count_for_those_whose_nodes_are_checked() {
        let node = || hinted(EventResource::Node, Action::ADD);
        let more = Action::ADD | Action::UPDATE_NODE_LABEL | Action::UPDATE_NODE_TAINT;
        assert_eq!(of(33, false, "VolumeZone", node()), Some((more, false)));
        assert_eq!(of(33, false, "PodTopologySpread", node()), Some((Action::ADD, false)));
        let tolerations = Action::UPDATE_POD_TOLERATION;
        let pod = || hinted(EventResource::Pod, tolerations);
        assert_eq!(of(33, false, "TaintToleration", pod()), None);
        assert_eq!(of(33, true, "TaintToleration", pod()), Some((tolerations, true)));
    }

    #[test]
    fn in_1_31_all_updates_of_nodes_count_and_newer_resources_do_not() {
        let node = || hinted(EventResource::Node, Action::ADD | Action::UPDATE_NODE_LABEL);
        let all = Action::ADD | Action::UPDATE;
        assert_eq!(of(31, true, "NodeName", node()), Some((all, true)));
        assert_eq!(of(31, false, "NodeName", node()), Some((all, false)));
        let slice = hinted(EventResource::ResourceSlice, Action::ADD);
        assert_eq!(of(31, true, "DynamicResources", slice), None);
        let claim = || hinted(EventResource::PersistentVolumeClaim, Action::ADD);
        assert_eq!(of(31, true, "NodeVolumeLimits", claim()), Some((Action::ADD, false)));
        assert_eq!(of(31, true, "VolumeBinding", claim()), Some((Action::ADD, true)));
    }
}
