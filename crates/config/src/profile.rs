//! A profile as the engine runs it: the plugins of each extension point in order, with weights,
//! and the arguments of every plugin.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kubestep_api::intern::Symbol;

use super::args::{Arguments, PluginArgs};
use super::points::ExtensionPoint;

/// A profile after defaulting, validation and expansion.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ResolvedProfile {
    /// The `schedulerName` of the pods that it schedules.
    pub scheduler_name: Symbol,
    /// Overrides the configuration's percentage for this profile's pods; 0 means adaptive.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// The plugins at each point, indexed by [`ExtensionPoint::index`].
    pub points: [Vec<ResolvedPlugin>; ExtensionPoint::COUNT],
    /// Every plugin that must be built, in the order of the registry. A plugin may be built without
    /// running at any point; its cluster events still count.
    pub instances: Vec<Symbol>,
    /// Those of them that are not part of this program; they keep their place and never run.
    pub opaque: Vec<Symbol>,
    /// The arguments of the plugins.
    pub args: ProfileArgs,
}

impl ResolvedProfile {
    /// The plugins that run at `point`, in order.
    pub fn at(&self, point: ExtensionPoint) -> &[ResolvedPlugin] {
        &self.points[point.index()]
    }

    /// Whether `plugin` is not part of this program.
    pub fn is_opaque(&self, plugin: Symbol) -> bool {
        self.opaque.contains(&plugin)
    }
}

/// A plugin at an extension point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResolvedPlugin {
    /// The name of the plugin.
    pub name: Symbol,
    /// Its effective weight; 0 at points without weights.
    pub weight: i32,
    /// Which set enabled it.
    pub origin: Origin,
}

/// The plugin set that enabled a plugin at a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The set `multiPoint`, which stands for all points.
    MultiPoint,
    /// The point's own set.
    Specific,
    /// The point's own set, which overrides the MultiPoint entry.
    Override,
}

/// The arguments of the plugins of a profile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ProfileArgs {
    plugins: BTreeMap<Symbol, PluginArgs>,
    /// The plugins that the profile runs at other points but not at Filter; they have no results
    /// of Filter to use.
    pub without_filter: Vec<Symbol>,
}

impl ProfileArgs {
    /// The arguments of the plugin that takes an `A`; the defaults if the profile has none. A copy
    /// for the plugin to keep.
    pub fn of<A: Arguments>(&self) -> A {
        self.read::<A>().into_owned()
    }

    /// The arguments of the plugin that takes an `A`, not copied; the defaults if the profile has
    /// none.
    pub fn read<A: Arguments>(&self) -> Cow<'_, A> {
        let given = self.get(A::PLUGIN.into()).and_then(PluginArgs::get::<A>);
        given.map_or_else(|| Cow::Owned(A::default()), Cow::Borrowed)
    }

    /// The arguments of `plugin`, if the profile has some.
    pub fn get(&self, plugin: Symbol) -> Option<&PluginArgs> {
        self.plugins.get(&plugin)
    }

    /// Stores the arguments of `plugin`.
    pub fn set(&mut self, plugin: Symbol, args: PluginArgs) {
        self.plugins.insert(plugin, args);
    }

    /// The same with these arguments for the plugin that takes an `A`.
    #[must_use]
    pub fn with<A: Arguments>(mut self, args: A) -> ProfileArgs {
        self.set(A::PLUGIN.into(), PluginArgs::new(args));
        self
    }
}
