//! What the queue needs from the profiles' plugins: the order, the PreEnqueue plugins, and the
//! events that could requeue the pods that each plugin rejected.
//!
//! Upstream: `buildQueueingHintMap` in `pkg/scheduler/scheduler.go`, `fillEnqueueExtensions` in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::sync::Arc;

use indexmap::IndexMap;

use crate::queue::QueueSettings;
use crate::queue::signing;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_config::versions::Switch;
use kubestep_framework::events::{
    Action, ClusterEvent, EventResource, HintFn, Registration, RegistrationRules,
};
use kubestep_framework::plugin::Plugin;
use kubestep_framework::runtime::Framework;

/// The rejector's name when an extender rejected the pod.
pub(crate) const EXTENDER: &str = "Extender";

/// Plugins at these extension points take part in requeueing: only they can reject a pod.
const REQUEUEING_POINTS: [ExtensionPoint; 5] = [
    ExtensionPoint::PreEnqueue,
    ExtensionPoint::PreFilter,
    ExtensionPoint::Filter,
    ExtensionPoint::Reserve,
    ExtensionPoint::Permit,
];

/// The resources whose events a plugin gets when it does not register any. As upstream, without
/// volume attachments and resource slices.
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

/// A plugin's registration for events.
#[derive(Clone)]
pub(super) struct HintEntry {
    /// The class of events.
    pub(super) event: ClusterEvent,
    pub(super) plugin: Symbol,
    /// The hint that decides; `None`: always requeue.
    pub(super) hint: Option<Arc<HintFn>>,
}

/// The plugins of all profiles as the queue needs them. Immutable.
#[derive(Clone, Default)]
pub(super) struct QueuePlugins {
    /// The first profile's QueueSort plugin.
    pub(super) sort: Option<Arc<dyn Plugin>>,
    /// PreEnqueue plugins by profile, in the profile's order.
    pub(super) gates: IndexMap<Symbol, Vec<Arc<dyn Plugin>>>,
    /// The plugins that sign, by profile; empty where pods are not signed.
    pub(super) signers: IndexMap<Symbol, Vec<Arc<dyn Plugin>>>,
    hints: IndexMap<Symbol, Vec<HintEntry>>,
    /// The plugins of all profiles that take part in requeueing.
    requeueing: Vec<Arc<dyn Plugin>>,
}

/// The registrations that match one event, by profile.
#[derive(Default)]
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
        let mut plugins = QueuePlugins::default();
        for (profile, framework) in frameworks {
            let sort = framework.at(ExtensionPoint::QueueSort).first();
            plugins.sort = plugins.sort.or_else(|| sort.cloned());
            let gates = framework.at(ExtensionPoint::PreEnqueue);
            plugins.add_profile(settings, *profile, gates, &requeueing_plugins(framework));
            if settings.signs {
                plugins.signers.insert(*profile, signing::signers(framework));
            }
        }
        plugins
    }

    /// Adds a profile with its PreEnqueue plugins and those that take part in requeueing.
    pub(super) fn add_profile(
        &mut self,
        settings: &QueueSettings,
        profile: Symbol,
        gates: &[Arc<dyn Plugin>],
        requeueing: &[Arc<dyn Plugin>],
    ) {
        let mut entries = Vec::new();
        if settings.has_extenders {
            // The pseudo-plugin for extenders comes first, registered for all events.
            register(&mut entries, EXTENDER.into(), every_event(settings));
        }
        for plugin in requeueing {
            register(&mut entries, plugin.name(), registrations(settings, plugin.as_ref()));
        }
        self.requeueing.extend_from_slice(requeueing);
        self.gates.insert(profile, gates.to_vec());
        self.hints.insert(profile, entries);
    }

    /// Whether any plugin of any profile registered for the event.
    pub(super) fn is_of_interest(&self, event: &ClusterEvent) -> bool {
        event.is_wildcard() || self.entries().any(|entry| entry.event.matches(event))
    }

    /// The registrations that match the event.
    pub(super) fn matching(&self, event: &ClusterEvent) -> MatchingHints<'_> {
        let profiles = self.hints.iter().map(|(profile, entries)| {
            let covering = entries.iter().filter(|entry| entry.event.matches(event));
            (*profile, covering.collect())
        });
        MatchingHints { profiles: profiles.collect() }
    }

    /// Whether the plugin registered for the event, in any profile. Only then can the event ungate
    /// a pod that the plugin gates.
    pub(super) fn concerns_gate(&self, plugin: Symbol, event: &ClusterEvent) -> bool {
        self.entries().any(|entry| entry.plugin == plugin && entry.event.matches(event))
    }

    /// Whether `has` holds for a plugin with one of these names.
    pub(super) fn any(&self, names: &[Symbol], has: fn(&dyn Plugin) -> bool) -> bool {
        let mut plugins = self.requeueing.iter().filter(|plugin| names.contains(&plugin.name()));
        plugins.any(|plugin| has(plugin.as_ref()))
    }

    fn entries(&self) -> impl Iterator<Item = &HintEntry> {
        self.hints.values().flatten()
    }
}

