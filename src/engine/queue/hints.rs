//! What the profiles' plugins have to say in the queue: the order, the gates, and which
//! events could help which rejected pods.
//!
//! Upstream: `buildQueueingHintMap` in `pkg/scheduler/scheduler.go`, `fillEnqueueExtensions`
//! in `pkg/scheduler/framework/runtime/framework.go` (FW-200…202).

use std::sync::Arc;

use indexmap::IndexMap;

use crate::config::ExtensionPoint;
use crate::engine::framework::events::{Action, ClusterEvent, EventResource, Registration};
use crate::engine::framework::plugin::Plugin;
use crate::engine::framework::runtime::Framework;
use crate::engine::queue::settings::QueueSettings;
use crate::intern::Symbol;

/// The rejector's name when an extender refused the pod (FW-201).
pub const EXTENDER: &str = "Extender";

/// Plugins at these points take part in requeueing (FW-200).
const REQUEUEING_POINTS: [ExtensionPoint; 5] = [
    ExtensionPoint::PreEnqueue,
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
];

/// What a plugin hears of that does not say (FW-200). Without volume attachments and
/// resource slices, as upstream.
const EVERY_RESOURCE: [EventResource; 10] = [
    EventResource::Pod,
    EventResource::Node,
    EventResource::PersistentVolume,
    EventResource::PersistentVolumeClaim,
    EventResource::CsiNode,
    EventResource::CsiDriver,
    EventResource::CsiStorageCapacity,
    EventResource::StorageClass,
    EventResource::ResourceClaim,
    EventResource::DeviceClass,
];

/// A registration of a plugin.
#[derive(Clone)]
pub(super) struct HintEntry {
    /// The class of events.
    pub(super) event: ClusterEvent,
    /// The plugin.
    pub(super) plugin: Symbol,
    /// Whom to ask; `None`: always worth a retry.
    pub(super) asked: Option<Arc<dyn Plugin>>,
}

/// The plugins of all profiles, as far as the queue needs them. Never changes.
#[derive(Clone, Default)]
pub(super) struct QueuePlugins {
    /// The first profile's QueueSort plugin.
    pub(super) sort: Option<Arc<dyn Plugin>>,
    /// PreEnqueue plugins by profile, in the profile's order.
    pub(super) gates: IndexMap<Symbol, Vec<Arc<dyn Plugin>>>,
    hints: IndexMap<Symbol, Vec<HintEntry>>,
}

/// The registrations that cover one event, by profile.
pub(super) struct MatchingHints<'a> {
    profiles: IndexMap<Symbol, Vec<&'a HintEntry>>,
}

impl MatchingHints<'_> {
    /// The registrations of a profile; `None` if there is no such profile.
    pub(super) fn of_profile(&self, profile: Symbol) -> Option<&[&HintEntry]> {
        self.profiles.get(&profile).map(Vec::as_slice)
    }
}

impl QueuePlugins {
    /// Collects what the profiles' plugins registered.
    pub(super) fn new(
        settings: &QueueSettings,
        frameworks: &IndexMap<Symbol, Arc<Framework>>,
    ) -> QueuePlugins {
        let sort = frameworks.values().next().and_then(|first| {
            let plugins = first.at(ExtensionPoint::QueueSort);
            plugins.first().cloned()
        });
        let gates = frameworks.iter().map(|(name, framework)| {
            let plugins = framework.at(ExtensionPoint::PreEnqueue);
            (*name, plugins.to_vec())
        });
        let hints =
            frameworks.iter().map(|(name, framework)| (*name, registrations(settings, framework)));
        QueuePlugins { sort, gates: gates.collect(), hints: hints.collect() }
    }

    /// Whether any plugin of any profile wants to hear of the event.
    pub(super) fn is_of_interest(&self, event: &ClusterEvent) -> bool {
        event.is_wildcard() || self.entries().any(|entry| entry.event.matches(event))
    }

    /// The registrations that cover the event.
    pub(super) fn matching(&self, event: &ClusterEvent) -> MatchingHints<'_> {
        let profiles = self.hints.iter().map(|(profile, entries)| {
            let covering = entries.iter().filter(|entry| entry.event.matches(event));
            (*profile, covering.collect())
        });
        MatchingHints { profiles: profiles.collect() }
    }

    /// Whether a plugin of that name registered for the event, in any profile.
    pub(super) fn concerns_gate(&self, plugin: Symbol, event: &ClusterEvent) -> bool {
        self.entries().any(|entry| entry.plugin == plugin && entry.event.matches(event))
    }

    fn entries(&self) -> impl Iterator<Item = &HintEntry> {
        self.hints.values().flatten()
    }
}

fn registrations(settings: &QueueSettings, framework: &Framework) -> Vec<HintEntry> {
    let mut entries = Vec::new();
    if settings.has_extenders {
        register(&mut entries, EXTENDER.into(), None, &every_event(settings)); // FW-201
    }
    for plugin in framework.instances() {
        let name = plugin.name();
        let descriptor = framework.descriptor(name);
        let requeues = |point: &ExtensionPoint| descriptor.is_some_and(|d| d.implements(*point));
        if !REQUEUEING_POINTS.iter().any(requeues) {
            continue;
        }
        let events = plugin.events().unwrap_or_else(|| every_event(settings));
        register(&mut entries, name, Some(plugin), &events);
    }
    entries
}

fn every_event(settings: &QueueSettings) -> Vec<Registration> {
    let group = settings.generic_workload.then_some(EventResource::PodGroup);
    let resources = EVERY_RESOURCE.into_iter().chain(group);
    resources.map(|resource| Registration::always(resource, Action::ALL)).collect()
}

fn register(
    entries: &mut Vec<HintEntry>,
    name: Symbol,
    plugin: Option<&Arc<dyn Plugin>>,
    events: &[Registration],
) {
    for registration in events {
        let asked = plugin.filter(|_| registration.hinted).cloned();
        entries.push(HintEntry { event: registration.event, plugin: name, asked });
    }
    let on_node = |action| {
        events.iter().any(|registration| {
            let event = registration.event;
            event.resource == EventResource::Node && event.action.overlaps(action)
        })
    };
    // FW-202: a node that is new may be refused by the check before the hint, and become
    // usable by a change of its taints.
    if on_node(Action::ADD) && !on_node(Action::UPDATE_NODE_TAINT) {
        let event = ClusterEvent::new(EventResource::Node, Action::UPDATE_NODE_TAINT);
        entries.push(HintEntry { event, plugin: name, asked: None });
    }
}
