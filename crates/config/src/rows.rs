//! A resolved configuration as rows: every setting with its value, and whether it differs from the
//! default. Tables and screens are made from these rows.
//!
//! The defaults come from resolving an empty document under the same gates, so no second list of
//! defaults can differ from the first.

use super::describe::{arguments_in, compact, percentage};
use super::features::{Feature, FeatureGates, GateSpec};
use super::points::{ArgumentDoc, ExtensionPoint, PluginDescriptor, find_plugin};
use super::profile::{ResolvedPlugin, ResolvedProfile};
use super::resolve::{ResolvedConfig, resolve};
use super::types::{Extender, KubeSchedulerProfile, PluginConfig};
use super::yaml_value::YamlValue;
use kubestep_api::words::count;

/// Stands for what is neither set nor has a default.
const NOT_SET: &str = "not set";

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A heading for the rows up to the next one.
    Heading,
    /// A setting of the scheduler or of a profile.
    Setting,
    /// An extension point of a profile.
    Point(ExtensionPoint),
    /// A plugin at the point above.
    Plugin(PluginDescriptor),
    /// A plugin that is not registered.
    OtherPlugin,
    /// An argument of a plugin.
    Argument(PluginDescriptor),
    /// A feature gate, on or off.
    Gate(Feature),
    /// An extender, or one of its settings.
    Extender,
    /// A warning: a setting that is allowed but probably not intended.
    Warning,
}

/// A row: one value of a configuration, and whether it is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What the value belongs to.
    pub about: About,
    /// The name of the setting.
    pub name: String,
    /// The value, as text.
    pub value: String,
    /// Whether there is a default.
    pub has_default: bool,
    /// The default, where the value differs from it.
    pub default: Option<String>,
    /// What the setting does, in a sentence.
    pub doc: String,
}

impl Row {
    /// A row whose value is the default.
    fn new(about: About, name: &str, value: impl Into<String>, doc: &str) -> Row {
        let (name, value, doc) = (name.to_owned(), value.into(), doc.to_owned());
        Row { about, name, value, has_default: true, default: None, doc }
    }

    /// The same, with the default if the value differs from it.
    fn or_default(self, default: Option<String>) -> Row {
        Row { default, ..self }
    }

    fn heading(name: &str) -> Row {
        Row { has_default: false, ..Row::new(About::Heading, name, "", "") }
    }
}

/// All rows: settings, profiles with their plugins and arguments, extenders, gates.
pub fn rows(config: &ResolvedConfig) -> Vec<Row> {
    // An empty document always resolves; should it not, nothing counts as changed.
    let default =
        resolve(None, &config.features, &config.plugins).unwrap_or_else(|_| config.clone());
    let mut rows = vec![Row::heading("Scheduler")];
    rows.extend(settings(config, &default));
    rows.extend(config.warnings.iter().map(|warning| {
        // Where only the first column fits, it says what about.
        let name = format!("warning: {}", warning.path);
        let row = Row::new(About::Warning, &name, "", &warning.message);
        Row { has_default: false, ..row }
    }));
    for (at, profile) in config.profiles.iter().enumerate() {
        rows.push(Row::heading(&format!("Profile {}", profile.scheduler_name)));
        rows.extend(profile_rows(profile, default.profiles.first(), &config.plugins));
        // A profile that only serves another scheduler's name has no document of its own.
        if let Some(document) = config.document.profiles.get(at) {
            rows.push(Row::heading(&format!("Arguments in {}", profile.scheduler_name)));
            rows.extend(arguments(document, profile, config));
        }
    }
    rows.push(Row::heading("Extenders"));
    rows.extend(config.extenders.iter().flat_map(extender));
    if config.extenders.is_empty() {
        rows.push(Row::new(About::Extender, "none", "", "No HTTP extender is called."));
    }
    rows.push(Row::heading("Feature gates"));
    rows.extend(
        config.features.known().map(|(feature, spec)| gate(feature, spec, config.features)),
    );
    rows
}

fn settings(config: &ResolvedConfig, default: &ResolvedConfig) -> Vec<Row> {
    let setting = |name, value: fn(&ResolvedConfig) -> String, doc: &str| {
        let (value, usual) = (value(config), value(default));
        let differs = (value != usual).then_some(usual);
        Row::new(About::Setting, name, value, doc).or_default(differs)
    };
    let nodes = percentage(config.percentage_of_nodes_to_score);
    vec![
        setting(
            "podInitialBackoffSeconds",
            |config| format!("{}s", config.pod_initial_backoff_seconds),
            "Backoff after the first failed attempt; it doubles with each further attempt.",
        ),
        setting(
            "podMaxBackoffSeconds",
            |config| format!("{}s", config.pod_max_backoff_seconds),
            "Maximum backoff.",
        ),
        setting(
            "percentageOfNodesToScore",
            |config| config.percentage_of_nodes_to_score.to_string(),
            &format!("Feasible nodes to find before scoring: {nodes}."),
        ),
        setting(
            "parallelism",
            |config| config.parallelism.to_string(),
            "Worker threads of kube-scheduler; decisions do not depend on it.",
        ),
    ]
}

fn profile_rows(
    profile: &ResolvedProfile,
    default: Option<&ResolvedProfile>,
    registry: &[PluginDescriptor],
) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(own) = profile.percentage_of_nodes_to_score {
        let doc = format!("For this profile only: {}.", percentage(own));
        let row = Row::new(About::Setting, "percentageOfNodesToScore", own.to_string(), &doc);
        rows.push(row.or_default(Some(NOT_SET.to_owned())));
    }
    for point in ExtensionPoint::ALL {
        let usual = default.map(|default| default.at(point)).unwrap_or_default();
        rows.extend(point_rows(point, profile.at(point), usual, registry));
    }
    rows
}

