//! The extension points of the scheduling framework, and the descriptors of plugins. Both the
//! configuration and the engine's registry are built on these.
//!
//! Upstream: `staging/src/k8s.io/kube-scheduler/framework/interface.go` (the
//! points) and the interface assertions of each plugin.

use std::fmt;

use super::args::ArgsType;
use super::features::{Feature, FeatureGates};
use super::versions::Switch;

/// A point of the scheduling framework at which plugins run.
///
/// The order is that in which a pod passes the points, and of the keys of a profile's `plugins`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ExtensionPoint {
    /// Whether a pod may enter the active queue.
    PreEnqueue,
    /// The order of the active queue.
    QueueSort,
    /// Once per cycle, before the nodes are filtered.
    PreFilter,
    /// Once per node: whether the pod fits.
    Filter,
    /// If no node is feasible.
    PostFilter,
    /// Once per cycle, before the feasible nodes are scored.
    PreScore,
    /// Once per feasible node: how well the pod fits.
    Score,
    /// Reserves the resources of the selected node.
    Reserve,
    /// Delays or rejects the binding.
    Permit,
    /// Work before the binding.
    PreBind,
    /// Bind: sends the binding to the API server.
    Bind,
    /// PostBind: the pod was bound.
    PostBind,
    /// Generates candidate placements of a pod group.
    PlacementGenerate,
    /// Scores a placement of a pod group.
    PlacementScore,
}

use ExtensionPoint::*;

impl ExtensionPoint {
    /// The number of points.
    pub const COUNT: usize = 14;

    /// All points, in the order of the enum.
    pub const ALL: [ExtensionPoint; Self::COUNT] = [
        PreEnqueue,
        QueueSort,
        PreFilter,
        Filter,
        PostFilter,
        PreScore,
        Score,
        Reserve,
        Permit,
        PreBind,
        Bind,
        PostBind,
        PlacementGenerate,
        PlacementScore,
    ];

    /// The order in which the framework fills its plugin lists; it decides which error is reported
    /// first (getExtensionPoints in `framework.go`).
    pub(crate) const BUILD_ORDER: [ExtensionPoint; Self::COUNT] = [
        PreFilter,
        Filter,
        PostFilter,
        Reserve,
        PreScore,
        Score,
        PreBind,
        Bind,
        PostBind,
        Permit,
        PreEnqueue,
        QueueSort,
        PlacementGenerate,
        PlacementScore,
    ];

    /// The index in [`ExtensionPoint::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name in messages: `PreFilter`.
    pub const fn name(self) -> &'static str {
        match self {
            PreEnqueue => "PreEnqueue",
            QueueSort => "QueueSort",
            PreFilter => "PreFilter",
            Filter => "Filter",
            PostFilter => "PostFilter",
            PreScore => "PreScore",
            Score => "Score",
            Reserve => "Reserve",
            Permit => "Permit",
            PreBind => "PreBind",
            Bind => "Bind",
            PostBind => "PostBind",
            PlacementGenerate => "PlacementGenerate",
            PlacementScore => "PlacementScore",
        }
    }

    /// The key in a profile's `plugins`: `preFilter`.
    pub const fn key(self) -> &'static str {
        match self {
            PreEnqueue => "preEnqueue",
            QueueSort => "queueSort",
            PreFilter => "preFilter",
            Filter => "filter",
            PostFilter => "postFilter",
            PreScore => "preScore",
            Score => "score",
            Reserve => "reserve",
            Permit => "permit",
            PreBind => "preBind",
            Bind => "bind",
            PostBind => "postBind",
            PlacementGenerate => "placementGenerate",
            PlacementScore => "placementScore",
        }
    }

    /// The point with this key or name.
    pub fn from_key(text: &str) -> Option<ExtensionPoint> {
        Self::ALL.into_iter().find(|point| point.key() == text || point.name() == text)
    }

    /// Whether plugins at this point have a weight.
    pub const fn has_weights(self) -> bool {
        matches!(self, Score | PlacementScore)
    }
}

impl fmt::Display for ExtensionPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of extension points.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PointSet(u16);

impl PointSet {
    /// The set of all points.
    pub const ALL: PointSet = PointSet::of(&ExtensionPoint::ALL);

