//! Opaque plugins: those that a configuration names and this program does not have.
//!
//! An opaque plugin keeps its place in the profile, its weight and its arguments as written. It
//! never runs. A plugin of another project that is enabled at a point that kubestep's plugin of that
//! name does not implement is a different plugin, so it is opaque.

use std::str::FromStr;

use kubestep_api::intern::Symbol;

use super::expand::Points;
use super::features::FeatureGates;
use super::path::FieldPath;
use super::points::{ExtensionPoint, PluginDescriptor, PointSet, find_plugin};
use super::problem::Problem;
use super::profile::{Origin, ResolvedPlugin};
use super::suggest::closest;
use super::types::{KubeSchedulerConfiguration, PluginSet};
use super::yaml_value::{YamlValue, parse};

/// What happens to a plugin that this program does not have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UnknownPlugins {
    /// The configuration is rejected.
    #[default]
    Reject,
    /// The plugin becomes opaque.
    Opaque,
}

impl FromStr for UnknownPlugins {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<UnknownPlugins, &'static str> {
        match text {
            "reject" => Ok(UnknownPlugins::Reject),
            "opaque" => Ok(UnknownPlugins::Opaque),
            _ => Err("expected opaque or reject"),
        }
    }
}

/// The plugins of `registry` without the namesakes: plugins that the document in `text` enables at a
/// point that they do not implement.
pub(super) fn without_namesakes(
    text: Option<&str>,
    registry: &[PluginDescriptor],
) -> Vec<PluginDescriptor> {
    let root = text.and_then(|text| parse(text).ok()).map(|parsed| parsed.root);
    let means = |plugin: &PluginDescriptor| match &root {
        Some(root) if plugin.project.is_some() => !is_namesake(plugin, root),
        _ => true,
    };
    registry.iter().copied().filter(means).collect()
}

fn is_namesake(plugin: &PluginDescriptor, root: &YamlValue) -> bool {
    let profiles = root.get("profiles").map(YamlValue::items).unwrap_or_default();
    let sets = profiles.iter().filter_map(|profile| profile.get("plugins"));
    sets.into_iter().any(|set| {
        let enabled = |point: ExtensionPoint| set.get(point.key())?.get("enabled");
        let is_enabled = |point: &ExtensionPoint| {
            let plugins = enabled(*point).map(YamlValue::items).unwrap_or_default();
            let name = YamlValue::Text(plugin.name.to_owned());
            plugins.iter().any(|enabled| enabled.get("name") == Some(&name))
        };
        ExtensionPoint::ALL.iter().any(|point| is_enabled(point) && !plugin.implements(*point))
    })
}

/// The opaque plugins that `document` enables, in the order in which it names them: those that are
/// not `known`. A plugin of `registry` that the version does not have is none of them:
/// kube-scheduler would not start.
pub(super) fn descriptors(
    document: &KubeSchedulerConfiguration,
    known: &[PluginDescriptor],
    registry: &[PluginDescriptor],
    gates: &FeatureGates,
) -> Vec<PluginDescriptor> {
    let mut found: Vec<PluginDescriptor> = Vec::new();
    for (_, points, name) in named(document, gates) {
        if name.is_empty() || find_plugin(known, name).is_some() {
            continue;
        }
        match found.iter_mut().find(|plugin| plugin.name == name) {
            Some(plugin) => plugin.points = plugin.points.with(points),
            None => found.push(PluginDescriptor {
                points,
                is_opaque: true,
                project: find_plugin(registry, name).and_then(|namesake| namesake.project),
                registers_events: false,
                signs: false,
                doc: "is not part of kubestep: its decisions are unknown",
                ..PluginDescriptor::new(name, &[])
            }),
        }
    }
    found
}

