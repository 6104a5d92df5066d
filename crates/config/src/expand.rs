//! Expands the plugin sets of a profile into the plugins that run at each point, with upstream's
//! errors.
//!
//! Upstream: updatePluginList, expandMultiPointPlugins and getValidScoreWeights in
//! `pkg/scheduler/framework/runtime/framework.go`.

use std::collections::BTreeSet;

use kubestep_api::intern::Symbol;

use super::path::FieldPath;
use super::points::{ExtensionPoint, PluginDescriptor};
use super::problem::Problem;
use super::profile::{Origin, ResolvedPlugin};
use super::suggest::closest;
use super::types::{PluginRef, Plugins};

/// The plugins at each point, indexed by [`ExtensionPoint::index`].
pub type Points = [Vec<ResolvedPlugin>; ExtensionPoint::COUNT];

/// The inputs of the expansion.
struct Expansion<'a> {
    plugins: &'a Plugins,
    registry: &'a [PluginDescriptor],
    /// The path of the plugin sets in the document.
    path: &'a FieldPath,
}

/// Expands the sets in `plugins`, whose path in the document is `path`.
pub fn expand(
    plugins: &Plugins,
    registry: &[PluginDescriptor],
    path: &FieldPath,
) -> Result<Points, Problem> {
    let expansion = Expansion { plugins, registry, path };
    let mut points = Points::default();
    for point in ExtensionPoint::BUILD_ORDER {
        points[point.index()] = expansion.specific(point)?;
    }
    for point in ExtensionPoint::BUILD_ORDER {
        let specific = std::mem::take(&mut points[point.index()]);
        points[point.index()] = expansion.with_multi_point(point, specific)?;
    }
    Ok(points)
}

/// Sets the weights of the plugins at a point with weights; a plugin without one gets 1.
///
/// # Errors
/// The sum of the weighted maximum scores could overflow.
pub fn weigh(
    points: &mut Points,
    point: ExtensionPoint,
    plugins: &Plugins,
) -> Result<(), &'static str> {
    /// The highest score of a node.
    const MAX_SCORE: i64 = 100;
    let mut total = 0_i64;
    for plugin in &mut points[point.index()] {
        // The first entry of a name counts, and the point's own set comes before MultiPoint.
        let entries = plugins.at(point).enabled.iter().chain(&plugins.multi_point.enabled);
        let weight = entries.into_iter().find(|entry| entry.name == plugin.name);
        plugin.weight = weight.map(|entry| entry.weight).filter(|weight| *weight != 0).unwrap_or(1);
        let most = i64::from(plugin.weight) * MAX_SCORE;
        total = total.checked_add(most).ok_or("total score of Score plugins could overflow")?;
    }
    Ok(())
}