    /// The set of the points in `points`.
    pub const fn of(points: &[ExtensionPoint]) -> PointSet {
        let (mut bits, mut i) = (0, 0);
        while i < points.len() {
            bits |= 1 << points[i].index();
            i += 1;
        }
        PointSet(bits)
    }

    /// The extension points that the version of `gates` has.
    pub fn in_version(gates: &FeatureGates) -> PointSet {
        match gates.has(Switch::PlacementPoints) {
            true => PointSet::ALL,
            false => PointSet::ALL.without(PointSet::of(&[PlacementGenerate, PlacementScore])),
        }
    }

    /// Whether `point` is in the set.
    pub const fn contains(self, point: ExtensionPoint) -> bool {
        self.0 & (1 << point.index()) != 0
    }

    /// The points of both sets.
    pub const fn with(self, other: PointSet) -> PointSet {
        PointSet(self.0 | other.0)
    }

    /// The points that are not in `other`.
    pub const fn without(self, other: PointSet) -> PointSet {
        PointSet(self.0 & !other.0)
    }

    /// The points of the set, in the order of [`ExtensionPoint::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ExtensionPoint> {
        ExtensionPoint::ALL.into_iter().filter(move |point| self.contains(*point))
    }
}

/// Everything about a plugin that configuration and documentation need. Each plugin
/// of `kubestep-plugins` has its own beside its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PluginDescriptor {
    /// The name as written in a configuration.
    pub name: &'static str,
    /// The extension points it implements.
    pub points: PointSet,
    /// The weight of its scores in the default profile; `None` if unset, which counts as 1.
    pub default_weight: Option<i32>,
    /// Whether it registers the cluster events that may make a pod schedulable (upstream's
    /// EnqueueExtensions). Without that, every event requeues the pods that it rejected.
    pub registers_events: bool,
    /// Whether it takes part in pod signatures (upstream's SignPlugin).
    pub signs: bool,
    /// The type of its arguments, if it takes some.
    pub args: Option<ArgsType>,
    /// Whether the default profile has it.
    pub default_profile: DefaultProfile,
    /// Whether only the configuration knows it: it keeps its place in the profile and never runs.
    pub is_opaque: bool,
    /// The project that it is from, if that is not Kubernetes itself: other projects may have
    /// another plugin of its name.
    pub project: Option<&'static str>,
    /// What versions of kube-scheduler changed about the plugin; the other fields are those of the
    /// newest version.
    pub history: &'static [PluginChange],
    /// What it does, in one line without a full stop.
    pub doc: &'static str,
    /// What it does, in a paragraph.
    pub long_doc: &'static str,
    /// An example of its decision, in a sentence or two.
    pub example: &'static str,
}

/// Whether the default profile, which is what a document gets that names no plugins, has a plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultProfile {
    /// Only a document that names it enables it.
    Absent,
    /// It is in the default profile.
    Present,
    /// It is in the default profile while the gate is on.
    Gated(Feature),
}

/// What a version changed about a plugin, by the switch that brought the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PluginChange {
    /// The plugin exists only with the switch.
    Exists(Switch),
    /// The plugin exists only without the switch.
    Removed(Switch),
    /// It implements these extension points only with the switch.
    Implements(Switch, PointSet),
    /// It implements these extension points, too, without the switch.
    Implemented(Switch, PointSet),
    /// It has its default weight only with the switch.
    Weighs(Switch),
    /// It takes arguments only with the switch; before, they are kept as written and ignored.
    TakesArguments(Switch),
}

/// The documentation of one argument of a plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgumentDoc {
    /// The name of the field in the plugin's `args`.
    pub name: &'static str,
    /// The accepted values, in a few words.
    pub takes: &'static str,
    /// Its effect, in a sentence.
    pub doc: &'static str,
}

impl PluginDescriptor {
    /// A plugin at these points without arguments, weight, gate and documentation. It registers its
    /// events and takes part in signatures.
    pub const fn new(name: &'static str, points: &[ExtensionPoint]) -> PluginDescriptor {
        PluginDescriptor {
            name,
            points: PointSet::of(points),
            default_weight: None,
            registers_events: true,
            signs: true,
            args: None,
            default_profile: DefaultProfile::Absent,
            is_opaque: false,
            project: None,
            history: &[],
            doc: "",
            long_doc: "",
            example: "",
        }
    }