/// All plugins that a document enables: where, at which points, and their names.
fn named<'a>(
    document: &'a KubeSchedulerConfiguration,
    gates: &'a FeatureGates,
) -> impl Iterator<Item = (FieldPath, PointSet, &'static str)> + 'a {
    let all = PointSet::in_version(gates);
    let profiles = FieldPath::root().field("profiles");
    document.profiles.iter().enumerate().flat_map(move |(i, profile)| {
        let path = profiles.index(i).field("plugins");
        let multi = (path.field("multiPoint"), all, &profile.plugins.multi_point);
        let points = all.iter().map(move |point| {
            (path.field(point.key()), PointSet::of(&[point]), profile.plugins.at(point))
        });
        let sets: Vec<(FieldPath, PointSet, &PluginSet)> =
            std::iter::once(multi).chain(points).collect();
        sets.into_iter().flat_map(|(path, points, set)| {
            set.enabled
                .iter()
                .map(move |plugin| (path.field("enabled"), points, plugin.name.as_str()))
        })
    })
}

/// One notice for each opaque plugin, where the document names it first.
pub(super) fn warnings(
    document: &KubeSchedulerConfiguration,
    registry: &[PluginDescriptor],
) -> Vec<Problem> {
    let gates = FeatureGates::default();
    let notice = |plugin: &PluginDescriptor| {
        let (path, ..) = named(document, &gates).find(|(.., name)| *name == plugin.name)?;
        let name = plugin.name;
        let why = match plugin.project {
            Some(project) => format!("it runs where {name} of {project} does not"),
            None => "kubestep does not have it".to_owned(),
        };
        let message =
            format!("{name:?} is opaque: {why}, so decisions that it could change are uncertain");
        let problem = Problem::new(&path, message);
        let known = registry.iter().filter(|other| !other.is_opaque).map(|other| other.name);
        Some(match closest(plugin.name, known) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem,
        })
    };
    registry.iter().filter(|plugin| plugin.is_opaque).filter_map(notice).collect()
}

/// Whether `name` is an opaque plugin of `registry`.
pub(super) fn is_opaque(name: Symbol, registry: &[PluginDescriptor]) -> bool {
    find_plugin(registry, &name).is_some_and(|plugin| plugin.is_opaque)
}

/// Whether the plugin may or may not implement the point: it is opaque, and only MultiPoint enables
/// it there.
fn is_open(plugin: &ResolvedPlugin, registry: &[PluginDescriptor]) -> bool {
    plugin.origin == Origin::MultiPoint && is_opaque(plugin.name, registry)
}

/// Removes opaque plugins from the points where they cannot run: kube-scheduler, which started with
/// the configuration, allows one plugin there, and another one is certain.
pub(super) fn settle(points: &mut Points, registry: &[PluginDescriptor]) {
    for point in [ExtensionPoint::QueueSort, ExtensionPoint::PlacementGenerate] {
        let plugins = &mut points[point.index()];
        if plugins.iter().any(|plugin| !is_open(plugin, registry)) {
            plugins.retain(|plugin| !is_open(plugin, registry));
        }
    }
}