impl Expansion<'_> {
    /// The point's own list.
    fn specific(&self, point: ExtensionPoint) -> Result<Vec<ResolvedPlugin>, Problem> {
        let mut list: Vec<ResolvedPlugin> = Vec::new();
        for (i, entry) in self.plugins.at(point).enabled.iter().enumerate() {
            let path = self.path.field(point.key()).field("enabled").index(i);
            let descriptor = self.find(entry.name, point, &path)?;
            if !descriptor.implements(point) {
                return Err(not_at(descriptor, point, &path));
            }
            if list.iter().any(|other| other.name == entry.name) {
                return Err(twice(entry.name, point, &path));
            }
            list.push(resolved(entry, Origin::Specific));
        }
        Ok(list)
    }

    fn find(
        &self,
        name: Symbol,
        point: ExtensionPoint,
        path: &FieldPath,
    ) -> Result<&PluginDescriptor, Problem> {
        let known = || self.registry.iter().map(|plugin| plugin.name);
        self.registry.iter().find(|plugin| plugin.name == name.as_str()).ok_or_else(|| {
            let problem = Problem::new(path, format!("{point}Plugin {name:?} does not exist"));
            problem.help(match closest(&name, known()) {
                Some(other) => format!("did you mean {other:?}?"),
                None => "--unknown-plugins=opaque keeps its place".to_owned(),
            })
        })
    }

    /// Merges MultiPoint's plugins with the point's own list. Plugins in both come first, in the
    /// order of the point's list, then those of MultiPoint only, then the rest of the point's list.
    fn with_multi_point(
        &self,
        point: ExtensionPoint,
        specific: Vec<ResolvedPlugin>,
    ) -> Result<Vec<ResolvedPlugin>, Problem> {
        let disabled = names(&self.plugins.at(point).disabled);
        if disabled.contains("*") {
            return Ok(specific);
        }
        let multi = self.multi_point(point, &disabled)?;
        let own = |name| specific.iter().any(|plugin| plugin.name == name);
        let overrides: BTreeSet<Symbol> =
            multi.iter().map(|plugin| plugin.name).filter(|name| own(*name)).collect();
        let (mut list, rest): (Vec<_>, Vec<_>) =
            specific.iter().copied().partition(|plugin| overrides.contains(&plugin.name));
        list.iter_mut().for_each(|plugin| plugin.origin = Origin::Override);
        list.extend(multi.into_iter().filter(|plugin| !own(plugin.name)));
        list.extend(rest);
        Ok(list)
    }

    /// The plugins that MultiPoint enables at `point`.
    fn multi_point(
        &self,
        point: ExtensionPoint,
        disabled: &BTreeSet<&str>,
    ) -> Result<Vec<ResolvedPlugin>, Problem> {
        let own = &self.plugins.at(point).enabled;
        let mut list: Vec<ResolvedPlugin> = Vec::new();
        for (i, entry) in self.plugins.multi_point.enabled.iter().enumerate() {
            let path = self.path.field("multiPoint").field("enabled").index(i);
            let descriptor = self.find(entry.name, point, &path)?;
            if !descriptor.implements(point) || disabled.contains(entry.name.as_str()) {
                continue;
            }
            let repeated = list.iter().any(|other| other.name == entry.name);
            if repeated && own.iter().all(|other| other.name != entry.name) {
                return Err(twice(entry.name, point, &path));
            }
            list.push(resolved(entry, Origin::MultiPoint));
        }
        Ok(list)
    }
}

fn resolved(entry: &PluginRef, origin: Origin) -> ResolvedPlugin {
    ResolvedPlugin { name: entry.name, weight: 0, origin }
}

fn names(plugins: &[PluginRef]) -> BTreeSet<&'static str> {
    plugins.iter().map(|plugin| plugin.name.as_str()).collect()
}

fn not_at(plugin: &PluginDescriptor, point: ExtensionPoint, path: &FieldPath) -> Problem {
    let name = plugin.name;
    let points: Vec<_> = plugin.points.iter().map(ExtensionPoint::name).collect();
    Problem::new(path, format!("plugin {name:?} does not extend {point}Plugin plugin"))
        .help(format!("{name} runs at {}", points.join(", ")))
}