    /// Whether the plugin implements `point`.
    pub const fn implements(&self, point: ExtensionPoint) -> bool {
        self.points.contains(point)
    }

    /// The plugin as the version of `gates` has it; `None` if it does not exist there.
    pub fn in_version(mut self, gates: &FeatureGates) -> Option<PluginDescriptor> {
        for change in self.history {
            match *change {
                PluginChange::Exists(switch) if !gates.has(switch) => return None,
                PluginChange::Removed(switch) if gates.has(switch) => return None,
                PluginChange::Implements(switch, points) if !gates.has(switch) => {
                    self.points = self.points.without(points);
                }
                PluginChange::Implemented(switch, points) if !gates.has(switch) => {
                    self.points = self.points.with(points);
                }
                PluginChange::Weighs(switch) if !gates.has(switch) => self.default_weight = None,
                PluginChange::TakesArguments(switch) if !gates.has(switch) => self.args = None,
                _ => {}
            }
        }
        Some(self)
    }

    /// Whether the plugin is in the default profile under `gates`.
    pub fn is_default(&self, gates: &FeatureGates) -> bool {
        match self.default_profile {
            DefaultProfile::Absent => false,
            DefaultProfile::Present => true,
            DefaultProfile::Gated(gate) => gates.enabled(gate),
        }
    }

    /// The gate that puts the plugin into the default profile.
    pub fn gate(&self) -> Option<Feature> {
        match self.default_profile {
            DefaultProfile::Gated(gate) => Some(gate),
            _ => None,
        }
    }
}

/// The plugins of a registry as the version of `gates` has them.
pub fn in_version(plugins: &[PluginDescriptor], gates: &FeatureGates) -> Vec<PluginDescriptor> {
    plugins.iter().filter_map(|plugin| plugin.in_version(gates)).collect()
}

/// The plugin of that name.
pub fn find_plugin<'a>(
    plugins: &'a [PluginDescriptor],
    name: &str,
) -> Option<&'a PluginDescriptor> {
    plugins.iter().find(|plugin| plugin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_found_by_key_and_name() {
        for (i, point) in ExtensionPoint::ALL.into_iter().enumerate() {
            assert_eq!(point.index(), i);
            assert_eq!(ExtensionPoint::from_key(point.key()), Some(point));
            assert_eq!(ExtensionPoint::from_key(point.name()), Some(point));
            assert!(ExtensionPoint::BUILD_ORDER.contains(&point));
        }
        assert_eq!(ExtensionPoint::from_key("multiPoint"), None);
    }

    #[test]
    fn a_plugin_is_as_its_version_has_it() {
        const SWITCH: Switch = Switch::DynamicResourcesScore;
        const HISTORY: &[PluginChange] = &[
            PluginChange::Weighs(SWITCH),
            PluginChange::Implements(SWITCH, PointSet::of(&[Score])),
            PluginChange::Implemented(SWITCH, PointSet::of(&[Permit])),
        ];
        let plugin = PluginDescriptor {
            default_weight: Some(2),
            history: HISTORY,
            ..PluginDescriptor::new("X", &[Filter, Score])
        };
        let gates = FeatureGates::default();
        assert_eq!(plugin.in_version(&gates), Some(plugin));
        let old = plugin.in_version(&gates.with_switch(SWITCH, false)).unwrap();
        assert_eq!((old.points, old.default_weight), (PointSet::of(&[Filter, Permit]), None));
        const NEW: &[PluginChange] = &[PluginChange::Exists(SWITCH)];
        let exists = PluginDescriptor { history: NEW, ..plugin };
        assert_eq!(exists.in_version(&gates.with_switch(SWITCH, false)), None);
        let removed = PluginDescriptor { history: &[PluginChange::Removed(SWITCH)], ..plugin };
        assert_eq!(removed.in_version(&gates), None);
        assert!(removed.in_version(&gates.with_switch(SWITCH, false)).is_some());
    }

    #[test]
    fn a_point_set_holds_what_it_was_made_of() {
        let set = PointSet::of(&[Score, PreFilter]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [PreFilter, Score]);
        assert!(!set.contains(Filter));
    }
}
