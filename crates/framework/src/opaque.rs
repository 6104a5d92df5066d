//! The opaque plugins of a profile: those that only its configuration knows.
//!
//! They never run, so they never change a decision. [`crate::record::certainty`] says which
//! decisions they could have changed in a scheduler that has them.

use crate::plugin::ScoreBasis;
use crate::registry::Registry;
use kubestep_api::intern::Symbol;
use kubestep_config::{ExtensionPoint, PointSet, ResolvedProfile};

/// A plugin that only the configuration knows: it has a name, points and a weight, and never runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpaquePlugin {
    /// The plugin, by name.
    pub name: Symbol,
    /// The extension points at which the profile runs it.
    pub points: PointSet,
    /// The weight of its scores; 0 if it does not score.
    pub weight: i64,
}

impl OpaquePlugin {
    /// Those of `points` at which it runs.
    pub fn at(&self, points: &[ExtensionPoint]) -> Vec<ExtensionPoint> {
        points.iter().copied().filter(|point| self.points.contains(*point)).collect()
    }
}

/// The opaque plugins of a profile, and what their effect depends on.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OpaquePlugins {
    /// The plugins, in the order in which the configuration names them.
    pub plugins: Vec<OpaquePlugin>,
    /// All PostFilter plugins of the profile, in the order run.
    pub post_filters: Vec<Symbol>,
    /// All Bind plugins, likewise.
    pub binders: Vec<Symbol>,
    /// The score plugins of the profile that run, with what their scores depend on.
    pub score_bases: Vec<(Symbol, ScoreBasis)>,
}

impl OpaquePlugins {
    /// The opaque plugins of `profile`; `None` if it has none.
    pub fn of(
        profile: &ResolvedProfile,
        score_bases: Vec<(Symbol, ScoreBasis)>,
    ) -> Option<OpaquePlugins> {
        let plugin = |name: &Symbol| {
            let entry = |point| profile.at(point).iter().find(|entry| entry.name == *name);
            let points: Vec<_> =
                ExtensionPoint::ALL.into_iter().filter(|point| entry(*point).is_some()).collect();
            let weight = entry(ExtensionPoint::Score).map_or(0, |entry| i64::from(entry.weight));
            OpaquePlugin { name: *name, points: PointSet::of(&points), weight }
        };
        let plugins: Vec<OpaquePlugin> = profile.opaque.iter().map(plugin).collect();
        let names = |point| profile.at(point).iter().map(|plugin| plugin.name).collect();
        let post_filters = names(ExtensionPoint::PostFilter);
        let binders = names(ExtensionPoint::Bind);
        (!plugins.is_empty()).then_some(OpaquePlugins {
            plugins,
            post_filters,
            binders,
            score_bases,
        })
    }

    /// The plugins that run at one of `points`.
    pub fn at<'a>(
        &'a self,
        points: &'a [ExtensionPoint],
    ) -> impl Iterator<Item = &'a OpaquePlugin> + 'a {
        self.plugins.iter().filter(|plugin| !plugin.at(points).is_empty())
    }

    /// Whether pods can have a signature: every plugin that finds or scores nodes must take part,
    /// and an opaque one does not.
    pub fn lets_sign(&self) -> bool {
        use ExtensionPoint::{Filter, PreFilter, PreScore, Score};
        self.at(&[PreFilter, Filter, PreScore, Score]).next().is_none()
    }

    /// Whether one runs at `point`.
    pub fn runs_at(&self, point: ExtensionPoint) -> bool {
        self.at(&[point]).next().is_some()
    }

    /// What the scores of a plugin that runs depend on.
    pub fn score_basis(&self, plugin: Symbol) -> ScoreBasis {
        let found = self.score_bases.iter().find(|(name, _)| *name == plugin);
        found.map_or(ScoreBasis::default(), |(_, basis)| *basis)
    }
}

/// The plugins that order the queue or bind pods where only opaque plugins of the profile do: the
/// first of the registry that can.
pub fn stand_ins(profile: &ResolvedProfile, registry: &Registry) -> Vec<(ExtensionPoint, Symbol)> {
    let has_only_opaque = |point: &ExtensionPoint| {
        let plugins = profile.at(*point);
        !plugins.is_empty() && plugins.iter().all(|plugin| profile.is_opaque(plugin.name))
    };
    let stand_in = |point: ExtensionPoint| {
        let all = registry.descriptors();
        let found = all.iter().find(|plugin| plugin.implements(point))?;
        Some((point, Symbol::new(found.name)))
    };
    let points = [ExtensionPoint::QueueSort, ExtensionPoint::Bind];
    points.into_iter().filter(has_only_opaque).filter_map(stand_in).collect()
}