/// A point, its plugins in their order, and default plugins that are missing there.
fn point_rows(
    point: ExtensionPoint,
    plugins: &[ResolvedPlugin],
    usual: &[ResolvedPlugin],
    registry: &[PluginDescriptor],
) -> Vec<Row> {
    let names = |list: &[ResolvedPlugin]| list.iter().map(|p| p.name).collect::<Vec<_>>();
    let number = |list: &[ResolvedPlugin]| match list.len() {
        0 => "no plugin".to_owned(),
        n => count(n, "plugin"),
    };
    let usual_value = match plugins.len() == usual.len() {
        true => "other plugins or order".to_owned(),
        false => number(usual),
    };
    let differs = (names(plugins) != names(usual)).then_some(usual_value);
    let row = Row::new(About::Point(point), point.name(), number(plugins), "");
    let mut rows = vec![row.or_default(differs)];
    let value = |plugin: &ResolvedPlugin| match point.has_weights() {
        true => format!("weight {}", plugin.weight),
        false => "on".to_owned(),
    };
    let off = || "off".to_owned();
    for plugin in plugins {
        let before = usual.iter().find(|other| other.name == plugin.name);
        let is_usual = before.is_some_and(|before| before.weight == plugin.weight);
        let differs = (!is_usual).then(|| before.map_or_else(off, value));
        rows.push(plugin_row(registry, &plugin.name, value(plugin)).or_default(differs));
    }
    let missing = usual.iter().filter(|p| !plugins.iter().any(|here| here.name == p.name));
    let off = |p: &ResolvedPlugin| plugin_row(registry, &p.name, off()).or_default(Some(value(p)));
    rows.extend(missing.map(off));
    rows
}

fn plugin_row(registry: &[PluginDescriptor], name: &str, value: String) -> Row {
    let known = find_plugin(registry, name);
    let about = known.map_or(About::OtherPlugin, |plugin| About::Plugin(*plugin));
    Row::new(about, name, value, known.map_or("", |plugin| plugin.doc))
}

/// The arguments of the plugins that are built, as the scheduler uses them.
fn arguments(
    document: &KubeSchedulerProfile,
    profile: &ResolvedProfile,
    config: &ResolvedConfig,
) -> Vec<Row> {
    let built = document.plugin_config.iter();
    let mut built: Vec<_> = built.filter(|c| profile.instances.contains(&c.name)).collect();
    built.sort_by_key(|config| config.name);
    built.into_iter().flat_map(|own| arguments_of(own, config)).collect()
}

fn arguments_of(own: &PluginConfig, config: &ResolvedConfig) -> Vec<Row> {
    let Some(plugin) = find_plugin(&config.plugins, &own.name) else { return Vec::new() };
    let given = own.args.as_ref().map(|args| args.encode());
    let Some(args) = plugin.args else { return raw_arguments(plugin, given) };
    let usual = Some(args.default(&config.features).encode());
    let show = |fields: &Option<YamlValue>, name: &str| match fields {
        Some(fields) => fields.get(name).map_or_else(|| NOT_SET.to_owned(), compact),
        None => NOT_SET.to_owned(),
    };
    let row = |argument: &ArgumentDoc| {
        let (value, default) = (show(&given, argument.name), show(&usual, argument.name));
        let name = format!("{}.{}", plugin.name, argument.name);
        let differs = (value != default).then_some(default);
        Row::new(About::Argument(*plugin), &name, value, argument.doc).or_default(differs)
    };
    args.docs.iter().map(row).collect()
}

/// The arguments as written, of a plugin whose arguments are unknown.
fn raw_arguments(plugin: &PluginDescriptor, given: Option<YamlValue>) -> Vec<Row> {
    let fields = given.into_iter().flat_map(arguments_in);
    let row = |(field, value): (String, YamlValue)| {
        let name = format!("{}.{field}", plugin.name);
        let row = Row::new(About::Argument(*plugin), &name, compact(&value), "As written.");
        row.or_default(Some(NOT_SET.to_owned()))
    };
    fields.map(row).collect()
}

fn extender(extender: &Extender) -> Vec<Row> {
    let offered: Vec<&str> = extender.verbs().collect();
    let resources: Vec<&str> =
        extender.managed_resources.iter().map(|resource| resource.name.as_str()).collect();
    let calls = match resources.as_slice() {
        [] => "It is called for every pod.".to_owned(),
        names => format!("It is called for pods that request {}.", names.join(", ")),
    };
    let failing = match extender.ignorable {
        true => "If it fails, scheduling continues without it.",
        false => "If it fails, the attempt fails.",
    };
    let doc = format!(
        "{calls} {failing} Its scores are multiplied by {}; a call times out after {}.",
        extender.weight, extender.http_timeout
    );
    let row = Row::new(About::Extender, &extender.url_prefix, offered.join(" "), &doc);
    vec![row.or_default(Some("none".to_owned()))]
}

fn gate(feature: Feature, spec: GateSpec, gates: FeatureGates) -> Row {
    let on = gates.enabled(feature);
    let word = |on| if on { "on" } else { "off" };
    let differs = (on != spec.default).then(|| word(spec.default).to_owned());
    Row::new(About::Gate(feature), feature.name(), word(on), feature.effect()).or_default(differs)
}