/// The number of plugins at a point that allows one. Opaque ones of MultiPoint count as one: one of
/// them implements it.
pub(super) fn count(plugins: &[ResolvedPlugin], registry: &[PluginDescriptor]) -> usize {
    let open = plugins.iter().filter(|plugin| is_open(plugin, registry)).count();
    plugins.len() - open + open.min(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResolvedConfig, resolve_as};
    use ExtensionPoint::{Bind, Filter, PlacementGenerate, QueueSort, Score};

    const REGISTRY: &[PluginDescriptor] = &[
        PluginDescriptor::new("PrioritySort", &[QueueSort]),
        PluginDescriptor::new("NodeName", &[Filter]),
        PluginDescriptor::new("DefaultBinder", &[Bind]),
    ];

    fn resolved(profile: &str, unknown: UnknownPlugins) -> Result<ResolvedConfig, String> {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             profiles:\n- {profile}\n"
        );
        let gates = FeatureGates::default();
        resolve_as(Some(&text), Vec::new(), &gates, REGISTRY, unknown)
            .map_err(|error| error.to_string())
    }

    const BASE: &str = "queueSort: {enabled: [{name: PrioritySort}]}, \
                        bind: {enabled: [{name: DefaultBinder}]}";

    fn opaque(plugins: &str) -> ResolvedConfig {
        let profile = format!("plugins: {{{plugins}}}");
        resolved(&profile, UnknownPlugins::Opaque).unwrap()
    }

    fn points(config: &ResolvedConfig, name: &str) -> Vec<ExtensionPoint> {
        let profile = &config.profiles[0];
        let runs = |point: &ExtensionPoint| profile.at(*point).iter().any(|p| p.name == name);
        ExtensionPoint::ALL.into_iter().filter(runs).collect()
    }

    #[test]
    fn it_runs_where_it_is_configured_with_its_weight_and_arguments() {
        let profile = format!(
            "plugins: {{{BASE}, filter: {{enabled: [{{name: Mine}}]}}, \
             score: {{enabled: [{{name: Mine, weight: 7}}]}}}}\n  \
             pluginConfig: [{{name: Mine, args: {{kind: MineArgs, deep: {{a: [1]}}}}}}]"
        );
        let config = resolved(&profile, UnknownPlugins::Opaque).unwrap();
        assert_eq!(points(&config, "Mine"), [Filter, Score]);
        let profile = &config.profiles[0];
        assert_eq!(profile.at(Score)[0].weight, 7);
        assert_eq!(profile.opaque, ["Mine"]);
        let args = profile.args.get("Mine".into()).and_then(|args| args.as_raw()).unwrap();
        assert_eq!(args["deep"]["a"][0], 1);
    }

    #[test]
    fn multi_point_means_every_point_but_those_where_another_plugin_is_certain() {
        let config = opaque(&format!("{BASE}, multiPoint: {{enabled: [{{name: Mine}}]}}"));
        let all = points(&config, "Mine");
        assert!(!all.contains(&QueueSort) && all.contains(&Bind), "{all:?}");
        assert!(all.contains(&PlacementGenerate), "{all:?}");
        assert_eq!(all.len(), ExtensionPoint::COUNT - 1);
        // Without another plugin that sorts, it is the one.
        let config = opaque("multiPoint: {enabled: [{name: Mine}, {name: Other}]}");
        assert!(points(&config, "Mine").contains(&QueueSort));
        assert!(points(&config, "Other").contains(&QueueSort), "it may be either");
    }

    #[test]
    fn a_point_can_disable_it() {
        let off = "permit: {disabled: [{name: Mine}]}, reserve: {disabled: [{name: '*'}]}";
        let config = opaque(&format!("{BASE}, multiPoint: {{enabled: [{{name: Mine}}]}}, {off}"));
        let all = points(&config, "Mine");
        assert!(!all.contains(&ExtensionPoint::Permit), "{all:?}");
        assert!(!all.contains(&ExtensionPoint::Reserve), "{all:?}");
    }

    #[test]
    fn a_plugin_that_runs_elsewhere_is_another_one_of_its_name() {
        let grouping = PluginDescriptor {
            project: Some("other-plugins"),
            ..PluginDescriptor::new("Grouping", &[Filter])
        };
        let registry = [REGISTRY, &[grouping]].concat();
        let resolve = |plugins: &str, unknown| {
            let text = format!(
                "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                 profiles:\n- plugins: {{{BASE}, {plugins}}}\n"
            );
            let gates = FeatureGates::default();
            resolve_as(Some(&text), Vec::new(), &gates, &registry, unknown)
        };
        let (same, other) =
            ("filter: {enabled: [{name: Grouping}]}", "score: {enabled: [{name: Grouping}]}");
        let config = resolve(same, UnknownPlugins::Opaque).unwrap();
        assert!(config.profiles[0].opaque.is_empty() && config.warnings.is_empty());
        let config = resolve(&format!("{same}, {other}"), UnknownPlugins::Opaque).unwrap();
        assert_eq!(config.profiles[0].opaque, ["Grouping"]);
        assert_eq!(points(&config, "Grouping"), [Filter, Score]);
        let notice = config.warnings[0].to_string();
        assert!(notice.contains("it runs where Grouping of other-plugins does not"), "{notice}");
        let error = resolve(other, UnknownPlugins::Reject).unwrap_err().to_string();
        assert!(error.contains("does not extend Score"), "{error}");
    }

    #[test]
    fn documents_of_the_version_before_are_read_with_a_notice() {
        let resolve = |version: &str, unknown| {
            let text = format!(
                "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n\
                 profiles:\n- plugins: {{{BASE}}}\n"
            );
            resolve_as(Some(&text), Vec::new(), &FeatureGates::default(), REGISTRY, unknown)
        };
        let config = resolve("v1beta3", UnknownPlugins::Opaque).unwrap();
        let notice = config.warnings[0].to_string();
        assert!(
            notice.contains("does not take \"kubescheduler.config.k8s.io/v1beta3\""),
            "{notice}"
        );
        assert!(resolve("v1beta3", UnknownPlugins::Reject).is_err());
        assert!(resolve("v1beta2", UnknownPlugins::Opaque).is_err());
        assert!(resolve("v1", UnknownPlugins::Opaque).unwrap().warnings.is_empty());
    }

    #[test]
    fn it_is_noticed_once_and_rejected_where_that_is_wanted() {
        let profile = format!(
            "plugins: {{{BASE}, filter: {{enabled: [{{name: NodeNam}}]}}, \
             score: {{enabled: [{{name: NodeNam}}]}}}}"
        );
        let notices = resolved(&profile, UnknownPlugins::Opaque).unwrap().warnings;
        assert_eq!(notices.len(), 1, "{notices:?}");
        let text = notices[0].to_string();
        assert!(text.contains("\"NodeNam\" is opaque") && text.contains("NodeName"), "{text}");
        let error = resolved(&profile, UnknownPlugins::Reject).unwrap_err();
        assert!(error.contains("does not exist"), "{error}");
    }
}