/// The plugins of a profile that take part in requeueing, whether or not they are enabled at such a
/// point.
fn requeueing_plugins(framework: &Framework) -> Vec<Arc<dyn Plugin>> {
    let takes_part = |plugin: &&Arc<dyn Plugin>| {
        let descriptor = framework.descriptor(plugin.name());
        descriptor.is_some_and(|d| REQUEUEING_POINTS.iter().any(|point| d.implements(*point)))
    };
    framework.instances().iter().filter(takes_part).cloned().collect()
}

/// What a plugin registers for in the version and with the gate of the settings.
fn registrations(settings: &QueueSettings, plugin: &dyn Plugin) -> Vec<Registration> {
    let newest = plugin.events().unwrap_or_else(|| every_event(settings));
    let by_change = settings.behaviour.has(Switch::EventsByChange);
    let rules = RegistrationRules { by_change, hints: settings.hints };
    if by_change && rules.hints {
        return newest;
    }
    let older = plugin.older_registration();
    let own = newest.into_iter().filter_map(|newest| older(rules, newest));
    own.filter_map(|registration| older_kinds(rules, registration)).collect()
}

/// The rules for all plugins: without the gate there are no hints; up to 1.31 there are no events of
/// resource slices and volume attachments, and all events of CSI drivers count.
fn older_kinds(rules: RegistrationRules, mut registration: Registration) -> Option<Registration> {
    registration.hint = registration.hint.filter(|_| rules.hints);
    match registration.event.resource {
        _ if rules.by_change => {}
        EventResource::ResourceSlice | EventResource::VolumeAttachment => return None,
        EventResource::CsiDriver => registration.event.action = Action::ADD | Action::UPDATE,
        _ => {}
    }
    Some(registration)
}

fn every_event(settings: &QueueSettings) -> Vec<Registration> {
    let resources = EVERY_RESOURCE.into_iter().chain(settings.group_resource);
    resources.map(|resource| Registration::always(resource, Action::ALL)).collect()
}

