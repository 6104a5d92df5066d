//! Single changes on top of a document: a weight, or a plugin that is enabled or disabled. They are
//! applied after defaulting, so they work alike for explicit and for default plugins.

use std::fmt;

use super::path::FieldPath;
use super::points::{ExtensionPoint, PluginDescriptor};
use super::problem::Problem;
use super::suggest::closest;
use super::types::{
    KubeSchedulerConfiguration, KubeSchedulerProfile, PluginRef, PluginSet, Plugins,
};
use kubestep_api::intern::Symbol;

/// A change of one plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overlay {
    /// The plugin, by name.
    pub plugin: Symbol,
    /// What changes about the plugin.
    pub switch: Switch,
    /// The scheduler name of the profile to change; `None` for all profiles.
    pub profile: Option<Symbol>,
}

/// The kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Sets the weight of its scores, at least 1.
    Weight(i32),
    /// Disables it, at one point or at all points.
    Off(Option<ExtensionPoint>),
    /// Enables it, at one point or at every point that it implements.
    On(Option<ExtensionPoint>),
}

impl Overlay {
    /// Applies the change. Errors include how to correct it.
    pub(super) fn apply(
        &self,
        document: &mut KubeSchedulerConfiguration,
        registry: &[PluginDescriptor],
    ) -> Result<(), Problem> {
        self.check(registry)?;
        let mut profiles = 0;
        let mut changed = false;
        for profile in &mut document.profiles {
            if self.profile.is_none_or(|name| name == profile.scheduler_name) {
                profiles += 1;
                changed |= self.change(profile);
            }
        }
        match (profiles, changed, self.switch) {
            (0, _, _) => Err(self.wrong("there is no such profile")),
            (_, false, Switch::Weight(_)) => Err(self.wrong("it does not score in this profile")),
            (_, false, Switch::Off(_)) => Err(self.wrong("it is not enabled")),
            (_, false, Switch::On(_)) => Err(self.wrong("it is already enabled")),
            (_, true, _) => Ok(()),
        }
    }

    fn check(&self, registry: &[PluginDescriptor]) -> Result<(), Problem> {
        let known = registry.iter().find(|descriptor| self.plugin == descriptor.name);
        let Some(known) = known else {
            let names = registry.iter().map(|descriptor| descriptor.name);
            let near = closest(&self.plugin, names);
            let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
            return Err(self.wrong(&format!("there is no such plugin{near}")));
        };
        match self.switch {
            Switch::Weight(weight) if weight < 1 => {
                Err(self.wrong("a weight is at least 1; disable the plugin instead"))
            }
            Switch::Weight(_) if !known.implements(ExtensionPoint::Score) => {
                Err(self.wrong("it does not score, so a weight has no effect"))
            }
            Switch::On(Some(point)) if !known.implements(point) => {
                Err(self.wrong(&format!("it does not run at {point}")))
            }
            _ => Ok(()),
        }
    }

    fn wrong(&self, message: &str) -> Problem {
        Problem::new(&FieldPath::root(), format!("{self}: {message}"))
    }

    /// Changes one profile; `false` if the plugin is not there to be changed.
    fn change(&self, profile: &mut KubeSchedulerProfile) -> bool {
        let plugins = &mut profile.plugins;
        match self.switch {
            Switch::Weight(weight) => set_weight(plugins, self.plugin, weight),
            Switch::Off(None) => disable(plugins, self.plugin),
            Switch::Off(Some(point)) => disable_at(plugins, self.plugin, point),
            Switch::On(None) => add(&mut plugins.multi_point, self.plugin),
            Switch::On(Some(point)) => enable_at(plugins, self.plugin, point),
        }
    }
}

/// Sets the weight in the Score set if that enables the plugin, otherwise in MultiPoint; `false` if
/// neither does.
fn set_weight(plugins: &mut Plugins, name: Symbol, weight: i32) -> bool {
    let own = find(plugins.at_mut(ExtensionPoint::Score), name).is_some();
    let set = match own {
        true => plugins.at_mut(ExtensionPoint::Score),
        false => &mut plugins.multi_point,
    };
    find(set, name).map(|plugin| plugin.weight = weight).is_some()
}

fn disable(plugins: &mut Plugins, name: Symbol) -> bool {
    let mut there = remove(&mut plugins.multi_point, name);
    for point in ExtensionPoint::ALL {
        there |= remove(plugins.at_mut(point), name);
    }
    there
}

fn disable_at(plugins: &mut Plugins, name: Symbol, point: ExtensionPoint) -> bool {
    let by_all = find(&mut plugins.multi_point, name).is_some();
    let set = plugins.at_mut(point);
    let own = remove(set, name);
    let is_off = |off: &PluginRef| off.name == name || off.name == "*";
    let inherited = by_all && !set.disabled.iter().any(is_off);
    if inherited {
        set.disabled.push(PluginRef { name, weight: 0 });
    }
    own || inherited
}

fn enable_at(plugins: &mut Plugins, name: Symbol, point: ExtensionPoint) -> bool {
    let by_all = find(&mut plugins.multi_point, name).is_some();
    let set = plugins.at_mut(point);
    let is_off = |off: &PluginRef| off.name == name;
    let was_off = set.disabled.iter().any(is_off);
    set.disabled.retain(|off| !is_off(off));
    if by_all && !set.disabled.iter().any(|off| off.name == "*") {
        return was_off;
    }
    add(set, name)
}

fn find(set: &mut PluginSet, name: Symbol) -> Option<&mut PluginRef> {
    set.enabled.iter_mut().find(|plugin| plugin.name == name)
}

fn remove(set: &mut PluginSet, name: Symbol) -> bool {
    let before = set.enabled.len();
    set.enabled.retain(|plugin| plugin.name != name);
    set.enabled.len() < before
}

fn add(set: &mut PluginSet, name: Symbol) -> bool {
    let new = find(set, name).is_none();
    if new {
        set.enabled.push(PluginRef { name, weight: 0 });
    }
    new
}

/// `weight ImageLocality=5`, `disable NodeAffinity at Score in batch`.
impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plugin = self.plugin;
        match self.switch {
            Switch::Weight(weight) => write!(f, "weight {plugin}={weight}")?,
            Switch::Off(None) => write!(f, "disable {plugin}")?,
            Switch::Off(Some(point)) => write!(f, "disable {plugin} at {point}")?,
            Switch::On(None) => write!(f, "enable {plugin}")?,
            Switch::On(Some(point)) => write!(f, "enable {plugin} at {point}")?,
        }
        self.profile.map_or(Ok(()), |profile| write!(f, " in {profile}"))
    }
}