fn twice(name: Symbol, point: ExtensionPoint, path: &FieldPath) -> Problem {
    Problem::new(path, format!("plugin {name:?} already registered as \"{point}Plugin\""))
        .help("remove one of the two entries")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PluginSet;

    use ExtensionPoint::{Filter, PreFilter, Score};

    const PLUGINS: &[PluginDescriptor] = &[
        PluginDescriptor::new("NodeName", &[Filter]),
        PluginDescriptor::new("TaintToleration", &[Filter, Score]),
        PluginDescriptor::new("NodeAffinity", &[PreFilter, Filter, Score]),
        PluginDescriptor::new("NodePorts", &[PreFilter, Filter]),
        PluginDescriptor::new("NodeResourcesFit", &[PreFilter, Filter, Score]),
        PluginDescriptor::new("VolumeZone", &[PreFilter, Filter]),
        PluginDescriptor::new("ImageLocality", &[Score]),
    ];

    fn set(enabled: &[(&str, i32)], disabled: &[&str]) -> PluginSet {
        let plugin = |name: &str, weight| PluginRef { name: name.into(), weight };
        PluginSet {
            enabled: enabled.iter().map(|(name, weight)| plugin(name, *weight)).collect(),
            disabled: disabled.iter().map(|name| plugin(name, 0)).collect(),
        }
    }

    fn plugins(multi: PluginSet, point: ExtensionPoint, specific: PluginSet) -> Plugins {
        let mut plugins = Plugins::default();
        plugins.multi_point = multi;
        *plugins.at_mut(point) = specific;
        plugins
    }

    /// `name:weight` of the plugins at `point`.
    fn outcome(plugins: &Plugins, point: ExtensionPoint) -> Result<Vec<String>, String> {
        let path = FieldPath::root().field("plugins");
        let mut points = expand(plugins, PLUGINS, &path).map_err(|problem| problem.to_string())?;
        weigh(&mut points, point, plugins)?;
        let show = |plugin: &ResolvedPlugin| format!("{}:{}", plugin.name, plugin.weight);
        Ok(points[point.index()].iter().map(show).collect())
    }

    #[test]
    fn overrides_come_first_then_multi_point_then_the_rest() {
        let multi = set(&[("NodeAffinity", 2), ("TaintToleration", 3), ("ImageLocality", 0)], &[]);
        let specific = set(&[("NodeResourcesFit", 0), ("ImageLocality", 7)], &[]);
        let plugins = plugins(multi, Score, specific);
        assert_eq!(
            outcome(&plugins, Score).unwrap(),
            ["ImageLocality:7", "NodeAffinity:2", "TaintToleration:3", "NodeResourcesFit:1"]
        );
        let points = expand(&plugins, PLUGINS, &FieldPath::root()).unwrap();
        let origins: Vec<_> = points[Score.index()].iter().map(|plugin| plugin.origin).collect();
        assert_eq!(
            origins,
            [Origin::Override, Origin::MultiPoint, Origin::MultiPoint, Origin::Specific]
        );
    }

    #[test]
    fn disabled_plugins_are_left_out_of_multi_point_only() {
        let multi = || set(&[("NodeName", 0), ("NodePorts", 0)], &[]);
        let one = plugins(multi(), Filter, set(&[], &["NodeName"]));
        assert_eq!(outcome(&one, Filter).unwrap(), ["NodePorts:1"]);
        let all = plugins(multi(), Filter, set(&[("VolumeZone", 0)], &["*"]));
        assert_eq!(outcome(&all, Filter).unwrap(), ["VolumeZone:1"]);
    }

    #[test]
    fn a_weight_of_the_point_wins_even_where_multi_point_repeats_it() {
        let multi = set(&[("NodePorts", 0), ("NodeAffinity", 9), ("NodeAffinity", 8)], &[]);
        let plugins = plugins(multi, Score, set(&[("NodeAffinity", 4)], &[]));
        // NodeAffinity is also repeated at PreFilter, where no entry overrides it.
        assert_eq!(
            outcome(&plugins, Score).unwrap_err(),
            "plugins.multiPoint.enabled[2]: plugin \"NodeAffinity\" already registered as \
             \"PreFilterPlugin\"; remove one of the two entries"
        );
    }

    #[test]
    fn wrong_entries_are_rejected_in_upstreams_words() {
        let at_filter =
            |specific| outcome(&plugins(PluginSet::default(), Filter, specific), Filter);
        assert_eq!(
            at_filter(set(&[("NodeNam", 0)], &[])).unwrap_err(),
            "plugins.filter.enabled[0]: FilterPlugin \"NodeNam\" does not exist; \
             did you mean \"NodeName\"?"
        );
        assert_eq!(
            at_filter(set(&[("Coscheduling", 0)], &[])).unwrap_err(),
            "plugins.filter.enabled[0]: FilterPlugin \"Coscheduling\" does not exist; \
             --unknown-plugins=opaque keeps its place"
        );
        assert_eq!(
            at_filter(set(&[("NodeName", 0), ("ImageLocality", 0)], &[])).unwrap_err(),
            "plugins.filter.enabled[1]: plugin \"ImageLocality\" does not extend FilterPlugin \
             plugin; ImageLocality runs at Score"
        );
        assert_eq!(
            at_filter(set(&[("NodeName", 0), ("NodeName", 0)], &[])).unwrap_err(),
            "plugins.filter.enabled[1]: plugin \"NodeName\" already registered as \
             \"FilterPlugin\"; remove one of the two entries"
        );
        let multi = plugins(set(&[("Nope", 0)], &[]), Filter, PluginSet::default());
        assert_eq!(
            outcome(&multi, Filter).unwrap_err(),
            "plugins.multiPoint.enabled[0]: PreFilterPlugin \"Nope\" does not exist; \
             --unknown-plugins=opaque keeps its place"
        );
    }
}