fn register(entries: &mut Vec<HintEntry>, plugin: Symbol, events: Vec<Registration>) {
    let on_node = |action| {
        events.iter().any(|registration| {
            let event = registration.event;
            event.resource == EventResource::Node && event.action.overlaps(action)
        })
    };
    // A plugin that registered for new nodes also gets taint updates, as upstream: a new node may
    // be rejected before the hint runs, and become usable when its taints change.
    let adds_taints = on_node(Action::ADD) && !on_node(Action::UPDATE_NODE_TAINT);
    let taints = Registration::always(EventResource::Node, Action::UPDATE_NODE_TAINT);
    let all = events.into_iter().chain(adds_taints.then_some(taints));
    entries.extend(all.map(|Registration { event, hint }| HintEntry { event, plugin, hint }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_config::versions::Behaviour;
    use kubestep_config::{FeatureGates, KubeVersion, PluginDescriptor, ResolvedProfile};
    use kubestep_framework::events::QueueingHint;
    use kubestep_framework::registry::Entry;

    struct Bare(&'static str, Option<Vec<Registration>>);

    fn hinted(resource: EventResource, action: Action) -> Registration {
        Registration::hinted(resource, action, |_, _, _| Ok(QueueingHint::Queue))
    }

    impl Plugin for Bare {
        fn name(&self) -> Symbol {
            self.0.into()
        }
        fn events(&self) -> Option<Vec<Registration>> {
            self.1.clone()
        }
    }

    fn labels(settings: &QueueSettings, plugins: Vec<Bare>) -> Vec<String> {
        let shared = |plugin| -> Arc<dyn Plugin> { Arc::new(plugin) };
        let plugins: Vec<_> = plugins.into_iter().map(shared).collect();
        let mut all = QueuePlugins::default();
        all.add_profile(settings, "p".into(), &[], &plugins);
        all.entries().map(describe).collect()
    }

    fn describe(entry: &HintEntry) -> String {
        let asked = if entry.hint.is_some() { "asked" } else { "always" };
        format!("{} {}: {asked}", entry.plugin, entry.event.label())
    }

    /// The cases of upstream's Test_buildQueueingHintMap.
    #[test]
    fn a_plugin_that_does_not_say_hears_of_everything() {
        let settings = QueueSettings::default();
        let heard = labels(&settings, vec![Bare("quiet", None)]);
        let resources = [
            "Pod",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "storage.k8s.io/CSINode",
            "storage.k8s.io/CSIDriver",
            "storage.k8s.io/CSIStorageCapacity",
            "storage.k8s.io/StorageClass",
            "resource.k8s.io/ResourceClaim",
            "resource.k8s.io/DeviceClass",
        ];
        let mut expected = resources.map(|name| format!("quiet {name}All: always")).to_vec();
        assert_eq!(heard, expected);
        let settings = QueueSettings { group_resource: Some(EventResource::PodGroup), ..settings };
        expected.push("quiet scheduling.k8s.io/PodGroupAll: always".to_owned());
        assert_eq!(labels(&settings, vec![Bare("quiet", None)]), expected);
    }

    /// A registration for new nodes includes updates of taints.
    #[test]
    fn who_wants_new_nodes_hears_of_taints() {
        let node = |action| hinted(EventResource::Node, action);
        let pod = Registration::always(EventResource::Pod, Action::ADD);
        let plugins = vec![
            Bare("nodes", Some(vec![node(Action::ADD)])),
            Bare("pods", Some(vec![pod])),
            Bare("both", Some(vec![node(Action::ADD), node(Action::UPDATE_NODE_TAINT)])),
            Bare("labels", Some(vec![node(Action::UPDATE_NODE_LABEL)])),
            Bare("none", Some(Vec::new())),
        ];
        let expected = [
            "nodes NodeAdd: asked",
            "nodes NodeUpdateNodeTaint: always",
            "pods PodAdd: always",
            "both NodeAdd: asked",
            "both NodeUpdateNodeTaint: asked",
            "labels NodeUpdateNodeLabel: asked",
        ];
        assert_eq!(labels(&QueueSettings::default(), plugins), expected);
    }

    #[test]
    fn up_to_1_31_some_kinds_have_no_events() {
        let of = |resource| {
            let behaviour = Behaviour::of(KubeVersion::of_minor(31).unwrap());
            let settings = QueueSettings { behaviour, ..QueueSettings::default() };
            labels(&settings, vec![Bare("p", Some(vec![hinted(resource, Action::UPDATE)]))])
        };
        assert!(of(EventResource::ResourceSlice).is_empty());
        assert!(of(EventResource::VolumeAttachment).is_empty());
        assert_eq!(of(EventResource::CsiDriver), ["p storage.k8s.io/CSIDriver: asked"]);
        assert_eq!(of(EventResource::Pod), ["p PodUpdate: asked"]);
    }

    #[test]
    fn without_hints_none_is_asked() {
        let settings = QueueSettings { hints: false, ..QueueSettings::default() };
        let plugin = Bare("p", Some(vec![hinted(EventResource::Pod, Action::ADD)]));
        assert_eq!(labels(&settings, vec![plugin]), ["p PodAdd: always"]);
    }

    /// The pseudo-plugin for extenders is registered before all plugins.
    #[test]
    fn extenders_come_first() {
        let settings = QueueSettings { has_extenders: true, ..QueueSettings::default() };
        let heard = labels(&settings, vec![Bare("none", Some(Vec::new()))]);
        assert_eq!(heard.len(), 10);
        assert_eq!(heard[0], "Extender PodAll: always");
    }

    #[test]
    fn interest_is_that_of_any_profile() {
        let node = hinted(EventResource::Node, Action::ADD);
        let plugin: Arc<dyn Plugin> = Arc::new(Bare("nodes", Some(vec![node])));
        let mut all = QueuePlugins::default();
        all.add_profile(&QueueSettings::default(), "first".into(), &[], &[]);
        all.add_profile(&QueueSettings::default(), "second".into(), &[], &[plugin]);
        let added = ClusterEvent::new(EventResource::Node, Action::ADD);
        let deleted = ClusterEvent::new(EventResource::Node, Action::DELETE);
        assert!(all.is_of_interest(&added) && !all.is_of_interest(&deleted));
        assert!(all.is_of_interest(&ClusterEvent::FORCE_ACTIVATE));
        assert!(all.concerns_gate("nodes".into(), &added));
        assert!(!all.concerns_gate("nodes".into(), &deleted));
        let matching = all.matching(&added);
        let found = |profile: &str| matching.of_profile(profile.into()).map(<[_]>::len);
        assert_eq!([found("first"), found("second"), found("third")], [Some(0), Some(1), None]);
    }

    fn entry(name: &'static str, point: ExtensionPoint) -> Entry {
        let plain = PluginDescriptor::new(name, &[point]);
        let descriptor = PluginDescriptor { registers_events: false, signs: false, ..plain };
        Entry::new(descriptor, move |_, _| Ok(Arc::new(Bare(name, Some(Vec::new())))))
    }

    /// What a plugin implements decides, not where it is enabled.
    #[test]
    fn only_plugins_that_can_reject_take_part() {
        let mut registry = kubestep_plugins::registry();
        registry.register(entry("filters", ExtensionPoint::Filter)).unwrap();
        registry.register(entry("scores", ExtensionPoint::Score)).unwrap();
        let names = ["PrioritySort", "SchedulingGates", "filters", "scores", "DefaultBinder"];
        let instances = names.map(Symbol::new).to_vec();
        let profile = ResolvedProfile { instances, ..ResolvedProfile::default() };
        let framework = Framework::new(profile, &registry, &FeatureGates::default()).unwrap();
        let taking_part = requeueing_plugins(&framework);
        let found: Vec<_> = taking_part.iter().map(|plugin| plugin.name()).collect();
        assert_eq!(found, ["SchedulingGates", "filters"].map(Symbol::new));
    }
}
